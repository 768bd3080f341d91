"""One job as accounting has it, what a reader notes while it reads, and times as text."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from lrms_sim.errors import HanseError
from lrms_sim.swf_log import SwfLog

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
    "never": "jobs that never started, kept as cancelled",
    "restart": "jobs that were started several times, kept with their last run",
    "wait": "jobs whose wait is not known, kept without one",
    "request": "jobs without a time limit, kept without a requested time",
    "work": "jobs whose run time follows from their work and the speed of a processor",
    "limit": "jobs whose run time nothing says, kept with their time limit as run time",
    "transfer": "jobs that also move data, kept without the time that takes",
    "year": "events whose date has no year: the first is taken to be of 2000",
    "fraction": "jobs that hold a part of a processor, kept with the whole of it",
    "name": "jobs whose names are no numbers of their own, numbered by submission",
    "bytes": "lines with bytes that are no UTF-8 text, read as far as they are",
}
"""What is done with lines that are no ordinary job, by the word under which it is counted."""

LOST: Final = ("columns", "unreadable", "moment", "width", "beyond", "disorder")
"""Rules that leave out what should have been a job."""

_SPAN: Final = re.compile(r"(?:(\d{1,9})-)?(\d{1,9}):(\d\d)(?::(\d\d)(?:\.\d+)?)?")
_DAYS_HOURS: Final = re.compile(r"(\d{1,9})-(\d{1,2})")
_NUMBER: Final = re.compile(r"\d{1,18}(?:\.\d*)?")


class AccountingError(HanseError, ValueError):
    """A file that cannot be read; the text has file, line and what is wrong."""


class Unreadable(ValueError):  # noqa: N818  # it says what a line is, and ends nothing by itself
    """One line or job that cannot be read.

    Attributes:
        rule: the key of `RULES` under which it is left out.
    """

    def __init__(self, problem: str, rule: str = "unreadable") -> None:
        super().__init__(problem)
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Record:
    """One job as a batch system has it.

    Attributes:
        submit: Unix time.
        start: Unix time; None where it never started.
        end: Unix time.
        processors: how many it held; where nothing says that, was given, or asked for.
        requested_time: seconds; None where there was no limit.
        status: of the standard: 0 failed, 1 completed, 5 cancelled.
        user: by name.
        group: by name.
        queue: or partition, by name.
        site: that ran it, where one file has several; by name.
        is_wait_known: whether it is known when it started; if not, `start` is the submission and
            `end` one run time later.
        job: what the batch system calls it; empty where it does not say. Two records of one name that
            were submitted and started at the same moments are one job.
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


class Example(NamedTuple):
    """Where a rule was used first, and why.

    Attributes:
        line: from 1; None where lines say nothing.
        problem: in words.
    """

    line: int | None
    problem: str


_Row = TypeVar("_Row")


@dataclass(slots=True)
class Reading:
    """How a file is read, and what has been noted of it.

    Attributes:
        name: what errors call it.
        zone: of the site, for times without one.
        strict: whether a line that cannot be read is an error; else it is left out and counted.
        columns: names of columns, for a file that does not say them.
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
        """Counts a line that cannot be read.

        Args:
            line: from 1; None where the fault says where it is.
            fault: why.

        Raises:
            AccountingError: lines that cannot be read are errors here.
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
        """Yields what a function makes of rows; those that cannot be read are counted.

        Args:
            rows: each with its line, from 1; None where lines say nothing.
            make: returns the record, or None for one that it has counted itself.

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
        counts: by the word of a rule, those that were used.
        sites: jobs by the site that ran them, where a file has several.
        examples: by the word of a rule that leaves out what cannot be read, the first such line.
    """

    log: SwfLog
    counts: dict[str, int]
    sites: dict[str, int]
    examples: dict[str, Example] = field(default_factory=dict)


def counted(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns those of some counts that are more than 0, in the order of `RULES`."""
    return {rule: counts[rule] for rule in RULES if counts.get(rule)}


def seconds_of(text: str) -> float | None:
    """Returns the seconds of `[days-]hours:minutes[:seconds]` or `days-hours`; None for what is no span."""
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
    """Returns the first line that says something, empty where none does, and all lines, blank ones too.

    Args:
        lines: of a file.
        least: characters of a line that says something.
    """
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
    """Returns the first of some texts that is a whole number of at least 1; None where none is."""
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
