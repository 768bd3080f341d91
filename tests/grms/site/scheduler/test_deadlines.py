"""Jobs that are too long at a partner, or on the way to one."""

import math
from typing import Any

from grms.site.model.commands import Command, Publish, SendResolve
from grms.site.model.events import (
    Event,
    OfferAnswered,
    OfferFailed,
    PartnerFaulty,
    Resubmit,
    StatusAnswered,
    TimePassed,
)
from grms.site.model.lifecycle import GuestState, JobState
from grms.site.scheduler.outgoing_offers import deadline_of
from tests.grms.site.conversation import FREE, FULL, REQUEST, Conversation, offer, one, settings

B1 = {"partner": "b", "offer": offer(1)}
BY = {"load": FULL, "job_id": "a-1", "by": "root"}


def undecided(now: float = 0.0, **changes: Any) -> tuple[Conversation, SendResolve]:
    """Returns a site whose offer of that moment b has not answered, and the question about it."""
    site = Conversation(settings(**changes))
    site.now = now
    site.submit()
    return site, one(site(OfferFailed, load=FULL, **B1), SendResolve)


def delegated(now: float = 0.0, **changes: Any) -> Conversation:
    """Returns a site whose job b has accepted at that moment."""
    site = Conversation(settings(**changes))
    site.now = now
    site.submit()
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    return site


def told(site: Conversation, now: float) -> list[str]:
    """Lets time pass until a moment; returns the jobs of which those who watch are told."""
    names: list[str] = []

    def see(_event: Event, commands: list[Command]) -> None:
        names.extend(f"a-{each.job}" for each in commands if isinstance(each, Publish))

    site.now, site.see = now, see
    site(TimePassed, load=FULL)
    return names


def test_an_undecided_job_is_overdue_after_its_deadline() -> None:
    """Its operator, and who watches, sees it once, with its reason; until then it is not stuck."""
    site, _ = undecided(now=50.0, undecided_time_max=300.0)
    job = site.job()
    stuck = "b has not said for 300 s whether it has it"
    assert told(site, 350.0) == []
    assert (job.overdue, site.state.why_stuck(job, site.now)) == (False, "")
    revision = job.revision
    assert told(site, 350.5) == ["a-1"]
    assert (job.overdue, job.reason, job.revision) == (True, stuck, revision + 1)
    assert site.state.why_stuck(job, site.now) == stuck
    assert told(site, 351.0) == []
    assert job.revision == revision + 1
    assert site(Resubmit, **BY)
    assert not job.overdue


def test_a_delegated_job_is_overdue_after_its_deadline() -> None:
    """The partner is up, says that it has it, and it never ends."""
    site = delegated(now=50.0, delegated_time_max=1000.0)
    job = site.job()
    deadline = 50.0 + REQUEST.requested_time + 1000.0
    assert told(site, deadline) == []
    assert site.state.why_stuck(job, site.now) == ""
    assert told(site, deadline + 1.0) == ["a-1"]
    said = "accepted by b 1101 s ago, and not ended"
    assert (job.overdue, job.reason, site.state.why_stuck(job, site.now)) == (True, said, said)
    # After a restart it is seen again.
    site.restart()
    assert site.state.why_stuck(site.job(), site.now) == said


def test_a_decided_job_has_a_new_deadline() -> None:
    """What was overdue as an offer is not overdue as a delegated job."""
    site, ask = undecided(undecided_time_max=300.0, delegated_time_max=1000.0)
    site.now = 400.0
    site(TimePassed, load=FULL)
    assert site.job().overdue
    done = {"question": ask.cause, "status": GuestState.ACCEPTED}
    site(StatusAnswered, load=FULL, **B1, **done)
    assert not site.job().overdue
    assert site.job().accept_time == 400.0
    assert site.state.why_stuck(site.job(), 1500.0) == ""


def test_a_job_at_home_has_no_deadline() -> None:
    """It may wait as long as the queue is."""
    site = Conversation()
    site.submit(load=FREE)
    assert deadline_of(site.job(), site.settings) == math.inf


def test_with_resubmission_a_faulty_partners_undecided_job_goes_on_by_itself() -> None:
    """One whose partner is only out of reach waits until that counts as lost."""
    for is_faulty in (True, False):
        site, _ = undecided(undecided_time_max=300.0, on_lost="resubmit")
        if is_faulty:
            site(PartnerFaulty, load=FULL, partner="b", reason="it says 7")
        # Either is one change of the job to those who watch.
        assert told(site, 301.0) == ["a-1"]
        assert site.job().state is (JobState.OFFERING if is_faulty else JobState.RESOLVING)
        assert site.job().overdue is not is_faulty
