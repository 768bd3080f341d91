import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.analysis import metrics
from lrms_sim.analysis.objectives import (
    PAPER_THETA,
    Objectives,
    check_theta,
    cost_weights,
    no_wait_bound,
    objectives_of,
)
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import Easy, Fcfs
from lrms_sim.workload.jobs import JobTable
from tests.strategies import OneMachine, one_machine


@given(case=one_machine(), seed=st.integers(0, 2**32 - 1))
def test_the_seven_are_the_metrics(case: OneMachine, seed: int) -> None:
    """U, AWRT and the AWRT of each group are those of `lrms_sim.analysis.metrics`."""
    schedule = simulate(case.jobs, case.processors, Easy())
    groups = np.random.default_rng(seed).integers(1, 6, len(case.jobs))
    objectives = objectives_of(schedule, groups)
    assert objectives.utilization == pytest.approx(metrics.utilization(schedule), nan_ok=True)
    assert objectives.awrt == pytest.approx(metrics.awrt(schedule), nan_ok=True)
    assert list(objectives.awrt_groups) == pytest.approx(
        metrics.awrt_by_group(schedule, groups).tolist(), nan_ok=True
    )


@given(case=one_machine(), seed=st.integers(0, 2**32 - 1))
def test_no_schedule_is_below_the_bound_without_waits(case: OneMachine, seed: int) -> None:
    """The value is the bound plus what the waits cost, and so never less."""
    groups = np.random.default_rng(seed).integers(1, 6, len(case.jobs)).astype(np.int8)
    schedule = simulate(case.jobs, case.processors, Fcfs())
    value = objectives_of(schedule, groups).value()
    waits = float(np.sum(cost_weights(case.jobs, groups, PAPER_THETA) * schedule.wait_time))
    bound = no_wait_bound(case.jobs, groups)
    assert value == pytest.approx(bound + waits)
    assert value >= bound * (1 - 1e-12)


def test_a_group_without_jobs_counts_nothing() -> None:
    """Its AWRT is not a number, and no part of f."""
    objectives = Objectives(0.5, 20.0, (10.0, math.nan, 3.0, math.nan, math.nan))
    assert objectives.value() == 100.0
    assert objectives.value((1.0, 1.0, 1.0, 1.0, 1.0)) == 13.0
    assert objectives.seven[:2] == (0.5, 20.0)


def test_relative_values_are_percent_of_the_others() -> None:
    """Smaller is positive, also of the utilization, where it is worse."""
    mine = Objectives(0.45, 80.0, (50.0, 0.0, 30.0, math.nan, 10.0))
    easy = Objectives(0.50, 100.0, (100.0, 0.0, 20.0, math.nan, 10.0))
    relative = mine.relative_to(easy)
    assert relative[0] == pytest.approx(10.0)
    assert relative[1:3] == pytest.approx((20.0, 50.0))
    assert math.isnan(relative[3])
    assert relative[4] == pytest.approx(-50.0)
    assert math.isnan(relative[5])
    assert relative[6] == 0.0


def test_without_jobs_there_is_nothing_to_measure() -> None:
    """An empty schedule has no figures, and no warning is given."""
    schedule = simulate(JobTable.empty(), 4)
    objectives = objectives_of(schedule, np.zeros(0, np.int8))
    assert all(math.isnan(value) for value in objectives.seven)
    assert objectives.value() == 0.0
    assert no_wait_bound(JobTable.empty(), np.zeros(0, np.int8)) == 0.0


@pytest.mark.parametrize(
    ("theta", "said"),
    [
        ((1.0,) * 4, "theta has 4 numbers"),
        ((1.0, 1.0, -1.0, 0.0, 0.0), "theta of group 3 is -1.0"),
        ((float("nan"), 1.0, 0.0, 0.0, 0.0), "theta of group 1 is nan"),
        ((0.0,) * 5, "theta is 0 for every group"),
    ],
)
def test_weights_that_are_none_are_refused(theta: tuple[float, ...], said: str) -> None:
    """The error names the group."""
    with pytest.raises(ValueError, match=said):
        check_theta(theta)
