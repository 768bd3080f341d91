"""Plans one problem by several methods, one after another, and keeps the best plan."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from broker.model.heft import heft
from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.planner.evaluation import Worth
from broker.planner.gleam import BLOCKS, GUIDED, PROJECT, GleamSettings, project_population
from broker.planner.goals import Goals
from broker.planner.islands import ISLAND_ROUNDS, search_islands
from broker.planner.memetic import Memetic
from broker.planner.planning import Planner
from broker.planner.search import Budget, Progress, Search
from lrms_sim.util.executors import Executor

SEARCHES: Final[Mapping[str, GleamSettings]] = {
    "gleam": GleamSettings(),
    "asma-best": GleamSettings(memetic=Memetic(best_only=True)),
    "asma": GleamSettings(memetic=Memetic()),
    "asma-shift": GUIDED,
    "blocks": BLOCKS,
    "project": PROJECT,
}
"""Searches by the names that users give: the paper's three, our own, those for job shops and projects."""

TITLES: Final[Mapping[str, str]] = {
    "heuristic": "Heuristic",
    "heft": "HEFT",
    "gleam": "GLEAM",
    "asma-best": "ASMA best",
    "asma": "ASMA",
    "asma-shift": "ASMA guided",
    "blocks": "GLEAM blocks",
    "project": "GLEAM justified",
}
"""Names of methods in tables."""


PLACED_PER_SECOND: Final = 5e6
"""Tasks that one thread places in a second, where schedules are justified; only a rough number."""

HEFT_MAX: Final = 10_000_000
"""Most alternatives of all tasks together with which HEFT is made: ten seconds or so."""

REPLANNING: Final = "replanning: "
"""Prefix of the names of heuristics that use an old plan."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one method on a problem.

    Attributes:
        method: "heuristic", "heft", or one of `SEARCHES`.
        detail: the heuristic, or why a search ended.
        worth: `None` if all tasks are fixed or HEFT leaves a task out.
        evaluations: schedules built; `None` for HEFT.
    """

    method: str
    detail: str
    plan: Plan
    worth: Worth | None
    seconds: float
    evaluations: int | None


class Comparison:
    """Runs methods on one problem; a running search can be stopped from elsewhere.

    Searches start from the planner's heuristics and the sequence of the old plan or, without one, of
    HEFT. All use the same goals and bounds. `workers` defaults to all processors. HEFT is left out where tasks
    have too many alternatives in all (`HEFT_MAX`); with the planner's heuristics *upward rank* and RAS-4 are the same.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        goals: Goals | None = None,
        old: Plan | None = None,
        seed: int = 0,
        workers: int | None = None,
        population: int | None = None,
    ) -> None:
        self.problem = problem
        self.results: list[Result] = []
        self._goals = goals
        self._old = old
        self._start = old
        self._seed = seed
        self._workers = workers
        self._population = population
        self._search: Search | None = None
        self._stopped = False
        self._planners: dict[bool, Planner] = {}
        fixed = {each.key for each in problem.fixed}
        self._tasks = [
            t for w in problem.workflows for t in w.tasks if (w.name, t.name) not in fixed
        ]

    def stop(self) -> None:
        """Ends the running search with what it has found, and skips those still to come."""
        self._stopped = True
        if self._search is not None:
            self._search.stop()

    @property
    def with_heft(self) -> bool:
        """Whether HEFT is among the baselines."""
        return sum(len(task.alternatives) for task in self._tasks) <= HEFT_MAX

    @property
    def stopped(self) -> bool:
        """Whether it was stopped."""
        return self._stopped

    def baselines(self) -> None:
        """Adds the best heuristic of the planner, and HEFT."""
        began = time.monotonic()
        plan = heft(self.problem) if self.with_heft else None
        took = time.monotonic() - began
        self._start = self._old or plan
        judged = None
        if self._tasks:
            began = time.monotonic()
            planner = self._planner(assigning=False)
            self._add_heuristic(planner, began)
            judged = None if plan is None else planner.judge(plan)
        if plan is not None:
            self.results.append(Result("heft", "", plan, judged, took, None))

    def _planner(self, *, assigning: bool) -> Planner:
        # Made once: to compile a large problem and to try its heuristics takes seconds.
        if assigning not in self._planners:
            self._planners[assigning] = Planner(
                self.problem, self._goals, self._start, assigning=assigning
            )
        return self._planners[assigning]

    def _add_heuristic(self, planner: Planner, began: float) -> None:
        tried = planner.heuristics
        if self._old is None:
            # Those that use HEFT's sequence would hide what the planner's own are worth.
            tried = [each for each in tried if not each.heuristic.name.startswith(REPLANNING)]
        best = tried[0].heuristic
        plan, worth = planner.plan(best.genes, best.strategy)
        took = time.monotonic() - began
        self.results.append(Result("heuristic", best.name, plan, worth, took, len(tried)))

    def search(
        self, method: str, budget: Budget, on_progress: Callable[[Progress], None] | None = None
    ) -> None:
        """Adds a search by one of `SEARCHES`, unless the comparison was stopped."""
        if self._stopped:
            return
        settings = SEARCHES[method]
        if self._population is not None:
            settings = replace(settings, population=self._population)
        elif method == "project":
            settings = replace(settings, population=project_population(self._schedules(budget)))
        planner = self._planner(assigning=settings.assign) if self._tasks else None
        self._search = Search(
            self.problem,
            budget=budget,
            settings=settings,
            shrinking=self._population is None,
            planner=planner,
            goals=self._goals,
            seed=self._seed,
            workers=self._workers,
            old=self._start,
        )
        if self._stopped:
            self._search.stop()
        found = self._search.run(on_progress)
        self._search = None
        progress = found.progress
        self.results.append(
            Result(
                method,
                found.reason,
                found.plan,
                found.worth,
                progress.seconds,
                progress.evaluations,
            )
        )

    def search_on_islands(
        self, method: str, executor: Executor, islands: int, evaluations: int
    ) -> None:
        """Adds a search by one of `SEARCHES` on islands, of so many schedules each, unless it was stopped.

        Raises:
            ExecutorError: the workers are gone.
        """
        if self._stopped or not self._tasks:
            return
        settings = SEARCHES[method]
        if self._population is not None:
            settings = replace(settings, population=self._population)
        rounds = min(ISLAND_ROUNDS, evaluations)
        began = time.monotonic()
        found = search_islands(
            self.problem,
            executor,
            islands=islands,
            rounds=rounds,
            evaluations=-(-evaluations // rounds),
            settings=settings,
            goals=self._goals,
            old=self._start,
            seed=self._seed,
            stopped=lambda: self._stopped,
        )
        took = time.monotonic() - began
        reason = "stopped" if self.stopped else "evaluations"
        self.results.append(
            Result(method, reason, found.plan, found.worth, took, found.evaluations)
        )

    def _schedules(self, budget: Budget) -> float:
        # About how many schedules of a project fit into a budget.
        tasks = sum(len(workflow.tasks) for workflow in self.problem.workflows)
        return min(budget.evaluations, budget.seconds * PLACED_PER_SECOND / tasks)

    @property
    def best(self) -> Result:
        """The result of highest fitness, the first of equals."""
        return best_of(self.results)


def best_of(results: Sequence[Result]) -> Result:
    """Returns the result of highest fitness, the first of equals; one without only if none has."""
    judged = [each for each in results if each.worth is not None]
    if not judged:
        return results[0]
    return max(judged, key=lambda each: each.worth.fitness if each.worth else 0.0)
