"""A connection to a site's daemon, with calls that are retried if possible."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from grms.client.errors import SiteError, SiteUnavailable, unreached
from grms.daemon.pacing import Backoff, attempts, is_absent
from grms.daemon.status_details import DETAILS_KEY, read_details
from grms.v1 import deputy_pb2, job_pb2, operator_pb2

OPEN_S: Final = 5.0
"""A call that has lasted so long was not one that finds nobody, seconds."""

T = TypeVar("T")


class _Methods:
    # The methods of a service, as attributes, as a generated stub has them; each is made when it is first called, as few
    # programs call more than two or three.
    def __init__(self, channel: aio.Channel, service: ServiceDescriptor) -> None:
        self._channel = channel
        self._service = service

    def __getattr__(self, name: str) -> Any:
        method = self._service.methods_by_name.get(name)
        if method is None:
            raise AttributeError(
                f"{self._service.full_name} has no method {name}", name=name, obj=self
            )
        make = self._channel.unary_stream if method.server_streaming else self._channel.unary_unary
        made = make(
            f"/{self._service.full_name}/{name}",
            request_serializer=GetMessageClass(method.input_type).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        setattr(self, name, made)
        return made


class Calls:
    """One channel to a site's socket; the services exist once connected."""

    def __init__(self, socket: Path, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.socket = socket
        self._channel: aio.Channel | None = None

    def open(self) -> None:
        """Connects, when the first call is made."""
        self._channel = aio.insecure_channel(
            f"unix:{self.socket.absolute()}",
            options=[
                ("grpc.max_receive_message_length", 64 << 20),
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1000),
            ],
        )

    @cached_property
    def jobs(self) -> Any:
        """The users' service."""
        return _Methods(self._connected, job_pb2.DESCRIPTOR.services_by_name["JobService"])

    @cached_property
    def operator(self) -> Any:
        """The operators' service."""
        return _Methods(
            self._connected, operator_pb2.DESCRIPTOR.services_by_name["OperatorService"]
        )

    @cached_property
    def deputies(self) -> Any:
        """The service of users' deputies."""
        return _Methods(self._connected, deputy_pb2.DESCRIPTOR.services_by_name["DeputyService"])

    @property
    def _connected(self) -> aio.Channel:
        assert self._channel is not None, "open() comes first"
        return self._channel

    async def close(self) -> None:
        """Hangs up."""
        if self._channel is not None:
            await self._channel.close()

    def attempts(self) -> tuple[float, Backoff]:
        """Returns until when a call is tried (`time.monotonic`), and the pauses between attempts."""
        return attempts(self.timeout_s)

    async def pause(self, pause_s: float) -> None:
        """Waits before another attempt."""
        await asyncio.sleep(pause_s)

    def renewed(self, deadline: float, began: float) -> float:
        """Returns until when a broken call is tried anew; one that was open for a while had reached the site."""
        now = time.monotonic()
        return now + self.timeout_s if now - began > OPEN_S else deadline

    async def call(
        self,
        method: Callable[..., Awaitable[T]],
        request: Any,
        timeout_s: float | None = None,
    ) -> T:
        """Returns the answer of a method; `timeout_s` is what is left of the timeout, seconds; by default all of it.

        Raises:
            SiteError: it was refused.
            SiteUnavailable: the site cannot be reached in time.
        """
        deadline, backoff = attempts(self.timeout_s if timeout_s is None else timeout_s)
        while True:
            left = max(0.001, deadline - time.monotonic())
            try:
                return await method(request, timeout=left)
            except aio.AioRpcError as error:
                await self.pause_or_raise(error, deadline, backoff.next_s())

    async def pause_or_raise(self, error: aio.AioRpcError, deadline: float, pause: float) -> None:
        """Waits before another try; `SiteError` if another try is useless, or no time is left."""
        field, retry_s = error_details(error)
        code, reason = error.code(), error.details() or ""
        wait = max(pause, retry_s or 0.0)
        told_to_wait = code is grpc.StatusCode.RESOURCE_EXHAUSTED and retry_s is not None
        absent = is_absent(error)
        if (absent or told_to_wait) and time.monotonic() + wait < deadline:
            await asyncio.sleep(wait)
            return
        if code is grpc.StatusCode.CANCELLED:
            reason = (
                f"the daemon on {self.socket} has ended the call, and did not come back in time"
            )
        elif absent and "connect" in reason.lower():
            raise unreached(self.socket) from error
        kind = SiteUnavailable if absent or code is grpc.StatusCode.DEADLINE_EXCEEDED else SiteError
        raise kind(code.name, reason, field) from error


def error_details(error: aio.AioRpcError) -> tuple[str, float | None]:
    """Returns the invalid field and the seconds to wait before another try; "" and `None` if the site does not say."""
    # Not `dict(metadata)`: the keys of older grpcio's metadata are pairs.
    pairs: Any = error.trailing_metadata() or ()
    return read_details(next((value for key, value in pairs if key == DETAILS_KEY), b""))
