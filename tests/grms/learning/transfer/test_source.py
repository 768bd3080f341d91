from dataclasses import replace
from pathlib import Path

import pytest

from grms.learning.transfer import fitness
from grms.learning.transfer.fitness import SourceError, TrainingSource, load_source, training_cases
from grms.policy.location import FixedOrder
from grms.policy.transfer import AcceptWhenFit
from tests.plugins import install
from tests.training_grids import two_sites


def three_sites() -> TrainingSource:
    """Returns `a`, `b` and `c`, each of which deals with both others in a fixed order."""
    a, b = two_sites()
    names = ("a", "b", "c")
    sites = [
        replace(
            site,
            name=name,
            transfer_policies={other: AcceptWhenFit() for other in names if other != name},
            location_policy=FixedOrder(tuple(other for other in "cba" if other != name)),
        )
        for site, name in ((a, "a"), (b, "b"), (b, "c"))
    ]
    return TrainingSource("three", tuple(sites))


def test_a_replay_with_each_partner() -> None:
    """Sites that are neither are left out, with policies and places that name them."""
    cases = training_cases(three_sites(), "a", ["c", "b"])
    assert [[site.name for site in case.federation.sites] for case in cases] == [
        ["a", "c"],
        ["a", "b"],
    ]
    assert [case.partners for case in cases] == [("c",), ("b",)]
    a, c = cases[0].federation.sites
    assert list(a.transfer_policies) == ["c"]
    assert a.location_policy == FixedOrder(("c",))
    assert c.location_policy == FixedOrder(("a",))


def test_one_replay_with_all_partners() -> None:
    """Sites keep the scenario's order, which breaks ties."""
    (case,) = training_cases(three_sites(), "b", ["c", "a"], together=True)
    assert [site.name for site in case.federation.sites] == ["a", "b", "c"]
    assert case.partners == ("c", "a")
    assert case.site == "b"


@pytest.mark.parametrize(
    ("site", "partners", "complaint"),
    [
        ("d", ["b"], "scenario three has no site 'd'; its sites are a, b, c"),
        ("a", ["b", "d"], "no site 'd'"),
        ("a", [], "site a needs a partner to learn with; name one with --partner"),
        ("a", ["a"], "a, a: a site is named twice"),
        ("a", ["b", "b"], "a, b, b: a site is named twice"),
    ],
)
def test_names_that_do_not_fit_are_refused(site: str, partners: list[str], complaint: str) -> None:
    """What, where, and which sites there are."""
    with pytest.raises(SourceError, match=complaint):
        training_cases(three_sites(), site, partners)


LOADER = """
from grms.federation.federation import Site
from grms.learning.transfer.fitness import TrainingSource
from lrms_sim.workload.jobs import JobTable

def load(reference):
    return TrainingSource(f"one {reference}", (Site("a", 1, JobTable.empty()),))
"""


def test_the_loader_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several the first by name, so that the choice does not depend on the installation."""
    points = {"hanse.scenario_loaders": {"a": "loader_of_a_test:load", "z": "gone:load"}}
    install(tmp_path, monkeypatch, points, {"loader_of_a_test": LOADER})
    assert load_source("x").name == "one x"


def test_no_loader_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation in which nothing reads scenarios says so."""
    monkeypatch.setattr(fitness, "plugin_names", lambda _: ())
    with pytest.raises(SourceError, match=r"hanse\.scenario_loaders.*make setup"):
        load_source("x")


def test_the_installed_loader_reads_bundled_scenarios() -> None:
    """The entry point of this project is there."""
    assert load_source("synthetic-three-sites").name == "synthetic-three-sites"
    with pytest.raises(SourceError, match="'nowhere' is neither a file nor a bundled scenario"):
        load_source("nowhere")
