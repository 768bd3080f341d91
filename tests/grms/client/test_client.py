"""Programs that use a site."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from grms.client import (
    Client,
    JobState,
    Outcome,
    SiteError,
    SiteUnavailable,
    SyncClient,
)
from grms.daemon.pacing import Rate
from grms.v1 import job_pb2, request_pb2
from tests.grms.site.daemons import document, running, two_sites
from tests.waiting import until


async def test_a_job_from_its_submission_to_its_end(tmp_path: Path) -> None:
    """Submitted, listed, watched; every field is of its type."""
    async with (
        running(document(tmp_path), tmp_path),
        Client(tmp_path / "home.sock") as site,
    ):
        job = await site.submit(processors=2, requested_time_s=9, run_time_s=0.1, name="n")
        assert (job.processors, job.requested_time_s, job.name) == (2, 9.0, "n")
        states = [change.state async for change in site.watch(job.job_id)]
        assert states[-1] is JobState.ENDED
        assert len(states) == len(set(states))
        job = await site.wait(job.job_id)
        assert job.outcome is Outcome.COMPLETED
        assert job.has_ended
        assert job.start_time_s is not None
        assert job.end_time_s is not None
        assert [entry async for entry in site.jobs()] == [job]
        assert [entry async for entry in site.jobs(states=[JobState.RUNNING])] == []


async def test_a_key_makes_a_repetition_the_same_job(tmp_path: Path) -> None:
    """With a key the job is the same; without one each submission is another."""
    async with (
        running(document(tmp_path), tmp_path),
        Client(tmp_path / "home.sock") as site,
    ):
        wanted: dict[str, Any] = {"processors": 1, "requested_time_s": 9, "run_time_s": 0.1}
        jobs = [await site.submit(**wanted, key="k") for _ in range(3)]
        assert len({job.job_id for job in jobs}) == 1
        jobs = [await site.submit(**wanted) for _ in range(3)]
        assert len({job.job_id for job in jobs}) == 3


async def test_a_client_gets_over_a_restart(tmp_path: Path) -> None:
    """A submission and a watch that begin while the daemon is away end when it is back."""
    configuration = document(tmp_path)
    async with Client(tmp_path / "home.sock", timeout_s=300) as site:
        early = asyncio.create_task(
            site.submit(processors=1, requested_time_s=9, run_time_s=1.0), name="submit"
        )
        await asyncio.sleep(0.3)
        assert not early.done()
        async with running(configuration, tmp_path):
            job = await early
            watching = asyncio.create_task(site.wait(job.job_id), name="wait")
            await asyncio.sleep(0.1)
        assert not watching.done()
        async with running(configuration, tmp_path):
            assert (await watching).outcome is Outcome.COMPLETED


async def test_an_end_is_seen_whatever_its_revision(tmp_path: Path) -> None:
    """A job that ends while the daemon is away ends a wait, though the count of changes is new."""

    class Told:
        # What a daemon says before and after a restart: the second counts its changes anew.
        def __init__(self) -> None:
            self.calls = 0

        async def watch(self, _: job_pb2.WatchRequest) -> AsyncIterator[job_pb2.Job]:
            self.calls += 1
            running = self.calls == 1
            state = job_pb2.JOB_STATE_RUNNING if running else job_pb2.JOB_STATE_ENDED
            outcome = request_pb2.OUTCOME_UNSPECIFIED if running else request_pb2.OUTCOME_COMPLETED
            yield job_pb2.Job(job_id="home-1", state=state, revision=4, outcome=outcome)

    told = Told()
    async with Client(tmp_path / "home.sock") as site:
        site._calls.jobs = type("Jobs", (), {"Watch": staticmethod(told.watch)})
        shown = [job.state async for job in site.watch("home-1")]
        assert shown == [JobState.RUNNING, JobState.ENDED]
        assert told.calls == 2


async def test_a_job_without_a_name_is_not_watched(tmp_path: Path) -> None:
    """An empty name, of a shell's unset variable, is no job; it does not mean all of them."""
    async with Client(tmp_path / "home.sock") as site:
        with pytest.raises(SiteError, match="there is no job ''"):
            await site.wait("")


