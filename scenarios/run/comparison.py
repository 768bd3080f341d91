"""Compares two schedules of the same jobs, to the last bit."""

from typing import Any

import numpy as np
import numpy.typing as npt

from lrms_sim.workload.schedule import Schedule

Column = npt.NDArray[Any]

COLUMNS = ("executed_on", "start_time", "end_time")


def first_difference(found: Schedule, expected: Schedule) -> str:
    """Returns in words where two schedules of the same jobs first differ, or nothing.

    The words have the job, the column and both values, and how many jobs differ.

    Raises:
        ValueError: they are not of the same jobs.
    """
    if len(found) != len(expected):
        raise ValueError(f"the schedules have {len(found)} and {len(expected)} jobs")
    differs = np.zeros(len(found), bool)
    for name in COLUMNS:
        differs |= ~_equal(getattr(found, name), getattr(expected, name))
    if not differs.any():
        return ""
    row = int(np.argmax(differs))
    site = expected.machines[expected.submitted_to[row]].name
    words = [
        f"{name} is {_shown(found, name, row)} and should be {_shown(expected, name, row)}"
        for name in COLUMNS
        if not _equal(getattr(found, name)[row : row + 1], getattr(expected, name)[row : row + 1])[
            0
        ]
    ]
    return (
        f"arrival {row} (job {expected.log_job_id[row]} of {site}, submitted at "
        f"{expected.jobs.submit_time[row]:.15g}): {'; '.join(words)}; "
        f"{int(differs.sum())} of {len(found)} jobs differ"
    )


def _equal(left: Column, right: Column) -> npt.NDArray[np.bool_]:
    if left.dtype.kind != "f":
        return np.asarray(left == right)
    return np.asarray((left == right) | (np.isnan(left) & np.isnan(right)))


def _shown(schedule: Schedule, name: str, row: int) -> str:
    value = getattr(schedule, name)[row]
    if name == "executed_on":
        return schedule.machines[value].name if value >= 0 else "nowhere"
    return f"{value:.17g}"
