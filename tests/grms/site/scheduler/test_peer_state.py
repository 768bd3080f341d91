"""Partners that are faulty, speak another version, or have seen more than this site's journal."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from grms.daemon.ports import free_port
from grms.site.model.commands import (
    AnswerOffer,
    LrmsSubmit,
    Refusal,
    Refuse,
    ReplyPardon,
    SendOffer,
    SendProbe,
    SendResolve,
    SendWithdraw,
)
from grms.site.model.events import (
    OfferAnswered,
    OfferDisputed,
    OfferFailed,
    OfferReceived,
    Pardon,
    PartnerDuplicated,
    PartnerFaulty,
    PartnerIncompatible,
    PartnerUp,
    PoliciesChanged,
    ProbeAnswered,
    ProbeFailed,
    ReportReceived,
    Restarted,
    StatusAnswered,
    StatusFailed,
)
from grms.site.model.jobs import Completion, OfferId
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.records import EpochBegun, PartnerFaulted, PartnerPardoned
from grms.site.scheduler.peer_state import EPOCH_CLAIMED_MAX
from tests.grms.site.conversation import (
    FREE,
    FULL,
    REQUEST,
    Conversation,
    kinds,
    offer,
    one,
    settings,
)
from tests.grms.site.daemons import Running, document, running
from tests.waiting import until

B1 = {"partner": "b", "offer": offer(1)}


def conversation(**changes: Any) -> Conversation:
    """Returns a site that probes after 10, 20, 40, 45 s."""
    return Conversation(settings(probe_first_s=10.0, probe_most_s=45.0, **changes))


def faulty(site: Conversation, **more: Any) -> list[float]:
    """Lets b talk nonsense; returns the pauses of the probes that follow."""
    said = site(PartnerFaulty, load=FULL, partner="b", reason="it says 7", **more)
    return [command.delay_s for command in said if isinstance(command, SendProbe)]


# --- faulty --------------------------------------------------------------------------------------


def test_a_faulty_partner_is_offered_nothing_until_a_probe_is_answered() -> None:
    """It is named and counted at once, and probed with an offer that was never made."""
    site = conversation()
    said = site(PartnerFaulty, load=FULL, partner="b", reason="it says 7")
    assert one(said, SendProbe) == SendProbe(site.last_id, "b", offer(1), 10.0)
    book = site.state.partners["b"]
    assert (book.faulty, book.faults) == ("it says 7", 1)
    assert site.journal == [PartnerFaulted(0.0, "b", "it says 7")]
    assert one(site.submit(), SendOffer).partner == "c"
    assert site(ProbeAnswered, load=FULL, partner="b", status=None) == []
    assert book.faulty == ""
    assert one(site.submit(), SendOffer).partner == "b"


def test_one_fault_is_one_probe() -> None:
    """What else it says meanwhile changes its reason, and neither count nor journal."""
    site = conversation()
    assert faulty(site) == [10.0]
    assert faulty(site) == []
    assert site.state.partners["b"].faults == 1
    assert len(site.journal) == 1


def test_the_pauses_double_until_an_offer_is_answered_well() -> None:
    """Who is well until it is offered something is asked less and less."""
    site = conversation()
    assert faulty(site) == [10.0]
    assert faulty(site, probed=True) == [20.0]
    site(ProbeAnswered, load=FULL, partner="b", status=GuestState.DECLINED)
    assert faulty(site) == [40.0]
    assert faulty(site, probed=True) == [45.0]
    site(ProbeAnswered, load=FULL, partner="b", status=None)
    number = one(site.submit(), SendOffer).offer.number
    site(OfferAnswered, load=FULL, partner="b", offer=offer(number), accepted=False)
    assert faulty(site) == [10.0]
    # An answer that comes while it counts as faulty is no sign of health.
    site(OfferAnswered, load=FULL, partner="b", offer=offer(number), accepted=False)
    assert faulty(site, probed=True) == [20.0]
    assert site.state.partners["b"].faults == 3


def test_a_probe_without_answer_is_repeated() -> None:
    """With the same pause: silence is no further fault. Late answers change nothing."""
    site = conversation()
    faulty(site)
    assert one(site(ProbeFailed, partner="b"), SendProbe).delay_s == 10.0
    site(ProbeAnswered, load=FULL, partner="b", status=None)
    assert site(ProbeFailed, partner="b") == []
    assert site(ProbeAnswered, load=FULL, partner="b", status=GuestState.ENDED) == []
    assert site.state.partners["b"].faulty == ""


def test_a_probe_that_is_answered_with_an_offer_never_made_is_a_fault() -> None:
    """Nobody can have accepted it."""
    site = conversation()
    faulty(site)
    said = site(ProbeAnswered, load=FULL, partner="b", status=GuestState.ACCEPTED)
    assert one(said, SendProbe).delay_s == 20.0
    assert site.state.partners["b"].faulty.endswith("an offer that was never made is accepted")


def test_who_is_no_partner_any_more_is_not_probed() -> None:
    """Nor is one that never was."""
    site = conversation()
    faulty(site)
    policies = {"c": site.settings.transfer["c"]}
    partners = site.settings.partners[1:]
    site(PoliciesChanged, transfer=policies, location=site.settings.location, partners=partners)
    assert site(ProbeFailed, partner="b") == []
    assert site.state.partners["b"].faulty == ""
    for event, more in (
        (PartnerFaulty, {"load": FULL, "reason": "x"}),
        (ProbeFailed, {}),
        (ProbeAnswered, {"load": FULL, "status": None}),
        (PartnerIncompatible, {"version": 3}),
        (PartnerDuplicated, {"duplicated": True}),
        (OfferDisputed, {"load": FULL, "offer": offer(1)}),
        (PartnerUp, {"load": FULL, "processors": 1}),
    ):
        assert site(event, partner="x", **more) == []


def test_an_open_offer_is_asked_about_all_the_same() -> None:
    """And whoever answers a withdrawal with "never heard of" is faulty, and asked after a pause."""
    site = conversation()
    site.submit()
    ask = one(site(OfferFailed, load=FULL, **B1), SendResolve)
    withdraw = one(
        site(StatusAnswered, load=FULL, **B1, question=ask.cause, status=None), SendWithdraw
    )
    said = site(StatusAnswered, load=FULL, **B1, question=withdraw.cause, status=None)
    assert kinds(said) == ["SendProbe", "SendWithdraw"]
    assert one(said, SendWithdraw).delay_s == 1.0
    assert site.state.partners["b"].faulty == (
        "it says unknown of offer 7/1, which cannot be the answer"
    )
    again = one(said, SendWithdraw)
    done = {"question": again.cause, "status": GuestState.WITHDRAWN}
    assert kinds(site(StatusAnswered, load=FULL, **B1, **done)) == ["SendOffer"]


@pytest.mark.parametrize(
    ("status", "completion"),
    [
        (GuestState.ENDED, None),
        (GuestState.ENDED, Completion(offer(2), Outcome.COMPLETED, 1.0, 1.0)),
        (GuestState.ACCEPTED, Completion(offer(1), Outcome.COMPLETED, 1.0, 1.0)),
    ],
)
def test_an_end_of_nothing_or_of_another_offer_is_a_fault(
    status: GuestState, completion: Completion | None
) -> None:
    """It closes nothing."""
    site = conversation()
    site.submit()
    ask = one(site(OfferFailed, load=FULL, **B1), SendResolve)
    said = site(
        StatusAnswered,
        load=FULL,
        **B1,
        question=ask.cause,
        status=status,
        completion=completion,
    )
    assert kinds(said) == ["SendProbe", "SendResolve"]
    assert site.job().state is JobState.RESOLVING
    assert site.state.partners["b"].faults == 1


def test_undecided_offers_count_in_the_order() -> None:
    """Who never decides sinks as who never completes does; the job itself counts once."""
    site = conversation()
    book = site.state.partners["b"]
    site.submit()
    assert book.history(0.0, count_open=True) == (0.0, 0.0)
    site(OfferFailed, load=FULL, **B1)
    site.now = 50.0
    assert book.history(50.0, count_open=True) == (200.0, 200.0 * 50.0)
    assert book.history(50.0, count_open=False) == (0.0, 0.0)
    assert one(site.submit(), SendOffer).partner == "c"
    # One that was given up on counts no more.
    book.abandoned[1] = 9
    assert book.history(50.0, count_open=True) == (0.0, 0.0)


# --- versions ------------------------------------------------------------------------------------


def test_another_version_is_a_state_of_its_own() -> None:
    """It is not offered anything until it speaks the same again."""
    site = conversation()
    site(PartnerIncompatible, partner="b", version=9)
    book = site.state.partners["b"]
    assert (book.incompatible, book.faulty, book.reachable) == (9, "", True)
    assert one(site.submit(), SendOffer).partner == "c"
    site(PartnerIncompatible, partner="b", version=0)
    assert one(site.submit(), SendOffer).partner == "b"
    site(PartnerIncompatible, partner="b", version=9)
    site(PartnerUp, load=FULL, partner="b", processors=8)
    assert book.incompatible == 0


def test_two_daemons_under_a_name_exchange_no_offers() -> None:
    """What is open goes on: it is asked about, and its end is taken; once one has ended all is as before."""
    site = conversation()
    site.submit()
    site(OfferAnswered, load=FULL, **B1, accepted=True)
    site(PartnerDuplicated, partner="b", duplicated=True)
    book = site.state.partners["b"]
    assert (book.duplicated, book.faulty, book.reachable) == (True, "", True)
    assert one(site.submit(), SendOffer).partner == "c"
    theirs: dict[str, Any] = {
        "partner": "b",
        "settled_below": 1,
        "request": REQUEST,
        "payload": b"x",
    }
    answer = site(OfferReceived, load=FREE, offer=OfferId(3, 1), **theirs)
    assert not one(answer, AnswerOffer).accepted
    ended = Completion(offer(1), Outcome.COMPLETED, 5.0, 1.0)
    site(ReportReceived, load=FULL, partner="b", completions=(ended,))
    assert site.job().state is JobState.ENDED
    site(PartnerDuplicated, partner="b", duplicated=False)
    answer = site(OfferReceived, load=FREE, offer=OfferId(3, 2), **theirs)
    assert one(answer, AnswerOffer).accepted
    first = one(site.submit(), SendOffer)
    assert first.partner == "c"  # nothing has ended there so far
    asked = site(OfferAnswered, load=FULL, partner="c", offer=first.offer, accepted=False)
    assert one(asked, SendOffer).partner == "b"


def test_a_partner_is_forgiven_its_breaches_by_an_operator() -> None:
    """Who did it is in the journal; a partner that is not there is refused."""
    site = conversation()
    unknown = site(Pardon, partner="x", by="root")
    assert unknown == [
        Refuse(site.last_id, Refusal.NOT_FOUND, "there is no partner 'x'", "partner")
    ]
    trust = site.state.partners["b"].trust
    trust.breaches, trust.suspended_until = 2, 500.0
    site.now = 7.0
    assert site(Pardon, partner="b", by="root") == [ReplyPardon(site.last_id, "b", 2)]
    assert site.journal[-1] == PartnerPardoned(7.0, "b", "root")
    assert (trust.breaches, trust.suspended_until <= site.now) == (0, True)


# --- an older journal ----------------------------------------------------------------------------


def seen(site: Conversation, epoch: int, number: int) -> list[Any]:
    """Lets b describe itself, with the last offer that it has seen."""
    given = OfferId(epoch, number)
    return site(PartnerUp, load=FULL, partner="b", processors=8, offer_seen=given)


def test_a_partner_that_has_seen_more_tells_that_the_journal_is_old() -> None:
    """A new epoch begins before it is offered anything; what it has seen of this one is no sign."""
    site = Conversation(up="c")
    seen(site, 6, 99)
    assert site.journal == []
    seen(site, 7, 1)
    why = "b has seen offer 7/1, and this journal knows of 7/0 at most: it is an older copy"
    assert site.journal == [EpochBegun(0.0, 8, why)]
    assert one(site.submit(), SendOffer).offer == OfferId(8, 1)
    seen(site, 8, 1)
    seen(site, 7, 9)
    assert site.state.memory.epoch == 8
    assert site.state.partners["b"].reachable


def test_a_partner_whose_journal_agrees_is_asked_again() -> None:
    """It has seen this site's last offer, or one of an older epoch, or is ahead of an older copy."""
    for epoch, number in ((7, 1), (6, 99), (7, 2)):
        site = Conversation(up="c")
        site.state.partners["b"].next_number = 2
        seen(site, epoch, number)
        assert site.state.partners["b"].reachable, (epoch, number)


