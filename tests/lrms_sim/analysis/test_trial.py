import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.analysis.objectives import objectives_of
from lrms_sim.analysis.trial import Trial
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.criteria import GroupOrder, smith_order
from lrms_sim.scheduling.disciplines import Conservative, Easy, Fcfs, discipline_by_name
from lrms_sim.scheduling.selection import StrategyTable
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.workload.jobs import JobTable
from tests.random_workloads import random_jobs
from tests.strategies import DISCIPLINES, OneMachine, one_machine


@pytest.mark.parametrize("name", DISCIPLINES)
@given(case=one_machine(), seed=st.integers(0, 2**32 - 1))
def test_a_trial_finds_what_a_replay_does(name: str, case: OneMachine, seed: int) -> None:
    """The objectives are those of the schedule, to the last bit, again and again."""
    groups = np.random.default_rng(seed).integers(1, 6, len(case.jobs))
    trial = Trial(case.jobs, case.processors, groups=groups, theta=(1.0, 2.0, 3.0, 0.5, 0.0))
    discipline = discipline_by_name(name)
    expected = objectives_of(
        simulate(case.jobs, case.processors, discipline, groups=groups), groups
    )
    for _ in range(2):
        result = trial.run(discipline)
        assert result.objectives is not None
        assert str(result.objectives) == str(expected)  # nan is not itself
        assert result.value == expected.value(trial.theta)
        assert result.value >= trial.no_wait_bound * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(100))
def test_a_bound_is_exact(seed: int) -> None:
    """At its own value a discipline is judged; one step below, and anywhere below, it is not."""
    rng = np.random.default_rng(seed)
    processors = int(rng.integers(1, 20))
    jobs = random_jobs(rng, 60, processors)
    trial = Trial(jobs, processors, groups=rng.integers(1, 6, len(jobs)), theta=(1.0,) * 5)
    for discipline in (Easy(), Conservative(), Strategy("easy", GroupOrder((5, 4, 3, 2, 1)))):
        value = trial.value(discipline)
        assert trial.value(discipline, value) == value
        assert trial.value(discipline, value * 2) == value
        for bound in (math.nextafter(value, 0), value * 0.9, trial.no_wait_bound / 2, 0.0, -1.0):
            result = trial.run(discipline, bound)
            assert result.value == math.inf, bound
            assert result.objectives is None


def test_a_hopeless_replay_is_broken_off() -> None:
    """A queue that only grows is left as soon as its waits alone cost too much."""
    count = 5000
    jobs = JobTable.from_columns(
        submit_time=np.arange(count), processors=np.ones(count, int), run_time=np.full(count, 10.0)
    )
    trial = Trial(jobs, 1, groups=np.ones(count, int))
    table = StrategyTable((0,) * 192)
    whole = trial.run(table)
    broken = trial.run(table, whole.value / 100)
    assert whole.passes is not None
    assert broken.passes is not None
    assert sum(broken.passes) < sum(whole.passes) / 5
    assert broken.value == math.inf


def test_threads_may_judge_side_by_side() -> None:
    """Each works in room of its own, and finds what one alone finds."""
    rng = np.random.default_rng(3)
    jobs = random_jobs(rng, 400, 16)
    trial = Trial(jobs, 16, groups=rng.integers(1, 6, len(jobs)))
    tables = [StrategyTable(tuple(rng.integers(0, 13, 192).tolist())) for _ in range(40)]
    alone = [trial.run(table) for table in tables]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(trial.run, tables)) == alone


def test_a_trial_travels() -> None:
    """Another process judges the same."""
    rng = np.random.default_rng(4)
    jobs = random_jobs(rng, 100, 8)
    trial = Trial(jobs, 8, groups=rng.integers(1, 6, len(jobs)), theta=(0.0, 1.0, 0.0, 0.0, 0.0))
    copy = pickle.loads(pickle.dumps(trial))  # noqa: S301  # written a moment ago
    assert copy.value(Easy()) == trial.value(Easy())
    assert copy.theta == trial.theta


def test_the_groups_work_tells_the_constant_order() -> None:
    """What a trial knows of its groups is enough for the Smith order."""
    jobs = JobTable.from_columns(
        submit_time=[0, 0, 0], processors=[1, 2, 1], run_time=[90.0, 5.0, 7.0]
    )
    trial = Trial(jobs, 2, groups=np.array([1, 2, 5]))
    assert trial.consumption == (90.0, 10.0, 0.0, 0.0, 7.0)
    assert smith_order(trial.theta, trial.consumption).groups == (2, 1, 3, 4, 5)


def test_a_trial_without_jobs_costs_nothing() -> None:
    """There is nothing to wait for."""
    trial = Trial(JobTable.empty(), 4, groups=np.zeros(0, np.int8))
    assert trial.value(Fcfs()) == 0.0
    assert trial.value(Fcfs(), 0.0) == 0.0


def test_what_is_wrong_is_refused() -> None:
    """The workload is checked once, when the trial is made."""
    jobs = JobTable.from_columns(submit_time=[0.0], processors=[2], run_time=[1.0])
    with pytest.raises(ValueError, match="needs 2 processors"):
        Trial(jobs, 1)
    with pytest.raises(ValueError, match="does not say which user"):
        Trial(jobs, 2)
    with pytest.raises(ValueError, match="groups run from 0"):
        Trial(jobs, 2, groups=np.array([0]))
    with pytest.raises(ValueError, match="theta of group 2 is -4"):
        Trial(jobs, 2, groups=np.array([1]), theta=(10.0, -4.0, 0.0, 0.0, 0.0))
