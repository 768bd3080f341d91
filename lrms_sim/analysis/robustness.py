"""How much the figures of a replay depend on chance: the same workload, its arrivals shifted a little.

A recorded workload is one sample. Replaying it with every submission moved by a random amount shows
how well a difference between two disciplines can be told from noise (after Tsafrir, Feitelson,
"Instability in Parallel Job Scheduling Simulation", IPDPS 2006).
"""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from lrms_sim.analysis import metrics
from lrms_sim.analysis.counted import ALL, Counted
from lrms_sim.analysis.samples import MeanInterval, mean_interval
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import Discipline
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.schedule import Schedule

FIGURES: Final[dict[str, Callable[[Schedule, Counted, float], float]]] = {
    "awrt_s": lambda found, counted, _: metrics.awrt(found, where=counted.of(found.jobs)),
    "mean_wait_time_s": lambda found, counted, _: metrics.mean_wait_time(
        found, where=counted.of(found.jobs)
    ),
    "mean_bounded_slowdown": lambda found, counted, tau: metrics.mean_bounded_slowdown(
        found, where=counted.of(found.jobs), threshold=tau
    ),
    "utilization": lambda found, counted, _: counted.utilization(found),
}
"""Measurements of every repetition, by their names in JSON: of the jobs that count, with τ in seconds."""

REPEATS_MAX: Final = 10_000


def shifted_arrivals(jobs: JobTable, seconds: float, rng: np.random.Generator) -> JobTable:
    """Returns the jobs with each submission moved by up to so many whole seconds either way.

    Raises:
        ValueError: `seconds` is negative or no finite number.
    """
    if not 0 <= seconds < 2**40:
        raise ValueError(f"the shift of arrivals is {seconds}; seconds from 0 on are needed")
    most = int(seconds)
    moved = jobs.submit_time + rng.integers(-most, most, len(jobs), endpoint=True)
    return type(jobs).from_columns(**jobs.columns() | {"submit_time": moved})


def shift_generator(seed: int, number: int) -> np.random.Generator:
    """Returns the generator of one repetition of a seed, from 0 on."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


def repetitions(
    jobs: JobTable,
    processors: int,
    discipline: Discipline,
    *,
    repeat: int,
    seconds: float,
    seed: int,
) -> Iterator[Schedule]:
    """Yields the schedules of a workload whose arrivals are shifted anew each time.

    Repetition i of a seed has the same arrivals for all disciplines, so that they can be compared
    pair by pair. `repeat` is at most `REPEATS_MAX`; `seconds` is the largest shift.

    Raises:
        ValueError: there are too few or too many repetitions, or as for `shifted_arrivals`.
    """
    if not 1 <= repeat <= REPEATS_MAX:
        raise ValueError(f"{repeat} repetitions; from 1 to {REPEATS_MAX} are possible")
    for number in range(repeat):
        stream = shift_generator(seed, number)
        yield simulate(shifted_arrivals(jobs, seconds, stream), processors, discipline)


def figures(
    jobs: JobTable,
    processors: int,
    discipline: Discipline,
    *,
    repeat: int,
    seconds: float,
    seed: int,
    counted: Counted = ALL,
    tau: float = metrics.BOUNDED_SLOWDOWN_THRESHOLD_S,
) -> dict[str, MeanInterval]:
    """Returns the mean and its 95 % confidence interval of each of the `FIGURES`.

    Arguments and errors are those of `repetitions`; the jobs that are `counted` are so by their shifted
    arrivals, and `tau` is the threshold of the bounded slowdown, seconds.
    """
    values: dict[str, list[float]] = {name: [] for name in FIGURES}
    for schedule in repetitions(
        jobs, processors, discipline, repeat=repeat, seconds=seconds, seed=seed
    ):
        for name, figure in FIGURES.items():
            values[name].append(figure(schedule, counted, tau))
    return {name: mean_interval(found) for name, found in values.items()}
