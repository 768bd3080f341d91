"""The book of reservations: nothing is promised twice."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.site.core import reservations
from grms.site.core.reservations import (
    MOVES,
    RESERVATIONS_MAX,
    NoSuchReservation,
    ReservationBook,
    ReservationLimit,
    ReservationRefused,
    ReservationState,
    Resource,
)
from grms.site.facts.lifecycle import Outcome

CPU = Resource("cpu", {"kind": "cpu"}, processors=3, speed=2.0, cost_per_hour=10.0)

wishes = st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(1, 3))


@given(wanted=st.lists(wishes, max_size=25), released=st.lists(st.integers(1, 25), max_size=6))
def test_no_processor_is_promised_twice(
    wanted: list[tuple[int, int, int]], released: list[int]
) -> None:
    """At every moment the promises fit, what is free is what is not promised, and it can be had."""
    book = ReservationBook([CPU])
    for number, (begin, length, processors) in enumerate(wanted):
        window = (float(begin), float(begin + length))
        free = book.free(CPU, *window)
        fits = sum(right - left for left, right, n in free if n >= processors) == length
        try:
            book.keep(book.book("me", str(number), "cpu", window, processors=processors, now=-1.0))
        except ReservationRefused:
            assert not fits
        else:
            assert fits
    for number in released:
        if number in book.reservations:
            book.keep(book.release(number, "me", 0.0))
    for moment in range(20):
        held = sum(
            r.processors
            for r in book.reservations.values()
            if r.is_open and r.begin <= moment < r.end
        )
        free = book.free(CPU, float(moment), moment + 1.0)
        assert held + sum(n for _, _, n in free) == 3
        assert held <= 3


def test_the_same_key_is_the_same_reservation() -> None:
    """Another wish with the key is refused; another owner's key is another's."""
    book = ReservationBook([CPU])
    first = book.book("me", "k", "cpu", (0.0, 10.0), processors=1, now=0.0)
    book.keep(first)
    assert book.book("me", "k", "cpu", (0.0, 10.0), processors=1, now=99.0) == first
    with pytest.raises(ReservationRefused, match="belongs to another reservation, 1"):
        book.book("me", "k", "cpu", (0.0, 11.0), processors=1, now=0.0)
    assert book.book("you", "k", "cpu", (0.0, 10.0), processors=1, now=0.0).number == 2
    with pytest.raises(NoSuchReservation):
        book.get(1, "you")


def test_a_job_runs_in_its_window() -> None:
    """From the beginning, at the resource's speed; what is left of the window is free again."""
    book = ReservationBook([CPU])
    book.keep(book.book("me", "k", "cpu", (10.0, 20.0), processors=3, now=0.0))
    assert book.next_time == 20.0
    with pytest.raises(ReservationRefused, match="the job needs 1 processors for 15 s"):
        book.launch(1, "me", "l", processors=1, requested_time=100.0, run_time=30.0, now=0.0)
    book.keep(book.launch(1, "me", "l", processors=3, requested_time=100.0, run_time=8.0, now=0.0))
    assert (
        book.launch(
            1, "me", "l", processors=3, requested_time=100.0, run_time=8.0, now=5.0
        ).revision
        == 2
    )
    with pytest.raises(ReservationRefused, match="another job"):
        book.launch(1, "me", "m", processors=3, requested_time=100.0, run_time=8.0, now=5.0)
    assert book.due(9.0) == []
    assert book.next_time == 10.0
    for moment, state in ((12.0, ReservationState.RUNNING), (14.0, ReservationState.ENDED)):
        (changed,) = book.due(moment)
        book.keep(changed)
        assert changed.state is state
    assert (changed.start_time, changed.end_time, changed.end) == (10.0, 14.0, 20.0)
    assert changed.outcome is Outcome.COMPLETED
    assert book.book("me", "k", "cpu", (10.0, 20.0), processors=3, now=99.0) == changed
    assert changed.cost == pytest.approx(10.0 * 3 * 10 / 3600)
    assert book.free(CPU, 10.0, 20.0) == [(10.0, 20.0, 3)]
    assert book.next_time == math.inf


