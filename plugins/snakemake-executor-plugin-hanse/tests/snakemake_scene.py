"""A workflow, its jobs and a site without Snakemake and without a daemon."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Self

from snakemake_interface_executor_plugins.settings import SharedFSUsage

from grms.client import Job, JobState, Outcome, ResultFile, Results, SiteError, SiteUnavailable
from snakemake_executor_plugin_hanse.executor import Executor
from snakemake_executor_plugin_hanse.settings import ExecutorSettings


class File(str):
    """A file as Snakemake hands it over, with its flags."""

    __slots__ = ("flags", "is_storage")

    flags: dict[str, Any]
    is_storage: bool


def file(path: str, *, is_storage: bool = False, **flags: Any) -> File:
    """Returns a file."""
    made = File(path)
    made.flags, made.is_storage = flags, is_storage
    return made


@dataclass(eq=False)
class RuleJob:
    """A job of a rule; with `jobs` a group of them."""

    name: str
    input: Sequence[str] = ()
    output: Sequence[str] = ()
    log: Sequence[str] = ()
    benchmark: str | None = None
    threads: int = 1
    resources: Mapping[str, Any] = field(default_factory=dict)
    jobs: Sequence["RuleJob"] = ()

    def is_group(self) -> bool:
        """Whether it is a group."""
        return bool(self.jobs)


class FakeSite:
    """What the plugin calls of `grms.client.SyncClient`.

    Attributes:
        away: the site cannot be reached.
        loses: it takes jobs, and the answers are lost.
        left: content of the files of each job, by its name.
        calls: names of the methods, in order.
    """

    def __init__(self) -> None:
        self.away = False
        self.loses = False
        self.is_open = False
        self.left: dict[str, dict[str, bytes]] = {}
        self.jobs: dict[str, Job] = {}
        self.wanted: dict[str, Mapping[str, Any]] = {}
        self.by_key: dict[str, str] = {}
        self.incomplete: set[str] = set()
        self.problems: dict[str, str] = {}
        self.removed: list[str] = []
        self.calls: list[str] = []

    def __call__(self, socket: str, *, timeout_s: float) -> "FakeSite":
        """Stands for the class itself."""
        assert socket
        assert timeout_s > 0
        return self

    def __enter__(self) -> Self:
        self.is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        self.is_open = False

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.away:
            raise SiteUnavailable("UNAVAILABLE", "no daemon answers")

    def submit_many(self, jobs: Sequence[Mapping[str, Any]]) -> list[Job | SiteError]:
        """Takes jobs; one that wants the partition `none` is refused, and one with a folder for a file is invalid."""
        self._called("submit_many")
        if any(name == "bad" for each in jobs for name in each.get("inputs", ())):
            raise ValueError("'bad' is no name")
        found: list[Job | SiteError] = []
        for each in jobs:
            if each["needs"].partition == "none":
                found.append(SiteError("INVALID_ARGUMENT", "there is no partition none"))
                continue
            job_id = self.by_key.setdefault(each["key"], f"home-{len(self.jobs) + 1}")
            if job_id not in self.jobs:
                self.jobs[job_id] = job(job_id, each["name"])
                self.wanted[job_id] = each
            elif self.wanted[job_id]["script"] != each["script"]:
                text = "the idempotency key belongs to another submission"
                found.append(SiteError("FAILED_PRECONDITION", text))
                continue
            found.append(self.jobs[job_id])
        if self.loses:
            raise SiteUnavailable("DEADLINE_EXCEEDED", "the answer was lost")
        return found

    def get_many(
        self, job_ids: Sequence[str] = (), *, keys: Sequence[str] = ()
    ) -> list[Job | SiteError]:
        """Returns jobs."""
        self._called("get_many")
        none = SiteError("NOT_FOUND", "there is no job of that name")
        names = [*job_ids, *(self.by_key.get(key, "") for key in keys)]
        return [self.jobs.get(name, none) for name in names]

    def cancel_many(self, job_ids: Sequence[str]) -> list[Job | SiteError]:
        """Cancels jobs."""
        self._called("cancel_many")
        for each in job_ids:
            self.end(each, Outcome.CANCELLED)
        return [self.jobs[each] for each in job_ids]

    def end(self, job_id: str, outcome: Outcome, **more: Any) -> None:
        """Ends a job."""
        ended = replace(self.jobs[job_id], state=JobState.ENDED, outcome=outcome, **more)
        self.jobs[job_id] = ended

    def results(self, job_id: str) -> Results:
        """Returns what a job has left."""
        self._called("results")
        if job_id not in self.jobs:
            raise SiteError("NOT_FOUND", "there is no job of that name")
        there = self.left.get(self.jobs[job_id].name, {})
        files = [
            ResultFile(name, len(data), hashlib.sha256(data).digest(), "")
            for name, data in there.items()
        ]
        files += [
            ResultFile(name, 0, b"", self.problems.get(name, "missing"))
            for name in self.wanted[job_id].get("outputs", ())
            if name not in there
        ]
        return Results(tuple(files), job_id not in self.incomplete, "")

    def fetch(self, job_id: str, name: str, offset_bytes: int = 0) -> Iterator[bytes]:
        """Yields a file."""
        yield self.left[self.jobs[job_id].name][name][offset_bytes:]

    def remove_results(self, job_id: str) -> None:
        """Deletes what a job has left."""
        self.removed.append(job_id)


def job(job_id: str, name: str) -> Job:
    """Returns a job that waits."""
    return Job(job_id, name, "me", 1, 60.0, JobState.QUEUED, "", 0.0, None, None, None, False, "")


class Scene:
    """An executor, and what it has told Snakemake."""

    def __init__(self, site: FakeSite, *, shared: bool = False, **settings: Any) -> None:
        self.site = site
        self.told: list[str] = []
        usage = set(SharedFSUsage) if shared else set()
        workflow = SimpleNamespace(
            executor_settings=ExecutorSettings(**{"socket": "users.sock", **settings}),
            storage_settings=SimpleNamespace(shared_fs_usage=usage),
            dag=SimpleNamespace(get_sources=lambda: ["Snakefile"]),
        )
        logger = SimpleNamespace(error=self.told.append, debug=self.told.append)
        self.executor: Any = Executor(workflow, logger)

    def run(self, *jobs: RuleJob) -> None:
        """Submits jobs."""
        self.executor.run_jobs(jobs)

    async def look(self) -> int:
        """Looks at the jobs once; returns how many have not ended."""
        active, self.executor.active_jobs = self.executor.active_jobs, []
        self.executor.active_jobs = [each async for each in self.executor.check_active_jobs(active)]
        return len(self.executor.active_jobs)
