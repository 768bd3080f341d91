import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.report import series

_DAY = 86400.0


def seconds(low: float, high: float) -> st.SearchStrategy[float]:
    """Returns moments or lengths, to the microsecond: no clock is finer."""
    return st.floats(low, high).map(lambda value: round(value, 6))


spans = st.tuples(seconds(-1e9, 1e9), seconds(0, 1e9)).map(lambda s: (s[0], s[0] + s[1]))


@given(spans)
def test_bins_cover_the_span(span: tuple[float, float]) -> None:
    """Bins are equal, few, and leave nothing of the span out."""
    edges = series.bin_edges(*span)
    assert 2 <= len(edges) <= series.BINS_MAX + 2
    assert edges[0] <= span[0]
    assert edges[-1] >= span[1]
    assert np.diff(edges) == pytest.approx(edges[1] - edges[0])


@pytest.mark.parametrize(
    ("span_s", "words"),
    [
        (0, "second"),
        (300, "5 seconds"),
        (3 * 3600, "2 minutes"),
        (2 * _DAY, "30 minutes"),
        (30 * _DAY, "12 hours"),
        (90 * _DAY, "day"),
        (180 * _DAY, "2 days"),
        (365 * _DAY, "week"),
        (7 * 365 * _DAY, "4 weeks"),
    ],
)
def test_bins_have_round_widths(span_s: float, words: str) -> None:
    """Hours are shown in minutes, months in days, years in weeks."""
    assert series.width_in_words(series.bin_edges(0, span_s)) == words


def test_a_step_function_keeps_its_area() -> None:
    """Means over bins are exact: 3 processors for half a bin are 1.5."""
    times = np.array([5.0, 15.0, 20.0])
    values = np.array([3.0, 1.0, 0.0])
    edges = np.array([0.0, 10.0, 20.0, 30.0])
    assert series.binned_mean(times, values, edges).tolist() == [1.5, 2.0, 0.0]


@given(
    st.lists(
        st.tuples(st.integers(0, 100), st.integers(0, 50)), max_size=20, unique_by=lambda p: p[0]
    )
)
def test_binning_loses_no_area(points: list[tuple[int, int]]) -> None:
    """The area under the bins is the area under the steps, wherever they begin and end."""
    points = [*sorted(points), (101, 0)]
    times = np.array([time for time, _ in points], np.float64)
    values = np.array([value for _, value in points], np.float64)
    edges = np.arange(0.0, 121.0, 8.0)
    area = series.binned_mean(times, values, edges).sum() * 8
    assert area == pytest.approx(float((values[:-1] * np.diff(times)).sum()))


def test_an_idle_machine_has_a_flat_line() -> None:
    """A step function without steps is 0 everywhere."""
    edges = np.array([0.0, 1.0, 2.0])
    assert series.binned_mean(np.zeros(0), np.zeros(0), edges).tolist() == [0.0, 0.0]


@given(spans)
def test_time_axis_has_few_ticks_within_the_span(span: tuple[float, float]) -> None:
    """An axis never has more ticks than fit on it."""
    _, size, ticks = series.time_axis(*span)
    assert len(ticks) <= 12
    assert all(span[0] - size <= tick <= span[1] + size for tick in ticks)


def test_time_axis_counts_in_units_of_the_span() -> None:
    """Months are counted in days, a day in hours, an hour in minutes."""
    assert series.time_axis(0, 150 * _DAY)[0] == "days"
    assert series.time_axis(0, _DAY) == ("hours", 3600.0, [h * 3600.0 for h in range(0, 25, 3)])
    assert series.time_axis(0, 3600)[0] == "minutes"
    assert series.time_axis(0, 20)[0] == "seconds"


def test_distribution_of_few_values_is_exact() -> None:
    """Each value is a step as high as its weight."""
    places, shares = series.distribution(np.array([4.0, 1.0, 4.0]), np.array([1.0, 2.0, 1.0]))
    assert places.tolist() == [1.0, 4.0]
    assert shares.tolist() == [0.5, 1.0]


@given(st.integers(0, 2**32 - 1), st.integers(1, 2000))
def test_distribution_of_many_values_is_thinned(seed: int, count: int) -> None:
    """The curve rises to 1, has few points, and each of them lies on the exact curve."""
    rng = np.random.default_rng(seed)
    values, weights = np.exp(rng.normal(5, 3, count)), rng.uniform(0.1, 9, count)
    places, shares = series.distribution(values, weights)
    assert len(places) <= series.CURVE_POINTS_MAX
    assert np.all(np.diff(places) > 0)
    assert shares[-1] == 1.0
    middle = len(places) // 2
    exact = weights[values <= places[middle]].sum() / weights.sum()
    assert shares[middle] == pytest.approx(exact)


def test_quantiles_count_weight() -> None:
    """The median of work lies where half of the work is done, not half of the jobs."""
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([10.0, 1.0, 1.0])
    assert series.weighted_quantile(values, np.ones(3), 0.5) == 2.0
    assert series.weighted_quantile(values, weights, 0.5) == 3.0
    assert series.weighted_quantile(values, weights, 0.0) == 1.0
    assert series.weighted_quantile(values, weights, 1.0) == 3.0


def test_log_ticks_are_moments_people_think_in() -> None:
    """A wide range gets the round moments, a narrow one those between as well."""
    wide = [label for _, label in series.log_time_ticks(1, 2 * _DAY)]
    assert wide == ["1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d"]
    narrow = [label for _, label in series.log_time_ticks(1800, 2 * _DAY)]
    assert narrow == ["30 min", "1 h", "2 h", "6 h", "12 h", "1 d"]
