"""The history of a run: a line of JSON for each event, which `checker` reads."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self


class History:
    """A file of events, written line by line; times are seconds since 1970."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("x", encoding="utf-8", buffering=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def note(self, event: str, *, at: float | None = None, **values: object) -> None:
        """Writes an event, of now unless `at` says when."""
        moment = time.time() if at is None else at
        self._file.write(json.dumps({"event": event, "time": moment, **values}) + "\n")

    def add_effects(self, path: Path) -> None:
        """Adds what jobs have written on their nodes; a file that is missing has none."""
        for line in path.read_text("utf-8").splitlines() if path.exists() else ():
            self._file.write(line + "\n")


def events_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the events of a history, in the order of the file."""
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)
