"""Queues so long that conservative backfilling keeps its plan in another way."""

from dataclasses import dataclass

import numpy as np

from lrms_sim.kernel._conservative import ConservativeScheduler
from lrms_sim.kernel._scheduler import Scheduler
from lrms_sim.scheduling.disciplines import Batched
from lrms_sim.workload.jobs import JobTable

NEVER = 10**9
"""Jobs that never wait at once: the plan stays in the flat arrays of a short queue."""


@dataclass(frozen=True, slots=True)
class LongFrom(Batched):
    """Conservative backfilling that takes a queue for a long one from so many jobs on."""

    long_queue: int
    name: str = "conservative"

    def scheduler(self) -> Scheduler:
        """Returns a new compiled scheduler."""
        return ConservativeScheduler(self.long_queue)


def flood(seed: int, count: int, processors: int, unit: float) -> JobTable:
    """Returns jobs that come far faster than they can run, with estimates that are far too long.

    Widths are powers of two, or anything; each early end moves hundreds of reservations.
    """
    rng = np.random.default_rng(seed)
    run_time = rng.integers(1, 300, count)
    widths = 2 ** rng.integers(0, processors.bit_length(), count)
    anything = rng.random(count) < rng.choice((0.0, 0.5, 1.0))
    widths[anything] = rng.integers(1, processors + 1, count)[anything]
    request = np.ceil(run_time * rng.uniform(1, 5, count) / 10) * 10
    return JobTable.from_columns(
        submit_time=np.sort(rng.integers(0, 400, count)) * unit,
        processors=np.minimum(widths, processors),
        run_time=run_time * unit,
        requested_time=request * unit,
    )
