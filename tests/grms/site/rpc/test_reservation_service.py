"""Reservations over a real socket, kept over restarts."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc import aio

from grms.daemon.clock import VirtualClock
from grms.site.gateway.user_listener import User
from grms.site.rpc.reservation_service import Reservations
from grms.site.runtime.event_loop import Engine
from grms.v1 import request_pb2, reservation_pb2, reservation_pb2_grpc
from tests.grms.site.daemons import document, running
from tests.grms.site.rpc.test_job_service import details
from tests.waiting import until

RESOURCES = [
    {"resource_id": "cpu-1", "labels": {"kind": "cpu"}, "processors": 2, "cost_per_hour": 36.0},
    {"resource_id": "gpu-1", "labels": {"kind": "gpu"}, "speed": 4.0},
]


@asynccontextmanager
async def reserving(folder: Path) -> AsyncIterator[Any]:
    """Yields the stub of a daemon with two resources."""
    configuration = document(folder, resources=RESOURCES)
    async with (
        running(configuration, folder) as site,
        aio.insecure_channel(site.users_address) as channel,
    ):
        yield reservation_pb2_grpc.ReservationServiceStub(channel)


def window(begin: float, end: float) -> reservation_pb2.Window:
    """Returns a window, seconds from now."""
    now = time.time()
    return reservation_pb2.Window(begin_s=now + begin, end_s=now + end)


def booking(key: str, span: reservation_pb2.Window, **more: Any) -> reservation_pb2.BookRequest:
    """Returns a wish for one processor of the first resource."""
    wish: dict[str, Any] = {"resource_id": "cpu-1", "processors": 1, **more}
    return reservation_pb2.BookRequest(idempotency_key=key, window=span, **wish)


def launching(reservation_id: str, run_time_s: float) -> reservation_pb2.LaunchRequest:
    """Returns a small job for a reservation."""
    request = reservation_pb2.LaunchRequest(idempotency_key="l", reservation_id=reservation_id)
    request.job.processors, request.job.requested_time_s = 1, 1000.0
    request.job.simulated.run_time_s = run_time_s
    return request


async def test_a_reservation_from_the_offer_to_the_end_of_its_job(tmp_path: Path) -> None:
    """What is offered can be booked, what is booked is offered no more, and the job runs."""
    async with reserving(tmp_path) as stub:
        span = window(0.3, 60)
        answer = await stub.Offer(
            reservation_pb2.ResourceOfferRequest(window=span, labels={"kind": "cpu"})
        )
        (offer,) = answer.offers
        assert [free.processors for free in offer.free] == [2]
        booked = await stub.Book(booking("k", span))
        assert booked.cost == pytest.approx(36.0 * 59.7 / 3600)
        assert await stub.Book(booking("k", span)) == booked
        answer = await stub.Offer(reservation_pb2.ResourceOfferRequest(window=span))
        assert [[f.processors for f in offer.free] for offer in answer.offers] == [[1], [1]]
        watch = stub.Watch(reservation_pb2.WatchReservationsRequest())
        await watch.read()
        await stub.Launch(launching(booked.reservation_id, 0.2))
        changes = [await watch.read() for _ in range(3)]
        assert [(change.state, change.outcome) for change in changes] == [
            (reservation_pb2.RESERVATION_STATE_LAUNCHED, request_pb2.OUTCOME_UNSPECIFIED),
            (reservation_pb2.RESERVATION_STATE_RUNNING, request_pb2.OUTCOME_UNSPECIFIED),
            (reservation_pb2.RESERVATION_STATE_ENDED, request_pb2.OUTCOME_NOT_RUN),
        ]
        # Its owner may not have heard that it was booked, and asks once more.
        assert await stub.Book(booking("k", span)) == changes[-1]
        await stub.Book(booking("again", span))
        await stub.Launch(launching("2", 40.0))
        released = await stub.Release(reservation_pb2.ReleaseRequest(reservation_id="2"))
        assert released.outcome == request_pb2.OUTCOME_CANCELLED
        watch.cancel()


async def test_reservations_outlive_the_daemon(tmp_path: Path) -> None:
    """Booked, launched or over: each is found again, its key as well, and a job's end comes."""
    span = window(0.0, 500.0)
    async with reserving(tmp_path) as stub:
        first = await stub.Book(booking("a", span))
        second = await stub.Book(booking("b", span))
        await stub.Launch(launching(second.reservation_id, 0.05))
    await asyncio.sleep(0.1)
    async with reserving(tmp_path) as stub:
        assert await stub.Book(booking("a", span)) == first
        with pytest.raises(aio.AioRpcError) as error:
            await stub.Book(booking("c", span, processors=2))
        assert error.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        watch = stub.Watch(reservation_pb2.WatchReservationsRequest())
        found: dict[str, int] = {}
        while found.get("2") != reservation_pb2.RESERVATION_STATE_ENDED:
            entry = await watch.read()
            found[entry.reservation_id] = entry.state
        watch.cancel()
        released = await stub.Release(
            reservation_pb2.ReleaseRequest(reservation_id=first.reservation_id)
        )
        assert released.state == reservation_pb2.RESERVATION_STATE_RELEASED
        assert (await stub.Book(booking("c", window(0, 500), processors=2))).processors == 2


