from typing import Any

import pytest

from grms.lrms import base
from grms.policy.transfer import AlwaysKeep
from grms.site.model.commands import (
    AnswerOffer,
    AnswerStatus,
    Command,
    LrmsCancel,
    LrmsSubmit,
    Refusal,
    Refuse,
    SendReport,
)
from grms.site.model.events import (
    Drain,
    LrmsLetGo,
    LrmsRefused,
    LrmsStays,
    OfferReceived,
    PartnerIncompatible,
    ProgramCame,
    ProgramsAway,
    ReportAnswered,
    ReportFailed,
    ResolveReceived,
    Restarted,
    WithdrawReceived,
)
from grms.site.model.jobs import Completion, Exit, GuestRef, Load, OfferId, Request
from grms.site.model.lifecycle import GuestState, Outcome
from grms.site.model.records import JobRequeued, JobStarted
from grms.site.model.settings import Limits
from tests.grms.site.conversation import (
    FREE,
    FULL,
    REQUEST,
    Conversation,
    kinds,
    one,
    settings,
)

THEIRS = OfferId(3, 5)
KEY = "b/3/5"


def offered(site: Conversation, load: Load | None = FREE, **changes: Any) -> list[Command]:
    """Lets partner b offer a job."""
    given: dict[str, Any] = {
        "load": load,
        "partner": "b",
        "offer": THEIRS,
        "settled_below": 1,
        "request": REQUEST,
        "payload": b"run",
    }
    return site(OfferReceived, **{**given, **changes})


def resolved(site: Conversation, which: OfferId = THEIRS) -> AnswerStatus:
    """Lets partner b ask what became of an offer."""
    return one(site(ResolveReceived, partner="b", offer=which), AnswerStatus)


def withdrawn(
    site: Conversation, which: OfferId = THEIRS, *, cancel: bool = False
) -> list[Command]:
    """Lets partner b take an offer back."""
    return site(WithdrawReceived, partner="b", offer=which, cancel=cancel)


def ended(site: Conversation, outcome: Outcome = Outcome.COMPLETED) -> list[Command]:
    """Lets b's job run to its end."""
    site(base.Started, key=KEY, start_time=1.0)
    return site(base.Ended, key=KEY, outcome=outcome, end_time=9.0, run_time=8.0)


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [FREE, FULL])
def test_the_same_offer_has_the_same_answer(load: Load) -> None:
    """However often it comes, whatever the load is by then, and after a restart."""
    site = Conversation()
    accepted = one(offered(site, load), AnswerOffer).accepted
    assert accepted == (load is FREE)
    count = len(site.journal)
    for other in (FREE, FULL, None):
        again = offered(site, other)
        assert kinds(again) == ["AnswerOffer"]
        assert one(again, AnswerOffer).accepted == accepted
    site.restart()
    assert one(offered(site, FULL if load is FREE else FREE), AnswerOffer).accepted == accepted
    assert len(site.journal) == count


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        ({}, {"load": FULL}),
        ({}, {"load": None}),
        ({}, {"request": Request(9, 10.0)}),
        ({}, {"load": Load(1, 1, 0)}),
        ({}, {"payload": b"x" * 1_000_001}),
        ({"transfer": {}}, {}),
        ({"transfer": {"b": AlwaysKeep()}}, {}),
    ],
)
def test_what_a_site_declines(given: dict[str, Any], changes: dict[str, Any]) -> None:
    """Full, out of order, too wide, too long, without a policy, or by its policy."""
    site = Conversation(settings(**given))
    assert not one(offered(site, **changes), AnswerOffer).accepted
    assert [type(record).__name__ for record in site.journal] == ["GuestDeclined"]
    assert resolved(site).status is GuestState.DECLINED


def test_what_is_just_within_the_bounds_is_taken() -> None:
    """The widest job, the largest program, and the last number that an offer can have."""
    site = Conversation()
    last: dict[str, Any] = {"offer": OfferId(2**63 - 1, 2**63 - 1), "request": Request(8, 100.0)}
    assert one(offered(site, payload=b"x" * 1_000_000, **last), AnswerOffer).accepted


