"""The broker's clock: real time, or time that runs faster, for trying things out.

Only the daemon reads it; the state is told what time it is.
"""

import math
import time

from grms.kit.behind import going_on

REST_MAX_S = 3600.0
"""Longest single sleep, real seconds: a moment may be further away than a timer reaches."""


class Clock:
    """Seconds that never go back.

    With speed 1 and no origin these are seconds since 1970. Otherwise the clock shows 0 at the
    origin; sites that share it need the same speed and origin.

    Args:
        speed: seconds of this clock for a real one, more than 0.
        origin: real time, seconds since 1970, at which it shows 0.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __init__(self, speed: float = 1.0, origin: float = 0.0) -> None:
        if not (math.isfinite(speed) and speed > 0):
            raise ValueError(f"speed is {speed}; it must be finite and more than 0")
        if not math.isfinite(origin):
            raise ValueError(f"origin is {origin}; it must be finite")
        self.speed = speed
        # Steps of the system's clock are not followed.
        self._origin = origin + time.monotonic() - time.time()
        self._begin, self._since = -math.inf, 0.0

    def go_on_from(self, moment: float) -> float:
        """Goes on from a moment that it has not reached, at half its speed, until it has caught up.

        So a journal goes on that was written while the system's clock was ahead: nothing is noted
        before what was noted already, and everything that waits for time goes on.

        Args:
            moment: seconds; minus infinity for none.

        Returns:
            By how much the moment is ahead, seconds; 0 where it is past.
        """
        self._since = self._shown()
        self._begin = moment if moment > self._since else -math.inf
        return max(0.0, moment - self._since)

    def now(self) -> float:
        """Returns the time, seconds."""
        return going_on(self._shown(), self._begin, self._since)

    def _shown(self) -> float:
        return (time.monotonic() - self._origin) * self.speed

    def rest_s(self, moment: float) -> float | None:
        """Returns for how long to sleep until a moment, real seconds; None for ever."""
        if moment == math.inf:
            return None
        return min(max(0.0, (moment - self.now()) / self.speed), REST_MAX_S)
