"""The links to all partners, and what is sent through them: offers, questions about them, and reports of ended jobs.

In lock-step nothing is lost, and no partner is away for good: a coordinator moves the clocks of all sites together and
restarts a daemon that has died, so a message is repeated until it is answered. To the site's rules that is an answer
like any other: they know no replay, and each job goes where it would have gone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import grpc
import numpy as np
from google.protobuf.message import DecodeError
from grpc import aio

from grms.client.calls import error_details
from grms.daemon.messages import WireError
from grms.security.tls import CertificateTrust
from grms.site.model.commands import (
    Send,
    SendOffer,
    SendProbe,
    SendReport,
    SendResolve,
    SendWithdraw,
)
from grms.site.model.events import (
    OfferAnswered,
    OfferDisputed,
    OfferFailed,
    ProbeAnswered,
    ProbeFailed,
    ReportAnswered,
    ReportFailed,
    StatusAnswered,
    StatusFailed,
)
from grms.site.model.jobs import Completion
from grms.site.peers.peer import (
    ChannelMaker,
    PeerClient,
    PeerClientSettings,
    Problems,
    SenselessError,
    answer_to,
)
from grms.site.runtime.event_loop import Engine
from grms.site.wire.convert import (
    read_answer,
    read_status,
    shared_files,
    without_program,
    write_completion,
    write_offer,
    write_request,
)
from grms.v1 import partner_pb2

QUESTIONS_MAX: Final = 16
"""Most concurrent questions about offers to one partner. One that is back is asked about every job
it has; all at once, their deadlines would pass before the last ones are answered, and it would
count as down again."""

OFFERS_MAX: Final = 64
"""Most concurrent offers to one partner, for the same reason: the elements of an array are offered at one moment. The
deadline of one begins when it is sent."""

OFFER_WAITED_S: Final = 10.0
"""How long an offer waits in all, seconds, for a partner that says it comes too soon (`limits.offers_per_s`)."""

WAIT_LEAST_S: Final = 0.01

REPORT_COMPLETIONS_MAX: Final = 1000
Told = OfferAnswered | OfferFailed | OfferDisputed | StatusAnswered | StatusFailed
DISPUTED: Final = grpc.StatusCode.ALREADY_EXISTS
"""Signals that an offer's number is another job's."""


class Sender:
    """Sends to one partner and reports the outcome to the engine.

    `reports_open` are ends of its jobs that have not been acknowledged.
    """

    def __init__(self, link: PeerClient, settings: PeerClientSettings, engine: Engine) -> None:
        self._link = link
        self._settings = settings
        self._engine = engine
        self._asking = asyncio.Semaphore(QUESTIONS_MAX)
        self._offering = asyncio.Semaphore(OFFERS_MAX)
        self._outbox: list[Completion] = []
        self._reporting = False
        self.reports_open = 0

    def send(self, command: Send, group: asyncio.TaskGroup) -> None:
        """Begins to send; the outcome comes back as an event."""
        if isinstance(command, SendReport):
            self.reports_open += 1
            if command.delay_s == 0:
                self._enqueue(command.completion, group)
            else:
                work: Coroutine[Any, Any, None] = self._report_later(command, group)
                group.create_task(work, name=f"report to {self._link.name}")
            return
        if isinstance(command, SendOffer):
            work = self._tell(partial(self._offer, command))
        elif isinstance(command, SendProbe):
            work = self._probe(command)
        else:
            work = self._tell(partial(self._ask, command))
        group.create_task(work, name=f"{type(command).__name__} {self._link.name}")

    async def _tell(self, ask: Callable[[], Awaitable[Told]]) -> None:
        # Asked for in here: where the daemon ends before this begins, there is no question that nobody awaits.
        told = await ask()
        number, load = self._engine.stamp()
        self._engine.tell(replace(told, id=number, load=load))

    async def _offer(self, command: SendOffer) -> Told:
        async with self._offering:
            return await self._offered(command)

    async def _offered(self, command: SendOffer) -> Told:
        engine, settings, link = self._engine, self._settings, self._link
        stub = link.stub
        if stub is None:
            # Nothing has been handed to the network: the partner cannot have it.
            link.broken()
        if stub is None or self._shares_too_little(command):
            # To the state a job that the partner cannot have is a partner that was not reached.
            return OfferFailed(0, None, link.name, command.offer, sent=False)
        request = partner_pb2.OfferRequest(
            site=settings.site,
            offer=write_offer(command.offer),
            settled_below=command.settled_below,
            job=write_request(command.request, without_program(command.payload)),
            reserve=command.reserve,
            rerun=command.rerun,
            checkpoint_s=command.checkpoint,
            left_s=command.left,
        )
        if settings.virtual:
            request.replay_time_s = engine.clock.now()
        try:
            accepted = read_answer(await self._answer(request))
        except (SenselessError, WireError) as error:
            link.answered()
            link.senseless(f"asked to take a job: {error}")
            return OfferFailed(0, None, link.name, command.offer)
        except (aio.AioRpcError, ConnectionError) as error:
            return self._failed(command, error)
        link.answered()
        if accepted is None:
            # In a word of a later version: to the state that is no answer, and it asks.
            return OfferFailed(0, None, link.name, command.offer)
        return OfferAnswered(0, None, link.name, command.offer, accepted)

    def _failed(self, command: SendOffer, error: aio.AioRpcError | ConnectionError) -> Told:
        link = self._link
        if isinstance(error, aio.AioRpcError) and error.code() is DISPUTED:
            return OfferDisputed(0, None, link.name, command.offer)
        if told_to_wait_s(error) is not None:
            link.answered()  # it has not looked at the offer
            return OfferFailed(0, None, link.name, command.offer, sent=False)
        link.silent(error)
        return OfferFailed(0, None, link.name, command.offer)

    async def _answer(self, request: partner_pb2.OfferRequest) -> partner_pb2.OfferResponse:
        left_s = OFFER_WAITED_S
        while True:
            stub = self._link.stub
            if stub is None:
                raise ConnectionError("the connection is broken")
            try:
                call = stub.Offer(request, timeout=self._settings.offer_timeout_s)
                answer: partner_pb2.OfferResponse = await answer_to(call)
            except aio.AioRpcError as error:
                wait_s = told_to_wait_s(error)
                if wait_s is None or wait_s > left_s:
                    raise
            else:
                return answer
            left_s -= wait_s
            await self._link.pause(wait_s)

    def _shares_too_little(self, command: SendOffer) -> bool:
        shared = self._settings.shared.partners
        return bool(shared_files(command.payload)) and self._link.name not in shared

    async def _ask(self, command: SendResolve | SendWithdraw) -> Told:
        link = self._link
        await link.pause(command.delay_s)
        try:
            async with self._asking:
                answer = await self._question(command)
            link.answered()
            status, completion = read_status(answer)
        except (aio.AioRpcError, ConnectionError, SenselessError, WireError) as error:
            if isinstance(error, aio.AioRpcError):
                link.silent(error)
            elif not isinstance(error, ConnectionError):
                link.senseless(f"asked about an offer: {error}")
            return StatusFailed(0, None, link.name, command.offer, command.cause)
        return StatusAnswered(0, None, link.name, command.offer, command.cause, status, completion)

    async def _probe(self, command: SendProbe) -> None:
        engine, link = self._engine, self._link
        await asyncio.sleep(command.delay_s)
        try:
            status, _ = read_status(await self._question(command))
        except (SenselessError, WireError) as error:
            link.senseless(f"probed: {error}", probed=True)
        except (aio.AioRpcError, ConnectionError) as error:
            if isinstance(error, aio.AioRpcError):
                link.silent(error)
            engine.tell(ProbeFailed(engine.new_id(), link.name))
        else:
            link.answered()
            engine.tell(ProbeAnswered(*engine.stamp(), link.name, status))

    async def _question(self, command: SendResolve | SendWithdraw | SendProbe) -> Any:
        stub, timeout = self._link.stub, self._settings.offer_timeout_s
        if stub is None:
            raise ConnectionError(f"{self._link.name} is not connected")
        site, offer = self._settings.site, write_offer(command.offer)
        if isinstance(command, SendResolve | SendProbe):
            confirm = isinstance(command, SendResolve) and command.confirm
            resolve = partner_pb2.ResolveRequest(site=site, offer=offer, confirm=confirm)
            return await answer_to(stub.Resolve(resolve, timeout=timeout))
        withdraw = partner_pb2.WithdrawRequest(site=site, offer=offer, cancel=command.cancel)
        return await answer_to(stub.Withdraw(withdraw, timeout=timeout))

    async def _report_later(self, command: SendReport, group: asyncio.TaskGroup) -> None:
        await self._link.pause(command.delay_s)
        self._enqueue(command.completion, group)

    def _enqueue(self, completion: Completion, group: asyncio.TaskGroup) -> None:
        self._outbox.append(completion)
        if not self._reporting:
            self._reporting = True
            group.create_task(self._report(), name=f"reports to {self._link.name}")

    async def _report(self) -> None:
        try:
            while self._outbox:
                batch = self._outbox[:REPORT_COMPLETIONS_MAX]
                del self._outbox[:REPORT_COMPLETIONS_MAX]
                await self._report_batch(batch)
        finally:
            self._reporting = False

    async def _report_batch(self, batch: list[Completion]) -> None:
        engine, link = self._engine, self._link
        offers = tuple(completion.offer for completion in batch)
        request = partner_pb2.ReportRequest(
            site=self._settings.site, completions=[write_completion(entry) for entry in batch]
        )
        try:
            stub = link.stub
            if stub is None:
                raise ConnectionError  # noqa: TRY301  # no answer is no answer, however it comes
            await answer_to(stub.Report(request, timeout=self._settings.offer_timeout_s))
        except (aio.AioRpcError, ConnectionError, SenselessError) as error:
            if isinstance(error, aio.AioRpcError):
                link.silent(error)
            elif isinstance(error, SenselessError):
                link.senseless(f"told of ended jobs: {error}")
            self.reports_open -= len(batch)
            engine.tell(ReportFailed(engine.new_id(), link.name, offers))
            return
        link.answered()
        self.reports_open -= len(batch)
        engine.tell(ReportAnswered(engine.new_id(), link.name, offers))


def told_to_wait_s(error: Exception) -> float | None:
    """Returns after how many seconds a partner wants to be asked again that takes no more now; `None` if it says none."""
    if not isinstance(error, aio.AioRpcError):
        return None
    if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
        return None
    try:
        _, wait_s = error_details(error)
    except DecodeError:
        return None
    return None if wait_s is None else max(wait_s, WAIT_LEAST_S)


PAUSE_S: Final = 0.5
"""Longest pause before a message is repeated, in seconds; at once if the partner comes up."""


class LockStepSender(Sender):
    """Sends to one partner until it has answered; see the module."""

    async def _offer(self, command: SendOffer) -> Told:
        while isinstance(told := await super()._offer(command), OfferFailed):
            if self._shares_too_little(command):
                break
            await self._link.pause(PAUSE_S)
        return told

    async def _ask(self, command: SendResolve | SendWithdraw) -> Told:
        while isinstance(told := await super()._ask(command), StatusFailed):
            await self._link.pause(PAUSE_S)
        unknown = isinstance(told, StatusAnswered) and told.status is None
        if unknown and isinstance(command, SendResolve):
            # One of the two has died before the offer was noted there: it is made as if for the first time.
            offer = self._engine.state.undecided_offer(command.partner, command.offer)
            if offer is not None:
                return await self._offer(offer)
        return told


class PeerClients:
    """The links to all partners; the engine sends through them.

    Attributes:
        trust: whether certificates are believed still; None without TLS.

    Args:
        settings: how partners are dealt with.
        addresses: of the partners, by name; `None` if unknown yet.
        place: tells what to connect to for a partner at an address.
    """

    def __init__(
        self,
        settings: PeerClientSettings,
        engine: Engine,
        addresses: Mapping[str, str | None],
        make_channel: ChannelMaker,
        *,
        place: Callable[[str, str], str | None] = lambda _, address: address,
        problems: Problems | None = None,
        trust: CertificateTrust | None = None,
    ) -> None:
        self.trust = trust
        self.instance = settings.instance
        self._place = place
        self.links: dict[str, PeerClient] = {}
        rng, told = np.random.default_rng(), problems or Problems()
        self._senders: dict[str, Sender] = {}
        self._make_link = partial(
            PeerClient, settings, engine, make_channel=make_channel, rng=rng, problems=told
        )
        kind = LockStepSender if settings.virtual else Sender
        self._make_sender = partial(kind, settings=settings, engine=engine)
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

    def send(self, command: Send) -> None:
        """Begins to send; the outcome comes back as an event. Nothing is sent while closing."""
        sender = self._senders.get(command.partner)
        if self._group is not None and sender is not None:
            sender.send(command, self._group)

    def heard(self, partner: str) -> None:
        """Takes note that a partner has called."""
        self.links[partner].heard()

    def introduced(self, partner: str, instance: int) -> None:
        """Takes note of which instance of a partner's daemon has said who it is."""
        self.links[partner].introduced(instance)

    def move(self, partner: str, address: str) -> None:
        """Notes that a partner is at another address, unless it is no partner."""
        if (link := self.links.get(partner)) is not None and (
            place := self._place(partner, address)
        ) is not None:
            link.move(place)

    def list_partners(self, addresses: Mapping[str, str | None]) -> None:
        """Replaces the list of partners: links are made, moved and given up accordingly.

        The link of one that is no longer listed stays, as open questions wait on it, but connects
        to no one. `addresses` are by name, `None` if unknown or announced by the partner.
        """
        for name, address in addresses.items():
            link = self.links.get(name)
            if link is None:
                link = self.links[name] = self._make_link(name=name, address=address)
                self._senders[name] = self._make_sender(link)
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
        return sum(sender.reports_open for sender in self._senders.values())
