"""What a fitness of rule bases depends on, as plain values; rules are in it as checksums."""

import hashlib
import json
from typing import Any

from grms.federation.federation import Site
from grms.learning.fingerprint import jobs_sha256
from grms.learning.rule_bases.fitness import Fitness
from grms.policy.files import rule_base_to_document
from grms.policy.location import FixedOrder
from grms.policy.transfer import RuleBase, TransferPolicy


def policy_words(policy: TransferPolicy) -> str:
    """Returns a policy's name, of a rule base with a checksum of its rules."""
    if not isinstance(policy, RuleBase):
        return policy.name
    rules = json.dumps(rule_base_to_document(policy)["rules"])
    return f"{policy.name} (SHA-256 of its rules: {hashlib.sha256(rules.encode()).hexdigest()})"


def describe_fitness(fitness: Fitness) -> dict[str, Any]:
    """Returns all that the values of a fitness depend on.

    Returns:
        `objective`, and `cases`: for each the evolved site, its partners and the sites with
        size, discipline, location policy, policies and workload. The policies of the evolved site
        for these partners are left out: they are what is being learned.
    """
    return {
        "objective": fitness.objective,
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


def _describe_site(site: Site, evolving: tuple[str, ...]) -> dict[str, Any]:
    location = site.location_policy
    return {
        "name": site.name,
        "processors": site.processors,
        "discipline": site.discipline.name,
        "location": list(location.order) if isinstance(location, FixedOrder) else location.name,
        "policies": {
            partner: policy_words(policy)
            for partner, policy in sorted(site.transfer_policies.items())
            if partner not in evolving
        },
        "jobs": len(site.jobs),
        "jobs_sha256": jobs_sha256(site.jobs),
    }
