"""The two stages of planning (paper 004, section 3): heuristics, then evolution from them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.planner._worker import Worker
from broker.planner.compilation import Compilation, compile_problem
from broker.planner.evaluation import (
    Bounds,
    Worth,
    compile_goals,
    due_dates,
    judge,
    lower_bounds,
    widened,
)
from broker.planner.gleam import Gleam, GleamSettings
from broker.planner.goals import Goals
from broker.planner.heuristics import (
    PAPER_STRATEGIES,
    PLANNING_STRATEGIES,
    STRATEGIES,
    Genes,
    Heuristic,
    Priorities,
    own_heuristics,
    planned_heuristic,
    planning_heuristics,
    project_heuristics,
    project_priorities,
    replanning_heuristics,
    staying_ends,
)

HORIZON_FACTOR = 1.1
"""How far beyond the longest heuristic schedule timetables are finely indexed."""


Schedule = tuple[dict[str, npt.NDArray[Any]], int]


@dataclass(frozen=True)
class HeuristicPlan:
    """A heuristic with its worth."""

    heuristic: Heuristic
    worth: Worth


class Planner:
    """Plans one problem: evaluates the heuristics at once, then starts GLEAM runs from them.

    `assigning` allows runs with a choice for each task, in flexible job shops. An old plan adds the replanning heuristics; if the goals ask for stability, tasks should stay where
    it has them.

    Attributes:
        bounds: between which objectives are judged.
        heuristics: all heuristic plans, best first.

    Raises:
        ValueError: every task is fixed.
    """

    def __init__(
        self,
        problem: Problem,
        goals: Goals | None = None,
        old: Plan | None = None,
        *,
        assigning: bool = False,
    ) -> None:
        self._assigning = assigning
        self.goals = goals or Goals()
        stable = old if self.goals.stability > 0 else None
        self.compilation: Compilation = compile_problem(problem, stable)
        if not self.compilation.tasks:
            raise ValueError("there is nothing to plan: every task is fixed")
        self._old = old
        self._stays = self.compilation.keeps
        self._free: Plan | None = None
        tried = planning_heuristics(self.compilation)
        if old is not None:
            tried += replanning_heuristics(self.compilation, old)
        self.bounds, self._horizon, schedules = self._bounds(tried)
        self._compiled_goals = compile_goals(self.compilation, self.goals, self.bounds)
        worker = self.worker()
        judged = []
        for number, (heuristic, schedule) in enumerate(zip(tried, schedules, strict=True)):
            worker.workspace.restore(schedule)
            worth = judge(self._compiled_goals, worker.workspace)
            judged.append((-worth.fitness, number, HeuristicPlan(heuristic, worth)))
        self.heuristics = [each for _, _, each in sorted(judged, key=lambda entry: entry[:2])]

    def _bounds(self, tried: list[Heuristic]) -> tuple[Bounds, float, list[Schedule]]:
        # The schedules are kept, to be judged by the bounds that come of them.
        bounds = lower_bounds(self.compilation)
        if self.compilation.keeps:
            due = due_dates(self.compilation, bounds).kept
            self.compilation.stay(staying_ends(self.compilation, due))
        provisional = compile_goals(self.compilation, self.goals, bounds)
        horizon = max(4 * bounds.makespan[0], 1e-6)
        worker = Worker(self.compilation.compiled, provisional, horizon, self._buckets)
        worths, schedules = [], []
        for heuristic in tried:
            worker.evaluate(heuristic.genes, heuristic.strategy)
            worths.append(provisional.worth(worker.workspace))
            schedules.append(worker.workspace.saved())
        bounds = widened(bounds, worths)
        return bounds, max(HORIZON_FACTOR * bounds.makespan[1], 1e-6), schedules

    @property
    def _buckets(self) -> int:
        # Finer slices pay off for large sets of choices; docs/planner.md.
        choices = self.compilation.compiled.choices
        return 32 if choices <= 64 else 128 if choices <= 256 else 256

    def worker(self) -> Worker:
        """Returns room for one more thread."""
        return Worker(
            self.compilation.compiled,
            self._compiled_goals,
            self._horizon,
            self._buckets,
            self._assigning,
        )

    @property
    def without_contention(self) -> Problem | None:
        """The problem without contention of links, where its plan is a start for that of this one.

        `None` where no transfer waits for another, tasks should stay where an old plan has them, or it has such a start.
        """
        problem = self.compilation.problem
        if not self.compilation.staging.contended or self._stays or self._free is not None:
            return None
        assert problem.network is not None, "as above"
        network = replace(problem.network, contention="none")
        return replace(problem, network=network, under_way=())

    def begin_from(self, free: Plan) -> None:
        """Has runs begin with a plan made without contention: its resources and order, in the time that links leave.

        RAS-6 then keeps those resources. Call it before `run`, where there is a problem `without_contention`.
        """
        self._free = free
        self.compilation.keep(self.compilation.choices_of(free))

    def run(
        self,
        settings: GleamSettings,
        seed: int,
        worker: Worker,
        enough: Callable[[], bool] = lambda: False,
    ) -> Gleam:
        """Returns a GLEAM run whose population holds the heuristics, and our own if it may.

        If it may use all strategies that need no old plan and tasks have places to keep, the
        strategy that keeps them is added. From when there is `enough` on, places of the population get copies.
        """
        if settings.strategies == PLANNING_STRATEGIES and self.compilation.keeps:
            settings = replace(settings, strategies=len(STRATEGIES))
        assigned = settings.assign and worker.assigns
        gleam = Gleam(len(self.compilation.tasks), settings, seed, assigned=assigned)
        seeds = [each.heuristic for each in self.heuristics]
        known = [each.worth.fitness for each in self.heuristics]
        if settings.strategies > PAPER_STRATEGIES:
            due = due_dates(self.compilation, self.bounds).kept
            if self._free is not None:
                begun = planned_heuristic(self.compilation, self._free)
                seeds.append(begun)
                known.append(worker.evaluate(begun.genes, begun.strategy))
            seeds += own_heuristics(self.compilation, self._old, due)
        priorities: Mapping[str, Priorities] = {}
        if worker.justifies and settings.justify:
            priorities = project_priorities(self.compilation)
            seeds = project_heuristics(priorities)
            # The bounds come of these, so they belong to what has been built.
            gleam.evaluations += len(self.heuristics)
        gleam.start(worker, seeds, list(priorities.values()), known=known, enough=enough)
        return gleam

    def resumed(self, gleam: Gleam) -> Gleam:
        """Returns a GLEAM run on this problem; `ValueError` if it was a run on another problem."""
        if gleam.tasks != len(self.compilation.tasks):
            raise ValueError(
                f"a saved run of {gleam.tasks} tasks, for a problem of {len(self.compilation.tasks)}"
            )
        return gleam

    def plan(self, genes: Genes, strategy: int, choices: Genes | None = None) -> tuple[Plan, Worth]:
        """Returns the plan of a sequence with a strategy, or choices by task, and what it is worth."""
        worker = self.worker()
        worker.evaluate(genes, strategy, choices)
        columns = worker.workspace.columns
        count = len(self.compilation.tasks)
        order = columns["order"][: worker.workspace.planned]
        plan = self.compilation.plan(columns["choice"][:count], columns["start"][:count], order)
        return plan, judge(self._compiled_goals, worker.workspace)

    def judge(self, plan: Plan) -> Worth | None:
        """Returns the worth of a valid plan from elsewhere, or `None` if it is not complete."""
        best = self.heuristics[0]
        if plan.unplanned or best.worth.unplanned:
            return None
        # The kernel's other counts are the same for every complete schedule.
        worker = self.worker()
        worker.evaluate(best.heuristic.genes, best.heuristic.strategy)
        columns = worker.workspace.columns
        columns["choice"][: len(self.compilation.tasks)] = self.compilation.choices_of(plan)
        for row, (workflow, task) in enumerate(self.compilation.tasks):
            placement = plan.placement(workflow.name, task.name)
            assert placement is not None, "a plan has every task, or lists it as unplanned"
            columns["start"][row] = placement.start
            columns["end"][row] = placement.end
            columns["cost"][row] = placement.cost
        return judge(self._compiled_goals, worker.workspace)
