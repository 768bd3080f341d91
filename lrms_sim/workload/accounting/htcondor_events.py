"""HTCondor's event logs: of one user's jobs (`log = …` of a submit file), or of a whole access point (`EVENT_LOG`).

An event is a number, a job and a moment (HTCondor manual, "Job Event Log Codes"); a log has them as
text, as XML or as JSON. Text has a heading, a body and a line of three dots:

    005 (7174.000.000) 2024-01-05 12:36:58 Job terminated.
        (1) Normal termination (return value 0)
    ...

User and time limit of a job are known only if the access point writes events of number 28 with
these attributes (`EVENT_LOG_JOB_AD_INFORMATION_ATTRS`).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import Final

from lrms_sim.workload.accounting.class_ads import (
    Ad,
    first_positive,
    text,
    value_of,
    whole,
    within,
)
from lrms_sim.workload.accounting.records import Reading, Record, Unreadable

HEADING: Final = re.compile(
    r"(\d{3}) \((-?\d{1,9})\.(-?\d{1,9})\.(-?\d{1,9})\) "
    r"(?:(\d{4}-\d\d-\d\d)[ T]|(\d\d)/(\d\d) )(\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)(?: |$)"
)
"""The first line of an event: number, job, date with or without its year, time."""

_SUBMIT: Final = 0
_EXECUTE: Final = 1
_TERMINATED: Final = 5
_ABORTED: Final = 9
_NODE_EXECUTE: Final = 14
_INFORMATION: Final = 28
_STOPS: Final = frozenset({4, 7, 12, 24})
"""A run ends and the job stays: evicted, the shadow's error, held, reconnection failed."""

_YEAR: Final = 2000
"""Year of the first event of a log without years; it has a 29 February."""

_HALF_A_YEAR: Final = timedelta(days=183)
_RETURN: Final = re.compile(r"\(1\) Normal termination \(return value (-?\d+)\)")
_NODE: Final = re.compile(r"Node (\d+) executing")
_SLOT_CPUS: Final = re.compile(r"\s*Cpus\s*=\s*(\d{1,9})\s*", re.IGNORECASE)
_CPUS: Final = re.compile(r"\s*Cpus\s*:\s*(.*)")
LIMITS: Final = ("AllowedExecuteDuration", "AllowedJobDuration", "MaxRuntime")
"""How long a job may run, the narrowest first."""


@dataclass(slots=True)
class _Job:
    # What the events of one job have said so far.
    submit: float
    start: float | None = None
    stop: float | None = None
    starts: int = 0
    held: int | None = None
    nodes: set[int] = field(default_factory=set)
    known: Ad = field(default_factory=dict)


def read_events(ads: Iterable[tuple[int, Ad]], reading: Reading) -> Iterator[Record]:
    """Yields the jobs that have ended; others are counted.

    Args:
        ads: of the events, each with its last line number.
        reading: its zone is the access point's, for times without one.

    Raises:
        AccountingError: an event has no number, no job or no time, and that is an error.
    """
    jobs: dict[tuple[int, int], _Job] = {}
    yield from reading.records(ads, partial(_event, jobs))
    reading.counts["open"] += len(jobs)


def _event(jobs: dict[tuple[int, int], _Job], ad: Ad, reading: Reading) -> Record | None:
    """Applies an event; returns the job if it ends with it."""
    event, cluster, process = (whole(ad, key) for key in ("EventTypeNumber", "Cluster", "Proc"))
    if event is None or cluster is None or process is None:
        raise Unreadable("the event that ends here lacks EventTypeNumber, Cluster or Proc")
    key = cluster, process
    if event == _SUBMIT:
        # An access point that was set up anew begins with the first number.
        reading.counts["open"] += key in jobs
        jobs[key] = _Job(_moment(ad, reading.zone))
    elif (job := jobs.get(key)) is not None:
        now = _moment(ad, reading.zone)
        _note(job, event, ad, now)
        if event in {_TERMINATED, _ABORTED}:
            del jobs[key]
            return _ended(job, f"{cluster}.{process}", ad, now, reading)
    elif event in {_TERMINATED, _ABORTED}:
        reading.counts["before"] += 1
    return None


def _note(job: _Job, event: int, ad: Ad, now: float) -> None:
    if event in {_EXECUTE, _NODE_EXECUTE}:
        job.held = whole(ad, "Cpus") or whole(within(ad, "ExecuteProps"), "Cpus") or job.held
    if event == _EXECUTE:
        job.start, job.stop = now, None
        job.starts += 1
    elif event == _NODE_EXECUTE:
        if job.start is None or job.stop is not None:
            job.start, job.stop = now, None
            job.starts += 1
            job.nodes.clear()
        job.nodes.add(whole(ad, "Node") or 0)
    elif event in _STOPS:
        if job.start is not None and job.stop is None:
            job.stop = now
    elif event in {_INFORMATION, _TERMINATED}:
        job.known |= ad


