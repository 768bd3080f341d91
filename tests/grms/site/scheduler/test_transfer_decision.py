"""Decisions within constraints, by a site's own books."""

from dataclasses import replace

import pytest

from grms.lrms import base
from grms.policy.constraints import FAIR_EXCHANGE, START_NOW, ExchangeConstraints, Promise
from grms.policy.transfer import (
    AcceptWhenFit,
    Constrained,
    TransferPolicy,
    TransferQuestion,
    UserDefinedTransfer,
)
from grms.site.model.commands import AnswerOffer, Command, Refusal, Refuse, ReplyPardon, SendOffer
from grms.site.model.compaction import compacted
from grms.site.model.events import (
    OfferAnswered,
    OfferReceived,
    Pardon,
    PoliciesChanged,
    ReportReceived,
    Resubmit,
    StatusAnswered,
    TakeBack,
)
from grms.site.model.jobs import Completion, Load, Request
from grms.site.model.lifecycle import GuestState, Outcome
from grms.site.model.records import JobPromised, PartnerPardoned, PromisesReviewed
from grms.site.scheduler.exchange_decisions import held_to, review, wants
from tests.grms.site.conversation import FULL, Conversation, offer, one, settings

FREE = Load(8, 8, 0)
QUEUED = Load(8, 4, 6)
"""Free processors, and a job that waits."""

BARE = ExchangeConstraints(guest_length=None, balance=None, promise=None)
HELD = replace(BARE, promise=Promise(tolerance=5, trust=0, suspension=1000, doublings=1))


def site(rails: ExchangeConstraints, inside: TransferPolicy | None = None) -> Conversation:
    """Returns a site of eight processors that keeps to constraints with its partner b."""
    policy = Constrained(rails) if inside is None else Constrained(rails, inside)
    return Conversation(settings(transfer={"b": policy}, elapsed_grace=1e9))


def offers(commands: list[Command]) -> list[str]:
    """Returns who is offered a job."""
    return [command.partner for command in commands if isinstance(command, SendOffer)]


def answered(home: Conversation, *, accepted: bool, number: int = 1) -> list[Command]:
    """Hands over b's answer to an offer."""
    return home(OfferAnswered, load=FULL, partner="b", offer=offer(number), accepted=accepted)


def guest(
    host: Conversation, number: int, processors: int, requested_time: float, load: Load = FREE
) -> bool:
    """Lets b offer a job; returns the answer."""
    commands = host(
        OfferReceived,
        load=load,
        partner="b",
        offer=offer(number, 9),
        settled_below=1,
        request=Request(processors, requested_time),
        payload=b"",
    )
    accepted = one(commands, AnswerOffer).accepted
    if accepted:
        host(base.Started, key=f"b/9/{number}", start_time=host.now)
    return accepted


def ended(
    home: Conversation, number: int, end_time: float, run_time: float, **more: object
) -> None:
    """Hands over b's report of an end."""
    values = {"outcome": Outcome.COMPLETED, **more}
    completion = Completion(offer(number), end_time=end_time, run_time=run_time, **values)  # type: ignore[arg-type]  # a test's own
    home(ReportReceived, load=FULL, partner="b", completions=(completion,))


# --- start now -----------------------------------------------------------------------------------


def test_what_starts_at_home_stays() -> None:
    """The batch system is asked where it answers; else certainty has to do."""
    assert offers(site(BARE).submit(FREE)) == []
    assert offers(site(BARE).submit(QUEUED)) == ["b"]
    assert offers(site(BARE).submit(replace(QUEUED, asked=lambda _w, _r: True))) == []
    assert offers(site(BARE).submit(replace(FREE, asked=lambda _w, _r: False))) == ["b"]


def test_the_question_has_the_job() -> None:
    """Its width and its requested time."""
    asked: list[tuple[int, float]] = []

    def no(width: int, requested_time: float) -> bool:
        asked.append((width, requested_time))
        return False

    site(BARE).submit(Load(8, 4, 6, no))
    assert asked == [(2, 100.0)]


def test_a_guest_is_taken_if_it_starts_at_once() -> None:
    """A yes is a promise."""
    assert guest(site(BARE), 1, 8, 50.0)
    assert not guest(site(BARE), 1, 1, 50.0, QUEUED)
    assert guest(site(BARE), 1, 1, 50.0, replace(QUEUED, asked=lambda _w, _r: True))


