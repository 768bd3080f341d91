from collections.abc import Sequence
from typing import TypeAlias

from broker.planner._instance import CompiledProblem

TASKS_MAX: int

Step: TypeAlias = tuple[
    list[int], int, int, bool, float, float, list[float], list[float], list[int]
]

class CriticalGraph:
    def __init__(self, problem: CompiledProblem, flexible: bool = False) -> None: ...
    @property
    def usable(self) -> bool: ...
    def walk(self, orders: Sequence[Sequence[int]], steps: int, seed: int) -> list[Step]: ...

def is_job_shop(problem: CompiledProblem) -> bool: ...
def is_flexible(problem: CompiledProblem) -> bool: ...
def choices_by_task(problem: CompiledProblem) -> list[list[int]]: ...
