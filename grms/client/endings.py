"""Why a job has failed, for people: in the same words by every program that hands jobs in."""

from typing import Final

from grms.client.answers import Job
from grms.util.outcomes import Outcome

_WORDS: Final = {
    Outcome.CANCELLED: "was cancelled",
    Outcome.TIMEOUT: "was ended at the limit of its requested time",
    Outcome.NODE_FAIL: "was lost with its node",
    Outcome.OUT_OF_MEMORY: "was ended as it needed more memory than it had",
    Outcome.LOST: "is not known to the batch system any more, and had not started",
    Outcome.PREEMPTED: "was ended by the batch system for another job",
    Outcome.NOT_RUN: "was simulated: the site does not run programs",
    Outcome.UNKNOWN: "is over, and nobody can say how it ended",
}


def ending(job: Job) -> str:
    """Returns why a job that has ended has failed, for people; empty if it has not."""
    if job.outcome is Outcome.COMPLETED and not job.exit_code:
        return ""
    if job.outcome in _WORDS:
        words = _WORDS[job.outcome]
    elif job.signal is not None:
        words = f"was ended by signal {job.signal}"
    elif job.exit_code is not None:
        words = f"ended with exit code {job.exit_code}"
    else:
        words = "failed"
    if job.outcome is Outcome.TIMEOUT:
        words += f" ({job.requested_time_s / 60:g} min)"
    where = f" at {job.executed_on}" if job.executed_on else ""
    return f"Job {job.job_id} {words}{where}{job.reason and f': {job.reason}'}."
