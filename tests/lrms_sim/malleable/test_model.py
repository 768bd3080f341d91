import numpy as np
import pytest

from lrms_sim.malleable.model import PaperModel


def test_jobs_are_drawn_as_the_documentation_says() -> None:
    """The generator, the order of the draws and their bounds are a promise."""
    jobs = PaperModel(0.3).draw(1000, 7)
    generator = np.random.Generator(np.random.PCG64(7))
    arrivals = generator.poisson(0.3, 1000)
    count = int(arrivals.sum())
    assert len(jobs) == count
    assert jobs.jobs.submit_time.tolist() == np.repeat(np.arange(1000.0), arrivals).tolist()
    assert jobs.jobs.processors.tolist() == generator.integers(4, 21, count).tolist()
    assert jobs.jobs.run_time.tolist() == generator.integers(5, 11, count).tolist()


def test_the_mean_load_is_the_papers() -> None:
    """Means 12 processors and 7.5 steps, ends included: load 0.375 at a rate of 0.1."""
    jobs = PaperModel(0.1).draw(400_000, 1).jobs
    assert set(jobs.processors.tolist()) == set(range(4, 21))
    assert set(jobs.run_time.tolist()) == set(range(5, 11))
    assert jobs.resource_consumption.sum() / (24 * 400_000) == pytest.approx(0.375, rel=0.02)
    assert jobs.requested_time.tolist() == jobs.run_time.tolist()


def test_a_rate_of_nothing_gives_no_jobs() -> None:
    """So do no steps."""
    assert len(PaperModel(0.0).draw(100, 1)) == len(PaperModel(0.5).draw(0, 1)) == 0


def test_what_cannot_be_drawn_is_refused() -> None:
    """Number and bound are named."""
    with pytest.raises(ValueError, match="rate is -1"):
        PaperModel(-1)
    with pytest.raises(ValueError, match="rate is nan"):
        PaperModel(float("nan"))
    with pytest.raises(ValueError, match="widths are 5 to 4"):
        PaperModel(widths=(5, 4))
    with pytest.raises(ValueError, match="steps is -1"):
        PaperModel().draw(-1, 1)
