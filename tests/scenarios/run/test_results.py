import json
import math
from dataclasses import replace

import numpy as np
import pytest

from lrms_sim.analysis import metrics
from lrms_sim.util.version import __version__
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.schedule import Schedule
from scenarios.run.results import RESULT_FORMAT, WorkloadNote, evaluate, flows
from tests.scenarios.towns import random_towns, schedule_of, two_towns, two_towns_schedules


def evaluated(schedule: Schedule, alone: Schedule, disciplines: list[str] | None = None) -> None:
    evaluate(
        name="x",
        title="x",
        description="",
        seed=0,
        disciplines=["fcfs"] * len(schedule.machines) if disciplines is None else disciplines,
        schedule=schedule,
        schedule_alone=alone,
    )


def test_users_figures_are_those_worked_out_by_hand() -> None:
    """AWRT weighs response times by processor-seconds, of own jobs wherever they ran."""
    luebeck, wismar = two_towns().sites
    assert (luebeck.awrt_alone, luebeck.awrt) == (150.0, 100.0)
    assert luebeck.awrt_improvement == pytest.approx(1 / 3)
    assert wismar.awrt_alone == pytest.approx((1000 * 50 + 200 * 80) / 1200)
    assert wismar.awrt == pytest.approx((1000 * 140 + 200 * 120) / 1200)
    assert wismar.awrt_improvement == pytest.approx(1 - 164 / 66)


def test_machines_figures_are_those_worked_out_by_hand() -> None:
    """Utilization, squashed area and makespan are of the jobs that ran on the machine."""
    luebeck, wismar = two_towns().sites
    assert luebeck.utilization_alone == 1.0
    assert wismar.utilization_alone == pytest.approx(2 / 3)
    assert luebeck.utilization == pytest.approx(1200 / (10 * 140))
    assert wismar.utilization == pytest.approx(2000 / (20 * 150))
    assert luebeck.squashed_area_change == pytest.approx(-0.4)
    assert wismar.squashed_area_change == pytest.approx(2 / 3)
    assert (luebeck.makespan_alone, luebeck.makespan) == (200.0, 140.0)
    assert (wismar.makespan_alone, wismar.makespan) == (100.0, 150.0)


def test_waits_and_slowdowns_are_those_worked_out_by_hand() -> None:
    """Waits and slowdowns are plain means over the own jobs."""
    luebeck, wismar = two_towns().sites
    assert (luebeck.mean_wait_time_alone, luebeck.mean_wait_time) == (50.0, 0.0)
    assert (wismar.mean_wait_time_alone, wismar.mean_wait_time) == (20.0, 85.0)
    assert (luebeck.mean_slowdown_alone, luebeck.mean_slowdown) == (1.5, 1.0)
    assert wismar.mean_slowdown_alone == 1.5
    assert wismar.mean_slowdown == pytest.approx(2.9)
    assert wismar.mean_bounded_slowdown == pytest.approx(2.9)


def test_exchange_is_counted_by_giver_and_taker() -> None:
    """Rows of the flow matrices gave, columns took, and the diagonal stayed at home."""
    result = two_towns()
    assert result.flow_jobs.tolist() == [[1, 1], [1, 1]]
    assert result.flow_area.tolist() == [[1000.0, 1000.0], [200.0, 1000.0]]
    assert [(s.jobs, s.jobs_kept, s.jobs_given, s.jobs_taken) for s in result.sites] == [
        (2, 1, 1, 1),
        (2, 1, 1, 1),
    ]
    assert (result.jobs, result.jobs_exchanged) == (4, 2)


def test_a_result_knows_where_it_comes_from() -> None:
    """Seed, disciplines, notes and version travel with the figures."""
    result = two_towns()
    assert (result.seed, result.version) == (3, __version__)
    assert [site.discipline for site in result.sites] == ["fcfs", "easy"]
    assert result.workload_notes == ((WorkloadNote("run time 0 s", 7, "dropped"),), ())
    assert result.acknowledgements == ("With thanks to the towns.",)


def test_flows_hold_every_job_once() -> None:
    """Whatever the schedule, the matrices add up to all jobs and all work."""
    result = random_towns(["a", "b", "c"], 500, seed=4)
    jobs, area = flows(result.schedule)
    assert jobs.sum() == 500
    assert area.sum() == pytest.approx(result.schedule.jobs.resource_consumption.sum())
    assert jobs.sum(axis=1).tolist() == np.bincount(result.schedule.submitted_to).tolist()
    assert jobs.sum(axis=0).tolist() == np.bincount(result.schedule.executed_on).tolist()


