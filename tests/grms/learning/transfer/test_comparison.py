import math
from dataclasses import replace

import pytest

from grms.federation.federation import Federation
from grms.learning.evolution.self_play import joined
from grms.learning.transfer.comparison import (
    ComparedRow,
    cells,
    check_same_sites,
    compared,
    compared_match,
    headings,
    verdict,
)
from grms.learning.transfer.encoding import RuleBaseSettings
from grms.learning.transfer.fitness import Fitness, MatchFitness, SourceError, TrainingCase
from grms.policy.constraints import FAIR_EXCHANGE
from tests.training_grids import two_sites


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


SETTINGS = RuleBaseSettings(2, further=("starts_now",))


def test_each_site_of_each_case_has_a_row() -> None:
    """With its AWRT alone, with the constant, and with what was learned."""
    cases = [TrainingCase(Federation(two_sites(seed)), "a", ("b",)) for seed in (1, 2)]
    fitness = Fitness(cases, rails=FAIR_EXCHANGE, further=SETTINGS.further)
    found = fitness(SETTINGS.agreeing)
    rows = compared(fitness, ("one", "two"), found, unseen=True)
    assert [(row.case, row.site, row.evolved) for row in rows] == [
        ("one", "a", True), ("one", "b", False), ("two", "a", True), ("two", "b", False),
    ]  # fmt: skip
    assert [row.alone for row in rows] == [x for case in fitness.alone for x in case]
    assert [row.constant for row in rows] == [x for case in fitness.constant() for x in case]
    assert [row.learned for row in rows] == [x for case in found.figures for x in case]
    assert all(row.unseen for row in rows)


def test_in_self_play_every_site_has_learned() -> None:
    """Rules that always agree bring what the constraints alone do."""
    fitness = MatchFitness([two_sites(1)], FAIR_EXCHANGE, SETTINGS)
    rows = compared_match(fitness, ("one",), joined([SETTINGS.agreeing] * 2))
    assert [(row.site, row.evolved, row.unseen) for row in rows] == [
        ("a", True, False),
        ("b", True, False),
    ]
    assert [row.learned for row in rows] == [row.constant for row in rows]
    assert [row.over_constant for row in rows] == [0.0, 0.0]


def test_other_machines_are_refused() -> None:
    """With both sizes, and what to do."""
    a, b = two_sites(1)
    check_same_sites([a, b], [b], "summer")
    with pytest.raises(SourceError, match=r"summer.*--unseen.*site b has 7 processors.*with 25"):
        check_same_sites([a, b], [a, replace(b, processors=7)], "summer")
