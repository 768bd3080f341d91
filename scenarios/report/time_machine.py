"""The time machine of a report: a slider over the sites' Gantt charts, with the exchanged jobs.

The data of its script is in the page: for each job a few whole numbers, seven bits a byte,
compressed, in base64, some ten characters a job. If not all jobs fit into `CHARACTERS_MAX`, those
with the most work are drawn one by one, and all of them as curves of `BINS` values.

A schedule does not say which processors a job has; the script gives it the lowest that are free.
"""

import base64
import json
import zlib
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from lrms_sim.analysis import occupancy
from lrms_sim.report.parts import Html
from lrms_sim.report.series import binned_mean
from lrms_sim.report.templates import filled, resource
from lrms_sim.workload.jobs import FloatArray, Int64Array
from scenarios.report import wording
from scenarios.report.selection import important
from scenarios.run.results import ScenarioResult

LANES_MAX: Final = 8
"""As many as there are colours."""

CHARACTERS_MAX: Final = 1_300_000
"""For the jobs that are drawn one by one: more than 100,000 of them."""

_CHARACTERS_MIN: Final = 6
"""Nearly the fewest characters of any job."""

BINS: Final = 600
"""Values of a curve over the whole run."""

DATA: Final = "time-machine-data"
_FINE_BELOW_S: Final = 20_000.0
"""A shorter run is shown to the hundredth of a second."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What is shown.

    Attributes:
        lane_of: shape (K,), the lane of each site; `len(lanes)` for one that has none.
        ran: rows of the jobs that ran in a lane, in order of arrival.
        rows: those of them that are drawn one by one.
        begin: seconds; what the page counts from.
        end: seconds.
        unit: seconds of a whole number.
        columns: the jobs of `rows`, as `data` says.
    """

    lanes: list[int]
    lane_of: Int64Array
    ran: Int64Array
    rows: Int64Array
    begin: float
    end: float
    unit: float
    columns: dict[str, str]


def section(result: ScenarioResult) -> Html | str:
    """Returns the section, which a page shows if its script runs; nothing without jobs."""
    if not result.jobs:
        return ""
    chosen = _chosen(result)
    if not len(chosen.ran):
        return ""
    document = json.dumps(data(result, chosen), ensure_ascii=True, separators=(",", ":"))
    return Html(
        filled(
            "scenarios.report",
            "time_machine.html",
            about=_about(result, chosen),
            lanes=[(result.sites[index].name, index % 8) for index in chosen.lanes],
            data=DATA,
            # In a script element "<" would end it, or begin a comment.
            document=Html(document.replace("<", "\\u003c")),
        )
    )


def script() -> str:
    """Returns the script that makes the section work."""
    return resource("scenarios.report", "time_machine_run.js") + resource(
        "scenarios.report", "time_machine.js"
    )


def data(result: ScenarioResult, chosen: _Chosen | None = None) -> dict[str, Any]:
    """Returns what the script draws.

    Args:
        result: with at least one job that ran at a site of the lanes.
        chosen: which lanes and jobs; worked out if omitted.

    Returns:
        `sites`: name, processors and number of the colour of each lane; `begin` and `end`, seconds;
        `unit`, seconds that a whole number of the columns counts; `complete`, whether every job is
        in the columns; `count`, their jobs; `columns`, as `packed`: `submit` (since the job before,
        the first since `begin`), `wait`, `run`, `processors`, `pair` (home lane times lanes plus
        one, plus the lane it ran in), `alone` (wait of the run without exchange), `job` (number,
        less that of the job before of the same home); `busy`: for each lane the mean of busy
        processors in each of `BINS` equal bins; where not complete also `waiting`, jobs that wait
        at the begin of each bin, and `given`, for each pair of lanes the jobs given by the begin of
        each bin, since the bin before.
    """
    chosen = chosen or _chosen(result)
    edges = np.linspace(chosen.begin, chosen.end, BINS + 1)
    complete = len(chosen.rows) == len(chosen.ran)
    document: dict[str, Any] = {
        "sites": [
            {
                "name": result.sites[index].name,
                "processors": result.sites[index].processors,
                "color": index % 8,
            }
            for index in chosen.lanes
        ],
        "begin": chosen.begin,
        "end": chosen.end,
        "unit": chosen.unit,
        "complete": complete,
        "count": len(chosen.rows),
        "bins": BINS,
        "columns": chosen.columns,
        "busy": [
            packed(_rounded(binned_mean(*_busy(result, index), edges))) for index in chosen.lanes
        ],
    }
    if not complete:
        document |= _curves(result, chosen, edges)
    return document


def packed(values: Int64Array) -> str:
    """Returns whole numbers as base64 of compressed (zlib) bytes of seven bits, the lowest first.

    The sign goes to the lowest bit (0, -1, 1, -2 … become 0, 1, 2, 3 …); the highest bit of a byte
    says that another one follows. `values` have shape (n,) and are below 2**52.
    """
    folded = np.where(values < 0, -2 * values - 1, 2 * values).astype(np.uint64)
    sizes = np.ones(len(folded), np.int64)
    for bits in range(7, 54, 7):
        sizes += folded >= (1 << bits)
    ends = np.cumsum(sizes)
    stream = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    for place in range(int(sizes.max(initial=0))):
        has = sizes > place
        piece = (folded[has] >> np.uint64(7 * place)) & np.uint64(127)
        more = np.where(sizes[has] > place + 1, 128, 0)
        stream[(ends - sizes)[has] + place] = piece.astype(np.uint8) | more.astype(np.uint8)
    return base64.b64encode(zlib.compress(stream.tobytes())).decode("ascii")


