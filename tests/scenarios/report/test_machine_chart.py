import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from scenarios.report.machine_chart import BARS_MAX, TOP, Band, Bar, machine_chart


def rectangles(text: str, kind: str) -> list[tuple[float, float, float, float]]:
    """Returns x, y, width and height of the bars of a kind."""
    pattern = rf'<rect class="{kind}"[^>]*? x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"'
    return [
        (float(x), float(y), float(width), float(height))
        for x, y, width, height in re.findall(pattern, text)
    ]


def bar(begin: float, end: float, processors: int = 1, color: int | None = None) -> Bar:
    """Returns a bar called after its numbers."""
    return Bar(begin, end, processors, color, f"{begin} to {end}", "7")


def drawn(bars: Sequence[Bar], processors: int) -> str:
    """Returns the chart of one machine over 100 seconds."""
    return machine_chart([Band("m", processors, bars)], (0.0, 100.0), key="k", title="t")


def test_a_bar_is_as_high_as_it_has_processors() -> None:
    """And as wide as it takes long."""
    text = drawn([bar(0, 50, 2), bar(0, 100, 1)], 4)
    (_, room, width, height) = rectangles(text, "room")[0]
    (first, second) = rectangles(text, "job")
    assert room == TOP
    assert abs(first[3] - height / 2) < 0.11
    assert abs(second[3] - height / 4) < 0.11
    assert abs(first[2] - width / 2) < 0.01


def test_jobs_and_tasks_look_different_and_say_what_they_are() -> None:
    """Tasks have a colour and a number where there is room; both have a title."""
    text = drawn([bar(0, 60, 2, color=3), bar(0, 60, 1)], 4)
    assert 'class="task" style="--site:var(--site-3)"' in text
    assert text.count("<title>0 to 60</title>") == 2
    assert ">7</text>" in text
    assert len(rectangles(text, "job")) == 1


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 40), st.integers(1, 3)), max_size=12))
def test_bars_never_overlap(runs: list[tuple[int, int, int]]) -> None:
    """Whatever fits into a machine is drawn within it, no two bars over each other."""
    processors = 3 * max(len(runs), 1)
    bars = [bar(begin, begin + length, width) for begin, length, width in sorted(runs)]
    text = drawn(bars, processors)
    found = rectangles(text, "job")
    (_, top, _, height) = rectangles(text, "room")[0]
    for number, (x, y, width, high) in enumerate(found):
        assert top - 0.1 <= y
        assert y + high <= top + height + 0.1
        for other_x, other_y, other_width, other_high in found[:number]:
            apart = x + 0.02 >= other_x + other_width or other_x + 0.02 >= x + width
            assert apart or y + 0.03 >= other_y + other_high or other_y + 0.03 >= y + high


def test_what_is_outside_of_the_time_axis_is_left_out() -> None:
    """A job before its beginning or after its end has no bar."""
    assert rectangles(drawn([bar(-9, -1), bar(120, 130)], 2), "job") == []


def test_the_largest_of_very_many_jobs_are_drawn() -> None:
    """A page stays small; the jobs with the least work are the ones left out."""
    bars = [bar(number / 100, number / 100 + 0.001) for number in range(BARS_MAX + 50)]
    text = drawn([*bars, bar(99, 99.9)], 8)
    assert len(rectangles(text, "job")) == BARS_MAX
    assert "99 to 99.9" in text


def test_a_breakdown_is_framed_and_names_are_text() -> None:
    """What a resource is called cannot be markup."""
    band = Band("<b>x</b>", 2, [], [(10.0, 30.0)])
    text = machine_chart([band], (0.0, 100.0), key="k", title="<i>")
    assert len(rectangles(text, "broken")) == 1
    assert "<b>" not in text
    assert "<i>" not in text
    assert "is broken for 20 s" in text
