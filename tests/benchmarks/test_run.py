"""How rows measured alone get among the figures."""

from benchmarks.run import with_rows


def test_a_row_measured_alone_says_where() -> None:
    """It replaces the row of its name and unit, or comes last; the others stay as they are."""
    old = [{"name": "a", "unit": "s", "median": 1}, {"name": "a", "unit": "MB", "median": 2}]
    document = {"machine": {"commit": "c1"}, "figures": old}
    rows = [{"name": "a", "unit": "MB", "median": 3}, {"name": "b", "unit": "s", "median": 4}]
    here: dict[str, object] = {"commit": "c2"}
    assert with_rows(document, rows, here) == {
        "machine": {"commit": "c1"},
        "figures": [old[0], *({**row, "machine": here} for row in rows)],
    }
