from dataclasses import replace
from functools import partial
from importlib.metadata import EntryPoint

import pytest

from grms.federation.federation import Site
from grms.learning.rule_bases import source
from grms.learning.rule_bases.source import SourceError, TrainingSource, load_source, training_cases
from grms.policy.location import FixedOrder
from grms.policy.transfer import AcceptWhenFit
from lrms_sim.jobs import JobTable
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


def loader_one(reference: str) -> TrainingSource:
    return TrainingSource(f"one {reference}", (Site("a", 1, JobTable.empty()),))


def loader_two(reference: str) -> TrainingSource:
    raise SourceError(f"two {reference}")


def _installed(points: list[EntryPoint], *, group: str) -> list[EntryPoint]:
    return [point for point in points if point.group == group]


def test_the_loader_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several the first by name, so that the choice does not depend on the installation."""
    points = [
        EntryPoint(name, f"{__name__}:{function}", "hanse.scenario_loaders")
        for name, function in (("z", "loader_two"), ("b", "loader_one"))
    ]
    monkeypatch.setattr(EntryPoint, "load", lambda self: globals()[self.value.split(":")[1]])
    for listed in (points, points[::-1]):
        monkeypatch.setattr(source, "entry_points", partial(_installed, listed))
        assert load_source("x").name == "one x"


def test_no_loader_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation in which nothing reads scenarios says so."""
    monkeypatch.setattr(source, "entry_points", partial(_installed, []))
    with pytest.raises(SourceError, match=r"hanse\.scenario_loaders.*make setup"):
        load_source("x")


def test_the_installed_loader_reads_bundled_scenarios() -> None:
    """The entry point of this project is there."""
    assert load_source("synthetic-three-sites").name == "synthetic-three-sites"
    with pytest.raises(SourceError, match="'nowhere' is neither a file nor a bundled scenario"):
        load_source("nowhere")
