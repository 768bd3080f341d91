"""Exchange constraints and rounds of offers in the federation kernel, against their oracle and by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from grms.federation.federation import Federation, FederationReplay, Site
from grms.policy.constraints import ExchangeConstraints, Promise
from grms.policy.transfer import AcceptWhenFit, Constrained, Gaussian, Rule, RuleBase
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import JobTable
from tests.kernel_sites import kernel_site
from tests.oracles.federation import PlainConstrained, PlainSite, replay_plainly
from tests.random_workloads import constrained_sites, random_constraints, random_jobs, random_sites


def exchange(sites: list[PlainSite]) -> FederationReplay:
    """Replays the oracle's sites with the kernel."""
    return Federation([kernel_site(site) for site in sites]).exchange()


@pytest.mark.parametrize("rounds", [False, True], ids=["on arrival", "again"])
def test_random_federations_equal_oracle(rounds: bool) -> None:
    """Any constraints, policies within and beside them, and disciplines: every job, every question."""
    compared = delegated = broken = 0
    for seed in range(60):
        sites = constrained_sites(np.random.default_rng(seed), 30, rounds=rounds)
        oracle = replay_plainly(sites)
        if oracle.closest_call < 1e-9:
            continue  # rounding decides
        found = exchange(sites)
        assert found.schedule.executed_on.tolist() == oracle.executed_on, f"seed {seed}"
        assert found.schedule.start_time.tolist() == oracle.start_time(), f"seed {seed}"
        assert found.offers == tuple(oracle.books.offers.get(k, 0) for k in range(len(sites)))
        compared += 1
        delegated += int(np.count_nonzero(found.schedule.executed_on != oracle.home))
        broken += sum(opinion.breaches for opinion in oracle.books.opinions.values())
    assert compared >= 55
    assert delegated > 150
    assert broken > 8


def frugal(sites: list[PlainSite], rng: np.random.Generator) -> list[PlainSite]:
    """Returns sites of which most spare questions in their rounds, each in its way."""

    def rounds(site: PlainSite) -> tuple[str, int | None, float | None] | None:
        if site.reoffer is None or rng.random() < 0.1:
            return None
        return (
            str(rng.choice(("queue", "widest"))),
            int(rng.integers(1, 6)) if rng.random() < 0.5 else None,
            site.reoffer * float(rng.integers(1, 9)) if rng.random() < 0.5 else None,
        )

    return [replace(site, rounds=rounds(site)) for site in sites]


def test_frugal_rounds_equal_oracle() -> None:
    """Any order, bound and pause: every job, every question."""
    compared = fewer = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        plain = constrained_sites(rng, 30, rounds=True)
        sites = frugal(plain, rng)
        oracle = replay_plainly(sites)
        if oracle.closest_call < 1e-9:
            continue  # rounding decides
        found = exchange(sites)
        assert found.schedule.executed_on.tolist() == oracle.executed_on, f"seed {seed}"
        assert found.schedule.start_time.tolist() == oracle.start_time(), f"seed {seed}"
        assert found.offers == tuple(oracle.books.offers.get(k, 0) for k in range(len(sites)))
        compared += 1
        fewer += sum(exchange(plain).offers) > sum(found.offers)
    assert compared >= 55
    assert fewer > 25


@pytest.mark.parametrize("discipline", ["fcfs", "list", "easy", "conservative"])
def test_spared_questions_change_nothing_within_constraints(discipline: str) -> None:
    """What is known of the answers is right: in the order of the queue each job goes where it went."""
    before = after = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rails = PlainConstrained(
            replace(random_constraints(rng, 1.0), start_now=True, promise=None), "agree"
        )
        sites = [
            replace(
                site,
                discipline=discipline,
                jobs=random_jobs(rng, 40, site.processors, (1.0,)),
                policies=dict.fromkeys(site.policies, rails),
                reoffer=float(rng.integers(1, 12)),
            )
            for site in random_sites(rng, 1)
        ]
        whole = exchange(sites)
        spared = exchange([replace(site, rounds=("queue", None, None)) for site in sites])
        assert spared.schedule.executed_on.tolist() == whole.schedule.executed_on.tolist()
        assert spared.schedule.start_time.tolist() == whole.schedule.start_time.tolist()
        before += sum(whole.offers)
        after += sum(spared.offers)
    assert after < 0.8 * before


