"""Results of jobs, for an LRMS that gives each a folder of its own."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The folder in which a job runs or has run, and the names of its streams and declared outputs.

    Readers must not follow links: the job could write here.
    """

    path: Path
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Remains:
    """Number and total bytes of files in a job's folder."""

    files: int = 0
    size: int = 0


class JobFolders(Protocol):
    """The folders of all jobs; every method accesses the disk, and raises `OSError` on failure."""

    def left(self, key: str) -> JobFolder | None:
        """Returns a job's folder, if it exists."""

    def others(self, key: str) -> Remains:
        """Returns what a job has left besides its streams and declared outputs.

        Unchanged inputs and links, which have no content, do not count.
        """

    def changed(self, key: str) -> float:
        """Returns when a job's folder last changed, seconds since 1970."""

    def clear(self, key: str, copied: Collection[str]) -> Remains:
        """Deletes outputs of a job that have been copied elsewhere; its presence is remembered.

        `copied` are names of files.

        Returns:
            What remains uncopied; if nothing does, the rest of the folder is deleted as well.
        """

    def remove(self, key: str) -> None:
        """Deletes a job's folder."""

    def stale(self, before: float) -> Sequence[str]:
        """Returns the keys of folders unchanged since a moment, seconds since 1970."""


@runtime_checkable
class WithFolders(Protocol):
    """An LRMS whose jobs have folders."""

    @property
    def folders(self) -> JobFolders:
        """Where they are."""
