"""Client library of a site: submit jobs, query them, and wait for their end.

`Client` is asynchronous, `SyncClient` its synchronous counterpart. Both connect to the Unix socket of the site's
daemon; the kernel authenticates the user.

Every submission carries a key, generated unless given, so that a submission whose answer got lost can be repeated
without becoming a second job. Calls are retried while the daemon is away or asks for patience, until their timeout.

The names below are loaded on first use, so that errors can be reported before gRPC is imported.

    with SyncClient("/run/hanse/users.sock") as site:
        job = site.submit(processors=16, requested_time_s=3600, script="…")
        job = site.wait(job.job_id)
"""

from __future__ import annotations

from lrms_sim.util.lazy_imports import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Named like the constant of `typing`, as in `grms`.
    from typing import Final

    from grms.client.answers import (
        ArrayCounts,
        Changes,
        Job,
        JobPhase,
        JobState,
        OutputPiece,
        Preview,
        ResultFile,
        Results,
        SentHome,
    )
    from grms.client.asynchronous import Client
    from grms.client.errors import SiteError, SiteUnavailable
    from grms.client.synchronous import SyncClient
    from grms.util.outcomes import Outcome

_HOMES: Final = {
    "ArrayCounts": "answers",
    "Changes": "answers",
    "Client": "asynchronous",
    "Job": "answers",
    "JobPhase": "answers",
    "JobState": "answers",
    "Outcome": "answers",
    "OutputPiece": "answers",
    "Preview": "answers",
    "ResultFile": "answers",
    "Results": "answers",
    "SentHome": "answers",
    "SiteError": "errors",
    "SiteUnavailable": "errors",
    "SyncClient": "synchronous",
}
__all__ = [
    "ArrayCounts",
    "Changes",
    "Client",
    "Job",
    "JobPhase",
    "JobState",
    "Outcome",
    "OutputPiece",
    "Preview",
    "ResultFile",
    "Results",
    "SentHome",
    "SiteError",
    "SiteUnavailable",
    "SyncClient",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
