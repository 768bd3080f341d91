"""The base of providers."""

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence

from parsl.jobs.states import JobStatus


class ExecutionProvider(metaclass=ABCMeta):
    """What an executor asks of a provider."""

    @abstractmethod
    def __init__(self) -> None:
        """Takes options."""

    @abstractmethod
    def submit(self, command: str, tasks_per_node: int, job_name: str = "parsl.auto") -> object:
        """Submits a block."""

    @abstractmethod
    def status(self, job_ids: Sequence[object]) -> Sequence[JobStatus]:
        """Returns how blocks are."""

    @abstractmethod
    def cancel(self, job_ids: Sequence[object]) -> Sequence[bool]:
        """Ends blocks."""

    label: str
    status_polling_interval: int
