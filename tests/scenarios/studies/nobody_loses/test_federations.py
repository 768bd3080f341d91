import numpy as np
import pytest

from lrms_sim.workload.jobs import JobTable
from scenarios.spec.traces import TRACES
from scenarios.studies.nobody_loses.federations import (
    Case,
    Workloads,
    disciplines,
    federation_of,
    gain,
    pairs_and_more,
    run_case,
    with_whole_machine_jobs,
)
from scenarios.studies.nobody_loses.reference import LOGS, ROUNDS
from tests.random_workloads import random_jobs

DAY = 86400.0


class Made(Workloads):
    """Logs of 400 days with few jobs each, drawn at random."""

    def whole(self, log: str) -> JobTable:
        """Returns jobs of a machine of the log's size."""
        rng = np.random.default_rng(LOGS.index(log))
        columns = random_jobs(rng, 60, TRACES[log].processors, (3600.0,)).columns()
        columns["submit_time"] = np.sort(
            rng.integers(0, int(400 * DAY), len(columns["job_id"])) * 1.0
        )
        return JobTable.from_columns(**columns)


def test_grids_are_all_sets_of_two_to_four() -> None:
    """Six pairs, four triples, all four; small ones first and in site order."""
    grids = pairs_and_more(LOGS)
    assert [len(grid) for grid in grids] == [2] * 6 + [3] * 4 + [4]
    assert grids[:3] == [("kth", "ctc"), ("kth", "sdsc05"), ("kth", "sdsc00")]
    assert len(set(grids)) == 11


def test_the_smaller_half_has_fcfs_where_disciplines_are_mixed() -> None:
    """One of three, two of four; else all have the same."""
    assert disciplines(Case("x", ("ctc-5", "kth-5", "sdsc05-5"), "mixed", "awf")) == [
        "easy",
        "fcfs",
        "easy",
    ]
    four = Case("x", ("kth-5", "ctc-5", "sdsc05-5", "sdsc00-5"), "mixed", "awf")
    assert disciplines(four) == ["fcfs", "easy", "easy", "fcfs"]
    assert disciplines(Case("x", ("kth-5", "ctc-5"), "easy", "awf")) == ["easy", "easy"]


def test_windows_are_what_their_names_say() -> None:
    """Before and from day 150; four times as fast in whole seconds; a whole machine every week."""
    made = Made()
    assert made.jobs("kth-5").submit_time[-1] < 150 * DAY <= made.jobs("kth-6").submit_time[0]
    fast, whole = made.jobs("kth-f"), made.whole("kth")
    assert np.array_equal(fast.submit_time, np.floor(whole.submit_time / 4)[: len(fast)])
    assert fast.submit_time[-1] < 75 * DAY
    assert np.all(fast.run_time <= fast.requested_time)
    assert len(made.jobs("kth-w")) > len(made.jobs("kth-6"))
    later = made.jobs("kth-6", 1)
    assert np.array_equal(later.submit_time, made.jobs("kth-6", 1).submit_time)
    moved = np.sort(later.submit_time) - np.sort(made.jobs("kth-6").submit_time)
    assert 0 < moved.max() <= 600
    assert moved.min() >= 0


def test_a_job_over_the_whole_machine_comes_every_week() -> None:
    """From a week after the first job until the last."""
    jobs = JobTable.from_columns(
        submit_time=[0.0, 22 * DAY], processors=[1, 1], requested_time=[9, 9], run_time=[9, 9]
    )
    found = with_whole_machine_jobs(jobs, 64)
    wide = found.processors == 64
    assert found.submit_time[wide].tolist() == [7 * DAY, 14 * DAY, 21 * DAY]
    assert len(np.unique(found.job_id)) == len(found) == 5


def test_gain_is_the_share_of_awrt_that_is_saved() -> None:
    """The figure is that of the formula, months weigh like the whole."""
    made = Made()
    case = Case("x", ("kth-6", "ctc-6"), "easy", "fair-exchange")
    found = run_case(case, made)
    federation = federation_of(case, made)
    schedule, alone = federation.replay(), federation.replay_alone()
    mine = schedule.submitted_to == 1
    work = (schedule.jobs.run_time * schedule.jobs.processors)[mine]
    response = [
        float(np.sum(work * (each.end_time - each.jobs.submit_time)[mine]))
        for each in (schedule, alone)
    ]
    assert found["gain"][1] == pytest.approx(100 * (1 - response[0] / response[1]))
    assert gain(alone, alone, mine) == 0.0
    assert min(found["months"][1]) <= found["gain"][1] <= max(found["months"][1])
    assert found["offers"] >= found["moved"]


@pytest.mark.parametrize(
    "case",
    [
        Case("x", ("kth-6", "ctc-6"), "fcfs", ROUNDS, 0, "liar"),
        Case("x", ("kth-6", "ctc-6"), "fcfs", ROUNDS, 1, "overloaded"),
        Case("x", ("kth-6", "ctc-6"), "fcfs", ROUNDS, 1, others="awf"),
        Case("x", ("kth-w", "ctc-6"), "easy", f"{ROUNDS} headroom 0.5"),
        Case("x", ("kth-f", "ctc-q"), "mixed", "awf"),
        Case("x", ("kth-5", "ctc-5"), "easy", "short-guests", draw=2),
        Case("x", ("kth-6", "ctc-6"), "easy", "strict-exchange half", 0, "free-rider"),
        Case("x", ("kth@20+165", "ctc-6"), "fcfs,easy", "strict-exchange"),
        Case("x", ("lublin32x60s5+20", "ctc-6"), "easy,fcfs", "strict-exchange run"),
    ],
)
def test_every_kind_of_case_is_a_federation(case: Case) -> None:
    """It is replayed, each case has its own key, and whoever differs is the one that is named."""
    made = Made()
    sites = federation_of(case, made).sites
    assert [site.rogue is not None for site in sites] == [
        number == case.who and case.rogue not in {"", "overloaded"} for number in range(2)
    ]
    if case.rogue == "overloaded":
        assert len(sites[1].jobs) == 2 * len(made.jobs("ctc-6"))
    if case.others:
        names = [next(iter(site.transfer_policies.values())).name for site in sites]
        assert names == ["awf", "fair-exchange"]
        assert [site.reoffer is None for site in sites] == [True, False]
    assert len(run_case(case, made)["gain"]) == 2