# Schedules made by hand: two sites, `a` with the users, `b` with little to do.


def table(*rows: tuple[float, int, float, float]) -> JobTable:
    """Returns jobs of (submit time, processors, request, run time)."""
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    return JobTable.from_columns(
        submit_time=columns[0],
        processors=columns[1],
        requested_time=columns[2],
        run_time=columns[3],
    )


def run(
    a: JobTable,
    b: JobTable,
    rails: ExchangeConstraints,
    *,
    honest: bool = True,
    reoffer: float | None = None,
) -> tuple[list[int], list[float], tuple[int, ...]]:
    """Returns where and when the jobs of `a` ran, and the offers; a dishonest `b` takes anything.

    Both machines have four processors and FCFS.
    """
    to_b = Constrained(rails)
    to_a = to_b if honest else Constrained(ExchangeConstraints(False, None, None, promise=None))
    found = Federation(
        [
            Site("a", 4, a, transfer_policies={"b": to_b}, reoffer=reoffer),
            Site("b", 4, b, transfer_policies={"a": to_a}),
        ]
    ).exchange()
    mine = found.schedule.submitted_to == 0
    return (
        found.schedule.executed_on[mine].tolist(),
        found.schedule.start_time[mine].tolist(),
        found.offers,
    )


BARE = ExchangeConstraints(guest_length=None, balance=None, promise=None)


def test_only_what_would_wait_is_offered_and_only_what_starts_is_taken() -> None:
    """The first job starts at home, the second at the partner, the third waits at home."""
    jobs = table((0, 4, 10, 10), (1, 4, 10, 10), (2, 4, 10, 10))
    assert run(jobs, table(), BARE) == ([0, 1, 0], [0, 1, 10], (2, 0))


def test_a_waiting_job_is_offered_again_at_the_multiples_of_the_period() -> None:
    """The partner has room from 11 on; the round at 12 takes the job there, home would at 20."""
    jobs = table((0, 4, 20, 20), (1, 4, 10, 10), (2, 4, 10, 10))
    assert run(jobs, table(), BARE, reoffer=4) == ([0, 1, 1], [0, 1, 12], (5, 0))


def test_a_job_that_is_offered_again_does_not_wait_for_itself() -> None:
    """Rules that keep a job where others wait let go of the only one: it does not count itself."""
    alone, behind = Gaussian(0, 0.4), Gaussian(1, 0.4)
    any_width = Gaussian(50, 1000)
    rules = RuleBase((Rule(alone, any_width, accept=False), Rule(behind, any_width, accept=True)))
    home = Site(
        "a", 4, table((1, 4, 20, 20), (2, 4, 10, 10)), transfer_policies={"b": rules}, reoffer=4
    )
    # The partner is busy until 10; the round at 12 takes the job there, home would at 21.
    partner = Site("b", 4, table((0, 4, 10, 10)), transfer_policies={"a": AcceptWhenFit()})
    found = Federation([home, partner]).exchange()
    mine = found.schedule.submitted_to == 0
    assert found.schedule.executed_on[mine].tolist() == [0, 1]
    assert found.schedule.start_time[mine].tolist() == [1, 12]
    assert found.offers == (5, 0)


def test_a_guest_is_no_longer_than_own_jobs_allow() -> None:
    """The mean request of `b` is 10, so 20 is taken and 21 is not; before any job all are."""
    own = table((0, 1, 10, 5))
    jobs = table((1, 4, 99, 99), (2, 3, 30, 3), (30, 1, 21, 21), (30, 1, 20, 20))
    rails = ExchangeConstraints(balance=None, promise=None)
    assert run(jobs, own, rails)[0] == [0, 1, 0, 1]


def test_a_partner_takes_no_more_than_the_balance_allows() -> None:
    """Ten seconds of the machine are 40; a job done early counts as what it was."""
    jobs = table((0, 4, 99, 99), (1, 1, 38, 2), (2, 1, 3, 3), (3, 1, 38, 38), (4, 1, 1, 1))
    rails = ExchangeConstraints(guest_length=None, balance=10, promise=None)
    assert run(jobs, table(), rails)[0] == [0, 1, 0, 1, 0]