def test_a_batch_system_that_has_not_got_a_job_cannot_be_asked() -> None:
    """It does not know of it; what is left of the free processors is certain."""
    always = replace(FREE, asked=lambda _w, _r: True)
    for width, starts in ((6, True), (7, False)):
        host = site(BARE)
        host.submit(always)  # kept, and on its way: two processors
        assert guest(host, 1, width, 50.0, always) is starts


def test_a_policy_inside_decides_among_what_is_left() -> None:
    """Accept when fit keeps what fits, though it would wait."""
    assert offers(site(BARE, AcceptWhenFit()).submit(QUEUED)) == []
    assert offers(site(BARE, AcceptWhenFit()).submit(FULL)) == ["b"]


@pytest.mark.parametrize("constrained", [False, True], ids=["bare", "within constraints"])
def test_a_job_that_waits_already_does_not_wait_for_itself(constrained: bool) -> None:
    """What a policy is told of the queue is the others, as it was on the job's arrival."""
    told: list[int] = []

    def no(question: TransferQuestion) -> bool:
        told.append(question.processors_waiting)
        return False

    written = UserDefinedTransfer(no)
    policy = Constrained(BARE, written) if constrained else written
    host = Conversation(settings(transfer={"b": policy}))
    book = host.state.memory.books["b"]
    for waiting, waits in ((6, False), (6, True), (0, True)):
        load = Load(8, 0, waiting)
        assert not wants(
            policy, host.state.memory, book, Request(2, 50.0), load, own=True, waits=waits
        )
    # The batch system may have said that before it knew of the job.
    assert told == [6, 4, 0]


def test_a_bare_policy_is_told_the_requested_time() -> None:
    """A policy of one's own looks at it without constraints, too."""
    told: list[float] = []

    def no(question: TransferQuestion) -> bool:
        told.append(question.requested_time)
        return False

    Conversation(settings(transfer={"b": UserDefinedTransfer(no)})).submit(FREE)
    assert told == [100.0]


def test_constraints_without_start_now_do_not_ask() -> None:
    """A question to the batch system costs."""
    asked = Load(8, 8, 0, lambda _w, _r: pytest.fail("asked"))
    assert offers(site(replace(BARE, start_now=False)).submit(asked)) == ["b"]


# --- length and balance --------------------------------------------------------------------------


def lived(home: Conversation, processors: int, requested_time: float, run_time: float) -> None:
    """Lets an own job run at home."""
    home.submit(FREE, request=Request(processors, requested_time))
    job = home.job(home.state.memory.next_job - 1)
    home(base.Started, key=job.lrms_key, start_time=home.now)
    home(
        base.Ended,
        key=job.lrms_key,
        outcome=Outcome.COMPLETED,
        end_time=home.now + run_time,
        run_time=run_time,
    )


def test_a_guest_is_no_longer_than_own_jobs_allow() -> None:
    """Weighted by work: (2·30·60 + 1·20·600) / (60 + 20) = 195."""
    host = site(replace(BARE, guest_length=2.0))
    assert guest(host, 1, 1, 1e9)
    lived(host, 2, 60.0, 30.0)
    lived(host, 1, 600.0, 20.0)
    assert not guest(host, 2, 1, 391.0)
    assert guest(host, 3, 1, 390.0)
    # Of one that goes on from its state, what is left of it counts.
    policy, book = host.settings.transfer["b"], host.state.memory.books["b"]
    for left, taken in ((0.0, False), (391.0, False), (390.0, True)):
        long = Request(1, 1e6)
        assert wants(policy, host.state.memory, book, long, FREE, own=False, left=left) is taken


def test_own_jobs_count_wherever_they_ran() -> None:
    """What a partner reports, as far as it is believed."""
    home = site(replace(BARE, guest_length=1.0))
    home.submit(FULL, request=Request(2, 100.0))
    answered(home, accepted=True)
    ended(home, 1, 40.0, 40.0)
    assert (home.state.memory.own_work, home.state.memory.own_requested) == (80.0, 8000.0)
    assert not guest(home, 1, 1, 101.0)
    assert guest(home, 2, 1, 100.0)


