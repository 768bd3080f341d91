"""Accounting files of batch systems as logs in the Standard Workload Format.

Names of users, groups and queues become numbers; the names are not kept. Every rule by which a line
is left out or completed is counted.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from inspect import isfunction
from numbers import Integral, Real
from types import NoneType
from typing import Any, Final, Literal

import numpy as np

from lrms_sim.util.log_files import lines_of, parquet_file
from lrms_sim.util.plugins import IMPORTER_GROUP, PluginError, load_plugin
from lrms_sim.workload.accounting import (
    cobalt,
    frontier,
    gridengine,
    gwf,
    htcondor,
    lsf,
    oar,
    pbs,
    philly,
    slurm,
    table,
)
from lrms_sim.workload.accounting.records import (
    AccountingError,
    Import,
    Reading,
    Record,
    Unreadable,
    counted,
    memory_column,
    second_time,
)
from lrms_sim.workload.accounting.table import UNIX_LEAST, Layout
from lrms_sim.workload.jobs import TIME_MAX
from lrms_sim.workload.requests import Request
from lrms_sim.workload.swf_log import SwfHeader, SwfLog


def import_lines(
    kind: str,
    lines: Iterable[str],
    *,
    name: str,
    zone: tzinfo = UTC,
    rng: np.random.Generator | None = None,
    site: str | None = None,
    unreadable: Literal["drop", "error"] = "drop",
    columns: Sequence[str] = (),
) -> Import:
    """Reads an accounting file.

    Args:
        kind: a key of `READERS`, or an entry point of the group `hanse.importers`.
        lines: of the file.
        name: of the file in errors.
        zone: of the site, for times without one.
        rng: anonymises: numbers are assigned in random order instead of order of appearance, and
            the log does not say when it began. `None` does neither.
        site: only jobs that ran there, of a file with several.
        unreadable: `drop` and count lines that cannot be read, or stop with an `error`.
        columns: column names, for a file of sacct that does not begin with them.

    Raises:
        AccountingError: the file is not of that kind, or a line cannot be read and that is an
            error.
        PluginError: a plugin cannot be used.
        KeyError: there is no such kind.
    """
    reading = Reading(name, zone, strict=unreadable == "error", columns=tuple(columns))
    read = READERS.get(kind) or _plugin(kind)
    return import_records(read(_noted(lines, reading), reading), reading, rng, site)


def _plugin(kind: str) -> "Reader":
    loaded = load_plugin(
        IMPORTER_GROUP, kind, "importer", isfunction, "a function of lines and a Reading"
    )

    def read(lines: Iterable[str], reading: Reading) -> Iterator[Record]:
        found = loaded(lines, reading)
        if not isinstance(found, Iterable):
            raise PluginError(
                f"importer {kind!r} returns {type(found).__name__}; it must yield {_WANTED}"
            )
        for record in found:
            if not isinstance(record, Record):
                raise PluginError(
                    f"importer {kind!r} yields {type(record).__name__}; it must yield {_WANTED}"
                )
            for field, (kinds, expected) in _KINDS.items():
                if not isinstance(value := getattr(record, field), kinds):
                    raise PluginError(
                        f"importer {kind!r} yields a Record whose {field} is {value!r}; "
                        f"it must be {expected}"
                    )
            if record.processors < 1:
                reading.leave_out(None, Unreadable(f"{record.processors} processors", "width"))
            else:
                yield record

    return read


_WANTED: Final = "Record of lrms_sim.workload.accounting.records"

_NUMBER: Final = (Real, "a number")
_NUMBER_OR_NONE: Final = ((Real, NoneType), "a number or None")
_WHOLE: Final = (Integral, "a whole number")
_TEXT: Final = (str, "a text")

_KINDS: Final[Mapping[str, tuple[Any, str]]] = {
    "submit": _NUMBER,
    "start": _NUMBER_OR_NONE,
    "end": _NUMBER,
    "processors": _WHOLE,
    "requested_time": _NUMBER_OR_NONE,
    "status": _WHOLE,
    "user": _TEXT,
    "group": _TEXT,
    "queue": _TEXT,
    "site": _TEXT,
    "job": _TEXT,
    "request": ((Request, NoneType), "a Request or None"),
}
"""What the fields of a `Record` are; type annotations do not bind the code of others."""


def import_table(
    source: str | os.PathLike[str],
    layout: Layout,
    *,
    name: str,
    zone: tzinfo = UTC,
    rng: np.random.Generator | None = None,
    site: str | None = None,
    unreadable: Literal["drop", "error"] = "drop",
) -> Import:
    """Reads a table as CSV or Parquet, which is detected by the first bytes.

    `source` may be `-` for standard input; the other arguments are those of `import_lines`.

    Raises:
        AccountingError: a column is missing, or a row cannot be read and that is an error.
        ModuleNotFoundError: it is Parquet, and pyarrow is not installed.
        OSError: the file cannot be read.
    """
    reading = Reading(name, zone, strict=unreadable == "error")
    if (parquet := parquet_file(source)) is not None:
        with parquet:
            rows = table.read_parquet(parquet, layout, reading)
            return import_records(rows, reading, rng, site, of_table=True)
    lines = lines_of(source, lambda text: AccountingError(f"{name}: {text}"))
    rows = table.read_csv(_noted(lines, reading), layout, reading)
    return import_records(rows, reading, rng, site, of_table=True)


def import_records(
    records: Iterable[Record],
    reading: Reading,
    rng: np.random.Generator | None = None,
    site: str | None = None,
    *,
    of_table: bool = False,
) -> Import:
    """Makes a log of jobs in any order.

    Duplicate jobs, with the same id, submission and start, as when two files overlap, count once;
    the last record wins. In a table, whose ids may be those of arrays, width and end must match as
    well. A table's times may be on a clock of its own; then the log does not say when it began.
    """
    counts = reading.counts
    found: list[Record] = []
    place: dict[tuple[object, ...], int] = {}
    for record in records:
        if not _can_be_said(record):
            counts["beyond"] += 1
            continue
        if record.job:
            key: tuple[object, ...] = (record.job, record.site, record.submit, record.start)
            if of_table:
                key += (record.end, record.processors)
            if (known := place.setdefault(key, len(found))) < len(found):
                counts["repeated"] += 1
                found[known] = record
                continue
        found.append(record)
    sites = Counter(record.site for record in found if record.site)
    if site is not None:
        there = [record for record in found if record.site == site]
        counts["elsewhere"] += len(found) - len(there)
        found = there
    ordered = [
        record if _in_order(record) else _in_second_hour(record, reading) for record in found
    ]
    kept = sorted(filter(_in_order, ordered), key=lambda record: (record.submit, record.end))
    counts["disorder"] += len(found) - len(kept)
    counts["never"] += sum(record.start is None for record in kept)
    counts["wait"] += sum(not record.is_wait_known for record in kept)
    counts["request"] += sum(record.requested_time is None for record in kept)
    by_jobs = sorted(sites.items(), key=lambda entry: (-entry[1], entry[0]))
    log = _log(kept, reading.name, rng, UNIX_LEAST if of_table else -TIME_MAX)
    requests = tuple(record.request for record in kept)
    return Import(log, counted(counts), dict(by_jobs), dict(reading.examples), requests)


def _noted(lines: Iterable[str], reading: Reading) -> Iterator[str]:
    """Yields lines without line ends, and counts those with undecodable bytes."""
    for line in lines:
        reading.counts["bytes"] += "\ufffd" in line
        yield line.rstrip("\r\n")


def _can_be_said(record: Record) -> bool:
    """Returns whether a log can represent a job; anything beyond is an error in the file."""
    times = (record.submit, record.start or 0.0, record.end, record.requested_time or 0.0)
    return all(abs(time) <= TIME_MAX for time in times) and record.processors <= PROCESSORS_MAX


def _log(
    records: Sequence[Record], name: str, rng: np.random.Generator | None, unix_least: float
) -> SwfLog:
    zero = records[0].submit if records else 0.0

    def numbers(names: Iterable[str]) -> list[int]:
        given = list(names)
        known = [one for one in dict.fromkeys(given) if one]
        order = range(len(known)) if rng is None else rng.permutation(len(known))
        number = {one: int(place) + 1 for one, place in zip(known, order, strict=True)}
        return [number.get(one, -1) for one in given]

    fields: dict[str, object] = {"Version": 2.2, "MaxJobs": len(records)}
    if rng is None and zero >= unix_least:
        fields["UnixStartTime"] = int(zero)
    fields["Note"] = "imported from the accounting of a batch system by lrms-sim"
    processors = [record.processors for record in records]
    return SwfLog.from_columns(
        {
            "submit_time": [record.submit - zero for record in records],
            "wait_time": [
                -1.0 if r.start is None or not r.is_wait_known else r.start - r.submit
                for r in records
            ],
            "run_time": [-1.0 if r.start is None else r.end - r.start for r in records],
            "processors_allocated": [-1 if r.start is None else r.processors for r in records],
            "processors_requested": processors,
            "requested_time": [
                -1.0 if r.requested_time is None else r.requested_time for r in records
            ],
            "memory_requested": [memory_column(record.request) for record in records],
            "status": [record.status for record in records],
            "user": numbers(record.user for record in records),
            "group": numbers(record.group for record in records),
            "queue": numbers(record.queue for record in records),
            "partition": numbers(record.site for record in records),
        },
        SwfHeader.from_fields({key: str(value) for key, value in fields.items()}),
        name,
    )


def _in_order(record: Record) -> bool:
    # Clocks of machines differ, and a requeued job may be submitted after its first start.
    start = record.submit if record.start is None else record.start
    return record.submit <= start <= record.end


def _in_second_hour(record: Record, reading: Reading) -> Record:
    """Returns a job in order, where an hour that comes twice explains the disorder; else the same one."""
    start, end = record.start, record.end
    if start is not None and start < record.submit:
        start = second_time(start, reading.zone)
    if end < (record.submit if start is None else start):
        end = second_time(end, reading.zone)
    moved = replace(record, start=start, end=end)
    if not _in_order(moved):
        return record
    reading.counts["twice"] += 1
    return moved


PROCESSORS_MAX: Final = 2**31 - 1
"""Largest width that a log can hold."""

Reader = Callable[[Iterable[str], Reading], Iterator[Record]]
"""Reads the lines of a file, without their ends; notes in a `Reading` which rules it uses."""

READERS: Final[dict[str, Reader]] = {
    "sacct": slurm.read,
    "pbs": pbs.read,
    "htcondor": htcondor.read,
    "gridengine": gridengine.read,
    "lsf": lsf.read,
    "oar": oar.read,
    "cobalt": cobalt.read,
    "gwf": gwf.read,
    "philly": philly.read,
    "frontier": frontier.read,
}
"""Reader of each kind of file, except plugins."""
