"""Variation: one function each, everything random drawn from the generator that is given.

Evolution strategies after Schwefel, "Evolution and Optimum Seeking" (1995); settings after paper
003, section 4.5.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from grms.learning.encoding import REALS_PER_RULE, Genome, feature_values

FloatArray = npt.NDArray[np.float64]


def uniform_genome(rng: np.random.Generator, rules: int, nwp_max: float, njp_max: float) -> Genome:
    """Returns an individual drawn uniformly.

    Args:
        rng: the generator.
        rules: number of rules, N.
        nwp_max: genes of NWP come from [0, nwp_max]; the paper has 10.
        njp_max: genes of NJP come from [0, njp_max]; the paper has 100.

    Returns:
        The individual; recommendations are +1 or -1 with equal chance.
    """
    real = rng.random(REALS_PER_RULE * rules) * feature_values(rules, nwp_max, njp_max)
    return Genome(real, rng.random(rules) < 0.5)


def discrete_recombination(rng: np.random.Generator, parents: Sequence[Genome]) -> Genome:
    """Returns a child each of whose genes is that of a parent drawn anew for it.

    Args:
        rng: the generator.
        parents: at least one; all of them take part.
    """
    first = parents[0]
    real_from = rng.integers(len(parents), size=len(first.real))
    accept_from = rng.integers(len(parents), size=len(first.accept))
    real = np.stack([parent.real for parent in parents])
    accept = np.stack([parent.accept for parent in parents])
    return Genome(
        real[real_from, np.arange(len(first.real))],
        accept[accept_from, np.arange(len(first.accept))],
    )


def gaussian_mutation(rng: np.random.Generator, genome: Genome, step: FloatArray) -> Genome:
    """Returns the individual with a normal step added to each real gene.

    Args:
        rng: the generator.
        genome: the individual.
        step: standard deviation for each real gene, shape (4·N,).
    """
    return Genome(genome.real + rng.standard_normal(len(genome.real)) * step, genome.accept)


def flip_mutation(rng: np.random.Generator, genome: Genome, probability: float) -> Genome:
    """Returns the individual with each recommendation turned round with a probability."""
    flips = rng.random(len(genome.accept)) < probability
    return Genome(genome.real, genome.accept ^ flips)


def lognormal_steps(
    rng: np.random.Generator, step: FloatArray, common_rate: float, own_rate: float
) -> FloatArray:
    """Returns self-adapted step sizes (Schwefel 1995, section 5).

    Args:
        rng: the generator.
        step: present step sizes, shape (n,).
        common_rate: τ₀, of the factor that all share.
        own_rate: τ, of the factor that each has.

    Returns:
        step · exp(τ₀·N(0,1) + τ·Nᵢ(0,1)), shape (n,).
    """
    common = common_rate * rng.standard_normal()
    factors: FloatArray = np.exp(common + own_rate * rng.standard_normal(len(step)))
    return step * factors
