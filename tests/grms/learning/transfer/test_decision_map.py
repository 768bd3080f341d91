import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.learning.transfer.comparison import ComparedRow
from grms.learning.transfer.decision_map import (
    NAME_LENGTH_MAX,
    compared_section,
    decision_map,
    decision_map_svg,
    decision_maps,
    facts_within,
    map_parts,
)
from grms.learning.transfer.encoding import RuleBaseSettings, decode
from grms.learning.transfer.recorded import StateVisits
from grms.policy.transfer import Gaussian, Rule, RuleBase
from lrms_sim.report.parts import Section
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


VISITS = StateVisits(
    np.array([0.5, 1.0, 2.0]),
    np.array([10.0, 20.0, 30.0]),
    np.array([False, False, True]),
    np.array([True, True, False]),
    np.array([3600.0, 7200.0, 60.0]),
)
SETTINGS = RuleBaseSettings(2, further=("requested_time", "starts_now"))


def test_own_jobs_and_guests_have_a_map_each() -> None:
    """Each for the request that is usual there."""
    rule_base = decode(SETTINGS.agreeing, further=SETTINGS.further)
    own, guests = decision_maps(rule_base, VISITS, "a", "map")
    assert (own.file, guests.file) == ("map-own.svg", "map-guests.svg")
    assert own.caption == (
        "Own jobs that would not start now; drawn for a request of 1 h 30 min, the median."
    )
    assert "request of 1 min, the median" in guests.caption
    assert own.picture != guests.picture
    html = str(Section("x", map_parts((own, guests))))
    assert html.count('<svg class="chart"') == 2
    assert "1 h 30 min" in html


def test_rules_of_the_paper_have_one_map_without_words() -> None:
    """As before."""
    near = Gaussian(0, 1)
    (drawn,) = decision_maps(RuleBase((Rule(near, near, accept=True),)), VISITS, "a")
    assert (drawn.file, drawn.caption) == ("decision-map.svg", "")
    assert "<p>" not in str(Section("x", map_parts((drawn,))))


def test_what_is_not_beaten_is_marked() -> None:
    """A gain on unseen workloads is not."""
    row = ComparedRow("summer", "<a>", 100.0, 80.0, 81.0, evolved=True, unseen=True)
    html = str(compared_section([row], "fair-exchange"))
    assert '<p class="warning">Does not beat fair-exchange alone' in html
    assert "&lt;a&gt;" in html
    assert "Workloads learned from" not in html
    better = ComparedRow("summer", "a", 100.0, 80.0, 70.0, evolved=True, unseen=True)
    assert "warning" not in str(compared_section([better], "fair-exchange"))
    assert compared_section([], "awf") == ""


def test_each_table_of_a_comparison_has_a_label_of_its_own() -> None:
    """Screen readers list the regions that scroll: two of one name could not be told apart."""
    learned, unseen = (
        ComparedRow("summer", "a", 100.0, 80.0, 70.0, evolved=True, unseen=unseen)
        for unseen in (False, True)
    )
    html = str(compared_section([learned, unseen], "fair-exchange"))
    labels = re.findall('role="region"[^>]* aria-label="([^"]+)"', html)
    assert labels == [
        "Unseen workloads: average weighted response times",
        "Workloads learned from: average weighted response times",
    ]


def test_constraints_and_features_are_facts_of_a_run() -> None:
    """Of one within constraints."""
    assert facts_within({}) == []
    provenance = {"rails": {"rules": "start-now"}, "features": ["nwp", "njp"]}
    assert facts_within(provenance) == [("rails", "start-now"), ("features", "nwp, njp")]
