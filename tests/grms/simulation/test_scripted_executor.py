"""The batch system with moods."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from grms.lrms.base import (
    Accepted,
    Appeared,
    Away,
    Back,
    Ended,
    LoadSeen,
    Lost,
    Lrms,
    LrmsEvent,
    LrmsJob,
    LrmsPhase,
    LrmsRefusedError,
    LrmsUnavailableError,
    Program,
    Requeued,
    Started,
)
from grms.simulation.batch_system import FakeLrms
from grms.simulation.clock import ManualClock, sleep
from grms.simulation.random_source import RandomSource
from grms.simulation.scripted_executor import LrmsFaults, ScriptedLrms
from grms.util.outcomes import Outcome


class Stage:
    """A batch system of two processors, and what it has told."""

    def __init__(self, **lrms_faults: float) -> None:
        self.clock = ManualClock()
        self.machine = FakeLrms(self.clock, 2, float)
        self.lrms_faults = LrmsFaults(**lrms_faults)
        self.lrms = ScriptedLrms(
            self.machine, self.lrms_faults, RandomSource(1), sleep, offset=100.0
        )
        self.told: list[LrmsEvent] = []
        self.lrms.listen(self._told)

    def _told(self, events: Sequence[LrmsEvent]) -> None:
        self.told += [event for event in events if not isinstance(event, LoadSeen)]

    def do(self, coroutine: Any) -> Any:
        """Returns the answer of a call, or its error."""
        answers: list[Any] = []
        self.clock.run(coroutine, lambda answer, error: answers.append(error or answer))
        while not answers:
            assert self.clock.step()
        return answers[0]

    def look(self) -> list[type[LrmsEvent]]:
        """Lets a second pass and looks; returns the kinds of what was told."""
        self.clock.advance(self.clock.now + 1.0)
        before = len(self.told)
        self.lrms.look()
        return [type(event) for event in self.told[before:]]


def job(key: str, seconds: float = 5.0, processors: int = 2) -> LrmsJob:
    """Returns a job."""
    return LrmsJob(key, processors, 60.0, program=Program(str(seconds)))


def test_a_life() -> None:
    """Late, and in the words of the port; a key that it has changes nothing."""
    stage = Stage()
    port: Lrms = stage.lrms
    assert stage.do(port.submit(job("a"))) is None
    assert stage.do(port.submit(job("a"))) is None
    assert stage.clock.now > 0
    assert stage.look() == [Accepted, Started]
    record = stage.do(port.look_up("a"))
    assert record.phase is LrmsPhase.RUNNING
    assert record.start_time == stage.machine.jobs["a"].start_time + 100.0  # type: ignore[operator]  # it runs
    stage.clock.advance(10.0)
    assert stage.look() == [Ended]
    assert stage.do(port.look_up("a")).end.outcome is Outcome.COMPLETED
    assert stage.do(port.look_up("b")) is None
    assert not stage.do(port.cancel("a"))
    assert isinstance(stage.do(port.submit(job("w", processors=3))), LrmsRefusedError)
    assert (port.remembers, port.encode("a")) == (math.inf, "scripted:a")


def test_a_held_job_waits() -> None:
    """It is no load, and is released or ended."""
    stage = Stage()
    for key in "ab":
        assert stage.do(stage.lrms.submit(job(key), held=True)) is None
    snapshot = stage.do(stage.lrms.snapshot())
    assert {record.phase for record in snapshot.jobs.values()} == {LrmsPhase.HELD}
    assert (snapshot.free, snapshot.waiting) == (2, 0)
    assert stage.do(stage.lrms.cancel("b", only_waiting=True))
    assert stage.do(stage.lrms.release("a")) is None
    assert stage.look() == [Accepted, Accepted, Ended, Started]
    assert not stage.do(stage.lrms.cancel("a", only_waiting=True))
    assert isinstance(stage.do(stage.lrms.release("c")), LrmsRefusedError)


def test_what_has_no_answer_may_have_been_done() -> None:
    """Or not: half of it."""
    stage = Stage(silence=1.0)
    for number in range(20):
        answer = stage.do(stage.lrms.submit(job(str(number))))
        assert isinstance(answer, LrmsUnavailableError)
    assert 0 < len(stage.machine.jobs) < 20


def test_it_goes_away_and_comes_back() -> None:
    """What has happened meanwhile is told then."""
    stage = Stage()
    stage.do(stage.lrms.submit(job("a", 2.0)))
    stage.lrms_faults.away = 1.0
    assert stage.look() == [Away]
    assert stage.look() == []
    assert isinstance(stage.do(stage.lrms.look_up("a")), LrmsUnavailableError)
    stage.lrms_faults.calm()
    stage.clock.advance(60.0)
    assert stage.look() == [Back, Accepted, Started, Ended]


def test_it_forgets_and_starts_anew() -> None:
    """A waiting job is gone, a running one waits again."""
    stage = Stage(loss=1.0)
    stage.do(stage.lrms.submit(job("a"), held=True))
    assert stage.look() == [Accepted, Lost]
    assert (stage.machine.jobs, stage.lrms.lost) == ({}, {"a": 1})
    stage.lrms_faults.loss, stage.lrms_faults.requeue = 0.0, 1.0
    stage.do(stage.lrms.submit(job("a")))
    assert stage.look() == [Accepted, Started, Requeued]
    stage.lrms_faults.calm()
    assert stage.look() == [Started]
    stage.clock.advance(60.0)
    assert stage.look() == [Ended]
    assert stage.machine.jobs["a"].runs == 2


def test_others_hold_and_cancel() -> None:
    """Their hold ends by itself; their cancel is an end like any other."""
    stage = Stage(hold=1.0, hold_mean=2.0)
    stage.do(stage.lrms.submit(job("a")))
    stage.do(stage.lrms.submit(job("b")))
    stage.look()
    assert stage.machine.jobs["b"].held
    stage.lrms_faults.calm()
    stage.clock.advance(60.0)
    stage.look()
    assert stage.machine.jobs["b"].outcome is not None
    stage.lrms_faults.others = 1.0
    stage.do(stage.lrms.submit(job("c")))
    assert stage.look() == [Accepted, Started, Ended]
    assert stage.told[-1].end.reason == "cancelled by root"  # type: ignore[union-attr]  # an end


def test_what_ends_as_it_waits_again_is_told_as_started() -> None:
    """Also to whoever has followed it since then alone, or looks it up when it is over."""
    stage = Stage()
    stage.do(stage.lrms.submit(job("a")))
    stage.clock.advance(stage.clock.now + 1.0)
    stage.machine.hold("a")
    stage.machine.requeue("a")
    stage.lrms.listen(stage._told)
    assert stage.machine.cancel("a")
    assert stage.look() == [Requeued, Ended]
    record = stage.do(stage.lrms.look_up("a"))
    assert record.restarted
    assert record.end.outcome is Outcome.CANCELLED


def test_a_submission_may_come_when_nobody_waits_for_its_answer() -> None:
    """Later it runs as any other, once, however often it was handed over."""
    stage = Stage(silence=1.0, late=1.0, late_mean=3.0)
    for number in range(20):
        answer = stage.do(stage.lrms.submit(job(str(number), processors=1)))
        assert isinstance(answer, LrmsUnavailableError)
    before = set(stage.machine.jobs)
    assert len(before) < 20
    stage.lrms_faults.silence = 0.0
    for number in range(20):
        stage.do(stage.lrms.submit(job(str(number), processors=1)))
    stage.clock.advance(stage.clock.now + 200.0)
    assert [each.runs for each in stage.machine.history] == [1] * 20


def test_what_was_given_up_before_it_comes_stays_held() -> None:
    """It was cancelled, or is a partner's and was refused, which has it run elsewhere; whoever gave it up is told."""
    stage = Stage(silence=1.0, late=1.0, late_mean=20.0)
    partners = [replace(job(str(number)), partner="south") for number in range(20)]
    for each in partners:
        stage.do(stage.lrms.submit(each))
    stage.lrms_faults.silence = 0.0
    given_up = set()
    for each in partners[:10]:
        if not stage.do(stage.lrms.cancel(each.key)) and each.key not in stage.machine.jobs:
            given_up.add(each.key)
    stage.lrms._shut_until = stage.clock.now + 5.0
    for each in partners[10:]:
        if isinstance(stage.do(stage.lrms.submit(each)), LrmsRefusedError):
            given_up.add(each.key)
    stage.clock.advance(stage.clock.now + 500.0)
    late = [each for each in stage.machine.history if each.key in given_up]
    assert late
    assert all(each.held and not each.runs for each in late)
    stage.look()
    appeared = {event.key for event in stage.told if isinstance(event, Appeared)}
    assert {each.key for each in late} <= appeared


def test_what_comes_when_its_end_is_forgotten_stays_held() -> None:
    """An earlier submission of a job that was handed over once more, has ended, and is not known any more."""
    stage = Stage(silence=1.0, late=1.0, late_mean=300.0)
    stage.machine.forget_after = 1.0
    for number in range(20):
        stage.do(stage.lrms.submit(job(str(number), processors=1)))
    stage.lrms_faults.silence = 0.0
    for number in range(20):
        stage.do(stage.lrms.submit(job(str(number), processors=1)))
    stage.clock.advance(stage.clock.now + 2000.0)
    copies = [each for each in stage.machine.history if each.unwanted]
    assert copies
    assert all(each.held and not each.runs for each in copies)
    assert sum(each.runs for each in stage.machine.history) == 20
    stage.look()
    appeared = {event.key for event in stage.told if isinstance(event, Appeared)}
    assert {each.key for each in copies} == appeared
    for each in copies:
        assert stage.do(stage.lrms.look_up(each.key)) is None, "it is not the job, which has ended"
        assert stage.do(stage.lrms.cancel(each.key))
    assert stage.look() == []