def test_a_partner_without_credit_holds_little() -> None:
    """One job of any length goes; a second one only within the trust and what was done."""
    jobs = table((0, 4, 99, 99), (1, 1, 30, 10), (2, 1, 3, 3), (20, 1, 30, 30), (21, 1, 5, 5))
    rails = ExchangeConstraints(guest_length=None, balance=None, promise=Promise(trust=1))
    assert run(jobs, table(), rails)[0] == [0, 1, 0, 1, 0]
    rails = ExchangeConstraints(guest_length=None, balance=None, promise=Promise(trust=1.25))
    assert run(jobs, table(), rails)[0] == [0, 1, 0, 1, 1]


def test_a_partner_that_breaks_its_promise_is_not_asked_for_a_while() -> None:
    """The guest waits 30 s where 5 are allowed; 10 s without offers, 20 after the next breach."""
    own = table((0, 4, 30, 30), (45, 4, 30, 30))
    jobs = table(
        (0, 4, 999, 999),
        (1, 1, 5, 5),  # waits at b until 30, overdue from 11 on
        (12, 1, 1, 1),  # the breach is seen: no offer until 22
        (22, 1, 1, 1),  # one is at b and the trust is 0: no offer
        (45, 1, 1, 1),  # goes
        (46, 1, 1, 1),  # goes behind b's own job: until 76
        (60, 1, 1, 1),  # overdue: no offer until 80
        (79, 1, 1, 1),
        (80, 1, 1, 1),  # goes
    )
    promise = Promise(tolerance=5, trust=0, suspension=10, doublings=1)
    rails = ExchangeConstraints(guest_length=None, balance=None, promise=promise)
    where = run(jobs, own, rails, honest=False)[0]
    assert where == [0, 1, 0, 0, 1, 1, 0, 0, 1]


# Mistakes of the caller.


@pytest.mark.parametrize("period", [0, -900, 0.5, math.inf, math.nan])
def test_a_period_is_at_least_a_second(period: float) -> None:
    """The error names the site."""
    site = Site("a", 2, JobTable.empty(), reoffer=period)
    with pytest.raises(ValueError, match="site 'a' offers again every"):
        Federation([site])


def test_constraints_within_constraints_are_refused() -> None:
    """Which of them hold would be a riddle."""
    twice = Constrained(BARE, Constrained(BARE))
    site = Site("a", 2, JobTable.empty(), transfer_policies={"b": twice})
    with pytest.raises(ValueError, match="has constraints already"):
        Federation([site, replace(site, name="b", transfer_policies={})]).exchange()


def test_offers_are_counted_without_constraints_too() -> None:
    """Every question that reaches a partner, whatever the answer."""
    jobs = table((0, 4, 10, 10), (1, 4, 10, 10), (1, 4, 10, 10))
    sites = [
        Site("a", 4, jobs, transfer_policies={"b": AcceptWhenFit()}),
        Site("b", 4, table(), transfer_policies={"a": AcceptWhenFit()}),
    ]
    assert Federation(sites).exchange().offers == (2, 0)


@pytest.mark.parametrize("name", ["conservative", "conservative-group"])
def test_guests_that_come_out_of_order_and_wait_are_not_for_every_discipline(name: str) -> None:
    """The error names both sites; guests that start at once are for all."""
    partner = Site(
        "b",
        4,
        JobTable.empty(),
        discipline_by_name(name),
        {"a": AcceptWhenFit()},
        groups=np.zeros(0, np.int8),
    )
    home = Site(
        "a",
        4,
        JobTable.empty(),
        transfer_policies={"b": Constrained(BARE)},
        reoffer=900,
        groups=np.zeros(0, np.int8),
    )
    with pytest.raises(ValueError, match=f"site 'b' takes what would wait there.*'{name}'"):
        Federation([home, partner])
    Federation([home, replace(partner, transfer_policies={"a": Constrained(BARE)})])
    Federation([replace(home, reoffer=None), partner])
