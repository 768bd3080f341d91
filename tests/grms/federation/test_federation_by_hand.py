"""The federation kernel on schedules that were made by hand: who is asked, who gets what, when."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from grms.federation.federation import Site, replay
from grms.policy.location import FixedOrder
from grms.policy.transfer import AcceptWhenFit, AlwaysKeep, Gaussian, Rule, RuleBase
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import JobTable


@dataclass(frozen=True)
class Job:
    """A job of a hand-made workload; times in seconds."""

    submit_time: float
    processors: int
    run_time: float


def workload(*jobs: Job) -> JobTable:
    """Returns the table of the jobs, each of which requests what it needs."""
    return JobTable.from_columns(
        submit_time=[job.submit_time for job in jobs],
        processors=[job.processors for job in jobs],
        run_time=[job.run_time for job in jobs],
    )


def awf_site(name: str, processors: int, partners: Sequence[str], *jobs: Job) -> Site:
    """Returns a site that plays AWF against each of its partners."""
    return Site(
        name,
        processors,
        workload(*jobs),
        transfer_policies={partner: AcceptWhenFit() for partner in partners},
    )


def rule(nwp: float, njp: float, *, accept: bool, sigma: float = 1.0) -> Rule:
    """Returns a rule around one point, equally wide in both features."""
    return Rule(nwp=Gaussian(nwp, sigma), njp=Gaussian(njp, sigma), accept=accept)


WANTS_ALL = RuleBase((rule(0, 50, accept=True, sigma=1000),))
WANTS_NONE = RuleBase((rule(0, 50, accept=False, sigma=1000),))


def where(*sites: Site) -> list[str]:
    """Returns the name of the site on which each job ran, in order of arrival."""
    schedule = replay(sites)
    return [sites[on].name for on in schedule.executed_on]


def test_a_job_that_does_not_fit_at_home_goes_to_a_partner_where_it_fits() -> None:
    """AWF: job 2 finds home full and the partner free; job 3 finds both full and stays home."""
    a = awf_site("a", 4, ["b"], Job(0, 4, 10), Job(1, 2, 10), Job(2, 3, 10))
    b = awf_site("b", 4, ["a"])
    schedule = replay([a, b])
    assert schedule.executed_on.tolist() == [0, 1, 0]
    assert schedule.start_time.tolist() == [0, 1, 10]


def test_each_arrival_sees_what_the_one_before_it_did() -> None:
    """Jobs of one instant, site by site: each is started before the next is decided."""
    a = awf_site("a", 2, ["b"], Job(0, 2, 5), Job(0, 2, 5), Job(0, 2, 5))
    b = awf_site("b", 2, ["a"], Job(0, 2, 5))
    schedule = replay([a, b])
    # a1 at home; a2 to b; a3 nowhere, so home; b1 finds b taken by a2, and a full: home.
    assert schedule.submitted_to.tolist() == [0, 0, 0, 1]
    assert schedule.executed_on.tolist() == [0, 1, 0, 1]
    assert schedule.start_time.tolist() == [0, 0, 5, 5]


def test_completions_and_queue_starts_come_before_arrivals_on_all_sites() -> None:
    """At 5 b's processors are freed, then taken by b's queue, before a's job is decided."""
    a = awf_site("a", 2, ["b"], Job(0, 2, 20), Job(5, 2, 1))
    freed = awf_site("b", 2, ["a"], Job(0, 2, 5))
    taken = awf_site("b", 2, [], Job(0, 2, 5), Job(1, 2, 5))
    taken = replace(taken, transfer_policies={"a": AcceptWhenFit()})
    assert where(a, freed) == ["a", "b", "b"]
    # b's second job is offered to a at 1, does not fit there, and waits at home.
    assert where(a, taken) == ["a", "b", "b", "a"]


