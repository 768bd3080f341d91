"""What the charts of studies share."""

import pytest

from lrms_sim.pages import svg
from lrms_sim.pages.parts import WIDE
from scenarios.papers.charts import bare, legend


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
