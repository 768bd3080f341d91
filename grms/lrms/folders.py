"""What jobs leave behind, of an LRMS that gives each a folder of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The folder in which a job runs or has run.

    Attributes:
        path: of the folder.
        names: of the files that the job leaves, or should leave: its streams and what it has
            declared. Whoever reads them must follow no link: the job could write here.
    """

    path: Path
    names: tuple[str, ...]


class JobFolders(Protocol):
    """The folders of all jobs; every method touches the disk."""

    def left(self, key: str) -> JobFolder | None:
        """Returns a job's folder; None where there is none, or none any more."""

    def clear(self, key: str) -> None:
        """Deletes what a job has left; that it has been here is remembered."""

    def remove(self, key: str) -> None:
        """Deletes a job's folder."""

    def stale(self, before: float) -> Sequence[str]:
        """Returns the keys of folders in which nothing has changed since a moment.

        Args:
            before: that moment, seconds since 1970.
        """


@runtime_checkable
class WithFolders(Protocol):
    """An LRMS whose jobs have folders."""

    @property
    def folders(self) -> JobFolders:
        """Where they are."""
