"""What plugins call of `grms.client.SyncClient`, without a daemon: jobs in memory, and a site that can fail."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from grms.client import Job, JobState, Outcome, SiteError, SiteUnavailable


class FakeClient:
    """A site, and the connection to it.

    Attributes:
        is_away: the site cannot be reached.
        loses: it takes jobs, and the answers are lost.
        is_open: somebody is connected.
        calls: names of the methods, in order.
        jobs: by their names at the site.
        wanted: what was submitted, likewise.
        by_key: names of jobs by idempotency key.
    """

    def __init__(self) -> None:
        self.is_away = False
        self.loses = False
        self.is_open = False
        self.calls: list[str] = []
        self.jobs: dict[str, Job] = {}
        self.wanted: dict[str, Mapping[str, Any]] = {}
        self.by_key: dict[str, str] = {}

    def __call__(self, socket: str, *, timeout_s: float) -> Self:
        """Stands for the class itself."""
        assert (socket, timeout_s) == ("users.sock", 30.0)
        return self

    def __enter__(self) -> Self:
        self.is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        self.is_open = False

    def called(self, name: str) -> None:
        """Notes a call; `SiteUnavailable` while the site is away."""
        self.calls.append(name)
        if self.is_away:
            raise SiteUnavailable("UNAVAILABLE", "no daemon answers")

    def take(self, wanted: Mapping[str, Any]) -> Job:
        """Takes a job, or returns the one that the key belongs to."""
        job_id = self.by_key.setdefault(wanted["key"], f"home-{len(self.jobs) + 1}")
        if job_id not in self.jobs:
            self.jobs[job_id] = queued(job_id, wanted.get("name", ""))
            self.wanted[job_id] = wanted
        return self.jobs[job_id]

    def lose(self) -> None:
        """Loses the answer, if the site does that."""
        if self.loses:
            raise SiteUnavailable("DEADLINE_EXCEEDED", "the answer was lost")

    def get_many(
        self, job_ids: Sequence[str] = (), *, keys: Sequence[str] = ()
    ) -> list[Job | SiteError]:
        """Returns jobs."""
        self.called("get_many")
        return self._named([*job_ids, *(self.by_key.get(key, "") for key in keys)])

    def _named(self, job_ids: Sequence[str]) -> list[Job | SiteError]:
        none = SiteError("NOT_FOUND", "there is no job of that name")
        return [self.jobs.get(each, none) for each in job_ids]

    def cancel_many(self, job_ids: Sequence[str]) -> list[Job | SiteError]:
        """Cancels jobs."""
        self.called("cancel_many")
        for each in job_ids:
            if each in self.jobs:
                self.end(each, Outcome.CANCELLED)
        return self._named(job_ids)

    def change(self, job_id: str, **more: Any) -> None:
        """Changes a job."""
        self.jobs[job_id] = replace(self.jobs[job_id], **more)

    def end(self, job_id: str, outcome: Outcome, **more: Any) -> None:
        """Ends a job."""
        self.change(job_id, state=JobState.ENDED, outcome=outcome, **more)


def queued(job_id: str, name: str = "") -> Job:
    """Returns a job that waits."""
    return Job(job_id, name, "me", 1, 60.0, JobState.QUEUED, "", 0.0, None, None, None, False, "")