def test_a_job_wider_than_a_partner_is_not_offered_to_it() -> None:
    """The partner that is too small is passed over, even one that wants everything."""
    a = Site(
        "a",
        4,
        workload(Job(0, 3, 5)),
        transfer_policies={"b": WANTS_NONE, "c": WANTS_NONE},
    )
    b = Site("b", 2, JobTable.empty(), transfer_policies={"a": WANTS_ALL})
    c = Site("c", 3, JobTable.empty(), transfer_policies={"a": WANTS_ALL})
    assert where(a, b, c) == ["c"]


def test_keep_for_one_partner_ends_the_search() -> None:
    """Home wants the job rather than give it to b, the first in order; c is never asked."""
    keeps_from_b = {"b": WANTS_ALL, "c": WANTS_NONE}
    a = Site("a", 4, workload(Job(0, 1, 5)), transfer_policies=keeps_from_b)
    b = Site("b", 4, JobTable.empty(), transfer_policies={"a": WANTS_ALL})
    c = Site("c", 4, JobTable.empty(), transfer_policies={"a": WANTS_ALL})
    assert where(a, b, c) == ["a"]
    assert where(replace(a, location_policy=FixedOrder(("c", "b"))), b, c) == ["c"]


def test_a_decline_lets_home_ask_the_next_partner() -> None:
    """Partner b is asked first and declines; c is asked next and accepts."""
    a = Site(
        "a",
        4,
        workload(Job(0, 1, 5)),
        transfer_policies={"b": WANTS_NONE, "c": WANTS_NONE},
    )
    b = Site("b", 4, JobTable.empty(), transfer_policies={"a": WANTS_NONE})
    c = Site("c", 4, JobTable.empty(), transfer_policies={"a": WANTS_ALL})
    assert where(a, b, c) == ["c"]


def test_an_accepted_job_is_not_passed_on() -> None:
    """Partner b accepts a's job into its full queue though c is free: it waits at b."""
    a = Site("a", 4, workload(Job(1, 1, 5)), transfer_policies={"b": WANTS_NONE})
    b = Site(
        "b", 4, workload(Job(0, 4, 9)), transfer_policies={"a": WANTS_ALL, "c": AcceptWhenFit()}
    )
    c = Site("c", 4, JobTable.empty(), transfer_policies={"b": WANTS_ALL})
    schedule = replay([a, b, c])
    assert schedule.executed_on.tolist() == [1, 1]
    assert schedule.start_time.tolist() == [0, 9]


def test_always_keep_never_takes_an_offer() -> None:
    """A site that keeps everything declines even when it is idle."""
    a = awf_site("a", 2, ["b"], Job(0, 2, 9), Job(1, 2, 9))
    b = Site("b", 9, JobTable.empty(), transfer_policies={"a": AlwaysKeep()})
    assert where(a, b) == ["a", "a"]


def test_a_partner_without_a_policy_is_neither_asked_nor_answered() -> None:
    """Cooperation takes a policy on both sides."""
    a = awf_site("a", 2, ["b"], Job(0, 2, 9), Job(1, 2, 9))
    b = awf_site("b", 2, ["a"])
    assert where(a, b) == ["a", "b"]
    assert where(replace(a, transfer_policies={}), b) == ["a", "a"]
    assert where(a, replace(b, transfer_policies={})) == ["a", "a"]


def test_an_order_leaves_out_whom_it_does_not_name() -> None:
    """A fixed order without c never asks c."""
    a = awf_site("a", 1, ["b", "c"], Job(0, 1, 9), Job(1, 1, 9), Job(2, 1, 9))
    b, c = awf_site("b", 1, ["a"]), awf_site("c", 1, ["a"])
    assert where(replace(a, location_policy=FixedOrder(("c", "b"))), b, c) == ["a", "c", "b"]
    assert where(replace(a, location_policy=FixedOrder(("c",))), b, c) == ["a", "c", "a"]


# The AWRT location policy by hand: a gives everything away, b and c take everything.


def generous(*jobs: Job) -> Site:
    """Returns a site "a" that runs nothing itself as long as somebody else does."""
    return Site("a", 4, workload(*jobs), transfer_policies={"b": WANTS_NONE, "c": WANTS_NONE})


