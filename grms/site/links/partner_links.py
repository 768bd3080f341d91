"""What is said to partners, and what is made of their silence.

Each partner has a link: one channel, a task that finds out whether the partner is there, and a
circuit breaker. A partner is asked only while it is up; it is up from the moment it has said who it
is until calls to it fail several times in a row, or the connection breaks. So a dead partner costs
a decision nothing once it is known to be dead, and at most one deadline before.
"""

import asyncio
import contextlib
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import grpc
import numpy as np
from grpc import aio

from grms.kit.backoff import Backoff, BackoffSettings
from grms.site.engine.engine import Engine, Send
from grms.site.facts.commands import SendOffer, SendProbe, SendReport, SendResolve, SendWithdraw
from grms.site.facts.events import (
    OfferAnswered,
    OfferDisputed,
    OfferFailed,
    PartnerDown,
    PartnerFaulty,
    PartnerIncompatible,
    PartnerLost,
    PartnerUp,
    ProbeAnswered,
    ProbeFailed,
    ReportAnswered,
    ReportFailed,
    StatusAnswered,
    StatusFailed,
)
from grms.site.facts.jobs import Completion, OfferId
from grms.site.facts.wire import (
    PROTOCOL_VERSION,
    WireError,
    read_answer,
    read_offer,
    read_status,
    write_completion,
    write_offer,
    write_request,
)
from grms.site.links.calls import ChannelMaker, Problems, SenselessError, answer_to
from grms.v1 import partner_pb2, partner_pb2_grpc

HEARTBEAT_S: Final = 10.0
"""How often a partner that is up is asked who it is, seconds."""

FAILURES_MAX: Final = 3
"""So many calls in a row without an answer, and the partner counts as down."""

QUESTIONS_MAX: Final = 16
"""Questions about offers that are on the way to one partner at one time. One that is back is asked
about every job it has; all at once, their deadlines would pass before it comes to the last ones, and
it would count as down again."""

REPORT_COMPLETIONS_MAX: Final = 1000
"""Ends in one report."""

PROBE: Final = BackoffSettings(first_s=0.2, most_s=15.0)
"""Pauses between attempts to reach a partner that is down."""


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """How partners are dealt with.

    Attributes:
        site: name of this site.
        processors: its size.
        offer_timeout_s: for the answer to an offer, and to every other call.
        lost_after_s: a partner that is down so long counts as lost, real seconds.
        virtual: offers carry the virtual time.
        message_bytes: largest message.
        probe: pauses between attempts to reach a partner that is down.
    """

    site: str
    processors: int
    offer_timeout_s: float
    lost_after_s: float
    virtual: bool
    message_bytes: int
    probe: BackoffSettings = PROBE


DISPUTED: Final = grpc.StatusCode.ALREADY_EXISTS
"""By which a partner says that an offer's number is another job's."""

_NOT_CONNECTED = "Failed to connect to remote host"


class PartnerLinks:
    """The links to all partners; the engine sends through them.

    Attributes:
        links: by partner's name.

    Args:
        settings: how partners are dealt with.
        engine: is told what comes of it.
        addresses: of the partners, by name; None where it is not known yet.
        make_channel: makes channels.
        problems: finds out and tells why partners cannot be reached.
    """

    def __init__(
        self,
        settings: LinkSettings,
        engine: Engine,
        addresses: Mapping[str, str | None],
        make_channel: ChannelMaker,
        problems: Problems | None = None,
    ) -> None:
        self.links: dict[str, PartnerLink] = {}
        rng, told = np.random.default_rng(), problems or Problems()
        self._make = partial(
            PartnerLink, settings, engine, make_channel=make_channel, rng=rng, problems=told
        )
        self._group: asyncio.TaskGroup | None = None
        self.list_partners(addresses)

    async def run(self) -> None:
        """Keeps the links until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for link in self.links.values():
                    link.begin(group)
                await asyncio.get_running_loop().create_future()
            finally:
                self._group = None
                for link in self.links.values():
                    link.closing = True

    def send(self, command: Send) -> None:
        """Begins to send; the outcome comes back as an event. Nothing is sent while closing."""
        link = self.links.get(command.partner)
        if self._group is not None and link is not None:
            link.send(command, self._group)

    def list_partners(self, addresses: Mapping[str, str | None]) -> None:
        """Takes another list of partners: links are made, moved and given up as it says.

        The link of one that is no longer listed stays, as open questions wait on it; it connects to
        nobody.

        Args:
            addresses: of the partners, by name; None where it is not known, or was told by itself.
        """
        for name, address in addresses.items():
            link = self.links.get(name)
            if link is None:
                link = self.links[name] = self._make(name=name, address=address)
                if self._group is not None:
                    link.begin(self._group)
            elif address is not None:
                link.move(address)
        for name in self.links.keys() - addresses.keys():
            self.links[name].give_up()

    def renew(self) -> None:
        """Begins every connection anew, with the certificate that there is now."""
        for link in self.links.values():
            link.renew()

    @property
    def reports_open(self) -> int:
        """Ends of partners' jobs that have not been acknowledged."""
        return sum(link.reports_open for link in self.links.values())


