"""Job arrays: the indices of their elements, and how many may be under way at a time.

The notation is that of Slurm: `0-15:4`, `1,3,5-7`, `1-1000%50`.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, Self

from lrms_sim.util.messages import shorten

ELEMENTS_MAX: Final = 100_000
"""Most elements of an array."""

INDEX_MAX: Final = 4_000_000
"""Greatest index of an element, as with Slurm."""

SHOWN: Final = 60
"""Most characters of a text that messages repeat."""

VARIABLES: Final = {
    "HANSE_ARRAY_JOB_ID": ("SLURM_ARRAY_JOB_ID", ""),
    "HANSE_ARRAY_TASK_ID": ("SLURM_ARRAY_TASK_ID", "SGE_TASK_ID"),
    "HANSE_ARRAY_TASK_COUNT": ("SLURM_ARRAY_TASK_COUNT", ""),
    "HANSE_ARRAY_TASK_MIN": ("SLURM_ARRAY_TASK_MIN", "SGE_TASK_FIRST"),
    "HANSE_ARRAY_TASK_MAX": ("SLURM_ARRAY_TASK_MAX", "SGE_TASK_LAST"),
    "HANSE_ARRAY_TASK_STEP": ("SLURM_ARRAY_TASK_STEP", "SGE_TASK_STEPSIZE"),
}
"""What an element finds, and under which names it finds the same under Slurm, and under Grid Engine."""


def element_in(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns the number of the array and the index in it, as batch systems have them; `None` if it is no element."""
    if "HANSE_ARRAY_TASK_ID" not in environment:
        return None
    number = environment.get("HANSE_ARRAY_JOB_ID", "").rpartition("-")[2]
    return number, environment["HANSE_ARRAY_TASK_ID"]


_PART: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """The elements of an array.

    `ranges` are (first, last, step), ascending and without overlap; at most `limit` elements are under way at a
    time, 0 for any number.

    Raises:
        ValueError: an index comes twice or is out of bounds, or there are none or too many.
    """

    ranges: tuple[tuple[int, int, int], ...]
    limit: int = 0
    _count: int = field(init=False, repr=False, compare=False)
    _begins: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Checks the bounds."""
        last_before = -1
        for first, last, step in self.ranges:
            if not last_before < first <= last <= INDEX_MAX or step < 1 or (last - first) % step:
                raise ValueError(
                    f"an array's indices ascend, and are from 0 to {INDEX_MAX}; not so {first}-{last}:{step}"
                )
            last_before = last
        count, begins = 0, []
        for first, last, step in self.ranges:
            begins.append((first, count))
            count += (last - first) // step + 1
        if not 1 <= count <= ELEMENTS_MAX:
            raise ValueError(f"an array of {count} elements; from 1 to {ELEMENTS_MAX} are possible")
        if self.limit < 0:
            raise ValueError(f"the limit is {self.limit}; it must be at least 1, or 0 for none")
        object.__setattr__(self, "_count", count)
        object.__setattr__(self, "_begins", tuple(begins))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Returns the elements that a text in Slurm's notation names, in ascending order.

        Raises:
            ValueError: it names none.
        """
        listed, percent, limit = text.partition("%")
        if percent and not (limit.isascii() and limit.isdigit() and int(limit[:10]) > 0):
            raise ValueError(
                f"array {shorten(text, SHOWN)!r}: after % comes how many may run at a time, at least 1"
            )
        indices: set[int] = set()
        named = 0
        for part in listed.split(","):
            found = _PART.fullmatch(part)
            if found is None:
                raise ValueError(
                    f"array {shorten(text, SHOWN)!r}: {shorten(part, SHOWN)!r} is no index and no range; say for example 0-9, 1,3,5 "
                    f"or 0-15:4, and %2 behind it for at most two at a time"
                )
            first, last, step = (int(word) if word else None for word in found.groups())
            assert first is not None
            last = first if last is None else last
            step = 1 if step is None else step
            if last < first or step < 1 or last > INDEX_MAX:
                raise ValueError(
                    f"array {shorten(text, SHOWN)!r}: {shorten(part, SHOWN)!r} has no elements; indices ascend to at most {INDEX_MAX}"
                )
            # Of what is named twice as well: a text must not cost more than an array.
            named += (last - first) // step + 1
            if named > ELEMENTS_MAX:
                raise ValueError(
                    f"array {shorten(text, SHOWN)!r} has more than {ELEMENTS_MAX} elements"
                )
            indices.update(range(first, last + 1, step))
        return cls.of(sorted(indices), int(limit or 0))

    @classmethod
    def of(cls, indices: list[int], limit: int = 0) -> Self:
        """Returns an array of ascending indices.

        Raises:
            ValueError: they do not ascend, or are out of bounds.
        """
        ranges: list[tuple[int, int, int]] = []
        position = 0
        while position < len(indices):
            first = last = indices[position]
            position += 1
            step = indices[position] - first if position < len(indices) else 1
            end = position
            while end < len(indices) and indices[end] - last == step:
                last = indices[end]
                end += 1
            # Two indices alone are no range, unless they are neighbours.
            if step > 1 and end - position < 2:
                last, step, end = first, 1, position
            ranges.append((first, last, step if last > first else 1))
            position = end
        return cls(tuple(ranges), limit)

    def __str__(self) -> str:
        """Returns the notation that `parse` takes."""
        words = []
        for first, last, step in self.ranges:
            word = str(first) if first == last else f"{first}-{last}"
            words.append(f"{word}:{step}" if step > 1 else word)
        return ",".join(words) + (f"%{self.limit}" if self.limit else "")

    def __len__(self) -> int:
        """Returns the number of elements."""
        return self._count

    def __iter__(self) -> Iterator[int]:
        """Yields the indices, in order."""
        for first, last, step in self.ranges:
            yield from range(first, last + 1, step)

    def position(self, index: int) -> int:
        """Returns the position of an element by its index, from 0; -1 if there is none."""
        at = bisect_right(self._begins, index, key=itemgetter(0)) - 1
        if at < 0:
            return -1
        first, last, step = self.ranges[at]
        if index > last or (index - first) % step:
            return -1
        return self._begins[at][1] + (index - first) // step

    def variables(self, array_id: str, index: int) -> dict[str, str]:
        """Returns what an element finds, in the order of `VARIABLES`."""
        values = (array_id, index, len(self), self.first, self.last, self.step)
        return dict(zip(VARIABLES, map(str, values), strict=True))

    @property
    def first(self) -> int:
        """The smallest index."""
        return self.ranges[0][0]

    @property
    def last(self) -> int:
        """The greatest index."""
        return self.ranges[-1][1]

    @property
    def step(self) -> int:
        """By which indices ascend if they ascend regularly; else 1."""
        return self.ranges[0][2] if len(self.ranges) == 1 else 1
