import numpy as np
import numpy.typing as npt

from grms.federation.own_account import Sums
from lrms_sim.kernel._scheduler import Scheduler

class OwnAccountKernel:
    """An account over columns that the caller owns, all by job; see `grms.federation.own_account`."""

    def __init__(
        self,
        processors: int,
        scheduler: Scheduler,
        period: float,
        allowance: float,
        cap: float,
        memory: float,
    ) -> None: ...
    def bind(
        self,
        submit_time: npt.NDArray[np.float64],
        processors: npt.NDArray[np.int32],
        requested_time: npt.NDArray[np.float64],
        known_run: npt.NDArray[np.float64],
        start_time: npt.NDArray[np.float64],
        end_time: npt.NDArray[np.float64],
        real_start: npt.NDArray[np.float64],
        real_end: npt.NDArray[np.float64],
    ) -> None:
        """Sets the columns: the shadow's starts and ends, and the real ones."""

    def submitted(self, job: int) -> None:
        """An own job has come."""

    def ended(self, job: int, run_time: float) -> None:
        """An own job has ended after running for so long in all; its real end is in the columns."""

    def look(self, now: float) -> None:
        """Lets the shadow go on as far as it can; then all sums fade by one period."""

    def owed(self, waiting: npt.NDArray[np.int32], now: float) -> float:
        """Returns what the jobs that wait have lost by now."""

    def turn(self, owed: float, now: float) -> int:
        """Sets whether the site is in credit: -1 it has lost it, 1 regained it, else 0."""

    def resume(self, arrived: npt.NDArray[np.int32], sums: Sums, clock: float) -> None:
        """Takes over the state of another account with these own jobs, in order of arrival."""

    @property
    def joined(self) -> int:
        """How many of the own jobs, in order of arrival, have joined the shadow's queue."""

    @property
    def running(self) -> list[int]:
        """The jobs that run in the shadow, in no order; also those of whose end in its past it has just been told."""

    @property
    def sums(self) -> Sums:
        """The sums, and since when the site is in credit or not."""