def test_a_draining_site_declines() -> None:
    """For good: the offer is declined after the drain, too."""
    site = Conversation()
    site(Drain)
    assert not one(offered(site), AnswerOffer).accepted
    site.restart()
    assert not one(offered(site), AnswerOffer).accepted


def test_a_partner_has_so_many_guests() -> None:
    """At the limit its offers are declined; acknowledged ends make room."""
    site = Conversation(settings(limits=Limits(guests_open=1)))
    assert one(offered(site), AnswerOffer).accepted
    assert not one(offered(site, offer=OfferId(3, 6)), AnswerOffer).accepted
    ended(site)
    site(ReportAnswered, partner="b", offers=(THEIRS,))
    assert one(offered(site, offer=OfferId(3, 7)), AnswerOffer).accepted


@pytest.mark.parametrize("event", [OfferReceived, ResolveReceived, WithdrawReceived])
def test_a_stranger_is_refused(event: type) -> None:
    """Nothing is said, and nothing remembered, to whom is not on the list."""
    site = Conversation()
    given: dict[type, dict[str, Any]] = {
        OfferReceived: {
            "load": FREE,
            "settled_below": 1,
            "request": REQUEST,
            "payload": b"",
        },
        ResolveReceived: {},
        WithdrawReceived: {"cancel": False},
    }
    refused = one(site(event, partner="x", offer=THEIRS, **given[event]), Refuse)
    assert refused.refusal is Refusal.FORBIDDEN
    assert "x" not in site.state.partners


@pytest.mark.parametrize(
    ("offer", "below", "field"),
    [
        (OfferId(0, 1), 1, "offer"),
        (OfferId(1, 0), 1, "offer"),
        (OfferId(2**63, 1), 1, "offer"),
        (OfferId(1, 2**63), 1, "offer"),
        (OfferId(3, 5), 6, "settled_below"),
    ],
)
def test_numbers_have_bounds(offer: OfferId, below: int, field: str) -> None:
    """A number that cannot be, and an offer that settles itself, are refused."""
    site = Conversation()
    refused = one(offered(site, offer=offer, settled_below=below), Refuse)
    assert (refused.refusal, refused.field) == (Refusal.INVALID, field)
    assert site.journal == []


# --- resolve and withdraw ------------------------------------------------------------------------


def test_what_became_of_an_offer() -> None:
    """Never heard of, accepted, ended with its completion."""
    site = Conversation()
    assert resolved(site).status is None
    assert site.journal == []
    offered(site)
    assert resolved(site).status is GuestState.ACCEPTED
    ended(site)
    answer = resolved(site)
    assert answer.status is GuestState.ENDED
    assert answer.completion == Completion(THEIRS, Outcome.COMPLETED, 9.0, 8.0)


def test_a_tombstone_declines_what_comes_late() -> None:
    """Also after a restart: it is in the journal before the withdrawal is answered."""
    site = Conversation()
    for _ in range(2):
        assert one(withdrawn(site), AnswerStatus).status is GuestState.WITHDRAWN
    assert [type(record).__name__ for record in site.journal] == ["GuestWithdrawn"]
    site.restart()
    assert not one(offered(site), AnswerOffer).accepted
    assert resolved(site).status is GuestState.WITHDRAWN


def test_an_accepted_offer_stays_accepted() -> None:
    """A withdrawal that comes too late says so, and does nothing to the job."""
    site = Conversation()
    offered(site)
    assert kinds(withdrawn(site)) == ["AnswerStatus"]
    assert one(withdrawn(site), AnswerStatus).status is GuestState.ACCEPTED


def test_a_declined_offer_stays_declined() -> None:
    """There is nothing to take back."""
    site = Conversation()
    offered(site, FULL)
    assert one(withdrawn(site), AnswerStatus).status is GuestState.DECLINED


