"""Measures the planner and writes the figures, with machine and commit, to figures-planner.json.

    python -m benchmarks.planner          schedules a second, scaling to two threads
    python -m benchmarks.planner --dry    do not write figures-planner.json

Speed is in schedules per second of processor time of one thread, of sequences of chance, for each
strategy of the paper; that of the search in matings and all. Job shops are in benchmarks/job_shops.py.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.frame import keep, machine, options_of
from benchmarks.run import Figure, figure
from broker.model.instances import paper_problem
from broker.model.problem import Problem
from broker.planner.gleam import GleamSettings
from broker.planner.planning import Planner
from broker.planner.search import Budget, Search

FIGURES = Path(__file__).parent / "figures-planner.json"
SIZES = ((200, 20_000, "at least 5000"), (7000, 200, "at least 100"))


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


def speed() -> Iterator[Figure]:
    """Yields schedules a second of processor time, by class and size."""
    for tasks, count, goal in SIZES:
        for name in ("sRsD", "sRlD", "lRsD", "lRlD"):
            problem = paper_problem(name, tasks, np.random.default_rng(1))
            rates = [builds_per_second(problem, count) for _ in range(5)]
            yield figure(
                f"schedules, {name}, {tasks} tasks, {tasks // 10} resources",
                "schedules/s",
                rates,
                goal if name.startswith("l") else "",
            )


def scaling() -> Iterator[Figure]:
    """Yields how much faster two threads are than one, by the clock, in pairs of runs."""
    for tasks, evaluations in ((200, 60_000), (1000, 10_000)):
        problem = paper_problem("lRlD", tasks, np.random.default_rng(1))
        ratios, used = [], []
        for _ in range(5):
            one, one_used = search_rate(problem, evaluations, 1)
            two, two_used = search_rate(problem, evaluations, 2)
            ratios.append(two / one)
            used.append(two_used / one_used)
        yield figure(f"GLEAM, lRlD, {tasks} tasks, two threads", "times", ratios, "at least 1.7")
        # Wall time means little on a shared machine: what a second of processor time yields in two threads shows
        # their mutual cost.
        yield figure(f"GLEAM, lRlD, {tasks} tasks, a processor of two", "times", used, "")


def main() -> None:
    """Measures what was asked for."""
    parser = options_of(__doc__)
    parser.add_argument("--dry", action="store_true", help="do not write figures-planner.json")
    arguments = parser.parse_args()
    figures = []
    for benchmark in (speed, scaling):
        for one in benchmark():
            figures.append(one)
            print(
                f"{one.name:<48} {one.median:10.4g} {one.unit:<12}"
                f"({one.least:.4g} to {one.most:.4g}, {one.runs} runs)  {one.goal}",
                flush=True,
            )
    load = os.getloadavg()[0]
    print(f"the load of the machine is {load:.1f} on {os.cpu_count()} processors")
    if not arguments.dry:
        document = {
            "machine": {**machine(), "load": round(load, 1)},
            "figures": [asdict(one) for one in figures],
        }
        keep(FIGURES, document)


if __name__ == "__main__":
    main()
