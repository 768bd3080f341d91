"""The site daemon: puts the parts together, and ends them in order.

One task group holds everything. The first signal drains: nothing new is taken, calls that are
being answered get their answers, the journal is brought to rest, and the process ends; jobs go on
in the batch system and are taken up at the next start. A second signal ends at once, which loses
nothing that was acknowledged either.
"""

import asyncio
import contextlib
import math
import os
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import grpc
import structlog
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from grms.handshakes import Handshake
from grms.kit.job_files import FileLimits
from grms.kit.reflection import serve_reflection
from grms.kit.refusals import Context, Unexpected, refuse
from grms.kit.service_manager import notify
from grms.kit.shared_folders import SharedFolders
from grms.kit.unix_sockets import remove_stale_socket
from grms.lrms.folders import WithFolders
from grms.lrms.immediate import ReplayableLrms
from grms.lrms.originals import WithOriginals
from grms.names import parse_endpoint
from grms.site.configuration.config import PSEUDONYMS_END, SiteConfig
from grms.site.configuration.files import ConfigError
from grms.site.configuration.guard_table import guard_of
from grms.site.engine.clock import VirtualClock
from grms.site.engine.engine import EngineFailedError
from grms.site.engine.journal import JournalError
from grms.site.engine.round_timer import RoundTimer
from grms.site.engine.upkeep import without_collection
from grms.site.facts.events import Restarted, TimePassed
from grms.site.links.programs import ProgramFetcher
from grms.site.links.pseudonyms import GuestOwners, Pseudonyms, read_key
from grms.site.originals.watcher import OriginalWatcher
from grms.site.parts import Core
from grms.site.results.collector import Collector
from grms.site.results.desk import ResultDesk
from grms.site.results.inputs import InputDesk, InputFetcher
from grms.site.results.store import ResultStore
from grms.site.results.sweeper import Sweeper
from grms.site.services.jobs import JobService, Watchers
from grms.site.services.operators import OperatorService, SiteFacts
from grms.site.services.partners import PartnerService
from grms.site.services.reload import Reload
from grms.site.services.replay import ReplayService
from grms.site.services.replay_site import Replay
from grms.site.services.reservations import Reservations, ReservationService
from grms.site.sockets.descriptors import connection_limits, user_socket
from grms.site.sockets.door import Door, Rate
from grms.site.sockets.partner_end import PortLimits
from grms.site.sockets.partners import PartnerPort
from grms.site.sockets.users import UserSocket
from grms.site.sockets.waiting_room import SERVICES
from grms.site.watching.exchange_watch import ExchangeWatch, GuardWatch
from grms.tls import ServerTls, TlsFiles
from grms.v1 import (
    job_pb2_grpc,
    operator_pb2_grpc,
    partner_pb2_grpc,
    replay_pb2_grpc,
    reservation_pb2_grpc,
)

Log = structlog.typing.FilteringBoundLogger

CONDUCTOR_SOCKET = ".conductor"
"""What the path of the conductor's socket has after that of the users' socket."""

DEADLINES_LOOKED_AT_S = 2.0
"""How often it is looked whether a job is overdue."""

DAY_S = 86400.0

RESULTS_END = ".results"
"""In the journal's folder, after the site's name: what has come home from partners."""

INPUTS_END = ".inputs"
"""Likewise: files that jobs are given."""

OWNERS_END = ".owners"
"""Likewise: whose guests' jobs are."""

REFUSALS_LOGGED_PER_S = 0.1
"""How often it is logged that connections are refused; all are counted."""

EXHAUSTION_LOGGED_PER_S = 1 / 60
"""How often it is logged that there are no descriptors."""