def test_cancelling_a_guest() -> None:
    """The batch system ends it, once; its end is reported; then there is nothing to cancel."""
    site = Conversation()
    offered(site)
    first = withdrawn(site, cancel=True)
    assert one(first, LrmsCancel).lrms_key == KEY
    assert one(first, AnswerStatus).status is GuestState.ACCEPTED
    assert kinds(withdrawn(site, cancel=True)) == ["AnswerStatus"]
    report = one(ended(site, Outcome.CANCELLED), SendReport)
    assert report.completion.outcome is Outcome.CANCELLED
    after = withdrawn(site, cancel=True)
    assert one(after, AnswerStatus).status is GuestState.ENDED
    assert kinds(after) == ["AnswerStatus"]


def test_a_cancelled_guest_survives_a_restart() -> None:
    """It is looked up and cancelled again."""
    site = Conversation()
    offered(site)
    withdrawn(site, cancel=True)
    site.restart()
    lookup, cancel = site(Restarted, load=FREE)
    assert isinstance(lookup, LrmsSubmit)
    assert lookup.lookup
    assert isinstance(cancel, LrmsCancel)


# --- the end -------------------------------------------------------------------------------------


def test_the_end_is_reported_until_it_is_acknowledged() -> None:
    """After growing pauses, and after a restart; then it is forgotten."""
    site = Conversation()
    offered(site)
    pauses = [one(ended(site), SendReport).delay_s]
    for _ in range(4):
        again = site(ReportFailed, partner="b", offers=(THEIRS,))
        pauses.append(one(again, SendReport).delay_s)
    assert pauses == [0.0, 1.0, 2.0, 4.0, 4.0]
    site.restart()
    assert one(site(Restarted, load=FREE), SendReport).completion.offer == THEIRS
    site(ReportAnswered, partner="b", offers=(THEIRS, OfferId(3, 99)))
    assert site(ReportFailed, partner="b", offers=(THEIRS,)) == []
    site.restart()
    assert site(Restarted, load=FREE) == []
    assert resolved(site).status is GuestState.ENDED


def test_an_acknowledgement_before_the_end_is_nothing() -> None:
    """Whoever sends it."""
    site = Conversation()
    offered(site)
    assert site(ReportFailed, partner="b", offers=(THEIRS,)) == []
    site(ReportAnswered, partner="b", offers=(THEIRS,))
    site(ReportAnswered, partner="x", offers=(THEIRS,))
    assert site(ReportFailed, partner="x", offers=(THEIRS,)) == []
    assert resolved(site).status is GuestState.ACCEPTED


@pytest.mark.parametrize("passing", [False, True])
def test_a_guest_that_the_batch_system_refuses_goes_home_undone(passing: bool) -> None:
    """Whatever it is refused for: it has not failed, as it never began. The operator here sees why."""
    site = Conversation()
    offered(site)
    site.now = 5.0
    said = site(LrmsRefused, key=KEY, reason="main is drained", passing=passing)
    assert one(said, SendReport).completion == Completion(THEIRS, Outcome.LOST, 5.0, 0.0)
    book = site.state.partners["b"]
    assert (book.given_back, book.given_back_time) == (1, 5.0)
    assert book.given_back_why == "the batch system refused it: main is drained"
    site.restart()
    assert one(site(Restarted), SendReport).completion.outcome is Outcome.LOST


def test_a_guest_that_has_begun_and_is_refused_is_not_sent_home_undone() -> None:
    """A batch system that has forgotten the run takes it for a new one: it may have run to its end."""
    site = Conversation()
    offered(site)
    site(base.Started, key=KEY, start_time=1.0)
    site(base.Requeued, key=KEY, reason="a node failed")
    said = site(LrmsRefused, key=KEY, reason="main is drained")
    assert one(said, SendReport).completion == Completion(THEIRS, Outcome.UNKNOWN, 0.0, 0.0)
    assert one(said, LrmsCancel).lrms_key == KEY


