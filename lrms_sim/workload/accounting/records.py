"""One job as accounting has it, what a reader notes while it reads, and times as text."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from lrms_sim.util.errors import HanseError
from lrms_sim.workload.requests import Request
from lrms_sim.workload.swf_log import SwfLog

RULES: Final = {
    "step": "steps of jobs, left out",
    "open": "jobs that had not ended, left out",
    "other": "records of other kinds, left out",
    "array": "records of whole arrays, left out: each of their tasks has its own",
    "before": "jobs that were submitted before the file begins, left out",
    "elsewhere": "jobs that ran at other sites, left out",
    "repeated": "records of jobs that are there already, left out",
    "columns": "lines with more or fewer columns than there are names, left out",
    "unreadable": "lines that are no record, left out",
    "moment": "jobs with a time that is none, left out",
    "width": "jobs without a number of processors, left out",
    "cancelled": "jobs that never started and do not say what they asked for, left out",
    "beyond": "jobs with numbers beyond those of a log, left out",
    "endless": "jobs whose run time nothing says, left out",
    "disorder": "jobs that end before they start or start before their submission, left out",
    "twice": "jobs that start or end in the hour that comes twice when daylight saving ends, kept with its second time",
    "never": "jobs that never started, kept as cancelled",
    "restart": "jobs that were started several times, kept with their last run",
    "wait": "jobs whose wait is not known, kept without one",
    "request": "jobs without a time limit, kept without a requested time",
    "work": "jobs whose run time follows from their work and the speed of a processor",
    "limit": "jobs whose run time nothing says, kept with their time limit as run time",
    "transfer": "jobs that also move data, kept without the time that takes",
    "year": "events whose date has no year: the first is taken to be of 2000",
    "fraction": "jobs that hold a part of a processor, kept with the whole of it",
    "types": "jobs with GPUs of several types, kept with GPUs of any",
    "uneven": "jobs with more GPUs on one node than on another, kept with the most on each",
    "part": "jobs that hold a part of a GPU, kept with the whole of it",
    "resource": "jobs with other generic resources than GPUs, kept without them",
    "constraint": "jobs with a constraint that is no list of features, kept without it",
    "contradiction": "jobs whose nodes, memory or GPUs contradict each other, kept without them",
    "name": "jobs whose names are no numbers of their own, numbered by submission",
    "bytes": "lines with bytes that are no UTF-8 text, read as far as they are",
}
"""What is done with irregular lines, by the word under which it is counted."""

LOST: Final = ("columns", "unreadable", "moment", "width", "beyond", "disorder")
"""Rules that leave out what should have been a job."""

_SPAN: Final = re.compile(r"(?:(\d{1,9})-)?(\d{1,9}):(\d\d)(?::(\d\d)(?:\.\d+)?)?")
_DAYS_HOURS: Final = re.compile(r"(\d{1,9})-(\d{1,2})")
_NUMBER: Final = re.compile(r"\d{1,18}(?:\.\d*)?")


class AccountingError(HanseError, ValueError):
    """A file that cannot be read; the text names file, line and problem."""


class Unreadable(ValueError):  # noqa: N818  # it says what a line is, and ends nothing by itself
    """A line or job that cannot be read; it is left out under the key `rule` of `RULES`."""

    def __init__(self, problem: str, rule: str = "unreadable") -> None:
        super().__init__(problem)
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Record:
    """One job as recorded by a batch system.

    Attributes:
        submit: Unix time.
        start: Unix time; `None` if it never started.
        end: Unix time.
        processors: number held, else given, else requested.
        requested_time: seconds; `None` if there was no limit.
        status: of the standard: 0 failed, 1 completed, 5 cancelled.
        site: that ran it, if one file has several; by name.
        is_wait_known: whether the start is known; if not, `start` is the submission and `end` one
            run time later.
        request: what it asked for, with `processors` in all; `None` if no more than these is known.
        job: id in the batch system; empty if unknown. Two records of one id that were submitted and
            started at the same times are one job.
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
    job: str = ""
    request: Request | None = None


class Example(NamedTuple):
    """Where a rule was first used, with a 1-based line (`None` without lines), and why."""

    line: int | None
    problem: str


_Row = TypeVar("_Row")


