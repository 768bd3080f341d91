"""Channels to partners, and what counts as an answer that came over one."""

import asyncio
import math
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import grpc
from grpc import aio

from grms.security.certificates import PkiError
from lrms_sim.util.messages import shorten

CHANNEL_OPTIONS: Final = (
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.client_idle_timeout_ms", 2**31 - 1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
)
"""For every channel to a partner: a dead connection is noticed within half a minute."""

WORDS_MAX: Final = 500
"""Longest text of a partner, in characters, that is shown, logged and journaled; a message could
hold a million."""

ChannelMaker = Callable[[str, str], aio.Channel]
"""Makes a channel to a partner (its name) at an address."""


def channel_maker(
    credentials: Callable[[], grpc.ChannelCredentials] | None,
    tls_options: Callable[[str], Sequence[tuple[str, Any]]],
    message_bytes: int,
) -> ChannelMaker:
    """Returns a function that makes channels to partners.

    `credentials` are called for each channel; with `None` it has no TLS. `tls_options` pin a
    channel to one partner's certificate. Without keys that can be read there is no connection: `ConnectionError`.
    """

    def make(partner: str, address: str) -> aio.Channel:
        options = [
            *CHANNEL_OPTIONS,
            ("grpc.max_receive_message_length", message_bytes),
            ("grpc.max_send_message_length", message_bytes),
        ]
        if credentials is None:
            return aio.insecure_channel(address, options=options)
        try:
            shown = credentials()
        except (
            PkiError
        ) as error:  # as while they are replaced, or where there are no descriptors left
            raise ConnectionError(f"the own certificate cannot be used: {error}") from error
        return aio.secure_channel(address, shown, options=[*options, *tls_options(partner)])

    return make


def in_short(words: str | None) -> str:
    """Returns what a partner has said in words, as far as it is kept."""
    return shorten(words or "", WORDS_MAX)


class SenselessError(Exception):
    """A partner has answered what the protocol does not have; the text says what, for a person."""


class Linked(Protocol):
    """What leads to a partner."""

    @property
    def stub(self) -> Any:
        """By which the partner's methods are called; None while they cannot be."""


def stub_of(links: Mapping[str, Linked], partner: str) -> Any:
    """Returns the stub for a partner's methods; `ConnectionError` if it is not connected.

    Do not keep it while awaiting something: its channel may be closed by then, and gRPC reports a
    call on a closed channel as a programming error.
    """
    link = links.get(partner)
    stub = None if link is None else link.stub
    if stub is None:
        raise ConnectionError(f"{partner} is not connected")
    return stub


async def answer_to(call: Awaitable[Any]) -> Any:
    """Returns the answer to a call.

    Raises:
        SenselessError: it is no message of the protocol, or there is no such call at the partner.
        ConnectionError: its channel was closed meanwhile.
        grpc.aio.AioRpcError: there was none.
    """
    try:
        answer = await call
    except aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            raise SenselessError(f"it does not know a call: {in_short(error.details())}") from error
        raise
    except asyncio.CancelledError:
        # A channel that is closed cancels its calls. To who waits for one that looks like the end
        # of the own task, which would end for good, and without a word.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionError("the connection was given up") from None
    if answer is None:
        # So gRPC hands over bytes that cannot be read.
        raise SenselessError("its answer cannot be read")
    return answer


async def answers_to(call: AsyncIterable[Any]) -> AsyncIterator[Any]:
    """Yields the answers of a call that has many.

    Raises:
        SenselessError: one is no message of the protocol, or there is no such call at the partner.
        ConnectionError: its channel was closed meanwhile.
        grpc.aio.AioRpcError: it was ended.
    """
    answers = aiter(call)
    while True:
        try:
            yield await answer_to(anext(answers))
        except StopAsyncIteration:
            return


class Problems:
    """Finds out and tells why partners cannot be reached.

    Args:
        distrusts: finds out why a peer at a partner's address is not trusted; empty if it is.
        why: finds out what gRPC keeps to itself, of a partner at an address; empty if it cannot.
        ends: finds out when the certificates of a connection to a partner at an address end,
            seconds since 1970, or `None` if that does not succeed. None without TLS.
    """

    def __init__(
        self,
        why: Callable[[str, str], Awaitable[str]] | None = None,
        tell: Callable[[str, str], None] = lambda _partner, _problem: None,
        distrusts: Callable[[str, str], Awaitable[str]] | None = None,
        ends: Callable[[str, str], Awaitable[float | None]] | None = None,
    ) -> None:
        self._ends = ends
        self._why = why
        self._distrusts = distrusts
        self._tell = tell
        self._told: dict[str, str] = {}

    async def check(self, partner: str, address: str) -> None:
        """Returns where who answers for a partner may be believed, as far as can be seen before it is called.

        Raises:
            ConnectionRefusedError: it may not.
        """
        if self._distrusts is not None and (problem := await self._distrusts(partner, address)):
            raise ConnectionRefusedError(problem)

    async def explained(self, partner: str, address: str | None, problem: str) -> str:
        """Returns a clearer description of a problem, if there is one."""
        if self._why is None or address is None:
            return problem
        return await self._why(partner, address) or problem

    async def certificates_end(self, partner: str, address: str | None) -> float | None:
        """Returns until when a connection to a partner may stand, seconds since 1970.

        It is `None` if that cannot be said now.
        """
        if self._ends is None or address is None:
            return math.inf
        return await self._ends(partner, address)

    def note(self, partner: str, problem: str) -> None:
        """Takes note of the problem of a partner; empty for none."""
        if problem != self._told.get(partner, ""):
            self._told[partner] = problem
            if problem:
                self._tell(partner, problem)