def test_the_balance_limits_what_is_taken() -> None:
    """A day is 80 here; a job that has ended counts as what it was."""
    host = site(replace(BARE, balance=10.0, balance_weight=2.0))
    assert guest(host, 1, 2, 30.0)
    assert not guest(host, 2, 1, 21.0)
    assert guest(host, 3, 1, 20.0)
    host(base.Ended, key="b/9/1", outcome=Outcome.COMPLETED, end_time=5.0, run_time=5.0)
    assert host.state.partners["b"].taken == 30.0
    assert not guest(host, 4, 1, 51.0)
    # Twice what b has done for own users counts against it.
    host.submit(FULL)
    answered(host, accepted=True)
    ended(host, 1, 3.0, 3.0)
    assert host.state.partners["b"].given == 6.0
    assert not guest(host, 5, 1, 63.0)
    assert guest(host, 6, 1, 62.0)


# --- promises ------------------------------------------------------------------------------------


def test_one_job_at_a_time_goes_to_a_partner_without_credit() -> None:
    """Its size does not matter; each that is done as promised gives credit."""
    home = site(HELD)
    assert offers(home.submit(FULL)) == ["b"]
    answered(home, accepted=True)
    assert home.journal[-1] == JobPromised(0.0, 1)
    assert offers(home.submit(FULL)) == []
    home.now = 60.0
    ended(home, 1, 55.0, 50.0)
    assert offers(home.submit(FULL, request=Request(2, 60.0))) == ["b"]
    reviewed = home.journal[-2]
    assert reviewed == PromisesReviewed(60.0, "b", (1,), (), 200.0, 0, 0.0)
    answered(home, accepted=True, number=2)
    assert offers(home.submit(FULL, request=Request(2, 40.1))) == []
    assert offers(home.submit(FULL, request=Request(2, 40.0))) == ["b"]


def test_a_job_that_still_runs_is_no_breach_when_another_has_ended() -> None:
    """Each is looked at by its own request."""
    home = site(HELD)
    home.submit(FULL)
    answered(home, accepted=True)
    home.now = 60.0
    ended(home, 1, 55.0, 50.0)
    for number, requested_time in ((2, 60.0), (3, 40.0)):
        assert offers(home.submit(FULL, request=Request(2, requested_time))) == ["b"]
        answered(home, accepted=True, number=number)
    home.now = 100.0
    ended(home, 2, 100.0, 40.0)
    assert offers(home.submit(FULL)) == ["b"]
    assert home.journal[-2] == PromisesReviewed(100.0, "b", (2,), (), 320.0, 0, 0.0)


def test_a_look_in_vain_says_when_the_next_is_due() -> None:
    """What was due has been taken back since; until the other should be over nobody looks again."""
    home, rails = site(HELD), held_to(Constrained(HELD))
    assert rails is not None
    book = home.state.partners["b"]
    book.trust.promise(1, 0.0, 10.0, 1)
    book.trust.promise(2, 0.0, 100.0, 1)
    book.trust.drop(1)
    assert review(book, rails, 50.0) is None
    assert book.trust.due == 100.0


def test_a_late_job_breaks_the_promise() -> None:
    """Ten seconds where five are tolerated: no offer for a while, and then for twice as long."""
    home = site(HELD)
    home.submit(FULL)
    answered(home, accepted=True)
    home.now = 60.0
    ended(home, 1, 60.0, 50.0)
    assert offers(home.submit(FULL)) == []
    assert home.journal[-2] == PromisesReviewed(60.0, "b", (1,), (), 0.0, 1, 1060.0)
    home.now = 1059.9
    assert offers(home.submit(FULL)) == []
    home.now = 1060.0
    assert offers(home.submit(FULL)) == ["b"]
    answered(home, accepted=True, number=2)
    home.now = 2000.0
    assert offers(home.submit(FULL)) == []
    trust = home.state.partners["b"].trust
    assert (trust.breaches, trust.suspended_until, trust.promised[2].counted) == (2, 4000.0, True)
    # It is counted once, whatever still becomes of it.
    ended(home, 2, 2000.0, 1.0)
    home.now = 4000.0
    assert offers(home.submit(FULL)) == ["b"]
    assert (trust.breaches, trust.credit) == (2, 0.0)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.CANCELLED])
def test_a_job_that_fails_is_neither_credit_nor_breach(outcome: Outcome) -> None:
    """It may be its user's fault."""
    home = site(HELD)
    home.submit(FULL)
    answered(home, accepted=True)
    ended(home, 1, 1.0, 1.0, outcome=outcome)
    assert offers(home.submit(FULL)) == ["b"]
    trust = home.state.partners["b"].trust
    assert (trust.credit, trust.breaches, trust.promised) == (0.0, 0, {})


