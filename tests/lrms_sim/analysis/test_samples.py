import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lrms_sim import Easy, Fcfs, generate, mean_wait_time, simulate
from lrms_sim.analysis.samples import (
    figures,
    mean_interval,
    repetitions,
    shifted_arrivals,
    t_probability,
    t_quantile,
)
from lrms_sim.cli.main import run_command
from lrms_sim.workload.swf import write_swf


@pytest.mark.parametrize(
    ("probability", "freedom", "quantile"),
    [(0.975, 1, 12.7062), (0.975, 2, 4.30265), (0.975, 4, 2.77645), (0.975, 9, 2.26216),
     (0.95, 30, 1.69726), (0.995, 100, 2.62589)],
)  # fmt: skip
def test_quantiles_are_those_of_the_tables(
    probability: float, freedom: int, quantile: float
) -> None:
    """Student's t as printed in every textbook."""
    assert t_quantile(probability, freedom) == pytest.approx(quantile, rel=1e-5)
    assert t_probability(0.0, freedom) == 0.5


def test_an_interval_lies_around_the_mean() -> None:
    """Mean ± t·s/√n, by hand: 2, 4, 6 have s = 2, and t is 4.30265."""
    mean, low, high = mean_interval([2.0, 4.0, 6.0])
    assert mean == 4.0
    assert high - mean == pytest.approx(4.30265 * 2 / math.sqrt(3), rel=1e-5)
    assert mean - low == pytest.approx(high - mean)
    assert mean_interval([3.0])[0] == 3.0
    assert math.isnan(mean_interval([3.0]).low)
    with pytest.raises(ValueError, match="no values"):
        mean_interval([])
    with pytest.raises(ValueError, match="level is 95"):
        mean_interval([1.0, 2.0], 95)


def test_arrays_and_series_have_means() -> None:
    """Whatever holds the values; what is missing or no number is refused."""
    wanted = mean_interval([2.0, 4.0, 6.0])
    for values in (np.array([2, 4, 6]), pd.Series([2.0, 4.0, 6.0], index=[7, 8, 9]), (2, 4, 6)):
        assert mean_interval(values) == wanted
    with pytest.raises(ValueError, match="no values"):
        mean_interval(np.array([]))
    assert math.isnan(mean_interval(np.array([1.0, math.nan])).mean)
    with pytest.raises(ValueError, match="values in row 0 is 'x', a text"):
        mean_interval(["x"])


JOBS = generate(32, jobs=80, load=0.8, seed=3)


def test_shifts_stay_within_their_bound() -> None:
    """Every job comes at most so much earlier or later, and stays what it is."""
    shifted = shifted_arrivals(JOBS, 90, np.random.default_rng(1))
    before = dict(zip(JOBS.job_id.tolist(), JOBS.submit_time.tolist(), strict=True))
    pairs = zip(shifted.job_id.tolist(), shifted.submit_time.tolist(), strict=True)
    moved = [at - before[job] for job, at in pairs]
    assert max(map(abs, moved)) <= 90
    assert min(moved) < -20
    assert max(moved) > 20
    assert all(float(shift).is_integer() for shift in moved)
    with pytest.raises(ValueError, match="the shift of arrivals is -1"):
        shifted_arrivals(JOBS, -1, np.random.default_rng(1))


def test_repetitions_are_those_of_the_seed() -> None:
    """The same seed gives the same arrivals under any discipline; without a shift all are equal."""
    easy = list(repetitions(JOBS, 32, Easy(), repeat=3, seconds=600, seed=5))
    fcfs = list(repetitions(JOBS, 32, Fcfs(), repeat=3, seconds=600, seed=5))
    for one, other in zip(easy, fcfs, strict=True):
        assert one.jobs.submit_time.tolist() == other.jobs.submit_time.tolist()
    assert easy[0].jobs.submit_time.tolist() != easy[1].jobs.submit_time.tolist()
    found = figures(JOBS, 32, Easy(), repeat=4, seconds=0, seed=5)["mean_wait_time_s"]
    assert found.low == pytest.approx(found.high)
    assert found.mean == pytest.approx(mean_wait_time(simulate(JOBS, 32, Easy())))
    with pytest.raises(ValueError, match="0 repetitions; from 1 to 10000"):
        list(repetitions(JOBS, 32, Easy(), repeat=0, seconds=0, seed=5))


def test_the_command_prints_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`lrms-sim run --repeat` prints each figure with its interval, as text and as JSON."""
    log = tmp_path / "log.swf"
    write_swf(log, JOBS)
    command = ["run", str(log), "--processors", "32", "--repeat", "5", "--shift-arrivals", "300"]
    assert run_command(command) == 0
    out = capsys.readouterr().out
    assert "5 repetitions, arrivals shifted by up to 300 s" in out
    assert max(map(len, out.splitlines())) <= 80
    assert run_command([*command, "--json", "--seed", "7"]) == 0
    document = json.loads(capsys.readouterr().out)["repetitions"]
    low, high = document["awrt_s"]["low"], document["awrt_s"]["high"]
    assert low < document["awrt_s"]["mean"] < high
    assert run_command(["run", str(log), "--processors", "32", "--seed", "7"]) == 2
    assert "--repeat" in capsys.readouterr().err
