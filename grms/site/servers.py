"""The gRPC servers of a daemon: which services answer where.

A server that is made has not begun to answer; whoever has it made starts and stops it.
"""

import math
import os
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

import grpc
import structlog
from grpc import aio
from grpc_health.v1 import health_pb2_grpc

from grms.daemon.rpc.health import HEALTH, HealthService, Serving
from grms.daemon.rpc.reflection import serve_reflection
from grms.daemon.rpc.requests import Context, Unexpected, refuse
from grms.daemon.shared_folders import SharedFolders
from grms.daemon.socket_folder import remove_stale_socket
from grms.lrms.batch.deputies import WithDeputies
from grms.security.tls import TlsFiles
from grms.site.assembly import Core
from grms.site.config.schema import SiteConfig
from grms.site.gateway.admission import Admission
from grms.site.gateway.peer_listener import PartnerPort
from grms.site.gateway.startup_server import SERVICES
from grms.site.gateway.user_listener import UserSocket
from grms.site.peers.pseudonyms import Pseudonyms, told_names
from grms.site.rpc.deputy_service import DeputyService
from grms.site.rpc.job_service import JobService, place_of
from grms.site.rpc.operator_service import OperatorService, SiteFacts
from grms.site.rpc.partner_service import PartnerService
from grms.site.rpc.reconfigure import Reload
from grms.site.rpc.replay import ReplayService
from grms.site.rpc.replay_site import Replay
from grms.site.rpc.reservation_service import Reservations, ReservationService
from grms.site.rpc.watchers import Watchers
from grms.site.staging.live_output import OutputFollower
from grms.site.stores import Stores, pseudonyms
from grms.v1 import (
    deputy_pb2_grpc,
    job_pb2_grpc,
    operator_pb2_grpc,
    partner_pb2_grpc,
    replay_pb2_grpc,
    reservation_pb2_grpc,
)

Log = structlog.typing.FilteringBoundLogger

PENDING_MAX: Final = (1 << 31) - 1
"""Most calls that wait in gRPC, known before it has them (`CallShares`). By itself it would end
some of a thousand by chance, whoever made them."""

CONDUCTOR_SOCKET: Final = ".coordinator"
"""Appended to the path of the users' socket."""


