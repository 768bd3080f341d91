"""A file of the runs of a study, which is added to as they end, so that the study can go on later."""

import json
from pathlib import Path
from typing import Any

from lrms_sim.util.files import Mistake
from lrms_sim.util.version import __version__


class RunLog:
    """The runs that are done; each is on disk when it is over.

    Runs of another version of Hanse are passed over, as is a line that was cut off.

    Args:
        path: of the file, a line of JSON for each run; it need not exist.
        mistake: makes the error if the file cannot be read or written.

    Attributes:
        known: what each run came to, as plain values, by its key.
    """

    def __init__(self, path: Path, mistake: Mistake) -> None:
        self._path = path
        self._mistake = mistake
        self.known: dict[str, Any] = {}
        try:
            text = path.read_text(encoding="utf-8") if path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise mistake(f"{path} cannot be read: {error}") from error
        self._torn = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            try:
                values = json.loads(line)
            except ValueError:
                continue  # cut off when the power went
            if isinstance(values, dict) and values.get("version") == __version__:
                self.known[values["key"]] = values["found"]

    def add(self, key: str, found: Any) -> None:
        """Keeps a run, which must be representable in JSON; the error of `mistake` if it cannot be written."""
        self.known[key] = found
        line = json.dumps({"version": __version__, "key": key, "found": found})
        try:
            with self._path.open("a", encoding="utf-8") as file:
                # A line that was cut off must not take the next one with it.
                file.write(("\n" if self._torn else "") + line + "\n")
        except OSError as error:
            raise self._mistake(f"{self._path} cannot be written: {error.strerror}") from error
        self._torn = False
