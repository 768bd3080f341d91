"""The judge of reservations finds what it is there for."""

from dataclasses import replace

import pytest

from grms.simulation.broker_actor import Brokers, _promised, _Wish, _wrong_end
from grms.simulation.fault_run import Trial
from grms.site.model.lifecycle import ReservationState
from grms.site.model.records import (
    Record,
    ReservationBooked,
    ReservationEnded,
    ReservationMoved,
    ReservationReleased,
)
from tests.grms.site.scheduler.test_reservations import Desk


def booked(number: int, begin: float, end: float, time: float = 0.0) -> Record:
    """Returns the record of a reservation of two processors."""
    return ReservationBooked(time, number, "x", f"k{number}", "r", begin, end, 2, 0.0)


def test_what_is_promised_at_each_moment() -> None:
    """By records: what is past when it is booked, given back or over does not count."""
    assert _promised([booked(1, 0.0, 9.0), booked(2, 5.0, 12.0)]) == {
        0.0: 2,
        5.0: 4,
        9.0: 2,
        12.0: 0,
    }
    assert _promised([booked(1, 0.0, 9.0), ReservationReleased(0.0, 1)]) == {}
    released = [booked(1, 0.0, 9.0), ReservationReleased(3.0, 1), booked(2, 0.0, 9.0, 3.0)]
    assert _promised(released) == {0.0: 2, 3.0: 2, 9.0: 0}
    assert _promised([booked(1, 0.0, 9.0), ReservationEnded(8.0, 1, 4.0)]) == {0.0: 2, 4.0: 0}
    for begin, end, held in (
        (0.0, 11.0, {0.0: 2, 1.0: 2, 11.0: 0}),
        (5.0, 14.0, {0.0: 2, 1.0: 0, 5.0: 2, 14.0: 0}),
    ):
        moved = ReservationMoved(1.0, 1, begin, end, 0.0, cut_off=False, cost=0.0)
        assert _promised([booked(1, 0.0, 9.0), moved]) == held


def wish(trial: Trial, *, to_the_end: bool = False, run_time: float = 8.0) -> _Wish:
    """Returns a wish at the first site of a run."""
    site = next(iter(trial.sites.values()))
    return _Wish(site, "k", 1, 0.0, 10.0, run_time, 16.0, to_the_end)


@pytest.fixture
def trial() -> Trial:
    """Returns a run that is over."""
    trial = Trial(1)
    trial.run()
    return trial


def test_a_job_has_to_end_as_it_should(trial: Trial) -> None:
    """At its own end, at the time it has requested, or with its reservation."""
    for run_time, to_the_end in ((8.0, False), (18.0, False), (18.0, True), (40.0, True)):
        desk = Desk()
        desk.book(10.0, 20.0)
        desk.launch(run_time, requested=16.0, to_the_end=to_the_end)
        wanted = wish(trial, to_the_end=to_the_end, run_time=run_time)
        assert "is still launched" in _wrong_end(desk.told[-1], 2.0, wanted)
        ended = desk.due(50.0)
        assert _wrong_end(ended, 2.0, wanted) == ""
        for wrong in (
            replace(ended, end_time=ended.end_time + 0.1),
            replace(ended, cut_off=not ended.cut_off),
        ):
            assert "of a job that needs" in _wrong_end(wrong, 2.0, wanted)


def test_what_was_told_has_to_stay(trial: Trial) -> None:
    """A number, a window, a revision, a launch, an end."""
    desk = Desk()
    told = desk.book(10.0, 20.0)
    launched = desk.launch(8.0)
    released = replace(launched, state=ReservationState.RELEASED, revision=3)

    def judged(wanted: _Wish, *found: object) -> list[str]:
        brokers = Brokers(trial.clock, trial.sites["a"].draws)
        brokers._judge(wanted, wanted.told, *found)  # type: ignore[arg-type]  # as it is called
        return brokers.problems

    wanted = wish(trial)
    wanted.told = told
    assert judged(wanted, told) == judged(wanted, launched) == judged(wanted, released) == []
    for wrong in (
        None,
        replace(told, key="other"),
        replace(told, booked=(11.0, 20.0)),
        replace(told, booked=(10.0, 21.0)),
        replace(told, revision=0),
    ):
        assert "was told as" in judged(wanted, wrong)[0]
    wanted.launched = True
    assert "was launched, and is" in judged(wanted, told)[0]
    wanted.told = released
    assert "was over as" in judged(wanted, replace(launched, revision=3))[0]


def test_an_answer_does_not_go_back(trial: Trial) -> None:
    """Another number, or an earlier revision, of the same key."""
    desk = Desk()
    first, later = desk.book(10.0, 20.0), desk.launch(8.0)
    brokers = Brokers(trial.clock, trial.sites["a"].draws)
    wanted = wish(trial)
    for answer in (first, later, later):
        brokers._hear(wanted, answer)
    assert brokers.problems == []
    brokers._hear(wanted, first)
    brokers._hear(wanted, replace(first, number=2))
    assert len(brokers.problems) == 2
