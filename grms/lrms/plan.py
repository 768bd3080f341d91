"""Whether a batch system that backfills would start one more job now, by what it has planned itself.

Slurm tells of each waiting job that its backfill scheduler has looked at when it is to start. With that,
and with the limits of the jobs that run, it is known how many processors stay free, and for how long: a
further job behind all others starts at once where it takes none that one of them is to have. So nothing
is asked of the batch system but its table. Pure.

`sbatch --test-only` is no such answer: Slurm 22.05 counts there with a start behind the longest waiting
job, held ones too, where its scheduler then starts the job in the next second.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

MARGIN_S: Final = 60.0
"""So long before a planned start a job has to be over: Slurm plans in steps (`bf_resolution`)."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Processors that a job holds or is to have.

    Attributes:
        processors: how many.
        begin: from when on, seconds; of a job that runs any moment of the past.
        end: until when at the latest, seconds; infinity for what nobody knows.
    """

    processors: int
    begin: float
    end: float


class QueuePlan:
    """The jobs that run, and those that wait with their planned starts, at one look.

    Args:
        at: moment of the look, seconds.
        free: processors that no job holds.
        running: what holds the others.
        waiting: every job that waits and could start.
        step_s: the batch system rounds limits up to multiples of so many seconds.
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
        """Returns the plan where so many processors more are held from now on, nobody knows how long."""
        more = (*self._running, Taken(processors, self._at, np.inf))
        return QueuePlan(
            self._at, self._now_free - processors, more, self._waiting, step_s=self._step_s
        )

    def starts_now(self, processors: int, requested_time: float, now: float) -> bool:
        """Returns whether a job that is submitted behind all others would start at once.

        Args:
            processors: of the job.
            requested_time: of the job, seconds.
            now: seconds, not before the look.
        """
        if self._profile is None:
            self._profile = self._laid_out()
        times, free = self._profile
        seconds = -(-requested_time // self._step_s) * self._step_s
        return _least(times, free, max(now, self._at) + seconds) >= processors

    def _laid_out(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        # How many processors are free from each moment on, until the next. A job that waits and has room
        # by now is about to start, whatever was planned before the last one ended.
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
    # The fewest processors that are free from the look on until a moment, and a little longer.
    return int(free[: np.searchsorted(times, until + MARGIN_S)].min())


def _take(
    times: NDArray[np.float64], free: NDArray[np.int64], count: int, begin: float, end: float
) -> None:
    free[np.searchsorted(times, begin) : np.searchsorted(times, end)] -= count
