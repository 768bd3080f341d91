from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.learning.evolution.genes import GeneSpace, Genome, bounded_reals
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.strategies import (
    INDIVIDUALS_MAX,
    STEP_RANGES,
    STEP_RULES,
    EvolutionStrategy,
    StepRule,
    Strategy,
    StrategySettings,
    check_values,
)
from grms.learning.transfer.encoding import feature_values
from tests.training_grids import check_resumed, rule_space, same_genome, sphere

SPACE = rule_space(2)
SMALL = StrategySettings(parents=3, offspring=7)


def es(
    seed: int = 1,
    settings: StrategySettings = SMALL,
    *,
    space: GeneSpace = SPACE,
    step_rule: StepRule = "paper",
) -> EvolutionStrategy:
    return EvolutionStrategy(space, settings, generator(seed), step_rule=step_rule)


def step(strategy: Strategy, judge: Callable[[Genome], float] | None = None) -> list[float]:
    """Asks, judges and tells once; returns the values."""
    values = [sphere(g).value if judge is None else judge(g) for g in strategy.ask()]
    strategy.tell(values)
    return values


def test_the_defaults_are_the_papers() -> None:
    """Section 4.5: a (13+91)-ES."""
    settings = StrategySettings()
    assert (settings.parents, settings.offspring) == (13, 91)


def test_founders_come_first_and_then_children() -> None:
    """μ uniform individuals, then λ in each generation; founders are generation 0."""
    strategy = es()
    assert strategy.best is None
    assert strategy.generation == 0
    founders = strategy.ask()
    assert len(founders) == 3
    high = feature_values(2, 10, 100)
    assert all(((one.real >= 0) & (one.real <= high)).all() for one in founders)
    strategy.tell([1.0, 2.0, 3.0])
    assert strategy.generation == 0
    for generation in (1, 2):
        assert len(strategy.ask()) == 7
        step(strategy)
        assert strategy.generation == generation


@pytest.mark.parametrize("step_rule", STEP_RULES)
def test_asking_twice_changes_nothing(step_rule: StepRule) -> None:
    """Until it is told, a strategy asks for the same genomes."""
    strategy = es(step_rule=step_rule)
    for _ in range(3):
        first, second = strategy.ask(), strategy.ask()
        assert all(same_genome(a, b) for a, b in zip(first, second, strict=True))
        step(strategy)


values = st.lists(st.sampled_from((0.0, 1.0, 2.0, 3.0, 5.5)), min_size=7, max_size=7)


@pytest.mark.parametrize("step_rule", STEP_RULES)
@given(generations=st.lists(values, min_size=1, max_size=6))
def test_selection_keeps_the_best_of_all_and_the_older_of_equals(
    *, step_rule: StepRule, generations: list[list[float]]
) -> None:
    """Parents are the best ever told, in order, whatever was told; the best never worsens."""
    strategy = es(step_rule=step_rule)
    told: list[tuple[float, Genome]] = []
    best = np.inf
    for generation in generations:
        asked = strategy.ask()
        now = generation[: len(asked)]
        strategy.tell(now)
        told += zip(now, asked, strict=True)
        # A stable sort by value: of equal ones the one told first.
        expected = sorted(told, key=lambda one: one[0])[:3]
        assert [one.value for one in strategy.parents] == [value for value, _ in expected]
        for parent, (_, genome) in zip(strategy.parents, expected, strict=True):
            assert same_genome(parent.genome, genome)
        assert strategy.best is strategy.parents[0]
        assert strategy.best.value <= best
        best = strategy.best.value


def test_the_papers_children_are_one_step_from_their_parents() -> None:
    """Every real gene is that of some parent, give or take a few standard deviations."""
    strategy = es(
        3, StrategySettings(parents=4, offspring=200, flip_probability=0.1), space=rule_space(10)
    )
    step(strategy)
    parents = np.stack([one.genome.real for one in strategy.parents])
    deviation = feature_values(10, 0.01, 0.1)
    children = np.stack([child.real for child in strategy.ask()])
    nearest = np.abs(children[:, None, :] - parents[None, :, :]).min(axis=1) / deviation
    assert nearest.max() < 6
    assert 0.5 < nearest.mean() < 1


def test_golden_run() -> None:
    """Five generations of the paper's strategy on a sphere: the same values for ever."""
    strategy = es(5)
    for _ in range(6):
        step(strategy)
    assert strategy.best is not None
    assert [one.value for one in strategy.parents] == [
        3002.64150109772,
        3011.894698024079,
        3014.634925539999,
    ]


