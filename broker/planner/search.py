"""The search: a budget, a clock and threads around a run of GLEAM.

Of the planner only searches read the clock: here, and in `islands`. With a budget of evaluations the result depends
on problem, settings and seed alone; with a budget of seconds it depends on the machine as well. Seconds
end a search after the schedules at hand, however large the problem: a step that has begun is abandoned.
"""

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.planner._worker import Worker
from broker.planner.evaluation import Worth
from broker.planner.gleam import Best, Gleam, GleamSettings, packed, unpacked
from broker.planner.goals import Goals
from broker.planner.heuristics import PAPER_STRATEGIES
from broker.planner.planning import HeuristicPlan, Planner

PLANNING_SECONDS = 180.0
"""The paper's planning time: three minutes."""

WORKERS_MAX = 256

POPULATION_MIN = 6
"""Least individuals where little time makes them fewer."""

FREE_SHARE = 0.5
"""Share of a budget for a search without contention of links, where there is contention."""

KEPT = "kept"
"""Key, in the state of a run that began from a plan made without contention, of the choices it keeps."""

SCHEDULES_EACH = 20
"""A population is smaller where there is no time for so many schedules of each individual: four generations
of about five children.
"""


@dataclass(frozen=True, slots=True)
class Budget:
    """When a search ends: at the first limit reached.

    Attributes:
        seconds: since it began, heuristics included; these are never cut short, and neither is a schedule.
        evaluations: schedules that GLEAM builds; ending a step may take a few more.
        fitness: good enough to stop, after a step.

    Raises:
        ValueError: a bound is negative, or nothing would ever end the search.
    """

    seconds: float = PLANNING_SECONDS
    evaluations: float = math.inf
    fitness: float = math.inf

    def __post_init__(self) -> None:
        if not self.seconds >= 0:
            raise ValueError(f"{self.seconds} seconds; at least 0")
        if not self.evaluations >= 0:
            raise ValueError(f"{self.evaluations} evaluations; at least 0")
        if self.seconds == self.evaluations == math.inf:
            raise ValueError("a search needs a bound of seconds or of evaluations")


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a search."""

    seconds: float
    generation: int
    evaluations: int
    fitness: float


@dataclass(frozen=True)
class Found:
    """Result of a search.

    Attributes:
        heuristics: all heuristic plans, best first.
        reason: why it ended: "seconds", "evaluations", "fitness", "stopped", or "fixed" if
            there was nothing to plan.
        state: of the run, to continue with `resume`; empty if there was none. It knows nothing of a step
            that was abandoned, so the plan may be better.
    """

    plan: Plan
    worth: Worth | None
    heuristics: list[HeuristicPlan]
    progress: Progress
    reason: str
    state: dict[str, Any] = field(default_factory=dict, repr=False)


class Search:
    """One search on one problem, from its heuristics to its end.

    `workers` threads (by default all processors) do not change the result. `resume` continues a
    run on this very problem, or a saved one, with that run's settings and seed. With a budget of seconds and `shrinking` the
    population is smaller where schedules take long. A `planner` of this problem, goals and old plan may be
    handed over.

    Where links carry one transfer at a time and `settings` have all strategies, half of the budget goes to a search without contention, whose plan
    the rest begins from, with the same resources and order: so it comes to no more than ignoring contention for that half.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        budget: Budget | None = None,
        settings: GleamSettings | None = None,
        goals: Goals | None = None,
        seed: int = 0,
        workers: int | None = None,
        old: Plan | None = None,
        resume: dict[str, Any] | Gleam | None = None,
        shrinking: bool = True,
        planner: Planner | None = None,
    ) -> None:
        self._began = time.monotonic()
        self._budget = budget or Budget()
        self._deadline = self._began + self._budget.seconds
        self._abandoned: Best | None = None
        self._abandoned_evaluations = 0
        self._gleam: Gleam | None = None
        self._free: Search | None = None
        self._before = Progress(0.0, 0, 0, 0.0)
        self._kept = ""
        if workers is not None and not 1 <= workers <= WORKERS_MAX:
            raise ValueError(f"{workers} workers; from 1 to {WORKERS_MAX}")
        count = workers or min(WORKERS_MAX, len(os.sched_getaffinity(0)))
        self.problem = problem
        self._stop = False
        self._planner: Planner | None = None
        fixed = {placement.key for placement in problem.fixed}
        if all((w.name, t.name) in fixed for w in problem.workflows for t in w.tasks):
            return
        settings = settings or GleamSettings()
        if isinstance(resume, dict):
            self._kept = resume.get(KEPT, "")
            resume = Gleam.restored(resume)
        assigning = settings.assign or (resume is not None and resume.assigned)
        self._planner = planner or Planner(problem, goals, old, assigning=assigning)
        self._workers = [self._planner.worker() for _ in range(count)]
        self._settings, self._seed, self._shrinking = settings, seed, shrinking
        if self._kept:
            self._planner.compilation.keep(unpacked(self._kept))
        if resume is not None:
            self._gleam = self._planner.resumed(resume)
            return
        free = self._planner.without_contention
        if free is None or settings.strategies <= PAPER_STRATEGIES:
            self._populate()
            return
        self._free = Search(
            free,
            budget=Budget(
                max(0.0, self._deadline - time.monotonic()) * FREE_SHARE,
                self._budget.evaluations * FREE_SHARE,
            ),
            settings=settings,
            goals=goals,
            seed=seed,
            workers=workers,
            old=old,
            shrinking=shrinking,
        )

    def _populate(self) -> None:
        settings = self._settings
        if self._shrinking and self._budget.seconds < math.inf:
            settings = self._shrunk(settings)
        self._gleam = self.planner.run(settings, self._seed, self._workers[0], self._enough)

    def _enough(self) -> bool:
        return self._stop or self._over()

    def _begin(self, on_progress: Callable[[Progress], None] | None) -> None:
        # Searches without contention first. What that comes to with it is not known meanwhile.
        if self._free is None:
            return
        known = self.planner.heuristics[0].worth.fitness

        def tell(done: Progress) -> None:
            if on_progress is not None:
                seconds = time.monotonic() - self._began
                on_progress(replace(done, seconds=seconds, fitness=known))

        found = self._free.run(tell)
        self._free = None
        self._before = found.progress
        self.planner.begin_from(found.plan)
        self._kept = packed(self.planner.compilation.choices_of(found.plan))
        self._populate()

    def _shrunk(self, settings: GleamSettings) -> GleamSettings:
        began = time.monotonic()
        best = self.planner.heuristics[0].heuristic
        self._workers[0].evaluate(best.genes, best.strategy)
        now = time.monotonic()
        schedules = len(self._workers) * (self._deadline - now) / max(now - began, 1e-9)
        most = max(POPULATION_MIN, int(max(0.0, schedules) / SCHEDULES_EACH))
        if most >= settings.population:
            return settings
        return replace(settings, population=most, neighbours=None)

    def stop(self) -> None:
        """Makes `run` return after the schedules at hand; may be called from any thread."""
        self._stop = True
        free = self._free
        if free is not None:
            free.stop()
        self._cancel()

    def _cancel(self) -> None:
        for worker in self._workers if self._planner is not None else ():
            worker.cancelled = True

    def _over(self) -> bool:
        return time.monotonic() >= self._deadline

    def run(self, on_progress: Callable[[Progress], None] | None = None) -> Found:
        """Searches until the budget is used up, and returns the best plan.

        `on_progress` is called after each generation.
        """
        if self._planner is None:
            progress = Progress(time.monotonic() - self._began, 0, 0, 0.0)
            return Found(Plan(self.problem.fixed), None, [], progress, "fixed")
        reason = self._search(on_progress)
        genes, strategy, _, choices = self.best
        plan, worth = self._planner.plan(genes, strategy, choices)
        state = self._run.state()
        if self._kept:
            state[KEPT] = self._kept
        return Found(plan, worth, self._planner.heuristics, self.progress(), reason, state)

    def run_only(
        self,
        on_progress: Callable[[Progress], None] | None = None,
        enough: Callable[[], bool] = lambda: False,
    ) -> Gleam:
        """Searches likewise, and returns the run itself, for those who go on with it.

        It also ends after a step when there is `enough`.

        Raises:
            ValueError: there is nothing to plan.
        """
        _ = self.planner
        self._search(on_progress, enough)
        return self._run

    def _search(
        self,
        on_progress: Callable[[Progress], None] | None,
        enough: Callable[[], bool] = lambda: False,
    ) -> str:
        self._begin(on_progress)
        gleam = self._run
        with (
            ThreadPoolExecutor(max(1, len(self._workers) - 1), "planner") as executor,
            self._ended_in_time(),
        ):
            while not (reason := self._reason()):
                before = gleam.generation
                self._step(executor)
                if on_progress is not None and gleam.generation > before:
                    on_progress(self.progress())
                if enough():
                    break
        return reason

    @contextmanager
    def _ended_in_time(self) -> Iterator[None]:
        # Kernels read no clock: another thread tells them that the seconds are over.
        if self._budget.seconds == math.inf:
            yield
            return
        left = min(max(0.0, self._deadline - time.monotonic()), threading.TIMEOUT_MAX)
        timer = threading.Timer(left, self._cancel)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @property
    def best(self) -> Best:
        """The best individual so far, also of a step that was abandoned."""
        genes, strategy, fitness = self._run.best
        if self._abandoned is not None and self._abandoned[2] > fitness:
            return self._abandoned
        return genes, strategy, fitness, self._run.best_choices

    @property
    def _run(self) -> Gleam:
        assert self._gleam is not None, "it is there from when the search begins"
        return self._gleam

    @property
    def planner(self) -> Planner:
        """Planner of this search: goals, bounds and heuristics.

        Raises:
            ValueError: there is nothing to plan.
        """
        if self._planner is None:
            raise ValueError("there is nothing to plan: every task is fixed")
        return self._planner

    def progress(self) -> Progress:
        """Returns how far the search is."""
        before, gleam = self._before, self._run
        evaluations = before.evaluations + gleam.evaluations + self._abandoned_evaluations
        seconds = time.monotonic() - self._began
        return Progress(seconds, before.generation + gleam.generation, evaluations, self.best[2])

    def _reason(self) -> str:
        # Why to end now; empty to go on.
        if self._stop:
            return "stopped"
        if self._most_matings() == 0:
            return "evaluations"
        if self._over() or self._workers[0].cancelled:
            return "seconds"
        if self._budget.fitness < math.inf and self._run.best[2] >= self._budget.fitness:
            return "fitness"
        return ""

    def _most_matings(self) -> float:
        # How many matings the schedules left are enough for. Where each child is justified, none is begun
        # that could exceed them; else a step ends as it has begun.
        left = self._budget.evaluations - self._before.evaluations - self._run.evaluations
        most = self._run.schedules_of_mating
        if left <= 0:
            return 0
        return math.inf if most is None or left == math.inf else left // most

    def _step(self, executor: ThreadPoolExecutor) -> None:
        gleam = self._run
        most = self._most_matings()
        matings = gleam.begin(None if most == math.inf else int(most))
        helpers: list[Worker] = self._workers[1 : min(len(self._workers), matings)]
        futures = [executor.submit(gleam.breed, worker) for worker in helpers]
        gleam.breed(self._workers[0])
        for future in futures:
            future.result()
        if any(worker.cancelled for worker in self._workers):
            self._abandoned_evaluations, self._abandoned = gleam.abandon()
            return
        gleam.commit()


def search(problem: Problem, **settings: Any) -> Found:
    """Plans a problem: `Search(problem, …).run()`."""
    return Search(problem, **settings).run()
