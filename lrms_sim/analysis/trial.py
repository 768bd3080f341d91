"""Evaluating many disciplines on one workload, as evolution does thousands of times.

A `Trial` gets the workload once. Evaluating a discipline then builds no schedule, holds no lock,
and stops as soon as a result is certain to be worse than a bound.
"""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from lrms_sim.analysis.objectives import (
    PAPER_THETA,
    Objectives,
    Theta,
    check_theta,
    cost_weights,
    group_consumption,
    measure,
    no_wait_bound,
)
from lrms_sim.kernel._kernel import MachineKernel
from lrms_sim.kernel._strategies import StrategyScheduler
from lrms_sim.machine.machine import check_machine, user_numbers
from lrms_sim.scheduling.disciplines import Discipline, scheduler_of
from lrms_sim.workload.groups import check_groups, known_user_groups
from lrms_sim.workload.jobs import JobTable

_MARGIN: Final = 1e-9
"""A replay is broken off this much, relatively, beyond the bound: more than its sums can be off."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Result of a trial.

    Attributes:
        value: f, seconds; infinity if it is above the bound.
        objectives: all seven; `None` if the bound was exceeded.
        passes: number of passes made by each strategy of a table or of rules, of those that could
            start a job; `None` for the disciplines without strategies.
        visits: how many passes found the machine in each of the 192 classes; `None` without a
            table.
    """

    value: float
    objectives: Objectives | None
    passes: tuple[int, ...] | None = None
    visits: tuple[int, ...] | None = None


class Trial:
    """A workload on which disciplines are evaluated.

    Threads may share a trial, and it can be sent to another process.

    Args:
        jobs: the workload, n jobs, none wider than the machine.
        processors: size of the machine.
        groups: shape (n,), the group 1 to 5 of each job's user; default from the users.
        theta: weight of each group's AWRT in f.

    Raises:
        ValueError: one of these cannot be used; the text says which and why.
    """

    def __init__(
        self,
        jobs: JobTable,
        processors: int,
        *,
        groups: npt.NDArray[np.integer] | None = None,
        theta: Sequence[float] = PAPER_THETA,
    ) -> None:
        check_machine(jobs, processors, "machine")
        self.jobs = jobs
        self.processors = processors
        self.groups = known_user_groups(jobs) if groups is None else check_groups(groups, len(jobs))
        self.theta: Theta = check_theta(theta)
        self._weights = cost_weights(jobs, self.groups, self.theta)
        self._no_wait = float(np.sum(self._weights * jobs.run_time))
        self._room = threading.local()

    def __reduce__(self) -> tuple[object, ...]:
        return _trial, (self.jobs, self.processors, self.groups, self.theta)

    @property
    def consumption(self) -> tuple[float, ...]:
        """The resource consumption of groups 1 to 5, Σ p·m, processor-seconds."""
        return group_consumption(self.jobs, self.groups)

    @property
    def no_wait_bound(self) -> float:
        """What f would be if no job ever waited, seconds; no discipline can be better."""
        return no_wait_bound(self.jobs, self.groups, self.theta)

    def value(self, discipline: Discipline, bound: float = math.inf) -> float:
        """Returns f = Σ θ_i · AWRT_i under a discipline, seconds; infinity if it is above the bound.

        Whether it is depends on the value alone, not on when the replay was stopped.

        Raises:
            ValueError: the discipline lacks something, such as a calendar.
        """
        return self.run(discipline, bound).value

    def run(self, discipline: Discipline, bound: float = math.inf) -> TrialResult:
        """Replays the workload under a discipline; may stop once f is certain to be above the bound.

        Raises:
            ValueError: the discipline lacks something, such as a calendar.
            TypeError: it is none that a machine can run.
        """
        jobs, count = self.jobs, len(self.jobs)
        scheduler = scheduler_of(discipline, jobs.job_id)
        kernel = MachineKernel(self.processors, scheduler)
        start_time, end_time = self._columns()
        kernel.bind(
            jobs.submit_time,
            jobs.processors,
            jobs.requested_time,
            jobs.run_time,
            start_time,
            end_time,
            self.groups,
            user_numbers(jobs.user) if scheduler.needs_users else None,
        )
        if bound < math.inf:
            # Also relative to the cost itself, which a bound of 0 or less says nothing of.
            limit = bound + _MARGIN * max(abs(bound), self._no_wait) - self._no_wait
            kernel.limit_cost(self._weights, limit)
        row = kernel.run(count)
        value, objectives = math.inf, None
        if row == count and kernel.jobs_waiting == kernel.jobs_running == 0:
            objectives = measure(jobs, self.groups, self.processors, start_time, end_time)
            value = objectives.value(self.theta)
            if value > bound:
                value, objectives = math.inf, None
        if not isinstance(scheduler, StrategyScheduler):
            return TrialResult(value, objectives)
        visits = scheduler.visits
        return TrialResult(
            value,
            objectives,
            tuple(scheduler.passes),
            None if visits is None else tuple(visits),
        )

    def _columns(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        room = getattr(self._room, "columns", None)
        if room is None:
            count = len(self.jobs)
            room = self._room.columns = (np.zeros(count), np.zeros(count))
        columns: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] = room
        return columns


def _trial(jobs: JobTable, processors: int, groups: npt.NDArray[np.integer], theta: Theta) -> Trial:
    return Trial(jobs, processors, groups=groups, theta=theta)
