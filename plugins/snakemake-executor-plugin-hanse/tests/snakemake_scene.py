"""A workflow, its jobs and a site without Snakemake and without a daemon."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from snakemake_interface_executor_plugins.settings import SharedFSUsage

from grms.client import Job, ResultFile, Results, SiteError
from snakemake_executor_plugin_hanse.executor import Executor
from snakemake_executor_plugin_hanse.settings import ExecutorSettings
from tests.fake_client import FakeClient


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


class FakeSite(FakeClient):
    """What the plugin calls of `grms.client.SyncClient`.

    Attributes:
        left: content of the files of each job, by its name.
        incomplete: jobs of which more files may come.
        problems: of files that are not there, by their names.
        removed: jobs whose files were deleted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.left: dict[str, dict[str, bytes]] = {}
        self.incomplete: set[str] = set()
        self.problems: dict[str, str] = {}
        self.removed: list[str] = []

    def submit_many(self, jobs: Sequence[Mapping[str, Any]]) -> list[Job | SiteError]:
        """Takes jobs; one that wants the partition `none` is refused, and one with a folder for a file is invalid."""
        self.called("submit_many")
        if any(name == "bad" for each in jobs for name in each.get("inputs", ())):
            raise ValueError("'bad' is no name")
        found: list[Job | SiteError] = []
        for each in jobs:
            if each["needs"].partition == "none":
                found.append(SiteError("INVALID_ARGUMENT", "there is no partition none"))
                continue
            job = self.take(each)
            if self.wanted[job.job_id]["script"] != each["script"]:
                text = "the idempotency key belongs to another submission"
                found.append(SiteError("FAILED_PRECONDITION", text))
                continue
            found.append(job)
        self.lose()
        return found

    def results(self, job_id: str) -> Results:
        """Returns what a job has left."""
        self.called("results")
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
