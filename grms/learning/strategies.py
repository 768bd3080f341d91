"""Evolution strategies that ask and are told.

A strategy proposes genomes (`ask`) and learns their values (`tell`); it never evaluates and never
looks at a clock. All it knows, its random generator included, is in its state: a strategy that is
rebuilt from `to_state` goes on bit for bit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from grms.learning.encoding import REALS_PER_RULE, Genome, feature_values
from grms.learning.operators import (
    discrete_recombination,
    flip_mutation,
    gaussian_mutation,
    lognormal_steps,
    uniform_genome,
)
from grms.learning.randomness import generator_from_state, generator_state

RULES_MAX = 1000
"""Most rules of an individual: as many as a rule base file may hold."""

INDIVIDUALS_MAX = 100_000
"""Most parents, and most offspring in a generation."""

STEP_RANGE = (1e-6, 1.0)
"""Self-adapted steps stay between these parts of a gene's initial range: with a step of nothing a
gene would never move again, and steps of genes that do not matter wander without end."""


@dataclass(frozen=True, slots=True)
class StrategySettings:
    """The settings of an evolution strategy; the defaults are the paper's (section 4.5).

    Attributes:
        rules: rules in a rule base, N.
        parents: μ.
        offspring: λ, asked for in each generation.
        nwp_max: genes of NWP start in [0, nwp_max].
        njp_max: genes of NJP start in [0, njp_max], percent.
        nwp_step: standard deviation of the mutation of genes of NWP.
        njp_step: of genes of NJP, percent.
        flip_probability: chance of each recommendation to turn round; the paper gives none.
    """

    rules: int = 10
    parents: int = 13
    offspring: int = 91
    nwp_max: float = 10.0
    njp_max: float = 100.0
    nwp_step: float = 0.01
    njp_step: float = 0.1
    flip_probability: float = 0.1

    def __post_init__(self) -> None:
        """Checks the bounds.

        Raises:
            ValueError: a setting is out of its bounds.
        """
        for name, most in (
            ("rules", RULES_MAX),
            ("parents", INDIVIDUALS_MAX),
            ("offspring", INDIVIDUALS_MAX),
        ):
            if not 1 <= getattr(self, name) <= most:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be from 1 to {most}")
        for name in ("nwp_max", "njp_max", "nwp_step", "njp_step"):
            if not 0 < getattr(self, name) < np.inf:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it must be a finite number above 0"
                )
        if not 0 <= self.flip_probability <= 1:
            raise ValueError(f"flip_probability is {self.flip_probability}; it is a probability")


@dataclass(frozen=True, slots=True, eq=False)
class Individual:
    """A genome with its value.

    Attributes:
        genome: the genes.
        value: what was told of it; smaller is better.
        step: step sizes of the real genes where the strategy adapts them, shape (4·N,).
    """

    genome: Genome
    value: float
    step: npt.NDArray[np.float64] | None = None


def check_values(values: Sequence[float], asked: int) -> None:
    """Checks what a strategy is told.

    Args:
        values: one for each genome.
        asked: number of genomes it asked for.

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


class Strategy(Protocol):
    """What proposes genomes and learns their values."""

    @property
    def name(self) -> str:
        """The word for this strategy in files and on the command line."""

    @property
    def generation(self) -> int:
        """Generations bred and told so far; founders, which nobody bred, do not count."""

    @property
    def best(self) -> Individual | None:
        """The best individual told so far; None before the first generation."""

    def ask(self) -> list[Genome]:
        """Returns the genomes of the next generation; the same until they are told."""

    def tell(self, values: Sequence[float]) -> None:
        """Learns the values of what was asked, in that order; smaller is better.

        Raises:
            ValueError: nothing was asked, there are more or fewer values than genomes, or one is
                not a finite number.
        """

    def to_state(self) -> dict[str, Any]:
        """Returns all the strategy knows as plain values that JSON keeps exactly."""


