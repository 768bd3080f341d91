"""What the two records change that every job at home has: it was received, and it is kept.

The journal of a site with many open jobs has hardly any others. So a start of the daemon hands over
what they say as it stands in the journal, without making a record of it first; it comes to
the same as `Memory.apply`, which does what stands here, too.
"""

from typing import TYPE_CHECKING

from grms.site.facts.jobs import Request, blank_job, lrms_key
from grms.site.facts.lifecycle import JobState

if TYPE_CHECKING:
    from grms.site.facts.memory import Memory


def receive(  # noqa: PLR0917  # the fields of a record, as they stand in a row
    memory: "Memory",
    time: float,
    number: int,
    user: str,
    idempotency_key: str,
    name: str,
    request: Request,
    payload: bytes,
) -> None:
    """Takes a user's job; see `JobReceived`."""
    site = memory.settings.name
    job = blank_job()
    job.job = number
    job.job_id = f"{site}-{number}"
    job.lrms_key = lrms_key(site, memory.epoch, number)
    job.user = user
    job.idempotency_key = idempotency_key
    job.name = name
    job.request = request
    job.payload = payload
    job.submit_time = time
    memory.jobs[number] = job
    memory.jobs_open += 1
    memory.keys[user, idempotency_key] = number
    memory.open_by_user[user] = memory.open_by_user.get(user, 0) + 1
    memory.next_job = number + 1


def keep(memory: "Memory", time: float, number: int) -> None:
    """Lets the batch system have a user's job; see `JobKept`."""
    job = memory.jobs[number]
    job.move(JobState.SUBMITTING)
    memory.unconfirmed += job.request.processors
    memory.at_lrms[job.lrms_key] = job
    job.kept_time = time
    job.put = 0
