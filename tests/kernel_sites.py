"""The oracles' plain sites as the project's own."""

import math

import numpy as np

from grms.federation.federation import Site
from grms.federation.sites import BYZANTINE_PARTNERS
from grms.policy.constraints import ExchangeConstraints, Promise
from grms.policy.rebalancing import Rebalancing
from grms.policy.registry import location_by_name
from grms.policy.transfer import (
    AcceptWhenFit,
    AlwaysAgree,
    AlwaysKeep,
    Constrained,
    Gaussian,
    Rule,
    RuleBase,
    TransferPolicy,
)
from lrms_sim.scheduling.disciplines import discipline_by_name
from tests.oracles.constraints import PlainConstraints
from tests.oracles.federation import PlainConstrained, PlainPolicy, PlainRule, PlainSite


def kernel_policy(policy: PlainPolicy) -> TransferPolicy:
    """Returns the project's policy for the oracle's."""
    if isinstance(policy, PlainConstrained):
        return Constrained(kernel_constraints(policy.rails), kernel_policy(policy.inner))
    if policy == "agree":
        return AlwaysAgree()
    if policy == "awf":
        return AcceptWhenFit()
    if policy == "keep":
        return AlwaysKeep()
    assert not isinstance(policy, str)
    return RuleBase(
        tuple(
            Rule(
                nwp=Gaussian(rule.nwp_gamma, rule.nwp_sigma),
                njp=Gaussian(rule.njp_gamma, rule.njp_sigma),
                accept=rule.accept == 1,
            )
            for rule in policy
        )
    )


def kernel_constraints(rails: PlainConstraints) -> ExchangeConstraints:
    """Returns the project's constraints for the oracle's."""
    return ExchangeConstraints(
        start_now=rails.start_now,
        guest_length=None if math.isinf(rails.guest_length) else rails.guest_length,
        balance=None if math.isinf(rails.balance) else rails.balance,
        balance_weight=rails.balance_weight,
        promise=None if rails.promise is None else Promise(*rails.promise),
    )


def plain_policy(rule_base: RuleBase) -> tuple[PlainRule, ...]:
    """Returns the oracle's policy for the project's rule base."""
    return tuple(
        PlainRule(
            nwp_gamma=rule.nwp.gamma,
            nwp_sigma=rule.nwp.sigma,
            njp_gamma=rule.njp.gamma,
            njp_sigma=rule.njp.sigma,
            accept=1 if rule.accept else -1,
        )
        for rule in rule_base.rules
    )


def kernel_rounds(site: PlainSite) -> float | Rebalancing | None:
    """Returns when a site offers its waiting jobs again."""
    if site.reoffer is None or site.rounds is None:
        return site.reoffer
    order, questions, pause = site.rounds
    return Rebalancing(site.reoffer, "widest" if order == "widest" else "queue", questions, pause)


def kernel_site(site: PlainSite) -> Site:
    """Returns the project's site for the oracle's."""
    return Site(
        name=site.name,
        processors=site.processors,
        jobs=site.jobs,
        discipline=discipline_by_name(site.discipline),
        transfer_policies={
            partner: kernel_policy(policy) for partner, policy in site.policies.items()
        },
        location_policy=location_by_name(site.location, awrt="awrt-completed"),
        reoffer=kernel_rounds(site),
        partners_asked=site.partners_asked,
        groups=None if site.groups is None else np.array(site.groups, np.int8),
        rogue=BYZANTINE_PARTNERS[site.rogue] if site.rogue else None,
    )