def test_a_job_launched_late_starts_late() -> None:
    """In a window that has begun, from the launch, if what is left is enough."""
    book = ReservationBook([CPU])
    book.keep(book.book("me", "k", "cpu", (10.0, 20.0), processors=1, now=0.0))
    book.keep(book.launch(1, "me", "l", processors=1, requested_time=100.0, run_time=8.0, now=15.0))
    (running,) = book.due(99.0)
    assert running.start_time == 15.0


def test_a_job_that_is_cut_off_has_failed() -> None:
    """It runs for the time it requested and no longer; one that ends by itself is completed."""
    book = ReservationBook([CPU])
    book.keep(book.book("me", "k", "cpu", (10.0, 20.0), processors=1, now=0.0))
    launch = book.launch(1, "me", "l", processors=1, requested_time=8.0, run_time=9.0, now=0.0)
    book.keep(launch)
    assert launch.outcome is None
    for moment in (10.0, 14.0):
        (changed,) = book.due(moment)
        book.keep(changed)
    assert (changed.end_time, changed.outcome) == (14.0, Outcome.FAILED)


def test_a_job_whose_reservation_is_released_is_cancelled() -> None:
    """Without a job there is nothing to be cancelled."""
    book = ReservationBook([CPU])
    for number in (1, 2):
        book.keep(book.book("me", str(number), "cpu", (10.0, 20.0), processors=1, now=0.0))
    book.keep(book.launch(1, "me", "l", processors=1, requested_time=8.0, run_time=8.0, now=0.0))
    (running,) = book.due(11.0)
    book.keep(running)
    released = book.release(1, "me", 12.0)
    assert (released.outcome, released.end_time) == (Outcome.CANCELLED, 12.0)
    assert book.release(2, "me", 12.0).outcome is None


def test_an_unused_reservation_expires() -> None:
    """Its time passes, and nothing can be done in it any more."""
    book = ReservationBook([CPU])
    book.keep(book.book("me", "k", "cpu", (10.0, 20.0), processors=1, now=0.0))
    (expired,) = book.due(20.0)
    book.keep(expired)
    assert expired.state is ReservationState.EXPIRED
    assert book.release(1, "me", 21.0) == expired
    with pytest.raises(ReservationRefused, match="reservation 1 is expired"):
        book.launch(1, "me", "l", processors=1, requested_time=100.0, run_time=1.0, now=19.0)
    with pytest.raises(ReservationRefused, match="the window ends at 20"):
        book.book("me", "z", "cpu", (10.0, 20.0), processors=1, now=20.0)


def test_moves_end_somewhere() -> None:
    """Every state is in the table, and leads to an end."""
    assert set(MOVES) == set(ReservationState)
    ends = {state for state, targets in MOVES.items() if not targets}
    assert ends == {ReservationState.ENDED, ReservationState.RELEASED, ReservationState.EXPIRED}


def running_job(
    needed: float, *, to_the_end: bool = True, requested: float = 16.0
) -> ReservationBook:
    """Returns a book in which a job of so many reference seconds runs from 10 to 20 at most."""
    book = ReservationBook([CPU])
    book.keep(book.book("me", "k", "cpu", (10.0, 20.0), processors=2, now=0.0))
    book.keep(
        book.launch(
            1, "me", "l", processors=2, requested_time=requested, run_time=needed, now=0.0,
            to_the_end=to_the_end,
        )
    )  # fmt: skip
    (running,) = book.due(10.0)
    book.keep(running)
    return book


def test_a_job_may_run_to_the_end_of_its_reservation() -> None:
    """What it requested is no bound then; without that it is."""
    for to_the_end, end, outcome in (
        (True, 19.0, Outcome.COMPLETED),
        (False, 18.0, Outcome.FAILED),
    ):
        (ended,) = running_job(18.0, to_the_end=to_the_end).due(99.0)
        assert (ended.end_time, ended.outcome) == (end, outcome)
    (cut,) = running_job(30.0).due(99.0)
    assert (cut.end_time, cut.outcome) == (20.0, Outcome.FAILED)


