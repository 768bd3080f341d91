"""The figure of a comparison: the mean difference of each discipline to the baseline, with its interval.

A panel for each metric. With one log the scale below is in the metric's unit, and one above in
percent of the baseline's mean; with several logs, whose means differ, it is in percent.
"""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lrms_sim.analysis.comparison import Comparison, Difference, metric_named
from lrms_sim.report import svg
from lrms_sim.report.comparison_tables import interval, signed
from lrms_sim.util import messages

WIDTH: Final = 700.0
"""Of the figure, in points; as many units of a page's view box."""

_ROW, _GAP, _ABOVE, _BELOW, _TWO_SCALES = 19.0, 8.0, 26.0, 40.0, 16.0
_RIGHT, _LETTER = 170.0, 6.4


@dataclass(frozen=True, slots=True)
class _Colors:
    ink: str
    muted: str
    grid: str
    better: str
    worse: str

    def of(self, verdict: str) -> str:
        return {"better": self.better, "worse": self.worse}.get(verdict, self.muted)


_PRINTED: Final = _Colors("#16202c", "#56616f", "#d5dae1", "#00796b", "#c2410c")
"""For documents: the colours of a page by day."""


def figure_file(comparison: Comparison, kind: Literal["pdf", "svg"]) -> bytes:
    """Returns the figure as a file for a document; equal comparisons give equal bytes."""
    settings: dict[Any, Any] = {
        "font.family": ["DejaVu Sans"],
        "font.size": 9.0,
        "text.parse_math": False,  # a log may be called $x$
        "pdf.fonttype": 42,  # text that can be searched; journals refuse Type 3
        "svg.fonttype": "none",
        "svg.hashsalt": "hanse-comparison",
    }
    nobody = dict.fromkeys(("CreationDate", "ModDate") if kind == "pdf" else ("Date",))
    out = io.BytesIO()
    with rc_context(settings):
        figure = _drawn(comparison, _PRINTED)
        figure.savefig(out, format=kind, metadata=nobody)
    return out.getvalue()


def figure_of_page(comparison: Comparison) -> str:
    """Returns the figure as an `<svg>` element in the colours of its page."""
    colors = _Colors(*(svg.color(name) for name in ("ink", "muted", "grid", "gain", "loss")))
    with svg.drawing():
        figure = _drawn(comparison, colors)
        return svg.render(
            figure,
            key="differences",
            title=f"Differences to {comparison.baseline}",
            description="; ".join(_spoken(each) for each in comparison.differences),
        )


def _spoken(each: Difference) -> str:
    digits = metric_named(each.metric).digits
    return (
        f"{each.log}, {metric_named(each.metric).label}, {each.discipline}: "
        f"{signed(each.difference, digits)}, 95 % {interval(each)}"
    )


def _drawn(comparison: Comparison, colors: _Colors) -> Figure:
    alone = len(comparison.sizes) == 1
    inner = [_height(_of(comparison, metric)) for metric in comparison.metrics]
    above = _ABOVE + (_TWO_SCALES if alone else 0.0)
    height = sum(inner) + len(inner) * (above + _BELOW)
    left = 16.0 + _LETTER * max(len(_name(each, alone)) for each in comparison.differences)
    figure = svg.new_figure(WIDTH, height)
    top = height
    for metric, tall in zip(comparison.metrics, inner, strict=True):
        top -= above + tall
        box = (left / WIDTH, top / height, (WIDTH - left - _RIGHT) / WIDTH, tall / height)
        _panel(figure.add_axes(box), comparison, metric, colors, tall)
        top -= _BELOW
    return figure


def _of(comparison: Comparison, metric: str) -> list[Difference]:
    return [each for each in comparison.differences if each.metric == metric]


def _places(differences: Sequence[Difference]) -> list[float]:
    """Returns the place of each row, downward; between logs there is a gap."""
    places, place, log = [], _ROW / 2 + 3, differences[0].log
    for each in differences:
        if each.log != log:
            log, place = each.log, place + _GAP
        places.append(place)
        place += _ROW
    return places


def _height(differences: Sequence[Difference]) -> float:
    return _places(differences)[-1] + _ROW / 2 + 3


