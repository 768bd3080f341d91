"""The clocks of daemons: real time, scaled time, and time that a coordinator tells.

The first two are made to go on from a moment that they have not reached yet (`BehindClock`), where a
journal was written while the system's clock was ahead.

All tell seconds as a float. Nothing below the daemon reads a clock: `now` is handed down.
"""

import asyncio
import heapq
import itertools
import math
import time
from abc import ABC, abstractmethod
from typing import Final, Protocol

AHEAD_S: Final = 86_400.0
"""How far the last record may be ahead of the clock without asking, real seconds."""

CATCHING_UP: Final = 0.5
"""Speed of a clock that waits for the true one to catch up, relative to it."""


def going_on(shown: float, begin: float, since: float) -> float:
    """Returns the time of a clock that continues from `begin`, slower, until the true one has caught up.

    `since` is what the true one showed at `begin`; all in seconds, with minus infinity for no begin.
    """
    return max(shown, begin + (shown - since) * CATCHING_UP)


def too_far_ahead(latest: float, ahead: float, speed: float, whose: str) -> str:
    """Returns why time cannot simply continue from a journal's last record; empty if it can.

    `latest` is the time of the record and `ahead` its lead over the clock, both in seconds; `speed` is in clock
    seconds per real second, `whose` names the clock.
    """
    if ahead <= AHEAD_S * speed:
        return ""
    return (
        f"the last record is of {latest:.3f} s, and {whose} clock shows {latest - ahead:.3f} s, "
        f"{ahead:.0f} s before it; set the system's clock (and [clock]) right, or, where they are, start "
        "once with --behind: time goes on from the last record, at half its speed until the clock has caught up"
    )


SLEEP_LEAST_S: Final = 1e-3
"""Shortest single sleep, real seconds: where a clock goes slower than its speed, each leaves a part over."""

SLEEP_MAX_S: Final = 3600.0
"""Longest single sleep, real seconds: a moment may be further away than a timer reaches."""

READINGS: Final = 5
"""Readings of both of the system's clocks, by which one is set by the other."""


class Clock(Protocol):
    """Tells the time, and waits for it."""

    def now(self) -> float:
        """Returns the time, seconds; never less than before."""

    async def sleep_until(self, moment: float) -> None:
        """Returns when the clock shows `moment`, seconds, or later."""


class RealClock(ABC):
    """A clock that goes on by itself; it does not follow steps of the system's clock back.

    Attributes:
        speed: seconds of this clock for one real second.
    """

    speed: float

    @abstractmethod
    def now(self) -> float:
        """Returns the time, seconds."""

    def rest_s(self, moment: float) -> float | None:
        """Returns for how long to sleep until a moment, real seconds, an hour at most; None for ever."""
        if moment == math.inf:
            return None
        return min(max(0.0, (moment - self.now()) / self.speed), SLEEP_MAX_S)

    async def sleep_until(self, moment: float) -> None:
        """Returns when the clock shows `moment`, seconds, or later."""
        # A timer may fire early, and reaches only so far: sleep again until the clock shows it.
        while (left := moment - self.now()) > 0:  # noqa: ASYNC110  # waits for time, not for an event
            await asyncio.sleep(min(max(left / self.speed, SLEEP_LEAST_S), SLEEP_MAX_S))


class WallClock(RealClock):
    """Real time, in seconds since 1970."""

    speed = 1.0

    def __init__(self) -> None:
        self._epoch = _epoch()

    def now(self) -> float:
        """Returns the time, seconds since 1970."""
        return self._epoch + time.monotonic()


def _epoch() -> float:
    # Whoever is held up between the two readings is off by as long, and a scaled clock by a
    # multiple of it. The closest two of several count.
    tries = []
    for _ in range(READINGS):
        before = time.monotonic()
        wall = time.time()
        after = time.monotonic()
        tries.append((after - before, wall - (before + after) / 2))
    return min(tries)[1]


class ScaledClock(RealClock):
    """Time that runs `speed` times as fast as real time.

    Sites of one federation are given the same origin, so that their clocks agree; a site that is
    started again finds its clock where it would have been.

    Args:
        speed: seconds of this clock for one real second, more than 0.
        origin: real time, seconds since 1970, at which the clock shows 0.

    Raises:
        ValueError: an argument is out of its bounds.
    """

    def __init__(self, speed: float, origin: float) -> None:
        if not (math.isfinite(speed) and speed > 0):
            raise ValueError(f"speed is {speed}; it must be finite and more than 0")
        if not math.isfinite(origin):
            raise ValueError(f"origin is {origin}; it must be finite")
        self.speed = speed
        self._origin = origin
        self._wall = WallClock()

    def now(self) -> float:
        """Returns the time, seconds."""
        return (self._wall.now() - self._origin) * self.speed


class BehindClock(RealClock):
    """Goes on from a moment that another clock has not reached, slower, until that has caught up.

    Nothing is noted before what was noted already, and everything that waits for time goes on.

    Args:
        clock: that is behind.
        begin: moment to go on from, seconds.
    """

    def __init__(self, clock: RealClock, begin: float) -> None:
        self.clock = clock
        self.speed = clock.speed
        self._begin = begin
        self._since = clock.now()

    def now(self) -> float:
        """Returns the time, seconds."""
        return going_on(self.clock.now(), self._begin, self._since)

    @property
    def ahead(self) -> float:
        """By how much it is still ahead of the clock that is behind, seconds; 0 in the end."""
        return self.now() - self.clock.now()


def going_on_from(clock: RealClock, moment: float) -> RealClock:
    """Returns a clock that never shows less than a moment, seconds, such as that of a journal's last record."""
    return BehindClock(clock, moment) if moment > clock.now() else clock


def ahead_of(clock: Clock) -> float:
    """Returns by how much a clock is ahead of the true time until that has caught up, seconds."""
    return clock.ahead if isinstance(clock, BehindClock) else 0.0


class VirtualClock:
    """Time that stands still until somebody advances it."""

    def __init__(self, start: float = -math.inf) -> None:
        self._now = start
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = itertools.count()

    def now(self) -> float:
        """Returns the time, seconds; minus infinity before it was first advanced."""
        return self._now

    def advance(self, to: float) -> None:
        """Sets the clock to a moment and wakes who sleeps until then, earliest first.

        Args:
            to: seconds, not before the present time.

        Raises:
            ValueError: the moment is past, or not a number.
        """
        if not to >= self._now:
            raise ValueError(f"cannot advance to {to}; the clock already shows {self._now}")
        self._now = to
        while self._sleepers and self._sleepers[0][0] <= to:
            _, _, sleeper = heapq.heappop(self._sleepers)
            if not sleeper.done():
                sleeper.set_result(None)

    async def sleep_until(self, moment: float) -> None:
        """Returns when the clock has been advanced to `moment`, seconds, or later."""
        if moment <= self._now:
            return
        sleeper = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (moment, next(self._count), sleeper))
        await sleeper
