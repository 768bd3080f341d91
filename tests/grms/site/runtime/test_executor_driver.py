"""The way between the state and batch systems: one that answers at once, and one that does not."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import structlog

from grms.daemon.clock import VirtualClock
from grms.lrms import base
from grms.lrms.base import (
    Accepted,
    Away,
    Back,
    Hindered,
    LoadSeen,
    LrmsJob,
    LrmsLoad,
    LrmsPhase,
    LrmsRecord,
    LrmsRefusedError,
    LrmsSnapshot,
    LrmsUnavailableError,
    Tell,
)
from grms.lrms.immediate_start import QueuePlan, Taken
from grms.lrms.partitions import Partition, Partitions
from grms.lrms.simulated.machine import SteppedMachine
from grms.lrms.simulated.simulated import SimulatedLrms
from grms.site.model.commands import LrmsCancel, LrmsSubmit
from grms.site.model.events import (
    LrmsAppeared,
    LrmsLetGo,
    LrmsNews,
    LrmsRefused,
    LrmsStays,
    ProgramCame,
    ProgramsAway,
)
from grms.site.model.jobs import Load, Request
from grms.site.model.lifecycle import Outcome
from grms.site.runtime import executor_queue as lrms_queue
from grms.site.runtime.executor_driver import (
    NO_SUPPLIES,
    DriverLimits,
    LrmsDriver,
    ProgramAwayError,
    ProgramGoneError,
    Supplies,
)
from grms.site.wire.convert import without_program
from grms.v1 import request_pb2
from lrms_sim.scheduling.disciplines import Fcfs
from tests.waiting import until

PROGRAM = request_pb2.Program(script="#!/bin/x")
LIMITS = DriverLimits(load_age=30.0, command_timeout_s=0.05, commands=2)
LOG = structlog.get_logger()


def submission(key: str, processors: int = 4, **more: Any) -> LrmsSubmit:
    """Returns the command to submit a job that runs five seconds and requests ten."""
    message = request_pb2.JobRequest()
    message.simulated.run_time_s = 5.0
    payload = message.SerializeToString()
    return LrmsSubmit(0, key, Request(processors, 10.0), payload, user="ann", **more)


# --- at once -------------------------------------------------------------------------------------


def immediate(processors: int = 4) -> tuple[LrmsDriver, VirtualClock]:
    """Returns the driver of an empty simulated machine."""
    clock = VirtualClock(0.0)
    lrms = SimulatedLrms(SteppedMachine(processors, Fcfs()), clock)
    return LrmsDriver(lrms, clock, LIMITS, LOG), clock


def test_protected_guests_make_room_when_they_are_protected_no_more() -> None:
    """What follows of it in a simulated machine comes back at once."""
    driver, clock = immediate()
    assert driver.protect(on=True) == []
    guest = submission("b/1/1", 3, partner="b", preemptible=True, protected=True, at_once=True)
    assert driver.do(guest) == [base.Accepted("b/1/1")]
    assert driver.do(submission("a/1/1", 2)) == [base.Accepted("a/1/1")]
    assert driver.due() == [base.Started("b/1/1", 0.0)]
    load = driver.load()
    assert load is not None
    assert (load.processors_free, load.idle) == (1, 1)
    clock.advance(2.0)
    ended, started = driver.protect(on=False)
    assert isinstance(ended, base.Ended)
    assert (ended.key, ended.end.outcome, ended.end.run_time) == ("b/1/1", Outcome.PREEMPTED, 2.0)
    assert started == base.Started("a/1/1", 2.0)


def test_a_batch_system_that_ends_no_guests_protects_none() -> None:
    """Nothing is asked of it."""
    assert LrmsDriver(Slow(), VirtualClock(0.0), LIMITS, LOG).protect(on=True) == []


def test_a_job_runs() -> None:
    """It is accepted at once, and its start and end are due with their moments."""
    driver, clock = immediate()
    clock.advance(1.0)
    assert driver.do(submission("k")) == [base.Accepted("k")]
    assert (driver.load(), driver.load_age, driver.commands_open) == (Load(4, 0, 0), 0.0, 0)
    assert driver.due() == [base.Started("k", 1.0)]
    clock.advance(9.0)
    assert driver.due() == [base.Ended("k", base.LrmsEnd(Outcome.COMPLETED, 6.0, 5.0))]
    assert driver.due() == []


def test_it_is_asked_what_would_start_now() -> None:
    """The load of a moment has the batch system's own answer."""
    driver, _ = immediate()
    driver.do(submission("k", 3))
    load = driver.load()
    assert load is not None
    assert load.asked is not None
    assert load.starts_now(Request(1, 1e6))
    assert not load.starts_now(Request(2, 1.0))


