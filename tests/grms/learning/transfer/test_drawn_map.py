import re

import numpy as np

from grms.learning.transfer.comparison import ComparedRow
from grms.learning.transfer.drawn_map import (
    compared_section,
    decision_maps,
    facts_within,
    map_parts,
)
from grms.learning.transfer.encoding import RuleBaseSettings, decode
from grms.learning.transfer.recorded import StateVisits
from grms.policy.transfer import Gaussian, Rule, RuleBase
from lrms_sim.report.parts import Section

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
