"""The site daemon: assembles the parts, and ends them in order.

One task group holds everything. The first signal drains: new requests are refused, calls in
progress are answered, the journal is flushed, and the process ends; jobs continue in the batch
system and are resumed at the next start. A second signal ends at once, which loses nothing that was
acknowledged either.
"""

import asyncio
import contextlib
import os
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import structlog

from grms.daemon.clock import VirtualClock
from grms.daemon.loop import EngineFailedError
from grms.daemon.pacing import Rate
from grms.daemon.process import notify
from grms.daemon.rpc.health import Serving
from grms.daemon.tunnel.hub import TunnelHub
from grms.lrms.base import LrmsError
from grms.lrms.native_jobs import WithNativeJobs
from grms.lrms.simulated.immediate import ReplayableLrms
from grms.security.tls import ServerTls, TlsFiles
from grms.site.assembly import Core
from grms.site.config.circuit_breaker_table import circuit_breaker_of
from grms.site.config.load import ConfigError
from grms.site.gateway.admission import Admission
from grms.site.gateway.connection_budget import connection_limits, user_socket
from grms.site.gateway.peer_listener import PartnerPort, PortLimits
from grms.site.gateway.rejection_log import RejectionLog
from grms.site.gateway.startup_server import SERVICES
from grms.site.gateway.user_listener import UserSocket
from grms.site.model.events import LrmsTold, OwnerTold, PartnerUp, Restarted
from grms.site.monitoring.accounting_monitor import AccountingMonitor, CircuitBreakerWatch
from grms.site.peers.progress import ProgressWatch
from grms.site.peers.usage_fetch import UsageFetcher
from grms.site.rpc.job_service import shown_job
from grms.site.rpc.reconfigure import Reload
from grms.site.rpc.replay_site import Replay
from grms.site.rpc.reservation_service import Reservations
from grms.site.rpc.watchers import Watchers
from grms.site.runtime.event_loop import RebalanceTimer, follow_deadlines
from grms.site.runtime.native_job_adoption import NativeJobAdoption
from grms.site.runtime.recovery import without_collection
from grms.site.servers import Servers
from grms.site.stores import keep_beside

Log = structlog.typing.FilteringBoundLogger

TRUST_LOOKED_AT_S = 30.0
"""Interval of checks for a changed file of authorities, without a reload."""


class Server(Protocol):
    """What answers, and is started and stopped in order."""

    async def start(self) -> None:
        """Begins to answer."""

    async def stop(self, grace: float | None) -> None:
        """Ends, with `grace` seconds at most for what is under way."""


