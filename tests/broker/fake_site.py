"""A site's `ReservationService` over real gRPC, in memory, with faults to order."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
from grpc import aio

from grms.daemon.rpc.requests import refuse
from grms.v1 import job_pb2, request_pb2, reservation_pb2, reservation_pb2_grpc, results_pb2

STATES = reservation_pb2.ReservationState


class FakeSite(reservation_pb2_grpc.ReservationServiceServicer):
    """Reserves one unit of each resource at a time; the test ends the runs.

    Attributes:
        reservations: by id.
        launches: the jobs that were launched, by id of the reservation.
        to_the_end: whether they may run to the end of the reservation, likewise.
        calls: names of the calls that came.
        lose_answers: so many answers get lost, after the call took effect.
        refuse: what is refused: "book", "launch" or "extend".
        refusal: code and field with which launches are refused; `None` if they are not.
        busy: resources that cannot be booked.
        offers: what it says that it has.
        wanted: what was said, with each question for offers, of work that waits.
        given: contents that were handed over, by SHA-256.
        left: files that programs have left, by reservation and name.
    """

    def __init__(self) -> None:
        self.reservations: dict[str, reservation_pb2.Reservation] = {}
        self.launches: dict[str, Any] = {}
        self.to_the_end: dict[str, bool] = {}
        self.calls: list[str] = []
        self.lose_answers = 0
        self.refuse = ""
        self.refusal: tuple[grpc.StatusCode, str] | None = None
        self.busy: set[str] = set()
        self.offers = reservation_pb2.ResourceOfferResponse()
        self.wanted: list[bool] = []
        self.given: dict[bytes, bytes] = {}
        self.left: dict[tuple[str, str], bytes] = {}
        self._keys: dict[str, str] = {}
        self._queues: set[asyncio.Queue[reservation_pb2.Reservation]] = set()
        self._server: aio.Server | None = None

    async def start(self, path: Path) -> None:
        """Serves on a Unix socket."""
        self._server = aio.server()
        reservation_pb2_grpc.add_ReservationServiceServicer_to_server(self, self._server)
        self._server.add_insecure_port(f"unix:{path}")
        await self._server.start()

    async def stop(self) -> None:
        """Vanishes; what it has stays."""
        assert self._server is not None
        await self._server.stop(0)

    @property
    def watched(self) -> bool:
        """Whether somebody hears what changes."""
        return bool(self._queues)

    def change(self, reservation_id: str, **values: Any) -> None:
        """Changes a reservation and tells those who watch."""
        message = self.reservations[reservation_id]
        for name, value in values.items():
            setattr(message, name, value)
        message.revision += 1
        told = reservation_pb2.Reservation()
        told.CopyFrom(message)
        for queue in self._queues:
            queue.put_nowait(told)

    def finish(self, reservation_id: str, outcome: int = request_pb2.OUTCOME_COMPLETED) -> None:
        """Lets a run end."""
        self.change(
            reservation_id, state=STATES.RESERVATION_STATE_ENDED, end_time_s=9.0, outcome=outcome
        )

    async def _answer(self, context: Any, message: Any) -> Any:
        if self.lose_answers:
            self.lose_answers -= 1
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the link broke")
        return message

    async def _known(self, reservation_id: str, context: Any) -> reservation_pb2.Reservation:
        if reservation_id not in self.reservations:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such reservation")
        return self.reservations[reservation_id]

    async def PutInput(self, request: job_pb2.PutInputRequest, context: Any) -> Any:  # noqa: N802, ARG002  # gRPC's
        """Takes the next bytes of a file."""
        self.calls.append("put")
        held = self.given.setdefault(request.file.sha256, b"")
        if request.offset_bytes == len(held):
            self.given[request.file.sha256] = held = held + request.content
        return job_pb2.PutInputResponse(held_bytes=len(held))

    async def Results(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.ReservationResultsRequest, context: Any
    ) -> Any:
        """Says what a program has left."""
        message = await self._known(request.reservation_id, context)
        found = results_pb2.ResultList(complete=message.state == STATES.RESERVATION_STATE_ENDED)
        for (reservation_id, name), content in self.left.items():
            if reservation_id == request.reservation_id:
                digest = hashlib.sha256(content).digest()
                found.files.add(name=name, size_bytes=len(content), sha256=digest)
        return found

    async def FetchResult(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.FetchReservationResultRequest, context: Any
    ) -> AsyncIterator[results_pb2.ResultChunk]:
        """Sends a file, a byte at a time."""
        content = self.left.get((request.reservation_id, request.name))
        if content is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"there is no {request.name}")
        assert content is not None
        for byte in content[request.offset_bytes :]:
            yield results_pb2.ResultChunk(content=bytes([byte]))

    async def Offer(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002  # gRPC's
        """Offers what the test has put there."""
        self.calls.append("offer")
        self.wanted.append(request.wanted)
        return self.offers

    async def Book(self, request: reservation_pb2.BookRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        """Reserves."""
        self.calls.append("book")
        known = self._keys.get(request.idempotency_key)
        if known is None:
            if self.refuse == "book" or request.resource_id in self.busy:
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not free")
            known = str(len(self.reservations) + 1)
            self._keys[request.idempotency_key] = known
            self.reservations[known] = reservation_pb2.Reservation(
                reservation_id=known,
                resource_id=request.resource_id,
                window=request.window,
                processors=request.processors,
                state=STATES.RESERVATION_STATE_BOOKED,
                revision=1,
            )
        return await self._answer(context, self.reservations[known])

    async def Launch(self, request: reservation_pb2.LaunchRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        """Runs."""
        self.calls.append("launch")
        message = await self._known(request.reservation_id, context)
        if self.refusal is not None:
            code, field = self.refusal
            await refuse(context, code, "the site says so", field=field)
        if self.refuse == "launch":
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "too long")
        if request.reservation_id not in self.launches:
            self.launches[request.reservation_id] = request.job
            self.to_the_end[request.reservation_id] = request.to_the_end
            self.change(
                request.reservation_id, state=STATES.RESERVATION_STATE_RUNNING, start_time_s=5.0
            )
        return await self._answer(context, message)

    async def LaunchGroup(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.LaunchGroupRequest, context: Any
    ) -> Any:
        """Has the programs wait, but for those whose script is refused; nothing of a group begins by itself."""
        self.calls.append("group")
        if self.refusal is not None:
            code, field = self.refusal
            await refuse(context, code, "the site says so", field=field)
        if request.resource_id in self.busy:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not free")
        answer = reservation_pb2.LaunchGroupResponse()
        for each in request.programs:
            if "refused" in each.job.program.script:
                answer.programs.add(refused="no such interpreter")
                continue
            known = self._keys.setdefault(each.idempotency_key, str(len(self.reservations) + 1))
            if known not in self.reservations:
                self.launches[known] = each.job
                self.reservations[known] = reservation_pb2.Reservation(
                    reservation_id=known,
                    resource_id=request.resource_id,
                    window=request.window,
                    processors=each.job.processors,
                    state=STATES.RESERVATION_STATE_LAUNCHED,
                    revision=1,
                )
            answer.programs.add(reservation=self.reservations[known])
        return await self._answer(context, answer)

    async def Move(self, request: reservation_pb2.MoveRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        """Moves a window, but for what is busy."""
        self.calls.append("move")
        message = await self._known(request.reservation_id, context)
        if message.window != request.new_window:
            if self.refuse == "move" or message.resource_id in self.busy:
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not free")
            if message.window != request.old_window:
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "it is elsewhere")
            message.window.CopyFrom(request.new_window)
        return await self._answer(context, message)

    async def Release(self, request: reservation_pb2.ReleaseRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        """Gives back."""
        self.calls.append("release")
        message = await self._known(request.reservation_id, context)
        if message.state != STATES.RESERVATION_STATE_ENDED:
            self.change(request.reservation_id, state=STATES.RESERVATION_STATE_RELEASED)
        return await self._answer(context, message)

    async def Watch(  # noqa: N802  # gRPC's name
        self,
        request: reservation_pb2.WatchReservationsRequest,  # noqa: ARG002  # gRPC hands it over
        context: Any,
    ) -> AsyncIterator[reservation_pb2.Reservation]:
        """Tells."""
        queue: asyncio.Queue[reservation_pb2.Reservation] = asyncio.Queue()
        self._queues.add(queue)
        try:
            await context.send_initial_metadata(())
            for message in list(self.reservations.values()):
                yield message
            while True:
                yield await queue.get()
        finally:
            self._queues.discard(queue)
