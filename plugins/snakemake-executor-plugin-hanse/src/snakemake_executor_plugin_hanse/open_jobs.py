"""Keys of the jobs of a working directory that are under way, so that a new run of Snakemake finds them at their site.

Each is a file, named by a digest of everything that makes the job; one that has changed is another job, with a key of its own.
"""

import hashlib
import json
import re
import secrets
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

_KEY: Final = re.compile(rb"snakemake-[0-9a-f]{32}")


def new_key() -> str:
    """Returns a key for one submission: with it a job can be handed in again, and stays one job."""
    return f"snakemake-{secrets.token_hex(16)}"


def grouped(command: str) -> list[list[str]]:
    """Returns a command such that only the order of its options, and of the values of each, does not count."""
    try:
        words = shlex.split(command)
    except ValueError:  # open quotes
        return [[command]]
    groups: list[list[str]] = [[]]
    for word in words:
        if word.startswith("--"):
            groups.append([word])
        else:
            groups[-1].append(word)
    return sorted([*each[:1], *sorted(each[1:])] for each in groups)


class OpenJobs:
    """The files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: dict[str, Path] = {}

    def key(self, wanted: Mapping[str, Any], files: Iterable[str]) -> tuple[str, bool]:
        """Returns the key with which such a job was submitted, or a new one, which is kept; and whether it was there.

        Args:
            wanted: what makes the job, but for the content of files.
            files: those of the workflow, and its inputs; by size and time, as Snakemake takes them for the same.

        Raises:
            OSError: the folder cannot be read or written.
        """
        said = [sorted(wanted.items()), sorted(map(_state, set(files)))]
        text = json.dumps(said, sort_keys=True, default=repr)
        path = self._folder / hashlib.sha256(text.encode()).hexdigest()
        key = _read(path)
        known = bool(key)
        if not known:
            key = new_key()
            self._folder.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{secrets.token_hex(4)}")
            try:
                part.write_text(key, encoding="utf-8")
                part.replace(path)
            except OSError:
                part.unlink(missing_ok=True)
                raise
        self._paths[key] = path
        return key, known

    def forget(self, key: str) -> None:
        """Deletes the file of a job that is over: a later one like it is another job."""
        path = self._paths.pop(key, None)
        if path is not None:
            path.unlink(missing_ok=True)


def _read(path: Path) -> str:
    # What is no key, as after a loss of power, is none.
    content = path.read_bytes() if path.exists() else b""
    return content.decode() if _KEY.fullmatch(content) else ""


def _state(file: str) -> tuple[str, int, int]:
    try:
        status = Path(file).stat()
    except FileNotFoundError:
        return file, 0, 0
    return file, status.st_size, status.st_mtime_ns
