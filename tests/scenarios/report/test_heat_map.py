import base64
import io
import re

import numpy as np
import pytest
from matplotlib.image import imread

from scenarios.report import heat_map
from scenarios.report.heat_map import flow_map, improvement_spread
from tests.scenarios.towns import random_towns

NAMES = [f"town {number}" for number in range(130)]


def picture(drawing: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Returns the shades of a map, 0 … 1."""
    data = re.search(r'base64,([^"]+)"', drawing)
    assert data is not None
    return np.asarray(imread(io.BytesIO(base64.b64decode(data.group(1)))), np.float64)[:, :, 0]


def test_a_cell_for_each_pair_is_darker_the_more_was_given() -> None:
    """Rows and columns stand in the order of own work; what stayed at home is blank."""
    result = random_towns(NAMES[:15], 3000, away=0.4)
    shades = picture(flow_map(result))
    order = np.argsort(-result.flow_area.sum(axis=1), kind="stable")
    flow = result.flow_area[np.ix_(order, order)]
    off = ~np.eye(15, dtype=bool)
    assert shades.shape == (15, 15)
    assert (shades[~off] == 0).all()
    assert ((shades > 0) == (flow > 0))[off].all()
    ranked = shades[off][np.argsort(flow[off])]
    assert (np.diff(ranked) >= 0).all()
    assert shades.max() == 1.0


def test_neighbours_share_a_cell_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A map has a bounded number of cells, and says how many sites are in one."""
    monkeypatch.setattr(heat_map, "CELLS_MAX", 50)
    drawing = flow_map(random_towns(NAMES, 4000, away=0.4))
    assert picture(drawing).shape == (44, 44)
    assert "each cell is 3 by 3 sites" in drawing


def test_one_single_flow_is_a_map_too() -> None:
    """Where the least is the most, the one cell is dark."""
    result = random_towns(NAMES[:14], 1, away=1.0, seed=5)
    assert result.jobs_exchanged == 1
    shades = picture(flow_map(result))
    assert shades.max() == 1.0
    assert np.count_nonzero(shades) == 1


def test_names_are_escaped() -> None:
    """A name that is markup stays a name."""
    drawing = flow_map(random_towns(["<b>&", *NAMES[:13]], 500, away=0.4))
    assert "&lt;b&gt;&amp;" in drawing
    assert "<b>" not in drawing


def test_the_spread_has_a_dot_for_every_site_with_jobs() -> None:
    """Every site is seen twice: ranked, and by its size."""
    result = random_towns(NAMES[:50], 3000, away=0.4)
    drawing = improvement_spread(result)
    assert len(re.findall(r"<use ", drawing)) == 2 * 50
    assert "sites gain" in drawing