def test_after_that_everything_is_numbered_anew() -> None:
    """Offers, and the names that the batch system knows jobs by; what is open keeps its own."""
    site = Conversation(up="b")
    site.submit(load=FREE)
    site.submit()
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    seen(site, 7, 5)
    assert site.state.memory.epoch == 8
    assert one(site.submit(load=FREE), LrmsSubmit).lrms_key == "a/8/3"
    offered = one(site.submit(), SendOffer)
    assert offered.offer == OfferId(8, 2)
    # The older one is still known by its name, and by no other.
    wrong = Completion(OfferId(8, 1), Outcome.COMPLETED, 5.0, 5.0)
    site(ReportReceived, partner="b", completions=(wrong,))
    assert site.job(2).state is JobState.DELEGATED
    right = Completion(OfferId(7, 1), Outcome.COMPLETED, 5.0, 5.0)
    site(ReportReceived, partner="b", completions=(right,))
    assert site.job(2).state is JobState.ENDED
    site.restart()
    assert site.state.memory.epoch == 8
    commands = site(Restarted, load=FULL)
    assert {entry.lrms_key for entry in commands if isinstance(entry, LrmsSubmit)} == {
        "a/7/1",
        "a/8/3",
    }
    assert one(commands, SendResolve).offer == OfferId(8, 2)


