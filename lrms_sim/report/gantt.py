"""Gantt charts: rows of bars on a common time axis, as inline SVG.

Text is cut to fit and shown in full over a bar. Colours are variables of the page, for light and
dark mode. A bar lies in its row by units from the top, which are lanes or processors.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Final

from lrms_sim.machine.places import held
from lrms_sim.report.parts import Part
from lrms_sim.report.time_axis import Axis
from lrms_sim.util.messages import shorten

CROWD_STEPS: Final = 240
"""Slices of time in which is counted what runs."""

LEVELS_MAX: Final = 5
"""Most steps between the numbers of units at the left of a row."""

TICKS_MAX: Final = 9

_LABEL_HEIGHT: Final = 9.0
_CHARACTER: Final = 5.9
_ROUNDING_S: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Bar:
    """A time span in a row.

    Attributes:
        begin: seconds.
        end: seconds.
        top: units from the top of the row.
        height: units.
        title: tooltip.
        label: in the bar, cut to fit.
        color: number of its colour; `None` for grey.
        kind: further classes: "deep" for a full colour, "critical" for a frame, "less" for
            hatching.
    """

    begin: float
    end: float
    top: float = 0.0
    height: float = 1.0
    title: str = ""
    label: str = ""
    color: int | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Shade:
    """A span of a row that is shaded: its class, "closed" or "broken", and what it is."""

    begin: float
    end: float
    kind: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a chart.

    Attributes:
        name: at the left.
        units: lanes or processors that share the height.
        inset: room above the units.
        gap: between bars that touch.
        below: in small print below the name.
        figures: at the right, each with whether it is good news.
        shades: behind the bars.
        links: dashed lines, each from a time and a unit to others.
        due: seconds; a marked due date.
        late: whether the due date was missed.
        crowd: begins and ends of what is drawn as a curve of counts instead of bars.
        sized: whether unit numbers stand at its left, from the bottom.
    """

    name: str
    height: float
    bars: Sequence[Bar] = ()
    units: float = 1.0
    inset: float = 0.0
    gap: float = 0.0
    below: str = ""
    figures: Sequence[tuple[str, bool]] = ()
    shades: Sequence[Shade] = ()
    links: Sequence[tuple[float, float, float, float]] = ()
    due: float | None = None
    late: bool = False
    crowd: Sequence[tuple[float, float]] = ()
    sized: bool = False


