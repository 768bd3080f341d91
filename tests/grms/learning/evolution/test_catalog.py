import json

import pytest

from grms.learning.evolution.catalog import STRATEGIES, new_strategy, strategy_from_state
from grms.learning.evolution.strategies import StrategySettings
from tests.training_grids import rule_space, same_genome, sphere

SPACE = rule_space(2)
SMALL = StrategySettings(parents=3, offspring=6)


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_has_its_name_and_comes_back(name: str) -> None:
    """New and saved ones go the same way."""
    strategy = new_strategy(name, SPACE, SMALL, 3)
    assert strategy.name == name
    for _ in range(3):
        strategy.tell([sphere(genome).value for genome in strategy.ask()])
    again = strategy_from_state(json.loads(json.dumps(strategy.to_state())))
    assert again.name == name
    assert all(same_genome(a, b) for a, b in zip(strategy.ask(), again.ask(), strict=True))


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_seed_decides(name: str) -> None:
    """The same seed gives the same founders, another seed others."""
    one, same, other = (new_strategy(name, SPACE, SMALL, seed).ask()[0] for seed in (1, 1, 2))
    assert same_genome(one, same)
    assert not same_genome(one, other)


@pytest.mark.parametrize("name", STRATEGIES)
def test_nothing_is_worse_than_a_founder(name: str) -> None:
    """It is judged with the first generation alone, also where that was saved meanwhile."""
    best = new_strategy("two-parents", SPACE, SMALL, 9).ask()[0]
    strategy = new_strategy(name, SPACE, SMALL, 3, [best])
    strategy.ask()
    strategy = strategy_from_state(json.loads(json.dumps(strategy.to_state())))
    asked = strategy.ask()
    assert sum(same_genome(genome, best) for genome in asked) == 1
    strategy.tell([0.5 if same_genome(genome, best) else 2.0 for genome in asked])
    assert strategy.best is not None
    assert (strategy.best.value, same_genome(strategy.best.genome, best)) == (0.5, True)
    assert not any(same_genome(genome, best) for genome in strategy.ask())


def test_an_unknown_strategy_is_refused() -> None:
    """The text says which there are."""
    with pytest.raises(
        ValueError, match="'papr'; there are: paper, self-adaptive, two-parents, cma"
    ):
        new_strategy("papr", SPACE, SMALL, 1)
    with pytest.raises(ValueError, match="'papr'"):
        strategy_from_state({"strategy": "papr"})
