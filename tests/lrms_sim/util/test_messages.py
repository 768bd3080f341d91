import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.util import messages


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 s"),
        (0.0284, "28 ms"),
        (0.9999, "1 s"),
        (12.34, "12.3 s"),
        (59.96, "1 min"),
        (60.0, "1 min"),
        (61.0, "1 min 1 s"),
        (3599.9, "1 h"),
        (3660.0, "1 h 1 min"),
        (86399.0, "1 d"),
        (86400.0 * 5 + 7300, "5 d 2 h"),
        (-90.0, "−1 min 30 s"),
        (math.nan, "–"),
    ],
)
def test_durations_are_said_in_two_units(value: float, text: str) -> None:
    """Durations round to their smaller unit and carry into the larger one."""
    assert messages.duration(value) == text


@given(st.floats(0, 1e10))
def test_durations_never_show_a_full_smaller_unit(value: float) -> None:
    """No duration reads 60 s, 60 min, 24 h or 1000 ms."""
    parts = messages.duration(value).split()
    amounts = dict(zip(parts[1::2], map(float, parts[::2]), strict=True))
    limits = {"ms": 1000, "s": 60, "min": 60, "h": 24}
    assert all(amounts.get(unit, 0) < limit for unit, limit in limits.items())


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.812, "+81.2%"), (-0.035, "−3.5%"), (0.0, "±0.0%"), (-0.0004, "±0.0%"), (math.nan, "–")],
)
def test_changes_carry_their_sign(value: float, text: str) -> None:
    """A change that rounds to nothing is neither plus nor minus."""
    assert messages.change(value) == text


def test_numbers_are_grouped_and_rounded() -> None:
    """Counts and seconds have commas; ratios have fewer digits the larger they are."""
    assert messages.count(1234567) == "1,234,567"
    assert messages.seconds(475699.8689) == "475,699.87"
    assert [messages.factor(value) for value in (1.234, 12.34, 1234.5)] == ["1.23", "12.3", "1,234"]
    assert [f(math.nan) for f in (messages.seconds, messages.factor, messages.share)] == ["–"] * 3


def test_unknown_words_suggest_the_nearest() -> None:
    """Case does not matter for the suggestion; without one there is a list."""
    assert messages.unknown("log", "KTH", ["kth", "ctc"]) == (
        "'KTH' is no log, did you mean 'kth'? there are: kth, ctc"
    )
    assert messages.unknown("partner", "x", []) == "'x' is no partner; there are: none"
    many = messages.unknown("workflow", "x", [f"w{number}" for number in range(2000)])
    assert many.endswith(", w58, w59 and 1,940 more")


def test_long_values_are_cut() -> None:
    """An error repeats at most so much of a value."""
    assert messages.shown("x" * 100) == "'" + "x" * 56 + "..."
    assert len(messages.shown(list(range(1000)))) == messages.SHOWN_MAX
    assert messages.shown(True) == "True"


def test_printable_text_steers_nothing() -> None:
    """Control and format characters are spelled out; letters of all languages stay."""
    assert messages.printable("Königliche 計算機, 80 %") == "Königliche 計算機, 80 %"
    assert messages.printable("a\tb\x1b[2J\x00\x7f\x9b\u2028\u202e") == (
        r"a b\x1b[2J\x00\x7f\x9b\u2028\u202e"
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7", 7), ("10s", 10), (" 3 min ", 180), ("3m", 180), ("1.5h", 5400), ("2d", 172_800)],
)
def test_durations_are_read_with_their_unit(text: str, seconds: float) -> None:
    """A number alone is seconds."""
    assert messages.duration_of(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-3s", "1e3s", "15 minutes", "3 min 5 s", "٣s"])
def test_what_is_no_duration_is_none(text: str) -> None:
    """Nothing is guessed."""
    assert messages.duration_of(text) is None


@given(st.text())
def test_what_is_shown_is_printable(text: str) -> None:
    """Nothing is left that a terminal would act on; an ordinary text stays as it is."""
    shown = messages.printable(text)
    assert shown.isprintable()
    assert shown == text or not text.isprintable()
