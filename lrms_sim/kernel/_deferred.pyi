from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lrms_sim.kernel._scheduler import Scheduler

_Column: TypeAlias = npt.NDArray[np.float64]

class DeferredScheduler(Scheduler):
    """EASY that lets jobs wait for cheap hours."""

    def __init__(
        self,
        offset: _Column,
        value: _Column,
        before: _Column,
        first: float,
        period: float,
        scale: float,
        *,
        delay_max: float,
        saving: float,
        look_ahead: float,
    ) -> None: ...
    def planned_start(self, now: float, latest: float, request: float) -> float:
        """Returns when a job that comes now is planned to start, at the latest moment at most."""

    def cost(self, begin: float, request: float) -> float:
        """Returns what a job costs that begins at a moment, as far as that is looked at."""
