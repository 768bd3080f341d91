"""Trade-offs between seven objectives: EASY with a key for each user, searched by NSGA-II.

The papers compare with schedules of an offline search on all objectives at once, without its
method. Here a schedule is an order of users that EASY backfills; it uses requested times alone, so
a provider could run it, given the users' keys.
"""

import math
from dataclasses import asdict
from itertools import permutations
from pathlib import Path
from typing import Final

import numpy as np
from rich.console import Console

from grms.learning.checkpoint import Checkpoint
from grms.learning.evolution.genes import GeneSpace, Genome, bounded_reals
from grms.learning.evolution.nsga2 import Nsga2, Nsga2Settings
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.recorded import Recorded
from grms.learning.evolution.strategies import Evaluation
from grms.learning.evolution.termination import Limits
from grms.learning.queueing.fitness import LIMIT_FACTOR, TuningCase
from grms.learning.queueing.problem import Workload
from grms.learning.training import CHECKPOINT, Session
from lrms_sim.machine.machine import user_numbers
from lrms_sim.scheduling.disciplines import EasyByUser
from lrms_sim.util.executors import Workers
from lrms_sim.workload.groups import GROUPS

SIGNS: Final = (-1.0, *(1.0,) * 6)
"""For U, AWRT, AWRT₁ … AWRT₅: the utilization is maximized, response times are minimized."""

FRONT_SETTINGS: Final = Nsga2Settings(population=200)
"""More than the 120 orders of groups, which begin; the others are drawn."""


class UserKeys:
    """Evaluates keys of users by replay; thread-safe.

    The value is f; the figures are one row, the seven objectives.

    Raises:
        ValueError: no job has a known user.
    """

    def __init__(self, case: TuningCase) -> None:
        self.case = case
        self._numbers = user_numbers(case.trial.jobs.user)
        if not (self._numbers >= 0).any():
            raise ValueError(f"{case.name}: no job has a known user; there is nobody to give a key")

    @property
    def space(self) -> GeneSpace:
        """One real gene from 0 to 1 for each user, in ascending order of users."""
        users = int(self._numbers.max()) + 1
        return bounded_reals(np.zeros(users), np.ones(users))

    def __call__(self, genome: Genome, bound: float = math.inf) -> Evaluation:
        """Replays the workload; stops at a large multiple of EASY's f."""
        limit = min(bound, LIMIT_FACTOR * self.case.easy_value)
        result = self.case.trial.run(EasyByUser(tuple(genome.real.tolist())), limit)
        if result.objectives is None:
            return Evaluation(math.nextafter(limit, math.inf))
        return Evaluation(result.value, (result.objectives.seven,))

    def group_keys(self, order: tuple[int, ...]) -> Genome:
        """Returns the keys by which users are served group after group, in the given order."""
        place = np.array([0.0, *(order.index(group) / (len(GROUPS) - 1) for group in GROUPS)])
        keys = np.zeros(len(self.space.low))
        known = self._numbers >= 0
        keys[self._numbers[known]] = place[self.case.trial.groups[known]]
        return Genome(keys, np.zeros(0, np.bool_))


def front_search(
    fitness: UserKeys, seed: int, settings: Nsga2Settings = FRONT_SETTINGS
) -> Recorded:
    """Returns a search that begins with the 120 orders of groups, and remembers everybody."""
    founders = [fitness.group_keys(order) for order in permutations(GROUPS)]
    return Recorded(Nsga2(fitness.space, settings, generator(seed), signs=SIGNS, founders=founders))


def run_front(
    workload: Workload,
    folder: Path,
    generations: int,
    console: Console,
    *,
    seed: int = 1,
    workers: Workers | None = None,
    settings: Nsga2Settings = FRONT_SETTINGS,
) -> tuple[tuple[float, ...], ...]:
    """Searches the trade-offs on a workload's training jobs; resumes a run in the folder.

    Args:
        workload: the log.
        folder: for the checkpoint.
        generations: after the first.
        console: shows progress.
        seed: of the random stream.
        workers: default threads.
        settings: of NSGA-II.

    Returns:
        The seven objectives of every fully evaluated individual, the orders of groups first.

    Raises:
        ValueError: no job has a known user.
        CheckpointError: the folder has a run of other settings, or cannot be written.
        TrainingInterrupted: Ctrl-C.
    """
    fitness = UserKeys(workload.training)
    description = {
        "strategy": {"method": "users", "seed": seed, "settings": asdict(settings)},
        "fitness": {
            "theta": list(workload.training.trial.theta),
            "workloads": [dict(workload.provenance)],
        },
    }
    resume = (folder / CHECKPOINT).exists()
    limits = Limits(generations=generations)
    session = Session(folder, description, limits, workers or Workers(), resume)
    session.run(front_search(fitness, seed, settings), fitness, console)
    return remembered(session.checkpoint)


def remembered(checkpoint: Checkpoint) -> tuple[tuple[float, ...], ...]:
    """Returns the recorded figures of a run's individuals, empty unless recording was requested.

    Raises:
        CheckpointError: the file cannot be read, or is of another run.
    """
    rows = checkpoint.read().strategy.get("seen", ())
    return tuple(tuple(float(number) for number in row) for row in rows)