def _panel(axes: Axes, comparison: Comparison, metric: str, colors: _Colors, tall: float) -> None:
    differences = _of(comparison, metric)
    alone = len(comparison.sizes) == 1
    for place, each in zip(_places(differences), differences, strict=True):
        ink = colors.of(each.verdict)
        mean, low, high = (
            (each.difference, each.low, each.high)
            if alone
            else (100.0 * part for part in each.change)
        )
        if math.isfinite(low):
            axes.plot((low, high), (place, place), color=ink, linewidth=1.6)
            for end in (low, high):
                axes.plot((end, end), (place - 4, place + 4), color=ink, linewidth=1.2)
        if math.isfinite(mean):
            axes.plot((mean,), (place,), marker="o", markersize=4.5, color=ink)
        _beside(axes, place, _name(each, alone), colors.ink, left=True)
        _beside(axes, place, _figures(each, alone), ink, left=False)
    axes.axvline(0.0, color=colors.ink, linewidth=0.9, zorder=1)
    _scales(axes, comparison, differences[0], colors, tall)


def _name(each: Difference, alone: bool) -> str:
    name = messages.shorten(each.discipline, 24)
    return name if alone else f"{messages.shorten(each.log, 14)}  {name}"


def _figures(each: Difference, alone: bool) -> str:
    """Returns the difference with half the width of its interval, in the unit of the scale."""
    if alone:
        digits, mean, half = metric_named(each.metric).digits, each.difference, each.high
        half -= each.difference
        unit = f" {each.unit}" if each.unit else ""
    else:
        digits, mean, unit = 2, 100.0 * each.change.mean, " %"
        half = 100.0 * each.change.high - mean
    spread = f" ± {half:,.{digits}f}" if math.isfinite(half) else ""
    return f"{signed(mean, digits)}{spread}{unit}" if math.isfinite(mean) else messages.NOTHING


def _beside(axes: Axes, place: float, words: str, color: str, *, left: bool) -> None:
    axes.annotate(
        words,
        (0.0 if left else 1.0, place),
        xycoords=axes.get_yaxis_transform(),
        xytext=(-8 if left else 8, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        color=color,
        annotation_clip=False,
    )


def _scales(
    axes: Axes, comparison: Comparison, some: Difference, colors: _Colors, tall: float
) -> None:
    metric, alone = metric_named(some.metric), len(comparison.sizes) == 1
    axes.set_ylim(tall, 0)
    axes.set_yticks([])
    low, high = axes.get_xlim()
    if low == high or (abs(low) < 1e-12 and abs(high) < 1e-12):
        low, high = -1.0, 1.0
    margin = 0.04 * (high - low)
    axes.set_xlim(min(low, 0.0) - margin, max(high, 0.0) + margin)
    better = "more" if metric.greater_is_better else "less"
    unit = (metric.unit or "as it is") if alone else f"% of the mean of {comparison.baseline}"
    unit = f", {unit}" if unit != "as it is" else ""
    axes.set_xlabel(
        f"difference of {metric.words} to {comparison.baseline}{unit}  ({better} is better)",
        color=colors.muted,
        fontsize="medium",
    )
    title = metric.words[0].upper() + metric.words[1:]
    axes.set_title(title, loc="left", color=colors.ink, fontweight="bold", fontsize="medium")
    _bare(axes, colors)
    if alone and some.baseline > 0:
        share = 100.0 / some.baseline
        scales: Any = (lambda value: value * share, lambda value: value / share)  # of arrays
        above = axes.secondary_xaxis("top", functions=scales)
        above.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        above.xaxis.set_major_formatter(lambda value, _: _tick(value, " %"))
        above.tick_params(length=2, colors=colors.muted, labelsize="small")
        for spine in above.spines.values():
            spine.set_visible(False)


def _bare(axes: Axes, colors: _Colors) -> None:
    for name, spine in axes.spines.items():
        spine.set_visible(name == "bottom")
        spine.set_color(colors.muted)
    axes.set_facecolor("none")
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: _tick(value, ""))
    axes.tick_params(axis="x", length=3, colors=colors.muted, labelsize="small")
    axes.grid(axis="x", color=colors.grid, linewidth=0.7)
    axes.set_axisbelow(True)


def _tick(value: float, unit: str) -> str:
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return text.replace("-", "\N{MINUS SIGN}") + unit
