from xml.etree import ElementTree as ET  # our own pictures

from scenarios.papers.utility_scheduling.drawings import bar_chart, line_chart


def test_bars_say_their_values() -> None:
    """For those who see the picture and for those who do not; the same bytes each time."""
    bars = [("best fit", 134.8, 0.9), ("both, learned", 144.83, 0.8)]
    chart = bar_chart(bars, key="k", title="Figure 2", digits=1, least=110.0)
    assert chart == bar_chart(bars, key="k", title="Figure 2", digits=1, least=110.0)
    assert "best fit: 134.8; both, learned: 144.8" in chart
    ET.fromstring(chart)  # noqa: S314  # our own picture


def test_lines_stand_at_equal_distances() -> None:
    """Every series is named and every rate is there."""
    points = [(0.05, 80.0, 0.5), (1.0, 350.0, 2.0)]
    chart = line_chart([("a", 0, points), ("b", 1, points)], key="k", title="T", xs=(0.05, 1.0))
    assert "a: 0.05: 80, 1: 350; b: 0.05: 80, 1: 350" in chart
    ET.fromstring(chart)  # noqa: S314  # our own picture
