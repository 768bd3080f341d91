"""Solves one job shop with OR-tools CP-SAT on one core, for benchmarks/job_shops.py to compare.

    python benchmarks/cp_sat.py SECONDS SEED < instance.json

It runs in a process of its own and knows nothing of the project, so any Python that has OR-tools
will do. The instance is a list of jobs, each a list of pairs of machine and whole time. Printed is
a JSON object: the shortest makespan that was found, the least that is possible as far as is proven,
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


def main() -> None:
    """Solves the instance on standard input."""
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    model = job_shop_model(json.load(sys.stdin))
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
