"""Logs in the Grid Workload Format of the Grid Workloads Archive (Iosup et al. 2008).

A line is a job: its first 11 columns are numbers as in the Standard Workload Format, users, groups and queues
are names, and columns 17 and 18 name the site of submission and the one that ran it. -1 stands for "not known".
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import tzinfo
from typing import Final

from lrms_sim.accounting.records import AccountingError, Record

_COLUMNS: Final = (
    *("JobID", "SubmitTime", "WaitTime", "RunTime", "NProcs", "AverageCPUTimeUsed", "UsedMemory"),
    *("ReqNProcs", "ReqTime", "ReqMemory", "Status", "UserID", "GroupID", "ExecutableID"),
    *("QueueID", "PartitionID", "OrigSiteID", "LastRunSiteID"),
)
"""Those that are read, in their order; eleven of what a job has used follow."""

_UNKNOWN: Final = frozenset({"", "-1", "-1.0", "NULL"})


def read(lines: Iterable[str], name: str, zone: tzinfo, counts: Counter[str]) -> Iterator[Record]:
    """Yields the jobs; those without a number of processors are counted and left out.

    Args:
        lines: of the file.
        name: what errors call it.
        zone: not used.
        counts: of rules that are used; they are added to.

    Raises:
        AccountingError: a line cannot be read.
    """
    del zone  # the format has Unix times
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#") or line.split(maxsplit=1)[0] == "JobID":
            continue
        # Names may hold spaces where tabs part the columns.
        cells = [cell.strip() for cell in line.split("\t" if "\t" in line else None)]
        if len(cells) < len(_COLUMNS):
            raise AccountingError(
                f"{name}:{number}: {len(cells)} columns; the Grid Workload Format has 29, the first "
                f"{len(_COLUMNS)} are {', '.join(_COLUMNS[:3])} … {_COLUMNS[-1]}"
            )
        job = _job(dict(zip(_COLUMNS, cells, strict=False)), f"{name}:{number}")
        if job is None:
            counts["width"] += 1
        else:
            yield job


def _job(row: dict[str, str], place: str) -> Record | None:
    submit = _number(row, "SubmitTime", place)
    if submit is None:
        raise AccountingError(f"{place}: SubmitTime is {row['SubmitTime']!r}; seconds are expected")
    wait, run, limit = (_number(row, key, place) for key in ("WaitTime", "RunTime", "ReqTime"))
    widths = (_number(row, key, place) for key in ("NProcs", "ReqNProcs"))
    processors = next((int(width) for width in widths if width is not None and width >= 1), None)
    if processors is None:
        return None
    status = _number(row, "Status", place)
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
    )


def _number(row: dict[str, str], key: str, place: str) -> float | None:
    """Returns a number that is at least 0; None for what is not known."""
    try:
        value = float(row[key] or "-1")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise AccountingError(f"{place}: {key} is {row[key]!r}; a number or -1 is expected")
    return value if value >= 0 else None


def _name(text: str) -> str:
    return "" if text in _UNKNOWN else text
