"""Reservations over gRPC, and those who watch them."""

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc

from grms.daemon.messages import WireError
from grms.daemon.rpc.requests import Context, refuse
from grms.lrms.base import LrmsRefusedError
from grms.site.gateway.admission import Admission
from grms.site.model.commands import ReplyGroup, ReplyReservation
from grms.site.model.events import (
    BookReservation,
    GroupedProgram,
    LaunchGroup,
    LaunchReservation,
    MoveReservation,
    ReleaseReservation,
    ReservationsDue,
)
from grms.site.model.jobs import Request
from grms.site.model.reservations import Reservation
from grms.site.pilots.manager import Pilots
from grms.site.pilots.order import check
from grms.site.rpc.job_files import look_at_inputs, sent, taken, write_results
from grms.site.runtime.event_loop import Engine
from grms.site.scheduler.reservations import RUNS_PROGRAMS_ALONE, window_problem
from grms.site.staging.download import ResultServer
from grms.site.staging.stage_in import InputServer
from grms.site.wire.convert import read_request, write_end
from grms.v1 import job_pb2, reservation_pb2, reservation_pb2_grpc, results_pb2

UPDATES_MAX: Final = 1000
"""Changes queued for a slow watcher; beyond, its call is ended."""


class Reservations:
    """Lets time do its part in a site's reservations, and tells of every change."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._changed = asyncio.Event()
        self._watchers: dict[str, set[asyncio.Queue[Reservation | None]]] = {}
        engine.on_reservation(self._tell)

    async def run(self) -> None:
        """Tells the engine when reservations are due, until it is cancelled."""
        engine, book = self._engine, self._engine.state.memory.reservations
        while True:
            self._changed.clear()
            if book.next_time <= engine.clock.now():
                engine.tell(ReservationsDue(engine.new_id()))
                await self._changed.wait()  # each that was due is told
                continue
            async with asyncio.TaskGroup() as group:
                waits: list[asyncio.Task[Any]] = [
                    group.create_task(self._changed.wait(), name="reservations changed")
                ]
                if book.next_time < math.inf:
                    sleep: Any = engine.clock.sleep_until(book.next_time)
                    waits.append(group.create_task(sleep, name="reservations due"))
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for wait in waits:
                    wait.cancel()

    def of(self, owner: str) -> list[Reservation]:
        """Returns an owner's reservations as they are now, in the order of their numbers."""
        everything = self._engine.state.memory.reservations.reservations.values()
        return [one for one in everything if one.owner == owner]

    def watch(self, owner: str) -> asyncio.Queue[Reservation | None]:
        """Returns a queue of changes of one's reservations."""
        queue: asyncio.Queue[Reservation | None] = asyncio.Queue(UPDATES_MAX)
        self._watchers.setdefault(owner, set()).add(queue)
        return queue

    def unwatch(self, owner: str, queue: asyncio.Queue[Reservation | None]) -> None:
        """Ends a queue."""
        self._watchers[owner].discard(queue)
        if not self._watchers[owner]:
            del self._watchers[owner]

    def close(self) -> None:
        """Ends every call that watches: the daemon ends."""
        for queues in self._watchers.values():
            for queue in queues:
                _end(queue)

    def _tell(self, reservation: Reservation) -> None:
        self._changed.set()
        for queue in self._watchers.get(reservation.owner, ()):
            if queue.full():
                _end(queue)
            else:
                queue.put_nowait(reservation)


def _end(queue: asyncio.Queue[Reservation | None]) -> None:
    while queue.full():
        queue.get_nowait()
    queue.put_nowait(None)


