"""What jobs leave behind, of an LRMS that gives each a folder of its own."""

from collections.abc import Collection, Sequence
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


@dataclass(frozen=True, slots=True)
class Remains:
    """Files that lie in a job's folder.

    Attributes:
        files: how many.
        size: bytes of all.
    """

    files: int = 0
    size: int = 0


class JobFolders(Protocol):
    """The folders of all jobs; every method touches the disk, and raises `OSError` where that fails."""

    def left(self, key: str) -> JobFolder | None:
        """Returns a job's folder; None where there is none, or none any more."""

    def others(self, key: str) -> Remains:
        """Returns what a job has left beside its streams and what it has declared.

        What it was given is none of it, as long as it is as it was; nor are links, which have no content.
        """

    def changed(self, key: str) -> float:
        """Returns when anything in a job's folder has changed last, seconds since 1970."""

    def clear(self, key: str, copied: Collection[str]) -> Remains:
        """Deletes what a job has left and somebody else has now; that it has been here is remembered.

        Args:
            key: of the job.
            copied: names of the files that somebody has.

        Returns:
            What stays, as nobody has it; where that is nothing, the rest of the folder is deleted as well.
        """

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
