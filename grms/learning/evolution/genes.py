"""Genomes, the spaces they are from, and their variation by operators, which draw from the given generator.

Evolution strategies after Schwefel, "Evolution and Optimum Seeking" (1995), and Beyer and Schwefel,
"Evolution strategies: a comprehensive introduction" (2002). Missing kinds of genes draw nothing.
Crossover and mutation of NSGA-II are those of Deb and Agrawal, "Simulated Binary Crossover for
Continuous Search Space" (1995), and Deb and Goyal, "A Combined Genetic Adaptive Search (GeneAS) for
Engineering Design" (1996).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntegerArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
GENES_MAX = 100_000


def _no_integers() -> IntegerArray:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Genome:
    """One individual.

    Attributes:
        real: shape (n,), float64.
        binary: shape (b,), bool.
        integer: shape (m,), int64; each from 0 to below the number of its choices.
    """

    real: FloatArray
    binary: BoolArray
    integer: IntegerArray = field(default_factory=_no_integers)

    def to_state(self) -> dict[str, Any]:
        """Returns the genome as plain lists, exact to the last bit."""
        return {
            "real": self.real.tolist(),
            "binary": self.binary.astype(int).tolist(),
            "integer": self.integer.tolist(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Returns the genome that `to_state` described."""
        return cls(
            np.array(state["real"], np.float64),
            np.array(state["binary"], np.bool_),
            np.array(state["integer"], np.int64),
        )


