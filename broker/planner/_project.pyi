import numpy as np
import numpy.typing as npt

from broker.planner._builder import Workspace
from broker.planner._instance import CompiledProblem

CELLS_MAX: int

class ProjectRoom:
    def __init__(self, problem: CompiledProblem) -> None: ...
    @property
    def usable(self) -> bool: ...
    def build(
        self, workspace: Workspace, genes: npt.NDArray[np.int32], *, justified: bool = False
    ) -> npt.NDArray[np.int32]: ...

def is_project(problem: CompiledProblem) -> bool: ...
