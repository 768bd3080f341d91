"""What `sacct --parsable2` prints of Slurm's accounting; `slurm_json` reads what `sacct --json` does."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from lrms_sim.workload.accounting import slurm_json
from lrms_sim.workload.accounting.records import (
    AccountingError,
    Reading,
    Record,
    Unreadable,
    filled,
    first_width,
    moment_of,
    number_of,
    peeked,
    seconds_of,
)
from lrms_sim.workload.accounting.tres import (
    Asked,
    gres_of_text,
    memory_of,
    request_of_tres,
    tres_of_text,
)
from lrms_sim.workload.requests import Memory, Request

_NEEDED: Final = ("JobID", "Submit", "Start", "End", "State")
_HEADING: Final = re.compile(r"[A-Za-z%0-9]+([^\sA-Za-z%0-9]+|\t)")


def read(lines: Iterable[str], reading: Reading) -> Iterator[Record]:
    """Yields the jobs; job steps and jobs that have not ended are counted and left out.

    Lines are text or JSON. In concatenated outputs the header line may repeat.

    Raises:
        AccountingError: the file has no header, or a line cannot be read, and that is an error.
    """
    first, lines = peeked(lines)
    if first.lstrip().startswith("{"):
        yield from slurm_json.read(lines, reading)
        return
    separator = _separator(first)
    names = list(reading.columns)
    if not names or _is_heading(first, separator):
        names = first.rstrip("\r\n").split(separator)
        _check(names, reading)
    yield from reading.records(_rows(lines, names, separator), _job_of)


_Row = tuple[list[str], list[str]]  # cells, and the names of their columns


def _rows(lines: Iterable[str], names: Iterable[str], separator: str) -> Iterator[tuple[int, _Row]]:
    for number, line in filled(lines):
        cells = line.rstrip("\r\n").split(separator)
        if _is_heading(line, separator):
            names = cells
        else:
            yield number, (cells, [name.lower() for name in names])


def _separator(first: str) -> str:
    found = _HEADING.match(first)
    return found[1] if found and "|" not in first else "|"


def _is_heading(line: str, separator: str) -> bool:
    names = {name.lower() for name in line.rstrip("\r\n").split(separator)}
    return {"state", "submit"} <= names


def _check(names: list[str], reading: Reading) -> None:
    known = {name.lower() for name in names}
    if "jobidraw" in known:
        known.add("jobid")
    if missing := sorted(name for name in _NEEDED if name.lower() not in known):
        raise AccountingError(
            f"{reading.name}:1: no column {missing[0]}; write the file with sacct --parsable2 "
            "--allusers --format=JobID,User,Group,Partition,Submit,Start,End,Timelimit,"
            "AllocCPUS,ReqCPUS,State; of a file without the line of names say the same --format here"
        )


def _job_of(said: _Row, reading: Reading) -> Record | None:
    cells, names = said
    if len(cells) != len(names):
        raise Unreadable(f"{len(cells)} columns, the header has {len(names)}", "columns")
    row = dict(zip(names, cells, strict=True))
    job = row.get("jobid") or row.get("jobidraw", "")
    words = row["state"].split()
    if "." in job:
        reading.counts["step"] += 1
        return None
    state = words[0].rstrip("+") if words else "PENDING"
    submit, start, end = (moment_of(row[key], reading.zone) for key in ("submit", "start", "end"))
    if state in slurm_json.OPEN or end is None:
        reading.counts["open"] += 1
        return None
    if submit is None:
        raise Unreadable(f"Submit is {row['submit']!r:.40}; a date is expected", "moment")
    if state == "CANCELLED" and start is not None and start >= end:
        start = None  # Slurm notes the cancel as the start of what never ran
    limit = number_of(row.get("timelimitraw", ""))
    processors = _processors(row)
    if processors is None:
        if start is None:
            reading.counts["cancelled"] += 1
            return None
        raise Unreadable("neither AllocCPUS nor ReqCPUS says a number of processors", "width")
    return Record(
        submit=submit,
        start=start,
        end=end,
        processors=processors,
        requested_time=seconds_of(row.get("timelimit", "")) if limit is None else 60.0 * limit,
        status=slurm_json.STATES.get(state, 0),
        user=row.get("user", ""),
        group=row.get("group", ""),
        queue=row.get("partition", ""),
        job=job,
        request=_request(row, processors, reading),
    )


def _processors(row: dict[str, str]) -> int | None:
    held, asked = (str(tres_of_text(row.get(key, "")).cpus) for key in ("alloctres", "reqtres"))
    return first_width(
        row.get("alloccpus"),
        row.get("ncpus"),
        held,
        row.get("reqcpus"),
        asked,
    )


def _request(row: dict[str, str], processors: int, reading: Reading) -> Request | None:
    tres = tres_of_text(row.get("alloctres", "")).or_else(tres_of_text(row.get("reqtres", "")))
    mib, per = memory_of(row.get("reqmem", ""))
    memory = None
    if mib and per:
        memory = Memory(mib, "core" if per == "c" else "node")
    elif mib and not tres.memory:
        tres.memory = mib
    nodes = first_width(*(row.get(key) for key in ("nnodes", "allocnodes", "reqnodes")))
    gpus = gres_of_text(row.get("allocgres") or row.get("reqgres") or "")
    asked = Asked(memory, nodes or 0, gpus, row.get("constraints", ""))
    return request_of_tres(processors, tres, asked, reading)
