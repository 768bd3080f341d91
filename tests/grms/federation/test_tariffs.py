"""Partners in order of what a job would cost there."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grms.federation.federation import Federation, Site, replay
from grms.federation.sites import CheaperPartners
from grms.policy.constraints import FAIR_EXCHANGE, START_NOW
from grms.policy.location import FixedOrder
from grms.policy.transfer import AcceptWhenFit, Constrained
from grms.simulation.replay import LockStepReplay
from lrms_sim.electricity.power import DeferralRule, EasyDeferred
from lrms_sim.electricity.series import Series
from lrms_sim.electricity.synthetic import PRICE
from lrms_sim.scheduling.disciplines import Easy
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.lublin import generate
from tests.lrms_sim.electricity.test_deferral import jobs as table

HOUR = 3600.0
CHEAPER = CheaperPartners()
AWF = AcceptWhenFit()
NAMES = ("a", "b", "c")


def sites(
    tariffs: list[Series],
    jobs: list[JobTable],
    processors: int = 8,
    cheaper: CheaperPartners | None = CHEAPER,
    policy: AcceptWhenFit | Constrained = AWF,
) -> list[Site]:
    """Returns sites of one size that prefer cheaper partners."""
    names = NAMES[: len(tariffs)]
    return [
        Site(
            name,
            processors,
            own,
            Easy(),
            {other: policy for other in names if other != name},
            tariff=tariff,
            cheaper=cheaper,
        )
        for name, tariff, own in zip(names, tariffs, jobs, strict=True)
    ]


def hours(*values: float) -> Series:
    """Returns a series of hourly values."""
    return Series(
        HOUR * np.arange(len(values), dtype=np.float64), np.array(values), HOUR * len(values)
    )


def ran(found: list[Site]) -> list[str]:
    """Returns where the jobs ran, in order of arrival."""
    return [NAMES[index] for index in replay(found).executed_on]


def test_the_cheapest_partner_is_asked_first() -> None:
    """A job goes where its whole request costs least now, also if it would start at home at once."""
    tariffs = [hours(10, 10, 10, 10), hours(8, 8, 8, 8), hours(1, 1, 20, 20)]
    none = JobTable.empty()
    found = sites(tariffs, [table((0, 1, 1), (1.5, 1, 1), (2, 1, 1)), none, none])
    assert ran(found) == ["c", "b", "b"]


def test_a_saving_that_is_too_small_keeps_a_job() -> None:
    """Home keeps what would start there, unless a partner is cheaper by the saving."""
    tariffs = [Series.constant(10.0), Series.constant(9.0)]
    jobs = [table((0, 1, 1)), JobTable.empty()]
    assert ran(sites(tariffs, jobs)) == ["b"]
    rule = DeferralRule(0.0, saving=0.11)
    assert ran(sites(tariffs, jobs, cheaper=CheaperPartners(rule))) == ["a"]
    negative = [Series.constant(-1.0), Series.constant(-2.0)]
    assert ran(sites(negative, jobs)) == ["b"]
    assert ran(sites(negative[::-1], jobs)) == ["a"]


def test_dearer_partners_are_for_jobs_that_would_wait() -> None:
    """With `only` not even for these."""
    tariffs = [Series.constant(1.0), Series.constant(5.0)]
    jobs = [table((0, 8, 4), (1, 8, 1)), JobTable.empty()]
    assert ran(sites(tariffs, jobs)) == ["a", "b"]
    assert ran(sites(tariffs, jobs, cheaper=CheaperPartners(only=True))) == ["a", "a"]


def test_a_cheap_partner_may_decline() -> None:
    """It answers by its own policy, and the next one is asked."""
    tariffs = [Series.constant(9.0), Series.constant(5.0), Series.constant(1.0)]
    jobs = [table((1, 8, 1)), JobTable.empty(), table((0, 8, 4))]
    assert ran(sites(tariffs, jobs)) == ["c", "b"]
    # By constraints too: c has had no own jobs by which to say how long a guest may be.
    for rails in (START_NOW, FAIR_EXCHANGE):
        found = sites(tariffs, [jobs[0], *jobs[1:]], policy=Constrained(rails))
        assert ran(found)[0] == "c"


def test_a_partner_without_a_tariff_comes_last() -> None:
    """Nobody knows what a job costs there."""
    found = sites(
        [Series.constant(5.0), Series.constant(9.0)],
        [table((0, 8, 4), (1, 8, 1)), JobTable.empty()],
    )
    assert ran([found[0], replace(found[1], tariff=None, cheaper=None)]) == ["a", "b"]


def test_home_counts_its_planned_start() -> None:
    """A site whose jobs wait for cheap hours gives away what is cheaper than these."""
    tariffs = [hours(9, 9, 2, 9, 9, 9), Series.constant(4.0)]
    jobs = [table((0, 1, 1)), JobTable.empty()]
    rule = DeferralRule(3 * HOUR)
    found = sites(tariffs, jobs, cheaper=CheaperPartners(rule, only=True))
    found = [
        replace(site, discipline=EasyDeferred(tariff, rule))
        for site, tariff in zip(found, tariffs, strict=True)
    ]
    schedule = replay(found)
    assert (schedule.executed_on[0], schedule.start_time[0]) == (0, 2 * HOUR)
    now = sites(tariffs, jobs, cheaper=CheaperPartners(only=True))
    assert ran(now) == ["b"]


@settings(max_examples=10)
@given(st.integers(0, 1000), st.sampled_from([0.0, 0.05, 0.3]))
def test_with_room_everywhere_the_cheapest_site_has_every_job(seed: int, saving: float) -> None:
    """Against the same choice made with whole columns."""
    tariffs = [PRICE.series(20, seed=(seed, number)) for number in range(3)]
    jobs = [generate(jobs=40, processors=16, seed=seed + number) for number in range(3)]
    found = (
        Federation(
            sites(
                tariffs,
                jobs,
                processors=100_000,
                cheaper=CheaperPartners(DeferralRule(0.0, saving)),
            )
        )
        .exchange()
        .schedule
    )
    begin = found.jobs.submit_time
    end = begin + np.minimum(found.jobs.requested_time, DeferralRule().look_ahead)
    costs = np.array([each.integral(begin, end) for each in tariffs])
    home = costs[found.submitted_to, np.arange(len(begin))]
    best = costs.argmin(axis=0)
    expected = np.where(costs.min(axis=0) < home - saving * np.abs(home), best, found.submitted_to)
    assert found.executed_on.tolist() == expected.tolist()
    assert found.start_time.tolist() == begin.tolist()


def test_equal_tariffs_are_a_fixed_order() -> None:
    """Where nothing is cheaper anywhere, partners are asked in site order, to the bit."""
    jobs = [generate(jobs=300, processors=8, seed=number) for number in range(3)]
    found = sites([Series.constant(7.0)] * 3, jobs, policy=Constrained(FAIR_EXCHANGE))
    plain = [
        replace(
            site,
            cheaper=None,
            location_policy=FixedOrder(tuple(n for n in NAMES if n != site.name)),
        )
        for site in found
    ]
    assert replay(found).executed_on.tolist() == replay(plain).executed_on.tolist()
    assert replay(found).start_time.tolist() == replay(plain).start_time.tolist()


def test_what_cannot_be() -> None:
    """Whoever compares has a tariff; the states of sites know none."""
    found = sites(
        [Series.constant(5.0), Series.constant(9.0)], [table((0, 1, 1)), JobTable.empty()]
    )
    with pytest.raises(ValueError, match=r"'a' prefers partners .* has no tariff"):
        replay([replace(found[0], tariff=None), found[1]])
    with pytest.raises(ValueError, match="the state of a site does not"):
        LockStepReplay(found)
