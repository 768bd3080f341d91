"""A run as a Gantt chart: time to the right, processors upward, a colour for each job.

A bar is a stretch on constant processors, hatched if these were fewer than requested. A line leads
from a suspension to the resumption.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from lrms_sim.malleable.log import Allocation, AllocationLog
from lrms_sim.report.gantt import Bar, Gantt, Row, packed
from lrms_sim.report.templates import alone
from lrms_sim.report.time_axis import Axis

STRETCHES_MAX: Final = 20_000
"""More are no picture any more."""

WIDTH: Final = 1120.0

_LEFT: Final = 52.0
_ROOM: Final = 356.0
_GAP: Final = 24.0
_DAY: Final = 86400.0


def draw(
    log: AllocationLog, *, title: str, begin: float | None = None, end: float | None = None
) -> str:
    """Draws a span of a run, in seconds, as an SVG document.

    The default is from the first start to the last end.

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
    """Returns the row of one machine; a job that continues keeps its processors.

    `allocations` are in the order of their starts, `size` is the number of processors, and `unit`
    the height of one.

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
