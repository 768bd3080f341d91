"""Warm-up and cool-down: the jobs at the beginning and the end of a log, which run but do not count.

A replay begins with an empty machine and ends with one on which nobody follows.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from lrms_sim.analysis import metrics
from lrms_sim.workload.jobs import SECONDS_PER_DAY, BoolArray, JobTable
from lrms_sim.workload.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Counted:
    """Which jobs count, by their submission.

    Attributes:
        begin: seconds; jobs submitted earlier do not count. Minus infinity if nothing is cut off.
        end: seconds; nor do those that are submitted later. Infinity if nothing is cut off.
    """

    begin: float = -math.inf
    end: float = math.inf

    def of(self, jobs: JobTable) -> BoolArray | None:
        """Returns which jobs count, shape (n,); `None` for all."""
        if self == Counted():
            return None
        return (jobs.submit_time >= self.begin) & (jobs.submit_time <= self.end)

    def part(self, schedule: Schedule) -> Schedule:
        """Returns the schedule of the jobs that count."""
        chosen = self.of(schedule.jobs)
        return schedule if chosen is None else schedule.select(np.flatnonzero(chosen))

    def utilization(self, schedule: Schedule) -> float:
        """Returns the share of the machine that is in use from `begin` to `end`, whoever uses it.

        Where nothing is cut off it is that of `lrms_sim.analysis.metrics.utilization`.
        """
        if self == Counted():
            return metrics.utilization(schedule)
        held = np.minimum(schedule.end_time, self.end) - np.maximum(schedule.start_time, self.begin)
        work = float(np.sum(np.maximum(held, 0.0) * schedule.jobs.processors))
        span = self.end - self.begin
        return work / (schedule.machines[0].processors * span) if span > 0 else math.nan


ALL: Final = Counted()
"""Nothing is cut off."""


def counted_jobs(name: str, jobs: JobTable, warm_up_days: float, cool_down_days: float) -> Counted:
    """Returns which jobs of a log count: not those submitted in its first days, nor in its last.

    Raises:
        ValueError: no job is left, or days are less than 0; `name` is the log's.
    """
    for word, days in (("warm-up", warm_up_days), ("cool-down", cool_down_days)):
        if not 0 <= days < math.inf:
            raise ValueError(f"{word} is {days} days; it must be 0 or more")
    if not len(jobs):
        raise ValueError(f"the log {name!r} has no job")
    if warm_up_days == cool_down_days == 0:
        return Counted()
    first, last = float(jobs.submit_time[0]), float(jobs.submit_time[-1])
    found = Counted(first + warm_up_days * SECONDS_PER_DAY, last - cool_down_days * SECONDS_PER_DAY)
    if not np.any(found.of(jobs)):
        raise ValueError(
            f"no job of the log {name!r} counts: it is {(last - first) / SECONDS_PER_DAY:.1f} days "
            f"long, of which {warm_up_days:g} are warm-up and {cool_down_days:g} cool-down"
        )
    return found
