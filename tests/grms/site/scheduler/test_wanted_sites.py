"""Jobs that only some sites may run, by the word of their users."""

from typing import Any

import pytest

from grms.lrms import base
from grms.policy.transfer import AcceptWhenFit
from grms.site.model.commands import (
    Command,
    LrmsSubmit,
    Refusal,
    Refuse,
    ReplyJob,
    ReplyPreview,
    SendOffer,
)
from grms.site.model.events import OfferAnswered, Preview, RoundDue, TimePassed
from grms.site.model.jobs import Request
from grms.site.model.lifecycle import JobState
from grms.util.job_arrays import ArraySpec
from tests.grms.site.conversation import (
    FREE,
    FULL,
    KEEP,
    REQUEST,
    Conversation,
    kinds,
    one,
    settings,
)


def declined(site: Conversation, offer: SendOffer) -> list[Command]:
    """Returns what follows when a partner declines."""
    return site(OfferAnswered, partner=offer.partner, offer=offer.offer, accepted=False, load=FULL)


def test_only_those_are_asked() -> None:
    """After them the job stays at home, if that may run it."""
    site = Conversation()
    offer = one(site.submit(sites=("c", "a")), SendOffer)
    assert offer.partner == "c"
    assert one(declined(site, offer), LrmsSubmit).lrms_key == site.job().lrms_key


def test_home_does_not_keep_what_it_may_not_run() -> None:
    """Though it would rather: the job waits, is offered again, and this is said."""
    site = Conversation(settings(transfer=KEEP))
    offer = one(site.submit(load=FREE, sites=("b",)), SendOffer)
    assert offer.partner == "b"
    assert "LrmsSubmit" not in kinds(declined(site, offer))
    job = site.job()
    assert job.state is JobState.RECEIVED
    assert job.reason == "its user wants it at b; no partner has taken it so far"
    site.restart()
    site.come_up()
    assert site.job().sites == ("b",)
    site.now += 3600.0
    assert one(site(TimePassed, load=FREE), SendOffer).partner == "b"


@pytest.mark.parametrize(("sites", "offered"), [(("a",), []), (("a", "c"), ["c"]), ((), ["b"])])
def test_a_job_that_waits_at_home_is_offered_to_those_alone(
    sites: tuple[str, ...], offered: list[str]
) -> None:
    """In rounds as when it came."""
    site = Conversation(settings(reoffer=900.0), up=())
    site.submit(load=None, sites=sites)
    site(base.Accepted, key="a/7/1")
    site.up = ("b", "c")
    site.come_up()
    commands = site(RoundDue, load=FULL)
    assert [one.partner for one in commands if isinstance(one, SendOffer)] == offered


def test_what_would_become_of_it_is_told() -> None:
    """Who is passed over as its user wants it elsewhere."""
    site = Conversation()
    values = {"user": "ann", "idempotency_key": "try", "name": "", "payload": b""}
    found = one(site(Preview, load=FULL, request=REQUEST, sites=("c",), **values), ReplyPreview)
    assert (found.asked, found.kept) == (("c",), False)
    assert found.passed_over == (("b", "its user wants it elsewhere"),)
    assert found.reason == "its user wants it at c"


def test_names_of_no_site_are_refused() -> None:
    """With those that there are; nothing is submitted."""
    site = Conversation()
    refused = one(site.submit(sites=("b", "north")), Refuse)
    assert (refused.refusal, refused.field) == (Refusal.INVALID, "sites")
    assert refused.reason == "'north': no site of that name; jobs are exchanged with b, c"
    for without, others in (({"b": AcceptWhenFit()}, "b"), ({}, "no other")):
        alone = Conversation(settings(transfer=without))
        refused = one(alone.submit(sites=("c", "a", "north")), Refuse)
        assert refused.reason == (
            f"'c', 'north': no site of that name; jobs are exchanged with {others}"
        )
    # Where it is wanted it could not run.
    refused = one(site.submit(sites=("c",), request=Request(8, 100.0)), Refuse)
    assert (refused.refusal, refused.field) == (Refusal.INVALID, "sites")
    assert (
        refused.reason
        == "its user wants it at c, and no partner of this site is known that could run it"
    )
    assert not site.state.memory.jobs


def test_a_key_is_for_the_same_sites_too() -> None:
    """The same job elsewhere is another one; so it is with arrays."""
    site = Conversation()
    array: dict[str, Any] = {"elements": ArraySpec.parse("0-1"), "part": lambda *_: b""}
    jobs: list[dict[str, Any]] = [{}, array]
    for number, more in enumerate(jobs):
        key = f"k{number}"
        first = one(site.submit(sites=("b",), idempotency_key=key, **more), ReplyJob)
        again = one(site.submit(sites=("b",), idempotency_key=key, **more), ReplyJob)
        assert again.job_id == first.job_id
        refused = one(site.submit(idempotency_key=key, **more), Refuse)
        assert refused.refusal is Refusal.PRECONDITION
