"""A site's daemon, reached through its `ReservationService`."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, Literal, TypeVar

import grpc
from grpc import aio

from broker.executor.base import (
    GivenFile,
    GroupWish,
    Order,
    ProgramRefused,
    Reservation,
    ReservationRefused,
    ReservationState,
    ReservationUnknown,
    SiteUnavailable,
    Window,
    Wish,
)
from broker.executor.programs import write_job
from broker.model.resources import Resource
from broker.scheduler.offers import ResourceOffer
from grms.client import Results
from grms.client.answers import read_results
from grms.client.calls import error_details
from grms.client.uploading import FileChangedError, upload
from grms.util.outcomes import Outcome
from grms.v1 import job_pb2, request_pb2, reservation_pb2, reservation_pb2_grpc

CALL_S: Final = 10.0
"""Timeout of a call, real seconds."""

HOUR_S: Final = 3600.0
"""Sites give prices per hour, the broker uses seconds."""

_REFUSALS: Final = frozenset(
    {
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.OUT_OF_RANGE,
    }
)
"""Final answers of a site, which repetition would not change."""

_NO_GROUPS: Final = frozenset({grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNIMPLEMENTED})
"""The same of a group: there are too many reservations, or the site is of a version without groups."""

_STATES: Final[dict[int, ReservationState]] = {
    reservation_pb2.ReservationState.Value(f"RESERVATION_STATE_{state.name}"): state
    for state in ReservationState
    if state is not ReservationState.OTHER
}
_OUTCOMES: Final[dict[int, Outcome | None]] = {request_pb2.OUTCOME_UNSPECIFIED: None} | {
    request_pb2.Outcome.Value(f"OUTCOME_{outcome.name}"): outcome for outcome in Outcome
}
"""Any other end, of later versions, is a failure: the work is not known to be done."""

_T = TypeVar("_T")


class RemoteSite:
    """A site's daemon, over gRPC; `call_s` is the timeout of a call in real seconds.

    `has_work` says whether something waits for resources: a site asks for pilots then.
    """

    def __init__(
        self,
        channel: aio.Channel,
        *,
        call_s: float = CALL_S,
        has_work: Callable[[], bool] = lambda: False,
    ) -> None:
        self._call_s = call_s
        self._has_work = has_work
        self._stub: Any
        self.speak_over(channel)

    def speak_over(self, channel: aio.Channel) -> None:
        """Makes its calls over this channel from now on."""
        self._stub = reservation_pb2_grpc.ReservationServiceStub(channel)

    async def book(self, wish: Wish) -> Reservation:
        """Reserves, or returns the reservation of the key."""
        request = reservation_pb2.BookRequest(
            idempotency_key=wish.key,
            resource_id=wish.resource,
            window=reservation_pb2.Window(begin_s=wish.begin, end_s=wish.end),
            processors=wish.units,
        )
        try:
            return _read(await self._ask(self._stub.Book(request, timeout=self._call_s)))
        except ReservationRefused as error:
            raise ReservationRefused(str(error), taken=True) from error

    async def restore(self, reservation_id: str, wish: Wish) -> None:
        """Does nothing: a daemon has its own journal."""

    async def launch(self, reservation_id: str, order: Order) -> Reservation:
        """Launches a job in a reservation."""
        request = reservation_pb2.LaunchRequest(
            idempotency_key=order.key, reservation_id=reservation_id
        )
        if order.program is None:
            # Sites count a job's time on the reference resource, as the broker counts work.
            request.job.processors = order.units
            request.job.requested_time_s = order.work
            request.job.simulated.run_time_s = order.work
        else:
            write_job(request.job, order)
            for file, given in zip(request.job.program.inputs, order.inputs, strict=True):
                await self._hand_over(file, given)
            request.estimate_s = order.work
        request.to_the_end = True
        try:
            return _read(await self._stub.Launch(request, timeout=self._call_s))
        except aio.AioRpcError as error:
            field, _ = error_details(error)
            reason = error.details() or error.code().name
            if error.code() is grpc.StatusCode.INVALID_ARGUMENT and field.startswith("job"):
                raise ProgramRefused(f"its site refuses it: {reason}") from error
            if field == "inputs":  # it was here, and is wanted once more
                raise SiteUnavailable(reason) from error
            if error.code() is grpc.StatusCode.NOT_FOUND:
                raise ReservationUnknown(reason) from error
            if error.code() in _REFUSALS:
                raise ReservationRefused(reason) from error
            raise SiteUnavailable(f"{reason} ({error.code().name})") from error
        except asyncio.CancelledError:
            _check_cancelled()
            raise

    async def launch_group(self, wish: GroupWish) -> tuple[Reservation | ProgramRefused, ...]:
        """Launches programs that share units."""
        request = reservation_pb2.LaunchGroupRequest(
            resource_id=wish.resource,
            window=reservation_pb2.Window(begin_s=wish.begin, end_s=wish.end),
            processors=wish.units,
        )
        given = [await self._group(request, order) for order in wish.orders]
        try:
            answer = await self._stub.LaunchGroup(request, timeout=self._call_s)
        except aio.AioRpcError as error:
            field, _ = error_details(error)
            reason = error.details() or error.code().name
            if field != "inputs" and error.code() in _REFUSALS | _NO_GROUPS:
                raise ReservationRefused(reason, taken=True) from error
            raise SiteUnavailable(f"{reason} ({error.code().name})") from error
        except asyncio.CancelledError:
            _check_cancelled()
            raise
        told = iter(answer.programs)
        return tuple(problem or _read_answer(next(told)) for problem in given)

    async def _group(
        self, request: reservation_pb2.LaunchGroupRequest, order: Order
    ) -> ProgramRefused | None:
        # Writes a program into the request, its files handed over; returns why that cannot be.
        message = reservation_pb2.GroupedProgram(idempotency_key=order.key, estimate_s=order.work)
        write_job(message.job, order)
        try:
            for file, given in zip(message.job.program.inputs, order.inputs, strict=True):
                await self._hand_over(file, given)
        except ProgramRefused as error:
            return error
        request.programs.append(message)
        return None

    async def _hand_over(self, file: request_pb2.InputFile, given: GivenFile) -> None:
        async def put(request: job_pb2.PutInputRequest) -> job_pb2.PutInputResponse:
            answer: job_pb2.PutInputResponse = await self._ask(
                self._stub.PutInput(request, timeout=self._call_s)
            )
            return answer

        try:
            await upload(put, file, given.path)
        except (FileChangedError, OSError) as error:
            raise ProgramRefused(f"a file that it is given cannot be read: {error}") from error

    async def files(self, reservation_id: str, job: str) -> Results:  # noqa: ARG002  # the port's
        """Returns what a program has left."""
        request = reservation_pb2.ReservationResultsRequest(reservation_id=reservation_id)
        found = await self._ask(self._stub.Results(request, timeout=self._call_s))
        return read_results(found)

    async def read(
        self,
        reservation_id: str,
        job: str,  # noqa: ARG002  # the port's
        name: str,
        begin: int = 0,
    ) -> AsyncIterator[bytes]:
        """Yields a file of a program."""
        request = reservation_pb2.FetchReservationResultRequest(
            reservation_id=reservation_id, name=name, offset_bytes=begin
        )
        call = self._stub.FetchResult(request)
        try:
            while (chunk := await self._ask(call.read())) is not aio.EOF:
                yield chunk.content
        finally:
            call.cancel()

    async def move(self, reservation_id: str, old: Window, new: Window) -> Reservation:
        """Moves a reservation."""
        request = reservation_pb2.MoveRequest(
            reservation_id=reservation_id,
            old_window=reservation_pb2.Window(begin_s=old[0], end_s=old[1]),
            new_window=reservation_pb2.Window(begin_s=new[0], end_s=new[1]),
        )
        try:
            return _read(await self._ask(self._stub.Move(request, timeout=self._call_s)))
        except ReservationRefused as error:
            raise ReservationRefused(str(error), taken=True) from error

    async def release(self, reservation_id: str) -> Reservation | None:
        """Releases a reservation."""
        return await self._release(reservation_pb2.ReleaseRequest(reservation_id=reservation_id))

    async def withdraw(self, reservation_id: str) -> Reservation | None:
        """Releases a reservation unless its program has begun."""
        return await self._release(
            reservation_pb2.ReleaseRequest(reservation_id=reservation_id, unless_begun=True)
        )

    async def _release(self, request: reservation_pb2.ReleaseRequest) -> Reservation | None:
        try:
            return _read(await self._ask(self._stub.Release(request, timeout=self._call_s)))
        except ReservationRefused:
            return None

    async def offer(self, begin: float, end: float) -> tuple[ResourceOffer, ...]:
        """Returns what can be reserved."""
        request = reservation_pb2.ResourceOfferRequest(
            window=reservation_pb2.Window(begin_s=begin, end_s=end), wanted=self._has_work()
        )
        try:
            answer = await self._ask(self._stub.Offer(request, timeout=self._call_s))
            return tuple(_read_offer(each) for each in answer.offers)
        except ValueError as error:
            raise ReservationRefused(str(error)) from error

    async def watch(self) -> AsyncIterator[Reservation | None]:
        """Yields reservations as they change."""
        call = self._stub.Watch(reservation_pb2.WatchReservationsRequest())
        try:
            await call.initial_metadata()
            if (code := await _failed(call)) is not None:
                raise SiteUnavailable(code)
            yield None
            async for message in call:
                yield _read(message)
        except aio.AioRpcError as error:
            raise SiteUnavailable(f"{error.details()} ({error.code().name})") from error
        except asyncio.CancelledError:
            _check_cancelled()
            raise
        finally:
            call.cancel()
        raise SiteUnavailable("the site has ended the conversation")

    async def _ask(self, call: Awaitable[_T]) -> _T:
        try:
            return await call
        except aio.AioRpcError as error:
            if error.code() in _REFUSALS:
                raise ReservationRefused(error.details() or error.code().name) from error
            raise SiteUnavailable(f"{error.details()} ({error.code().name})") from error
        except asyncio.CancelledError:
            _check_cancelled()
            raise


def _check_cancelled() -> None:
    # A closed channel cancels its calls. To the waiting task that looks like its own cancellation, and
    # it would end silently.
    task = asyncio.current_task()
    if task is not None and not task.cancelling():
        raise SiteUnavailable("the connection was given up") from None


async def _failed(call: Any) -> str | None:
    # A refused call has metadata, too.
    if not call.done():
        return None
    code = await call.code()
    return None if code is grpc.StatusCode.OK else f"{await call.details()} ({code.name})"


def _read(message: reservation_pb2.Reservation) -> Reservation:
    return Reservation(
        message.reservation_id,
        _STATES.get(message.state, ReservationState.OTHER),
        _read_time(message, "start_time_s"),
        _read_time(message, "end_time_s"),
        _OUTCOMES.get(message.outcome, Outcome.FAILED),
        exit_code=message.exit_code if message.HasField("exit_code") else None,
        signal=message.signal if message.HasField("signal") else None,
        reason=message.reason,
    )


def _read_time(
    message: reservation_pb2.Reservation, field: Literal["start_time_s", "end_time_s"]
) -> float | None:
    # Seconds; what is no moment is not told.
    told: float = getattr(message, field)
    return told if message.HasField(field) and math.isfinite(told) else None


def _read_answer(message: reservation_pb2.GroupedAnswer) -> Reservation | ProgramRefused:
    if message.HasField("reservation"):
        return _read(message.reservation)
    return ProgramRefused(f"its site refuses it: {message.refused}")


def _read_offer(message: reservation_pb2.ResourceOffer) -> ResourceOffer:
    resource = message.resource
    kind = resource.labels.get("kind", "")
    return ResourceOffer(
        Resource(
            resource.resource_id,
            kind or "cpu",
            resource.speed,
            resource.cost_per_hour / HOUR_S,
            capacity=resource.processors,
        ),
        labels_kind=bool(kind),
        free=tuple(
            (each.window.begin_s, each.window.end_s, each.processors) for each in message.free
        ),
        groups=message.groups,
    )
