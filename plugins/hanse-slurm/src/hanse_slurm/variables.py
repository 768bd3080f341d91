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

HOME_ONLY: Final = "HANSE_SLURM_HOME_ONLY"
"""With 1, the site itself runs what `sbatch` submits."""

SITES: Final = "HANSE_SLURM_SITES"
"""Names of the sites that may run what `sbatch` submits, with commas between; any by default."""

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


def where_to_run() -> dict[str, object]:
    """Returns which sites may run a job, as arguments of `grms.client.Client.submit`.

    Raises:
        UsageError: `HANSE_SLURM_HOME_ONLY` is neither 0 nor 1, sites are named beside it, or `HANSE_SLURM_SITES` names none.
    """
    said = os.environ.get(HOME_ONLY, "") or "0"
    if said not in {"0", "1"}:
        raise UsageError(f"{HOME_ONLY}={said} must be 0 or 1")
    named = os.environ.get(SITES, "")
    sites = [word.strip() for word in named.split(",") if word.strip()]
    if named and not sites:
        raise UsageError(f"{SITES}={named} names no site")
    if sites and said == "1":
        raise UsageError(f"{HOME_ONLY} and {SITES} cannot both be set")
    return {"sites": sites, "home_only": said == "1"}


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
