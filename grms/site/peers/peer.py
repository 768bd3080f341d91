"""The link to one partner: its availability, the connection to it, and what counts as an answer that came over it.

A link has one channel, a task that probes the partner, and a pause after failures. A partner is asked
only while it is up: from the moment it has identified itself until several calls in a row fail, or
the connection breaks. So a dead partner costs a decision at most one deadline before it is known to
be dead, and nothing after. A partner that goes down before its next heartbeat is probed after
increasing pauses: it may identify itself and answer nothing else, and would go up and down without
end.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import grpc
import numpy as np
from grpc import aio

from grms.daemon.messages import WireError
from grms.daemon.pacing import Backoff, BackoffSettings
from grms.daemon.shared_folders import SharedFolders
from grms.security.certificates import PkiError
from grms.site.model.events import (
    PartnerDown,
    PartnerDuplicated,
    PartnerFaulty,
    PartnerIncompatible,
    PartnerLost,
    PartnerUp,
)
from grms.site.model.jobs import OfferId
from grms.site.model.partners import two_daemons
from grms.site.peers.instances import Instances
from grms.site.runtime.event_loop import Engine
from grms.site.wire.convert import PROTOCOL_VERSION, read_nodes, read_seen
from grms.v1 import partner_pb2, partner_pb2_grpc
from lrms_sim.machine.node_kinds import NodeKind
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


HEARTBEAT_S: Final = 10.0
"""Interval at which a partner that is up is probed, seconds."""

UNHEARD_S: Final = 120.0
"""A partner that is up calls each heartbeat: one that has been silent for so long cannot reach this
site, seconds."""

FAILURES_MAX: Final = 3
"""Calls in a row without an answer after which a partner counts as down."""

PROBE: Final = BackoffSettings(first_s=0.2, most_s=15.0)
"""Pauses between attempts to reach a partner that is down."""


_NOT_CONNECTED = "Failed to connect to remote host"


@dataclass(frozen=True, slots=True)
class PeerClientSettings:
    """How partners are dealt with.

    Attributes:
        offer_timeout_s: for the answer to an offer, and to every other call.
        lost_after_s: a partner that is down so long counts as lost, real seconds.
        virtual: sites are in lock step: offers carry the virtual time, and no partner is ever away.
        probe: pauses between attempts to reach a partner that is down.
        shared: what is common with partners: they alone are offered jobs that use files in place.
        instance: of this daemon (`instances`); 0 is not told.
    """

    site: str
    processors: int
    offer_timeout_s: float
    lost_after_s: float
    virtual: bool
    message_bytes: int
    probe: BackoffSettings = PROBE
    shared: SharedFolders = field(default_factory=SharedFolders)
    instance: int = 0


class PeerClient:
    """The link to one partner.

    Attributes:
        address: where it is; None while unknown.
        problem: what is in the way, for a person; empty if nothing is.
        last_heard: when it last answered or asked, on this site's clock; nan for never.

    Args:
        settings: how partners are dealt with.
        address: where it is; None while unknown.
    """

    def __init__(
        self,
        settings: PeerClientSettings,
        engine: Engine,
        *,
        name: str,
        address: str | None,
        make_channel: ChannelMaker,
        rng: np.random.Generator,
        problems: Problems,
    ) -> None:
        self._settings = settings
        self._problems = problems
        self._engine = engine
        self.name = name
        self.address = address
        self._make_channel = make_channel
        self._backoff = Backoff(settings.probe, rng)
        self._relapses = Backoff(settings.probe, rng)
        self._channel: aio.Channel | None = None
        self._stub: Any = None
        self._failures = 0
        self._down_since = self._up_since = time.monotonic()
        self._lost = False
        self._steady = self._relapsed = False
        self._ends: float | None = None
        self._look = asyncio.Event()
        self._came_up = asyncio.Event()
        self.up = False
        self.problem = "not reached yet"
        self.last_heard = float("nan")
        self._last_called = time.monotonic()
        self._instances = Instances()
        self._duplicated = False

    @property
    def duplicated(self) -> str:
        """That two daemons use the partner's name, for a person; empty if not."""
        return two_daemons(self.name) if self._duplicated else ""

    @property
    def unheard(self) -> str:
        """Why the ends of jobs that the partner has are not heard of, for a person; empty if they are.

        It answers, and so it is there; but it would call as well, were this site where it looks for it.
        """
        silent_s = time.monotonic() - max(self._last_called, self._up_since)
        if not self.up or silent_s < UNHEARD_S:
            return ""
        return (
            f"{self.name} answers, and has not called for {silent_s:.0f} s: it cannot report the ends of "
            f"jobs here; is this site's address as {self.name} has it right, and open to it?"
        )

    @property
    def stub(self) -> Any:
        """By which the partner's methods are called; None while they cannot be."""
        return self._stub if self._is_connected() else None

    def begin(self, group: asyncio.TaskGroup) -> None:
        """Starts the task that finds out whether the partner is there."""
        group.create_task(self._watch(), name=f"partner {self.name}")

    def heard(self) -> None:
        """Notes that the partner has said something: it is worth asking it who it is."""
        self.last_heard = self._engine.clock.now()
        self._last_called = time.monotonic()
        if not self.up:
            self._look.set()

    def introduced(self, instance: int) -> None:
        """Notes which instance of the partner's daemon has said who it is."""
        self._instances.heard(instance)
        self._look_at_instances()

    def _look_at_instances(self) -> None:
        if self._instances.duplicated is not self._duplicated:
            self._duplicated = not self._duplicated
            event = PartnerDuplicated(self._engine.new_id(), self.name, self._duplicated)
            self._engine.tell(event)

    def move(self, address: str) -> None:
        """Notes where the partner is now; a connection to another address is given up.

        One that is down is looked for at once, whether it has moved or come back.
        """
        if address == self.address:
            if not self.up:
                self._look.set()
            return
        self.address = address
        self._hang_up(f"it has moved to {address}")
        self._relapsed = False
        self._look.set()

    def give_up(self) -> None:
        """Gives up a partner: nothing connects to it until it is moved."""
        self.address = None
        self._hang_up("it is no partner")

    def renew(self) -> None:
        """Begins the connection anew; calls that are on their way still have their answers."""
        self._hang_up("its connection begins anew", grace_s=self._settings.offer_timeout_s)
        self._relapsed = False
        self._look.set()

    def _hang_up(self, problem: str, grace_s: float | None = None) -> None:
        channel, self._channel, self._stub = self._channel, None, None
        if channel is not None:
            self._went_down(problem)
            closing = channel.close(grace_s)
            asyncio.get_running_loop().create_task(closing, name=f"close {self.name}")

    async def _watch(self) -> None:
        try:
            while True:
                self._look.clear()
                if self.address is not None:
                    await self._introduce()
                    self._look_at_instances()
                    self._problems.note(self.name, self.problem or self.duplicated)
                pause = self._until_heartbeat() if self.up else self._backoff.next_s()
                self._check_lost()
                await self._until_worth_looking(pause)
                if self._relapsed:
                    self._look.clear()
                    await self._until_worth_looking(self._relapses.next_s())
                    self._relapsed = False
        finally:
            if self._channel is not None:
                await self._channel.close()

    async def _until_worth_looking(self, pause_s: float) -> None:
        # Until the pause is over, somebody wants it, or the connection changes.
        async with asyncio.TaskGroup() as group:
            waits: list[asyncio.Task[Any]] = [
                group.create_task(self._look.wait(), name=f"look for {self.name}")
            ]
            if self.up and self._channel is not None:
                change = self._channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
                waits.append(group.create_task(change, name=f"connection to {self.name}"))
            await asyncio.wait(waits, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        if self.up and not self._is_connected():
            self._went_down("the connection is broken")
        elif self.up and self._ends is not None and time.time() >= self._ends:
            # gRPC would go on with it. A new one shows, and wants to see, the certificates of now.
            self._hang_up("a certificate of its connection has ended")
            self._relapsed = False

    def _until_heartbeat(self) -> float:
        left = math.inf if self._ends is None else self._ends - time.time()
        return min(HEARTBEAT_S, max(0.0, left))

    async def _introduce(self) -> None:
        settings, address = self._settings, self.address
        request = partner_pb2.DescribeRequest(
            site=settings.site,
            processors=settings.processors,
            protocol_version=PROTOCOL_VERSION,
            instance=settings.instance,
        )
        try:
            stub = await self._connected()
            answer = await answer_to(stub.Describe(request, timeout=settings.offer_timeout_s))
            epoch = self._engine.state.memory.epoch
            seen = read_seen(answer, epoch=epoch, now_ns=time.time_ns())
            nodes = read_nodes(answer)
        except (SenselessError, WireError) as error:
            if address == self.address:
                self.senseless(f"asked who it is: {error}")
                self._went_down(str(error))
            return
        except (aio.AioRpcError, OSError, ValueError) as error:
            if address == self.address:
                self.silent(error)
                self.problem = await self._problems.explained(self.name, address, self.problem)
            return
        if address != self.address:
            return  # it has moved meanwhile
        if answer.site != self.name:
            # This connection would lead to the same one for ever, whoever is at the address by now.
            self._hang_up(f"who answers at {self.address} says it is {in_short(answer.site)!r}")
        elif answer.protocol_version != PROTOCOL_VERSION:
            self._incompatible(answer.protocol_version)
        elif not 1 <= answer.processors < 2**31:
            self.senseless(f"it says it has {answer.processors} processors")
            self._went_down(f"it says it has {answer.processors} processors")
        else:
            self.answered()
            self.introduced(answer.instance)
            self._went_up(answer.processors, seen, nodes)
            if self._ends is None:
                ends = await self._problems.certificates_end(self.name, address)
                # By this clock it has ended, and the partner has taken it: its clock counts then.
                self._ends = math.inf if ends is not None and ends <= time.time() else ends

    async def _connected(self) -> Any:
        channel = self._channel
        ready = grpc.ChannelConnectivity.READY
        if channel is not None and not self.up and channel.get_state() is not ready:
            # It would connect anew by itself: with the certificates of before, to whoever shows one that
            # is refused by now, and after pauses of its own.
            self._hang_up(self.problem, grace_s=self._settings.offer_timeout_s)
        if self._stub is None:
            assert self.address is not None
            await self._problems.check(self.name, self.address)
        if (
            self._stub is None
        ):  # nobody else makes it, but it may have moved meanwhile, or be no partner
            if self.address is None:
                raise ConnectionError("it is no partner")
            self._channel = self._make_channel(self.name, self.address)
            self._ends = None
            self._stub = partner_pb2_grpc.PartnerServiceStub(self._channel)
        return self._stub

    def _incompatible(self, version: int) -> None:
        self._went_down(
            f"it speaks version {version} of the protocol, this site {PROTOCOL_VERSION}"
        )
        self._engine.tell(PartnerIncompatible(self._engine.new_id(), self.name, version))

    def senseless(self, reason: str, *, probed: bool = False) -> None:
        """Notes that the partner has answered what makes no sense."""
        self._engine.tell(PartnerFaulty(*self._engine.stamp(), self.name, reason, probed))

    def _went_up(self, processors: int, seen: OfferId | None, nodes: tuple[NodeKind, ...]) -> None:
        self.problem = ""
        self._backoff.reset()
        self._lost = False
        if self.up:
            self._steady = True
            self._relapses.reset()
        else:
            self.up = True
            self._up_since = time.monotonic()
            self._came_up.set()
            engine = self._engine
            engine.tell(PartnerUp(*engine.stamp(), self.name, processors, seen, nodes))

    def _went_down(self, problem: str) -> None:
        self.problem = problem
        self._came_up.clear()
        if self.up:
            self.up = False
            self._relapsed, self._steady = not self._steady, False
            self._down_since = time.monotonic()
            if not self._settings.virtual:  # there it is brought back, and waited for
                self._engine.tell(PartnerDown(self._engine.new_id(), self.name))

    def _check_lost(self) -> None:
        down_s = time.monotonic() - self._down_since
        lost_after_s = math.inf if self._settings.virtual else self._settings.lost_after_s
        if not self.up and not self._lost and down_s >= lost_after_s:
            self._lost = True
            engine = self._engine
            engine.tell(PartnerLost(*engine.stamp(), self.name))

    def answered(self) -> None:
        """Notes that a call had an answer."""
        self._failures = 0
        self.last_heard = self._engine.clock.now()

    def silent(self, error: Exception) -> None:
        """Notes that a call had none: after some of these the partner counts as down."""
        self._failures += 1
        if isinstance(error, aio.AioRpcError):
            text = error.details() or ""
            if _NOT_CONNECTED in text:
                # gRPC tells of each of its attempts; the last word is the system's.
                text = f"not connected:{text.rpartition(_NOT_CONNECTED)[2].rpartition(':')[2]}"
            problem = f"{error.code().name}: {in_short(text)}"
            broken = error.code() in {
                grpc.StatusCode.UNAVAILABLE,
                grpc.StatusCode.UNAUTHENTICATED,
                grpc.StatusCode.PERMISSION_DENIED,
            }
        else:
            problem, broken = str(error), True
        self.problem = problem
        if broken or self._failures >= FAILURES_MAX:
            was_up = self.up
            self._went_down(problem)
            if was_up:
                # One look at once; after that there are pauses between attempts.
                self._look.set()

    def broken(self) -> None:
        """Notes that nothing can be sent although the partner counts as up, and finds out why."""
        if self.up:
            self._went_down("the connection is broken")
            self._look.set()

    async def pause(self, delay_s: float) -> None:
        """Waits so many seconds, or until the partner comes up."""
        if delay_s <= 0:
            return
        already_up = self._came_up.is_set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                if already_up:
                    await asyncio.sleep(delay_s)
                await self._came_up.wait()

    def _is_connected(self) -> bool:
        return (
            self.up
            and self._channel is not None
            and self._channel.get_state() is grpc.ChannelConnectivity.READY
        )
