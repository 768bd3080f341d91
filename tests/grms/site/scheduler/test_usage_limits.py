"""Limits of a month: of partners' jobs here, of own users' jobs there, and what is said of them."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms import base
from grms.policy.transfer import AcceptWhenFit
from grms.site.model.commands import AnswerOffer, SendOffer
from grms.site.model.events import (
    OfferAnswered,
    OfferReceived,
    OwnerTold,
    PoliciesChanged,
    ReportReceived,
    TimePassed,
)
from grms.site.model.jobs import Completion, Load, OfferId, Request
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.settings import PartnerSettings
from grms.site.model.usage import UsageLimits, Weights
from grms.site.scheduler import exchange_decisions
from lrms_sim.workload.requests import Gpus
from lrms_sim.workload.requests import Request as Needs
from tests.grms.site.conversation import FREE, FULL, Conversation, kinds, one, settings

JANUARY = 1_767_225_600.0
FEBRUARY = JANUARY + 31 * 86400.0
ASKED = Request(2, 100.0)
"""Of 200 processor seconds."""

EMPTY = Load(1000, 1000, 0)
WHOSE = "0f" * 16


def limited(**limits: Any) -> Conversation:
    """Returns a site with limits for its partner b, in the first month of 2026."""
    user = limits.pop("given_user", math.inf)
    weights = limits.pop("weights", Weights())
    partners = PartnerSettings("b", 8, UsageLimits(**limits)), PartnerSettings("c", 4)
    site = Conversation(
        settings(processors=1000, partners=partners, given_user=user, weights=weights), up=()
    )
    site.now = JANUARY + 10.0
    site.up = tuple("bc")
    site.come_up()
    return site


def offered(site: Conversation, number: int, request: Request = ASKED, partner: str = "b") -> bool:
    """Offers a partner's job, and returns whether it was accepted."""
    answer = one(
        site(
            OfferReceived,
            load=EMPTY,
            partner=partner,
            offer=OfferId(3, number),
            settled_below=1,
            request=request,
            payload=b"run",
        ),
        AnswerOffer,
    )
    return answer.accepted


def ran(site: Conversation, number: int, run_time: float) -> None:
    """Lets a partner's job run for so long, until now."""
    site(base.Started, key=f"b/3/{number}", start_time=site.now - run_time)
    site(
        base.Ended,
        key=f"b/3/{number}",
        outcome=Outcome.COMPLETED,
        end_time=site.now,
        run_time=run_time,
    )


def test_a_partner_that_has_used_up_its_month_is_declined() -> None:
    """What its open jobs may still use counts; what they have not used is free when they have ended."""
    site = limited(taken=500.0)
    assert offered(site, 1)
    assert offered(site, 2)
    assert not offered(site, 3)
    assert offered(site, 4, Request(1, 100.0))
    book = site.state.partners["b"]
    assert (book.declined_limited, book.guest_accepted) == (1, 3)
    assert book.limited == (
        "b's jobs here may use 0.1 processor hours in 2026-01: 0.0 are used, 0.1 requested by open jobs, and this one "
        "asks for 0.1 (partners.b.taken_hours_per_month)"
    )
    assert offered(site, 1, partner="c")
    site.now += 50.0
    ran(site, 1, 50.0)
    standing = exchange_decisions.taken(site.state.memory, book, site.now)
    assert (standing.used, standing.open, standing.limit) == (100.0, 300.0, 500.0)
    assert not offered(site, 5)
    assert offered(site, 6, Request(1, 100.0))


def test_a_new_month_begins_with_nothing_but_open_jobs() -> None:
    """A job that ends in it counts there, with all that it has used; the same offer has the same answer."""
    site = limited(taken=300.0)
    assert offered(site, 1)
    assert not offered(site, 2)
    site.now = FEBRUARY - 1.0
    assert not offered(site, 3)
    ran(site, 1, 100.0)
    site.now = FEBRUARY
    assert offered(site, 4)
    assert not offered(site, 2)
    assert not offered(site, 5)
    site.now = FEBRUARY + 1.0
    ran(site, 4, 50.0)
    assert offered(site, 6)
    assert not offered(site, 7)


