"""Where the bars of a plan's charts go."""

import math

from broker.io.moments import CALENDAR_BEGINS
from lrms_sim.report.time_axis import Axis


def axis_of(
    begin: float,
    end: float,
    *,
    left: float,
    right: float,
    now: float,
    bend: float = math.inf,
) -> Axis:
    """Returns the axis of a chart; dates are shown as such, times of studies count from `now`.

    `begin`, `end` and `now` are in seconds, as is `bend`, after which time is drawn narrower.
    """
    end = end if end > begin else begin + 1.0
    return Axis(begin, end, left, right, None if now >= CALENDAR_BEGINS else now, bend)


def lane_height(count: int, *, room: float = 56.0, least: float = 3.5, most: float = 15.0) -> float:
    """Returns the height of a lane in a row of so many lanes, which share a room if possible."""
    return min(max(room / max(count, 1), least), most)
