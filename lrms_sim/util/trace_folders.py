"""Where recorded logs lie on this machine, and the short names that they go by."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FOLDER_VARIABLE: Final = "HANSE_TRACES"
"""The environment variable that names a folder which already has the logs."""

LOG_FILES: Final[Mapping[str, str]] = {
    "kth": "KTH-SP2-1996-2.swf.gz",
    "ctc": "CTC-SP2-1996-3.1-cln.swf.gz",
    "sdsc05": "SDSC-DS-2004-2.1-cln.swf.gz",
    "sdsc00": "SDSC-SP2-1998-4.2-cln.swf.gz",
}
"""File names of logs of the Parallel Workloads Archive by the key that commands take."""


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder of downloads, `$XDG_CACHE_HOME/hanse/traces`.

    As in the XDG specification, a relative `XDG_CACHE_HOME` is ignored in favour of `~/.cache`.
    """
    named = environment.get("XDG_CACHE_HOME", "")
    base = Path(named) if Path(named).is_absolute() else Path.home() / ".cache"
    return base / "hanse" / "traces"


def trace_folders(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Returns the folders in which logs are looked for, the first one first."""
    named = environment.get(FOLDER_VARIABLE, "")
    return (*((Path(named),) if named else ()), cache_folder(environment))


def find_log(key: str, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Returns the file of a log by its key in `LOG_FILES`; `None` if it is not on this machine."""
    candidates = (folder / LOG_FILES[key] for folder in trace_folders(environment))
    return next((path for path in candidates if path.is_file()), None)


def located(named: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the file that a user means: a path, which takes precedence, or a key of `LOG_FILES`.

    Raises:
        FileNotFoundError: it is the key of a log that is not on this machine.
    """
    key = str(named)
    if key not in LOG_FILES or named.exists():
        return named
    found = find_log(key, environment)
    if found is None:
        raise FileNotFoundError(
            f"the log {key!r} ({LOG_FILES[key]}) is not on this machine; get it with "
            f"`scenario fetch {key}`, or set {FOLDER_VARIABLE} to a folder that has it"
        )
    return found
