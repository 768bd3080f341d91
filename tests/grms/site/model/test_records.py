"""Records, and how they stand in a journal."""

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.daemon.journal import RecordCodec
from grms.site.model import records as module
from grms.site.model.forgotten_keys import KeyRow
from grms.site.model.jobs import Exit, GuestRef, JobRef, OfferId, Request, StateThere
from grms.site.model.lifecycle import Outcome
from grms.site.model.partner_conduct import PromiseRow
from grms.site.model.records import KINDS, JobEnded, JobKept, JobStarted, Record
from grms.site.model.usage import UsageRow
from grms.util.dependencies import Dependency
from lrms_sim.workload.requests import Request as Needs
from tests.any_requests import any_requests

CODEC = RecordCodec(KINDS)

numbers = st.integers(1, 2**63 - 1)
times = st.floats(allow_nan=False)
texts = st.text(max_size=8)
guests = st.builds(GuestRef, texts, st.builds(OfferId, numbers, numbers))
VALUES: dict[str, st.SearchStrategy[object]] = {
    "int": numbers,
    "float": times,
    "str": texts,
    "bool": st.booleans(),
    str(bool | None): st.none() | st.booleans(),
    "bytes": st.binary(max_size=20),
    "Request": st.builds(
        Request, st.integers(1, 2**31 - 1), st.floats(1e-300, 1e300, exclude_min=True)
    )
    | any_requests().map(Request.of),
    str(Request | None): st.none() | any_requests().map(Request.of),
    str(Needs | None): st.none() | any_requests(),
    "GuestRef": guests,
    str(StateThere | None): st.none()
    | st.builds(StateThere, texts, st.builds(OfferId, numbers, numbers), times),
    str(JobRef): numbers | guests,
    "Outcome": st.sampled_from(Outcome),
    str(Outcome | None): st.none() | st.sampled_from(Outcome),
    "tuple[str, ...]": st.lists(texts, max_size=3).map(tuple),
    "tuple[int, ...]": st.lists(numbers, max_size=4).map(tuple),
    str(tuple[PromiseRow, ...]): st.lists(
        st.tuples(
            *(numbers, times, times, numbers),
            *(st.none() | times, st.none() | times),
            *(st.booleans(), st.booleans()),
        ),
        max_size=3,
    ).map(tuple),
    str(tuple[UsageRow, ...]): st.lists(
        st.builds(UsageRow, texts, st.booleans(), texts, texts, numbers, times, times, times),
        max_size=3,
    ).map(tuple),
    str(tuple[KeyRow, ...]): st.lists(
        st.tuples(st.binary(min_size=12, max_size=12), numbers, times), max_size=3
    ).map(tuple),
    str(tuple[Dependency, ...]): st.lists(
        st.builds(
            Dependency,
            st.sampled_from(["afterok", "afterany", "afternotok", "aftercorr"]),
            st.text(min_size=1, max_size=8),
        )
        | st.just(Dependency("singleton")),
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
    return st.builds(
        kind, **{field.name: VALUES[name_of(field.type)] for field in msgspec.structs.fields(kind)}
    )


@given(st.lists(st.sampled_from(KINDS).flatmap(instances), max_size=4))
def test_records_come_back_as_they_were(records: list[Record]) -> None:
    """Every kind, every value, every bit of a float."""
    again = CODEC.decode(CODEC.encode(records))
    assert again == records
    assert list(map(repr, again)) == list(map(repr, records))


def test_every_record_of_the_module_is_a_kind() -> None:
    """No kind of record is left out."""
    classes = {
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Record) and each is not Record
    }
    assert set(KINDS) == classes


def test_a_record_stands_in_the_file_by_its_name() -> None:
    """With its fields in their order."""
    record = JobEnded(3.5, 1, Outcome.COMPLETED, 3.0, 2.0, "ran at b")
    assert msgspec.msgpack.decode(CODEC.encode([record])) == [
        ["JobEnded", 3.5, 1, "completed", 3.0, 2.0, "ran at b"]
    ]
    started = JobStarted(3.5, GuestRef("b", OfferId(7, 2)), 3.0)
    assert msgspec.msgpack.decode(CODEC.encode([started])) == [
        ["JobStarted", 3.5, ["b", {"epoch": 7, "number": 2}], 3.0]
    ]


@pytest.mark.parametrize(
    "row",
    [
        ["JobForgotten", 1.0],
        ["Record", 1.0],
        ["JobKept"],
        ["JobKept", 1.0],
        ["JobKept", 1.0, 1, 2],
        ["JobKept", 1.0, "1"],
        ["JobEnded", 1.0, 1, "x", 1.0, 1.0, ""],
        ["GuestWithdrawn", 1.0, ["b", {"epoch": 1}]],
        ["GuestWithdrawn", 1.0, 1],
        ["JobStarted", 1.0, ["b"], 1.0],
        ["JobStarted", 1.0, ["b", {"epoch": 1, "number": 2}, 3], 1.0],
        ["JobKept", 1.0, ["b", {"epoch": 1, "number": 2}]],
        ["JobReceived", 1.0, 1, "ann", "", "", {"processors": 0, "requested_time": 1.0}, b""],
        {"job": 1},
    ],
)
def test_what_is_no_record_is_refused(row: object) -> None:
    """Another kind, other fields, other values."""
    with pytest.raises(msgspec.DecodeError):
        CODEC.decode(msgspec.msgpack.encode([row]))


def test_records_are_values() -> None:
    """They are compared, and kept in sets, by what they say, and cannot be changed."""
    one, same = JobKept(1.0, 2), JobKept(1.0, 2)
    assert one == same
    assert len({one, same, JobKept(1.0, 3)}) == 2
    with pytest.raises(AttributeError):
        one.job = 4  # type: ignore[misc]  # it is what is tried