def hindered(site: Conversation, reason: str = "main is down") -> list[Command]:
    """Lets the batch system say for what b's job waits."""
    return site(base.Hindered, key=KEY, reason=reason)


def gone(site: Conversation, **changes: Any) -> Outcome:
    """Lets b's job leave the queue; returns what its home is told of its end."""
    given = {"outcome": Outcome.CANCELLED, "end_time": 9.0, "run_time": 0.0, **changes}
    return one(site(base.Ended, key=KEY, **given), SendReport).completion.outcome


def test_a_guest_that_an_operator_lets_wait_stays() -> None:
    """He can let it start."""
    site = Conversation()
    offered(site)
    site(base.Accepted, key=KEY)
    assert site(base.Hindered, key=KEY, reason="it is held", deferred=True) == []
    assert one(hindered(site), LrmsCancel).only_waiting


@pytest.mark.parametrize("restarts", [False, True])
def test_a_guest_that_nothing_starts_any_more_goes_home_undone(restarts: bool) -> None:
    """The batch system is told to let it go if it waits; what comes of that is known after a restart, too."""
    site = Conversation()
    offered(site)
    site(base.Accepted, key=KEY)
    let_go = one(hindered(site), LrmsCancel)
    assert (let_go.lrms_key, let_go.only_waiting) == (KEY, True)
    assert site(LrmsLetGo, key=KEY, done=True) == []
    if restarts:
        site.restart()
        assert one(site(Restarted, load=FREE), LrmsSubmit).lookup
    assert gone(site) is Outcome.LOST
    assert site.state.partners["b"].given_back == 1


def test_a_guest_that_starts_before_it_leaves_stays() -> None:
    """Who cancels it then has not done so for its home."""
    site = Conversation()
    offered(site)
    hindered(site)
    site(LrmsStays, key=KEY, certain=True)
    site(base.Started, key=KEY, start_time=1.0)
    site(base.Requeued, key=KEY, reason="a node failed")
    assert hindered(site) == []
    assert gone(site) is Outcome.CANCELLED


def test_why_guests_went_home_undone_is_kept() -> None:
    """And how many: the operator here asks for both."""
    site = Conversation()

    def sent_home(number: int, reason: str, *, restarts: bool = False) -> tuple[int, str]:
        offered(site, offer=OfferId(3, number))
        key = f"b/3/{number}"
        site(base.Accepted, key=key)
        site(base.Hindered, key=key, reason=reason)
        site(LrmsLetGo, key=key, done=True)
        if restarts:
            site.restart()
        site(base.Ended, key=key, outcome=Outcome.CANCELLED, end_time=9.0, run_time=0.0)
        book = site.state.partners["b"]
        return book.given_back, book.given_back_why

    assert sent_home(5, "main is down") == (1, "main is down")
    assert sent_home(6, "main is drained") == (2, "main is drained")
    assert sent_home(7, "main is down", restarts=True) == (1, "it was not started here")


@pytest.mark.parametrize(
    ("certain", "times", "outcome"),
    [(True, 1, Outcome.CANCELLED), (False, 1, Outcome.LOST), (True, 2, Outcome.LOST)],
)
def test_who_cancels_a_guest_that_was_not_let_go_has_ended_it(
    certain: bool, times: int, outcome: Outcome
) -> None:
    """Unless an attempt had no answer, or there was another before: then that may have been the cancel."""
    for restarts in (False, True):
        site = Conversation()
        offered(site)
        site(base.Accepted, key=KEY)
        for number in range(times):
            hindered(site, f"reason {number}")
        site(LrmsStays, key=KEY, certain=certain)
        if restarts:
            site.restart()
            site(Restarted, load=FREE)
        assert gone(site) is outcome


