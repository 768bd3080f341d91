"""Pauses between attempts, whether another makes sense, and limits of rates."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # It is slow to import, and not needed by users' commands.
    import numpy as np


def pause_after(failures: int, first_s: float, most_s: float, factor: float = 2.0) -> float:
    """Returns the pause in seconds after `failures` in a row: 0 after none.

    The first is `first_s`, each further one `factor` times longer, up to `most_s`.
    """
    if failures < 1:
        return 0.0
    length_s = first_s
    for _ in range(failures - 1):
        if length_s >= most_s:
            break
        length_s *= factor
    return min(length_s, most_s)


@dataclass(frozen=True, slots=True)
class BackoffSettings:
    """Pauses between attempts.

    Attributes:
        first_s: the first pause, seconds, more than 0.
        most_s: the longest, seconds; at least the first.
        factor: ratio of successive pauses, more than 1.
    """

    first_s: float = 0.5
    most_s: float = 60.0
    factor: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.first_s <= self.most_s < math.inf:
            raise ValueError(
                f"first_s is {self.first_s} and most_s {self.most_s}; the first must be more than "
                "0 and not more than the other, which must be finite"
            )
        if not 1 < self.factor < math.inf:
            raise ValueError(f"factor is {self.factor}; it must be finite and more than 1")


class Backoff:
    """The pauses between repeated attempts.

    With `rng` each pause is drawn between half its length and all of it, so that the many clients of a failed
    server do not return at the same moment.
    """

    def __init__(self, settings: BackoffSettings, rng: "np.random.Generator | None" = None) -> None:
        self._settings = settings
        self._rng = rng
        self._failures = 0

    def next_s(self) -> float:
        """Returns the pause after one more failure, in seconds."""
        settings = self._settings
        self._failures += 1
        length_s = pause_after(self._failures, settings.first_s, settings.most_s, settings.factor)
        return length_s if self._rng is None else length_s * float(self._rng.uniform(0.5, 1.0))

    def reset(self) -> None:
        """Begins anew with the first pause, after a success."""
        self._failures = 0


_GONE: Final = frozenset({"UNAVAILABLE", "CANCELLED"})

_BROKEN: Final = "Internal error from Core"


def is_absent(error: Any) -> bool:
    """Returns whether a call has failed because its daemon is away, stopping, or has just ended.

    Another attempt may succeed when the daemon is back. The end of a server turns pending calls into CANCELLED (a
    caller's own cancellation is no such error); for a connection that broke before a call began, gRPC reports
    INTERNAL, in words that no daemon uses.
    """
    code = error.code().name
    return code in _GONE or (code == "INTERNAL" and (error.details() or "").startswith(_BROKEN))


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


TIMEOUT_S: Final = 30.0
"""Default timeout of a client's call with its retries, seconds."""

PAUSES: Final = BackoffSettings(first_s=0.1, most_s=2.0)
"""Between attempts to reach the daemon."""


def attempts(timeout_s: float) -> tuple[float, Backoff]:
    """Returns until when a call is tried (`time.monotonic`), and the pauses between attempts to reach the daemon.

    `timeout_s` is the timeout of the call with its retries, seconds.
    """
    return time.monotonic() + timeout_s, Backoff(PAUSES)
