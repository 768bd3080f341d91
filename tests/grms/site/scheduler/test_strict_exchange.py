"""Strict exchange at a site: looks at its account, how guests are taken, and what it does with its own jobs."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from grms.lrms import base
from grms.lrms.base import LrmsJob
from grms.lrms.simulated.machine import SteppedMachine
from grms.policy.constraints import STRICT_EXCHANGE, AccountRules, ExchangeConstraints
from grms.policy.transfer import (
    AlwaysAgree,
    Constrained,
    TransferQuestion,
    UserDefinedTransfer,
)
from grms.site.model.commands import (
    AnswerOffer,
    Command,
    LrmsSubmit,
    ProtectGuests,
    SendOffer,
)
from grms.site.model.compaction import compacted
from grms.site.model.events import (
    AccountDue,
    OfferAnswered,
    OfferReceived,
    PoliciesChanged,
    ReportReceived,
    ResolveReceived,
    Restarted,
    RoundDue,
    StateFetched,
    TimePassed,
)
from grms.site.model.jobs import Completion, GuestRef, Load, OfferId, Request
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.records import AccountLooked, DebtNoted, GuestCharged, JobSentHome, Record
from grms.site.model.settings import SiteSettings
from grms.site.runtime.executor_recovery import waiting
from grms.site.scheduler.state import SiteState
from lrms_sim.scheduling.disciplines import Fcfs
from tests.grms.site.conversation import FREE, FULL, REQUEST, Conversation, kinds, one, settings

STRICT = Constrained(STRICT_EXCHANGE)
RUN = Constrained(ExchangeConstraints(account=AccountRules(guests="run")))
IDLE = replace(FREE, processors_idle=FREE.processors_free)
HOUR = 3600.0


def site_of(policy: Constrained = STRICT, **more: Any) -> Conversation:
    """Returns a site that keeps an account of itself."""
    given = settings(requeue="allow")
    transfer = dict.fromkeys(given.transfer, policy)
    return Conversation(replace(given, transfer=transfer, **more))


def offered(site: Conversation, number: int = 1, load: Load = IDLE, **more: Any) -> list[Command]:
    """Lets partner b offer a job that may be run again, unless something else is said."""
    given: dict[str, Any] = {"rerun": True, "request": REQUEST, "payload": b"run", **more}
    return site(
        OfferReceived,
        load=load,
        partner="b",
        offer=OfferId(3, number),
        settled_below=1,
        **given,
    )


def out_of_credit(site: Conversation) -> list[Command]:
    """Lets an own job wait that would run alone, until the account is looked at."""
    site.submit(load=FULL)
    for partner in ("b", "c"):
        job = site.job()
        if job.partner:
            site(OfferAnswered, load=FULL, partner=partner, offer=job.offer, accepted=False)
    site.now += 2 * HOUR
    return site(AccountDue)


# --- looks at the account ------------------------------------------------------------------------


def test_a_turn_is_in_the_journal_before_the_batch_system_is_told() -> None:
    site = site_of()
    assert site(AccountDue) == []
    assert site.journal == [AccountLooked(0.0)]
    assert one(out_of_credit(site), ProtectGuests).on is False
    assert site(AccountDue) == []  # there is one look in a period
    site(base.Started, key=site.job().lrms_key, start_time=site.now)
    site.now += HOUR
    assert one(site(TimePassed, load=FULL), ProtectGuests).on is True


def test_a_look_is_remembered_with_the_guests_of_then_across_restarts() -> None:
    """Also where the journal was shortened: two hours are one point."""
    site = site_of()
    offered(site)
    site(base.Accepted, key="b/3/1")
    site(base.Started, key="b/3/1", start_time=site.now)
    site(AccountDue)
    out_of_credit(site)
    account = site.state.memory.account
    assert account is not None
    first, second = account.history.points
    assert (first.time, first.looks, first.in_credit, first.protected) == (0.0, 1, 1, 1)
    assert (second.time, second.looks, second.in_credit, second.late) == (7200.0, 1, 0, 1)
    assert (second.protected, second.preemptible, second.staying) == (0, 1, 0)
    journal = list(site.journal)
    site.journal = compacted(site.settings, lambda: journal) or journal
    site.restart()
    again = site.state.memory.account
    assert again is not None
    assert repr(again.history.points) == repr(account.history.points)


def test_a_round_comes_after_the_look_of_its_moment() -> None:
    site = site_of(reoffer=900.0)
    out_of_credit(site)
    site(base.Started, key=site.job().lrms_key, start_time=site.now)
    site.now += HOUR
    said = site(RoundDue, load=FULL)
    assert kinds(said) == ["ProtectGuests", "PublishRound"]


@pytest.mark.parametrize("short", [False, True])
def test_after_a_restart_it_is_told_again(short: bool) -> None:
    """A daemon may have died in between, and the batch system may have forgotten it."""
    site = site_of()
    out_of_credit(site)
    if short:
        journal = list(site.journal)
        again = compacted(site.settings, lambda: journal)
        site.journal = journal if again is None else again
    before = site.state.memory.account
    site.restart()
    account = site.state.memory.account
    assert account is not None
    assert before is not None
    assert account.record() == before.record()
    assert kinds(site(Restarted, load=FULL))[0] == "ProtectGuests"


def test_the_rule_can_be_switched_on_and_off() -> None:
    """An account that begins knows of all jobs that the journal still has."""
    site = Conversation(settings(requeue="allow"))
    site.submit(load=FREE)
    site.now += 2 * HOUR
    given = site.settings
    strict = dict.fromkeys(given.transfer, STRICT)
    said = site(PoliciesChanged, transfer=strict, location=given.location)
    assert one(said, ProtectGuests).on is True
    assert one(site(AccountDue), ProtectGuests).on is False
    said = site(PoliciesChanged, transfer=given.transfer, location=given.location)
    assert one(said, ProtectGuests).on is False
    assert site.state.memory.account is None
    assert site(AccountDue) == []


# --- guests --------------------------------------------------------------------------------------


def test_a_site_in_credit_takes_a_guest_as_protected() -> None:
    site = site_of()
    said = offered(site)
    assert one(said, AnswerOffer).accepted
    handed = one(said, LrmsSubmit)
    assert (handed.preemptible, handed.protected, handed.at_once) == (True, True, True)


def test_a_policy_inside_is_told_how_long_a_guest_that_may_go_asks_for() -> None:
    """Or what is left of that where it goes on from its state."""
    told: list[tuple[int, float, bool]] = []

    def no(question: TransferQuestion) -> bool:
        told.append((question.job_processors, question.requested_time, question.own))
        return False

    site = site_of(Constrained(STRICT_EXCHANGE, UserDefinedTransfer(no)))
    assert not one(offered(site), AnswerOffer).accepted
    assert not one(offered(site, 2, left=40.0), AnswerOffer).accepted
    assert told == [(2, 100.0, False), (2, 40.0, False)]


def test_a_site_without_credit_takes_it_as_preemptible() -> None:
    site = site_of()
    out_of_credit(site)
    handed = one(offered(site), LrmsSubmit)
    assert (handed.preemptible, handed.protected) == (True, False)


def test_what_others_hold_is_not_idle_though_own_jobs_may_have_it() -> None:
    site = site_of()
    hidden = Load(8, 8, 0, processors_idle=1)
    assert not one(offered(site, load=hidden), AnswerOffer).accepted


def test_without_an_account_a_batch_system_that_is_polled_has_what_nobody_uses() -> None:
    """Policies know of no guests that may be ended; a simulated one is asked, and knows better."""
    memory = Conversation(settings()).state.memory
    polled = Load(8, 8, 0, processors_idle=1)
    for told, free in ((polled, 1), (replace(polled, asked=lambda _width, _time: True), 8)):
        load = memory.load(told)
        assert load is not None
        assert load.processors_free == free
    assert site_of().state.memory.load(polled) is polled


def test_guests_of_a_batch_system_that_counts_them_as_used_are_room_for_own_jobs() -> None:
    """So an own job that starts at once by ending guests is offered to nobody."""
    site = site_of()
    out_of_credit(site)
    site(base.Started, key=site.job().lrms_key, start_time=site.now)
    offered(site, request=Request(6, 100.0), load=Load(8, 6, 0))
    site(base.Accepted, key="b/3/1")
    site(base.Started, key="b/3/1", start_time=site.now)
    assert site.state.memory.hidden() == 6
    assert "LrmsSubmit" in kinds(site.submit(load=Load(8, 0, 0), request=Request(6, 50.0)))
    assert "SendOffer" in kinds(site.submit(load=Load(8, 0, 0), request=Request(8, 50.0)))


def test_a_guest_that_may_not_be_run_again_is_taken_as_where_guests_run_to_their_ends() -> None:
    """Old partners say nothing of it."""
    site = site_of()
    handed = one(offered(site, rerun=False), LrmsSubmit)
    assert (handed.preemptible, handed.protected, handed.at_once) == (False, False, False)
    out_of_credit(site)
    assert not one(offered(site, 2, rerun=False), AnswerOffer).accepted


def test_of_a_guest_that_writes_its_state_no_more_is_lost_than_since_it_did() -> None:
    """So one that is too long to be lost as a whole is taken; and one that goes on counts for what is left."""
    site = site_of()
    site.submit(load=FREE, request=Request(2, 100.0))
    key = site.job().lrms_key
    site(base.Started, key=key, start_time=0.0)
    site.now = 100.0
    site(base.Ended, key=key, outcome=Outcome.COMPLETED, end_time=100.0, run_time=100.0)
    long = Request(2, 100_000.0)
    assert not one(offered(site, 1, request=long), AnswerOffer).accepted
    handed = one(offered(site, 2, request=long, checkpoint=60.0), LrmsSubmit)
    assert (handed.preemptible, handed.at_once) == (True, True)
    assert one(offered(site, 3, request=long, left=90.0), AnswerOffer).accepted


def test_where_guests_run_to_their_ends_the_account_has_to_cover_them() -> None:
    site = site_of(RUN)
    handed = one(offered(site), LrmsSubmit)
    assert (handed.preemptible, handed.at_once) == (False, False)
    assert kinds(out_of_credit(site)) == []  # nobody is protected here
    assert not one(offered(site, 2), AnswerOffer).accepted


def test_what_a_guest_that_runs_to_its_end_may_cost_is_noted_with_it() -> None:
    """Which is nothing where no own job has come."""
    site = site_of(RUN)
    assert one(offered(site), AnswerOffer).accepted
    charged = [each for each in site.journal if isinstance(each, GuestCharged)]
    assert charged == [GuestCharged(0.0, GuestRef("b", OfferId(3, 1)), 0.0)]


def test_a_protected_guest_whose_place_is_held_while_the_account_turns() -> None:
    """It is handed to the batch system as what it was taken for, which does not protect it any more."""
    site = site_of()
    assert one(offered(site, reserve=True), AnswerOffer).accepted
    assert one(out_of_credit(site), ProtectGuests).on is False
    handed = one(site(ResolveReceived, partner="b", offer=OfferId(3, 1), confirm=True), LrmsSubmit)
    assert (handed.preemptible, handed.protected) == (True, True)


# --- own jobs that come home ---------------------------------------------------------------------


def delegated(site: Conversation, number: int = 1, **more: Any) -> str:
    """Submits a job that a partner accepts; returns that partner."""
    partner = one(site.submit(load=FULL, **more), SendOffer).partner
    site(OfferAnswered, load=FULL, partner=partner, offer=site.job(number).offer, accepted=True)
    return partner


def comes_home(site: Conversation, number: int, ran: float, kept: float = 0.0) -> list[Command]:
    """Lets the partner of a job send it home after it has run for `ran` seconds, and written its state after `kept`."""
    job = site.job(number)
    end = Completion(job.offer, Outcome.PREEMPTED, site.now, ran, kept=kept)
    return site(ReportReceived, load=FULL, partner=job.partner, completions=(end,))


def test_a_job_that_was_sent_home_stands_where_it_stood_and_waits_for_the_next_round() -> None:
    site = site_of(reoffer=900.0)
    delegated(site)
    site.now = 10.0
    for partner in ("b", "c"):  # the second one stays at home
        if partner == "b":
            site.submit(load=FULL)
        job = site.job(2)
        if job.partner:
            site(OfferAnswered, load=FULL, partner=job.partner, offer=job.offer, accepted=False)
    assert site.job(2).state is JobState.SUBMITTING
    site.now = 60.0
    handed = one(comes_home(site, 1, 50.0), LrmsSubmit)
    assert handed.place == 0.0
    assert [job.ref for job in site.state.memory.at_lrms.values()] == [1, 2]
    for number in (1, 2):
        site(base.Accepted, key=site.job(number).lrms_key)
    asked = one(site(RoundDue, load=FULL), SendOffer)
    assert asked.offer == site.job(1).offer
    site.restart()
    assert [job.ref for job in site.state.memory.at_lrms.values()] == [1, 2]
    journal = list(site.journal)
    site.journal = compacted(site.settings, lambda: journal) or journal
    site.restart()
    assert [job.ref for job in site.state.memory.at_lrms.values()] == [1, 2]


def test_a_job_comes_home_before_a_guest_that_came_later_also_after_a_restart() -> None:
    """A machine that is made anew knows since when each waits, a partner's job too."""
    site = Conversation(
        replace(settings(requeue="allow"), transfer={"b": AlwaysAgree(), "c": STRICT})
    )
    delegated(site)
    site.now = 20.0
    assert one(offered(site, load=FULL, rerun=False, payload=b""), AnswerOffer).accepted
    site(base.Accepted, key="b/3/1")
    site.restart()
    machine = SteppedMachine.restored(
        8,
        Fcfs(),
        running=[(LrmsJob("runs", 8, 900.0), 0.0)],
        waiting=waiting(site.state.memory),
        moment=20.0,
    )
    site.now = 60.0
    handed = one(comes_home(site, 1, 30.0), LrmsSubmit)
    machine.submit(LrmsJob(handed.lrms_key, 4, 100.0, place=handed.place), 60.0)
    started = [event.key for event in machine.poll(5000.0) if isinstance(event, base.Started)]
    assert started == ["runs", *site.state.memory.at_lrms] == ["runs", handed.lrms_key, "b/3/1"]


