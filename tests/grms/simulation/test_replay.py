"""A replay through the states of sites gives the schedule of the federation kernel, job by job."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from grms.federation.federation import Federation, Site, replay
from grms.learning.transfer.encoding import RuleBaseSettings, decode
from grms.policy.constraints import FAIR_EXCHANGE
from grms.policy.rebalancing import Rebalancing
from grms.policy.registry import TRANSFER_POLICIES
from grms.policy.transfer import (
    AcceptWhenFit,
    Constrained,
    RuleBase,
    TransferQuestion,
    UserDefinedTransfer,
)
from grms.simulation.findings import known
from grms.simulation.replay import LockStepReplay, ReplayedSite
from grms.site.config.load import location_policy
from grms.site.config.schema import SiteConfig
from grms.site.model.commands import Command
from grms.site.model.compaction import compacted
from grms.site.model.invariants import check
from grms.site.model.records import JobDelegated, JobEnded, JobLeft, JobReoffered, Record
from grms.site.scheduler.outgoing_offers import UNDECIDED
from grms.site.scheduler.state import SiteState
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import JobTable, window_by_days
from lrms_sim.workload.schedule import Schedule
from tests.examples import runs
from tests.kernel_sites import kernel_site
from tests.oracles.federation import PlainSite, replay_plainly
from tests.random_workloads import constrained_sites
from tests.recorded import PROCESSORS, recorded
from tests.strategies import federations, policies, rule_bases

AWF = AcceptWhenFit()


def assert_same(one: Schedule, other: Schedule) -> None:
    """Asserts that every job ran at the same place and time."""
    assert one.submitted_to.tolist() == other.submitted_to.tolist()
    assert one.executed_on.tolist() == other.executed_on.tolist()
    assert one.start_time.tolist() == other.start_time.tolist()
    assert one.end_time.tolist() == other.end_time.tolist()
    assert one.log_job_id.tolist() == other.log_job_id.tolist()
    assert one.machines == other.machines


def compare(plain: Sequence[PlainSite]) -> None:
    """Replays through the kernel and through states.

    Both decide by the same instructions, so that even a sum next to zero has the same sign. That
    the kernel is right is for the oracle to say (tests/grms/federation/test_federation.py).
    """
    sites = [kernel_site(site) for site in plain]
    assert_same(LockStepReplay(sites).run(), replay(sites))


@given(sites=federations(policy=rule_bases(), every_partner=True))
def test_rule_bases_through_states(sites: list[PlainSite]) -> None:
    """With random rule bases and AWRT location everywhere."""
    compare(sites)


@given(sites=federations(policy=policies(), sites_max=4))
def test_any_mixture_through_states(sites: list[PlainSite]) -> None:
    """Policies, disciplines, location policies and missing partners in any mixture."""
    compare(sites)


class Journaled(LockStepReplay):
    """A replay with the journals of its sites, by their names."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self.journals: dict[str, list[Record]] = {site.name: [] for site in sites}
        super().__init__(sites, self._keep)

    def _keep(self, site: str, records: tuple[Record, ...]) -> None:
        self.journals[site].extend(records)


def test_constraints_through_states() -> None:
    """Any constraints, policies within and beside them, broken promises: the kernel's schedule and offers."""
    delegated = broken = 0
    for seed in range(24):
        sites = [
            kernel_site(site)
            for site in constrained_sites(np.random.default_rng(seed), 30, rounds=False)
        ]
        conducted = Journaled(sites)
        schedule, expected = conducted.run(), Federation(sites).exchange()
        assert_same(schedule, expected.schedule)
        books = [host.state.partners.values() for host in conducted.hosts]
        assert tuple(sum(book.offered for book in one) for one in books) == expected.offers
        delegated += int((schedule.executed_on != schedule.submitted_to).sum())
        broken += sum(book.trust.breaches for one in books for book in one)
        for host in conducted.hosts:
            settings = host.state.settings
            again = SiteState.recover(settings, conducted.journals[settings.name])
            assert known(again) == known(host.state)
    assert delegated > 60
    assert broken > 3


def frugal_sites(seed: int) -> list[Site]:
    """Returns sites with rounds of any kind, most of which spare questions."""
    rng = np.random.default_rng(seed)

    def rounds(site: PlainSite) -> tuple[str, int | None, float | None] | None:
        if site.reoffer is None or rng.random() < 0.3:
            return None
        questions = int(rng.integers(1, 6)) if rng.random() < 0.4 else None
        pause = site.reoffer * float(rng.integers(1, 9)) if rng.random() < 0.4 else None
        return ("widest" if rng.random() < 0.5 else "queue", questions, pause)

    plain = constrained_sites(rng, 30, rounds=True)
    return [kernel_site(replace(site, rounds=rounds(site))) for site in plain]


