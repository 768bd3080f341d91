"""Evolution strategies with an ask-and-tell interface.

A strategy proposes genomes (`ask`) and learns their values (`tell`); it never evaluates and has no
clock; it knows the problem by its `GeneSpace` only. Its state is complete, random generator
included: a strategy rebuilt from `to_state` continues bit for bit.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np

from grms.learning.evolution.genes import (
    FloatArray,
    GeneSpace,
    Genome,
    discrete_recombination,
    flip_mutation,
    gaussian_mutation,
    geometric_mean_steps,
    intermediate_steps,
    lognormal_steps,
    redraw_mutation,
    uniform_genome,
)
from grms.learning.evolution.randomness import generator_from_state, generator_state

INDIVIDUALS_MAX = 100_000
StepRule = Literal["paper", "self-adaptive", "two-parents"]
"""Width of mutations; also the names of the strategies.

`paper`: as wide as the space says, always (paper 003, section 4.5). `self-adaptive`: a step size
for each real gene, recombined by the geometric mean of all parents (Schwefel 1995). `two-parents`:
the same with the mean of two random parents (paper 001, section IV-C; Beyer and Schwefel 2002).
"""

STEP_RULES: tuple[StepRule, ...] = ("paper", "self-adaptive", "two-parents")

STEP_RANGES: dict[StepRule, tuple[float, float]] = {
    "self-adaptive": (1e-6, 1.0),
    "two-parents": (1e-5, math.inf),
}
"""Bounds of self-adapted steps as parts of a gene's initial range: with a step of zero a gene would
never move again, and steps of irrelevant genes wander without end.
"""

STEP_START = 0.1
"""Self-adapted steps begin at this part of a gene's initial range."""


