"""Islands: several runs of GLEAM on one problem, on as many workers, which exchange their best in rounds.

For problems for which one machine's processors are too few. Each island is a run with a seed of its own; after each
round the best individual of an island replaces the worst of the next one, in a circle. What is found depends on
problem, settings, seed, number of islands, rounds and schedules in a round, and not on who does the work: threads,
processes or a cluster (`lrms_sim.util.executors`). Where seconds end rounds it depends on the machine as well.
"""

import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.planner.evaluation import Worth
from broker.planner.gleam import GUIDED, Best, Gleam, GleamSettings
from broker.planner.goals import Goals
from broker.planner.heuristics import PAPER_STRATEGIES
from broker.planner.planning import Planner
from broker.planner.search import FREE_SHARE, Budget, Progress, Search
from lrms_sim.util.executors import Executor, ThreadExecutor

SEED_STEP = 1_000_003
"""Distance of the seeds of neighbouring islands, so that the seeds of a study do not meet them."""

ISLAND_ROUNDS: Final = 10
"""Rounds of islands; after each their best go on to the next island."""


class Kept:
    """The run of an island between two rounds: as it is in this process, and as its state where it is sent.

    What has come from elsewhere and goes on is not read in between.
    """

    def __init__(self, run: Gleam) -> None:
        self._run: Gleam | None = run
        self._state: dict[str, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state of the run."""
        return self.state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes up the state of the run."""
        self._run, self._state = None, state

    @property
    def state(self) -> dict[str, Any]:
        """All of the run, as plain JSON values."""
        if self._state is not None:
            return self._state
        assert self._run is not None, "it has one or the other"
        return self._run.state()

    def take(self) -> Gleam:
        """Returns the run, for one who goes on with it."""
        if self._run is None:
            assert self._state is not None, "it has one or the other"
            return Gleam.restored(self._state)
        return self._run


@dataclass(frozen=True, slots=True)
class Round:
    """What an island does next.

    Attributes:
        seed: of its run.
        kept: its run after the last round; `None` in the first one.
        immigrant: the best of the island before it; `None` in the first round.
        evaluations: schedules that the run has built when the round ends.
        seconds: from its beginning on after which the round ends with the step at hand.
        deadline: when it ends with the schedules at hand, by the monotonic clock of this machine, in seconds.
    """

    seed: int
    kept: Kept | None
    immigrant: Best | None
    evaluations: float
    seconds: float = math.inf
    deadline: float = math.inf


@dataclass(frozen=True, slots=True)
class Reached:
    """How an island stands after a round: its run, its best, and the schedules it has built."""

    kept: Kept
    best: Best
    evaluations: int


class Watch:
    """Follows the rounds of islands on threads of this process, and ends them.

    Args:
        on_progress: is called after each generation of an island, in the thread of that island.
    """

    def __init__(self, on_progress: Callable[[Progress], None] | None = None) -> None:
        self.stopped = False
        self._began = time.monotonic()
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._running: dict[int, Search] = {}
        self._progress: dict[int, Progress] = {}

    def stop(self) -> None:
        """Ends the rounds that go on after the schedules at hand, and the search with them; from any thread."""
        with self._lock:
            self.stopped = True
            for search in self._running.values():
                search.stop()

    def began(self, seed: int, search: Search) -> None:
        """Notes that an island of this seed begins a round."""
        with self._lock:
            self._running[seed] = search
            if self.stopped:
                search.stop()

    def ended(self, seed: int) -> None:
        """Notes that its round is over."""
        with self._lock:
            self._running.pop(seed, None)

    def progress(self, seed: int, done: Progress) -> None:
        """Notes how far it is, and says how far all are: the generation is the least, the fitness the best."""
        if self._on_progress is None:
            return
        with self._lock:
            self._progress[seed] = done
            every = list(self._progress.values())
            self._on_progress(
                Progress(
                    time.monotonic() - self._began,
                    min(each.generation for each in every),
                    sum(each.evaluations for each in every),
                    max(each.fitness for each in every),
                )
            )


@dataclass
class Island:
    """Does rounds, as an executor's function; where it has been sent it compiles its problem once.

    Attributes:
        workers: threads of a round; they do not change what it comes to.
        watch: follows the rounds, on threads of this process; it is not sent elsewhere.
        free: the plan made without contention of links, from which all islands begin.
    """

    problem: Problem
    settings: GleamSettings
    goals: Goals | None = None
    old: Plan | None = None
    workers: int = 1
    watch: Watch | None = field(default=None, repr=False, compare=False)
    free: Plan | None = None
    _planner: Planner | None = field(default=None, init=False, repr=False, compare=False)
    _lock: threading.Lock = field(
        default_factory=threading.Lock, init=False, repr=False, compare=False
    )

    def __getstate__(self) -> dict[str, Any]:
        """Returns what is sent to a worker: the kernels' memory is not."""
        kept = {**self.__dict__, "watch": None, "_planner": None}
        del kept["_lock"]
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes up what was sent."""
        self.__dict__.update(state, _lock=threading.Lock())

    @property
    def planner(self) -> Planner:
        """The planner of this process, which its threads share."""
        with self._lock:
            if self._planner is None:
                assigning = self.settings.assign
                planner = Planner(self.problem, self.goals, self.old, assigning=assigning)
                if self.free is not None:
                    planner.begin_from(self.free)
                self._planner = planner
            return self._planner

    def __call__(self, turn: Round, _bound: float) -> Reached:
        """Returns how an island stands after a round."""
        over = time.monotonic() + turn.seconds
        planner = self.planner
        run = None if turn.kept is None else turn.kept.take()
        if run is not None and turn.immigrant is not None:
            run.receive(turn.immigrant)
        search = Search(
            self.problem,
            budget=Budget(max(0.0, turn.deadline - time.monotonic()), turn.evaluations),
            settings=self.settings,
            seed=turn.seed,
            workers=self.workers,
            resume=run,
            planner=planner,
        )
        watch = self.watch or Watch()
        watch.began(turn.seed, search)
        try:
            run = search.run_only(
                lambda done: watch.progress(turn.seed, done),
                (lambda: False) if over == math.inf else (lambda: time.monotonic() >= over),
            )
        finally:
            watch.ended(turn.seed)
        return Reached(Kept(run), search.best, search.progress().evaluations)


@dataclass(frozen=True)
class FoundByIslands:
    """What islands have found: the plan, its worth, and the schedules that all have built together.

    There is no worth where there was nothing to plan.
    """

    plan: Plan
    worth: Worth | None
    evaluations: int


def search_islands(
    problem: Problem,
    executor: Executor,
    *,
    islands: int,
    rounds: int,
    evaluations: float,
    settings: GleamSettings = GUIDED,
    goals: Goals | None = None,
    old: Plan | None = None,
    seed: int = 0,
    stopped: Callable[[], bool] = lambda: False,
    seconds: float = math.inf,
    workers: int = 1,
    watch: Watch | None = None,
) -> FoundByIslands:
    """Plans a problem on islands; each builds about so many `evaluations` in each of the `rounds`.

    It ends after a round if it is `stopped`, and after so many `seconds` with the schedules at hand. Where `evaluations` are
    infinite each round has its share of the seconds. Seconds and `watch` are for executors of this machine and of this
    process. Each island has so many threads (`workers`). Where links carry one transfer at a time, a part of the rounds plans without contention,
    as a `Search` does, and all islands begin the others from the best of them.

    Raises:
        ValueError: there is nothing to plan, no island, round or schedule, or nothing would end it.
        ExecutorError: the workers are gone.
    """
    if min(islands, rounds, evaluations) < 1:
        raise ValueError(
            f"{islands} islands, {rounds} rounds of {evaluations} schedules; at least 1"
        )
    deadline = time.monotonic() + seconds
    if evaluations == deadline == math.inf:
        raise ValueError("islands need a bound of seconds or of evaluations")
    island = Island(problem, settings, goals, old, workers, watch)
    before = 0
    free = island.planner.without_contention
    if free is not None and settings.strategies > PAPER_STRATEGIES:
        if rounds == 1:
            rounds, evaluations = 2, evaluations / 2
        first = max(1, int(rounds * FREE_SHARE))
        found = search_islands(
            free,
            executor,
            islands=islands,
            rounds=first,
            evaluations=max(1, evaluations),
            settings=settings,
            goals=goals,
            old=old,
            seed=seed,
            stopped=stopped,
            seconds=(deadline - time.monotonic()) * first / rounds,
            workers=workers,
            watch=watch,
        )
        before, rounds = found.evaluations, rounds - first
        island.free = found.plan
        island.planner.begin_from(found.plan)
    turns = [Round(seed + SEED_STEP * row, None, None, evaluations) for row in range(islands)]
    reached: list[Reached] = []
    for number in range(rounds):
        share = math.inf
        if evaluations == math.inf:
            share = max(0.0, deadline - time.monotonic()) / (rounds - number)
        turns = [replace(turn, seconds=share, deadline=deadline) for turn in turns]
        reached = executor.evaluate(island, turns)
        if stopped() or (watch is not None and watch.stopped) or time.monotonic() >= deadline:
            break
        turns = [
            Round(turn.seed, mine.kept, other.best, evaluations * (number + 2))
            for turn, mine, other in zip(
                turns, reached, [*reached[-1:], *reached[:-1]], strict=True
            )
        ]
    best = max(reached, key=lambda each: each.best[2]).best
    plan, worth = island.planner.plan(best[0], best[1], best[3])
    return FoundByIslands(plan, worth, before + sum(each.evaluations for each in reached))


class IslandSearch:
    """A search on islands, on threads of this process, within the budget of a `Search`.

    The schedules of the budget are divided among the islands. Each has a thread, and more where there are more
    `workers` (by default all processors). With a budget of evaluations alone the result depends on problem, settings, seed and
    number of islands, and not on threads.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        islands: int,
        budget: Budget,
        settings: GleamSettings = GUIDED,
        goals: Goals | None = None,
        seed: int = 0,
        workers: int | None = None,
        old: Plan | None = None,
    ) -> None:
        self._deadline = time.monotonic() + budget.seconds
        self._problem = problem
        self._islands = islands
        self._each = budget.evaluations
        if budget.evaluations < math.inf:
            self._each = max(1, int(budget.evaluations) // islands)
        self._settings = settings
        self._goals = goals
        self._old = old
        self._seed = seed
        self._threads = max(1, (workers or len(os.sched_getaffinity(0))) // islands)
        self._on_progress: Callable[[Progress], None] | None = None
        self._watch = Watch(self._tell)

    def stop(self) -> None:
        """Makes `run` return after the schedules at hand; may be called from any thread."""
        self._watch.stop()

    def _tell(self, progress: Progress) -> None:
        if self._on_progress is not None:
            self._on_progress(progress)

    def run(self, on_progress: Callable[[Progress], None] | None = None) -> FoundByIslands:
        """Searches until the budget is used up, and returns the best plan.

        `on_progress` is called after each generation of an island, by one thread at a time.
        """
        fixed = {placement.key for placement in self._problem.fixed}
        if all((w.name, t.name) in fixed for w in self._problem.workflows for t in w.tasks):
            return FoundByIslands(Plan(self._problem.fixed), None, 0)
        self._on_progress = on_progress
        rounds = ISLAND_ROUNDS
        evaluations = self._each
        if evaluations < math.inf:
            rounds = min(rounds, int(evaluations))
            evaluations = int(evaluations) // rounds
        with ThreadExecutor(self._islands) as executor:
            return search_islands(
                self._problem,
                executor,
                islands=self._islands,
                rounds=rounds,
                evaluations=evaluations,
                settings=self._settings,
                goals=self._goals,
                old=self._old,
                seed=self._seed,
                seconds=max(0.0, self._deadline - time.monotonic()),
                workers=self._threads,
                watch=self._watch,
            )
