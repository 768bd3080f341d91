"""The table `[circuit_breaker]` of a site's file: when exchange stands still."""

import math
from datetime import datetime
from typing import Annotated

from pydantic import Field, field_validator

from grms.daemon.config_base import Count, Model, wrong
from grms.policy.circuit_breaker import CircuitBreaker
from grms.policy.constraints import Period

_STANDARD = CircuitBreaker()
_PERIOD_MIN_S = 60.0


class CircuitBreakerConfig(Model):
    """A circuit breaker over what exchange costs own users.

    Attributes:
        cost: of the AWRT that own users would have had alone, a part; more than that stops exchange.
        window: jobs that have ended in so long count.
        jobs: with fewer in the window exchange goes on.
        every: between two looks at the journal, at least a minute.
        since: only jobs that have ended after it count: a date with a zone, or seconds on the site's
            clock.
    """

    cost: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = _STANDARD.cost
    window: Period = _STANDARD.window
    jobs: Count = _STANDARD.jobs
    every: Period = _STANDARD.period
    since: datetime | Annotated[float, Field(allow_inf_nan=False)] | None = None

    @field_validator("every")
    @classmethod
    def _check_every(cls, value: float) -> float:
        if value < _PERIOD_MIN_S:
            raise wrong(f"is {value:g} s; it must be at least 1min")
        return value

    @field_validator("since")
    @classmethod
    def _check_zone(cls, value: datetime | float | None) -> datetime | float | None:
        if isinstance(value, datetime) and value.tzinfo is None:
            raise wrong(f"is {value} of no zone; write {value.isoformat()}Z for Greenwich")
        return value

    @property
    def circuit_breaker(self) -> CircuitBreaker:
        """The circuit breaker that this describes."""
        since = self.since
        if since is None:
            since = -math.inf
        elif isinstance(since, datetime):
            since = since.timestamp()
        return CircuitBreaker(self.cost, self.window, self.jobs, self.every, since)


def circuit_breaker_of(table: CircuitBreakerConfig | None) -> CircuitBreaker | None:
    """Returns the circuit breaker of a site; `None` if its file has no such table."""
    return None if table is None else table.circuit_breaker
