"""Rescheduling as in the paper: a first plan, some of it done, new workflows arriving.

A benchmark problem is planned; when a share of its tasks has ended, new workflows arrive. What has
started by then, or starts within the three minutes that planning takes, keeps its place.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from broker.cli.benchmark import with_hard_limits
from broker.model.instances import paper_resources, paper_workflows
from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.workflow import Workflow
from broker.planner.gleam import GleamSettings
from broker.planner.search import Budget, Search

PLANNING_SLOT: Final = 180.0
"""Seconds that planning takes; starts of the old plan within them stay."""

_STREAM: Final = 0x60B4


@dataclass(frozen=True, slots=True)
class Setting:
    """A rescheduling event.

    Attributes:
        benchmark: class of the workflows: sRsD, sRlD, lRsD or lRlD.
        tasks: of the first planning.
        finished: share of these tasks that have ended when the new workflows arrive.
        new: tasks of the new workflows, as a share of the first ones.
        reduction: how much due dates and budgets are below what the heuristics achieve on average.
        first_evaluations: schedules that GLEAM builds for the first plan.
    """

    benchmark: str
    tasks: int
    resources: int
    finished: float
    new: float
    reduction: float
    first_evaluations: int
    seed: int = 1

    @property
    def name(self) -> str:
        """What the setting is called in files."""
        shares = f"{round(100 * self.finished)}-{round(100 * self.new)}"
        return f"{self.benchmark}-{self.tasks}-{self.resources}-{shares}"


@dataclass(frozen=True, slots=True)
class Event:
    """A rescheduling problem and the plan that it comes from.

    Attributes:
        problem: what is to be planned, with what stays.
        old: the plan from before.
    """

    problem: Problem
    old: Plan


def first_planning(setting: Setting) -> tuple[Problem, Plan]:
    """Returns the benchmark problem of a setting, with limits, and its first plan."""
    rng = _generator(setting, 0)
    pool = paper_resources(setting.resources, rng)
    free = Problem(paper_workflows(setting.benchmark, setting.tasks, pool, rng), pool)
    problem = with_hard_limits(free, setting.reduction)
    search = Search(
        problem,
        budget=Budget(math.inf, setting.first_evaluations),
        settings=GleamSettings(population=20),
        seed=setting.seed,
    )
    return problem, search.run().plan


def reschedule(setting: Setting, problem: Problem, plan: Plan) -> Event:
    """Returns the event that follows a first planning."""
    ends = sorted(each.end for each in plan)
    count = max(1, round(setting.finished * len(ends)))
    moment = ends[min(count, len(ends)) - 1]
    now = moment + PLANNING_SLOT
    # A workflow that is done needs no plan any more; of others the ended tasks still count.
    staying = [each for each in problem.workflows if _last_end(plan, each) > moment]
    names = {workflow.name for workflow in staying}
    fixed = tuple(each for each in plan if each.start < now and each.workflow in names)
    arriving = paper_workflows(
        setting.benchmark,
        max(1, round(setting.new * setting.tasks)),
        problem.resources,
        _generator(setting, 1),
        earliest_start=now,
        prefix="n",
    )
    changed = Problem((*staying, *arriving), problem.resources, now, fixed)
    return Event(with_hard_limits(changed, setting.reduction, old=plan), plan)


def _last_end(plan: Plan, workflow: Workflow) -> float:
    placements: list[Placement | None] = [
        plan.placement(workflow.name, task.name) for task in workflow.tasks
    ]
    return max((each.end for each in placements if each is not None), default=float("inf"))


def _generator(setting: Setting, purpose: int) -> np.random.Generator:
    """Returns the stream of a purpose; the event's shares do not touch the first problem's."""
    shares = (round(1000 * setting.finished), round(1000 * setting.new)) if purpose else ()
    key = (_STREAM, purpose, setting.tasks, setting.resources, *shares)
    return np.random.default_rng(np.random.SeedSequence(setting.seed, spawn_key=key))
