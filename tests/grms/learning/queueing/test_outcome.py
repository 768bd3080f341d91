import math
from pathlib import Path

import numpy as np
import pytest

from grms.learning.queueing.fitness import tuning_case
from grms.learning.queueing.options import WorkloadOptions
from grms.learning.queueing.outcome import (
    LEARNED,
    Comparison,
    Judged,
    best_constant,
    compare,
    constants,
    gain_words,
    group_order,
    group_words,
    judge,
    value_words,
)
from grms.learning.queueing.problem import Workload, read_workload
from lrms_sim.analysis.objectives import objectives_of
from lrms_sim.analysis.trial import Trial
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.criteria import GroupOrder
from lrms_sim.scheduling.disciplines import Easy
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.workload.groups import user_groups
from tests.tuning_cases import busy_case, busy_jobs, busy_log


def workload(folder: Path) -> Workload:
    return read_workload(busy_log(folder / "busy.swf"), WorkloadOptions(training=(0, 1)))


def test_all_stand_on_both_parts_with_what_training_knows(tmp_path: Path) -> None:
    """The orders of groups of unseen jobs are not looked at; what is learned comes last."""
    comparison = compare(workload(tmp_path), Strategy("fcfs", GroupOrder((5, 4, 3, 2, 1))))
    names = [one.name for one in comparison.training]
    assert names == [one.name for one in comparison.unseen]
    assert names[-1] == LEARNED
    assert names[:2] == ["fcfs-arrival", "easy-arrival"]
    for (word, case, judged), expected in zip(
        comparison.parts, ("training", "unseen"), strict=True
    ):
        assert word == expected
        assert judged[1].gain == pytest.approx(0.0)
        own = Strategy("fcfs", GroupOrder((5, 4, 3, 2, 1)))
        assert judged[-1].value == case.run(own).value


@pytest.mark.parametrize(("value", "said"), [(9.0, 0), (10.0, 1), (11.0, 1)])
def test_a_constant_that_is_as_good_is_warned_of(tmp_path: Path, value: float, said: int) -> None:
    """Equal is not better."""
    rows = (
        Judged("a", 12.0, 0.0, None),
        Judged("b", 10.0, 1.0, None),
        Judged(LEARNED, value, 2.0, None),
    )
    assert best_constant(rows).name == "b"
    found = workload(tmp_path)
    comparison = Comparison(Workload("x", found.training, None, {}), rows, ())
    assert len(comparison.warnings()) == said


def test_what_was_given_up_is_said() -> None:
    """No number for what nobody measured."""
    given_up = Judged("x", math.inf, -math.inf, None)
    assert (value_words(given_up), gain_words(given_up)) == ("given up", "given up")
    assert group_words(given_up, busy_case()) == ("–",) * 5
    assert gain_words(Judged("x", 1.0, 2.345, None)) == "+2.35 %"


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