@pytest.mark.parametrize(
    ("done", "outcome"),
    [(True, Outcome.LOST), (None, Outcome.LOST), (False, Outcome.CANCELLED)],
)
@pytest.mark.parametrize("first", ["answer", "end"])
def test_the_answer_tells_who_has_cancelled_a_guest(
    first: str, done: bool | None, outcome: Outcome
) -> None:
    """Its home runs it elsewhere if it was let go, or may have been; what an administrator cancels is over."""
    site = Conversation()
    offered(site)
    site(base.Accepted, key=KEY)
    hindered(site)
    if first == "answer":
        assert site(LrmsLetGo, key=KEY, done=done) == []
        assert gone(site) is outcome
        return
    end = {"outcome": Outcome.CANCELLED, "end_time": 9.0, "run_time": 0.0}
    assert site(base.Ended, key=KEY, **end) == []
    assert hindered(site, "another reason") == []
    told = site(LrmsLetGo, key=KEY, done=done)
    assert one(told, SendReport).completion.outcome is outcome


def test_only_a_guest_that_is_to_run_is_let_go() -> None:
    """Not one whose hindrance is over, nor one that is to end anyway."""
    site = Conversation()
    offered(site)
    assert hindered(site, "") == []
    withdrawn(site, cancel=True)
    assert hindered(site) == []
    assert gone(site) is Outcome.CANCELLED


def test_an_offer_that_this_machine_would_not_start_is_declined() -> None:
    """However much of it is free: what would run the job is shut, or runs no such jobs."""

    def refuses(processors: int, requested_time: float) -> str:
        return "main is down" if (processors, requested_time) == (2, 100.0) else ""

    shut = Load(8, 8, 0, refuses=refuses)
    site = Conversation()
    assert not one(offered(site, shut), AnswerOffer).accepted
    other = {"offer": OfferId(3, 6), "request": Request(1, 100.0)}
    assert one(offered(site, shut, **other), AnswerOffer).accepted
    # One is on its way to the batch system by now; that changes nothing of the other.
    assert not one(offered(site, shut, offer=OfferId(3, 7)), AnswerOffer).accepted


# --- what need not be remembered -----------------------------------------------------------------


def test_what_is_settled_is_forgotten_and_declined() -> None:
    """The home's word makes room; whatever still comes of it is stale."""
    site = Conversation()
    for number in (1, 2):
        offered(site, FULL, offer=OfferId(3, number))
    withdrawn(site, OfferId(3, 3))
    offered(site, FREE, offer=OfferId(3, 4), settled_below=4)
    book = site.state.partners["b"]
    assert list(book.answered) == []
    assert not one(offered(site, FREE, offer=OfferId(3, 1)), AnswerOffer).accepted
    assert resolved(site, OfferId(3, 2)).status is GuestState.DECLINED
    count = len(site.journal)
    assert one(withdrawn(site, OfferId(3, 3)), AnswerStatus).status is GuestState.WITHDRAWN
    assert len(site.journal) == count
    site.restart()
    assert not one(offered(site, FREE, offer=OfferId(3, 1)), AnswerOffer).accepted


def test_a_running_guest_is_remembered_though_it_is_settled() -> None:
    """It is forgotten when its end is acknowledged."""
    site = Conversation()
    offered(site)
    offered(site, FULL, offer=OfferId(3, 6), settled_below=6)
    assert resolved(site).status is GuestState.ACCEPTED
    ended(site)
    site(ReportAnswered, partner="b", offers=(THEIRS,))
    assert resolved(site).status is GuestState.DECLINED
    assert THEIRS not in site.state.partners["b"].guests


