"""Measures the planner on flexible job shops, with OR-tools CP-SAT next to it.

    python -m benchmarks.flexible_job_shops mk*.fjs --best 40 26 …           30 processor seconds each
    python -m benchmarks.flexible_job_shops mk*.fjs --best 40 26 … --solver .venv/bin/python    CP-SAT

Each run has one core and ends at the best makespan that is known; the median over the seeds counts.
"""

import json
import statistics
import subprocess
import time
from pathlib import Path

from benchmarks.frame import options_of
from benchmarks.job_shops import SOLVER
from broker.io.jobshop import read_job_shop
from broker.model.problem import Problem
from broker.planner.goals import MAKESPAN_ONLY
from broker.planner.methods import SEARCHES
from broker.planner.search import Budget, Progress, Search


def planned(problem: Problem, best: float, seed: int, seconds: float) -> tuple[float, int]:
    """Returns the shortest makespan that the planner finds, and how many schedules that took."""
    began = time.process_time()
    search = Search(
        problem,
        budget=Budget(1e9),
        settings=SEARCHES["blocks"],
        goals=MAKESPAN_ONLY,
        seed=seed,
        workers=1,
    )
    least, most = search.planner.bounds.makespan
    enough = 100_000 * (1 - (best - least) / (most - least)) * (1 - 1e-12) if most > least else 0

    def stop_in_time(progress: Progress) -> None:
        if progress.fitness >= enough or time.process_time() - began >= seconds:
            search.stop()

    stop_in_time(search.progress())
    found = search.run(stop_in_time)
    return found.plan.makespan_end, found.progress.evaluations


def solved(python: Path, problem: Problem, seed: int, seconds: float) -> tuple[float, int]:
    """Returns the shortest makespan that CP-SAT finds; it builds no schedules to be counted."""
    jobs = [
        [
            [
                [int(each.primary.removeprefix("m")), int(each.seconds or 0)]
                for each in task.alternatives
            ]
            for task in workflow.tasks
        ]
        for workflow in problem.workflows
    ]
    done = subprocess.run(
        [str(python), str(SOLVER), str(seconds), str(seed)],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        check=True,
    )
    return float(json.loads(done.stdout)["makespan"]), 0


def main() -> None:
    """Measures the files in their order."""
    parser = options_of(__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--best", type=float, nargs="+", required=True, help="one for each file")
    parser.add_argument("--seconds", type=float, default=30.0, help="processor time of a run")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--solver", type=Path, metavar="PYTHON", help="one that has OR-tools")
    given = parser.parse_args()
    gaps = []
    for path, best in zip(given.files, given.best, strict=True):
        problem = read_job_shop(path)
        found = [
            planned(problem, best, seed, given.seconds)
            if given.solver is None
            else solved(given.solver, problem, seed, given.seconds)
            for seed in range(given.seeds)
        ]
        median = statistics.median(makespan for makespan, _ in found)
        gaps.append(100 * (median / best - 1))
        schedules = statistics.median(count for _, count in found)
        print(
            f"{path.stem}: {median:g}, {gaps[-1]:.2f} % above {best:g}, {schedules:,.0f} schedules",
            flush=True,
        )
    print(f"mean: {statistics.mean(gaps):.2f} %")


if __name__ == "__main__":
    main()