async def test_what_cannot_be_had_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with its status; another's reservation does not exist."""
    async with reserving(tmp_path) as stub:
        span = window(0, 100)
        booked = await stub.Book(booking("k", span))
        bad = reservation_pb2.Window(begin_s=5, end_s=5)
        for call, message, code in (
            (stub.Book, booking("", span), "INVALID_ARGUMENT"),
            (stub.Book, booking("x", bad), "INVALID_ARGUMENT"),
            (stub.Book, booking("x", span, processors=0), "INVALID_ARGUMENT"),
            (stub.Book, booking("x", span, resource_id="none"), "NOT_FOUND"),
            (stub.Book, booking("x", span, processors=2), "FAILED_PRECONDITION"),
            (stub.Launch, launching("1", 500.0), "FAILED_PRECONDITION"),
            (stub.Launch, launching("9", 1.0), "NOT_FOUND"),
            (stub.Release, reservation_pb2.ReleaseRequest(reservation_id="x"), "NOT_FOUND"),
            (stub.Offer, reservation_pb2.ResourceOfferRequest(), "INVALID_ARGUMENT"),
        ):
            with pytest.raises(aio.AioRpcError) as error:
                await call(message)
            assert error.value.code().name == code
        monkeypatch.setattr(
            "grms.site.gateway.user_listener.UserSocket.user", lambda *_: User(54321, "eve")
        )
        release = reservation_pb2.ReleaseRequest(reservation_id=booked.reservation_id)
        with pytest.raises(aio.AioRpcError) as error:
            await stub.Release(release)
        assert error.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_reservation_is_moved_and_that_is_kept(tmp_path: Path) -> None:
    """A job that takes longer goes on, also over a restart; what is not free is refused."""
    async with reserving(tmp_path) as stub:
        span = window(-1, 60)
        gpu = {"resource_id": "gpu-1"}
        booked = await stub.Book(booking("k", span, **gpu))
        request = launching(booked.reservation_id, 4 * 100.0)
        request.job.requested_time_s = 4 * 50.0
        request.to_the_end = True
        await stub.Launch(request)
        await stub.Book(booking("other", window(90, 95), **gpu))
        longer = reservation_pb2.MoveRequest(
            reservation_id=booked.reservation_id, old_window=span, new_window=span
        )
        longer.new_window.end_s += 20
        for _ in range(2):
            assert (await stub.Move(longer)).window == longer.new_window
        longer.old_window.CopyFrom(longer.new_window)
        for end, code in (
            (span.end_s + 33, grpc.StatusCode.FAILED_PRECONDITION),
            (float("inf"), grpc.StatusCode.INVALID_ARGUMENT),
        ):
            longer.new_window.end_s = end
            with pytest.raises(aio.AioRpcError) as refused:
                await stub.Move(longer)
            assert refused.value.code() is code
    async with reserving(tmp_path) as stub:
        assert (await stub.Book(booking("k", span, **gpu))).window.end_s == span.end_s + 20


async def test_a_refusal_says_which_field(tmp_path: Path) -> None:
    """Programs find the name of what is wrong beside the text."""
    async with reserving(tmp_path) as stub:
        span = window(0, 100)
        for call, message, field in (
            (stub.Book, booking("x", span, resource_id="none"), "resource_id"),
            (stub.Book, booking("x", window(5, 5)), "window"),
            (stub.Book, booking("", span), "idempotency_key"),
            (
                stub.Release,
                reservation_pb2.ReleaseRequest(reservation_id="7"),
                "reservation_id",
            ),
        ):
            with pytest.raises(aio.AioRpcError) as error:
                await call(message)
            bad = error_details_pb2.BadRequest()
            assert details(error.value).details[0].Unpack(bad)
            assert [entry.field for entry in bad.field_violations] == [field]


class SlowEngine:
    """An engine that handles what it is told when its write is over.

    Attributes:
        told: how often it was told that reservations are due.
    """

    def __init__(self, next_time: float) -> None:
        self.told = 0
        self.clock = VirtualClock(5.0)
        self.state: Any = SimpleNamespace(
            memory=SimpleNamespace(reservations=SimpleNamespace(next_time=next_time))
        )
        self.changed: Any = None

    def on_reservation(self, tell: Callable[[Any], None]) -> None:
        """Is told who hears of changes."""
        self.changed = tell

    def new_id(self) -> int:
        """Returns an id."""
        return 1

    def tell(self, _: object) -> None:
        """Takes an event."""
        self.told += 1


async def test_what_is_due_is_told_once_and_then_when_the_next_is() -> None:
    """However long the write before it takes: the loop goes on meanwhile."""
    engine = SlowEngine(next_time=4.0)
    book = engine.state.memory.reservations
    task = asyncio.ensure_future(Reservations(cast("Engine", engine)).run())
    for _ in range(20):
        await asyncio.sleep(0)
    assert engine.told == 1
    # The write is over: it was handled, and the next is due later.
    book.next_time = 7.0
    engine.changed(SimpleNamespace(owner="ann"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert engine.told == 1
    engine.clock.advance(6.5)
    # A new one comes before it.
    book.next_time = 6.0
    engine.changed(SimpleNamespace(owner="ann"))
    await until(lambda: engine.told == 2)
    book.next_time = 8.0
    engine.changed(SimpleNamespace(owner="ann"))
    for _ in range(20):
        await asyncio.sleep(0)
    engine.clock.advance(8.0)
    await until(lambda: engine.told == 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
