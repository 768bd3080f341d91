"""What the executor uses of PSI/J, for tests without it.

`benchmarks.psij_tests` runs PSI/J's own tests over the executor.
"""

import enum
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from threading import Condition
from typing import Any, Final


class InvalidJobException(Exception):  # noqa: N818  # PSI/J's name
    """No such job can be submitted."""


class SubmitException(Exception):  # noqa: N818  # same
    """A job was not submitted."""

    def __init__(
        self, message: str, exception: Exception | None = None, transient: bool = False
    ) -> None:
        super().__init__(message)
        self.exception, self.transient = exception, transient


class JobState(enum.IntEnum):
    """Where a job stands; the number is the order of its first digit."""

    NEW = 0
    QUEUED = 10
    ACTIVE = 20
    COMPLETED = 30
    FAILED = 31
    CANCELED = 32

    @property
    def final(self) -> bool:
        """Whether nothing more happens."""
        return self >= JobState.COMPLETED


@dataclass
class JobStatus:
    """Where a job stands, and why."""

    state: JobState
    message: str | None = None
    exit_code: int | None = None
    metadata: dict[str, object] | None = None

    @property
    def final(self) -> bool:
        """Whether nothing more happens."""
        return self.state.final


@dataclass
class ResourceSpecV1:
    """What a job asks for; its processes are dealt out by `node_count` alone."""

    node_count: int | None = None
    process_count: int | None = None
    cpu_cores_per_process: int | None = None
    gpu_cores_per_process: int | None = None
    exclusive_node_use: bool = False
    memory: int | None = None

    @property
    def computed_node_count(self) -> int:
        """Nodes."""
        return self.node_count or 1

    @property
    def computed_process_count(self) -> int:
        """Processes."""
        return self.process_count or self.computed_node_count

    @property
    def computed_processes_per_node(self) -> int:
        """Processes of each node."""
        return self.computed_process_count // self.computed_node_count


@dataclass
class JobAttributes:
    """How a job is run."""

    duration: timedelta = timedelta(minutes=10)
    queue_name: str | None = None
    account: str | None = None
    reservation_id: str | None = None
    custom_attributes: dict[str, object] | None = None


@dataclass
class JobSpec:
    """What a job is."""

    executable: str | None = None
    arguments: list[str] | None = None
    directory: Path | None = None
    name: str | None = None
    inherit_environment: bool = True
    environment: dict[str, str] | None = None
    resources: object = None
    attributes: JobAttributes | None = field(default_factory=JobAttributes)
    launcher: str | None = None


class Job:
    """A job, and all states that it was told."""

    def __init__(self, spec: JobSpec | None = None) -> None:
        self.spec = spec
        self.id = str(uuid.uuid4())
        self.executor: JobExecutor | None = None
        self.told: list[JobState] = []
        self.status = JobStatus(JobState.NEW)
        self._native_id: str | None = None
        self._changed = Condition()

    @property
    def native_id(self) -> str | None:
        """Its name at the site."""
        return self._native_id

    def tell(self, status: JobStatus) -> None:
        """Takes a later state."""
        with self._changed:
            self.told.append(status.state)
            if not self.status.final and status.state > self.status.state:
                self.status = status
            self._changed.notify_all()

    def until(self, state: JobState) -> JobStatus:
        """Returns when it is in a state, or beyond it."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.status.state >= state, 300)
            return self.status


class JobExecutorConfig:
    """Of an executor."""

    DEFAULT: "Final[JobExecutorConfig]"  # type: ignore[misc]  # set below, as by PSI/J


JobExecutorConfig.DEFAULT = JobExecutorConfig()  # type: ignore[misc]


@dataclass
class Launcher:
    """Starts the processes of a job."""

    name: str

    def get_launch_command(self, job: Job) -> list[str]:
        """Returns its command."""
        assert job.spec is not None
        return ["launch", self.name, str(job.spec.executable), *(job.spec.arguments or [])]


class JobExecutor:
    """The base of executors."""

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        assert config is not None
        self.url, self.config = url, config
        self.callback: Callable[[Job, JobStatus], Any] | None = None

    def _check_job(self, job: Job) -> JobSpec:
        if job.executor is not None or job.spec is None:
            raise InvalidJobException("it has an executor, or no specification")
        job.executor = self
        job.spec.resources = job.spec.resources or ResourceSpecV1()
        return job.spec

    def _get_launcher(self, name: str) -> Launcher:
        if name not in {"single", "multiple"}:
            raise ValueError(f"there is no launcher {name}")
        return Launcher(name)

    def _set_job_status(self, job: Job, status: JobStatus) -> None:
        job.tell(status)
        if self.callback is not None:
            self.callback(job, status)