def test_what_cannot_run_is_refused() -> None:
    """A job too wide, or one whose program is none, will never be taken."""
    driver, _ = immediate()
    (refused,) = driver.do(submission("k", 5))
    assert isinstance(refused, LrmsRefused)
    assert "this machine has 4" in refused.reason
    bad = LrmsSubmit(0, "k", Request(1, 1.0), b"\xff")
    assert isinstance(driver.do(bad)[0], LrmsRefused)


def test_a_cancelled_job_has_an_end() -> None:
    """Running and waiting jobs end as cancelled; what is not there has no end."""
    driver, clock = immediate()
    driver.do(submission("a"))
    driver.do(submission("b"))
    driver.due()
    clock.advance(2.0)
    assert driver.do(LrmsCancel(0, "b")) == [
        base.Ended("b", base.LrmsEnd(Outcome.CANCELLED, 2.0, 0.0))
    ]
    clock.advance(3.0)
    assert driver.do(LrmsCancel(0, "a")) == [
        base.Ended("a", base.LrmsEnd(Outcome.CANCELLED, 3.0, 3.0))
    ]
    assert driver.do(LrmsCancel(0, "a")) == []


def test_whether_a_job_is_let_go_is_answered() -> None:
    """One that waits is, and has an end; of one that runs, or is not there, nothing else is told."""
    driver, _ = immediate()
    driver.do(submission("a"))
    driver.do(submission("b"))
    driver.due()
    assert driver.do(LrmsCancel(0, "b", only_waiting=True)) == [
        base.Ended("b", base.LrmsEnd(Outcome.CANCELLED, 0.0, 0.0)),
        LrmsLetGo("b", done=True),
    ]
    for key in "abc":
        answer = LrmsLetGo(key, done=False)
        assert driver.do(LrmsCancel(0, key, only_waiting=True)) == [answer]


def test_a_lookup_comes_before_a_repetition() -> None:
    """A job that is there is not submitted again; how one ended that ran and is gone is unknown."""
    driver, _ = immediate()
    driver.do(submission("a"))
    assert driver.due() == [base.Started("a", 0.0)]
    again = driver.do(submission("a", lookup=True))
    assert again == [base.Accepted("a"), base.Started("a", 0.0)]
    (ended,) = driver.do(submission("b", lookup=True, started=True))
    assert isinstance(ended, base.Ended)
    assert ended.end.outcome is Outcome.UNKNOWN


# --- later ---------------------------------------------------------------------------------------


class Slow:
    """A batch system that does what the test says, when it says so.

    Attributes:
        asked: every call, in order.
        answers: what the next calls of each kind lead to: an error, or an answer. Without one a
            call waits for ever.
        jobs: what a look shows.
    """

    remembers = 300.0

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.answers: dict[str, list[Any]] = {"submit": [], "cancel": [], "look_up": []}
        self.jobs: dict[str, LrmsRecord] = {}
        self.looks: list[Exception] = []
        self.submitted: list[LrmsJob] = []
        self.tell: Tell = lambda _: None

    def listen(self, tell: Tell) -> None:
        """Takes the listener."""
        self.tell = tell

    async def open(self) -> None:
        """Opens nothing."""

    async def run(self) -> None:
        """Tells nothing by itself."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Closes nothing."""

    def encode(self, key: str) -> str:
        """Returns another name."""
        return f"x-{key}"

    async def _answer(self, kind: str, key: str) -> Any:
        self.asked.append((kind, key))
        if not self.answers[kind]:
            await asyncio.Event().wait()
        answer = self.answers[kind].pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def submit(self, job: LrmsJob, *, held: bool = False) -> None:
        """Does what the test says."""
        assert not held
        self.submitted.append(job)
        await self._answer("submit", job.key)

    async def release(self, key: str) -> None:
        """Is not asked."""
        raise AssertionError(key)

    async def cancel(self, key: str, *, only_waiting: bool = False) -> bool:
        """Does what the test says."""
        step = "let go" if only_waiting else "cancel"
        return bool(await self._answer(step, key))

    async def look_up(self, key: str) -> LrmsRecord | None:
        """Does what the test says."""
        answer: LrmsRecord | None = await self._answer("look_up", key)
        return answer

    async def snapshot(self) -> LrmsSnapshot:
        """Shows what is there, after the errors that the test wants."""
        if self.looks:
            raise self.looks.pop(0)
        return LrmsSnapshot(0.0, 8, 5, 2, self.jobs)


