"""clusterfutures: Python functions as jobs, `sbatch --parsable`, `squeue --jobs`; results come by files of its folder.

It has no way to cancel a job, so that is done by `scancel`, as its users do it.
"""

import os
import subprocess
from concurrent.futures import wait
from importlib import import_module
from typing import Any

from benchmarks.engines.plan import KINDS, LIMIT_MIN, LONG_MIN, WAIT_S, Told, here, lines_of, told


def run(words: list[str]) -> str:
    """Runs a job, and ends as it has ended."""
    status = subprocess.run(words, check=False).returncode
    if status:
        os._exit(status)
    return words[-1]


def main() -> None:
    """Submits the jobs, cancels some, and tells what became of all."""
    cfut: Any = import_module("cfut")
    plan = here()
    os.chdir(plan.folder)
    executor = cfut.SlurmExecutor(keep_logs=True)
    jobs = []
    for number, kind in enumerate(KINDS):
        limit = f"#SBATCH -t {LIMIT_MIN.get(kind, LONG_MIN)}"
        jobs.append(executor.submit(run, plan.words(number), additional_setup_lines=[limit]))
    names = {future: str(job) for job, (future, _) in dict(executor.jobs).items()}
    for number in plan.numbers("gone"):
        plan.until_run([number])
        list(lines_of("scancel", names[jobs[number]]))
    wait(jobs, WAIT_S)
    found = {}
    for number, job in enumerate(jobs):
        error = job.exception(0)
        assert error is not None or job.result() == str(number)
        found[number] = Told("result" if error is None else type(error).__name__)
    told(found)
    executor.shutdown()


if __name__ == "__main__":
    main()
