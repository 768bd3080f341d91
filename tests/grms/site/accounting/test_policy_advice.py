"""Other policies on a site's own last months."""

import math
from dataclasses import replace

import numpy as np
import pytest

from grms.policy.registry import TRANSFER_POLICIES
from grms.policy.transfer import (
    AcceptWhenFit,
    AlwaysKeep,
    Constrained,
    TransferPolicy,
    UserDefinedTransfer,
)
from grms.simulation.replay import LockStepReplay
from grms.site.accounting.accounts import Accounts
from grms.site.accounting.counterfactual import exchange
from grms.site.accounting.policy_advice import Advised, advise
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import JobEnded, Record
from lrms_sim.scheduling.disciplines import Easy, Fcfs
from tests.grms.federation.strict_cases import POLICIES, drawn_case, sites_of
from tests.grms.site.accounting.stories import at_home, at_partner, guest
from tests.kernel_sites import kernel_site
from tests.random_workloads import constrained_sites

HOUR = 3600.0
RNG = np.random.default_rng(1)


def taken(story: list[Record]) -> Accounts:
    """Returns what a story says."""
    accounts = Accounts()
    for record in story:
        accounts.take(record)
    return accounts


def advised(
    story: list[Record], *, seed: int = 1, **policies: TransferPolicy
) -> dict[str, Advised]:
    """Returns what policies for one partner bring a site of 8 processors, by their words."""
    each = {word: {"near": policy} for word, policy in policies.items()}
    rows = advise(taken(story), 8, Fcfs(), each, rng=np.random.default_rng(seed))
    return {row.policy: row for row in rows}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("word", ["awf", "short-guests", "fair-exchange"])
def test_the_policy_of_then_gives_what_was(seed: int, word: str) -> None:
    """A whole federation's journals: decisions, answers and times come out as they were."""
    sites = list(map(kernel_site, constrained_sites(np.random.default_rng(seed), 40, rounds=False)))
    books = {site.name: Accounts() for site in sites}
    sites = [
        replace(
            site,
            transfer_policies={
                name: TRANSFER_POLICIES[word] for name in books if name != site.name
            },
        )
        for site in sites
    ]

    def note(site: str, noted: tuple[Record, ...]) -> None:
        for record in noted:
            books[site].take(record)

    LockStepReplay(sites, note).run()
    for site in sites:
        policies: dict[str, dict[str, TransferPolicy]] = {
            word: dict(site.transfer_policies),
            "keep": {name: AlwaysKeep() for name in books},
        }
        alone, was, now, keep = advise(
            books[site.name], site.processors, site.discipline, policies, rng=RNG
        )
        assert (now.mean_wait, now.awrt) == pytest.approx((was.mean_wait, was.awrt))
        assert (now.given, now.taken) == (was.given, was.taken)
        assert keep.awrt == pytest.approx(alone.awrt)
        assert (keep.given, keep.taken) == (0, 0)
        found = exchange(books[site.name], site.processors, site.discipline)
        assert (was.awrt, was.improvement) == pytest.approx(
            (found.total.awrt, found.total.improvement)
        )


@pytest.mark.parametrize("rule", ["G", "C1"], ids=["preempt", "run"])
def test_strict_exchange_of_then_gives_what_was(rule: str) -> None:
    """A host whose own jobs stay: guests that were sent home, and turns of its account, come out as they were."""
    sent_home = turned = 0
    for seed in range(5):
        case = drawn_case(seed)
        for drawn in case["sites"]:
            drawn["checkpoints_every"], drawn["rule"] = 0, rule
        case["jobs"] = case["jobs"][:80]
        sites = [replace(site, reoffer=None) for site in sites_of(case)]
        stays = Constrained(POLICIES[rule].rails, UserDefinedTransfer(lambda _: True))
        given = dict.fromkeys(sites[0].transfer_policies, stays)
        sites[0] = replace(sites[0], transfer_policies=given)
        host, journal = sites[0], list[Record]()

        def note(
            site: str,
            noted: tuple[Record, ...],
            journal: list[Record] = journal,
            name: str = host.name,
        ) -> None:
            journal += noted if site == name else ()

        replayed = LockStepReplay(sites, note)
        replayed.run()
        sent_home += sum(
            isinstance(record, JobEnded) and record.outcome is Outcome.PREEMPTED
            for record in journal
        )
        memory = replayed.hosts[0].state.memory
        assert memory.account is not None
        turned += memory.account.changes
        policies = {"now": dict(host.transfer_policies)}
        _, was, now = advise(taken(journal), host.processors, host.discipline, policies, rng=RNG)
        same = pytest.approx((was.mean_wait, was.awrt), nan_ok=True)
        assert (now.mean_wait, now.awrt) == same
        assert now.taken == was.taken
    assert (sent_home > 5) == (rule == "G")
    assert turned > 5