class PartnerLink:
    """The link to one partner.

    Attributes:
        name: of the partner.
        address: where it is; None while unknown.
        up: it can be asked.
        problem: what is in the way, for a person; empty where nothing is.
        last_heard: when it last answered or asked, on this site's clock; nan for never.
        reports_open: ends of its jobs that have not been acknowledged.
        closing: the daemon ends.

    Args:
        settings: how partners are dealt with.
        engine: is told what comes of it.
        name: of the partner.
        address: where it is; None while unknown.
        make_channel: makes channels.
        rng: for the pauses between attempts.
        problems: finds out and tells why it cannot be reached.
    """

    def __init__(
        self,
        settings: LinkSettings,
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
        self._channel: aio.Channel | None = None
        self._stub: Any = None
        self._failures = 0
        self._down_since = time.monotonic()
        self._lost = False
        self._look = asyncio.Event()
        self._came_up = asyncio.Event()
        self._asking = asyncio.Semaphore(QUESTIONS_MAX)
        self._outbox: list[Completion] = []
        self._reporting = False
        self.reports_open = 0
        self.up = False
        self.problem = "not reached yet"
        self.last_heard = float("nan")
        self.closing = False

    @property
    def stub(self) -> Any:
        """By which the partner is asked; None while it cannot be."""
        return self._stub if self._is_connected() else None

    def begin(self, group: asyncio.TaskGroup) -> None:
        """Starts the task that finds out whether the partner is there."""
        group.create_task(self._watch(), name=f"partner {self.name}")

    def heard(self) -> None:
        """Notes that the partner has said something: it is worth asking it who it is."""
        self.last_heard = self._engine.clock.now()
        if not self.up:
            self._look.set()

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
        self._look.set()

    def give_up(self) -> None:
        """Notes that it is no partner any more: nothing connects to it until it is moved."""
        self.address = None
        self._hang_up("it is no partner")

    def renew(self) -> None:
        """Begins the connection anew; calls that are on their way still have their answers."""
        self._hang_up("its connection begins anew", grace_s=self._settings.offer_timeout_s)
        self._look.set()

    def _hang_up(self, problem: str, grace_s: float | None = None) -> None:
        channel, self._channel, self._stub = self._channel, None, None
        if channel is not None:
            self._went_down(problem)
            closing = channel.close(grace_s)
            asyncio.get_running_loop().create_task(closing, name=f"close {self.name}")

    def send(self, command: Send, group: asyncio.TaskGroup) -> None:
        """Begins to send; the outcome comes back as an event."""
        if isinstance(command, SendReport):
            self.reports_open += 1
            if command.delay_s == 0:
                self._enqueue(command.completion, group)
            else:
                work: Coroutine[Any, Any, None] = self._report_later(command, group)
                group.create_task(work, name=f"report to {self.name}")
            return
        if isinstance(command, SendOffer):
            work = self._offer(command)
        else:
            work = self._probe(command) if isinstance(command, SendProbe) else self._ask(command)
        group.create_task(work, name=f"{type(command).__name__} {self.name}")

    # --- is it there? --------------------------------------------------------------------------

    async def _watch(self) -> None:
        try:
            while True:
                self._look.clear()
                if self.address is not None:
                    await self._introduce()
                    self._problems.note(self.name, self.problem)
                pause = HEARTBEAT_S if self.up else self._backoff.next_s()
                self._check_lost()
                await self._until_worth_looking(pause)
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

    async def _introduce(self) -> None:
        settings, address = self._settings, self.address
        request = partner_pb2.DescribeRequest(
            site=settings.site,
            processors=settings.processors,
            protocol_version=PROTOCOL_VERSION,
        )
        try:
            stub = await self._connected()
            answer = await answer_to(stub.Describe(request, timeout=settings.offer_timeout_s))
            seen = read_offer(answer.offer_seen) if answer.HasField("offer_seen") else None
        except (SenselessError, WireError) as error:
            if address == self.address:
                self._senseless(f"asked who it is: {error}")
                self._went_down(str(error))
            return
        except (aio.AioRpcError, OSError, ValueError) as error:
            if address == self.address:
                self._silent(error)
                self.problem = await self._problems.explained(self.name, address, self.problem)
            return
        if address != self.address:
            return  # it has moved meanwhile
        if answer.site != self.name:
            # This connection would lead to the same one for ever, whoever is at the address by now.
            self._hang_up(f"who answers at {self.address} says it is {answer.site!r}")
        elif answer.protocol_version != PROTOCOL_VERSION:
            self._incompatible(answer.protocol_version)
        elif not 1 <= answer.processors < 2**31:
            self._senseless(f"it says it has {answer.processors} processors")
            self._went_down(f"it says it has {answer.processors} processors")
        else:
            self._answered()
            self._went_up(answer.processors, seen)

    async def _connected(self) -> Any:
        channel = self._channel
        failing = grpc.ChannelConnectivity.TRANSIENT_FAILURE
        if channel is not None and not self.up and channel.get_state() is failing:
            # It would pause before it tries again; the pauses between attempts are ours. A new one
            # shows a renewed certificate, too.
            self._channel = self._stub = None
            await channel.close()
        if self._stub is None:
            assert self.address is not None
            self._channel = self._make_channel(self.name, self.address)
            self._stub = partner_pb2_grpc.PartnerServiceStub(self._channel)
        return self._stub

    def _incompatible(self, version: int) -> None:
        self._went_down(
            f"it speaks version {version} of the protocol, this site {PROTOCOL_VERSION}"
        )
        self._engine.tell(PartnerIncompatible, self.name, version)

    def _senseless(self, reason: str, *, probed: bool = False) -> None:
        engine = self._engine
        engine.tell(PartnerFaulty, self.name, reason, probed)

    def _went_up(self, processors: int, seen: OfferId | None) -> None:
        self.problem = ""
        self._backoff.reset()
        self._lost = False
        if not self.up:
            self.up = True
            self._came_up.set()
            engine = self._engine
            engine.tell(PartnerUp, self.name, processors, seen)

    def _went_down(self, problem: str) -> None:
        self.problem = problem
        self._came_up.clear()
        if self.up:
            self.up = False
            self._down_since = time.monotonic()
            self._engine.tell(PartnerDown, self.name)

    def _check_lost(self) -> None:
        down_s = time.monotonic() - self._down_since
        if not self.up and not self._lost and down_s >= self._settings.lost_after_s:
            self._lost = True
            engine = self._engine
            engine.tell(PartnerLost, self.name)

    def _answered(self) -> None:
        self._failures = 0
        self.last_heard = self._engine.clock.now()

    def _silent(self, error: Exception) -> None:
        self._failures += 1
        if isinstance(error, aio.AioRpcError):
            text = error.details() or ""
            if _NOT_CONNECTED in text:
                # gRPC tells of each of its attempts; the last word is the system's.
                text = f"not connected:{text.rpartition(_NOT_CONNECTED)[2].rpartition(':')[2]}"
            problem = f"{error.code().name}: {text}"
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

    def _is_connected(self) -> bool:
        return (
            self.up
            and self._channel is not None
            and self._channel.get_state() is grpc.ChannelConnectivity.READY
        )

    # --- what is said --------------------------------------------------------------------------

    async def _offer(self, command: SendOffer) -> None:
        engine, settings = self._engine, self._settings
        if not self._is_connected():
            # Nothing has been handed to the network: the partner cannot have it.
            if self.up:
                self._went_down("the connection is broken")
                self._look.set()
            engine.tell(OfferFailed, self.name, command.offer, sent=False)
            return
        request = partner_pb2.OfferRequest(
            site=settings.site,
            offer=write_offer(command.offer),
            settled_below=command.settled_below,
            job=write_request(command.request, command.payload),
        )
        if settings.virtual:
            request.replay_time_s = engine.clock.now()
        try:
            answer = await answer_to(self._stub.Offer(request, timeout=settings.offer_timeout_s))
            accepted = read_answer(answer)
        except (SenselessError, WireError) as error:
            self._answered()
            self._senseless(f"asked to take a job: {error}")
            engine.tell(OfferFailed, self.name, command.offer)
        except (aio.AioRpcError, ConnectionError) as error:
            if isinstance(error, aio.AioRpcError) and error.code() is DISPUTED:
                engine.tell(OfferDisputed, self.name, command.offer)
                return
            self._silent(error)
            engine.tell(OfferFailed, self.name, command.offer)
        else:
            self._answered()
            engine.tell(OfferAnswered, self.name, command.offer, accepted)

    async def _ask(self, command: SendResolve | SendWithdraw) -> None:
        engine = self._engine
        await self._pause(command.delay_s)
        try:
            async with self._asking:
                answer = await self._question(command)
            self._answered()
            status, completion = read_status(answer)
        except (aio.AioRpcError, ConnectionError, SenselessError, WireError) as error:
            if isinstance(error, aio.AioRpcError):
                self._silent(error)
            elif not isinstance(error, ConnectionError):
                self._senseless(f"asked about an offer: {error}")
            engine.tell(StatusFailed, self.name, command.offer, command.cause)
            return
        engine.tell(StatusAnswered, self.name, command.offer, command.cause, status, completion)

    async def _probe(self, command: SendProbe) -> None:
        engine = self._engine
        await asyncio.sleep(command.delay_s)
        try:
            status, _ = read_status(await self._question(command))
        except (SenselessError, WireError) as error:
            self._senseless(f"probed: {error}", probed=True)
        except (aio.AioRpcError, ConnectionError) as error:
            if isinstance(error, aio.AioRpcError):
                self._silent(error)
            engine.tell(ProbeFailed, self.name)
        else:
            self._answered()
            engine.tell(ProbeAnswered, self.name, status)

    async def _question(self, command: SendResolve | SendWithdraw | SendProbe) -> Any:
        if not self._is_connected():
            raise ConnectionError(f"{self.name} is not connected")
        stub, timeout = self._stub, self._settings.offer_timeout_s
        site, offer = self._settings.site, write_offer(command.offer)
        if isinstance(command, SendResolve | SendProbe):
            resolve = partner_pb2.ResolveRequest(site=site, offer=offer)
            return await answer_to(stub.Resolve(resolve, timeout=timeout))
        withdraw = partner_pb2.WithdrawRequest(site=site, offer=offer, cancel=command.cancel)
        return await answer_to(stub.Withdraw(withdraw, timeout=timeout))

    async def _pause(self, delay_s: float) -> None:
        # A partner that comes up meanwhile is asked at once.
        if delay_s <= 0:
            return
        already_up = self._came_up.is_set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                if already_up:
                    await asyncio.sleep(delay_s)
                await self._came_up.wait()

    # --- reports -------------------------------------------------------------------------------

    async def _report_later(self, command: SendReport, group: asyncio.TaskGroup) -> None:
        await self._pause(command.delay_s)
        self._enqueue(command.completion, group)

    def _enqueue(self, completion: Completion, group: asyncio.TaskGroup) -> None:
        self._outbox.append(completion)
        if not self._reporting:
            self._reporting = True
            group.create_task(self._report(), name=f"reports to {self.name}")

    async def _report(self) -> None:
        try:
            while self._outbox:
                batch = self._outbox[:REPORT_COMPLETIONS_MAX]
                del self._outbox[:REPORT_COMPLETIONS_MAX]
                await self._report_batch(batch)
        finally:
            self._reporting = False

    async def _report_batch(self, batch: list[Completion]) -> None:
        engine = self._engine
        offers = tuple(completion.offer for completion in batch)
        request = partner_pb2.ReportRequest(
            site=self._settings.site, completions=[write_completion(entry) for entry in batch]
        )
        try:
            if not self._is_connected():
                raise ConnectionError  # noqa: TRY301  # no answer is no answer, however it comes
            await answer_to(self._stub.Report(request, timeout=self._settings.offer_timeout_s))
        except (aio.AioRpcError, ConnectionError, SenselessError) as error:
            if isinstance(error, aio.AioRpcError):
                self._silent(error)
            elif isinstance(error, SenselessError):
                self._senseless(f"told of ended jobs: {error}")
            self.reports_open -= len(batch)
            engine.tell(ReportFailed, self.name, offers)
            return
        self._answered()
        self.reports_open -= len(batch)
        engine.tell(ReportAnswered, self.name, offers)
