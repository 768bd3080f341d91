"""How sure a mean of a few replays is, and how much their figures depend on chance.

Confidence intervals are after Student. A recorded workload is one sample. Replaying it with every submission moved
by a random amount shows how well a difference between two disciplines can be told from noise (after Tsafrir,
Feitelson, "Instability in Parallel Job Scheduling Simulation", IPDPS 2006).
"""

import math
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from lrms_sim.analysis import metrics
from lrms_sim.analysis.counted import ALL, Counted
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import Discipline
from lrms_sim.util.columns import numbers
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.schedule import Schedule


class MeanInterval(NamedTuple):
    """A mean and its confidence interval; the ends are nan for fewer than two values."""

    mean: float
    low: float
    high: float


def mean_interval(values: npt.ArrayLike, level: float = 0.95) -> MeanInterval:
    """Returns the mean of independent values and its confidence interval.

    It rests on Student's t distribution, so on values that are roughly normal, as means over the
    jobs of long workloads are. There is one value for each replication, and `level` is between 0
    and 1.

    Raises:
        ValueError: there is no value, one is no number or missing, or the level is out of bounds.
    """
    given: list[float] = numbers("values", values).tolist()
    if not given:
        raise ValueError("no values; at least one is needed for a mean")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; it must be between 0 and 1")
    count = len(given)
    mean = math.fsum(given) / count
    if count == 1:
        return MeanInterval(mean, math.nan, math.nan)
    variance = math.fsum((value - mean) ** 2 for value in given) / (count - 1)
    half = t_quantile(0.5 + level / 2.0, count - 1) * math.sqrt(variance / count)
    return MeanInterval(mean, mean - half, mean + half)


def t_quantile(probability: float, freedom: int) -> float:
    """Returns the quantile of Student's t distribution, by bisection; `probability` in [0.5, 1)."""
    low, high = 0.0, 1.0
    while t_probability(high, freedom) < probability and high < 1e300:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if t_probability(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def t_probability(t: float, freedom: int) -> float:
    """Returns P(T ≤ t) of Student's t distribution for integer degrees of freedom and t ≥ 0.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    term = 1.0 if freedom % 2 == 0 else cosine
    total = 0.0 if freedom == 1 else term
    for k in range(2 if freedom % 2 == 0 else 3, freedom, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    inside = sine * total if freedom % 2 == 0 else 2.0 / math.pi * (angle + sine * total)
    return 0.5 + inside / 2.0


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
