"""A site under a coordinator: loading, arriving, advancing, and what comes of it."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from grms.v1 import replay_pb2, replay_pb2_grpc
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import JobTable
from tests.grms.site.daemons import Running, document, running

JOBS = JobTable.from_columns(
    submit_time=[0, 1, 1, 2, 50],
    processors=[3, 2, 4, 1, 4],
    run_time=[10, 5, 3, 20, 1],
    requested_time=[10, 9, 3, 30, 2],
)


def block(jobs: JobTable = JOBS, replay_id: str = "r", **change: Any) -> replay_pb2.LoadRequest:
    """Returns a workload in one block, with something changed."""
    columns = {
        "replay_id": replay_id,
        "jobs_total": len(jobs),
        "submit_time_s": jobs.submit_time.tolist(),
        "processors": jobs.processors.tolist(),
        "requested_time_s": jobs.requested_time.tolist(),
        "run_time_s": jobs.run_time.tolist(),
    }
    return replay_pb2.LoadRequest(**{**columns, **change})


@asynccontextmanager
async def conducted(folder: Path, **more: Any) -> AsyncIterator[tuple[Running, Any]]:
    """Yields a daemon on a virtual clock, and the coordinator's stub."""
    configuration = document(folder, clock={"kind": "virtual"}, **more)
    async with running(configuration, folder) as site:
        address = f"{site.users_address}.coordinator"
        async with aio.insecure_channel(address) as channel:
            yield site, replay_pb2_grpc.ReplayServiceStub(channel)


async def arrive(stub: Any, *rows: tuple[int, int]) -> list[list[str]]:
    """Lets rows arrive, each pair being the first and how many; returns where they went."""
    requests = iter([replay_pb2.ArriveRequest(first_row=a, rows=n) for a, n in rows])
    return [list(answer.executed_on) async for answer in stub.Arrive(requests)]


async def advance(stub: Any, *moments: float) -> list[tuple[float, float]]:
    """Advances the clock; returns when something and when a report is next."""
    requests = iter([replay_pb2.AdvanceRequest(to_s=moment) for moment in moments])
    return [
        (answer.next_event_time_s, answer.next_report_time_s)
        async for answer in stub.Advance(requests)
    ]


async def status_of(call: Any) -> grpc.StatusCode:
    """Returns the status with which a call ends."""
    with pytest.raises(aio.AioRpcError) as error:
        if hasattr(call, "__aiter__"):
            _ = [answer async for answer in call]
        else:
            await call
    code: grpc.StatusCode = error.value.code()
    return code


@pytest.mark.parametrize("discipline", ["fcfs", "easy", "conservative", "list"])
async def test_one_site_replays_like_the_simulator(tmp_path: Path, discipline: str) -> None:
    """Without partners the schedule is the simulator's, to the last bit, and in the journal.

    Arrivals of one message are one group of records.
    """
    jobs = JOBS.shifted(0.1)
    async with conducted(tmp_path, lrms={"discipline": discipline}) as (site, stub):
        loaded = await stub.Load(iter([block(jobs)]))
        assert (loaded.rows_arrived, loaded.now_s) == (0, -math.inf)
        groups = site.core.engine.groups
        assert await arrive(stub, (0, 2), (2, 3)) == [["home"] * 2, ["home"] * 3]
        assert site.core.engine.groups == groups + 2
        assert await advance(stub, math.inf) == [(math.inf, math.inf)]
        assert not site.core.engine.pending
        own = [
            row async for answer in stub.Finish(replay_pb2.FinishRequest()) for row in answer.own
        ]
        own.sort(key=lambda row: row.row)
        expected = simulate(jobs, 4, discipline_by_name(discipline))
        assert [row.start_time_s for row in own] == expected.start_time.tolist()
        assert [row.end_time_s for row in own] == expected.end_time.tolist()
        assert site.core.clock.now() == expected.end_time.max()