def test_a_job_from_before_is_looked_up_before_it_is_submitted() -> None:
    """It may have been submitted in the time that the journal does not know of."""
    site = Conversation(up="b")
    site.submit()
    seen(site, 7, 5)
    site(OfferAnswered, load=FULL, accepted=False, **B1)
    site.restart()
    fresh = Conversation(up="b")
    fresh.submit()
    seen(fresh, 7, 5)
    command = one(fresh(OfferAnswered, load=FULL, accepted=False, **B1), LrmsSubmit)
    assert (command.lrms_key, command.lookup) == ("a/7/1", True)
    assert not one(fresh.submit(load=FREE), LrmsSubmit).lookup


def test_a_later_epoch_was_this_sites_too() -> None:
    """The copy was put back twice, or the clock was wrong when the journal was made."""
    site = Conversation(up="c")
    seen(site, 9, 1)
    assert site.state.memory.epoch == 10
    assert seen(site, 9, 400) == []
    assert site.state.memory.epoch == 10


def test_an_epoch_that_cannot_be_is_a_fault() -> None:
    """Else a liar could use up all of them. Said twice it is one fault, with one probe."""
    site = Conversation(up="c")
    one(seen(site, EPOCH_CLAIMED_MAX, 1), SendProbe)
    assert seen(site, EPOCH_CLAIMED_MAX, 2) == []
    assert site.state.memory.epoch == 7
    book = site.state.partners["b"]
    assert not book.reachable
    assert "which no journal has" in book.faulty


