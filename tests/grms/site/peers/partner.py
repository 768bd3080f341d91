"""Partners that a test plays."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc import aio

from grms.daemon.ports import free_port
from grms.site.model.jobs import OfferId
from grms.site.wire.convert import write_offer
from grms.v1 import partner_pb2, partner_pb2_grpc, request_pb2
from tests.grms.site.daemons import Running, document, running


class Partner(partner_pb2_grpc.PartnerServiceServicer):
    """A partner whose manners a test decides.

    Attributes:
        name: who it says it is.
        pause_s: how long it takes to answer an offer.
        offers: how many it has had.
        jobs: that were offered.
        on_offer: what it does before it answers one.
        seen: the last of the other's offers that it says it has seen.
        held: offers by which it was asked to hold a place.
        confirmed: that were confirmed.
        question_s: how long it takes to say what became of an offer.
        asked: how often it has been asked that.
        asked_at_once: how often it is being asked now.
        asked_at_once_most: the most of these at one time.
        usage: what it says of what jobs have used.
        usage_asked: how far the other had read that, each time it has asked.
        progress: what it says of where jobs stand.
        progress_asked: the numbers of the offers about which it was asked that, each time.
    """

    def __init__(self, name: str = "away", processors: int = 1000) -> None:
        self.name = name
        self.processors = processors
        self.pause_s = 0.0
        self.offers = 0
        self.version = 1
        self.instance = 0
        self.seen: OfferId | None = None
        self.held: list[int] = []
        self.confirmed: list[int] = []
        self.jobs: list[request_pb2.JobRequest] = []
        self.on_offer: Callable[[], Awaitable[None]] | None = None
        self.state: Any = partner_pb2.OFFER_STATE_UNKNOWN
        self.question_s = 0.0
        self.usage = partner_pb2.ListUsageResponse()
        self.usage_asked: list[tuple[str, int]] = []
        self.progress = partner_pb2.ProgressResponse()
        self.progress_asked: list[list[int]] = []
        self.asked = self.asked_at_once = self.asked_at_once_most = 0

    async def Describe(self, request: Any, context: Any) -> partner_pb2.DescribeResponse:  # noqa: ARG002, N802  # gRPC's
        """Says who it is."""
        return partner_pb2.DescribeResponse(
            site=self.name,
            processors=self.processors,
            protocol_version=self.version,
            instance=self.instance,
            offer_seen=None if self.seen is None else write_offer(self.seen),
        )

    async def Offer(self, request: Any, context: Any) -> partner_pb2.OfferResponse:  # noqa: ARG002, N802  # gRPC's
        """Accepts, some time."""
        self.offers += 1
        if request.reserve:
            self.held.append(request.offer.number)
        self.jobs.append(request.job)
        if self.on_offer is not None:
            await self.on_offer()
        await asyncio.sleep(self.pause_s)
        return partner_pb2.OfferResponse(answer=partner_pb2.ANSWER_ACCEPTED)

    async def Resolve(self, request: Any, context: Any) -> partner_pb2.OfferStatus:  # noqa: ARG002, N802  # gRPC's
        """Says what it was told to say."""
        if request.confirm:
            self.confirmed.append(request.offer.number)
        self.asked_at_once += 1
        self.asked_at_once_most = max(self.asked_at_once_most, self.asked_at_once)
        await asyncio.sleep(self.question_s)
        self.asked += 1
        self.asked_at_once -= 1
        return partner_pb2.OfferStatus(state=self.state)

    async def Withdraw(self, request: Any, context: Any) -> partner_pb2.OfferStatus:  # noqa: ARG002, N802  # gRPC's
        """Takes note."""
        return partner_pb2.OfferStatus(state=partner_pb2.OFFER_STATE_WITHDRAWN)

    async def Report(self, request: Any, context: Any) -> partner_pb2.ReportResponse:  # noqa: ARG002, N802  # gRPC's
        """Takes note."""
        return partner_pb2.ReportResponse()

    async def Progress(self, request: Any, context: Any) -> partner_pb2.ProgressResponse:  # noqa: ARG002, N802  # gRPC's
        """Says what it was told to say."""
        self.progress_asked.append([offer.number for offer in request.offers])
        return self.progress

    async def ListUsage(self, request: Any, context: Any) -> partner_pb2.ListUsageResponse:  # noqa: ARG002, N802  # gRPC's
        """Says what it was told to say."""
        self.usage_asked.append((request.log, request.after))
        return self.usage

    async def _unknown(self, request: Any, context: Any) -> Any:  # noqa: ARG002  # gRPC's
        # Answers as one whose version does not know the call.
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")

    FetchProgram: Any = _unknown
    FetchInput: Any = _unknown
    ListGuestResults: Any = _unknown
    FetchGuestResult: Any = _unknown
    ReadGuestOutput: Any = _unknown
    DropGuestResults: Any = _unknown


@asynccontextmanager
async def listening(partner: Partner, port: int) -> AsyncIterator[aio.Server]:
    """Yields a partner's server."""
    server = aio.server()
    partner_pb2_grpc.add_PartnerServiceServicer_to_server(partner, server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield server
    finally:
        await server.stop(None)


@asynccontextmanager
async def full_site(partner: Partner, folder: Path, **more: Any) -> AsyncIterator[Running]:
    """Yields a site without a free processor whose one partner, away, is played; `more` as of `document`."""
    port = free_port()
    configuration = document(folder, partners={"away": port}, **more)
    async with listening(partner, port), running(configuration, folder) as site:
        await site.linked()
        await full(site)
        yield site


async def full(site: Running) -> None:
    """Leaves a site no free processor."""
    await site.submit("fills", processors=4, run_time_s=500.0, requested_time_s=500.0)
