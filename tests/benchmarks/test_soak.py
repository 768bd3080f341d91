"""What long runs are judged by."""

import numpy as np
import pytest

from benchmarks.soak import Observed, Sample, growing_and_level, verdicts
from benchmarks.soak_verdict import Slope, counted, judged, slope


def test_a_slope_is_in_its_interval_where_samples_follow_each_other() -> None:
    """Of 40 lines with noise that remembers the sample before, most are in theirs."""
    rng = np.random.default_rng(1)
    x = np.arange(150.0)
    inside = 0
    for seed in range(40):
        noise = np.zeros(150)
        for at in range(1, 150):
            noise[at] = 0.6 * noise[at - 1] + rng.normal()
        found = slope(x.tolist(), (3.0 * x + noise).tolist(), seed)
        assert found.low <= found.estimate <= found.high
        inside += found.low <= 3.0 <= found.high
    assert 32 <= inside <= 40


def test_too_few_samples_say_nothing() -> None:
    """Nor does one place alone."""
    for x in (range(11), [1.0] * 20):
        with pytest.raises(ValueError, match="say nothing"):
            slope(list(x), list(x))


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (Slope(1.0, 0.5, 2.0), "kept"),
        (Slope(1.0, 0.5, 2.1), "unclear"),
        (Slope(3.0, 2.1, 4.0), "broken"),
    ],
)
def test_a_bound_is_kept_if_the_whole_interval_is_below_it(found: Slope, says: str) -> None:
    """And broken if all of it is above."""
    assert judged("x", found, 2.0).says == says
    assert judged("x", found, 200.0, 100.0).says == says


def test_a_count_is_what_it_is() -> None:
    """Without an interval."""
    assert counted("x", 0, 0).says == "kept"
    assert counted("x", 1, 0).says == "broken"


def observed(leak: float) -> Observed:
    """Returns a run in which memory grows by so many bytes with each job, besides what is remembered."""
    found = Observed()
    for number in range(300):
        ended = 70 * number
        remembered = min(ended, 2100)
        found.north.append(
            Sample(
                at_s=5.0 * number,
                rss_bytes=int(1e8 + 3000 * remembered + leak * ended),
                descriptors=30,
                threads=12,
                processor_s=0.2 * number,
                remembered=remembered,
                ended=ended,
                open=10,
                journal_bytes=300 * ended,
                journal_records=5 * ended,
                load=1.0,
            )
        )
        found.latencies += [(5.0 * number + each, 0.01) for each in range(5)]
    return found


def test_a_leak_is_found_and_what_is_remembered_is_none() -> None:
    """A few hundred bytes a job, in a daemon that remembers thousands."""
    for leak, says in ((0.0, "kept"), (500.0, "broken")):
        found = {each.what.partition(",")[0]: each for each in verdicts(observed(leak))}
        memory = found["growth of memory a job once as many are forgotten as end"]
        assert memory.says == says
        assert memory.estimate == pytest.approx(leak, abs=1.0)
        remembered = found["memory of an ended job that is remembered"]
        assert remembered.estimate == pytest.approx(3000.0 + leak, abs=1.0)
        others = [each for each in found.values() if each is not memory]
        assert {each.says for each in others} == {"kept"}


def test_what_must_not_happen_breaks_a_bound() -> None:
    """Even once."""
    run = observed(0.0)
    run.problems.append("north took 5 and ended 4")
    assert verdicts(run)[-1].says == "broken"


def test_the_second_part_begins_when_nothing_is_kept_any_more() -> None:
    """Jobs, keys, and what the simulated batch system remembers."""
    growing, level = growing_and_level(observed(0.0).north)
    assert growing[-1].remembered < 2100
    assert level[0].ended >= 2 * 4096
