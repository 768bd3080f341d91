"""The site daemon: puts the parts together, and ends them in order.

One task group holds everything. The first signal drains: nothing new is taken, calls that are
being answered get their answers, the journal is brought to rest, and the process ends; jobs go on
in the batch system and are taken up at the next start. A second signal ends at once, which loses
nothing that was acknowledged either.
"""

import asyncio
import contextlib
import itertools
import math
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import structlog
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from grms.names import parse_endpoint
from grms.process_signals import signals
from grms.service_errors import Context, Unexpected, refuse
from grms.site.clock import Clock, VirtualClock
from grms.site.config import SiteConfig
from grms.site.config_files import load_config, load_policies, location_policy
from grms.site.door import Door, Rate
from grms.site.engine import Engine, EngineFailedError
from grms.site.events import Restarted
from grms.site.group_commit import GroupCommit, timed, writer
from grms.site.job_service import JobService, Watchers
from grms.site.journal import Journal, JournalError
from grms.site.lrms_driver import MachineDriver, MachineHistory
from grms.site.operator_service import OperatorService, SiteFacts
from grms.site.partner_links import LinkSettings, PartnerLinks, channel_maker
from grms.site.partner_service import PartnerService
from grms.site.records import Record
from grms.site.reload import Reload
from grms.site.replay_service import Replay, ReplayService
from grms.site.reservation_service import Reservations, ReservationService
from grms.site.reservations import Resource
from grms.site.settings import Limits, PartnerSettings, SiteSettings
from grms.site.site_clock import check_clock, make_clock
from grms.site.state import SiteState
from grms.site.upkeep import compact
from grms.site.user_socket import UserSocket
from grms.tls import TlsFiles, channel_credentials, channel_options, server_credentials
from grms.unix_sockets import remove_stale_socket
from grms.v1 import (
    job_pb2_grpc,
    operator_pb2_grpc,
    partner_pb2_grpc,
    replay_pb2_grpc,
    reservation_pb2_grpc,
)
from lrms_sim.disciplines import discipline_by_name

if TYPE_CHECKING:
    from grms.site.observer import Observer

Log = structlog.typing.FilteringBoundLogger

CONDUCTOR_SOCKET = ".conductor"
"""What the path of the conductor's socket has after that of the users' socket."""

REFUSALS_LOGGED_PER_S = 0.1
"""How often it is logged that connections are refused; all are counted."""

_SERVICES = (
    "grms.v1.JobService",
    "grms.v1.OperatorService",
    "grms.v1.ReservationService",
)


def site_settings(config: SiteConfig, epoch: int, shown: str) -> SiteSettings:
    """Returns what the pure state is told.

    Args:
        config: of the site.
        epoch: of its journal.
        shown: what errors call the configuration's file.

    Raises:
        ConfigError: a policy cannot be used.
    """
    limits, virtual = config.limits, config.clock.kind == "virtual"
    speed = config.clock.speed
    return SiteSettings(
        name=config.name,
        processors=config.processors,
        epoch=epoch,
        partners=tuple(PartnerSettings(p.name, p.processors or 0) for p in config.partners),
        transfer=load_policies(config, shown),
        location=location_policy(config),
        on_lost=config.suspect,
        decision_time_max=math.inf if virtual else limits.decision_timeout_s * speed,
        limits=Limits(
            jobs_open=limits.open_jobs,
            jobs_open_per_user=limits.open_jobs_per_user,
            jobs_kept=limits.ended_jobs,
            guests_open=limits.guest_jobs,
            payload_bytes=limits.message_bytes,
        ),
    )


@dataclass(slots=True)
class Core:
    """The parts of a daemon that have no socket.

    Attributes:
        config: of the site.
        journal: of the site.
        engine: with the state.
        driver: the batch system.
        clock: tells the time.
        links: to the partners.
        observer: sees what happens, for those who watch; None where nobody does.
    """

    config: SiteConfig
    journal: Journal
    engine: Engine
    driver: MachineDriver
    clock: Clock
    links: PartnerLinks
    observer: "Observer | None"


