"""Rounds of offers over restarts: where one goes on, and what it knows of before."""

from collections.abc import Iterable
from typing import Any

import pytest

from grms.lrms import base
from grms.policy.rebalancing import Rebalancing
from grms.policy.transfer import AcceptWhenFit
from grms.site.model.commands import (
    Command,
    LrmsCancel,
    LrmsSubmit,
    PublishRound,
    SendOffer,
    SendResolve,
    SendWithdraw,
)
from grms.site.model.compaction import compacted
from grms.site.model.events import (
    Cancel,
    LrmsStays,
    OfferAnswered,
    PartnerUp,
    PoliciesChanged,
    Restarted,
    StatusAnswered,
)
from grms.site.model.lifecycle import GuestState
from grms.site.model.records import JobReoffered, RoundHeld
from grms.site.model.settings import PartnerSettings
from grms.site.scheduler.state import SiteState
from tests.grms.site.conversation import FULL, Conversation, kinds, offer, one, settings
from tests.grms.site.scheduler.test_rebalance import B1, C1, KEY, due, home, leaving, let_go

NO = {"load": FULL, "accepted": False}
UP = {"load": FULL, "processors": 8}


def test_after_a_restart_an_open_question_is_withdrawn() -> None:
    """The job waits, and has not started: if it is not found, it is submitted."""
    site = home()
    due(site)
    site.restart()
    submit, withdraw = site(Restarted, load=FULL)
    assert isinstance(submit, LrmsSubmit)
    assert isinstance(withdraw, SendWithdraw)
    assert (submit.lookup, submit.started) == (True, False)
    site.restart()
    assert not one(site(Restarted, load=FULL), LrmsSubmit).started


def test_after_a_restart_a_job_goes_on_leaving() -> None:
    """It is looked up, and then taken out: it may be out already."""
    site = leaving()
    site.restart()
    submit, cancel = site(Restarted, load=FULL)
    assert isinstance(submit, LrmsSubmit)
    assert submit.lookup
    assert cancel == LrmsCancel(site.last_id, KEY, only_waiting=True)
    assert one(let_go(site), SendResolve).confirm


def test_after_a_restart_a_cancelled_job_is_cancelled() -> None:
    """A place was asked for as its user cancelled it; started or not, it is to end."""
    site = home()
    due(site)
    site(Cancel, job_id="a-1", user="ann")
    site.restart()
    submit, cancel, _ = site(Restarted, load=FULL)
    assert isinstance(submit, LrmsSubmit)
    assert cancel == LrmsCancel(site.last_id, KEY)


def taken_back(site: Conversation, withdraw: SendWithdraw) -> list[Command]:
    """Lets a partner say that it has taken note of a withdrawal."""
    return site(
        StatusAnswered,
        load=FULL,
        partner=withdraw.partner,
        offer=withdraw.offer,
        question=withdraw.cause,
        status=GuestState.WITHDRAWN,
        completion=None,
    )


@pytest.mark.parametrize("compacts", [False, True])
def test_after_a_restart_a_round_goes_on(compacts: bool) -> None:
    """With the question whose answer had not come, once that offer is taken back; no answer is asked for twice."""
    site = home(2)
    due(site)
    site(OfferAnswered, load=FULL, accepted=False, **B1)
    if compacts:
        records = compacted(site.settings, lambda: site.journal)
        assert records is not None
        site.journal = records
    site.restart()
    withdraw = one(site(Restarted, load=FULL), SendWithdraw)
    site(base.Accepted, key=KEY)
    site(base.Accepted, key="a/7/2")
    site.come_up()
    assert due(site) == []
    again = one(taken_back(site, withdraw), SendOffer)
    assert (again.partner, again.offer) == ("c", offer(2))
    no = {"load": FULL, "accepted": False}
    second = one(site(OfferAnswered, partner="c", offer=offer(2), **no), SendOffer)
    assert (second.partner, second.offer, site.job(2).partner) == ("b", offer(2), "b")
    site(OfferAnswered, partner="b", offer=offer(2), **no)
    assert PublishRound in map(type, site(OfferAnswered, partner="c", offer=offer(3), **no))
    assert not site.state.memory.rounds.open
    assert kinds(due(site)) == ["SendOffer"]  # the next one


def test_after_a_restart_a_round_goes_on_behind_who_has_answered() -> None:
    """Where the job was about to leave, and then stays: the next is asked once the place is given back."""
    partners = tuple(PartnerSettings(name, 8) for name in "bcd")
    site = home(partners=partners, transfer=dict.fromkeys("bcd", AcceptWhenFit()))
    site(PartnerUp, load=FULL, partner="d", processors=8)
    assert one(due(site), SendOffer).partner == "b"
    assert kinds(site(OfferAnswered, load=FULL, accepted=True, **B1)) == ["LrmsCancel"]
    site.restart()
    site(Restarted, load=FULL)
    site(base.Accepted, key=KEY)
    site.up = ("b", "c", "d")
    site.come_up()
    assert due(site) == []
    withdraw = one(site(LrmsStays, key=KEY), SendWithdraw)
    assert one(taken_back(site, withdraw), SendOffer).partner == "c"


