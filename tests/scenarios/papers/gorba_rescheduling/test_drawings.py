import xml.etree.ElementTree as ET

from scenarios.papers.gorba_rescheduling.drawings import (
    evaluations_chart,
    factor_chart,
    settings_chart,
    success_chart,
)
from scenarios.papers.gorba_rescheduling.figures import load_of, settings_of
from tests.scenarios.papers.gorba_rescheduling.measured import paper_study

STUDY = paper_study()
SERIES = [
    (
        name,
        number,
        [found for size in STUDY.sizes if (found := load_of(STUDY, name, size, "gleam"))],
    )
    for number, name in enumerate(("sRlD", "lRlD"))
]


def texts(chart: str) -> list[str]:
    root = ET.fromstring(chart.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" '))  # noqa: S314  # drawn by the code under test
    return ["".join(each.itertext()).strip() for each in root.iter() if each.tag.endswith("}text")]


def test_settings_are_drawn_with_their_violations() -> None:
    """Shares below, "lv" where limits are violated, numbers for those who cannot see."""
    mine = [e for e in settings_of(STUDY) if (e.benchmark, e.tasks) == ("sRlD", 100)]
    chart = settings_chart(mine, key="k", title="sRlD, 100 tasks")
    found = texts(chart)
    assert found.count("lv") == 2
    assert "% new, 20 % finished" in found
    assert "10 % finished, 10 % new: heuristics 12, replanning 20, GLEAM 50" in chart


def test_loads_are_drawn_as_lines() -> None:
    """One for each series, with the loads below."""
    for draw in (success_chart, factor_chart, evaluations_chart):
        chart = draw(SERIES, STUDY.sizes, key="k", title="T")
        found = texts(chart)
        assert {"sRlD", "lRlD", "200", "1,600", "T"} <= set(found)
        assert "sRlD: 200:" in chart
        assert chart == draw(SERIES, STUDY.sizes, key="k", title="T")


def test_a_single_load_can_be_drawn() -> None:
    """The shortest sweep there is."""
    short = [(name, color, figures[:1]) for name, color, figures in SERIES]
    for draw in (success_chart, factor_chart, evaluations_chart):
        assert "200" in texts(draw(short, [200], key="k", title="T"))
