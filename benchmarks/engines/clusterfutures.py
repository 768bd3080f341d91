"""clusterfutures: Python functions as jobs, `sbatch --parsable`, `squeue --jobs`; results come by files of its folder.

30 s after its start it also takes those that wait for finished and removes their input, so that they run nothing, and end well. So no job waits for that long
here: an executor has as many as begin before, and the next comes when all of these have begun.

It has no way to cancel a job, so that is done by `scancel`, as its users do it. Of states nothing is asked of it: its release 0.5 looks every 30 s, and
takes all jobs for finished that run then, as it looks for numbers among texts.
"""

import os
import subprocess
from importlib import import_module
from typing import Any

from benchmarks.engines.plan import KINDS, LIMIT_MIN, LONG_MIN, Told, here, lines_of, told, until

TOGETHER = 14
"""Jobs of an executor."""


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
    executors: list[Any] = []
    jobs = []
    for number, kind in enumerate(KINDS):
        if number % TOGETHER == 0:
            until(lambda begun=number: len(plan.marks()) == begun)  # type: ignore[misc]  # a default binds the loop's value
            executors.append(cfut.SlurmExecutor(keep_logs=True))
        limit = f"#SBATCH -t {LIMIT_MIN.get(kind, LONG_MIN)}"
        jobs.append(executors[-1].submit(run, plan.words(number), additional_setup_lines=[limit]))
    names = sorted(map(int, lines_of("squeue", "-h", "--me", "-t", "all", "-o", "%i")))[
        -len(jobs) :
    ]
    plan.until_killed()
    for number in plan.numbers("gone"):
        list(lines_of("scancel", str(names[number])))

    def are_over() -> bool:
        listed = ",".join(map(str, names))
        return not list(lines_of("squeue", "-h", "-o", "%i", "--jobs", listed))

    until(are_over)
    told({number: Told(None) for number in range(len(KINDS))})
    for executor in executors:
        executor.shutdown(wait=False)


if __name__ == "__main__":
    main()
