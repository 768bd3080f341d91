"""The circuit breaker: if exchange has cost local users too much, the site pauses it.

The effect of exchange is computed from the site's own journal (`grms.site.accounting.counterfactual`): completed jobs
of local users as they ran, compared with a replay of the same jobs without partners. It lags, as the run
time of running jobs is unknown. So the circuit breaker is a periodic check rather than a rule of each decision.

It is stateless: whether exchange is stopped follows from the journal and these numbers alone, so that a
restart yields the same result. docs/fair-exchange.md explains it for operators.
"""

import math
from dataclasses import dataclass
from typing import Final

DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class CircuitBreakerFound:
    """Result of the circuit breaker's latest check.

    Attributes:
        looked: its time, seconds on the site's clock.
        jobs: compared jobs of local users.
        improvement: 1 - AWRT as it was / AWRT alone; nan without jobs.
        stopped_since: the first of the consecutive checks that stopped exchange, seconds; nan otherwise.
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
class CircuitBreaker:
    """Parameters of the circuit breaker.

    Attributes:
        cost: largest tolerated loss, as a fraction of the AWRT that local users would have had alone; at
            least 0.
        window: age up to which completed jobs count, seconds, more than 0.
        jobs: with fewer jobs in the window there is no verdict, and exchange continues; at least 1.
        period: between two checks, seconds, more than 0.
        since: only jobs that have ended after this moment count, seconds; lets an operator start afresh.
    """

    cost: float = 0.02
    window: float = 90 * DAY
    jobs: int = 100
    period: float = 3600.0
    since: float = -math.inf

    def __post_init__(self) -> None:
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
        """Returns whether exchange is stopped, given the compared jobs and their improvement (nan: none)."""
        return jobs >= self.jobs and improvement < -self.cost

    def found(
        self, before: CircuitBreakerFound | None, now: float, jobs: int, improvement: float
    ) -> CircuitBreakerFound:
        """Returns the result of a check at `now` (seconds); the other arguments are as in `stops`."""
        since = math.nan
        if self.stops(jobs, improvement):
            since = before.stopped_since if before is not None and before.stops else now
        return CircuitBreakerFound(now, jobs, improvement, since)
