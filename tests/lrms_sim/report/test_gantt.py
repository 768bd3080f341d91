"""Gantt charts: bars lie where and as high as they should, and names are text."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.report.gantt import Bar, Drawn, Gantt, Row, Shade, packed
from lrms_sim.report.time_axis import Axis

AXIS = Axis(0.0, 100.0, 50.0, 250.0, 0.0)


def rectangles(text: str, kind: str) -> list[tuple[float, float, float, float]]:
    """Returns x, y, width and height of the rectangles of a class."""
    pattern = rf'<rect class="{kind}" x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"'
    return [
        (float(x), float(y), float(width), float(height))
        for x, y, width, height in re.findall(pattern, text)
    ]


def machine(bars: Sequence[Bar], counts: Sequence[int], processors: int) -> str:
    """Returns the chart of one machine, 80 units high, over 100 seconds."""
    placed = [bar for pieces in packed(bars, counts, processors) for bar in pieces]
    return str(Gantt("k", "t", AXIS, [Row("m", 80.0, placed, processors)], 300.0, gap=4.0))


def test_a_bar_is_as_high_as_it_has_processors() -> None:
    """And as wide as it takes long; the lowest processors are at the bottom."""
    text = machine([Bar(0, 50), Bar(0, 100)], [2, 1], 4)
    assert rectangles(text, "room") == [(50.0, 24.0, 200.0, 80.0)]
    assert rectangles(text, "bar job") == [(50.0, 64.0, 99.3, 40.0), (50.0, 44.0, 199.3, 20.0)]


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 40), st.integers(1, 3)), max_size=12))
def test_bars_never_overlap(runs: list[tuple[int, int, int]]) -> None:
    """Whatever fits into a machine is drawn within it, no two bars over each other."""
    bars = [Bar(begin, begin + length) for begin, length, _ in runs]
    text = machine(bars, [count for _, _, count in runs], 3 * max(len(runs), 1))
    found = rectangles(text, "bar job")
    (_, top, _, height) = rectangles(text, "room")[0]
    for number, (x, y, width, high) in enumerate(found):
        assert top - 0.1 <= y
        assert y + high <= top + height + 0.1
        for other_x, other_y, other_width, other_high in found[:number]:
            apart = x + 0.02 >= other_x + other_width or other_x + 0.02 >= x + width
            assert apart or y + 0.03 >= other_y + other_high or other_y + 0.03 >= y + high


def test_bars_say_what_they_are() -> None:
    """Colours repeat; where there is room they have a label, which is cut to it, and all have titles."""
    bar = Bar(0, 20, title="long", label="a long name", color=11, kind="deep")
    text = machine(
        [bar, replace(bar, end=5), replace(bar, begin=30, end=40, label="7")], [2, 1, 1], 4
    )
    assert text.count('class="bar c3 deep"') == text.count("<title>long</title>") == 3
    assert re.findall(r'class="task on"[^>]*>(.*?)<', text) == ["a lo…", "7"]


def test_labels_are_cut_to_the_room_there_is() -> None:
    """Low bars and narrow ones have none."""
    row = Row("m", 20.0, [Bar(0, 20, label="a long name"), Bar(20, 23, label="x")])
    drawn = str(Gantt("k", "t", AXIS, [row, replace(row, height=8.0)], 300.0))
    assert re.findall(r'class="task"[^>]*>(.*?)<', drawn) == ["a lo…"]


def test_what_is_shaded_says_why() -> None:
    """Breakdowns have a title, closed hours do not need one."""
    shades = [Shade(10.0, 30.0, "broken", "m is broken"), Shade(50.0, 60.0, "closed")]
    text = str(Gantt("k", "t", AXIS, [Row("m", 80.0, shades=shades)], 300.0))
    assert rectangles(text, "broken") == [(70.0, 24.0, 40.0, 80.0)]
    assert rectangles(text, "closed") == [(150.0, 24.0, 20.0, 80.0)]
    assert "<title>m is broken</title>" in text


def test_names_are_text() -> None:
    """Whatever a machine, a job or a chart is called; long names are cut, and whole when pointed at."""
    name = "<b>'x'</b> & more"
    bar = Bar(0, 90, title=name, label=name)
    row = Row(name, 40.0, [bar], below=name, figures=[(name, False)])
    text = str(Gantt("k", name, AXIS, [row], 300.0, heading=name, note=name))
    assert "<b>" not in text
    assert "<title>&lt;b&gt;&#39;x&#39;&lt;/b&gt; &amp; more</title>" in text
    assert "&lt;b&gt;&#39;x&#39;&lt;/b&gt; &amp; mo…" in text


def test_charts_are_cut_where_a_page_ends() -> None:
    """Each piece has the axis, a number and a name of its own."""
    text = str(Gantt("k", "chart", AXIS, [Row("m", 100.0)] * 9, 300.0))
    assert re.findall(r'aria-labelledby="(.*?)"', text) == ["k-1", "k-2"]
    assert "chart, part 2 of 2" in text
    assert text.count('class="tick"') == 2 * len(list(AXIS.ticks(9)))


@pytest.mark.parametrize(
    ("units", "levels"),
    [
        (1, [0, 1]),
        (4, [0, 1, 2, 3, 4]),
        (24, [0, 5, 10, 15, 20, 24]),
        (32, [0, 10, 20, 32]),
        (1024, [0, 500, 1024]),
        (2**31 - 1, [0, 500_000_000, 1_000_000_000, 1_500_000_000, 2**31 - 1]),
    ],
)
def test_heights_are_numbered(units: int, levels: list[int]) -> None:
    """By round numbers from the bottom, and the whole."""
    row = Drawn(Row("m", 80.0, units=units, sized=True), AXIS)
    assert [number for _, number in row.levels()] == levels
    assert [y for y, _ in row.levels()][:: len(levels) - 1] == [80.0, 0.0]
