from broker.planner._instance import CompiledProblem

TASKS_MAX: int

class CriticalGraph:
    def __init__(self, problem: CompiledProblem) -> None: ...
    @property
    def usable(self) -> bool: ...

def is_job_shop(problem: CompiledProblem) -> bool: ...
