"""One batch machine, simulated: jobs, queue disciplines, schedules, metrics.

Nothing here imports `grms`, `broker` or `scenarios`. The names below are loaded on first use.
"""

from __future__ import annotations

from lrms_sim.lazy_names import lazy_names
from lrms_sim.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Named like the constant of `typing`: this runs before a command hears Ctrl-C, and takes no time.
    from typing import Final

    from lrms_sim.disciplines import (
        Conservative,
        Discipline,
        Easy,
        EasyPlusPlus,
        Fcfs,
        ListScheduling,
        discipline_by_name,
    )
    from lrms_sim.fairness import user_fairness
    from lrms_sim.groups import user_groups
    from lrms_sim.jobs import JobTable
    from lrms_sim.lublin import generate
    from lrms_sim.machine import simulate
    from lrms_sim.metrics import (
        awrt,
        makespan,
        mean_bounded_slowdown,
        mean_response_time,
        mean_wait_time,
        median_wait_time,
        squashed_area,
        utilization,
    )
    from lrms_sim.preparation import PreparationOptions, prepare
    from lrms_sim.scaling import scale_to
    from lrms_sim.schedule import Schedule
    from lrms_sim.stepped import Machine
    from lrms_sim.strategies import Strategy
    from lrms_sim.swf import read_swf, write_swf
    from lrms_sim.windows import window_by_days

_HOMES: Final = {
    "Conservative": "disciplines",
    "Discipline": "disciplines",
    "Easy": "disciplines",
    "EasyPlusPlus": "disciplines",
    "Fcfs": "disciplines",
    "JobTable": "jobs",
    "ListScheduling": "disciplines",
    "Machine": "stepped",
    "PreparationOptions": "preparation",
    "Schedule": "schedule",
    "Strategy": "strategies",
    "awrt": "metrics",
    "discipline_by_name": "disciplines",
    "generate": "lublin",
    "makespan": "metrics",
    "mean_bounded_slowdown": "metrics",
    "user_fairness": "fairness",
    "mean_response_time": "metrics",
    "mean_wait_time": "metrics",
    "median_wait_time": "metrics",
    "prepare": "preparation",
    "read_swf": "swf",
    "scale_to": "scaling",
    "simulate": "machine",
    "squashed_area": "metrics",
    "user_groups": "groups",
    "utilization": "metrics",
    "window_by_days": "windows",
    "write_swf": "swf",
}
"""The module of each name."""

__all__ = [
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
