"""A job of a simulated machine: how long it runs, and how it ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from grms.lrms.base import LrmsEnd, LrmsJob, LrmsPhase
from grms.util.outcomes import Outcome
from lrms_sim.machine.stepped import SUBMITTED
from lrms_sim.workload.groups import GROUPS

NOT_RUN: Final = "simulated: its script was not run"
"""The end reason of a job with a script."""

CUT_OFF: Final = "ended at the limit of its requested time"
"""The end reason of a job that would have run longer."""


@dataclass(slots=True)
class LocalJob:
    """A job the machine has had; `number` is its number in the present machine."""

    job: LrmsJob
    run_time: float
    number: int
    submit_time: float | None = None  # None for a job of a machine that is gone
    phase: LrmsPhase = LrmsPhase.WAITING
    start_time: float | None = None
    end: LrmsEnd | None = None
    followed: bool = False


def run_time_of(job: LrmsJob) -> float:
    """Returns how long a job runs, seconds; a batch system kills what exceeds its request."""
    run = job.simulated
    return job.requested_time if run is None else min(run.run_time, job.requested_time)


def group_of(job: LrmsJob) -> int:
    """Returns the user group of a job, 1 to 5."""
    return (job.simulated.group if job.simulated is not None else None) or GROUPS[-1]


def submitted(jobs: Sequence[LocalJob], time: float) -> npt.NDArray[np.void]:
    """Returns a machine's input for jobs submitted together, one row each.

    Jobs whose machine is gone wait since `time`, seconds.
    """
    rows = (
        (
            known.job.processors,
            known.job.requested_time,
            known.run_time,
            group_of(known.job),
            time if known.submit_time is None else known.submit_time,
        )
        for known in jobs
    )
    return np.fromiter(rows, SUBMITTED, len(jobs))


def end_of(known: LocalJob, time: float) -> LrmsEnd:
    """Returns how a job ends that runs until a moment."""
    job = known.job
    if job.program is not None:
        return LrmsEnd(Outcome.NOT_RUN, time, known.run_time, reason=NOT_RUN)
    if job.simulated is not None and job.simulated.run_time > job.requested_time:
        return LrmsEnd(Outcome.TIMEOUT, time, known.run_time, reason=CUT_OFF)
    return LrmsEnd(Outcome.COMPLETED, time, known.run_time)
