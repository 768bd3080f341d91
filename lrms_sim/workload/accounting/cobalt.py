"""Job records of Cobalt, the batch system of Argonne's machines, and tables made of them.

Records are those of PBS, with quoted texts and times with decimals. A job holds whole nodes,
possibly more than requested if the machine allocates blocks; each counts with the processors
requested per node. The tables (`DIM_JOB_COMPOSITE` of Argonne's public data) have a header line.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from lrms_sim.workload.accounting import pbs, table
from lrms_sim.workload.accounting.records import (
    AccountingError,
    Reading,
    Record,
    Unreadable,
    filled,
    first_width,
    peeked,
)

_PAIR: Final = re.compile(r'(\S+?)=("(?:[^"\\]|\\.)*"|\S*)')
_TABLE: Final = {
    "submit_time": "QUEUED_TIMESTAMP",
    "start_time": "START_TIMESTAMP",
    "end_time": "END_TIMESTAMP",
    "requested_time": "WALLTIME_SECONDS",
    "user": "USERNAME_GENID",
    "group": "PROJECT_NAME_GENID",
    "queue": "QUEUE_NAME",
    "exit_code": "EXIT_STATUS",
}
_WIDTHS: Final = ("CORES_USED", "NODES_USED", "CORES_REQUESTED", "NODES_REQUESTED")


def read(lines: Iterable[str], reading: Reading) -> Iterator[Record]:
    """Yields the jobs that have ended.

    Raises:
        AccountingError: a line cannot be read, and that is an error.
    """
    first, lines = peeked(lines)
    if _TABLE["submit_time"] in first:
        names = {name.strip(' "') for name in first.split(",")}
        columns = {word: column for word, column in _TABLE.items() if column in names}
        columns["processors"] = next((name for name in _WIDTHS if name in names), _WIDTHS[0])
        try:
            layout = table.Layout(columns)
        except ValueError as error:
            raise AccountingError(
                f"{reading.name}: no whole table of Cobalt: {error}; `lrms-sim import table` reads others"
            ) from error
        yield from table.read_csv(lines, layout, reading)
        return
    job_of = partial(pbs.job_of, pairs=_pairs, processors=_processors)
    yield from reading.records(filled(lines), job_of)


def _pairs(text: str) -> dict[str, str]:
    return {found[1]: found[2].strip('"') for found in _PAIR.finditer(text)}


def _processors(row: dict[str, str]) -> int:
    nodes = first_width(row.get("Resource_List.nodect"))
    asked = first_width(row.get("Resource_List.ncpus"), row.get("Resource_List.nodect"))
    held = first_width(row.get("resources_used.nodect"))
    if held is None and asked is None:
        raise Unreadable("nothing says how many processors the job had", "width")
    of_a_node = max(1, (asked or 1) // nodes) if nodes else 1
    return asked or 1 if held is None else held * of_a_node
