"""Strict exchange through the states of sites: the federation kernel's schedule, job by job."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from grms.federation.federation import Federation, Site
from grms.learning.transfer.encoding import RuleBaseSettings, decode
from grms.policy.constraints import STRICT_EXCHANGE
from grms.policy.transfer import Constrained
from grms.simulation.findings import known
from grms.simulation.replay import LockStepReplay, ReplayedSite
from grms.site.model.commands import ProtectGuests
from grms.site.model.compaction import compacted
from grms.site.model.invariants import check
from grms.site.model.records import AccountLooked, JobSentHome, Record
from grms.site.scheduler.state import SiteState
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.schedule import Schedule
from tests.grms.federation.strict_cases import drawn_case, sites_of


def strict_sites(seed: int, rules: Sequence[str] = ("G", "C1")) -> list[Site]:
    """Returns a federation by chance whose sites keep accounts, and whose jobs do not keep their state.

    No partner says that its jobs do, so that a daemon knows of none.
    """
    case = drawn_case(seed)
    for number, site in enumerate(case["sites"]):
        site["checkpoints_every"] = 0
        site["rule"] = rules[(seed + number) % len(rules)]
    case["jobs"] = case["jobs"][:80]
    return sites_of(case)


def assert_same(found: Schedule, wanted: Schedule) -> None:
    """Asserts that every job ran last at the same place and time."""
    assert found.executed_on.tolist() == wanted.executed_on.tolist()
    assert found.start_time.tolist() == wanted.start_time.tolist()
    assert found.end_time.tolist() == wanted.end_time.tolist()


class Journaled(LockStepReplay):
    """A replay with the journals of its sites, by their names."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self.journals: dict[str, list[Record]] = {site.name: [] for site in sites}
        super().__init__(sites, lambda site, records: self.journals[site].extend(records))

    def noted(self, kind: type[Record]) -> int:
        """Returns the number of records of a kind."""
        return sum(isinstance(one, kind) for each in self.journals.values() for one in each)


@pytest.mark.parametrize("rules", [("G",), ("C1",), ("G", "C1")], ids=["G", "C1", "both"])
def test_states_are_the_kernel_job_by_job(rules: Sequence[str]) -> None:
    """Ends, places and questions; and the journal makes the same account again."""
    sent_home = looks = 0
    for seed in range(4):
        sites = strict_sites(seed, rules)
        conducted, expected = Journaled(sites), Federation(sites).exchange()
        assert_same(conducted.run(), expected.schedule)
        books = [host.state.partners.values() for host in conducted.hosts]
        assert tuple(sum(book.offered for book in one) for one in books) == expected.offers
        assert conducted.noted(JobSentHome) == sum(expected.preempted)
        sent_home += sum(expected.preempted)
        looks += conducted.noted(AccountLooked)
        for host in conducted.hosts:
            check(host.state.memory)
            settings, account = host.state.settings, host.state.memory.account
            again = SiteState.recover(settings, conducted.journals[settings.name])
            assert known(again) == known(host.state)
            assert account is not None
            assert again.memory.account is not None
            assert again.memory.account.record() == account.record()
    assert looks > 1000
    assert (sent_home > 0) == ("G" in rules)


def test_rules_within_strict_exchange_through_states() -> None:
    """Rules that always agree change nothing; of others, kernel and states ask the same, guests that may go included."""
    settings = RuleBaseSettings(3, further=("requested_time", "starts_now"))
    changed = 0
    for seed in range(4):
        plain = strict_sites(seed, ("G",))
        rng, genome = np.random.default_rng(seed), settings.agreeing
        for noise in (0.0, 2.0):
            genome.real[:] += rng.normal(0, noise, len(genome.real))
            policy = Constrained(STRICT_EXCHANGE, decode(genome, further=settings.further))
            sites = [
                replace(each, transfer_policies=dict.fromkeys(each.transfer_policies, policy))
                for each in plain
            ]
            expected = Federation(sites).exchange()
            assert_same(LockStepReplay(sites).run(), expected.schedule)
            if not noise:
                assert_same(expected.schedule, Federation(plain).exchange().schedule)
            changed += expected.offers != Federation(plain).exchange().offers
    assert changed > 1


class Restarting(Journaled):
    """A replay in which one site after the other begins anew with its journal, compacted, at every fifth moment."""

    moments = restarts = 0

    def advance(self, now: float, *, inclusive: bool = False) -> None:
        """After a moment at which something happens a site dies."""
        super().advance(now, inclusive=inclusive)
        self.moments += 1
        if self.moments % 5:
            return
        host = self.hosts[self.restarts % len(self.hosts)]
        name = host.settings.name
        records = self.journals[name]
        short = compacted(host.state.settings, lambda: records)
        self.journals[name] = records if short is None else short
        host.die(list(self.journals[name]))
        self.settle()
        self.restarts += 1


def test_a_rolling_restart_changes_nothing() -> None:
    """The account, whose guests are whose, and where each job waits are in the journal."""
    restarts = sent_home = 0
    for seed in (1, 3, 5):
        sites = strict_sites(seed)
        conducted, expected = Restarting(sites), Federation(sites).exchange()
        assert_same(conducted.run(), expected.schedule)
        restarts += conducted.restarts
        sent_home += sum(expected.preempted)
    assert restarts > 100
    assert sent_home > 5


class Forgetful(ReplayedSite):
    """A site that dies between a turn of its account and what it then has to tell its batch system."""

    deaths = 0

    def _protect(self, command: ProtectGuests) -> None:
        if self._life == 0 and self.up and self.state.memory.account is not None:
            assert isinstance(self.replay, Dying)
            if command.on is not self.protects:
                Forgetful.deaths += 1
                self.die(list(self.replay.journals[self.settings.name]))
                return
        super()._protect(command)


class Dying(Journaled):
    """A replay of such sites."""

    site = Forgetful


def test_who_dies_between_a_turn_and_its_command_gives_it_after_the_restart() -> None:
    """At the same instant, so that nobody runs where an own job should."""
    Forgetful.deaths = 0
    for seed in (0, 6):
        sites = strict_sites(seed, ("G",))
        assert_same(Dying(sites).run(), Federation(sites).exchange().schedule)
    assert Forgetful.deaths > 2


def test_sites_with_a_pass_per_event_are_refused() -> None:
    sites = strict_sites(1, ("G",))
    sites[0] = replace(sites[0], discipline=discipline_by_name("easy-per-event"))
    with pytest.raises(ValueError, match="per event"):
        LockStepReplay(sites)
