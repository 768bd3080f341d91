"""Byzantine partners in the federation kernel, against their oracle and by hand."""

from dataclasses import replace

import numpy as np
import pytest

from grms.federation.federation import Federation, Site
from grms.federation.sites import BYZANTINE_PARTNERS
from grms.policy.constraints import ExchangeConstraints, Promise
from grms.policy.location import FixedOrder
from grms.policy.transfer import AcceptWhenFit, Constrained
from lrms_sim.scheduling.disciplines import Conservative
from lrms_sim.workload.jobs import JobTable
from tests.grms.federation.test_fair_exchange import table
from tests.kernel_sites import kernel_site
from tests.oracles.federation import PlainSite, replay_plainly
from tests.random_workloads import constrained_sites

ANY_ORDER = ("fcfs", "list", "easy")
"""Disciplines for guests that come out of order."""


def with_byzantine(sites: list[PlainSite], word: str, rng: np.random.Generator) -> list[PlainSite]:
    """Returns a federation in which one site is that Byzantine partner, and now and then another one any."""
    words = dict.fromkeys(range(len(sites)), "")
    if rng.random() < 0.3:
        words[int(rng.integers(len(sites)))] = str(rng.choice(list(BYZANTINE_PARTNERS)))
    words[int(rng.integers(len(sites)))] = word

    def discipline(site: PlainSite) -> str:
        return site.discipline if site.discipline in ANY_ORDER else str(rng.choice(ANY_ORDER))

    return [
        replace(site, rogue=words[i], discipline=discipline(site)) for i, site in enumerate(sites)
    ]


@pytest.mark.parametrize("word", BYZANTINE_PARTNERS)
def test_random_federations_with_byzantine_equal_oracle(word: str) -> None:
    """Any constraints, rounds and location beside any Byzantine partner: every job, every question."""
    compared = moved = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        plain = constrained_sites(rng, 24, rounds=bool(seed % 2))
        sites = with_byzantine(plain, word, rng)
        if seed % 3 == 0:
            sites = [replace(site, location="awrt-open") for site in sites]
        oracle = replay_plainly(sites)
        if oracle.closest_call < 1e-9:
            continue  # rounding decides
        found = Federation([kernel_site(site) for site in sites]).exchange()
        assert found.schedule.executed_on.tolist() == oracle.executed_on, f"seed {seed}"
        assert found.schedule.start_time.tolist() == oracle.start_time(), f"seed {seed}"
        assert found.offers == tuple(oracle.books.offers.get(k, 0) for k in range(len(sites)))
        compared += 1
        moved += int(np.count_nonzero(found.schedule.executed_on != oracle.home))
    assert compared >= 20
    assert moved > 40


def test_a_word_says_itself() -> None:
    """Each Byzantine partner is kept under its own name, and no two are alike."""
    assert [rogue.name for rogue in BYZANTINE_PARTNERS.values()] == list(BYZANTINE_PARTNERS)
    behaviours = {(r.gives, r.takes, r.holds, r.lies) for r in BYZANTINE_PARTNERS.values()}
    assert len(behaviours) == len(BYZANTINE_PARTNERS)
    assert all(rogue.text for rogue in BYZANTINE_PARTNERS.values())


# Schedules made by hand: `a` asks, `b` is the Byzantine partner; four processors each, FCFS.


def run(
    a: JobTable, b: JobTable, rails: ExchangeConstraints, word: str
) -> tuple[list[int], list[float], tuple[int, ...]]:
    """Returns where and when all jobs ran, in order of arrival, and the offers."""
    policy = Constrained(rails)
    sites = [
        Site("a", 4, a, transfer_policies={"b": policy}),
        Site("b", 4, b, transfer_policies={"a": policy}, rogue=BYZANTINE_PARTNERS[word]),
    ]
    found = Federation(sites).exchange()
    schedule = found.schedule
    return schedule.executed_on.tolist(), schedule.start_time.tolist(), found.offers


