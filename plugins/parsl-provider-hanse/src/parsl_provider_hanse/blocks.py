"""A block of Parsl as a job of a site, and the site's words for it in Parsl's."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from parsl.jobs.states import JobState, JobStatus

from grms.client import Job, JobPhase, Outcome
from grms.client import JobState as SiteState
from grms.client.answers import ending

_ENDS: Final = {
    Outcome.COMPLETED: JobState.COMPLETED,
    Outcome.CANCELLED: JobState.CANCELLED,
    # Pilots are expected to run until their limit, and to give way: Parsl starts others.
    Outcome.TIMEOUT: JobState.TIMEOUT,
    Outcome.PREEMPTED: JobState.TIMEOUT,
}


@dataclass
class Block:
    """A block that was handed to the site.

    Attributes:
        wanted: the arguments of `SyncClient.submit`, a key among them.
        job_id: of the site; empty as long as its answer has not come.
        is_cancelled: Parsl wants no more of it.
        has_files: what it has printed may still be brought.
        status: as Parsl was told last.
    """

    wanted: Mapping[str, Any]
    job_id: str = ""
    is_cancelled: bool = False
    has_files: bool = True
    status: JobStatus = field(default_factory=lambda: JobStatus(JobState.PENDING))

    @property
    def key(self) -> str:
        """The key with which it is submitted, however often."""
        return str(self.wanted["key"])

    @property
    def is_open(self) -> bool:
        """Whether something may still happen to it."""
        return not self.status.terminal

    def told(self) -> JobStatus:
        """Returns its status, as an object of its own: executors write into what they get."""
        return copy.copy(self.status)


def status_of(job: Job, before: JobState = JobState.PENDING) -> JobStatus:
    """Returns what Parsl calls the status of a job, whose state it was told before.

    A job that is cancelled before it starts is `SCALED_IN`: the `HighThroughputExecutor` takes every other end of a
    block whose workers have not called for a failure.
    """
    if not job.has_ended:
        return JobStatus(_open_state(job, before), job.reason or None)
    has_run = job.start_time_s is not None or before is not JobState.PENDING
    if job.outcome is Outcome.CANCELLED and not has_run:
        return JobStatus(JobState.SCALED_IN, ending(job))
    state = _ENDS.get(job.outcome, JobState.FAILED) if job.outcome else JobState.FAILED
    if job.exit_code and state is JobState.COMPLETED:
        state = JobState.FAILED
    return JobStatus(state, ending(job) or None, job.exit_code)


def _open_state(job: Job, before: JobState) -> JobState:
    if job.phase is JobPhase.SUSPENDED:
        return JobState.HELD
    if job.state is SiteState.RUNNING or job.phase in {JobPhase.RUNNING, JobPhase.COMPLETING}:
        return JobState.RUNNING
    if job.state in {SiteState.SUSPECT, SiteState.UNKNOWN}:
        # Its site cannot be asked, or says what is not known here.
        return before
    return JobState.PENDING
