"""Small logs and a small table of pods, for which the study runs in a moment."""

from pathlib import Path

import numpy as np

from lrms_sim.workload.jobs import JobTable
from scenarios.spec.traces import TRACES
from scenarios.studies.kinds_of_nodes.sites import SHARES

HEADING = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time"
)


def small_logs() -> dict[str, JobTable]:
    """Returns some jobs for each log, so many at a time that some wait."""
    found = {}
    for number, (log, _) in enumerate(SHARES.values()):
        rng = np.random.default_rng(number)
        run_time = rng.integers(600, 36000, 60).astype(float)
        found[log] = JobTable.from_columns(
            submit_time=np.sort(rng.integers(0, 86400, 60)),
            processors=rng.integers(1, TRACES[log].processors // 2, 60),
            run_time=run_time,
            requested_time=2 * run_time,
        )
    return found


def small_pods(folder: Path) -> Path:
    """Returns a table with forty pods, a service among them, one that has not ended and one that never began."""
    rng = np.random.default_rng(1)
    rows = [
        f"p{n},{1000 * int(rng.choice([4, 12, 64]))},{16384},{int(rng.choice([0, 1, 8]))},1000,,LS,Succeeded,"
        f"{100 * n},{100 * n + int(rng.integers(600, 9000))},{100 * n}"
        for n in range(40)
    ]
    rows += [
        "service,4000,1024,0,0,,LS,Succeeded,0,90000,0",
        "open,4000,1024,0,0,,LS,Running,0,200000,199000",
        "never,4000,1024,0,0,,LS,Pending,50,200000,",
    ]
    path = folder / "pods.csv"
    path.write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    return path
