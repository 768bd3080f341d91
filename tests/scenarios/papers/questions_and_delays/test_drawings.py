"""Curves say what they show, and end where their figures do."""

from scenarios.papers.questions_and_delays.drawings import curves
from scenarios.papers.samples import Spread


def test_a_curve_has_its_figures_in_words() -> None:
    """For those who cannot see it; equal figures give equal pictures."""
    rows = [
        ("first", [Spread(2.0, -1.0, 3.0, 3), Spread(4.0, 3.0, 5.0, 3)]),
        ("second", [Spread(-2.5, -3.0, 1.0, 3)]),
    ]
    one, other = (
        curves(rows, ["1", "all"], key="k", title="By partners", below="asked") for _ in range(2)
    )
    assert one == other
    assert "first: 2.0 % at 1, 4.0 % at all; second: -2.5 % at 1" in one
    for words in ("By partners", "asked", "first", "second"):
        assert words in one
