"""What is counted of events and commands, without a daemon; test_observer.py does it with one."""

from typing import Any

import pytest

from grms.site.facts.commands import SendResolve
from grms.site.facts.events import (
    LrmsAccepted,
    LrmsEnded,
    LrmsRefused,
    LrmsStays,
    OfferAnswered,
    OfferReceived,
    ReportReceived,
    RoundDue,
    StatusAnswered,
    StatusFailed,
    TakeBack,
)
from grms.site.facts.jobs import Completion, OfferId
from grms.site.facts.lifecycle import GuestState, JobState, Outcome
from grms.site.watching.counting import Counting
from grms.site.watching.metrics import SiteMetrics
from tests.grms.site.conversation import FREE, FULL, REQUEST, Conversation, offer, one, settings

KEY = "a/7/1"
B1 = {"partner": "b", "offer": offer(1)}


class Counted(Conversation):
    """A site that holds rounds and whose first job waits, with its figures."""

    def __init__(self) -> None:
        super().__init__(settings(reoffer=900.0), up=())
        self.metrics = SiteMetrics(["b", "c"])
        self.see = Counting(
            self.metrics, self.state, now=lambda: self.now, job_changed=lambda _: None
        ).see
        self.submit()
        self(LrmsAccepted, lrms_key=KEY)
        self.up = ("b", "c")
        self.come_up()

    def rounds(self) -> tuple[float, float, float]:
        """Returns rounds held, questions asked and jobs moved, as the figures are."""
        values = self.metrics.values()
        held, questions = values["hanse_rounds_total"], values["hanse_round_questions_total"]
        return held, questions, values["hanse_round_jobs_moved_total"]

    def leave(self) -> int:
        """Holds a round in which the job leaves for b; returns the confirmation's question."""
        self(RoundDue, load=FULL)
        self(OfferAnswered, load=FULL, accepted=True, **B1)
        ended = {"outcome": Outcome.CANCELLED, "end_time": 5.0, "run_time": 0.0}
        return one(self(LrmsEnded, lrms_key=KEY, **ended), SendResolve).cause


def test_a_round_counts_when_it_is_over_and_a_question_when_it_is_put() -> None:
    """Where nobody takes the job nothing has moved."""
    site = Counted()
    assert site.rounds() == (0, 0, 0)
    site(RoundDue, load=FULL)
    assert site.rounds() == (0, 1, 0)
    site(OfferAnswered, load=FULL, accepted=False, **B1)
    assert site.rounds() == (0, 2, 0)
    site(OfferAnswered, load=FULL, accepted=False, partner="c", offer=offer(1))
    assert site.rounds() == (1, 2, 0)


def test_a_job_has_moved_when_the_partner_has_confirmed_it() -> None:
    """Not when a place is held for it, and not when it has left the queue."""
    site = Counted()
    question = site.leave()
    assert site.job().state is JobState.RESOLVING
    assert site.rounds() == (0, 1, 0)
    site(StatusAnswered, load=FULL, question=question, status=GuestState.ACCEPTED, **B1)
    assert site.rounds() == (1, 1, 1)


def test_a_job_that_stays_has_not_moved() -> None:
    """It has started before the batch system could let it go."""
    site = Counted()
    site(RoundDue, load=FULL)
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    site(LrmsStays, lrms_key=KEY)
    assert site.rounds()[2] == 0


def test_what_an_offer_on_arrival_gives_away_has_not_moved_in_a_round() -> None:
    """Only what has left the queue counts."""
    site = Counted()
    site.submit()
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    assert site.job(2).state is JobState.DELEGATED
    assert site.rounds() == (0, 0, 0)


@pytest.mark.parametrize("late", [True, False])
def test_a_job_that_is_confirmed_after_its_round_has_moved_once(late: bool) -> None:
    """By the answer to a later question, or by the end of the job, which may be told first."""
    site = Counted()
    question = site.leave()
    again = one(site(StatusFailed, load=FULL, question=question, **B1), SendResolve)
    assert site.rounds()[2] == 0
    if late:
        said: dict[str, Any] = {"question": again.cause, "status": GuestState.ACCEPTED}
        site(StatusAnswered, load=FULL, **B1, **said)
        assert site.rounds()[2] == 1
    site.now = 20.0
    ended = Completion(offer(1), Outcome.COMPLETED, 19.0, 8.0)
    site(ReportReceived, load=FULL, partner="b", completions=(ended,))
    assert site.job().state is JobState.ENDED
    assert site.rounds()[2] == 1


def test_jobs_that_go_home_undone_are_counted() -> None:
    """Own ones that a partner sends back, and its own that are sent back to it; not what was taken back."""
    site = Counted()
    site.submit()
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    undone = Completion(offer(1), Outcome.LOST, 0.0, 0.0)
    site(ReportReceived, load=FULL, partner="b", completions=(undone,))
    site(OfferAnswered, load=FULL, accepted=True, partner="c", offer=offer(1))
    site(TakeBack, load=FULL, job_id="a-2", by="root")
    cancelled = Completion(offer(1), Outcome.CANCELLED, 0.0, 0.0)
    site(ReportReceived, load=FULL, partner="c", completions=(cancelled,))
    theirs = {"partner": "b", "offer": OfferId(3, 5), "settled_below": 1, "payload": b"run"}
    site(OfferReceived, load=FREE, request=REQUEST, **theirs)
    site(LrmsRefused, lrms_key="b/3/5", reason="main is drained")
    values = site.metrics.values()
    found = {name: value for name, value in values.items() if "undone_total" in name}
    assert found == {
        'hanse_jobs_undone_total{partner="b",whose="own"}': 1,
        'hanse_jobs_undone_total{partner="b",whose="guest"}': 1,
    }
