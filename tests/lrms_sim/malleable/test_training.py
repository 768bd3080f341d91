import json

import numpy as np
import pytest

from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.malleable.machine import Learning
from lrms_sim.malleable.model import PaperModel
from lrms_sim.malleable.options import MachineOptions
from lrms_sim.malleable.policies import POLICIES
from lrms_sim.malleable.training import (
    Training,
    checkpoint,
    learn,
    reordered,
    resumed,
    scales_for,
)
from lrms_sim.malleable.value import ValueFunction
from lrms_sim.workload.jobs import JobTable

WORK = PaperModel(0.2).draw(2000, 4)
OPTIONS = MachineOptions(step=1.0)


def test_scales_fit_the_workload() -> None:
    """The largest weight, the longest request or what is said, the machine's size."""
    jobs = UtilityJobs.of(WORK.jobs, weight=np.linspace(0, 3, len(WORK)))
    assert scales_for(jobs, 24).for_kernel() == {"utility": 3.0, "time": 10.0, "processors": 24}
    assert scales_for(jobs, 24, 4.5).time == 4.5
    assert scales_for(UtilityJobs.of(WORK.jobs, weight=0.0), 24).utility == 1.0
    assert scales_for(UtilityJobs.of(JobTable.empty()), 24).time == 10.0


def test_learning_goes_on_where_it_was_bit_for_bit() -> None:
    """Two passes with a break, through JSON, are two passes without."""
    start = Training(ValueFunction(), Learning())
    policy = POLICIES["both-value"]
    once = learn(start, WORK, 24, policy, OPTIONS)
    twice = learn(once, WORK, 24, policy, OPTIONS)
    saved = json.loads(json.dumps(checkpoint(once)))
    assert learn(resumed(start, saved), WORK, 24, policy, OPTIONS) == twice
    assert [lesson.number for lesson in twice.lessons] == [1, 2]
    assert twice.lessons[1].updates > twice.lessons[0].updates > 0
    assert twice.value.p != once.value.p


def test_who_has_nothing_to_learn_is_refused() -> None:
    """Only policies by value learn."""
    with pytest.raises(ValueError, match="only policies by value"):
        learn(Training(ValueFunction(), Learning()), WORK, 24, POLICIES["replan"], OPTIONS)


def test_weeks_come_in_another_order() -> None:
    """The same jobs, weeks whole, by seed; seed 0 leaves them."""
    days = np.arange(60.0)
    jobs = JobTable.from_columns(submit_time=days * 86400, processors=[1] * 60, run_time=1.0 + days)
    work = UtilityJobs.of(jobs, weight=days)
    assert reordered(work, 0) is work
    moved = reordered(work, 3)
    assert moved.weight.tolist() != work.weight.tolist()
    assert sorted(moved.weight.tolist()) == work.weight.tolist()
    assert (moved.weight + 1 == moved.jobs.run_time).all()
    assert (np.diff(moved.jobs.submit_time) > 0).all()
    starts = np.flatnonzero(moved.weight % 7 == 0)
    assert all((np.diff(moved.weight[at : at + 7]) == 1).all() for at in starts if at < 50)
    assert reordered(work, 3).jobs.submit_time.tolist() == moved.jobs.submit_time.tolist()
