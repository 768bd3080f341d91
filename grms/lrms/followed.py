"""Jobs of a simulated machine whose ends somebody waits for, and when the first of these may be."""

import heapq
import math
from collections.abc import Callable

from grms.lrms.port import LrmsPhase


class FollowedJobs:
    """Jobs that are followed until they have ended.

    Args:
        phase_of: where a job stands; None for one that is forgotten.
    """

    def __init__(self, phase_of: Callable[[str], LrmsPhase | None]) -> None:
        self._phase_of = phase_of
        # What has left a heap's phase is still in it until it comes to the top.
        self._waiting: list[tuple[float, str]] = []
        self._running: list[tuple[float, str]] = []

    def wait(self, key: str, run_time: float) -> None:
        """Follows a job that waits, and will run for so many seconds."""
        heapq.heappush(self._waiting, (run_time, key))

    def run(self, key: str, end_time: float) -> None:
        """Follows a job that runs, and will end at that moment, seconds."""
        heapq.heappush(self._running, (end_time, key))

    def first_end(self, next_event_time: float) -> float:
        """Returns a moment before which none of them ends; infinity for no job.

        Args:
            next_event_time: of the machine, seconds; what waits starts no sooner.
        """
        waiting, running = self._waiting, self._running
        while waiting and self._phase_of(waiting[0][1]) is not LrmsPhase.WAITING:
            heapq.heappop(waiting)
        while running and self._phase_of(running[0][1]) is not LrmsPhase.RUNNING:
            heapq.heappop(running)
        first = running[0][0] if running else math.inf
        return min(first, next_event_time + waiting[0][0]) if waiting else first