def test_answers_have_a_limit() -> None:
    """A partner that settles nothing is refused at last, and nothing more is remembered."""
    site = Conversation(settings(limits=Limits(answers_kept=2)))
    for number in (1, 2):
        offered(site, FULL, offer=OfferId(3, number))
    for commands in (
        offered(site, FREE, offer=OfferId(3, 3)),
        withdrawn(site, OfferId(3, 4)),
    ):
        refused = one(commands, Refuse)
        assert refused.refusal is Refusal.EXHAUSTED
        assert (
            refused.reason
            == "2 answered offers are not settled, the most this site remembers of one partner; settle some of them first"
        )
    assert len(site.journal) == 2
    # Settling makes room, and so does a new journal.
    assert not one(offered(site, FULL, offer=OfferId(4, 1)), AnswerOffer).accepted
    assert site.state.partners["b"].epoch == 4


def test_a_new_epoch_makes_the_old_one_stale() -> None:
    """What comes from before the partner lost its journal is declined; its jobs go on."""
    site = Conversation()
    offered(site)
    offered(site, FULL, offer=OfferId(3, 6))
    assert one(offered(site, offer=OfferId(4, 5)), AnswerOffer).accepted
    assert not one(offered(site, offer=OfferId(3, 7)), AnswerOffer).accepted
    assert resolved(site).status is GuestState.ACCEPTED
    assert {guest.lrms_key for guest in site.state.partners["b"].guests.values()} == {
        "b/3/5",
        "b/4/5",
    }
    assert one(ended(site), SendReport).completion.offer == THEIRS
    site(ReportAnswered, partner="b", offers=(THEIRS,))
    assert THEIRS not in site.state.partners["b"].guests


def probed(site: Conversation, number: int, **changes: Any) -> bool:
    """Lets partner b offer another job; returns the answer."""
    offer = OfferId(3, number)
    return one(offered(site, offer=offer, **changes), AnswerOffer).accepted


@pytest.mark.parametrize("reserve", [True, False])
def test_asking_without_sending_anything_comes_to_an_end(reserve: bool) -> None:
    """Yes is said so often within an hour and no more, whatever the load is; no reason is told."""
    site = Conversation(settings(limits=Limits(unused_acceptances=3)))
    for number in range(1, 4):
        assert probed(site, number, reserve=reserve)
        withdrawn(site, OfferId(3, number), cancel=True)
        if not reserve:
            key = f"b/3/{number}"
            site(base.Ended, key=key, outcome=Outcome.CANCELLED, end_time=1.0, run_time=0.0)
    answer = one(offered(site, offer=OfferId(3, 4)), AnswerOffer)
    assert (answer.accepted, answer.unused) == (False, True)
    assert site.state.partners["b"].budget.declined == 1
    # The answer stands, and other partners are answered as before.
    assert not probed(site, 4)
    assert probed(site, 1, partner="c")
    site.now = 3599.0
    assert not probed(site, 5)
    site.now = 3600.0
    assert probed(site, 6)


def test_a_partner_whose_jobs_run_may_take_back_as_many() -> None:
    """Also one whose run fell between two looks at the batch system."""
    site = Conversation(settings(limits=Limits(unused_acceptances=1)))
    for number in (1, 2):
        assert probed(site, number)
        key = f"b/3/{number}"
        if number == 1:
            site(base.Started, key=key, start_time=1.0)
        site(base.Ended, key=key, outcome=Outcome.COMPLETED, end_time=2.0, run_time=1.0)
    for number in (3, 4, 5):
        assert probed(site, number, reserve=True)
        withdrawn(site, OfferId(3, number))
    assert not probed(site, 6)


def test_what_this_site_could_not_run_is_not_held_against_a_partner() -> None:
    """Its batch system has refused it, or forgotten it twice."""
    site = Conversation(settings(limits=Limits(unused_acceptances=1)))
    for number in range(1, 6):
        assert probed(site, number)
        site(LrmsRefused, key=f"b/3/{number}", reason="no such partition")
    assert site.state.partners["b"].budget.unused_lately(0.0) == 0