def test_a_job_goes_on_in_a_reservation_that_is_extended() -> None:
    """To its own end, or to the new one; the cost is that of the window, and the key is the same."""
    book = running_job(30.0)
    longer = book.extend(1, "me", 22.0, 19.5)
    assert (longer.end, longer.run_time, longer.cut_off, longer.revision) == (22.0, 12.0, True, 4)
    assert longer.cost == pytest.approx(10.0 * 2 * 12 / 3600)
    book.keep(longer)
    assert book.free(CPU, 20.0, 22.0) == [(20.0, 22.0, 1)]
    assert book.extend(1, "me", 22.0, 19.5) == longer, "repeating is nothing"
    assert book.extend(1, "me", 5.0, 19.5) == longer
    book.keep(book.extend(1, "me", 40.0, 21.0))
    assert book.book("me", "k", "cpu", (10.0, 20.0), processors=2, now=21.0).end == 40.0
    (ended,) = book.due(99.0)
    assert (ended.end_time, ended.outcome) == (25.0, Outcome.COMPLETED)


def test_a_job_with_a_bound_of_its_own_keeps_it() -> None:
    """Moving the end of its reservation gives it no more time."""
    book = running_job(18.0, to_the_end=False)
    book.keep(book.extend(1, "me", 40.0, 12.0))
    (ended,) = book.due(99.0)
    assert (ended.end_time, ended.outcome) == (18.0, Outcome.FAILED)


def test_what_is_not_free_or_over_is_not_extended() -> None:
    """Everything stays as it is; a reservation without a job can be extended, too."""
    book = running_job(30.0)
    book.keep(book.book("you", "k", "cpu", (25.0, 30.0), processors=2, now=0.0))
    with pytest.raises(ReservationRefused, match="2 processors of cpu are not free"):
        book.extend(1, "me", 26.0, 15.0)
    assert book.extend(1, "me", 25.0, 15.0).end == 25.0
    with pytest.raises(NoSuchReservation):
        book.extend(2, "me", 50.0, 15.0)
    with pytest.raises(ReservationRefused, match="at most"):
        book.extend(2, "you", 1e12, 15.0)
    assert book.extend(2, "you", 50.0, 15.0).end == 50.0
    with pytest.raises(ReservationRefused, match="reservation 1 is over"):
        book.extend(1, "me", 25.0, 20.0)
    (ended,) = [each for each in book.due(20.0) if each.number == 1]
    book.keep(ended)
    with pytest.raises(ReservationRefused, match="reservation 1 is over"):
        book.extend(1, "me", 25.0, 20.0)
    with pytest.raises(ReservationRefused, match="reservation 2 is over"):
        book.extend(2, "you", 50.0, 30.0)


def test_each_owner_may_hold_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open ones count, of one owner; the last possible is possible, and one that is gone makes room."""
    assert RESERVATIONS_MAX == 10_000
    monkeypatch.setattr(reservations, "RESERVATIONS_MAX", 2)
    book = ReservationBook([CPU])

    def reserve(owner: str, key: str) -> None:
        window = (10.0 * len(book.reservations), 10.0 * len(book.reservations) + 10.0)
        book.keep(book.book(owner, key, "cpu", window, processors=1, now=0.0))

    reserve("me", "a")
    reserve("you", "a")
    reserve("me", "b")
    with pytest.raises(ReservationLimit):
        reserve("me", "c")
    reserve("you", "b")
    book.keep(book.release(1, "me", 0.0))
    reserve("me", "c")


def test_a_window_that_ends_now_is_past() -> None:
    """One that ends a moment later is not."""
    book = ReservationBook([CPU])
    with pytest.raises(ReservationRefused, match=r"the window ends at 10\.0, and it is 10\.0"):
        book.book("me", "k", "cpu", (0.0, 10.0), processors=1, now=10.0)
    assert book.book("me", "k", "cpu", (0.0, 10.0), processors=1, now=9.9).number == 1
