"""For programs that use a site: submit jobs, look at them, watch them end.

`Client` is asynchronous, `SyncClient` the same for programs that are not. Both connect to the Unix
socket of the site's daemon; who one is, the kernel tells the daemon.

Every submission carries a key, made up here unless the caller brings one, so that a submission
whose answer got lost is repeated without becoming a second job. Calls are repeated while the daemon
is away or asks for patience, until their time is over.

    with SyncClient("/run/hanse/users.sock") as site:
        job = site.submit(processors=16, requested_time_s=3600, script="…")
        job = site.wait(job.job_id)
"""

from grms.client.answers import (
    Job,
    JobState,
    Outcome,
    ResultFile,
    Results,
    SiteError,
    SiteUnavailable,
)
from grms.client.asynchronous import Client
from grms.client.synchronous import SyncClient

__all__ = [
    "Client",
    "Job",
    "JobState",
    "Outcome",
    "ResultFile",
    "Results",
    "SiteError",
    "SiteUnavailable",
    "SyncClient",
]
