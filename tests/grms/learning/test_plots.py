import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.learning.plots import NAME_LENGTH_MAX, convergence_svg, decision_map, decision_map_svg
from grms.learning.termination import GenerationRecord
from grms.learning.visits import Visits
from grms.policy.transfer import Gaussian, Rule, RuleBase
from tests.scenarios.towns import HOSTILE

NARROW = RuleBase(
    (
        Rule(Gaussian(0, 1e9), Gaussian(0, 30), accept=True),
        Rule(Gaussian(0, 1e9), Gaussian(100, 30), accept=False),
    )
)
"""Runs jobs of up to half the machine."""


def history(*best: float, mean: float = 2.0) -> list[GenerationRecord]:
    return [
        GenerationRecord(number, 10 * number, value, mean * value, abs(value) / 3, 0.1 * number)
        for number, value in enumerate(best)
    ]


def visits(count: int, seed: int = 1) -> Visits:
    rng = np.random.default_rng(seed)
    return Visits(
        rng.exponential(2, count),
        rng.uniform(0, 100, count),
        rng.random(count) < 0.5,
        rng.random(count) < 0.5,
        0,
    )


def texts(svg: str) -> list[str]:
    """Returns the texts of a picture, which has to be well-formed."""
    root = ET.fromstring(svg)  # noqa: S314  # drawn here
    return ["".join(node.itertext()).strip() for node in root.iter() if node.tag.endswith("text")]


def test_convergence_says_what_is_drawn() -> None:
    """Two panels with a scale of their own, in the unit of the fitness."""
    found = texts(convergence_svg(history(60000, 57000, 54000, 54000), "AWRT, s"))
    for text in ("best so far", "mean of the generation ± spread", "generation", "AWRT, s"):
        assert text in found
    scales = [float(text.replace(",", "")) for text in found if re.fullmatch(r"[\d,]+", text)]
    assert any(54000 <= tick <= 60000 for tick in scales)
    assert any(tick >= 100_000 for tick in scales)


@pytest.mark.parametrize(
    "best", [(5.0,), (5.0, 5.0), (0.0, 0.0), (-3.0, -4.0), (1e-9, 1e-10), (1e12, 1.0), (0.5, 0.4)]
)
def test_any_history_can_be_drawn(best: tuple[float, ...]) -> None:
    """One generation, no gain at all, values of any size; no picture refers to another file."""
    svg = convergence_svg(history(*best), "x")
    assert texts(svg)
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"|"http://[^"]*(dtd|w3|purl)[^"]*"', "", svg)


def test_the_same_data_give_the_same_bytes() -> None:
    """Both pictures; nothing in them tells when they were drawn."""
    records = history(3.0, 2.0)
    assert convergence_svg(records, "x") == convergence_svg(records, "x")
    assert decision_map_svg(NARROW, visits(99), "a") == decision_map_svg(NARROW, visits(99), "a")
    assert decision_map_svg(NARROW, visits(99, 2), "a") != decision_map_svg(NARROW, visits(99), "a")


@given(st.lists(st.floats(0, 20), min_size=1, max_size=4), st.lists(st.floats(0, 100), min_size=1))
def test_the_map_shows_what_the_policy_decides(nwp: list[float], njp: list[float]) -> None:
    """Each cell is the sign of the output there."""
    accepted = decision_map(NARROW, np.array(nwp), np.array(njp))
    assert accepted.shape == (len(njp), len(nwp))
    for row, y in enumerate(njp):
        for column, x in enumerate(nwp):
            assert accepted[row, column] == (NARROW.compiled.output(x, y) > 0)
    assert decision_map(NARROW, np.array([1.0]), np.array([10.0, 90.0])).ravel().tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_the_map_has_axes_and_a_legend(count: int) -> None:
    """However many decisions there were."""
    found = texts(decision_map_svg(NARROW, visits(count), "KTH"))
    for text in (
        "runs at KTH",
        "is let go",
        "shaded: where decisions were taken",
        "NWP: processors the queue of KTH asks for / its processors",
        "NJP: processors the job asks for, % of the site's",
    ):
        assert text in found


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_names(name: str) -> None:
    """Markup, formulas, long names and unknown scripts: shown as they are, or cut."""
    found = texts(decision_map_svg(NARROW, visits(10), name))
    shown = name if len(name) <= NAME_LENGTH_MAX else name[: NAME_LENGTH_MAX - 1] + "…"
    assert f"runs at {shown}" in found