@asynccontextmanager
async def driven(lrms: Slow, clock: VirtualClock, supplies: Supplies = NO_SUPPLIES) -> Any:
    """Drives a batch system; yields the driver and what it has told."""
    driver = LrmsDriver(lrms, clock, LIMITS, LOG)
    told: list[LrmsNews] = []

    def hear(*news: LrmsNews) -> None:
        told.extend(news)

    driver.listen(hear)
    running = asyncio.create_task(driver.run(supplies))
    try:
        yield driver, told
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_an_answer_comes_later(monkeypatch: Any) -> None:
    """A command is done when its answer is there; one without an answer is looked up, and repeated."""
    monkeypatch.setattr(lrms_queue, "PAUSE_FIRST_S", 0.001)
    lrms, clock = Slow(), VirtualClock(0.0)
    async with driven(lrms, clock) as (driver, told):
        assert driver.load() is None
        assert driver.load_age is None
        # The first has no answer in time, then nobody answers, then it is not there.
        lrms.answers["look_up"] = [LrmsUnavailableError("no controller"), None]
        assert driver.do(submission("a")) == []
        assert driver.due() == []
        await until(lambda: len(lrms.asked) == 4)
        steps = ["submit", "look_up", "look_up", "submit"]
        assert lrms.asked == [(step, "a") for step in steps]
        assert lrms.submitted[-1].user == "ann"
        lrms.answers["look_up"] = [LrmsRecord(LrmsPhase.RUNNING, 3.0)]
        await until(lambda: len(told) == 2)
        assert told == [base.Accepted("a"), base.Started("a", 3.0)]
        assert driver.commands_open == 0
        lrms.answers["submit"] = [LrmsRefusedError("no such account")]
        driver.do(submission("b"))
        await until(lambda: len(told) == 3)
        assert told[2] == LrmsRefused("b", "no such account")
        lrms.answers["cancel"] = [LrmsUnavailableError("no controller"), True]
        driver.do(LrmsCancel(0, "a"))
        await until(lambda: driver.commands_open == 0)
        assert lrms.asked[-2:] == [("cancel", "a")] * 2
        lrms.answers["let go"] = [LrmsRefusedError("not allowed")]
        driver.do(LrmsCancel(0, "a", only_waiting=True))
        await until(lambda: len(told) == 4)
        assert told[3] == LrmsStays("a", certain=True)
        lrms.answers["let go"] = [LrmsUnavailableError("no controller"), False, False, True]
        for key in "aab":
            driver.do(LrmsCancel(0, key, only_waiting=True))
            await until(lambda: driver.commands_open == 0)
        maybe = [LrmsLetGo("a", done=None), LrmsLetGo("a", done=False)]
        assert told[4:] == [*maybe, LrmsLetGo("b", done=True)]


async def test_very_many_ends_hold_up_no_submission() -> None:
    """They are asked for at one time, and another user's job is handed in meanwhile."""
    lrms, clock = Slow(), VirtualClock(0.0)
    async with driven(lrms, clock) as (driver, told):
        for number in range(300):
            driver.do(LrmsCancel(0, f"k{number}"))
        await until(lambda: len(lrms.asked) == lrms_queue.ENDS_AT_ONCE)
        lrms.answers["submit"] = [None]
        driver.do(submission("own"))
        await until(lambda: ("submit", "own") in lrms.asked)
        await until(lambda: driver.commands_open == 300)
        assert told == []


