"""Plans in a thread of its own, and reports progress.

A plan is due when its planning slot ends. So a search gets the time that preparation leaves, less
what the last plannings needed at their end.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import structlog

from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.planner.gleam import GUIDED
from broker.planner.goals import Goals
from broker.planner.islands import IslandSearch
from broker.planner.search import Budget, Progress, Search
from broker.scheduler.commands import StartPlanning
from broker.scheduler.events import Event, PlanFailed, PlanFound
from broker.scheduler.planning_cycle import SHORT_S
from broker.scheduler.planning_input import PlanningInput, pose

Log = structlog.typing.FilteringBoundLogger

RESERVE_SHARE = 0.05
"""Least share of the period reserved for the end of the work."""

RESERVE_FACTOR = 1.25
"""Factor on what the last plannings needed."""

REMEMBERED = 5
"""Number of plannings."""

NO_TIME = "no time was found: every alternative is closed too soon"


@dataclass(frozen=True)
class PlanningSettings:
    """How the search works.

    Attributes:
        seconds: its budget, real seconds from the order on; preparation is part of it.
        evaluations: its budget, schedules that it builds; with infinite seconds the plan depends on
            nothing but what is planned and the seed.
        workers: threads; `None` for all processors.
        seed: of all chance; the number of the plan is added.
        period: real seconds from the order on in which the plan has to be there; what preparation
            and the end of the work need of it is no search's.
        islands: populations that search side by side and exchange their best; they share the budget.
    """

    seconds: float = 150.0
    evaluations: float = float("inf")
    workers: int | None = None
    population: int = 60
    seed: int = 1
    goals: Goals = field(default_factory=Goals)
    period: float = float("inf")
    islands: int = 1


@dataclass(frozen=True, slots=True)
class Searching:
    """How far the search that runs is, and on how many islands."""

    number: int
    reason: str
    progress: Progress
    islands: int = 1


class Replanner:
    """Plans situations; `searching` is the progress of the running search, or `None`."""

    def __init__(
        self,
        settings: PlanningSettings,
        tell: Callable[[Event], None],
        log: Log,
        on_progress: Callable[[Searching], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._tell = tell
        self._log = log
        self._on_progress = on_progress
        self._orders: asyncio.Queue[tuple[StartPlanning, float]] = asyncio.Queue()
        self._late: deque[float] = deque(maxlen=REMEMBERED)
        self._search: Search | IslandSearch | None = None
        self._stopped = 0
        self.searching: Searching | None = None

    def start(self, order: StartPlanning) -> None:
        """Begins a search."""
        self._orders.put_nowait((order, self._clock()))

    def stop(self, number: int) -> None:
        """Lets a search end with what it has."""
        self._stopped = number
        if self._search is not None:
            self._search.stop()

    async def run(self) -> None:
        """Plans what is ordered until it is cancelled, which ends a running search."""
        while True:
            order, since = await self._orders.get()
            deadline = since + min(self._seconds(), SHORT_S if order.short else math.inf)
            work = asyncio.get_running_loop().run_in_executor(None, self._plan, order, deadline)
            try:
                found = await asyncio.shield(work)
            except asyncio.CancelledError:
                self.stop(order.number)
                await asyncio.wait([work])
                raise
            except Exception as error:  # noqa: BLE001  # one search that fails is no end of the broker
                # The plan there is stays in force; the tasks in it go on.
                self._log.exception("planning_failed", number=order.number)
                found = PlanFailed(0, order.number, f"{type(error).__name__}: {error}")
            self.searching = None
            self._late.append(max(0.0, self._clock() - deadline))
            self._tell(found)

    def _seconds(self) -> float:
        # From an order to the end of its search. A search ends with the schedules at hand, and its result
        # becomes a plan after that: how late that was is kept free the next time.
        if self._settings.period == float("inf"):
            return self._settings.seconds
        reserve = max(
            RESERVE_SHARE * self._settings.period, RESERVE_FACTOR * max(self._late, default=0.0)
        )
        return min(self._settings.seconds, max(0.0, self._settings.period - reserve))

    def _plan(self, order: StartPlanning, deadline: float) -> PlanFound | PlanFailed:
        # In a thread of its own.
        loop_tell = self._progress(order)
        try:
            settings = replace(self._settings, seconds=max(0.0, deadline - self._clock()))
            if order.short:
                settings = replace(settings, islands=1)
            return plan_input(
                order.number, order.planning_input, settings, loop_tell, self._began(order)
            )
        finally:
            self._search = None

    def _began(self, order: StartPlanning) -> Callable[[Search | IslandSearch], None]:
        def began(search: Search | IslandSearch) -> None:
            self._search = search
            if self._stopped == order.number:
                search.stop()

        return began

    def _progress(self, order: StartPlanning) -> Callable[[Progress], None]:
        def progress(done: Progress) -> None:
            self.searching = Searching(order.number, order.reason, done, self._settings.islands)
            if self._on_progress is not None:
                self._on_progress(self.searching)

        return progress


def plan_input(
    number: int,
    planning_input: PlanningInput,
    settings: PlanningSettings,
    on_progress: Callable[[Progress], None] | None = None,
    began: Callable[[Search | IslandSearch], None] | None = None,
) -> PlanFound:
    """Plans a situation; the seconds of `settings` begin now.

    `on_progress` is called in this thread after each generation, `began` with the search before it
    runs, so that another thread can stop it.
    """
    began_at = time.monotonic()
    posed = pose(planning_input)
    if posed.problem is None:
        return PlanFound(0, number, Plan(()), None, posed.unplanned)
    seconds = max(0.0, settings.seconds - (time.monotonic() - began_at))
    search = _search(posed.problem, planning_input.old, settings, seconds, settings.seed + number)
    if began is not None:
        began(search)
    found = search.run(on_progress)
    late = tuple((workflow, task, NO_TIME) for workflow, task in found.plan.unplanned)
    fitness = None if found.worth is None else found.worth.fitness
    return PlanFound(0, number, found.plan, fitness, (*posed.unplanned, *late))


def _search(
    problem: Problem, old: Plan, settings: PlanningSettings, seconds: float, seed: int
) -> Search | IslandSearch:
    budget = Budget(seconds, settings.evaluations)
    gleam = replace(GUIDED, population=settings.population)
    before = old if len(old) else None
    if settings.islands > 1:
        return IslandSearch(
            problem,
            islands=settings.islands,
            budget=budget,
            settings=gleam,
            goals=settings.goals,
            seed=seed,
            workers=settings.workers,
            old=before,
        )
    return Search(
        problem,
        budget=budget,
        settings=gleam,
        goals=settings.goals,
        seed=seed,
        workers=settings.workers,
        old=before,
    )
