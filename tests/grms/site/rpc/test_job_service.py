"""What users can do, over a real socket, and what they cannot."""

import asyncio
from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc import aio

from grms.daemon.status_details import DETAILS_KEY
from grms.lrms.base import Hindered
from grms.site.gateway.user_listener import User
from grms.site.model.events import LrmsTold
from grms.site.rpc import job_service
from grms.site.rpc import watchers as watchers_module
from grms.v1 import job_pb2, request_pb2
from tests.grms.site.daemons import Running, document, running, two_sites
from tests.grms.site.jobs import home_job
from tests.waiting import until


def details(error: aio.AioRpcError) -> status_pb2.Status:
    """Returns the details for programs."""
    # A list of its pairs, as older grpcio's metadata makes no dictionary by itself.
    metadata = dict(list(error.trailing_metadata() or ()))
    return status_pb2.Status.FromString(metadata[DETAILS_KEY])


async def test_a_job_runs_to_its_end(tmp_path: Path) -> None:
    """A job is received, runs and ends, and its user sees each step once."""
    async with running(document(tmp_path), tmp_path) as site:
        job = await site.submit("one", name="first of all")
        assert (job.job_id, job.name) == ("home-1", "first of all")
        assert job.request.simulated.run_time_s == 0.05
        states = [
            entry.state async for entry in site.jobs.Watch(job_pb2.WatchRequest(job_id=job.job_id))
        ]
        assert states == sorted(set(states))
        assert states[-1] == job_pb2.JOB_STATE_ENDED
        job = await site.jobs.Get(job_pb2.GetRequest(job_id=job.job_id))
        assert job.outcome == request_pb2.OUTCOME_COMPLETED
        assert job.executed_on == "home"
        assert job.end_time_s - job.start_time_s == pytest.approx(0.05)


async def test_the_same_key_is_the_same_job(tmp_path: Path) -> None:
    """A repeated submission is answered with the first job; another one with the key is refused."""
    async with running(document(tmp_path), tmp_path) as site:
        jobs = await asyncio.gather(*(site.submit("key") for _ in range(20)))
        assert {job.job_id for job in jobs} == {"home-1"}
        with pytest.raises(aio.AioRpcError) as error:
            await site.submit("key", processors=2)
        assert error.value.code() is grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"processors": 0}, "request.processors"),
        ({"processors": -1}, "request.processors"),
        ({"requested_time_s": 0.0}, "request.requested_time_s"),
        ({"requested_time_s": float("nan")}, "request.requested_time_s"),
        ({"requested_time_s": float("inf")}, "request.requested_time_s"),
        ({"run_time_s": -1.0}, "request.simulated.run_time_s"),
        ({"run_time_s": float("nan")}, "request.simulated.run_time_s"),
        ({"key": ""}, "idempotency_key"),
        ({"key": "x" * 129}, "idempotency_key"),
        ({"name": "x" * 129}, "name"),
    ],
)
async def test_a_bad_request_is_named(
    tmp_path: Path, change: dict[str, object], field: str
) -> None:
    """What is wrong comes back as INVALID_ARGUMENT with the field, and nothing was taken."""
    async with running(document(tmp_path), tmp_path) as site:
        with pytest.raises(aio.AioRpcError) as error:
            await site.submit(**{"key": "k", **change})  # type: ignore[arg-type]  # a mix of types
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        bad = error_details_pb2.BadRequest()
        assert details(error.value).details[0].Unpack(bad)
        assert [entry.field for entry in bad.field_violations] == [field]
        assert not (await site.jobs.List(job_pb2.ListRequest())).jobs


async def test_a_job_wider_than_every_machine_is_refused(tmp_path: Path) -> None:
    """A job that could run nowhere is not accepted to wait for ever."""
    async with running(document(tmp_path), tmp_path) as site:
        try:
            job = await site.submit("wide", processors=5)
        except aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT  # noqa: PT017  # one of two
        else:
            job = await site.ended(job.job_id)
            assert job.outcome == request_pb2.OUTCOME_FAILED
            assert "5" in job.reason


