"""What comes of judging one genome, and what judges it."""

from dataclasses import dataclass
from typing import Protocol

from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import Figures


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What came of one genome.

    Attributes:
        value: the objective; smaller is better. Of an evaluation that stopped above a bound, what
            it had come to by then, which is more than the bound.
        figures: what was measured beside it: a row for each workload, whose columns the problem
            names; empty where the evaluation was stopped.
    """

    value: float
    figures: Figures = ()


class FitnessFunction(Protocol):
    """What judges one genome: safe in several threads at a time, the result not depending on which."""

    def __call__(self, genome: Genome, bound: float, /) -> Evaluation:
        """Judges a genome.

        Args:
            genome: the individual.
            bound: a value above which nobody asks how bad it is: the evaluation may stop there.
                Infinite where all values matter.
        """
