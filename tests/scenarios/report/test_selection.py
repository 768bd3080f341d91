import numpy as np

from lrms_sim.workload.jobs import JobTable
from scenarios.report.selection import important, largest_flows, left_out, notes_together
from scenarios.run.results import evaluate
from tests.scenarios.towns import random_towns, schedule_of, two_towns

NAMES = [f"town {number}" for number in range(60)]


def test_few_sites_are_all_shown_in_site_order() -> None:
    """Up to the limit nothing is chosen, and nothing is said to be left out."""
    result = random_towns(NAMES[:12], 400)
    assert important(result, 12) == list(range(12))
    assert left_out(result, 12) == ""


def test_the_sites_with_most_work_and_those_that_gained_and_lost_most_are_shown() -> None:
    """Of eight places four go by work, two to the greatest gains, two to the greatest losses."""
    work = [500, 400, 300, 200, 11, 12, 13, 14, 15, 16]
    later = [0, 0, 0, 0, -9, -8, 0, 1, 8, 9]
    machines = [(f"s{k}", 1) for k in range(10)]
    jobs = JobTable.from_columns(submit_time=[0] * 10, processors=[1] * 10, run_time=work)
    home = list(range(10))
    alone = schedule_of(machines, jobs, [20] * 10, home, home)
    federated = schedule_of(machines, jobs, [20 + each for each in later], home, home)
    result = evaluate(
        name="x",
        title="",
        description="",
        seed=1,
        disciplines=["fcfs"] * 10,
        schedule=federated,
        schedule_alone=alone,
    )
    assert important(result, 8) == [0, 1, 2, 3, 9, 8, 5, 4]
    assert left_out(result, 8).startswith("8 of 10 sites: ")


def test_the_largest_flows_come_first() -> None:
    """Flows are ranked by jobs, ties by giver and taker; jobs kept at home are none."""
    result = random_towns(NAMES[:9], 300, away=0.5)
    pairs = [
        (int(result.flow_jobs[i, j]), i, j)
        for i, j in np.ndindex(9, 9)
        if i != j and result.flow_jobs[i, j]
    ]
    pairs.sort(key=lambda pair: (-pair[0], pair[1], pair[2]))
    assert largest_flows(result, 1000) == pairs
    assert largest_flows(result, 5) == pairs[:5]


def test_notes_are_added_up_over_sites() -> None:
    """A reason counts its records, and the sites that have any."""
    assert notes_together(two_towns()) == [("run time 0 s", "dropped", 7, 1)]
