from typing import Any

import numpy as np
import numpy.typing as npt

from broker.planner._builder import Workspace

class CompiledGoals:
    def __init__(
        self,
        numbers: dict[str, float],
        by_criterion: list[tuple[float, int, float]],
        by_workflow: dict[str, npt.NDArray[np.float64]],
    ) -> None: ...
    def worth(self, workspace: Workspace) -> dict[str, Any]: ...
