import xml.etree.ElementTree as ET

import pytest

from scenarios.studies.gorba_rescheduling.drawings import load_chart, settings_chart
from scenarios.studies.gorba_rescheduling.figures import load_of, settings_of
from tests.scenarios.studies.gorba_rescheduling.measured import paper_study

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


@pytest.mark.parametrize("logarithmic", [False, True])
def test_loads_are_drawn_as_lines(logarithmic: bool) -> None:
    """One for each series, with the loads below; of a single load, too."""
    for series, sizes in (
        (SERIES, STUDY.sizes),
        ([(name, color, figures[:1]) for name, color, figures in SERIES], [200]),
    ):
        chart = load_chart(
            series,
            sizes,
            lambda each: (each.fitness.mean,) * 3,
            key="k",
            title="T",
            logarithmic=logarithmic,
        )
        assert {"sRlD", "lRlD", "200", "T", *(f"{size:,}" for size in sizes)} <= set(texts(chart))
        assert "sRlD: 200: " in chart
