"""Measures large plans and a long day: 50,000 tasks in one go, and 300 workflows an hour for 24 hours.

    python -m benchmarks.scale                  writes figures-scale.json
    python -m benchmarks.scale --dry            does not
    python -m benchmarks.scale --hours 1        a shorter day
    python -m benchmarks.scale --tasks 5000     smaller plans

Plans go the way of `gorba plan`, from a file's document to a plan's, in a process of their own each:
workflows of layers, and of forks and joins, on 8 and on 700 resources that every task may use, by heuristics and
`asma-shift`. The day is that of `deviation`: its broker, searches and sites in virtual time, steady workflows at load 1
whose run times are ±10 % of what was thought. Times are of the processor.
"""

import json
import math
import multiprocessing
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.deviation_dispatch import World
from benchmarks.deviation_loads import HOUR, NOISES, Load, draw
from benchmarks.frame import machine, options_of
from broker.io.plans import plan_document
from broker.io.pools import parse_file
from broker.io.writing import document_of, to_json
from broker.model.instances import paper_resources
from broker.model.problem import Problem
from broker.planner.methods import Comparison
from broker.planner.search import Budget
from broker.scheduler.commands import StartPlanning
from broker.scheduler.events import Event
from broker.scheduler.lifecycle import WorkflowState

FIGURES: Final = Path(__file__).with_name("figures-scale.json")
TASKS: Final = 50_000
RESOURCES: Final = (8, 700)
SEARCH_S: Final = 30.0
LAYER: Final = 500
FORK: Final = 1000
HOURS: Final = 24

_Table = dict[str, Any]


# --- plans ---------------------------------------------------------------------------------------


def layered(tasks: int, rng: np.random.Generator) -> list[_Table]:
    """Returns tasks of a file, each with one to three predecessors in the layer before its own."""
    rows = []
    for number in range(tasks):
        row: _Table = {"name": f"t{number}", "work": float(rng.uniform(180, 420))}
        first = number // LAYER * LAYER
        if first:
            before = rng.integers(first - LAYER, first, int(rng.integers(1, 4))).tolist()
            row["predecessors"] = [f"t{each}" for each in sorted(set(before))]
        rows.append(row)
    return rows


def forks(tasks: int, rng: np.random.Generator) -> list[_Table]:
    """Returns tasks of a file: one opens into many, which one closes that opens into the next."""
    rows: list[_Table] = [{"name": "t0", "work": 60.0}]
    while len(rows) < tasks:
        first, last = len(rows), rows[-1]["name"]
        middle = range(first, min(first + FORK, tasks - 1))
        rows += [
            {"name": f"t{each}", "work": float(rng.uniform(180, 420)), "predecessors": [last]}
            for each in middle
        ]
        before = [f"t{each}" for each in middle] or [last]
        rows.append({"name": f"t{len(rows)}", "work": 60.0, "predecessors": before})
    return rows


SHAPES: Final[dict[str, Callable[[int, np.random.Generator], list[_Table]]]] = {
    "layered": layered,
    "forks": forks,
}


def planned(shape: str, tasks: int, resources: int) -> dict[str, Any]:
    """Returns the figures of one plan."""
    rng = np.random.default_rng(1)
    document = document_of(paper_resources(resources, rng), now=0.0)
    document["workflows"] = [{"name": "large", "tasks": SHAPES[shape](tasks, rng)}]
    spent = {}
    mark = time.process_time()

    def took(what: str) -> None:
        nonlocal mark
        spent[what] = round(time.process_time() - mark, 2)
        mark = time.process_time()

    file = parse_file(document, file="large.json")
    problem = Problem(file.workflows(file.pool), file.pool.resources)
    took("reading_s")
    comparison = Comparison(problem, workers=1)
    comparison.baselines()
    took("heuristics_s")
    began = time.monotonic()
    comparison.search("asma-shift", Budget(SEARCH_S))
    over = time.monotonic() - began - SEARCH_S
    took("search_s")
    best = comparison.best
    to_json(plan_document(problem, best.plan, results=comparison.results, made={}))
    took("writing_s")
    by_method = {each.method: each for each in comparison.results}
    return {
        **spent,
        "search_over_its_time_s": round(over, 2),
        "schedules": by_method["asma-shift"].evaluations,
        "heft": comparison.with_heft,
        "makespan_s": {name: round(each.plan.makespan_end) for name, each in by_method.items()},
        "without_a_place": len(best.plan.unplanned),
        "memory_most_mb": _memory_most(),
    }