@dataclass(frozen=True, slots=True)
class StrategySettings:
    """The settings of an evolution strategy; the defaults are those of paper 003 (section 4.5).

    Attributes:
        parents: μ.
        offspring: λ, asked for in each generation.
        flip_probability: of each binary gene; the paper gives none.
        redraw_probability: of each integer gene.
    """

    parents: int = 13
    offspring: int = 91
    flip_probability: float = 0.1
    redraw_probability: float = 0.1

    def __post_init__(self) -> None:
        for name in ("parents", "offspring"):
            if not 1 <= getattr(self, name) <= INDIVIDUALS_MAX:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it must be from 1 to {INDIVIDUALS_MAX}"
                )
        for name in ("flip_probability", "redraw_probability"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it is a probability")


@dataclass(frozen=True, slots=True, eq=False)
class Individual:
    """A genome, its value (smaller is better) and self-adapted steps, shape (n,), if any."""

    genome: Genome
    value: float
    step: FloatArray | None = None

    def to_state(self) -> dict[str, Any]:
        """Returns genome and value as plain values, exact to the last bit."""
        return self.genome.to_state() | {"value": self.value}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Returns the individual that `to_state` described."""
        return cls(Genome.from_state(state), state["value"])


def check_values(values: Sequence[float], asked: int) -> None:
    """Checks the values passed to `tell`.

    Raises:
        ValueError: nothing was asked, there are more or fewer values than genomes, or one is not a
            finite number.
    """
    if asked == 0:
        raise ValueError("nothing was asked, so nothing can be told")
    if len(values) != asked:
        raise ValueError(f"{len(values)} values for {asked} genomes")
    bad = next((value for value in values if not np.isfinite(value)), None)
    if bad is not None:
        raise ValueError(f"a value is {bad}; it must be a finite number")


Figures = tuple[tuple[float, ...], ...]
"""Measurements of an evaluation in addition to its value: `Evaluation.figures`."""


class Strategy(ABC):
    """Proposes genomes and learns their values.

    `_told` and `_best` are for subclasses that count generations and keep the best individual here.
    """

    _told: int = 0
    _best: Individual | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """The word for this strategy in files and on the command line."""

    @property
    def generation(self) -> int:
        """Generations bred and told so far; founders do not count."""
        return max(0, self._told - 1)

    @property
    def best(self) -> Individual | None:
        """The best individual told so far; None before the first generation."""
        return self._best

    @property
    def bound(self) -> float:
        """The value above which it does not matter how bad a genome of this generation is.

        It holds for the whole generation, so the result of a stopped evaluation does not depend on
        the order of evaluation. Infinite if every value counts.
        """
        return math.inf

    @property
    def exhausted(self) -> str:
        """Why there is nothing more to ask, for people; empty while there is."""
        return ""

    @abstractmethod
    def ask(self) -> list[Genome]:
        """Returns the genomes of the next generation; the same until `tell`."""

    @abstractmethod
    def tell(self, values: Sequence[float], figures: Sequence[Figures] = ()) -> None:
        """Learns the values of the genomes, in that order; smaller is better.

        `figures` are for strategies that use them.

        Raises:
            ValueError: nothing was asked, there are more or fewer values than genomes, or one is
                not a finite number.
        """

    @abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Returns all the strategy knows as plain values that JSON keeps exactly."""

    def _keep_best(self, genomes: Sequence[Genome], values: Sequence[float]) -> bool:
        """Keeps the first of the best genomes if it beats the best so far; returns whether it does."""
        first = min(range(len(values)), key=values.__getitem__)
        if self._best is not None and values[first] >= self._best.value:
            return False
        self._best = Individual(genomes[first], float(values[first]))
        return True


class EvolutionStrategy(Strategy):
    """The (μ+λ)-strategy of the papers, with fixed or with self-adapted steps.

    The first generation is μ individuals, given founders and uniform ones. Every further one is λ
    children: each gene is that of a parent drawn anew for it among all μ; real genes take a normal
    step; binary genes may flip, and integer genes may be drawn anew. The best μ of parents and
    children are the next parents; of equal values the older, and among children the earlier, is
    better.

    With self-adapted steps, each individual carries a step size for each real gene, which is
    recombined and mutated log-normally before it is used.

    Args:
        space: the genes.
        settings: μ, λ and the rest.
        rng: the only source of randomness.
        step_rule: width of mutations.
        founders: genomes of the first generation, before those drawn; of more than μ the first μ.
    """

    def __init__(
        self,
        space: GeneSpace,
        settings: StrategySettings,
        rng: np.random.Generator,
        *,
        step_rule: StepRule = "paper",
        founders: Sequence[Genome] = (),
    ) -> None:
        self.space = space
        self.settings = settings
        self._rng = rng
        self._step_rule: StepRule = step_rule
        self._parents: list[Individual] = []
        self._asked: list[tuple[Genome, FloatArray | None]] = []
        self._founders = tuple(founders)

    @property
    def name(self) -> str:
        """The word for this strategy in files and on the command line."""
        return self._step_rule

    @property
    def best(self) -> Individual | None:
        """The best individual told so far; None before the first generation."""
        return self._parents[0] if self._parents else None

    @property
    def parents(self) -> tuple[Individual, ...]:
        """The present parents, best first."""
        return tuple(self._parents)

    @property
    def bound(self) -> float:
        """The value of the worst parent: a worse genome cannot become a parent."""
        return self._parents[-1].value if self._parents else math.inf

    def ask(self) -> list[Genome]:
        """Returns the genomes of the next generation; the same until `tell`."""
        if not self._asked:
            if self._parents:
                self._asked = [self._child() for _ in range(self.settings.offspring)]
            else:
                given = [(genome, self._first_step()) for genome in self._founders]
                drawn = [self._founder() for _ in range(self.settings.parents - len(given))]
                self._asked = [*given, *drawn][: self.settings.parents]
        return [genome for genome, _ in self._asked]

    def tell(self, values: Sequence[float], figures: Sequence[Figures] = ()) -> None:
        """Learns the values of what was asked, in that order; smaller is better."""
        del figures
        check_values(values, len(self._asked))
        children = [
            Individual(genome, float(value), step)
            for (genome, step), value in zip(self._asked, values, strict=True)
        ]
        # A stable sort: parents stand before children, so the older wins a tie.
        self._parents = sorted([*self._parents, *children], key=lambda one: one.value)
        self._parents = self._parents[: self.settings.parents]
        self._asked = []
        self._told += 1

    def _founder(self) -> tuple[Genome, FloatArray | None]:
        genome = uniform_genome(self._rng, self.space)
        return genome, self._first_step()

    def _first_step(self) -> FloatArray | None:
        return None if self._step_rule == "paper" else self.space.span * STEP_START

    def _child(self) -> tuple[Genome, FloatArray | None]:
        child = discrete_recombination(self._rng, [parent.genome for parent in self._parents])
        step = None if self._step_rule == "paper" else self._adapted_step()
        child = gaussian_mutation(self._rng, child, self.space.step if step is None else step)
        child = flip_mutation(self._rng, child, self.settings.flip_probability)
        child = redraw_mutation(self._rng, child, self.space, self.settings.redraw_probability)
        return self.space.confined(child), step

    def _adapted_step(self) -> FloatArray:
        steps = [parent.step for parent in self._parents if parent.step is not None]
        pairwise = self._step_rule == "two-parents"
        count = max(1, len(self.space.low))
        step = lognormal_steps(
            self._rng,
            intermediate_steps(self._rng, steps) if pairwise else geometric_mean_steps(steps),
            1 / np.sqrt(2 * count),
            1 / np.sqrt(2 * np.sqrt(count)),
        )
        least, most = STEP_RANGES[self._step_rule]
        return np.clip(step, least * self.space.span, most * self.space.span)

    def to_state(self) -> dict[str, Any]:
        """Returns all the strategy knows as plain values that JSON keeps exactly."""

        def noted(genome: Genome, step: FloatArray | None) -> dict[str, Any]:
            return genome.to_state() | {"step": None if step is None else step.tolist()}

        return {
            "strategy": self.name,
            "space": self.space.to_state(),
            "settings": asdict(self.settings),
            "rng": generator_state(self._rng),
            "told": self._told,
            "parents": [
                noted(one.genome, one.step) | {"value": one.value} for one in self._parents
            ],
            "asked": [noted(genome, step) for genome, step in self._asked],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Returns the strategy that `to_state` described; it goes on bit for bit."""
        strategy = cls(
            GeneSpace.from_state(state["space"]),
            StrategySettings(**state["settings"]),
            generator_from_state(state["rng"]),
            step_rule=state["strategy"],
        )

        def step_of(one: Mapping[str, Any]) -> FloatArray | None:
            return None if one["step"] is None else np.array(one["step"], np.float64)

        strategy._told = state["told"]
        strategy._parents = [
            Individual(Genome.from_state(one), one["value"], step_of(one))
            for one in state["parents"]
        ]
        strategy._asked = [(Genome.from_state(one), step_of(one)) for one in state["asked"]]
        return strategy


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Result of one genome.

    Attributes:
        value: the objective; smaller is better. If the evaluation stopped above a bound, the value
            by then, which is more than the bound.
        figures: further measurements: a row for each workload, with columns named by the problem;
            empty if the evaluation was stopped.
    """

    value: float
    figures: Figures = ()


class FitnessFunction(Protocol):
    """What judges one genome: safe in several threads at a time, the result not depending on which."""

    def __call__(self, genome: Genome, bound: float, /) -> Evaluation:
        """Evaluates a genome; may stop above the bound, which is infinite if all values matter."""
