"""The reading of rows: whatever they say, it is what the standard library makes of them."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grms.kit.journal import row_checksum
from grms.site.facts._rows import Form, RowError, check, hand_over
from grms.site.facts.codec import form_of

NAMES = ("job", "user", "more")
FORM = Form("Some", NAMES, (None, None, None), -1)

scalars = (
    st.integers(-(10**25), 10**25)
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["ann", "", '"', "\\", "\x7f", 0, -0.0, 10**17, 10**18, 1e22, 5e-324])
    | st.booleans()
    | st.none()
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3), max_leaves=4)
bodies = st.tuples(values, values, values).map(
    lambda row: json.dumps(dict(zip(NAMES, row, strict=True)), separators=(",", ":"))
)


def plainly(body: str) -> str:
    """Returns the values of a body as the standard library reads it; empty where it is none."""
    try:
        found, end = json.JSONDecoder().scan_once(body, 0)  # type: ignore[attr-defined]  # not in the stubs
        if not isinstance(found, dict) or len(found) != len(NAMES) or end != len(body):
            return ""
        return repr([found[name] for name in NAMES])
    except (ValueError, KeyError, StopIteration):
        return ""


def by_form(body: str) -> str:
    """Returns the same by the form."""
    try:
        return repr(FORM.values(body, None))
    except ValueError:
        return ""


@given(bodies)
def test_what_is_written_is_read(body: str) -> None:
    """Every value, every bit of a float, the types of numbers."""
    assert plainly(body)
    assert by_form(body) == plainly(body)


@given(
    bodies,
    st.integers(0, 60),
    st.integers(0, 2),
    st.text('0123456789.eE+-"\\,:[]{} ué', max_size=2),
)
@example('{"job":0,"user":1,"more":2}', 7, 0, "0")
@example('{"job":1,"user":1,"more":2}', 8, 0, ".")
@example('{"job":1,"user":1,"more":2}', 8, 0, "e")
@example('{"job":1,"user":1,"more":2308}', 25, 0, "E")
@example('{"job":1,"user":[1],"more":2}', 18, 1, ",")
@example('{"job":1,"user":1,"more":2}', 26, 1, "")
@example('{"job":"a","user":1,"more":2}', 8, 0, "\n")
def test_what_was_changed_is_read_or_refused_alike(body: str, at: int, cut: int, put: str) -> None:
    """A character more, less or other: the same values, or the same refusal."""
    changed = body[:at] + put + body[at + cut :]
    assert by_form(changed) == plainly(changed)


def test_a_text_that_comes_again_is_one_object() -> None:
    """Of a hundred thousand jobs of one user the name is kept once."""
    first, second = (FORM.values(f'{{"job":{n},"user":"ann","more":""}}', None) for n in (1, 2))
    assert first[1] is second[1]
    assert FORM.values('{"job":3,"user":"anna","more":""}', None)[1] == "anna"
    assert FORM.values('{"job":3,"user":"an","more":""}', None)[1] == "an"


def test_fields_are_made_of_values_and_the_payload_is_among_them() -> None:
    """As the kind of record has them."""
    form = form_of("JobReceived")
    body = '{"job":1,"user":"ann","idempotency_key":"k","name":"","request":[2,3.5]}'
    *_, request, payload = form.values(body, b"runs")
    assert (request.processors, request.requested_time, payload) == (2, 3.5, b"runs")
    with pytest.raises(ValueError, match="payload is missing"):
        form.values(body, None)
    with pytest.raises(ValueError, match="processors is 0"):
        form.values(body.replace("[2,", "[0,"), b"")


def rows_of(moments: list[float]) -> list[tuple[Any, ...]]:
    """Returns rows as a journal has them, each with its number and checksum."""
    rows: list[tuple[Any, ...]] = []
    checksum = 0
    for number, moment in enumerate(moments, start=1):
        row = (moment, "JobKept", f'{{"job":{number}}}', b"x" * (number % 3) or None)
        checksum = row_checksum(checksum, number, row)
        rows.append((*row, number, checksum))
    return rows


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=6))
@example([1.0, 1e16, 1e17, 5e-324, -0.0, float("inf")])
def test_rows_that_were_written_are_in_order(moments: list[float]) -> None:
    """Whatever the moments are, also in two parts."""
    rows = rows_of(moments)
    assert check(rows, 1, 0) == rows[-1][5]
    assert check(rows[1:], 2, rows[0][5]) == rows[-1][5]


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, 2.5), (0, 2), (1, "JobLost"), (2, '{"job":9}'), (2, None), (3, b"y"), (3, b""), (5, 1)],
)
def test_a_change_is_noticed(place: int, value: object) -> None:
    """Of anything in a row; and a row that is missing."""
    rows = rows_of([1.0, 2.0, 3.0])
    changed = [*rows[1]]
    changed[place] = value
    with pytest.raises(ValueError, match="record 2 is not what was written"):
        check([rows[0], tuple(changed), rows[2]], 1, 0)
    with pytest.raises(ValueError, match="record 2 is missing"):
        check([rows[0], rows[2]], 1, 0)


def test_rows_go_to_whoever_takes_them() -> None:
    """In order: the fields to those who take fields, the row to others; an error has its number."""
    taken: list[object] = []
    rows = [(1.0, "JobKept", '{"job":7}', None, 1), (2.0, "Other", "", None, 2)]
    takers = {"JobKept": (form_of("JobKept"), lambda *values: taken.append(values))}
    assert hand_over(rows, takers, taken.append) == 1.0
    assert taken == [(1.0, 7), rows[1]]
    assert hand_over(rows[1:], takers, taken.append) == -math.inf
    with pytest.raises(RowError, match="this is no JobKept") as error:
        hand_over([(1.0, "JobKept", '{"job":', None, 5)], takers, taken.append)
    assert error.value.number == 5


def test_a_kind_without_a_form_is_an_error() -> None:
    """What takes it has nothing to be given."""
    takers: dict[str, Any] = {"JobKept": (None, print)}
    with pytest.raises(TypeError, match="records of kind JobKept have no form"):
        hand_over([(1.0, "JobKept", '{"job":7}', None, 1)], takers, print)
