from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lrms_sim.kernel._scheduler import Scheduler

class StrategyScheduler(Scheduler):
    """Strategies on any order of the queue, chosen by rules where there are several."""

    def __init__(
        self,
        alternatives: Sequence[Any],
        *,
        table: npt.NDArray[np.int32] | None = None,
        rules: npt.NDArray[np.float64] | None = None,
        user_keys: npt.NDArray[np.float64] | None = None,
    ) -> None: ...
    @property
    def passes(self) -> list[int]:
        """How many passes each alternative has made."""

    @property
    def visits(self) -> list[int] | None:
        """How many passes found the machine in each of the 192 classes; None without a table."""

    @property
    def history(self) -> tuple[float, float]:
        """The two sums over all jobs that have ended: Σ p·m·(C - r) and Σ p·m·p."""

    def remember(self, response: float, service: float) -> None:
        """Takes over the history of a machine before this one, as `history` gave it."""