async def test_a_replay_goes_on_after_a_restart(tmp_path: Path) -> None:
    """What has arrived stays so, repeated rows change nothing, and the schedule is the same."""
    for last in range(5):
        async with conducted(tmp_path) as (_, stub):
            loaded = await stub.Load(iter([block()]))
            assert loaded.rows_arrived == last
            assert await arrive(stub, (0, last + 1)) == [["home"] * (last + 1)]
    async with conducted(tmp_path) as (_, stub):
        loaded = await stub.Load(iter([block()]))
        assert (loaded.rows_arrived, loaded.now_s) == (5, 50.0)
        await advance(stub, math.inf)
        own = [
            row async for answer in stub.Finish(replay_pb2.FinishRequest()) for row in answer.own
        ]
        own.sort(key=lambda row: row.row)
        expected = simulate(JOBS, 4)
        assert [row.start_time_s for row in own] == expected.start_time.tolist()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"processors": [1, 2]}, "different lengths"),
        ({"submit_time_s": [1, 0, 1, 1, 1]}, "row 1: submit_time_s is 0.0; rows are in order"),
    ],
)
async def test_a_workload_that_is_none_is_refused(
    tmp_path: Path, change: dict[str, Any], text: str
) -> None:
    """With the row and what is wrong with it; what else can be wrong is in `test_replay_workload.py`."""
    async with conducted(tmp_path) as (_, stub):
        with pytest.raises(aio.AioRpcError) as error:
            await stub.Load(iter([block(**change)]))
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert text in (error.value.details() or "")


async def test_what_is_out_of_order_is_refused(tmp_path: Path) -> None:
    """Rows before a workload, gaps, too many, another replay, an end before the end."""
    async with conducted(tmp_path) as (_, stub):
        early = stub.Arrive(iter([replay_pb2.ArriveRequest(first_row=0, rows=1)]))
        assert await status_of(early) is grpc.StatusCode.FAILED_PRECONDITION
        await stub.Load(iter([block()]))
        for first, rows in ((1, 1), (0, 6)):
            call = stub.Arrive(iter([replay_pb2.ArriveRequest(first_row=first, rows=rows)]))
            assert await status_of(call) is grpc.StatusCode.FAILED_PRECONDITION
        finish = stub.Finish(replay_pb2.FinishRequest())
        assert await status_of(finish) is grpc.StatusCode.FAILED_PRECONDITION
        call = stub.Advance(iter([replay_pb2.AdvanceRequest(to_s=math.nan)]))
        assert await status_of(call) is grpc.StatusCode.INVALID_ARGUMENT
        other = stub.Load(iter([block(replay_id="other")]))
        assert await status_of(other) is grpc.StatusCode.FAILED_PRECONDITION
    async with conducted(tmp_path, name="used") as (site, stub):
        clock: Any = site.core.clock
        clock.advance(0.0)
        await site.submit("k")
        call = stub.Load(iter([block()]))
        assert await status_of(call) is grpc.StatusCode.FAILED_PRECONDITION


async def test_a_round_needs_rounds_and_a_moment(tmp_path: Path) -> None:
    """A site without rounds holds none; one with them holds one where nobody is asked, too."""
    async with conducted(tmp_path) as (_, stub):
        await stub.Load(iter([block()]))
        call = stub.HoldRound(replay_pb2.HoldRoundRequest(at_s=900.0))
        assert await status_of(call) is grpc.StatusCode.FAILED_PRECONDITION
    async with conducted(tmp_path, name="other", reoffer=900) as (_, stub):
        await stub.Load(iter([block()]))
        requests = iter([replay_pb2.ArriveRequest(first_row=0, rows=2)])
        assert [answer.waits async for answer in stub.Arrive(requests)] == [True]
        call = stub.HoldRound(replay_pb2.HoldRoundRequest(at_s=math.inf))
        assert await status_of(call) is grpc.StatusCode.INVALID_ARGUMENT
        held = await stub.HoldRound(replay_pb2.HoldRoundRequest(at_s=1.5))
        assert (len(held.moved), held.next_event_time_s, held.waits) == (0, 10.0, True)
        moments = iter([replay_pb2.AdvanceRequest(to_s=10.0)])
        assert [answer.waits async for answer in stub.Advance(moments)] == [False]


async def test_only_a_virtual_clock_is_conducted(tmp_path: Path) -> None:
    """A daemon on real time has no such service, and its coordinator's socket is not there."""
    async with running(document(tmp_path), tmp_path) as site:
        assert not Path(site.users_address.removeprefix("unix:") + ".coordinator").exists()
        async with aio.insecure_channel(site.users_address) as channel:
            stub: Any = replay_pb2_grpc.ReplayServiceStub(channel)
            call = stub.Load(iter([block()]))
            assert await status_of(call) is grpc.StatusCode.UNIMPLEMENTED
    async with conducted(tmp_path, name="virtual") as (site, _):
        path = Path(site.users_address.removeprefix("unix:") + ".coordinator")
        assert path.stat().st_mode & 0o777 == 0o600
