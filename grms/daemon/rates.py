"""Rate limits per caller, and for repeated reports."""

import time
from collections.abc import Callable
from typing import Final

BURST_S: Final = 10.0
"""Seconds' worth of calls that may come at once."""

BUCKETS_MAX: Final = 10_000
"""Callers whose rates are remembered."""


class Rate:
    """Limits calls per caller to `per_s` a second, with a burst of ten seconds' worth.

    `clock` is in real seconds.
    """

    def __init__(self, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._most = max(1.0, per_s * BURST_S)
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait_s(self, caller: str) -> float:
        """Counts a call, or returns after how many seconds it could be made; 0 for now."""
        now = self._clock()
        tokens, last = self._buckets.pop(caller, (self._most, now))
        tokens = min(self._most, tokens + (now - last) * self._per_s)
        wait = 0.0 if tokens >= 1.0 else (1.0 - tokens) / self._per_s
        self._buckets[caller] = (tokens - 1.0 if wait == 0.0 else tokens, now)
        if len(self._buckets) > BUCKETS_MAX:
            del self._buckets[next(iter(self._buckets))]
        return wait


class Seldom:
    """Limits reports of recurring events: one now and then, with the number left out.

    `per_s` is the rate of equal reports, `clock` is in real seconds.
    """

    def __init__(self, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = Rate(per_s, clock)
        self._left_out: dict[str, int] = {}

    def to_tell(self, what: str) -> dict[str, int] | None:
        """Returns what to add to a report, `left_out` if any were; `None` for no report."""
        if self._rate.wait_s(what) > 0:
            self._left_out[what] = self._left_out.pop(what, 0) + 1
            if len(self._left_out) > BUCKETS_MAX:
                # The one that is longest ago may never recur.
                del self._left_out[next(iter(self._left_out))]
            return None
        return {"left_out": left} if (left := self._left_out.pop(what, 0)) else {}
