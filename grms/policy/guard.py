"""A guard: where exchange has cost a site's own users too much, the site takes no guests for a while.

What exchange has brought is computed from the site's own journal (`grms.site.care.alone`): its own users'
jobs that have ended, as it was, beside a replay of the same jobs without partners. It lags: of a job that
runs nobody knows how long. So the guard is no rule of a decision but a look from time to time.

It keeps nothing. Whether exchange stands still follows from the journal and these numbers alone, so that
a restart finds the same as the daemon before. docs/fair-exchange.md says what that means for operators.
"""

import math
from dataclasses import dataclass
from typing import Final

DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class GuardFound:
    """What a guard has found when it looked last.

    Attributes:
        looked: when it did, seconds on the site's clock.
        jobs: own users' jobs that were compared.
        improvement: 1 - AWRT as it was / AWRT alone, of these; nan where there is none.
        stopped_since: the first of the looks in a row that stopped exchange, seconds; nan while it goes on.
    """

    looked: float
    jobs: int
    improvement: float
    stopped_since: float

    @property
    def stops(self) -> bool:
        """Whether exchange stands still."""
        return not math.isnan(self.stopped_since)


@dataclass(frozen=True, slots=True)
class ExchangeGuard:
    """When exchange stands still.

    Attributes:
        cost: of the AWRT that own users would have had alone; more than that stops exchange. A part,
            at least 0.
        window: jobs that have ended in so long count, seconds, more than 0.
        jobs: with fewer jobs in the window nothing can be said, and exchange goes on; at least 1.
        period: between two looks, seconds, more than 0.
        since: only jobs that have ended after this moment count, seconds: how an operator begins anew.

    Raises:
        ValueError: a number is out of its bounds.
    """

    cost: float = 0.02
    window: float = 90 * DAY
    jobs: int = 100
    period: float = 3600.0
    since: float = -math.inf

    def __post_init__(self) -> None:
        """Checks the numbers."""
        if not 0 <= self.cost < math.inf:
            raise ValueError(f"cost is {self.cost}; it must be finite and at least 0")
        if self.jobs < 1:
            raise ValueError(f"jobs is {self.jobs}; it must be at least 1")
        for name in ("window", "period"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be finite and above 0")
        if math.isnan(self.since) or self.since == math.inf:
            raise ValueError(f"since is {self.since}; it must be a moment")

    def stops(self, jobs: int, improvement: float) -> bool:
        """Returns whether exchange stands still.

        Args:
            jobs: own users' jobs that have ended in the window and are compared.
            improvement: 1 - AWRT as it was / AWRT alone, of these; nan where there is none.
        """
        return jobs >= self.jobs and improvement < -self.cost

    def found(
        self, before: GuardFound | None, now: float, jobs: int, improvement: float
    ) -> GuardFound:
        """Returns what a look has found.

        Args:
            before: by the look before; None for the first one.
            now: seconds on the site's clock.
            jobs: see `stops`.
            improvement: same.
        """
        since = math.nan
        if self.stops(jobs, improvement):
            since = before.stopped_since if before is not None and before.stops else now
        return GuardFound(now, jobs, improvement, since)
