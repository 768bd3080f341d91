"""The strategies by name, new ones and saved ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grms.learning.evolution.class_search import ClassSearch
from grms.learning.evolution.genes import GeneSpace, Genome
from grms.learning.evolution.nsga2 import Nsga2
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.recorded import Recorded
from grms.learning.evolution.self_play import SelfPlay
from grms.learning.evolution.strategies import (
    STEP_RULES,
    EvolutionStrategy,
    Strategy,
    StrategySettings,
)
from grms.learning.evolution.symbiotic import SymbioticEvolution

STRATEGIES: tuple[str, ...] = (*STEP_RULES, "cma")
"""The names of all strategies for any space of genes; docs/training.md describes them."""


def new_strategy(
    name: str,
    space: GeneSpace,
    settings: StrategySettings,
    seed: int,
    founders: Sequence[Genome] = (),
) -> Strategy:
    """Returns a strategy that has not begun.

    Args:
        name: one of `STRATEGIES`.
        space: the genes of the problem.
        settings: μ, λ and the rest.
        seed: of its random stream, 0 and more.
        founders: genomes evaluated with the first generation, or part of it.

    Raises:
        ValueError: there is no such strategy, or it does not support the settings or the seed.
    """
    if name == "cma":
        from grms.learning.evolution.cma_strategy import CmaStrategy  # noqa: PLC0415  # its package is an extra

        return CmaStrategy(space, settings, seed, founders)
    for rule in STEP_RULES:
        if name == rule:
            return EvolutionStrategy(
                space, settings, generator(seed), step_rule=rule, founders=founders
            )
    raise ValueError(f"there is no strategy {name!r}; there are: {', '.join(STRATEGIES)}")


def strategy_from_state(state: Mapping[str, Any]) -> Strategy:
    """Returns the strategy whose `to_state` this is; it continues bit for bit.

    Raises:
        ValueError: there is no such strategy, or it cannot continue here.
    """
    name = state["strategy"]
    if name == Recorded.name:
        return Recorded(strategy_from_state(state["inner"]), state["seen"])
    if name == SelfPlay.name:
        return SelfPlay.from_state(state, [strategy_from_state(one) for one in state["players"]])
    if name in STEP_RULES:
        return EvolutionStrategy.from_state(state)
    if name == "cma":
        from grms.learning.evolution.cma_strategy import CmaStrategy  # noqa: PLC0415  # as above

        return CmaStrategy.from_state(state)
    others: dict[str, Callable[[Mapping[str, Any]], Strategy]] = {
        ClassSearch.name: ClassSearch.from_state,
        Nsga2.name: Nsga2.from_state,
        SymbioticEvolution.name: SymbioticEvolution.from_state,
    }
    if name not in others:
        names = ", ".join((*STEP_RULES, "cma", *others))
        raise ValueError(f"there is no strategy {name!r}; there are: {names}")
    return others[name](state)
