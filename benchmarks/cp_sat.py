"""Solves a job shop or project with OR-tools CP-SAT on one core, for benchmarks to compare.

    python benchmarks/cp_sat.py SECONDS SEED < instance.json

It runs in a process of its own and knows nothing of the project, so any Python that has OR-tools
will do. A job shop is a list of jobs, each a list of pairs of machine and whole time; of a flexible one,
each a list of operations, which are lists of such pairs to choose from. A project is an object:
`capacity` by resource, and `jobs` with whole `seconds`, `units` by resource, and numbers of the jobs
`before`. Printed is a JSON object: the shortest makespan that was found, the least that is possible as far as is proven,
and the processor seconds used.
"""

import json
import sys
import threading
import time
from typing import Any

from ortools.sat.python import cp_model  # type: ignore[import-not-found, import-untyped, unused-ignore]  # not a dependency, see above

INTERVAL = 0.05
"""Seconds between two checks of the processor time."""


def job_shop_model(jobs: list[list[list[int]]]) -> Any:  # types of OR-tools
    """Returns the usual model: an interval for each operation, no two on a machine at once."""
    model = cp_model.CpModel()
    horizon = sum(span for job in jobs for _, span in job)
    makespan = model.new_int_var(0, horizon, "makespan")
    machines: dict[int, list[Any]] = {}
    for job in jobs:
        before = None
        for machine, span in job:
            start = model.new_int_var(0, horizon, "")
            machines.setdefault(machine, []).append(
                model.new_fixed_size_interval_var(start, span, "")
            )
            if before is not None:
                model.add(start >= before)
            before = start + span
        if before is not None:
            model.add(makespan >= before)
    for intervals in machines.values():
        model.add_no_overlap(intervals)
    model.minimize(makespan)
    return model


def flexible_model(jobs: list[list[list[list[int]]]]) -> Any:  # types of OR-tools
    """Returns the usual model: an optional interval for each choice, one of which is there."""
    model = cp_model.CpModel()
    horizon = sum(max(span for _, span in choices) for job in jobs for choices in job)
    makespan = model.new_int_var(0, horizon, "makespan")
    machines: dict[int, list[Any]] = {}
    for job in jobs:
        before = None
        for choices in job:
            start, end = model.new_int_var(0, horizon, ""), model.new_int_var(0, horizon, "")
            chosen = []
            for machine, span in choices:
                here = model.new_bool_var("")
                machines.setdefault(machine, []).append(
                    model.new_optional_interval_var(start, span, end, here, "")
                )
                chosen.append(here)
            model.add_exactly_one(chosen)
            if before is not None:
                model.add(start >= before)
            before = end
        if before is not None:
            model.add(makespan >= before)
    for intervals in machines.values():
        model.add_no_overlap(intervals)
    model.minimize(makespan)
    return model


def project_model(project: dict[str, Any]) -> Any:  # types of OR-tools
    """Returns the usual model: an interval for each job, and a cumulative constraint a resource."""
    model = cp_model.CpModel()
    jobs = project["jobs"]
    horizon = sum(job["seconds"] for job in jobs)
    makespan = model.new_int_var(0, horizon, "makespan")
    starts = [model.new_int_var(0, horizon, "") for _ in jobs]
    intervals = [
        model.new_fixed_size_interval_var(start, job["seconds"], "")
        for start, job in zip(starts, jobs, strict=True)
    ]
    for start, job in zip(starts, jobs, strict=True):
        model.add(makespan >= start + job["seconds"])
        for other in job["before"]:
            model.add(start >= starts[other] + jobs[other]["seconds"])
    for name, capacity in project["capacity"].items():
        using = [(i, job["units"][name]) for i, job in enumerate(jobs) if name in job["units"]]
        model.add_cumulative([intervals[i] for i, _ in using], [u for _, u in using], capacity)
    model.minimize(makespan)
    return model


def model_of(instance: Any) -> Any:  # JSON, and types of OR-tools
    """Returns the model of an instance, by its kind."""
    if isinstance(instance, dict):
        return project_model(instance)
    first = next(operation for job in instance for operation in job)
    return flexible_model(instance) if isinstance(first[0], list) else job_shop_model(instance)


def main() -> None:
    """Solves the instance on standard input."""
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    model = model_of(json.load(sys.stdin))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    ended = threading.Event()

    def stop_in_time() -> None:
        """Stops the solver by processor time, as the machine may be shared."""
        while not ended.wait(INTERVAL):
            if time.process_time() >= seconds:
                solver.stop_search()

    watch = threading.Thread(target=stop_in_time, daemon=True)
    watch.start()
    status = solver.solve(model)
    ended.set()
    watch.join()
    found = status in {cp_model.OPTIMAL, cp_model.FEASIBLE}
    answer = {
        "makespan": solver.objective_value if found else None,
        "bound": solver.best_objective_bound,
        "seconds": time.process_time(),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