def test_bounded_questions_through_states() -> None:
    """With few questions a decision, constraints and rounds: oracle, kernel and states ask the same partners."""
    bounded = 0
    for seed in range(16):
        plain = [
            replace(site, partners_asked=1 + seed % 2)
            for site in constrained_sites(np.random.default_rng(seed), 30, rounds=seed % 4 > 1)
        ]
        sites = [kernel_site(site) for site in plain]
        conducted, expected = LockStepReplay(sites), Federation(sites).exchange()
        assert_same(conducted.run(), expected.schedule)
        books = [host.state.partners.values() for host in conducted.hosts]
        assert tuple(sum(book.offered for book in one) for one in books) == expected.offers
        oracle = replay_plainly(plain)
        if oracle.closest_call > 1e-9:
            assert expected.schedule.executed_on.tolist() == oracle.executed_on, seed
            assert expected.schedule.start_time.tolist() == oracle.start_time(), seed
        free = Federation([replace(site, partners_asked=None) for site in sites]).exchange()
        bounded += free.offers != expected.offers
    assert bounded > 4


def test_rounds_through_states() -> None:
    """Waiting jobs are offered again and leave by the two-step way: the kernel's schedule and questions."""
    left = asked = 0
    for seed in range(32):
        sites = frugal_sites(seed)
        conducted = Journaled(sites)
        schedule, expected = conducted.run(), Federation(sites).exchange()
        assert_same(schedule, expected.schedule)
        books = [host.state.partners.values() for host in conducted.hosts]
        assert tuple(sum(book.offered for book in one) for one in books) == expected.offers
        for host in conducted.hosts:
            check(host.state.memory)
            records = conducted.journals[host.state.settings.name]
            left += sum(isinstance(record, JobLeft) for record in records)
            asked += sum(isinstance(record, JobReoffered) for record in records)
    assert left > 20
    assert asked > 1000


class Restarting(Journaled):
    """A replay in which one site after the other starts again with its journal, compacted."""

    restarts = 0

    def advance(self, now: float, *, inclusive: bool = False) -> None:
        """After each moment at which something happens a site dies."""
        super().advance(now, inclusive=inclusive)
        host = self.hosts[self.restarts % len(self.hosts)]
        name, settings = host.settings.name, host.state.settings
        records = self.journals[name]
        short = compacted(settings, lambda: records)
        self.journals[name] = records if short is None else short
        host.die(list(self.journals[name]))
        self.settle()
        self.restarts += 1


@pytest.mark.parametrize(("rounds", "least"), [(False, 25), (True, 25)])
def test_restarts_change_nothing(rounds: bool, least: int) -> None:
    """What is kept for constraints is in the journal, wherever it breaks off; and where each job waits."""
    restarts = delegated = 0
    for seed in range(10):
        sites = [
            kernel_site(site)
            for site in constrained_sites(np.random.default_rng(seed), 30, rounds=rounds)
        ]
        conducted = Restarting(sites)
        found = conducted.run()
        assert_same(found, replay(sites))
        restarts += conducted.restarts
        delegated += int((found.submitted_to != found.executed_on).sum())
    assert restarts > 250
    assert delegated > least


class Mortal(ReplayedSite):
    """A site after whose commands somebody may die."""

    def _carry_out(self, command: Command) -> None:
        super()._carry_out(command)
        assert isinstance(self.replay, Dying)
        self.replay.somebody_may_die()


class Dying(Journaled):
    """A replay in which sites die within rounds of offers, the one that holds it or one that is asked."""

    site = Mortal
    of_asker = 0.7

    def __init__(self, sites: list[Site], seed: int) -> None:
        super().__init__(sites)
        self.rng = np.random.default_rng(seed)
        self.deaths: Counter[str] = Counter()
        self.dies_after = self.steps = 0
        self.rounds: Counter[tuple[str, float]] = Counter()

    def of_whom(self) -> str:
        """Returns whose round is under way, if anybody may die in it: two do at most."""
        twice = self.rounds[self.holding, self.clock.now] == 2
        return "" if twice else self.holding

    def somebody_may_die(self) -> None:
        """Lets a site die, now and then, if all others live."""
        name = self.of_whom()
        if not name or not all(host.up for host in self.hosts):
            return
        self.steps += 1
        if self.steps < self.dies_after:
            return
        self.rounds[name, self.clock.now] += 1
        self.steps, self.dies_after = 0, int(self.rng.integers(1, 12))
        first = self.rng.random() < self.of_asker
        host = self.hosts[int(self.rng.integers(len(self.hosts)))]
        dies = name if first else host.settings.name
        self.deaths["asks" if dies == name else "is asked"] += 1
        (host,) = (host for host in self.hosts if host.settings.name == dies)
        host.die(list(self.journals[dies]))


