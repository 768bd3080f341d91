"""Reservations over gRPC: kept in the journal before anybody is told, launched when they begin."""

import asyncio
import dataclasses
import json
import math
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final

import grpc

from grms.kit.refusals import Context, refuse
from grms.site.core.reservations import (
    WINDOW_MAX_S,
    NoSuchReservation,
    Reservation,
    ReservationBook,
    ReservationLimit,
    ReservationRefused,
    ReservationState,
    Resource,
)
from grms.site.engine.engine import Engine
from grms.site.engine.group_commit import Note
from grms.site.engine.journal import Journal
from grms.site.facts.wire import WireError, read_request
from grms.site.sockets.door import Door
from grms.v1 import request_pb2, reservation_pb2, reservation_pb2_grpc

COUNT_NOTE: Final = "reservations"
"""Under which the journal keeps the last reservation's number."""

KEY_CHARACTERS_MAX: Final = 128
UPDATES_MAX: Final = 1000

_NAN_FIELDS = ("launch_time", "start_time", "end_time", "booked_end")


def to_text(reservation: Reservation) -> str:
    """Returns a reservation as the journal keeps it."""
    values = dataclasses.asdict(reservation) | {"state": reservation.state.value}
    for name in _NAN_FIELDS:
        if math.isnan(values[name]):
            values[name] = None
    return json.dumps(values)


def from_text(text: str) -> Reservation:
    """Returns a reservation that the journal has kept."""
    values: dict[str, Any] = json.loads(text)
    for name in _NAN_FIELDS:
        if values.get(name) is None:  # or it was kept before there was such a field
            values[name] = math.nan
    return Reservation(**{**values, "state": ReservationState(values["state"])})


