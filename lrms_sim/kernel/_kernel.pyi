from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lrms_sim.kernel._scheduler import Scheduler

_Times: TypeAlias = npt.NDArray[np.float64]
_Counts: TypeAlias = npt.NDArray[np.int32]

class MachineKernel:
    """One machine over job columns that the caller owns."""

    def __init__(self, processors: int, scheduler: Scheduler) -> None: ...
    def bind(
        self,
        submit_time: _Times,
        processors: _Counts,
        requested_time: _Times,
        run_time: _Times,
        start_time: _Times,
        end_time: _Times,
        groups: npt.NDArray[np.int8] | None = None,
        users: _Counts | None = None,
        ranks: _Counts | None = None,
        estimates: _Times | None = None,
    ) -> None:
        """Says where the jobs are; may be called again when the columns have moved.

        `estimates` is given where jobs may outlive their requests: a copy of `requested_time`, which the
        machine changes.
        """

    def run(self, rows: int) -> int:
        """Replays arrivals until row `rows` or, at the last one, until the machine is empty."""

    def limit_cost(self, weight: _Times, limit: float) -> None:
        """Lets `run` stop once Σ weight · wait over all jobs so far is above a limit."""

    @property
    def exceeded(self) -> bool: ...
    def keep_log(self) -> None:
        """Notes from now on which jobs start and end, for `drain_log`."""

    def enqueue(self, job: int, submit_time: float) -> None:
        """Brings the clock to `submit_time` and puts a job into the queue."""

    def advance(self, to: float, inclusive: bool) -> None:
        """Does everything that is due before `to`, and at `to` where inclusive."""

    def starts_now(self, width: int, requested_time: float) -> bool:
        """Returns whether such a job, submitted at this moment, would start at it."""

    def make_pass(self) -> None:
        """Makes the pass that is pending at this moment, if there is one."""

    def withdraw(self, job: int, pass_later: bool = False) -> bool:
        """Takes a job out of the queue; False if it is not waiting."""

    def resume(self, job: int, start_time: float, now: float) -> None:
        """Has a job that is in no queue run, seen, since a moment that is not after `now`."""

    def hide(self, job: int, pass_follows: bool) -> None:
        """Has the discipline see a running job no more; a pass may be pending then."""

    def show(self, job: int) -> None:
        """Has the discipline see such a job again."""

    def drain_preempted(self) -> list[int]:
        """Returns the unseen jobs that have lost their processors since the last call, in the order of that."""

    @property
    def idle(self) -> int: ...
    def drain_log(self) -> tuple[list[int], list[int]]:
        """Returns the jobs that started and that ended since the last call."""

    @property
    def now(self) -> float: ...
    @property
    def next_event_time(self) -> float: ...
    @property
    def processors_free(self) -> int: ...
    @property
    def processors_waiting(self) -> int: ...
    @property
    def jobs_running(self) -> int: ...
    @property
    def jobs_waiting(self) -> int: ...
