"""How many processors of a schedule are busy, and asked for by waiting jobs, over time."""

import numpy as np
import numpy.typing as npt

from lrms_sim.analysis.metrics import executed
from lrms_sim.workload.jobs import FloatArray, Int64Array
from lrms_sim.workload.schedule import Schedule


def busy_processors(
    schedule: Schedule, machine: int | None = None
) -> tuple[FloatArray, Int64Array]:
    """Returns the number of busy processors over time, as a step function.

    By default of all executing machines.

    Returns:
        `times`, shape (k,), seconds, strictly increasing, and `values`, shape (k,), processors:
        `values[i]` holds from `times[i]` until `times[i + 1]`. Before the first time and from
        the last on nothing is busy. Empty if the machine executed nothing.

    Raises:
        ValueError: there is no such machine.
    """
    chosen = executed(schedule, machine)
    return _steps(
        schedule.start_time[chosen], schedule.end_time[chosen], schedule.jobs.processors[chosen]
    )


def waiting_processors(
    schedule: Schedule, machine: int | None = None
) -> tuple[FloatArray, Int64Array]:
    """Returns the processors requested by the waiting jobs over time, as a step function.

    A job waits, from its submission to its start, in the queue of the machine that executes it.
    Arguments, result and errors are those of `busy_processors`.
    """
    chosen = executed(schedule, machine)
    return _steps(
        schedule.jobs.submit_time[chosen],
        schedule.start_time[chosen],
        schedule.jobs.processors[chosen],
    )


def _steps(
    begin: FloatArray, end: FloatArray, height: npt.NDArray[np.int32]
) -> tuple[FloatArray, Int64Array]:
    moments = np.concatenate([begin, end])
    changes = np.concatenate([height, -height]).astype(np.int64)
    order = np.argsort(moments, kind="stable")
    moments, level = moments[order], np.cumsum(changes[order])
    # The level that holds after an instant is the one after its last change; instants that
    # leave the level as it was say nothing and are left out.
    last = np.ones(len(moments), np.bool_)
    last[:-1] = moments[1:] > moments[:-1]
    times, values = moments[last], level[last]
    changed = np.diff(values, prepend=0) != 0
    return times[changed], values[changed]
