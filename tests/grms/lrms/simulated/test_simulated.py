"""The simulated batch system behind the port."""

import asyncio

import pytest

from grms.daemon.clock import VirtualClock
from grms.lrms.base import (
    Accepted,
    Ended,
    LrmsEnd,
    LrmsEvent,
    LrmsJob,
    LrmsPhase,
    LrmsRecord,
    LrmsRefusedError,
    Started,
)
from grms.lrms.simulated.immediate import ReplayableLrms
from grms.lrms.simulated.machine import SteppedMachine
from grms.lrms.simulated.simulated import SimulatedLrms
from grms.util.outcomes import Outcome
from lrms_sim.scheduling.disciplines import Fcfs
from tests.waiting import until


def simulated(processors: int = 4) -> tuple[SimulatedLrms, VirtualClock, list[LrmsEvent]]:
    """Returns an empty batch system, its clock, and what it tells."""
    clock = VirtualClock(0.0)
    lrms = SimulatedLrms(SteppedMachine(processors, Fcfs()), clock)
    told: list[LrmsEvent] = []
    lrms.listen(told.extend)
    return lrms, clock, told


def job(key: str, processors: int = 4) -> LrmsJob:
    """Returns a job of ten seconds."""
    return LrmsJob(key, processors, 10.0)


def cancelled(key: str, end_time: float, run_time: float) -> Ended:
    """Returns the end of a job that was cancelled."""
    return Ended(key, LrmsEnd(Outcome.CANCELLED, end_time, run_time))


def test_it_answers_at_once_and_knows_its_future() -> None:
    """What a replay needs is there."""
    lrms, clock, told = simulated()
    assert isinstance(lrms, ReplayableLrms)
    lrms.submit_now(job("a"))
    assert told == [Accepted("a")]
    lrms.tell_now()
    assert told[1:] == [Started("a", 0.0)]
    lrms.follow("a")
    assert lrms.first_end() == lrms.next_event_time == 10.0
    assert not lrms.starts_now(1, 5.0)
    clock.advance(10.0)
    assert lrms.starts_now(4, 5.0)
    lrms.tell_now()
    assert told[2:] == [Ended("a", LrmsEnd(Outcome.COMPLETED, 10.0, 10.0))]


async def test_it_tells_what_happens_when_it_happens() -> None:
    """While it runs, and without being asked."""
    lrms, clock, told = simulated()
    await lrms.open()
    following = asyncio.create_task(lrms.run())
    try:
        await lrms.submit(job("a"))
        await lrms.submit(job("b"))
        await until(lambda: len(told) == 3)
        assert told == [Accepted("a"), Accepted("b"), Started("a", 0.0)]
        clock.advance(10.0)
        await until(lambda: len(told) == 5)
        assert told[4] == Started("b", 10.0)
        clock.advance(12.0)
        assert await lrms.cancel("b")
        assert told[5:] == [cancelled("b", 12.0, 2.0)]
        assert not await lrms.cancel("b")
        assert not await lrms.cancel("nobody's")
    finally:
        following.cancel()
        await lrms.close()


async def test_a_held_job_waits_for_its_release() -> None:
    """It is no load, can be seen and ended, and is released once."""
    lrms, clock, told = simulated()
    for key in "ab":
        await lrms.submit(job(key), held=True)
        await lrms.submit(job(key))
    snapshot = await lrms.snapshot()
    assert snapshot.jobs == dict.fromkeys("ab", LrmsRecord(LrmsPhase.HELD))
    assert (snapshot.free, snapshot.waiting) == (4, 0)
    assert await lrms.look_up("a") == LrmsRecord(LrmsPhase.HELD)
    assert await lrms.cancel("b", only_waiting=True)
    clock.advance(3.0)
    await lrms.release("a")
    await lrms.release("a")
    lrms.tell_now()
    assert told == [Accepted("a"), Accepted("b"), cancelled("b", 0.0, 0.0), Started("a", 3.0)]
    with pytest.raises(LrmsRefusedError, match="there is no job c"):
        await lrms.release("c")
    with pytest.raises(LrmsRefusedError, match="job w: processors is 5; this machine has 4"):
        await lrms.submit(job("w", 5), held=True)
    with pytest.raises(LrmsRefusedError, match="job w: processors is 5; this machine has 4"):
        await lrms.submit(job("w", 5))


def test_it_says_at_once_who_waits() -> None:
    """Jobs in the queue; not those that are held, run, have ended or were never there."""
    clock = VirtualClock(0.0)
    lrms = SimulatedLrms(SteppedMachine(4, Fcfs()), clock)
    for key in ("runs", "waits", "too"):
        lrms.submit_now(job(key))
    asyncio.run(lrms.submit(job("held"), held=True))
    keys = ("runs", "waits", "too", "held", "nobody's")
    assert [lrms.waits_now(key) for key in keys] == [False, True, True, False, False]
    for key in keys:
        known = lrms.look_up_now(key)
        assert lrms.waits_now(key) == (known is not None and known.phase is LrmsPhase.WAITING)
    assert lrms.cancel_now("waits", only_waiting=True)
    assert not lrms.waits_now("waits")
    clock.advance(1e9)
    lrms.tell_now()
    assert not lrms.waits_now("too")


async def test_a_job_that_has_started_is_not_waiting() -> None:
    """A cancel of waiting jobs leaves it alone."""
    lrms, _, told = simulated()
    await lrms.submit(job("a"))
    await lrms.submit(job("b"))
    assert not await lrms.cancel("a", only_waiting=True)
    assert await lrms.cancel("b", only_waiting=True)
    assert told[-1] == cancelled("b", 0.0, 0.0)
    record = await lrms.look_up("a")
    assert record == LrmsRecord(LrmsPhase.RUNNING, 0.0)
    assert await lrms.look_up("nobody's") is None
    assert lrms.encode("a") == "a"