def test_lost_work_is_a_debt_and_more_than_an_hour_of_the_machine_breaks_the_promise() -> None:
    site = site_of()
    long = Request(8, 20_000.0)
    partner = delegated(site, request=long)
    site.now = 3000.0
    comes_home(site, 1, 3000.0)
    trust = site.state.partners[partner].trust
    assert (trust.debt, trust.breaches) == (8 * 3000.0, 0)
    again = delegated(site, 2, request=long)
    assert again == partner
    site.now = 6000.0
    comes_home(site, 2, 3000.0)
    assert (trust.debt, trust.breaches) == (0.0, 1)
    assert trust.suspended_until == 6000.0 + 86_400.0
    assert sum(isinstance(each, DebtNoted) for each in site.journal) == 2
    assert sum(isinstance(each, JobSentHome) for each in site.journal) == 2
    journal = list(site.journal)
    again_read = SiteState.recover(
        site.settings, compacted(site.settings, lambda: journal) or journal
    )
    assert again_read.partners[partner].trust == trust


def test_what_a_return_counts_for_does_not_depend_on_the_policies_when_the_journal_is_read() -> (
    None
):
    site = site_of()
    partner = delegated(site)
    site.now = 50.0
    comes_home(site, 1, 40.0)
    records = [each for each in site.journal if isinstance(each, JobSentHome)]
    assert [each.responded for each in records] == [False]
    without = replace(site.settings, transfer={})
    assert without.account is None

    def response(journal: list[Record], settings: SiteSettings) -> float:
        return SiteState.recover(settings, journal).partners[partner].weighted_response

    assert response(site.journal, without) == response(site.journal, site.settings) == 0.0
    # Journals of older versions do not say it.
    old = [msgspec.structs.replace(each, responded=None) for each in records]
    older = [old[0] if each is records[0] else each for each in site.journal]
    assert response(older, site.settings) == 0.0
    assert response(older, without) > 0.0