def test_a_disputed_offer_was_not_taken_and_begins_an_epoch() -> None:
    """The job is decided anew; the partner is named, and probed before it is offered anything."""
    site = conversation()
    site.submit()
    said = site(OfferDisputed, load=FULL, **B1)
    assert site.state.memory.epoch == 8
    assert one(said, SendProbe).offer == OfferId(8, 2)
    assert one(said, SendOffer).partner == "c"
    assert site.state.partners["b"].faulty == "b knows offer 7/1 as that of another job"
    # Said once more it means nothing.
    assert site(OfferDisputed, load=FULL, **B1) == []
    assert site.state.memory.epoch == 8


def test_an_offer_that_was_answered_cannot_be_disputed() -> None:
    """Whoever has accepted it has it."""
    site = conversation()
    site.submit()
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    before = list(site.journal)
    assert site(OfferDisputed, load=FULL, **B1) == []
    assert (site.journal, site.state.memory.epoch) == (before, 7)
    assert site.state.partners["b"].faults == 0


def test_a_disputed_offer_of_an_older_epoch_begins_no_other() -> None:
    """One copy, one new epoch."""
    site = conversation()
    site.submit()
    seen(site, 7, 5)
    assert site.state.memory.epoch == 8
    site(OfferDisputed, load=FULL, **B1)
    assert site.state.memory.epoch == 8
    assert site.state.partners["b"].faults == 1


