"""Plots of one schedule: processors over time, load and queue, distributions.

Each function draws into given axes or a new figure, and returns the axes. They need matplotlib and
no display.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lrms_sim.analysis.occupancy import busy_processors, waiting_processors
from lrms_sim.machine.places import places
from lrms_sim.workload.schedule import Schedule

GANTT_JOBS_MAX: Final = 20_000
"""Most jobs of one Gantt chart; take a slice of a schedule for a part of it."""

_DAY: Final = 86400.0


def _axes(axes: Axes | None) -> Axes:
    if axes is not None:
        return axes
    return Figure(figsize=(9.0, 4.0), layout="constrained").subplots()


def gantt(schedule: Schedule, machine: int = 0, *, axes: Axes | None = None) -> Axes:
    """Draws the processors of each job over time; darker jobs have waited longer.

    Raises:
        ValueError: there are more than `GANTT_JOBS_MAX` jobs.
    """
    if len(schedule) > GANTT_JOBS_MAX:
        raise ValueError(
            f"{len(schedule)} jobs; a Gantt chart shows at most {GANTT_JOBS_MAX}: take a slice"
        )
    axes = _axes(axes)
    boxes, waits = [], []
    for row, ranges in enumerate(places(schedule, machine)):
        start, end = schedule.start_time[row] / _DAY, schedule.end_time[row] / _DAY
        for first, count in ranges:
            boxes.append(Rectangle((start, first), end - start, count))
            waits.append(schedule.wait_time[row] / 3600.0)
    drawn = PatchCollection(boxes, cmap="Blues", edgecolor="white", linewidth=0.3)
    shades = np.log10(1.0 + np.asarray(waits))
    drawn.set_array(shades)
    drawn.set_clim(-1.0, max(1.0, float(shades.max(initial=0.0))))
    axes.add_collection(drawn)
    axes.autoscale_view()
    axes.set(ylim=(0, schedule.machines[machine].processors), ylabel="processors", xlabel="day")
    axes.set_title(f"Gantt chart of {schedule.machines[machine].name}")
    return axes


def _over_time(axes: Axes, steps: tuple[npt.NDArray[Any], npt.NDArray[Any]], label: str) -> Axes:
    times, values = steps
    axes.fill_between(times / _DAY, values, step="post", alpha=0.6, label=label)
    axes.set(xlabel="day", ylabel=label)
    axes.set_ylim(bottom=0)
    return axes


def utilization(schedule: Schedule, machine: int = 0, *, axes: Axes | None = None) -> Axes:
    """Draws the busy processors of a machine over time, and its size."""
    axes = _over_time(_axes(axes), busy_processors(schedule, machine), "processors in use")
    axes.axhline(schedule.machines[machine].processors, color="black", linewidth=0.8)
    return axes


def queue(schedule: Schedule, machine: int = 0, *, axes: Axes | None = None) -> Axes:
    """Draws the processors that waiting jobs ask for over time."""
    steps = waiting_processors(schedule, machine)
    return _over_time(_axes(axes), steps, "processors waited for")


def wait_distribution(
    schedules: Mapping[str, Schedule] | Schedule, *, axes: Axes | None = None
) -> Axes:
    """Draws which part of all jobs has waited at most so long, a line for each schedule by name."""
    axes = _axes(axes)
    named = {"": schedules} if isinstance(schedules, Schedule) else schedules
    for name, schedule in named.items():
        hours = np.sort(schedule.wait_time) / 3600.0
        part = np.arange(1, len(hours) + 1) / max(len(hours), 1)
        axes.step(hours, 100.0 * part, where="post", label=name)
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set(xlabel="wait, hours", ylabel="percent of jobs", ylim=(0, 100), xlim=(0, None))
    if "" not in named:
        axes.legend()
    return axes
