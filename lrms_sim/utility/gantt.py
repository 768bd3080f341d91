"""A run as a picture: time to the right, processors upward, a job in one colour.

A bar is a stretch in which a job held its processors; it is hatched where these were fewer than the
job asked for. A line leads from where a job was suspended to where it went on.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from lrms_sim.utility.log import Allocation, AllocationLog

STRETCHES_MAX: Final = 20_000
"""More are no picture any more."""

WIDTH: Final = 1120.0
HEIGHT: Final = 420.0
_LEFT: Final = 52.0
_TOP: Final = 30.0
_BOTTOM: Final = 34.0
_GAP: Final = 24.0

_STYLE: Final = """
svg{background:var(--paper);font:11px system-ui,sans-serif;--paper:#fff;--ink:#1d2733;--grid:#d5dbe1}
@media(prefers-color-scheme:dark){svg{--paper:#14191f;--ink:#dfe5ea;--grid:#39434d}}
text{fill:var(--ink)} .grid{stroke:var(--grid)} .wait{stroke:var(--ink);stroke-dasharray:2 2;fill:none}
.job{stroke:var(--paper);stroke-width:.6} .less{fill:url(#less);pointer-events:none}
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch on neighbouring processors.

    Attributes:
        allocation: whose.
        first: lowest processor, counted from 0.
        count: how many.
    """

    allocation: Allocation
    first: int
    count: int


def bars(allocations: list[Allocation], processors: int) -> list[Bar]:
    """Gives stretches on one machine processors by number, the lowest that are free.

    A job that goes on with other processors keeps those it has.

    Args:
        allocations: in the order of their starts.
        processors: of the machine.

    Returns:
        One bar for each run of neighbouring processors.

    Raises:
        ValueError: at some time they hold more than there is.
    """
    free = set(range(processors))
    held: list[tuple[float, int, set[int]]] = []
    last: dict[int, set[int]] = {}
    found: list[Bar] = []
    for each in allocations:
        for entry in [e for e in held if e[0] <= each.start]:
            held.remove(entry)
            free |= entry[2]
        mine = sorted(last.get(each.job, set()) & free) + sorted(free - last.get(each.job, set()))
        if len(mine) < each.processors:
            raise ValueError(f"job {each.job} finds {len(mine)} of {each.processors} processors")
        taken = set(mine[: each.processors])
        free -= taken
        last[each.job] = taken
        held.append((each.end, each.job, taken))
        found += [Bar(each, first, count) for first, count in _neighbours(sorted(taken))]
    return found


def _neighbours(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = previous = numbers[0]
    for number in numbers[1:]:
        if number != previous + 1:
            yield first, previous - first + 1
            first = number
        previous = number
    yield first, previous - first + 1


def draw(
    log: AllocationLog, *, title: str, begin: float | None = None, end: float | None = None
) -> str:
    """Draws a span of a run as an SVG document.

    Args:
        log: of the run.
        title: above the picture.
        begin: of the span, in seconds; the first start where left out.
        end: of the span; the last end where left out.

    Raises:
        ValueError: the span is empty, or holds more than `STRETCHES_MAX` stretches.
    """
    every = log.allocations(end)
    first = min((each.start for each in every), default=0.0) if begin is None else begin
    last = max((each.end for each in every), default=1.0) if end is None else end
    if not last > first:
        raise ValueError(f"the picture's span is from {first:g} to {last:g}; it must be upward")
    shown = [each for each in every if each.end > first and each.start < last]
    if len(shown) > STRETCHES_MAX:
        raise ValueError(
            f"{len(shown)} stretches in the picture's span; at most {STRETCHES_MAX} can be told "
            "apart: give a shorter span"
        )
    rows = sum(log.processors) + 0.0
    room = HEIGHT - _TOP - _BOTTOM - _GAP * (len(log.processors) - 1)
    scale = room / rows
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img">',
        f"<style>{_STYLE}</style>",
        (
            '<defs><pattern id="less" width="5" height="5" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><path d="M0 0V5" stroke="#000" stroke-opacity=".55" '
            'stroke-width="2"/></pattern></defs>'
        ),
        f'<text x="{_LEFT:g}" y="18" font-weight="600">{escape(title)}</text>',
        (
            '<text x="1108" y="18" text-anchor="end">hatched: fewer processors than asked for; '
            "dashed: suspended</text>"
        ),
    ]
    top = _TOP
    for machine, size in enumerate(log.processors):
        mine = [each for each in shown if each.machine == machine]
        parts += _machine(log, mine, size, (first, last), (top, scale))
        top += size * scale + _GAP
    parts.append(_axis(first, last, HEIGHT - _BOTTOM))
    return "\n".join([*parts, "</svg>", ""])


def _machine(
    log: AllocationLog,
    allocations: list[Allocation],
    size: int,
    span: tuple[float, float],
    place: tuple[float, float],
) -> Iterator[str]:
    (first, last), (top, scale) = span, place
    bottom = top + size * scale
    yield f'<path class="grid" fill="none" d="M{_LEFT:g} {top:.1f}V{bottom:.1f}H{WIDTH - 12:g}"/>'
    yield f'<text x="{_LEFT - 6:g}" y="{top + 9:.1f}" text-anchor="end">{size}</text>'
    yield f'<text x="{_LEFT - 6:g}" y="{bottom:.1f}" text-anchor="end">0</text>'
    lanes: dict[int, list[tuple[Allocation, float]]] = {}
    for bar in bars(allocations, size):
        each = bar.allocation
        x, right = _x(max(each.start, first), span), _x(min(each.end, last), span)
        y, height = bottom - (bar.first + bar.count) * scale, bar.count * scale
        box = f'x="{x:.2f}" y="{y:.2f}" width="{max(right - x, 0.4):.2f}" height="{height:.2f}"'
        asked = int(log.workload.jobs.processors[each.job])
        number = int(log.workload.jobs.job_id[each.job])
        hue = number * 137.508 % 360
        yield (
            f'<rect class="job" {box} fill="hsl({hue:.0f} 52% 58%)"><title>job {number}: '
            f"{each.processors} of {asked} processors, {each.start:g} to {each.end:g}"
            f"{', ' + each.ending if each.ending else ''}</title></rect>"
        )
        if each.processors < asked:
            yield f'<rect class="less" {box}/>'
        if right - x > 22 and height > 10:
            yield f'<text x="{x + 3:.1f}" y="{y + height / 2 + 4:.1f}">{number}</text>'
        lanes.setdefault(each.job, []).append((each, y + height / 2))
    for stretches in lanes.values():
        for (before, y0), (after, y1) in pairwise(stretches):
            if before.ending == "suspend" and after.start >= before.end:
                x0, x1 = _x(max(before.end, first), span), _x(min(after.start, last), span)
                yield f'<path class="wait" d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"/>'


def _x(time: float, span: tuple[float, float]) -> float:
    first, last = span
    return _LEFT + (WIDTH - 12 - _LEFT) * (time - first) / (last - first)


def _axis(first: float, last: float, y: float) -> str:
    days = last - first >= 2 * 86400
    parts = []
    for step in range(6):
        time = first + (last - first) * step / 5
        text = f"day {time / 86400:.1f}" if days else f"{time:,.0f}"
        anchor = "start" if step == 0 else "end" if step == 5 else "middle"
        x = _x(time, (first, last))
        parts.append(f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="{anchor}">{text}</text>')
    return "".join(parts)
