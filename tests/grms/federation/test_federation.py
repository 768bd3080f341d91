"""The federation kernel against its oracle and against single machines.

Schedules made by hand are in test_federation_by_hand.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grms.federation.federation import Federation, Site, replay, replay_alone
from grms.policy.location import AwrtLocation, FixedOrder
from grms.policy.transfer import AcceptWhenFit
from lrms_sim.kernel._scheduler import Scheduler
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import JobTable, OverrunTable, concatenate
from lrms_sim.workload.schedule import Schedule
from tests.examples import runs
from tests.kernel_sites import kernel_site
from tests.oracles.checks import Replay
from tests.oracles.federation import PlainFederation, PlainSite
from tests.oracles.federation import replay_plainly as oracle_replay
from tests.random_workloads import random_jobs, random_sites
from tests.strategies import (
    DISCIPLINES,
    OneMachine,
    federations,
    one_machine,
    rule_bases,
)


def assert_same(schedule: Schedule, oracle: PlainFederation) -> None:
    """Asserts that kernel and oracle ran every job at the same place and time."""
    assert schedule.submitted_to.tolist() == oracle.home
    assert schedule.executed_on.tolist() == oracle.executed_on
    assert schedule.start_time.tolist() == oracle.start_time()
    assert schedule.end_time.tolist() == oracle.end_time()


def compare(sites: Sequence[PlainSite]) -> None:
    """Replays sites both ways; an example that rounding decides is passed over."""
    oracle = oracle_replay(sites)
    assume(oracle.closest_call > 1e-9)
    assert_same(replay([kernel_site(site) for site in sites]), oracle)


# Against the oracle.


@given(sites=federations(policy=st.just("awf"), every_partner=True))
def test_accept_when_fit_equals_oracle(sites: list[PlainSite]) -> None:
    """With AWF and AWRT location everywhere, jobs run where and when the oracle says."""
    compare(sites)


@given(sites=federations(policy=rule_bases(), every_partner=True))
def test_rule_bases_equal_oracle(sites: list[PlainSite]) -> None:
    """With random rule bases and AWRT location everywhere, jobs run as the oracle says."""
    compare(sites)


@given(sites=federations())
def test_any_mixture_equals_oracle(sites: list[PlainSite]) -> None:
    """Policies, disciplines, location policies and missing partners in any mixture."""
    compare(sites)


@pytest.mark.parametrize("hundred", range(runs(3, 6)))
def test_hundreds_of_random_federations_equal_oracle(hundred: int) -> None:
    """Larger than what is drawn above, so that queues and histories grow."""
    compared = 0
    delegated = 0
    for seed in range(100 * hundred, 100 * hundred + 100):
        sites = random_sites(np.random.default_rng(seed), jobs_max=40)
        oracle = oracle_replay(sites)
        if oracle.closest_call < 1e-9:
            continue  # rounding decides
        schedule = replay([kernel_site(site) for site in sites])
        assert schedule.executed_on.tolist() == oracle.executed_on, f"seed {seed}"
        assert schedule.start_time.tolist() == oracle.start_time(), f"seed {seed}"
        compared += 1
        delegated += int(np.count_nonzero(schedule.executed_on != schedule.submitted_to))
    assert compared >= 95
    assert delegated > 100


def thirty_sites(
    partners_asked: int | None, location: Literal["awrt", "awrt-open"]
) -> list[PlainSite]:
    """Returns thirty sites that all exchange jobs."""
    rng = np.random.default_rng(5)
    names = [f"s{number:02d}" for number in range(30)]
    return [
        PlainSite(
            name,
            processors,
            DISCIPLINES[number % len(DISCIPLINES)],
            random_jobs(rng, 60, processors),
            dict.fromkeys((other for other in names if other != name), "awf"),
            location,
            partners_asked=partners_asked,
        )
        for number, name in enumerate(names)
        for processors in [int(rng.integers(2, 40))]
    ]


@pytest.mark.parametrize(
    ("partners_asked", "location"), [(None, "awrt"), (1, "awrt"), (4, "awrt"), (4, "awrt-open")]
)
def test_thirty_sites_equal_oracle(
    partners_asked: int | None, location: Literal["awrt", "awrt-open"]
) -> None:
    """Where histories move many partners about, they are asked in the order of the oracle."""
    sites = thirty_sites(partners_asked, location)
    schedule = replay([kernel_site(site) for site in sites])
    assert_same(schedule, oracle_replay(sites))
    assert np.count_nonzero(schedule.executed_on != schedule.submitted_to) > 100


def test_as_many_questions_as_partners_bound_nothing() -> None:
    """From K - 1 on every site is asked as without a bound, in the same order."""
    sites = [kernel_site(site) for site in thirty_sites(None, "awrt")]
    free = Federation(sites).exchange()
    for most in (29, 30, 1000):
        bound = Federation([replace(site, partners_asked=most) for site in sites]).exchange()
        assert bound.offers == free.offers
        assert bound.schedule.executed_on.tolist() == free.schedule.executed_on.tolist()
        assert bound.schedule.start_time.tolist() == free.schedule.start_time.tolist()
    less = Federation([replace(site, partners_asked=28) for site in sites]).exchange()
    assert less.schedule.executed_on.tolist() != free.schedule.executed_on.tolist()


@given(sites=federations(), most=st.integers(1, 3))
def test_no_decision_asks_more_partners_than_it_may(sites: list[PlainSite], most: int) -> None:
    """A job that comes is one decision, where none is offered again."""
    bound = [kernel_site(replace(site, partners_asked=most)) for site in sites]
    for site, offers in zip(bound, Federation(bound).exchange().offers, strict=True):
        assert offers <= most * len(site.jobs)


@pytest.mark.parametrize("most", [0, -1])
def test_a_site_asks_one_partner_at_least(most: int) -> None:
    """One that asks nobody has no policies."""
    with pytest.raises(ValueError, match=f"site 'a' asks {most} partners about a job; at least 1"):
        Federation([Site("a", 8, JobTable.empty(), partners_asked=most)])


def test_a_thousand_sites_are_checked_once_each() -> None:
    """Names are looked up, not searched: twice the sites take no eight times as long."""
    looked_up = 0

    class Counted(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal looked_up
            looked_up += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    count = 200
    names = [Counted(f"site {number}") for number in range(count)]
    policy = AcceptWhenFit()
    sites = [
        Site(name, 8, JobTable.empty(), transfer_policies={n: policy for n in names if n != name})
        for name in names
    ]
    looked_up = 0
    Federation(sites)
    assert looked_up <= 2 * count * count


def test_the_text_of_an_error_names_some_of_many_sites() -> None:
    """A thousand names would hide what is wrong."""
    sites = [Site(f"s{number}", 8, JobTable.empty()) for number in range(99)]
    sites[0] = replace(sites[0], transfer_policies={"nobody": AcceptWhenFit()})
    with pytest.raises(ValueError, match=r"'nobody'; the sites are s0, .*, s19 … \(99 in all\)$"):
        Federation(sites)


@pytest.mark.parametrize("seed", range(40))
def test_sites_that_order_by_group_equal_oracle(seed: int) -> None:
    """Guests are served by their groups at home, beside sites that do not look at groups."""
    rng = np.random.default_rng(seed)
    names = ("easy-group", "fcfs-group", "conservative-group", "easy")
    sites = [
        replace(
            site,
            discipline=names[place % len(names)],
            groups=rng.integers(1, 6, len(site.jobs)).tolist(),
            policies=dict.fromkeys(site.policies, "awf"),
        )
        for place, site in enumerate(random_sites(rng, 40))
    ]
    assert_same(replay([kernel_site(site) for site in sites]), oracle_replay(sites))


def test_groups_that_are_missing_or_wrong_name_the_site() -> None:
    """One site that orders by group needs the groups of every site's jobs."""
    jobs = JobTable.from_columns(submit_time=[0.0], processors=[1], run_time=[1.0])
    known = np.array([1], np.int8)
    by_group = Site("a", 4, jobs, discipline_by_name("easy-group"), groups=known)
    with pytest.raises(ValueError, match="site 'b': user groups are needed"):
        Federation([by_group, Site("b", 4, jobs)])
    with pytest.raises(ValueError, match=r"site 'b': groups has shape \(2,\) for 1 jobs"):
        Federation([by_group, Site("b", 4, jobs, groups=np.array([1, 1], np.int8))])
    schedule = replay([by_group, Site("b", 4, jobs, groups=known)])
    assert schedule.start_time.tolist() == [0.0, 0.0]