def to_fetch(key: str, since: float = 0.0) -> LrmsSubmit:
    """Returns the command to submit a partner's job whose program is still there."""
    payload = without_program(request_pb2.JobRequest(program=PROGRAM).SerializeToString())
    return LrmsSubmit(0, key, Request(1, 10.0), payload, partner="b", since=since)


async def test_what_a_partners_job_runs_is_fetched(monkeypatch: Any) -> None:
    """Tried again while it does not come, and nobody else waits for that; then it is submitted."""
    monkeypatch.setattr("grms.site.runtime.executor_driver.PAUSE_FIRST_S", 0.001)
    lrms, clock = Slow(), VirtualClock(0.0)
    come = asyncio.Event()
    asked: list[tuple[str, str]] = []

    async def source(partner: str, key: str) -> bytes:
        asked.append((partner, key))
        if not come.is_set():
            raise ProgramAwayError("no answer")
        return request_pb2.JobRequest(program=PROGRAM).SerializeToString()

    async with driven(lrms, clock, Supplies(source)) as (driver, told):
        waiting = [f"b/1/{number}" for number in range(5)]
        for key in waiting:
            driver.do(to_fetch(key))
        lrms.answers["submit"] = [None]
        driver.do(submission("own"))
        await until(lambda: len(asked) > 10)
        assert lrms.asked == [("submit", "own")]
        assert set(asked) == {("b", key) for key in waiting}
        lrms.answers["submit"] = [None] * 5
        come.set()
        await until(lambda: driver.commands_open == 0)
        assert sorted(lrms.asked[1:]) == [("submit", key) for key in waiting]
        assert {job.program.script for job in lrms.submitted[1:] if job.program} == {"#!/bin/x"}
        # Each attempt is told, and once that they succeed again.
        came = [event for event in told if isinstance(event, ProgramCame)]
        assert [event.partner for event in came] == ["b"]
        away = [event for event in told if isinstance(event, ProgramsAway)]
        assert {(event.partner, event.reason) for event in away} == {("b", "no answer")}
        assert len(told) == len(away) + 1 > 10


async def test_a_partners_job_runs_as_the_account_that_it_is_given() -> None:
    """An own one never does, and one for which there is none is refused."""
    lrms, clock = Slow(), VirtualClock(0.0)

    async def source(_partner: str, _key: str) -> bytes:
        return request_pb2.JobRequest(program=PROGRAM).SerializeToString()

    def account(partner: str, key: str) -> str:
        if key == "b/1/2":
            raise LrmsRefusedError("its user has no account here")
        return f"{partner}-guests"

    async with driven(lrms, clock, Supplies(source, account=account)) as (driver, told):
        lrms.answers["submit"] = [None] * 2
        for command in (to_fetch("b/1/1"), to_fetch("b/1/2"), submission("own")):
            driver.do(command)
        await until(lambda: driver.commands_open == 0)
        accounts = {job.key: job.account for job in lrms.submitted}
        assert accounts == {"b/1/1": "b-guests", "own": ""}
        assert told == [LrmsRefused("b/1/2", "its user has no account here")]


async def test_large_files_may_take_longer_as_long_as_they_come(monkeypatch: Any) -> None:
    """The time runs from the last good part; when nothing more comes it is over."""
    monkeypatch.setattr("grms.site.runtime.executor_driver.PAUSE_FIRST_S", 0.001)
    lrms, clock = Slow(), VirtualClock(0.0)
    attempts = 0

    async def source(_partner: str, _key: str) -> bytes:
        nonlocal attempts
        attempts += 1
        if attempts <= 5:
            clock.advance(clock.now() + LIMITS.program_wait + 1.0)
        raise ProgramAwayError("cut off", progress=attempts <= 5)

    async with driven(lrms, clock, Supplies(source)) as (driver, told):
        driver.do(to_fetch("b/1/1"))
        await until(lambda: attempts > 7)
        assert not any(isinstance(one, LrmsRefused) for one in told)
        clock.advance(clock.now() + LIMITS.program_wait + 1.0)
        await until(lambda: any(isinstance(one, LrmsRefused) for one in told))