def busy(days: int = 4) -> list[Record]:
    """Returns the story of a site that has two jobs as wide as its machine each day; one is given."""
    story: list[Record] = []
    for day in range(days):
        begin = day * 86400.0
        story += at_home(2 * day + 1, begin, begin, 2 * HOUR, 8)
        story += at_partner(2 * day + 2, begin, begin, HOUR * (1 + day % 5), 8)
    return story


def test_policies_stand_beside_the_constants_and_what_was() -> None:
    """To keep all is to be alone; to give what does not fit is what was done then."""
    found = advised(busy(), keep=AlwaysKeep(), awf=AcceptWhenFit())
    assert list(found) == ["alone", "as it was", "keep", "awf"]
    assert found["alone"].mean_wait == found["keep"].mean_wait == HOUR
    assert (found["keep"].improvement, found["keep"].low, found["keep"].high) == (0.0, 0.0, 0.0)
    assert found["as it was"].awrt == found["awf"].awrt == pytest.approx(46 / 18 * HOUR)
    assert (found["awf"].given, found["alone"].given) == (4, 0)
    row = found["awf"]
    assert 0.0 < row.low <= row.improvement <= row.high < 1.0


def test_chance_comes_from_the_seed() -> None:
    """The same seed gives the same figures to the last bit."""
    one, same, other = (advised(busy(9), seed=seed, awf=AcceptWhenFit()) for seed in (1, 1, 2))
    assert one == same
    assert (one["awf"].low, one["awf"].high) != (other["awf"].low, other["awf"].high)


def test_one_day_has_no_interval() -> None:
    """And no warning."""
    row = advised(busy(1), awf=AcceptWhenFit())["awf"]
    assert row.improvement > 0
    assert math.isnan(row.low)
    assert math.isnan(row.high)


def test_long_windows_are_resampled_by_weeks() -> None:
    """Days of one week are alike: blocks are as long as that."""
    row = advised(busy(60), awf=AcceptWhenFit())["awf"]
    assert row.low < row.improvement < row.high


def test_guests_that_are_not_taken_hold_up_nobody() -> None:
    """A policy that declines them has the machine for own users."""
    story = [*guest(1, 0.0, 0.0, 50.0, 8), *at_home(1, 10.0, 50.0, 50.0, 8)]
    found = advised(story, keep=AlwaysKeep(), awf=AcceptWhenFit())
    assert (found["as it was"].mean_wait, found["awf"].mean_wait) == (40.0, 40.0)
    assert (found["awf"].taken, found["keep"].taken, found["keep"].mean_wait) == (1, 0, 0.0)


def test_jobs_before_the_window_do_not_count() -> None:
    """But are replayed."""
    accounts = taken(busy(4))
    rows = advise(
        accounts, 8, Easy(), {"awf": {"near": AcceptWhenFit()}}, since=2 * 86400.0, rng=RNG
    )
    assert [row.given for row in rows] == [0, 2, 2]


@pytest.mark.parametrize(("bound", "given"), [(None, 8), (2, 8), (1, 4)])
def test_no_more_partners_are_asked_than_the_site_asks(bound: int | None, given: int) -> None:
    """A partner that was never asked comes first and declines; with one question it is the only one."""
    gives = UserDefinedTransfer(lambda job: not job.own)
    _, _, found = advise(
        taken(busy()),
        8,
        Fcfs(),
        {"gives": {"far": gives, "near": gives}},
        rng=RNG,
        partners_asked={"gives": bound},
    )
    assert found.given == given


def test_an_empty_journal_gives_no_figures() -> None:
    """And is no error."""
    assert all(math.isnan(row.awrt) for row in advised([], awf=AcceptWhenFit()).values())


def test_progress_is_told_by_policy() -> None:
    """So that a long study can be followed."""
    seen: list[tuple[str, int]] = []
    policies: dict[str, dict[str, TransferPolicy]] = {
        "awf": {"near": AcceptWhenFit()},
        "keep": {"near": AlwaysKeep()},
    }
    advise(
        taken(busy()),
        8,
        Fcfs(),
        policies,
        rng=RNG,
        progress=lambda word, jobs: seen.append((word, jobs)),
    )
    assert seen == [("awf", 0), ("keep", 0)]


def test_a_policy_in_python_that_raises_is_told() -> None:
    """It ends the study, and no daemon."""

    def broken(_: object) -> bool:
        raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        advised(busy(), mine=UserDefinedTransfer(broken))
