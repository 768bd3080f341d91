"""The charts of the study's page, in the manner of the paper's figures."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator

from lrms_sim.report import svg
from lrms_sim.report.parts import HALF
from scenarios.studies.common.charts import Line, bare, line_chart
from scenarios.studies.gorba_rescheduling.figures import LoadFigures, SettingFigures

Series = Sequence[tuple[str, int, Sequence[LoadFigures]]]


def settings_chart(settings: Sequence[SettingFigures], *, key: str, title: str) -> str:
    """Draws Figure 4.1 for one class and size: three bars for each setting.

    Grey is the best planning heuristic, blue the best replanning one, green GLEAM with its confidence
    interval; "lv" stands above settings in which GLEAM's plans violate limits.
    """
    height = 190.0
    with svg.drawing():
        figure = svg.new_figure(HALF, height)
        axes = figure.add_axes((34 / HALF, 40 / height, (HALF - 40) / HALF, (height - 66) / height))
        bare(axes, grid="y")
        axes.set_ylim(0, 100)
        axes.set_xlim(-0.6, len(settings) - 0.4)
        axes.yaxis.set_major_locator(FixedLocator([0, 25, 50, 75, 100]))
        for place, each in enumerate(settings):
            bars = (
                (each.basic, "alone"),
                (each.replanning, "federated"),
                (each.gleam.mean, "gain"),
            )
            for number, (value, color) in enumerate(bars):
                axes.bar(
                    place + 0.27 * (number - 1), value, 0.25, color=svg.color(color), linewidth=0
                )
            right = place + 0.27
            if each.gleam.count > 1:
                _whisker(axes, right, each.gleam.low, each.gleam.high)
            if each.violations:
                axes.text(place, each.gleam.mean + 4, "lv", ha="center", color=svg.color("loss"))
        axes.xaxis.set_major_locator(FixedLocator(range(len(settings))))
        axes.xaxis.set_major_formatter(
            FixedFormatter([f"{100 * each.new:.0f}" for each in settings])
        )
        _shares(axes, settings)
        svg.heading(axes, title, height=height - 66)
        text = "; ".join(
            f"{100 * each.finished:.0f} % finished, {100 * each.new:.0f} % new: heuristics "
            f"{each.basic:.0f}, replanning {each.replanning:.0f}, GLEAM {each.gleam.mean:.0f}"
            for each in settings
        )
        return svg.render(figure, key=key, title=title, description=text)


def _shares(axes: Axes, settings: Sequence[SettingFigures]) -> None:
    # Below the shares of new tasks those of finished ones, each over its settings.
    for finished in dict.fromkeys(each.finished for each in settings):
        places = [n for n, each in enumerate(settings) if each.finished == finished]
        axes.text(
            sum(places) / len(places),
            -0.3,
            f"% new, {100 * finished:.0f} % finished",
            transform=axes.get_xaxis_transform(),
            ha="center",
            color=svg.color("muted"),
        )


def load_chart(
    series: Series,
    sizes: Sequence[int],
    value: Callable[[LoadFigures], tuple[float, float, float]],
    *,
    key: str,
    title: str,
    top: float | None = None,
    logarithmic: bool = False,
) -> str:
    """Draws a figure, with the ends of its interval, by load."""
    place = {size: number for number, size in enumerate(sizes)}
    lines = [
        Line(name, color, [(place[each.tasks], *value(each)) for each in figures])
        for name, color, figures in series
    ]
    return line_chart(
        lines,
        [f"{size:,}" for size in sizes],
        key=key,
        title=title,
        inner=146.0,
        scale=(0.0, top),
        logarithmic=logarithmic,
    )


def _whisker(axes: Axes, x: float, low: float, high: float) -> None:
    ink = svg.color("ink")
    axes.plot([x, x], [low, high], color=ink, linewidth=1.2)
    for end in (low, high):
        axes.plot([x - 0.04, x + 0.04], [end, end], color=ink, linewidth=1.2)
