"""What a decision is after a restart, and in a replay, where whoever has died is brought back."""

from typing import Any

from grms.policy.transfer import AcceptWhenFit
from grms.site.core.decisions import begin
from grms.site.facts.commands import Command, SendOffer, SendResolve
from grms.site.facts.events import (
    OfferAnswered,
    OfferFailed,
    PartnerDown,
    PartnerUp,
    Restarted,
    StatusAnswered,
    StatusFailed,
)
from grms.site.facts.lifecycle import GuestState, JobState
from grms.site.facts.settings import PartnerSettings
from tests.grms.site.conversation import FULL, Conversation, kinds, offer, one, settings

B1 = {"partner": "b", "offer": offer(1)}


def replayed() -> Conversation:
    """Returns a site of a replay."""
    return Conversation(settings(conducted=True))


def answer(site: Conversation, question: SendResolve, status: GuestState | None) -> list[Command]:
    """Answers a question about an offer."""
    told = {"question": question.cause, "status": status, "completion": None}
    return site(StatusAnswered, load=FULL, partner=question.partner, offer=question.offer, **told)


def come_up(site: Conversation, partner: str) -> list[Command]:
    """Brings a partner back."""
    return site(PartnerUp, load=FULL, partner=partner, processors=8)


def test_a_replayed_decision_waits_for_who_is_away() -> None:
    """The job is offered to the partner whose turn it is, when that one is there again."""
    site = replayed()
    site(PartnerDown, partner="b")
    assert kinds(site.submit()) == ["ReplyJob"]
    assert site.job().state is JobState.RECEIVED
    assert come_up(site, "c") == []
    assert one(come_up(site, "b"), SendOffer).partner == "b"
    site(PartnerDown, partner="c")
    assert site(OfferAnswered, load=FULL, accepted=False, **B1) == []
    assert come_up(site, "b") == []
    assert one(come_up(site, "c"), SendOffer).partner == "c"


def test_who_comes_back_changes_no_offer_that_is_under_way() -> None:
    """The partner whose turn it is has still to answer."""
    site = replayed()
    site.submit()
    assert (site.job().state, site.job().partner) == (JobState.OFFERING, "b")
    site(PartnerDown, partner="c")
    assert come_up(site, "c") == []
    assert (site.job().state, site.job().partner) == (JobState.OFFERING, "b")


def test_a_decision_of_a_living_site_waits_for_nobody() -> None:
    """Whoever is away is passed over."""
    site = Conversation()
    site(PartnerDown, partner="b")
    assert one(site.submit(), SendOffer).partner == "c"


def test_a_replayed_offer_is_made_again() -> None:
    """A partner that died before it had noted it is asked the same once more; nobody else is."""
    for sent in (True, False):
        site = replayed()
        site.submit()
        resolve = one(site(OfferFailed, load=FULL, sent=sent, **B1), SendResolve)
        first = one(answer(site, resolve, None), SendOffer)
        assert (first.partner, first.offer, first.settled_below) == ("b", offer(1), 1)
        assert site.job().state is JobState.RESOLVING
        again = one(site(OfferFailed, load=FULL, sent=sent, **B1), SendResolve)
        assert again.delay_s > 0
        (repeated,) = site(
            StatusFailed, load=FULL, partner="b", offer=offer(1), question=again.cause
        )
        assert isinstance(repeated, SendResolve)
        assert one(answer(site, repeated, None), SendOffer).offer == offer(1)
        site(OfferAnswered, load=FULL, accepted=True, **B1)
        assert (site.job().state, site.job().partner) == (JobState.DELEGATED, "b")
        assert site.state.partners["b"].offered == 1


def test_a_replayed_offer_that_was_noted_is_not_made_again() -> None:
    """What the partner has answered before its death holds."""
    site = replayed()
    site.submit()
    resolve = one(site(OfferFailed, load=FULL, **B1), SendResolve)
    assert one(answer(site, resolve, GuestState.DECLINED), SendOffer).partner == "c"


def test_a_replayed_decision_goes_on_after_a_restart() -> None:
    """It waits for partners that are not reached yet, those alone that were not asked before."""
    site = replayed()
    site.submit()
    site.restart()
    resolve = one(site(Restarted, load=FULL), SendResolve)
    assert answer(site, resolve, GuestState.DECLINED) == []
    assert come_up(site, "b") == []
    assert one(come_up(site, "c"), SendOffer).partner == "c"


def three(**changes: Any) -> Conversation:
    """Returns a site with three partners, of whom two are asked about a job."""
    given = settings(
        partners=tuple(PartnerSettings(name, 8) for name in "bcd"),
        transfer=dict.fromkeys("bcd", AcceptWhenFit()),
        partners_asked=2,
        **changes,
    )
    return Conversation(given, up="bcd")


def declined(site: Conversation, partner: str, number: int = 1) -> list[Command]:
    """Has a partner decline an offer."""
    return site(OfferAnswered, load=FULL, partner=partner, offer=offer(number), accepted=False)


def test_questions_before_a_restart_count() -> None:
    """No more partners are asked about a job in one decision than the site's file says."""
    site = three()
    site.submit()
    assert one(declined(site, "b"), SendOffer).partner == "c"
    site.restart()
    resolve = one(site(Restarted, load=FULL), SendResolve)
    site.come_up()
    assert kinds(answer(site, resolve, GuestState.DECLINED)) == ["LrmsSubmit"]
    assert site.job().asked == ("b", "c")


def test_a_bound_that_has_become_smaller_asks_nobody_more() -> None:
    """Less than none would stand for no bound."""
    for most, put, left in ((2, 3, 0), (2, 1, 1), (1, 1, 0)):
        site = three() if most == 2 else Conversation(settings(partners_asked=1))
        assert site.settings.questions == most
        site.submit()
        job = site.job()
        job.put = put
        begin(job, site.state.memory, site.now)
        assert job.questions_left == left
