"""What is said of strict exchange follows from the figures."""

from pathlib import Path
from typing import Any

import pytest

from scenarios.studies.nobody_loses.federations import Case
from scenarios.studies.nobody_loses.options import StudyOptions
from scenarios.studies.nobody_loses.reference import ROUNDS
from scenarios.studies.nobody_loses.strict import (
    ALL,
    CENTRES,
    COMPARED,
    HALF,
    NO_CHECKPOINTS,
    ROGUES,
    STRICT,
    rule_of,
)
from scenarios.studies.nobody_loses.strict_lines import (
    adoption_of_strict,
    jitter_of_strict,
    own_lines,
    random_lines,
    restart_lines,
    rogue_lines,
    strict_verdict,
)
from scenarios.studies.nobody_loses.study import COMPARISON, Study, cases
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
    assert "rounds 1 and 1, the worst half year −9.00 %" in said
    assert strict_verdict(_study(_run(ROUNDS, [1.0], []))) == ""


def test_every_rule_and_window_has_a_line() -> None:
    """Four strict rules, fair exchange and two centres, three windows."""
    table = own_lines(small_study(("strict",)))
    assert set(table) == {ROUNDS, *STRICT, *CENTRES}
    assert table["central"]["5"].half_years.other is None
    assert all(set(row) == {"5", "6", "stress"} for row in table.values())


def test_every_byzantine_partner_has_a_line_beside_each_rule() -> None:
    """With none of them each site is left out in turn, so that counts are the same."""
    lines = rogue_lines(small_study(("strict-rogues",)))
    by_rule = {rule: [each for each in lines if each.rule == rule] for rule in ROGUES}
    assert [len(found) for found in by_rule.values()] == [10, 10, 11]
    assert {each.honest.count for each in lines} == {4 * (3 * 2 + 4 * 3)}
    assert by_rule[ALL][0].honest.other == (32.7, 5.2)
    assert by_rule[ALL][-1].honest.name == "hides-checkpoints"
    assert all(each.margin == pytest.approx(-0.5) for each in lines)


def test_who_keeps_to_another_rule_has_two_lines() -> None:
    """The one, and all others; where all are alike there is one."""
    lines = adoption_of_strict(small_study(("strict-adoption",)))
    assert [each.count for each in lines] == [28, 28, 72, 28, 72, 28, 72, 28, 72, 28, 72]
    assert lines[1].other == (30.9, 5.1)
    chance = jitter_of_strict(small_study(("strict-jitter",)))
    assert chance is not None
    assert (chance.count, chance.other) == (168, None)


def test_a_new_start_costs_so_much_by_rule() -> None:
    """No cost first, then five minutes and more; federations of both lengths."""
    lines = restart_lines(small_study(("restarts",)))
    assert [each.minutes for each in lines] == 3 * [0, 5, 15, 30]
    assert all(each.half_years.count > 8 and each.months.count > 8 for each in lines)
    assert {each.policy for each in lines} == {NO_CHECKPOINTS, HALF, ALL}


def test_so_many_federations_are_drawn_as_asked_for() -> None:
    """Each under every rule; those of a month are others than those of half a year."""
    options = StudyOptions(Path("x"), parts=("random", "short"), federations=7, seed=3)
    drawn = list(cases(options))
    assert len(drawn) == 2 * 7 * len(COMPARISON)
    assert len({case.key for case in drawn}) == len(drawn)
    short = [case for case in drawn if case.part == "short"]
    assert all(name.endswith("+30") for case in short for name in case.sites)


@pytest.mark.parametrize("word", [*STRICT, *COMPARED])
def test_every_rule_has_words(word: str) -> None:
    """Also with a cost of a new start."""
    rule = rule_of(word)
    assert rule is not None
    assert rule.restart == 0
    costly = rule_of(f"{word} restart 15")
    assert costly is not None
    assert costly.restart == 900
    assert costly.words == f"{rule.words}, 15 min"
    assert rule_of("awf") is None
