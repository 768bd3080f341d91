"""One batch machine, replayed over a whole workload at full speed; `stepped` drives one step by step."""

from collections.abc import Callable
from typing import cast

import numpy as np
import numpy.typing as npt

from lrms_sim.kernel._kernel import MachineKernel
from lrms_sim.kernel._python_scheduler import PythonScheduler
from lrms_sim.kernel._scheduler import Scheduler
from lrms_sim.scheduling.disciplines import Discipline, Fcfs, scheduler_of
from lrms_sim.scheduling.user_defined import Decides, MachineView
from lrms_sim.util.columns import is_whole
from lrms_sim.workload.groups import check_groups, known_user_groups
from lrms_sim.workload.jobs import FloatArray, Int32Array, JobTable
from lrms_sim.workload.schedule import MachineInfo, Schedule

PROGRESS_ROWS = 250_000
"""Arrivals between two calls of a progress function; also how soon Ctrl-C is noticed."""


def user_numbers(users: Int32Array) -> Int32Array:
    """Returns users numbered 0, 1, 2, … in ascending order; -1, for unknown, stays."""
    _, numbers = np.unique(users[users >= 0], return_inverse=True)
    dense = np.full(len(users), -1, np.int32)
    dense[users >= 0] = numbers
    return dense


def estimates_of(jobs: JobTable) -> FloatArray | None:
    """Returns a column for what a machine takes each job to run for; `None` if no job outlives its request."""
    return jobs.requested_time.copy() if jobs.outlives_requests else None


def notes_of(scheduler: Scheduler) -> object:
    """Returns what a discipline written in Python has noted; `None` of others and if it gives nothing back."""
    return scheduler.noted_so_far() if isinstance(scheduler, PythonScheduler) else None


def check_machine(jobs: JobTable, processors: int, name: str, *, overruns: bool = False) -> None:
    """Checks that every job fits the machine; `overruns`: jobs may outlive their requests there.

    Raises:
        ValueError: the machine has no number of processors, or a job is wider than it or outlives its request.
    """
    if not overruns:
        jobs.refuse_overruns(f"here no job of {name!r} may outlive its request")
    if not is_whole(processors, 1, 2**31 - 1):
        raise ValueError(
            f"machine {name!r} has {processors!r} processors; a whole number from 1 to {2**31 - 1} "
            "is needed"
        )
    if len(jobs) and int(jobs.processors.max()) > processors:
        row = int(np.argmax(jobs.processors > processors))
        raise ValueError(
            f"job {jobs.job_id[row]} needs {jobs.processors[row]} processors; machine {name!r} "
            f"has {processors}; prepare the trace for this size or leave such jobs out"
        )


def simulate(
    jobs: JobTable,
    processors: int,
    discipline: Discipline | Decides | Callable[[MachineView], object] | None = None,
    *,
    groups: npt.NDArray[np.integer] | None = None,
    name: str = "machine",
    progress: Callable[[int], None] | None = None,
) -> Schedule:
    """Replays a workload on one machine from the first submission to the last end.

    The rows of the schedule are those of `jobs`.

    Args:
        jobs: the workload, n jobs, none wider than the machine. They may outlive their requests.
        processors: size of the machine.
        discipline: default FCFS; may be written in Python (`lrms_sim.scheduling.user_defined`).
        groups: shape (n,), the group 1 to 5 of each job's user; default those of
            `lrms_sim.workload.groups.user_groups`, if the discipline needs them.
        name: the machine's name in the schedule.
        progress: called now and then with the number of jobs that have arrived so far.

    Raises:
        ValueError: a job is wider than the machine, the machine has no processor, groups are
            needed and cannot be had, or a discipline written in Python never starts a job.
        TypeError: the discipline is none that a machine can run.
    """
    check_machine(jobs, processors, name, overruns=True)
    chosen = cast("Discipline", Fcfs() if discipline is None else discipline)
    return replayed(
        jobs,
        processors,
        scheduler_of(chosen, jobs.job_id),
        groups=groups,
        name=name,
        progress=progress,
    )


def replayed(
    jobs: JobTable,
    processors: int,
    scheduler: Scheduler,
    *,
    groups: npt.NDArray[np.integer] | None,
    name: str,
    progress: Callable[[int], None] | None,
) -> Schedule:
    """Replays a workload that fits on a machine with a scheduler of its own; arguments as in `simulate`."""
    count = len(jobs)
    if groups is not None:
        groups = check_groups(groups, count)
    elif scheduler.needs_groups:
        groups = known_user_groups(jobs)
    start_time = np.full(count, np.nan)
    end_time = np.full(count, np.nan)
    kernel = MachineKernel(processors, scheduler)
    kernel.bind(
        jobs.submit_time,
        jobs.processors,
        jobs.requested_time,
        jobs.run_time,
        start_time,
        end_time,
        groups,
        user_numbers(jobs.user) if scheduler.needs_users else None,
        estimates=estimates_of(jobs),
    )
    row = 0
    while True:
        target = min(row + PROGRESS_ROWS, count)
        row = kernel.run(target)
        if progress is not None:
            progress(row)
        if target == count:
            break
    if kernel.jobs_waiting:
        raise ValueError(
            f"the discipline has left {kernel.jobs_waiting} jobs waiting on an idle machine"
        )
    assert kernel.jobs_running == 0
    assert kernel.processors_free == processors
    return Schedule(
        jobs=jobs,
        start_time=start_time,
        end_time=end_time,
        machines=(MachineInfo(name, processors),),
        submitted_to=np.zeros(count, np.int16),
        executed_on=np.zeros(count, np.int16),
        log_job_id=jobs.job_id,
        notes=notes_of(scheduler),
    )
