"""Accounting files of batch systems as logs in the Standard Workload Format.

Reads what `sacct --parsable2` (Slurm) prints, and PBS accounting files (PBS Pro, OpenPBS, Torque). Names
of users, groups and queues become numbers and do not get into the log. Every rule by which a line is
left out or completed is counted.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

import numpy as np

from lrms_sim.swf_log import SwfHeader, SwfLog

RULES: Final = {
    "step": "steps of jobs, left out",
    "open": "jobs that had not ended, left out",
    "other": "records of other kinds, left out",
    "disorder": "jobs that end before they start or start before their submission, left out",
    "never": "jobs that never started, kept as cancelled",
    "request": "jobs without a time limit, kept without a requested time",
}
"""What is done with lines that are no ordinary job, by the word under which it is counted."""

_STATES: Final = {"COMPLETED": 1, "CANCELLED": 5}
_OPEN: Final = frozenset({"PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "COMPLETING"})
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


@dataclass(frozen=True, slots=True)
class Import:
    """A log, and how often each of the `RULES` was used.

    Attributes:
        log: jobs numbered 1, 2, … in order of submission.
        counts: by the word of a rule, those that were used.
    """

    log: SwfLog
    counts: dict[str, int]


def import_lines(
    kind: str,
    lines: Iterable[str],
    *,
    name: str,
    zone: tzinfo = UTC,
    rng: np.random.Generator | None = None,
) -> Import:
    """Reads an accounting file.

    Args:
        kind: a key of `READERS`.
        lines: of the file.
        name: what errors call the file.
        zone: of the site, for times without one.
        rng: anonymises: numbers are given in an order drawn from it instead of the order in which
            names come, and the log does not say when it began. None does neither.

    Raises:
        AccountingError: a line cannot be read.
    """
    counts: Counter[str] = Counter()
    found = list(READERS[kind](lines, name, zone, counts))
    records = sorted(filter(_in_order, found), key=lambda record: (record.submit, record.end))
    counts["disorder"] += len(found) - len(records)
    counts["never"] += sum(record.start is None for record in records)
    counts["request"] += sum(record.requested_time is None for record in records)
    return Import(_log(records, name, rng), {rule: counts[rule] for rule in RULES if counts[rule]})


def _log(records: Sequence[Record], name: str, rng: np.random.Generator | None) -> SwfLog:
    zero = records[0].submit if records else 0.0

    def numbers(names: Iterable[str]) -> list[int]:
        given = list(names)
        known = [one for one in dict.fromkeys(given) if one]
        order = range(len(known)) if rng is None else rng.permutation(len(known))
        number = {one: int(place) + 1 for one, place in zip(known, order, strict=True)}
        return [number.get(one, -1) for one in given]

    fields: dict[str, object] = {"Version": 2.2, "MaxJobs": len(records)}
    if rng is None:
        fields["UnixStartTime"] = int(zero)
    fields["Note"] = "imported from the accounting of a batch system by lrms-sim"
    processors = [record.processors for record in records]
    return SwfLog.from_columns(
        {
            "submit_time": [record.submit - zero for record in records],
            "wait_time": [-1.0 if r.start is None else r.start - r.submit for r in records],
            "run_time": [-1.0 if r.start is None else r.end - r.start for r in records],
            "processors_allocated": [-1 if r.start is None else r.processors for r in records],
            "processors_requested": processors,
            "requested_time": [
                -1.0 if r.requested_time is None else r.requested_time for r in records
            ],
            "status": [record.status for record in records],
            "user": numbers(record.user for record in records),
            "group": numbers(record.group for record in records),
            "queue": numbers(record.queue for record in records),
        },
        SwfHeader.from_fields({key: str(value) for key, value in fields.items()}),
        name,
    )


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


def _sacct(lines: Iterable[str], name: str, zone: tzinfo, counts: Counter[str]) -> Iterator[Record]:
    header: list[str] = []
    for number, line in enumerate(lines, start=1):
        cells = line.rstrip("\r\n").split("|")
        if not header:
            header = cells
            needed = {"JobID", "Submit", "Start", "End", "State"}
            if missing := sorted(needed - set(header)):
                raise AccountingError(
                    f"{name}:1: no column {missing[0]}; write the file with sacct --parsable2 "
                    "--allusers --format=JobID,User,Group,Partition,Submit,Start,End,Timelimit,"
                    "AllocCPUS,ReqCPUS,State"
                )
            continue
        if len(cells) != len(header):
            raise AccountingError(
                f"{name}:{number}: {len(cells)} columns, the header has {len(header)}"
            )
        row = dict(zip(header, cells, strict=True))
        words = row["State"].split()
        if "." in row["JobID"]:
            counts["step"] += 1
        elif not words or words[0] in _OPEN or moment_of(row["End"], zone) is None:
            counts["open"] += 1
        else:
            yield _slurm_job(row, words[0], zone, f"{name}:{number}")


def _slurm_job(row: dict[str, str], state: str, zone: tzinfo, place: str) -> Record:
    submit, start, end = (moment_of(row[key], zone) for key in ("Submit", "Start", "End"))
    if submit is None or end is None:
        raise AccountingError(f"{place}: Submit is {row['Submit']!r}; a date is expected")
    if state == "CANCELLED" and start is not None and start >= end:
        start = None  # Slurm notes the cancel as the start of what never ran
    processors = next(
        (
            int(row[key])
            for key in ("AllocCPUS", "NCPUS", "ReqCPUS")
            if row.get(key, "").isdecimal() and int(row[key]) > 0
        ),
        None,
    )
    if processors is None:
        raise AccountingError(f"{place}: neither AllocCPUS nor ReqCPUS says a number of processors")
    limit = row.get("TimelimitRaw", "")
    requested = 60.0 * int(limit) if limit.isdecimal() else seconds_of(row.get("Timelimit", ""))
    return Record(
        submit, start, end, processors, requested, _STATES.get(state, 0),
        row.get("User", ""), row.get("Group", ""), row.get("Partition", ""),
    )  # fmt: skip


def _pbs(lines: Iterable[str], name: str, zone: tzinfo, counts: Counter[str]) -> Iterator[Record]:
    del zone  # PBS writes Unix times
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        parts = line.rstrip("\r\n").split(";", 3)
        if len(parts) != 4:
            raise AccountingError(
                f"{name}:{number}: no PBS accounting record: date;kind;job;key=value … is expected"
            )
        if parts[1] != "E":
            counts["other"] += 1
            continue
        pairs = (word.partition("=") for word in parts[3].split())
        yield _pbs_job({key: value for key, _, value in pairs}, f"{name}:{number}")


def _pbs_job(row: dict[str, str], place: str) -> Record:
    moments = []
    for keys in (("qtime", "ctime"), ("start",), ("end",)):
        text = next((row[key] for key in keys if key in row), "")
        if not text.isdecimal():
            raise AccountingError(f"{place}: {keys[0]} is {text!r}; a Unix time is expected")
        moments.append(float(text))
    submit, start, end = moments
    status = 1 if row.get("Exit_status", "0") == "0" else 0
    requested = row.get("Resource_List.walltime", "")
    limit = float(requested) if requested.isdecimal() else seconds_of(requested)
    return Record(
        submit, start, end, _pbs_processors(row, place), limit, status,
        row.get("user", ""), row.get("group", ""), row.get("queue", ""),
    )  # fmt: skip


def _pbs_processors(row: dict[str, str], place: str) -> int:
    for key in ("Resource_List.ncpus", "resources_used.ncpus", "total_execution_slots"):
        if row.get(key, "").isdecimal() and int(row[key]) > 0:
            return int(row[key])
    nodes = row.get("Resource_List.nodes", "")
    count = 0
    for chunk in filter(None, nodes.split("+")):
        first, *properties = chunk.split(":")
        each = next((p[4:] for p in properties if p.startswith("ppn=")), "1")
        count += (int(first) if first.isdecimal() else 1) * int(each if each.isdecimal() else 1)
    if count == 0:
        raise AccountingError(f"{place}: nothing says how many processors the job had")
    return count


def _in_order(record: Record) -> bool:
    # Clocks of machines differ, and a requeued job may be submitted after its first start.
    start = record.submit if record.start is None else record.start
    return record.submit <= start <= record.end


READERS: Final[
    dict[str, Callable[[Iterable[str], str, tzinfo, Counter[str]], Iterator[Record]]]
] = {"sacct": _sacct, "pbs": _pbs}
"""What reads each kind of file."""
