import json
import math
import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.site.facts.codec import KINDS, Row, decode, encode
from grms.site.facts.jobs import Exit, OfferId, Request
from grms.site.facts.lifecycle import Outcome
from grms.site.facts.records import (
    JobEnded,
    JobExited,
    JobKept,
    JobReceived,
    JobStarted,
    Record,
    ReservationExtended,
    RoundHeld,
)
from grms.site.facts.trust import PromiseRow

ROOT = Path(__file__).resolve().parents[4]

numbers = st.integers(1, 2**63 - 1)
times = st.floats(allow_nan=False)
texts = st.text(max_size=8)
VALUES: dict[str, st.SearchStrategy[object]] = {
    "int": numbers,
    "float": times,
    "str": texts,
    "bool": st.booleans(),
    "bytes": st.binary(max_size=20),
    "Request": st.builds(
        Request, st.integers(1, 2**31 - 1), st.floats(1e-300, 1e300, exclude_min=True)
    ),
    "OfferId": st.builds(OfferId, numbers, numbers),
    "Outcome": st.sampled_from(Outcome),
    "tuple[int, ...]": st.lists(numbers, max_size=4).map(tuple),
    str(tuple[PromiseRow, ...]): st.lists(
        st.tuples(
            *(numbers, times, times, numbers),
            *(st.none() | times, st.none() | times),
            *(st.booleans(), st.booleans()),
        ),
        max_size=3,
    ).map(tuple),
    "Exit": st.builds(Exit, st.none() | st.integers(0, 255), st.none() | st.integers(1, 127)),
}


def name_of(kind: object) -> str:
    """Returns the name of a field's type."""
    if isinstance(kind, str) or get_args(kind):
        return str(kind)
    return getattr(kind, "__name__", str(kind))


def instances(kind: type[Record]) -> st.SearchStrategy[Record]:
    """Returns records of one kind with any content."""
    return st.builds(kind, **{field.name: VALUES[name_of(field.type)] for field in fields(kind)})


@given(st.sampled_from(sorted(KINDS)).flatmap(lambda name: instances(KINDS[name])))
def test_a_record_comes_back_as_it_was(record: Record) -> None:
    """Every kind, every value, every bit of a float."""
    assert decode(encode(record)) == record


def test_every_record_of_the_module_is_a_kind() -> None:
    """No kind of record is left out."""
    text = (ROOT / "grms/site/facts/records.py").read_text(encoding="utf-8")
    assert set(KINDS) == set(re.findall(r"^class (\w+)\(Record\)", text, re.MULTILINE))


def test_a_row_is_readable() -> None:
    """Whoever opens the journal sees what happened, in words."""
    row = encode(JobEnded(3.5, 1, Outcome.COMPLETED, 3.0, 2.0, "ran at b"))
    assert row == Row(
        3.5,
        "JobEnded",
        '{"job":1,"outcome":"completed","end_time":3.0,"run_time":2.0,"reason":"ran at b"}',
        None,
    )


@pytest.mark.parametrize(
    "row",
    [
        Row(1.0, "JobForgotten", "{}", None),
        Row(1.0, "Record", "{}", None),
        Row(1.0, "JobKept", "", None),
        Row(1.0, "JobKept", "[1]", None),
        Row(1.0, "JobKept", "1", None),
        Row(1.0, "JobKept", '{"job":1,"more":2}', None),
        Row(1.0, "JobKept", '{"job":1}', b""),
        Row(1.0, "JobEnded", '{"job":1,"outcome":"x","end_time":1,"run_time":1,"reason":""}', None),
        Row(1.0, "GuestWithdrawn", '{"partner":"b","offer":[1]}', None),
    ],
)
def test_what_is_no_record_is_refused(row: Row) -> None:
    """Another kind, other fields, other values: a ValueError, whatever it is."""
    with pytest.raises(ValueError, match=r"no kind of record|this is no"):
        decode(row)


def test_a_record_of_a_plain_kind_has_no_payload() -> None:
    """The column is empty where there is nothing to run."""
    assert encode(JobKept(0.0, 1)).payload is None


@pytest.mark.parametrize(
    ("record", "body"),
    [
        (
            JobReceived(1.0, 7, 'a"b', "ü\n\ud800", "\U0001f600", Request(3, 1e22), b"%s"),
            {
                "job": 7,
                "user": 'a"b',
                "idempotency_key": "ü\n\ud800",
                "name": "\U0001f600",
                "request": [3, 1e22],
            },
        ),
        (JobStarted(1.0, 7, math.nan), {"job": 7, "start_time": math.nan}),
        (JobStarted(1.0, 7, -math.inf), {"job": 7, "start_time": -math.inf}),
        (JobExited(1.0, 7, Exit(None, 9)), {"job": 7, "exit": [None, 9]}),
        (RoundHeld(1.0, True, (4, 5)), {"over": True, "left_out": [4, 5]}),
        (
            ReservationExtended(1.0, 2, 5e-324, 0.1, False, 2**53 + 0.0),
            {"reservation": 2, "end": 5e-324, "run_time": 0.1, "cut_off": False, "cost": 2.0**53},
        ),
    ],
)
def test_a_body_is_what_the_library_makes_of_its_fields(
    record: Record, body: dict[str, object]
) -> None:
    """Texts with any characters, every float, truth and lists are written as JSON has them."""
    assert encode(record).body == json.dumps(body, separators=(",", ":"))
