"""Values of JSON files that stand one after the other, in lists, under a key, or end in the middle."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.workload.accounting.json_text import objects_in
from lrms_sim.workload.accounting.records import AccountingError, Reading


def test_ways_to_write_many() -> None:
    """A list, lines, both: each value with the line of its end."""
    for text in ('[{"a": 1},\n{"a":\n2}]', '{"a": 1}\n{"a":\n2}\n', '[{"a": 1}]\n[{"a":\n2}]'):
        assert list(objects_in(text, Reading("f"))) == [(1, {"a": 1}), (3, {"a": 2})]


def test_those_under_a_key() -> None:
    """Wherever it stands, in files one after the other; what is no list under it is nothing of it."""
    text = '{"meta": {"jobs": {"a": 9}}, "jobs": [\n{"jobs": 1},\n{"b": 2}], "errors": []}\n{"jobs": [{"c": 3}]}'
    found = list(objects_in(text, Reading("f"), "jobs"))
    assert found == [(2, {"jobs": 1}), (3, {"b": 2}), (4, {"c": 3})]


def test_what_is_cut_gives_what_it_has() -> None:
    """The end is noted with its line, or is an error."""
    text = '{"jobs": [\n{"a": 1},\n{"a": 2},\n{"a"'
    reading = Reading("f")
    assert [value for _, value in objects_in(text, reading, "jobs")] == [{"a": 1}, {"a": 2}]
    assert reading.counts == {"unreadable": 1}
    assert reading.examples["unreadable"].line == 4
    with pytest.raises(AccountingError, match="f:4: no JSON"):
        list(objects_in(text, Reading("f", strict=True), "jobs"))
    ended = Reading("f")
    assert len(list(objects_in('{"jobs": [\n{"a": 1},\n', ended, "jobs"))) == 1
    assert ended.examples["unreadable"].problem == "no JSON: the file ends within a list"


@given(text=st.text(st.sampled_from('[]{},:"\\ \njobs1')), key=st.sampled_from([None, "jobs"]))
def test_any_text_comes_to_an_end(text: str, key: str | None) -> None:
    """Nothing is read twice or for ever, and what is read is JSON."""
    for _, value in objects_in(text, Reading("f"), key):
        json.dumps(value)
