"""ClassAds, in each of the ways in which they are written; jobs and events of them have tests of their own."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.workload.accounting.class_ads import first_positive, read_ads, text, value_of, whole
from lrms_sim.workload.accounting.records import AccountingError, Reading
from tests.lrms_sim.workload.accounting.test_htcondor import long, xml


def read(words: str) -> list[dict[str, Any]]:
    """Returns the ads of a file."""
    return [ad for _, ad in read_ads(words.splitlines(), Reading("file"))]


VALUES = st.one_of(
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.floats(-1e6, 1e6),
    st.text(st.sampled_from("ab =.<&>'é"), max_size=8),
)
ADS = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "c2"]), VALUES, min_size=1), min_size=1, max_size=3
)


@given(ads=ADS)
def test_each_way_says_the_same(ads: list[dict[str, Any]]) -> None:
    """Truths, numbers and texts come back; upper and lower case of names are one."""
    upper = [{key.upper(): value for key, value in ad.items()} for ad in ads]
    assert read(json.dumps(upper)) == ads
    assert read(xml(upper)) == ads
    ascii_only = [
        {key: value for key, value in ad.items() if not isinstance(value, str) or value.isascii()}
        for ad in upper
    ]
    plain = [{key.lower(): value for key, value in ad.items()} for ad in ascii_only]
    assert read(long(ascii_only)) == [ad for ad in plain if ad]


def test_what_is_no_value_is_none() -> None:
    """Expressions are not worked out; lists and ads within ads do not spill into the ad around them."""
    nested = '<c><a n="X"><l><i>1</i><c><a n="Y"><i>2</i></a></c></l></a><a n="Z"><e>1 + 1</e></a><a n="W"><i>3</i></a></c>'
    assert read(nested) == [{"w": 3}]
    within = (
        '<c><a n="P"><c><a n="Cpus"><i>4</i></a></c></a><a n="L"><l><l><i>5</i></l></l></a></c>'
    )
    assert read(within) == [{"p": {"cpus": 4}}] == read('{"P": {"Cpus": 4}}')
    assert [value_of(one) for one in ("undefined", "1 + 1", '"a\\"b"', "TRUE", "1e3", 5000 * "1")] == [
        None, None, 'a"b', True, 1000.0, float("inf")
    ]  # fmt: skip
    ad = {"a": float("nan"), "b": float("inf"), "c": -1, "d": 7.9, "e": "x"}
    assert [whole(ad, key) for key in "abcdef"] == [None, None, -1, 7, None, None]
    assert (first_positive(ad, "A", "C", "D"), text(ad, "A", "E")) == (7.9, "x")


@pytest.mark.parametrize("head", ["<?xml version='1.0'?><classads>", "\n\n<classads>"])
def test_what_stands_before_the_first_element(head: str) -> None:
    """It may be on the same line, and empty lines may come first; no entity can be declared."""
    assert read(head + '<c><a n="A"><i>1</i></a></c></classads>') == [{"a": 1}]
    entities = '<!DOCTYPE classads [<!ENTITY a "aaaaaaaa">]>'
    with pytest.raises(AccountingError, match="file:1: no XML of ClassAds"):
        read(entities + head.strip() + "&a;</classads>")
