"""Small workloads to tune local strategies on."""

from pathlib import Path

import numpy as np

from grms.learning.queueing.fitness import TuningCase, tuning_case
from lrms_sim.analysis.trial import Trial
from lrms_sim.scheduling.situations import Calendar, make_calendar, zone_named
from lrms_sim.workload.jobs import JobTable


def busy_jobs(seed: int = 1, count: int = 300) -> JobTable:
    """Returns jobs of forty users, some heavy, on a machine of 16 processors that is full."""
    rng = np.random.default_rng(seed)
    run_time = rng.integers(60, 4000, count)
    # Few users with much work, many with little: all five groups are there.
    user = np.minimum(rng.geometric(0.12, count), 40)
    rare = rng.random(count) < 0.1
    user[rare] = 100 + np.arange(count)[rare]
    run_time[rare] = 60
    return JobTable.from_columns(
        submit_time=np.sort(rng.integers(0, 160_000, count)),
        processors=rng.integers(1, 13, count),
        run_time=run_time,
        requested_time=run_time + rng.integers(0, 3000, count),
        user=user,
    )


def utc_week(jobs: JobTable) -> Calendar:
    """Returns the three situations of a site on UTC whose second 0 is a Sunday evening."""
    return make_calendar(
        "week",
        zone=zone_named(0),
        unix_start=3 * 86400.0 + 20 * 3600.0,
        first=0.0,
        last=float(jobs.submit_time[-1]),
    )


def busy_case(seed: int = 1, count: int = 300) -> TuningCase:
    """Returns a case of `busy_jobs`; a replay takes well under a millisecond."""
    jobs = busy_jobs(seed, count)
    return tuning_case(f"busy {seed}", Trial(jobs, 16), utc_week(jobs))


HEADER = "; MaxProcs: 16\n; UnixStartTime: 800000000\n; TimeZoneString: Europe/Stockholm\n"


def busy_log(path: Path, *, header: str = HEADER, seed: int = 1, count: int = 300) -> Path:
    """Writes `busy_jobs` as a log and returns its path."""
    jobs = busy_jobs(seed, count)
    lines = [
        f"{row + 1} {jobs.submit_time[row]:.0f} -1 {jobs.run_time[row]:.0f} "
        f"{jobs.processors[row]} -1 -1 {jobs.processors[row]} {jobs.requested_time[row]:.0f} -1 1 "
        f"{jobs.user[row]} 1 -1 1 -1 -1 -1"
        for row in range(count)
    ]
    path.write_text(header + "\n".join(lines) + "\n", encoding="ascii")
    return path