async def test_a_cancelled_job_ends(tmp_path: Path) -> None:
    """A running and a waiting job can be cancelled, twice is nothing, and the next one runs."""
    async with running(document(tmp_path), tmp_path) as site:
        first = await site.submit("a", processors=4, run_time_s=90.0)
        second = await site.submit("b", processors=4, run_time_s=90.0)
        third = await site.submit("c", processors=4)
        for job in (second, second, first):
            await site.jobs.Cancel(job_pb2.CancelRequest(job_id=job.job_id))
        for job in (first, second):
            assert (await site.ended(job.job_id)).outcome == request_pb2.OUTCOME_CANCELLED
        assert (await site.ended(third.job_id)).outcome == request_pb2.OUTCOME_COMPLETED
        with pytest.raises(aio.AioRpcError) as error:
            await site.jobs.Cancel(job_pb2.CancelRequest(job_id="home-99"))
        assert error.value.code() is grpc.StatusCode.NOT_FOUND


def other_user(site: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the kernel say from now on that the caller is another user."""
    monkeypatch.setattr(
        "grms.site.gateway.user_listener.UserSocket.user", lambda _socket, _peer: User(54321, "eve")
    )
    assert site.name


async def test_another_users_job_is_none_of_ones_business(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be neither seen nor cancelled nor watched nor fetched, nor does it take the other's keys."""
    async with running(document(tmp_path), tmp_path) as site:
        job = await site.submit("key", run_time_s=50.0)
        array = await site.submit("array", run_time_s=50.0, array="1-2")
        other_user(site, monkeypatch)
        for call, message, status in (
            (site.jobs.Get, job_pb2.GetRequest(job_id=job.job_id), "NOT_FOUND"),
            (site.jobs.Get, job_pb2.GetRequest(job_id=array.job_id), "NOT_FOUND"),
            (site.jobs.Cancel, job_pb2.CancelRequest(job_id=array.job_id), "PERMISSION_DENIED"),
            (site.jobs.Cancel, job_pb2.CancelRequest(job_id=job.job_id), "PERMISSION_DENIED"),
            (site.jobs.List, job_pb2.ListRequest(all_users=True), "PERMISSION_DENIED"),
        ):
            with pytest.raises(aio.AioRpcError) as error:
                await call(message)
            assert error.value.code().name == status
        for one in (job, array):
            with pytest.raises(aio.AioRpcError) as error:
                _ = [e async for e in site.jobs.Watch(job_pb2.WatchRequest(job_id=one.job_id))]
            assert error.value.code() is grpc.StatusCode.NOT_FOUND
            with pytest.raises(aio.AioRpcError) as error:
                await site.jobs.Results(job_pb2.ResultsRequest(job_id=one.job_id))
            assert error.value.code() is grpc.StatusCode.NOT_FOUND
            assert error.value.details() == f"there is no job '{one.job_id}' of eve"
        asked = job_pb2.FetchResultRequest(job_id=job.job_id, name="stdout")
        with pytest.raises(aio.AioRpcError) as error:
            _ = [chunk async for chunk in site.jobs.FetchResult(asked)]
        assert error.value.code() is grpc.StatusCode.NOT_FOUND
        assert not (await site.jobs.List(job_pb2.ListRequest())).jobs
        assert (await site.submit("key", run_time_s=1.0)).job_id == "home-4"


async def test_a_user_without_credentials_is_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that the kernel has not vouched for is refused, and counted."""
    async with running(document(tmp_path), tmp_path) as site:
        monkeypatch.setattr(
            "grms.site.gateway.user_listener.UserSocket.user", lambda _socket, _peer: None
        )
        with pytest.raises(aio.AioRpcError) as error:
            await site.submit("key")
        assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_list_comes_in_pages(tmp_path: Path) -> None:
    """Pages follow each other without gap, and states are picked."""
    async with running(document(tmp_path), tmp_path) as site:
        for number in range(7):
            await site.submit(f"k{number}", processors=4, run_time_s=50.0)
        found, token, pages = [], "", 0
        while True:
            page = await site.jobs.List(job_pb2.ListRequest(page_size=3, page_token=token))
            found += [job.job_id for job in page.jobs]
            pages += 1
            token = page.next_page_token
            if not token:
                break
        assert found == [f"home-{number}" for number in range(1, 8)]
        assert pages == 3
        running_now = await site.jobs.List(job_pb2.ListRequest(states=[job_pb2.JOB_STATE_RUNNING]))
        assert [job.job_id for job in running_now.jobs] == ["home-1"]
        for bad in (
            job_pb2.ListRequest(page_size=-1),
            job_pb2.ListRequest(page_token="x"),  # a page, no secret
            job_pb2.ListRequest(states=[99]),  # type: ignore[list-item]  # what a stranger may send
        ):
            with pytest.raises(aio.AioRpcError) as error:
                await site.jobs.List(bad)
            assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_limits_are_kept(tmp_path: Path) -> None:
    """Open jobs, a user's rate and the size of a message each have their status."""
    limits = {"open_jobs_per_user": 2}
    async with running(document(tmp_path, limits=limits), tmp_path) as site:
        for number in range(2):
            await site.submit(f"k{number}", run_time_s=50.0)
        with pytest.raises(aio.AioRpcError) as error:
            await site.submit("k2")
        assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await site.submit("k1", run_time_s=50.0)).job_id == "home-2"
    limits = {"message_bytes": 2048}
    async with running(document(tmp_path, "big", limits=limits), tmp_path) as site:
        with pytest.raises(aio.AioRpcError) as error:
            await site.submit("k", name="x" * 4000)
        assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await site.submit("k")).job_id == "big-1"


