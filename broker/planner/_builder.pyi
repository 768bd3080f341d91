from typing import Any

import numpy as np
import numpy.typing as npt

from broker.planner._instance import CompiledProblem

class Workspace:
    columns: dict[str, npt.NDArray[Any]]
    def __init__(self, problem: CompiledProblem, horizon: float, buckets: int = 128) -> None: ...
    def build(
        self,
        genes: npt.NDArray[np.int32],
        strategy: int,
        choices: npt.NDArray[np.int32] | None = None,
    ) -> None: ...
    def saved(self) -> tuple[dict[str, npt.NDArray[Any]], int]: ...
    def restore(self, saved: tuple[dict[str, npt.NDArray[Any]], int]) -> None: ...
    def earliest_ends(self) -> npt.NDArray[np.float64]: ...
    @property
    def planned(self) -> int: ...
