from xml.etree import ElementTree as ET  # our own pictures

from scenarios.studies.utility_scheduling.drawings import bar_chart


def test_bars_say_their_values() -> None:
    """For those who see the picture and for those who do not; the same bytes each time."""
    bars = [("best fit", 134.8, 0.9), ("both, learned", 144.83, 0.8)]
    chart = bar_chart(bars, key="k", title="Figure 2", digits=1, least=110.0)
    assert chart == bar_chart(bars, key="k", title="Figure 2", digits=1, least=110.0)
    assert "best fit: 134.8; both, learned: 144.8" in chart
    ET.fromstring(chart)  # noqa: S314  # our own picture
