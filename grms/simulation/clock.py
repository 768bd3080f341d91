"""A clock that stands still until it is moved, and what is to happen when."""

import heapq
import math
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


@types.coroutine
def sleep(seconds: float) -> Generator[float, None, None]:
    """Waits in a coroutine that `ManualClock.run` runs; `seconds` is at least 0."""
    yield seconds


class ManualClock:
    """Simulated time, and calls due at moments of it; `now` is in seconds.

    Calls due at one moment are made in the order in which they were scheduled.
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self.made = 0
        self._due: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._count = 0

    def after(self, delay: float, call: Callable[..., object], *args: Any) -> None:
        """Asks for a call after `delay` seconds, 0 and more."""
        if not 0 <= delay < math.inf:
            raise ValueError(f"delay is {delay}; it must be finite and at least 0")
        self._count += 1
        heapq.heappush(self._due, (self.now + delay, self._count, call, args))

    def run(
        self,
        coroutine: Coroutine[Any, Any, T],
        done: Callable[[T | None, Exception | None], object],
    ) -> None:
        """Runs a coroutine that waits only for `sleep`, from now on.

        `done` is called with what it returns, or with its error.
        """
        try:
            delay = coroutine.send(None)
        except StopIteration as end:
            done(end.value, None)
        except Exception as error:  # noqa: BLE001  # for the caller to say what it means
            done(None, error)
        else:
            self.after(delay, self.run, coroutine, done)

    @property
    def next_time(self) -> float:
        """When the next call is due, seconds; infinity if there is none."""
        return self._due[0][0] if self._due else math.inf

    def step(self) -> bool:
        """Moves to the next call and makes it; returns whether there was one."""
        if not self._due:
            return False
        self.now, _, call, args = heapq.heappop(self._due)
        self.made += 1
        call(*args)
        return True

    def advance(self, to: float) -> None:
        """Makes every call due up to and including `to`, the new time.

        Raises:
            ValueError: the moment is past.
        """
        if not to >= self.now:
            raise ValueError(f"cannot go back to {to}; the clock shows {self.now}")
        while self._due and self._due[0][0] <= to:
            self.step()
        self.now = to
