"""Speed of queue disciplines written in Python beside the compiled ones.

    python -m benchmarks.own_disciplines [LOG]

Without a log a synthetic workload of 30,000 jobs is replayed on 128 processors.
"""

import importlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import Discipline, discipline_by_name
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.lublin import generate
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.swf import read_swf

sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "examples"))

my_policies: Any = importlib.import_module("my_policies")

REPEATS = 5


def workload(arguments: list[str]) -> tuple[JobTable, int]:
    """Returns the jobs to replay and the size of the machine."""
    if arguments:
        log = read_swf(Path(arguments[0]))
        processors = log.header.size
        if processors is None:
            raise SystemExit(f"{arguments[0]} does not say how large its machine is")
        return prepare(log, processors).jobs, processors
    return generate(128, jobs=30_000, seed=1), 128


def seconds(jobs: JobTable, processors: int, discipline: Discipline) -> float:
    """Returns the least processor time of some replays."""
    taken = []
    for _ in range(REPEATS):
        begin = time.process_time()
        simulate(jobs, processors, discipline)
        taken.append(time.process_time() - begin)
    return min(taken)


def main() -> None:
    """Prints a row for every discipline."""
    jobs, processors = workload(sys.argv[1:])
    pairs = ((my_policies.fcfs, "fcfs"), (my_policies.Sjf(), "sjf"), (my_policies.MyEasy(), "easy"))
    for written, name in pairs:
        compiled = discipline_by_name(name)
        own = simulate(jobs, processors, written).start_time
        assert np.array_equal(own, simulate(jobs, processors, compiled).start_time)
        for words, discipline in ((f"{name} in Python", written), (f"{name} compiled", compiled)):
            speed = len(jobs) / seconds(jobs, processors, discipline)
            print(f"{words:<16}{speed:>14,.0f} jobs/s")


if __name__ == "__main__":
    main()