@dataclass(frozen=True, slots=True, eq=False)
class GeneSpace:
    """The genes of a problem.

    Attributes:
        low: shape (n,), initial minimum of each real gene.
        high: shape (n,), initial maximum of each real gene; above `low`.
        step: shape (n,), standard deviation of the mutation of each real gene, for strategies that
            do not adapt it.
        bounded: whether real genes always stay between `low` and `high`.
        choices: shape (m,), number of values of each integer gene.
        binaries: number of binary genes, b.
    """

    low: FloatArray
    high: FloatArray
    step: FloatArray
    bounded: bool = False
    choices: IntegerArray = field(default_factory=_no_integers)
    binaries: int = 0

    def __post_init__(self) -> None:
        if not len(self.low) == len(self.high) == len(self.step):
            raise ValueError(
                f"{len(self.low)} lower bounds, {len(self.high)} upper bounds and {len(self.step)} "
                f"steps; each real gene needs one of each"
            )
        counts = (len(self.low), len(self.choices), self.binaries)
        if not (min(counts) >= 0 and sum(counts) >= 1 and max(counts) <= GENES_MAX):
            raise ValueError(
                f"{counts[0]} real, {counts[1]} integer and {counts[2]} binary genes; there must be "
                f"one, and at most {GENES_MAX} of a kind"
            )
        span = self.high - self.low
        if not (np.isfinite(span) & (span > 0)).all():
            raise ValueError("the initial range of a real gene must be finite and not empty")
        if not (np.isfinite(self.step) & (self.step > 0)).all():
            raise ValueError("the step of a real gene must be a finite number above 0")
        if (self.choices < 1).any():
            raise ValueError(f"an integer gene has {self.choices.min()} choices; it needs one")

    @property
    def span(self) -> FloatArray:
        """Width of each real gene's initial range, shape (n,)."""
        return self.high - self.low

    def confined(self, genome: Genome) -> Genome:
        """Returns the genome with its real genes within the bounds, where there are bounds."""
        if not self.bounded:
            return genome
        return Genome(np.clip(genome.real, self.low, self.high), genome.binary, genome.integer)

    def to_state(self) -> dict[str, Any]:
        """Returns the space as plain values, exact to the last bit."""
        return {
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "step": self.step.tolist(),
            "bounded": self.bounded,
            "choices": self.choices.tolist(),
            "binaries": self.binaries,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Returns the space that `to_state` described."""
        return cls(
            np.array(state["low"], np.float64),
            np.array(state["high"], np.float64),
            np.array(state["step"], np.float64),
            state["bounded"],
            np.array(state["choices"], np.int64),
            state["binaries"],
        )


def bounded_reals(low: FloatArray, high: FloatArray, *, step_share: float = 0.1) -> GeneSpace:
    """Returns the space of a bounded real vector, with steps as a share of each gene's range."""
    return GeneSpace(low, high, step_share * (high - low), bounded=True)


Scalar = TypeVar("Scalar", np.float64, np.bool_, np.int64)


def uniform_genome(rng: np.random.Generator, space: GeneSpace) -> Genome:
    """Returns an individual drawn uniformly: reals from their initial ranges, all choices alike."""
    real = space.low + rng.random(len(space.low)) * space.span
    binary = rng.random(space.binaries) < 0.5
    return Genome(real, binary, rng.integers(space.choices))


def discrete_recombination(rng: np.random.Generator, parents: Sequence[Genome]) -> Genome:
    """Returns a child each of whose genes is that of a parent drawn anew for it among all."""

    def mixed(genes: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        count = genes.shape[1]
        chosen: npt.NDArray[Scalar] = genes[
            rng.integers(len(parents), size=count), np.arange(count)
        ]
        return chosen

    return Genome(
        mixed(np.stack([parent.real for parent in parents])),
        mixed(np.stack([parent.binary for parent in parents])),
        mixed(np.stack([parent.integer for parent in parents])),
    )


def gaussian_mutation(rng: np.random.Generator, genome: Genome, step: FloatArray) -> Genome:
    """Returns the individual with normal steps of deviations `step`, shape (n,), on real genes."""
    real = genome.real + rng.standard_normal(len(genome.real)) * step
    return Genome(real, genome.binary, genome.integer)


def flip_mutation(rng: np.random.Generator, genome: Genome, probability: float) -> Genome:
    """Returns the individual with each binary gene turned round with a probability."""
    flips = rng.random(len(genome.binary)) < probability
    return Genome(genome.real, genome.binary ^ flips, genome.integer)


def redraw_mutation(
    rng: np.random.Generator, genome: Genome, space: GeneSpace, probability: float
) -> Genome:
    """Returns the individual with each integer gene drawn anew with a probability, uniformly."""
    redrawn = rng.random(len(genome.integer)) < probability
    integer = np.where(redrawn, rng.integers(space.choices), genome.integer)
    return Genome(genome.real, genome.binary, integer)


def geometric_mean_steps(steps: Sequence[FloatArray]) -> FloatArray:
    """Returns step sizes recombined over all parents by their geometric mean, shape (n,)."""
    mean: FloatArray = np.exp(np.mean(np.log(steps), axis=0))
    return mean


def intermediate_steps(rng: np.random.Generator, steps: Sequence[FloatArray]) -> FloatArray:
    """Returns the mean of the step sizes of two parents drawn at random, shape (n,).

    The two may be the same one (Beyer and Schwefel 2002, section 3.2, ρ = 2).
    """
    first, second = rng.integers(len(steps), size=2)
    mean: FloatArray = 0.5 * (steps[first] + steps[second])
    return mean


def lognormal_steps(
    rng: np.random.Generator, step: FloatArray, common_rate: float, own_rate: float
) -> FloatArray:
    """Returns self-adapted step sizes (Schwefel 1995, section 5), shape (n,).

    step · exp(τ₀·N(0,1) + τ·Nᵢ(0,1)), with a `common_rate` τ₀ and an `own_rate` τ of each gene.
    """
    common = common_rate * rng.standard_normal()
    factors: FloatArray = np.exp(common + own_rate * rng.standard_normal(len(step)))
    return step * factors


def simulated_binary_crossover(
    rng: np.random.Generator, first: FloatArray, second: FloatArray, index: float
) -> tuple[FloatArray, FloatArray]:
    """Returns two children about as far apart as their parents, given as real genes, shape (n,).

    Each gene is crossed with probability 1/2; the sum of the two stays. The larger the index η_c, 0
    and more, the nearer are children to their parents.
    """
    drawn = rng.random(len(first))
    crossed = rng.random(len(first)) < 0.5
    exponent = 1.0 / (index + 1.0)
    # The last of drawn is below 1, so nothing is divided by 0.
    beta = np.where(
        drawn <= 0.5, (2.0 * drawn) ** exponent, (1.0 / (2.0 * (1.0 - drawn))) ** exponent
    )
    middle, half = 0.5 * (first + second), 0.5 * beta * (second - first)
    return np.where(crossed, middle - half, first), np.where(crossed, middle + half, second)


def polynomial_mutation(
    rng: np.random.Generator, genome: Genome, space: GeneSpace, index: float, probability: float
) -> Genome:
    """Returns the individual with some real genes moved by a part of their range.

    Each moves with the given probability. The larger the index η_m, 0 and more, the smaller are the
    steps.
    """
    drawn = rng.random(len(genome.real))
    moved = rng.random(len(genome.real)) < probability
    exponent = 1.0 / (index + 1.0)
    step = np.where(
        drawn < 0.5, (2.0 * drawn) ** exponent - 1.0, 1.0 - (2.0 * (1.0 - drawn)) ** exponent
    )
    real = np.where(moved, genome.real + step * space.span, genome.real)
    return Genome(real, genome.binary, genome.integer)
