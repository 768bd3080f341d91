import numpy as np
import pytest

from grms.learning.queueing.constants import constants, group_order, judge
from grms.learning.queueing.fitness import tuning_case
from lrms_sim.analysis.objectives import objectives_of
from lrms_sim.analysis.trial import Trial
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.criteria import GroupOrder
from lrms_sim.scheduling.disciplines import Easy
from lrms_sim.workload.groups import user_groups
from tests.tuning_cases import busy_case, busy_jobs


def test_the_order_of_groups_is_that_of_weight_over_work() -> None:
    """Smith's ratio: θ_g over the share of all work; groups without weight come last, in order."""
    jobs = busy_jobs()
    groups = user_groups(jobs)
    work = np.bincount(groups, weights=jobs.resource_consumption, minlength=6)[1:]
    for theta, expected in (
        ((10.0, 0.0, 0.0, 0.0, 0.0), (1, 2, 3, 4, 5)),
        ((work[0], 2 * work[1], 0.0, 0.0, 0.0), (2, 1, 3, 4, 5)),
        ((0.0, 0.0, 0.0, 0.0, 1.0), (5, 1, 2, 3, 4)),
    ):
        case = tuning_case("x", Trial(jobs, 16, theta=theta))
        assert group_order(case) == GroupOrder(expected)


def test_constants_are_judged_as_they_are_simulated() -> None:
    """EASY gains nothing on itself; every other as its schedule says."""
    case, jobs = busy_case(3), busy_jobs(3)
    groups = user_groups(jobs)
    policies = constants(case)
    names = [policy.name for policy in policies]
    assert names[:5] == [
        "fcfs-arrival",
        "easy-arrival",
        "fcfs-group",
        "easy-group",
        "conservative-group",
    ]
    for judged, policy in zip(
        judge(case, list(zip(names, policies, strict=True))), policies, strict=True
    ):
        schedule = simulate(jobs, 16, policy, groups=groups)
        assert judged.value == pytest.approx(objectives_of(schedule, groups).value())
        assert judged.gain == pytest.approx(100 * (1 - judged.value / case.easy_value))
        assert judged.group_gains(case)[1] == pytest.approx(
            100 * (1 - objectives_of(schedule, groups).awrt / case.easy.awrt)
        )
    easy = objectives_of(simulate(jobs, 16, Easy()), groups)
    assert judge(case, [("easy", policies[1])])[0].gain == pytest.approx(0.0)
    assert case.easy.awrt == pytest.approx(easy.awrt)
