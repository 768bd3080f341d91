"""Files beneath a job's folder, whose content is untrusted.

Every part of a path is opened separately, beneath the one before, without following links, and the result must be a
regular file. So a job that places a link to its site's keys in its folder gains nothing, whatever it changes
concurrently. Reading blocks: these functions belong in a thread.
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

from grms.daemon.file_names import check_name

CHUNK_BYTES: Final = 64 << 10
"""Bytes read, and sent, at a time."""

MODE_MAX: Final = 0o777
"""Permission bits of a file that travels: it brings no other account's rights."""

_NO_FILE = frozenset((errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO))
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FileProblem(Enum):
    """Why there is no content of a file; the wire has the same words."""

    MISSING = "missing"
    NO_FILE = "no_file"
    TOO_LARGE = "too_large"


class FileProblemError(Exception):
    """A file cannot be served; `problem` says why."""

    def __init__(self, name: str, problem: FileProblem) -> None:
        self.problem = problem
        super().__init__(f"{name}: {problem.value.replace('_', ' ')}")


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Limits of transfers: bytes of one file, and of all files of a job."""

    file_bytes: int
    job_bytes: int


@dataclass(frozen=True, slots=True)
class JobFile:
    """A file that a job has left, or should have left.

    Attributes:
        size: bytes; 0 if there is none.
        sha256: of the content, 32 bytes; empty if not computed.
        problem: why there is no content; `None` if there is.
        mode: permission bits; 0 if unknown.
    """

    name: str
    size: int = 0
    sha256: bytes = b""
    problem: FileProblem | None = None
    mode: int = 0


def mode_of(status: os.stat_result) -> int:
    """Returns the permission bits with which a file travels."""
    return status.st_mode & MODE_MAX


def word_of(status: os.stat_result) -> str:
    """Returns what tells a file from what it was before."""
    return f"{status.st_size} {status.st_mtime_ns}"


def opened(folder: Path, name: str) -> int:
    """Returns a descriptor for reading a regular file beneath a job's folder, to be closed by the caller.

    In a folder with the sticky bit (`grms.lrms.account_mapping`) a file of this process's user must have no other name.

    Raises:
        ValueError: the name is invalid.
        FileProblemError: it is missing, or no regular file.
    """
    *folders, last = check_name(name).split("/")
    try:
        here = os.open(folder, _FOLDER)
        # Others create files in such a folder, too, and may link what they cannot read (proc(5), protected_hardlinks).
        is_lent = bool(os.fstat(here).st_mode & stat.S_ISVTX)
        try:
            for part in folders:
                here = _moved(here, os.open(part, _FOLDER, dir_fd=here))
            # A pipe there has no writer; opening it must not block.
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
    status = os.fstat(found)
    is_linked = is_lent and status.st_nlink > 1 and status.st_uid == os.geteuid()
    if not stat.S_ISREG(status.st_mode) or is_linked:
        os.close(found)
        raise FileProblemError(name, FileProblem.NO_FILE)
    return found


def _moved(before: int, now: int) -> int:
    os.close(before)
    return now


def remove_below(folder: Path, name: str) -> None:
    """Deletes a file beneath a job's folder if it exists; for a link, the link.

    Raises:
        ValueError: the name is invalid.
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


def folders_below(folder: Path, name: str) -> int:
    """Returns a descriptor of the folder of a file beneath another folder, made where it is missing.

    Raises:
        ValueError: the name is invalid.
        FileProblemError: something else is in the way, such as a link.
    """
    here = os.open(folder, _FOLDER)
    try:
        for part in check_name(name).split("/")[:-1]:
            with suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=here)
            here = _moved(here, os.open(part, _FOLDER, dir_fd=here))
    except BaseException as error:
        os.close(here)
        if isinstance(error, OSError) and error.errno in _NO_FILE:
            raise FileProblemError(name, FileProblem.NO_FILE) from error
        raise
    return here


def chunks(folder: Path, name: str, begin: int, end: int | None = None) -> Iterator[bytes]:
    """Yields the bytes of a file from `begin` to `end` (exclusive; default all) in pieces.

    Raises:
        ValueError: the name is invalid.
        FileProblemError: it is missing, or no regular file.
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
    """Returns a descriptor of a new file beneath an existing folder; parent folders are created.

    An existing file is replaced; for a link, the link.

    Raises:
        ValueError: the name is invalid.
        FileProblemError: something else is in the way, such as a link.
    """
    here, last = folders_below(folder, name), name.rpartition("/")[2]
    try:
        with suppress(FileNotFoundError):
            os.unlink(last, dir_fd=here)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(last, flags, mode, dir_fd=here)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise FileProblemError(name, FileProblem.NO_FILE) from error
        raise
    finally:
        os.close(here)
