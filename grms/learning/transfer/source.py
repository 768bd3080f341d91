"""Sources of training workloads.

Scenario files belong to a higher layer, whose reader is a plugin: an installed package names a
function in the entry point group `hanse.scenario_loaders`, and `grms train` looks it up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from grms.federation.federation import Federation, Site
from grms.learning.transfer.fitness import TrainingCase
from grms.policy.location import location_of
from lrms_sim.util.errors import HanseError
from lrms_sim.util.plugins import SCENARIO_GROUP, load_plugin, plugin_names


class SourceError(HanseError, ValueError):
    """A scenario that cannot be learned from; the text says what, where, and a remedy."""


@dataclass(frozen=True)
class TrainingSource:
    """A scenario for training.

    Attributes:
        sites: with workloads and policies, in the order that breaks ties.
        provenance: of each site's workload, plain values: the log, its checksum, the window.
        warnings: caveats for the user.
    """

    name: str
    sites: tuple[Site, ...]
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


ScenarioLoader = Callable[[str], TrainingSource]
"""Reads the scenario that a user named; raises SourceError if it cannot."""


def load_source(reference: str) -> TrainingSource:
    """Reads a scenario with the installed loader.

    Raises:
        SourceError: no loader is installed, or the scenario cannot be read.
        PluginError: the loader cannot be used.
    """
    # Of several the first by name, so that the choice does not depend on the installation.
    names = plugin_names(SCENARIO_GROUP)
    if not names:
        raise SourceError(
            f"nothing that reads scenarios is installed (entry point group {SCENARIO_GROUP}); "
            f"install Hanse itself, such as with: make setup"
        )
    loader: ScenarioLoader = load_plugin(
        SCENARIO_GROUP, names[0], "scenario loader", callable, "a function"
    )
    return loader(reference)


def training_cases(
    source: TrainingSource, site: str, partners: Sequence[str], *, together: bool = False
) -> list[TrainingCase]:
    """Returns the replays that evaluate a site's policy for its partners, at least one.

    Other sites are left out of the replays, with everything about them. With `together` there is
    one replay with all partners, else one with each.

    Raises:
        SourceError: there is no such site, a partner comes twice or is the site itself, or the
            site has no jobs.
    """
    names = [one.name for one in source.sites]
    for name in (site, *partners):
        if name not in names:
            raise SourceError(
                f"scenario {source.name} has no site {name!r}; its sites are {', '.join(names)}"
            )
    if not partners:
        raise SourceError(f"site {site} needs a partner to learn with; name one with --partner")
    if len({site, *partners}) != 1 + len(partners):
        raise SourceError(f"{', '.join((site, *partners))}: a site is named twice")
    groups = [tuple(partners)] if together else [(partner,) for partner in partners]
    return [
        TrainingCase(Federation(_only(source.sites, {site, *group})), site, group)
        for group in groups
    ]


def _only(sites: Sequence[Site], names: set[str]) -> list[Site]:
    """Returns some of the sites, without references to the others."""
    return [
        replace(
            site,
            transfer_policies={
                partner: policy
                for partner, policy in site.transfer_policies.items()
                if partner in names
            },
            location_policy=location_of(site.location_policy).among(names),
        )
        for site in sites
        if site.name in names
    ]
