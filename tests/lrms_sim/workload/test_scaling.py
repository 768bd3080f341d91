from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.scaling import scale_to


def workload(count: int, processors: int = 3) -> JobTable:
    return JobTable.from_columns(
        submit_time=np.arange(count) // 2,
        processors=np.full(count, processors),
        run_time=np.arange(count) % 7 + 1.0,
        requested_time=np.arange(count) % 7 + 2.0,
        user=np.arange(count) % 5,
    )


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_half_is_copied_and_half_is_widened() -> None:
    """Number of jobs and load are as the procedure promises, within five standard errors."""
    jobs = workload(100_000)
    factor = 2.4
    scaled = scale_to(jobs, processors_from=10, processors_to=24, rng=rng())
    narrow = scaled.processors == 3
    # n (1 + f) / 2; a copied job becomes 2.4 on average, with a standard deviation of 0.49.
    assert len(scaled) == pytest.approx(100_000 * (1 + factor) / 2, abs=5 * 0.76 * 316)
    assert np.count_nonzero(~narrow) == pytest.approx(50_000, abs=5 * 158)
    assert set(scaled.processors[~narrow]) == {7}  # 7.2, rounded
    growth = scaled.resource_consumption.sum() / jobs.resource_consumption.sum()
    assert growth == pytest.approx((2.4 + 7 / 3) / 2, rel=0.01)


def test_whole_factor_copies_exactly() -> None:
    """With f = 4 every job becomes four of its kind or one of four times the width."""
    jobs = workload(50)
    scaled = scale_to(jobs, processors_from=8, processors_to=32, rng=rng())
    at = 0
    for row in range(len(jobs)):
        count = 4 if scaled.processors[at] == 3 else 1
        for copy in range(at, at + count):
            assert scaled.submit_time[copy] == jobs.submit_time[row]
            assert scaled.run_time[copy] == jobs.run_time[row]
            assert scaled.requested_time[copy] == jobs.requested_time[row]
            assert scaled.user[copy] == jobs.user[row]
            assert scaled.processors[copy] == (3 if count == 4 else 12)
        at += count
    assert at == len(scaled)


def test_same_size_changes_nothing() -> None:
    """With f = 1 a workload stays as it is."""
    jobs = workload(20)
    scaled = scale_to(jobs, processors_from=128, processors_to=128, rng=rng())
    for name in ("job_id", "submit_time", "processors", "requested_time", "run_time", "user"):
        assert getattr(scaled, name).tolist() == getattr(jobs, name).tolist()


def test_widths_are_capped_at_the_machine() -> None:
    """A factor above the ratio of the machines cannot make a job wider than the new one."""
    scaled = scale_to(
        workload(200, processors=100),
        processors_from=100,
        processors_to=1024,
        rng=rng(),
        factor=10.75,
    )
    assert set(scaled.processors) == {100, 1024}


def test_same_generator_same_workload() -> None:
    """The result depends on the generator alone, and an empty workload stays empty."""
    sizes: dict[str, Any] = {"processors_from": 4, "processors_to": 10}
    first, second = (scale_to(workload(99), rng=rng(5), **sizes) for _ in range(2))
    assert first.processors.tolist() == second.processors.tolist()
    assert len(scale_to(JobTable.empty(), rng=rng(), **sizes)) == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"processors_from": 0, "processors_to": 5}, "processors_from is 0"),
        ({"processors_from": 8, "processors_to": 5}, "processors_to is 5; it must be at least"),
        ({"processors_from": 8, "processors_to": 9, "factor": 0.5}, "factor is 0.5; it must be"),
        ({"processors_from": 8, "processors_to": 9, "factor": np.nan}, "factor is nan"),
        (
            {"processors_from": 2, "processors_to": 9},
            "processors of job 1 is 3; it must be at most",
        ),
        ({"processors_from": 3, "processors_to": 9, "factor": 1e12}, "may be more than"),
    ],
)
def test_impossible_scalings_are_refused(arguments: dict[str, Any], problem: str) -> None:
    """The error names the argument, its value and its bound."""
    with pytest.raises(ValueError, match=problem):
        scale_to(workload(5), rng=rng(), **arguments)


@given(st.lists(st.integers(1, 6), max_size=15), st.integers(6, 40), st.integers(0, 99))
def test_every_job_comes_again_and_fits(widths: list[int], size: int, seed: int) -> None:
    """Every job stays at least once, at its time, and fits the new machine."""
    jobs = JobTable.from_columns(
        submit_time=np.arange(len(widths)), processors=widths, run_time=np.ones(len(widths))
    )
    scaled = scale_to(jobs, processors_from=6, processors_to=size, rng=rng(seed))
    assert sorted(set(scaled.submit_time)) == jobs.submit_time.tolist()
    assert (scaled.processors <= size).all()
    assert scaled.job_id.tolist() == list(range(1, len(scaled) + 1))
