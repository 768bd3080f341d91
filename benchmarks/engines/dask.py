"""dask-jobqueue: workers as jobs, `sbatch FILE`, `scancel`; it asks for no states, and workers call their scheduler.

Those that end well end by their `--lifetime`, and have computed something before.
"""

import warnings
from importlib import import_module
from typing import Any

from benchmarks.engines.plan import KINDS, LIMIT_MIN, LONG_MIN, Told, here, told

TASKS = 200


def main() -> None:
    """Starts a cluster of workers for each kind, and tells that all have come."""
    warnings.filterwarnings("ignore")
    jobqueue: Any = import_module("dask_jobqueue")
    distributed: Any = import_module("distributed")
    plan = here()

    def cluster(kind: str, *more: str) -> Any:
        mark = f'/bin/sh {plan.folder}/job.sh {kind} "{kind}-$SLURM_CLUSTER_NAME-$SLURM_JOB_ID"'
        made = jobqueue.SLURMCluster(
            cores=1,
            processes=1,
            memory="200MB",
            walltime=f"00:{LIMIT_MIN.get(kind, LONG_MIN):02}:00",
            job_name=kind,
            nanny=False,
            job_script_prologue=[f"{mark} || exit $?"],
            worker_extra_args=list(more),
            scheduler_options={"dashboard": False, "dashboard_address": None},
        )
        made.scale(jobs=KINDS.count(kind))
        return made

    # The other kinds only leave their marks here: workers run, until they are cancelled or over their limit.
    over, gone, bad = cluster("worker-over"), cluster("worker-gone"), cluster("bad")
    good = cluster("worker-good", "--lifetime", "20 seconds")
    del over, gone, bad
    with distributed.Client(good) as client:
        found = client.gather(client.map(lambda number: number * number, range(TASKS)))
    assert found == [number * number for number in range(TASKS)]
    plan.until_killed()
    told({number: Told(None) for number in range(len(KINDS))})


if __name__ == "__main__":
    main()
