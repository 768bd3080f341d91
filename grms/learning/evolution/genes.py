"""Genomes: vectors of real, integer and binary genes.

A strategy knows a problem by its `GeneSpace` only: the number of genes of each kind and their
initial ranges. The meaning of genes (a rule base, the parameters of a criterion, weights) and the
value of an individual belong to the problem.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

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
