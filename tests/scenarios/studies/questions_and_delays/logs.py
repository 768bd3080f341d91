"""Logs of the study's machines that are made up: few jobs, as many days as the study needs."""

import numpy as np

from lrms_sim.workload.jobs import SECONDS_PER_DAY, JobTable
from scenarios.spec.traces import TRACES
from scenarios.studies.questions_and_delays.replays import LOGS

DAYS = 340


def small_logs() -> dict[str, JobTable]:
    """Returns two jobs a day for each log, most of them wide and long, so that some have to wait."""
    found = {}
    for number, log in enumerate(LOGS):
        rng = np.random.default_rng(number)
        count = 2 * DAYS
        run_time = rng.integers(3600, 20 * 3600, count).astype(float)
        found[log] = JobTable.from_columns(
            job_id=np.arange(1, count + 1),
            submit_time=np.sort(rng.uniform(0, DAYS * SECONDS_PER_DAY, count)),
            processors=rng.integers(1, TRACES[log].processors + 1, count),
            run_time=run_time,
            requested_time=2 * run_time,
        )
    return found