def eager(name: str, processors: int = 4) -> Site:
    """Returns a site that takes everything from a."""
    return Site(name, processors, JobTable.empty(), transfer_policies={"a": WANTS_ALL})


def test_ties_of_the_location_policy_go_by_site_order() -> None:
    """Without history both partners count 0, and the first site is asked first."""
    a = generous(Job(0, 1, 5))
    assert where(a, eager("b"), eager("c")) == ["b"]
    assert where(a, eager("c"), eager("b")) == ["c"]


def test_a_partner_without_history_comes_before_one_with() -> None:
    """Job 2 arrives after job 1 ended at b, so b has an AWRT above 0 and c is asked first."""
    assert where(generous(Job(0, 1, 5), Job(6, 1, 5)), eager("b"), eager("c")) == ["b", "c"]


def test_only_completed_jobs_make_history() -> None:
    """Job 2 arrives while job 1 still runs at b: both partners still count 0."""
    assert where(generous(Job(0, 1, 5), Job(4, 1, 5)), eager("b"), eager("c")) == ["b", "b"]


def test_a_completion_at_this_very_instant_is_history() -> None:
    """Job 2 arrives at the instant job 1 ends: completions come before arrivals."""
    assert where(generous(Job(0, 1, 5), Job(5, 1, 5)), eager("b"), eager("c")) == ["b", "c"]


def test_a_per_event_machine_completes_after_the_arrivals_of_the_instant() -> None:
    """As before, but b makes a pass per event: its end at 5 comes after the arrival at 5."""
    b = replace(eager("b"), discipline=discipline_by_name("easy-per-event"))
    assert where(generous(Job(0, 1, 5), Job(5, 1, 5)), b, eager("c")) == ["b", "b"]


@pytest.mark.parametrize(("request_of_b", "on"), [(5, "b"), (9, "a")])
def test_a_per_event_machine_is_free_when_an_estimated_end_has_come(
    request_of_b: float, on: str
) -> None:
    """At 5, before its end is handled, b's job counts as gone if it requested no more than 5 s.

    Had it requested 9 s, nobody could know that it ends now: AWF at b declines, and a's job waits
    at home.
    """
    mine = JobTable.from_columns(
        submit_time=[0], processors=[1], run_time=[5], requested_time=[request_of_b]
    )
    b = replace(awf_site("b", 1, ["a"]), jobs=mine, discipline=discipline_by_name("easy-per-event"))
    a = awf_site("a", 1, ["b"], Job(0, 1, 20), Job(5, 1, 1))
    assert where(a, b) == ["a", "b", on]


def test_the_partner_that_served_sooner_is_asked_first() -> None:
    """Partner c served a job in 3 s, b one in 5 s: the third job goes to c.

    A weight counts: after c has also served 4 processors for 20 s, its AWRT is
    (3·3 + 80·20) / 83 = 19.4 s, and the next job goes to b.
    """
    jobs = [Job(0, 1, 5), Job(6, 1, 3), Job(10, 4, 20), Job(40, 1, 1)]
    assert where(generous(*jobs), eager("b"), eager("c")) == ["b", "c", "c", "b"]


def test_waiting_at_the_partner_counts_as_response_time() -> None:
    """History is response time, not run time: b runs jobs quickly but lets them wait.

    Jobs 1 and 2 go to b, which has one processor free of its own job until 8: they end at 9 and
    10, after 9 and 10 s. Job 3 at 20 goes to c without history and takes 9 s there. So b's AWRT
    is 9.5 s, c's 9 s, and job 4 goes to c.
    """
    b = Site("b", 1, workload(Job(0, 1, 8)), transfer_policies={"a": WANTS_ALL})
    a = generous(Job(0, 1, 1), Job(0, 1, 1), Job(20, 1, 9), Job(40, 1, 1))
    schedule = replay([b, a, eager("c")])
    mine = schedule.submitted_to == 1
    assert schedule.executed_on[mine].tolist() == [0, 0, 2, 2]
    assert schedule.end_time[mine].tolist() == [9, 10, 29, 41]


