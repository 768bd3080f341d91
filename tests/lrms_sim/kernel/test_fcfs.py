"""What first come, first served and list scheduling promise."""

import numpy as np
from hypothesis import given

from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import Fcfs
from tests.replays import replayed
from tests.strategies import OneMachine, one_machine


@given(case=one_machine())
def test_fcfs_keeps_the_order(case: OneMachine) -> None:
    """Nobody starts before somebody who came earlier."""
    start_time = simulate(case.jobs, case.processors, Fcfs()).start_time
    assert (np.diff(start_time) >= 0).all()


@given(case=one_machine())
def test_fcfs_head_waits_for_processors_only(case: OneMachine) -> None:
    """Whenever jobs wait, the first of them does not fit."""
    replay = replayed(case, "fcfs")
    for moment in replay.moments():
        for head in replay.waiting(moment)[:1]:
            assert head.processors > replay.processors_free(moment)


@given(case=one_machine())
def test_list_leaves_no_fitting_job_waiting(case: OneMachine) -> None:
    """Whenever jobs wait, none of them fits."""
    replay = replayed(case, "list")
    for moment in replay.moments():
        for job in replay.waiting(moment):
            assert job.processors > replay.processors_free(moment)