# Against single machines.


@pytest.mark.parametrize("name", DISCIPLINES)
@given(case=one_machine())
def test_one_site_is_one_machine(name: str, case: OneMachine) -> None:
    """A federation of a single site makes the single machine's schedule."""
    discipline = discipline_by_name(name)
    federated = replay([Site("only", case.processors, case.jobs, discipline)])
    single = simulate(case.jobs, case.processors, discipline)
    assert federated.start_time.tolist() == single.start_time.tolist()
    assert federated.end_time.tolist() == single.end_time.tolist()
    assert federated.executed_on.tolist() == [0] * len(case.jobs)


@pytest.mark.parametrize("partners", [True, False])
@given(sites=federations(policy=st.just("keep")))
def test_sites_that_keep_everything_are_single_machines(
    partners: bool, sites: list[PlainSite]
) -> None:
    """With `AlwaysKeep`, as without any partner, jobs run as if the other sites did not exist."""
    kernel_sites = [kernel_site(site) for site in sites]
    if not partners:
        kernel_sites = [replace(site, transfer_policies={}) for site in kernel_sites]
    together = replay(kernel_sites)
    assert together.executed_on.tolist() == together.submitted_to.tolist()
    for index, site in enumerate(kernel_sites):
        single = simulate(site.jobs, site.processors, site.discipline)
        mine = together.submitted_to == index
        assert together.start_time[mine].tolist() == single.start_time.tolist()


