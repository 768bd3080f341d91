"""What operators see and change."""

import asyncio
import math
import threading
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from structlog.testing import capture_logs

from grms.daemon.ports import free_port
from grms.daemon.rpc import requests
from grms.policy.circuit_breaker import CircuitBreaker
from grms.site.gateway.user_listener import User
from grms.site.model.jobs import Request
from grms.site.model.partners import PartnerBook
from grms.site.rpc.operator_service import circuit_breaker_status, problem_with
from grms.v1 import job_pb2, operator_pb2
from tests.grms.site.daemons import document, running, two_sites
from tests.waiting import until


async def test_the_status_says_how_the_site_is(tmp_path: Path) -> None:
    """Machine, jobs by state, journal and clock."""
    async with running(document(tmp_path), tmp_path) as site:
        for number in range(3):
            await site.submit(f"k{number}", processors=3, run_time_s=60.0)
        status = await site.operator.Status(operator_pb2.StatusRequest())
        assert (status.site, status.clock, status.processors) == ("home", "wall", 4)
        assert (status.processors_free, status.processors_waiting) == (1, 6)
        assert dict(status.jobs) == {"RUNNING": 1, "QUEUED": 2}
        assert status.journal_records >= 7
        assert status.journal_bytes > 0
        assert status.lrms_reachable
        assert not status.draining


def test_the_circuit_breaker_is_told_as_far_as_it_has_looked() -> None:
    """Nothing of a site without one; what is not known is not there."""
    circuit_breaker = CircuitBreaker(cost=0.05, jobs=10)
    assert circuit_breaker_status(None, None) is None
    before = circuit_breaker_status(circuit_breaker, None)
    assert before == operator_pb2.CircuitBreakerStatus(stops=True, jobs_min=10, cost=0.05)
    empty = circuit_breaker_status(circuit_breaker, circuit_breaker.found(None, 3.0, 0, math.nan))
    assert empty == operator_pb2.CircuitBreakerStatus(looked_s=3.0, jobs_min=10, cost=0.05)
    first = circuit_breaker.found(None, 3.0, 20, -0.25)
    assert circuit_breaker_status(
        circuit_breaker, circuit_breaker.found(first, 5.0, 21, -0.5)
    ) == operator_pb2.CircuitBreakerStatus(
        stops=True,
        stopped_since_s=3.0,
        looked_s=5.0,
        jobs=21,
        jobs_min=10,
        improvement_percent=-50.0,
        cost=0.05,
    )


async def test_partners_are_shown(tmp_path: Path) -> None:
    """What was given and taken, and who is out of reach and why."""
    async with two_sites(tmp_path) as (home, away):
        await home.submit("fills", processors=4, run_time_s=30.0)
        job = await home.submit("goes", processors=2)
        await home.ended(job.job_id)
        (shown,) = (await home.operator.Partners(operator_pb2.PartnersRequest())).partners
        assert (shown.name, shown.processors, shown.reachable) == ("away", 4, True)
        assert (shown.offered, shown.accepted, shown.ended, shown.open) == (1, 1, 1, 0)
        assert shown.awrt_s > 0
        (shown,) = (await away.operator.Partners(operator_pb2.PartnersRequest())).partners
        assert (shown.guest_offered, shown.guest_accepted) == (1, 1)
    dead = document(tmp_path, "alone", partners={"nobody": free_port()})
    async with running(dead, tmp_path) as site:
        await until(
            lambda: "UNAVAILABLE" in site.core.links.links["nobody"].problem,
        )
        (shown,) = (await site.operator.Partners(operator_pb2.PartnersRequest())).partners
        assert not shown.reachable
        assert "UNAVAILABLE" in shown.problem
        assert not shown.HasField("last_heard_s")