def test_a_repeated_offer_of_another_job_is_refused() -> None:
    """Its home works with an older copy of its journal: neither job is taken for the other."""
    site = Conversation()
    offered(site)
    for change in ({"payload": b"other"}, {"request": Request(1, 100.0)}):
        refused = one(offered(site, **change), Refuse)
        assert (refused.refusal, refused.field) == (Refusal.DISPUTED, "offer")
        assert refused.reason == (
            "offer 3/5 of b was another job's before: b works with an older copy of its journal"
        )
    assert site.state.partners["b"].disputed == 2
    assert kinds(offered(site)) == ["AnswerOffer"]
    # The same after the end of the first, and where it was never taken there is nothing to mistake.
    site(base.Ended, key=KEY, outcome=Outcome.COMPLETED, end_time=1.0, run_time=1.0)
    site(ReportAnswered, partner="b", offers=(THEIRS,))
    assert one(offered(site, payload=b"other"), Refuse).refusal is Refusal.DISPUTED
    declined = OfferId(3, 6)
    offered(site, load=FULL, offer=declined)
    assert not one(offered(site, offer=declined, payload=b"other"), AnswerOffer).accepted


def test_a_partner_of_another_version_is_not_answered() -> None:
    """What was answered before is answered alike."""
    site = Conversation()
    offered(site)
    site(PartnerIncompatible, partner="b", version=2)
    assert one(offered(site), AnswerOffer).accepted
    answers = offered(site, offer=OfferId(3, 6))
    assert kinds(answers) == ["Refuse"]
    refused = one(answers, Refuse)
    assert refused.refusal is Refusal.PRECONDITION
    assert refused.reason == "b speaks version 2 of the protocol"


def test_the_last_offer_that_was_seen_is_remembered() -> None:
    """Taken, declined or withdrawn; of the latest epoch; and over restarts."""
    site = Conversation()
    book = site.state.partners["b"]
    assert book.offer_seen is None
    offered(site)
    assert book.offer_seen == THEIRS
    offered(site, load=FULL, offer=OfferId(3, 7))
    offered(site, load=FULL, offer=OfferId(3, 6))
    assert book.offer_seen == OfferId(3, 7)
    site(WithdrawReceived, partner="b", offer=OfferId(3, 9), cancel=False)
    assert book.offer_seen == OfferId(3, 9)
    offered(site, load=FULL, offer=OfferId(4, 1))
    assert book.offer_seen == OfferId(4, 1)
    site.restart()
    assert site.state.partners["b"].offer_seen == OfferId(4, 1)


def test_after_a_restart_an_ended_guest_is_reported_and_nothing_else() -> None:
    """The batch system is not given it a second time, nor told to end it."""
    site = Conversation()
    offered(site)
    site(WithdrawReceived, partner="b", offer=THEIRS, cancel=True)
    site(base.Ended, key=KEY, outcome=Outcome.COMPLETED, end_time=1.0, run_time=1.0)
    site.restart()
    assert kinds(site(Restarted, load=FREE)) == ["SendReport"]


def test_the_answer_to_the_first_offer_that_is_not_settled_is_kept() -> None:
    """`settled_below` is the first number that can still be asked about."""
    site = Conversation()
    for number in (1, 2):
        offered(site, load=FULL, offer=OfferId(3, number))
    offered(site, load=FULL, offer=OfferId(3, 3), settled_below=2)
    book = site.state.partners["b"]
    assert list(book.answered) == [2, 3]
    assert book.answer_to(OfferId(3, 2)) is GuestState.DECLINED


# --- the batch system ----------------------------------------------------------------------------


def waiting_guest() -> tuple[Conversation, str]:
    """Returns a site with a partner's job that waits, and the job's key."""
    site = Conversation()
    offered = {"offer": OfferId(3, 1), "settled_below": 1, "request": REQUEST, "payload": b"run"}
    key = one(site(OfferReceived, load=FREE, partner="b", **offered), LrmsSubmit).lrms_key
    site(base.Accepted, key=key)
    return site, key


def test_a_guest_that_waits_is_part_of_the_load() -> None:
    """The batch system counts it, so the site does no more."""
    site, _ = waiting_guest()
    assert site.state.guest_counts()[GuestState.SUBMITTED] == 1
    assert site.state.memory.unconfirmed == 0