@given(sites=federations())
def test_the_baseline_is_each_machine_by_itself(sites: list[PlainSite]) -> None:
    """`replay_alone` has the rows of `replay` and the single machines' times."""
    alone = replay_alone([kernel_site(site) for site in sites])
    merged, origin, _ = concatenate([site.jobs for site in sites])
    assert alone.jobs.submit_time.tolist() == merged.submit_time.tolist()
    assert alone.submitted_to.tolist() == alone.executed_on.tolist() == origin.tolist()
    for index, site in enumerate(sites):
        single = simulate(site.jobs, site.processors, discipline_by_name(site.discipline))
        assert alone.start_time[origin == index].tolist() == single.start_time.tolist()
        assert alone.end_time[origin == index].tolist() == single.end_time.tolist()
        assert alone.log_job_id[origin == index].tolist() == site.jobs.job_id.tolist()


# What holds for every federation.


@given(sites=federations())
def test_every_job_runs_once_on_a_machine_that_has_room(sites: list[PlainSite]) -> None:
    """No job is lost, starts early or runs twice, and no machine is ever overbooked."""
    schedule = replay([kernel_site(site) for site in sites])
    assert len(schedule) == sum(len(site.jobs) for site in sites)
    assert (schedule.start_time >= schedule.jobs.submit_time).all()
    assert (schedule.end_time == schedule.start_time + schedule.jobs.run_time).all()
    for index, site in enumerate(sites):
        here = schedule.executed_on == index
        machine = Replay(
            schedule.jobs.select(here), schedule.start_time[here].tolist(), site.processors
        )
        assert all(machine.processors_free(moment) >= 0 for moment in machine.moments())


@given(sites=federations())
def test_machines_obey_their_discipline_whoever_sent_the_jobs(sites: list[PlainSite]) -> None:
    """Given the jobs it was given, each machine makes the schedule it makes by itself."""
    schedule = replay([kernel_site(site) for site in sites])
    for index, site in enumerate(sites):
        here = schedule.executed_on == index
        single = simulate(
            schedule.jobs.select(here), site.processors, discipline_by_name(site.discipline)
        )
        assert single.start_time.tolist() == schedule.start_time[here].tolist()


@given(sites=federations())
def test_jobs_go_only_to_partners(sites: list[PlainSite]) -> None:
    """A job runs at home or at a site that home asks and that answers home."""
    schedule = replay([kernel_site(site) for site in sites])
    for home, on in zip(schedule.submitted_to, schedule.executed_on, strict=True):
        if home != on:
            assert sites[on].name in sites[home].policies
            assert sites[home].name in sites[on].policies
            assert "keep" not in {
                sites[home].policies[sites[on].name],
                sites[on].policies[sites[home].name],
            }


@given(sites=federations())
def test_same_federation_same_arrays(sites: list[PlainSite]) -> None:
    """Two replays of the same sites give the same bytes."""
    kernel_sites = [kernel_site(site) for site in sites]
    first = replay(kernel_sites)
    second = replay(kernel_sites)
    assert first.start_time.tobytes() == second.start_time.tobytes()
    assert first.executed_on.tobytes() == second.executed_on.tobytes()


@given(sites=federations(), rows=st.integers(1, 5))
def test_a_replay_may_be_interrupted_anywhere(sites: list[PlainSite], rows: int) -> None:
    """However many arrivals lie between two calls of a progress function, nothing changes."""
    kernel_sites = [kernel_site(site) for site in sites]
    with patch("grms.federation.federation.PROGRESS_ROWS", rows):
        interrupted = replay(kernel_sites)
    whole = replay(kernel_sites)
    assert interrupted.start_time.tolist() == whole.start_time.tolist()
    assert interrupted.executed_on.tolist() == whole.executed_on.tolist()


# The caller's mistakes.


def test_a_federation_needs_a_site() -> None:
    """No site is no federation."""
    with pytest.raises(ValueError, match="0 sites"):
        replay([])


@pytest.mark.parametrize("host", [replay, replay_alone])
def test_two_sites_of_one_name_are_refused(host: Callable[[list[Site]], Schedule]) -> None:
    """The error names the name."""
    jobs = JobTable.empty()
    with pytest.raises(ValueError, match="'kth'"):
        host([Site("kth", 2, jobs), Site("kth", 3, jobs)])