def _chosen(result: ScenarioResult) -> _Chosen:
    schedule = result.schedule
    lanes = sorted(important(result, LANES_MAX))
    lane_of = np.full(len(result.sites), len(lanes), np.int64)
    lane_of[lanes] = np.arange(len(lanes))
    ran = np.flatnonzero(lane_of[schedule.executed_on] < len(lanes)).astype(np.int64)
    begin = float(np.floor(schedule.jobs.submit_time[ran].min())) if len(ran) else 0.0
    end = max(float(np.ceil(schedule.end_time[ran].max(initial=0.0))), begin + 1.0)
    chosen = _Chosen(
        lanes, lane_of, ran, ran, begin, end, 0.01 if end - begin < _FINE_BELOW_S else 1.0, {}
    )
    work = schedule.jobs.resource_consumption[ran]
    ranked = ran[np.lexsort((ran, -work))]
    count = min(len(ran), CHARACTERS_MAX // _CHARACTERS_MIN)
    while True:
        chosen = replace(chosen, rows=np.sort(ranked[:count]))
        columns = _columns(result, chosen)
        size = sum(len(text) for text in columns.values())
        if size <= CHARACTERS_MAX:
            return replace(chosen, columns=columns)
        # A little fewer than in proportion, as steps between fewer jobs are wider.
        count = int(count * 0.97 * CHARACTERS_MAX / size)


def _columns(result: ScenarioResult, chosen: _Chosen) -> dict[str, str]:
    schedule, rows = result.schedule, chosen.rows
    begin, unit = chosen.begin, chosen.unit
    submit = _rounded((schedule.jobs.submit_time[rows] - begin) / unit)
    start = _rounded((schedule.start_time[rows] - begin) / unit)
    end = _rounded((schedule.end_time[rows] - begin) / unit)
    alone = _rounded(result.schedule_alone.wait_time[rows] / unit)
    home = chosen.lane_of[schedule.submitted_to[rows]]
    place = chosen.lane_of[schedule.executed_on[rows]]
    number = schedule.log_job_id[rows].astype(np.int64)
    step = number.copy()
    for lane in range(len(chosen.lanes) + 1):
        own = np.flatnonzero(home == lane)
        step[own] = np.diff(number[own], prepend=0)
    columns = {
        "submit": np.diff(submit, prepend=0),
        "wait": start - submit,
        "run": end - start,
        "processors": schedule.jobs.processors[rows].astype(np.int64),
        "pair": home * (len(chosen.lanes) + 1) + place,
        "alone": alone,
        "job": step,
    }
    return {name: packed(values) for name, values in columns.items()}


def _busy(result: ScenarioResult, site: int) -> tuple[FloatArray, FloatArray]:
    times, values = occupancy.busy_processors(result.schedule, site)
    return times, values.astype(np.float64)


def _curves(result: ScenarioResult, chosen: _Chosen, edges: FloatArray) -> dict[str, Any]:
    """Returns what cannot be counted in the columns, as some jobs are not in them."""
    schedule, ran = result.schedule, chosen.ran
    home = chosen.lane_of[schedule.submitted_to[ran]]
    place = chosen.lane_of[schedule.executed_on[ran]]
    submit, start = schedule.jobs.submit_time[ran], schedule.start_time[ran]

    def by(times: FloatArray) -> Int64Array:
        return np.searchsorted(np.sort(times), edges[:-1], side="right").astype(np.int64)

    lanes = range(len(chosen.lanes))
    waiting = [by(submit[place == lane]) - by(start[place == lane]) for lane in lanes]
    given = {
        f"{giver}-{taker}": packed(np.diff(by(submit[found]), prepend=0))
        for giver in lanes
        for taker in lanes
        if giver != taker and (found := (home == giver) & (place == taker)).any()
    }
    return {"waiting": [packed(np.diff(each, prepend=0)) for each in waiting], "given": given}


def _rounded(values: npt.NDArray[np.float64]) -> Int64Array:
    return np.rint(values).astype(np.int64)


def _about(result: ScenarioResult, chosen: _Chosen) -> str:
    text = (
        "Each chart is a machine: time goes to the right, processors upwards, and a job has the colour "
        "of the site whose user sent it. "
    )
    if len(chosen.lanes) > 1:
        text += "Jobs fly from site to site when they arrive. "
    text += "Drag over a chart to look closer, click on a job for its story."
    if len(chosen.lanes) < len(result.sites):
        text += f" {len(chosen.lanes)} of {wording.count(len(result.sites))} sites are shown."
    if len(chosen.rows) < len(chosen.ran):
        text += (
            f" The {wording.count(len(chosen.rows))} jobs with the most work are drawn one by one; the "
            f"pale area is all {wording.count(len(chosen.ran))}."
        )
    return text
