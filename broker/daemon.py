"""The broker's daemon: assembles the parts, and ends them in order.

One task group holds everything. The first signal drains: new requests are refused, calls in
progress are answered, the journal is flushed, and the process ends; tasks continue at their sites
and are resumed at the next start. A second signal ends at once, which loses nothing that was
acknowledged either.
"""

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
from grpc import aio
from grpc_health.v1 import health_pb2_grpc

from broker.config.config import BrokerConfig, load_config
from broker.config.connections import SiteConfig
from broker.executor.base import Site
from broker.executor.dispatcher import Dispatcher
from broker.executor.jobs import JobSite
from broker.executor.remote import RemoteSite
from broker.executor.simulated import SimulatedSite
from broker.rpc.frontend import Frontend
from broker.rpc.services import PlanService, ResourceService, WorkflowService
from broker.rpc.task_files import TaskFiles
from broker.rpc.telemetry import PlanTelemetry
from broker.runtime.event_loop import Engine, SiteCommand
from broker.runtime.journal import Journal, JournalError
from broker.runtime.replanner import Replanner, Searching
from broker.scheduler.commands import (
    LaunchGroup,
    PublishPlan,
    PublishWorkflow,
    StartPlanning,
    StopPlanning,
)
from broker.scheduler.lifecycle import TaskState
from broker.scheduler.state import BrokerState
from broker.util.errors import BrokerError, FileError
from broker.v1 import plan_pb2_grpc, resource_pb2_grpc, workflow_pb2_grpc
from grms.daemon.clock import RealClock, ahead_of, going_on_from, too_far_ahead
from grms.daemon.invariant_checks import checks_wanted
from grms.daemon.loop import EngineFailedError
from grms.daemon.process import signals
from grms.daemon.rpc.health import HEALTH, HealthService, Serving
from grms.daemon.rpc.reflection import serve_reflection
from grms.daemon.rpc.requests import Unexpected
from grms.daemon.socket_folder import SocketInUseError, remove_stale_socket
from grms.security.certificates import PkiError, site_of_certificate
from grms.security.files import read_certificates
from grms.security.tls import TlsFiles, channel_credentials, channel_options

if TYPE_CHECKING:
    from broker.gantt.service import Dashboard

Log = structlog.typing.FilteringBoundLogger

SERVICES = (
    "broker.v1.WorkflowService",
    "broker.v1.PlanService",
    "broker.v1.ResourceService",
)

SWEEP_S: Final = 600.0
"""Between two looks for files that nobody needs, real seconds."""

CLOSING_S: Final = 10.0
"""Time for calls in progress over a channel that is given up, seconds."""


class DaemonError(BrokerError):
    """The daemon cannot serve; the text says why and what to do."""


