import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from grms.policy.transfer import Gaussian, Rule, RuleBase
from grms.policy.view import (
    ACCEPT,
    DECLINE,
    MAP_COLUMNS,
    MAP_ROWS,
    decision_lines,
    print_rule_base,
)

HALF = RuleBase(
    (
        Rule(Gaussian(0, 1e9), Gaussian(0, 30), accept=True),
        Rule(Gaussian(0, 1e9), Gaussian(100, -30), accept=False),
    ),
    "half",
)
"""Runs jobs of up to half the machine."""


def printed(rule_base: RuleBase, width: int = 100) -> str:
    file = io.StringIO()
    print_rule_base(Console(file=file, width=width), rule_base, 5.0)
    return file.getvalue()


@given(
    gamma=st.tuples(st.floats(0, 5), st.floats(0, 100)),
    sigma=st.tuples(st.floats(0.1, 5), st.floats(1, 100)),
    nwp_max=st.floats(0.5, 20),
)
def test_each_cell_is_a_decision(
    gamma: tuple[float, float], sigma: tuple[float, float], nwp_max: float
) -> None:
    """In the middle of the cell; the widest jobs stand on top, the shortest queue at the left."""
    rule_base = RuleBase(
        (
            Rule(Gaussian(gamma[0], sigma[0]), Gaussian(gamma[1], sigma[1]), accept=True),
            Rule(Gaussian(sigma[0], gamma[0] + 1), Gaussian(sigma[1], 40), accept=False),
        )
    )
    rows = [line[5:] for line in decision_lines(rule_base, nwp_max)[1 : MAP_ROWS + 1]]
    for row, cells in enumerate(reversed(rows)):
        assert len(cells) == MAP_COLUMNS
        for column, cell in enumerate(cells):
            nwp = nwp_max * (column + 0.5) / MAP_COLUMNS
            njp = 100 * (row + 0.5) / MAP_ROWS
            accepted = rule_base.compiled.output(nwp, njp) > 0
            assert cell == (ACCEPT if accepted else DECLINE)


def test_the_map_as_a_user_sees_it() -> None:
    """Axes with their numbers, and a legend; 80 columns are enough."""
    lines = decision_lines(HALF, 5.0)
    assert lines[0] == "NJP, % of the site   █ run here   · let go"
    assert lines[1] == " 100 " + "·" * 60
    assert lines[10] == "     " + "·" * 60
    assert lines[11] == "     " + "█" * 60
    assert lines[13] == "  40 " + "█" * 60
    assert lines[21] == "     0" + " " * 58 + "5"
    assert max(map(len, lines)) <= 80


def test_the_rules_are_listed() -> None:
    """Each with its numbers and what it recommends."""
    out = printed(HALF)
    assert "half" in out
    rows = [line.split("│") for line in out.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in row[1:-1]] for row in rows] == [
        ["1", "0", "1e+09", "0", "30", "run here"],
        ["2", "0", "1e+09", "100", "-30", "let go"],
    ]


@pytest.mark.parametrize("name", ["[/red]", "[bold]x", "a" * 300, "Köln 但泽", ""])
def test_any_name_can_be_shown(name: str) -> None:
    """A file's name for people may be anything."""
    out = printed(RuleBase(HALF.rules, name))
    # It is broken where it is wider than the table.
    assert "".join(name.split()) in "".join(out.split())


def test_rules_within_constraints_have_two_maps() -> None:
    """One for own jobs that would wait, one for guests that would start, and columns for each feature."""
    wide, now = Gaussian(0, 1e9), Gaussian(1, 0.03)
    text = printed(
        RuleBase((Rule(wide, wide, accept=True, requested_time=wide, starts_now=now),), "learned"),
        width=140,
    )
    assert "request, lg s γ" in text
    own, guests = text.split("guests that would start now, request of 1 h:")
    assert "own jobs that would not start now" in own
    # Beside the legend: the membership of 0 is less than any number.
    assert own.count(ACCEPT) == 1
    assert guests.count(ACCEPT) == 1 + MAP_ROWS * MAP_COLUMNS
