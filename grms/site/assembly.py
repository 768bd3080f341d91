"""The parts of a daemon that have no socket: what the journal says, the engine, the links.

Reading a long journal takes seconds, so `load` needs no event loop: it can run in a thread while
something else answers.
"""

import asyncio
import math
import secrets
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from grms.daemon.clock import Clock, ahead_of
from grms.daemon.clock_lag import CATCHING_UP
from grms.daemon.invariant_checks import checks_wanted
from grms.daemon.loop import timed
from grms.daemon.rates import Rate
from grms.daemon.shared_folders import SharedFolders
from grms.lrms.adapter import LrmsSite
from grms.lrms.base import Lrms
from grms.lrms.batch_systems import adapter_of
from grms.lrms.privileges import in_the_way
from grms.lrms.simulated.immediate import ReplayableLrms
from grms.policy.transfer import rounds_in_force
from grms.security.certificates import PkiError
from grms.security.handshakes import certificates_end, shown_by, why_refused
from grms.security.tls import (
    CertificateTimeError,
    CertificateTrust,
    TlsFiles,
    channel_credentials,
    channel_options,
    fingerprint,
)
from grms.site.config.circuit_breaker_table import circuit_breaker_of
from grms.site.config.load import (
    ConfigError,
    given_by_user,
    partners_of,
    place_held,
    policies_of,
    shadow_of,
    translation_of,
    weights_of,
)
from grms.site.config.schema import SiteConfig
from grms.site.model.invariants import check
from grms.site.model.reservations import Resource
from grms.site.model.settings import Limits, SiteSettings
from grms.site.model.usage import UsageRecord
from grms.site.monitoring.event_log import EventLog
from grms.site.monitoring.subscriber import OfferTimes, Subscriber
from grms.site.peers.accounts import GuestAccounts, guest_accounts
from grms.site.peers.peer import PeerClientSettings
from grms.site.peers.peers import PeerClients
from grms.site.peers.replies import Problems, channel_maker
from grms.site.peers.tunnels import Tunnels
from grms.site.runtime.event_loop import Engine
from grms.site.runtime.executor_driver import DriverLimits, LrmsDriver
from grms.site.runtime.executor_recovery import protects, running, waiting
from grms.site.runtime.journal import Journal
from grms.site.runtime.recovery import Progress, compact, read, without_collection
from grms.site.runtime.site_clock import check_clock, make_clock
from grms.site.runtime.usage_log import UsageLog, usage_folder
from grms.site.runtime.usage_writer import UsageWriter
from grms.site.scheduler.state import SiteState
from grms.util.names import Endpoint, parse_endpoint
from lrms_sim.machine.node_kinds import NodeKind

if TYPE_CHECKING:
    from grms.site.monitoring.dashboard import Dashboard
    from grms.site.monitoring.monitor import Monitor
    from grms.site.rest.server import RestServer

Log = structlog.typing.FilteringBoundLogger

PROBLEMS_LOGGED_PER_S = 1 / 30
"""Rate of logging why a partner cannot be reached, if that changes."""


USAGE_AT_ONCE = 20_000
"""Ended jobs of the journal that are compared with the log of usage at a time."""


def site_settings(config: SiteConfig, epoch: int, shown: str) -> SiteSettings:
    """Returns the settings of the pure state; `ConfigError` if a policy cannot be used."""
    limits, virtual = config.limits, config.clock.kind == "virtual"
    transfer, location = policies_of(config, shown)
    speed = config.clock.speed
    return SiteSettings(
        name=config.name,
        processors=config.processors,
        epoch=epoch,
        partners=partners_of(config),
        transfer=transfer,
        location=location,
        partners_asked=config.partners_asked,
        reoffer=rounds_in_force(config.reoffer, transfer.values()),
        confirm_time_max=place_held(config),
        circuit_breaker=circuit_breaker_of(config.circuit_breaker),
        resources=tuple(
            Resource(
                resource_id,
                r.labels,
                r.processors,
                r.speed,
                r.cost_per_hour,
                piloted=r.pilot is not None,
            )
            for r in config.resources
            for resource_id in r.ids
        ),
        runs_nothing=config.lrms.kind == "simulated",
        on_lost=config.suspect,
        decision_time_max=math.inf if virtual else limits.decision_timeout_s * speed,
        run_time_grace=limits.run_time_grace_s * speed,
        clock_grace=math.inf if virtual else limits.clock_grace_s * speed,
        elapsed_grace=speed,
        undecided_time_max=math.inf if virtual else limits.undecided_timeout_s * speed,
        delegated_time_max=math.inf if virtual else limits.delegated_timeout_s * speed,
        limits=Limits(
            jobs_open=limits.open_jobs,
            jobs_open_per_user=limits.open_jobs_per_user,
            jobs_kept=limits.ended_jobs,
            keys_kept=limits.forgotten_keys,
            keys_kept_s=limits.forgotten_keys_for * speed,
            guests_open=limits.guest_jobs,
            unused_acceptances=2**62 if virtual else limits.unused_acceptances_per_hour,
            payload_bytes=limits.message_bytes,
        ),
        translation=translation_of(config),
        weights=weights_of(config),
        given_user=given_by_user(config),
        requeue=config.requeue,
        preempt_guests=config.guests.preemptible,
        keeps_places=bool(getattr(config.lrms, "keep_places", False)),
        discipline=shadow_of(config),
        nodes=tuple(
            NodeKind(str(number), one.nodes, one.cores, one.memory_mib, one.gpus)
            for number, one in enumerate(config.nodes, 1)
        ),
    )


