"""Files beneath a job's folder, where whoever ran the job may have left anything.

Every part of the way to a file is opened by itself, beneath the one before, and no link is followed;
what is opened is a plain file or nothing. So a job that has put a link to its site's keys into its
folder has nothing read for it, whatever it changes while somebody looks. Reading blocks: these
functions belong into a thread.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from grms.kit.file_names import check_name

CHUNK_BYTES: Final = 64 << 10
"""So many bytes are read, and sent, at a time."""

_NO_FILE = frozenset((errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO))
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FileProblem(Enum):
    """Why there is no content of a file; the wire has the same words."""

    MISSING = "missing"
    NO_FILE = "no_file"
    TOO_LARGE = "too_large"


class FileProblemError(Exception):
    """A file cannot be handed out.

    Attributes:
        problem: why.
    """

    def __init__(self, name: str, problem: FileProblem) -> None:
        self.problem = problem
        super().__init__(f"{name}: {problem.value.replace('_', ' ')}")


@dataclass(frozen=True, slots=True)
class FileLimits:
    """How much travels.

    Attributes:
        file_bytes: of one file.
        job_bytes: of all files of a job together.
    """

    file_bytes: int
    job_bytes: int


@dataclass(frozen=True, slots=True)
class JobFile:
    """A file that a job has left, or should have left.

    Attributes:
        name: as `check_name` has it.
        size: bytes; 0 where there is none.
        sha256: of the content, 32 bytes; empty where it was not looked at.
        problem: why there is no content; None where there is.
    """

    name: str
    size: int = 0
    sha256: bytes = b""
    problem: FileProblem | None = None


def opened(folder: Path, name: str) -> int:
    """Returns a descriptor of a plain file beneath a folder, to be read and then closed.

    Args:
        folder: of the job.
        name: of the file.

    Raises:
        ValueError: the name is none.
        FileProblemError: it is missing, or no plain file.
    """
    *folders, last = check_name(name).split("/")
    try:
        here = os.open(folder, _FOLDER)
        try:
            for part in folders:
                here = _moved(here, os.open(part, _FOLDER, dir_fd=here))
            # Nobody writes into a pipe that lies there; it must not hold up whoever opens it.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            found = os.open(last, flags, dir_fd=here)
        finally:
            os.close(here)
    except FileNotFoundError:
        raise FileProblemError(name, FileProblem.MISSING) from None
    except OSError as error:
        if error.errno in _NO_FILE or isinstance(error, PermissionError):
            raise FileProblemError(name, FileProblem.NO_FILE) from error
        raise
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise FileProblemError(name, FileProblem.NO_FILE)
    return found


def _moved(before: int, now: int) -> int:
    os.close(before)
    return now


def remove_below(folder: Path, name: str) -> None:
    """Deletes a file beneath a folder where it is there; of a link, the link.

    Args:
        folder: of the job.
        name: of the file.

    Raises:
        ValueError: the name is none.
        OSError: it cannot be deleted.
    """
    *folders, last = check_name(name).split("/")
    try:
        here = os.open(folder, _FOLDER)
        try:
            for part in folders:
                here = _moved(here, os.open(part, _FOLDER, dir_fd=here))
            os.unlink(last, dir_fd=here)
        finally:
            os.close(here)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno not in _NO_FILE:  # something else is in its place
            raise


def chunks(folder: Path, name: str, begin: int, end: int | None = None) -> Iterator[bytes]:
    """Yields the content of a file in pieces.

    Args:
        folder: of the job.
        name: of the file.
        begin: first byte.
        end: the byte after the last; None for all there is.

    Raises:
        ValueError: the name is none.
        FileProblemError: it is missing, or no plain file.
    """
    descriptor = opened(folder, name)
    try:
        at = begin
        while end is None or at < end:
            some = os.pread(
                descriptor, CHUNK_BYTES if end is None else min(CHUNK_BYTES, end - at), at
            )
            if not some:
                return
            at += len(some)
            yield some
    finally:
        os.close(descriptor)


def created(folder: Path, name: str, *, mode: int = 0o600) -> int:
    """Returns a descriptor of a new file beneath a folder; folders on the way are made.

    One that is there is replaced; of a link that is there, the link.

    Args:
        folder: it exists.
        name: of the file.
        mode: of the file.

    Raises:
        ValueError: the name is none.
        FileProblemError: something else is in the way, such as a link.
    """
    *folders, last = check_name(name).split("/")
    try:
        here = os.open(folder, _FOLDER)
        try:
            for part in folders:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=here)
                here = _moved(here, os.open(part, _FOLDER, dir_fd=here))
            with suppress(FileNotFoundError):
                os.unlink(last, dir_fd=here)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(last, flags, mode, dir_fd=here)
        finally:
            os.close(here)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise FileProblemError(name, FileProblem.NO_FILE) from error
        raise