def test_it_is_the_same_after_a_restart() -> None:
    """Sums and open jobs follow from the journal."""
    site = limited(taken=500.0, taken_user=350.0)
    for number in (1, 2):
        assert offered(site, number)
        site(OwnerTold, key=f"b/3/{number}", pseudonym=WHOSE)
    ran(site, 1, 60.0)
    before = standings(site)
    site.restart()
    assert standings(site) == before
    assert before[0] == exchange_decisions.Standing("2026-01", 120.0, 200.0, 500.0)
    assert before[1] == exchange_decisions.Standing("2026-01", 120.0, 200.0, 350.0)


def standings(site: Conversation) -> list[exchange_decisions.Standing]:
    """Returns how far partner b and one of its users are from their limits."""
    memory, book = site.state.memory, site.state.partners["b"]
    return [
        exchange_decisions.taken(memory, book, site.now),
        exchange_decisions.taken_by_user(memory, book, WHOSE, site.now),
        exchange_decisions.given(memory, book, site.now),
        exchange_decisions.given_by_user(memory, "ann", site.now),
    ]


def test_what_one_user_of_one_partner_has_used_is_not_that_of_others() -> None:
    """Of a partner all of its users count; of a user what came from that partner."""
    site = limited(taken_user=1000.0)
    for number, (partner, whose, seconds) in enumerate(
        (("b", WHOSE, 10.0), ("b", "1e" * 16, 20.0), ("c", WHOSE, 40.0)), 1
    ):
        assert offered(site, number, partner=partner)
        key = f"{partner}/3/{number}"
        site(OwnerTold, key=key, pseudonym=whose)
        ended = {"outcome": Outcome.COMPLETED, "end_time": site.now, "run_time": seconds}
        site(base.Ended, key=key, **ended)
    book = site.state.partners["b"]
    memory = site.state.memory
    assert exchange_decisions.taken_by_user(memory, book, WHOSE, site.now).used == 20.0
    assert exchange_decisions.taken_by_user(memory, book, "1e" * 16, site.now).used == 40.0
    assert exchange_decisions.taken(memory, book, site.now).used == 60.0


def test_each_user_of_a_partner_has_a_limit() -> None:
    """Known when the program comes; jobs that are taken at the same moment count."""
    site = limited(taken_user=350.0)
    for number in (1, 2, 3):
        assert offered(site, number)
    memory = site.state.memory

    def why(number: int, whose: str = WHOSE, also: tuple[str, ...] = ()) -> str:
        return exchange_decisions.why_user_not_taken(
            memory, "b", OfferId(3, number), whose, site.now, also=also
        )

    assert why(1) == ""
    assert "taken_hours_per_user" in why(2, also=("b/3/1",))
    site(OwnerTold, key="b/3/1", pseudonym=WHOSE)
    assert why(2) == (
        "jobs of its user here may use 0.1 processor hours in 2026-01: 0.0 are used, 0.1 requested by open jobs, and "
        "this one asks for 0.1 (partners.b.taken_hours_per_user)"
    )
    assert why(2, "1e" * 16) == ""
    assert why(1) == ""
    assert why(9) == ""
    assert exchange_decisions.why_user_not_taken(memory, "x", OfferId(3, 1), WHOSE, site.now) == ""


def test_an_own_user_who_has_used_up_the_month_stays_at_home() -> None:
    """The job waits here and says why; another user's goes, and so does his when the month is over."""
    site = limited(given_user=300.0)
    (sent,) = [c for c in site.submit(request=ASKED) if isinstance(c, SendOffer)]
    site(OfferAnswered, load=FULL, partner=sent.partner, offer=sent.offer, accepted=True)
    assert kinds(site.submit(request=ASKED)) == ["ReplyJob", "LrmsSubmit"]
    job = site.job(2)
    assert job.state is JobState.SUBMITTING
    assert job.reason == ""
    assert job.limited == (
        "ann's jobs at partners may use 0.1 processor hours in 2026-01: 0.0 are used, 0.1 requested by open jobs, and "
        "this one asks for 0.1 (usage.given_hours_per_user)"
    )
    assert "SendOffer" in kinds(site.submit(request=ASKED, user="bob"))
    assert "SendOffer" in kinds(site.submit(request=Request(1, 100.0)))
    site.now = FEBRUARY
    end = Completion(sent.offer, Outcome.COMPLETED, FEBRUARY - 1.0, 100.0)
    site(ReportReceived, load=FULL, partner=sent.partner, completions=(end,))
    assert exchange_decisions.given_by_user(site.state.memory, "ann", site.now).used == 0.0
    assert exchange_decisions.given_by_user(site.state.memory, "ann", JANUARY).used == 200.0
    assert "SendOffer" in kinds(site.submit(request=ASKED))


