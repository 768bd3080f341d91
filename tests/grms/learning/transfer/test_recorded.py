from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import numpy as np
from hypothesis import given

from grms.federation.federation import Federation, Site
from grms.learning.transfer.encoding import RuleBaseSettings, decode
from grms.learning.transfer.fitness import within_constraints_alone
from grms.learning.transfer.recorded import StateVisits, recorded_decisions
from grms.policy.constraints import FAIR_EXCHANGE
from grms.policy.transfer import AcceptWhenFit, Constrained, Gaussian, Rule, RuleBase
from lrms_sim.workload.jobs import JobTable
from tests.kernel_sites import kernel_site
from tests.oracles.federation import PlainFederation, PlainPolicy, PlainSite, replay_plainly
from tests.oracles.machine import PlainJob
from tests.random_workloads import random_sites
from tests.strategies import federations
from tests.training_grids import two_sites

SETTINGS = RuleBaseSettings(2, further=("requested_time", "starts_now"))

Asked = tuple[float, float, bool, bool]
"""NWP, NJP, the answer, and whether the job is the site's own."""


def oracles_decisions(sites: Sequence[PlainSite]) -> list[list[Asked]] | None:
    """Returns what the oracle asked the rule bases of each site, in order; None where rounding decides."""
    asked: list[list[Asked]] = [[] for _ in sites]
    really = PlainFederation.accepts

    def accepts(
        self: PlainFederation,
        site: int,
        policy: PlainPolicy,
        job: PlainJob,
        now: float,
        *,
        offered: bool,
    ) -> bool:
        machine = self.machines[site]
        answer = really(self, site, policy, job, now, offered=offered)
        if isinstance(policy, tuple):
            nwp = machine.processors_waiting / machine.processors
            njp = 100.0 * job.processors / machine.processors
            asked[site].append((nwp, njp, answer, not offered))
        return answer

    with patch.object(PlainFederation, "accepts", accepts):
        oracle = replay_plainly(sites)
    return asked if oracle.closest_call > 1e-9 else None


def rows(visits: StateVisits) -> list[Asked]:
    columns = (visits.nwp, visits.njp, visits.accepted, visits.own)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def compare(sites: Sequence[PlainSite]) -> int:
    """Asserts that the decisions recorded are the oracle's; returns how many, 0 where rounding decides."""
    expected = oracles_decisions(sites)
    if expected is None:
        return 0
    federation = Federation([kernel_site(site) for site in sites])
    rule_bases = {
        (site.name, partner): policy
        for site in federation.sites
        for partner, policy in site.transfer_policies.items()
        if isinstance(policy, RuleBase)
    }
    visits = recorded_decisions(federation, rule_bases, None)
    for site, asked in zip(federation.sites, expected, strict=True):
        assert (rows(visits[site.name]) if site.name in visits else []) == asked
    return sum(map(len, expected))


@given(sites=federations())
def test_every_decision_is_the_oracles(sites: list[PlainSite]) -> None:
    """State, answer and order are those of the plain replay."""
    compare(sites)


def test_hundreds_of_random_federations() -> None:
    """Larger ones, in which queues and histories grow; a failure names its seed."""
    found = [compare(random_sites(np.random.default_rng(seed), jobs_max=40)) for seed in range(200)]
    assert np.count_nonzero(found) > 90


def test_a_site_that_is_never_asked_has_no_visits() -> None:
    """No job, no decision; the arrays are there all the same."""
    federation = Federation(
        [
            Site("a", 2, JobTable.empty(), transfer_policies={"b": AcceptWhenFit()}),
            Site("b", 2, JobTable.empty(), transfer_policies={"a": AcceptWhenFit()}),
        ]
    )
    rules = decode(SETTINGS.agreeing, further=SETTINGS.further)
    visits = recorded_decisions(federation, {("a", "b"): rules}, None)["a"]
    assert len(visits) == 0
    assert visits.accepted.dtype == np.bool_


def test_rules_are_asked_what_constraints_leave_open() -> None:
    """Own jobs that wait and guests that start: here each is let go, or taken, as the constraints alone do."""
    sites = within_constraints_alone(two_sites(3), FAIR_EXCHANGE)
    agreeing = decode(SETTINGS.agreeing, further=SETTINGS.further)
    federation = Federation(sites)
    visits = recorded_decisions(
        federation, {("a", "b"): agreeing, ("b", "a"): agreeing}, FAIR_EXCHANGE
    )
    offers = federation.exchange().offers
    schedule = federation.replay()
    guests = np.bincount(
        schedule.executed_on[schedule.executed_on != schedule.submitted_to], minlength=2
    )
    for seen, offered, taken in zip((visits["a"], visits["b"]), offers, guests, strict=True):
        assert (seen.accepted == ~seen.own).all()
        # Own jobs may also stop at a promise, which the constraints look at after the rules.
        assert seen.own.sum() >= offered
        assert (~seen.own).sum() == taken
        assert len(seen.requested_time) == len(seen) > 0


def test_recording_decides_as_the_rule_base() -> None:
    """What is asked is what the kernel asks: the replay goes on in the same way."""
    any_queue = Gaussian(0, 1e9)
    rules = RuleBase(
        (
            Rule(any_queue, Gaussian(0, 20), accept=True),
            Rule(any_queue, Gaussian(60, 20), accept=False),
        )
    )
    guests = declined = 0
    for seed in range(4):
        a, b = two_sites(seed)
        federation = Federation(
            [
                replace(a, transfer_policies={"b": Constrained(FAIR_EXCHANGE, rules)}),
                replace(b, transfer_policies={"a": Constrained(FAIR_EXCHANGE)}),
            ]
        )
        seen = recorded_decisions(federation, {("a", "b"): rules}, FAIR_EXCHANGE)["a"]
        taken = federation.replay()
        moved = (taken.executed_on != taken.submitted_to) & (taken.submitted_to == 1)
        assert (seen.accepted & ~seen.own).sum() == moved.sum()
        guests += moved.sum()
        declined += (~seen.accepted & ~seen.own).sum()
    assert guests > 0
    assert declined > 0