@dataclass(slots=True)
class Core:
    """The parts of a daemon that have no socket.

    Attributes:
        engine: with the state.
        tunnels: how partners are called where an address alone does not do, and how this site is.
        monitor: sees what happens, for those who watch; `None` if nobody does.
        dashboard: pages for operators; `None` if there are none.
        rest: users over HTTP; `None` if they are not served there.
        shared: what is common with partners, as the configuration has it now.
        usage: writes what jobs have used; `None` in a replay.
    """

    config: SiteConfig
    journal: Journal
    engine: Engine
    driver: LrmsDriver
    clock: Clock
    links: PeerClients
    tunnels: Tunnels
    monitor: "Monitor | None"
    dashboard: "Dashboard | None"
    rest: "RestServer | None"
    events: EventLog
    shared: SharedFolders
    usage: UsageWriter | None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the journal has made.

    Attributes:
        lrms: the batch system, which goes on where it was.
        latest: moment of the last record, seconds; minus infinity if there is none.
        usage: what jobs have used, with all that have ended.
    """

    state: SiteState
    lrms: Lrms
    clock: Clock
    latest: float
    usage: UsageLog


def load(
    config: SiteConfig,
    config_path: Path,
    journal: Journal,
    log: Log,
    progress: Progress | None = None,
) -> Loaded:
    """Returns what the journal makes; it may be called in any thread.

    Args:
        config: of the site.
        config_path: its file.
        journal: of the site; its records are read.
        log: of the daemon.
        progress: notes how far it is, and may stop it.

    Raises:
        ConfigError: a policy cannot be used.
        JournalError: the journal cannot be read.
        LrmsError: the batch system cannot go on with the journal's jobs.
        StoppedError: there is no need to go on.
    """
    settings = site_settings(config, journal.epoch, str(config_path))
    usage = UsageLog(usage_folder(Path(config.journal.path), config.name), config.name)
    with without_collection():
        lives = config.clock.kind != "virtual"
        ended = _Ended(usage, config.usage.keep_months)
        reading = read(
            journal,
            settings,
            progress or Progress(log, journal.count),
            ended.take if lives else None,
        )
        clock = make_clock(config.clock, reading.moment)
        if lives:
            # The journal of a replay has to keep its whole schedule, and is asked for it in place of a log.
            if count := ended.written(clock.now()):
                log.info("usage_written", jobs=count)
            compact(journal, reading, log)
        if ahead := ahead_of(clock):
            # Partners that have the true time are not held against a clock that has not.
            settings = replace(
                settings,
                clock_drift=1.0 / CATCHING_UP - 1.0,
                clock_grace=settings.clock_grace + ahead,
            )
            reading.memory.settings = settings
        site = LrmsSite(
            name=config.name,
            processors=config.processors,
            clock=clock,
            folder=Path(config.journal.path).parent,
            shared=SharedFolders(config.shared.roots),
            running=running(reading.memory),
            waiting=waiting(reading.memory),
            moment=reading.memory.lrms_moment,
            passes_held=config.clock.kind == "virtual"
            and (reading.memory.rounds.open or reading.memory.account is not None),
            protects=protects(reading.memory),
        )
        lrms = adapter_of(config.lrms.kind).made(config.lrms, site)
        state = SiteState(settings, memory=reading.memory)
    return Loaded(state, lrms, clock, reading.moment, usage)


class _Ended:
    # Jobs that have ended by the journal, which may have very many: they are compared with the log in parts.
    def __init__(self, log: UsageLog, keep_months: int) -> None:
        self._log = log
        self._keep_months = keep_months
        self._part: list[UsageRecord] = []
        self._count = 0

    def take(self, record: UsageRecord) -> None:
        self._part.append(record)
        if len(self._part) == USAGE_AT_ONCE:
            self._write(record.time, more=True)

    def written(self, now: float) -> int:
        self._write(now, more=False)
        return self._count

    def _write(self, now: float, *, more: bool) -> None:
        self._count += self._log.catch_up(self._part, now, self._keep_months, more=more)
        self._part.clear()


def check_certificate(config: SiteConfig, log: Log) -> None:
    """Checks the site's certificate before anything begins.

    An expired or future one is only logged: partners are refused until it is renewed, and users are
    served.

    Raises:
        ConfigError: it is another site's, not of the authority, or its key is another.
    """
    files = None if config.tls is None else TlsFiles.of(config.tls)
    if files is None:
        return
    try:
        files.check(site=config.name, now=time.time())
    except CertificateTimeError as error:
        log.error("certificate_not_valid", problem=str(error))  # noqa: TRY400  # no fault of ours
    except PkiError as error:
        raise ConfigError(f"tls: {error}") from error


def sudo_needs(config: SiteConfig, guests: GuestAccounts) -> list[str]:
    """Returns keys of a site's file by which programs run with other rights than the daemon's."""
    others = [] if config.lrms.by_deputies else guests.needs_sudo
    return [*others, *config.lrms.needs_sudo]


def check_privileges(config: SiteConfig, log: Log) -> None:
    """Logs a warning if the configuration needs sudo and this process is denied new privileges.

    It does not prevent the start: users' jobs need none of it.

    Raises:
        ConfigError: the map of accounts is unusable.
    """
    problem = in_the_way(sudo_needs(config, guest_accounts(config)))
    if problem:
        log.error("no_new_privileges", problem=problem)


def build_core(
    config: SiteConfig,
    config_path: Path,
    journal: Journal,
    log: Log,
    loaded: Loaded | None = None,
    *,
    behind: bool = False,
) -> Core:
    """Returns a daemon without sockets, with the state its journal makes.

    Args:
        config: of the site.
        config_path: its file.
        journal: of the site.
        log: of the daemon.
        loaded: what its records have made; they are read if it is omitted.
        behind: the clock may be behind the last record by any time.

    Raises:
        ConfigError: a policy or the certificate cannot be used.
        JournalError: the journal cannot be read, or is another clock's.
        LrmsError: the batch system cannot go on with the journal's jobs.
    """
    check_certificate(config, log)
    if loaded is None:
        loaded = load(config, config_path, journal, log)
    check_clock(config.clock, loaded.clock, journal, loaded.latest, log, accepted=behind)
    driver = _driver(loaded, config, log)

    metrics = None
    if config.publishes or config.metrics is not None:
        # Loading all of it takes as long as a start, and a replay starts many daemons.
        from grms.site.monitoring.monitor import observe, site_metrics  # noqa: PLC0415  # as above

        metrics = site_metrics(config)

    in_replay = config.clock.kind == "virtual" and isinstance(loaded.lrms, ReplayableLrms)
    engine = Engine(
        loaded.state,
        journal.append
        if metrics is None
        else timed(journal.append, metrics.journal_commit.observe),
        driver,
        loaded.clock,
        log=log,
        in_thread=config.journal.survives == "power_loss" and not in_replay,
        ahead=in_replay,
    )
    if checks_wanted():
        engine.on_event(lambda _event, _commands: check(engine.state.memory))
    tls = config.tls
    trust = None if tls is None else CertificateTrust(TlsFiles.of(tls), tls.refused)
    tunnels = Tunnels(config, trust, log)
    shared = SharedFolders(config.shared.roots, config.sharing)
    links = PeerClients(
        _link_settings(config, shared),
        engine,
        tunnels.places(config.partners),
        channel_maker(
            None if trust is None else partial(channel_credentials, trust.files),
            channel_options,
            config.limits.message_bytes,
        ),
        place=tunnels.place,
        problems=_problems(trust, config.limits.offer_timeout_s, tunnels, log),
        trust=trust,
    )
    engine.connect(links)
    subscriber = Subscriber(engine.state.memory)
    engine.on_event(subscriber.seen)
    events = EventLog(log, subscriber, engine, complete=config.logging.level == "debug")
    if metrics is not None or config.dashboard is not None:
        OfferTimes(subscriber)
    usage = None
    if config.clock.kind != "virtual":
        usage = UsageWriter(engine, loaded.usage, log)
    monitor = None
    if metrics is not None:
        monitor = observe(
            config, metrics, subscriber, engine, links=links, journal=journal, log=log
        )
    dashboard = None
    if config.dashboard is not None:
        dashboard = _dashboard(config, journal, subscriber, engine, links=links, log=log)
    return Core(
        *(
            config,
            journal,
            engine,
            driver,
            loaded.clock,
            links,
            tunnels,
            monitor,
            dashboard,
            None if config.rest is None else _rest(config, log),
            events,
        ),
        shared=shared,
        usage=usage,
    )


def _link_settings(config: SiteConfig, shared: SharedFolders) -> PeerClientSettings:
    return PeerClientSettings(
        site=config.name,
        processors=config.processors,
        offer_timeout_s=config.limits.offer_timeout_s,
        lost_after_s=config.suspect_after_s,
        virtual=config.clock.kind == "virtual",
        message_bytes=config.limits.message_bytes,
        shared=shared,
        instance=0 if config.clock.kind == "virtual" else 1 + secrets.randbelow(2**63),
    )


def _dashboard(
    config: SiteConfig,
    journal: Journal,
    subscriber: Subscriber,
    engine: Engine,
    *,
    links: PeerClients,
    log: Log,
) -> "Dashboard":
    try:
        from grms.site.monitoring.dashboard import Dashboard  # noqa: PLC0415  # it is an extra
    except ModuleNotFoundError as error:
        text = (
            f"dashboard: {error.name} is not installed; get it with: pip install 'hanse[dashboard]'"
        )
        raise ConfigError(text) from error
    return Dashboard(config, journal, subscriber, engine, links=links, log=log)


def _rest(config: SiteConfig, log: Log) -> "RestServer":
    try:
        from grms.site.rest.server import RestServer  # noqa: PLC0415  # it is an extra
    except ModuleNotFoundError as error:
        text = f"rest: {error.name} is not installed; get it with: pip install 'hanse[rest]'"
        raise ConfigError(text) from error
    return RestServer(config, log)


def _driver(loaded: Loaded, config: SiteConfig, log: Log) -> LrmsDriver:
    lrms = config.lrms
    limits = DriverLimits(
        load_age=lrms.load_age_s * config.clock.speed,
        command_timeout_s=lrms.command_timeout_s,
        commands=lrms.commands,
        program_wait=config.limits.program_timeout_s * config.clock.speed,
    )
    return LrmsDriver(loaded.lrms, loaded.clock, limits, log)


def _problems(
    trust: CertificateTrust | None, timeout_s: float, tunnels: Tunnels, log: Log
) -> Problems:
    tell = partial(_unreachable, log, Rate(PROBLEMS_LOGGED_PER_S))
    if trust is None:
        return Problems(None, tell)
    return Problems(
        partial(_why, trust.files, timeout_s, tunnels),
        tell,
        distrusts=partial(_distrusted, trust, timeout_s),
        ends=partial(_ends, trust.files, timeout_s),
    )


def _place(address: str) -> Endpoint | Path:
    path = address.removeprefix("unix:")
    return parse_endpoint(address) if path == address else Path(path)


async def _why(
    files: TlsFiles, timeout_s: float, tunnels: Tunnels, partner: str, address: str
) -> str:
    if problem := tunnels.problem(partner):
        return problem
    return await asyncio.to_thread(why_refused, _place(address), files, partner, timeout_s)


async def _distrusted(trust: CertificateTrust, timeout_s: float, partner: str, address: str) -> str:
    # gRPC tells nobody whose certificate it has verified, so who is there is looked at just before.
    if not trust.refused:
        return ""
    try:
        shown = await asyncio.to_thread(shown_by, _place(address), trust.files, partner, timeout_s)
    except PkiError as error:
        return str(error)
    except OSError as error:
        # Whom nobody has seen is not believed: gRPC might get through to him a moment later.
        return f"no handshake comes about: {error.strerror or error}"
    if fingerprint(shown) not in trust.refused:
        return ""
    return f"who answers there shows a certificate of {partner} that tls.refused names"


async def _ends(files: TlsFiles, timeout_s: float, partner: str, address: str) -> float | None:
    try:
        return await asyncio.to_thread(certificates_end, _place(address), files, partner, timeout_s)
    except (OSError, PkiError):
        return None  # that it cannot be reached is found out otherwise


def _unreachable(log: Log, rate: Rate, partner: str, problem: str) -> None:
    if rate.wait_s(partner) == 0.0:
        log.warning("partner_unreachable", partner=partner, problem=problem)
