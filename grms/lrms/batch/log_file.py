"""Follows a file that another program appends to, across its rotation and restarts."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

FIRST_BYTES_MAX: Final = 16 << 20
"""Bytes read from the end of the file at first."""

LINE_BYTES_MAX: Final = 1 << 20
"""Longer lines are skipped."""

T = TypeVar("T")


class FollowedFile:
    """A growing file."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._file: tuple[int, int] | None = None
        self._offset = 0
        self._rest = b""

    def new_lines(self) -> list[str]:
        """Returns complete lines new since the last call; none if the file is missing or unreadable."""
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                self._place(status)
                file.seek(self._offset)
                new = file.read(FIRST_BYTES_MAX)
        except OSError:
            return []
        self._offset += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            self._rest = b""
        return [line.decode("utf-8", "replace") for line in lines]

    def _place(self, status: os.stat_result) -> None:
        identity = status.st_dev, status.st_ino
        if self._file == identity and status.st_size >= self._offset:
            return
        first = self._file is None
        self._file, self._rest = identity, b""
        self._offset = max(0, status.st_size - FIRST_BYTES_MAX) if first else 0


class FollowedRecords(Generic[T]):
    """The records in such a file, by the name of their job.

    `parse` returns the records in some lines with these names; at most `most` jobs are kept, the oldest dropped.
    """

    def __init__(
        self, path: str, parse: Callable[[list[str]], Iterable[tuple[str, T]]], *, most: int
    ) -> None:
        self._file = FollowedFile(path)
        self._parse = parse
        self._most = most
        self._lines: list[str] = []
        self._found: OrderedDict[str, list[T]] = OrderedDict()
        # A waiting task may be cancelled while its thread reads on: the result is kept here.
        self._reading = threading.Lock()

    def read(self) -> None:
        """Reads what is new; it may block."""
        with self._reading:
            self._lines += self._file.new_lines()
            records = list(self._parse(self._lines))  # where that fails, they are parsed again
            self._lines.clear()
            for name, record in records:
                self._found.setdefault(name, []).append(record)
                if len(self._found) > self._most:
                    self._found.popitem(last=False)

    def of(self, name: str) -> Sequence[T]:
        """Returns the records of a job that have been read, the oldest first."""
        return tuple(self._found.get(name, ()))