@dataclass(slots=True)
class Reading:
    """How a file is read, and what has been counted.

    Attributes:
        name: of the file in errors.
        zone: of the site, for times without one.
        strict: whether unreadable lines are errors; else they are counted and left out.
        counts: how often each of the `RULES` was used.
        examples: by rule, the first line that was left out by it.
    """

    name: str
    zone: tzinfo = UTC
    strict: bool = False
    columns: tuple[str, ...] = ()
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, Example] = field(default_factory=dict)

    def leave_out(self, line: int | None, fault: Unreadable) -> None:
        """Counts an unreadable line; `line` is 1-based, or `None` if the fault names the place.

        Raises:
            AccountingError: unreadable lines are errors here.
        """
        if self.strict:
            place = self.name if line is None else f"{self.name}:{line}"
            raise AccountingError(f"{place}: {fault}") from fault
        self.counts[fault.rule] += 1
        self.examples.setdefault(fault.rule, Example(line, str(fault)))

    def records(
        self,
        rows: Iterable[tuple[int | None, _Row]],
        make: Callable[[_Row, "Reading"], Record | None],
    ) -> Iterator[Record]:
        """Yields the records that `make` builds from rows; unreadable ones are counted.

        Rows come with their 1-based line, or `None`. `make` returns `None` for rows it has counted
        itself.

        Raises:
            AccountingError: as `leave_out`.
        """
        for line, row in rows:
            try:
                record = make(row, self)
            except Unreadable as fault:
                self.leave_out(line, fault)
                continue
            if record is not None:
                yield record


@dataclass(frozen=True, slots=True)
class Import:
    """A log, and how often each of the `RULES` was used.

    Attributes:
        log: jobs in order of submission.
        counts: by the word of a rule; only those used.
        sites: number of jobs by execution site, if a file has several.
        examples: by the word of a rule on unreadable lines, the first such line.
        requests: what the job of each row asked for, where more than processors is known.
    """

    log: SwfLog
    counts: dict[str, int]
    sites: dict[str, int]
    examples: dict[str, Example] = field(default_factory=dict)
    requests: tuple[Request | None, ...] = ()


def memory_column(request: Request | None) -> float:
    """Returns the memory that a job asked for, KiB for each processor, as a log has it; -1 for none."""
    if request is None or not request.memory_least:
        return -1.0
    return float(-(-1024 * request.memory_least // request.processors))


def second_time(moment: float, zone: tzinfo) -> float:
    """Returns the later moment at which clocks of a zone show what they show at a Unix time.

    It is the same one, except in the first of the two hours that look alike when daylight saving ends.
    """
    try:
        return datetime.fromtimestamp(moment, zone).replace(fold=1).timestamp()
    except (ValueError, OverflowError, OSError):  # beyond the years of dates
        return moment


def counted(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns those of some counts that are more than 0, in the order of `RULES`."""
    return {rule: counts[rule] for rule in RULES if counts.get(rule)}


def seconds_of(text: str) -> float | None:
    """Returns the seconds of `[days-]hours:minutes[:seconds]` or `days-hours`, else `None`."""
    text = text.strip()
    if days_hours := _DAYS_HOURS.fullmatch(text):
        return 86400.0 * int(days_hours[1]) + 3600.0 * int(days_hours[2])
    found = _SPAN.fullmatch(text)
    if found is None:
        return None
    days, first, second, third = (int(part or 0) for part in found.groups())
    if found.group(4) is None and found.group(1) is None:
        return 60.0 * first + second  # minutes:seconds
    return 86400.0 * days + 3600.0 * first + 60.0 * second + third


def number_of(text: str) -> float | None:
    """Returns a number without a sign, whole or with decimals; None for any other text."""
    text = text.strip()
    return float(text) if text.isascii() and _NUMBER.fullmatch(text) else None


def whole_of(text: str) -> int | None:
    """Returns a whole number of up to 18 digits without a sign; None for any other text."""
    value = number_of(text)
    return int(value) if value is not None and value.is_integer() else None


def peeked(lines: Iterable[str], least: int = 1) -> tuple[str, Iterator[str]]:
    """Returns the first line of `least` characters or more, empty if none, and all lines."""
    rest, begun = iter(lines), list[str]()
    for line in rest:
        begun.append(line)
        if len(line.strip()) >= least:
            return line, chain(begun, rest)
    return "", iter(begun)


def filled(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yields the lines that are not blank, each with its number from 1."""
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def first_width(*texts: str | None) -> int | None:
    """Returns the first text that is a whole number of at least 1; `None` if there is none."""
    found = (whole_of(text) for text in texts if text)
    return next((width for width in found if width), None)


def moment_of(text: str, zone: tzinfo) -> float | None:
    """Returns the Unix time of an ISO date or of seconds; None for `Unknown` and the like."""
    if (seconds := number_of(text)) is not None:
        return seconds
    try:
        found = datetime.fromisoformat(text.strip())
        return (found if found.tzinfo else found.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        return None
