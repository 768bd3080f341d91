"""Files of requests: one row a job, for what a log in the Standard Workload Format cannot say.

The file is a CSV whose columns are `COLUMNS`; an empty cell says nothing, and columns may be left out
except `job_id`. docs/nodes.md describes it.
"""

import csv
import os
import re
from collections.abc import Iterable
from contextlib import closing
from typing import Final

from lrms_sim.util.errors import HanseError
from lrms_sim.util.files import replacing
from lrms_sim.util.log_files import rows_of, shown_name
from lrms_sim.util.messages import shown, unknown
from lrms_sim.workload.request_text import FIELDS, fields_of, request_of
from lrms_sim.workload.requests import Request

COLUMNS: Final = ("job_id", *FIELDS)


class RequestFileError(HanseError, ValueError):
    """A file of requests that cannot be read; the text names file, line and problem."""


def write_requests(
    path: str | os.PathLike[str], requests: Iterable[tuple[int, Request | None]]
) -> int:
    """Writes the requests of jobs by number; those that ask for processors alone have no row.

    Returns:
        How many rows there are.

    Raises:
        OSError: the file cannot be written.
    """
    rows = 0
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        table.writeheader()
        for job, request in requests:
            if request is not None and not request.processors_alone:
                table.writerow({"job_id": str(job), **fields_of(request)})
                rows += 1
    return rows


def read_requests(source: str | os.PathLike[str]) -> dict[int, Request]:
    """Reads the requests of jobs by number; plain or packed, `-` for standard input.

    Raises:
        RequestFileError: it is no such file, or a row is wrong.
        OSError: the file cannot be read.
    """
    name = shown_name(source)
    lines = rows_of(source, lambda text: RequestFileError(f"{name}: {text}"))
    rows = csv.reader(lines)
    heading: list[str] = []
    found: dict[int, Request] = {}
    try:
        with closing(lines):
            for cells in rows:
                if not heading:
                    heading = _heading(cells)
                elif any(cells):
                    job, request = _row(cells, heading)
                    if job in found:
                        raise ValueError(f"job {job} has a row before this one")  # noqa: TRY301  # named below
                    found[job] = request
    except (ValueError, csv.Error) as error:
        if isinstance(error, RequestFileError):
            raise
        raise RequestFileError(f"{name}:{rows.line_num}: {error}") from error
    if not heading:
        raise RequestFileError(f"{name}: is empty; columns are {', '.join(COLUMNS)}")
    return found


def _heading(cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if "job_id" not in names:
        raise ValueError(f"no column job_id; columns are {', '.join(COLUMNS)}")
    for name in names:
        if name not in COLUMNS:
            raise ValueError(unknown("column", name, COLUMNS))
    return names


def _row(cells: list[str], heading: list[str]) -> tuple[int, Request]:
    if len(cells) != len(heading):
        raise ValueError(f"{len(cells)} columns, there are {len(heading)} names")
    said = dict(zip(heading, cells, strict=True))
    job = said.pop("job_id").strip()
    if not re.fullmatch(r"-?[0-9]{1,18}", job):
        raise ValueError(f"job_id is {shown(job)}; a whole number is expected")
    return int(job), request_of(said)