def build_core(config: SiteConfig, config_path: Path, journal: Journal, log: Log) -> Core:
    """Returns a daemon without sockets, with the state its journal makes.

    Args:
        config: of the site.
        config_path: its file.
        journal: of the site; its records are read.
        log: where events go.

    Raises:
        ConfigError: a policy cannot be used.
        JournalError: the journal cannot be read, or is another clock's.
        LrmsError: the machine of the journal's jobs cannot be made.
    """
    settings = site_settings(config, journal.epoch, str(config_path))
    if config.clock.kind != "virtual":
        # The journal of a replay has to keep its whole schedule.
        compact(journal, settings, log)
    history = MachineHistory(config.name, journal.epoch)
    latest = -math.inf

    def noting() -> Iterator[Record]:
        nonlocal latest
        for record in journal.records():
            history.apply(record)
            latest = max(latest, record.time)
            yield record

    state = SiteState(settings, noting())
    clock = make_clock(config.clock, latest)
    check_clock(config.clock, clock, journal, latest)
    new_id = itertools.count(1)
    machine = history.machine(config.processors, discipline_by_name(config.lrms.discipline))
    driver = MachineDriver(machine, new_id, history.programs)

    observer = None
    if config.publishes or config.metrics is not None:
        # Loading all of it takes as long as a start, and a replay starts many daemons.
        from grms.site.observer import Observer  # noqa: PLC0415  # as above

        observer = Observer(config, log)
    write = writer(journal)

    def on_problem(problem: str) -> None:
        if problem:
            log.error("journal_cannot_be_written", problem=problem)
        else:
            log.info("journal_can_be_written_again")
        engine.hold_back(problem)

    commit = GroupCommit(
        write if observer is None else timed(write, observer.metrics.journal_committed),
        in_thread=config.journal.survives == "power_loss",
        on_problem=on_problem,
    )
    engine = Engine(state, commit, driver, clock, new_id)
    files = tls_files(config)
    links = PartnerLinks(
        LinkSettings(
            site=config.name,
            processors=config.processors,
            offer_timeout_s=config.limits.offer_timeout_s,
            lost_after_s=config.suspect_after_s,
            virtual=config.clock.kind == "virtual",
            message_bytes=config.limits.message_bytes,
        ),
        engine,
        {partner.name: partner.address for partner in config.partners},
        channel_maker(
            None if files is None else lambda: channel_credentials(files),
            channel_options,
            config.limits.message_bytes,
        ),
    )
    engine.connect(links)
    if observer is not None:
        observer.connect(engine, links)
    return Core(config, journal, engine, driver, clock, links, observer)


def tls_files(config: SiteConfig) -> TlsFiles | None:
    """Returns where keys and certificates are; None without TLS."""
    tls = config.tls
    if tls is None:
        return None
    return TlsFiles(Path(tls.authority), Path(tls.certificate), Path(tls.key))


