"""The executor: Snakemake's jobs go to a site, and what they leave comes back."""

import os
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.settings import SharedFSUsage

from grms.client import Job, SiteError, SiteUnavailable
from grms.client.answers import ending
from snakemake_executor_plugin_hanse.job_files import (
    SOURCES,
    declared,
    inputs_of,
    local_files,
    logs_of,
    name_of,
    outputs_of,
    pack,
    reads_storage,
)
from snakemake_executor_plugin_hanse.needs import needs_of
from snakemake_executor_plugin_hanse.open_jobs import OpenJobs, grouped, new_key
from snakemake_executor_plugin_hanse.settings import ExecutorSettings
from snakemake_executor_plugin_hanse.site_jobs import SiteJobs, Submission

SOCKET_VARIABLE: Final = "HANSE_SOCKET"

LOGS: Final = Path(".snakemake/hanse_logs")
"""What failed jobs have printed, each in a folder of its name."""

OPEN: Final = Path(".snakemake/hanse_open")
"""Keys of jobs that are under way, for a run of Snakemake after one that was killed."""


class Executor(RemoteExecutor):
    """Runs jobs at a site.

    Without a shared file system (`--shared-fs-usage none`) the workflow's sources and a job's inputs travel with it,
    and its outputs, logs and benchmarks come home when it has ended.
    """

    def __post_init__(self) -> None:
        """Connects to the site."""
        settings = self.workflow.executor_settings
        self._settings = settings if isinstance(settings, ExecutorSettings) else ExecutorSettings()
        socket = self._settings.socket or os.environ.get(SOCKET_VARIABLE, "")
        if not socket:
            raise WorkflowError(f"no site is named: --hanse-socket or {SOCKET_VARIABLE}")
        usage = self.workflow.storage_settings.shared_fs_usage
        self._files_travel = SharedFSUsage.INPUT_OUTPUT not in usage
        self._sources_travel = self._files_travel and SharedFSUsage.SOURCES not in usage
        self._packed: Path | None = None
        self._source_names: list[str] | None = None
        self._kept = OpenJobs(OPEN)
        self._done: list[Submission] = []
        self._open: dict[str, Submission] = {}
        self._is_away = False
        self._site = SiteJobs(socket, self._settings.timeout)
        try:
            self._site.check()
        except SiteError as error:
            self._site.close()
            raise WorkflowError(str(error)) from error

    # --- submission ------------------------------------------------------------------------------

    def run_jobs(self, jobs: Sequence[Any]) -> None:
        """Submits jobs by one call; those that the site does not answer for go again with the next look at all jobs."""
        made = []
        for job in jobs:
            self.run_job_pre(job)
            info = SubmittedJobInfo(job)
            try:
                info.aux = {"submission": self._submission(job)}
            except (ValueError, OSError) as error:
                self._fail(info, str(error))
            else:
                made.append(info)
        for info in self._submit(made):
            self.report_job_submission(info)

    def run_job(self, job: Any) -> None:
        """Submits one job."""
        self.run_jobs([job])

    def _submit(self, infos: Sequence[SubmittedJobInfo]) -> list[SubmittedJobInfo]:
        # Returns those that are not refused; without an id where the site has not answered.
        by_key = {_of(info).key: info for info in infos}
        self._open.update({key: _of(info) for key, info in by_key.items()})
        refused = []
        try:
            if infos:
                refused = list(self._site.submit([_of(info) for info in infos]))
                self._is_away = False
        except SiteUnavailable as error:
            self._tell_away(error)
        for submission, reason in refused:
            self._fail(by_key.pop(submission.key), f"The site has refused it: {reason}.")
        for info in by_key.values():
            info.external_jobid = _of(info).job_id or None
        return list(by_key.values())

    def _submission(self, job: Any) -> Submission:
        wanted: dict[str, Any] = {
            "name": job.name,
            "needs": needs_of(dict(job.resources.items()), job.threads, self._settings.runtime),
            "environment": dict(self.envvars()),
            "merged": True,
            "sites": [each for each in self._settings.sites.split(",") if each],
            "home_only": self._settings.home_only,
        }
        lines = ["#!/bin/sh"]
        outputs: dict[str, bool] = {}
        inputs: dict[str, Any] = {}
        if self._files_travel:
            inputs |= inputs_of(job)
            outputs = outputs_of(job)
            wanted["outputs"] = declared(outputs)
            if self._sources_travel:
                inputs[SOURCES] = self._sources()
                lines.append(f"tar -xzf {SOURCES} || exit 1")
        else:
            # At another site there may be another disk.
            wanted["home_only"] = wanted["home_only"] or not wanted["sites"]
            lines.append(f"cd {shlex.quote(str(Path.cwd()))} || exit 1")
        wanted["script"] = "\n".join([*lines, self.format_job_exec(job), ""])
        key, known = self._key(job, wanted)
        if self._files_travel:
            wanted["inputs"] = inputs
        logs = logs_of(job) if self._files_travel else frozenset()
        return Submission({**wanted, "key": key}, outputs, logs, known)

    def _key(self, job: Any, wanted: Mapping[str, Any]) -> tuple[str, bool]:
        # One that a run before this one has submitted, and that is the same, stays one job; not where nobody can say
        # whether it is the same.
        try:
            sources = self._workflow()
        except (WorkflowError, OSError):  # without a usable git
            if self._sources_travel:
                raise
            return new_key(), False
        if reads_storage(job):
            return new_key(), False
        # Snakemake writes some options of its command in another order each time.
        same = {**wanted, "script": grouped(wanted["script"])}
        return self._kept.key(same, [*sources, *local_files(job)])

    def _sources(self) -> Path:
        if self._packed is None:
            name_of(self.snakefile)
            packed = Path(self.tmpdir) / SOURCES
            pack(self._workflow(), packed)
            self._packed = packed
        return self._packed

    def _workflow(self) -> list[str]:
        if self._source_names is None:
            self._source_names = [str(name) for name in self.dag.get_sources()]
        return self._source_names

    def additional_general_args(self) -> str:
        """Returns further words of the command of a job: where files travel, its folder is the working directory."""
        return "--directory ." if self._files_travel else ""

    # --- until they have ended -------------------------------------------------------------------

    async def check_active_jobs(
        self, active_jobs: Sequence[SubmittedJobInfo]
    ) -> AsyncIterator[SubmittedJobInfo]:
        """Yields the jobs that have not ended, and reports the others; one call asks for all of them."""
        if not active_jobs:
            # Snakemake looks for the first time before `__post_init__`, and an error there would end all looks unseen.
            return
        self._forget_done()
        unsent = [info for info in active_jobs if not _of(info).job_id]
        sent = [info for info in active_jobs if _of(info).job_id]
        for info in self._submit(unsent):
            yield info
        if not sent:
            return
        async with self.status_rate_limiter:
            try:
                answers = self._site.look([_of(info).job_id for info in sent])
                self._is_away = False
            except SiteError as error:  # whatever it says, the jobs may go on
                self._tell_away(error)
                answers = []
        if not answers:
            for info in sent:
                yield info
            return
        for info, answer in zip(sent, answers, strict=True):
            if not self._has_ended(info, answer):
                yield info

    def _has_ended(self, info: SubmittedJobInfo, answer: Job | SiteError) -> bool:
        if isinstance(answer, SiteUnavailable):
            return False
        if isinstance(answer, SiteError):
            problem: str | None = f"The site has no such job: {answer}."
        elif not answer.has_ended:
            return False
        else:
            problem = ending(answer) or self._brought(info)
        if problem:
            self._fail(info, problem)
        elif problem is not None:
            self._open.pop(_of(info).key, None)
            self._done.append(_of(info))
            self.report_job_success(info)
        return problem is not None

    def _forget_done(self) -> None:
        # At the next look: a run of Snakemake that is killed before it has noted that they are done finds them again.
        done, self._done = self._done, []
        for submission in done:
            self._kept.forget(submission.key)
            if self._files_travel:
                self._site.remove(submission)

    def _brought(self, info: SubmittedJobInfo) -> str | None:
        # What is wrong with the files of a job that has ended well; `None` if they are still to come.
        if not self._files_travel:
            return ""
        try:
            return self._site.bring(_of(info), Path())
        except SiteUnavailable as error:
            self._tell_away(error)
            return None
        except (SiteError, OSError) as error:
            return f"Its files are not brought: {error}."

    def _fail(self, info: SubmittedJobInfo, reason: str) -> None:
        logs: list[str] = []
        if info.aux is not None:
            submission = _of(info)
            self._open.pop(submission.key, None)
            self._kept.forget(submission.key)
            if submission.job_id and (log := self._log(submission)):
                logs = [log]
        self.report_job_error(info, msg=f"{reason} ", aux_logs=logs)

    def _log(self, job: Submission) -> str:
        try:
            path = self._site.bring_logs(job, Path(), LOGS / job.job_id)
        except (SiteError, OSError) as error:
            reason = f"What job {job.job_id} has printed is not brought: {error}"
            self.logger.debug(reason)
            return ""
        return "" if path is None else str(path)

    def _tell_away(self, error: SiteError) -> None:
        # Once, and not with every look.
        if not self._is_away:
            text = f"The site does not answer; jobs stay with it, and are asked for again: {error}"
            self.logger.error(text)
        self._is_away = True

    # --- the end ---------------------------------------------------------------------------------

    def cancel_jobs(self, active_jobs: Sequence[SubmittedJobInfo]) -> None:
        """Cancels all jobs: those that Snakemake names, and those that are being asked for at this moment."""
        jobs = {_of(info).key: _of(info) for info in active_jobs} | self._open
        try:
            self._site.cancel(jobs.values())
            for key in jobs:
                self._kept.forget(key)
        except SiteError as error:
            named = ", ".join(job.job_id or f"key {job.key}" for job in jobs.values())
            text = f"These jobs may go on, as the site has not answered: {named}: {error}"
            self.logger.error(text)  # noqa: TRY400  # a traceback tells users nothing

    def shutdown(self) -> None:
        """Ends the looks at jobs, and then the connection."""
        super().shutdown()
        self._forget_done()
        self._site.close()


def _of(info: SubmittedJobInfo) -> Submission:
    assert info.aux is not None
    found: Submission = info.aux["submission"]
    return found
