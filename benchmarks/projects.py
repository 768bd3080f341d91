"""Measures the planner on resource-constrained projects of PSPLIB.

    python -m benchmarks.projects FOLDER best.csv                 1,000 and 5,000 schedules of each
    python -m benchmarks.projects FOLDER best.csv --seconds 30    by processor time
    python -m benchmarks.projects FOLDER best.csv --solver .venv/bin/python    CP-SAT, by --seconds

FOLDER has files .sm; best.csv has the columns `instance` and `best_makespan`. Each run has one core.
What is printed, by set (j30, j60, j120), is the mean distance to the longest chain of jobs, as the
literature has it, and to the best makespan that is known. `--every N` takes every Nth instance.
"""

import csv
import json
import math
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.frame import options_of
from broker.io.psplib import read_project
from broker.model.instances import critical_path
from broker.model.problem import Problem
from broker.planner.gleam import PROJECT, project_population
from broker.planner.goals import MAKESPAN_ONLY
from broker.planner.methods import PLACED_PER_SECOND
from broker.planner.search import Budget, Progress, Search

SOLVER = Path(__file__).parent / "cp_sat.py"
SETS = ("j30", "j60", "j120")
FITNESS_MAX = 100_000.0


@dataclass(frozen=True)
class Run:
    """What came of one instance; `schedules` is 0 of another solver."""

    makespan: float
    schedules: int
    seconds: float


def planned(problem: Problem, seed: int, *, evaluations: float, seconds: float) -> Run:
    """Plans a project with so many schedules, or for so much processor time."""
    began = time.process_time()
    tasks = sum(len(workflow.tasks) for workflow in problem.workflows)
    population = project_population(min(evaluations, seconds * PLACED_PER_SECOND / tasks))
    search = Search(
        problem,
        budget=Budget(1e9, evaluations, FITNESS_MAX),
        settings=replace(PROJECT, population=population),
        goals=MAKESPAN_ONLY,
        seed=seed,
        workers=1,
    )

    def stop_in_time(_: Progress) -> None:
        if time.process_time() - began >= seconds:
            search.stop()

    found = search.run(stop_in_time)
    return Run(found.plan.makespan_end, found.progress.evaluations, time.process_time() - began)


def solved(python: Path, problem: Problem, seed: int, seconds: float) -> Run:
    """Solves a project with OR-tools CP-SAT in a process of its own."""
    (workflow,) = problem.workflows
    row = {task.name: number for number, task in enumerate(workflow.tasks)}
    project = {
        "capacity": {each.name: each.capacity for each in problem.resources},
        "jobs": [
            {
                "seconds": int(task.work),
                "units": {each.resource: each.units for each in task.alternatives[0].demands},
                "before": [row[name] for name in task.predecessors],
            }
            for task in workflow.tasks
        ],
    }
    done = subprocess.run(
        [str(python), str(SOLVER), str(seconds), str(seed)],
        input=json.dumps(project),
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    return Run(float(answer["makespan"]), 0, float(answer["seconds"]))


def report(
    title: str, files: list[Path], best: dict[str, float], run: Callable[[Path], Run]
) -> None:
    """Prints the figures of one set."""
    above, gaps, schedules, seconds = [], [], [], []
    for path in files:
        found = run(path)
        problem = read_project(path)
        chain = max(critical_path(problem, workflow) for workflow in problem.workflows)
        above.append(100 * (found.makespan / chain - 1))
        gaps.append(100 * (found.makespan / best[path.stem] - 1))
        schedules.append(found.schedules)
        seconds.append(found.seconds)
    print(
        f"{title}: {len(files)} instances, {statistics.mean(above):.2f} % above the longest chain, "
        f"{statistics.mean(gaps):.2f} % to the best known, {statistics.mean(schedules):,.0f} "
        f"schedules and {statistics.mean(seconds):.2f} s each",
        flush=True,
    )


def main() -> None:
    """Measures all sets."""
    parser = options_of(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("best", type=Path)
    parser.add_argument("--evaluations", type=int, nargs="*", default=[1000, 5000])
    parser.add_argument("--seconds", type=float, help="processor time, instead of schedules")
    parser.add_argument("--solver", type=Path, metavar="PYTHON", help="one that has OR-tools")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--sets", nargs="*", default=SETS)
    given = parser.parse_args()
    with given.best.open(encoding="utf-8") as stream:
        best = {row["instance"]: float(row["best_makespan"]) for row in csv.DictReader(stream)}
    for name in given.sets:
        files = sorted(given.folder.glob(f"{name}*_*.sm"))[:: given.every]

        def by_solver(path: Path) -> Run:
            return solved(given.solver, read_project(path), given.seed, given.seconds)

        def by_time(path: Path) -> Run:
            problem = read_project(path)
            return planned(problem, given.seed, evaluations=math.inf, seconds=given.seconds)

        if given.solver is not None:
            report(f"{name}, CP-SAT, {given.seconds:g} s", files, best, by_solver)
        elif given.seconds is not None:
            report(f"{name}, {given.seconds:g} s", files, best, by_time)
        for most in given.evaluations if given.seconds is None else ():

            def by_count(path: Path, most: int = most) -> Run:
                problem = read_project(path)
                return planned(problem, given.seed, evaluations=most, seconds=math.inf)

            report(f"{name}, {most:,} schedules", files, best, by_count)


if __name__ == "__main__":
    main()
