"""How a day that was run is held beside the same day simulated."""

from typing import Any

import numpy as np
import pytest

from benchmarks.batch_simulated import (
    ALONE,
    SLACK_S,
    add_idling,
    idle_s,
    pressed,
    simulated,
    simulated_idling,
)
from benchmarks.batch_starts import Day, compared, gains, middle, turned
from grms.federation.federation import Site
from lrms_sim.workload.jobs import JobTable


def day(starts: list[float], places: list[int], delay: float = 0.0) -> Day:
    """Returns a day of jobs of ten seconds, all submitted at 0, the first two at the first site."""
    start = np.array(starts)
    home = np.array([0.0, 0.0, 1.0, 1.0])
    weight = np.array([10.0, 30.0, 10.0, 10.0])
    submit = np.zeros(4)
    return Day(
        ("A", "B"), home, np.array(places, dtype=float), weight, submit, start, start + 10 + delay
    )


ALL_HOME = day([0.0, 10.0, 0.0, 10.0], [0, 0, 1, 1])


def test_the_response_time_is_weighted() -> None:
    """By processors times run time, for each site's users wherever their jobs ran."""
    assert ALL_HOME.awrt() == {"A": 17.5, "B": 15.0, "all": pytest.approx(1000 / 60)}
    better = day([0.0, 0.0, 0.0, 20.0], [0, 1, 1, 1])
    assert gains(better, ALL_HOME) == pytest.approx({"A": 300 / 7, "B": -100 / 3, "all": 20.0})


def test_starts_in_another_order_are_counted() -> None:
    """But for ties, and for jobs that ran at different sites."""
    assert turned(ALL_HOME, ALL_HOME, 2.0) == (0, 2)
    assert turned(day([10.0, 0.0, 0.0, 10.0], [0, 0, 1, 1]), ALL_HOME, 2.0) == (1, 2)
    assert turned(day([10.0, 9.0, 0.0, 10.0], [0, 0, 1, 1]), ALL_HOME, 2.0) == (0, 1)
    assert turned(day([10.0, 0.0, 0.0, 10.0], [1, 0, 1, 1]), ALL_HOME, 2.0) == (0, 1)


def test_figures_are_in_seconds_of_the_trace() -> None:
    """Lags are real."""
    later = day([1.0, 12.0, 0.0, 10.0], [0, 1, 1, 1])
    found = compared(later, ALL_HOME, 2.0, 100.0)
    assert found["awrt_simulated_s"] == {"A": 1750, "B": 1500, "all": 1667}
    assert (found["delegated"], found["delegated_simulated"]) == (1, 0)
    assert found["same_place_percent"] == 75.0
    assert found["start_lag_real_s"] == {"median": 0.5, "most": 2.0}
    assert middle([{"A": 1.0}, {"A": 5.0}, {"A": 2.0}]) == {"A": 2.0}


def test_times_are_divided_and_limits_leave_room() -> None:
    """A job that was ended at its limit is not ended at it again."""
    jobs = JobTable.from_columns(
        submit_time=[0.0, 100.0],
        processors=[2, 3],
        run_time=[1000.0, 50.0],
        requested_time=[1000.0, 90_000.0],
    )
    found = pressed(jobs, 10.0, whole_minutes=False)
    assert found.submit_time.tolist() == [0.0, 10.0]
    assert found.run_time.tolist() == [100.0, 5.0]
    assert found.requested_time.tolist() == [100.0 + SLACK_S, 9000.0]
    assert pressed(jobs, 10.0, whole_minutes=True).requested_time.tolist() == [180.0, 9000.0]


def test_the_simulation_exchanges_with_a_policy_and_not_without() -> None:
    """A job that would wait at home is accepted by an idle partner."""
    busy = JobTable.from_columns(
        submit_time=[0.0, 1.0], processors=[100, 50], run_time=[100.0, 9.0]
    )
    idle = JobTable.from_columns(submit_time=[50.0], processors=[1], run_time=[1.0])
    sites = [Site("KTH", 100, busy), Site("CTC", 430, idle)]
    assert simulated(ALONE, sites).start_time.tolist() == [0.0, 100.0, 50.0]
    exchanged = simulated("awf", sites)
    assert exchanged.start_time.tolist() == [0.0, 1.0, 50.0]
    assert exchanged.place.tolist() == [0.0, 1.0, 1.0]


def one_after_the_other() -> list[Site]:
    """Returns sites with five jobs as wide as the first, of which one arrives when the one before has just ended."""
    rows = JobTable.from_columns(
        submit_time=[0.0, 1.0, 2.0, 3.0, 40.5], processors=[100] * 5, run_time=[10.0] * 5
    )
    idle = JobTable.from_columns(submit_time=[500.0], processors=[1], run_time=[1.0])
    return [Site("KTH", 100, rows), Site("CTC", 430, idle)]


def test_processors_stand_idle_between_two_jobs() -> None:
    """Each job behind others starts so much later than the one before; users' work weighs what it did."""
    sites = one_after_the_other()
    late = simulated_idling(ALONE, sites, 0.5)
    assert late.start_time.tolist() == [0.0, 10.5, 21.0, 31.5, 42.0, 500.0]
    assert late.weight.tolist() == simulated(ALONE, sites).weight.tolist()
    assert idle_s(sites, late.awrt()["all"]) == pytest.approx(0.5, abs=0.01)
    assert idle_s(sites, simulated(ALONE, sites).awrt()["all"]) == 0.0


def test_what_idling_makes_of_a_policy_is_added() -> None:
    """A run in which they stood idle as in the simulation has the simulation's gain, and its delegated jobs."""
    sites = one_after_the_other()
    runs = []
    for policy in (ALONE, "start-now"):
        found = simulated_idling(policy, sites, 0.5)
        runs.append([compared(found, simulated(policy, sites), 2.0, 1.0)])
    alone, there = (simulated_idling(policy, sites, 0.5) for policy in (ALONE, "start-now"))
    runs[0][0]["awrt_s"]["all"] = alone.awrt()["all"]
    real = gains(there, alone)
    entry: dict[str, Any] = {"runs": runs[1], "gain_percent": [real]}
    figures: dict[str, Any] = {
        "factor": 1.0,
        "policies": {ALONE: {"runs": runs[0]}, "start-now": entry},
    }
    add_idling(figures, sites)
    assert figures["idle_s"] == [pytest.approx(0.5, abs=0.01)]
    assert entry["delegated_simulated_idling"] == [int(np.sum(there.place != there.home))]
    assert entry["most_points_apart_idling"] == {
        name: pytest.approx(0.0, abs=0.5) for name in ("KTH", "CTC", "all")
    }
