"""Pictures of sites that exchange jobs: who ran whose jobs, and who gains."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lrms_sim.analysis.metrics import awrt
from lrms_sim.workload.schedule import Schedule


def flows(schedule: Schedule, *, axes: Axes | None = None) -> Axes:
    """Draws how many jobs of each site (rows) ran at which (columns); dark cells are large parts.

    It draws on `axes`, or on a new figure.
    """
    if axes is None:
        axes = Figure(figsize=(5.0, 4.5), layout="constrained").subplots()
    names = [machine.name for machine in schedule.machines]
    counts = np.zeros((len(names), len(names)), np.int64)
    np.add.at(counts, (schedule.submitted_to, schedule.executed_on), 1)
    parts = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(parts, cmap="Blues", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(counts):
        color = "white" if parts[row, column] > 0.6 else "black"
        axes.text(column, row, f"{count:,}", ha="center", va="center", color=color)
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="ran at", ylabel="submitted at", title="Jobs")
    return axes


def gains(alone: Schedule, together: Schedule, *, axes: Axes | None = None) -> Axes:
    """Draws by how many percent the AWRT of each site's own users improves.

    `alone` is from `replay_alone`, `together` from `replay` of the same sites. It draws on `axes`,
    or on a new figure.
    """
    if axes is None:
        axes = Figure(figsize=(6.0, 3.5), layout="constrained").subplots()
    names = [machine.name for machine in alone.machines]
    improved = [100.0 * (1.0 - awrt(together, i) / awrt(alone, i)) for i in range(len(names))]
    bars = axes.bar(names, improved)
    axes.bar_label(bars, [f"{value:+.1f} %" for value in improved], padding=2)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.margins(y=0.15)
    axes.set(ylabel="improvement of AWRT, %", title="Together rather than alone")
    return axes
