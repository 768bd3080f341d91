"""What `sacct --parsable2` prints of Slurm's accounting."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import tzinfo
from typing import Final

from lrms_sim.accounting.records import AccountingError, Record, moment_of, seconds_of

_STATES: Final = {"COMPLETED": 1, "CANCELLED": 5}
_OPEN: Final = frozenset({"PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "COMPLETING"})


def read(lines: Iterable[str], name: str, zone: tzinfo, counts: Counter[str]) -> Iterator[Record]:
    """Yields the jobs; steps of jobs and jobs that have not ended are counted and left out.

    Args:
        lines: of the file.
        name: what errors call it.
        zone: of the site.
        counts: of rules that are used; they are added to.

    Raises:
        AccountingError: a line cannot be read.
    """
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
