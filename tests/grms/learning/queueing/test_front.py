import math

import numpy as np
import pytest

from grms.learning.evolution.nsga2 import Nsga2, Nsga2Settings
from grms.learning.queueing.fitness import tuning_case
from grms.learning.queueing.front import UserKeys, front_search
from lrms_sim.analysis.trial import Trial
from lrms_sim.scheduling.criteria import GroupOrder
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.workload.jobs import JobTable
from tests.tuning_cases import busy_case, busy_jobs


def test_keys_by_group_are_the_order_of_groups() -> None:
    """To the bit what EASY by group makes of the workload, whatever the order."""
    case = busy_case(count=150)
    fitness = UserKeys(case)
    for order in ((1, 2, 3, 4, 5), (3, 5, 1, 2, 4)):
        found = fitness(fitness.group_keys(order))
        expected = case.run(Strategy("easy", GroupOrder(order)))
        assert expected.objectives is not None
        assert found.value == expected.value
        assert found.figures == (expected.objectives.seven,)


def test_the_search_begins_with_the_constants_and_ends_no_worse() -> None:
    """In f, and in each of the seven objectives."""
    case = busy_case(count=120)
    fitness = UserKeys(case)
    search = front_search(fitness, 1, Nsga2Settings(population=120))
    for _ in range(3):
        evaluations = [fitness(genome, search.bound) for genome in search.ask()]
        search.tell([one.value for one in evaluations], [one.figures for one in evaluations])
    constants = np.array(search.seen[:120])
    inner = search.inner
    assert isinstance(inner, Nsga2)
    signs = np.array([-1.0, *(1.0,) * 6])
    assert len(search.seen) == 360
    assert (inner.objectives.min(axis=0) <= (constants * signs).min(axis=0)).all()
    assert search.best is not None
    theta = np.array([10.0, 4.0, 0.0, 0.0, 0.0])
    assert search.best.value <= (constants[:, 2:] @ theta).min() * (1 + 1e-12)


def test_what_is_hopeless_is_given_up() -> None:
    """Above the bound nothing is measured."""
    fitness = UserKeys(busy_case(count=60))
    found = fitness(fitness.group_keys((1, 2, 3, 4, 5)), 1.0)
    assert found.value == math.nextafter(1.0, math.inf)
    assert found.figures == ()


def test_without_users_there_is_no_key() -> None:
    """The text says so."""
    jobs = busy_jobs(count=20)
    nobody = JobTable(
        jobs.job_id,
        jobs.submit_time,
        jobs.processors,
        jobs.requested_time,
        jobs.run_time,
        np.full(20, -1, np.int32),
    )
    case = tuning_case("x", Trial(nobody, 16, groups=np.ones(20, np.int8)))
    with pytest.raises(ValueError, match="x: no job has a known user"):
        UserKeys(case)
