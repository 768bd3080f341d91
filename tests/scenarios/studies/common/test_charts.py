"""What the charts of studies share."""

import pytest

from lrms_sim.report import svg
from lrms_sim.report.parts import WIDE
from scenarios.studies.common.charts import Line, bare, legend, line_chart
from tests.pictures import svg_texts


def test_a_legend_has_as_many_rows_as_it_needs() -> None:
    """Names stand beside each other, below the rest of them, and none leaves the picture."""
    for names, rows in ((["one", "two"], 1), ([f"number {n} of all" for n in range(8)], 2)):
        figure = svg.new_figure(WIDE, 200.0)
        axes = figure.add_axes((54 / WIDE, 0.2, (WIDE - 62) / WIDE, 0.5))
        legend(axes, [(name, number) for number, name in enumerate(names)], 100.0)
        labels = {text.get_text(): text.get_position() for text in axes.texts}
        places = [labels[name] for name in names]
        assert len({y for _, y in places}) == rows
        assert min(y for _, y in places) == pytest.approx(1.1)
        assert places == sorted(places, key=lambda place: (-place[1], place[0]))
        assert max(x for x, _ in places) < 1


def test_bare_axes_have_a_grid_where_it_is_wanted() -> None:
    """No frame in any case."""
    axes = svg.new_figure(WIDE, 200.0).add_axes((0.1, 0.1, 0.8, 0.8))
    for grid in ("x", "y", None):
        bare(axes, grid=grid)
        assert not any(spine.get_visible() for spine in axes.spines.values())
    lines = axes.yaxis.get_gridlines()
    assert lines
    assert all(line.get_visible() for line in lines)


def test_lines_have_their_figures_in_words() -> None:
    """For those who cannot see them, where a line is shorter too; equal figures give equal pictures."""
    lines = [
        Line("first", 0, [(0, 2.0, -1.0, 3.0), (1, 4.0, 3.0, 5.0)]),
        Line("second", 1, [(1, -2.5, -3.0, 1.0)]),
    ]
    one, other = (
        line_chart(
            *(lines, ["1", "all"]), key="k", title="T", below="asked", scale=(None, None), unit=" %"
        )
        for _ in range(2)
    )
    assert one == other
    assert "first: 1: 2 %, all: 4 %; second: all: -2.5 %" in one
    assert {"T", "asked", "first", "second", "−2 %"} <= set(svg_texts(one))
