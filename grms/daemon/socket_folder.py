"""Sockets that a crash has left, which are removed, and temporary folders for sockets, where that is done likewise.

A Unix socket's path has at most 107 bytes, less than many folders' names, so unnamed sockets lie in the system's
temporary folder. The owner of such a folder holds a lock in it, which the kernel releases when the owner is gone
for any reason. Creating a folder first removes those that are not held.
"""

import contextlib
import fcntl
import os
import socket
import stat
import tempfile
import weakref
from pathlib import Path
from typing import Final, Self

from lrms_sim.util.errors import HanseError

PREFIX: Final = "hanse-"
"""Prefix of the folders."""

LOCK: Final = ".held"
"""The locked file in such a folder; a folder without it is not ours."""


PLACE_MAX: Final = 40
"""Longest name, in bytes, of a temporary folder that leaves room for a socket's path."""


def _place() -> str:
    place = tempfile.gettempdir()
    return place if len(os.fsencode(place)) <= PLACE_MAX else "/tmp"  # noqa: S108  # as `mkdtemp` makes it


class SocketFolder:
    """A private folder for sockets; `OSError` if there is no room for it."""

    def __init__(self) -> None:
        remove_left_behind()
        held = None
        while held is None:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_place()))
            held = _hold(self.path)
        self._lock = held
        self._end = weakref.finalize(self, _close, self.path, held)

    def share(self) -> None:
        """Lets processes that are started from now on hold the folder too, until they end."""
        os.set_inheritable(self._lock, True)

    def leave(self) -> None:
        """Leaves the folder to the processes that hold it too."""
        if self._end.detach() is not None:
            os.close(self._lock)

    def close(self) -> None:
        """Removes the folder; twice is nothing."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def remove_left_behind() -> None:
    """Removes this user's folders whose holders are gone; what cannot be removed stays."""
    for folder in Path(_place()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(folder)
            finally:
                os.close(lock)


def is_held(folder: Path) -> bool:
    """Returns whether a process holds a folder of sockets, if it exists."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Any other error means a file system without locks, where none can be held.
        return isinstance(error, BlockingIOError)
    finally:
        os.close(lock)
    return False


def remove(folder: Path) -> None:
    """Removes a folder of sockets, if it exists and has nothing else in it."""
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_socket():
                entry.unlink(missing_ok=True)
        # Foreign content keeps the folder, and without this file it is no longer ours.
        (folder / LOCK).unlink(missing_ok=True)
        folder.rmdir()


def _hold(folder: Path) -> int | None:
    # A concurrent clean-up may have come between the file and its lock; then neither exists.
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), (folder / LOCK).stat()):
            return lock
    except OSError:
        pass
    os.close(lock)
    return None


def _close(folder: Path, lock: int) -> None:
    remove(folder)
    os.close(lock)


class SocketInUseError(HanseError):
    """Another process listens on the socket, or it is none; the text says which."""


def remove_stale_socket(path: Path) -> None:
    """Removes a socket left behind by a killed process.

    Raises:
        SocketInUseError: a process listens on it, or it is no socket.
        OSError: it cannot be tested or removed.
    """
    if not path.exists():
        return
    if not path.is_socket():
        raise SocketInUseError(f"{path} is there already and is no socket; name another path")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.closing(probe):
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise SocketInUseError(f"another process listens on {path}; is the daemon running already?")
