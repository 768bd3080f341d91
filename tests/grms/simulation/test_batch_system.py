import pytest

from grms.simulation.batch_system import FakeLrms
from grms.simulation.clock import ManualClock
from grms.site.model.jobs import Load, Request
from grms.site.model.lifecycle import Outcome


def lrms(processors: int = 2) -> tuple[ManualClock, FakeLrms]:
    """Returns a batch system in which every job runs for as many seconds as its payload says."""
    clock = ManualClock()
    return clock, FakeLrms(clock, processors, float)


def test_first_come_first_served() -> None:
    """Jobs start in order as soon as they fit, and end after their run time."""
    clock, system = lrms()
    told: list[tuple[float, str, bool]] = []
    system.listener = lambda job: told.append((clock.now, job.key, job.end_time is not None))
    system.submit("a", Request(2, 9.0), b"3")
    system.submit("b", Request(1, 9.0), b"5")
    clock.advance(1.0)
    assert system.load() == Load(2, 0, 1)
    clock.advance(20.0)
    assert told == [(0.0, "a", False), (3.0, "a", True), (3.0, "b", False), (8.0, "b", True)]
    assert system.load() == Load(2, 2, 0)
    found = system.find("a")
    assert found is not None
    assert found.outcome is Outcome.COMPLETED


def test_a_cancelled_job_ends_at_once() -> None:
    """Waiting or running; its processors are free again, and it does not end a second time."""
    clock, system = lrms()
    system.submit("a", Request(2, 9.0), b"3")
    system.submit("b", Request(2, 9.0), b"3")
    clock.advance(1.0)
    system.cancel("b")
    system.cancel("a")
    system.cancel("a")
    system.cancel("nobody")
    assert system.load() == Load(2, 2, 0)
    ended = [(job.key, job.outcome, job.end_time) for job in system.jobs.values()]
    clock.advance(9.0)
    assert ended == [("a", Outcome.CANCELLED, 1.0), ("b", Outcome.CANCELLED, 1.0)]
    assert system.load().processors_free == 2


def test_only_what_waits_is_let_go() -> None:
    """A job that has started runs on, whoever wanted it to leave."""
    clock, system = lrms()
    system.submit("a", Request(2, 9.0), b"3")
    system.submit("b", Request(2, 9.0), b"3")
    clock.advance(1.0)
    assert not system.cancel("a", only_waiting=True)
    assert system.cancel("b", only_waiting=True)
    assert not system.cancel("b", only_waiting=True)
    clock.advance(9.0)
    assert [job.outcome for job in system.history] == [Outcome.COMPLETED, Outcome.CANCELLED]
    assert [job.let_go for job in system.history] == [False, True]


def test_what_has_started_once_is_not_let_go() -> None:
    """It has done something, although it waits again."""
    clock, system = lrms()
    system.submit("a", Request(2, 9.0), b"3")
    clock.advance(1.0)
    system.hold("a")
    system.requeue("a")
    assert not system.cancel("a", only_waiting=True)
    assert system.cancel("a")


def test_a_second_submission_is_a_mistake() -> None:
    """A fake that looked away would hide what it is there to find."""
    _, system = lrms()
    system.submit("a", Request(1, 9.0), b"3")
    with pytest.raises(ValueError, match="a was submitted before"):
        system.submit("a", Request(1, 9.0), b"3")
    with pytest.raises(ValueError, match="b needs 3 of 2"):
        system.submit("b", Request(3, 9.0), b"3")
