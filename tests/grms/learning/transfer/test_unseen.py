from dataclasses import replace

import pytest

from grms.federation.federation import Federation
from grms.learning.evolution.self_play import joined
from grms.learning.transfer.encoding import RuleBaseSettings
from grms.learning.transfer.fitness import Fitness, TrainingCase
from grms.learning.transfer.self_play import MatchFitness
from grms.learning.transfer.source import SourceError
from grms.learning.transfer.unseen import check_same_sites, compared, compared_match
from grms.policy.constraints import FAIR_EXCHANGE
from tests.training_grids import two_sites

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
