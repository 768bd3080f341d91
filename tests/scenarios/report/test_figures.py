import re

import pytest

from scenarios.report import figures
from scenarios.run.results import ScenarioResult
from tests.scenarios.towns import random_towns, two_towns


def filled(drawing: str, name: str) -> list[list[tuple[float, float]]]:
    """Returns the outlines of the areas filled with a colour of the page."""
    return [
        [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path)]
        for path, style in re.findall(r'<path d="([^"]*)"[^>]*style="([^"]*)"', drawing)
        if f"fill: var(--{name})" in style
    ]


def width(outline: list[tuple[float, float]]) -> float:
    """Returns how wide an outline is."""
    xs = [x for x, _ in outline]
    return max(xs) - min(xs)


def test_improvement_bars_are_as_long_as_the_improvement() -> None:
    """Gains and losses differ in colour and side, and their lengths in proportion."""
    drawing = figures.improvement_bars(two_towns())
    (gain,), (loss,) = filled(drawing, "gain"), filled(drawing, "loss")
    assert width(loss) / width(gain) == pytest.approx((164 / 66 - 1) / (1 / 3), rel=1e-3)
    assert max(x for x, _ in loss) == pytest.approx(min(x for x, _ in gain), abs=1e-3)


def test_bars_carry_their_figures() -> None:
    """The exact figure stands at every bar and in the description."""
    improvement = figures.improvement_bars(two_towns())
    assert ">+33.3%</text>" in improvement
    assert "Lübeck +33.3%; Wismar −148.5%" in improvement
    area = figures.area_bars(two_towns())
    assert ">−40.0%</text>" in area
    assert len(filled(area, "work")) == 2


def test_bars_of_a_site_without_jobs_say_so() -> None:
    """A figure without a meaning is a dash, not a crash or a zero."""
    drawing = figures.improvement_bars(random_towns(["a", "b", "c"], 1))
    assert ">–</text>" in drawing


def test_time_line_shows_queue_and_utilization() -> None:
    """Both axes hold the site alone as an area and the federation as a line."""
    drawing = figures.site_over_time(two_towns(), 0)
    assert len([path for path in filled(drawing, "alone") if len(path) > 5]) == 2
    assert drawing.count("stroke: var(--federated)") == 2
    assert "minutes since the scenario" in drawing
    assert "Utilization over the run is 100.0% alone and 85.7% in the federation." in drawing


def test_time_span_covers_both_runs() -> None:
    """From the first submission to the last completion of either run."""
    assert figures.time_span(two_towns()) == (0.0, 200.0)
    assert figures.time_span(random_towns(["a"], 0)) == (0.0, 1.0)


def test_response_times_are_told_in_words() -> None:
    """The description gives the medians of both runs."""
    drawing = figures.response_times(two_towns(), 0)
    assert "Median response time 1 min 40 s alone, 1 min 40 s in the federation." in drawing
    assert ">Share of jobs finished within</text>" in drawing
    assert ">Share of work finished within</text>" in drawing


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_time_spans_of_any_size_can_be_drawn(factor: float) -> None:
    """Runs of microseconds and of centuries have axes too."""
    result = random_towns(["a", "b"], 60, span_s=1e5 * factor)
    for drawing in (figures.site_over_time(result, 0), figures.response_times(result, 1)):
        assert drawing.count("<text") < 60
        assert "nan" not in drawing


def test_figures_do_not_grow_with_the_run() -> None:
    """Forty times the jobs make a figure at most half as large again."""

    def size(result: ScenarioResult) -> int:
        return len(figures.site_over_time(result, 0)) + len(figures.response_times(result, 0))

    small, large = (random_towns(["a", "b"], jobs) for jobs in (2000, 80000))
    assert size(large) < 1.5 * size(small)
