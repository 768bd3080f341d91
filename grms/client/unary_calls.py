"""Calls of a site's services with one answer each, without gRPC's library as long as that does."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.protobuf.message import DecodeError, Message

from grms.client.attempts import Attempts
from grms.client.errors import SiteError
from grms.client.unary import Connections
from grms.v1 import job_pb2, operator_pb2

if TYPE_CHECKING:
    from google.protobuf.descriptor import ServiceDescriptor

    from grms.client.calls import Calls

QUICK_S: Final = 2.0
"""So long an answer is waited for without gRPC's library, seconds; with it a call is tried until its time is over."""


class Method(NamedTuple):
    """A method of a service: its name and that of the stub that has it with gRPC's library, and its answer."""

    stub: str
    name: str
    path: str
    answer: type[Message]


class Stub:
    """The methods of a service, as attributes."""

    def __init__(self, name: str, service: "ServiceDescriptor") -> None:
        self._name = name
        self._service = service

    def __getattr__(self, name: str) -> Method:
        # Only after the messages, which say how protobuf is loaded.
        from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415  # see above

        method = self._service.methods_by_name[name]
        path = f"/{self._service.full_name}/{name}"
        return Method(self._name, name, path, GetMessageClass(method.output_type))


class UnaryCalls(Attempts):
    """Calls to a site's socket that may be made once more, from any thread.

    Args:
        socket: of the site.
        timeout_s: the timeout of a call with its retries, seconds.
        by_library: makes a call with gRPC's library, where it had no plain answer, and returns the answer; it is told
            how many seconds are left for that. By default it has an event loop of its own, so the caller may be in none.
    """

    def __init__(
        self,
        socket: Path,
        timeout_s: float,
        by_library: Callable[[Method, Message, float], Any] | None = None,
    ) -> None:
        super().__init__(timeout_s)
        self.socket = socket
        self.jobs: Any = Stub("jobs", job_pb2.DESCRIPTOR.services_by_name["JobService"])
        operators = operator_pb2.DESCRIPTOR.services_by_name["OperatorService"]
        self.operator: Any = Stub("operator", operators)
        self._by_library = by_library or self._with_own_loop
        self._connections = Connections(socket)

    def close(self) -> None:
        """Hangs up."""
        self._connections.close()

    async def pause(self, pause_s: float) -> None:
        """Waits before another attempt; there is no event loop that would have something else to do."""
        time.sleep(pause_s)  # noqa: ASYNC251  # as it says

    async def call(self, method: Method, request: Message) -> Any:
        """The same as `ask` for what may have an event loop as well; it never waits for one."""
        return self.ask(method, request)

    def ask(self, method: Method, request: Message) -> Any:
        """Returns the answer of a method.

        Raises:
            SiteError: it was refused, or what listens there is no site.
            SiteUnavailable: the site cannot be reached in time.
        """
        deadline = time.monotonic() + self.timeout_s
        quick_s = min(QUICK_S, self.timeout_s)
        said = self._connections.ask(method.path, request.SerializeToString(), quick_s)
        if said is None:
            return self._by_library(method, request, max(0.0, deadline - time.monotonic()))
        try:
            return method.answer.FromString(said)
        except DecodeError as error:
            raise SiteError("INTERNAL", f"what answers on {self.socket} is no site") from error

    def _with_own_loop(self, method: Method, request: Message, left_s: float) -> Any:
        import asyncio  # noqa: PLC0415  # slow, and seldom needed

        from grms.client.calls import Calls  # noqa: PLC0415  # same

        async def call() -> Any:
            calls = Calls(self.socket, self.timeout_s)
            calls.open()
            try:
                return await by_library(calls, method, request, left_s)
            finally:
                await calls.close()

        return asyncio.run(call())


async def by_library(calls: "Calls", method: Method, request: Message, left_s: float) -> Any:
    """Returns the answer of a method, by calls that are open and have gRPC's library, within so many seconds."""
    return await calls.call(getattr(getattr(calls, method.stub), method.name), request, left_s)
