"""What partners ask, over gRPC."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final

import grpc

from grms.daemon.job_files import STDERR, STDOUT, FileProblemError
from grms.daemon.job_needs import write_kinds
from grms.daemon.journal import JournalError
from grms.daemon.messages import WireError
from grms.daemon.rpc.requests import Context, refuse
from grms.site.gateway.admission import Admission
from grms.site.model.commands import AnswerOffer, AnswerStatus
from grms.site.model.events import (
    OfferReceived,
    PartnerFaulty,
    PartnerIncompatible,
    ReportReceived,
    ResolveReceived,
    WithdrawReceived,
)
from grms.site.model.jobs import GuestJob, HomeJob, OfferId
from grms.site.model.lifecycle import JobState
from grms.site.model.usage import UsageRecord
from grms.site.peers.peers import PeerClients
from grms.site.peers.pseudonyms import Pseudonyms
from grms.site.rpc.job_files import refused, sent, write_results
from grms.site.runtime.usage_log import UsageLog, read_of_home
from grms.site.scheduler.state import SiteState
from grms.site.staging.download import NoResultsError, ResultServer
from grms.site.staging.live_output import read_guest_output
from grms.site.staging.stage_in import InputServer
from grms.site.wire.convert import (
    PROTOCOL_VERSION,
    is_to_fetch,
    read_asked,
    read_completion,
    read_offer,
    read_request,
    read_rerun,
    whole,
    write_offer,
    write_progress,
    write_status,
    write_usage,
)
from grms.v1 import partner_pb2, partner_pb2_grpc, results_pb2

ACCEPTANCE_S: Final = 5.0
"""How long a request for a program waits here for the answer to its offer, which is on its way."""

LOOKED_AT_S: Final = 0.02
"""Interval of checks for that answer."""

USAGE_MAX: Final = 500
"""Most records in one answer of `ListUsage`."""

_ACCEPTED = (JobState.DELEGATED, JobState.SUSPECT)


class PartnerService(partner_pb2_grpc.PartnerServiceServicer):
    """Implements `proto/grms/v1/partner.proto`.

    `links` take note of who has called; `tells_output` says whether partners may follow what their
    jobs print. In a replay, `bring_to` advances this site to a moment of the common clock; else it is `None`. `usage` is
    what jobs have used, `None` in a replay.
    """

    def __init__(
        self,
        admission: Admission,
        links: PeerClients,
        *,
        results: ResultServer,
        inputs: InputServer,
        pseudonyms: Pseudonyms,
        tells_output: bool,
        usage: UsageLog | None,
        bring_to: Callable[[Context, float], Awaitable[None]] | None,
    ) -> None:
        self._tells = tells_output
        self._admission = admission
        self._engine = admission.engine
        self._heard, self._links = links.heard, links
        self._results = results
        self._inputs = inputs
        self._pseudonyms = pseudonyms
        self._bring_to = bring_to
        self._usage = usage
        self._reading = asyncio.Semaphore(
            1
        )  # a file of a month is long, and there may be many partners

    async def Describe(  # noqa: N802  # gRPC's name
        self, request: partner_pb2.DescribeRequest, context: Context
    ) -> partner_pb2.DescribeResponse:
        """Says who the site is."""
        partner = await self._admission.partner(context, request.site)
        await self._admission.check_journal(context)
        self._heard(partner)
        state = self._engine.state
        answer = partner_pb2.DescribeResponse(
            site=state.settings.name,
            processors=state.settings.processors,
            protocol_version=PROTOCOL_VERSION,
            nodes=write_kinds(state.settings.nodes),
            instance=self._links.instance,
        )
        self._links.introduced(partner, request.instance)
        seen = await self._admission.look(context, lambda state: state.partners[partner].offer_seen)
        if seen:
            answer.offer_seen.CopyFrom(write_offer(seen))
        speaks = request.protocol_version
        other = 0 if speaks == PROTOCOL_VERSION else speaks
        if other != state.partners[partner].incompatible:
            self._engine.tell(PartnerIncompatible(self._engine.new_id(), partner, other))
        return answer

    async def Offer(  # noqa: N802  # gRPC's name
        self, request: partner_pb2.OfferRequest, context: Context
    ) -> partner_pb2.OfferResponse:
        """Answers an offer."""
        partner = await self._admission.partner(context, request.site)
        await self._admission.check_offer(context, partner)
        try:
            offer = read_offer(request.offer)
            wanted, payload = read_request(request.job, "job")
            checkpoint, left = read_rerun(request, wanted)
        except WireError as error:
            await self._admission.invalid(context, error)
        self._heard(partner)
        if self._bring_to is not None:
            await self._bring_to(context, request.replay_time_s)
        event = OfferReceived(
            *self._engine.stamp(),
            partner,
            offer,
            request.settled_below,
            wanted,
            payload,
            request.reserve,
            is_to_fetch(payload),
            rerun=request.rerun,
            checkpoint=checkpoint,
            left=left,
        )
        return await self._admission.ask(context, event, _taken)

    async def Resolve(  # noqa: N802  # gRPC's name
        self, request: partner_pb2.ResolveRequest, context: Context
    ) -> partner_pb2.OfferStatus:
        """Says what became of an offer."""
        partner = await self._admission.partner(context, request.site)
        await self._admission.check_stopping(context)
        offer = await self._admission.read(context, read_offer, request.offer)
        self._heard(partner)
        event = ResolveReceived(self._engine.new_id(), partner, offer, request.confirm)
        return await self._admission.ask(context, event, _status)

    async def Withdraw(  # noqa: N802  # gRPC's name
        self, request: partner_pb2.WithdrawRequest, context: Context
    ) -> partner_pb2.OfferStatus:
        """Takes care that an offer will not be accepted, or says that it was."""
        partner = await self._admission.partner(context, request.site)
        await self._admission.check_journal(context)
        offer = await self._admission.read(context, read_offer, request.offer)
        self._heard(partner)
        event = WithdrawReceived(self._engine.new_id(), partner, offer, request.cancel)
        return await self._admission.ask(context, event, _status)

    async def Report(  # noqa: N802  # gRPC's name
        self, request: partner_pb2.ReportRequest, context: Context
    ) -> partner_pb2.ReportResponse:
        """Takes note that delegated jobs have ended."""
        partner = await self._admission.partner(context, request.site)
        await self._admission.check_journal(context)
        try:
            completions = tuple(
                read_completion(completion, f"completions[{number}]")
                for number, completion in enumerate(request.completions)
            )
        except WireError as error:
            reason = f"it reports what cannot be: {error}"
            self._engine.tell(PartnerFaulty(*self._engine.stamp(), partner, reason))
            await self._admission.invalid(context, error)
        self._heard(partner)
        event = ReportReceived(*self._engine.stamp(), partner, completions)
        return await self._admission.ask(context, event, lambda _: partner_pb2.ReportResponse())

    async def Progress(  # noqa: N802  # gRPC's name
        self, request: partner_pb2.ProgressRequest, context: Context
    ) -> partner_pb2.ProgressResponse:
        """Says where jobs stand that the asker has delegated."""
        partner = await self._admission.partner(context, request.site)
        await self._admission.check_stopping(context)
        offers = await self._admission.read(context, read_asked, request)
        self._heard(partner)
        return await self._admission.look(context, partial(_progress, partner, offers))

    async def ListUsage(  # noqa: N802  # gRPC's name
        self, request: partner_pb2.ListUsageRequest, context: Context
    ) -> partner_pb2.ListUsageResponse:
        """Says what jobs have used that the asker has delegated."""
        partner = await self._admission.partner(context, request.site)
        await self._admission.check_stopping(context)
        self._heard(partner)
        log = self._usage
        if log is None:
            return partner_pb2.ListUsageResponse()
        after = request.after if request.log == log.name else 0
        records = read_of_home(log.folder, log.site, partner, after)
        async with self._reading:
            try:
                some = await asyncio.to_thread(_page, records)
            except JournalError as error:
                self._admission.count("journal", context, str(error))
                text = "what jobs have used cannot be read now"
                await refuse(context, grpc.StatusCode.UNAVAILABLE, text)
        return partner_pb2.ListUsageResponse(
            log=log.name,
            records=map(write_usage, some[:USAGE_MAX]),
            more=len(some) > USAGE_MAX,
        )

    async def FetchProgram(  # noqa: N802  # gRPC's name
        self, request: partner_pb2.FetchProgramRequest, context: Context
    ) -> partner_pb2.FetchProgramResponse:
        """Hands out what a job runs, to the partner that has accepted it."""
        partner, offer = await self._about(context, request)
        job = await self._accepted(context, partner, offer)
        answer = partner_pb2.FetchProgramResponse()
        answer.program.CopyFrom(whole(job.program).program)
        answer.owner = self._pseudonyms.of(partner, job.user)
        answer.user = self._pseudonyms.name(partner, job.user)
        return answer

    async def FetchInput(  # noqa: N802  # gRPC's name
        self, request: partner_pb2.FetchInputRequest, context: Context
    ) -> AsyncIterator[results_pb2.ResultChunk]:
        """Sends a file that a job is given, to the partner that has accepted it."""
        partner, offer = await self._about(context, request)
        job = await self._accepted(context, partner, offer)
        pieces = self._inputs.read(job, request.name, request.offset_bytes)
        async for chunk in sent(context, pieces):
            yield chunk

    async def _accepted(self, context: Context, partner: str, offer: OfferId) -> HomeJob:
        deadline = time.monotonic() + ACCEPTANCE_S
        while True:
            job, accepted = await self._admission.look_at(
                context,
                partial(_offered, partner, offer),
                lambda job: (job.partner, job.offer) == (partner, offer),
            )
            if job is None:
                text = f"offer {offer.epoch}/{offer.number} is not, or not any more, with {partner}"
                await refuse(context, grpc.StatusCode.NOT_FOUND, text)
            if accepted:
                return job
            if time.monotonic() > deadline:
                text = "the answer to this offer is not known here yet"
                await refuse(context, grpc.StatusCode.UNAVAILABLE, text)
            await asyncio.sleep(LOOKED_AT_S)

    async def ListGuestResults(  # noqa: N802  # gRPC's name
        self, request: partner_pb2.ListGuestResultsRequest, context: Context
    ) -> results_pb2.ResultList:
        """Says which files a job has left."""
        partner, offer = await self._about(context, request)
        try:
            found = await self._results.of_guest(partner, offer, state=request.checkpoint)
            return write_results(found)
        except NoResultsError as error:
            await refused(context, error)

    async def FetchGuestResult(  # noqa: N802  # gRPC's name
        self, request: partner_pb2.FetchGuestResultRequest, context: Context
    ) -> AsyncIterator[results_pb2.ResultChunk]:
        """Sends one of them."""
        partner, offer = await self._about(context, request)
        pieces = self._results.read_guest(
            partner, offer, request.name, request.offset_bytes, state=request.checkpoint
        )
        async for chunk in sent(context, pieces):
            yield chunk

    async def ReadGuestOutput(  # noqa: N802  # gRPC's name
        self, request: partner_pb2.ReadGuestOutputRequest, context: Context
    ) -> partner_pb2.ReadGuestOutputResponse:
        """Says what a job has printed by now."""
        partner, offer = await self._about(context, request)
        await self._admission.check_output(context, partner)
        guest = self._engine.state.partners[partner].answer_to(offer)
        if not isinstance(guest, GuestJob) or guest.completion is not None or not self._tells:
            reason = "it does not run here" if self._tells else "nothing is said before its end"
            await refuse(context, grpc.StatusCode.NOT_FOUND, f"of that job: {reason}")
        name = STDERR if request.error else STDOUT
        try:
            begin, content = await read_guest_output(
                self._results, partner, guest.lrms_key, name, request.offset_bytes
            )
        except (FileProblemError, NoResultsError) as error:
            await refused(context, error)
        return partner_pb2.ReadGuestOutputResponse(content=content, offset_bytes=begin)

    async def DropGuestResults(  # noqa: N802  # gRPC's name
        self, request: partner_pb2.DropGuestResultsRequest, context: Context
    ) -> partner_pb2.DropGuestResultsResponse:
        """Deletes those that the asker has."""
        partner, offer = await self._about(context, request)
        copied = [(file.name, file.sha256) for file in request.files]
        try:
            await self._results.drop_guest(partner, offer, copied, state=request.checkpoint)
        except NoResultsError as error:
            await refused(context, error)
        return partner_pb2.DropGuestResultsResponse()

    async def _about(
        self,
        context: Context,
        request: partner_pb2.FetchProgramRequest
        | partner_pb2.FetchInputRequest
        | partner_pb2.ListGuestResultsRequest
        | partner_pb2.FetchGuestResultRequest
        | partner_pb2.ReadGuestOutputRequest
        | partner_pb2.DropGuestResultsRequest,
    ) -> tuple[str, OfferId]:
        partner = await self._admission.partner(context, request.site)
        await self._admission.check_stopping(context)
        offer = await self._admission.read(context, read_offer, request.offer)
        self._heard(partner)
        return partner, offer


def _offered(partner: str, offer: OfferId, state: SiteState) -> tuple[HomeJob | None, bool]:
    # The job of an offer, and whether the partner has accepted it.
    job = state.partners[partner].away(offer)
    if job is None or job.to_end:
        return None, False
    return job, job.state in _ACCEPTED


def _page(records: Iterator[UsageRecord]) -> list[UsageRecord]:
    # What has not run has used nothing, and is not told.
    return list(islice((one for one in records if one.start_time is not None), USAGE_MAX + 1))


def _progress(
    partner: str, offers: Iterable[OfferId], state: SiteState
) -> partner_pb2.ProgressResponse:
    guests = state.partners[partner].guests
    said = (write_progress(guests[offer]) for offer in offers if offer in guests)
    return partner_pb2.ProgressResponse(jobs=[one for one in said if one is not None])


def _taken(reply: AnswerOffer) -> partner_pb2.OfferResponse:
    answer = partner_pb2.ANSWER_ACCEPTED if reply.accepted else partner_pb2.ANSWER_DECLINED
    return partner_pb2.OfferResponse(answer=answer)


def _status(reply: AnswerStatus) -> partner_pb2.OfferStatus:
    return write_status(reply.status, reply.completion)
