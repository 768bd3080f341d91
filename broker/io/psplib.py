"""Resource-constrained projects in the format of PSPLIB, `.sm`: single mode, renewable resources.

A file has the number of jobs, then, each under its heading, the successors of every job, what it takes
(duration, and units of each resource), and how many units each resource has.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.io.documents import read_bytes
from broker.model.instances import Activity, project
from broker.model.problem import Problem
from broker.model.workflow import WORK_MAX, cycle_words, find_cycle
from broker.util.errors import FileError
from lrms_sim.util.file_errors import Mistake
from lrms_sim.util.messages import shown

FILE_BYTES_MAX: Final = 64 << 20
JOBS_MAX: Final = 100_000
RESOURCES_MAX: Final = 1000
UNITS_MAX: Final = 2**31 - 1

_PRECEDENCE: Final = "PRECEDENCE RELATIONS"
_REQUESTS: Final = "REQUESTS/DURATIONS"
_AVAILABLE: Final = "RESOURCEAVAILABILITIES"
_SECTIONS: Final = (_PRECEDENCE, _REQUESTS, _AVAILABLE)
_COUNT: Final = re.compile(r"\s*(?:-\s*)?([a-z][a-z ()./]*?)\s*:\s*(-?\d{1,15})\b.*")
_DIGITS: Final = re.compile(r"-?\d+")
_WHOLE: Final = re.compile(r"-?\d{1,15}")
_DURATION: Final = re.compile(r"-?\d{1,15}(\.\d+)?")


@dataclass(frozen=True, slots=True)
class _Row:
    # A line of numbers, by its number in the file.
    line: int
    words: Sequence[str]


class _FormatError(Exception):
    # What is wrong in a line; 0 for the file as a whole.
    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


def read_project(path: Path) -> Problem:
    """Reads a project as a planning problem: one workflow, and a resource for each of its kinds.

    Raises:
        FileError: it cannot be read or breaks the format; the text names the line.
    """
    text = read_bytes(path, bytes_max=FILE_BYTES_MAX).decode("utf-8", "replace")
    return parse_project(text, file=str(path))


def parse_project(text: str, *, file: str) -> Problem:
    """Parses a project; `file` is its name in errors.

    Raises:
        FileError: it breaks the format.
    """
    try:
        return _parsed(text)
    except _FormatError as wrong:
        where = f"line {wrong.line}" if wrong.line else ""
        raise FileError(file, [Mistake(where, str(wrong))]) from None


def _parsed(text: str) -> Problem:
    counts, sections = _split(text)
    jobs = _count(counts, "jobs", 1, JOBS_MAX)
    kinds = _count(counts, "renewable", 1, RESOURCES_MAX)
    for name in ("nonrenewable", "doubly constrained"):
        line, number = counts.get(name, (0, 0))
        if number:
            raise _FormatError(
                line, f"{number} {name} resources; only renewable ones are planned: use a file of "
                "single mode (.sm)"
            )  # fmt: skip
    successors = _successors(sections[_PRECEDENCE], jobs)
    takes = _requests(sections[_REQUESTS], jobs, kinds)
    capacity = _capacity(sections[_AVAILABLE], kinds)
    activities = []
    for number in range(jobs):
        line, seconds, units = takes[number]
        for kind, (wanted, there) in enumerate(zip(units, capacity, strict=True), 1):
            if wanted > there:
                raise _FormatError(
                    line, f"job {number + 1} takes {wanted} of resource {kind}, which has {there}"
                )
        activities.append(Activity(str(number + 1), seconds, units, tuple(successors[number])))
    if not any(each.seconds for each in activities):
        raise _FormatError(0, "no job takes any time: there is nothing to plan")
    return project(activities, capacity)


def _split(text: str) -> tuple[dict[str, tuple[int, int]], dict[str, list[_Row]]]:
    # The numbers of the head, by their names, and the rows of each section.
    counts: dict[str, tuple[int, int]] = {}
    sections: dict[str, list[_Row]] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        heading = next((each for each in _SECTIONS if line.strip().upper().startswith(each)), "")
        if heading:
            if heading in sections:
                raise _FormatError(number, f"a second section {shown(heading)}")
            section = heading
            sections[section] = []
        elif line.lstrip().startswith("*") or not words:
            section = section if not words else ""
        elif section and _DIGITS.fullmatch(words[0]):
            sections[section].append(_Row(number, words))
        elif not section and (match := _COUNT.fullmatch(line.lower())):
            name = match.group(1).split("(")[0].strip()
            counts[name] = number, int(match.group(2))
    for each in _SECTIONS:
        if each not in sections:
            text = f"no project in PSPLIB's format: there is no section {shown(each)}"
            raise _FormatError(0, text)
    return counts, sections


def _count(counts: dict[str, tuple[int, int]], name: str, least: int, most: int) -> int:
    if name not in counts:
        raise _FormatError(0, f'no line says how many {name} there are, as "{name}: 4"')
    line, number = counts[name]
    if not least <= number <= most:
        raise _FormatError(line, f"{number} {name}; from {least} to {most}")
    return number


def _by_job(rows: Sequence[_Row], jobs: int, section: str) -> Iterator[tuple[int, _Row]]:
    # Every job once, by its number from 0.
    seen: set[int] = set()
    for row in rows:
        number = _whole(row, row.words[0], "job", 1, jobs)
        if number in seen:
            raise _FormatError(row.line, f"job {number} a second time")
        seen.add(number)
        yield number - 1, row
    missing = sorted(set(range(1, jobs + 1)) - seen)
    if missing:
        named = ", ".join(map(str, missing[:10])) + (" …" if len(missing) > 10 else "")
        raise _FormatError(0, f"{jobs} jobs are announced; {shown(section)} has none for: {named}")


def _successors(rows: Sequence[_Row], jobs: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(jobs)]
    for number, row in _by_job(rows, jobs, _PRECEDENCE):
        if len(row.words) < 3:
            raise _FormatError(row.line, "a job has its number, its modes, and how many successors")
        _check_mode(row)
        many = _whole(row, row.words[2], "number of successors", 0, jobs)
        if len(row.words) != 3 + many:
            there = len(row.words) - 3
            raise _FormatError(row.line, f"{many} successors are announced; there are {there}")
        for word in row.words[3:]:
            other = _whole(row, word, "successor", 1, jobs) - 1
            if other == number or other in found[number]:
                why = "is the job itself" if other == number else "is named twice"
                raise _FormatError(row.line, f"successor {other + 1} {why}")
            found[number].append(other)
    names = {str(job + 1): [str(other + 1) for other in each] for job, each in enumerate(found)}
    if cycle := find_cycle(names):
        raise _FormatError(0, f"jobs wait for each other: {cycle_words(cycle)}")
    return found


def _requests(
    rows: Sequence[_Row], jobs: int, kinds: int
) -> dict[int, tuple[int, float, tuple[int, ...]]]:
    found: dict[int, tuple[int, float, tuple[int, ...]]] = {}
    for number, row in _by_job(rows, jobs, _REQUESTS):
        if len(row.words) != 3 + kinds:
            raise _FormatError(
                row.line,
                f"{len(row.words)} numbers; job, mode, duration and {kinds} resources are "
                f"{3 + kinds}",
            )
        _check_mode(row)
        word = row.words[2]
        if not _DURATION.fullmatch(word) or not 0 <= float(word) <= WORK_MAX:
            raise _FormatError(row.line, f"duration {shown(word)}; from 0 to {WORK_MAX:g}")
        units = tuple(_whole(row, each, "units", 0, UNITS_MAX) for each in row.words[3:])
        found[number] = row.line, float(word), units
    return found


def _capacity(rows: Sequence[_Row], kinds: int) -> tuple[int, ...]:
    if len(rows) != 1:
        raise _FormatError(
            rows[1].line if rows else 0,
            f"{len(rows)} lines of units of resources under {shown(_AVAILABLE)}; there must be one",
        )
    if len(rows[0].words) != kinds:
        raise _FormatError(
            rows[0].line, f"units of {len(rows[0].words)} resources; there are {kinds}"
        )
    return tuple(_whole(rows[0], each, "units", 0, UNITS_MAX) for each in rows[0].words)


def _check_mode(row: _Row) -> None:
    if row.words[1] != "1":
        raise _FormatError(
            row.line,
            f"mode or modes {shown(row.words[1])}; jobs have one mode: use a file of single mode (.sm)",
        )


def _whole(row: _Row, word: str, what: str, least: int, most: int) -> int:
    if not _WHOLE.fullmatch(word) or not least <= int(word) <= most:
        raise _FormatError(row.line, f"{what} {shown(word)}; a whole number from {least} to {most}")
    return int(word)
