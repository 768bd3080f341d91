"""The time axis of a Gantt chart: scale and ticks."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from lrms_sim.util.messages import NOTHING, duration

_STEPS: Final = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10_800, 21_600, 43_200),
    *(86_400, 172_800, 604_800, 1_209_600, 2_419_200, 7_862_400, 31_449_600),
)
"""Seconds between ticks that people find round."""

DAY = 86_400

BEND_SHARE: Final = 0.85
"""Share of the width that the time before a bend has."""

BEND_BELOW: Final = 0.2
"""Charts bend where nearly all tasks end within this share of the time."""

BEND_LEAST: Final = 4
"""Fewer tasks than these need no bend."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A span of time on paper.

    Attributes:
        begin: seconds, at the left.
        end: seconds, at the right; after `begin`.
        left: where it begins.
        right: where it ends.
        origin: of ticks; `None` if they show the time of day.
        bend: seconds; time after it is drawn narrower, so that a few late tasks do not squeeze all
            others. Infinite for none.
        spell: returns the label of a nonzero time since the origin.
    """

    begin: float
    end: float
    left: float
    right: float
    origin: float | None
    bend: float = math.inf
    spell: Callable[[float], str] = duration

    @property
    def narrowing(self) -> float:
        """How many times narrower time is drawn after the bend; 1 without one."""
        if self.bend == math.inf:
            return 1.0
        after = (1 - BEND_SHARE) / (self.end - self.bend)
        return BEND_SHARE / (self.bend - self.begin) / after

    def at(self, moment: float) -> float:
        """Returns where a moment lies; moments outside at the border."""
        if self.bend == math.inf:
            share = (moment - self.begin) / (self.end - self.begin)
        elif moment <= self.bend:
            share = BEND_SHARE * (moment - self.begin) / (self.bend - self.begin)
        else:
            after = (moment - self.bend) / (self.end - self.bend)
            share = BEND_SHARE + (1 - BEND_SHARE) * after
        return self.left + min(max(share, 0.0), 1.0) * (self.right - self.left)

    def ticks(self, most: int) -> Iterator[tuple[float, str]]:
        """Yields moments and their labels, at most so many and one; and the end after a bend."""
        if self.bend < math.inf:
            yield from replace(self, end=self.bend, bend=math.inf).ticks(most - 2)
            yield self.end, self.label(self.end, DAY if self.end - self.bend >= DAY else 3600.0)
            return
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
        when = _date(moment)
        return f"{when.day} {when:%b %Y %H:%M:%S}" if when else _outside(moment)

    def label(self, moment: float, step: float = 1.0) -> str:
        """Returns how a moment is called: a time since the origin, or a time of day in UTC."""
        if self.origin is not None:
            return self.spell(moment - self.origin) if moment != self.origin else "0"
        if math.isinf(moment):
            return NOTHING
        when = _date(moment)
        if when is None:
            return _outside(moment)
        if step >= DAY or (moment % DAY == 0 and step >= 3600):
            return f"{when.day} {when:%b}"
        return f"{when:%H:%M:%S}" if step < 60 else f"{when:%H:%M}"


def _date(moment: float) -> datetime | None:
    # None outside of the calendar, which ends with the year 9999.
    try:
        return datetime.fromtimestamp(round(moment, 3), UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _outside(moment: float) -> str:
    return "after 9999" if moment > 0 else "before 1"


def bend_of(begin: float, ends: Iterable[float]) -> float:
    """Returns the time in seconds after which a chart is compressed; infinity for none.

    If all but the last twentieth of the tasks (one at least) end within the first fifth of the
    time, it is a little after that.
    """
    ordered = sorted(ends)
    if len(ordered) < BEND_LEAST:
        return math.inf
    most = ordered[len(ordered) - 1 - max(1, len(ordered) // 20)]
    if most <= begin or most - begin > BEND_BELOW * (ordered[-1] - begin):
        return math.inf
    return most + 0.05 * (most - begin)
