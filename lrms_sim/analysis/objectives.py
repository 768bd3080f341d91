"""What a provider may want of a schedule: seven objectives, weighted sums of them, and bounds.

After Franke, Lepping, Schwiegelshohn 2007, "Greedy Scheduling with Custom-made Objectives", section
III: utilization U, average weighted response time AWRT, and that of each of five user groups, AWRT₁
… AWRT₅. A provider weights the groups: f = Σ θ_i · AWRT_i.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from lrms_sim.kernel._objectives import objective_sums
from lrms_sim.workload.groups import GROUPS, Int8Array, check_groups
from lrms_sim.workload.jobs import FloatArray, JobTable
from lrms_sim.workload.schedule import Schedule

Theta = tuple[float, float, float, float, float]

PAPER_THETA: Final[Theta] = (10.0, 4.0, 0.0, 0.0, 0.0)
"""The objective of every table in both papers, 10·AWRT₁ + 4·AWRT₂."""


def check_theta(theta: Sequence[float]) -> Theta:
    """Returns the weights of an objective.

    Raises:
        ValueError: these are not five numbers from 0, or all are 0.
    """
    numbers = [float(number) for number in theta]
    if len(numbers) != len(GROUPS):
        raise ValueError(f"theta has {len(numbers)} numbers; one for each of {len(GROUPS)} groups")
    for group, number in zip(GROUPS, numbers, strict=True):
        if not 0 <= number < math.inf:
            raise ValueError(f"theta of group {group} is {number}; it must be 0 or more")
    if not any(numbers):
        raise ValueError("theta is 0 for every group; then every schedule is as good as any other")
    return (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4])


@dataclass(frozen=True, slots=True)
class Objectives:
    """The seven objectives of one schedule.

    Attributes:
        utilization: U, a number in 0..1; nan without jobs.
        awrt: of all jobs, seconds; nan without jobs.
        awrt_groups: of the jobs of groups 1 to 5, seconds; nan for a group without jobs.
    """

    utilization: float
    awrt: float
    awrt_groups: Theta

    @property
    def seven(self) -> tuple[float, ...]:
        """U, AWRT, AWRT₁ … AWRT₅."""
        return (self.utilization, self.awrt, *self.awrt_groups)

    def value(self, theta: Sequence[float] = PAPER_THETA) -> float:
        """Returns f = Σ θ_i · AWRT_i, seconds; a group without jobs counts 0."""
        total = 0.0
        for weight, awrt in zip(theta, self.awrt_groups, strict=True):
            total += weight * (awrt if awrt == awrt else 0.0)  # noqa: PLR0124  # nan is not itself
        return total

    def relative_to(self, other: "Objectives") -> tuple[float, ...]:
        """Returns how much smaller each of `seven` is than the other's, usually EASY's, percent.

        (K_other - K) / K_other · 100, as the papers have it for all seven: positive is better for
        an AWRT, negative for the utilization. nan if there is nothing to compare.
        """
        return tuple(
            gain(mine, theirs) for mine, theirs in zip(self.seven, other.seven, strict=True)
        )


def gain(value: float, reference: float) -> float:
    """Returns (reference - value) / reference · 100, percent; nan for a reference of 0 or nan."""
    return (reference - value) / reference * 100.0 if reference else math.nan


def objectives_of(schedule: Schedule, groups: npt.NDArray[np.integer]) -> Objectives:
    """Returns the seven objectives of a schedule; several machines count as one of their joint size.

    `groups` has shape (n,), the group 1 to 5 of each job's user.

    Raises:
        ValueError: `groups` has another shape or other numbers.
    """
    processors = sum(machine.processors for machine in schedule.machines)
    return measure(
        schedule.jobs,
        check_groups(groups, len(schedule)),
        processors,
        schedule.start_time,
        schedule.end_time,
    )


def measure(
    jobs: JobTable,
    groups: Int8Array,
    processors: int,
    start_time: FloatArray,
    end_time: FloatArray,
) -> Objectives:
    """Returns the seven objectives of start and end times; `groups` are not checked again."""
    work, response, first_start, last_end = objective_sums(
        jobs.submit_time, jobs.processors, jobs.run_time, start_time, end_time, groups
    )
    if not len(jobs):
        return Objectives(math.nan, math.nan, (math.nan,) * 5)
    total = sum(work)
    first, second, third, fourth, fifth = (
        of_group / of_work if of_work > 0 else math.nan
        for of_group, of_work in zip(response, work, strict=True)
    )
    return Objectives(
        total / (processors * (last_end - first_start)),
        sum(response) / total,
        (first, second, third, fourth, fifth),
    )


def group_consumption(jobs: JobTable, groups: npt.NDArray[np.integer]) -> tuple[float, ...]:
    """Returns the resource consumption of groups 1 to 5, Σ p·m, processor-seconds."""
    work = np.bincount(groups, weights=jobs.resource_consumption, minlength=len(GROUPS) + 1)
    return tuple(work[1:].tolist())


def cost_weights(jobs: JobTable, groups: Int8Array, theta: Theta) -> FloatArray:
    """Returns c_j = p_j · m_j · θ_g / RC_g, shape (n,): f = Σ c_j · (C_j - r_j)."""
    consumption = group_consumption(jobs, groups)
    rate = np.array([t / c if c > 0 else 0.0 for t, c in zip(theta, consumption, strict=True)])
    weights: FloatArray = jobs.resource_consumption * rate[groups - 1]
    return weights


def no_wait_bound(
    jobs: JobTable, groups: npt.NDArray[np.integer], theta: Sequence[float] = PAPER_THETA
) -> float:
    """Returns f if no job ever waited, in seconds; no schedule of any machine is better.

    Σ θ_i · (Σ p²·m / Σ p·m over group i). `groups` has shape (n,), values 1 to 5.

    Raises:
        ValueError: `groups` or `theta` cannot be used.
    """
    checked = check_groups(groups, len(jobs))
    started = jobs.submit_time
    response = measure(jobs, checked, 1, started, started + jobs.run_time)
    return response.value(check_theta(theta))
