"""Compares a day of jobs as it was run with the same day as it was simulated: order of starts, and gain."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from lrms_sim.workload.jobs import FloatArray
from lrms_sim.workload.schedule import Schedule


@dataclass(frozen=True, slots=True, eq=False)
class Day:
    """When and where the jobs of a day ran; rows in order of site and arrival.

    Attributes:
        sites: names, in order.
        home, place: shape (n,), index of the home and the executing site.
        weight: shape (n,), processors times run time as recorded.
        submit_time: shape (n,), as recorded, seconds.
        start_time, end_time: shape (n,), seconds.
    """

    sites: tuple[str, ...]
    home: FloatArray
    place: FloatArray
    weight: FloatArray
    submit_time: FloatArray
    start_time: FloatArray
    end_time: FloatArray

    @classmethod
    def of_schedule(cls, schedule: Schedule) -> Self:
        """Returns a simulated day."""
        order = np.lexsort((schedule.log_job_id, schedule.submitted_to))
        return cls(
            tuple(machine.name for machine in schedule.machines),
            schedule.submitted_to[order].astype(float),
            schedule.executed_on[order].astype(float),
            schedule.jobs.resource_consumption[order].astype(float),
            schedule.jobs.submit_time[order],
            schedule.start_time[order],
            schedule.end_time[order],
        )

    def awrt(self) -> dict[str, float]:
        """Returns the average weighted response time of each site's users and of all, seconds."""
        response = self.weight * (self.end_time - self.submit_time)
        found = {}
        for index, name in enumerate(self.sites):
            own = self.home == index
            found[name] = float(np.sum(response[own]) / np.sum(self.weight[own]))
        return found | {"all": float(np.sum(response) / np.sum(self.weight))}


def gains(day: Day, alone: Day) -> dict[str, float]:
    """Returns by how many percent the AWRT is better than without exchange, of each site and of all."""
    before, after = alone.awrt(), day.awrt()
    return {name: 100.0 * (1.0 - after[name] / before[name]) for name in before}


def turned(real: Day, simulated: Day, tie_s: float) -> tuple[int, int]:
    """Returns the pairs of jobs that started in the other order than simulated, and all pairs.

    Pairs count if both ran at the same site in both, with starts more than `tie_s` seconds apart in both.
    """
    wrong = total = 0
    for index in range(len(real.sites)):
        here = np.flatnonzero((real.place == index) & (simulated.place == index))
        one, other = simulated.start_time[here], real.start_time[here]
        apart = one[None, :] - one[:, None]
        found = other[None, :] - other[:, None]
        total += int(np.sum((apart > tie_s) & (np.abs(found) > tie_s)))
        wrong += int(np.sum((apart > tie_s) & (found < -tie_s)))
    return wrong, total


def compared(real: Day, simulated: Day, tie_s: float, speed: float) -> dict[str, Any]:
    """Compares a real day with the simulated one, at `speed` trace seconds per second."""
    wrong, total = turned(real, simulated, tie_s)
    lag = real.start_time - simulated.start_time
    same = real.place == simulated.place
    return {
        "awrt_s": _trace(real.awrt(), speed),
        "awrt_simulated_s": _trace(simulated.awrt(), speed),
        "delegated": int(np.sum(real.place != real.home)),
        "delegated_simulated": int(np.sum(simulated.place != simulated.home)),
        "same_place_percent": round(100.0 * float(np.mean(same)), 1),
        "pairs_turned": wrong,
        "pairs": total,
        "start_lag_real_s": {
            "median": round(float(np.median(lag)), 2),
            "most": round(float(np.max(lag)), 2),
        },
    }


def _trace(awrt: Mapping[str, float], speed: float) -> dict[str, int]:
    return {name: round(value * speed) for name, value in awrt.items()}


def middle(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Returns the median of each figure over runs."""
    return {name: round(statistics.median(run[name] for run in runs), 2) for name in runs[0]}
