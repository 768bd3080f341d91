import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from grms.learning.evolution.catalog import strategy_from_state
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.rule_genes import LEVELS, RuleSpace
from grms.learning.evolution.symbiotic import SymbioticEvolution, SymbioticSettings
from tests.training_grids import check_resumed

SPACE = RuleSpace(np.array([1.0, 0.0]), np.array([5.0, 100.0]), 3)
SMALL = SymbioticSettings(
    parents=12, offspring=30, base_rules=6, bases_per_rule=4, recombined=5, similar=2, clusters=3
)


def choice(genome: Genome, x: float, y: float) -> int:
    """Returns which alternative a rule base recommends in a state, as docs/strategies.md has it."""
    real = genome.real.reshape(-1, 4)
    places = genome.integer.reshape(-1, 3)
    deviation = (np.array([x, y]) - real[:, :2]) / real[:, 2:]
    weight = np.exp(-0.5 * (deviation**2).sum(axis=1)) / real[:, 2:].prod(axis=1)
    return int((weight @ np.array(LEVELS)[places]).argmax())


def worth(genome: Genome) -> float:
    """Returns 1, and 1 more for each state of a grid in which the wrong alternative is chosen."""
    wrong = 0
    for x in (1.2, 3.0, 4.8):
        for y in (5.0, 50.0, 95.0):
            wanted = 0 if y < 30 else (1 if x < 2 else 2)
            wrong += choice(genome, x, y) != wanted
    return 1.0 + wrong


def step(evolution: SymbioticEvolution) -> list[float]:
    values = [worth(genome) for genome in evolution.ask()]
    evolution.tell(values)
    return values


def test_the_defaults_are_the_papers() -> None:
    """50 rules of 350 survive; 50 rules a base, each in 10: 70 bases a generation."""
    settings = SymbioticSettings()
    assert (settings.parents, settings.offspring, settings.bases) == (50, 350, 70)


@pytest.mark.parametrize(("plus", "value"), [(False, 2.0), (True, 3.0)])
def test_it_finds_rules_that_are_right(*, plus: bool, value: float) -> None:
    """Three areas with an alternative each: far better than random rules, with few wrong states of nine."""
    evolution = SymbioticEvolution(SPACE, replace(SMALL, plus=plus), generator(1))
    first = step(evolution)
    for _ in range(40):
        step(evolution)
    assert evolution.best is not None
    assert evolution.best.value <= value < np.median(first)
    assert evolution.generation == 40


def test_the_best_base_ever_is_the_result() -> None:
    """Rules alone are no policy; a base that was better once is not forgotten."""
    evolution = SymbioticEvolution(SPACE, SMALL, generator(2))
    asked = evolution.ask()
    evolution.tell([5.0] * 7 + [3.0] + [5.0] * (len(asked) - 8))
    for _ in range(3):
        evolution.tell([4.0] * len(evolution.ask()))
    assert evolution.best is not None
    assert evolution.best.value == 3.0
    assert evolution.best.genome.to_state() == asked[7].to_state()


def test_founders_are_judged_first_and_the_best_teaches_half_of_the_first_rules() -> None:
    """The result is never worse than a founder; rules recommend what it does where they apply themselves."""
    founders = [SPACE.constant(number, SMALL.base_rules) for number in range(3)]
    assert {choice(founders[1], x, y) for x in (0.0, 1.0, 9.0) for y in (0.0, 50.0, 300.0)} == {1}
    begun = SymbioticEvolution(SPACE, SMALL, generator(5), founders)
    again = strategy_from_state(json.loads(json.dumps(begun.to_state())))
    plain = SymbioticEvolution(SPACE, SMALL, generator(5)).ask()
    for one in (begun, again):
        assert isinstance(one, SymbioticEvolution)
        assert [each.to_state() for each in one.ask()] == [each.to_state() for each in founders]
        one.tell([7.0, 0.5, 9.0])
        assert one.generation == 0
        assert one.best is not None
        assert (one.best.value, one.best.genome.to_state()) == (0.5, founders[1].to_state())
        asked = one.ask()
        assert len(asked) == SMALL.bases
        rules = {
            (tuple(real), tuple(places))
            for genome in asked
            for real, places in zip(
                genome.real.reshape(-1, 4), genome.integer.reshape(-1, 3), strict=True
            )
        }
        assert len(rules) == SMALL.offspring
        of_founder = tuple(founders[1].integer[:3])
        taught = [real for real, places in rules if places == of_founder]
        assert SMALL.offspring // 2 <= len(taught) < SMALL.offspring
        assert len(set(taught)) == len(taught), "each at a place of its own"
        # Places are those of rules without founders.
        assert {real for real, _ in rules} == {
            tuple(real) for genome in plain for real in genome.real.reshape(-1, 4)
        }
    step(begun)
    assert begun.generation == 0
    step(begun)
    assert begun.generation == 1


def test_parents_go_on_beside_children_or_live_for_one_generation() -> None:
    """(μ + λ) by default, as paper 000, section 4.3, has it; (μ, λ) without `plus`."""
    for plus in (True, False):
        evolution = SymbioticEvolution(SPACE, replace(SMALL, plus=plus), generator(6))
        evolution.tell([1.0] * len(evolution.ask()))
        parents = evolution.to_state()["parents"]
        evolution.tell([2.0] * len(evolution.ask()))
        assert (evolution.to_state()["parents"] == parents) is plus
    assert SymbioticSettings().plus


def test_the_step_follows_success() -> None:
    """Up by 1.224 where more than an eighth of the children beat a parent, else down."""
    evolution = SymbioticEvolution(SPACE, SMALL, generator(3))
    evolution.tell([5.0] * len(evolution.ask()))
    evolution.tell([4.0] * len(evolution.ask()))
    assert evolution.step == pytest.approx(0.1 * 1.224)
    evolution.tell([4.0] * len(evolution.ask()))
    assert evolution.step == pytest.approx(0.1)


@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("told", [0, 1, 3])
@pytest.mark.parametrize("asked", [False, True])
def test_a_saved_evolution_goes_on_bit_for_bit(told: int, *, plus: bool, asked: bool) -> None:
    """Through JSON, between asking and telling too."""
    settings = SymbioticSettings(
        parents=12, offspring=30, base_rules=6, bases_per_rule=4, recombined=5, similar=2, plus=plus
    )
    evolution = SymbioticEvolution(SPACE, settings, generator(4))
    check_resumed(evolution, step, told=told, asked=asked)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"parents": 0}, "parents is 0"),
        ({"step": 0.0}, "step is 0.0"),
        ({"recombined": 60}, "each must not be more than the next"),
        ({"similar": 12}, "each must not be more than the next"),
        ({"offspring": 351}, "do not fill rule bases of 50"),
        ({"base_rules": 400}, "do not fill"),
    ],
)
def test_settings_out_of_bounds_are_refused(setting: dict[str, Any], complaint: str) -> None:
    """The text names the setting and its value."""
    with pytest.raises(ValueError, match=complaint):
        SymbioticSettings(**setting)


def test_values_must_be_above_zero() -> None:
    """Shares are by 1/f."""
    evolution = SymbioticEvolution(SPACE, SMALL, generator(3))
    count = len(evolution.ask())
    with pytest.raises(ValueError, match=r"a value is 0\.0; it must be more than 0"):
        evolution.tell([0.0] * count)
    with pytest.raises(ValueError, match=f"1 values for {count} genomes"):
        evolution.tell([1.0])