def test_the_first_offer_of_a_partner_is_the_first_of_its_first_epoch() -> None:
    """As a new partner's journal numbers it."""
    site = Conversation()
    assert one(offered(site, offer=OfferId(1, 1)), AnswerOffer).accepted


def test_a_guest_that_has_not_started_is_shown_as_accepted_until_it_is_in_the_queue() -> None:
    """Also when it waits again, and when the batch system has forgotten it."""
    site, key = waiting_guest()
    site(base.Lost, key=key, reason="a crash")
    assert site.state.guest_counts()[GuestState.ACCEPTED] == 1
    site(base.Started, key=key, start_time=1.0)
    site(base.Requeued, key=key, reason="a node failed")
    assert site.state.guest_counts()[GuestState.SUBMITTED] == 1


def test_how_a_guest_has_ended_is_reported() -> None:
    """And how its script was left, also after a restart."""
    site, key = waiting_guest()
    site(base.Started, key=key, start_time=9.0)
    end = {"outcome": Outcome.NODE_FAIL, "end_time": 12.0, "run_time": 3.0}
    report = one(site(base.Ended, key=key, **end, exit_code=1, signal=9), SendReport)
    assert report.completion == Completion(OfferId(3, 1), Outcome.NODE_FAIL, 12.0, 3.0, Exit(1, 9))
    site.restart()
    assert one(site(Restarted, load=FREE), SendReport).completion == report.completion


def test_a_guest_that_waits_again_has_started_also_where_nobody_has_told_of_that() -> None:
    """So it is not sent home as one that never began, by this process or by the next."""
    site = Conversation()
    offered(site)
    site(base.Accepted, key=KEY)
    hindered(site)
    site.now = 4.0
    assert site(base.Requeued, key=KEY, reason="a node failed") == []
    assert site.journal[-2:] == [
        JobStarted(4.0, GuestRef("b", THEIRS), 4.0),
        JobRequeued(4.0, GuestRef("b", THEIRS), "a node failed"),
    ]
    site.restart()
    assert one(site(Restarted, load=FREE), LrmsSubmit).started
    assert hindered(site) == []
    assert gone(site) is Outcome.CANCELLED


def test_a_guest_whose_program_does_not_come_goes_back() -> None:
    """It has not run and will not: that is in the journal, and said until it is heard."""
    site, key = waiting_guest()
    refused = {"key": key, "reason": "a is away", "undelivered": True}
    report = one(site(LrmsRefused, **refused), SendReport)
    assert (report.completion.outcome, report.completion.run_time) == (Outcome.LOST, 0.0)
    site.restart()
    assert one(site(Restarted, load=FREE), SendReport).completion == report.completion


def test_a_partner_whose_programs_do_not_come_is_declined_for_a_while() -> None:
    """The pause doubles with each attempt; what has its script with it is taken, and one that comes ends it."""
    site = Conversation(settings(probe_first_s=10.0, probe_most_s=900.0))
    numbers = iter(range(1, 100))

    def takes(*, to_fetch: bool = True) -> bool:
        offer = OfferId(3, next(numbers))
        more: dict[str, Any] = {"offer": offer, "request": Request(1, 100.0), "to_fetch": to_fetch}
        return one(offered(site, **more), AnswerOffer).accepted

    assert takes()
    for pause in (10.0, 20.0):
        site(ProgramsAway, partner="b", reason="b is not connected")
        assert not takes()
        assert takes(to_fetch=False)
        site.now += pause - 1.0
        assert not takes()
        site.now += 1.0
        assert takes()
    site(ProgramsAway, partner="b", reason="b is not connected")
    assert site.state.partners["b"].away_why == "b is not connected"
    site(ProgramCame, partner="b")
    assert takes()
    assert (site.state.partners["b"].away_why, site.state.partners["b"].away_times) == ("", 0)
