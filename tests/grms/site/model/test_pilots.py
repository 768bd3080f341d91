"""Pilots, and the names of their jobs."""

import pytest

from grms.site.model.pilots import PILOTS_KEPT, Pilot, PilotBook, key_of, number_of
from grms.site.model.records import PilotAsked, PilotDrained, PilotOpened, PilotOver, Record


@pytest.mark.parametrize(
    ("key", "number"),
    [
        ("pilot 1", 1),
        ("pilot 120", 120),
        ("pilot ", 0),
        ("pilot x", 0),
        ("pilot -1", 0),
        ("7", 0),
        ("a/1/7", 0),
        ("", 0),
    ],
)
def test_a_key_names_a_pilot_or_none(key: str, number: int) -> None:
    """What has only digits is another job's."""
    assert number_of(key) == number


def test_a_pilot_is_found_by_the_key_of_its_job() -> None:
    for number in (1, 9, 10, 12_345):
        assert number_of(key_of(number)) == number
        assert Pilot(number, "pool", "n", 0.0).key == key_of(number)


def test_a_pilot_is_asked_for_opened_drained_and_over() -> None:
    """Each step leaves what it says, and the first moment at which it was open; sums are of those that are over."""
    book = PilotBook()
    expected = Pilot(1, "pool", "7-1", 5.0)
    steps: list[tuple[Record, dict[str, object], str]] = [
        (PilotAsked(5.0, 1, "pool", "7-1"), {}, "asked"),
        (
            PilotOpened(6.0, 1, 90.0, "n1"),
            {"open_time": 6.0, "until": 90.0, "host": "n1", "revision": 2},
            "open",
        ),
        (PilotOpened(7.0, 1, 80.0, "n2"), {"until": 80.0, "host": "n2", "revision": 3}, "open"),
        (PilotDrained(8.0, 1, "time"), {"drained": "time", "revision": 4}, "draining"),
        (
            PilotOver(9.0, 1, "done", 12.0, 3.0),
            {"over_time": 9.0, "reason": "done", "held": 12.0, "used": 3.0, "revision": 5},
            "over",
        ),
    ]
    for record, change, state in steps:
        book.changes[type(record)](record)
        found = book.pilots[1]
        # A field without a value is nan, which is not the same as itself.
        for name in Pilot.__dataclass_fields__:
            value = change.get(name, getattr(expected, name))
            assert getattr(found, name) == pytest.approx(value, nan_ok=True), name
        assert found.state == state
        assert book.latest("pool") is found
        assert book.open("pool") is (found if state == "open" else None)
        assert list(book.present) == ([] if state == "over" else [1])
        expected = found
    assert (book.held, book.used, book.next_number) == (12.0, 3.0, 2)


def test_pilots_that_were_over_first_are_forgotten_first() -> None:
    """A resource forgets its last one with it, and no other; what they have held and used is kept."""
    book = PilotBook()
    resources = ["alone", "pool", *["pool"] * (PILOTS_KEPT - 1), "other"]
    for number, resource in enumerate(resources, 1):
        book.changes[PilotAsked](PilotAsked(1.0, number, resource, f"7-{number}"))
        book.changes[PilotOver](PilotOver(2.0, number, "", 2.0, 1.0))
    assert list(book.pilots) == list(range(3, PILOTS_KEPT + 3))
    assert book.latest("alone") is None
    assert book.latest("pool") is book.pilots[PILOTS_KEPT + 1]
    assert book.latest("other") is book.pilots[PILOTS_KEPT + 2]
    assert (book.held, book.used) == (2.0 * (PILOTS_KEPT + 2), PILOTS_KEPT + 2)