def test_what_own_users_use_at_one_partner_has_a_limit() -> None:
    """Others are asked then."""
    site = limited(given=250.0)
    first = site.submit(request=ASKED)
    assert one(first, SendOffer).partner == "b"
    site(OfferAnswered, load=FULL, partner="b", offer=one(first, SendOffer).offer, accepted=True)
    assert one(site.submit(request=ASKED, user="bob"), SendOffer).partner == "c"
    standing = exchange_decisions.given(site.state.memory, site.state.partners["b"], site.now)
    assert (standing.open, standing.limit) == (200.0, 250.0)


def test_a_job_that_home_cannot_run_says_that_a_limit_keeps_it() -> None:
    """It waits, and goes when the month is over."""
    site = limited(given_user=100.0)
    commands = site.submit(load=FREE, request=ASKED, unfit="no such node")
    assert kinds(commands) == ["ReplyJob"]
    assert (
        site.job().reason
        == "the batch system of this site cannot run it: no such node; no partner has taken it so far; ann's jobs at partners may use 0.0 processor hours in 2026-01: 0.0 are used, 0.0 requested by open jobs, and this one asks for 0.1 (usage.given_hours_per_user)"
    )
    site.now = FEBRUARY
    assert kinds(site(TimePassed, load=FREE)) == []
    site(
        PoliciesChanged,
        transfer={"b": AcceptWhenFit(), "c": AcceptWhenFit()},
        location=site.settings.location,
        given_user=math.inf,
    )
    site.now += 1000.0
    assert "SendOffer" in kinds(site(TimePassed, load=FREE))


def test_a_reload_changes_limits_and_weights() -> None:
    """At once, for what was used before as well."""
    site = limited(taken=500.0)
    gpu = Needs(2, gpus=Gpus(1, "job"), wall_time=100.0)
    assert offered(site, 1)
    assert offered(site, 2)
    assert not offered(site, 3)
    site(
        PoliciesChanged,
        transfer={"b": AcceptWhenFit()},
        location=site.settings.location,
        partners=(PartnerSettings("b", 8, UsageLimits(taken=1000.0)),),
        weights=Weights(0.5, 0.0, 8.0),
    )
    assert offered(site, 4)
    book = site.state.partners["b"]
    assert exchange_decisions.taken(site.state.memory, book, site.now).open == 300.0
    why = exchange_decisions.why_not_taken(site.state.memory, book, Request.of(gpu), site.now)
    assert "0.3 weighted hours" in why
    assert "asks for 0.3" in why or "asks for 0.2" in why


def test_no_limit_costs_nothing_to_check() -> None:
    """And says nothing; nan and less than nothing are no limits."""
    site = limited()
    for number in range(1, 20):
        assert offered(site, number, Request(10, 1e6))
    assert site.state.partners["b"].limited == ""
    for wrong in (-1.0, math.nan):
        with pytest.raises(ValueError, match="a limit of a month"):
            UsageLimits(taken=wrong)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.floats(0.1, 1e5), st.booleans()), max_size=12),
    st.floats(1.0, 1e5),
)
def test_a_limit_is_never_exceeded(jobs: list[tuple[int, float, bool]], limit: float) -> None:
    """However long what is accepted runs within its request; and what is open never rests when all have ended."""
    site = limited(taken=limit)
    memory, book = site.state.memory, site.state.partners["b"]
    open_ = []
    for number, (processors, time, ends) in enumerate(jobs, 1):
        if offered(site, number, Request(processors, time)):
            open_.append((number, time))
        if ends and open_:
            ran(site, *open_.pop(0))
        standing = exchange_decisions.taken(memory, book, site.now)
        assert standing.used + standing.open <= limit * (1 + 1e-9) + 0.01
    for each in open_:
        ran(site, *each)
    standing = exchange_decisions.taken(memory, book, site.now)
    assert standing.open == 0.0
    assert standing.used <= limit * (1 + 1e-9) + 0.01


def test_a_job_given_back_leaves_nothing_open() -> None:
    """The batch system has refused it."""
    site = limited(taken=500.0)
    assert offered(site, 1)
    site(base.Ended, key="b/3/1", outcome=Outcome.CANCELLED, end_time=site.now, run_time=0.0)
    assert (
        exchange_decisions.taken(site.state.memory, site.state.partners["b"], site.now).open == 0.0
    )
