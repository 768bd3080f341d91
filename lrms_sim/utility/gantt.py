"""A run as a picture: time to the right, processors upward, a job in one colour.

A bar is a stretch in which a job held its processors; it is hatched where these were fewer than the
job asked for. A line leads from where a job was suspended to where it went on.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from lrms_sim.pages.gantt import Bar, Gantt, Row, packed
from lrms_sim.pages.templates import alone
from lrms_sim.pages.time_axis import Axis
from lrms_sim.utility.log import Allocation, AllocationLog

STRETCHES_MAX: Final = 20_000
"""More are no picture any more."""

WIDTH: Final = 1120.0
"""Width of a picture in its own units."""

_LEFT: Final = 52.0
_ROOM: Final = 356.0
_GAP: Final = 24.0
_DAY: Final = 86400.0


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
    days = last - first >= 2 * _DAY
    axis = Axis(
        *(first, last, _LEFT, WIDTH - 12, 0.0),
        spell=lambda time: f"day {time / _DAY:g}" if days else f"{time:,g}",
    )
    unit = (_ROOM - _GAP * (len(log.processors) - 1)) / sum(log.processors)
    picture = Gantt(
        "run",
        title,
        axis,
        [
            row(log, [each for each in shown if each.machine == machine], size, unit)
            for machine, size in enumerate(log.processors)
        ],
        WIDTH,
        gap=_GAP,
        heading=title,
        note="hatched: fewer processors than asked for; dashed: suspended",
        hatched=True,
    )
    return alone(str(picture))


def row(log: AllocationLog, allocations: Sequence[Allocation], size: int, unit: float) -> Row:
    """Returns what one machine did; a job that goes on with other processors keeps those it has.

    Args:
        log: of the run.
        allocations: on the machine, in the order of their starts.
        size: its processors.
        unit: height of one of them.

    Raises:
        ValueError: at some time they hold more than there is.
    """
    asked, numbers = log.workload.jobs.processors, log.workload.jobs.job_id
    bars = [
        Bar(
            each.start,
            each.end,
            title=f"job {numbers[each.job]}: {each.processors} of {asked[each.job]} processors, "
            f"{each.start:g} to {each.end:g}{', ' + each.ending if each.ending else ''}",
            label=str(numbers[each.job]),
            color=int(numbers[each.job]),
            kind="less" if each.processors < asked[each.job] else "",
        )
        for each in allocations
    ]
    counts = [each.processors for each in allocations]
    placed = packed(bars, counts, size, [each.job for each in allocations])
    stretches: dict[int, list[tuple[Allocation, float]]] = {}
    for each, pieces in zip(allocations, placed, strict=True):
        found = sum(round(piece.height) for piece in pieces)
        if found < each.processors:
            raise ValueError(f"job {each.job} finds {found} of {each.processors} processors")
        middle = pieces[-1].top + pieces[-1].height / 2
        stretches.setdefault(each.job, []).append((each, middle))
    links = [
        (before.end, y0, after.start, y1)
        for mine in stretches.values()
        for (before, y0), (after, y1) in pairwise(mine)
        if before.ending == "suspend" and after.start >= before.end
    ]
    every = [piece for pieces in placed for piece in pieces]
    return Row("", size * unit, every, size, links=links, sized=True)
