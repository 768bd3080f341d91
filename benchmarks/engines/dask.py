"""dask-jobqueue: workers as jobs, `sbatch FILE`, `scancel`; it asks for no states, and workers call their scheduler.

Those that end well end by their `--lifetime`, and have computed something before.
"""

import warnings
from importlib import import_module
from typing import Any

from benchmarks.engines.plan import KINDS, LIMIT_MIN, LONG_MIN, Told, here, lines_of, told, until

TASKS = 200


def main() -> None:
    """Starts a cluster of workers for each kind, and tells that all have come."""
    warnings.filterwarnings("ignore")
    jobqueue: Any = import_module("dask_jobqueue")
    distributed: Any = import_module("distributed")
    plan = here()

    def cluster(name: str, *more: str) -> Any:
        kind = name.removeprefix("worker-")
        mark = f'/bin/sh {plan.folder}/job.sh {name} "{name}-$SLURM_CLUSTER_NAME-$SLURM_JOB_ID"'
        made = jobqueue.SLURMCluster(
            cores=1,
            processes=1,
            memory="200MB",
            walltime=f"00:{LIMIT_MIN.get(kind, LONG_MIN):02}:00",
            job_name=name,
            nanny=False,
            job_script_prologue=[f"{mark} || exit $?"],
            worker_extra_args=list(more),
            scheduler_options={"dashboard": False, "dashboard_address": None},
        )
        made.scale(jobs=KINDS.count(kind))
        return made

    # The others only leave their marks: workers run, until they are cancelled or over their limit.
    others = [cluster("worker-over"), cluster("worker-gone"), cluster("bad")]
    good = cluster("worker-good", "--lifetime", "20s")
    with distributed.Client(good) as client:
        found = client.gather(client.map(lambda number: number * number, range(TASKS)))
    assert found == [number * number for number in range(TASKS)]
    plan.until_killed()
    others[1].close()
    # At the end of this process all jobs that still run would be cancelled.
    until(lambda: not list(lines_of("squeue", "-h", "--me")))
    told({number: Told(None) for number in range(len(KINDS))})


if __name__ == "__main__":
    main()