def test_steps_adapt_themselves() -> None:
    """The self-adaptive strategy reaches what fixed steps never could."""
    settings = StrategySettings(parents=4, offspring=28)
    slow = rule_space(1, nwp_step=1e-9, njp_step=1e-9)
    fixed, adaptive = (
        es(1, settings, space=slow),
        es(1, settings, space=slow, step_rule="self-adaptive"),
    )
    for _ in range(120):
        step(fixed)
        step(adaptive)
    assert fixed.best is not None
    assert adaptive.best is not None
    assert fixed.best.value > 1
    assert adaptive.best.value < 1e-6
    assert (fixed.name, adaptive.name) == ("paper", "self-adaptive")


def test_adapted_steps_stay_in_their_range() -> None:
    """Where nothing matters steps wander, but not without end."""
    strategy = es(
        2, StrategySettings(parents=1, offspring=2), step_rule="self-adaptive", space=rule_space(1)
    )
    rng = generator(9)
    wide = feature_values(1, 10, 100)
    seen = []
    for _ in range(3000):
        step(strategy, lambda _: -float(strategy.generation) - rng.random())
        steps = strategy.parents[0].step
        assert steps is not None
        assert (steps >= STEP_RANGES["self-adaptive"][0] * wide).all()
        assert (steps <= STEP_RANGES["self-adaptive"][1] * wide).all()
        seen.append(steps / wide)
    assert np.max(seen) / np.min(seen) > 1e3


@pytest.mark.parametrize("step_rule", STEP_RULES)
@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("told", [0, 1, 2, 5])
def test_a_saved_strategy_goes_on_bit_for_bit(
    *, step_rule: StepRule, asked: bool, told: int
) -> None:
    """Through JSON, before and after each step, also between asking and telling."""
    check_resumed(es(4, step_rule=step_rule), step, told=told, asked=asked)


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ([1.0, 2.0], "2 values for 3 genomes"),
        ([1.0, 2.0, 3.0, 4.0], "4 values for 3 genomes"),
        ([1.0, float("nan"), 3.0], "a value is nan"),
        ([1.0, float("inf"), 3.0], "a value is inf"),
    ],
)
def test_what_cannot_be_told(told: Sequence[float], complaint: str) -> None:
    """Wrong values are refused with a reason, and the strategy is as it was."""
    strategy = es()
    with pytest.raises(ValueError, match="nothing was asked"):
        strategy.tell([1.0, 2.0, 3.0])
    strategy.ask()
    before = strategy.to_state()
    with pytest.raises(ValueError, match=complaint):
        strategy.tell(told)
    assert strategy.to_state() == before
    check_values([1.0, -2.0], 2)


@pytest.mark.parametrize(
    "setting",
    [
        {"parents": 0},
        {"offspring": 0},
        {"offspring": INDIVIDUALS_MAX + 1},
        {"flip_probability": -0.1},
        {"flip_probability": 1.1},
        {"flip_probability": float("nan")},
        {"redraw_probability": 2.0},
    ],
)
def test_settings_out_of_bounds_are_refused(setting: dict[str, Any]) -> None:
    """The text names the setting and its value."""
    name, value = next(iter(setting.items()))
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        StrategySettings(**setting)


def test_steps_change_at_the_rates_that_schwefel_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """1/√(2n) for the factor that all genes share, 1/√(2√n) for that of each (1995, section 5)."""
    rates = []

    def recorded(_rng: object, step: Any, common: float, own: float) -> Any:
        rates.append((float(common), float(own)))
        return step

    monkeypatch.setattr("grms.learning.evolution.strategies.lognormal_steps", recorded)
    strategy = es(step_rule=next(rule for rule in STEP_RULES if rule != "paper"))
    step(strategy)
    strategy.ask()
    count = len(SPACE.low)
    assert count > 1
    common, own = zip(*rates, strict=True)
    assert len(rates) == SMALL.offspring
    assert common == pytest.approx([(2 * count) ** -0.5] * len(rates))
    assert own == pytest.approx([(4 * count) ** -0.25] * len(rates))


def test_given_founders_come_first_and_are_never_lost() -> None:
    """The rest is drawn; with plus selection nothing found is worse than the best of the given."""
    space = bounded_reals(np.zeros(3), np.ones(3))
    given = [Genome(np.full(3, value), np.zeros(0, np.bool_)) for value in (0.25, 0.5)]
    strategy = EvolutionStrategy(
        space,
        StrategySettings(parents=4, offspring=8),
        generator(1),
        step_rule="two-parents",
        founders=given,
    )
    asked = strategy.ask()
    assert [genome.real.tolist() for genome in asked[:2]] == [[0.25] * 3, [0.5] * 3]
    assert len(asked) == 4
    again = EvolutionStrategy.from_state(strategy.to_state())
    assert [genome.real.tolist() for genome in again.ask()] == [one.real.tolist() for one in asked]
    for _ in range(5):
        strategy.tell([float(abs(genome.real - 0.25).sum()) for genome in strategy.ask()])
    assert strategy.best is not None
    assert strategy.best.value == 0.0
    few = EvolutionStrategy(space, StrategySettings(parents=1), generator(1), founders=given)
    assert len(few.ask()) == 1