@pytest.mark.parametrize("host", [replay, replay_alone])
def test_a_job_wider_than_its_home_is_refused(host: Callable[[list[Site]], Schedule]) -> None:
    """The error names the job and the site; a wider partner is no help."""
    jobs = JobTable.from_columns(submit_time=[0, 1], processors=[1, 3], run_time=[1, 1])
    small = Site("small", 2, jobs, transfer_policies={"big": AcceptWhenFit()})
    big = Site("big", 9, JobTable.empty(), transfer_policies={"small": AcceptWhenFit()})
    with pytest.raises(ValueError, match=r"job 2 needs 3 processors.*'small'"):
        host([small, big])


@pytest.mark.parametrize("host", [replay, replay_alone])
def test_a_job_that_outlives_its_request_is_refused(host: Callable[[list[Site]], Schedule]) -> None:
    """Sites promise each other by requests; the error names the job."""
    jobs = OverrunTable.from_columns(
        submit_time=[0], processors=[1], run_time=[9], requested_time=[5]
    )
    with pytest.raises(ValueError, match=r"job 1 runs for 9 s and has requested 5 s.*'kth'"):
        host([Site("kth", 2, jobs)])


@pytest.mark.parametrize("stranger", ["nowhere", "a"])
def test_a_policy_for_a_stranger_is_refused(stranger: str) -> None:
    """A policy or a place in the order for nobody, or for oneself, is a mistake."""
    a, b = Site("a", 2, JobTable.empty()), Site("b", 2, JobTable.empty())
    with pytest.raises(ValueError, match="a transfer policy for"):
        replay([replace(a, transfer_policies={stranger: AcceptWhenFit()}), b])
    with pytest.raises(ValueError, match="location order"):
        replay([replace(a, location_policy=FixedOrder((stranger,))), b])


def test_a_replay_counts_open_jobs_where_it_is_to() -> None:
    """A partner that sits on a job sinks behind one that completes them, before its job has ended.

    Site a is full, and gives b a job at 1 that ends at 11. At 2 that job counts, if open ones do, and c is
    asked first; so c has the job of 1000 s. At 20 that one has waited for 18 s, longer than the 10 s that b
    took, and b is asked first. By completed jobs alone b is the first of two without history at 2, and c
    has none at 20.
    """
    jobs = JobTable.from_columns(
        submit_time=[0, 1, 2, 20], processors=[4, 1, 1, 1], run_time=[5000, 10, 1000, 10]
    )

    def site(name: str, jobs: JobTable, **more: Any) -> Site:
        others = {other: AcceptWhenFit() for other in "abc" if other != name}
        return Site(name, 4, jobs, transfer_policies=others, **more)

    for open_jobs, expected in (("ignore", [0, 1, 1, 2]), ("count", [0, 1, 2, 1])):
        schedule = replay(
            [
                site("a", jobs, location_policy=AwrtLocation(open_jobs=open_jobs)),  # type: ignore[arg-type]  # both are words
                site("b", JobTable.empty()),
                site("c", JobTable.empty()),
            ]
        )
        assert schedule.executed_on.tolist() == expected


def test_progress_counts_up_to_all_jobs() -> None:
    """Both hosts report growing counts, the last of them all jobs of all sites."""
    count = 200_000
    jobs = JobTable.from_columns(
        submit_time=np.arange(count), processors=np.ones(count), run_time=np.ones(count)
    )
    sites = [Site(name, 2, jobs) for name in ("a", "b")]
    for host in (replay, replay_alone):
        seen: list[int] = []
        host(sites, progress=seen.append)
        assert seen == sorted(seen)
        assert seen[-1] == 2 * count


def test_what_is_no_discipline_is_refused() -> None:
    """A federation says what is possible, as a machine by itself does."""
    mine: Any = SimpleNamespace(name="mine", per_event=False, scheduler=Scheduler)
    with pytest.raises(TypeError, match="a queue discipline is one of those in lrms_sim"):
        replay([Site("a", 4, JobTable.empty(), discipline=mine)])


def test_own_disciplines_know_the_ids_of_their_logs() -> None:
    """The jobs of two sites are numbered together, and each has the id of its own log."""
    seen: list[tuple[int, int]] = []

    def decide(view: Any) -> None:
        for job in view.waiting:
            if job.processors <= view.processors_free:
                seen.append((job.number, job.job_id))
                view.start(job)

    def jobs(*ids: int) -> JobTable:
        times = list(range(len(ids)))
        return JobTable.from_columns(
            job_id=list(ids), submit_time=times, processors=[1] * len(ids), run_time=[9] * len(ids)
        )

    own: Any = decide
    replay([Site("a", 4, jobs(7, 300), own), Site("b", 4, jobs(7, 12), own)])
    assert sorted(seen) == [(0, 7), (1, 7), (2, 300), (3, 12)]
