"""PSI/J's executor for Slurm: `sbatch FILE`, `squeue -O`, `scancel -Q`; exit codes come by files of its folder."""

from datetime import timedelta
from importlib import import_module
from typing import Any

from benchmarks.engines.plan import KINDS, LIMIT_MIN, LONG_MIN, WAIT_S, Told, here, told


def main() -> None:
    """Submits the jobs, cancels some, and tells what became of all."""
    psij: Any = import_module("psij")
    slurm: Any = import_module("psij.executors.batch.slurm")
    plan = here()
    config = slurm.SlurmExecutorConfig(
        work_directory=plan.folder / "psij", queue_polling_interval=2, initial_queue_polling_delay=1
    )
    executor = psij.JobExecutor.get_instance("slurm", config=config)
    jobs = []
    for number, kind in enumerate(KINDS):
        program, *words = plan.words(number)
        limit = timedelta(minutes=LIMIT_MIN.get(kind, LONG_MIN))
        spec = psij.JobSpec(program, words, attributes=psij.JobAttributes(duration=limit))
        job = psij.Job(spec)
        executor.submit(job)
        jobs.append(job)
    plan.until_killed()
    for number in plan.numbers("gone"):
        jobs[number].cancel()
    ends = [job.wait(timeout=timedelta(seconds=WAIT_S)) for job in jobs]
    told({number: Told(end.state.name, end.exit_code) for number, end in enumerate(ends) if end})


if __name__ == "__main__":
    main()
