"""Where the bars of a Gantt chart go, and where its time axis has ticks."""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from broker.moments import CALENDAR_BEGINS
from broker.plan import Placement
from lrms_sim.spelling import NOTHING, duration

_STEPS: Final = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10_800, 21_600, 43_200),
    *(86_400, 172_800, 604_800, 1_209_600, 2_419_200, 7_862_400, 31_449_600),
)
"""Seconds between ticks that people find round."""

DAY = 86_400


@dataclass(frozen=True, slots=True)
class Axis:
    """A span of time on paper.

    Attributes:
        begin: seconds, at the left.
        end: seconds, at the right; after `begin`.
        left: where it begins.
        right: where it ends.
        origin: what ticks count from; none where they show the time of day.
    """

    begin: float
    end: float
    left: float
    right: float
    origin: float | None

    def at(self, moment: float) -> float:
        """Returns where a moment lies; moments outside at the border."""
        share = (moment - self.begin) / (self.end - self.begin)
        return self.left + min(max(share, 0.0), 1.0) * (self.right - self.left)

    def ticks(self, most: int) -> Iterator[tuple[float, str]]:
        """Yields moments and their labels, at most so many and one."""
        step = next((s for s in _STEPS if (self.end - self.begin) / s <= most), None)
        step = step or (self.end - self.begin) / most
        base = self.origin or 0.0
        number = math.ceil((self.begin - base) / step - 1e-9)
        while base + number * step <= self.end:
            moment = base + number * step
            yield moment, self.label(moment, step)
            number += 1

    def when(self, moment: float) -> str:
        """Returns a moment in full."""
        if self.origin is not None or math.isinf(moment):
            return self.label(moment)
        when = datetime.fromtimestamp(round(moment, 3), UTC)
        return f"{when.day} {when:%b %Y %H:%M:%S}"

    def label(self, moment: float, step: float = 1.0) -> str:
        """Returns how a moment is called: a time since the origin, or a time of day in UTC."""
        if self.origin is not None:
            return duration(moment - self.origin) if moment != self.origin else "0"
        if math.isinf(moment):
            return NOTHING
        when = datetime.fromtimestamp(round(moment, 3), UTC)
        if step >= DAY or (moment % DAY == 0 and step >= 3600):
            return f"{when.day} {when:%b}"
        return f"{when:%H:%M:%S}" if step < 60 else f"{when:%H:%M}"


def axis_of(begin: float, end: float, *, left: float, right: float, now: float) -> Axis:
    """Returns the axis of a chart; dates of the calendar are shown as such, times of studies not.

    Args:
        begin: seconds.
        end: seconds.
        left: where the axis begins on paper.
        right: where it ends.
        now: seconds; where times of a study count from.
    """
    end = end if end > begin else begin + 1.0
    return Axis(begin, end, left, right, None if now >= CALENDAR_BEGINS else now)


def lanes(placements: Sequence[Placement]) -> list[int]:
    """Returns a lane for each placement so that no two overlap in one; as few lanes as possible.

    Args:
        placements: in order of their starts.
    """
    free: list[int] = []
    running: list[tuple[float, int]] = []
    found = []
    used = 0
    for each in placements:
        while running and running[0][0] <= each.start:
            heapq.heappush(free, heapq.heappop(running)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, used = used, used + 1
        heapq.heappush(running, (each.end, lane))
        found.append(lane)
    return found


def lane_height(count: int, *, room: float = 56.0, least: float = 3.5, most: float = 15.0) -> float:
    """Returns the height of a lane in a row of so many: they share a room as long as they can."""
    return min(max(room / max(count, 1), least), most)
