"""Local strategies as genomes: parameters of criteria, tables of classes, rule bases."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from grms.learning.evolution.genes import GeneSpace, Genome, bounded_reals
from grms.learning.evolution.rule_genes import LEVELS, RuleSpace
from lrms_sim.scheduling.criteria import PAPER_BOUNDS, PARAMETERS, CriterionKind, CriterionOrder
from lrms_sim.scheduling.selection import (
    CLASSES,
    FEATURES,
    Policy,
    StrategyRule,
    StrategyRules,
    StrategyTable,
)
from lrms_sim.scheduling.strategies import Algorithm, Strategy, paper_strategies

SD_RANGE = (1.0, 5.0)
"""Where rules begin to look at the feature SD; paper 000 does not say."""

PERCENT_RANGE = (0.0, 100.0)
"""Range of the six features that are percentages."""


class Encoding(Protocol):
    """What genes mean."""

    @property
    def words(self) -> dict[str, Any]:
        """The encoding as plain values, for provenance and comparison."""

    def decode(self, genome: Genome) -> Policy:
        """Returns the policy of a genome; it does not know the site's calendar yet."""


@dataclass(frozen=True, slots=True)
class CriterionEncoding:
    """The parameters of one criterion for each situation (paper 001, section IV).

    Real genes within the paper's bounds, situation by situation: w1 … w5, K1 … K5, a, b; f3 has no
    b.

    Attributes:
        kinds: the formula of each situation: one for all times, or as many as the calendar has.
        algorithm: on the ordered queue: `fcfs` is the paper's Greedy; `easy` lets narrower jobs
            overtake.
    """

    kinds: tuple[CriterionKind, ...]
    algorithm: Algorithm = "fcfs"
    calendar: str = "week"

    def __post_init__(self) -> None:
        low = np.array([low for low, _ in PAPER_BOUNDS] * len(self.kinds))
        self._policy(low)

    @property
    def words(self) -> dict[str, Any]:
        """The encoding as plain values."""
        return {
            "encoding": "criterion",
            "kinds": list(self.kinds),
            "algorithm": self.algorithm,
            "calendar": self.calendar,
        }

    @property
    def space(self) -> GeneSpace:
        """36 real genes for three situations; 33 for f3."""
        bounds = np.array([bound for kind in self.kinds for bound in PAPER_BOUNDS[: _count(kind)]])
        return bounded_reals(bounds[:, 0], bounds[:, 1])

    def decode(self, genome: Genome) -> Policy:
        """Returns the strategy of a genome."""
        rows, begin = [], 0
        for kind in self.kinds:
            row = np.zeros(PARAMETERS)
            row[: _count(kind)] = genome.real[begin : begin + _count(kind)]
            begin += _count(kind)
            rows.append(row)
        if begin != len(genome.real):
            raise ValueError(f"the genome has {len(genome.real)} real genes; {begin} are needed")
        return self._policy(np.concatenate(rows))

    def encode(self, order: CriterionOrder) -> Genome:
        """Returns the genome of an order of these formulas."""
        rows = order.vector.reshape(-1, PARAMETERS)
        real = [row[: _count(kind)] for kind, row in zip(self.kinds, rows, strict=True)]
        return Genome(np.concatenate(real), np.zeros(0, np.bool_))

    def _policy(self, vector: np.ndarray[Any, np.dtype[np.float64]]) -> Strategy:
        order = CriterionOrder.from_vector(self.kinds, vector, kind=self.calendar)
        return Strategy(self.algorithm, order)


@dataclass(frozen=True, slots=True)
class TableEncoding:
    """A strategy for each of 192 classes of states (paper 000, section 5.1); default among the paper's 13."""

    strategies: tuple[Strategy, ...] = field(default_factory=paper_strategies)

    @property
    def words(self) -> dict[str, Any]:
        """The encoding as plain values."""
        return {"encoding": "table", "strategies": [one.name for one in self.strategies]}

    @property
    def space(self) -> GeneSpace:
        """192 integer genes."""
        none = np.zeros(0)
        choices = np.full(CLASSES, len(self.strategies), np.int64)
        return GeneSpace(none, none, none, choices=choices)

    def standard(self, name: str) -> Genome:
        """Returns the table with one strategy everywhere, by its name, as `fcfs-group`; else `ValueError`."""
        names = [one.name for one in self.strategies]
        if name not in names:
            raise ValueError(f"there is no strategy {name!r}; there are: {', '.join(names)}")
        table = np.full(CLASSES, names.index(name), np.int64)
        return Genome(np.zeros(0), np.zeros(0, np.bool_), table)

    def decode(self, genome: Genome) -> Policy:
        """Returns the table of a genome."""
        return StrategyTable(tuple(genome.integer.tolist()), strategies=self.strategies)


@dataclass(frozen=True, slots=True)
class RulesEncoding:
    """A base of Gaussian rules that rate each strategy (paper 000, section 4.2), by default the paper's 13."""

    strategies: tuple[Strategy, ...] = field(default_factory=paper_strategies)

    @property
    def words(self) -> dict[str, Any]:
        """The encoding as plain values."""
        return {"encoding": "rules", "strategies": [one.name for one in self.strategies]}

    @property
    def space(self) -> RuleSpace:
        """Seven features, and an alternative for each strategy."""
        low, high = np.array([SD_RANGE, *[PERCENT_RANGE] * (len(FEATURES) - 1)]).T
        return RuleSpace(low, high, len(self.strategies))

    def decode(self, genome: Genome) -> Policy:
        """Returns the rule base of a genome, as `RuleSpace.rule_base` makes them."""
        real = genome.real.reshape(-1, 2 * len(FEATURES)).tolist()
        places = genome.integer.reshape(-1, len(self.strategies)).tolist()
        return StrategyRules(
            tuple(
                StrategyRule(
                    tuple(row[: len(FEATURES)]),
                    tuple(row[len(FEATURES) :]),
                    _recommendations(levels),
                )
                for row, levels in zip(real, places, strict=True)
            ),
            strategies=self.strategies,
        )


def _recommendations(places: Sequence[int]) -> tuple[float, ...]:
    return tuple(float(LEVELS[place]) for place in places)


def _count(kind: CriterionKind) -> int:
    return PARAMETERS - 1 if kind == "f3" else PARAMETERS