class Servers:
    """Makes the servers of one daemon.

    Attributes:
        reload: reads the configuration anew; `None` before the server of users is made.

    Args:
        core: the parts without sockets.
        kept: what is kept beside the journal.
        admission: says who may ask how often.
    """

    def __init__(
        self,
        core: Core,
        kept: Stores,
        admission: Admission,
        *,
        watchers: Watchers,
        reservations: Reservations,
        serving: Serving,
        log: Log,
    ) -> None:
        self._core = core
        self._kept = kept
        self._admission = admission
        self._watchers = watchers
        self._reservations = reservations
        self._serving = serving
        self._log = log
        self._pseudonyms: Pseudonyms | None = None
        self.reload: Reload | None = None

    def users(self, users: UserSocket, config_path: Path) -> aio.Server:
        """Returns the server of users and operators.

        `config_path` is the file that operators can have reloaded.
        """
        core, admission, owners = self._core, self._admission, self._kept.owners
        server = self._server(self._unexpected())
        monitor, pages = core.monitor, core.dashboard
        self.reload = Reload(
            core.config,
            config_path,
            engine=core.engine,
            links=core.links,
            tunnels=core.tunnels,
            admission=admission,
            owners=owners,
            files=None if core.config.tls is None else TlsFiles.of(core.config.tls),
            on_partners=[
                partial(_share, core.shared),
                self._tell_names,
                *([] if monitor is None else [monitor.reloaded]),
            ],
            on_rest=lambda config: (
                (lambda: None) if core.rest is None else core.rest.reloaded(config)
            ),
            log=self._log,
        )
        facts = SiteFacts(
            clock=core.config.clock.kind,
            journal=core.journal,
            telemetry_connected=lambda: monitor is not None and monitor.connected,
            owner=owners.of,
            pilots=self._kept.pilots,
            pages=lambda: "" if pages is None else pages.server.link(),
            reload=self.reload,
        )
        links = core.links.links
        jobs = JobService(
            admission,
            self._watchers,
            self._kept.results,
            self._kept.inputs,
            output=OutputFollower(core.engine, self._kept.results, core.links),
            unheard=lambda partner: links[partner].unheard if partner in links else "",
            place=partial(place_of, core.driver.lrms),
        )
        job_pb2_grpc.add_JobServiceServicer_to_server(jobs, server)
        if core.rest is not None:
            core.rest.listen(jobs, admission)
        reservation_pb2_grpc.add_ReservationServiceServicer_to_server(
            self._reservation_service(), server
        )
        operator_pb2_grpc.add_OperatorServiceServicer_to_server(
            OperatorService(admission, core.links, core.tunnels, facts), server
        )
        lrms = core.driver.lrms
        deputies = lrms.deputies if isinstance(lrms, WithDeputies) else None
        if deputies is not None:
            admission.on_stopping.append(deputies.close)
        deputy_pb2_grpc.add_DeputyServiceServicer_to_server(
            DeputyService(admission, deputies, own_uid=os.getuid()), server
        )
        health_pb2_grpc.add_HealthServicer_to_server(
            HealthService(self._serving, who=admission.who), server
        )
        serve_reflection((*SERVICES, HEALTH), server)
        server.add_insecure_port(users.inner_address)
        return server

    def _reservation_service(self) -> ReservationService:
        kept = self._kept
        return ReservationService(
            self._admission, self._reservations, kept.inputs, kept.pilots, kept.run_results
        )

    def partners(self, port: PartnerPort, replay: Replay | None) -> aio.Server:
        """Returns the server of partners and brokers.

        `replay` is this site's part of one; `None` if time goes on by itself.

        Raises:
            ConfigError: the file with the key of pseudonyms is unusable.
        """
        core, admission = self._core, self._admission
        # A partner with a thousand offers at once has them wait (RFC 9113, section 5.1.2), where its connection
        # would be closed for what it has begun, or all of them together have open.
        callers = len(core.config.partners) + len(core.config.brokers)
        streams = ("grpc.max_concurrent_streams", port.calls.promise(callers))
        # Else gRPC counts calls that have ended and whose memory it has not freed, and refuses the next ones.
        counted = ("grpc.http.overload_protection", 0)
        server = self._server(self._unexpected(), streams, counted)

        async def bring_to(context: Context, moment: float) -> None:
            assert replay is not None
            if not math.isfinite(moment):
                reason = f"replay_time_s is {moment}; it must be finite"
                await refuse(context, grpc.StatusCode.INVALID_ARGUMENT, reason)
            replay.set_clock(moment)

        self._pseudonyms = pseudonyms(core)
        service = PartnerService(
            admission,
            core.links,
            results=self._kept.results,
            inputs=self._kept.inputs,
            pseudonyms=self._pseudonyms,
            tells_output=core.config.results.tell_output,
            usage=None if core.usage is None else core.usage.log,
            bring_to=None if replay is None else bring_to,
        )
        partner_pb2_grpc.add_PartnerServiceServicer_to_server(service, server)
        if core.config.brokers:
            reservation_pb2_grpc.add_ReservationServiceServicer_to_server(
                self._reservation_service(), server
            )
        health_pb2_grpc.add_HealthServicer_to_server(
            HealthService(self._serving, admission.check_listed, admission.who), server
        )
        server.add_insecure_port(port.inner_address)
        return server

    def coordinator(self, replay: Replay, stack: AsyncExitStack) -> aio.Server:
        """Returns the server of a replay's coordinator, on its own socket; `stack` deletes it."""
        # Whoever can open the socket's file is the daemon's own user, or root.
        path = Path(self._core.config.listen.users + CONDUCTOR_SOCKET)
        remove_stale_socket(path)
        server = aio.server(
            interceptors=[self._unexpected()],
            options=[("grpc.max_receive_message_length", 64 << 20)],
        )
        service = ReplayService(replay)
        replay_pb2_grpc.add_ReplayServiceServicer_to_server(service, server)
        health_pb2_grpc.add_HealthServicer_to_server(HealthService(self._serving), server)
        mask = os.umask(0o177)
        try:
            server.add_insecure_port(f"unix:{path}")
        finally:
            os.umask(mask)
        stack.callback(lambda: path.unlink(missing_ok=True))
        return server

    def _tell_names(self, config: SiteConfig) -> None:
        if self._pseudonyms is not None:
            self._pseudonyms.told = told_names(config)

    def _unexpected(self) -> Unexpected:
        admission, monitor = self._admission, self._core.monitor
        more = {} if monitor is None else {"took": monitor.metrics.call_answered}
        return Unexpected(self._log, lambda: admission.count("invalid"), **more)

    def _server(self, unexpected: Unexpected, *more: tuple[str, int]) -> aio.Server:
        limits = self._core.config.limits
        return aio.server(
            interceptors=[unexpected],
            options=[
                ("grpc.max_receive_message_length", limits.message_bytes),
                ("grpc.max_send_message_length", 64 << 20),
                ("grpc.so_reuseport", 0),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.server.max_pending_requests", PENDING_MAX),
                ("grpc.server.max_pending_requests_hard_limit", PENDING_MAX),
                *more,
            ],
        )


def _share(shared: SharedFolders, config: SiteConfig) -> None:
    shared.partners = frozenset(config.sharing)
