"""Strategies on a recorded workload: every start, count and objective of an independent program.

The workload is the first 10,000 prepared jobs of the CTC log on 430 processors. The file beside
this one has digests of all start times, and the figures.
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from lrms_sim.analysis.trial import Trial, TrialResult
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.criteria import (
    GREEDY_DEFAULT,
    CriterionKind,
    CriterionOrder,
    GroupOrder,
    Order,
)
from lrms_sim.scheduling.selection import Policy, StrategyRule, StrategyRules, StrategyTable
from lrms_sim.scheduling.situations import Calendar, make_calendar, zone_named, zone_of_header
from lrms_sim.scheduling.strategies import Algorithm, Strategy
from lrms_sim.workload.groups import user_groups
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.swf import read_swf
from tests.recorded import LOGS, PROCESSORS, whole_log

pytestmark = pytest.mark.traces

EXPECTED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data/strategy_schedules.json").read_text(encoding="utf-8")
)
MACHINE = PROCESSORS["CTC"]
ALGORITHMS: dict[str, Algorithm] = {
    "FCFS": "fcfs",
    "EASY": "easy",
    "CONS": "conservative",
    "LIST": "list",
}
ORDERS: dict[str, Order] = {
    "wait": "arrival",
    "processors": "processors",
    "estimate": "requested_time",
    "group": GroupOrder(),
}


def digest(column: npt.NDArray[Any]) -> str:
    """Returns the first 16 digits of a column's sha256, as whole numbers of 64 bits."""
    return hashlib.sha256(column.astype("<i8").tobytes()).hexdigest()[:16]


@cache
def workload(folder: Path) -> tuple[JobTable, Trial]:
    """Returns the first 10,000 jobs of the log, alone and as a trial."""
    jobs = whole_log(folder, "CTC").select(np.arange(10_000))
    return jobs, Trial(jobs, MACHINE)


@cache
def calendar(folder: Path, which: str) -> Calendar:
    """Returns the calendar of the log's zone, or of the fixed offset in its header."""
    jobs, _ = workload(folder)
    zone, unix_start = zone_of_header(read_swf(folder / LOGS["CTC"]).header.fields)
    if which == "offset":
        zone = zone_named(-18000)
    return make_calendar(
        "week",
        zone=zone,
        unix_start=unix_start,
        first=float(jobs.submit_time[0]),
        last=float(jobs.submit_time[-1]),
    )


def compare(folder: Path, policy: Policy, expected: dict[str, Any]) -> TrialResult:
    """Compares everything that the file says of a schedule; returns the trial's result."""
    jobs, trial = workload(folder)
    result = trial.run(policy)
    objectives = result.objectives
    assert objectives is not None
    # The file has 16 digits of each, one fewer than some numbers need.
    assert result.value == pytest.approx(expected["objective"], rel=1e-15)
    assert objectives.awrt == pytest.approx(expected["awrt"], rel=1e-15)
    assert list(objectives.awrt_groups) == pytest.approx(expected["awrt_groups"], rel=1e-15)
    if "starts" in expected:
        schedule = simulate(jobs, MACHINE, policy)
        assert digest(schedule.start_time) == expected["starts"]
        assert objectives.utilization == pytest.approx(expected["utilization"], rel=1e-15)
        assert schedule.end_time.max() == expected["c_max"]
        assert schedule.wait_time.max() == expected["longest_wait"]
    if "passes" in expected:
        assert result.passes is not None
        assert sum(result.passes) == expected["passes"]
    return result


def test_the_workload_is_the_one_that_was_measured(traces_folder: Path) -> None:
    """Every column and every group is the other program's."""
    jobs, _ = workload(traces_folder)
    groups = user_groups(jobs)
    known = EXPECTED["workload"]
    digests = known["digests"]
    assert digest(jobs.run_time) == digests["run"]
    assert digest(jobs.submit_time) == digests["submit"]
    assert digest(jobs.requested_time) == digests["request"]
    assert digest(jobs.processors) == digests["processors"]
    assert digest(jobs.user) == digests["user"]
    assert digest(groups) == digests["group"]
    assert np.bincount(groups, minlength=6)[1:].tolist() == known["group_jobs"]
    assert float(jobs.resource_consumption.sum()) == known["resource_consumption"]


@pytest.mark.parametrize("which", ["zone", "offset"])
def test_situations_follow_each_other_as_they_did(which: str, traces_folder: Path) -> None:
    """The first switches of the log are right, with daylight saving and without."""
    known = calendar(traces_folder, which)
    first, *later = EXPECTED["calendars"][which]
    assert known.at(first[0]) == first[1]
    begin = int(np.searchsorted(known.switch_time, later[0][0]))
    for place, (time, situation) in enumerate(later, start=begin):
        assert (known.switch_time[place], known.situation[place]) == (time, situation)


@pytest.mark.parametrize("name", EXPECTED["constant"])
def test_a_constant_strategy(name: str, traces_folder: Path) -> None:
    """Each algorithm on each order, and Greedy by weighted waiting time."""
    algorithm, _, order = name.partition("/")
    policy = Strategy(ALGORITHMS[algorithm], ORDERS[order]) if order else greedy_default()
    result = compare(traces_folder, policy, EXPECTED["constant"][name])
    assert result.visits is None


def greedy_default() -> Strategy:
    """Returns Greedy where nothing was learned."""
    return Strategy("fcfs", GREEDY_DEFAULT)


@pytest.mark.parametrize("name", EXPECTED["greedy"])
def test_greedy_by_situation(name: str, traces_folder: Path) -> None:
    """f1 to f4, and a mixture of them, under both calendars."""
    kinds, parameters, which = name.split("/")
    names = kinds.split(",") if "," in kinds else [kinds] * 3
    vector = [[*w, *k, a, b] for w, k, a, b in EXPECTED["parameters"][parameters]]
    order = CriterionOrder.from_vector(
        cast("list[CriterionKind]", names),
        np.array(vector).ravel(),
        calendar=calendar(traces_folder, which),
    )
    compare(traces_folder, Strategy("fcfs", order), EXPECTED["greedy"][name])


def test_a_table_of_all_strategies(traces_folder: Path) -> None:
    """A table without rhyme or reason meets every class as often as it should."""
    expected = EXPECTED["table"]
    table = StrategyTable(tuple((7 * i + 3 * (i // 13)) % 13 for i in range(192)))
    result = compare(traces_folder, table, expected)
    assert result.visits == tuple(expected["visits"])


@pytest.mark.parametrize("name", ["rules", "symbiotic_rules"])
def test_fuzzy_rules(name: str, traces_folder: Path) -> None:
    """Twelve rules without meaning, and fifty evolved ones, choose what they should."""
    expected = EXPECTED[name]
    rules = tuple(StrategyRule(row[:7], row[7:14], row[14:]) for row in expected["rules"])
    result = compare(traces_folder, StrategyRules(rules), expected)
    assert result.passes == tuple(expected["strategy_passes"])


def test_an_evolved_criterion(traces_folder: Path) -> None:
    """f3 with evolved parameters has the value it was evolved to."""
    expected = EXPECTED["evolved_f3"]
    order = CriterionOrder.from_vector(
        ["f3", "f3", "f3"], expected["x"], calendar=calendar(traces_folder, "zone")
    )
    compare(traces_folder, Strategy("fcfs", order), expected)


def test_an_iterated_table(traces_folder: Path) -> None:
    """The table that coordinate descent ended with has its value and its visits."""
    expected = EXPECTED["iterated_table"]
    result = compare(traces_folder, StrategyTable(tuple(expected["table"])), expected)
    assert result.visits == tuple(expected["visits"])