@pytest.mark.parametrize("comes", [True, False])
def test_work_that_is_kept_is_no_debt_unless_it_does_not_come(comes: bool) -> None:
    site = site_of()
    partner = delegated(site, request=Request(2, 20_000.0), checkpoint=60.0)
    site.now, which = 3000.0, site.job(1).offer
    comes_home(site, 1, 3000.0, kept=2900.0)
    trust = site.state.partners[partner].trust
    assert trust.debt == 2 * 100.0
    said = site(
        StateFetched,
        load=FULL,
        job=1,
        partner=partner,
        offer=which,
        restored=b"state" if comes else b"",
        reason="" if comes else "it is damaged",
    )
    assert one(said, LrmsSubmit).place == 0.0  # it is offered in the next round, as without state
    assert trust.debt == 2 * (100.0 if comes else 3000.0)
    site.restart()
    assert site.state.partners[partner].trust.debt == trust.debt


def test_the_account_counts_what_was_exchanged() -> None:
    site = site_of()
    delegated(site)
    site.now = 60.0
    comes_home(site, 1, 50.0)
    account = site.state.memory.account
    assert account is not None
    assert (account.exchanged.sent_home, account.exchanged.given_lost) == (1, 100.0)
    offered(site)
    site(base.Accepted, key="b/3/1")
    site(base.Started, key="b/3/1", start_time=60.0)
    site(base.Ended, key="b/3/1", outcome=Outcome.PREEMPTED, end_time=90.0, run_time=30.0)
    assert (account.exchanged.guests_sent_home, account.exchanged.lent_lost) == (1, 60.0)
