"""One batch machine, simulated: jobs, queue disciplines, schedules, metrics.

Nothing here imports `grms`, `broker` or `scenarios`. The names below are loaded on first use.
"""

from __future__ import annotations

from lrms_sim.util.lazy_names import lazy_names
from lrms_sim.util.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Named like the constant of `typing`: this runs before a command hears Ctrl-C, and takes no time.
    from typing import Final

    from lrms_sim.analysis.comparison import Comparison, compare
    from lrms_sim.analysis.metrics import (
        awrt,
        makespan,
        mean_bounded_slowdown,
        mean_response_time,
        mean_wait_time,
        median_wait_time,
        squashed_area,
        user_fairness,
        utilization,
    )
    from lrms_sim.machine.machine import simulate
    from lrms_sim.machine.stepped import Machine
    from lrms_sim.scheduling.disciplines import (
        Conservative,
        Discipline,
        Easy,
        EasyPlusPlus,
        Fcfs,
        ListScheduling,
        discipline_by_name,
    )
    from lrms_sim.scheduling.strategies import Strategy
    from lrms_sim.workload.groups import user_groups
    from lrms_sim.workload.jobs import JobTable, scale_to, window_by_days
    from lrms_sim.workload.lublin import generate
    from lrms_sim.workload.preparation import PreparationOptions, prepare
    from lrms_sim.workload.schedule import Schedule
    from lrms_sim.workload.swf import read_swf, write_swf

_HOMES: Final = {
    "Comparison": "analysis.comparison",
    "Conservative": "scheduling.disciplines",
    "Discipline": "scheduling.disciplines",
    "Easy": "scheduling.disciplines",
    "EasyPlusPlus": "scheduling.disciplines",
    "Fcfs": "scheduling.disciplines",
    "JobTable": "workload.jobs",
    "ListScheduling": "scheduling.disciplines",
    "Machine": "machine.stepped",
    "PreparationOptions": "workload.preparation",
    "Schedule": "workload.schedule",
    "Strategy": "scheduling.strategies",
    "awrt": "analysis.metrics",
    "compare": "analysis.comparison",
    "discipline_by_name": "scheduling.disciplines",
    "generate": "workload.lublin",
    "makespan": "analysis.metrics",
    "mean_bounded_slowdown": "analysis.metrics",
    "user_fairness": "analysis.metrics",
    "mean_response_time": "analysis.metrics",
    "mean_wait_time": "analysis.metrics",
    "median_wait_time": "analysis.metrics",
    "prepare": "workload.preparation",
    "read_swf": "workload.swf",
    "scale_to": "workload.jobs",
    "simulate": "machine.machine",
    "squashed_area": "analysis.metrics",
    "user_groups": "workload.groups",
    "utilization": "analysis.metrics",
    "window_by_days": "workload.jobs",
    "write_swf": "workload.swf",
}
"""The module of each name."""

__all__ = [
    "Comparison",
    "Conservative",
    "Discipline",
    "Easy",
    "EasyPlusPlus",
    "Fcfs",
    "JobTable",
    "ListScheduling",
    "Machine",
    "PreparationOptions",
    "Schedule",
    "Strategy",
    "__version__",
    "awrt",
    "compare",
    "discipline_by_name",
    "generate",
    "makespan",
    "mean_bounded_slowdown",
    "mean_response_time",
    "mean_wait_time",
    "median_wait_time",
    "prepare",
    "read_swf",
    "scale_to",
    "simulate",
    "squashed_area",
    "user_fairness",
    "user_groups",
    "utilization",
    "window_by_days",
    "write_swf",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
