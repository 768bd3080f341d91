"""Figures of merit of a schedule.

A job has a width m (`processors`), a run time p, a submission r, a start S and an end C = S + p;
its *resource consumption* is p·m. Two sets of jobs belong to a machine k: those its own users
*submitted* (τ_k in the literature), wherever they ran, and those it *executed* (π_k), whoever sent
them. Users' metrics are taken over the first, operators' over the second; with one machine the
two are the same.

Sums. All terms are float64 and of one sign, and numpy adds them pairwise, so the relative error
of a sum of n terms stays below about log2(n)·2⁻⁵³; with whole seconds and sums below 2⁵³, as in
recorded logs, they are exact. Where nothing is selected there is no mean: the result is nan, and
no warning is given.

Sources. [GFL] Fölling, Grimme, Lepping, Papaspyrou, "Decentralized Grid Scheduling with
Evolutionary Fuzzy Systems" (JSSPP 2009), equations 11 to 14. [FRS] Feitelson, Rudolph,
Schwiegelshohn, Sevcik, Wong, "Theory and Practice in Parallel Job Scheduling" (JSSPP 1997).
[F01] Feitelson, "Metrics for Parallel Job Scheduling and Their Convergence" (JSSPP 2001).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lrms_sim.workload.groups import GROUPS, check_groups
from lrms_sim.workload.jobs import BoolArray, FloatArray
from lrms_sim.workload.schedule import Schedule

BOUNDED_SLOWDOWN_THRESHOLD_S = 10.0
"""Run times below this many seconds count as this many in the bounded slowdown [F01]."""


def awrt(
    schedule: Schedule, submitted_to: int | None = None, *, where: BoolArray | None = None
) -> float:
    """Returns the average weighted response time, Σ p·m·(C - r) / Σ p·m, in seconds; nan without jobs.

    Over the jobs *submitted* to a machine, wherever they ran. The weight, a job's resource
    consumption, makes it neutral to splitting or joining jobs. [GFL] equation 11.

    Args:
        schedule: the result of a replay.
        submitted_to: index of the machine; default all.
        where: shape (n,), count only these jobs.

    Raises:
        ValueError: there is no such machine, or `where` is not a mask over the jobs.
    """
    chosen = submitted(schedule, submitted_to, where)
    weight = schedule.jobs.resource_consumption[chosen]
    return _ratio(np.sum(weight * schedule.response_time[chosen]), np.sum(weight))


def awrt_by_group(
    schedule: Schedule, groups: npt.NDArray[np.integer], submitted_to: int | None = None
) -> FloatArray:
    """Returns the average weighted response time of each user group, shape (5,), in seconds.

    [GFL] equation 11, over the jobs of one group; entry i is group i + 1, nan without jobs.
    `groups` has shape (n,), the group 1 to 5 of each job's user (`lrms_sim.workload.groups`).

    Raises:
        ValueError: there is no such machine, or `groups` has another shape or other numbers.
    """
    checked = check_groups(groups, len(schedule))
    return np.array([awrt(schedule, submitted_to, where=checked == group) for group in GROUPS])


def squashed_area(schedule: Schedule, executed_on: int | None = None) -> float:
    """Returns the squashed area, Σ p·m over the jobs a machine executed, in processor-seconds.

    Default all machines. [GFL] equation 12. 0 for a machine that executed nothing.

    Raises:
        ValueError: there is no such machine.
    """
    return float(np.sum(schedule.jobs.resource_consumption[executed(schedule, executed_on)]))


def utilization(schedule: Schedule, executed_on: int | None = None) -> float:
    """Returns the utilization SA / (m_k · (max C - min S)), a number in 0..1; nan without jobs.

    Measured from the earliest start to the latest end on that machine, so two values are comparable
    only if those spans are about the same; `squashed_area_change` is free of that. By default all
    machines count as one of their joint size. [GFL] equation 13.

    Raises:
        ValueError: there is no such machine.
    """
    chosen = executed(schedule, executed_on)
    end_time = schedule.end_time[chosen]
    if not len(end_time):
        return math.nan
    machines = schedule.machines if executed_on is None else [schedule.machines[executed_on]]
    processors = sum(machine.processors for machine in machines)
    span = float(end_time.max() - schedule.start_time[chosen].min())
    return _ratio(squashed_area(schedule, executed_on), processors * span)


def squashed_area_change(schedule: Schedule, machine: int) -> float:
    """Returns how much more a machine executed than its users submitted, SA_k / Σ p·m - 1.

    The sum runs over the jobs submitted to the machine: 0.1 says that 10 % more work ran there
    than its own users brought, -0.1 that 10 % less did. At least -1; nan if the machine's users
    submitted nothing. [GFL] equation 14, of which the tables there print the value minus 1, as
    here.

    Raises:
        ValueError: there is no such machine.
    """
    own = np.sum(schedule.jobs.resource_consumption[submitted(schedule, machine, None)])
    return _ratio(squashed_area(schedule, machine), own) - 1.0


def makespan(schedule: Schedule, executed_on: int | None = None, *, origin: float = 0.0) -> float:
    """Returns the latest end on a machine, max C - origin, in seconds; nan if it executed nothing.

    C_max of [GFL], section 5.2. Default all machines. For a window that starts late in its log,
    `origin` is its first submission.

    Raises:
        ValueError: there is no such machine.
    """
    end_time = schedule.end_time[executed(schedule, executed_on)]
    return float(end_time.max()) - origin if len(end_time) else math.nan


def mean_response_time(
    schedule: Schedule, submitted_to: int | None = None, *, where: BoolArray | None = None
) -> float:
    """Returns the mean response time, the mean of C - r, in seconds; nan without jobs. [FRS].

    Arguments and errors are those of `awrt`.
    """
    return _mean(schedule.response_time[submitted(schedule, submitted_to, where)])


def mean_wait_time(
    schedule: Schedule, submitted_to: int | None = None, *, where: BoolArray | None = None
) -> float:
    """Returns the mean wait time, the mean of S - r, in seconds; nan without jobs. [FRS].

    Arguments and errors are those of `awrt`.
    """
    return _mean(schedule.wait_time[submitted(schedule, submitted_to, where)])


def median_wait_time(
    schedule: Schedule, submitted_to: int | None = None, *, where: BoolArray | None = None
) -> float:
    """Returns the median wait time, the median of S - r, in seconds; nan without jobs.

    The mean of the two middle values if their number is even. Arguments and errors are those of
    `awrt`.
    """
    wait_time = schedule.wait_time[submitted(schedule, submitted_to, where)]
    return float(np.median(wait_time)) if len(wait_time) else math.nan


def mean_slowdown(
    schedule: Schedule, submitted_to: int | None = None, *, where: BoolArray | None = None
) -> float:
    """Returns the mean slowdown, the mean of (C - r) / p, at least 1; nan without jobs. [FRS].

    Dominated by very short jobs, unlike `mean_bounded_slowdown`. Arguments and errors are those of
    `awrt`.
    """
    chosen = submitted(schedule, submitted_to, where)
    return _mean(schedule.response_time[chosen] / schedule.jobs.run_time[chosen])


def mean_bounded_slowdown(
    schedule: Schedule,
    submitted_to: int | None = None,
    *,
    where: BoolArray | None = None,
    threshold: float = BOUNDED_SLOWDOWN_THRESHOLD_S,
) -> float:
    """Returns the mean bounded slowdown, the mean of max(1, (C - r) / max(p, threshold)).

    At least 1; nan without jobs. [F01], section 2, with its threshold of 10 s. The other arguments
    are those of `awrt`.

    Raises:
        ValueError: there is no such machine, `where` is not a mask over the jobs, or the
            threshold is not more than 0.
    """
    check_threshold(threshold)
    chosen = submitted(schedule, submitted_to, where)
    run_time = np.maximum(schedule.jobs.run_time[chosen], threshold)
    return _mean(np.maximum(schedule.response_time[chosen] / run_time, 1.0))


def check_threshold(threshold: float) -> None:
    """Checks the threshold of a bounded slowdown, τ, in seconds.

    Raises:
        ValueError: it is not finite and more than 0.
    """
    if not 0 < threshold < math.inf:
        raise ValueError(f"threshold is {threshold} s; it must be finite and more than 0")


@dataclass(frozen=True, slots=True)
class MachineMetrics:
    """The usual metrics of one machine, those of users over the jobs submitted to it.

    Fields are named after the functions; `_s` is seconds.
    """

    machine: str
    processors: int
    jobs_submitted: int
    jobs_executed: int
    awrt_s: float
    utilization: float
    squashed_area: float
    squashed_area_change: float
    makespan_s: float
    mean_response_time_s: float
    mean_wait_time_s: float
    median_wait_time_s: float
    mean_slowdown: float
    mean_bounded_slowdown: float


def machine_metrics(
    schedule: Schedule,
    machine: int = 0,
    *,
    origin: float = 0.0,
    where: BoolArray | None = None,
    threshold: float = BOUNDED_SLOWDOWN_THRESHOLD_S,
) -> MachineMetrics:
    """Returns the usual metrics of one machine.

    Args:
        schedule: the result of a replay.
        machine: its index.
        origin: from which the makespan counts, seconds.
        where: shape (n,), metrics of users count only these jobs; those of the machine count all.
        threshold: of the bounded slowdown, seconds.

    Raises:
        ValueError: there is no such machine, `where` is not a mask over the jobs, or the threshold is not
            more than 0.
    """
    own = submitted(schedule, machine, where)
    return MachineMetrics(
        machine=schedule.machines[machine].name,
        processors=schedule.machines[machine].processors,
        jobs_submitted=int(np.count_nonzero(own)),
        jobs_executed=int(np.count_nonzero(executed(schedule, machine))),
        awrt_s=awrt(schedule, machine, where=where),
        utilization=utilization(schedule, machine),
        squashed_area=squashed_area(schedule, machine),
        squashed_area_change=squashed_area_change(schedule, machine),
        makespan_s=makespan(schedule, machine, origin=origin),
        mean_response_time_s=mean_response_time(schedule, machine, where=where),
        mean_wait_time_s=mean_wait_time(schedule, machine, where=where),
        median_wait_time_s=median_wait_time(schedule, machine, where=where),
        mean_slowdown=mean_slowdown(schedule, machine, where=where),
        mean_bounded_slowdown=mean_bounded_slowdown(
            schedule, machine, where=where, threshold=threshold
        ),
    )


def submitted(schedule: Schedule, machine: int | None, where: BoolArray | None) -> BoolArray:
    """Returns which jobs of a mask a machine's users submitted, shape (n,); of all if it is `None`.

    Raises:
        ValueError: there is no such machine, or `where` is not a mask over the jobs.
    """
    mask = _of_machine(schedule, schedule.submitted_to, machine)
    if where is None:
        return mask
    if where.shape != mask.shape or where.dtype != np.bool_:
        raise ValueError(
            f"where must be a boolean mask of shape {mask.shape}, not {where.dtype} of shape "
            f"{where.shape}"
        )
    return mask & where


def executed(schedule: Schedule, machine: int | None) -> BoolArray:
    """Returns which jobs a machine executed, shape (n,); all jobs if it is `None`.

    Raises:
        ValueError: there is no such machine.
    """
    return _of_machine(schedule, schedule.executed_on, machine)


def _of_machine(
    schedule: Schedule, column: npt.NDArray[np.int16], machine: int | None
) -> BoolArray:
    if machine is None:
        return np.ones(len(schedule), np.bool_)
    if not 0 <= machine < len(schedule.machines):
        raise ValueError(
            f"machine {machine} does not exist; the schedule has {len(schedule.machines)}, "
            f"counted from 0"
        )
    mask: BoolArray = column == machine
    return mask


def _ratio(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else math.nan


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else math.nan


@dataclass(frozen=True, slots=True)
class UserFairness:
    """How evenly a machine serves its users, by the mean bounded slowdown of each one's jobs.

    A figure is nan without users. A mean over jobs hides this: a user with many jobs outweighs the
    others.

    Attributes:
        users: number of them; jobs of unknown users are ignored.
        jain: Jain's index, (Σx)² / (n Σx²): 1 if all are served alike, 1/n if one has all the
            delay.
        median: of the users' slowdowns.
        worst: the largest of them.
        worst_user: the smallest number among the worst served; -1 without users.
    """

    users: int
    jain: float
    median: float
    worst: float
    worst_user: int


def user_fairness(
    schedule: Schedule,
    submitted_to: int | None = None,
    *,
    threshold: float = BOUNDED_SLOWDOWN_THRESHOLD_S,
) -> UserFairness:
    """Returns how evenly users are served.

    The index is that of Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and Discrimination
    for Resource Allocation in Shared Computer Systems" (1984), equation 1.

    Args:
        schedule: the result of a replay.
        submitted_to: index of the machine; default all.
        threshold: of the bounded slowdown, seconds, more than 0.

    Raises:
        ValueError: there is no such machine, or the threshold is not more than 0.
    """
    check_threshold(threshold)
    chosen = submitted(schedule, submitted_to, None) & (schedule.jobs.user >= 0)
    users, place = np.unique(schedule.jobs.user[chosen], return_inverse=True)
    if not len(users):
        return UserFairness(0, math.nan, math.nan, math.nan, -1)
    run_time = np.maximum(schedule.jobs.run_time[chosen], threshold)
    slowdown = np.maximum(schedule.response_time[chosen] / run_time, 1.0)
    mean = np.bincount(place, weights=slowdown) / np.bincount(place)
    return UserFairness(
        users=len(users),
        jain=float(mean.sum() ** 2 / (len(users) * np.square(mean).sum())),
        median=float(np.median(mean)),
        worst=float(mean.max()),
        worst_user=int(users[mean.argmax()]),
    )
