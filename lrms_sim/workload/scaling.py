"""Scales a workload to a larger machine."""

import math

import numpy as np

from lrms_sim.workload.jobs import JOBS_MAX, JobTable


def scale_to(
    jobs: JobTable,
    *,
    processors_from: int,
    processors_to: int,
    rng: np.random.Generator,
    factor: float | None = None,
) -> JobTable:
    """Returns the workload as a larger machine would have seen it.

    After Ernemann, Song, Yahyapour 2003, "Scaling of workload traces": with probability ½ a job
    is copied f times, else it becomes f times as wide. Either keeps the load, and together they
    keep the mixture of many jobs and wide jobs; n jobs become about n (1 + f)/2.

    The paper leaves fractions open. Here a job is copied ⌊f⌋ times, and once more with a
    probability of the rest; a width is rounded to the nearest whole number, halves up, and capped
    at the new machine; copies have the same submission time and user. Run time and requested time
    stay. Jobs are numbered 1, 2, … in order of arrival, copies of one job side by side.

    Args:
        jobs: the workload, no job wider than `processors_from`.
        processors_from: size of the original machine.
        processors_to: size of the new machine.
        rng: two numbers are drawn for each job, whatever they decide.
        factor: f; default `processors_to / processors_from`. The papers' job counts imply
            slightly more, such as 2.44 for CTC, 10.75 for KTH and 8.19 for SDSC00 at 1024
            processors.

    Raises:
        ValueError: a size or the factor is less than 1, a job is wider than its machine, or
            there would be too many jobs.
    """
    if processors_from < 1:
        raise ValueError(f"processors_from is {processors_from}; it must be at least 1")
    if processors_to < processors_from:
        raise ValueError(
            f"processors_to is {processors_to}; it must be at least processors_from, "
            f"{processors_from}"
        )
    if factor is None:
        factor = processors_to / processors_from
    if not (math.isfinite(factor) and factor >= 1):
        raise ValueError(f"factor is {factor}; it must be finite and at least 1")
    too_wide = jobs.processors > processors_from
    if too_wide.any():
        row = int(np.argmax(too_wide))
        raise ValueError(
            f"processors of job {jobs.job_id[row]} is {jobs.processors[row]}; it must be at most "
            f"processors_from, {processors_from}"
        )
    if len(jobs) * (factor + 1) > JOBS_MAX:
        raise ValueError(
            f"{len(jobs)} jobs scaled by {factor} may be more than {JOBS_MAX}, the most in a table"
        )
    copied = rng.random(len(jobs)) < 0.5
    whole = math.floor(factor)
    copies = whole + (rng.random(len(jobs)) < factor - whole).astype(np.int64)
    widened = np.minimum(np.floor(jobs.processors * factor + 0.5), processors_to)
    processors = np.where(copied, jobs.processors, widened).astype(np.int32)
    rows = np.repeat(np.arange(len(jobs)), np.where(copied, copies, 1))
    columns = {name: column[rows] for name, column in jobs.columns().items()}
    columns |= {"job_id": np.arange(1, len(rows) + 1), "processors": processors[rows]}
    return JobTable(**columns)
