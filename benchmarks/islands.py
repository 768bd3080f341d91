"""Measures what islands of GLEAM cost: processor time of a schedule on two islands, over that of searches that do not exchange.

    python -m benchmarks.islands          writes figures-islands.json
    python -m benchmarks.islands --dry    few schedules, and writes nothing

*Threads* are the broker's own (`IslandSearch`), *dask* two worker processes of a cluster on this machine that has been started and warmed up
before. *Apart* is two searches with the islands' seeds and schedules, one after the other on one thread. *One after another* is the islands on one
thread. All take turns; what counts is processor time, of all processes, as others use the machine. Each worker of dask, and each
search apart, compiles the problem and tries its heuristics for itself: that is part of the figures, and is given by itself as well.
"""

import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.frame import keep, machine, options_of
from broker.model.instances import paper_problem
from broker.model.problem import Problem
from broker.planner.gleam import GUIDED
from broker.planner.islands import ISLAND_ROUNDS, SEED_STEP, search_islands
from broker.planner.planning import Planner
from broker.planner.search import Budget, Search
from lrms_sim.util.executors import DaskExecutor, Executor, ThreadExecutor

FIGURES: Final = Path(__file__).with_name("figures-islands.json")
SIZES: Final = {
    "sRlD 200": ("sRlD", 200, 60_000, 5),
    "sRlD 200, half a minute": ("sRlD", 200, 600_000, 3),
}
"""Class, tasks, schedules of all islands together, and runs."""

TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")


def processor_s() -> float:
    """Returns processor time of this process and of those that it has started, as long as they live, in seconds."""
    spent = time.process_time()
    for child in multiprocessing.active_children():
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        spent += (int(fields[11]) + int(fields[12])) * TICK_S
    return spent


def apart(problem: Problem, seed: int, evaluations: int) -> int:
    """Returns the schedules of two searches, one after the other."""
    budget = Budget(math.inf, evaluations // 2)
    built = 0
    for row in range(2):
        search = Search(
            problem, budget=budget, settings=GUIDED, seed=seed + SEED_STEP * row, workers=1
        )
        built += search.run().progress.evaluations
    return built


def on_islands(executor: Executor, problem: Problem, evaluations: int, seed: int) -> int:
    """Returns the schedules of two islands on an executor."""
    found = search_islands(
        replace(problem),
        executor,
        islands=2,
        rounds=ISLAND_ROUNDS,
        evaluations=evaluations // 2 // ISLAND_ROUNDS,
        seed=seed,
    )
    return found.evaluations


def measured(executors: dict[str, Executor], name: str, dry: bool) -> dict[str, Any]:
    """Returns medians of microseconds a schedule, and over those of searches apart."""
    kind, tasks, schedules, runs = SIZES[name]
    share, runs = (0.02, 1) if dry else (1.0, runs)
    evaluations = int(schedules * share)
    problem = paper_problem(kind, tasks, np.random.default_rng(1))
    ways: dict[str, Callable[[int], int]] = {
        "apart": lambda seed: apart(problem, seed, evaluations),
        **{
            name: partial(on_islands, executor, problem, evaluations)
            for name, executor in executors.items()
        },
    }
    took: dict[str, list[float]] = {way: [] for way in ways}
    by_clock: dict[str, list[float]] = {way: [] for way in ways}
    compiling = []
    for seed in range(runs + 1):  # the first is not counted
        for way, work in ways.items():
            began, clock = processor_s(), time.monotonic()
            built = work(seed)
            took[way].append((processor_s() - began) / built * 1e6)
            by_clock[way].append((time.monotonic() - clock) / built * 1e6)
        began = processor_s()
        Planner(problem)
        compiling.append(processor_s() - began)
    alone = median(took["apart"][1:])
    return {
        "problem": name,
        "schedules": evaluations,
        "runs": runs,
        "microseconds_of_a_schedule": {
            way: round(median(mine[1:]), 1) for way, mine in took.items()
        },
        "over_apart": {way: round(median(mine[1:]) / alone, 3) for way, mine in took.items()},
        "by_the_clock": {way: round(median(mine[1:]), 1) for way, mine in by_clock.items()},
        "compiling_s": round(median(compiling[1:]), 3),
    }


def main() -> None:
    """Measures, and keeps the figures."""
    parser = options_of(__doc__)
    parser.add_argument("--dry", action="store_true", help="few schedules; write no file")
    options = parser.parse_args()
    rows = []
    with DaskExecutor(workers=2) as dask, ThreadExecutor(1) as one, ThreadExecutor(2) as two:
        executors: dict[str, Executor] = {"one after another": one, "threads": two, "dask": dask}
        for name in SIZES:
            row = measured(executors, name, options.dry)
            rows.append(row)
            print(json.dumps(row), flush=True)
    if not options.dry:
        found = {"machine": machine(), "rows": rows}
        keep(FIGURES, found)


if __name__ == "__main__":
    main()
