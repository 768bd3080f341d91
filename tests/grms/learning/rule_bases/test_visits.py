from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grms.federation.federation import Federation, Site
from grms.learning.rule_bases.visits import Visits, decisions
from grms.policy.transfer import AcceptWhenFit
from lrms_sim.jobs import JobTable
from tests.kernel_sites import kernel_site
from tests.oracles.federation import PlainFederation, PlainPolicy, PlainSite, replay_plainly
from tests.oracles.machine import PlainJob
from tests.random_workloads import random_sites
from tests.strategies import federations
from tests.training_grids import two_sites

Asked = tuple[float, float, bool, bool]
"""NWP, NJP, the answer, and whether the job is the site's own."""


def oracles_decisions(sites: Sequence[PlainSite]) -> list[list[Asked]] | None:
    """Returns what the oracle asked each site, in order; None where rounding decides."""
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
        nwp = machine.processors_waiting / machine.processors
        asked[site].append((nwp, 100.0 * job.processors / machine.processors, answer, not offered))
        return answer

    with patch.object(PlainFederation, "accepts", accepts):
        oracle = replay_plainly(sites)
    return asked if oracle.closest_call > 1e-9 else None


def rows(visits: Visits) -> list[Asked]:
    columns = (visits.nwp, visits.njp, visits.accepted, visits.own)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def compare(sites: Sequence[PlainSite]) -> bool:
    """Asserts that the decisions found are the oracle's; returns False where rounding decides."""
    expected = oracles_decisions(sites)
    if expected is None:
        return False
    kernel_sites = [kernel_site(site) for site in sites]
    schedule = Federation(kernel_sites).replay()
    for site, asked in zip(kernel_sites, expected, strict=True):
        visits = decisions(kernel_sites, schedule, site.name)
        assert rows(visits) == asked
        assert len(visits) == len(asked)
        assert visits.doubtful == 0
    return True


def without_passes_for_each_event(sites: list[PlainSite]) -> bool:
    return all(site.discipline != "easy-per-event" for site in sites)


@given(sites=federations().filter(without_passes_for_each_event))
def test_every_decision_is_found_again(sites: list[PlainSite]) -> None:
    """From the schedule alone: state, answer and order are those of the plain replay."""
    assume(compare(sites))


def test_hundreds_of_random_federations() -> None:
    """Larger ones, in which queues and histories grow; a failure names its seed."""
    compared = 0
    for seed in range(300):
        sites = random_sites(np.random.default_rng(seed), jobs_max=40)
        if without_passes_for_each_event(sites):
            compared += compare(sites)
    assert compared > 90


@given(sites=federations(), partner=st.integers(0, 3))
def test_decisions_by_partner_add_up(sites: list[PlainSite], partner: int) -> None:
    """Those for some partners and those for the others are all there are."""
    kernel_sites = [kernel_site(site) for site in sites]
    schedule = Federation(kernel_sites).replay()
    name = sites[0].name
    others = [site.name for site in sites[1:]]
    chosen = others[partner % len(others)]
    rest = [other for other in others if other != chosen]
    everything = decisions(kernel_sites, schedule, name)
    of_one = decisions(kernel_sites, schedule, name, [chosen])
    of_rest = len(decisions(kernel_sites, schedule, name, rest)) if rest else 0
    assert len(of_one) + of_rest == len(everything)
    assert of_one.doubtful == everything.doubtful


def test_passes_for_each_event_may_leave_doubt() -> None:
    """There, a schedule does not tell what came first; jobs decided otherwise are counted."""
    doubtful = 0
    for seed in range(100):
        sites = random_sites(np.random.default_rng(seed), jobs_max=40)
        kernel_sites = [kernel_site(site) for site in sites]
        schedule = Federation(kernel_sites).replay()
        visits = decisions(kernel_sites, schedule, sites[0].name)
        assert 0 <= visits.doubtful < len(schedule)
        if without_passes_for_each_event(sites):
            assert visits.doubtful == 0
        doubtful += visits.doubtful
    assert doubtful < 100


def test_a_schedule_of_other_policies_is_doubted() -> None:
    """Decisions that are not those of the schedule are counted, job by job."""
    sites = two_sites()
    federated = Federation(sites).replay()
    alone = Federation(sites).replay_alone()
    moved = int(np.count_nonzero(federated.executed_on != federated.submitted_to))
    assert moved > 0
    assert decisions(sites, federated, "a").doubtful == 0
    assert decisions(sites, alone, "a").doubtful > 0


def test_a_site_that_is_never_asked_has_no_visits() -> None:
    """No job, no decision; the arrays are there all the same."""
    sites = [
        Site("a", 2, JobTable.empty(), transfer_policies={"b": AcceptWhenFit()}),
        Site("b", 2, JobTable.empty(), transfer_policies={"a": AcceptWhenFit()}),
    ]
    visits = decisions(sites, Federation(sites).replay(), "a")
    assert len(visits) == 0
    assert visits.accepted.dtype == np.bool_
    with pytest.raises(ValueError, match="no site 'c'; the sites are a, b"):
        decisions(sites, Federation(sites).replay(), "c")
