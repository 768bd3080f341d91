"""Own users' jobs as it was, beside the same jobs alone."""

import math
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.simulation.replay import LockStepReplay
from grms.site.accounting.accounts import Accounts
from grms.site.accounting.counterfactual import ExchangeReport, LeftOut, Traded, exchange
from grms.site.model import records
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import Record
from lrms_sim.analysis.metrics import awrt
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import Easy, Fcfs
from tests.examples import FEW
from tests.grms.site.accounting.stories import (
    PROCESSORS,
    at_home,
    at_partner,
    guest,
    random_story,
    received,
)
from tests.kernel_sites import kernel_site
from tests.oracles.exchange import figures
from tests.random_workloads import constrained_sites


def exchanged(*stories: Sequence[Record], since: float = math.inf) -> ExchangeReport:
    """Returns what exchange has brought a site of 8 processors with these stories."""
    accounts = Accounts()
    for story in stories:
        for record in story:
            accounts.take(record)
    return exchange(accounts, PROCESSORS, Fcfs(), since)


@FEW
@given(seed=st.integers(0, 2**32), since=st.sampled_from((math.inf, 300.0, 100.0, 1.0)))
def test_figures_are_those_of_the_plain_reading(seed: int, since: float) -> None:
    """Of all jobs, and by where they ran."""
    story = random_story(seed)
    found = exchanged(story, since=since)
    last = max(record.time for record in story)
    plain = figures(story, PROCESSORS, last - since)
    rows = {row.place: row for row in found.places}
    if "all" in plain:
        rows["all"] = found.total
    assert rows.keys() == plain.keys()
    for place, expected in plain.items():
        row = asdict(rows[place])
        assert {name: row[name] for name in expected} == pytest.approx(expected)


def test_a_partner_that_takes_a_job_at_once_is_worth_the_wait_alone() -> None:
    """Two jobs as wide as the machine: the second runs at a partner meanwhile."""
    found = exchanged(at_home(1, 0.0, 0.0, 60.0, 8), at_partner(2, 0.0, 0.0, 60.0, 8))
    home, near = found.places
    assert (home.mean_wait, home.mean_wait_alone, home.improvement) == (0.0, 0.0, 0.0)
    assert (near.place, near.mean_wait, near.mean_wait_alone) == ("near", 0.0, 60.0)
    assert (near.awrt, near.awrt_alone, near.improvement) == (60.0, 120.0, 0.5)
    assert found.total.improvement == pytest.approx(1 - 60 / 90)


def test_guests_that_delay_own_jobs_are_seen() -> None:
    """An own job waits for a guest; alone it would not."""
    found = exchanged(guest(1, 0.0, 0.0, 50.0, 8), at_home(1, 10.0, 50.0, 50.0, 8))
    assert found.total.mean_wait == 40.0
    assert found.total.mean_wait_alone == 0.0
    assert found.total.improvement == pytest.approx(1 - 90 / 50)
    assert found.partners == (Traded("near", 0, 0.0, 1, 400.0),)
    # The simulator knows of the guest where it replays what really ran.
    assert found.home_awrt_replayed == found.total.awrt == 90.0


def test_what_was_given_and_taken_is_counted_by_partner() -> None:
    """By the ends of jobs in the window, also of those that are not compared."""
    lie = records.ReportDisbelieved(8.0, "near", 2, "no")
    found = exchanged(
        at_partner(1, 0.0, 1.0, 5.0, 2),
        [*at_partner(2, 0.0, 1.0, 7.0, 1), lie],
        at_partner(3, 0.0, 1.0, 90.0, 1, partner="far"),
        guest(1, 0.0, 0.0, 50.0, 4),
        guest(2, 0.0, 0.0, 5.0, 4),
        since=90.0,
    )
    assert found.partners == (Traded("far", 1, 90.0, 0, 0.0), Traded("near", 2, 17.0, 2, 220.0))
    assert found.left_out == LeftOut(open=0, never_ran=0, disbelieved=1, too_wide=0)
    assert [row.place for row in found.places] == ["far", "near"]