async def test_a_program_that_never_comes_ends_its_job(monkeypatch: Any) -> None:
    """At once where the home site does not have the job here any more; else when its time is over."""
    monkeypatch.setattr("grms.site.runtime.executor_driver.PAUSE_FIRST_S", 0.001)
    lrms, clock = Slow(), VirtualClock(0.0)

    async def source(_partner: str, key: str) -> bytes:
        if key == "b/1/1":
            raise ProgramGoneError("it is not yours")
        if key == "b/1/9":
            raise ProgramGoneError("not such a one", unwanted=True)
        raise ProgramAwayError("no answer")

    async with driven(lrms, clock, Supplies(source)) as (driver, all_told):

        def told() -> list[LrmsNews]:
            return [one for one in all_told if not isinstance(one, ProgramsAway)]

        driver.do(to_fetch("b/1/1"))
        gone = LrmsRefused("b/1/1", "it is not yours", undelivered=True)
        await until(lambda: told() == [gone])
        driver.do(to_fetch("b/1/2"))
        await asyncio.sleep(0)
        assert len(told()) == 1
        clock.advance(LIMITS.program_wait + 1.0)
        await until(lambda: len(told()) == 2)
        reason = "what it runs has not come in time: no answer"
        assert told()[1] == LrmsRefused("b/1/2", reason, undelivered=True)
        # What this site does not want is decided anew at home: it has not run, and will not.
        driver.do(to_fetch("b/1/9"))
        await until(lambda: len(told()) == 3)
        assert told()[2] == LrmsRefused("b/1/9", "not such a one", undelivered=True)
        # One that the batch system may have is looked for before anybody is asked.
        lrms.answers["look_up"] = [LrmsRecord(LrmsPhase.RUNNING, 3.0)]
        driver.do(replace(to_fetch("b/1/3"), lookup=True))
        await until(lambda: len(told()) == 5)
        assert told()[4] == base.Started("b/1/3", 3.0)
        assert driver.commands_open == 0
        assert lrms.submitted == []


