"""What is counted of events and commands, without a daemon; test_observer.py does it with one."""

import math
from pathlib import Path
from typing import Any

import pytest

from grms.daemon.ports import free_port
from grms.lrms import base
from grms.policy.constraints import STRICT_EXCHANGE
from grms.policy.transfer import Constrained
from grms.site.model.commands import SendResolve
from grms.site.model.events import (
    AccountDue,
    Drain,
    Event,
    LrmsAppeared,
    LrmsLetGo,
    LrmsRefused,
    LrmsStays,
    OfferAnswered,
    OfferFailed,
    OfferReceived,
    ReportReceived,
    RoundDue,
    StateFetched,
    StatusAnswered,
    StatusFailed,
    TakeBack,
)
from grms.site.model.jobs import Completion, OfferId
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.state_tables import StateTables
from grms.site.monitoring.metrics import SiteMetrics
from grms.site.monitoring.metrics_updates import JobChanges, MetricsUpdates
from grms.site.monitoring.subscriber import Guarded, OfferTimes, Subscriber
from tests.grms.site.conversation import FREE, FULL, REQUEST, Conversation, offer, one, settings
from tests.grms.site.daemons import document, running

KEY = "a/7/1"
B1 = {"partner": "b", "offer": offer(1)}


class Counted(Conversation):
    """A site that holds rounds and whose first job waits, with its figures."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(settings(reoffer=900.0, **changes), up=())
        self.metrics = SiteMetrics(["b", "c"])
        self.failed: list[Exception] = []
        subscriber = Subscriber(self.state.memory)
        self.see = subscriber.seen
        OfferTimes(subscriber)
        outputs = Guarded(subscriber, self.failed.append)
        MetricsUpdates(outputs, self.metrics, self.state)
        JobChanges(outputs, self.state, lambda: self.now)
        self.submit()
        self(base.Accepted, key=KEY)
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
        self(LrmsLetGo, key=KEY, done=True)
        ended = {"outcome": Outcome.CANCELLED, "end_time": 5.0, "run_time": 0.0}
        return one(self(base.Ended, key=KEY, **ended), SendResolve).cause


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
    site(LrmsStays, key=KEY)
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
    site(LrmsRefused, key="b/3/5", reason="main is drained")
    values = site.metrics.values()
    found = {name: value for name, value in values.items() if "undone_total" in name}
    assert found == {
        'hanse_jobs_undone_total{partner="b",whose="own"}': 1,
        'hanse_jobs_undone_total{partner="b",whose="guest"}': 1,
    }


@pytest.mark.parametrize(
    ("claimed", "kept", "own", "guest"),
    [(0.0, 0.0, 14, 6), (4.0, 4.0, 6, 2), (4.0, 0.0, 14, 2)],
    ids=["nothing", "kept", "claimed"],
)
def test_jobs_that_are_sent_home_are_counted_with_what_was_lost(
    claimed: float, kept: float, own: int, guest: int
) -> None:
    """Own ones, and a partner's; of both in processor seconds, and not as undone. What does not come is lost."""
    site = Counted(requeue="allow", preempt_guests=True)
    site.submit(checkpoint=1.0)
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    sent_home = Completion(offer(1), Outcome.PREEMPTED, 0.0, 7.0, kept=claimed)
    site(ReportReceived, load=FULL, partner="b", completions=(sent_home,))
    come = {"restored": b"state"} if kept else {"reason": "it has none"}
    number = site.state.memory.next_job - 1
    site(StateFetched, load=FULL, job=number, partner="b", offer=offer(1), **come)
    theirs = {"partner": "b", "offer": OfferId(3, 5), "settled_below": 1, "payload": b"run"}
    site(OfferReceived, load=FREE, request=REQUEST, rerun=True, **theirs)
    site(base.Started, key="b/3/5", start_time=1.0)
    ended = {"outcome": Outcome.PREEMPTED, "end_time": 4.0, "run_time": 3.0, "kept": claimed / 2}
    site(base.Ended, key="b/3/5", **ended)
    values = site.metrics.values()
    found = {
        name: value
        for name, value in values.items()
        if ("sent_home_total" in name or "lost_processor" in name or "undone_total" in name)
    }
    assert found == {
        'hanse_jobs_sent_home_total{partner="b",whose="own"}': 1,
        'hanse_jobs_sent_home_total{partner="b",whose="guest"}': 1,
        'hanse_work_lost_processor_seconds_total{partner="b",whose="own"}': own,
        'hanse_work_lost_processor_seconds_total{partner="b",whose="guest"}': guest,
    }


def test_offers_are_counted_by_their_answer() -> None:
    """One without an answer is `unknown`; one that was never sent is none. A partner off the list is one of others."""
    site = Counted()
    site.submit()
    site(OfferFailed, load=FULL, sent=False, **B1)
    site(OfferFailed, load=FULL, partner="c", offer=offer(1))
    site.metrics.partners.set_partners(["c"])
    theirs = {"settled_below": 1, "payload": b"run", "request": REQUEST}
    site(OfferReceived, load=FREE, partner="b", offer=OfferId(3, 5), **theirs)
    site(OfferReceived, load=FULL, partner="c", offer=OfferId(3, 6), **theirs)
    values = site.metrics.values()
    found = {name: value for name, value in values.items() if "hanse_offer" in name}
    assert 0 < found.pop('hanse_offer_latency_seconds_sum{partner="c"}') < 10
    assert found == {
        'hanse_offers_sent_total{partner="c",answer="unknown"}': 1,
        'hanse_offer_latency_seconds_count{partner="c"}': 1,
        'hanse_offers_received_total{partner="other",answer="accept"}': 1,
        'hanse_offers_received_total{partner="c",answer="decline"}': 1,
    }
    assert site.failed == []


