"""Job shops in the standard format of the OR-Library.

The first line gives the numbers of jobs and machines; then every job has a line of pairs, the
machine (from 0) and the time of each of its operations in order, which may be 0. Text and lines
beginning with # may come before.
"""

import re
from pathlib import Path
from typing import Final

from broker.io.documents import read_bytes
from broker.model.instances import job_shop
from broker.model.problem import Problem
from broker.util.errors import FileError
from lrms_sim.util.file_errors import Mistake
from lrms_sim.util.messages import shown

FILE_BYTES_MAX: Final = 16 << 20
_SIZE = re.compile(r"\s*(\d+)\s+(\d+)\s*")
_NUMBER = re.compile(r"-?\d{1,15}(\.\d+)?")


def read_job_shop(path: Path) -> Problem:
    """Reads a job shop as a planning problem: a workflow for each job, a resource for each machine.

    Raises:
        FileError: it cannot be read or breaks the format; the text names the line.
    """
    text = read_bytes(path, bytes_max=FILE_BYTES_MAX).decode("utf-8", "replace")
    return parse_job_shop(text, file=str(path))


def parse_job_shop(text: str, *, file: str) -> Problem:
    """Parses a job shop in the standard format; `file` is its name in errors.

    Raises:
        FileError: it breaks the format.
    """
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    first = next((i for i, (_, line) in enumerate(lines) if _SIZE.fullmatch(line)), None)
    if first is None:
        text = 'no job shop: no line says how many jobs and machines there are, as "6 6"'
        raise FileError(file, [Mistake("", text)])
    match = _SIZE.fullmatch(lines[first][1])
    assert match is not None
    jobs, machines = int(match.group(1)), int(match.group(2))
    rows = lines[first + 1 : first + 1 + jobs]
    if not (jobs and machines) or len(rows) < jobs:
        text = f"{jobs} jobs on {machines} machines are announced; there are {len(rows)} jobs"
        raise FileError(file, [Mistake(f"line {lines[first][0]}", text)])
    mistakes: list[Mistake] = []
    operations = []
    for number, line in rows:
        try:
            operations.append(_operations(line, machines))
        except ValueError as error:
            mistakes.append(Mistake(f"line {number}", str(error)))
    if mistakes:
        raise FileError(file, mistakes)
    return job_shop(operations)


def _operations(line: str, machines: int) -> list[tuple[int, float]]:
    words = line.split()
    if len(words) != 2 * machines:
        text = f"{len(words)} numbers; machine and time of {machines} operations are {2 * machines}"
        raise ValueError(text)
    found = []
    for machine, seconds in zip(words[::2], words[1::2], strict=True):
        if not machine.isdecimal() or int(machine) >= machines:
            raise ValueError(f"machine {shown(machine)}; it must be from 0 to {machines - 1}")
        if not _NUMBER.fullmatch(seconds) or float(seconds) < 0:
            raise ValueError(f"time {shown(seconds)}; it must be a number of at least 0")
        found.append((int(machine), float(seconds)))
    return found