class EvolutionStrategy:
    """The (μ+λ)-strategy of the paper, or its self-adaptive variant.

    The first generation is μ uniform individuals. Every further one is λ children: each gene is
    that of a parent drawn anew for it among all μ; real genes take a normal step; recommendations
    may flip. The best μ of parents and children are the next parents; of equal values the older,
    and among children the earlier, is better.

    In the self-adaptive variant each individual carries a step size for each real gene, which is
    recombined by the geometric mean of all parents and mutated log-normally before it is used.

    Args:
        settings: μ, λ and the rest.
        rng: the only source of randomness.
        self_adaptive: let step sizes evolve, starting from a tenth of the initial range.
    """

    def __init__(
        self,
        settings: StrategySettings,
        rng: np.random.Generator,
        *,
        self_adaptive: bool = False,
    ) -> None:
        self.settings = settings
        self._rng = rng
        self._self_adaptive = self_adaptive
        self._parents: list[Individual] = []
        self._asked: list[tuple[Genome, npt.NDArray[np.float64] | None]] = []
        self._told = 0

    @property
    def name(self) -> str:
        """The word for this strategy in files and on the command line."""
        return "self-adaptive" if self._self_adaptive else "paper"

    @property
    def generation(self) -> int:
        """Generations bred and told so far; founders, which nobody bred, do not count."""
        return max(0, self._told - 1)

    @property
    def best(self) -> Individual | None:
        """The best individual told so far; None before the first generation."""
        return self._parents[0] if self._parents else None

    @property
    def parents(self) -> tuple[Individual, ...]:
        """The present parents, best first."""
        return tuple(self._parents)

    def ask(self) -> list[Genome]:
        """Returns the genomes of the next generation; the same until they are told."""
        if not self._asked:
            if self._parents:
                self._asked = [self._child() for _ in range(self.settings.offspring)]
            else:
                self._asked = [self._founder() for _ in range(self.settings.parents)]
        return [genome for genome, _ in self._asked]

    def tell(self, values: Sequence[float]) -> None:
        """Learns the values of what was asked, in that order; smaller is better.

        Raises:
            ValueError: nothing was asked, there are more or fewer values than genomes, or one is
                not a finite number.
        """
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

    def _founder(self) -> tuple[Genome, npt.NDArray[np.float64] | None]:
        settings = self.settings
        genome = uniform_genome(self._rng, settings.rules, settings.nwp_max, settings.njp_max)
        return genome, self._initial_range() / 10 if self._self_adaptive else None

    def _initial_range(self) -> npt.NDArray[np.float64]:
        settings = self.settings
        return feature_values(settings.rules, settings.nwp_max, settings.njp_max)

    def _child(self) -> tuple[Genome, npt.NDArray[np.float64] | None]:
        settings = self.settings
        child = discrete_recombination(self._rng, [parent.genome for parent in self._parents])
        step: npt.NDArray[np.float64] | None = None
        if self._self_adaptive:
            count = REALS_PER_RULE * settings.rules
            steps = [parent.step for parent in self._parents if parent.step is not None]
            step = lognormal_steps(
                self._rng,
                np.exp(np.mean(np.log(steps), axis=0)),
                1 / np.sqrt(2 * count),
                1 / np.sqrt(2 * np.sqrt(count)),
            )
            initial_range = self._initial_range()
            step = np.clip(step, STEP_RANGE[0] * initial_range, STEP_RANGE[1] * initial_range)
            child = gaussian_mutation(self._rng, child, step)
        else:
            fixed = feature_values(settings.rules, settings.nwp_step, settings.njp_step)
            child = gaussian_mutation(self._rng, child, fixed)
        return flip_mutation(self._rng, child, settings.flip_probability), step

    def to_state(self) -> dict[str, Any]:
        """Returns all the strategy knows as plain values that JSON keeps exactly."""

        def noted(genome: Genome, step: npt.NDArray[np.float64] | None) -> dict[str, Any]:
            return genome.to_state() | {"step": None if step is None else step.tolist()}

        return {
            "strategy": self.name,
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
            StrategySettings(**state["settings"]),
            generator_from_state(state["rng"]),
            self_adaptive=state["strategy"] == "self-adaptive",
        )

        def step_of(one: Mapping[str, Any]) -> npt.NDArray[np.float64] | None:
            return None if one["step"] is None else np.array(one["step"], np.float64)

        strategy._told = state["told"]
        strategy._parents = [
            Individual(Genome.from_state(one), one["value"], step_of(one))
            for one in state["parents"]
        ]
        strategy._asked = [(Genome.from_state(one), step_of(one)) for one in state["asked"]]
        return strategy
