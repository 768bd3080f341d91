from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.criteria import (
    CRITERION_KINDS,
    Criterion,
    CriterionKind,
    CriterionOrder,
    GroupOrder,
    aging_smith_order,
    smith_order,
    smith_ratios,
)
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.workload.jobs import JobTable

ONES = (1.0,) * 5
ZEROS = (0.0,) * 5


@given(
    numbers=st.lists(st.floats(-5, 5), min_size=24, max_size=24),
    kinds=st.tuples(st.sampled_from(CRITERION_KINDS), st.sampled_from(CRITERION_KINDS)),
)
def test_vectors_come_back(numbers: list[float], kinds: tuple[Any, Any]) -> None:
    """A vector is the criteria's parameters in turn; only the b of f3 is left out."""
    kinds_of_three: list[CriterionKind] = [*kinds, "f2"]
    order = CriterionOrder.from_vector(kinds_of_three, [*numbers, *numbers[:12]])
    vector = np.array([*numbers, *numbers[:12]])
    for place, kind in enumerate(kinds_of_three):
        if kind == "f3":
            vector[12 * place + 11] = 0.0
    assert order.vector.tolist() == vector.tolist()
    assert [criterion.kind for criterion in order.criteria] == list(kinds_of_three)


def test_a_constant_criterion_is_an_order_of_groups() -> None:
    """With a = b = 0 every criterion serves group after group, by w·K."""
    rng = np.random.default_rng(5)
    count = 200
    jobs = JobTable.from_columns(
        submit_time=np.sort(rng.integers(0, 300, count)),
        processors=rng.integers(1, 8, count),
        run_time=rng.integers(1, 30, count),
    )
    groups = rng.integers(1, 6, count)
    expected = simulate(jobs, 8, Strategy("easy", GroupOrder((2, 1, 3, 5, 4))), groups=groups)
    for kind in CRITERION_KINDS:
        criterion = Criterion(kind, (1.0, 1.0, 0.5, 0.1, 0.4), (4.0, 5.0, 4.0, 1.0, 2.0), 0.0)
        schedule = simulate(jobs, 8, Strategy("easy", CriterionOrder((criterion,))), groups=groups)
        assert schedule.start_time.tolist() == expected.start_time.tolist()


def test_groups_matter_only_where_they_differ() -> None:
    """A criterion that treats all groups alike runs on jobs whose users nobody knows."""
    alike = CriterionOrder((Criterion("f1", ONES, ZEROS, 1.0, 0.5),))
    assert not alike.tells_groups_apart
    jobs = JobTable.from_columns(submit_time=[0.0, 0.0], processors=[1, 1], run_time=[1.0, 2.0])
    assert simulate(jobs, 1, Strategy("fcfs", alike)).start_time.tolist() == [2.0, 0.0]
    assert CriterionOrder(
        (Criterion("f1", (1.0, 1.0, 1.0, 1.0, 0.9), ZEROS, 1.0),)
    ).tells_groups_apart


def test_smith_ratios_are_weight_over_work() -> None:
    """The largest is 1; a group without work or weight has none; the order follows from them."""
    theta, shares = (10.0, 4.0, 0.0, 0.0, 1.0), (0.8, 0.1, 0.05, 0.05, 0.0)
    assert smith_ratios(theta, shares) == pytest.approx((0.3125, 1.0, 0.0, 0.0, 0.0))
    assert smith_order(theta, shares) == GroupOrder((2, 1, 3, 4, 5))


def test_with_aging_nobody_waits_for_ever() -> None:
    """A job of the last group passes the first one's once it has waited long enough."""
    order = aging_smith_order((10.0, 0.0, 0.0, 0.0, 0.0), (0.5, 0.1, 0.1, 0.1, 0.2), equal_after=10)
    # One processor, a job of group 1 every second for 40 s, and one of group 5 at 0.
    submit = [0.0, 0.0, *range(1, 40)]
    jobs = JobTable.from_columns(
        submit_time=submit, processors=[1] * len(submit), run_time=[1.0] * len(submit)
    )
    groups = np.array([1, 5, *[1] * 39])
    aging = simulate(jobs, 1, Strategy("fcfs", order), groups=groups).start_time[1]
    fixed = simulate(jobs, 1, Strategy("fcfs", GroupOrder()), groups=groups).start_time[1]
    assert aging == 10.0
    assert fixed == 40.0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Criterion("f5", ONES, ZEROS, 1.0), "'f5' is no criterion"),  # type: ignore[arg-type]  # the mistake
        (lambda: Criterion("f1", ONES[:4], ZEROS, 1.0), "weights has 4 numbers"),  # type: ignore[arg-type]  # same
        (lambda: Criterion("f1", ONES, (float("nan"),) * 5, 1.0), "K1 is nan"),
        (lambda: Criterion("f1", ONES, ZEROS, float("inf")), "a is inf"),
        (lambda: Criterion("f1", ONES, ZEROS, 1e10), "a is 10000000000.0"),
        (lambda: Criterion("f3", ONES, ZEROS, 1.0, 0.5), "f3 has no b"),
        (lambda: Criterion.from_numbers("f1", [1.0] * 11), "11 numbers for a criterion; 12"),
        (lambda: GroupOrder((1, 2, 3, 4, 4)), "each of 1 to 5 is needed once"),
        (lambda: GroupOrder((0, 1, 2, 3, 4)), "each of 1 to 5 is needed once"),
        (lambda: CriterionOrder(()), "0 criteria; one is needed"),
        (lambda: CriterionOrder((Criterion("f1", ONES, ZEROS, 1.0),) * 2), "2 criteria"),
        (lambda: CriterionOrder((Criterion("f1", ONES, ZEROS, 1.0),), "day"), "'day' is no kind"),
        (lambda: CriterionOrder.from_vector(["f1"] * 3, [1.0] * 35), "36 numbers are needed"),
        (lambda: smith_ratios((1.0,) * 4, ONES), "five numbers from 0"),
        (lambda: smith_ratios((0.0,) * 5, ONES), "no group has both"),
        (lambda: aging_smith_order(ONES, ONES, equal_after=0.0), "equal_after is 0.0"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(make: Any, said: str) -> None:
    """The error names the value and what is needed."""
    with pytest.raises(ValueError, match=said):
        make()
