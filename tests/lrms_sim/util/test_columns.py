"""Columns of numbers: what is converted, and what is refused by column and row."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.util.columns import moments, numbers, plain, spans

EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("unit", "second"),
    [
        ("s", 1),
        ("ms", 10**3),
        ("us", 10**6),
        ("ns", 10**9),
        ("ps", 10**12),
        ("10ms", 100),
    ],
)
def test_spans_of_any_unit(unit: str, second: int) -> None:
    """Seconds to the last bit."""
    value = np.array([3 * second + second // 4], f"timedelta64[{unit}]")
    assert spans("run_time", value).tolist() == [3 + (second // 4) / second]
    assert spans("x", np.array([10**9], "timedelta64[7ns]")).tolist() == [7]
    hours = np.array([1, 2], f"timedelta64[{'h' if unit == 's' else 'm'}]")
    assert spans("x", hours).tolist() == ([3600, 7200] if unit == "s" else [60, 120])


@given(st.integers(0, 2**62), st.integers(0, 10**9 - 1))
def test_long_spans_keep_their_nanoseconds(whole: int, part: int) -> None:
    """As a division of whole numbers has them, which a division of doubles has not."""
    nanoseconds = whole // 10**9 * 10**9 + part
    found = spans("x", np.array([nanoseconds], "timedelta64[ns]"))[0]
    assert found == nanoseconds // 10**9 + part / 10**9


def test_moments_share_a_clock() -> None:
    """Dates begin with the first of the first column; numbers and spans stay where they are."""
    days = np.array(["2024-01-03", "2024-01-02"], "datetime64[D]")
    found = moments({"a": days, "b": days.astype("datetime64[ns]") + np.timedelta64(5, "s")})
    assert found["a"].tolist() == [86400, 0]
    assert found["b"].tolist() == [86405, 5]
    months = moments({"a": np.array(["2024-01", "2024-03"], "datetime64[M]")})
    assert months["a"].tolist() == [0, 60 * 86400]
    mixed = moments({"a": [1, 2.5], "b": np.array([1, 2], "timedelta64[m]")})
    assert [mixed["a"].tolist(), mixed["b"].tolist()] == [[1, 2.5], [60, 120]]
    assert moments({"a": np.array([], "datetime64[s]")})["a"].tolist() == []
    with pytest.raises(ValueError, match="a is of dates and b is not; both or none can be"):
        moments({"a": days, "b": [1, 2]})


def test_objects_of_python() -> None:
    """Dates of every kind, with one offset or another, spans, numbers that are exact."""
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    dates = [noon, noon.astimezone(EAST) + timedelta(seconds=1)]
    assert moments({"a": dates})["a"].tolist() == [0, 1]
    assert moments({"a": [date(2024, 1, 2), date(2024, 1, 1)]})["a"].tolist() == [86400, 0]
    assert spans("a", [timedelta(seconds=1.5), timedelta(days=1)]).tolist() == [1.5, 86400]
    assert numbers("a", [Decimal("1.5"), Fraction(1, 4), 2]).tolist() == [1.5, 0.25, 2]
    big = np.array([2**62 + 1, 3], object)
    assert numbers("a", big).tolist() == [2**62 + 1, 3]
    assert (
        plain("a", np.array([np.datetime64(1, "s"), np.datetime64(2, "s")], object)).dtype.kind
        == "M"
    )
    assert numbers("a", []).tolist() == numbers("a", np.array([], object)).tolist() == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["5", "6"], "a in row 0 is '5', a text"),
        (np.array([b"5"]), "a in row 0 is b'5', a text"),
        ([True, False], "a in row 0 is True, a truth value"),
        ([1j], "complex; numbers are expected"),
        (np.array([1, True], object), "a in row 1 is True; numbers are expected"),
        ([1, None], "a in row 1 is missing"),
        ([{}, 1], r"a in row 0 is \{\}; numbers"),
        ([time(1), time(2)], "a in row 0 is datetime.time"),
        (np.array(["2024-01-01", "NaT"], "datetime64[s]"), r"a in row 1 is missing \(NaT\)"),
        (np.array([1, "NaT"], "timedelta64[s]"), r"a in row 1 is missing \(NaT\)"),
        (np.ma.array([1, 2], mask=[True, False]), "a in row 0 is masked"),
        ([[1, 2]], r"a has shape \(1, 2\); it must have one dimension"),
        (5, r"a has shape \(\)"),
        (np.array([timedelta(1), 1], object), "a has dates, spans of time or numbers in one column"),
        ([datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)], "with a time zone and dates without"),  # noqa: DTZ001  # it is what is refused
        ([2**70, 1], "beyond 64 bits"),
        (np.array([1, 2], "timedelta64[M]"), "in the unit 'M', which has no fixed length"),
    ],
)  # fmt: skip
def test_what_is_refused(values: Any, words: str) -> None:
    """The text has the column, the first row concerned and what is there."""
    with pytest.raises(ValueError, match=words):
        spans("a", values)


def test_where_numbers_are_expected() -> None:
    """Dates and spans are none, and dates are no spans."""
    with pytest.raises(ValueError, match="a is of dates; numbers are expected"):
        numbers("a", np.array([1], "datetime64[s]"))
    with pytest.raises(ValueError, match="a is of spans of time; numbers are expected"):
        numbers("a", np.array([1], "timedelta64[s]"))
    with pytest.raises(ValueError, match="a is of dates; seconds or spans of time are expected"):
        spans("a", np.array([1], "datetime64[s]"))
    whole = np.ma.array([1, 2], mask=[False, False])
    assert numbers("a", whole).tolist() == [1, 2]
