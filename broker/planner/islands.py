"""Islands: several runs of GLEAM on one problem, on as many workers, which exchange their best in rounds.

For problems for which one machine's processors are too few. Each island is a run with a seed of its own; after each
round the best individual of an island replaces the worst of the next one, in a circle. What is found depends on
problem, settings, seed, number of islands, rounds and schedules in a round, and not on who does the work: threads,
processes or a cluster (`lrms_sim.util.executors`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.planner.evaluation import Worth
from broker.planner.gleam import GUIDED, Best, Gleam, GleamSettings
from broker.planner.goals import Goals
from broker.planner.planning import Planner
from broker.planner.search import Budget, Search
from lrms_sim.util.executors import Executor

SEED_STEP = 1_000_003
"""Distance of the seeds of neighbouring islands, so that the seeds of a study do not meet them."""


@dataclass(frozen=True, slots=True)
class Round:
    """What an island does next.

    Attributes:
        seed: of its run.
        state: of its run after the last round; `None` in the first one.
        immigrant: the best of the island before it; `None` in the first round.
        evaluations: schedules that the run has built when the round ends.
    """

    seed: int
    state: dict[str, Any] | None
    immigrant: Best | None
    evaluations: float


@dataclass(frozen=True, slots=True)
class Reached:
    """How an island stands after a round: the state of its run, its best, and the schedules it has built."""

    state: dict[str, Any]
    best: Best
    evaluations: int


@dataclass
class Island:
    """Does rounds, as an executor's function; where it has been sent it compiles its problem once."""

    problem: Problem
    settings: GleamSettings
    goals: Goals | None = None
    old: Plan | None = None
    _planner: Planner | None = field(default=None, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Returns what is sent to a worker: the kernels' memory is not."""
        return {**self.__dict__, "_planner": None}

    @property
    def planner(self) -> Planner:
        """The planner of this process."""
        if self._planner is None:
            assigning = self.settings.assign
            self._planner = Planner(self.problem, self.goals, self.old, assigning=assigning)
        return self._planner

    def __call__(self, turn: Round, _bound: float) -> Reached:
        """Returns how an island stands after a round, with one thread."""
        state = turn.state
        if state is not None and turn.immigrant is not None:
            state = with_immigrant(state, turn.immigrant)
        run = Search(
            self.problem,
            budget=Budget(math.inf, turn.evaluations),
            settings=self.settings,
            seed=turn.seed,
            workers=1,
            resume=state,
            planner=self.planner,
        ).run_only()
        genes, strategy, fitness = run.best
        return Reached(run.state(), (genes, strategy, fitness, run.best_choices), run.evaluations)


def with_immigrant(state: dict[str, Any], immigrant: Best) -> dict[str, Any]:
    """Returns the state of a run in which an individual has taken the place of the worst, if it is better."""
    run = Gleam.restored(state)
    run.receive(immigrant)
    return run.state()


@dataclass(frozen=True)
class FoundByIslands:
    """What islands have found: the plan, its worth, and the schedules that all have built together."""

    plan: Plan
    worth: Worth
    evaluations: int


def search_islands(
    problem: Problem,
    executor: Executor,
    *,
    islands: int,
    rounds: int,
    evaluations: int,
    settings: GleamSettings = GUIDED,
    goals: Goals | None = None,
    old: Plan | None = None,
    seed: int = 0,
    stopped: Callable[[], bool] = lambda: False,
) -> FoundByIslands:
    """Plans a problem on islands; each builds about so many `evaluations` in each of the `rounds`.

    It ends after a round if it is `stopped`.

    Raises:
        ValueError: there is nothing to plan, or no island, round or schedule.
        ExecutorError: the workers are gone.
    """
    if min(islands, rounds, evaluations) < 1:
        raise ValueError(
            f"{islands} islands, {rounds} rounds of {evaluations} schedules; at least 1"
        )
    island = Island(problem, settings, goals, old)
    turns = [Round(seed + SEED_STEP * row, None, None, evaluations) for row in range(islands)]
    reached: list[Reached] = []
    for number in range(rounds):
        reached = executor.evaluate(island, turns)
        if stopped():
            break
        turns = [
            Round(turn.seed, mine.state, before.best, evaluations * (number + 2))
            for turn, mine, before in zip(
                turns, reached, [*reached[-1:], *reached[:-1]], strict=True
            )
        ]
    best = max(reached, key=lambda each: each.best[2]).best
    plan, worth = island.planner.plan(best[0], best[1], best[3])
    return FoundByIslands(plan, worth, sum(each.evaluations for each in reached))
