import re

import pytest

from scenarios.studies.common.bar_chart import SpreadBar, improvement_chart
from scenarios.studies.common.samples import Spread

SPREAD = Spread(0.4, 0.35, 0.42, 5)
ONE = Spread(-0.01, -0.01, -0.01, 1)


def test_bars_say_median_and_spread() -> None:
    """A single value has no spread to show."""
    chart = improvement_chart(
        [("KTH", [SpreadBar("federated", SPREAD, "learned"), SpreadBar("alone", ONE, "AWF")])],
        key="figure",
        heading="KTH: ΔAWRT",
    )
    assert "+40.0%  (+35.0 … +42.0)" in chart
    assert "−1.0%<" in chart
    assert "<desc" in chart
    assert "KTH, learned: +40.0%; KTH, AWF: −1.0%" in chart
    assert "var(--federated)" in chart
    assert "var(--alone)" in chart


def test_one_kind_of_bar_needs_no_legend() -> None:
    """What the heading says already is not said again."""
    chart = improvement_chart(
        [("KTH", [SpreadBar("federated", SPREAD, "learned")])], key="x", heading="ΔAWRT"
    )
    assert "■" not in chart


def test_equal_figures_give_equal_drawings_and_charts_of_zeros_work() -> None:
    """No run of a chart differs from the next, and nothing divides by a span of 0."""
    nothing = Spread(0.0, 0.0, 0.0, 5)

    def draw() -> str:
        return improvement_chart(
            [("a", [SpreadBar("alone", nothing, "AWF")])], key="zero", heading="nothing"
        )

    assert draw() == draw()


def test_a_disaster_does_not_flatten_the_rest() -> None:
    """The axis ends where the gains would, turned round; the figure says how bad it is."""
    disaster = Spread(0.4, -19.0, 0.42, 5)
    chart = improvement_chart(
        [("KTH", [SpreadBar("federated", disaster, "learned")])], key="x", heading="ΔAWRT"
    )
    assert "(−1900.0 … +42.0)" in chart
    assert ">−40%<" in chart
    assert ">−1000%<" not in chart


def test_a_long_legend_and_the_heading_do_not_meet() -> None:
    """Where there is no room in one row, the heading has a row above, and the drawing one more."""
    few = [SpreadBar("work", Spread.of([0.1]), "one"), SpreadBar("gain", Spread.of([0.2]), "two")]
    long = [SpreadBar(each.color, each.spread, each.label * 20) for each in few]

    def looked_at(bars: list[SpreadBar]) -> tuple[float, float, float]:
        drawn = improvement_chart([("a", bars)], key="k", heading="A heading of some length")
        height = re.search(r'viewBox="0 0 \S+ (\S+)"', drawn)
        placed = dict(re.findall(r'<text[^>]* y="(\S+)">([^<]*)</text>', drawn))
        texts = {text: float(y) for y, text in placed.items()}
        head = next(y for text, y in texts.items() if text.startswith("A heading"))
        assert height is not None
        return float(height[1]), head, float(re.findall(r' y="(\S+)">■', drawn)[0])

    (low, head, swatch), (high, head_above, swatch_below) = looked_at(few), looked_at(long)
    assert high == pytest.approx(low + 18)
    assert abs(head - swatch) < 6
    assert swatch_below - head_above > 12
