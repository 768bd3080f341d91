import json
import math
from pathlib import Path
from typing import Any

import pytest

from lrms_sim.malleable._formulas import unit_utility_of
from lrms_sim.malleable.jobs import SHAPES
from lrms_sim.malleable.value import (
    PAPER_P,
    RULES,
    Scales,
    ValueFunction,
    ValueFunctionError,
    load_value_function,
    save_value_function,
    value_function_from_document,
    value_function_to_document,
)

KNOWN = json.loads((Path(__file__).parent / "data" / "known-runs.json").read_text("utf-8"))
VALUE = ValueFunction(PAPER_P, Scales(1.0, 10.0, 24), "paper", {"source": "section 5"})


@pytest.mark.parametrize("known", KNOWN["fuzzy"]["states"], ids=lambda known: str(known["x"]))
def test_known_states_have_their_known_values(known: dict[str, Any]) -> None:
    """Rule weights and value of the paper's function, worked out by hand."""
    assert tuple(KNOWN["fuzzy"]["p"]) == PAPER_P
    assert VALUE.rule_weights(*known["x"]) == pytest.approx(known["phi"], abs=1e-15)
    assert VALUE.value(*known["x"]) == pytest.approx(known["value"], abs=1e-14)


@pytest.mark.parametrize("known", KNOWN["tuf"], ids=str)
def test_known_utilities_are_as_known(known: dict[str, Any]) -> None:
    """The paper's utility, full until L, gone from 2L on, in its three shapes."""
    assert unit_utility_of(known["z"], 1.0, 2.0, 0.0, SHAPES.index(known["shape"])) == known["u"]


def test_rule_weights_sum_to_one() -> None:
    """Within the scales and beyond them."""
    for x in ((0.3, 4.0, 7.0), (2.0, 99.0, 240.0), (0.0, 0.0, 0.0)):
        assert math.fsum(VALUE.rule_weights(*x)) == pytest.approx(1.0, abs=1e-15)


def test_a_file_holds_it_to_the_last_bit(tmp_path: Path) -> None:
    """Numbers, name and provenance come back, and no draft is left."""
    path = tmp_path / "value.json"
    value = ValueFunction(tuple(math.sqrt(n) / 3 for n in range(8)), Scales(2.5, 1 / 3, 7), "x")
    save_value_function(value, path)
    assert load_value_function(path) == value
    save_value_function(VALUE, path)
    assert load_value_function(path) == VALUE
    assert list(tmp_path.iterdir()) == [path]
    assert list(json.loads(path.read_text())["p"]) == list(RULES)


def changed(**changes: Any) -> dict[str, Any]:
    """Returns a document with some keys changed."""
    return {**value_function_to_document(VALUE), **changes}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "the document is"),
        (changed(schema="hanse.rule-base/1"), "schema is 'hanse.rule-base/1'"),
        (changed(more=1), "'more' is no key"),
        (changed(p=[1] * 8), "p is "),
        (changed(p={"SSS": 1.0}), "p has the keys"),
        (changed(p=dict.fromkeys(RULES, math.nan)), "p.SSS is nan"),
        (changed(p=dict.fromkeys(RULES, True)), "p.SSS is True"),
        (changed(scales={"time": 1}), "scales has the keys"),
        (changed(scales={"utility": 0, "time": 1, "processors": 1}), "scale of utility is 0.0"),
        (changed(scales={"utility": 1, "time": "x", "processors": 1}), "scales.time is 'x'"),
        (changed(scales={"utility": 1, "time": 1, "processors": 1.5}), "processors is 1.5"),
        (changed(name=3), "name is 3"),
        (changed(provenance="me"), "provenance is 'me'"),
    ],
)
def test_a_document_that_breaks_the_format_is_refused(document: object, words: str) -> None:
    """File, place and value are named."""
    with pytest.raises(ValueFunctionError, match=words) as caught:
        value_function_from_document(document, source="v.json")
    assert str(caught.value).startswith("v.json: ")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Missing, no JSON with its line, no text, too deep, too large."""
    path = tmp_path / "v.json"
    for content, words in (
        (None, "cannot be read: No such file"),
        (b'{"schema":\n]', r"v.json:2:1: no JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply|no JSON"),
        (b" " * 2_000_000, "is larger than 1,048,576 bytes"),
    ):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ValueFunctionError, match=words):
            load_value_function(path)


def test_numbers_that_are_none_are_refused() -> None:
    """There are eight outputs, finite; scales are more than 0."""
    with pytest.raises(ValueError, match="8 finite numbers"):
        ValueFunction((1.0,) * 7)
    with pytest.raises(ValueError, match="8 finite numbers"):
        ValueFunction((math.inf,) * 8)
    with pytest.raises(ValueError, match="scale of time is nan"):
        Scales(time=math.nan)
