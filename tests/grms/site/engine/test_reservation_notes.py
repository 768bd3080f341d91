"""Reservations of journals of before: every note leads to the reservation it was."""

import dataclasses
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.site.engine.journal import (
    RESERVATIONS_VERSION,
    Journal,
    JournalDamagedError,
    JournalFullError,
)
from grms.site.engine.reservation_notes import COUNT_NOTE, records_of, take_over_notes
from grms.site.facts.events import (
    ExtendReservation,
    LaunchReservation,
    ReleaseReservation,
    ReservationsDue,
)
from grms.site.facts.records import Record, ReservationBooked
from grms.site.facts.reservations import Reservation, ReservationBook, Resource
from tests.grms.site.core.test_reservations import Desk, job

MOMENT = 77.0


def note_of(reservation: Reservation) -> str:
    """Returns a reservation as journals of before had it."""
    values: dict[str, Any] = dataclasses.asdict(reservation)
    values |= {"state": reservation.state.value}
    if reservation.booked_end == reservation.end:
        values["booked_end"] = math.nan
    for name in ("launch_time", "start_time", "end_time", "booked_end"):
        if math.isnan(values[name]):
            values[name] = None
    return json.dumps(values)


def book_of(records: Iterable[Record]) -> ReservationBook:
    """Returns the book that records make."""
    book = ReservationBook([Resource("cpu")], 1000)
    for record in records:
        book.changes[type(record)](record)
    return book


steps = st.lists(
    st.tuples(st.sampled_from(["launch", "extend", "release", "wait"]), st.integers(1, 9)),
    max_size=6,
)


@given(story=steps, to_the_end=st.booleans())
def test_a_note_leads_to_the_reservation_it_was(
    story: list[tuple[str, int]], *, to_the_end: bool
) -> None:
    """Whatever has happened to it, with its revision and every moment that it knows."""
    desk = Desk()
    desk.book(3.0, 20.0)
    for act, number in story:
        held = desk.state.memory.reservations.reservations[1]
        if act == "launch":
            values = job(2.0 * number, requested=9.0, to_the_end=to_the_end)
            desk(LaunchReservation, owner="me", **values)
        elif act == "extend" and held.is_open:
            desk(ExtendReservation, owner="me", reservation=1, end=20.0 + number)
        elif act == "release":
            desk(ReleaseReservation, owner="me", reservation=1)
        else:
            desk.now += number
            desk(ReservationsDue)
    kept = desk.state.memory.reservations.reservations[1]
    again = book_of(records_of(note_of(kept), MOMENT)).reservations[1]
    assert repr(again) == repr(kept)


def test_the_oldest_notes_have_fewer_fields() -> None:
    """What came later means nothing there."""
    desk = Desk()
    desk.book(3.0, 20.0)
    desk.launch(2.0)
    values = json.loads(note_of(desk.state.memory.reservations.reservations[1]))
    for name in ("needed_time", "to_the_end", "booked_end"):
        del values[name]
    (found,) = book_of(records_of(json.dumps(values), MOMENT)).reservations.values()
    assert (found.needed_time, found.to_the_end, found.booked_end) == (0.0, False, 20.0)
    assert (found.run_time, found.launch_time) == (1.0, 0.0)


def test_what_left_no_moment_has_the_one_that_is_given() -> None:
    """A booking was some time before; it is not said to be of the future."""
    desk = Desk()
    desk.book(3.0, 20.0)
    (record,) = records_of(note_of(desk.state.memory.reservations.reservations[1]), MOMENT)
    assert isinstance(record, ReservationBooked)
    assert record.time == MOMENT


def old_journal(path: Path, count: int = 3) -> list[Reservation]:
    """Makes a journal of before with some reservations, and returns them."""
    desk = Desk()
    for number in range(1, count + 1):
        desk.now = 20.0 * number
        desk.book(desk.now, desk.now + 10.0, f"k{number}")
        desk.launch(4.0, number)
    kept = list(desk.state.memory.reservations.reservations.values())
    with Journal(path, "a") as journal:
        write_notes(journal, kept)
        # A crash between a reservation and the count: nobody was told of it.
        journal.set_note(f"reservation/{count + 1}", "half")
        journal.set_note("clock", "wall")
    return kept


def write_notes(journal: Journal, kept: list[Reservation]) -> None:
    """Puts reservations into a journal as a program of before did."""
    for one in kept:
        journal.set_note(f"reservation/{one.number}", note_of(one))
    journal.set_note(COUNT_NOTE, str(len(kept)))


def test_notes_become_records_once(tmp_path: Path) -> None:
    """They are gone then; other notes stay, and a program of before sees a later version."""
    kept = old_journal(tmp_path / "a")
    with Journal(tmp_path / "a", "a") as journal:
        assert take_over_notes(journal) == 3
        assert take_over_notes(journal) == 0
        book = book_of(journal.records())
        assert repr(list(book.reservations.values())) == repr(kept)
        assert book.next_number == 4
        names = (COUNT_NOTE, *(f"reservation/{number}" for number in range(1, 5)))
        assert [journal.note(name) for name in names] == [None] * 5
        assert journal.note("clock") == "wall"
        assert journal._pragma("user_version") == RESERVATIONS_VERSION


def test_a_journal_without_reservations_stays_as_it_is(tmp_path: Path) -> None:
    """Its version, too."""
    with Journal(tmp_path / "a", "a") as journal:
        before = journal._pragma("user_version")
        assert take_over_notes(journal) == 0
        assert (journal.count, journal._pragma("user_version")) == (0, before)


def test_nothing_is_lost_where_there_is_no_room(tmp_path: Path) -> None:
    """The notes stay for the next start."""
    kept = old_journal(tmp_path / "a", 60)
    with Journal(tmp_path / "a", "a") as journal:
        pages = journal._pragma("page_count")
        journal._connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(JournalFullError):
            take_over_notes(journal)
        assert (journal.count, journal.note(COUNT_NOTE)) == (0, "60")
        journal._connection.execute("PRAGMA max_page_count=1000000")
        assert take_over_notes(journal) == 60
        assert repr(list(book_of(journal.records()).reservations.values())) == repr(kept)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"number": 1, "state": "lost"}'])
def test_a_note_that_is_none_is_damage(tmp_path: Path, text: str) -> None:
    """The error names it, and nothing is changed."""
    old_journal(tmp_path / "a")
    with Journal(tmp_path / "a", "a") as journal:
        journal.set_note("reservation/2", text)
        with pytest.raises(JournalDamagedError, match="the note 'reservation/2' is no reservation"):
            take_over_notes(journal)
        assert journal.count == 0
