"""Sequences by seed, and parts that have no job in common."""

import numpy as np
import pytest

from hanse_gym import SPLITS, Sequences
from lrms_sim.workload.jobs import JobTable


def workload(count: int) -> JobTable:
    return JobTable.from_columns(
        submit_time=np.arange(count), processors=np.ones(count), run_time=np.ones(count)
    )


def test_parts_of_a_log_have_no_job_in_common() -> None:
    jobs = workload(103)
    parts = [Sequences(jobs, 64, 5, split).rows for split in SPLITS]
    assert parts == [(0, 62), (62, 82), (82, 103)]
    for (start, stop), split in zip(parts, SPLITS, strict=True):
        sequences = Sequences(jobs, 64, 20, split)
        firsts = sequences.fixed(500, seed=3)
        assert firsts.tolist() == sequences.fixed(500, seed=3).tolist()
        assert (firsts.min(), firsts.max() + 20) == (start, stop)
    with pytest.raises(ValueError, match="the test part has 21 jobs; a sequence needs 22"):
        Sequences(jobs, 64, 22, "test")
    with pytest.raises(ValueError, match="split is 'all'"):
        Sequences(jobs, 64, 5, "all")  # type: ignore[arg-type]  # no part
    with pytest.raises(ValueError, match="length is 0"):
        Sequences(jobs, 64, 0)