class Daemon:
    """A broker that serves.

    Attributes:
        engine: with the state.

    Args:
        journal: of the broker; its records are read.
        path: of the configuration, which SIGHUP lets it read anew; `None` for one without a file.
        behind: the clock may be behind the journal's last record by any time.

    Raises:
        JournalError: the journal cannot be read, or its last record is far in the future.
        OutputError: the password for MQTT cannot be read.
        DaemonError: a dashboard is configured, and what it needs is not installed.
    """

    def __init__(
        self,
        config: BrokerConfig,
        journal: Journal,
        log: Log,
        *,
        path: Path | None = None,
        behind: bool = False,
    ) -> None:
        self._config = config
        self._path = path
        self._log = log
        self._stop = asyncio.Event()
        self._serving = Serving(SERVICES)
        try:
            state = BrokerState.recover(config.settings(), journal.records(), epoch=journal.epoch)
        except KeyError as error:
            raise JournalError(f"{journal.path}: its records contradict each other") from error
        self._clock = self._going_on(state.memory.latest, journal, behind=behind)
        self.engine = Engine(
            state, journal.append, self, self._clock, log=log, checked=checks_wanted()
        )
        self._frontend = Frontend(self.engine, config.limits.watchers)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._replanner = Replanner(
            config.planning(), self.engine.tell, log, on_progress=self._progress
        )
        self._simulated = SimulatedSite(self._clock, self._capacity, config.chance())
        self._contents = config.contents()
        self._dispatcher: Dispatcher | None = None
        self._remote: dict[str, _Connected] = {}
        self._telemetry: PlanTelemetry | None = None
        if config.mqtt is not None:
            instance = f"{time.time_ns():x}"
            self._telemetry = PlanTelemetry(config.mqtt.settings(), instance, log)
        self._dashboard = _dashboard(config, state, self._clock, log)
        self.ready = asyncio.Event()

    # --- what the engine has done --------------------------------------------------------------

    def site(self, command: SiteCommand) -> None:
        """Has something done at a site."""
        assert self._dispatcher is not None
        if isinstance(command, LaunchGroup):
            group = command.group
            self._log.info("launchgroup", group=group.name, programs=len(command.launches))
            self._dispatcher.do(command)
            return
        booking = command.booking
        self._log.info(
            type(command).__name__.lower(),
            booking=booking.booking,
            task="/".join(booking.placement.key),
        )
        self._dispatcher.do(command)

    def plan(self, command: StartPlanning | StopPlanning) -> None:
        """Begins or ends a search."""
        if isinstance(command, StartPlanning):
            self._log.info("planning", number=command.number, reason=command.reason)
            self._replanner.start(command)
        else:
            self._replanner.stop(command.number)

    def publish(self, command: PublishWorkflow | PublishPlan) -> None:
        """Tells those who watch."""
        memory = self.engine.state.memory
        if isinstance(command, PublishPlan):
            plan = memory.plan
            files = self.engine.state.cycle.files
            sending = {
                "planned_bytes": round(files.planned_bytes),
                "sent_bytes": round(files.sent_bytes),
            }
            self._log.info(
                "plan",
                number=command.number,
                problem=command.problem or None,
                fitness=plan.fitness if plan else None,
                placed=len(plan.placements) if plan else 0,
                unplanned=len(plan.unplanned) if plan else 0,
                **(sending if self._config.network is not None else {}),
            )
            if self._telemetry is not None:
                self._telemetry.publish(memory)
        else:
            live = memory.workflows.get(command.workflow_id)
            if live is not None and live.has_ended:
                self._log.info("workflow_ended", workflow=live.workflow_id, state=live.state.value)
        self._frontend.publish(command)

    def _capacity(self, resource: str) -> int:
        for supply in self.engine.state.memory.supplies.values():
            if not supply.site and (supply.site_resource or supply.name) == resource:
                return supply.resource.capacity
        return 0

    def _page(self) -> str:
        return "" if self._dashboard is None else self._dashboard.server.link()

    def _progress(self, searching: Searching) -> None:
        # Comes from the search's own thread; the loop may end before it.
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._frontend.progress, searching)

    def _going_on(self, latest: float, journal: Journal, *, behind: bool) -> RealClock:
        clock = going_on_from(self._config.make_clock(), latest)
        ahead = ahead_of(clock)
        problem = too_far_ahead(latest, ahead, clock.speed, "the broker's")
        if problem and not behind:
            raise JournalError(f"{journal.path}: {problem}")
        if ahead:
            self._log.warning("clock_behind_journal", ahead_s=round(ahead, 3), latest_s=latest)
        return clock

    # --- life ----------------------------------------------------------------------------------

    def reload(self) -> None:
        """Reloads the configuration; if it is unusable, that is logged and nothing changes.

        Addresses of sites and renewed keys and certificates take effect; other changes need a
        restart and are named.
        """
        if self._path is None:
            return
        try:
            config = load_config(self._path)
            moved = {
                site.name: way
                for site in config.sites
                if site.name in self._remote
                and (way := self._remote[site.name].other_way(site)) is not None
            }
        except (FileError, DaemonError) as error:
            self._log.error("not_reloaded", problem=str(error))  # said in full
            return
        for name, way in moved.items():
            self._remote[name].move(way)
        before, after = self._config.model_dump(), config.model_dump()
        restart_needed = sorted(
            key for key in before if key != "sites" and before[key] != after[key]
        )
        if [_lasting(site) for site in self._config.sites] != [_lasting(s) for s in config.sites]:
            restart_needed.append("sites")
        self._log.info("reloaded", sites=sorted(moved), restart_needed=restart_needed)

    def stop(self) -> None:
        """Begins to drain and end."""
        self._stop.set()

    async def run(self) -> None:
        """Serves until `stop`.

        Raises:
            JournalError: the disk has failed.
            DaemonError: the socket cannot be listened on, the keys for a site cannot be used, or no file can be kept.
        """
        if problem := self._contents.problem:
            raise DaemonError(f"files.folder: {problem}")
        self._loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            sites: dict[str, Site] = {"": self._simulated}
            for site in self._config.sites:
                if (resource := site.job_resource()) is not None:
                    socket = site.address.removeprefix("unix:")
                    jobs = JobSite(socket, resource)
                    sites[site.name] = await stack.enter_async_context(jobs)
                    continue
                connected = _Connected(site, self._has_work)
                stack.push_async_callback(connected.close)
                self._remote[site.name] = connected
                sites[site.name] = connected.remote
            self._dispatcher = Dispatcher(
                sites,
                self.engine.tell,
                self._clock,
                self._log,
                self._config.patience(),
                learning=[site.name for site in self._config.sites if site.learn],
                contents=self._contents,
            )
            server = self._server(stack)
            stack.push_async_callback(server.stop, None)
            try:
                await self._serve(server)
            except* (EngineFailedError, JournalError):
                pass  # every task that told the engine something afterwards has met it, too
        if self.engine.failure is not None:
            raise self.engine.failure
        self._log.info("stopped")

    async def _serve(self, server: aio.Server) -> None:
        assert self._dispatcher is not None
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._simulated.run(), name="simulated site"),
                group.create_task(self._dispatcher.run(), name="sites"),
                group.create_task(self._replanner.run(), name="planning"),
                group.create_task(self._sweep(), name="sweeper"),
            ]
            if self._telemetry is not None:
                self._telemetry.publish(self.engine.state.memory)
                tasks.append(group.create_task(self._telemetry.run(), name="telemetry"))
            if self._dashboard is not None:
                tasks.append(group.create_task(self._dashboard.run(), name="dashboard"))
            await asyncio.sleep(0)
            tasks.append(group.create_task(self.engine.run(), name="engine"))
            await server.start()
            os.chmod(self._config.listen.socket, stat.S_IRUSR | stat.S_IWUSR)  # noqa: PTH101  # as the rest of this module speaks of it
            self._serving.set(serves=True)
            self._log.info(
                "serving",
                socket=self._config.listen.socket,
                sites=[site.name for site in self._config.sites],
            )
            self.ready.set()
            await self._stop.wait()
            await self._drain(server)
            for task in reversed(tasks):
                task.cancel()

    async def _drain(self, server: aio.Server) -> None:
        self._frontend.close()
        self._serving.close()
        grace = self._config.limits.drain_s
        self._log.info("draining", seconds=grace)
        await server.stop(grace)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self.engine.settled()

    async def _sweep(self) -> None:
        # Deletes files that no workflow needs, from time to time.
        while True:
            await asyncio.sleep(SWEEP_S)
            try:
                count = await self._contents.sweep(self.engine.state.memory.contents())
            except OSError as error:
                self._log.warning("files_not_cleaned", problem=str(error))
            else:
                self._log.debug("files_cleaned", files=count)

    def _has_work(self) -> bool:
        # Whether a task waits for a place: then sites may ask for pilots.
        return any(task.state is TaskState.WAITING for task in self.engine.state.memory.tasks())

    def _server(self, stack: AsyncExitStack) -> aio.Server:
        assert self._dispatcher is not None
        path = Path(self._config.listen.socket)
        _make_room(path)
        size = self._config.limits.message_bytes
        server = aio.server(
            interceptors=[Unexpected(self._log)],
            options=[
                ("grpc.max_receive_message_length", size),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),
            ],
        )
        names = [site.name for site in self._config.sites]
        files = TaskFiles(self._frontend, self._contents, self._dispatcher.site)
        workflow_pb2_grpc.add_WorkflowServiceServicer_to_server(
            WorkflowService(self._frontend, files), server
        )
        plan_pb2_grpc.add_PlanServiceServicer_to_server(
            PlanService(self._frontend, lambda: self._replanner.searching, self._page), server
        )
        resource_pb2_grpc.add_ResourceServiceServicer_to_server(
            ResourceService(self._frontend, names), server
        )
        health_pb2_grpc.add_HealthServicer_to_server(HealthService(self._serving), server)
        serve_reflection((*SERVICES, HEALTH), server)
        mask = os.umask(0o177)
        try:
            server.add_insecure_port(f"unix:{path}")
        except RuntimeError as error:
            raise DaemonError(
                f"{path}: cannot be listened on; the folder must exist and be writable"
            ) from error
        finally:
            os.umask(mask)
        own = path.stat().st_ino
        stack.callback(lambda: _remove_own(path, own))
        return server


