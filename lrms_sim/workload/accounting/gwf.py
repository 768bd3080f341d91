"""Logs in the Grid Workload Format of the Grid Workloads Archive (Iosup et al. 2008).

A line is a job: its first 11 columns are numbers as in the Standard Workload Format, users, groups
and queues are names, and columns 17 and 18 name the submission site and the execution site. -1 is
unknown.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Final

from lrms_sim.workload.accounting.records import Reading, Record, Unreadable, filled

_COLUMNS: Final = (
    *("JobID", "SubmitTime", "WaitTime", "RunTime", "NProcs", "AverageCPUTimeUsed", "UsedMemory"),
    *("ReqNProcs", "ReqTime", "ReqMemory", "Status", "UserID", "GroupID", "ExecutableID"),
    *("QueueID", "PartitionID", "OrigSiteID", "LastRunSiteID"),
)
"""Those that are read, in their order; eleven of what a job has used follow."""

_UNKNOWN: Final = frozenset({"", "-1", "-1.0", "NULL"})


def read(lines: Iterable[str], reading: Reading) -> Iterator[Record]:
    """Yields the jobs; those without a number of processors are counted and left out.

    The format has Unix times and no zone.

    Raises:
        AccountingError: a line cannot be read, and that is an error.
    """
    jobs = (
        (number, line)
        for number, line in filled(lines)
        if not line.startswith("#") and line.split(maxsplit=1)[0] != "JobID"
    )
    return reading.records(jobs, _job)


def _job(line: str, reading: Reading) -> Record | None:
    # Names may hold spaces where tabs part the columns.
    cells = [cell.strip() for cell in line.split("\t" if "\t" in line else None)]
    if len(cells) < len(_COLUMNS):
        raise Unreadable(
            f"{len(cells)} columns; the Grid Workload Format has 29, the first "
            f"{len(_COLUMNS)} are {', '.join(_COLUMNS[:3])} … {_COLUMNS[-1]}",
            "columns",
        )
    row = dict(zip(_COLUMNS, cells, strict=False))
    submit = _number(row, "SubmitTime")
    if submit is None:
        raise Unreadable(f"SubmitTime is {row['SubmitTime']!r:.40}; seconds are expected", "moment")
    wait, run, limit = (_number(row, key) for key in ("WaitTime", "RunTime", "ReqTime"))
    widths = (_number(row, key) for key in ("NProcs", "ReqNProcs"))
    processors = next((int(width) for width in widths if width is not None and width >= 1), None)
    if processors is None:
        reading.counts["width"] += 1
        return None
    status = _number(row, "Status")
    start = None if run is None else submit + (wait or 0.0)
    return Record(
        submit=submit,
        start=start,
        end=submit if start is None else start + (run or 0.0),
        processors=processors,
        requested_time=limit or None,
        status=-1 if status is None else int(status),
        user=_name(row["UserID"]),
        group=_name(row["GroupID"]),
        queue=_name(row["QueueID"]),
        site=_name(row["LastRunSiteID"]),
        is_wait_known=start is None or wait is not None,
        job=_name(row["JobID"]),
    )


def _number(row: dict[str, str], key: str) -> float | None:
    try:
        value = float(row[key] or "-1")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Unreadable(f"{key} is {row[key]!r:.40}; a number or -1 is expected", "moment")
    return value if value >= 0 else None


def _name(text: str) -> str:
    return "" if text in _UNKNOWN else text