class Reservations:
    """The site's reservations with what they need: the journal, the clock, and watchers.

    Attributes:
        book: all reservations.

    Args:
        engine: whose clock and journal they share.
        journal: of the site, to be read once.
        resources: what can be reserved.
    """

    def __init__(self, engine: Engine, journal: Journal, resources: Iterable[Resource]) -> None:
        self._engine = engine
        last = int(journal.note(COUNT_NOTE) or 0)
        kept = (journal.note(f"reservation/{number}") for number in range(1, last + 1))
        self.book = ReservationBook(resources, [from_text(text) for text in kept if text])
        self._last = last
        self._changed = asyncio.Event()
        self._watchers: dict[str, set[asyncio.Queue[Reservation | None]]] = {}

    async def run(self) -> None:
        """Lets time do its part until it is cancelled."""
        engine = self._engine
        while True:
            while due := self.book.due(engine.clock.now()):
                for reservation in due:
                    self.keep(reservation)
            self._changed.clear()
            moment = self.book.next_time
            async with asyncio.TaskGroup() as group:
                waits: list[asyncio.Task[Any]] = [
                    group.create_task(self._changed.wait(), name="reservations changed")
                ]
                if moment < math.inf:
                    sleep: Any = engine.clock.sleep_until(moment)
                    waits.append(group.create_task(sleep, name="reservations due"))
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for wait in waits:
                    wait.cancel()

    @property
    def now(self) -> float:
        """The site's clock, seconds."""
        return self._engine.clock.now()

    def keep(self, reservation: Reservation) -> None:
        """Takes a changed reservation into the book, and to watchers once it is durable."""
        if self.book.reservations.get(reservation.number) == reservation:
            return
        commit = self._engine.commit
        notes = [Note(f"reservation/{reservation.number}", to_text(reservation))]
        if reservation.number > self._last:
            self._last = reservation.number
            notes.append(Note(COUNT_NOTE, str(self._last)))
        self.book.keep(reservation)
        commit.append(notes)
        commit.after(lambda: self._tell(reservation))
        self._engine.flush()
        self._changed.set()

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
    """See `proto/grms/v1/reservation.proto`.

    Args:
        door: lets users and brokers in.
        reservations: of the site.
    """

    def __init__(self, door: Door, reservations: Reservations) -> None:
        self._door = door
        self._reservations = reservations

    async def Offer(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.ResourceOfferRequest, context: Context
    ) -> reservation_pb2.ResourceOfferResponse:
        """Returns the resources that may be reserved, with their free time."""
        await self._door.reserver(context)
        try:
            begin, end = _window(request.window)
        except WireError as error:
            await self._door.invalid(context, error)
        book = self._reservations.book
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
        return answer

    async def Book(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.BookRequest, context: Context
    ) -> reservation_pb2.Reservation:
        """Reserves a resource."""
        owner = await self._door.reserver(context)
        await self._door.check_journal(context)
        try:
            key = _key(request.idempotency_key)
            window = _window(request.window)
            processors = _processors(request.processors)
        except WireError as error:
            await self._door.invalid(context, error)
        book, now = self._reservations.book, self._reservations.now
        return await self._kept(
            context,
            lambda: book.book(
                owner, key, request.resource_id, window, processors=processors, now=now
            ),
        )

    async def Release(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.ReleaseRequest, context: Context
    ) -> reservation_pb2.Reservation:
        """Gives a reservation back."""
        owner = await self._door.reserver(context)
        await self._door.check_journal(context)
        number, book = _number(request.reservation_id), self._reservations.book
        now = self._reservations.now
        return await self._kept(context, lambda: book.release(number, owner, now))

    async def Launch(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.LaunchRequest, context: Context
    ) -> reservation_pb2.Reservation:
        """Runs a job in a reservation."""
        owner = await self._door.reserver(context)
        await self._door.check_journal(context)
        try:
            key = _key(request.idempotency_key)
            wanted, _ = read_request(request.job, "job")
        except WireError as error:
            await self._door.invalid(context, error)
        run_time = wanted.requested_time
        if request.job.HasField("simulated"):
            run_time = request.job.simulated.run_time_s
        number, book = _number(request.reservation_id), self._reservations.book
        now = self._reservations.now
        return await self._kept(
            context,
            lambda: book.launch(
                number,
                owner,
                key,
                processors=wanted.processors,
                requested_time=wanted.requested_time,
                run_time=run_time,
                now=now,
                to_the_end=request.to_the_end,
            ),
        )

    async def Extend(  # noqa: N802  # gRPC's name
        self, request: reservation_pb2.ExtendRequest, context: Context
    ) -> reservation_pb2.Reservation:
        """Moves the end of a reservation."""
        owner = await self._door.reserver(context)
        await self._door.check_journal(context)
        end = request.end_s
        if not math.isfinite(end):
            await self._door.invalid(
                context, WireError("end_s", f"end_s is {end}; it must be a finite number")
            )
        number, book = _number(request.reservation_id), self._reservations.book
        now = self._reservations.now
        return await self._kept(context, lambda: book.extend(number, owner, end, now))

    async def Watch(  # noqa: N802  # gRPC's name
        self,
        request: reservation_pb2.WatchReservationsRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> AsyncIterator[reservation_pb2.Reservation]:
        """Sends the present state of the caller's reservations, and then every change."""
        owner = await self._door.reserver(context)
        queue = self._reservations.watch(owner)
        try:
            await context.send_initial_metadata(())
            await self._durable(context)
            for reservation in list(self._reservations.book.reservations.values()):
                if reservation.owner == owner:
                    yield _message(reservation)
            while (changed := await queue.get()) is not None:
                yield _message(changed)
            await self._door.check_stopping(context)
            self._door.count("slow_watchers")
            reason = f"{UPDATES_MAX} changes were not read in time; watch again"
            await refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, reason)
        finally:
            self._reservations.unwatch(owner, queue)

    async def _kept(
        self, context: Context, change: Callable[[], Reservation]
    ) -> reservation_pb2.Reservation:
        try:
            reservation = change()
        except NoSuchReservation as error:
            self._door.count("not_found", context, str(error))
            await refuse(context, grpc.StatusCode.NOT_FOUND, str(error), field=error.field)
        except ReservationLimit as error:
            self._door.count("exhausted", context, str(error))
            await refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        except ReservationRefused as error:
            self._door.count("precondition", context, str(error))
            await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, str(error))
        self._reservations.keep(reservation)
        await self._durable(context)
        self._door.audit(
            "reservation",
            reservation.owner,
            reservation=str(reservation.number),
            state=reservation.state.name.lower(),
        )
        return _message(reservation)

    async def _durable(self, context: Context) -> None:
        while not await self._door.engine.durable():
            await self._door.check_journal(context)


def _key(key: str) -> str:
    if not 1 <= len(key) <= KEY_CHARACTERS_MAX:
        text = f"idempotency_key has {len(key)} characters; 1 to {KEY_CHARACTERS_MAX} are possible"
        raise WireError("idempotency_key", text)
    return key


def _processors(processors: int) -> int:
    if processors < 1:
        raise WireError("processors", f"processors is {processors}; it must be at least 1")
    return processors


def _window(window: reservation_pb2.Window) -> tuple[float, float]:
    begin, end = window.begin_s, window.end_s
    if not (math.isfinite(begin) and math.isfinite(end) and 0 < end - begin <= WINDOW_MAX_S):
        raise WireError(
            "window", f"window is {begin} to {end}; its end must be after its beginning"
        )
    return begin, end


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
        outcome: Any = request_pb2.Outcome.Value(f"OUTCOME_{reservation.outcome.name}")
        message.outcome = outcome
    return message
