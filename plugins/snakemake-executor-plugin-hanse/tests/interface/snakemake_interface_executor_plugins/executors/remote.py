"""An executor that records what is reported to it, and looks at jobs when a test says so."""

import contextlib
from pathlib import Path
from typing import Any

from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo


class RemoteExecutor:
    """The base of the plugin's executor."""

    def __init__(self, workflow: Any, logger: Any) -> None:
        self.workflow = workflow
        self.logger = logger
        self.dag = workflow.dag
        self.snakefile = "Snakefile"
        self.tmpdir = str(Path.cwd())
        self.status_rate_limiter = contextlib.nullcontext()
        self.active_jobs: list[SubmittedJobInfo] = []
        self.succeeded: list[Any] = []
        self.failed: dict[Any, str] = {}
        self.logs: list[str] = []
        self.__post_init__()

    def __post_init__(self) -> None:
        """Is called when everything else is there."""

    def run_job_pre(self, job: Any) -> None:
        """Shows a job."""

    def envvars(self) -> dict[str, str]:
        """Returns the variables of jobs."""
        return {"WORD": "said"}

    def format_job_exec(self, job: Any) -> str:
        """Returns the command of a job."""
        return f"run {job.name}"

    def report_job_submission(self, job_info: SubmittedJobInfo, register_job: bool = True) -> None:
        """Looks at a job from now on."""
        assert register_job
        self.active_jobs.append(job_info)

    def report_job_success(self, job_info: SubmittedJobInfo) -> None:
        """Counts a job as done."""
        self.succeeded.append(job_info.job.name)

    def report_job_error(
        self, job_info: SubmittedJobInfo, msg: str | None = None, **more: Any
    ) -> None:
        """Counts a job as failed."""
        self.failed[job_info.job.name] = msg or ""
        self.logs += more["aux_logs"]

    def cancel(self) -> None:
        """Ends everything, as Ctrl-C does."""
        self.cancel_jobs(self.active_jobs)
        self.shutdown()

    def cancel_jobs(self, active_jobs: Any) -> None:
        """Cancels jobs."""
        raise NotImplementedError

    def shutdown(self) -> None:
        """Ends the looks at jobs."""
