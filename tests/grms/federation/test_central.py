"""A centre that knows all run times: by hand, and what holds of every placing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grms.federation._central import central_schedule
from grms.federation.federation import Federation, Site
from lrms_sim.workload.jobs import JobTable
from tests.grms.federation.strict_cases import drawn_case, sites_of


def _site(name: str, processors: int, rows: list[tuple[float, float, int]]) -> Site:
    table = JobTable.from_columns(
        submit_time=[row[0] for row in rows],
        run_time=[row[1] for row in rows],
        requested_time=[2 * row[1] for row in rows],
        processors=np.array([row[2] for row in rows], np.int32),
    )
    return Site(name, processors, table)


def test_each_job_gets_the_earliest_start_that_is_left() -> None:
    """The second goes where it starts at once, the third into a gap by run times, the fourth stays."""
    a = _site("a", 4, [(0.0, 100.0, 3), (1.0, 50.0, 4), (2.0, 60.0, 1), (3.0, 9.0, 4)])
    found = Federation([a, _site("b", 4, [])]).replay_centrally()
    assert found.schedule.start_time.tolist() == [0.0, 1.0, 2.0, 51.0]
    assert found.schedule.executed_on.tolist() == [0, 1, 0, 1]
    assert found.preempted == (0,)


@pytest.mark.parametrize(
    ("run", "start", "end_of_guest", "stopped"),
    [(10_000.0, 50.0, 1150.0, 1), (10.0, 101.0, 101.0, 0)],
)
def test_a_centre_that_may_preempt_does_so_where_it_helps_more_than_it_costs(
    run: float, start: float, end_of_guest: float, stopped: int
) -> None:
    """The guest runs from 1 to 101 at `b`; there an own job of 50 takes its processors if it has more work."""
    a = _site("a", 4, [(0.0, 1050.0, 4), (1.0, 100.0, 4)])
    found = Federation([a, _site("b", 4, [(50.0, run, 4)])]).replay_centrally(preempt=True)
    jobs = found.schedule.jobs
    own, guest = (int((jobs.submit_time == time).nonzero()[0][0]) for time in (50.0, 1.0))
    assert found.schedule.start_time[own] == start
    assert found.schedule.end_time[guest] == end_of_guest
    assert found.preempted == (stopped,)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**9), st.booleans())
def test_no_machine_has_more_than_it_has_room_for(seed: int, preempt: bool) -> None:
    sites = sites_of(drawn_case(seed))
    schedule = Federation(sites).replay_centrally(preempt=preempt).schedule
    assert np.all(schedule.start_time >= schedule.jobs.submit_time)
    for number, site in enumerate(sites):
        here = schedule.executed_on == number
        moments = np.concatenate([schedule.end_time[here], schedule.start_time[here]])
        change = np.concatenate([-schedule.jobs.processors[here], schedule.jobs.processors[here]])
        order = np.lexsort((change, moments))
        assert np.cumsum(change[order]).max(initial=0) <= site.processors


def test_who_has_nobody_else_is_conservative_by_run_times() -> None:
    """A site by itself: later jobs fill gaps and delay nobody."""
    site = _site("a", 4, [(0.0, 100.0, 3), (1.0, 50.0, 4), (2.0, 90.0, 1), (3.0, 200.0, 1)])
    for preempt in (False, True):
        found = Federation([site]).replay_centrally(preempt=preempt)
        assert found.schedule.start_time.tolist() == [0.0, 100.0, 2.0, 150.0]


def test_impossible_columns_are_named() -> None:
    one, width, home = np.ones(1), np.ones(1, np.int32), np.zeros(1, np.int16)
    with pytest.raises(ValueError, match="needs 1 rows"):
        central_schedule(
            one, width, np.ones(2), home, [4], np.empty(1), np.empty(1, np.int16), False
        )
    with pytest.raises(ValueError, match="does not fit"):
        central_schedule(one, 9 * width, one, home, [4], np.empty(1), np.empty(1, np.int16), False)
    none = np.empty(0)
    counts, places = np.empty(0, np.int32), np.empty(0, np.int16)
    assert central_schedule(none, counts, none, places, [4], none.copy(), places.copy(), True) == 0
