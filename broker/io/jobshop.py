"""Job shops in the standard format of the OR-Library, and flexible ones in that of Brandimarte (`.fjs`).

The first line gives the numbers of jobs and machines; then every job has a line of pairs, the
machine (from 0) and the time of each of its operations in order, which may be 0. Text and lines
beginning with # may come before.

In a flexible job shop the line of a job begins with the number of its operations; each has the number of
machines that can do it, and as many pairs of machine and time, more than 0. Machines are counted from 0 or
from 1. The first line may have a third number, of machines per operation, which is not needed.
"""

import re
from pathlib import Path
from typing import Final

from broker.io.documents import read_bytes
from broker.model.instances import flexible_job_shop, job_shop
from broker.model.problem import Problem
from broker.model.workflow import WORK_MAX
from broker.util.errors import FileError
from lrms_sim.util.file_errors import Mistake
from lrms_sim.util.messages import shown

FILE_BYTES_MAX: Final = 16 << 20
COUNT_DIGITS: Final = 9
_SIZE = re.compile(r"\s*(\d{1,9})\s+(\d{1,9})\s*")
_FLEXIBLE_SIZE = re.compile(r"\s*(\d{1,9})\s+(\d{1,9})(\s+\d+(\.\d*)?)?\s*")
_MACHINE = re.compile(r"\d{1,9}")
_NUMBER = re.compile(r"-?\d{1,15}(\.\d+)?")


def read_job_shop(path: Path) -> Problem:
    """Reads a job shop as a planning problem: a workflow for each job, a resource for each machine.

    It is a flexible one if the name ends in `.fjs` or `.fjs.gz`.

    Raises:
        FileError: it cannot be read or breaks the format; the text names the line.
    """
    text = read_bytes(path, bytes_max=FILE_BYTES_MAX).decode("utf-8", "replace")
    if path.name.removesuffix(".gz").endswith(".fjs"):
        return parse_flexible_job_shop(text, file=str(path))
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
        if not _MACHINE.fullmatch(machine) or int(machine) >= machines:
            raise ValueError(f"machine {shown(machine)}; it must be from 0 to {machines - 1}")
        if not _NUMBER.fullmatch(seconds) or not 0 <= float(seconds) <= WORK_MAX:
            raise ValueError(f"time {shown(seconds)}; it must be a number from 0 to {WORK_MAX:g}")
        found.append((int(machine), float(seconds)))
    return found


def parse_flexible_job_shop(text: str, *, file: str) -> Problem:
    """Parses a flexible job shop in Brandimarte's format; `file` is its name in errors.

    Raises:
        FileError: it breaks the format.
    """
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    size = _FLEXIBLE_SIZE.fullmatch(lines[0][1]) if lines else None
    if size is None:
        text = 'no flexible job shop: the first line does not say how many jobs and machines, as "10 6"'
        raise FileError(file, [Mistake(f"line {lines[0][0]}" if lines else "", text)])
    jobs, machines = int(size.group(1)), int(size.group(2))
    rows = lines[1:]
    if not (jobs and machines) or len(rows) != jobs:
        text = f"{jobs} jobs on {machines} machines are announced; there are {len(rows)} jobs"
        raise FileError(file, [Mistake(f"line {lines[0][0]}", text)])
    mistakes: list[Mistake] = []
    found = []
    for number, line in rows:
        try:
            found.append(_flexible_operations(line.split(), machines))
        except ValueError as error:
            mistakes.append(Mistake(f"line {number}", str(error)))
    used = {machine for job in found for choices in job for machine, _ in choices}
    first = 0 if 0 in used or machines not in used else 1
    if not mistakes and first == 0 and machines in used:
        text = f"machines 0 and {machines} are both used; {machines} machines go from 0 or from 1"
        mistakes.append(Mistake(f"line {lines[0][0]}", text))
    if mistakes:
        raise FileError(file, mistakes)
    return flexible_job_shop(
        [[[(m - first, seconds) for m, seconds in choices] for choices in job] for job in found],
        machines,
    )


def _flexible_operations(words: list[str], machines: int) -> list[list[tuple[int, float]]]:
    numbers = iter(words)

    def whole(what: str, least: int, most: int) -> int:
        word = next(numbers, None)
        if word is None:
            raise ValueError(f"it ends where the {what} should be")
        if not word.isdecimal() or len(word) > COUNT_DIGITS or not least <= int(word) <= most:
            raise ValueError(f"{what} {shown(word)}; from {least} to {most}")
        return int(word)

    job = []
    for step in range(1, whole("number of operations", 1, len(words)) + 1):
        choices: dict[int, float] = {}
        for _ in range(whole(f"number of machines of operation {step}", 1, machines)):
            machine = whole(f"machine of operation {step}", 0, machines)
            if machine in choices:
                raise ValueError(f"operation {step} names machine {machine} twice")
            seconds = next(numbers, "")
            if not _NUMBER.fullmatch(seconds) or not 0 < float(seconds) <= WORK_MAX:
                raise ValueError(
                    f"time {shown(seconds)} of operation {step}; more than 0, at most {WORK_MAX:g}"
                )
            choices[machine] = float(seconds)
        job.append(list(choices.items()))
    rest = sum(1 for _ in numbers)
    if rest:
        raise ValueError(f"{rest} numbers more than {len(job)} operations have")
    return job