async def test_what_is_refused_for_now_is_asked_again(monkeypatch: Any) -> None:
    """Nobody else waits for that, it is told once, and a cancel ends it at once; a partner's job goes home."""
    monkeypatch.setattr(lrms_queue, "PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr(lrms_queue, "PAUSE_MOST_S", 0.001)
    lrms, clock = Slow(), VirtualClock(0.0)
    drained = LrmsRefusedError("main is drained", passing=True)
    async with driven(lrms, clock) as (driver, told):
        lrms.answers["submit"] = [drained] * 3 + [None]
        driver.do(submission("a"))
        await until(lambda: driver.commands_open == 0)
        assert lrms.asked == [("submit", "a")] * 4
        assert told == [LrmsRefused("a", "main is drained", passing=True)]
        lrms.answers["submit"] = [drained]
        driver.do(replace(submission("b/1/1"), partner="b"))
        await until(lambda: driver.commands_open == 0)
        assert told[1:] == [LrmsRefused("b/1/1", "main is drained")]
        monkeypatch.setattr(lrms_queue, "PAUSE_FIRST_S", 3600.0)
        monkeypatch.setattr(lrms_queue, "PAUSE_MOST_S", 3600.0)
        lrms.answers["submit"] = [drained] * 3
        lrms.answers["cancel"] = [True]
        for key in ("c", "d", "e"):  # more than are asked about at one time
            driver.do(submission(key))
        await until(lambda: len(told) == 5)
        driver.do(LrmsCancel(0, "d"))
        await until(lambda: len(told) == 6)
        assert told[5] == LrmsRefused("d", "main is drained")
        assert lrms.asked[-1] == ("cancel", "d")


async def test_a_look_up_that_is_refused_says_nothing(monkeypatch: Any) -> None:
    """The job may run: it is looked up until there is an answer."""
    monkeypatch.setattr(lrms_queue, "PAUSE_FIRST_S", 0.001)
    lrms, clock = Slow(), VirtualClock(0.0)
    async with driven(lrms, clock) as (driver, told):
        running = LrmsRecord(LrmsPhase.RUNNING, 3.0)
        lrms.answers["look_up"] = [LrmsRefusedError("sacct: not permitted"), running]
        driver.do(replace(submission("b/1/1"), partner="b", lookup=True))
        await until(lambda: driver.commands_open == 0)
        assert told == [base.Accepted("b/1/1"), base.Started("b/1/1", 3.0)]


async def test_a_load_has_its_age() -> None:
    """It is what was told last; one that is too old is none."""
    lrms, clock = Slow(), VirtualClock(0.0)
    async with driven(lrms, clock) as (driver, _):
        await until(lambda: driver.load() == Load(8, 5, 2))
        clock.advance(30.0)
        assert (driver.load(), driver.load_age) == (Load(8, 5, 2), 30.0)
        clock.advance(30.1)
        assert driver.load() is None
        lrms.tell([Accepted("a"), LoadSeen(LrmsLoad(30.0, 8, 1, 0))])
        assert driver.load() == Load(8, 1, 0)


async def test_the_age_of_a_load_is_by_one_clock() -> None:
    """The batch system's host may have another time, or have put its clock back by an hour."""
    lrms, clock = Slow(), VirtualClock(0.0)
    async with driven(lrms, clock) as (driver, _):
        await until(lambda: driver.load() is not None)
        for _ in range(3):
            clock.advance(20.0)
            plan = QueuePlan(-3600.0, 4, (Taken(4, -3600.0, -3540.0),), ())
            lrms.tell([LoadSeen(LrmsLoad(-3600.0, 8, 4, 0, plan))])
            load = driver.load()
            assert load is not None
            assert (load.processors_free, driver.load_age) == (4, 0.0)
            assert load.asked is not None
            assert load.asked(4, 30.0)  # of processors free, whatever comes later
            assert not load.asked(8, 30.0)


async def test_what_is_looked_up_for_ever_is_asked_no_sooner_because_it_is_to_end(
    monkeypatch: Any,
) -> None:
    """A cancel behind it waits for the answer, and makes no questions without a pause."""
    monkeypatch.setattr(lrms_queue, "PAUSE_FIRST_S", 1e6)
    monkeypatch.setattr(lrms_queue, "PAUSE_MOST_S", 1e6)
    lrms, clock = Slow(), VirtualClock(0.0)
    async with driven(lrms, clock) as (driver, _):
        lrms.answers["look_up"] = [LrmsRefusedError("no")] * 100
        driver.do(replace(submission("b/1/1"), partner="b", lookup=True))
        await until(lambda: len(lrms.asked) >= 1)
        driver.do(LrmsCancel(0, "b/1/1"))
        await until(lambda: len(lrms.asked) >= 2)  # it is asked once more
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(lrms.asked) == 2


async def test_what_a_machine_takes_is_a_part_of_its_load() -> None:
    """Partitions say which jobs would start if there were room; where there are none, any would."""
    lrms, clock = Slow(), VirtualClock(0.0)
    async with driven(lrms, clock) as (driver, _):
        await until(lambda: driver.load() is not None)
        one = Request(1, 60.0)
        assert driver.load().refusal(one) == ""
        parts = Partitions((Partition("main", "DRAIN", takes=False),))
        lrms.tell([LoadSeen(LrmsLoad(0.0, 8, 8, 0, partitions=parts))])
        assert driver.load().refusal(one) == "main is DRAIN"
        assert driver.load().refusal(Request(9, 60.0)) == "8 processors work; it needs 9"


async def test_a_job_is_told_what_it_waits_for() -> None:
    """And that it does not any more."""
    lrms, clock = Slow(), VirtualClock(0.0)
    async with driven(lrms, clock) as (_, told):
        await until(lambda: bool(lrms.tell))
        lrms.tell([Hindered("a", "main is down"), Hindered("a", "")])
        assert told == [base.Hindered("a", "main is down"), base.Hindered("a", "")]


async def test_what_is_planned_says_what_would_start() -> None:
    """Where the numbers alone would say no, as others wait."""
    lrms, clock = Slow(), VirtualClock(0.0)
    async with driven(lrms, clock) as (driver, _):
        await until(lambda: driver.load() is not None)
        plan = QueuePlan(0.0, 3, [Taken(5, 0.0, 300.0)], [Taken(8, 300.0, 400.0)])
        lrms.tell([LoadSeen(LrmsLoad(0.0, 8, 3, 8, plan))])
        for now, seconds, starts in ((0.0, 240.0, True), (1.0, 240.0, False)):
            clock.advance(now)
            load = driver.load()
            assert load is not None
            assert load.starts_now(Request(3, seconds)) is starts
        lrms.tell([LoadSeen(LrmsLoad(0.0, 8, 3, 8))])
        load = driver.load()
        assert load is not None
        assert not load.starts_now(Request(3, 1.0))


async def test_what_is_there_at_the_start_is_told(monkeypatch: Any) -> None:
    """As soon as somebody answers; whether it is wanted is for the state to say."""
    monkeypatch.setattr("grms.site.runtime.executor_driver.PAUSE_FIRST_S", 0.001)
    lrms, clock = Slow(), VirtualClock(0.0)
    lrms.looks = [LrmsUnavailableError("no controller")] * 2
    lrms.jobs = {"old": LrmsRecord(LrmsPhase.RUNNING, 1.0)}
    async with driven(lrms, clock) as (_, told):
        await until(lambda: told == [LrmsAppeared("old")])


async def test_commands_wait_while_it_is_away() -> None:
    """And go on when it is back."""
    lrms, clock = Slow(), VirtualClock(0.0)
    async with driven(lrms, clock) as (driver, told):
        await until(lambda: driver.load() is not None)
        lrms.tell([Away("no controller")])
        lrms.answers["submit"] = [None]
        driver.do(submission("a"))
        await asyncio.sleep(0)
        assert (lrms.asked, driver.commands_open) == ([], 1)
        lrms.tell([Back()])
        await until(lambda: driver.commands_open == 0)
        assert told == [base.Away("no controller"), base.Back()]


class Keeping(Slow):
    """One that keeps places."""

    queue_place = base.QueuePlace.KEPT

    async def keep_place(self, job: LrmsJob) -> None:
        """Notes the call."""
        assert job.aside
        self.asked.append(("keep", job.key))

    async def leave(self, key: str) -> bool:
        """Notes the call."""
        self.asked.append(("leave", key))
        return True

    def place_words(self, key: str) -> str:
        """Is not asked."""
        raise AssertionError(key)


@pytest.mark.parametrize("keeps", [False, True])
async def test_places_are_kept_where_the_batch_system_can(*, keeps: bool) -> None:
    """Elsewhere a job leaves the queue as ever, and comes back behind all others."""
    lrms = Keeping() if keeps else Slow()
    lrms.answers["let go"] = [True]
    async with driven(lrms, VirtualClock(0.0)) as (driver, told):
        driver.do(replace(submission("a"), aside=True))
        driver.do(LrmsCancel(0, "b", only_waiting=True, keep_place=True))
        await until(lambda: driver.commands_open == 0)
    assert [news for news in told if isinstance(news, LrmsLetGo)] == [LrmsLetGo("b", done=True)]
    assert sorted(lrms.asked) == ([("keep", "a"), ("leave", "b")] if keeps else [("let go", "b")])


async def test_a_job_that_is_elsewhere_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks a job up wants it here: what is held of it would be released."""
    monkeypatch.setattr(lrms_queue, "PAUSE_FIRST_S", 0.001)

    class Away(Keeping):
        async def keep_place(self, job: LrmsJob) -> None:
            await super().keep_place(job)
            if self.asked.count(("keep", job.key)) == 1:
                raise LrmsUnavailableError("timed out")

    lrms = Away()
    async with driven(lrms, VirtualClock(0.0)) as (driver, _):
        driver.do(replace(submission("a"), aside=True))
        await until(lambda: driver.commands_open == 0)
    assert lrms.asked == [("keep", "a"), ("keep", "a")]
