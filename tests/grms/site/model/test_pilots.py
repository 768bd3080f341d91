"""The names of pilots' jobs."""

import pytest

from grms.site.model.pilots import Pilot, key_of, number_of


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
