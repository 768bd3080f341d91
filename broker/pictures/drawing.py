"""Draws rows of bars below each other on one time axis, as inline SVG.

Text is cut to what fits; the whole of it comes up over a bar. Colours are variables of the page, so
that paper and dark windows both are served.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import Final

from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.pictures.layout import Axis, axis_of, bend_of, lane_height, lanes
from broker.pictures.words import count_of, money
from lrms_sim.spelling import duration, shorten

WIDTH: Final = 1180.0
"""Width of a chart in its own units."""

LEFT: Final = 138.0
RIGHT: Final = 1036.0
TITLES_MAX: Final = 10_000
"""Most bars that say what they are when pointed at; beyond, a page would be too large."""

CROWD_STEPS: Final = 240
"""Slices of time in which is counted what runs."""

_CHARACTER = 5.9
_NAME_LENGTH = 18


@dataclass(frozen=True, slots=True)
class Picture:
    """What both charts draw.

    Attributes:
        problem: that was planned.
        plan: for it.
        critical: keys of the tasks on the critical path of the plan.
        holding: keys of the tasks on the critical path of each workflow.
        color: number of the colour of each task.
        legend: names of the colours that need one.
    """

    problem: Problem
    plan: Plan
    critical: Collection[tuple[str, str]]
    holding: Collection[tuple[str, str]]
    color: Mapping[tuple[str, str], int]
    legend: Sequence[str]

    @property
    def span(self) -> tuple[float, float]:
        """Begin and end of the charts: all tasks, and due dates that are not much later."""
        begin = min([self.problem.now, *(each.start for each in self.plan)])
        end = max([begin, *(each.end for each in self.plan)])
        room = end + 0.25 * (end - begin)
        due = [each.due_date for each in self.problem.workflows if each.due_date <= room]
        return begin, max([end, *due])

    def axis(self) -> Axis:
        """Returns the time axis of the charts."""
        begin, end = self.span
        bend = bend_of(begin, [each.end for each in self.plan])
        return axis_of(begin, end, left=LEFT, right=RIGHT, now=self.problem.now, bend=bend)


class Chart:
    """Draws rows of bars below each other on one time axis, in pieces that a printed page holds."""

    HEAD = 24.0
    FOOT = 8.0
    PIECE = 560.0

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.axis = picture.axis()
        self.pieces: list[tuple[list[str], float]] = []
        self.parts: list[str] = []
        self.top = self.HEAD
        self.titled = len(picture.plan) <= TITLES_MAX

    def row(
        self,
        name: str,
        below: str,
        placements: Sequence[Placement],
        figures: tuple[str, str],
        *,
        closed: Iterable[tuple[float, float]] = (),
        due: float = math.inf,
        good: tuple[bool, bool] = (True, True),
    ) -> None:
        """Draws a row.

        Args:
            name: at the left.
            below: in small print below the name.
            placements: the bars, in order of their starts.
            figures: at the right, below each other.
            closed: spans that are shaded.
            due: where a due date is marked; nowhere where infinite.
            good: whether each of the figures is good news.
        """
        lane = lanes(placements)
        number = max(lane, default=0) + 1
        step = lane_height(number)
        height = max(28.0, number * step + 5)
        if self.top > self.HEAD and self.top + height > self.PIECE:
            self._cut()
        top = self.top
        say = self.parts.append
        say(f'<path class="line" d="M0 {top:.1f}H{WIDTH:.0f}"/>')
        for begin, end in closed:
            left, right = self.axis.at(begin), self.axis.at(end)
            say(
                f'<rect class="closed" x="{left:.1f}" y="{top:.1f}" '
                f'width="{right - left:.1f}" height="{height:.1f}"/>'
            )
        self._words(name, below, figures, good, top + height / 2)
        self.parts += self._bars(placements, lane, top + (height - number * step) / 2, step)
        if due < math.inf:
            say(self._due(due, top, height, late=not good[0]))
        self.top += height

    def crowd(self, name: str, below: str, placements: Sequence[Placement]) -> None:
        """Draws many rows as one: how many of their tasks run at a time.

        Args:
            name: at the left.
            below: in small print below the name.
            placements: of all of them.
        """
        height = 44.0
        if self.top > self.HEAD and self.top + height > self.PIECE:
            self._cut()
        top = self.top
        running = self._running(placements)
        most = max(running, default=0) or 1
        self.parts.append(f'<path class="line" d="M0 {top:.1f}H{WIDTH:.0f}"/>')
        figures = (count_of(len(placements), "task"), f"{most:,} at once")
        self._words(name, below, figures, (True, True), top + height / 2)
        width = (RIGHT - LEFT) / CROWD_STEPS
        floor = top + height - 2
        steps = "".join(
            f"V{floor - (height - 6) * number / most:.1f}h{width:.3f}" for number in running
        )
        self.parts.append(
            f'<path class="crowd" d="M{LEFT:.1f} {floor:.1f}{steps}V{floor:.1f}z">'
            f"<title>{escape(name)}: how many tasks run, {most:,} at most</title></path>"
        )
        self.top += height

    def _running(self, placements: Sequence[Placement]) -> list[int]:
        # By slice of the width how many run in it.
        change = [0] * (CROWD_STEPS + 1)
        for each in placements:
            first, last = (
                (self.axis.at(moment) - LEFT) / (RIGHT - LEFT) * CROWD_STEPS
                for moment in (each.start, each.end)
            )
            begin = min(int(first), CROWD_STEPS - 1)
            change[begin] += 1
            change[max(begin + 1, min(math.ceil(last), CROWD_STEPS))] -= 1
        return list(accumulate(change[:CROWD_STEPS]))

    def _words(
        self, name: str, below: str, figures: tuple[str, str], good: tuple[bool, bool], y: float
    ) -> None:
        shown = escape(shorten(name, _NAME_LENGTH))
        self.parts.append(
            f'<text class="name" x="0" y="{y - 2:.1f}">{shown}'
            f"<title>{escape(name)}</title></text>"
            f'<text class="small" x="0" y="{y + 10:.1f}">{escape(shorten(below, 26))}</text>'
        )
        for place, (text, well) in enumerate(zip(figures, good, strict=True)):
            tone = "small" if well else "small bad"
            line = y - 2 + 12 * place
            self.parts.append(
                f'<text class="{tone}" x="{RIGHT + 12:.0f}" y="{line:.1f}">{escape(text)}</text>'
            )

    def _bars(
        self, placements: Sequence[Placement], lane: Sequence[int], top: float, step: float
    ) -> Iterator[str]:
        gap = 1.5 if step > 6 else 0.5
        for placement, number in zip(placements, lane, strict=True):
            left = self.axis.at(placement.start)
            width = self.axis.at(placement.end) - left
            # Neighbours stay apart where there is room for that, and the shortest are seen.
            shown = width - 0.7 if width > 3 else max(width, 0.7)
            y = top + number * step + gap / 2
            key = placement.key
            deep = key in self.picture.critical or key in self.picture.holding
            kind = f"bar c{self.picture.color.get(key, 0)}"
            kind += " critical" if key in self.picture.critical else " holding" if deep else ""
            title = f"<title>{escape(self.title(placement))}</title>" if self.titled else ""
            yield (
                f'<rect class="{kind}" x="{left:.2f}" y="{y:.1f}" width="{shown:.2f}" '
                f'height="{step - gap:.1f}">{title}</rect>'
            )
            room = int((width - 6) / _CHARACTER)
            if step >= 11 and room >= 3:
                tone = "task on" if deep else "task"
                text = escape(shorten(placement.task, room))
                base = y + (step - gap) / 2 + 3.2
                yield f'<text class="{tone}" x="{left + 3:.1f}" y="{base:.1f}">{text}</text>'

    def title(self, placement: Placement) -> str:
        """Returns what is said of a bar when it is pointed at."""
        resources = " + ".join(
            each.resource if each.units == 1 else f"{each.units} × {each.resource}"
            for each in placement.demands
        )
        return (
            f"{placement.workflow} / {placement.task}\n{resources}\n"
            f"{self.axis.when(placement.start)} to {self.axis.when(placement.end)} "
            f"({duration(placement.end - placement.start)}), costs {money(placement.cost)}"
        )

    def _due(self, due: float, top: float, height: float, *, late: bool) -> str:
        x = self.axis.at(due)
        tone = "due late" if late else "due"
        if due > self.axis.end:
            middle = top + height / 2
            return f'<path class="{tone}" d="M{x - 5:.1f} {middle - 4:.1f}l5 4l-5 4"/>'
        return (
            f'<path class="{tone}" d="M{x:.1f} {top + 1:.1f}v{height - 2:.1f}m-4 0h8"/>'
            f'<path class="{tone} flag" d="M{x:.1f} {top + 1:.1f}h6l-2 3l2 3h-6z"/>'
        )

    def _cut(self) -> None:
        self.pieces.append((self.parts, self.top))
        self.parts, self.top = [], self.HEAD

    def render(self, key: str, title: str) -> str:
        """Returns the chart as one or more `<svg>` elements, each with the time axis."""
        if self.parts:
            self._cut()
        total = len(self.pieces)
        return "\n".join(
            self._piece(
                parts,
                bottom,
                f"{key}-{number}",
                title if total == 1 else f"{title}, part {number} of {total}",
            )
            for number, (parts, bottom) in enumerate(self.pieces, 1)
        )

    def _piece(self, parts: Sequence[str], bottom: float, key: str, title: str) -> str:
        grid = []
        for moment, label in self.axis.ticks(9):
            x = self.axis.at(moment)
            grid.append(
                f'<path class="grid" d="M{x:.1f} {self.HEAD - 4:.0f}V{bottom:.1f}"/>'
                f'<text class="tick" x="{x:.1f}" y="{self.HEAD - 8:.0f}">{escape(label)}</text>'
            )
        if self.axis.bend < math.inf:
            x = self.axis.at(self.axis.bend)
            grid.append(
                f'<path class="bend" d="M{x:.1f} {self.HEAD - 4:.0f}V{bottom:.1f}"/>'
                f'<text class="tick" x="{x:.1f}" y="{self.HEAD - 8:.0f}">⋯</text>'
            )
        now = self.picture.problem.now
        if self.axis.begin < now:
            x = self.axis.at(now)
            grid.append(f'<path class="now" d="M{x:.1f} {self.HEAD - 4:.0f}V{bottom:.1f}"/>')
        head = (
            f'<svg class="gantt" viewBox="0 0 {WIDTH:.0f} {bottom + self.FOOT:.0f}" role="img" '
            f'aria-labelledby="{key}"><title id="{key}">{escape(title)}</title>'
        )
        foot = f'<path class="line" d="M0 {bottom:.1f}H{WIDTH:.0f}"/></svg>'
        return "\n".join([head, *grid, *parts, foot])
