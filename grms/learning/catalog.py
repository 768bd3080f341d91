"""The strategies by name, new ones and saved ones."""

from collections.abc import Mapping
from typing import Any

from grms.learning.cma_strategy import CmaStrategy
from grms.learning.randomness import generator
from grms.learning.strategies import EvolutionStrategy, Strategy, StrategySettings

STRATEGIES: tuple[str, ...] = ("paper", "self-adaptive", "cma")
"""The names of all strategies; docs/training.md describes them."""


def new_strategy(name: str, settings: StrategySettings, seed: int) -> Strategy:
    """Returns a strategy that has not begun.

    Args:
        name: one of `STRATEGIES`.
        settings: μ, λ and the rest.
        seed: of its random stream, 0 and more.

    Raises:
        ValueError: there is no such strategy, or it cannot work with the settings or the seed.
    """
    if name == "cma":
        return CmaStrategy(settings, seed)
    if name not in STRATEGIES:
        raise ValueError(f"there is no strategy {name!r}; there are: {', '.join(STRATEGIES)}")
    return EvolutionStrategy(settings, generator(seed), self_adaptive=name == "self-adaptive")


def strategy_from_state(state: Mapping[str, Any]) -> Strategy:
    """Returns the strategy whose `to_state` this is; it goes on bit for bit.

    Raises:
        ValueError: there is no such strategy, or it cannot go on here.
    """
    name = state["strategy"]
    if name == "cma":
        return CmaStrategy.from_state(state)
    if name not in STRATEGIES:
        raise ValueError(f"there is no strategy {name!r}; there are: {', '.join(STRATEGIES)}")
    return EvolutionStrategy.from_state(state)