def _ended(job: _Job, name: str, ad: Ad, now: float, reading: Reading) -> Record | None:
    known = job.known
    is_completed = whole(ad, "EventTypeNumber") == _TERMINATED
    if whole(known, "JobUniverse") in {7, 12}:
        reading.counts["other"] += 1
        return None
    reading.counts["restart"] += job.starts > 1
    # What the end says it had, what its last start says, and what it asked for.
    ways = (whole(known, "Cpus"), job.held, whole(known, "RequestCpus"), 1)
    processors = next(way for way in ways if way is not None) * max(1, len(job.nodes))
    if processors < 1:
        reading.counts["width"] += 1
        return None
    failed = ad.get("terminatednormally") is False or bool(whole(ad, "ReturnValue"))
    return Record(
        submit=job.submit,
        start=job.start,
        # What was held, or thrown out, before it was removed did not run until then.
        end=now if is_completed or job.stop is None else job.stop,
        processors=processors,
        requested_time=first_positive(known, *LIMITS),
        status=(0 if failed else 1) if is_completed else 5,
        user=text(known, "Owner", "User"),
        group=text(known, "AcctGroup", "AccountingGroup"),
        queue="",
        job=name,
    )


def _moment(ad: Ad, zone: tzinfo) -> float:
    said = text(ad, "EventTime")
    try:
        found = datetime.fromisoformat(said)
        return (found if found.tzinfo else found.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        raise Unreadable(
            f"EventTime is {said!r:.40}; it must be as 2024-01-05T12:36:58", "moment"
        ) from None


def events_of_text(lines: Iterable[str], reading: Reading) -> Iterator[tuple[int, Ad]]:
    """Yields the events of a text log as the ads that its XML would have.

    Raises:
        AccountingError: a line does not begin an event, and that is an error.
    """
    ad: Ad | None = None
    count = 0
    years = _Years()
    for count, line in enumerate(lines, start=1):
        stripped = line.rstrip()
        heading = HEADING.match(line)
        # A machine that fails leaves events without their end.
        if ad is not None and (heading or stripped == "..."):
            yield count, ad
            ad = None
        if heading:
            try:
                ad = _begun(heading, line, years, reading)
            except Unreadable as fault:
                reading.leave_out(count, fault)
        elif ad is not None:
            _read_body(ad, stripped)
        elif stripped and stripped != "...":
            odd = Unreadable("no event as 005 (7174.000.000) 2024-01-05 12:36:58 Job terminated.")
            reading.leave_out(count, odd)
    if ad is not None:
        yield count, ad


def _begun(heading: re.Match[str], line: str, years: "_Years", reading: Reading) -> Ad:
    number, cluster, process, _, date, month, day, moment = heading.groups()
    if date is None:
        date = years.dated(int(month), int(day))
        reading.counts["year"] += 1
    ad: Ad = {"eventtypenumber": int(number), "cluster": int(cluster), "proc": int(process)}
    ad["eventtime"] = f"{date}T{moment}"
    if node := _NODE.search(line):
        ad["node"] = int(node[1]) if len(node[1]) < 10 else 0
    return ad


def _read_body(ad: Ad, line: str) -> None:
    event = ad["eventtypenumber"]
    if event == _INFORMATION:
        key, found, value = line.partition("=")
        # What the log says of the event it goes with is not said of this one.
        if found and key.strip().lower() not in {"eventtypenumber", "cluster", "proc", "eventtime"}:
            ad[key.strip().lower()] = value_of(value.strip())
    elif event in {_EXECUTE, _NODE_EXECUTE}:
        if slot := _SLOT_CPUS.fullmatch(line):
            ad["cpus"] = int(slot[1])
    elif event == _TERMINATED:
        if ended := _RETURN.search(line):
            ad["returnvalue"] = value_of(ended[1])
        elif "(0) Abnormal termination" in line:
            ad["terminatednormally"] = False
        elif cpus := _CPUS.match(line):
            # Usage, request and what was given; of these the first may be missing, and the last is meant.
            said = [one for one in cpus[1].split() if one.isdecimal() and len(one) < 10]
            if said:
                ad["cpus"] = int(said[-1])


class _Years:
    """Adds years to dates: one half a year before its predecessor is in the next year."""

    def __init__(self) -> None:
        self._last = datetime(_YEAR, 1, 1)  # noqa: DTZ001  # a date; its zone comes later
        self._begun = False

    def dated(self, month: int, day: int) -> str:
        year = self._last.year
        try:
            found = self._of(year, month, day)
            if self._begun and found < self._last - _HALF_A_YEAR:
                found = self._of(year + 1, month, day)
        except ValueError:
            raise Unreadable(f"{month:02}/{day:02} is no date", "moment") from None
        self._last = max(found, self._last) if self._begun else found
        self._begun = True
        return found.date().isoformat()

    def _of(self, year: int, month: int, day: int) -> datetime:
        if (month, day) == (2, 29):
            # It comes in the year that has one.
            year += -year % 4
        return datetime(year, month, day)  # noqa: DTZ001  # as above
