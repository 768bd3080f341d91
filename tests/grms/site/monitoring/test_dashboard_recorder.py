"""Notes of what a daemon does: what is in them, and that they hold nothing up."""

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from grms.policy.transfer import AcceptWhenFit
from grms.site.model.jobs import Request
from grms.site.model.partners import PartnerBook
from grms.site.model.records import JobKept, JobOffered, JobReceived
from grms.site.monitoring import dashboard_recorder
from grms.site.monitoring.dashboard_events import AccountSeen, CertificateOutput, Noted, Sampled
from grms.site.monitoring.dashboard_recorder import Feed, Recorder, standing, why_not_asked
from grms.site.monitoring.subscriber import OfferTimes, Subscriber
from grms.v1 import job_pb2
from lrms_sim.machine.node_kinds import NodeKind
from lrms_sim.workload.requests import Request as Needs
from tests.grms.site.daemons import Running, two_sites
from tests.grms.site.jobs import home_job
from tests.waiting import until


def shown(number: int) -> CertificateOutput:
    """Returns a note that can be told from others."""
    return CertificateOutput(str(number), b"")


def test_notes_come_in_order_and_a_slow_reader_loses_the_oldest() -> None:
    """How many were lost is told once."""
    feed = Feed(3)
    feed.put(shown(1), shown(2))
    assert feed.take(1) == ([shown(1)], 0)
    feed.put(*map(shown, range(3, 8)))
    assert feed.take(10) == ([shown(5), shown(6), shown(7)], 3)
    assert feed.take(10) == ([], 0)


def recording(feed: Feed, site: Running) -> Recorder:
    """Returns a recorder of a site that has none."""
    core = site.core
    subscriber = Subscriber(core.engine.state.memory)
    OfferTimes(subscriber)
    core.engine.on_event(subscriber.seen)
    return Recorder(feed, subscriber, core.engine, core.links, core.events._log)


async def test_a_decision_is_noted_with_what_it_rested_on(tmp_path: Path) -> None:
    """Load and policy are those of that moment; a script is in no note."""
    async with two_sites(tmp_path) as (home, _):
        feed = Feed()
        recorder = recording(feed, home)
        first = await home.submit("a", processors=3, run_time_s=60.0)
        second = await home.submit("b", processors=2)
        await home.ended(second.job_id)
        recorder.sample()
        notes, lost = feed.take(1000)
        assert lost == 0
        noted = [note for note in notes if isinstance(note, Noted)]
        received = [n.record for n in noted if isinstance(n.record, JobReceived)]
        assert [record.payload for record in received] == [b"", b""]
        kept = next(n for n in noted if isinstance(n.record, JobKept))
        assert kept.decided is not None
        assert kept.decided.weighed is not None
        assert kept.decided.weighed.kept_for == "away"
        assert isinstance(kept.decided.policy, AcceptWhenFit)
        offered = next(n for n in noted if isinstance(n.record, JobOffered))
        assert offered.decided is not None
        assert offered.decided.weighed is not None
        load = offered.decided.weighed.load
        assert load is not None
        assert (load.processors, load.processors_free) == (4, 1)
        (sample,) = [note for note in notes if isinstance(note, Sampled)]
        (partner,) = sample.partners
        assert (partner.name, partner.asked, partner.accepted, partner.ended) == (
            "away",
            1,
            1,
            1,
        )
        assert partner.latency_s is not None
        assert sample.load is not None
        assert sample.load.processors_free == 1
        await home.jobs.Cancel(job_pb2.CancelRequest(job_id=first.job_id))


async def test_who_was_not_asked_is_said_with_the_reason(tmp_path: Path) -> None:
    """A job that no partner was left for says of each why."""
    async with two_sites(tmp_path) as (home, away):
        away.daemon.stop()
        await until(lambda: not home.core.links.links["away"].up)
        feed = Feed()
        recording(feed, home)
        await home.submit("a", processors=4, run_time_s=60.0)
        job = await home.submit("b", processors=4)
        await home.jobs.Cancel(job_pb2.CancelRequest(job_id=job.job_id))
        notes, _ = feed.take(1000)
        kept = [n for n in notes if isinstance(n, Noted) and isinstance(n.record, JobKept)]
        assert kept[-1].decided is not None
        assert kept[-1].decided.passed_over == (("away", "it did not answer"),)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, "turn"),
        ({"reachable": False}, "answer"),
        ({"faulty": "it lied"}, "faulty"),
        ({"incompatible": 3}, "version 3"),
        ({"processors": 2}, "2 processors"),
        ({"nodes": (NodeKind("1", 8, 1),)}, "no nodes for such a job"),
    ],
)
def test_the_reason_is_the_first_that_holds(change: dict[str, Any], reason: str) -> None:
    """In the order in which the site's own rules look."""
    book = PartnerBook("away", listed=True, processors=8)
    book.reachable = True
    for key, value in change.items():
        setattr(book, key, value)
    job = home_job(Request.of(Needs(tasks=2, cores_per_task=2, wall_time=10.0)), user="u")
    assert reason in why_not_asked(book, job, 5.0)
    if not change:
        book.returns.came_back("u", job.request, 0.0, first_s=10.0, most_s=10.0)
        assert "undone" in why_not_asked(book, job, 5.0)


@pytest.mark.parametrize(
    ("change", "up", "word"),
    [
        ({}, True, "reachable"),
        ({}, False, "unreachable"),
        ({"lost": True}, False, "lost"),
        ({"faulty": "it lied"}, True, "faulty"),
        ({"listed": False, "faulty": "it lied"}, True, "not listed"),
    ],
)
def test_how_a_partner_stands_is_one_word(change: dict[str, Any], up: bool, word: str) -> None:
    """The worst that holds."""
    book = PartnerBook("away", listed=True, processors=8)
    for key, value in change.items():
        setattr(book, key, value)
    assert standing(book, up=up) == word


async def test_the_account_is_noted_more_seldom_where_there_are_many_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At first at once; the daemon is not to look at a million jobs each second."""
    monkeypatch.setattr(dashboard_recorder, "JOBS_PER_LOOK", 1)
    monkeypatch.setattr(dashboard_recorder, "figures_of", lambda _: "figures")
    async with two_sites(tmp_path) as (home, _):
        feed = Feed()
        recorder = recording(feed, home)
        seen = []
        for processors in (None, None, 3):
            if processors:
                await home.submit("a", processors=processors, run_time_s=60.0)
            for _ in range(4):
                recorder.sample()
                seen.append(any(isinstance(note, AccountSeen) for note in feed.take(99)[0]))
        assert seen == [*[True] * 8, *[True, False] * 2]


async def test_a_mistake_of_the_recorder_is_logged_once_and_harms_nobody(tmp_path: Path) -> None:
    """The engine calls it after every event; an error there would be the engine's own."""
    async with two_sites(tmp_path) as (home, _):

        class Broken(Feed):
            def put(self, *_: Any) -> None:
                raise RuntimeError("broken")

        with capture_logs() as log:
            recorder = recording(Broken(), home)
            recorder._note = lambda _: 1 / 0  # type: ignore[assignment,method-assign,return-value]  # broken
            recorder.sample()
            job = await home.submit("a")
            await home.ended(job.job_id)
        assert [e["event"] for e in log].count("dashboard_recorder_failed") == 1
