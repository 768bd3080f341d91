"""What partners say of where delegated jobs stand, and who hears of it."""

import math
from pathlib import Path
from typing import Any

import pytest

from grms.daemon.ports import free_port
from grms.site.model.partners import PartnerBook
from grms.site.wire.convert import write_offer
from grms.v1 import job_pb2, partner_pb2, request_pb2
from tests.grms.site.daemons import Running, document, running, two_sites
from tests.grms.site.peers.partner import Partner, full, listening
from tests.waiting import until

RUNS = request_pb2.JOB_PHASE_RUNNING
WAITS = request_pb2.JOB_PHASE_WAITING


async def test_users_see_that_their_jobs_run_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits there, and then runs; who watches hears of both, and a list has start and cost so far."""
    monkeypatch.setattr("grms.site.peers.progress.INTERVAL_S", 0.05)
    async with two_sites(tmp_path) as (home, away):
        await full(home)
        job = await home.submit("goes", run_time_s=500.0, requested_time_s=500.0)
        phases = []
        watch = home.jobs.Watch(job_pb2.WatchRequest(job_id=job.job_id))
        async for shown in watch:
            phases.append(shown.phase)
            if shown.phase == RUNS:
                break
        watch.cancel()
        assert shown.state == job_pb2.JOB_STATE_DELEGATED
        assert shown.executed_on == "away"
        assert shown.start_time_s == shown.since_s
        assert shown.submit_time_s <= shown.start_time_s <= shown.told_time_s
        (guest,) = away.core.engine.state.partners["home"].guests.values()
        assert guest.standing is not None
        (listed,) = (
            one
            for one in (await home.jobs.List(job_pb2.ListRequest())).jobs
            if one.job_id == job.job_id
        )
        assert 0 < listed.cost < 500


async def three_there(site: Running) -> PartnerBook:
    """Delegates three jobs, and returns the book of the partner that has them."""
    await site.linked()
    await full(site)
    for key in "abc":
        await site.submit(key, requested_time_s=500.0)
    book = site.core.engine.state.partners["away"]
    await until(lambda: len(book.open) == 3)
    return book


async def test_a_partner_is_asked_about_its_open_jobs_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are, no question is longer than a site answers."""
    monkeypatch.setattr("grms.site.peers.progress.INTERVAL_S", 0.05)
    monkeypatch.setattr("grms.site.peers.progress.PROGRESS_MAX", 2)
    partner, port = Partner(), free_port()
    configuration = document(tmp_path, partners={"away": port})
    async with listening(partner, port), running(configuration, tmp_path) as site:
        await three_there(site)
        partner.progress_asked.clear()
        await until(lambda: len(partner.progress_asked) >= 2)
        assert sorted(partner.progress_asked[:2]) == [[1, 2], [3]]


async def test_a_phase_of_a_later_version_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no fault, and the job stands where it stood."""
    monkeypatch.setattr("grms.site.peers.progress.INTERVAL_S", 0.05)
    partner, port = Partner(), free_port()
    configuration = document(tmp_path, partners={"away": port})
    async with listening(partner, port), running(configuration, tmp_path) as site:
        book = await three_there(site)
        offers = [write_offer(job.offer) for job in book.open.values()]
        of_later = partner_pb2.JobProgress(offer=offers[0])
        of_later.MergeFromString(bytes([2 << 3, 99]))  # `phase`
        known = partner_pb2.JobProgress(offer=offers[1], phase=WAITS, since_s=5.0)
        partner.progress = partner_pb2.ProgressResponse(jobs=[of_later, known])
        first, second, _ = book.open.values()
        await until(lambda: second.standing is not None)
        assert first.standing is None
        assert not book.faulty


@pytest.mark.parametrize(
    "wrong",
    [
        {"offer": {"epoch": 1, "number": 9}, "phase": RUNS},
        {"phase": RUNS},
        {"offer": {}, "phase": RUNS, "start_time_s": math.nan},
        {"offer": {}, "phase": WAITS, "since_s": math.inf},
    ],
    ids=["another job", "no job", "no start", "no moment"],
)
async def test_a_partner_that_says_what_cannot_be_is_faulty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]
) -> None:
    """It tells of a job that it was not asked about, or of times that are none."""
    monkeypatch.setattr("grms.site.peers.progress.INTERVAL_S", 0.05)
    partner, port = Partner(), free_port()
    configuration = document(tmp_path, partners={"away": port})
    async with listening(partner, port), running(configuration, tmp_path) as site:
        book = await three_there(site)
        message = partner_pb2.JobProgress(**wrong)
        if message.HasField("offer") and not message.offer.number:
            message.offer.CopyFrom(write_offer(next(iter(book.open.values())).offer))
        partner.progress = partner_pb2.ProgressResponse(jobs=[message])
        await until(lambda: bool(book.faulty))
        assert "where jobs stand" in book.faulty
