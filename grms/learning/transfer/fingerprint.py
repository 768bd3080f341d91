"""What a fitness of rule bases depends on, as plain values; rules are in it as checksums."""

import hashlib
import json
from dataclasses import asdict
from typing import Any

from grms.federation.federation import Site
from grms.learning.fingerprint import jobs_sha256
from grms.learning.transfer.fitness import Fitness
from grms.learning.transfer.self_play import MatchFitness
from grms.policy.constraints import CONSTRAINTS, ExchangeConstraints
from grms.policy.files import rule_base_to_document
from grms.policy.location import location_of
from grms.policy.transfer import Constrained, RuleBase, TransferPolicy
from lrms_sim.scheduling.criteria import CriterionOrder
from lrms_sim.scheduling.disciplines import DISCIPLINES, Discipline
from lrms_sim.scheduling.selection import Policy
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.scheduling.strategy_files import StrategyFile, strategy_to_document


def policy_words(policy: TransferPolicy) -> str:
    """Returns a policy's name, of a rule base with a checksum of its rules."""
    if isinstance(policy, Constrained):
        return f"{policy_words(policy.policy)} within {policy.rails}"
    if not isinstance(policy, RuleBase):
        return policy.name
    rules = json.dumps(rule_base_to_document(policy)["rules"])
    return f"{policy.name} (SHA-256 of its rules: {hashlib.sha256(rules.encode()).hexdigest()})"


def discipline_words(discipline: Discipline) -> str:
    """Returns a discipline's name, of a strategy that a file or a program made with a checksum of it."""
    name = discipline.name
    if not isinstance(discipline, Policy):
        return name
    known = DISCIPLINES.get(name)
    if known is not None and known() == discipline:
        return name
    digest = hashlib.sha256()
    document = strategy_to_document(StrategyFile(discipline))
    digest.update(json.dumps(document, sort_keys=True).encode())
    strategies = (discipline,) if isinstance(discipline, Strategy) else discipline.strategies
    for order in (one.order for one in strategies):
        # A file does not say when which situation holds: that is the site's.
        if isinstance(order, CriterionOrder) and order.calendar is not None:
            digest.update(order.calendar.switch_time.tobytes())
            digest.update(order.calendar.situation.tobytes())
    return f"{name} (SHA-256 of what it does: {digest.hexdigest()})"


def describe_fitness(fitness: Fitness) -> dict[str, Any]:
    """Returns everything that the values of a fitness depend on.

    Returns:
        `objective`, and `cases`: for each the evolved site, its partners and the sites with
        size, discipline, location policy, policies and workload. The policies of the evolved site
        for these partners are left out, as they are being learned. `rails` and `features` are there
        if the
        policy evolves within constraints.
    """
    return {
        "objective": fitness.objective,
        **_within(fitness.rails, fitness.further),
        "cases": [
            {
                "site": case.site,
                "partners": list(case.partners),
                "sites": [
                    _describe_site(site, case.partners if site.name == case.site else ())
                    for site in case.federation.sites
                ],
            }
            for case in fitness.cases
        ],
    }


def describe_matches(fitness: MatchFitness) -> dict[str, Any]:
    """Returns all that the values of matches depend on; see `describe_fitness`."""
    return {
        "objective": fitness.objective,
        **_within(fitness.rails, fitness.settings.further),
        "self_play": list(fitness.names),
        "cases": [
            {
                "sites": [
                    _describe_site(site, tuple(site.transfer_policies)) for site in federation.sites
                ]
            }
            for federation in fitness.federations
        ],
    }


def _within(rails: ExchangeConstraints | None, further: tuple[str, ...]) -> dict[str, Any]:
    """Returns constraints and further features of rule bases; empty as in the paper."""
    if rails is None:
        return {}
    word = next((word for word, known in CONSTRAINTS.items() if known == rails), "own")
    return {"rails": {"rules": word, **asdict(rails)}, "features": ["nwp", "njp", *further]}


def _describe_site(site: Site, evolving: tuple[str, ...]) -> dict[str, Any]:
    location = location_of(site.location_policy)
    return {
        "name": site.name,
        "processors": site.processors,
        "discipline": discipline_words(site.discipline),
        "location": location.name if location.order is None else list(location.order),
        "policies": {
            partner: policy_words(policy)
            for partner, policy in sorted(site.transfer_policies.items())
            if partner not in evolving
        },
        "jobs": len(site.jobs),
        "jobs_sha256": jobs_sha256(site.jobs),
        **_describe_nodes(site),
    }


def _describe_nodes(site: Site) -> dict[str, Any]:
    if site.nodes is None:
        return {}
    digest = hashlib.sha256()
    demands = site.demanded()
    requests = [repr(request).encode() for request in demands.requests]
    for number in demands.shape.tolist():
        digest.update(requests[number])
    kinds = [asdict(kind) | {"features": sorted(kind.features)} for kind in site.nodes.kinds]
    return {
        "nodes": kinds,
        "placement": site.nodes.placement,
        "licences": dict(site.nodes.licences),
        "tells": site.tells,
        "requests_sha256": digest.hexdigest(),
    }
