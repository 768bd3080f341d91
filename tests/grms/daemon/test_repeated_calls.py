"""Calls that a daemon's end has ended are told from refusals, and repeated by both clients."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from broker.client import BrokerClient, CallError
from broker.v1 import workflow_pb2
from grms.client import Client, SiteUnavailable
from grms.daemon.pacing import is_absent
from grms.v1 import job_pb2

JOB = job_pb2.Job(job_id="home-1", state=job_pb2.JOB_STATE_ENDED)
RUNS = job_pb2.Job(job_id="home-1", state=job_pb2.JOB_STATE_RUNNING, user="ada")
FLOW = workflow_pb2.Workflow(workflow_id="w-1", end_time_s=1.0)


class Ending:
    """Answers calls with a message, but for the first ones: those end as a daemon's end ends them.

    Args:
        answer: of the others.
        times: how many end so.
    """

    def __init__(self, answer: Any, times: float = 2) -> None:
        self.answer = answer.SerializeToString()
        self.left = times
        self.calls = 0

    async def one(self, _: bytes, context: Any) -> bytes:
        """Answers a call."""
        self.calls += 1
        if self.calls <= self.left:
            await context.abort(grpc.StatusCode.CANCELLED, "CANCELLED")
        return bytes(self.answer)

    async def many(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        """Answers a call that watches."""
        yield await self.one(request, context)


@asynccontextmanager
async def served(
    path: Path, service: str, get: Ending, watch: Ending, changes: Ending | None = None
) -> AsyncIterator[None]:
    """Answers on a socket; without `changes` as a daemon that is older than that call."""
    server = aio.server()
    methods: Any = {
        "Get": grpc.unary_unary_rpc_method_handler(get.one),
        "Watch": grpc.unary_stream_rpc_method_handler(watch.many),
    }
    if changes is not None:
        methods["Changes"] = grpc.unary_stream_rpc_method_handler(changes.many)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


async def test_calls_that_the_daemons_end_has_ended_are_repeated(tmp_path: Path) -> None:
    """Whether they ask or watch."""
    path, get, watch = tmp_path / "home.sock", Ending(JOB), Ending(JOB)
    async with (
        served(path, "grms.v1.JobService", get, watch),
        Client(path, timeout_s=300) as site,
    ):
        assert (await site.get("home-1")).job_id == "home-1"
        assert (await site.wait("home-1")).job_id == "home-1"
    assert (get.calls, watch.calls) == (3, 3)


async def test_one_call_for_all_jobs_is_repeated_too(tmp_path: Path) -> None:
    """The daemon's end ends that call, then it tells the job's end."""
    path, asked = tmp_path / "home.sock", Ending(RUNS, 0)
    changes = Ending(job_pb2.ChangesResponse(user="ada", jobs=[JOB], token="1"))
    async with (
        served(path, "grms.v1.JobService", asked, Ending(JOB), changes),
        Client(path, timeout_s=300) as site,
    ):
        assert (await site.wait("home-1")).has_ended
    assert changes.calls >= 3


async def test_a_broker_s_client_repeats_too(tmp_path: Path) -> None:
    """It is the same for programs without an event loop."""
    path, get, watch = tmp_path / "gorba.sock", Ending(FLOW), Ending(FLOW)

    def ask() -> None:
        with BrokerClient(path, timeout_s=300) as broker:
            assert broker.get("w-1").workflow_id == "w-1"
            assert broker.wait("w-1").workflow_id == "w-1"

    async with served(path, "broker.v1.WorkflowService", get, watch):
        await asyncio.to_thread(ask)
    assert (get.calls, watch.calls) == (3, 3)


async def test_a_daemon_that_does_not_come_back_is_said_so(tmp_path: Path) -> None:
    """With the time over, the error is that of a site that cannot be reached."""
    path, never = tmp_path / "home.sock", Ending(JOB, float("inf"))
    async with (
        served(path, "grms.v1.JobService", never, never),
        Client(path, timeout_s=0.5) as site,
    ):
        with pytest.raises(SiteUnavailable, match="has ended the call, and did not come back"):
            await site.get("home-1")

    def ask() -> None:
        with (
            BrokerClient(path, timeout_s=0.5) as broker,
            pytest.raises(CallError, match="has ended the call, and did not come back"),
        ):
            broker.get("w-1")

    async with served(path, "broker.v1.WorkflowService", never, never):
        await asyncio.to_thread(ask)
    assert never.calls > 2


@pytest.mark.parametrize(
    ("code", "details", "absent"),
    [
        (grpc.StatusCode.UNAVAILABLE, "the daemon is starting", True),
        (grpc.StatusCode.CANCELLED, "CANCELLED", True),
        (grpc.StatusCode.INTERNAL, "Internal error from Core", True),
        (grpc.StatusCode.INTERNAL, "the daemon has met an error of its own", False),
        (grpc.StatusCode.NOT_FOUND, "there is no job", False),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", False),
    ],
)
def test_what_a_call_ends_with(code: grpc.StatusCode, details: str, absent: bool) -> None:
    """A refusal, a mistake of the daemon's own, and a time that is over are no absence."""
    error = aio.AioRpcError(code, aio.Metadata(), aio.Metadata(), details=details)
    assert is_absent(error) is absent