class Daemon:
    """A site daemon that serves.

    Args:
        core: the parts without sockets.
        config_path: the configuration's file, which is read again for its policies.
        log: where events go.
    """

    def __init__(self, core: Core, config_path: Path, log: Log) -> None:
        self._core = core
        self._config_path = config_path
        self._log = log
        self._health = health.aio.HealthServicer()
        self._stop = asyncio.Event()
        self._reservations = Reservations(
            core.engine,
            core.journal,
            [
                Resource(r.resource_id, r.labels, r.processors, r.speed, r.cost_per_hour)
                for r in core.config.resources
            ],
        )
        self._refusals_logged = Rate(REFUSALS_LOGGED_PER_S)
        self.ready = asyncio.Event()

    def stop(self) -> None:
        """Begins to drain and end."""
        self._stop.set()

    async def run(self) -> None:
        """Serves until `stop`.

        Raises:
            JournalError: the disk has failed.
            SocketInUseError: another process listens on the users' socket.
            OSError: an address cannot be listened on.
        """
        core = self._core
        async with AsyncExitStack() as stack:
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
                tasks.append(group.create_task(self._follow_lrms(), name="lrms"))
            await asyncio.sleep(0)
            core.engine.tell(Restarted(next(core.engine.new_id), core.engine.load()))
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
            self.ready.set()
            await self._until_stopped()
            await self._drain(door, watchers, servers)
            if core.observer is not None:
                await core.observer.stop()
            for task in reversed(tasks):
                task.cancel()

    async def _commit(self) -> None:
        try:
            await self._core.engine.commit.run()
        except JournalError as error:
            self._core.engine.fail(error)

    async def _open(self, stack: AsyncExitStack) -> tuple[Door, Watchers, list[aio.Server]]:
        core, config = self._core, self._core.config
        users = await stack.enter_async_context(
            UserSocket(Path(config.listen.users), config.limits.connections)
        )
        if core.observer is not None:
            await stack.enter_async_context(core.observer)
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
        )
        if core.observer is not None:
            door.on_refused = core.observer.metrics.refused
        users.on_refused = partial(self._connection_refused, door)
        replay = self._replay()
        servers: list[aio.Server] = []

        async def stop_servers() -> None:
            # Also where one could not be made, or none was started.
            for server in servers:
                await server.stop(None)

        stack.push_async_callback(stop_servers)
        servers.append(self._user_server(door, users, watchers))
        if config.listen.partners is not None:
            servers.append(self._partner_server(door, replay))
        if replay is not None:
            servers.append(self._conductor_server(replay, stack))
        return door, watchers, servers

    def _tell(self, watchers: Watchers, job_id: str) -> None:
        if not watchers.there:
            return
        job = self._core.engine.job(job_id)
        if job is not None:
            watchers.tell(job)

    def _connection_refused(self, door: Door, reason: str) -> None:
        if self._refusals_logged.wait_s("") == 0.0:
            self._log.warning("connection_refused", reason=reason, limit="limits.connections")
        door.count("connections")

    def _replay(self) -> Replay | None:
        core = self._core
        if not isinstance(core.clock, VirtualClock):
            return None
        return Replay(core.engine, core.journal, core.driver, core.clock, core.links)

    def _server(self, door: Door) -> aio.Server:
        limits = self._core.config.limits
        return aio.server(
            interceptors=[Unexpected(self._log, lambda: door.count("invalid"))],
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
            reload=Reload(
                core.config,
                self._config_path,
                engine=core.engine,
                links=core.links,
                door=door,
                files=tls_files(core.config),
                on_partners=[] if observer is None else [observer.set_partners],
                log=self._log,
            ),
        )
        job_pb2_grpc.add_JobServiceServicer_to_server(JobService(door, watchers), server)
        reservation_pb2_grpc.add_ReservationServiceServicer_to_server(
            ReservationService(door, self._reservations), server
        )
        operator_pb2_grpc.add_OperatorServiceServicer_to_server(
            OperatorService(door, core.links, facts), server
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = (*_SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)
        server.add_insecure_port(users.inner_address)
        return server

    def _partner_server(self, door: Door, replay: Replay | None) -> aio.Server:
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
            None if replay is None else bring_to,
        )
        partner_pb2_grpc.add_PartnerServiceServicer_to_server(service, server)
        if core.config.brokers:
            reservation_pb2_grpc.add_ReservationServiceServicer_to_server(
                ReservationService(door, self._reservations), server
            )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        assert core.config.listen.partners is not None
        address = str(parse_endpoint(core.config.listen.partners))
        files = tls_files(core.config)
        credentials = None if files is None else server_credentials(files)
        try:
            if credentials is None:
                server.add_insecure_port(address)
            else:
                server.add_secure_port(address, credentials)
        except RuntimeError as error:
            text = f"cannot listen for partners on {address}; is the address in use, or another's?"
            raise OSError(text) from error
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
        for name in ("", *_SERVICES):
            await self._health.set(name, value)

    async def _follow_lrms(self) -> None:
        # Sleeps until the batch system has something to tell, or was given something to do.
        engine, clock = self._core.engine, self._core.clock
        while True:
            engine.poll()
            engine.lrms_wanted.clear()
            moment = engine.next_lrms_time
            async with asyncio.TaskGroup() as group:
                wanted = group.create_task(engine.lrms_wanted.wait(), name="lrms wanted")
                if moment < math.inf:
                    due = group.create_task(clock.sleep_until(moment), name="lrms due")
                    await asyncio.wait([wanted, due], return_when=asyncio.FIRST_COMPLETED)
                    due.cancel()
                else:
                    await wanted
                wanted.cancel()

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
        self._log.info("draining", seconds=grace)
        if core.engine.failure is not None:
            grace = 0.0
        await asyncio.gather(*(server.stop(grace) for server in servers))
        if core.engine.failure is None and not core.engine.commit.problem:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await core.engine.commit.settled()


@asynccontextmanager
async def lifeline(daemon: Daemon, *, wanted: bool) -> AsyncIterator[None]:
    """Lets the end of standard input stop a daemon: who has started it is gone."""
    if not wanted:
        yield
        return
    loop = asyncio.get_running_loop()

    def ended() -> None:
        loop.remove_reader(0)
        daemon.stop()

    loop.add_reader(0, ended)
    try:
        yield
    finally:
        loop.remove_reader(0)


def serve(config_path: Path, log: Log, *, until_eof: bool = False) -> None:
    """Runs a site daemon until it is stopped by a signal.

    Args:
        config_path: the site's configuration.
        log: where events go.
        until_eof: the end of standard input stops it too.

    Raises:
        ConfigError: the configuration cannot be used.
        JournalError: the journal cannot be used.
        LrmsError: the machine of the journal's jobs cannot be made.
        SocketInUseError: another process listens on the users' socket.
        OSError: an address cannot be listened on.
    """
    config = load_config(config_path)
    durability = {"power_loss": "power", "crash": "process"}[config.journal.survives]

    async def main() -> None:
        with Journal(
            Path(config.journal.path),
            config.name,
            durability=durability,  # type: ignore[arg-type]  # one of the two words
        ) as journal:
            daemon = Daemon(build_core(config, config_path, journal, log), config_path, log)
            async with signals(daemon.stop), lifeline(daemon, wanted=until_eof):
                await daemon.run()

    asyncio.run(main())