class Daemon:
    """A site daemon that serves; `owners` knows whose guests' jobs are, and who is banned.

    `users` is the users' socket, if it is open already, and the descriptors left for the port of
    partners; whoever opened it closes it.
    """

    def __init__(
        self,
        core: Core,
        config_path: Path,
        log: Log,
        users: tuple[UserSocket, PortLimits] | None = None,
    ) -> None:
        self._core = core
        self._users = users
        self._config_path = config_path
        self._log = log
        self._serving = Serving(SERVICES)
        self._stop = asyncio.Event()
        self._reservations = Reservations(core.engine)
        self._kept = keep_beside(core, log)
        self.owners = self._kept.owners
        self.ready = asyncio.Event()
        self._reload: Reload | None = None
        self._reload_wanted = False

    def reload(self) -> None:
        """Reads the configuration anew as soon as the daemon serves; what cannot be used is logged."""
        if self._reload is None or not self.ready.is_set():
            self._reload_wanted = True
            return
        try:
            self._reload()
        except ConfigError as error:
            self._log.error("not_reloaded", problem=str(error))  # the operator's, and said in full

    def stop(self) -> None:
        """Begins to drain and end."""
        self._stop.set()

    async def run(self) -> None:
        """Serves until `stop`.

        Raises:
            JournalError: the disk has failed.
            LrmsError: something is missing that the batch system needs, or it cannot go on.
            SocketInUseError: another process listens on the users' socket.
            OSError: an address cannot be listened on.
        """
        core = self._core
        async with AsyncExitStack() as stack:
            await core.driver.lrms.open()
            stack.push_async_callback(core.driver.lrms.close)
            if core.usage is not None:
                stack.callback(core.usage.close)
                core.usage.open()
            if (pilots := self._kept.pilots) is not None:
                await pilots.open()
                stack.push_async_callback(pilots.hub.close)
            admission, watchers, servers = await self._open(stack)
            try:
                await self._serve(admission, watchers, servers)
            except* EngineFailedError:
                # Every task that asked the engine afterwards has met it; the cause is told below.
                pass
            except* LrmsError as errors:
                core.engine.fail(_first(errors))
        if core.engine.failure is not None:
            self._log.error("failed", error=str(core.engine.failure))
            raise core.engine.failure
        core.engine.close()
        core.events.close()
        self._log.info("stopped")

    async def _serve(self, admission: Admission, watchers: Watchers, servers: list[Server]) -> None:
        core = self._core
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(core.engine.run(), name="journal"),
                group.create_task(core.links.run(), name="partners"),
                group.create_task(core.tunnels.run(), name="tunnels"),
                group.create_task(self._reservations.run(), name="reservations"),
            ]
            if core.monitor is not None:
                tasks.append(group.create_task(core.monitor.run(), name="telemetry"))
                if not isinstance(core.clock, VirtualClock):
                    watch = AccountingMonitor(core.config, core.monitor.metrics, self._log)
                    tasks.append(group.create_task(watch.run(), name="exchange"))
            if (circuit_breaker := circuit_breaker_of(core.config.circuit_breaker)) is not None:
                metrics = None if core.monitor is None else core.monitor.metrics
                guarding = CircuitBreakerWatch(
                    core.config, circuit_breaker, core.engine, metrics, self._log
                )
                tasks.append(group.create_task(guarding.run(), name="circuit_breaker"))
            if core.dashboard is not None:
                tasks.append(group.create_task(core.dashboard.run(), name="dashboard"))
            tasks.append(group.create_task(self._follow_trust(), name="trust"))
            if not isinstance(core.clock, VirtualClock):
                tasks += self._follow_real_time(group)
            await asyncio.sleep(0)
            with without_collection():
                self._begin()
                # Users come when all of it is written, or cannot be: then they are told so.
                await self._stopped_or(core.engine.durable())
            if self._kept.pilots is not None:
                tasks.append(group.create_task(self._kept.pilots.run(), name="pilots"))
            for server in servers:
                await server.start()
            self._serving.set(serves=True)
            self._log.info(
                "serving",
                users=core.config.listen.users,
                partners=core.config.listen.partners,
                clock=core.config.clock.kind,
                records=core.journal.count,
            )
            self._is_ready()
            await self._stopped_or()
            await self._drain(admission, watchers, servers)
            if core.monitor is not None:
                await core.monitor.stop()
            for task in reversed(tasks):
                task.cancel()

    def _follow_real_time(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        # What a site does by itself as time passes; in a replay the coordinator has it done.
        core, kept = self._core, self._kept
        assert core.usage is not None
        fetcher = UsageFetcher(
            core.engine, core.links, core.config, core.usage.log.folder, self._log
        )
        works: list[tuple[Coroutine[Any, Any, None], str]] = [
            (core.driver.run(kept.supplies), "lrms"),
            (follow_deadlines(core.engine), "deadlines"),
            (core.usage.run(), "usage"),
            (ProgressWatch(core.engine, core.links, core.config).run(), "progress"),
            (fetcher.run(), "partners' usage"),
            (RebalanceTimer(core.engine).run(), "rounds"),
            (kept.collector.run(), "results"),
            (kept.states.run(), "states"),
            (kept.sweeper.run(), "sweeper"),
        ]
        lrms = core.driver.lrms
        if isinstance(lrms, WithNativeJobs) and lrms.watched is not None:
            native_jobs = NativeJobAdoption(core.engine, lrms.watched, self._log)
            works.append((native_jobs.run(), "native-jobs"))
        return [group.create_task(work, name=name) for work, name in works]

    def _begin(self) -> None:
        engine = self._core.engine
        if isinstance(self._core.clock, VirtualClock):
            # In lock step no partner is ever away: the links wait until it is there.
            for partner in engine.state.settings.partners:
                if partner.processors:  # else it has to say so first
                    engine.tell(PartnerUp(*engine.stamp(), partner.name, partner.processors))
        engine.tell(Restarted(*engine.stamp()))
        for book in engine.state.partners.values():
            for guest in book.guests.values():
                # Its program had come, and the process was killed before the journal knew whose it is.
                if not guest.pseudonym and (owner := self.owners.of(guest.lrms_key)):
                    engine.tell(LrmsTold(engine.new_id(), OwnerTold(guest.lrms_key, owner)))

    def _is_ready(self) -> None:
        notify("READY=1", "STATUS=serving")
        self.ready.set()
        if self._reload_wanted:
            self.reload()

    async def _follow_trust(self) -> None:
        trust = self._core.links.trust
        if trust is None:
            return
        # Who connects here is looked at all the time; connections of our own have to be made anew for it.
        known = trust.authority()
        while True:  # waits for time, not for an event
            await asyncio.sleep(TRUST_LOOKED_AT_S)
            if (now := trust.authority()) != known:
                known = now
                self._log.info("authorities_changed", connections="made anew")
                self._core.links.renew()

    async def _open(self, stack: AsyncExitStack) -> tuple[Admission, Watchers, list[Server]]:
        core, config = self._core, self._core.config
        if self._users is not None:
            users, port_limits = self._users
        else:
            shares, port_limits = connection_limits(config, self._log)
            users = user_socket(config, shares, port_limits)
            await stack.enter_async_context(users)
        if core.monitor is not None:
            await stack.enter_async_context(core.monitor)
        if core.dashboard is not None:
            stack.enter_context(core.dashboard)
        watchers = Watchers(config.name, config.limits.watchers, partial(shown_job, core.engine))
        core.engine.on_publish(watchers.tell)
        admission = Admission(
            core.engine,
            users=users,
            operators=config.operators,
            own_uid=os.getuid(),
            partners=[partner.name for partner in config.partners],
            brokers=config.brokers,
            tls=config.tls is not None,
            submissions=Rate(config.limits.submissions_per_s),
            offers=Rate(config.limits.offers_per_s),
            output_reads=Rate(config.limits.output_reads_per_s),
            log=self._log,
        )
        if core.monitor is not None:
            admission.on_refused = core.monitor.metrics.refused
        metrics = None if core.monitor is None else core.monitor.metrics
        refused = RejectionLog(
            admission.count, None if metrics is None else metrics.handshake_failed, self._log
        )
        admission.on_stopping.append(refused.stop)
        users.is_operator = admission.is_operator
        users.on_refused = partial(refused.refused, "connections")
        users.on_exhausted = refused.exhausted
        replay = self._replay()
        made = Servers(
            core,
            self._kept,
            admission,
            watchers=watchers,
            reservations=self._reservations,
            serving=self._serving,
            log=self._log,
        )
        servers: list[Server] = []

        async def stop_servers() -> None:
            # Also where one could not be made, or none was started.
            for server in servers:
                await server.stop(None)

        stack.push_async_callback(stop_servers)
        servers.append(made.users(users, self._config_path))
        self._reload = made.reload
        servers += [] if core.rest is None else [core.rest]
        if config.is_called:
            port = self._partner_port(admission, refused, port_limits)
            servers.append(made.partners(port, replay))
            await self._take_tunnels(port, admission, stack)
            try:
                await stack.enter_async_context(port)
            except OSError as error:
                text = (
                    f"cannot listen for partners on {config.listen.partners}: "
                    f"{error.strerror or error}; is the address in use, or another's?"
                )
                raise OSError(text) from error
        if replay is not None:
            servers.append(made.coordinator(replay, stack))
        return admission, watchers, servers

    def _partner_port(
        self, admission: Admission, refused: RejectionLog, limits: PortLimits
    ) -> PartnerPort:
        config = self._core.config
        files = None if config.tls is None else TlsFiles.of(config.tls)
        port = PartnerPort(
            config.listen.endpoint,
            None if files is None else ServerTls(files),
            limits,
            trust=self._core.links.trust,
        )
        port.on_distrusted = refused.distrusted
        admission.check_standing = port.check
        port.on_refused = partial(refused.refused, "partner_connections")
        port.on_exhausted = refused.exhausted
        port.on_handshake_failed = refused.handshake_failed
        if self._core.dashboard is not None:
            port.on_certificate = self._core.dashboard.recorder.certificate_shown
        admission.shown = port.shown
        return port

    async def _take_tunnels(
        self, port: PartnerPort, admission: Admission, stack: AsyncExitStack
    ) -> None:
        core = self._core
        core.tunnels.take = port.take
        if port.tls is None or core.config.listen.partners is None:
            return

        def refuses(site: str) -> str:
            listed = site in admission.partners
            return "" if listed else f"{site} is not among the partners of this site"

        hub = TunnelHub(
            port.folder / "tunnels",
            port.site,
            refuses=refuses,
            on_refused=port.refuse,
            on_waiting=core.tunnels.arrived,
        )
        core.tunnels.hub = port.tunnels = hub
        core.tunnels.on_arrived = lambda partner, place: core.links.links[partner].move(place)
        await hub.open()
        stack.push_async_callback(hub.close)

    def _replay(self) -> Replay | None:
        core = self._core
        if not isinstance(core.clock, VirtualClock):
            return None
        lrms = core.driver.lrms
        if not isinstance(lrms, ReplayableLrms):
            return None
        return Replay(core.engine, core.journal, lrms, core.clock, core.links)

    async def _stopped_or(self, *others: Coroutine[Any, Any, object]) -> None:
        waits = [
            asyncio.ensure_future(wait)
            for wait in (self._stop.wait(), self._core.engine.failed.wait(), *others)
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _drain(self, admission: Admission, watchers: Watchers, servers: list[Server]) -> None:
        core = self._core
        admission.stop()
        watchers.close()
        self._reservations.close()
        self._serving.close()
        grace = core.config.limits.drain_s
        notify("STOPPING=1", "STATUS=answering the last calls")
        self._log.info("draining", seconds=grace)
        if core.engine.failure is not None:
            grace = 0.0
        await asyncio.gather(*(server.stop(grace) for server in servers))
        if core.engine.failure is None and not core.engine.problem:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await core.engine.settled()


def _first(errors: BaseExceptionGroup[LrmsError]) -> LrmsError:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, LrmsError)
    return error
