"""Variation operators, which draw from the given generator.

Evolution strategies after Schwefel, "Evolution and Optimum Seeking" (1995), and Beyer and Schwefel,
"Evolution strategies: a comprehensive introduction" (2002). Missing kinds of genes draw nothing.
Crossover and mutation of NSGA-II are those of Deb and Agrawal, "Simulated Binary Crossover for
Continuous Search Space" (1995), and Deb and Goyal, "A Combined Genetic Adaptive Search (GeneAS) for
Engineering Design" (1996).
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from grms.learning.evolution.genes import FloatArray, GeneSpace, Genome

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
