"""Goals of planning: weights, priorities, thresholds and penalties, with their defaults.

The paper (004, section 2) names the objectives and how they are combined; its own numbers are not
published, so these are ours. docs/planner.md explains them.
"""

import math
from dataclasses import dataclass, field, fields

CRITERIA = ("time", "cost", "delay", "makespan", "utilization")
"""The objectives, in the order in which kernels number them; `delay` is the auxiliary one."""


@dataclass(frozen=True, slots=True)
class Goal:
    """How one objective counts.

    Attributes:
        weight: share of the fitness, from 0 to 1.
        priority: class; 0 always counts, the others once those before reach their thresholds.
        threshold: value from 0 to 1 that this objective must reach for the next class to count.
    """

    weight: float
    priority: int = 0
    threshold: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise ValueError(f"the weight is {self.weight}; from 0 to 1")
        if not 0 <= self.priority < len(CRITERIA):
            raise ValueError(f"the priority is {self.priority}; from 0 to {len(CRITERIA) - 1}")
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"the threshold is {self.threshold}; from 0 to 1")


@dataclass(frozen=True, slots=True)
class Goals:
    """How plans are judged.

    Attributes:
        time: completion of workflows, between the earliest possible and the latest accepted.
        cost: of workflows, likewise.
        delay: how long after their workflow could start tasks with successors start; auxiliary.
        utilization: share of all resources' units that is in use until then.
        first_offender: factor for one late workflow, and for one over its budget.
        offenders_third: share of offending workflows at which that factor has fallen to a third.
        tardiness_third: seconds late over seconds allowed, of all workflows together, at which
            the fitness falls to a third.
        over_budget_third: cost over budget, of all workflows together, relative to the budgets,
            at which the fitness falls to a third.
        lost_limits: what all impossible limits together may cost, in late workflows.
        stability: share of the fitness lost by moving every task that an old plan has placed; each
            task costs its part of it. 0 ignores the old plan.

    Raises:
        ValueError: the weights do not sum to 1, or a priority class is empty while a later one is not.
    """

    time: Goal = field(default_factory=lambda: Goal(0.35, 0, 0.25))
    cost: Goal = field(default_factory=lambda: Goal(0.35, 0, 0.25))
    delay: Goal = field(default_factory=lambda: Goal(0.10, 0, 0.0))
    makespan: Goal = field(default_factory=lambda: Goal(0.12, 1, 0.0))
    utilization: Goal = field(default_factory=lambda: Goal(0.08, 1, 0.0))
    first_offender: float = 0.8
    offenders_third: float = 0.5
    tardiness_third: float = 0.2
    over_budget_third: float = 0.2
    lost_limits: float = 1.0
    stability: float = 0.0

    def __post_init__(self) -> None:
        total = math.fsum(goal.weight for goal in self.by_criterion())
        if not math.isclose(total, 1, abs_tol=1e-9):
            raise ValueError(f"the weights sum to {total}; they must sum to 1")
        priorities = {goal.priority for goal in self.by_criterion()}
        if priorities != set(range(len(priorities))):
            raise ValueError(f"priorities are {sorted(priorities)}; they count up from 0")
        if not 0 < self.first_offender <= 1:
            raise ValueError(f"first_offender is {self.first_offender}; above 0, at most 1")
        for name in ("offenders_third", "tardiness_third", "over_budget_third"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise ValueError(f"{name} is {value}; it must be more than 0 and finite")
        if not 0 <= self.lost_limits <= 1:
            raise ValueError(f"lost_limits is {self.lost_limits}; from 0 to 1")
        if not 0 <= self.stability < 1:
            raise ValueError(f"stability is {self.stability}; at least 0 and less than 1")

    def by_criterion(self) -> list[Goal]:
        """Returns the goals in the order of `CRITERIA`."""
        return [getattr(self, each.name) for each in fields(self)[: len(CRITERIA)]]


MAKESPAN_ONLY = Goals(
    time=Goal(0.0), cost=Goal(0.0), delay=Goal(0.0), makespan=Goal(1.0), utilization=Goal(0.0)
)
"""For job shops: nothing but the makespan counts."""