def test_deaths_within_rounds_change_nothing() -> None:
    """A round that was under way goes on where it was, whoever has died after which step."""
    deaths: Counter[str] = Counter()
    left = 0
    for seed in range(runs(8, 60)):
        sites = frugal_sites(seed)
        conducted = Dying(sites, seed)
        assert_same(conducted.run(), replay(sites))
        deaths += conducted.deaths
        for host in conducted.hosts:
            check(host.state.memory)
            records = conducted.journals[host.state.settings.name]
            left += sum(isinstance(record, JobLeft) for record in records)
            assert known(SiteState(host.state.settings, records)) == known(host.state)
    assert min(deaths["asks"], deaths["is asked"]) > 20
    assert left > 3


class DyingAtArrivals(Dying):
    """A replay without rounds in which sites die while one decides, that one or one that it asks."""

    of_asker = 0.4

    def of_whom(self) -> str:
        """Returns who has a job of which it is not known where it runs."""
        decides = (host.settings.name for host in self.hosts if is_deciding(host.state))
        return next(decides, "")


def is_deciding(state: SiteState) -> bool:
    """Returns whether a site has a job of which it is not known where it runs."""
    return any(job.state in UNDECIDED for job in state.jobs())


def test_deaths_within_decisions_change_nothing() -> None:
    """A job goes where it would have gone, whoever has died after which step of its decision."""
    deaths: Counter[str] = Counter()
    for seed in range(runs(12, 60)):
        plain = constrained_sites(np.random.default_rng(seed), 30, rounds=False)
        most = [None, 1, 2][seed % 3]
        sites = [kernel_site(replace(site, partners_asked=most)) for site in plain]
        conducted = DyingAtArrivals(sites, seed)
        assert_same(conducted.run(), replay(sites))
        deaths += conducted.deaths
        for host in conducted.hosts:
            check(host.state.memory)
            records = conducted.journals[host.state.settings.name]
            assert known(SiteState(host.state.settings, records)) == known(host.state)
    assert min(deaths["asks"], deaths["is asked"]) > 20


