"""What operators ask, over gRPC: how the site is, its policies, and an end of new work."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from grms.policy.location import AwrtLocation
from grms.service_errors import Context
from grms.site.config_files import ConfigError
from grms.site.door import Door
from grms.site.events import Drain, Resume
from grms.site.journal import Journal
from grms.site.partner_links import PartnerLinks
from grms.site.reload import Reloaded
from grms.site.wire import WireError
from grms.v1 import operator_pb2, operator_pb2_grpc
from lrms_sim.version import __version__


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What the operators' service shows that the state does not know.

    Attributes:
        clock: "wall", "scaled" or "virtual".
        journal: of the site.
        telemetry_connected: whether the MQTT broker is connected.
        reload: reads the configuration anew; raises ConfigError.
    """

    clock: str
    journal: Journal
    telemetry_connected: Callable[[], bool]
    reload: Callable[[], Reloaded]


class OperatorService(operator_pb2_grpc.OperatorServiceServicer):
    """See `proto/grms/v1/operator.proto`.

    Args:
        door: lets operators in.
        links: to the partners.
        facts: what the state does not know.
    """

    def __init__(self, door: Door, links: PartnerLinks, facts: SiteFacts) -> None:
        self._door = door
        self._engine = door.engine
        self._links = links
        self._facts = facts
        self._begin = time.monotonic()

    async def Status(  # noqa: N802  # gRPC's name
        self,
        request: operator_pb2.StatusRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> operator_pb2.StatusResponse:
        """Returns how the site is."""
        await self._door.operator(context)
        return self._status()

    async def Partners(  # noqa: N802  # gRPC's name
        self,
        request: operator_pb2.PartnersRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> operator_pb2.PartnersResponse:
        """Returns what the site knows of its partners."""
        await self._door.operator(context)
        state, now = self._engine.state, self._engine.clock.now()
        location = state.settings.location
        count_open = isinstance(location, AwrtLocation) and location.open_jobs == "count"
        answer = operator_pb2.PartnersResponse()
        for partner in state.settings.partners:
            name = partner.name
            link, book = self._links.links[name], state.partners[name]
            entry = answer.partners.add(
                name=name,
                endpoint=link.address or "",
                processors=book.processors,
                reachable=link.up,
                lost=book.lost,
                offered=book.offered,
                accepted=book.accepted,
                ended=book.ended,
                open=len(book.open),
                awrt_s=book.awrt(now, count_open=count_open),
                guest_offered=book.guest_offered,
                guest_accepted=book.guest_accepted,
                guest_open=len(book.guests),
                problem=link.problem,
            )
            if link.last_heard == link.last_heard:  # nan: never
                entry.last_heard_s = link.last_heard
        return answer

    async def ReloadPolicies(  # noqa: N802  # gRPC's name
        self,
        request: operator_pb2.ReloadPoliciesRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> operator_pb2.ReloadPoliciesResponse:
        """Reads the configuration anew, all that can be changed or none of it."""
        await self._door.operator(context)
        try:
            reloaded = self._facts.reload()
        except ConfigError as error:
            await self._door.invalid(context, WireError("", str(error)))
        return operator_pb2.ReloadPoliciesResponse(
            policies=reloaded.policies, restart_needed=reloaded.restart_needed
        )

    async def Drain(  # noqa: N802  # gRPC's name
        self,
        request: operator_pb2.DrainRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> operator_pb2.StatusResponse:
        """Takes no more work; what has been taken is brought to its end."""
        await self._door.operator(context)
        self._engine.tell(Drain(next(self._engine.new_id)))
        return self._status()

    async def Resume(  # noqa: N802  # gRPC's name
        self,
        request: operator_pb2.ResumeRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> operator_pb2.StatusResponse:
        """Undoes Drain."""
        await self._door.operator(context)
        self._engine.tell(Resume(next(self._engine.new_id)))
        return self._status()

    def _status(self) -> operator_pb2.StatusResponse:
        engine, facts = self._engine, self._facts
        state, load = engine.state, engine.load()
        engine.flush()
        return operator_pb2.StatusResponse(
            site=state.settings.name,
            version=__version__,
            now_s=engine.clock.now(),
            clock=facts.clock,
            up_time_s=time.monotonic() - self._begin,
            draining=state.draining,
            lrms_reachable=True,
            processors=load.processors,
            processors_free=load.processors_free,
            processors_waiting=load.processors_waiting,
            jobs={key.name: number for key, number in engine.job_counts().items() if number},
            guest_jobs={key.name: number for key, number in state.guest_counts().items() if number},
            journal_records=facts.journal.count,
            journal_bytes=facts.journal.size_bytes,
            telemetry_connected=facts.telemetry_connected(),
        )
