"""What a training run rests on, as plain values: to be noted, and to be compared.

A run is resumed with the very data and settings that it was begun with, and a rule base says where
it comes from. Both take the description made here; workloads and rules are in it as checksums.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from grms.federation.federation import Site
from grms.learning.fitness import Fitness
from grms.policy.files import rule_base_to_document
from grms.policy.location import FixedOrder
from grms.policy.transfer import RuleBase, TransferPolicy
from lrms_sim.jobs import JobTable

_COLUMNS = ("submit_time", "processors", "requested_time", "run_time")
"""What of a job a replay looks at."""


def jobs_sha256(jobs: JobTable) -> str:
    """Returns a checksum of all that a replay sees of a workload, hexadecimal."""
    digest = hashlib.sha256()
    for name in _COLUMNS:
        column = getattr(jobs, name)
        little_endian = column.astype(column.dtype.newbyteorder("<"), copy=False)
        digest.update(np.ascontiguousarray(little_endian).tobytes())
    return digest.hexdigest()


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


def first_difference(saved: object, found: object) -> str | None:
    """Returns where two descriptions differ first, for people; None where they are equal."""
    return next(_differences(saved, found, ""), None)


def _differences(saved: object, found: object, place: str) -> Iterator[str]:
    if isinstance(saved, Mapping) and isinstance(found, Mapping):
        for key in sorted({*saved, *found}):
            where = f"{place}.{key}" if place else str(key)
            if key not in found:
                yield f"{where} is there no more"
            elif key not in saved:
                yield f"{where} was not there"
            else:
                yield from _differences(saved[key], found[key], where)
    elif isinstance(saved, list) and isinstance(found, list):
        if len(saved) != len(found):
            yield f"{place} had {len(saved)} entries and has {len(found)}"
        for index, (one, other) in enumerate(zip(saved, found, strict=False)):
            yield from _differences(one, other, f"{place}[{index}]")
    elif saved != found:
        yield f"{place or 'it'} was {_shown(saved)} and is {_shown(found)}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
