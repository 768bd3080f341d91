"""Jobs of a simulated machine whose ends are awaited, and a bound of the first end."""

import heapq
import math
from collections.abc import Callable

from grms.lrms.base import LrmsPhase


class FollowedJobs:
    """Jobs followed until they have ended; `phase_of` returns `None` for a forgotten one."""

    def __init__(self, phase_of: Callable[[str], LrmsPhase | None]) -> None:
        self._phase_of = phase_of
        # A job that has left a heap's phase stays in it until it reaches the top.
        self._waiting: list[tuple[float, str]] = []
        self._running: list[tuple[float, str]] = []

    def wait(self, key: str, run_time: float) -> None:
        """Follows a job that waits, and will run for so many seconds."""
        heapq.heappush(self._waiting, (run_time, key))

    def run(self, key: str, end_time: float) -> None:
        """Follows a job that runs, and will end at that moment, seconds."""
        heapq.heappush(self._running, (end_time, key))

    def first_end(self, next_event_time: float) -> float:
        """Returns a moment before which none of them ends; infinity without jobs.

        Waiting jobs start no sooner than the machine's `next_event_time`, seconds.
        """
        waiting, running = self._waiting, self._running
        while waiting and self._phase_of(waiting[0][1]) is not LrmsPhase.WAITING:
            heapq.heappop(waiting)
        while running and self._phase_of(running[0][1]) is not LrmsPhase.RUNNING:
            heapq.heappop(running)
        first = running[0][0] if running else math.inf
        return min(first, next_event_time + waiting[0][0]) if waiting else first
