"""Reservations of journals of before: notes of JSON, which become records at the first start.

Up to journals of version 3 every reservation was a note of its own, with all its attributes as they were
last. The records that are made of it lead to the same reservation, down to its revision. How its end
was moved, and when each thing happened that left no moment behind, the notes have not kept: such a record
has the moment of the journal's last record.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from grms.site.engine.journal import Journal
from grms.site.facts.lifecycle import ReservationState
from grms.site.facts.records import (
    Record,
    ReservationBooked,
    ReservationEnded,
    ReservationExpired,
    ReservationExtended,
    ReservationLaunched,
    ReservationReleased,
    ReservationStarted,
)

COUNT_NOTE: Final = "reservations"
"""Under which such a journal has the number of the last reservation."""


def take_over_notes(journal: Journal) -> int:
    """Makes records of a journal's notes of reservations; returns how many reservations these were.

    All of it or nothing: after a crash, or a full disk, the next start does it.

    Args:
        journal: of the site.

    Raises:
        JournalDamagedError: a note is not what was written.
        JournalError: the disk has failed, or is full.
    """
    last = int(journal.note(COUNT_NOTE) or 0)
    if not last:
        return 0
    records: list[Record] = []
    count = 0
    for number in range(1, last + 1):
        key = f"reservation/{number}"
        text = journal.note(key)
        if text is not None:
            count += 1
            try:
                records += records_of(text, journal.last_time)
            except (ValueError, KeyError, TypeError) as error:
                raise journal.damaged(f"the note {key!r} is no reservation ({error!r})") from error
    if records:
        journal.take_over(records, "reservation")
    return count


def records_of(text: str, moment: float) -> Iterator[Record]:
    """Yields the records that lead to a reservation as a note has it.

    Args:
        text: the note.
        moment: of what left none, seconds.

    Raises:
        ValueError, KeyError, TypeError: this is no reservation.
    """
    values: dict[str, Any] = json.loads(text)
    number, state = int(values["number"]), ReservationState(values["state"])
    run_time, cut_off, cost = values["run_time"], values["cut_off"], values["cost"]
    launched, started = bool(values["launch_key"]), values["start_time"] is not None
    # Fields that came later are missing in the oldest notes.
    booked_end = _or(values.get("booked_end"), values["end"])
    yield ReservationBooked(
        moment,
        number,
        values["owner"],
        values["key"],
        values["resource_id"],
        values["begin"],
        booked_end,
        values["processors"],
        cost,
    )
    # Every change of it but a move was an extension.
    ended = state in {
        ReservationState.ENDED,
        ReservationState.RELEASED,
        ReservationState.EXPIRED,
    }
    for _ in range(values["revision"] - 1 - launched - started - ended):
        yield ReservationExtended(moment, number, values["end"], run_time, cut_off, cost)
    if launched:
        needed_time, to_the_end = values.get("needed_time", 0.0), values.get("to_the_end", False)
        yield ReservationLaunched(
            _or(values["launch_time"], moment),
            number,
            values["launch_key"],
            run_time,
            cut_off,
            needed_time,
            to_the_end,
        )
    if started:
        yield ReservationStarted(moment, number, values["start_time"])
    if state is ReservationState.ENDED:
        yield ReservationEnded(moment, number, values["end_time"])
    elif state is ReservationState.RELEASED:
        yield ReservationReleased(_or(values["end_time"], moment), number)
    elif state is ReservationState.EXPIRED:
        yield ReservationExpired(moment, number)


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else float(value)
