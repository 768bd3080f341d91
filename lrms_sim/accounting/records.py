"""One job as accounting has it, the rules by which lines are left out or completed, and times as text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final

from lrms_sim.swf_log import SwfLog

RULES: Final = {
    "step": "steps of jobs, left out",
    "open": "jobs that had not ended, left out",
    "other": "records of other kinds, left out",
    "before": "jobs that were submitted before the file begins, left out",
    "elsewhere": "jobs that ran at other sites, left out",
    "width": "jobs without a number of processors, left out",
    "endless": "jobs whose run time nothing says, left out",
    "disorder": "jobs that end before they start or start before their submission, left out",
    "never": "jobs that never started, kept as cancelled",
    "restart": "jobs that were started several times, kept with their last run",
    "wait": "jobs whose wait is not known, kept without one",
    "request": "jobs without a time limit, kept without a requested time",
    "work": "jobs whose run time follows from their work and the speed of a processor",
    "limit": "jobs whose run time nothing says, kept with their time limit as run time",
    "transfer": "jobs that also move data, kept without the time that takes",
    "year": "events whose date has no year: the first is taken to be of 2000",
    "name": "jobs whose names are no numbers of their own, numbered by submission",
}
"""What is done with lines that are no ordinary job, by the word under which it is counted."""

_SPAN: Final = re.compile(r"(?:(\d+)-)?(\d+):(\d\d)(?::(\d\d)(?:\.\d+)?)?")


class AccountingError(ValueError):
    """A file that cannot be read; the text has file, line and what is wrong."""


@dataclass(frozen=True, slots=True)
class Record:
    """One job as a batch system has it.

    Attributes:
        submit: Unix time.
        start: Unix time; None where it never started.
        end: Unix time.
        processors: how many it held or asked for.
        requested_time: seconds; None where there was no limit.
        status: of the standard: 0 failed, 1 completed, 5 cancelled.
        user: by name.
        group: by name.
        queue: or partition, by name.
        site: that ran it, where one file has several; by name.
        is_wait_known: whether it is known when it started; if not, `start` is the submission and
            `end` one run time later.
    """

    submit: float
    start: float | None
    end: float
    processors: int
    requested_time: float | None
    status: int
    user: str
    group: str
    queue: str
    site: str = ""
    is_wait_known: bool = True


@dataclass(frozen=True, slots=True)
class Import:
    """A log, and how often each of the `RULES` was used.

    Attributes:
        log: jobs in order of submission.
        counts: by the word of a rule, those that were used.
        sites: jobs by the site that ran them, where a file has several.
    """

    log: SwfLog
    counts: dict[str, int]
    sites: dict[str, int]


def counted(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns those of some counts that are more than 0, in the order of `RULES`."""
    return {rule: counts[rule] for rule in RULES if counts.get(rule)}


def seconds_of(text: str) -> float | None:
    """Returns the seconds of `[days-]hours:minutes[:seconds]`; None for what is no span."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        return None
    days, first, second, third = (int(part or 0) for part in found.groups())
    if found.group(4) is None and found.group(1) is None:
        return 60.0 * first + second  # minutes:seconds
    return 86400.0 * days + 3600.0 * first + 60.0 * second + third


def moment_of(text: str, zone: tzinfo) -> float | None:
    """Returns the Unix time of an ISO date or of seconds; None for `Unknown` and the like."""
    text = text.strip()
    if text.isdecimal():
        return float(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=zone)).timestamp()
