import math

from grms.learning.transfer.comparison import ComparedRow, cells, headings, verdict


def row(
    learned: float, *, site: str = "a", unseen: bool = True, alone: float = 100.0
) -> ComparedRow:
    return ComparedRow("summer", site, alone, 80.0, learned, evolved=site == "a", unseen=unseen)


def test_the_constant_is_beaten_where_nobody_is_worse() -> None:
    """With a gain on the average."""
    found = verdict([row(72.0), row(80.0, site="b")], "fair-exchange")
    assert found.beaten is True
    assert found.text.startswith("Beats fair-exchange alone on unseen workloads: +5.00 %")


def test_who_is_worse_is_named() -> None:
    """However much the others gain."""
    found = verdict([row(40.0), row(80.8, site="b")], "fair-exchange")
    assert found.beaten is False
    assert (
        "Does not beat fair-exchange alone on unseen workloads: worse for b -1.00 %." in found.text
    )
    assert found.text.endswith("Use fair-exchange alone.")


def test_no_gain_is_not_enough() -> None:
    """The same without learning is simpler."""
    found = verdict([row(80.0), row(80.0 - 1e-9, site="b")], "awf")
    assert found.beaten is False
    assert "+0.00 % on the average" in found.text


def test_what_was_learned_from_proves_nothing() -> None:
    """Without unseen workloads nothing is said, and what to do."""
    found = verdict([row(10.0, unseen=False), row(10.0, alone=math.nan)], "fair-exchange")
    assert found.beaten is None
    assert "--unseen" in found.text


def test_a_row_is_shown_with_all_three() -> None:
    """Alone, the constant, and what was learned, with both gains; who has learned has a star."""
    assert headings("awf") == ("replay", "site", "alone, s", "awf", "learned", "gain", "over that")
    assert cells(row(72.0)) == ("summer", "a *", "100", "80", "72", "+28.00%", "+10.00%")
    assert cells(row(72.0, site="b", alone=math.nan)) == ("summer", "b", "no jobs", "", "", "", "")
