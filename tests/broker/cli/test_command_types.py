from contextlib import suppress

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.command_types import duration, moment, preference
from broker.io.import_options import MappingRule, mapping_rule


def test_times_have_units() -> None:
    """Seconds, minutes, hours and days; plain numbers are seconds."""
    texts = ["10s", "3min", "3 m", "1.5h", "2d", "7", " 0.25s "]
    assert [duration(text) for text in texts] == [10, 180, 180, 5400, 172_800, 7, 0.25]


def test_moments_are_dates_or_seconds() -> None:
    """As in files."""
    assert moment("2026-03-02T08:00Z") == 1_772_438_400.0
    assert moment("12.5") == 12.5


def test_preferences_are_words_or_numbers() -> None:
    """Fast is 0, cheap is 1."""
    assert [preference(text) for text in ("fast", "cheap", "0.25")] == [0.0, 1.0, 0.25]


def test_mappings_have_a_pattern_and_targets() -> None:
    """The last sign parts them, so that a pattern may have one."""
    assert mapping_rule("blast*=gpu, luebeck") == MappingRule("blast*", ("gpu", "luebeck"))
    assert mapping_rule("a=b=c") == MappingRule("a=b", ("c",))


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (duration, "10 parsecs", "'10 parsecs' is no time; write 10s, 3min or 2h"),
        (duration, "-3s", "is no time"),
        (duration, "", "is no time"),
        (moment, "tomorrow", "is 'tomorrow'; it must be a number of seconds"),
        (moment, "nan", "is nan; it must be"),
        (moment, "2026-03-02T08:00", "needs an offset"),
        (preference, "dear", "'dear' is neither fast nor cheap nor from 0 to 1"),
        (preference, "nan", "is neither"),
        (mapping_rule, "blast", "'blast' is no mapping; write 'blast*=gpu'"),
        (mapping_rule, "=gpu", "is no mapping"),
        (mapping_rule, "x= ,", "is no mapping"),
    ],
)
def test_what_cannot_be_read_is_said(read: object, text: str, said: str) -> None:
    """The text says what would do."""
    assert callable(read)
    with pytest.raises(click.BadParameter) as caught:
        read(text)
    assert said in caught.value.message


@given(st.text())
def test_any_text_is_read_or_said_to_be_wrong(text: str) -> None:
    """No text ends in another exception."""
    for read in (duration, moment, preference, mapping_rule):
        with suppress(click.BadParameter):
            read(text)