async def test_a_flood_of_submissions_is_slowed_down(tmp_path: Path) -> None:
    """Beyond the rate a user is told when to try again."""
    limits = {"submissions_per_s": 0.01}
    async with running(document(tmp_path, limits=limits), tmp_path) as site:
        await site.submit("a")
        with pytest.raises(aio.AioRpcError) as error:
            await site.submit("b")
        assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        retry = error_details_pb2.RetryInfo()
        assert details(error.value).details[0].Unpack(retry)
        assert 50 < retry.retry_delay.ToMilliseconds() / 1000 <= 100
        assert await site.jobs.Get(job_pb2.GetRequest(job_id="home-1"))


async def test_all_of_a_users_jobs_can_be_watched(tmp_path: Path) -> None:
    """One call tells every change of the user's jobs, those that happen together in one message."""
    async with running(document(tmp_path), tmp_path) as site:
        call = site.jobs.Changes(job_pb2.ChangesRequest())
        stream = aiter(call)
        first = await anext(stream)
        assert (list(first.jobs), bool(first.user)) == ([], True)
        assert first.token.endswith(".0")
        seen: dict[str, int] = {}

        async def watch() -> None:
            async for told in stream:
                assert not told.user
                seen.update({job.job_id: job.state for job in told.jobs})

        watching = asyncio.create_task(watch(), name="watch")
        for number in range(3):
            await site.submit(f"k{number}")
        await until(lambda: list(seen.values()) == [job_pb2.JOB_STATE_ENDED] * 3)
        call.cancel()
        await asyncio.wait([watching])


async def test_an_array_is_watched_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changes with each element and is told now and then, but at once when it is over; nobody has to ask."""
    monkeypatch.setattr(job_service, "ARRAY_TOLD_S", 3600.0)
    limits = {"watchers": 1}
    async with running(document(tmp_path, limits=limits), tmp_path) as site:
        array = await site.submit("k", run_time_s=0.05, array="1-40%4")
        request = job_pb2.WatchRequest(job_id=array.job_id)
        call = aiter(site.jobs.Watch(request))
        first = await anext(call)
        assert (first.job_id, first.array.count) == ("home-1", 40)
        with pytest.raises(aio.AioRpcError) as error:
            await anext(aiter(site.jobs.Watch(request)))
        assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        rest = [whole async for whole in call]
        assert [whole.state for whole in rest] == [job_pb2.JOB_STATE_ENDED]
        assert rest[0].array.completed == 40
        # One that is over has no change to wait for; the place of the first watcher is free.
        assert [whole async for whole in site.jobs.Watch(request)] == rest


async def test_changes_of_an_array_are_told_while_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever came while the last one was told."""
    monkeypatch.setattr(job_service, "ARRAY_TOLD_S", 0.01)
    async with running(document(tmp_path), tmp_path) as site:
        array = await site.submit("k", processors=4, run_time_s=90.0, array="1-3%1")
        call = aiter(site.jobs.Watch(job_pb2.WatchRequest(job_id=array.job_id)))
        for index in (1, 2):
            await site.jobs.Cancel(job_pb2.CancelRequest(job_id=f"home-1_{index}"))
            while (whole := await anext(call)).array.not_completed < index:
                pass
            assert whole.state != job_pb2.JOB_STATE_ENDED
            assert not whole.cancel_requested
        whole = await site.jobs.Cancel(job_pb2.CancelRequest(job_id="home-1"))
        assert whole.cancel_requested  # of what goes on, all of it
        assert [each.state async for each in call][-1] == job_pb2.JOB_STATE_ENDED


