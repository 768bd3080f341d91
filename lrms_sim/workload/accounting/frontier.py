"""Logs of Frontier (Maheshwari et al. 2026): the Standard Workload Format, and three columns more.

These are GPUs that were used, a wall time that the job could have done with, and what the site says of the job's place, as
`frontier:excl:2500x112`: partition, whether nodes were its alone, and nodes times hardware threads. Columns 5 and 8
are nodes in some rows and threads in others, so the width is that of the last column.
"""

import math
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from lrms_sim.workload.accounting.records import Reading, Record, Unreadable, filled
from lrms_sim.workload.requests import Gpus, Request, RequestError

_COLUMNS: Final = 21
_BEGAN: Final = re.compile(r";\s*UnixStartTime\s*:\s*(\d{1,12})\b")
_PLACE: Final = re.compile(r"([^:]*):([^:]*):(\d{1,7})x(\d{1,5})")
_KNOWN_STATUS: Final = frozenset({0, 1, 2, 3, 4, 5})


def read(lines: Iterable[str], reading: Reading) -> Iterator[Record]:
    """Yields the jobs; without `UnixStartTime` in the header times count from 0.

    Raises:
        AccountingError: a line cannot be read, and that is an error.
    """
    zero = 0.0
    for number, line in filled(lines):
        if line.lstrip().startswith(";"):
            if found := _BEGAN.match(line.lstrip()):
                zero = float(found[1])
            continue
        yield from reading.records([(number, line)], partial(_job, zero=zero))


def _job(line: str, reading: Reading, *, zero: float) -> Record | None:
    cells = line.split()
    if len(cells) != _COLUMNS:
        raise Unreadable(
            f"{len(cells)} columns; logs of Frontier have {_COLUMNS}, others are logs already",
            "columns",
        )
    place = _PLACE.fullmatch(cells[20])
    if place is None:
        raise Unreadable(
            f"the last column is {cells[20]!r:.40}; partition:sharing:NODESxTHREADS is expected",
            "width",
        )
    queue, sharing = place[1], place[2]
    nodes, threads = int(place[3]), int(place[4])
    if not nodes or not threads:
        reading.counts["width"] += 1
        return None
    submit, wait, run, limit, status, gpus = (
        _number(cells[column]) for column in (1, 2, 3, 8, 10, 18)
    )
    if submit < 0:
        raise Unreadable("nothing says when the job was submitted", "moment")
    request = None
    try:
        request = Request(
            nodes * threads,
            nodes_min=nodes,
            nodes_max=nodes,
            exclusive=sharing == "excl",
            gpus=Gpus(int(gpus)) if gpus >= 1 else None,
        )
    except RequestError:
        reading.counts["contradiction"] += 1
    start = None if run < 0 else zero + submit + max(wait, 0.0)
    return Record(
        submit=zero + submit,
        start=start,
        end=zero + submit if start is None else start + run,
        processors=nodes * threads,
        requested_time=limit if limit > 0 else None,
        status=int(status) if status in _KNOWN_STATUS else -1,
        user="" if cells[11] == "-1" else cells[11],
        group="" if cells[12] == "-1" else cells[12],
        queue=queue,
        is_wait_known=start is None or wait >= 0,
        job=cells[0],
        request=request,
    )


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Unreadable(f"{text!r:.40}; a number or -1 is expected", "moment")
    return value