def _dashboard(
    config: BrokerConfig, state: BrokerState, clock: RealClock, log: Log
) -> "Dashboard | None":
    if config.dashboard is None:
        return None
    try:
        from broker.gantt.service import Dashboard  # noqa: PLC0415  # it is an extra
    except ModuleNotFoundError as error:
        text = (
            f"dashboard: {error.name} is not installed; get it with: pip install 'hanse[dashboard]'"
        )
        raise DaemonError(text) from error
    return Dashboard(config, state, clock, log)


def _make_room(path: Path) -> None:
    """Removes the socket that a broker has left behind.

    Raises:
        DaemonError: it is in use or no socket, or the folder cannot be written.
    """
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise DaemonError(f"{path}: cannot be listened on; the folder must exist and be writable")
    try:
        remove_stale_socket(path)
    except (SocketInUseError, OSError) as error:
        raise DaemonError(f"listen.socket: {error}") from error


def _remove_own(path: Path, inode: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_ino == inode:
            path.unlink()


def _lasting(site: SiteConfig) -> dict[str, Any]:
    # What of a site takes a restart.
    return site.model_dump(exclude={"address", "tls"} if site.jobs is None else set())


class _Connected:
    """A site, and the channel to it; `DaemonError` if its keys cannot be used."""

    def __init__(self, site: SiteConfig, has_work: Callable[[], bool]) -> None:
        self._way = _Way(_channel(site), _shown(site))
        self._closing: set[asyncio.Task[None]] = set()
        self.remote = RemoteSite(self._way.channel, has_work=has_work)

    def other_way(self, site: SiteConfig) -> "_Way | None":
        """Returns a new channel if a site's address or keys have changed, else `None`.

        Raises:
            DaemonError: these keys cannot be used.
        """
        shown = _shown(site)
        return None if shown == self._way.shown else _Way(_channel(site), shown)

    def move(self, way: "_Way") -> None:
        """Speaks over this way from now on; calls that are being answered get their answers."""
        task = asyncio.create_task(self._way.channel.close(CLOSING_S), name="closing")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        self._way = way
        self.remote.speak_over(way.channel)

    async def close(self) -> None:
        await asyncio.gather(self._way.channel.close(), *self._closing)


class _Way(NamedTuple):
    # A channel to a site, and what it was made of.
    channel: aio.Channel
    shown: tuple[Any, ...]


def _shown(site: SiteConfig) -> tuple[Any, ...]:
    if site.tls is None:
        return (site.address,)
    files = TlsFiles.of(site.tls)
    try:
        contents = [path.read_bytes() for path in (files.authority, files.certificate, files.key)]
    except OSError as error:
        raise DaemonError(f"site {site.name}: {error.filename}: {error.strerror}") from error
    return (site.address, *contents)


def _channel(site: SiteConfig) -> aio.Channel:
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", 64 << 20),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 2000),
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_timeout_ms", 5_000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]
    if site.tls is None:
        return aio.insecure_channel(site.address, options=options)
    files = TlsFiles.of(site.tls)
    try:
        own = site_of_certificate(read_certificates(files.certificate)[0])
        files.check(site=own, now=time.time())
        credentials = channel_credentials(files)
    except PkiError as error:
        raise DaemonError(f"site {site.name}: {error}") from error
    # Whoever answers at that address must have the certificate of that site, and no other.
    options += channel_options(site.name)
    return aio.secure_channel(site.address, credentials, options=options)


def serve(config_path: Path, log: Log, *, behind: bool = False) -> None:
    """Runs a broker until it is stopped by a signal.

    With `behind` the clock may lag the journal's last record by any time.

    Raises:
        FileError: the configuration cannot be used.
        JournalError: the journal cannot be used.
        DaemonError: the socket cannot be listened on, the keys for a site cannot be used, or no file can be kept.
    """
    config = load_config(config_path)

    async def main() -> None:
        with Journal(Path(config.journal.path)) as journal:
            if journal.cut_bytes:
                log.warning(
                    "journal_end_cut_off", journal=str(journal.path), bytes=journal.cut_bytes
                )
            daemon = Daemon(config, journal, log, path=config_path, behind=behind)
            async with signals(daemon.stop, daemon.reload):
                await daemon.run()

    asyncio.run(main())
