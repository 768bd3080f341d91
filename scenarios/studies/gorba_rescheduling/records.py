"""What was measured in one run."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """One run of one method on one event, or its heuristics.

    Attributes:
        part: "settings" for Figure 4.1 and Table 4.1, "sweep" for Figures 4.2 to 4.5.
        tasks: of its first planning.
        finished: share of finished tasks.
        new: share of new tasks.
        method: "heuristics", or a search of `broker.planner.methods`.
        fitness: of the best plan, from 0 to 100,000.
        heuristic: fitness of the best heuristic.
        late: workflows that miss their due dates, in the best plan.
        unplanned: tasks without a place.
        each: fitness of each heuristic by name, where the method is "heuristics".
        processor_seconds: that it took of processor time, which others on the machine hardly
            change; `None` for runs that a program of before has kept.
    """

    part: str
    event: str
    benchmark: str
    tasks: int
    finished: float
    new: float
    method: str
    seed: int
    fitness: float
    heuristic: float
    late: int
    over_budget: int
    unplanned: int
    evaluations: int
    generations: int
    seconds: float
    each: dict[str, float]
    processor_seconds: float | None = None

    @property
    def rate(self) -> float:
        """Schedules built in a second of processor time."""
        return self.evaluations / self.processor_seconds if self.processor_seconds else math.nan

    @property
    def keeps_all_limits(self) -> bool:
        """Whether the run was a success in the paper's words: no limit is violated."""
        return self.late == self.over_budget == self.unplanned == 0

    @property
    def factor(self) -> float:
        """How many times the fitness is that of the best heuristic."""
        return self.fitness / self.heuristic if self.heuristic > 0 else 1.0
