"""The jobs of a workflow at a site: submitted with a key each, asked for by one call, brought home."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grms.client import Job, Results, SiteError, SiteUnavailable, SyncClient
from grms.client.fetching import PROBLEMS, Bringer
from grms.daemon.job_files import STDOUT
from snakemake_executor_plugin_hanse.open_jobs import new_key


@dataclass
class Submission:
    """A job as it is handed to the site.

    Attributes:
        wanted: the arguments of `SyncClient.submit`, a key among them.
        outputs: what it leaves; whether each has to be there.
        logs: those of them in which its rules log, which come home also where it fails.
        known: an earlier run has had its key, so that the site may have the job.
        job_id: of the site; empty as long as its answer has not come.
    """

    wanted: Mapping[str, Any]
    outputs: Mapping[str, bool] = field(default_factory=dict)
    logs: frozenset[str] = frozenset()
    known: bool = False
    job_id: str = ""

    @property
    def key(self) -> str:
        """The key with which it is submitted, however often."""
        return str(self.wanted["key"])


class SiteJobs:
    """Jobs of one run of Snakemake; `close` ends the connection.

    All methods raise `SiteUnavailable` if the site cannot be reached in time.
    """

    def __init__(self, socket: str, timeout_s: float) -> None:
        self._client = SyncClient(socket, timeout_s=timeout_s)
        self._client.__enter__()

    def close(self) -> None:
        """Ends the connection."""
        self._client.__exit__(None, None, None)

    def check(self) -> None:
        """Asks the site for a job that is not there, to see whether it answers."""
        self._client.get_many(keys=[new_key()])

    def submit(self, jobs: Sequence[Submission]) -> Iterator[tuple[Submission, str]]:
        """Submits jobs, and sets their `job_id`; yields those that were refused, with the reason.

        Jobs that have neither may be with the site or not: they are submitted again later, with the same key.
        """
        self._find([job for job in jobs if job.known])
        left = [job for job in jobs if not job.job_id]
        for job, answer in zip(left, self._submitted(left) if left else (), strict=True):
            if isinstance(answer, Job):
                job.job_id = answer.job_id
            elif not isinstance(answer, SiteUnavailable):
                yield job, str(answer)

    def _find(self, jobs: Sequence[Submission]) -> None:
        # Not by submitting them again: the words of a command come in another order in each run, and the key would not fit.
        try:
            answers = self._client.get_many(keys=[job.key for job in jobs]) if jobs else []
        except SiteUnavailable:
            raise
        except SiteError:
            return  # with their keys they stay the same jobs; the site says why it refuses them
        for job, answer in zip(jobs, answers, strict=True):
            if isinstance(answer, SiteUnavailable):
                raise answer
            if isinstance(answer, Job):
                job.job_id = answer.job_id

    def _submitted(self, jobs: Sequence[Submission]) -> list[Job | Exception]:
        try:
            return list(self._client.submit_many([job.wanted for job in jobs]))
        except SiteUnavailable:
            raise
        except (SiteError, ValueError, OSError) as error:
            if len(jobs) == 1:
                return [error]
        # One of them is none that a site could take, and was not to stop the others.
        return [answer for job in jobs for answer in self._submitted([job])]

    def look(self, job_ids: Sequence[str]) -> list[Job | SiteError]:
        """Returns jobs as they are now, by one call; an error for each that the site does not have."""
        return self._client.get_many(job_ids)

    def cancel(self, jobs: Iterable[Submission]) -> None:
        """Requests the end of jobs, and of those whose answers were lost."""
        each = list(jobs)
        lost = [job.key for job in each if not job.job_id]
        found = self._client.get_many(keys=lost) if lost else []
        named = [job.job_id for job in each if job.job_id]
        named += [job.job_id for job in found if isinstance(job, Job)]
        if named:
            self._client.cancel_many(named)

    def bring(self, job: Submission, folder: Path) -> str | None:
        """Brings what a job has left into a folder.

        Returns:
            What is wrong with it, for people; empty if nothing is, `None` if not everything has come to the site yet.
        """
        results = self._client.results(job.job_id)
        if not results.complete:
            return None
        if results.problem:
            return f"The files of job {job.job_id} are not there: {results.problem}"
        problem = self._brought(job, results, folder)
        if problem:
            return f"Job {job.job_id} has ended well, but of its files {problem}"
        return ""

    def remove(self, job: Submission) -> None:
        """Deletes what a job has left at the site."""
        with contextlib.suppress(SiteError):  # the site deletes it later by itself
            self._client.remove_results(job.job_id)

    def _brought(self, job: Submission, results: Results, folder: Path) -> str:
        bring = Bringer(self._reader(job.job_id), folder, force=True)
        folders = tuple(name for name in job.outputs if name.endswith("/"))
        for name in folders:
            (folder / name).mkdir(parents=True, exist_ok=True)  # it may be empty
        there = set()
        for file in results.files:
            if file.name not in job.outputs and not file.name.startswith(folders):
                continue
            if file.problem == "missing":
                continue
            if problem := bring(file):
                return f"{file.name} is not brought: {problem}"
            # It may have been there with this content, and is new all the same.
            os.utime(folder / file.name)
            there.add(file.name)
        for name, must in job.outputs.items():
            if must and name not in there and not name.endswith("/"):
                return f"{name} is not brought: {PROBLEMS['missing']}"
        return ""

    def bring_logs(self, job: Submission, folder: Path, printed: Path) -> Path | None:
        """Brings the logs of a job that has failed into a folder, and what it has printed into `printed`.

        Returns:
            The file with what it has printed; `None` if there is none.
        """
        results = self._client.results(job.job_id)
        read, found = self._reader(job.job_id), None
        for file in results.files if results.complete else ():
            if file.problem:
                continue
            if file.name in job.logs:
                Bringer(read, folder, force=True)(file)
            elif file.name == STDOUT:
                printed.mkdir(parents=True, exist_ok=True)
                if not Bringer(read, printed, force=True)(file):
                    found = printed / STDOUT
        return found

    def _reader(self, job_id: str) -> Any:
        return lambda name, offset: self._client.fetch(job_id, name, offset)
