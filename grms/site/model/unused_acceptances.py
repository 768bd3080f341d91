"""A partner's use of its acceptances: does it send jobs that run, or only ask?

An offer that is accepted and withdrawn before its job has begun costs its maker nothing, and reveals something of
this site: enough of them, of chosen widths, measure its free processors. So acceptances that lead to no run are
budgeted for each partner: so many an hour, and one more for each of its jobs that has begun within a day, as an
honest partner sometimes no longer needs a place.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

UNUSED_WINDOW_S: Final = 3600.0
"""An acceptance that led to no run is held against a partner for so long, seconds."""

RUNS_WINDOW_H: Final = 24
"""A job that has begun speaks for its partner for so many hours."""

UNUSED_MAX: Final = 100_000
"""The most unused acceptances that are remembered of one partner; the oldest are forgotten first."""

_HOUR_S: Final = 3600.0


@dataclass(slots=True)
class AcceptanceBudget:
    """A partner's remaining unused acceptances.

    Attributes:
        unused: when acceptances were found to lead to no run, seconds, ascending.
        runs: number of the partner's jobs that have begun, by hour since the clock's zero.
        declined: number of offers declined as the budget was used up.
    """

    unused: deque[float] = field(default_factory=lambda: deque(maxlen=UNUSED_MAX))
    runs: dict[int, int] = field(default_factory=dict)
    declined: int = 0

    def note_unused(self, now: float) -> None:
        """Notes that a job was withdrawn before it began."""
        self.unused.append(now)

    def note_run(self, now: float) -> None:
        """Notes that a job has begun."""
        hour = _hour(now)
        self.runs[hour] = self.runs.get(hour, 0) + 1
        for old in [each for each in self.runs if each <= hour - RUNS_WINDOW_H]:
            del self.runs[old]

    def unused_lately(self, now: float) -> int:
        """Returns the number of acceptances within the last hour that have led to no run."""
        while self.unused and self.unused[0] <= now - UNUSED_WINDOW_S:
            self.unused.popleft()
        return len(self.unused)

    def left(self, now: float, per_hour: int) -> int:
        """Returns how many more acceptances may lead to no run before offers are declined; at least 0.

        A partner that runs nothing has `per_hour` of them. `now` is in seconds.
        """
        hour = _hour(now)
        ran = sum(count for each, count in self.runs.items() if each > hour - RUNS_WINDOW_H)
        return max(0, per_hour + ran - self.unused_lately(now))


def _hour(now: float) -> int:
    return int(min(now, 2.0**53) // _HOUR_S)  # the last moment of a replay is infinity
