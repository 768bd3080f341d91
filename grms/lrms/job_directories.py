"""Results of jobs, for an LRMS that gives each a folder of its own."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from grms.daemon.job_files import STREAMS, WantedFiles


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The folder in which a job runs or has run, what it declares besides its streams, and its inputs.

    Readers must not follow links: the job could write here. `given` are the inputs as they were, each with its
    `word_of`; `checkpoint` are the files in which it writes its state.
    """

    path: Path
    wanted: WantedFiles = field(default_factory=WantedFiles)
    given: Mapping[str, str] = field(default_factory=dict)
    checkpoint: WantedFiles = field(default_factory=WantedFiles)
    streams: tuple[str, ...] = STREAMS

    @property
    def names(self) -> tuple[str, ...]:
        """The streams, and the declared names."""
        return (*self.streams, *self.wanted.names)

    def state(self) -> Self:
        """Returns the folder with the files of the job's state in place of what it declares, as they are."""
        return replace(self, wanted=self.checkpoint, given={}, streams=())


@dataclass(frozen=True, slots=True)
class Remains:
    """Number and total bytes of files in a job's folder."""

    files: int = 0
    size: int = 0


class JobFolders(Protocol):
    """The folders of all jobs; every method accesses the disk, and raises `OSError` on failure."""

    def left(self, key: str) -> JobFolder | None:
        """Returns a job's folder, if it exists."""

    def others(self, key: str, listed: Collection[str]) -> Remains:
        """Returns what a job has left besides those files.

        Unchanged inputs and links, which have no content, do not count.
        """

    def changed(self, key: str) -> float:
        """Returns when a job's folder last changed, seconds since 1970."""

    def clear(self, key: str, copied: Collection[str], *, rest: bool = False) -> Remains:
        """Deletes outputs of a job that have been copied elsewhere; its presence is remembered.

        `copied` are names of files; `rest`: nothing else is wanted, and goes, too.

        Returns:
            What remains uncopied; if nothing does, the rest of the folder is deleted as well.
        """

    def held(self, prefix: str) -> int:
        """Returns how many bytes the folders of all jobs have whose keys begin so, as far as they occupy the disk."""

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
