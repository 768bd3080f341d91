"""Whether a backfilling batch system would start one more job now, by its own plan.

Slurm shows the planned start of each waiting job that its backfill scheduler has considered. With that, and with
the limits of the running jobs, the number of free processors and for how long follow: a further job behind all
others starts at once if it takes none that one of them is to have. So nothing but the queue is queried. Pure.

`sbatch --test-only` does not answer this: Slurm 22.05 assumes a start behind the longest waiting job, even a held
one, although its scheduler then starts the job within a second.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

MARGIN_S: Final = 60.0
"""How long before a planned start a job must be over: Slurm plans in steps (`bf_resolution`)."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Processors that a job holds or will hold.

    Attributes:
        begin: seconds; for a running job any past moment.
        end: latest, seconds; infinity if unknown.
    """

    processors: int
    begin: float
    end: float


class QueuePlan:
    """The running jobs, and the waiting ones with their planned starts, at one poll.

    At `at` (seconds), `free` processors are held by no job; `waiting` are all jobs that wait and could start.
    Limits are rounded up to multiples of `step_s`, seconds.
    """

    def __init__(
        self,
        at: float,
        free: int,
        running: Iterable[Taken],
        waiting: Iterable[Taken],
        *,
        step_s: float = 1.0,
    ) -> None:
        self._at = at
        self._now_free = free
        self._running = tuple(running)
        self._waiting = tuple(waiting)
        self._step_s = step_s
        self._profile: tuple[NDArray[np.float64], NDArray[np.int64]] | None = None

    def less(self, processors: int) -> "QueuePlan":
        """Returns the plan with further processors held from now on for an unknown time."""
        more = (*self._running, Taken(processors, self._at, np.inf))
        return QueuePlan(
            self._at, self._now_free - processors, more, self._waiting, step_s=self._step_s
        )

    def starts_now(self, processors: int, requested_time: float, now: float) -> bool:
        """Returns whether a job submitted behind all others would start at once.

        `now` is in seconds, not before the poll.
        """
        if self._profile is None:
            self._profile = self._laid_out()
        times, free = self._profile
        seconds = -(-requested_time // self._step_s) * self._step_s
        return _least(times, free, max(now, self._at) + seconds) >= processors

    def _laid_out(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        # Number of free processors from each moment on. A waiting job with room by now is about to start, whatever
        # was planned before the last one ended.
        at, waiting = self._at, sorted(self._waiting, key=lambda job: job.begin)
        moments = {at, *(job.end for job in self._running if job.end > at)}
        for job in waiting:
            moments |= {max(at, job.begin), at + (job.end - job.begin), max(at, job.end)}
        times = np.array(sorted(moments), np.float64)
        free = np.full(len(times), self._now_free, np.int64)
        for job in self._running:
            if at < job.end:
                free[np.searchsorted(times, job.end) :] += job.processors
        for job in waiting:
            _take(times, free, job.processors, max(at, job.begin), max(at, job.end))
        for job in waiting:
            seconds = job.end - job.begin
            if job.begin <= at or job.processors > free[0]:
                continue
            _take(times, free, -job.processors, job.begin, job.end)
            starts = _least(times, free, at + seconds) >= job.processors
            begin = at if starts else job.begin
            _take(times, free, job.processors, begin, at + seconds if starts else job.end)
        return times, free


def _least(times: NDArray[np.float64], free: NDArray[np.int64], until: float) -> int:
    # Fewest free processors from the poll until a moment, plus a margin.
    return int(free[: np.searchsorted(times, until + MARGIN_S)].min())


def _take(
    times: NDArray[np.float64], free: NDArray[np.int64], count: int, begin: float, end: float
) -> None:
    free[np.searchsorted(times, begin) : np.searchsorted(times, end)] -= count
