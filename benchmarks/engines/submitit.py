"""submitit: Python functions as jobs, `sbatch FILE`, `sacct -j`, `scancel`; results come by files of its folder."""

import os
import signal
import subprocess
from importlib import import_module
from typing import Any

from benchmarks.engines.plan import KINDS, LIMIT_MIN, LONG_MIN, WAIT_S, Told, here, told, until

ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


def run(words: list[str]) -> str:
    """Runs a job, and ends as it has ended."""
    # submitit would end what gets its warning of the limit as failed; here the limit itself is to be seen.
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    status = subprocess.run(words, check=False).returncode
    if status:
        os._exit(status)
    return words[-1]


def main() -> None:
    """Submits the jobs, cancels some, and tells what became of all."""
    submitit: Any = import_module("submitit")
    plan = here()
    executor = submitit.SlurmExecutor(folder=plan.folder / "submitit")
    jobs = []
    for number, kind in enumerate(KINDS):
        executor.update_parameters(time=LIMIT_MIN.get(kind, LONG_MIN))
        jobs.append(executor.submit(run, plan.words(number)))
    plan.until_killed()
    for number in plan.numbers("gone"):
        jobs[number].cancel()
    watcher = jobs[0].watcher

    def state(job: Any) -> str:
        return str(watcher.get_state(job.job_id, mode="cache")).split(" ")[0]

    def all_ended() -> bool:
        watcher.update()
        return all(state(job) in ENDED for job in jobs)

    until(all_ended, WAIT_S)
    for number in plan.numbers("good"):
        assert jobs[number].result() == str(number)
    told({number: Told(state(job)) for number, job in enumerate(jobs)})


if __name__ == "__main__":
    main()
