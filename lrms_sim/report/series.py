"""Reduces event series to curves for a page: binned step functions, distributions, ticks.

Binning takes exact means of the step function, so the area under a curve is the true one for any
bin.
"""

from collections.abc import Sequence

import numpy as np

from lrms_sim.workload.jobs import FloatArray

BINS_MAX = 110
"""Most bins over the span of a run: a bin is then at least seven units wide on the page."""

CURVE_POINTS_MAX = 240

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
_BIN_WIDTHS = (
    *(1.0, 5.0, 15.0, 30.0),
    *(_MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * n for n in (1, 2, 3, 6, 12)),
    *(_DAY * n for n in (1, 2, 7, 14, 28, 91, 182, 364)),
)


def bin_edges(begin: float, end: float) -> FloatArray:
    """Returns edges of equal, round bins that cover `begin` … `end`, shape (bins + 1,).

    Bins are 1 s to 52 weeks wide, the narrowest round width that needs at most `BINS_MAX`, and
    start at a multiple of it, so that days begin at midnight. There is at least one bin.
    """
    width = next(
        (width for width in _BIN_WIDTHS if (end - begin) / width <= BINS_MAX - 1),
        max(_BIN_WIDTHS[-1], (end - begin) / (BINS_MAX - 1)),
    )
    first = np.floor(begin / width)
    last = max(np.ceil(end / width), first + 1)
    return np.arange(first, last + 1) * width


def binned_mean(times: FloatArray, values: FloatArray, edges: FloatArray) -> FloatArray:
    """Returns the mean of a step function over each bin, shape (bins,).

    Args:
        times: shape (n,), increasing; `values[i]` holds from `times[i]` to `times[i + 1]`.
        values: shape (n,); 0 before the first time, the last value for ever after.
        edges: shape (bins + 1,), increasing.
    """
    if len(times) == 0:
        return np.zeros(len(edges) - 1)
    knots = np.concatenate([[min(edges[0], times[0])], times, [max(edges[-1], times[-1])]])
    heights = np.concatenate([[0.0], values]).astype(np.float64)
    area = np.concatenate([[0.0], np.cumsum(heights * np.diff(knots))])
    mean: FloatArray = np.diff(np.interp(edges, knots, area)) / np.diff(edges)
    return mean


def width_in_words(edges: FloatArray) -> str:
    """Returns the width of the bins for a caption: "day", "6 hours", "2 weeks"."""
    width = float(edges[1] - edges[0])
    for size, word in ((7 * _DAY, "week"), (_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if width >= size and width % size == 0:
            number = round(width / size)
            return word if number == 1 else f"{number} {word}s"
    return "second" if width == 1 else f"{width:g} seconds"


def time_axis(begin: float, end: float) -> tuple[str, float, list[float]]:
    """Returns unit, seconds in a unit and at most about ten round ticks (in seconds) of an axis."""
    span = end - begin
    unit, size = next(
        (
            pair
            for pair in (("days", _DAY), ("hours", _HOUR), ("minutes", _MINUTE))
            if span >= 3 * pair[1]
        ),
        ("seconds", 1.0),
    )
    steps = {
        "days": (1, 2, 5, 7, 14, 30, 60, 90, 180, 365),
        "hours": (1, 2, 3, 6, 12, 24),
    }.get(unit, (1, 2, 5, 10, 15, 30, 60))
    # Longer than any round step: years, by the hundred if it must be.
    step = size * next(
        (step for step in steps if span / size / step <= 10), np.ceil(span / size / 3650) * 365
    )
    ticks = np.arange(np.ceil(begin / step), np.floor(end / step) + 1) * step
    return unit, size, [float(tick) for tick in ticks]


def distribution(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Returns the cumulative distribution of positive values, shape (n,), as a step curve.

    Returns:
        Places, increasing, and the share of all weight at or below each place; at most
        `CURVE_POINTS_MAX` points, spaced evenly on a logarithmic scale if there are more values.
    """
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    total = np.cumsum(weights[order])
    places = np.unique(ranked)
    if len(places) > CURVE_POINTS_MAX:
        places = np.geomspace(ranked[0], ranked[-1], CURVE_POINTS_MAX)
        places[-1] = ranked[-1]
    index = np.searchsorted(ranked, places, side="right") - 1
    return places, np.where(index >= 0, total[np.maximum(index, 0)], 0.0) / total[-1]


def weighted_quantile(values: FloatArray, weights: FloatArray, share: float) -> float:
    """Returns the smallest value at or below which a share (0 … 1) of all weight lies."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, share * total[-1])])


_LOG_TICKS: Sequence[tuple[float, str]] = (
    (0.001, "1 ms"),
    (0.01, "10 ms"),
    (0.1, "0.1 s"),
    (1.0, "1 s"),
    (10.0, "10 s"),
    (_MINUTE, "1 min"),
    (10 * _MINUTE, "10 min"),
    (_HOUR, "1 h"),
    (6 * _HOUR, "6 h"),
    (_DAY, "1 d"),
    (7 * _DAY, "1 wk"),
    (30 * _DAY, "30 d"),
    (365 * _DAY, "1 yr"),
    (3650 * _DAY, "10 yr"),
)
_LOG_TICKS_BETWEEN: Sequence[tuple[float, str]] = (
    (3.0, "3 s"),
    (30.0, "30 s"),
    (3 * _MINUTE, "3 min"),
    (30 * _MINUTE, "30 min"),
    (2 * _HOUR, "2 h"),
    (12 * _HOUR, "12 h"),
    (3 * _DAY, "3 d"),
    (14 * _DAY, "2 wk"),
    (90 * _DAY, "90 d"),
)


def log_time_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Returns places and labels of round times between low and high, denser in a narrow range."""
    ticks = [tick for tick in _LOG_TICKS if low <= tick[0] <= high]
    if len(ticks) <= 4:
        ticks += [tick for tick in _LOG_TICKS_BETWEEN if low <= tick[0] <= high]
    return sorted(ticks)