def test_a_job_that_an_operator_takes_out_of_its_hands_is_a_breach() -> None:
    """It would not have been done in time."""
    home = site(HELD)
    home.submit(FULL)
    answered(home, accepted=True)
    home.now = 50.0
    home(Resubmit, load=FULL, job_id="a-1", by="root")
    home.submit(FULL)
    assert home.state.partners["b"].trust.breaches == 1


def test_a_job_that_comes_back_is_no_breach() -> None:
    """The partner has ended it, as it was told."""
    home = site(HELD)
    home.submit(FULL)
    answered(home, accepted=True)
    home(TakeBack, load=FULL, job_id="a-1", by="root")
    question = home.job().question
    completion = Completion(offer(1), Outcome.CANCELLED, 0.0, 0.0)
    home(
        StatusAnswered,
        load=FREE,
        partner="b",
        offer=offer(1),
        question=question,
        status=GuestState.ENDED,
        completion=completion,
    )
    trust = home.state.partners["b"].trust
    assert (trust.promised, trust.work, trust.breaches) == ({}, 0.0, 0)


def test_nobody_is_held_to_a_promise_without_the_rule() -> None:
    """The journal has no word of it, and grows no list."""
    assert held_to(None) is None
    home = site(START_NOW)
    home.submit(FULL)
    answered(home, accepted=True)
    home.now = 1e6
    assert offers(home.submit(FULL)) == ["b"]
    assert not [r for r in home.journal if isinstance(r, JobPromised | PromisesReviewed)]
    assert home.state.partners["b"].trust.promised == {}


@pytest.mark.parametrize("compacts", [False, True])
def test_what_was_noted_survives_a_restart(compacts: bool) -> None:
    """Suspended before, suspended after, and overdue jobs are counted once."""
    home = site(HELD)
    home.submit(FULL)
    answered(home, accepted=True)
    home.now = 200.0
    assert offers(home.submit(FULL)) == []
    before = home.state.partners["b"]
    if compacts:
        short = compacted(home.settings, lambda: home.journal)
        assert short is not None
        home.journal = short
    home.restart()
    home.come_up()
    after = home.state.partners["b"]
    assert after.trust == before.trust
    assert after.trust.breaches == 1
    assert offers(home.submit(FULL)) == []
    home.now = 1200.0
    assert offers(home.submit(FULL)) == []  # one is still there
    ended(home, 1, 1200.0, 1.0)
    assert offers(home.submit(FULL)) == ["b"]


def test_other_constraints_take_what_was_noted() -> None:
    """A reload changes the numbers; books and promises stay."""
    home = site(HELD)
    home.submit(FULL)
    answered(home, accepted=True)
    patient = replace(HELD, promise=Promise(tolerance=500, trust=1000))
    partners = home.settings.partners
    home(
        PoliciesChanged,
        transfer={"b": Constrained(patient)},
        location=home.settings.location,
        partners=partners,
    )
    home.now = 200.0
    assert offers(home.submit(FULL)) == ["b"]
    assert FAIR_EXCHANGE.promise == Promise()


# --- pardon --------------------------------------------------------------------------------------


def test_a_pardon_ends_a_suspension_and_doubling_begins_anew() -> None:
    """A job that was counted is not counted again; the restart knows of it."""
    home = site(HELD)
    home.submit(FULL)
    answered(home, accepted=True)
    home.now = 200.0
    assert offers(home.submit(FULL)) == []
    reply = one(home(Pardon, partner="b", by="root"), ReplyPardon)
    assert (reply.partner, reply.breaches) == ("b", 1)
    assert home.journal[-1] == PartnerPardoned(200.0, "b", "root")
    home.restart()
    home.come_up()
    trust = home.state.partners["b"].trust
    assert (trust.breaches, trust.suspended_until, trust.overdue) == (0, 0.0, 1)
    ended(home, 1, 200.0, 1.0)
    assert offers(home.submit(FULL)) == ["b"]
    assert (trust.breaches, trust.overdue) == (0, 0)


def test_a_stranger_cannot_be_pardoned() -> None:
    """The refusal names him."""
    refusal = one(site(HELD)(Pardon, partner="z", by="root"), Refuse)
    assert (refusal.refusal, refusal.field) == (Refusal.NOT_FOUND, "partner")
    assert refusal.reason == "there is no partner 'z'"
