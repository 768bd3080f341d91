"""What comes of judging one genome, and what judges it."""

from dataclasses import dataclass
from typing import Protocol

from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import Figures


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
