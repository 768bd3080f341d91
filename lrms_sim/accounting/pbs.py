"""Accounting files of PBS: PBS Pro, OpenPBS, Torque."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import tzinfo

from lrms_sim.accounting.records import AccountingError, Record, seconds_of


def read(lines: Iterable[str], name: str, zone: tzinfo, counts: Counter[str]) -> Iterator[Record]:
    """Yields the jobs that have ended; records of other kinds are counted.

    Args:
        lines: of the file.
        name: what errors call it.
        zone: not used.
        counts: of rules that are used; they are added to.

    Raises:
        AccountingError: a line cannot be read.
    """
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