async def test_what_an_array_has_not_is_said(tmp_path: Path) -> None:
    """Its elements have results, and not the array."""
    async with running(document(tmp_path), tmp_path) as site:
        array = await site.submit("k", run_time_s=90.0, array="3-4")
        with pytest.raises(aio.AioRpcError) as error:
            await site.jobs.Results(job_pb2.ResultsRequest(job_id=array.job_id))
        assert error.value.details() == (
            "home-1 is an array; name one of its elements, such as home-1_3"
        )
        assert error.value.code() is grpc.StatusCode.NOT_FOUND


async def test_too_many_watchers_are_refused(tmp_path: Path) -> None:
    """Beyond the limit a call to watch is refused; it is free again when one has gone."""
    async with running(document(tmp_path, limits={"watchers": 1}), tmp_path) as site:
        job = await site.submit("k", run_time_s=90.0)
        request = job_pb2.WatchRequest(job_id=job.job_id)
        first = site.jobs.Watch(request)
        await first.read()
        second = site.jobs.Watch(request)
        with pytest.raises(aio.AioRpcError) as error:
            await second.read()
        assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        first.cancel()
        while True:
            third = site.jobs.Watch(request)
            try:
                await third.read()
                break
            except aio.AioRpcError:
                await asyncio.sleep(0.02)
        third.cancel()


async def test_a_slow_watcher_is_told_to_come_again() -> None:
    """Who does not read in time is not kept in memory without end."""
    watchers = watchers_module.Watchers("home", 1)
    queue = watchers.add("home-1")

    job = home_job()
    for _ in range(watchers_module.UPDATES_MAX + 1):
        watchers.tell(job)
    assert queue.qsize() == watchers_module.UPDATES_MAX
    last = [queue.get_nowait() for _ in range(queue.qsize())][-1]
    assert last is None
    watchers.remove(queue, "home-1")
    assert not watchers.full


async def test_pages_are_short_where_jobs_are_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much users' scripts add up to, every job is listed, once and in order."""
    monkeypatch.setattr(job_service, "PAGE_BYTES", 5000)
    async with running(document(tmp_path), tmp_path) as site:
        for number in range(5):
            request = job_pb2.SubmitRequest(idempotency_key=f"k{number}")
            request.request.processors = 1
            request.request.requested_time_s = 100.0
            request.request.program.script = "#" * 3000
            await site.jobs.Submit(request, timeout=300)
        token = ""
        pages: list[list[str]] = []
        while token or not pages:
            page = await site.jobs.List(job_pb2.ListRequest(page_token=token), timeout=300)
            pages.append([job.job_id for job in page.jobs])
            token = page.next_page_token
        assert pages == [["home-1", "home-2"], ["home-3", "home-4"], ["home-5"]]


async def test_a_job_that_a_limit_keeps_at_home_says_so_while_it_waits(tmp_path: Path) -> None:
    """Not once it runs, nor to one that would fit."""
    usage = {"usage": {"given_hours_per_user": 0.01}}
    async with two_sites(tmp_path, usage) as (home, _):
        for key, time in (("fills", 500.0), ("small", 30.0), ("large", 50.0)):
            processors = 4 if key == "fills" else 1
            await home.submit(key, processors, requested_time_s=time, run_time_s=time)
        fills, small, large = (await home.jobs.List(job_pb2.ListRequest())).jobs
        assert fills.state == job_pb2.JOB_STATE_RUNNING
        assert fills.reason == ""
        assert small.executed_on == "away" or small.state == job_pb2.JOB_STATE_OFFERING
        assert large.state == job_pb2.JOB_STATE_QUEUED
        assert large.reason.startswith("not offered to partners: ")
        assert large.reason.endswith("(usage.given_hours_per_user)")
        assert large.stuck == ""
        # What keeps it from starting is worth more.
        engine = home.core.engine
        key = engine.state.memory.jobs[3].lrms_key
        engine.tell(LrmsTold(engine.new_id(), Hindered(key, "main is closed")))
        told = await home.jobs.Get(job_pb2.GetRequest(job_id=large.job_id))
        assert (told.reason, told.stuck) == ("main is closed", "main is closed")