BARE = ExchangeConstraints(guest_length=None, balance=None, promise=None)


def test_a_black_hole_takes_into_its_queue_and_gives_what_does_not_fit() -> None:
    """The guest of 1 queues until 30; the own job of 3 fits nowhere at home and goes to `a`."""
    jobs = table((0, 1, 99, 99), (1, 4, 9, 9))
    own = table((0, 2, 30, 30), (2, 2, 9, 9), (3, 3, 5, 5))
    assert run(jobs, own, BARE, "black-hole") == ([0, 1, 1, 1, 0], [0, 0, 30, 39, 3], (1, 1))


def test_who_starts_nothing_does_when_all_have_arrived() -> None:
    """The guest of 1 has room at once, and starts at 50, the last arrival; an own job does at 2."""
    jobs = table((0, 4, 99, 99), (1, 2, 9, 9), (50, 4, 10, 10))
    assert run(jobs, table((2, 2, 9, 9)), BARE, "starts-nothing")[:2] == (
        [0, 1, 1, 1],
        [0, 50, 2, 59],
    )


def test_who_takes_all_gives_nothing() -> None:
    """Its own second job waits although `a` is idle, and what `a` offers queues behind it."""
    jobs = table((0, 4, 5, 5), (3, 4, 5, 5))
    assert run(jobs, table((1, 4, 9, 9), (2, 4, 9, 9)), BARE, "takes-all") == (
        [0, 1, 1, 1],
        [0, 1, 10, 19],
        (1, 0),
    )


def test_a_free_rider_takes_nothing() -> None:
    """It is asked and declines; the one that offers all gives even what would start at home."""
    jobs = table((0, 4, 9, 9), (1, 4, 9, 9))
    assert run(jobs, table((20, 1, 5, 5)), BARE, "free-rider") == ([0, 0, 1], [0, 9, 20], (1, 0))
    assert run(jobs, table((20, 1, 5, 5)), BARE, "free-rider-all")[0] == [0, 0, 0]


@pytest.mark.parametrize(
    ("word", "where"), [("liar", [0, 1, 1, 1, 1]), ("takes-all", [0, 1, 1, 0, 1])]
)
def test_a_lie_hides_a_late_start_as_long_as_the_request_covers_it(
    word: str, where: list[int]
) -> None:
    """A guest of 1 starts at 20 behind an own job and ends at 22; 5 s late are allowed.

    Who says that it has run since it came gets the next one.
    """
    jobs = table((0, 4, 999, 999), (1, 1, 30, 2), (30, 1, 1, 1))
    promise = Promise(tolerance=5, trust=0, suspension=99, doublings=1)
    rails = ExchangeConstraints(guest_length=None, balance=None, promise=promise)
    own = table((0, 4, 20, 20), (31, 1, 1, 1))
    assert run(jobs, own, rails, word)[0] == where


def test_a_byzantine_that_holds_guests_needs_a_queue_for_them() -> None:
    """The error names site, Byzantine partner and discipline."""
    site = Site(
        "a", 4, JobTable.empty(), Conservative(), rogue=BYZANTINE_PARTNERS["starts-nothing"]
    )
    with pytest.raises(
        ValueError, match=r"site 'a' puts guests aside \(starts-nothing\).*conservative"
    ):
        Federation([site])


def test_who_gives_nothing_asks_nobody_in_a_fixed_order_either() -> None:
    """What it keeps is kept whatever its location policy says."""
    awf = AcceptWhenFit()
    sites = [
        Site("a", 4, table(), transfer_policies={"b": awf}),
        Site(
            "b",
            4,
            table((0, 4, 9, 9), (1, 4, 9, 9)),
            transfer_policies={"a": awf},
            location_policy=FixedOrder(("a",)),
            rogue=BYZANTINE_PARTNERS["takes-all"],
        ),
    ]
    assert Federation(sites).exchange().offers == (0, 0)
