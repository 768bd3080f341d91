"""A site's processors over time as inline SVG: batch jobs, and the workflows' tasks above them.

Every bar is as high as it has processors. Which of them a job has is not part of a schedule; here
it gets the lowest that are free, in pieces where need be. Colours are variables of the page.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from broker.pictures.layout import axis_of
from lrms_sim.spelling import duration, shorten

WIDTH: Final = 820.0
"""Width of the chart in its own units."""

LEFT: Final = 96.0
RIGHT: Final = 820.0
TOP: Final = 22.0
GAP: Final = 5.0
"""Between two machines."""

BARS_MAX: Final = 3000
"""Most jobs of one chart; beyond, those with the least work are left out."""

_HEIGHT: Final = 230.0
_LEAST: Final = 9.0
_CHARACTER: Final = 5.6
_ROUNDING: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Bar:
    """A run.

    Attributes:
        begin: seconds.
        end: seconds.
        processors: that it has.
        color: the number of its colour, for tasks; None for batch jobs.
        title: what it is, for who points at it.
        label: in the bar where there is room.
    """

    begin: float
    end: float
    processors: int
    color: int | None
    title: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Band:
    """A machine: the batch machine, or a resource that can be reserved.

    Attributes:
        name: at the left.
        processors: that it has.
        bars: in order of their begins.
        broken: begin and end of its breakdowns, seconds.
    """

    name: str
    processors: int
    bars: Sequence[Bar]
    broken: Sequence[tuple[float, float]] = ()


def machine_chart(bands: Sequence[Band], span: tuple[float, float], *, key: str, title: str) -> str:
    """Returns the chart as an `<svg>` element.

    Args:
        bands: from top to bottom.
        span: begin and end of the time axis, seconds.
        key: unique within the page.
        title: for those who cannot see it.
    """
    total = sum(band.processors for band in bands)
    unit = _HEIGHT / max(total, 1)
    axis = axis_of(*span, left=LEFT, right=RIGHT, now=0.0)
    parts: list[str] = []
    top = TOP
    for band in bands:
        height = max(_LEAST, band.processors * unit)
        parts.append(
            f'<rect class="room" x="{LEFT:.0f}" y="{top:.1f}" width="{RIGHT - LEFT:.0f}" '
            f'height="{height:.1f}"/>'
        )
        for begin, end in band.broken:
            left, right = axis.at(begin), axis.at(end)
            parts.append(
                f'<rect class="broken" x="{left:.1f}" y="{top:.1f}" '
                f'width="{right - left:.1f}" height="{height:.1f}"><title>'
                f"{escape(band.name)} is broken for {duration(end - begin)}</title></rect>"
            )
        middle = top + height / 2 + 3.6
        name = escape(shorten(band.name, 16))
        parts.append(f'<text x="0" y="{middle:.1f}">{name}</text>')
        seen = [bar for bar in band.bars if bar.end > span[0] and bar.begin < span[1]]
        step = height / band.processors
        for bar, first, count in _placed(_largest(seen), band.processors):
            parts.append(
                _drawn(bar, axis.at(bar.begin), axis.at(bar.end), top + first * step, count * step)
            )
        top += height + GAP
    bottom = top - GAP
    grid = [
        f'<path class="tick" d="M{axis.at(moment):.1f} {TOP - 4:.0f}V{bottom:.1f}"/>'
        f'<text class="when" x="{axis.at(moment):.1f}" y="{TOP - 8:.0f}">{escape(label)}</text>'
        for moment, label in axis.ticks(9)
    ]
    head = (
        f'<svg class="chart machines" viewBox="0 0 {WIDTH:.0f} {bottom + 4:.0f}" role="img" '
        f'aria-labelledby="{key}"><title id="{key}">{escape(title)}</title>'
    )
    return "\n".join((head, *parts, *grid, "</svg>"))


def _largest(bars: Sequence[Bar]) -> list[Bar]:
    if len(bars) <= BARS_MAX:
        return list(bars)
    work = sorted(bars, key=lambda bar: -bar.processors * (bar.end - bar.begin))[:BARS_MAX]
    kept = {id(bar) for bar in work}
    return [bar for bar in bars if id(bar) in kept]


def _placed(bars: Iterable[Bar], processors: int) -> Iterable[tuple[Bar, int, int]]:
    """Yields bars with the first of their processors and how many follow, in pieces."""
    free = list(range(processors))
    heapq.heapify(free)
    running: list[tuple[float, int, list[int]]] = []
    for number, bar in enumerate(bars):
        while running and running[0][0] <= bar.begin + _ROUNDING:
            for place in heapq.heappop(running)[2]:
                heapq.heappush(free, place)
        taken = [heapq.heappop(free) for _ in range(min(bar.processors, len(free)))]
        heapq.heappush(running, (bar.end, number, taken))
        first = 0
        for index in range(1, len(taken) + 1):
            if index == len(taken) or taken[index] != taken[index - 1] + 1:
                yield bar, taken[first], index - first
                first = index


def _drawn(bar: Bar, left: float, right: float, top: float, height: float) -> str:
    width = max(right - left, 0.6)
    kind = "job" if bar.color is None else "task"
    color = "" if bar.color is None else f' style="--site:var(--site-{bar.color})"'
    drawn = (
        f'<rect class="{kind}"{color} x="{left:.2f}" y="{top:.2f}" width="{width:.2f}" '
        f'height="{height:.2f}"><title>{escape(bar.title)}</title></rect>'
    )
    room = int((width - 4) / _CHARACTER)
    if bar.label and height >= _LEAST and room >= len(bar.label):
        drawn += (
            f'<text class="on" x="{left + 2.5:.1f}" y="{top + height / 2 + 3.4:.1f}">'
            f"{escape(bar.label)}</text>"
        )
    return drawn
