"""Toil's batch system for Slurm: `sbatch --wrap`, `squeue`, `scontrol show job`, `sacct`, `scancel`.

Its jobs are commands here, so that they need no job store; what Toil itself would run is such a command as well.
"""

from importlib import import_module
from typing import Any

from benchmarks.engines.plan import KINDS, LIMIT_MIN, LONG_MIN, WAIT_S, Told, here, lines_of, told

MEBIBYTE = 1024**2


def main() -> None:
    """Submits the jobs, cancels some, and tells what became of all."""
    common: Any = import_module("toil.common")
    toil_job: Any = import_module("toil.job")
    slurm: Any = import_module("toil.batchSystems.slurm")
    plan = here()
    parser = toil_job.Job.Runner.getDefaultArgumentParser()
    words = [f"file:{plan.folder}/store", "--batchSystem", "slurm", "--statePollingWait", "1"]
    words += ["--workDir", str(plan.folder), "--batchLogsDir", str(plan.folder)]
    config = common.Config()
    config.setOptions(parser.parse_args(words))
    config.workflowID = "engines"
    system = slurm.SlurmBatchSystem(config, 1, 2000 * MEBIBYTE, 2000 * MEBIBYTE)
    jobs = {}
    for number, kind in enumerate(KINDS):
        needs: dict[str, Any] = {
            "memory": 100 * MEBIBYTE,
            "cores": 1,
            "disk": MEBIBYTE,
            "preemptible": False,
        }
        needs |= {"accelerators": [], "walltime": 60 * LIMIT_MIN.get(kind, LONG_MIN)}
        described = toil_job.JobDescription(requirements=needs, jobName=f"job-{number}")
        jobs[system.issueBatchJob(plan.command(number), described)] = number
    gone = plan.numbers("gone")
    plan.until_killed()
    # As its users do it; Toil tells nothing of jobs that it has killed itself.
    of_number = {number: job for job, number in jobs.items()}
    names = [system.background_thread.getBatchSystemID(of_number[number]) for number in gone]
    list(lines_of("scancel", names[0]))
    system.killBatchJobs([of_number[number] for number in gone[1:]])
    found = {number: Told("killed") for number in gone[1:]}
    while len(found) < len(jobs):
        update = system.getUpdatedBatchJob(maxWait=WAIT_S)
        assert update is not None, f"Toil tells nothing more, after {sorted(found)}"
        reason = update.exitReason
        found[jobs[update.jobID]] = Told(getattr(reason, "name", str(reason)), update.exitStatus)
    told(found)
    system.shutdown()


if __name__ == "__main__":
    main()
