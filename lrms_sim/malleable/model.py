"""The paper's workload: jobs of random width and length that arrive at random.

Drawn from `numpy.random.Generator(PCG64(seed))` in this order: the number of arrivals in each of
the steps 0 … T-1, Poisson with mean `rate`; then the widths of all jobs; then their lengths, all
uniform over whole numbers, ends included (Vengerov, section 5).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.workload.jobs import JobTable

PROCESSORS: Final = 24
"""The machine of the paper's experiments."""

TRAINING_STEPS: Final = 25_000
TEST_STEPS: Final = 20_000
"""How long the paper learns and tests, in time steps."""


@dataclass(frozen=True, slots=True)
class PaperModel:
    """Parameters of the paper's jobs.

    Attributes:
        rate: mean number of arrivals in a time step; at least 0.
        widths: least and greatest processors.
        lengths: least and greatest ideal run time, in steps.
        shape: of the utility, a name of `lrms_sim.malleable.jobs.SHAPES`.
    """

    rate: float = 0.1
    widths: tuple[int, int] = (4, 20)
    lengths: tuple[int, int] = (5, 10)
    shape: str = "linear"

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1000:
            raise ValueError(f"rate is {self.rate}; it must be from 0 to 1000")
        for name in ("widths", "lengths"):
            low, high = getattr(self, name)
            if not 1 <= low <= high:
                raise ValueError(f"{name} are {low} to {high}; they must be 1 at least, upward")

    def draw(self, steps: int, seed: int) -> UtilityJobs:
        """Returns the jobs that arrive in so many steps; `ValueError` if `steps` is negative."""
        if steps < 0:
            raise ValueError(f"steps is {steps}; it must be at least 0")
        generator = np.random.Generator(np.random.PCG64(seed))
        arrivals = generator.poisson(self.rate, steps)
        count = int(arrivals.sum())
        width = generator.integers(*self.widths, count, endpoint=True)
        length = generator.integers(*self.lengths, count, endpoint=True).astype(np.float64)
        jobs = JobTable.from_columns(
            submit_time=np.repeat(np.arange(steps, dtype=np.float64), arrivals),
            processors=width.astype(np.int32),
            run_time=length,
        )
        return UtilityJobs.of(jobs, shape=self.shape)
