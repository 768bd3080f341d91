"""The book of reservations as records make it: what is held, what is free, what is due, what is kept."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.site.model.lifecycle import IllegalMove, Outcome, ReservationState
from grms.site.model.records import (
    Record,
    ReservationBooked,
    ReservationEnded,
    ReservationExpired,
    ReservationLaunched,
    ReservationMoved,
    ReservationReleased,
    ReservationStarted,
    ReservationTally,
)
from grms.site.model.reservations import WINDOW_MAX_S, Reservation, ReservationBook, Resource

CPU = Resource("cpu", {"kind": "cpu"}, processors=3, speed=2.0, cost_per_hour=10.0)
GPU = Resource("gpu", processors=1)


def made(*records: Record, kept: int = 100) -> ReservationBook:
    """Returns a book of records."""
    book = ReservationBook([CPU, GPU], kept)
    for record in records:
        book.changes[type(record)](record)
    return book


def booked(
    number: int = 1,
    begin: float = 10.0,
    end: float = 20.0,
    processors: int = 1,
    *,
    resource: str = "cpu",
    owner: str = "me",
) -> ReservationBooked:
    """Returns the record of a reservation; its key has its number."""
    key = f"k{number}"
    return ReservationBooked(0.0, number, owner, key, resource, begin, end, processors, 5.0)


LAUNCHED = ReservationLaunched(2.0, 1, "go", 4.0, cut_off=True, needed_time=6.0, to_the_end=True)
STARTED = ReservationStarted(10.5, 1, 10.0)
ENDED = ReservationEnded(15.0, 1, 14.0)
MOVED = ReservationMoved(3.0, 1, 10.0, 25.0, 5.0, cut_off=False, cost=7.0)


def test_a_resource_costs_by_processors_and_time() -> None:
    """Per processor and hour."""
    assert CPU.cost(2, 100.0, 1900.0) == 10.0
    assert WINDOW_MAX_S == 315_360_000.0


def test_what_is_booked_is_known_by_number_and_key() -> None:
    """With everything it was booked with, and its owner alone finds it."""
    book = made(booked(owner="me"), booked(2, owner="you"))
    first = book.get(1, "me")
    assert first == Reservation(1, "me", "k1", "cpu", 10.0, 20.0, 1, 5.0, booked=(10.0, 20.0))
    assert (first.state, first.revision, first.is_open) == (ReservationState.BOOKED, 1, True)
    assert book.get(1, "you") is None
    assert book.get(3, "me") is None
    assert book.keys == {("me", "k1"): 1, ("you", "k2"): 2}
    assert book.open_by_owner == {"me": 1, "you": 1}
    assert list(book.open) == [1, 2]
    assert book.next_number == 3


def test_each_record_changes_what_it_says() -> None:
    """A job is launched, starts and ends; each is a change, and the window stays."""
    book = made(booked(), LAUNCHED)
    one = book.reservations[1]
    assert (one.launch_key, one.launch_time, one.run_time) == ("go", 2.0, 4.0)
    assert (one.cut_off, one.needed_time, one.to_the_end) == (True, 6.0, True)
    assert (one.state, one.revision) == (ReservationState.LAUNCHED, 2)
    assert math.isnan(one.start_time)
    book = made(booked(), LAUNCHED, STARTED)
    one = book.reservations[1]
    assert (one.state, one.start_time, one.revision) == (ReservationState.RUNNING, 10.0, 3)
    assert one.outcome is None
    book = made(booked(), LAUNCHED, STARTED, ENDED)
    one = book.reservations[1]
    assert (one.state, one.end_time, one.end, one.revision) == (
        ReservationState.ENDED,
        14.0,
        20.0,
        4,
    )
    assert (book.open, book.open_by_owner, list(book.over)) == ({}, {}, [1])
    assert book.get(1, "me") is one


def test_a_move_changes_the_window_and_what_it_says_of_the_job() -> None:
    """What was booked stays known."""
    one = made(booked(), LAUNCHED, MOVED).reservations[1]
    assert (one.end, one.booked, one.run_time, one.cut_off) == (25.0, (10.0, 20.0), 5.0, False)
    assert (one.cost, one.revision, one.state) == (7.0, 3, ReservationState.LAUNCHED)


def test_a_job_has_the_outcome_of_its_reservation() -> None:
    """Cut off is failed, released is cancelled; without a job there is none."""

    def outcome(*records: Record) -> Outcome | None:
        return made(booked(), *records).reservations[1].outcome

    whole = ReservationLaunched(2.0, 1, "go", 4.0, cut_off=False, needed_time=4.0, to_the_end=False)
    released = ReservationReleased(12.0, 1)
    assert outcome(LAUNCHED, STARTED, ENDED) is Outcome.FAILED
    assert outcome(whole, STARTED, ENDED) is Outcome.NOT_RUN
    assert outcome(LAUNCHED, STARTED, released) is Outcome.CANCELLED
    assert outcome(LAUNCHED, released) is Outcome.CANCELLED
    assert outcome(released) is None
    assert outcome(ReservationExpired(20.0, 1)) is None


def test_what_is_released_ends_then_if_it_ran() -> None:
    """A job that had not started has no end."""
    released = ReservationReleased(12.0, 1)
    assert made(booked(), LAUNCHED, STARTED, released).reservations[1].end_time == 12.0
    assert math.isnan(made(booked(), LAUNCHED, released).reservations[1].end_time)


def test_records_that_contradict_each_other_are_noticed() -> None:
    """What is over does not start; what nobody booked is not launched."""
    book = made(booked(), ReservationExpired(20.0, 1))
    with pytest.raises(
        IllegalMove, match=r"^reservation 1 cannot become LAUNCHED; so far: EXPIRED$"
    ):
        book.changes[ReservationLaunched](LAUNCHED)
    with pytest.raises(KeyError):
        book.changes[ReservationMoved](MOVED)
    with pytest.raises(KeyError):
        made(LAUNCHED)
    assert book.reservations[1].revision == 2


def test_time_has_its_moment_in_every_state() -> None:
    """The end, the beginning or the launch, the end of the run; none when it is over."""
    begin = 10.0
    late = ReservationLaunched(12.0, 1, "go", 4.0, cut_off=False, needed_time=4.0, to_the_end=False)
    for records, moment in (
        ([booked(begin=begin)], 20.0),
        ([booked(), LAUNCHED], 10.0),
        ([booked(), late], 12.0),
        ([booked(), LAUNCHED, STARTED], 14.0),
        ([booked(), MOVED], 25.0),
        ([booked(), LAUNCHED, STARTED, ENDED], math.inf),
    ):
        book = made(*records)
        assert book.reservations[1].due_time == moment
        assert book.next_time == moment


def test_the_next_moment_is_the_earliest() -> None:
    """Whatever became of those that were due before; equal moments by number."""
    book = made(booked(1, end=30.0), booked(2, end=20.0), booked(3, end=20.0))
    assert (book.next_time, book.next_due.number) == (20.0, 2)
    book.changes[ReservationReleased](ReservationReleased(1.0, 2))
    assert (book.next_time, book.next_due.number) == (20.0, 3)
    book.changes[ReservationMoved](ReservationMoved(1.0, 3, 10.0, 40.0, 0.0, False, 1.0))
    assert (book.next_time, book.next_due.number) == (30.0, 1)
    assert made().next_time == math.inf


def test_moments_that_no_longer_count_are_not_gathered() -> None:
    """A book that changes for ever does not grow; nor is it put in order at every change."""
    book = made(booked(1, end=1e9), booked(2, end=1000.0))
    lengths = []
    for number in range(500):
        book.changes[ReservationMoved](
            ReservationMoved(1.0, 1, 10.0, 1e9 + number, 0.0, cut_off=False, cost=1.0)
        )
        lengths.append(len(book._due))
        assert book.next_time == 1000.0
    assert max(lengths) == 2 * 2 + 64
    assert lengths[:10] == list(range(3, 13))
    assert book.next_due.number == 2
    many = made(*(booked(number) for number in range(1, 151)))
    for _ in range(10):
        many.changes[ReservationMoved](MOVED)
    assert len(many._due) == 160


def test_so_many_that_are_over_are_remembered() -> None:
    """The one that was over first is forgotten, and its key with it; open ones stay."""
    book = made(booked(1), booked(2), booked(3), booked(4), kept=2)
    for number in (3, 1, 4):
        book.changes[ReservationReleased](ReservationReleased(1.0, number))
    assert list(book.over) == [1, 4]
    assert list(book.reservations) == [1, 2, 4]
    assert ("me", "k3") not in book.keys
    assert [book.forgotten("me", f"k{number}") for number in (1, 2, 3)] == [0, 0, 3]
    assert book.forgotten("you", "k3") == 0
    assert book.open_by_owner == {"me": 1}
    assert book.next_number == 5


def test_a_tally_has_the_next_number() -> None:
    """Whatever became of those before."""
    assert made(ReservationTally(1.0, 7)).next_number == 7


def test_what_is_held_is_not_free() -> None:
    """Stretches in order, joined where nothing changes; other resources and what is over do not count."""
    book = made(
        booked(1, 10.0, 20.0, 1),
        booked(2, 15.0, 30.0, 2),
        booked(3, 20.0, 25.0, 1),
        booked(4, 12.0, 14.0, 1, resource="gpu"),
        booked(5, 10.0, 40.0, 1),
        ReservationReleased(1.0, 5),
    )
    assert book.free(CPU, 0.0, 40.0) == [
        (0.0, 10.0, 3),
        (10.0, 15.0, 2),
        (25.0, 30.0, 1),
        (30.0, 40.0, 3),
    ]
    assert book.free(CPU, 11.0, 13.0) == [(11.0, 13.0, 2)]
    assert book.free(CPU, 16.0, 20.0) == []
    assert book.free(GPU, 0.0, 20.0) == [(0.0, 12.0, 1), (14.0, 20.0, 1)]
    assert book.free(CPU, 30.0, 31.0) == [(30.0, 31.0, 3)]
    assert book.free(CPU, 5.0, 10.0) == [(5.0, 10.0, 3)]


def test_a_resource_that_has_become_smaller_has_nothing_free() -> None:
    """A site's configuration may change while promises stand."""
    book = made(booked(1, 10.0, 20.0, 3))
    small = Resource("cpu", processors=2)
    assert book.free(small, 0.0, 30.0) == [(0.0, 10.0, 2), (20.0, 30.0, 2)]
    assert not book.is_free(small, 1, 12.0, 13.0)


