"""What a decision is after a restart, and which offers can be made once more."""

from typing import Any

from grms.policy.transfer import AcceptWhenFit
from grms.site.model.commands import Command, SendOffer, SendResolve
from grms.site.model.events import (
    OfferAnswered,
    OfferFailed,
    PartnerDown,
    Restarted,
    StatusAnswered,
)
from grms.site.model.lifecycle import GuestState, JobState
from grms.site.model.settings import PartnerSettings
from grms.site.scheduler.outgoing_offers import begin_decision
from tests.grms.site.conversation import FULL, Conversation, kinds, offer, one, settings

B1 = {"partner": "b", "offer": offer(1)}


def answer(site: Conversation, question: SendResolve, status: GuestState | None) -> list[Command]:
    """Answers a question about an offer."""
    told = {"question": question.cause, "status": status, "completion": None}
    return site(StatusAnswered, load=FULL, partner=question.partner, offer=question.offer, **told)


def test_an_offer_that_is_asked_for_can_be_made_once_more() -> None:
    """As it was, under its number, until it is decided; its answer is that of the first."""
    site = Conversation()
    site.submit()
    assert site.state.undecided_offer("b", offer(1)) is None
    resolve = one(site(OfferFailed, load=FULL, **B1), SendResolve)
    again = site.state.undecided_offer("b", resolve.offer)
    assert again is not None
    assert (again.partner, again.offer, again.settled_below) == ("b", offer(1), 1)
    assert (again.request, again.payload, again.reserve) == (
        site.job().request,
        site.job().payload,
        False,
    )
    assert site.state.undecided_offer("c", offer(1)) is None
    assert site.state.undecided_offer("x", offer(1)) is None
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    assert (site.job().state, site.job().partner) == (JobState.DELEGATED, "b")
    assert site.state.undecided_offer("b", offer(1)) is None


def test_an_offer_that_is_taken_back_is_not_made_once_more() -> None:
    """It is to be declined from then on."""
    site = Conversation()
    site.submit()
    resolve = one(site(OfferFailed, load=FULL, **B1), SendResolve)
    assert kinds(answer(site, resolve, None)) == ["SendWithdraw"]
    assert site.state.undecided_offer("b", offer(1)) is None


def test_a_decision_waits_for_nobody() -> None:
    """Whoever is away is passed over."""
    site = Conversation()
    site(PartnerDown, partner="b")
    assert one(site.submit(), SendOffer).partner == "c"


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
        begin_decision(job, site.state.memory, site.now)
        assert job.questions_left == left
