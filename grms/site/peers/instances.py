"""Finds two daemons that use one name, as after a machine was copied with its certificate.

Each daemon draws a number when it starts, and tells it with each introduction. After a restart there is a new number, and
the old one does not come back. Where two daemons live the numbers alternate: each comes back again and again after the
other. Of a daemon that has died a question and an answer may still be under way; so numbers have to come back more often
than by that, and not all at once, as where this site has stood still.
"""

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

COMES_BACK: Final = 5
"""So often two numbers have to come back each within `WINDOW_S`.

Of a daemon that has died two messages come late at most: by these its number comes back twice, and twice that of the next
daemon, which may die as well. That makes four.
"""

SPACING_S: Final = 4.0
"""What comes within this after a return of the same number is no further one, seconds. Introductions come every ten."""

WINDOW_S: Final = 300.0
"""So long a return counts, seconds: that long after the second daemon has ended the partner is well again."""

KNOWN_MAX: Final = 16
"""Numbers that are remembered."""


class Instances:
    """The instances of one partner's daemon that were heard of; `clock` is in real seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = 0
        self._returns: OrderedDict[int, deque[float]] = OrderedDict()

    def heard(self, instance: int) -> None:
        """Notes which one has spoken; 0 for one that does not say it."""
        if not instance or instance == self._last:
            return
        returns = self._returns.get(instance)
        if returns is None:
            self._returns[instance] = deque(maxlen=COMES_BACK)
            while len(self._returns) > KNOWN_MAX:
                self._returns.popitem(last=False)
        else:
            self._returns.move_to_end(instance)
            now = self._clock()
            if now - (returns[-1] if returns else -math.inf) >= SPACING_S:
                returns.append(now)
        self._last = instance

    @property
    def duplicated(self) -> bool:
        """Whether two of them live."""
        since = self._clock() - WINDOW_S
        often = (
            len(returns) == COMES_BACK and returns[0] >= since for returns in self._returns.values()
        )
        return sum(often) > 1