def test_a_window_is_free_where_all_of_it_is() -> None:
    """From its first moment to its last."""
    book = made(booked(1, 10.0, 20.0, 2))
    assert book.is_free(CPU, 1, 0.0, 30.0)
    assert book.is_free(CPU, 2, 0.0, 10.0)
    assert book.is_free(CPU, 3, 20.0, 30.0)
    for begin, end in ((0.0, 11.0), (10.0, 20.0), (19.0, 30.0), (0.0, 30.0)):
        assert not book.is_free(CPU, 2, begin, end)
    full = made(booked(1, 10.0, 20.0, 3))
    for begin, end in ((0.0, 11.0), (10.0, 20.0), (19.0, 30.0), (0.0, 30.0)):
        assert not full.is_free(CPU, 1, begin, end)
    assert full.is_free(CPU, 3, 0.0, 10.0)
    assert not full.is_free(CPU, 4, 0.0, 10.0)


windows = st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(1, 3))


@given(st.lists(windows, max_size=12), st.integers(0, 12), st.integers(1, 8))
def test_what_is_free_is_what_is_not_promised(
    held: list[tuple[int, int, int]], begin: int, length: int
) -> None:
    """Moment by moment, as counted by hand."""
    book = made(*(booked(n, b, b + each, p) for n, (b, each, p) in enumerate(held, 1)))
    left = {
        moment: 3 - sum(p for b, each, p in held if b <= moment < b + each)
        for moment in range(begin, begin + length)
    }
    free = book.free(CPU, begin, begin + length)
    for moment, number in left.items():
        assert sum(n for a, z, n in free if a <= moment < z) == max(0, number)
    assert all(a < z for a, z, _ in free)
    assert all(
        one[1] < two[0] or (one[1] == two[0] and one[2] != two[2]) for one, two in pairwise(free)
    )
    for processors in (1, 2, 3):
        fits = min(left.values()) >= processors
        assert book.is_free(CPU, processors, begin, begin + length) is fits