def random_sites(count: int) -> list[Site]:
    """Returns three busy sites that exchange jobs, each with so many of its own."""
    rng = np.random.Generator(np.random.PCG64(11))
    names = ("a", "b", "c")
    sites = []
    for name, processors in zip(names, (8, 16, 12), strict=True):
        run_time = np.ceil(rng.exponential(300.0, count))
        sites.append(
            Site(
                name,
                processors,
                JobTable.from_columns(
                    submit_time=np.sort(np.floor(rng.uniform(0, 110.0 * count, count))),
                    processors=rng.integers(1, processors // 2, count),
                    run_time=run_time,
                    requested_time=run_time * rng.integers(1, 4, count),
                ),
                transfer_policies={other: AWF for other in names if other != name},
            )
        )
    return sites


def test_a_replay_with_its_journals() -> None:
    """Hundreds of jobs are exchanged; each site's journal alone gives all that the site knows."""
    sites = random_sites(400)
    journals: dict[str, list[Record]] = {site.name: [] for site in sites}
    conducted = LockStepReplay(sites, lambda site, records: journals[site].extend(records))
    schedule = conducted.run()
    expected = replay(sites)
    assert_same(schedule, expected)
    exchanged = int((expected.executed_on != expected.submitted_to).sum())
    assert exchanged > 100
    records = [record for journal in journals.values() for record in journal]
    assert sum(isinstance(record, JobDelegated) for record in records) == exchanged
    ends = [record for record in records if isinstance(record, JobEnded)]
    assert sum(isinstance(end.job, int) for end in ends) == 1200
    for host in conducted.hosts:
        settings = host.state.settings
        again = SiteState.recover(settings, journals[settings.name])
        assert known(again) == known(host.state)


def test_the_order_of_a_daemon_that_is_told_nothing_is_replayed() -> None:
    """Open jobs count as they do in a daemon by default; that makes another schedule, and the same here."""
    config = load_config_of("a")
    location = location_policy(config, "x")
    assert location.count_open
    plain = random_sites(300)
    sites = [replace(site, location_policy=location) for site in plain]
    expected = replay(sites)
    assert_same(LockStepReplay(sites).run(), expected)
    assert expected.executed_on.tolist() != replay(plain).executed_on.tolist()


def load_config_of(name: str) -> SiteConfig:
    """Returns the configuration of a site that says no more than it has to."""
    listen, journal = {"users": "/run/x.sock"}, {"path": "/var/x.journal"}
    return SiteConfig.model_validate(
        {"name": name, "processors": 4, "listen": listen, "journal": journal}
    )


def test_nothing_is_left_after_a_replay() -> None:
    """Every offer is settled and forgotten, every guest acknowledged."""
    conducted = LockStepReplay(random_sites(100))
    conducted.run()
    for host in conducted.hosts:
        assert not host.state.memory.at_lrms
        assert host.state.memory.unconfirmed == 0
        for book in host.state.partners.values():
            assert not book.undecided
            assert not book.open
            assert not book.guests
            assert len(book.answered) < 100


@pytest.mark.traces
@pytest.mark.parametrize(
    ("word", "discipline", "reoffer"),
    [("awf", "fcfs", None), ("fair-exchange", "easy", Rebalancing(900.0, "widest"))],
    ids=str,
)
def test_recorded_traces_through_states(
    word: str, discipline: str, reoffer: Rebalancing | None, traces_folder: Path
) -> None:
    """Thousands of recorded arrivals at three sites: the kernel's schedule, job by job."""
    names = ("KTH", "CTC", "SDSC05")
    sites = [
        Site(
            name,
            PROCESSORS[name],
            window_by_days(recorded(traces_folder, f"{name}-6"), 0, 10**6, first_jobs=1500),
            discipline_by_name(discipline),
            dict.fromkeys(set(names) - {name}, TRANSFER_POLICIES[word]),
            reoffer=reoffer,
        )
        for name in names
    ]
    found = LockStepReplay(sites).run()
    assert_same(found, replay(sites))
    assert np.count_nonzero(found.submitted_to != found.executed_on) > 200


def test_rules_within_constraints_through_states() -> None:
    """Rules that look at request and start are asked the same by kernel and states, in rounds too.

    And by the kernel as a function written in Python would be, which computes their degrees by itself.
    """
    settings = RuleBaseSettings(3, further=("requested_time", "starts_now"))
    delegated, answers = 0, [0, 0]
    for seed in range(16):
        rng = np.random.default_rng(seed)
        plain = constrained_sites(rng, 30, rounds=seed % 2 == 1)
        genome = settings.agreeing
        genome.real[:] += rng.normal(0, 0.4, len(genome.real))
        learned = decode(genome, further=settings.further)

        def written(asked: TransferQuestion, learned: RuleBase = learned) -> bool:
            wanted = plain_answer(learned, asked)
            answers[wanted] += 1
            return wanted

        sites: list[Site] = []
        others: list[Site] = []
        for site in map(kernel_site, plain):
            rails = replace(FAIR_EXCHANGE, guest_length=None, promise=None)
            for found, inner in ((sites, learned), (others, UserDefinedTransfer(written))):
                policies = dict.fromkeys(site.transfer_policies, Constrained(rails, inner))
                found.append(replace(site, transfer_policies=policies))
        schedule = replay(sites)
        assert_same(LockStepReplay(sites).run(), schedule)
        assert_same(replay(others), schedule)
        delegated += int((schedule.executed_on != schedule.submitted_to).sum())
    assert delegated > 30
    assert min(answers) > 30


def plain_answer(rules: RuleBase, asked: TransferQuestion) -> bool:
    """Returns what rules with both further features decide (equations 2, 4, 7 and 8)."""
    inputs = (
        asked.processors_waiting / asked.processors,
        100.0 * asked.job_processors / asked.processors,
        math.log10(max(1.0, asked.requested_time)),
        1.0 if asked.starts_now else 0.0,
    )
    total = 0.0
    for rule in rules.rules:
        looked_at = (rule.nwp, rule.njp, rule.requested_time, rule.starts_now)
        degrees = [
            math.exp(-(((x - one.gamma) / one.sigma) ** 2))
            for x, one in zip(inputs, looked_at, strict=True)
            if one is not None
        ]
        total += math.prod(degrees) * (1 if rule.accept else -1)
    return total > 0
