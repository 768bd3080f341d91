"""What is said of strict exchange follows from the figures."""

from pathlib import Path
from typing import Any

import pytest

from scenarios.studies.nobody_loses.federations import Case
from scenarios.studies.nobody_loses.options import StudyOptions
from scenarios.studies.nobody_loses.reference import ROUNDS
from scenarios.studies.nobody_loses.strict import NO_CHECKPOINTS, STRICT
from scenarios.studies.nobody_loses.strict_lines import (
    adoption_of_strict,
    own_lines,
    random_lines,
    rogue_lines,
    strict_verdict,
)
from scenarios.studies.nobody_loses.study import Study, cases
from tests.scenarios.studies.nobody_loses.measured import small_study


def _run(policy: str, gains: list[float], months: list[float]) -> tuple[Case, dict[str, Any]]:
    found = {
        "gain": gains,
        "months": [months],
        "full_months": [months],
        "preempted": 5,
        "lost": 2.0,
        "work": 100.0,
        "jobs": 50,
        "moved": 1,
        "offers": 2,
    }
    return Case("random", ("a", "b"), "fcfs", policy), found


def _study(*runs: tuple[Case, dict[str, Any]]) -> Study:
    return Study({"parts": ["random"]}, runs)


@pytest.mark.parametrize(
    ("gains", "months", "keeps"),
    [
        ([4.0, -0.4], [2.0, -4.9], True),
        ([4.0, -0.6], [2.0], False),
        ([4.0, 2.0], [2.0, -5.1], False),
    ],
)
def test_a_strict_rule_keeps_to_what_is_expected_or_not(
    gains: list[float], months: list[float], keeps: bool
) -> None:
    """Half years and months both count."""
    (line,) = random_lines(_study(_run(NO_CHECKPOINTS, gains, months)))
    assert line.keeps is keeps
    assert line.margin == pytest.approx(min(gains) + 0.5)
    assert (line.preempted, line.lost) == (10.0, 2.0)
    assert line.months_below == sum(month < -5 for month in months)


def test_nothing_is_expected_of_other_rules() -> None:
    """Nor of guests that run to their end."""
    lines = random_lines(_study(_run(ROUNDS, [-9.0], []), _run("strict-exchange run", [1.0], [])))
    assert [line.keeps for line in lines] == [None, None]
    assert lines[0].below == 1
    assert lines[0].month_worst == 0.0


def test_the_verdict_names_both_rules() -> None:
    """Without one of them there is none."""
    both = _study(_run(ROUNDS, [-9.0, 3.0], [-6.0]), _run(NO_CHECKPOINTS, [0.5, 3.0], [-1.0]))
    said = strict_verdict(both)
    assert "Of 2 half years of federations by chance 0 are below −1 %" in said
    assert "the worst +0.50 %, and 0 of 1 full months below −5 %" in said
    assert "rounds 1 and 1, the worst half year -9.00 %" in said
    assert strict_verdict(_study(_run(ROUNDS, [1.0], []))) == ""


def test_every_rule_and_window_has_a_line() -> None:
    """Also Byzantine partners and adoption."""
    study = small_study(("strict",))
    table = own_lines(study)
    assert set(table) == {ROUNDS, *STRICT}
    assert all(set(row) == {"5", "6", "stress"} for row in table.values())
    assert len(rogue_lines(study)) == 8
    assert [line.count > 0 for line in adoption_of_strict(study)] == [True, True]


def test_so_many_federations_are_drawn_as_asked_for() -> None:
    """Each under six rules."""
    options = StudyOptions(Path("x"), parts=("random",), federations=7, seed=3)
    drawn = list(cases(options))
    assert len(drawn) == 7 * 6
    assert len({case.key for case in drawn}) == len(drawn)
