import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.toml_text import dumps

# TOML is UTF-8, which has no lone surrogates.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = TEXTS | NUMBERS | st.booleans()


def tables(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(TEXTS, values, max_size=4)


LISTS = st.lists(PLAIN | st.lists(PLAIN | tables(PLAIN), max_size=2), max_size=4)
DOCUMENTS = tables(
    st.recursive(
        PLAIN | LISTS,
        lambda inner: tables(inner) | st.lists(tables(inner), min_size=1, max_size=3),
        max_leaves=12,
    )
)


@given(DOCUMENTS)
def test_what_is_written_is_read_back_the_same(document: dict[str, Any]) -> None:
    """Every document survives, to the last bit of its numbers."""
    assert repr(tomllib.loads(dumps(document))) == repr(_sorted_as_written(document))


def _sorted_as_written(document: dict[str, Any]) -> dict[str, Any]:
    """Returns the document with plain values before tables, as TOML needs them."""

    def is_table(value: object) -> bool:
        rows = value if isinstance(value, list) and value else [value]
        return all(isinstance(row, dict) for row in rows)

    def walked(value: Any) -> Any:
        if isinstance(value, dict):
            return _sorted_as_written(value)
        return [walked(item) for item in value] if isinstance(value, list) else value

    order = sorted(document, key=lambda key: is_table(document[key]))
    return {key: walked(document[key]) for key in order}


def test_tables_are_written_for_people() -> None:
    """Sub-tables and lists of tables get headers instead of braces."""
    document = {"a": 1, "t": {"x": 1.5, "u": {"y": True}}, "l": [{"n": "1"}, {"n": "2"}]}
    assert dumps(document) == (
        'a = 1\n\n[t]\nx = 1.5\n\n[t.u]\ny = true\n\n[[l]]\nn = "1"\n\n[[l]]\nn = "2"\n'
    )


def test_tables_among_other_values_are_written_in_braces() -> None:
    """A list that is not all tables has no header to give them."""
    assert dumps({"a": ["x", {"y": 1, "z": "w"}, {}]}) == 'a = ["x", { y = 1, z = "w" }, {}]\n'


@pytest.mark.parametrize(("value", "error"), [(2**63, ValueError), (float("inf"), ValueError)])
def test_numbers_that_toml_cannot_say_are_refused(value: float, error: type[Exception]) -> None:
    """Nothing is written that would not be read."""
    with pytest.raises(error, match=r"64 bits|not finite"):
        dumps({"x": value})


def test_other_types_are_refused() -> None:
    """None has no word in TOML."""
    with pytest.raises(TypeError, match="None cannot be written"):
        dumps({"x": None})