async def test_refusals_are_errors_with_their_reason(tmp_path: Path) -> None:
    """With code and field; a daemon that is not there is named after the time is over."""
    async with Client(tmp_path / "none.sock", timeout_s=0.3) as site:
        with pytest.raises(SiteUnavailable, match=r"no daemon answers on .*none.sock"):
            await site.get("x-1")
    async with (
        running(document(tmp_path), tmp_path),
        Client(tmp_path / "home.sock") as site,
    ):
        with pytest.raises(SiteError) as error:
            await site.submit(processors=0, requested_time_s=1, run_time_s=1)
        assert error.value.code == "INVALID_ARGUMENT"
        assert error.value.field == "request.processors"
        with pytest.raises(SiteError, match="there is no job 'home-9'"):
            await site.get("home-9")
        with pytest.raises(SiteError, match="there is no job 'home-9'"):
            await site.wait("home-9")


async def test_a_client_waits_when_it_is_told_to(tmp_path: Path) -> None:
    """A flood is slowed down to the site's rate, and nothing is lost."""
    limits = {"submissions_per_s": 5.0}
    async with (
        running(document(tmp_path, limits=limits), tmp_path),
        Client(tmp_path / "home.sock") as site,
    ):
        jobs = await asyncio.gather(
            *(site.submit(processors=1, requested_time_s=9, run_time_s=0.01) for _ in range(55))
        )
        assert len({job.job_id for job in jobs}) == 55


@pytest.mark.parametrize("wait_s", [1e-9, 4e-4, 0.03])
async def test_the_shortest_wait_is_a_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_s: float
) -> None:
    """A site that says "in a nanosecond" has said to try again, not that it is of no use."""
    waits = iter([wait_s, wait_s])
    async with (
        running(document(tmp_path), tmp_path),
        Client(tmp_path / "home.sock") as site,
    ):
        monkeypatch.setattr(Rate, "wait_s", lambda *_: next(waits, 0.0))
        job = await site.submit(processors=1, requested_time_s=9, run_time_s=0.01)
        assert job.job_id == "home-1"
        assert next(waits, None) is None


async def test_operators_have_their_calls(tmp_path: Path) -> None:
    """Status, partners, reload, drain and resume; a user's cancel reaches the partner."""
    async with two_sites(tmp_path) as (_, away), Client(tmp_path / "home.sock") as site:
        assert (await site.status()).site == "home"
        (partner,) = await site.partners()
        assert partner.name == "away"
        assert (await site.reload()).policies == {"away": "awf"}
        assert (await site.drain()).draining
        with pytest.raises(SiteUnavailable, match="drain") as told:
            async with Client(tmp_path / "home.sock", timeout_s=0.3) as hasty:
                await hasty.submit(processors=1, requested_time_s=1, run_time_s=1)
        assert told.value.is_draining
        assert not (await site.resume()).draining
        await site.submit(processors=4, requested_time_s=99, run_time_s=99)
        job = await site.submit(processors=1, requested_time_s=99, run_time_s=99)
        await until(lambda: bool(away.core.engine.state.memory.at_lrms))
        await site.cancel(job.job_id)
        assert (await site.wait(job.job_id)).outcome is Outcome.CANCELLED


async def test_the_same_without_an_event_loop(tmp_path: Path) -> None:
    """Every call of the asynchronous client is there, and does the same."""

    def program(socket: Path) -> list[str]:
        with SyncClient(socket) as site:
            job = site.submit(processors=1, requested_time_s=9, run_time_s=0.05)
            seen = [str(change.state) for change in site.watch(job.job_id)]
            assert site.get(job.job_id) == site.wait(job.job_id) == next(iter(site.jobs()))
            assert site.status().site == "home"
            assert site.partners() == []
            assert site.reload().policies == {}
            assert site.drain().draining
            assert not site.resume().draining
            long = site.submit(processors=1, requested_time_s=9, run_time_s=9)
            assert site.cancel(long.job_id).cancel_requested
            return seen

    async with running(document(tmp_path), tmp_path):
        seen = await asyncio.to_thread(program, tmp_path / "home.sock")
        assert seen[-1] == "ended"
    calls = {name for name in dir(Client) if not name.startswith("_")} - {"submit_at_once"}
    assert calls == {name for name in vars(SyncClient) if not name.startswith("_")}