def _memory_most() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


# --- a day ---------------------------------------------------------------------------------------


def long_load(hours: int) -> Load:
    """Returns the load of so many hours, each drawn by itself."""
    arrivals = []
    drawn = [draw("steady", 1.0, 1 + hour) for hour in range(hours)]
    for hour, load in enumerate(drawn):
        later = hour * HOUR
        arrivals += [
            (
                come + later,
                replace(each, name=f"h{hour}-{each.name}", due_date=each.due_date + later),
            )
            for come, each in load.arrivals
        ]
    return Load(drawn[0].resources, tuple(arrivals))


class Day(World):
    """The world of `deviation` in which workflows that ended long ago are forgotten, hour by hour."""

    def __init__(self, load: Load, seed: int) -> None:
        self.searches: list[float] = []
        self.cycles: list[float] = []
        self._cycle = 0.0
        self._ended_by: dict[str, float] = {}
        self.hours: list[dict[str, Any]] = []
        super().__init__(load, next(each for each in NOISES if each.name == "±10 %"), seed)
        self._due = {each.name: each.due_date for _, each in load.arrivals}

    def _tell(self, event: Event) -> None:
        # A cycle is everything from one planning to the next, its search included.
        began = time.process_time()
        super()._tell(event)
        self._cycle += time.process_time() - began
        while self.now >= (len(self.hours) + 1) * HOUR:
            self._note()

    def _search(self, order: StartPlanning) -> None:
        began = time.process_time()
        super()._search(order)
        self.searches.append(time.process_time() - began)
        self.cycles.append(self._cycle)
        self._cycle = 0.0

    def _note(self) -> None:
        memory = self.state.memory
        for each in memory.workflows.values():
            if each.state is WorkflowState.COMPLETED and each.end_time is not None:
                self._ended_by[each.workflow.name] = each.end_time
        self.hours.append(
            {"known": len(memory.workflows), "live": len(memory.live), "memory_mb": _memory_now()}
        )

    def figures(self) -> dict[str, Any]:
        """Runs the day, and returns its figures."""
        began = time.process_time()
        self.go_on(math.inf)
        self._note()
        on_time = sum(end <= self._due[name] for name, end in self._ended_by.items())
        first, last = self.hours[0], self.hours[-2]
        return {
            "workflows": len(self._due),
            "completed": len(self._ended_by),
            "on_time": round(on_time / len(self._due), 5),
            "plans": self.plans,
            "processor_s": round(time.process_time() - began, 1),
            "cycle_s": _quantiles(self.cycles),
            "search_s": _quantiles(self.searches),
            "first_hour": first,
            "last_full_hour": last,
            "memory_most_mb": _memory_most(),
        }


def _memory_now() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return round(pages * resource.getpagesize() / 2**20)


def _quantiles(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    names = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {name: round(ordered[int(q * (len(ordered) - 1))], 3) for name, q in names.items()}


def day(hours: int) -> dict[str, Any]:
    """Returns the figures of a day, or of a part of it."""
    return Day(long_load(hours), 1).figures()


def main() -> None:
    """Measures, and keeps the figures."""
    parser = options_of(__doc__)
    parser.add_argument("--dry", action="store_true", help="write no file")
    parser.add_argument("--tasks", type=int, default=TASKS, help="of each plan")
    parser.add_argument("--hours", type=int, default=HOURS, help="of the day")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    context = multiprocessing.get_context("spawn")
    # One process for each, as their most memory is a figure.
    with ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:
        figures["day"] = pool.submit(day, options.hours).result()
        print(json.dumps(figures["day"], indent=2))
        for shape in SHAPES:
            for resources in RESOURCES:
                name = f"{shape}, {options.tasks} tasks, {resources} resources"
                figures[name] = pool.submit(planned, shape, options.tasks, resources).result()
                print(name, json.dumps(figures[name], indent=2))
    if not options.dry:
        text = json.dumps({"machine": machine(), "scale": figures}, indent=2)
        FIGURES.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