class ReservationService(reservation_pb2_grpc.ReservationServiceServicer):
    """Implements `proto/grms/v1/reservation.proto`."""

    def __init__(
        self,
        admission: Admission,
        reservations: Reservations,
        inputs: InputServer,
        pilots: Pilots | None = None,
        results: ResultServer | None = None,
    ) -> None:
        self._admission = admission
        self._engine = admission.engine
        self._reservations = reservations
        self._inputs = inputs
        self._pilots = pilots
        self._results = results

    async def Offer(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.ResourceOfferRequest, context: Context
    ) -> reservation_pb2.ResourceOfferResponse:
        """Returns the resources that may be reserved, with their free time."""
        await self._admission.reserver(context)
        begin, end = request.window.begin_s, request.window.end_s
        if problem := window_problem(begin, end):
            await self._admission.invalid(context, WireError("window", problem))
        if request.wanted and self._pilots is not None:
            self._pilots.want(request.labels)
        book = self._engine.state.memory.reservations
        answer = reservation_pb2.ResourceOfferResponse()
        for resource in book.resources.values():
            if any(resource.labels.get(key) != value for key, value in request.labels.items()):
                continue
            offer = answer.offers.add()
            offer.resource.CopyFrom(
                reservation_pb2.Resource(
                    resource_id=resource.resource_id,
                    labels=dict(resource.labels),
                    processors=resource.processors,
                    speed=resource.speed,
                    cost_per_hour=resource.cost_per_hour,
                )
            )
            for left, right, processors in book.free(resource, begin, end):
                offer.free.add(
                    window=reservation_pb2.Window(begin_s=left, end_s=right),
                    processors=processors,
                )
            offer.groups = resource.piloted
        return answer

    async def Book(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.BookRequest, context: Context
    ) -> reservation_pb2.Reservation:
        """Reserves a resource."""
        owner = await self._owner(context)
        event = BookReservation(
            self._engine.new_id(),
            owner,
            request.idempotency_key,
            request.resource_id,
            request.window.begin_s,
            request.window.end_s,
            request.processors,
        )
        return self._answer(await self._admission.ask(context, event, _reservation))

    async def Release(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.ReleaseRequest, context: Context
    ) -> reservation_pb2.Reservation:
        """Gives a reservation back."""
        owner = await self._owner(context)
        number = _number(request.reservation_id)
        event = ReleaseReservation(self._engine.new_id(), owner, number, request.unless_begun)
        return self._answer(await self._admission.ask(context, event, _reservation))

    async def Launch(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.LaunchRequest, context: Context
    ) -> reservation_pb2.Reservation:
        """Runs a job in a reservation."""
        owner = await self._owner(context)
        wanted, payload = await self._admission.read(context, read_request, request.job, "job")
        program = request.job.HasField("program")
        if program and self._pilots is not None:
            await self._check(context, owner, wanted, payload)
        simulated = request.job.HasField("simulated")
        estimate = request.estimate_s or wanted.requested_time
        if not (math.isfinite(estimate) and estimate > 0):
            text = f"estimate_s is {estimate}; it must be finite, and at least 0"
            await self._admission.invalid(context, WireError("estimate_s", text))
        event = LaunchReservation(
            self._engine.new_id(),
            owner,
            _number(request.reservation_id),
            request.idempotency_key,
            wanted,
            run_time=request.job.simulated.run_time_s if simulated else estimate,
            to_the_end=request.to_the_end,
            program=program,
            payload=payload if program else b"",
        )
        return self._answer(await self._admission.ask(context, event, _reservation))

    async def LaunchGroup(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.LaunchGroupRequest, context: Context
    ) -> reservation_pb2.LaunchGroupResponse:
        """Launches programs that share processors of a pilot."""
        owner = await self._owner(context)
        programs = []
        for index, each in enumerate(request.programs):
            programs.append(await self._grouped(context, owner, each, f"programs[{index}]"))
        event = LaunchGroup(
            self._engine.new_id(),
            owner,
            request.resource_id,
            request.window.begin_s,
            request.window.end_s,
            request.processors,
            tuple(programs),
        )
        found = await self._admission.ask(context, event, _programs)
        self._admission.audit(
            "reservation_group", owner, resource=request.resource_id, programs=len(found)
        )
        answer = reservation_pb2.LaunchGroupResponse()
        for one in found:
            if isinstance(one, str):
                answer.programs.add(refused=one)
            else:
                answer.programs.add(reservation=_message(one))
        return answer

    async def _grouped(
        self, context: Context, owner: str, message: reservation_pb2.GroupedProgram, field: str
    ) -> GroupedProgram:
        wanted, payload = await self._admission.read(
            context, read_request, message.job, f"{field}.job"
        )
        estimate = message.estimate_s
        if not (math.isfinite(estimate) and estimate > 0):
            text = f"estimate_s is {estimate}; it must be finite, and more than 0"
            await self._admission.invalid(context, WireError(f"{field}.estimate_s", text))
        refusal = ""
        if not message.job.HasField("program"):
            refusal = RUNS_PROGRAMS_ALONE
        elif self._pilots is not None:
            try:
                check("", wanted, payload)
            except LrmsRefusedError as error:
                refusal = error.reason
            else:
                job = f"{field}.job"
                await look_at_inputs(
                    context, self._admission, self._inputs, owner, payload, field=job
                )
        return GroupedProgram(message.idempotency_key, wanted, estimate, payload, refusal)

    async def Move(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.MoveRequest, context: Context
    ) -> reservation_pb2.Reservation:
        """Moves a reservation to another window."""
        owner = await self._owner(context)
        number = _number(request.reservation_id)
        event = MoveReservation(
            self._engine.new_id(),
            owner,
            number,
            (request.old_window.begin_s, request.old_window.end_s),
            (request.new_window.begin_s, request.new_window.end_s),
        )
        return self._answer(await self._admission.ask(context, event, _reservation))

    async def Watch(  # noqa: N802  # gRPC's name
        self,
        request: reservation_pb2.WatchReservationsRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> AsyncIterator[reservation_pb2.Reservation]:
        """Sends the present state of the caller's reservations, and then every change."""
        owner = await self._admission.reserver(context)
        queue = self._reservations.watch(owner)
        try:
            await context.send_initial_metadata(())
            # What changes meanwhile is in the queue.
            present = await self._admission.look(context, lambda _: self._reservations.of(owner))
            for reservation in present:
                yield _message(reservation)
            while (changed := await queue.get()) is not None:
                yield _message(changed)
            await self._admission.check_stopping(context)
            self._admission.count("slow_watchers")
            reason = f"{UPDATES_MAX} changes were not read in time; watch again"
            await refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, reason)
        finally:
            self._reservations.unwatch(owner, queue)

    async def PutInput(  # noqa: N802  # gRPC's name
        self, request: job_pb2.PutInputRequest, context: Context
    ) -> job_pb2.PutInputResponse:
        """Takes the next bytes of a file."""
        owner = await self._owner(context)
        return await taken(context, self._admission, self._inputs, owner, request)

    async def Results(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.ReservationResultsRequest, context: Context
    ) -> results_pb2.ResultList:
        """Says which files the program of a reservation has left."""
        found = await self._run_of(context, request.reservation_id)
        assert self._results is not None
        ended = not found.is_open
        return write_results(await self._results.of_run(found.run_key, ended=ended))

    async def FetchResult(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.FetchReservationResultRequest, context: Context
    ) -> AsyncIterator[results_pb2.ResultChunk]:
        """Sends one of them."""
        found = await self._run_of(context, request.reservation_id)
        assert self._results is not None
        pieces = self._results.read_run(found.run_key, request.name, request.offset_bytes)
        async for chunk in sent(context, pieces):
            yield chunk

    async def _run_of(self, context: Context, reservation_id: str) -> Reservation:
        owner = await self._admission.reserver(context)
        book = self._engine.state.memory.reservations
        found = await self._admission.look(
            context, lambda _: book.get(_number(reservation_id), owner)
        )
        if found is None or not found.run_key:
            self._admission.count("not_found", context, repr(reservation_id))
            text = f"no program was launched in a reservation {reservation_id!r} of {owner}"
            await refuse(context, grpc.StatusCode.NOT_FOUND, text, field="reservation_id")
        return found

    async def _check(self, context: Context, owner: str, wanted: Request, payload: bytes) -> None:
        try:
            check("", wanted, payload)
        except LrmsRefusedError as error:
            await self._admission.invalid(context, WireError("job.program", error.reason))
        await look_at_inputs(context, self._admission, self._inputs, owner, payload, field="job")

    async def _owner(self, context: Context) -> str:
        owner = await self._admission.reserver(context)
        await self._admission.check_journal(context)
        return owner

    def _answer(self, reservation: Reservation) -> reservation_pb2.Reservation:
        self._admission.audit(
            "reservation",
            reservation.owner,
            reservation=str(reservation.number),
            state=reservation.state.name.lower(),
        )
        return _message(reservation)


def _reservation(reply: ReplyReservation) -> Reservation:
    return reply.reservation


def _programs(reply: ReplyGroup) -> tuple[Reservation | str, ...]:
    return reply.programs


def _number(reservation_id: str) -> int:
    digits = reservation_id.isascii() and reservation_id.isdigit() and len(reservation_id) < 19
    return int(reservation_id) if digits else 0


def _message(reservation: Reservation) -> reservation_pb2.Reservation:
    state: Any = reservation_pb2.ReservationState.Value(
        f"RESERVATION_STATE_{reservation.state.name}"
    )
    message = reservation_pb2.Reservation(
        reservation_id=str(reservation.number),
        resource_id=reservation.resource_id,
        window=reservation_pb2.Window(begin_s=reservation.begin, end_s=reservation.end),
        processors=reservation.processors,
        state=state,
        cost=reservation.cost,
        revision=reservation.revision,
    )
    if not math.isnan(reservation.start_time):
        message.start_time_s = reservation.start_time
    if not math.isnan(reservation.end_time):
        message.end_time_s = reservation.end_time
    if reservation.outcome is not None:
        write_end(message, reservation.outcome, reservation.exit)
    message.reason = reservation.reason
    return message