def test_a_site_without_jobs_has_no_means() -> None:
    """Means of nothing are NaN, counts are 0, and nothing warns."""
    jobs = JobTable.from_columns(submit_time=[0], processors=[1], run_time=[5])
    schedule = schedule_of([("a", 1), ("b", 1)], jobs, [0], [0], [0])
    result = evaluate(
        name="x",
        title="x",
        description="",
        seed=0,
        disciplines=["fcfs", "fcfs"],
        schedule=schedule,
        schedule_alone=schedule,
    )
    idle = result.sites[1]
    assert (idle.jobs, idle.jobs_taken) == (0, 0)
    means = (idle.awrt, idle.awrt_improvement, idle.utilization, idle.makespan, idle.mean_wait_time)
    assert all(math.isnan(value) for value in means)
    assert result.to_dict()["sites"][1]["awrt_improvement"] is None


def test_json_holds_every_figure() -> None:
    """The JSON text reads back to the dictionary and holds the figures in full precision."""
    result = two_towns()
    document = json.loads(result.to_json())
    assert document == result.to_dict()
    assert document["format"] == RESULT_FORMAT
    assert document["sites"][1]["awrt"] == result.sites[1].awrt
    assert document["flow"] == {
        "sites": ["Lübeck", "Wismar"],
        "jobs": [[1, 1], [1, 1]],
        "area_processor_s": [[1000.0, 1000.0], [200.0, 1000.0]],
    }
    assert document["workload_notes"][0] == {
        "site": "Lübeck",
        "records": [{"reason": "run time 0 s", "count": 7, "treatment": "dropped"}],
    }
    assert result.to_json().endswith("}\n")
    assert "Lübeck" in result.to_json(), "names are to be read by people"
    with pytest.raises(ValueError, match="JSON compliant"):
        replace(result, seed=math.nan).to_json()  # type: ignore[arg-type]  # no number


def test_schedules_of_different_machines_are_refused() -> None:
    """The error names both lists of machines."""
    federated, alone = two_towns_schedules()
    with pytest.raises(ValueError, match=r"Lübeck \(10\), Wismar \(20\).*Lübeck \(10\)$"):
        evaluated(federated, replace(alone, machines=alone.machines[:1]))


def test_schedules_of_different_jobs_are_refused() -> None:
    """The error says in which row the jobs differ, or how many there are of each."""
    federated, alone = two_towns_schedules()
    fewer = JobTable.from_columns(submit_time=[0], processors=[1], run_time=[1])
    one = schedule_of([("Lübeck", 10), ("Wismar", 20)], fewer, [0], [0], [0])
    with pytest.raises(ValueError, match="has 4 jobs, the one without exchange 1"):
        evaluated(federated, one)
    other = JobTable.from_columns(
        submit_time=[0, 0, 10, 20], processors=[10, 10, 20, 6], run_time=[100, 100, 50, 40]
    )
    with pytest.raises(ValueError, match="row 3 is not the same job"):
        evaluated(replace(federated, jobs=other), alone)


def test_a_baseline_with_exchange_is_refused() -> None:
    """Nobody is "alone" whose jobs run elsewhere."""
    federated, _ = two_towns_schedules()
    with pytest.raises(ValueError, match="row 1 of the schedule without exchange ran on machine 1"):
        evaluated(federated, federated)


def test_one_discipline_for_each_site_is_asked_for() -> None:
    """The error says how many there are and how many are needed."""
    federated, alone = two_towns_schedules()
    with pytest.raises(ValueError, match="disciplines has 1 entries for 2 sites"):
        evaluated(federated, alone, ["fcfs"])


def test_figures_are_those_of_the_whole_schedule_to_the_last_bit() -> None:
    """Each site is measured on its own part of the schedule; nothing changes by that."""
    result = random_towns([f"town {k}" for k in range(17)], 2500, away=0.6)
    for k, site in enumerate(result.sites):
        assert site.awrt == metrics.awrt(result.schedule, k)
        assert site.awrt_alone == metrics.awrt(result.schedule_alone, k)
        assert site.utilization == metrics.utilization(result.schedule, k)
        assert site.squashed_area_change == metrics.squashed_area_change(result.schedule, k)
        assert site.makespan == metrics.makespan(result.schedule, k)
        assert site.mean_slowdown == metrics.mean_slowdown(result.schedule, k)


def test_json_has_a_line_for_a_sites_flows() -> None:
    """The document is the plain one, with a matrix that is short enough for a thousand sites."""
    result = random_towns(['"jobs": "@jobs"', "b", "c"], 300, away=0.6)
    assert json.loads(result.to_json()) == json.loads(json.dumps(result.to_dict()))
    assert len(result.to_json().splitlines()) < 130