class Daemon:
    """A site daemon that serves.

    Attributes:
        owners: whose guests' jobs are, and who is banned.
        ready: it serves.

    Args:
        core: the parts without sockets.
        config_path: the configuration's file, which is read again for its policies.
        log: where events go.
        users: the users' socket where it is open already, and what is left for the port of partners;
            it is closed by whoever has opened it.
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
        self._health = health.aio.HealthServicer()
        self._stop = asyncio.Event()
        self._reservations = Reservations(core.engine)
        self.owners = GuestOwners(_beside(core, OWNERS_END), core.config.guests.banned)
        self._inputs = _inputs(core, self.owners)
        self._desk, self._collector, self._sweeper = _results(core, log, self._inputs, self.owners)
        self._refusals_logged = Rate(REFUSALS_LOGGED_PER_S)
        self._exhaustion_logged = Rate(EXHAUSTION_LOGGED_PER_S)
        self.ready = asyncio.Event()

    def stop(self) -> None:
        """Begins to drain and end."""
        self._stop.set()

    async def run(self) -> None:
        """Serves until `stop`.

        Raises:
            JournalError: the disk has failed.
            LrmsError: something is missing that the batch system needs.
            SocketInUseError: another process listens on the users' socket.
            OSError: an address cannot be listened on.
        """
        core = self._core
        async with AsyncExitStack() as stack:
            await core.driver.lrms.open()
            stack.push_async_callback(core.driver.lrms.close)
            door, watchers, servers = await self._open(stack)
            try:
                await self._serve(door, watchers, servers)
            except* EngineFailedError:
                # Every task that asked the engine afterwards has met it; the cause is told below.
                pass
        if core.engine.failure is not None:
            self._log.error("failed", error=str(core.engine.failure))
            raise core.engine.failure
        core.engine.commit.close()
        core.events.close()
        self._log.info("stopped")

    async def _serve(self, door: Door, watchers: Watchers, servers: list[aio.Server]) -> None:
        core = self._core
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._commit(), name="journal"),
                group.create_task(core.links.run(), name="partners"),
                group.create_task(self._reservations.run(), name="reservations"),
            ]
            if core.observer is not None:
                tasks.append(group.create_task(core.observer.run(), name="telemetry"))
                if not isinstance(core.clock, VirtualClock):
                    watch = ExchangeWatch(core.config, core.observer.metrics, self._log)
                    tasks.append(group.create_task(watch.run(), name="exchange"))
            if (guard := guard_of(core.config.guard)) is not None:
                metrics = None if core.observer is None else core.observer.metrics
                guarding = GuardWatch(core.config, guard, core.engine, metrics, self._log)
                tasks.append(group.create_task(guarding.run(), name="guard"))
            if core.dashboard is not None:
                tasks.append(group.create_task(core.dashboard.run(), name="dashboard"))
            if not isinstance(core.clock, VirtualClock):
                tasks.append(group.create_task(core.driver.run(), name="lrms"))
                tasks.append(group.create_task(self._follow_deadlines(), name="deadlines"))
                rounds = RoundTimer(core.engine)
                tasks.append(group.create_task(rounds.run(), name="rounds"))
                tasks.append(group.create_task(self._collector.run(), name="results"))
                tasks.append(group.create_task(self._sweeper.run(), name="sweeper"))
                lrms = core.driver.lrms
                if isinstance(lrms, WithOriginals) and lrms.watched is not None:
                    originals = OriginalWatcher(core.engine, lrms.watched, self._log)
                    tasks.append(group.create_task(originals.run(), name="originals"))
            await asyncio.sleep(0)
            with without_collection():
                core.engine.tell(Restarted)
            for server in servers:
                await server.start()
            await self._serving(serving=True)
            self._log.info(
                "serving",
                users=core.config.listen.users,
                partners=core.config.listen.partners,
                clock=core.config.clock.kind,
                records=core.journal.count,
            )
            notify("READY=1", "STATUS=serving")
            self.ready.set()
            await self._until_stopped()
            await self._drain(door, watchers, servers)
            if core.observer is not None:
                await core.observer.stop()
            for task in reversed(tasks):
                task.cancel()

    async def _follow_deadlines(self) -> None:
        engine = self._core.engine
        while True:  # waits for time, not for an event
            await asyncio.sleep(DEADLINES_LOOKED_AT_S)
            engine.tell(TimePassed)

    async def _commit(self) -> None:
        try:
            await self._core.engine.commit.run()
        except JournalError as error:
            self._core.engine.fail(error)

    async def _open(self, stack: AsyncExitStack) -> tuple[Door, Watchers, list[aio.Server]]:
        core, config = self._core, self._core.config
        if self._users is not None:
            users, port_limits = self._users
        else:
            shares, port_limits = connection_limits(config, self._log)
            users = user_socket(config, shares, port_limits)
            await stack.enter_async_context(users)
        if core.observer is not None:
            await stack.enter_async_context(core.observer)
        if core.dashboard is not None:
            stack.enter_context(core.dashboard)
        watchers = Watchers(config.limits.watchers)
        core.engine.on_publish(lambda job_id: self._tell(watchers, job_id))
        door = Door(
            core.engine,
            users=users,
            operators=config.operators,
            own_uid=os.getuid(),
            partners=[partner.name for partner in config.partners],
            brokers=config.brokers,
            tls=config.tls is not None,
            submissions=Rate(config.limits.submissions_per_s),
            offers=Rate(config.limits.offers_per_s),
            log=self._log,
        )
        if core.observer is not None:
            door.on_refused = core.observer.metrics.refused
        users.is_operator = door.is_operator
        users.on_refused = partial(self._connection_refused, door, "connections")
        users.on_exhausted = partial(self._exhausted, door)
        replay = self._replay()
        servers: list[aio.Server] = []

        async def stop_servers() -> None:
            # Also where one could not be made, or none was started.
            for server in servers:
                await server.stop(None)

        stack.push_async_callback(stop_servers)
        servers.append(self._user_server(door, users, watchers))
        if config.listen.partners is not None:
            port = self._partner_port(door, port_limits)
            servers.append(self._partner_server(door, replay, port))
            try:
                await stack.enter_async_context(port)
            except OSError as error:
                text = (
                    f"cannot listen for partners on {config.listen.partners}: "
                    f"{error.strerror or error}; is the address in use, or another's?"
                )
                raise OSError(text) from error
        if replay is not None:
            servers.append(self._conductor_server(replay, stack))
        return door, watchers, servers

    def _tell(self, watchers: Watchers, job_id: str) -> None:
        if not watchers.there:
            return
        job = self._core.engine.job(job_id)
        if job is not None:
            watchers.tell(job)

    def _connection_refused(self, door: Door, kind: str, reason: str) -> None:
        if self._refusals_logged.wait_s(kind) == 0.0:
            self._log.warning("connection_refused", reason=reason, limit=f"limits.{kind}")
        door.count(kind)

    def _exhausted(self, door: Door, why: str) -> None:
        if self._exhaustion_logged.wait_s("") == 0.0:
            self._log.error("no_connection_can_be_taken", problem=why)
        door.count("descriptors")

    def _handshake_failed(self, handshake: Handshake, problem: str, address: str) -> None:
        if self._core.observer is not None:
            self._core.observer.metrics.handshake_failed(handshake)
        if self._refusals_logged.wait_s(f"{handshake} {address}") == 0.0:
            self._log.warning(
                "handshake_failed", reason=str(handshake), problem=problem, address=address
            )

    def _partner_port(self, door: Door, limits: PortLimits) -> PartnerPort:
        config = self._core.config
        assert config.listen.partners is not None
        files = None if config.tls is None else TlsFiles.of(config.tls)
        port = PartnerPort(
            parse_endpoint(config.listen.partners),
            None if files is None else ServerTls(files),
            limits,
        )
        port.on_refused = partial(self._connection_refused, door, "partner_connections")
        port.on_exhausted = partial(self._exhausted, door)
        port.on_handshake_failed = self._handshake_failed
        if self._core.dashboard is not None:
            port.on_certificate = self._core.dashboard.recorder.certificate_shown
        door.shown = port.shown
        return port

    def _replay(self) -> Replay | None:
        core = self._core
        if not isinstance(core.clock, VirtualClock):
            return None
        lrms = core.driver.lrms
        if not isinstance(lrms, ReplayableLrms):
            return None
        return Replay(core.engine, core.journal, lrms, core.clock, core.links)

    def _server(self, door: Door) -> aio.Server:
        limits, observer = self._core.config.limits, self._core.observer
        more = {} if observer is None else {"took": observer.metrics.call_answered}
        return aio.server(
            interceptors=[Unexpected(self._log, lambda: door.count("invalid"), **more)],
            maximum_concurrent_rpcs=limits.calls,
            options=[
                ("grpc.max_receive_message_length", limits.message_bytes),
                ("grpc.max_send_message_length", 64 << 20),
                ("grpc.so_reuseport", 0),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
                ("grpc.keepalive_permit_without_calls", 1),
            ],
        )

    def _user_server(self, door: Door, users: UserSocket, watchers: Watchers) -> aio.Server:
        core = self._core
        server = self._server(door)
        observer = core.observer
        facts = SiteFacts(
            clock=core.config.clock.kind,
            journal=core.journal,
            telemetry_connected=lambda: observer is not None and observer.connected,
            owner=self.owners.of,
            reload=Reload(
                core.config,
                self._config_path,
                engine=core.engine,
                links=core.links,
                door=door,
                owners=self.owners,
                files=None if core.config.tls is None else TlsFiles.of(core.config.tls),
                on_partners=[
                    partial(_share, core.shared),
                    *([] if observer is None else [observer.set_partners]),
                ],
                log=self._log,
            ),
        )
        job_pb2_grpc.add_JobServiceServicer_to_server(
            JobService(door, watchers, self._desk, self._inputs), server
        )
        reservation_pb2_grpc.add_ReservationServiceServicer_to_server(
            ReservationService(door, self._reservations), server
        )
        operator_pb2_grpc.add_OperatorServiceServicer_to_server(
            OperatorService(door, core.links, facts), server
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        serve_reflection((*SERVICES, health.SERVICE_NAME), server)
        server.add_insecure_port(users.inner_address)
        return server

    def _partner_server(self, door: Door, replay: Replay | None, port: PartnerPort) -> aio.Server:
        core = self._core
        server = self._server(door)
        links = core.links

        async def bring_to(context: Context, moment: float) -> None:
            assert replay is not None
            if not math.isfinite(moment):
                reason = f"replay_time_s is {moment}; it must be finite"
                await refuse(context, grpc.StatusCode.INVALID_ARGUMENT, reason)
            replay.set_clock(moment)

        service = PartnerService(
            door,
            lambda name: links.links[name].heard(),
            results=self._desk,
            inputs=self._inputs,
            pseudonyms=_pseudonyms(core),
            bring_to=None if replay is None else bring_to,
        )
        partner_pb2_grpc.add_PartnerServiceServicer_to_server(service, server)
        if core.config.brokers:
            reservation_pb2_grpc.add_ReservationServiceServicer_to_server(
                ReservationService(door, self._reservations), server
            )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        server.add_insecure_port(port.inner_address)
        return server

    def _conductor_server(self, replay: Replay, stack: AsyncExitStack) -> aio.Server:
        # Whoever can open the socket's file is the daemon's own user, or root.
        path = Path(self._core.config.listen.users + CONDUCTOR_SOCKET)
        remove_stale_socket(path)
        server = aio.server(options=[("grpc.max_receive_message_length", 64 << 20)])
        replay_pb2_grpc.add_ReplayServiceServicer_to_server(ReplayService(replay), server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        mask = os.umask(0o177)
        try:
            server.add_insecure_port(f"unix:{path}")
        finally:
            os.umask(mask)
        stack.callback(lambda: path.unlink(missing_ok=True))
        return server

    async def _serving(self, *, serving: bool) -> None:
        status = health_pb2.HealthCheckResponse
        value = status.SERVING if serving else status.NOT_SERVING
        for name in ("", *SERVICES):
            await self._health.set(name, value)

    async def _until_stopped(self) -> None:
        stop = asyncio.ensure_future(self._stop.wait())
        failed = asyncio.ensure_future(self._core.engine.failed.wait())
        try:
            await asyncio.wait([stop, failed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            failed.cancel()

    async def _drain(self, door: Door, watchers: Watchers, servers: list[aio.Server]) -> None:
        core = self._core
        door.stopping = True
        watchers.close()
        self._reservations.close()
        await self._serving(serving=False)
        grace = core.config.limits.drain_s
        notify("STOPPING=1", "STATUS=answering the last calls")
        self._log.info("draining", seconds=grace)
        if core.engine.failure is not None:
            grace = 0.0
        await asyncio.gather(*(server.stop(grace) for server in servers))
        if core.engine.failure is None and not core.engine.commit.problem:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await core.engine.commit.settled()


def _beside(core: Core, end: str) -> Path:
    # In the journal's folder.
    return Path(core.config.journal.path).with_name(f"{core.config.name}{end}")


def _share(shared: SharedFolders, config: SiteConfig) -> None:
    shared.partners = frozenset(config.sharing)


def _pseudonyms(core: Core) -> Pseudonyms:
    try:
        return Pseudonyms(read_key(_beside(core, PSEUDONYMS_END)))
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _inputs(core: Core, owners: GuestOwners) -> InputDesk:
    config = core.config
    folder = _beside(core, INPUTS_END)
    limits = FileLimits(config.results.file_bytes, config.results.job_bytes)
    desk = InputDesk(ResultStore(folder), limits, core.shared)
    programs = ProgramFetcher(core.links, config.name, owners)
    core.driver.connect_programs(InputFetcher(programs, desk, core.links, config.name))
    core.driver.connect_inputs(desk.place)
    return desk


def _results(
    core: Core, log: Log, inputs: InputDesk, owners: GuestOwners
) -> tuple[ResultDesk, Collector, Sweeper]:
    config = core.config.results
    folder = config.folder or _beside(core, RESULTS_END)
    store = ResultStore(Path(folder))
    limits = FileLimits(config.file_bytes, config.job_bytes)
    lrms = core.driver.lrms
    folders = lrms.folders if isinstance(lrms, WithFolders) else None
    keep_s = config.keep_days * DAY_S
    return (
        ResultDesk(core.engine, folders, store, limits),
        Collector(core.engine, core.links, store, limits, keep_s=keep_s, log=log),
        Sweeper(core.engine, folders, store, inputs.store, owners, keep_s=keep_s, log=log),
    )