def test_history_is_each_sites_own() -> None:
    """What d experienced at b is d's alone: a still finds b without history.

    d's job ends at b at 5. A job of a at 6 goes to b, the first of two partners a knows nothing
    of.
    """
    a = generous(Job(6, 1, 5))
    d = Site("d", 4, workload(Job(0, 1, 5)), transfer_policies={"b": WANTS_NONE})
    b = Site("b", 4, JobTable.empty(), transfer_policies={"a": WANTS_ALL, "d": WANTS_ALL})
    assert where(a, b, eager("c"), d) == ["b", "b"]


# Rule bases by hand.


def decision(base: RuleBase, *, free: int, waiting: int, processors: int, width: int) -> bool:
    """Returns whether a site that plays `base` accepts a partner's job in some state.

    The state is made of real jobs: one that runs on all but `free` processors, and waiting ones.
    """
    mine = [Job(0, processors - free, 100)] if free < processors else []
    left = waiting
    while left > 0:
        mine.append(Job(0, min(processors, left), 1))
        left -= processors
    b = Site("b", processors, workload(*mine), transfer_policies={"a": base})
    a = Site("a", width, workload(Job(1, width, 1)), transfer_policies={"b": WANTS_NONE})
    schedule = replay([a, b])
    return bool(schedule.executed_on[schedule.submitted_to == 0][0] == 1)


def test_features_are_of_the_deciding_site() -> None:
    """NWP is waiting processors over b's size, NJP is percent of b's size.

    b has 8 processors, all busy, and 12 waiting: NWP = 1.5. A job of 2 has NJP = 25.
    """
    at_the_point = RuleBase((rule(1.5, 25, accept=True), rule(0, 0, accept=False, sigma=10)))
    elsewhere = RuleBase((rule(1.5, 30, accept=True), rule(0, 0, accept=False, sigma=10)))
    # Membership of the first rule: 1 there, exp(-25) five percent away; of the second
    # exp(-(1.5/10)² - (25/10)²) = 0.0019.
    assert decision(at_the_point, free=0, waiting=12, processors=8, width=2)
    assert not decision(elsewhere, free=0, waiting=12, processors=8, width=2)
    assert not decision(at_the_point, free=0, waiting=8, processors=8, width=4)


def test_a_membership_has_no_half_in_its_exponent() -> None:
    """exp(-(x-γ)²/σ²): two narrow yes-rules at distance 1 (e⁻¹ each) against a no of 0.7.

    With the half of a normal distribution they would be 0.61 each and win clearly; without
    it they have 0.736 and win narrowly, and against 0.78 they lose.
    """
    # NWP = 0 and NJP = 50 for a job of 2 on an idle machine of 4.
    yes = Rule(nwp=Gaussian(1, 1), njp=Gaussian(50, 1), accept=True)
    for no_share, expected in ((0.7, True), (0.78, False)):
        distance = math.sqrt(-math.log(no_share))
        no = Rule(nwp=Gaussian(distance, 1), njp=Gaussian(50, 1), accept=False)
        base = RuleBase((yes, yes, no))
        assert decision(base, free=4, waiting=0, processors=4, width=2) is expected


def test_an_output_of_zero_declines() -> None:
    """Two equal rules that contradict each other, and rules too far to be felt at all."""
    even = RuleBase((rule(0, 50, accept=True), rule(0, 50, accept=False)))
    far = RuleBase((rule(10, 1000, accept=True, sigma=0.1),))
    assert not decision(even, free=4, waiting=0, processors=4, width=2)
    assert not decision(far, free=4, waiting=0, processors=4, width=2)


def test_the_deciding_job_is_not_in_its_own_waiting_parallelism() -> None:
    """Home decides before the job joins the queue: on an empty machine NWP is 0."""
    keeps_at_zero = RuleBase((rule(0, 100, accept=True), rule(1, 100, accept=False)))
    a = Site("a", 2, workload(Job(0, 2, 5)), transfer_policies={"b": keeps_at_zero})
    b = Site("b", 2, JobTable.empty(), transfer_policies={"a": WANTS_ALL})
    assert where(a, b) == ["a"]