async def test_a_partner_that_breaks_its_promise_is_shown_and_pardoned(tmp_path: Path) -> None:
    """Its books, how long it is suspended and why; a pardon is in the audit and takes operators."""
    promise = {"rules": "start-now", "tolerance": 0, "trust": 0, "suspension": "2d"}
    async with two_sites(tmp_path, {"rails": promise}) as (home, away):
        partners = operator_pb2.PartnersRequest()
        await home.submit("fills", processors=4, run_time_s=500.0, requested_time_s=500.0)
        # The partner takes what fits, and lets it wait behind its own.
        await away.submit("some", processors=2, run_time_s=500.0, requested_time_s=500.0)
        await away.submit("head", processors=4, run_time_s=500.0, requested_time_s=500.0)
        status = operator_pb2.StatusRequest()
        while (await away.operator.Status(status)).processors_waiting < 4:  # noqa: ASYNC110  # no event of its own
            await asyncio.sleep(0.005)
        await home.submit("goes", processors=2, run_time_s=0.1, requested_time_s=0.1)
        book, clock = home.core.engine.state.partners["away"], home.core.clock
        await until(lambda: bool(book.trust.promised))
        since = next(iter(book.trust.promised.values())).since
        await until(lambda: clock.now() > since + 0.1)
        await home.submit("looks", processors=2, run_time_s=5.0, requested_time_s=5.0)
        (shown,) = (await home.operator.Partners(partners)).partners
        assert (shown.breaches, shown.overdue, shown.credit) == (1, 1, 0.0)
        assert shown.suspended_until_s > since + 2 * 86_400
        assert shown.problem.startswith("suspended for 1 d ")
        assert shown.problem.endswith("it has broken its promise to start a job at once")
        with capture_logs() as logs:
            answer = await home.operator.Pardon(operator_pb2.PardonRequest(partner="away"))
        assert answer.breaches == 1
        (line,) = [log for log in logs if log["event"] == "audit"]
        assert (line["act"], line["partner"], line["breaches"]) == ("pardon", "away", 1)
        (shown,) = (await home.operator.Partners(partners)).partners
        assert (shown.breaches, shown.overdue, shown.problem) == (0, 1, "")
        assert not shown.HasField("suspended_until_s")
        with pytest.raises(aio.AioRpcError) as error:
            await home.operator.Pardon(operator_pb2.PardonRequest(partner="nobody"))
        assert error.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_draining_site_takes_nothing_new(tmp_path: Path) -> None:
    """Submissions are UNAVAILABLE, what runs goes on, and resuming undoes it."""
    async with running(document(tmp_path), tmp_path) as site:
        job = await site.submit("before", run_time_s=0.2)
        assert (await site.operator.Drain(operator_pb2.DrainRequest())).draining
        with pytest.raises(aio.AioRpcError) as error:
            await site.submit("during")
        assert error.value.code() is grpc.StatusCode.UNAVAILABLE
        assert (await site.ended(job.job_id)).state == job_pb2.JOB_STATE_ENDED
        assert not (await site.operator.Resume(operator_pb2.ResumeRequest())).draining
        assert (await site.submit("after")).job_id == "home-2"


