import math

import numpy as np
import pytest

from lrms_sim.malleable.jobs import SHAPES, UtilityJobs
from lrms_sim.workload.jobs import JobTable

TABLE = JobTable.from_columns(
    submit_time=[0, 1, 2], processors=[4, 2, 8], run_time=[10, 5, 2], requested_time=[20, 5, 4]
)


def test_a_table_gets_one_utility_or_many() -> None:
    """A number is for every job, a column for each its own; a shape has a name."""
    jobs = UtilityJobs.of(TABLE, weight=[1, 2, 3], shape="convex", processors_min=2)
    assert jobs.weight.tolist() == [1.0, 2.0, 3.0]
    assert jobs.shape.tolist() == [SHAPES.index("convex")] * 3
    assert (jobs.zero.tolist(), jobs.floor.tolist()) == ([2.0] * 3, [0.0] * 3)
    assert jobs.rigid().processors_min.tolist() == [4, 2, 8]
    assert jobs.select(np.array([True, False, True])).weight.tolist() == [1.0, 3.0]


def test_what_is_possible_is_the_utility_of_a_job_that_runs_at_once() -> None:
    """Job 0 takes half of its request: with a plateau of 0.25 half of it is lost by then."""
    jobs = UtilityJobs.of(TABLE, weight=[1, 2, 0.5], plateau=[0.0, 1, 1], zero=[1.0, 2, 2])
    assert jobs.possible.tolist() == [0.5 * 40, 2 * 10, 0.5 * 16]


@pytest.mark.parametrize(
    ("shape", "floor", "expected"),
    [
        ("linear", 0.0, [1.0, 1.0, 0.75, 0.0, 0.0]),
        ("convex", 0.0, [1.0, 1.0, 0.5625, 0.0, 0.0]),
        ("concave", 0.0, [1.0, 1.0, math.sqrt(0.75), 0.0, 0.0]),
        ("linear", 0.1, [1.0, 1.0, 0.75, 0.1, 0.1]),
    ],
)
def test_utility_by_age(shape: str, floor: float, expected: list[float]) -> None:
    """Full until the plateau, gone from zero on, and never below the floor."""
    jobs = UtilityJobs.of(TABLE, shape=shape, floor=floor)
    found = [jobs.unit_utility(age)[0] for age in (0.5, 1.0, 1.25, 2.0, 9.0)]
    assert found == pytest.approx(expected)


def test_a_utility_may_be_a_step_or_never_fall() -> None:
    """A zero at the plateau is a deadline; an infinite plateau is no deadline at all."""
    jobs = UtilityJobs.of(TABLE, plateau=[1, 1, math.inf], zero=[1, 2, math.inf])
    assert jobs.unit_utility(1.0).tolist() == [1.0, 1.0, 1.0]
    assert jobs.unit_utility(1.5).tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"weight": [1, -1, 1]}, r"weight of job 2 \(row 1\) is -1.*would rise with time"),
        ({"weight": math.nan}, "weight of job 1 .* is nan"),
        ({"weight": math.inf}, "weight of job 1 .* is inf"),
        ({"plateau": -0.5}, "plateau of job 1 .* is -0.5; it must be at least 0"),
        ({"plateau": math.nan}, "plateau of job 1 .* is nan"),
        ({"zero": [2, 2, 0.5]}, r"zero of job 3 \(row 2\) is 0.5; .* at least the plateau"),
        ({"zero": math.inf}, "zero of job 1 .* is inf; .* finite if that is"),
        ({"zero": math.nan}, "zero of job 1 .* is nan"),
        ({"floor": 1.5}, "floor of job 1 .* is 1.5; it must be from 0 to 1"),
        ({"floor": math.nan}, "floor of job 1 .* is nan"),
        ({"shape": 7}, "shape of job 1 .* is 7; it must be one of 0 to 2"),
        ({"shape": "wavy"}, "shape is 'wavy'; it must be one of linear, convex, concave"),
        ({"processors_min": 3}, r"processors_min of job 2 \(row 1\) is 3; .* job's processors"),
        ({"processors_min": 0}, "processors_min of job 1 .* is 0"),
        ({"processors_min": 1.5}, "processors_min of job 1 .* is 1.5; .* a whole number"),
        ({"weight": [1.0, 2.0]}, r"column weight has shape \(2,\), but there are 3 jobs"),
    ],
)
def test_a_utility_that_cannot_be_is_refused(arguments: dict[str, object], words: str) -> None:
    """Column, job, value and bound are named."""
    with pytest.raises(ValueError, match=words):
        UtilityJobs.of(TABLE, **arguments)  # type: ignore[arg-type]  # the names are right


def test_columns_cannot_be_changed() -> None:
    """A workload is a value."""
    with pytest.raises(ValueError, match="read-only"):
        UtilityJobs.of(TABLE).weight[0] = 2.0