def test_after_a_restart_a_round_waits_for_what_is_about_to_leave() -> None:
    """The next job has its turn when the partner has started this one."""
    site = home(2)
    due(site)
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    site.restart()
    site(Restarted, load=FULL)
    site(base.Accepted, key="a/7/2")
    site.come_up()
    assert due(site) == []
    confirm = one(let_go(site), SendResolve)
    assert confirm.confirm
    told = {"question": confirm.cause, "status": GuestState.ACCEPTED, "completion": None}
    assert one(site(StatusAnswered, load=FULL, **B1, **told), SendOffer).offer == offer(2)


def test_pauses_hold_over_a_restart_and_not_over_other_rules() -> None:
    """Who has declined a job is left in peace for a period, unless a reload says how otherwise."""
    sparing = Rebalancing(900.0, pause=3600.0)
    site = home(reoffer=sparing)
    due(site)
    for partner in "bc":
        site(OfferAnswered, load=FULL, accepted=False, partner=partner, offer=offer(1))
    site.restart()
    site(Restarted, load=FULL)
    site(base.Accepted, key=KEY)
    site.come_up()
    given = site.settings
    for reoffer, asked in ((sparing, []), (Rebalancing(900.0, pause=1800.0), ["SendOffer"])):
        site(
            PoliciesChanged,
            transfer=given.transfer,
            location=given.location,
            reoffer=reoffer,
        )
        commands = due(site)
        assert [kind for kind in kinds(commands) if kind == "SendOffer"] == asked


def test_questions_without_a_yes_are_left_out_of_the_journal() -> None:
    """A job may wait for weeks; what comes after them is the same."""
    site = home()
    for number in range(1, 6):
        due(site)
        site(OfferAnswered, load=FULL, accepted=False, partner="b", offer=offer(number))
        site(OfferAnswered, load=FULL, accepted=False, partner="c", offer=offer(number))
    assert sum(isinstance(record, JobReoffered) for record in site.journal) == 10
    records = compacted(site.settings, lambda: site.journal)
    assert records is not None
    assert not any(isinstance(record, JobReoffered) for record in records)
    again = SiteState.recover(site.settings, records)
    assert again.partners["b"].next_number == 6
    assert again.partners["b"].offered == 5


def restarted(site: Conversation, up: Iterable[str] = "bcd") -> list[Command]:
    """Ends the process and begins another; two jobs are found in the batch system, some partners again."""
    site.restart()
    commands = site(Restarted, load=FULL)
    for number in (1, 2):
        site(base.Accepted, key=f"a/7/{number}")
    site.up = tuple(up)
    site.come_up()
    return commands


def three(**changes: Any) -> Conversation:
    """Returns a site with two jobs that wait, and three partners."""
    policy = settings().transfer["b"]
    site = home(
        2,
        partners=tuple(PartnerSettings(name, 8) for name in "bcd"),
        transfer=dict.fromkeys("bcd", policy),
        **changes,
    )
    site.up = ("b", "c", "d")
    site.come_up()
    return site


def test_a_round_that_has_asked_nobody_begins_where_it_is() -> None:
    """The journal ends with its first record."""
    site = home(2)
    due(site)
    assert isinstance(site.journal.pop(), JobReoffered)
    assert isinstance(site.journal[-1], RoundHeld)
    assert restarted(site)[1:] != []
    asked = one(due(site), SendOffer)
    assert (asked.partner, site.job(1).partner) == ("b", "b")


def test_a_round_that_goes_on_keeps_to_the_bound_for_a_job() -> None:
    """Two of three may be asked: b's answer counts, c's has not come and is asked for again."""
    site = three(partners_asked=2)
    due(site)
    assert one(site(OfferAnswered, **NO, **B1), SendOffer).partner == "c"
    withdraw = one(restarted(site), SendWithdraw)
    assert due(site) == []
    again = one(taken_back(site, withdraw), SendOffer)
    assert again.partner == "c"
    following = one(site(OfferAnswered, **NO, partner="c", offer=again.offer), SendOffer)
    assert following.partner != "c"
    assert site.job(2).partner == following.partner


def test_a_round_that_goes_on_has_the_turns_that_it_had() -> None:
    """After d, whose turn it was, comes b, who would have been next: neither the list's order nor d's own question count."""
    site = three(partners_asked=2)
    due(site)
    site(OfferAnswered, **NO, **B1)
    assert one(site(OfferAnswered, **NO, **C1), SendOffer).partner == "d"
    withdraw = one(restarted(site), SendWithdraw)
    due(site)
    again = one(taken_back(site, withdraw), SendOffer)
    assert (again.partner, site.job(2).partner) == ("d", "d")
    assert one(site(OfferAnswered, **NO, partner="d", offer=again.offer), SendOffer).partner == "b"


def test_a_round_that_goes_on_knows_who_has_declined() -> None:
    """B declined the first job, and is not asked about a second that is as wide and as long."""
    site = home(2, reoffer=Rebalancing(900.0))
    due(site)
    site(OfferAnswered, **NO, **B1)
    withdraw = one(restarted(site, "bc"), SendWithdraw)
    assert due(site) == []
    again = one(taken_back(site, withdraw), SendOffer)
    assert again.partner == "c"
    over = site(OfferAnswered, **NO, partner="c", offer=again.offer)
    assert over == [PublishRound(site.last_id)]
