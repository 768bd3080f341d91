"""What would become of a job that is not submitted: the decision of the moment, and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.base import Ended
from grms.policy.constraints import STRICT_EXCHANGE
from grms.policy.transfer import Constrained
from grms.site.model.commands import Refusal, Refuse, ReplyPreview, SendOffer
from grms.site.model.events import Drain, OfferAnswered, PartnerDown, Preview
from grms.site.model.jobs import Load, Request
from grms.site.model.lifecycle import JobState, Outcome
from grms.util.dependencies import parse_dependencies
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


def preview(site: Conversation, **changes: Any) -> ReplyPreview:
    """Returns what would become of a job of ann's, by default where home is full; nothing else may happen."""
    values: dict[str, Any] = {
        "load": FULL,
        "user": "ann",
        "idempotency_key": "try",
        "name": "n",
        "request": REQUEST,
        "payload": b"run",
    }
    before = (len(site.journal), site.state.memory.next_job)
    commands = site(Preview, **{**values, **changes})
    assert kinds(commands) == ["ReplyPreview"]
    assert (len(site.journal), site.state.memory.next_job) == before
    return one(commands, ReplyPreview)


def test_home_takes_what_it_would_rather_run() -> None:
    """No partner is asked; why is said in numbers of this machine."""
    found = preview(Conversation(settings(transfer=KEEP)))
    assert (found.asked, found.kept, found.passed_over) == ((), True, ())
    assert found.reason == (
        "0 of 8 processors are free here, and jobs of 3 processors wait; its policy for b has it run here"
    )


def test_how_busy_home_is_is_said_where_partners_would_be_asked() -> None:
    """And where there is none to ask."""
    busy = "0 of 8 processors are free here, and jobs of 3 processors wait"
    assert preview(Conversation()).reason == busy
    alone = Conversation(up="")
    assert preview(alone).reason == f"{busy}; there is no partner to ask"
    assert preview(alone, load=Load(8, 1, 0)).reason == (
        "1 of 8 processors are free here, and nothing waits; there is no partner to ask"
    )


def test_partners_are_named_in_the_order_in_which_they_would_be_asked() -> None:
    """Those that cannot be asked are named with the reason."""
    site = Conversation()
    assert preview(site).asked == ("b", "c")
    assert preview(site, request=Request(5, 100.0)).passed_over == (
        ("c", "it could not run such a job, by what it says of its size"),
    )
    site(PartnerDown, partner="b")
    found = preview(site)
    assert (found.asked, found.passed_over) == (("c",), (("b", "it cannot be reached"),))
    found = preview(Conversation(settings(transfer={"c": KEEP["c"]})), load=FREE)
    assert found.passed_over == (("b", "no jobs are exchanged with it"),)
    found = preview(Conversation(settings(partners_asked=1)))
    assert found.asked == ("b",)
    assert found.passed_over == (("c", "no more than 1 partners are asked about one job"),)


def test_a_partner_without_credit_is_passed_over() -> None:
    """It is not asked as long as it has more work from here than it is trusted with, or its promises are not to be relied on."""
    strict = dict.fromkeys("bc", Constrained(STRICT_EXCHANGE))
    site = Conversation(settings(transfer=strict))
    assert preview(site).asked == ("b", "c")
    trust = site.state.partners["b"].trust
    trust.suspended_until = site.now + 1.0
    found = preview(site)
    assert found.asked == ("c",)
    assert found.passed_over == (
        ("b", "it has as much from here as is fair, or has broken its promises"),
    )


def test_without_a_word_of_the_batch_system_nobody_is_asked() -> None:
    """As in the decision itself."""
    found = preview(Conversation(), load=None)
    assert (found.asked, found.kept, found.passed_over) == ((), True, ())
    assert found.reason == "the batch system does not say how busy it is, so no partner is asked"


def test_what_home_cannot_run_waits_for_a_partner() -> None:
    """It is not said that home would run it; and what nobody could run is refused."""
    site = Conversation(settings(processors=2))
    found = preview(site, request=Request(8, 100.0))
    assert (found.asked, found.kept) == (("b",), False)
    assert found.reason == "processors is 8; this site has 2"
    refused = one(
        site(
            Preview,
            load=FULL,
            user="ann",
            idempotency_key="try",
            name="",
            request=Request(9, 100.0),
            payload=b"",
        ),
        Refuse,
    )
    assert refused.refusal is Refusal.INVALID
    site(Drain)
    with pytest.raises(AssertionError, match="Refuse"):
        preview(site)


def test_what_it_would_wait_for_is_said_first() -> None:
    """And if that cannot be any more, what then happens; of an array it is the first element."""
    site = Conversation(settings(transfer=KEEP))
    site.submit(load=FREE, name="n")
    site.submit(
        load=FREE,
        name="x",
        elements=ArraySpec.parse("3-4"),
        part=lambda _, __: b"",
    )
    after = parse_dependencies("afterok:a-1,afterany:a-2,singleton")
    assert preview(site, dependencies=after).held == (
        "waits for afterok:a-1, afterany:a-2, singleton"
    )
    assert preview(site, dependencies=parse_dependencies("singleton"), name="other").held == ""
    pair = {"dependencies": parse_dependencies("aftercorr:a-2"), "elements": ArraySpec.parse("3-4")}
    assert preview(site, **pair).held == "waits for aftercorr:a-2"
    for number, outcome in ((1, Outcome.FAILED), (2, Outcome.COMPLETED)):
        key = site.state.memory.jobs[number].lrms_key
        site(Ended, key=key, outcome=outcome, end_time=1.0, run_time=1.0)
    assert preview(site, dependencies=after).held == (
        "its dependency afterok:a-1 cannot be met: it would be cancelled at once"
    )
    assert preview(site, **pair).held == ""


def test_a_key_that_is_taken_names_its_job() -> None:
    """As a submission with it would; with another job it is refused."""
    site = Conversation()
    site.submit(idempotency_key="try", name="n")
    assert preview(site).known == "a-1"
    with pytest.raises(AssertionError, match="Refuse"):
        preview(site, name="another")


@given(
    free=st.integers(0, 8),
    waiting=st.integers(0, 8),
    processors=st.integers(1, 12),
    up=st.sampled_from(["", "b", "c", "bc"]),
)
def test_the_job_is_then_decided_as_was_said(
    free: int, waiting: int, processors: int, up: str
) -> None:
    """Submitted at the same moment it is offered to those partners in that order, and then goes where was said."""
    site = Conversation(up=up)
    load, request = Load(8, free, waiting), Request(processors, 100.0)
    if processors > 8:
        assert kinds(site.submit(load=load, request=request)) == ["Refuse"]
        return
    found = preview(site, load=load, request=request)
    commands, asked = site.submit(load=load, request=request), []
    while "SendOffer" in kinds(commands):
        sent = one(commands, SendOffer)
        asked.append(sent.partner)
        commands = site(
            OfferAnswered, partner=sent.partner, offer=sent.offer, accepted=False, load=load
        )
    assert tuple(asked) == found.asked
    assert found.kept
    assert site.job().state is JobState.SUBMITTING
