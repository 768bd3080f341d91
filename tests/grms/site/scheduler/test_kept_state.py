"""Jobs that write their state: what is kept of a run that was ended for another job, and what they go on from."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms import base
from grms.site.model.commands import AnswerOffer, Command, LrmsSubmit, SendOffer, SendReport
from grms.site.model.compaction import compacted
from grms.site.model.events import (
    Cancel,
    OfferAnswered,
    OfferReceived,
    ReportReceived,
    Restarted,
    StateFetched,
)
from grms.site.model.jobs import Completion, OfferId, Request, SentHome, StateThere
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.records import GuestKept, JobSentHome, StateCame
from grms.site.scheduler.state import SiteState
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

STATE = b"state"
THEIRS = OfferId(3, 5)


def home(**changes: Any) -> Conversation:
    """Returns a site whose jobs may run again."""
    return Conversation(settings(**{"requeue": "allow", **changes}))


def there(site: Conversation, **more: Any) -> Conversation:
    """Has a job that writes its state run at b."""
    site.submit(checkpoint=2.0, **more)
    site(OfferAnswered, load=FULL, partner="b", offer=offer(1), accepted=True)
    return site


def sent_home(
    site: Conversation, kept: float, *, partner: str = "b", number: int = 1, ran: float = 8.0
) -> list[Command]:
    """Lets a partner report that it has ended the job for another one."""
    site.now += 10.0
    ended = Completion(offer(number), Outcome.PREEMPTED, site.now, ran, kept=kept)
    return site(ReportReceived, load=FULL, partner=partner, completions=(ended,))


def fetched(site: Conversation, *, reason: str = "", number: int = 1) -> list[Command]:
    """Has the state come, or not."""
    return site(
        StateFetched,
        load=FULL,
        job=1,
        partner="b",
        offer=offer(number),
        restored=b"" if reason else STATE,
        reason=reason,
    )


# --- home ----------------------------------------------------------------------------------------


def test_an_offer_says_how_often_a_job_writes_its_state() -> None:
    """Where it says that the job may be run again; nothing is left of none."""
    for requeue, told in (("allow", 2.0), ("ask", 2.0), ("never", 0.0)):
        said = one(home(requeue=requeue).submit(checkpoint=2.0), SendOffer)
        assert (said.rerun, said.checkpoint, said.left) == (told > 0, told, 0.0)
    assert one(home().submit(), SendOffer).checkpoint == 0


def test_it_is_decided_anew_when_its_state_has_come() -> None:
    """Not before; the next partner learns what is left, and runs what it goes on from. It survives restarts."""
    site = there(home())
    assert kinds(sent_home(site, 6.0)) == ["AnswerReport"]
    for _ in range(2):
        job = site.job()
        assert (job.state, job.state_there) == (
            JobState.RECEIVED,
            StateThere("b", offer(1), 6.0),
        )
        assert site.state.memory.fetching == {1: job}
        site.restart()
        assert kinds(site(Restarted, load=FULL)) == []
        site.come_up()
    given_before = site.state.partners["b"].given
    again = one(fetched(site), SendOffer)
    job = site.job()
    assert (again.partner, again.left) == ("c", job.request.requested_time - 6.0)
    assert again.payload == job.payload + STATE
    assert job.sent_home == (SentHome("b", 1, 2.0, 6.0, 1),)
    assert site.state.partners["b"].given == given_before + 6.0 * job.request.processors
    site.restart()
    assert site.job().sent_home == job.sent_home
    assert (site.job().program, site.job().left) == (job.program, job.left)
    assert not site.state.memory.fetching


def test_home_runs_it_from_its_state_as_well() -> None:
    """Its batch system gets what a partner would get."""
    site = there(home())
    sent_home(site, 6.0)
    came = {"job": 1, "partner": "b", "offer": offer(1), "restored": STATE}
    submitted = one(site(StateFetched, load=FREE, **came), LrmsSubmit)
    assert submitted.payload == site.job().payload + STATE
    site(base.Started, key=submitted.lrms_key, start_time=site.now)
    end = {"outcome": Outcome.COMPLETED, "end_time": site.now + 3.0, "run_time": 3.0}
    site(base.Ended, key=submitted.lrms_key, **end)
    assert site.state.memory.own_work == (6.0 + 3.0) * REQUEST.processors
    assert [record for record in site.journal if isinstance(record, StateCame)] == [
        StateCame(site.now, 1, "b", 6.0, STATE)
    ]


def test_what_cannot_come_is_lost_and_said() -> None:
    """The job runs from its start, or from the state before; its user reads why."""
    site = there(home())
    sent_home(site, 6.0)
    again = one(fetched(site, reason="b: it has none"), SendOffer)
    job = site.job()
    assert (again.payload, again.left) == (job.payload, 0.0)
    assert job.sent_home == (SentHome("b", 1, 8.0, problem="b: it has none"),)
    assert job.reason == "it runs from its start: b: it has none"
    assert site.state.partners["b"].given == 0


def test_nothing_is_fetched_of_what_is_not_kept() -> None:
    """As the partner says so, or as the job has not said that it writes anything."""
    assert one(sent_home(there(home()), 0.0), SendOffer).partner == "c"
    site = home()
    site.submit()
    site(OfferAnswered, load=FULL, partner="b", offer=offer(1), accepted=True)
    assert one(sent_home(site, 6.0), SendOffer).partner == "c"
    assert site.job().sent_home == (SentHome("b", 1, 8.0),)


def test_no_more_can_be_kept_than_it_has_run() -> None:
    """The report is not believed; the files come all the same."""
    site = there(home(clock_grace=1.0))
    sent_home(site, 9.0)
    assert site.state.partners["b"].disbelieved == 1
    state = site.job().state_there
    assert state is not None
    assert state.kept == 8.0


def test_what_comes_late_or_twice_changes_nothing() -> None:
    """State of another return, or of a job that has ended."""
    site = there(home())
    sent_home(site, 6.0)
    assert fetched(site, number=7) == []
    site(Cancel, load=FULL, job_id="a-1", user="ann")
    assert site.job().outcome is Outcome.CANCELLED
    assert not site.state.memory.fetching
    count = len(site.journal)
    assert fetched(site) == []
    assert fetched(site, reason="gone") == []
    assert kinds(sent_home(site, 6.0)) == ["AnswerReport"]
    assert len(site.journal) == count


def test_returns_with_state_do_not_count_as_empty_ones() -> None:
    """But there is an end to them, as nobody here can say how much of the work it is."""
    awf = settings().transfer["b"]
    site = there(home(transfer={"b": awf}))
    sent_home(site, 6.0)
    assert one(fetched(site), LrmsSubmit).payload == site.job().program
    job = site.job()
    job.sent_home = (SentHome("b", 19, 0.0, 0.0, 19),)
    book = site.state.partners["b"]
    offers = site.state._offers
    assert offers.why_not_ask(book, job, site.now) == ""
    job.sent_home = (SentHome("b", 20, 0.0, 0.0, 20),)
    assert offers.why_not_ask(book, job, site.now) == "partners have sent it home 20 times"
    job.sent_home = (SentHome("b", 9, 0.0, 0.0, 7),)
    assert (
        offers.why_not_ask(book, job, site.now)
        == "partners have sent it home 2 times with nothing kept"
    )


@given(
    st.lists(
        st.tuples(st.floats(0.0, 50.0), st.floats(0.0, 1.0), st.booleans()),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_kept_and_what_is_lost_is_what_was_run(
    runs: list[tuple[float, float, bool]],
) -> None:
    """However many returns there are, after any restart and in a compacted journal, too."""
    site = home(empty_returns=100, clock_grace=1e9)
    site.submit(checkpoint=1.0)
    number = {"b": 0, "c": 0}
    kept_in_all = 0.0
    for ran, share, comes in runs:
        job = site.job()
        if job.state is not JobState.OFFERING:
            break
        partner = job.partner
        number[partner] += 1
        site(
            OfferAnswered,
            load=FULL,
            partner=partner,
            offer=offer(number[partner]),
            accepted=True,
        )
        site.now += ran
        kept = ran * share
        sent_home(site, kept, partner=partner, number=number[partner], ran=ran)
        if site.job().state_there is not None:
            site(
                StateFetched,
                load=FULL,
                job=1,
                partner=partner,
                offer=offer(number[partner]),
                restored=STATE if comes else b"",
                reason="" if comes else "gone",
            )
            kept_in_all += kept * comes
    sums = [one.lost + one.kept for one in site.job().sent_home]
    ended = [record.lost for record in site.journal if isinstance(record, JobSentHome)]
    assert sum(sums) == pytest.approx(sum(ended))
    assert sum(one.kept for one in site.job().sent_home) == pytest.approx(kept_in_all)
    assert site.job().restored_time == pytest.approx(kept_in_all)
    left = compacted(site.settings, lambda: site.journal)
    found = SiteState.recover(site.settings, left or site.journal).job("a-1")
    assert found is not None
    assert (found.sent_home, found.restored, found.state) == (
        site.job().sent_home,
        site.job().restored,
        site.job().state,
    )


def test_it_stands_where_it_would_have_stood() -> None:
    """Before all that came later and wait; also after a restart, which makes the queue anew from the journal."""
    site = there(home())
    for _ in range(3):
        site.now += 10.0
        site.submit(load=FREE, request=Request(8, 100.0))
        site(base.Accepted, key=site.job(site.state.memory.next_job - 1).lrms_key)
    site(base.Started, key="a/7/2", start_time=site.now)
    sent_home(site, 0.0)
    site(OfferAnswered, load=FREE, partner="c", offer=offer(1), accepted=False)
    assert site.job().state is JobState.SUBMITTING
    for _ in range(2):
        there_now = site.state.memory.at_lrms.values()
        waits = [job.lrms_key for job in there_now if job.state is not JobState.RUNNING]
        assert waits == ["a/7/1", "a/7/3", "a/7/4"]
        site.restart()


# --- the partner ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("kept", "told"), [(5.0, 5.0), (9.0, 8.0), (0.0, 0.0)])
def test_the_host_tells_what_is_kept_until_it_is_heard(kept: float, told: float) -> None:
    """By its own clock, no more than the run; that counts as taken, and survives a restart."""
    site = Conversation(settings(preempt_guests=True))
    said = site(
        OfferReceived,
        load=FREE,
        partner="b",
        offer=THEIRS,
        settled_below=1,
        request=REQUEST,
        payload=b"run",
        rerun=True,
        checkpoint=2.0,
    )
    assert one(said, AnswerOffer).accepted
    site(base.Started, key="b/3/5", start_time=1.0)
    end = {"outcome": Outcome.PREEMPTED, "end_time": 9.0, "run_time": 8.0, "kept": kept}
    report = one(site(base.Ended, key="b/3/5", **end), SendReport).completion
    assert (report.outcome, report.run_time, report.kept) == (Outcome.PREEMPTED, 8.0, told)
    assert sum(isinstance(record, GuestKept) for record in site.journal) == (told > 0)
    assert site.state.partners["b"].taken == told * REQUEST.processors
    site.restart()
    assert one(site(Restarted), SendReport).completion == report
