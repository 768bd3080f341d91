"""The health service: asked, watched, and at the end of a daemon."""

import asyncio
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from grms.daemon.rpc import health
from grms.daemon.rpc.health import HealthService, Serving
from tests.grms.daemon.reached import reached
from tests.waiting import until

STATUS = health_pb2.HealthCheckResponse


async def watched(stub: Any, name: str, seen: list[int]) -> grpc.StatusCode:
    """Watches until the end, which is returned."""
    try:
        async for answer in stub.Watch(health_pb2.HealthCheckRequest(service=name)):
            seen.append(answer.status)  # noqa: PERF401  # it is looked at meanwhile
    except aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_who_watches_hears_every_change_and_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of one name hear the same, one leaves and the other goes on; a name there is not is unknown."""
    monkeypatch.setattr(health, "WATCHERS_MAX", 3)
    serving = Serving(["a"])
    server = aio.server()
    health_pb2_grpc.add_HealthServicer_to_server(HealthService(serving), server)
    async with reached(server) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        heard: dict[str, list[int]] = {"first": [], "second": [], "other": []}
        names = {"first": "a", "second": "a", "other": "b"}
        tasks = {key: asyncio.create_task(watched(stub, names[key], heard[key])) for key in heard}
        await until(lambda: all(heard.values()))
        assert await watched(stub, "a", []) is grpc.StatusCode.RESOURCE_EXHAUSTED
        tasks["first"].cancel()
        await until(lambda: serving.watchers == 2)
        serving.set(serves=True)
        await until(lambda: heard["second"] == [STATUS.NOT_SERVING, STATUS.SERVING])
        answer = await stub.Check(health_pb2.HealthCheckRequest(service="a"))
        assert answer.status == STATUS.SERVING
        with pytest.raises(aio.AioRpcError) as error:
            await stub.Check(health_pb2.HealthCheckRequest(service="b"))
        assert error.value.code() is grpc.StatusCode.NOT_FOUND
        serving.close()
        for key in ("second", "other"):
            assert await tasks[key] is grpc.StatusCode.UNAVAILABLE
        assert heard["second"][-1] == STATUS.NOT_SERVING
        assert heard["other"] == [STATUS.SERVICE_UNKNOWN]
        assert heard["first"] == [STATUS.NOT_SERVING]


async def test_one_caller_does_not_keep_others_from_watching(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each has a share of the places, and has it again when its calls have ended."""
    monkeypatch.setattr(health, "WATCHERS_PER_CALLER", 2)
    serving = Serving([])

    def who(context: Any) -> str:
        return str(dict(context.invocation_metadata())["who"])

    service = HealthService(serving, who=who)
    server = aio.server()
    health_pb2_grpc.add_HealthServicer_to_server(service, server)
    async with reached(server) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)

        def watch(name: str) -> Any:
            return stub.Watch(health_pb2.HealthCheckRequest(), metadata=[("who", name)])

        calls = [watch("ann"), watch("ann")]
        for call in calls:
            await call.read()
        with pytest.raises(aio.AioRpcError, match="2 calls of ann watch this") as error:
            await watch("ann").read()
        assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        calls.append(watch("bob"))
        await calls[-1].read()
        calls[0].cancel()
        await until(lambda: serving.watchers == 2)
        calls.append(watch("ann"))
        await calls[-1].read()
        for call in calls:
            call.cancel()
        await until(lambda: not serving.watchers)
        assert not service._watchers
