"""Rounds of the fault test; tests/grms/simulation/test_fault_run.py has the runs with them."""

import pytest

from grms.lrms import base
from grms.policy.rebalancing import Rebalancing
from grms.simulation.fault_run import Trial, run_trial
from grms.simulation.random_source import RandomSource
from grms.simulation.rebalance_checks import draw_rounds, has_left
from grms.site.model.jobs import GuestJob, HomeJob
from grms.site.model.lifecycle import JobState
from grms.site.model.records import JobRequeued
from grms.site.scheduler.local_jobs import LocalJobHandler
from grms.site.scheduler.transaction import Transaction


def test_rounds_of_every_kind_are_drawn() -> None:
    """With and without bounds, often and seldom; the same seed draws the same."""
    drawn = []
    for seed in range(40):
        trial = Trial(seed, reoffers=True)
        trial.run()
        drawn += [site.settings.reoffer for site in trial.sites.values()]
        again = Trial(seed)
        again.run()
        assert all(site.settings.reoffer is None for site in again.sites.values())
        draw_rounds(RandomSource(seed, 9), again.sites.values())
        assert drawn[-len(again.sites) :] == [
            site.settings.reoffer for site in again.sites.values()
        ]
    bounded = [rounds for rounds in drawn if isinstance(rounds, Rebalancing)]
    assert 0 < len(bounded) < len(drawn)
    assert {one.order for one in bounded} == {"queue", "widest"}
    assert any(one.questions for one in bounded)
    assert any(one.pause for one in bounded)


def test_what_others_cancel_has_not_left() -> None:
    """Unless its home knows it by a later key."""
    trial = Trial(3)
    trial.run()
    site = next(site for site in trial.sites.values() if list(site.state.jobs()))
    job = next(iter(site.state.jobs()))
    site.lrms.submit(job.lrms_key + "0", job.request, b"")
    ran = site.lrms.jobs[job.lrms_key + "0"]
    assert not has_left(site, ran)
    ran.by_others = True
    assert has_left(site, ran)
    ran.key = job.lrms_key
    assert not has_left(site, ran)


@pytest.mark.parametrize("seed", [15193, 19722])
def test_a_partners_job_that_stays_has_not_left(seed: int) -> None:
    """What its site has noted counts, whatever becomes of its daemon after that."""
    assert not run_trial(seed, rails=True, reoffers=True, rogues=True).problems


STAYS = (113, 951)
"""Seeds of runs in which a batch system keeps a job, and somebody else cancels it as it waits."""


@pytest.mark.parametrize("seed", STAYS)
def test_a_site_that_takes_every_cancel_for_its_own_is_found_out(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would run once more what an administrator has cancelled."""

    def answered(
        desk: LocalJobHandler, job: HomeJob | GuestJob, turn: Transaction, *, certainly_not: bool
    ) -> None:
        del certainly_not
        everything(desk, job, turn, certainly_not=False)

    assert not run_trial(seed, rails=True, reoffers=True, rogues=True).problems
    everything = LocalJobHandler._answered
    monkeypatch.setattr(LocalJobHandler, "_answered", answered)
    assert run_trial(seed, rails=True, reoffers=True, rogues=True).problems


AWAITED = (1024663,)
"""Seeds of runs in which somebody else cancels a job, which is told before a batch system refuses to let it go."""


@pytest.mark.parametrize("seed", AWAITED)
def test_a_site_that_does_not_await_the_answer_to_its_cancel_is_found_out(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would give a partner what an administrator has cancelled."""
    ended = LocalJobHandler._ended

    def at_once(
        desk: LocalJobHandler, job: HomeJob | GuestJob, news: base.Ended, turn: Transaction
    ) -> None:
        job.told_once = False
        ended(desk, job, news, turn)

    assert not run_trial(seed, rails=True, reoffers=True, rogues=True).problems
    monkeypatch.setattr(LocalJobHandler, "_ended", at_once)
    assert run_trial(seed, rails=True, reoffers=True, rogues=True).problems


def test_a_site_that_forgets_starts_it_was_not_told_of_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would run elsewhere what has started, waits again, and was cancelled by an administrator."""

    def requeued(
        _: LocalJobHandler, job: HomeJob | GuestJob, news: base.Requeued, turn: Transaction
    ) -> None:
        if job.state is JobState.RUNNING:
            turn.note(JobRequeued(turn.now, job.ref, news.reason))

    assert not run_trial(53895, rails=True, reoffers=True, rogues=True).problems
    monkeypatch.setattr(LocalJobHandler, "_requeued", requeued)
    assert run_trial(53895, rails=True, reoffers=True, rogues=True).problems
