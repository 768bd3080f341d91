"""What the commands find in variables: the site, and the job in which they run."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hanse_slurm.options import UsageError

SOCKET_VARIABLE: Final = "HANSE_SOCKET"
TIMEOUT_VARIABLE: Final = "HANSE_TIMEOUT"
TIMEOUT_S: Final = 30.0
"""Of a call with its retries, seconds, unless `HANSE_TIMEOUT` says otherwise."""

_JOB: Final = re.compile(r"(?:\S+-)?\d{1,18}(?:_(?:\d{1,9}|\[[\d,:-]+\]))?", re.ASCII)


def socket() -> Path:
    """Returns the site's socket.

    Raises:
        UsageError: none is named.
    """
    named = os.environ.get(SOCKET_VARIABLE, "")
    if not named:
        raise UsageError(f"{SOCKET_VARIABLE} is not set: it names the socket of the site")
    return Path(named)


def timeout_s() -> float:
    """Returns how long a call is tried, seconds.

    Raises:
        UsageError: `HANSE_TIMEOUT` is no such number.
    """
    text = os.environ.get(TIMEOUT_VARIABLE, "")
    try:
        found = float(text) if text else TIMEOUT_S
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise UsageError(f"{TIMEOUT_VARIABLE}={text} must be more than 0 seconds")
    return found


def job_words(words: Sequence[str]) -> list[str]:
    """Returns the names of jobs in lists of them; the number that a job has of its batch system is this job.

    Raises:
        UsageError: one names no job.
    """
    found = []
    for word in (each for some in words for each in re.split(r",(?![^\[]*\])", some)):
        if _JOB.fullmatch(word) is None:
            raise UsageError(f"Invalid job id {word}")
        found.append(own_name(word))
    return found


def own_name(word: str) -> str:
    """Returns the name of the job in which this runs for the number that its batch system has given it; else the word."""
    own = os.environ.get("HANSE_JOB_ID", "")
    return own if own and word == os.environ.get("SLURM_JOB_ID") else word