@dataclass(frozen=True)
class Drawn:
    """A row with its place, for the template; `letters` is the maximum of its name."""

    row: Row
    axis: Axis
    top: float = 0.0
    letters: int = 16

    @property
    def bottom(self) -> float:
        """Where it ends."""
        return self.top + self.row.height

    @property
    def name(self) -> str:
        """As much of the name as there is room for."""
        return shorten(self.row.name, self.letters)

    @property
    def below(self) -> str:
        """As much of what stands below the name as there is room for."""
        return shorten(self.row.below, int(1.45 * self.letters))

    def boxes(self) -> Iterator[tuple[Bar, float, float, float, float, str]]:
        """Yields bars, with place and size on paper, and with their labels as far as there is room."""
        step = (self.row.height - 2 * self.row.inset) / self.row.units
        for bar in self.row.bars:
            x = self.axis.at(bar.begin)
            width = self.axis.at(bar.end) - x
            # Neighbours stay apart where there is room for that, and the shortest are seen.
            shown = width - 0.7 if width > 3 else max(width, 0.7)
            y = self.top + self.row.inset + bar.top * step + self.row.gap / 2
            height = bar.height * step - self.row.gap
            room = int((width - 6) / _CHARACTER)
            fits = height >= _LABEL_HEIGHT and room >= min(3, len(bar.label))
            yield bar, x, y, shown, height, shorten(bar.label, room) if bar.label and fits else ""

    def levels(self) -> Iterator[tuple[float, int]]:
        """Yields round numbers of units, and the whole, with their heights on paper."""
        units = round(self.row.units)
        digits = 10 ** max(len(str(units)) - 2, 0)
        step = next(n * digits for n in (1, 2, 5, 10, 20, 50) if units <= LEVELS_MAX * n * digits)
        for number in (*range(0, units - step // 2, step), units):
            yield self.bottom - number / units * self.row.height, number

    def shaded(self) -> Iterator[tuple[Shade, float, float]]:
        """Yields shades with begin and width."""
        for shade in self.row.shades:
            left = self.axis.at(shade.begin)
            yield shade, left, self.axis.at(shade.end) - left

    def linked(self) -> Iterator[tuple[float, float, float, float]]:
        """Yields both ends of dashed lines."""
        step = self.row.height / self.row.units
        for begin, first, end, second in self.row.links:
            yield (
                *(self.axis.at(begin), self.top + first * step),
                *(self.axis.at(end), self.top + second * step),
            )

    @cached_property
    def running(self) -> list[int]:
        """How many of the crowd there are, by slice of the width."""
        change = [0] * (CROWD_STEPS + 1)
        left, width = self.axis.left, self.axis.right - self.axis.left
        for span in self.row.crowd:
            first, last = ((self.axis.at(each) - left) / width * CROWD_STEPS for each in span)
            begin = min(int(first), CROWD_STEPS - 1)
            change[begin] += 1
            change[max(begin + 1, min(math.ceil(last), CROWD_STEPS))] -= 1
        return list(accumulate(change[:CROWD_STEPS]))


@dataclass(frozen=True)
class Gantt(Part):
    """A chart, in pieces that fit a printed page.

    Attributes:
        key: unique within the page; letters, digits and dashes.
        title: for screen readers.
        width: of the chart in its own units.
        letters: maximum of a name.
        piece: maximum height of a piece.
        now: seconds; marked if the axis begins before it.
        heading: above the axis, with `note` at the right.
        hatched: whether bars of the kind "less" are.
    """

    key: str
    title: str
    axis: Axis
    rows: Sequence[Row]
    width: float
    letters: int = 16
    piece: float = 560.0
    gap: float = 0.0
    now: float = -math.inf
    heading: str = ""
    note: str = ""
    hatched: bool = False

    @property
    def head(self) -> float:
        """Room above the rows, for the labels of the axis."""
        return 44.0 if self.heading else 24.0

    @cached_property
    def pieces(self) -> list[list[Drawn]]:
        """Rows with their places, by piece."""
        found: list[list[Drawn]] = [[]]
        top = self.head
        for row in self.rows:
            if found[-1] and top + row.height > self.piece:
                found.append([])
                top = self.head
            found[-1].append(Drawn(row, self.axis, top, self.letters))
            top += row.height + self.gap
        return found

    @property
    def marks(self) -> Iterator[tuple[float, str, str]]:
        """Lines across all rows: their places, classes and labels."""
        for moment, label in self.axis.ticks(TICKS_MAX):
            yield self.axis.at(moment), "grid", label
        if self.axis.bend < math.inf:
            yield self.axis.at(self.axis.bend), "bend", "⋯"
        if self.axis.begin < self.now:
            yield self.axis.at(self.now), "now", ""


def packed(
    bars: Sequence[Bar],
    counts: Sequence[int],
    processors: int,
    jobs: Sequence[int] | None = None,
) -> list[list[Bar]]:
    """Returns bars placed in a row of so many processors, the lowest of which are at the bottom.

    A bar comes back in pieces if its processors are not adjacent. `counts` are the processors of
    each bar, and `jobs` the job of each, if jobs keep their processors from bar to bar.
    """
    found = held([(bar.begin, bar.end) for bar in bars], counts, processors, jobs, _ROUNDING_S)
    return [
        [replace(bar, top=processors - first - count, height=count) for first, count in ranges]
        for bar, ranges in zip(bars, found, strict=True)
    ]
