"""The standard health service: whether a daemon serves, by check or watch.

In gRPC's own, watchers of one name share a lock while each writes: one that does not read blocks the others, and
the daemon when it announces its end.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from grms.daemon.rpc.requests import Context, refuse

HEALTH: Final[str] = health.SERVICE_NAME
"""The service's name for reflection and callers."""

WATCHERS_MAX: Final = 100
"""Most concurrent watch calls."""

WATCHERS_PER_CALLER: Final = 20
"""Most of one caller, so that it cannot keep others from watching."""

_STATUS: Final = health_pb2.HealthCheckResponse


class Serving:
    """Whether a daemon serves, and its watchers; `names` are its services, the empty name being health itself."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset({"", *names})
        self._serves = False
        self._closed = False
        self._turned = asyncio.Event()
        self.watchers = 0

    def set(self, *, serves: bool) -> None:
        """Says whether it serves."""
        self._serves = serves
        self._wake()

    def close(self) -> None:
        """Says that it does not serve any more, and ends the calls of those who watch."""
        self._closed, self._serves = True, False
        self._wake()

    def _wake(self) -> None:
        turned, self._turned = self._turned, asyncio.Event()
        turned.set()

    def status(self, name: str) -> int | None:
        """Returns the health of a service in the protocol's words; `None` if there is no such service."""
        if name not in self._names:
            return None
        return _STATUS.SERVING if self._serves else _STATUS.NOT_SERVING

    async def changes(self, name: str) -> AsyncIterator[int]:
        """Yields the health of a service, and again when it changes, until `close`."""
        last = None
        while True:
            turned = self._turned
            status = self.status(name)
            found = _STATUS.SERVICE_UNKNOWN if status is None else status
            if found != last:
                last = found
                yield found
            elif self._closed:
                return
            else:
                await turned.wait()


class HealthService(health_pb2_grpc.HealthServicer):
    """The service of `grpc.health.v1`.

    `admit` ends a call without permission; `who` distinguishes callers, `None` if there is only one.
    """

    def __init__(
        self,
        serving: Serving,
        admit: Callable[[Context], Awaitable[None]] | None = None,
        who: Callable[[Context], str] | None = None,
    ) -> None:
        self._serving = serving
        self._admit = admit
        self._who = who
        self._watchers: Counter[str] = Counter()

    async def Check(  # noqa: N802  # gRPC's name
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> health_pb2.HealthCheckResponse:
        """Says whether a service serves."""
        if self._admit is not None:
            await self._admit(context)
        status: Any = self._serving.status(request.service)
        if status is None:
            await refuse(context, grpc.StatusCode.NOT_FOUND, "there is no such service")
        return _STATUS(status=status)

    async def Watch(  # noqa: N802  # gRPC's name
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        """Says whether a service serves, and again when that changes."""
        if self._admit is not None:
            await self._admit(context)
        serving, watchers = self._serving, self._watchers
        who = None if self._who is None else self._who(context)
        text = ""
        if serving.watchers >= WATCHERS_MAX:
            text = f"{WATCHERS_MAX} calls watch this already; use Check"
        elif who is not None and watchers[who] >= WATCHERS_PER_CALLER:
            text = f"{WATCHERS_PER_CALLER} calls of {who} watch this already; use Check"
        if text:
            await refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, text, retry_s=5.0)
        serving.watchers += 1
        if who is not None:
            watchers[who] += 1
        try:
            status: Any
            async for status in serving.changes(request.service):
                yield _STATUS(status=status)
        finally:
            serving.watchers -= 1
            if who is not None:
                watchers[who] -= 1
                if not watchers[who]:
                    del watchers[who]
        await refuse(context, grpc.StatusCode.UNAVAILABLE, "the daemon is being stopped")