def test_ends_and_waits_are_counted_where_a_job_ran() -> None:
    """By outcome, and from submission to start and end; states are those of the jobs that there are."""
    site = Counted()
    site.now = 30.0
    site(base.Started, key=KEY, start_time=30.0)
    site.submit()
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    ended = {"outcome": Outcome.TIMEOUT, "end_time": 400.0, "run_time": 370.0}
    site.now = 400.0
    site(base.Ended, key=KEY, **ended)
    done = Completion(offer(1), Outcome.COMPLETED, 399.0, 8.0)
    site(ReportReceived, load=FULL, partner="b", completions=(done,))
    values = site.metrics.values()
    assert {
        'hanse_own_decisions_total{decision="offer"}': 1,
        'hanse_jobs_ended_total{outcome="timeout"}': 1,
        'hanse_jobs_ended_total{outcome="completed"}': 1,
        'hanse_job_wait_seconds_sum{kind="home"}': 30.0,
        'hanse_job_response_seconds_sum{kind="home"}': 400.0,
        'hanse_job_response_seconds_sum{kind="delegated"}': 369.0,
        'hanse_jobs{state="ended"}': 2,
        'hanse_jobs{state="running"}': 0,
        'hanse_jobs{state="delegated"}': 0,
    }.items() <= values.items()
    assert site.failed == []


def test_the_account_of_a_site_has_its_figures_at_each_look() -> None:
    """In seconds of waiting of a job of mean work; what is not known is no number."""
    constrained = Constrained(STRICT_EXCHANGE)
    site = Counted(transfer={"b": constrained, "c": constrained})
    site.now = 7200.0
    site(AccountDue)

    def figures() -> dict[str, float]:
        return {
            f"{family.name.removeprefix('hanse_account_')} {' '.join(each.labels.values())}": each.value
            for family in site.metrics.registry.collect()
            for each in family.samples
            if family.name.startswith("hanse_account_")
        }

    found = figures()
    assert (found["in_credit "], found["guests protected"], found["work_seconds lent"]) == (0, 0, 0)
    assert math.isnan(found["wait_seconds saved"])
    site(base.Started, key=KEY, start_time=7200.0)
    site(base.Ended, key=KEY, outcome=Outcome.COMPLETED, end_time=7300.0, run_time=100.0)
    site.now = 9000.0
    site(AccountDue)
    found = figures()
    assert found["wait_seconds saved"] == pytest.approx(-7200.0, rel=0.01)
    assert found["wait_seconds owed"] == 0.0
    assert found["gain_ratio "] == pytest.approx(-72.0)
    assert not site.failed


def test_a_mistake_of_an_output_is_told_and_stops_no_other() -> None:
    """The engine would take it for its own."""
    failed: list[Exception] = []
    seen: list[Event] = []
    subscriber = Subscriber(StateTables(settings()))
    outputs = Guarded(subscriber, failed.append)
    outputs.on(Drain, lambda _, __: 1 / 0)  # type: ignore[arg-type]  # broken
    outputs.on(Drain, lambda event, _: seen.append(event))
    subscriber.seen(Drain(1), [])
    assert [type(error) for error in failed] == [ZeroDivisionError]
    assert seen == [Drain(1)]


async def test_what_changes_between_events_is_read_from_the_site(tmp_path: Path) -> None:
    """Machine, queue, partners and journal, as they are now."""
    async with running(
        document(tmp_path, metrics={"listen": f"127.0.0.1:{free_port()}"}), tmp_path
    ) as site:
        assert site.core.monitor is not None
        await site.submit("a", processors=3, run_time_s=500.0, requested_time_s=500.0)
        await site.submit("b", processors=4, requested_time_s=500.0)
        site.core.engine.state.memory.unseen.update({"home/1/1": "", "home/1/2": ""})
        site.core.monitor.sample()
        values = site.core.monitor.metrics.values()
        site.core.engine.state.memory.unseen.clear()
        assert {
            'hanse_processors{state="free"}': 1,
            'hanse_processors{state="busy"}': 3,
            "hanse_queue_jobs": 1,
            "hanse_queue_processors": 4,
            "hanse_lrms_reachable": 1,
            "hanse_lrms_load_age_seconds": 0,
            "hanse_lrms_commands_open": 0,
            "hanse_lrms_jobs_unseen": 2,
            "hanse_journal_records": site.core.journal.count,
            "hanse_journal_bytes": site.core.journal.size_bytes,
        }.items() <= values.items()


def test_a_job_that_is_waited_for_is_no_surprise() -> None:
    """The batch system tells of it after each start; one that nobody knows is ended, and counts."""
    site = Counted()
    figure = 'hanse_lrms_surprises_total{what="appeared"}'
    site(LrmsAppeared, key=KEY)
    assert site.metrics.values()[figure] == 0
    site(LrmsAppeared, key="a/6/1")
    assert site.metrics.values()[figure] == 1
