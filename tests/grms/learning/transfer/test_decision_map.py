import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.learning.transfer.decision_map import NAME_LENGTH_MAX, decision_map, decision_map_svg
from grms.learning.transfer.recorded import StateVisits
from grms.policy.transfer import Gaussian, Rule, RuleBase
from tests.pictures import svg_texts
from tests.scenarios.towns import HOSTILE

NARROW = RuleBase(
    (
        Rule(Gaussian(0, 1e9), Gaussian(0, 30), accept=True),
        Rule(Gaussian(0, 1e9), Gaussian(100, 30), accept=False),
    )
)
"""Runs jobs of up to half the machine."""


def visits(count: int, seed: int = 1) -> StateVisits:
    rng = np.random.default_rng(seed)
    return StateVisits(
        rng.exponential(2, count),
        rng.uniform(0, 100, count),
        rng.random(count) < 0.5,
        rng.random(count) < 0.5,
        np.full(count, 60.0),
    )


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


def test_the_same_data_give_the_same_bytes() -> None:
    """Nothing in the picture tells when it was drawn, and what was visited is in it."""
    assert decision_map_svg(NARROW, visits(99), "a") == decision_map_svg(NARROW, visits(99), "a")
    assert decision_map_svg(NARROW, visits(99, 2), "a") != decision_map_svg(NARROW, visits(99), "a")


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_the_map_has_axes_and_a_legend(count: int) -> None:
    """However many decisions there were."""
    found = svg_texts(decision_map_svg(NARROW, visits(count), "KTH"))
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
    found = svg_texts(decision_map_svg(NARROW, visits(10), name))
    shown = name if len(name) <= NAME_LENGTH_MAX else name[: NAME_LENGTH_MAX - 1] + "…"
    assert f"runs at {shown}" in found