async def test_who_drains_a_site_whose_disk_hangs_is_told_what_comes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for the disk without end; the word is kept, and counts as soon as the write is over."""
    monkeypatch.setattr(requests, "LOOK_S", 0.1)
    configuration = document(tmp_path)
    configuration["journal"]["survives"] = "power_loss"
    async with running(configuration, tmp_path) as site:
        engine, goes_on = site.core.engine, threading.Event()
        await until(lambda: not engine.pending)
        write = engine._write

        def hang(records: list[Any]) -> None:
            goes_on.wait(300)
            write(records)

        monkeypatch.setattr(engine, "_write", hang)
        waits = asyncio.ensure_future(site.submit("waits"))
        await until(lambda: engine.pending)
        try:
            status, drain = operator_pb2.StatusRequest(), operator_pb2.DrainRequest()
            for asked, then in (
                (site.operator.Status(status, timeout=300), "ask again then"),
                (site.operator.Drain(drain, timeout=300), "drain takes effect all the same"),
            ):
                with pytest.raises(aio.AioRpcError, match=f"more than 0.1 s: {then}") as error:
                    await asked
                assert error.value.code() is grpc.StatusCode.UNAVAILABLE
        finally:
            goes_on.set()
        assert (await waits).job_id == "home-1"
        await until(lambda: engine.state.draining)


async def test_policies_are_reloaded_all_or_none(tmp_path: Path) -> None:
    """A changed file takes effect; a broken one changes nothing and is explained."""
    async with two_sites(tmp_path) as (home, _):
        path = tmp_path / "home.toml"
        good = path.read_text()
        request = operator_pb2.ReloadPoliciesRequest()
        answer = await home.operator.ReloadPolicies(request)
        assert dict(answer.policies) == {"away": "awf"}
        path.write_text(good + 'transfer = "keep"\n')
        answer = await home.operator.ReloadPolicies(request)
        assert dict(answer.policies) == {"away": "keep"}
        path.write_text(good + 'transfer = "perhaps"\n')
        with pytest.raises(aio.AioRpcError) as error:
            await home.operator.ReloadPolicies(request)
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "'perhaps' is no transfer policy" in (error.value.details() or "")
        assert home.core.engine.state.settings.transfer["away"].name == "keep"
        await home.submit("fills", processors=4, run_time_s=60.0)
        assert (await home.submit("stays", processors=2)).executed_on == "home"


async def test_a_user_is_no_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only root, the daemon's own user and those in the configuration may; others are refused."""
    async with running(document(tmp_path, operators=["ada"]), tmp_path) as site:
        for name, allowed in (("eve", False), ("ada", True)):
            monkeypatch.setattr(
                "grms.site.gateway.user_listener.UserSocket.user",
                lambda _socket, _peer, name=name: User(54321, name),
            )
            for call, message in (
                (site.operator.Status, operator_pb2.StatusRequest()),
                (site.operator.Partners, operator_pb2.PartnersRequest()),
                (site.operator.ReloadPolicies, operator_pb2.ReloadPoliciesRequest()),
                (site.operator.Drain, operator_pb2.DrainRequest()),
                (site.operator.Resume, operator_pb2.ResumeRequest()),
            ):
                if allowed:
                    await call(message)
                    continue
                with pytest.raises(aio.AioRpcError) as error:
                    await call(message)
                assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_an_operator_decides_about_a_job_at_a_partner(tmp_path: Path) -> None:
    """Taken back, decided anew, written off: each with an audit line; at home it is refused."""
    with capture_logs() as logs:
        async with two_sites(tmp_path) as (home, _):
            full = await home.submit("f", processors=4, run_time_s=500.0, requested_time_s=500.0)
            jobs = [
                await home.submit(f"k{n}", run_time_s=500.0, requested_time_s=500.0)
                for n in range(3)
            ]
            delegated = job_pb2.ListRequest(partner="away", all_users=True)
            await until(lambda: len(home.core.engine.state.partners["away"].open) == 3)
            assert len((await home.jobs.List(delegated, timeout=300)).jobs) == 3
            ask = operator_pb2.InterveneRequest
            ended = await home.operator.WriteOff(ask(job_id=jobs[0].job_id), timeout=300)
            assert ended.state == job_pb2.JOB_STATE_ENDED
            assert "written off by" in ended.reason
            await home.operator.Resubmit(ask(job_id=jobs[1].job_id), timeout=300)
            await home.operator.TakeBack(ask(job_id=jobs[2].job_id), timeout=300)
            for job_id, code in (
                (full.job_id, grpc.StatusCode.FAILED_PRECONDITION),
                ("home-99", grpc.StatusCode.NOT_FOUND),
            ):
                with pytest.raises(aio.AioRpcError) as refused:
                    await home.operator.WriteOff(ask(job_id=job_id), timeout=300)
                assert refused.value.code() is code
    acts = [
        (entry["act"], entry["job"])
        for entry in logs
        if entry["event"] == "audit" and entry["act"] != "submit"
    ]
    assert acts == [
        ("write_off", jobs[0].job_id),
        ("resubmit", jobs[1].job_id),
        ("take_back", jobs[2].job_id),
    ]


def test_what_goes_home_undone_is_said_of_a_partner() -> None:
    """In both directions: until when it is offered no such jobs, and why its own were sent back here."""
    book = PartnerBook("away", listed=True)
    assert problem_with("", book, 0.0) == ""
    book.returns.came_back("ann", Request(1, 60.0), 0.0, first_s=10.0, most_s=10.0)
    text = "it sends jobs back undone (1 so far); such ones are offered again in 6 s"
    assert problem_with("", book, 4.5) == text
    assert problem_with("", book, 10.0) == ""
    book.given_back, book.given_back_time, book.given_back_why = 2, 10.0, "main is drained"
    text = "2 of its jobs were sent back undone, the last 5 s ago: main is drained"
    assert problem_with("", book, 15.0) == text
    assert problem_with("", book, 10.0 + 3600.0) == ""
