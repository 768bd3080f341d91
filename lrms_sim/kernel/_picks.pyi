from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

_Times: TypeAlias = npt.NDArray[np.float64]
_Counts: TypeAlias = npt.NDArray[np.int32]
_Seen: TypeAlias = npt.NDArray[np.float32]

FEATURES: Final[int]
"""Numbers by which a job is observed."""

class PickMachine:
    """A machine of `lrms_sim` that stands still until somebody outside picks a waiting job.

    It replays sequences of consecutive rows of its job columns, each from an empty machine. One picks among the
    first `window` waiting jobs in order of arrival. A picked job that fits starts, and the next pick is made at the
    same instant. One that does not fit blocks the queue: until the next instant at which something happens, or, with
    `commits`, until it has started. With `backfills` others pass it by EASY's rule, in order of arrival. Without
    `commits` no pick is asked for while no waiting job fits.

    The objective is handed out as rewards, −(share of a job in the objective) for each job that starts; their sum is
    −(the objective of the sequence). With `at_end` the last step has all of it.
    """

    def __init__(
        self,
        submit_time: _Times,
        processors: _Counts,
        requested_time: _Times,
        run_time: _Times,
        *,
        machine_processors: int,
        window: int,
        backfills: bool,
        commits: bool,
        objective: int,
        at_end: bool,
        tau: float = 10.0,
    ) -> None:
        """See `lrms_sim.machine.picks.pick_machine`; objectives are numbered as there."""

    def reset(self, first: int, count: int) -> None:
        """Begins the sequence of `count` jobs from row `first` on; a ValueError if there are too few."""

    def step(self, place: int) -> tuple[float, bool]:
        """Picks the job in a place of the window, the first job if that place is empty; returns reward and whether all is over.

        Raises:
            ValueError: the place is outside the window.
            RuntimeError: no sequence has begun, or it is over.
        """

    def observe(self, seen: _Seen) -> None:
        """Writes the window as it is now, shape (window, 6), everything in 0..1; empty places are zeros.

        Columns: 1; wait; requested time; processors; whether it fits now; free processors. Times are
        ln(1 + seconds) / ln(1 + 10⁷), at most 1; processors are shares of the machine.
        """

    def rows_seen(self) -> npt.NDArray[np.int64]:
        """Returns the rows of the jobs in the window, in order of arrival."""

    @property
    def jobs_seen(self) -> int:
        """Jobs in the window; 0 when the sequence is over."""

    @property
    def now(self) -> float:
        """The clock, that of the columns, seconds."""

    @property
    def processors_free(self) -> int: ...
    @property
    def start_times(self) -> _Times:
        """The starts of the sequence's jobs in order of arrival, seconds; nan of those that have not started."""

def step_all(
    machines: list[PickMachine],
    places: npt.NDArray[np.int64],
    seen: npt.NDArray[np.float32],
    rewards: _Times,
    ended: npt.NDArray[np.uint8],
) -> None:
    """Makes one step of every machine that has not ended; writes observations, rewards and new ends."""
