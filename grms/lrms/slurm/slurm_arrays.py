"""Arrays of Slurm in which jobs are submitted together, and how each job is known in one. Pure.

An array has one name for all. Its tag ends with `*` and stands for the keys of a thousand jobs; an element's index is the rest
of its job's number: element 345 of `hanse:S:A/1f/12*` is the job `A/1f/12345`. So nothing has to be kept to tell whose an
element is, also after a crash, and of an array that arrives late.

An array only carries the submission. Before anything else is asked for an element it gets its own name, by which Slurm
parts it from the others (`job_array_split`). That is also a must: with a filter (`--name`, `--state`), `scancel` of Slurm 22.05
ends all elements that were not parted yet, instead of the one that it is asked for.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from grms.lrms.base import LrmsPhase
from grms.lrms.batch.queue_snapshot import JobRow

DIGITS: Final = 3
"""Digits of an index."""

SIZE: Final = 10**DIGITS
"""The configuration has to allow indices below this (`MaxArraySize`; by default 1001)."""

ARRAYS_MAX: Final = 200
"""Arrays whose elements are kept."""

_WAITS = frozenset((LrmsPhase.WAITING, LrmsPhase.HELD))

_ALL: Final = "*"
_ELEMENT = re.compile(r"\b[0-9]+_[0-9]+\b")
"""An element's number in what scontrol says."""
_NUMBER = re.compile(r"[0-9]{1,20}_([0-9]{1,9})")


def array_tag(tag: str) -> tuple[str, int] | None:
    """Returns the tag of the array in which a job can be, and its index there; `None` for one that was lost before.

    `tag` is that of the job alone.
    """
    begin, _, number = tag.rpartition("/")
    if begin.count("/") != 1:
        return None  # its key ends with the count of its submissions
    return f"{begin}/{number[:-DIGITS]}{_ALL}", int(number[-DIGITS:])


def element_name(name: str, number: str) -> str:
    """Returns the name that a job would have alone, by that of its array and its number, such as `12_345`.

    Any other name is returned unchanged.
    """
    found = _NUMBER.fullmatch(number) if name.endswith(_ALL) else None
    if found is None or int(found[1]) >= SIZE:
        return name
    head = name.removesuffix(_ALL)
    return head + (str(int(found[1])) if head.endswith("/") else found[1].zfill(DIGITS))


def is_array_name(name: str) -> bool:
    """Returns whether a name is that of an array; no job alone has one that ends so."""
    return name.endswith(_ALL)


def array_folder(folder: Path) -> tuple[str, str, str]:
    """Returns how the folders of all elements are found by that of one.

    Returns:
        Their common beginning; the word by which `launch` makes of an index what follows; and the same for Slurm, in names of
        files.
    """
    begin, mark, number = folder.name.rpartition("+")
    head = number[:-DIGITS]
    pad, word = (f"%{DIGITS}a", str(SIZE)) if head else ("%a", "")
    return f"{folder.parent}/{begin}{mark}{head}", word, pad


def array_words(indices: Iterable[int]) -> str:
    """Returns indices as `--array` has them, such as `1-3,7`."""
    parts: list[list[int]] = []
    for index in sorted(indices):
        if parts and index == parts[-1][1] + 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in parts)


def array_of(tags: Sequence[str]) -> tuple[str, list[int]]:
    """Returns the tag of the array in which jobs that are alike can be, and their indices, by the tags of each alone."""
    places = [place for tag in tags if (place := array_tag(tag)) is not None]
    assert len(places) == len(tags), "they are not alike"
    return places[-1][0], [index for _, index in places]


def refused_elements(error: str, *, is_cut: bool) -> set[str] | None:
    """Returns the numbers of elements that `scontrol` has refused a name; `None` if it does not say which.

    It goes on where it is refused one, with a line for each: those that have ended meanwhile, or all. `is_cut`: the text may
    lack its end.
    """
    lines = [line for line in error.splitlines() if line.strip()]
    refused = {number for line in lines for number in _ELEMENT.findall(line)}
    return None if is_cut or len(refused) != len(lines) else refused


class ArrayElements:
    """The names that elements of the last arrays are to have."""

    def __init__(self) -> None:
        # By the number of an array, and then by those of its elements; `None` of those that were parted.
        self._names: OrderedDict[str, dict[str, str | None]] = OrderedDict()
        self._parted = set[str]()  # since the present look has begun
        self._submitted: dict[str, float] = {}  # when, as the first look since then has shown it

    def keep(self, array: str, names: Mapping[str, str]) -> None:
        """Notes the elements of an array that was submitted; a crash may have taken its number from another."""
        self._names[array] = dict(names)
        self._submitted.pop(array, None)
        self._drop()

    def _drop(self) -> None:
        while len(self._names) > ARRAYS_MAX:
            array, _ = self._names.popitem(last=False)
            self._submitted.pop(array, None)

    def submitted(self, number: str) -> float | None:
        """Returns when the array of an element was submitted, seconds; `None` if no look has shown any of it."""
        return self._submitted.get(number.partition("_")[0])

    def part(self, number: str) -> None:
        """Notes that an element is about to be parted: from now on it may begin, and it has a record of its own.

        Slurm parts it by whatever is asked for it alone, also where a plugin then refuses it; it is shown under the array's
        name as before.
        """
        self._parted.add(number)
        names = self._names.get(number.partition("_")[0], {})
        if number in names:
            names[number] = None

    def look_begins(self) -> None:
        """Notes that a queue is about to be read: what is parted from now on it may show as not parted."""
        self._parted.clear()

    def waits(self, number: str) -> bool:
        """Returns whether an element is not parted from its array, as far as is known."""
        return self._names.get(number.partition("_")[0], {}).get(number) is not None

    def told_in(self, rows: Iterable[JobRow]) -> list[JobRow]:
        """Returns the rows of a queue with one for each element.

        An array that is ended as a whole, before its elements were parted, is one row without an index.
        """
        found, numbers = list[JobRow](), set[str]()
        ended: list[JobRow] = []
        shown: dict[str, dict[str, str]] = {}
        for row in rows:
            numbers.add(row.number)
            self._note_moment(row)
            if row.in_array and row.phase in _WAITS:
                shown.setdefault(row.number.partition("_")[0], {})[row.number] = row.name
            elif "_" in row.number:
                self.part(row.number)
            # What lives under such a number is another job, to which a crash has given it.
            whole = not row.live and row.number in self._names
            (ended if whole else found).append(row)
        for array, elements in shown.items():
            # An array gets no more elements: one with others has its number by a crash.
            if not elements.keys() <= self._names.get(array, {}).keys():
                self._names[array] = {
                    number: None if number in self._parted else name
                    for number, name in elements.items()
                }
                self._submitted.pop(array, None)
        for row in ended:
            named = is_array_name(row.name)
            own = [
                (number, name)
                for number, name in self._names[row.number].items()
                if name and number not in numbers and name == element_name(row.name, number)
            ]
            found += [replace(row, number=number, name=name) for number, name in own]
            if not (own or named):
                found.append(row)
        self._drop()
        return found

    def _note_moment(self, row: JobRow) -> None:
        array, one, _ = row.number.partition("_")
        at, names = row.submit_time, self._names.get(array, {})
        if one and at is not None and names.get(row.number) == row.name:
            self._submitted.setdefault(array, at)
