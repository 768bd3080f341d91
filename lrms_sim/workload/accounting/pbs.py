"""Accounting files of PBS: PBS Pro, OpenPBS, Torque; and of Cobalt, which writes the same records.

A record is `date;kind;job;key=value …`; that of an ended job has kind E (PBS Professional Reference
Guide, "Accounting Log"; TORQUE Administrator Guide, "Accounting Records").
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from lrms_sim.workload.accounting.records import (
    Reading,
    Record,
    Unreadable,
    filled,
    first_width,
    number_of,
    seconds_of,
    whole_of,
)

_NCPUS: Final = re.compile(r":ncpus=(\d{1,9})")
_ARRAY: Final = re.compile(r"\d+\[\]")
_SLOTS_MAX: Final = 1 << 31


def read(lines: Iterable[str], reading: Reading) -> Iterator[Record]:
    """Yields the jobs that have ended; records of other kinds are counted.

    PBS writes Unix times and no zone.

    Raises:
        AccountingError: a line cannot be read, and that is an error.
    """
    return reading.records(filled(lines), job_of)


def _pairs(text: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in text.split())
    return {key: value for key, _, value in pairs}


def job_of(
    line: str,
    reading: Reading,
    pairs: Callable[[str], dict[str, str]] = _pairs,
    processors: Callable[[dict[str, str]], int] | None = None,
) -> Record | None:
    """Returns the job of a record; `None` if it is of another kind, which is counted.

    `pairs` and `processors` replace how keys and values and the width are read.

    Raises:
        Unreadable: it is no record.
    """
    parts = line.rstrip("\r\n").split(";", 3)
    if len(parts) != 4:
        raise Unreadable("no PBS accounting record: date;kind;job;key=value … is expected")
    if parts[1] != "E":
        reading.counts["other"] += 1
        return None
    if _ARRAY.match(parts[2]):
        reading.counts["array"] += 1
        return None
    row = pairs(parts[3])
    moments = []
    for keys in (("qtime", "ctime"), ("start",), ("end",)):
        text = next((row[key] for key in keys if key in row), "")
        moment = number_of(text)
        if moment is None:
            raise Unreadable(f"{keys[0]} is {text!r:.40}; a Unix time is expected", "moment")
        moments.append(moment)
    submit, start, end = moments
    requested = row.get("Resource_List.walltime", "")
    limit = number_of(requested)
    return Record(
        submit=submit,
        start=start,
        end=end,
        processors=(processors or _processors)(row),
        requested_time=seconds_of(requested) if limit is None else limit,
        status=1 if row.get("Exit_status", "0") == "0" else 0,
        user=row.get("user", ""),
        group=row.get("group", ""),
        queue=row.get("queue", ""),
        job=parts[2],
    )


def _processors(row: dict[str, str]) -> int:
    """Returns the processors that a job held, else was given, else asked for.

    `Resource_List.ncpus` comes last but one: if users ask for nodes, it is a default.
    """
    held = sum(int(found) for found in _NCPUS.findall(row.get("exec_vnode", "")))
    width = (
        held
        or slots_of_hosts(row.get("exec_host", ""))
        or first_width(row.get("resources_used.ncpus"), row.get("total_execution_slots"))
        or _asked(row)
    )
    if not width:
        raise Unreadable("nothing says how many processors the job had", "width")
    return width


def slots_of_hosts(text: str) -> int:
    """Returns how many slots an `exec_host` names, as `n1/0+n1/1`, `n1/0-7`, `n1/0,2-3` or `n1/0*8`; 0 for none."""
    count = 0
    for host in filter(None, text.split("+")):
        _, slash, places = host.partition("/")
        first, star, times = places.partition("*")
        if not slash or not places:
            return 0
        if star:
            count += whole_of(times) or 0
            continue
        for part in first.split(","):
            begin, dash, end = part.partition("-")
            low, high = whole_of(begin), whole_of(end if dash else begin)
            if low is None or high is None or not low <= high < _SLOTS_MAX:
                return 0
            count += high - low + 1
    return count


def _asked(row: dict[str, str]) -> int:
    """Returns the widest of a job's processor requests; the others are defaults."""
    single = (first_width(row.get(f"Resource_List.{key}")) for key in ("ncpus", "procs"))
    chunked = (_chunks(row.get(f"Resource_List.{key}", "")) for key in ("select", "nodes"))
    size = first_width(row.get("Resource_List.size"), row.get("Resource_List.mppwidth"))
    return max(*(width or 0 for width in single), *chunked, size or 0)


def _chunks(text: str) -> int:
    """Returns the processors of `2:ncpus=4+1`, `2:ppn=4` or `n1:ppn=2+n2`; 0 for none."""
    count = 0
    # Behind a # stands how nodes are shared.
    for chunk in filter(None, text.partition("#")[0].split("+")):
        first, *properties = chunk.split(":")
        each = 1
        for named in properties:
            key, _, value = named.partition("=")
            if key in {"ppn", "ncpus"}:
                each = whole_of(value) or 1
        count += (whole_of(first) or 1) * each
    return count
