"""The executor: jobs of PSI/J are jobs of a site.

PSI/J loads this file by itself, and not as a part of its package.
"""

import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, Final

from psij import (
    InvalidJobException,
    Job,
    JobExecutor,
    JobExecutorConfig,
    JobSpec,
    JobState,
    JobStatus,
    SubmitException,
)

from grms.client import Job as SiteJob
from grms.client import JobPhase, Outcome, SiteError, SiteUnavailable, SyncClient
from grms.client import JobState as SiteState
from grms.client.answers import ending
from psij_executor_hanse.wanted import wanted_of

SOCKET_VARIABLE: Final = "HANSE_SOCKET"

PAUSE_S: Final = 5.0
"""Between two attempts to follow jobs at a site that is away or refuses it."""

LAUNCHER: Final = "single"
"""What starts the processes of a job that names no launcher, as with PSI/J's own executors."""

Names = list[str]
"""In the class below `list` is a method, by PSI/J's wish."""

_logger = logging.getLogger(__name__)


class HanseJobExecutor(JobExecutor):
    """Runs jobs at a site.

    One stream tells of all jobs of the executor; it is there while any is open. Every job is submitted with a key of its own, so
    that one whose submission had no answer can be submitted again, and stays one job.

    Args:
        url: socket of the site; by default the variable `HANSE_SOCKET`.
        config: of PSI/J; launchers are put into its `work_directory`.
        timeout_s: of a call to the site with its retries, seconds.

    Raises:
        ValueError: no site is named.
    """

    def __init__(
        self,
        url: str | None = None,
        config: JobExecutorConfig | None = None,
        *,
        timeout_s: float = 30.0,
    ) -> None:
        super().__init__(url=url, config=config or JobExecutorConfig.DEFAULT)
        self._socket = url or os.environ.get(SOCKET_VARIABLE, "")
        if not self._socket:
            raise ValueError(f"no site is named: url or {SOCKET_VARIABLE}")
        self._timeout_s = timeout_s
        # Held while a job is handed in: what the stream says of it before it is known here waits.
        self._lock = Lock()
        self._open: dict[str, list[Job]] = {}
        self._thread: Thread | None = None
        # States are told in their order, and callbacks may submit other jobs.
        self._teller = ThreadPoolExecutor(1, "hanse states")

    def _site(self) -> SyncClient:
        return SyncClient(self._socket, timeout_s=self._timeout_s)

    # --- what PSI/J calls ------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Submits a job; its native id is there when this returns.

        Raises:
            InvalidJobException: no site could run it, or this one never will.
            SubmitException: the site does not answer, or takes no work now. The same job may be submitted again.
        """
        spec = self._check_job(job)
        try:
            wanted = self._wanted(job, spec)
            self._take(job, lambda site: site.submit(**wanted))
        except (ValueError, OSError) as error:
            job.executor = None
            raise InvalidJobException(str(error)) from error
        except SiteError as error:
            job.executor = None
            if error.code == "INVALID_ARGUMENT":
                raise InvalidJobException(str(error)) from error
            is_transient = isinstance(error, SiteUnavailable)
            raise SubmitException(str(error), exception=error, transient=is_transient) from error

    def _wanted(self, job: Job, spec: JobSpec) -> dict[str, Any]:
        if not spec.executable:
            raise ValueError("the job has no executable")
        launcher = self._get_launcher(spec.launcher or LAUNCHER)
        return wanted_of(job, spec, launcher.get_launch_command(job))

    def cancel(self, job: Job) -> None:
        """Requests the end of a job.

        Raises:
            SubmitException: it was not submitted, or the site does not answer.
        """
        if job.native_id is None:
            raise SubmitException("the job was not submitted")
        if job.status.final:
            return
        try:
            with self._site() as site:
                site.cancel(job.native_id)
        except SiteError as error:
            raise SubmitException(str(error), exception=error) from error

    def list(self) -> Names:
        """Returns the native ids of the user's jobs that have not ended, whoever has submitted them.

        Raises:
            SubmitException: the site does not answer.
        """
        states = [each for each in SiteState if each not in {SiteState.ENDED, SiteState.UNKNOWN}]
        try:
            with self._site() as site:
                return [job.job_id for job in site.jobs(states=states)]
        except SiteError as error:
            raise SubmitException(str(error), exception=error) from error

    def attach(self, job: Job, native_id: str) -> None:
        """Lets a new job stand for one of the site, of this executor or not; also one that has ended.

        Raises:
            InvalidJobException: the job is not new.
            SubmitException: the site has no such job, or does not answer.
        """
        if job.status.state != JobState.NEW:
            raise InvalidJobException("the job is not new")
        job.executor = self
        try:
            self._take(job, lambda site: site.get(native_id))
        except SiteError as error:
            job.executor = None
            raise SubmitException(str(error), exception=error) from error

    # --- until they have ended -------------------------------------------------------------------

    def _take(self, job: Job, ask: Callable[[SyncClient], SiteJob]) -> None:
        with self._lock, self._site() as site:
            found = ask(site)
            job._native_id = found.job_id  # noqa: SLF001  # as PSI/J's own executors do
            self._open.setdefault(found.job_id, []).append(job)
            self._tell(found)
            if self._open and self._thread is None:
                self._thread = Thread(target=self._follow, name="hanse jobs", daemon=True)
                self._thread.start()

    def _tell(self, found: SiteJob) -> None:
        # With the lock.
        jobs = self._open.get(found.job_id, [])
        status = status_of(found)
        if found.has_ended:
            self._open.pop(found.job_id, None)
        for job in jobs:
            self._teller.submit(self._set_job_status, job, status)

    def _tell_all(self, found: Iterable[SiteJob]) -> bool:
        # Returns whether jobs are left; if not, this thread ends.
        with self._lock:
            for each in found:
                self._tell(each)
            if not self._open:
                self._thread = None
            return bool(self._open)

    def _follow(self) -> None:
        token, is_away = "", False
        while True:
            try:
                with self._site() as site:
                    is_new = True
                    for changes in site.changes(token):
                        # What happened before the first answer is asked for.
                        found = [*(self._look(site) if is_new else ()), *changes.jobs]
                        if not self._tell_all(found):
                            return
                        token, is_new, is_away = changes.token or token, False, False
            except SiteError as error:
                if not is_away:
                    _logger.warning("jobs are not followed, but asked for: %s", error)
                is_away = True
            time.sleep(PAUSE_S)
            with suppress(SiteError), self._site() as site:
                if not self._tell_all(self._look(site)):
                    return

    def _look(self, site: SyncClient) -> Sequence[SiteJob]:
        with self._lock:
            names = tuple(self._open)
        found = []
        for name, answer in zip(names, site.get_many(names), strict=True):
            if isinstance(answer, SiteJob):
                found.append(answer)
            elif not isinstance(answer, SiteUnavailable):
                with self._lock:
                    for job in self._open.pop(name, []):
                        status = JobStatus(JobState.FAILED, message=str(answer))
                        self._teller.submit(self._set_job_status, job, status)
        return found


def status_of(job: SiteJob) -> JobStatus:
    """Returns what PSI/J calls the status of a job; PSI/J itself never goes back to an earlier one."""
    metadata: dict[str, object] = {"native_id": job.job_id, "executed_on": job.executed_on}
    if not job.has_ended:
        runs = job.state is SiteState.RUNNING or job.phase in {
            JobPhase.RUNNING,
            JobPhase.SUSPENDED,
            JobPhase.COMPLETING,
        }
        state = JobState.ACTIVE if runs else JobState.QUEUED
        return JobStatus(state, message=job.reason or None, metadata=metadata)
    problem = ending(job)
    state = JobState.FAILED if problem else JobState.COMPLETED
    if job.outcome is Outcome.CANCELLED:
        state = JobState.CANCELED
    return JobStatus(state, message=problem or None, exit_code=job.exit_code, metadata=metadata)
