import numpy as np
import numpy.typing as npt

from broker.planner._builder import Workspace
from broker.planner._evaluation import CompiledGoals
from broker.planner._instance import CompiledProblem

class Worker:
    workspace: Workspace
    goals: CompiledGoals
    cancelled: bool
    def __init__(
        self,
        problem: CompiledProblem,
        goals: CompiledGoals,
        horizon: float,
        buckets: int = 128,
        assigning: bool = False,
    ) -> None: ...
    @property
    def evaluations(self) -> int: ...
    @property
    def assigns(self) -> bool: ...
    def evaluate(
        self,
        genes: npt.NDArray[np.int32],
        strategy: int,
        choices: npt.NDArray[np.int32] | None = None,
    ) -> float: ...
    @property
    def justifies(self) -> bool: ...
    def justify(self, genes: npt.NDArray[np.int32]) -> float: ...
    def evaluate_many(
        self, genes: npt.NDArray[np.int32], strategies: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]: ...
