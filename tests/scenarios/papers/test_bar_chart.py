from scenarios.papers.bar_chart import SpreadBar, improvement_chart
from scenarios.papers.samples import Spread

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
