import math

import numpy as np
import pandas as pd
import pytest

from lrms_sim.analysis.samples import mean_interval, t_probability, t_quantile


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