def test_what_cannot_be_compared_is_left_out_and_counted() -> None:
    """Open jobs, those that never ran, and those that the own machine is too small for."""
    never = records.JobEnded(5.0, 2, Outcome.CANCELLED, 5.0, 0.0, "")
    found = exchanged(
        [received(1, 0.0)],
        [received(2, 0.0), never],
        at_partner(3, 0.0, 0.0, 9.0, 9),
        at_home(4, 0.0, 0.0, 9.0),
    )
    assert found.left_out == LeftOut(open=1, never_ran=1, disbelieved=0, too_wide=1)
    assert found.total.jobs == 1


def test_jobs_before_the_window_take_their_place_in_the_replay() -> None:
    """The machine alone is not empty when the window begins."""
    early, late = at_home(1, 0.0, 0.0, 100.0, 8), at_partner(2, 50.0, 50.0, 60.0, 8)
    found = exchanged(early, late, since=5.0)
    assert (found.total.jobs, found.total.mean_wait_alone) == (1, 50.0)
    assert (found.begin, found.end) == (105.0, 110.0)


def test_a_partners_clock_that_is_behind_makes_no_job_start_before_it_came() -> None:
    """Its reports are on its own clock."""
    found = exchanged(at_partner(1, 100.0, 40.0, 10.0))
    assert (found.total.mean_wait, found.total.awrt) == (0.0, 10.0)


def test_a_run_over_the_requested_time_is_replayed_as_long() -> None:
    """Batch systems end jobs a little late."""
    found = exchanged(at_home(1, 0.0, 0.0, 104.0, 8), at_home(2, 0.0, 104.0, 1.0, 8))
    assert found.total.mean_wait_alone == found.total.mean_wait == 52.0


def test_a_journal_without_jobs_has_nothing_to_say() -> None:
    """And is no error."""
    found = exchanged([])
    assert (found.total.jobs, found.places, found.partners) == (0, (), ())
    assert math.isnan(found.total.improvement)
    assert math.isnan(found.end)


def test_what_a_shortened_journal_knows_is_said() -> None:
    """Own jobs from the first that it has, partners' from the moment at which it was shortened."""
    tally = [records.SiteTally(70.0, 9)]
    found = exchanged(at_home(5, 0.0, 0.0, 60.0), tally, at_home(6, 80.0, 80.0, 10.0))
    assert (found.known_since, found.guests_known_since) == (60.0, 70.0)
    assert exchanged(at_home(5, 3.0, 4.0, 60.0)).known_since == 3.0


def test_another_discipline_replays_otherwise() -> None:
    """A narrow job passes a wide one where it delays nobody."""
    stories = [
        *at_home(1, 0.0, 0.0, 100.0, 6),
        *at_home(2, 1.0, 100.0, 100.0, 6),
        *at_home(3, 2.0, 100.0, 50.0, 2),
    ]
    accounts = Accounts()
    for record in stories:
        accounts.take(record)
    waits = [
        exchange(accounts, PROCESSORS, queue).total.mean_wait_alone for queue in (Fcfs(), Easy())
    ]
    assert waits == pytest.approx([(99 + 98) / 3, 33.0])


@pytest.mark.parametrize("seed", range(3))
def test_the_journals_of_a_federation_give_what_its_replay_gives(seed: int) -> None:
    """AWRT of each site with exchange and alone, to the last bit but for the order of sums."""
    sites = [
        kernel_site(site)
        for site in constrained_sites(np.random.default_rng(seed), 30, rounds=False)
    ]
    books = {site.name: Accounts() for site in sites}

    def note(site: str, noted: tuple[Record, ...]) -> None:
        for record in noted:
            books[site].take(record)

    together = LockStepReplay(sites, note).run()
    for index, site in enumerate(sites):
        found = exchange(books[site.name], site.processors, site.discipline)
        assert found.total.jobs == len(site.jobs)
        assert found.total.awrt == pytest.approx(awrt(together, index))
        alone = simulate(site.jobs, site.processors, site.discipline)
        assert found.total.awrt_alone == pytest.approx(awrt(alone))
        kept = (together.submitted_to == index) & (together.executed_on == index)
        assert found.home_awrt_replayed == pytest.approx(awrt(together, where=kept), nan_ok=True)
        work = sum(trade.taken_work for trade in found.partners)
        taken = (together.submitted_to != index) & (together.executed_on == index)
        assert work == pytest.approx(together.jobs.resource_consumption[taken].sum())
