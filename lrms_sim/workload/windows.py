"""Cuts workloads to a span of days and merges several into one."""

import math
from typing import Final, Literal, get_args

import numpy as np

from lrms_sim.workload.jobs import JobTable

SECONDS_PER_DAY: Final = 86400.0

Shift = Literal["none", "window", "first_job"]
"""Where time 0 lies after cutting: as before, at the start of the window, at its first job."""


def window_by_days(
    jobs: JobTable,
    first_day: float | None = None,
    last_day: float | None = None,
    *,
    first_jobs: int | None = None,
    shift: Shift = "none",
) -> JobTable:
    """Returns the jobs submitted in a span of days, a day being 86,400 s from time 0; possibly none.

    Args:
        jobs: the workload.
        first_day: the span begins at `first_day · 86400` s, included; default at the first job.
            Fractions are allowed.
        last_day: the span ends at `last_day · 86400` s, not included; default after the last job.
        first_jobs: keep at most so many jobs, the earliest of the span.
        shift: `none` keeps submission times, `window` makes the start of the span time 0,
            `first_job` makes the first submission of the span time 0.

    Raises:
        ValueError: the span ends before it begins, a day is not finite, `first_jobs` is
            negative, or `shift` is not a choice.
    """
    _check_window(first_day, last_day, first_jobs, shift)
    count = len(jobs)
    first, last = 0, count
    if first_day is not None:
        first = int(np.searchsorted(jobs.submit_time, first_day * SECONDS_PER_DAY))
    if last_day is not None:
        last = int(np.searchsorted(jobs.submit_time, last_day * SECONDS_PER_DAY))
    if first_jobs is not None:
        last = min(last, first + first_jobs)
    window = jobs.select(np.arange(first, max(first, last)))
    if shift == "window" and first_day is not None:
        return window.shifted(-first_day * SECONDS_PER_DAY)
    if shift == "first_job" and len(window):
        return window.shifted(-float(window.submit_time[0]))
    return window


def _check_window(
    first_day: float | None, last_day: float | None, first_jobs: int | None, shift: Shift
) -> None:
    for name, day in (("first_day", first_day), ("last_day", last_day)):
        if day is not None and not math.isfinite(day):
            raise ValueError(f"{name} is {day}; it must be finite")
    if first_day is not None and last_day is not None and last_day <= first_day:
        raise ValueError(f"last_day is {last_day}; it must be more than first_day, {first_day}")
    if first_jobs is not None and first_jobs < 0:
        raise ValueError(f"first_jobs is {first_jobs}; it must not be negative")
    if shift not in get_args(Shift):
        raise ValueError(f"shift is {shift!r}; it must be one of {', '.join(get_args(Shift))}")