def test_what_was_given_up_on_before_is_withdrawn_by_its_own_name() -> None:
    """The epoch of an abandoned offer is that in which it was made."""
    site = Conversation(settings(on_lost="resubmit"), up="b")
    site.submit()
    ask = one(site(OfferFailed, load=FULL, **B1), SendResolve)
    seen(site, 7, 5)
    site.state.partners["b"].lost = True
    site(StatusFailed, load=FULL, **B1, question=ask.cause)
    assert site.state.partners["b"].abandoned_epochs == {1: 7}
    site.restart()
    assert one(site(Restarted, load=FULL), SendWithdraw).offer == OfferId(7, 1)


async def test_a_journal_that_was_put_back_is_noticed_over_the_network(tmp_path: Path) -> None:
    """As docs/operating.md says: the copy in its place, and the job of before is no other's."""

    async def away_with(site: Running, key: str, **job: Any) -> str:
        found = await site.submit(key, **job)
        job_id: str = found.job_id
        here = site.core.engine.state.job(job_id)
        assert here is not None
        await until(lambda: here.state is JobState.DELEGATED)
        return job_id

    ports = {"home": free_port(), "away": free_port()}
    home = document(tmp_path, "home", port=ports["home"], partners={"away": ports["away"]})
    away = document(tmp_path, "away", port=ports["away"], partners={"home": ports["home"]})
    journal, copy = tmp_path / "home.journal", tmp_path / "copy"
    long: dict[str, Any] = {"run_time_s": 500.0, "requested_time_s": 500.0}
    async with running(away, tmp_path) as other:
        async with running(home, tmp_path) as site:
            await site.linked()
            await other.linked()
            await site.submit("fills", processors=4, **long)
            shutil.copy(journal, copy)
            await away_with(site, "lost", **long)
        shutil.copy(copy, journal)
        async with running(home, tmp_path) as site:
            await site.linked()
            await other.linked()  # until then it declines, as it cannot call back
            memory = site.core.engine.state.memory
            assert memory.epoch == site.core.journal.epoch + 1
            job_id = await away_with(site, "new", **long)
            assert job_id == "home-2"
            guests = other.core.engine.state.partners["home"].guests
            assert sorted(guest.epoch - memory.epoch for guest in guests) == [-1, 0]
            assert other.core.engine.state.partners["home"].disputed == 0
