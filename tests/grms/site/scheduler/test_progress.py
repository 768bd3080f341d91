"""What partners say of where delegated jobs stand, in the state of the home site."""

import math

import pytest

from grms.lrms.base import LrmsPhase
from grms.site.model.commands import Publish
from grms.site.model.events import OfferAnswered, ProgressTold, ReportReceived
from grms.site.model.jobs import Completion, Progress
from grms.site.model.lifecycle import Outcome
from tests.grms.site.conversation import Conversation, offer


def delegated(jobs: int = 1) -> Conversation:
    """Returns a site whose jobs partner b has accepted."""
    site = Conversation()
    for number in range(1, jobs + 1):
        site.now = 10.0
        site.submit()
        site.now = 20.0
        site(OfferAnswered, partner="b", offer=offer(number), accepted=True)
    return site


def test_what_a_partner_says_is_shown_until_the_job_ends() -> None:
    """Each change of where it stands counts; nothing of it is in the journal."""
    site = delegated()
    job, records = site.job(), len(site.journal)
    assert job.standing is None
    assert job.since == 20.0
    revision = job.revision
    for now, phase, start in (
        (30.0, LrmsPhase.WAITING, math.nan),
        (40.0, LrmsPhase.WAITING, math.nan),
        (50.0, LrmsPhase.RUNNING, 45.0),
        (60.0, LrmsPhase.SUSPENDED, 45.0),
    ):
        site.now = now
        site(ProgressTold, partner="b", jobs=(Progress(offer(1), phase, now - 1.0, start),))
        assert job.standing == (phase, now - 1.0)
        assert job.progress_time == now
    assert job.revision == revision + 3
    assert job.begun_time == 45.0
    assert len(site.journal) == records
    end = Completion(offer(1), Outcome.COMPLETED, 70.0, 20.0)
    site.now = 71.0
    site(ReportReceived, partner="b", completions=(end,))
    assert job.standing is None
    assert (job.begun_time, job.since) == (50.0, 70.0)


def test_a_partners_clock_does_not_matter() -> None:
    """Nothing began before the partner had the job, or later than when it said so."""
    site = delegated()
    site.now = 30.0
    for start, shown in ((-1e6, 20.0), (1e6, 30.0)):
        told = Progress(offer(1), LrmsPhase.RUNNING, start, start)
        site(ProgressTold, partner="b", jobs=(told,))
        assert (site.job().begun_time, site.job().since) == (shown, shown)


def test_of_other_jobs_a_partner_says_nothing() -> None:
    """Neither of offers that it has not accepted, nor of those of others, nor after a restart."""
    site = delegated()
    told = Progress(offer(1), LrmsPhase.RUNNING, 25.0, 25.0)
    for partner, named in (("c", told), ("x", told), ("b", Progress(offer(2), told.phase, 25.0))):
        site(ProgressTold, partner=partner, jobs=(named,))
    assert site.job().standing is None
    site(ProgressTold, partner="b", jobs=(told,))
    site.restart()
    assert site.job().standing is None


@pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf])
def test_a_time_that_is_none_is_no_progress(time: float) -> None:
    """A sum or a comparison with it would say nothing."""
    with pytest.raises(ValueError, match="must be finite"):
        Progress(offer(1), LrmsPhase.RUNNING, time)


def test_who_watches_hears_once_of_all_that_has_changed() -> None:
    """What stands where it stood is left out, and so is what has ended; the others of the message are told."""
    site = delegated(4)
    end = Completion(offer(2), Outcome.COMPLETED, 25.0, 5.0)
    site(ReportReceived, partner="b", completions=(end,))
    site(ProgressTold, partner="b", jobs=(Progress(offer(3), LrmsPhase.WAITING, 25.0),))
    told: list[Publish] = []
    site.see = lambda _, commands: told.extend(c for c in commands if isinstance(c, Publish))
    phases = (LrmsPhase.RUNNING, LrmsPhase.RUNNING, LrmsPhase.WAITING, LrmsPhase.WAITING)
    jobs = tuple(Progress(offer(number), phase, 26.0) for number, phase in enumerate(phases, 1))
    site(ProgressTold, partner="b", jobs=jobs)
    assert told == [Publish(site.last_id, 1, (4,))]
    assert site.job(2).standing is None
    site(ProgressTold, partner="b", jobs=jobs)
    assert len(told) == 1
