import pytest

from scenarios.studies.nobody_loses.reference import MONTHS, POLICIES, ROUNDS, SETS, TABLE
from scenarios.studies.nobody_loses.statements import (
    adoption_lines,
    byzantine_lines,
    grid_lines,
    headroom_lines,
    headroom_verdict,
    jitter_line,
    line,
    month_line,
    month_lines,
    verdict,
)
from tests.scenarios.studies.nobody_loses.measured import small_study


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ((3.0, -1.0), "the same"),
        ((3.04, -1.04), "the same"),
        ((3.06, -1.0), "near"),
        ((3.0, -2.0), "near"),
        ((3.0, -2.1), "differs"),
        ((4.1, -1.0), "differs"),
        (None, ""),
    ],
)
def test_a_verdict_is_by_the_figure_that_is_farther_away(
    other: tuple[float, float] | None, word: str
) -> None:
    """Within rounding the same, within a point near."""
    found = line("x", [7.0, -1.0], other)
    assert found is not None
    assert (found.mean, found.worst, found.count, found.below) == (3.0, -1.0, 2, 1)
    assert found.verdict == word


def test_of_nothing_there_is_no_line() -> None:
    """A part that was not run leaves nothing."""
    assert line("x", []) is None
    study = small_study(("jitter",))
    assert grid_lines(study) == {}
    assert month_lines(study) == []
    assert byzantine_lines(study) == []
    assert adoption_lines(study) == []
    assert headroom_lines(study) == []
    assert verdict(study) == "Nothing was measured of grids."
    assert jitter_line(small_study(("grids",))) is None


def test_the_table_is_by_policy_and_window() -> None:
    """Each line has the figures of the other program; gains are those of all sites."""
    table = grid_lines(small_study())
    assert list(table) == list(POLICIES)
    for policy, row in table.items():
        assert {window: each.other for window, each in row.items()} == TABLE[policy]
        assert list(row) == list(SETS)
        assert row["6"].below == 33
        assert row["6"].worst == -1.0


def test_months_count_by_themselves() -> None:
    """Half of the made-up months are six points worse; one per grid is below −5 %."""
    lines = {each.name: each for each in month_lines(small_study())}
    found = lines[POLICIES[ROUNDS]]
    assert found.count == 168
    assert found.values == pytest.approx((100 * 66 / 168, 100 * 33 / 168, -7.0))
    assert found.other == MONTHS[ROUNDS]
    assert month_line("x", [-543.3, 1.0], (50.0, 50.0, -543.0)).verdict == "the same"


def test_honest_sites_are_all_but_the_byzantine() -> None:
    """Without a Byzantine partner each site is left out in turn, so that means can be compared."""
    found = {(each.policy, each.rogue): each for each in byzantine_lines(small_study())}
    none, liar = found[ROUNDS, ""], found[ROUNDS, "liar"]
    assert none.honest.count == liar.honest.count == 4 * (3 * 2 + 4 * 3)
    assert none.own == pytest.approx(liar.own)
    assert none.honest.mean == pytest.approx(liar.honest.mean)


def test_who_adopts_is_looked_at_alone() -> None:
    """One site of each replay; all sites where all do the same."""
    counts = {each.name: each.count for each in adoption_lines(small_study())}
    assert counts == {
        "all accept when fit": 28,
        "one fair among accept when fit": 28,
        "all fair": 28,
    }


def test_headroom_is_told_by_share_and_window() -> None:
    """Sites with jobs over the whole machine stand by themselves."""
    shares = {each.name: each for each in headroom_lines(small_study())}
    assert list(shares) == ["none", "0.1", "0.25", "0.5", "1"]
    assert shares["none"].filled.count == 12
    assert shares["none"].windows["w"].count == 24
    said = headroom_verdict(small_study())
    assert "costs 0.0 to 0.0 points" in said
    assert "fewer with 0 of 4 shares" in said
    assert headroom_verdict(small_study(("jitter",))) == ""
