"""The broker's configuration: docs/broker.md describes the file, docs/examples/broker.toml is one.

Everything that is wrong is said at once: the file, the key, the value, and what is allowed.
Relative paths are relative to the file.
"""

import math
import re
import time
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, model_validator

from broker.core.settings import BrokerSettings
from broker.engine.clock import Clock
from broker.engine.replanner import PlanningSettings
from broker.errors import FileError, Mistake, OutputError
from broker.files.documents import read_document
from broker.files.mistakes import mistakes_of, must_be, wrong
from broker.planner.goals import Goals
from broker.sites.contact import Patience
from broker.sites.simulated import Chance
from grms.kit.access import loopback
from grms.kit.models import LoggingConfig, Model
from grms.telemetry.link import MqttSettings
from grms.tls import TlsFiles

DASHBOARD_FILE: Final = "broker.dashboard.json"
"""In the journal's folder: where the dashboard is, and its token."""

SOCKET_PATH_BYTES_MAX: Final = 100
"""Longest path of a Unix socket: the kernel takes 107 bytes."""

_SITE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def _absolute(value: str, info: ValidationInfo) -> str:
    if not value or "\0" in value:
        raise wrong(f"is {value!r}; it must be the path of a file")
    return str(Path((info.context or {}).get("folder", Path()), value).absolute())


def _socket(value: str, info: ValidationInfo) -> str:
    path = _absolute(value, info)
    if len(path.encode()) > SOCKET_PATH_BYTES_MAX:
        raise wrong(f"is {path!r}; the path of a socket has at most {SOCKET_PATH_BYTES_MAX} bytes")
    return path


def _address(value: str, info: ValidationInfo) -> str:
    if value.startswith("unix:"):
        return f"unix:{_absolute(value.removeprefix('unix:'), info)}"
    host, _, port = value.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise wrong(f'is {value!r}; it must be "unix:PATH" or "HOST:PORT"')
    return value


def _loopback(value: str) -> str:
    try:
        loopback(value)
    except ValueError as error:
        raise wrong(f"is {value!r}; {error}") from error
    return value


def _site_name(value: str) -> str:
    if _SITE_NAME.fullmatch(value) is None:
        what = "1 to 64 letters, digits, `_`, `.` and `-`, the first a letter or a digit"
        raise must_be(value, what)
    return value


FilePath = Annotated[str, AfterValidator(_absolute)]
Seconds = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=10**9)]


class CycleConfig(Model):
    """When is planned; seconds of the broker's clock.

    Attributes:
        every_s: between the beginnings of two plannings.
        slot_s: tasks that start within this time stay as they are.
        pause_s: least time between a plan and one that is wanted at once.
        gather_s: least time between a plan and one for what can wait a little, such as failures.
        margin_s: by which a reservation is longer than its run: room for what takes time on the
            way to a site and for predecessors that end late.
        extension: share of its time by which a run that takes longer is extended each time.
        extension_max: share of its time by which it is extended in all; then it is cut off.
    """

    every_s: Seconds = 180.0
    slot_s: Seconds = 180.0
    pause_s: Seconds = 5.0
    gather_s: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 60.0
    margin_s: Seconds = 2.0
    extension: Annotated[float, Field(ge=0, le=1000)] = 0.25
    extension_max: Annotated[float, Field(ge=0, le=1000)] = 1.0


class SearchConfig(Model):
    """How is planned.

    Attributes:
        budget_s: real seconds for one planning at most; shorter than the planning slot. What is
            left of the slot, or of the cycle where that is shorter, where left out.
        evaluations: schedules that one search builds at most; no bound where left out.
        workers: threads; all processors where left out.
        population: individuals.
        seed: of all chance.
        stability: share of a plan's worth that it costs to move every task that the plan before
            has somewhere, so that tasks move only where the plan gains by it; 0: as if there had
            been no plan.
    """

    budget_s: Seconds | None = None
    evaluations: Count | None = None
    workers: Annotated[int, Field(ge=1, le=256)] | None = None
    population: Annotated[int, Field(ge=3, le=10_000)] = 60
    seed: Annotated[int, Field(ge=0, le=2**62)] = 1
    stability: Annotated[float, Field(ge=0, lt=1)] = 0.2


class ClockConfig(Model):
    """Which time it is.

    Attributes:
        kind: `wall`, real time; `scaled`, faster.
        speed: seconds of a scaled clock for a real one.
        origin: when a scaled clock shows 0, seconds since 1970; the sites' must be the same.
    """

    kind: Literal["wall", "scaled"] = "wall"
    speed: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = 1.0
    origin: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _check_origin(self) -> Self:
        if (self.kind == "scaled") != (self.origin is not None):
            raise wrong('origin is needed with kind = "scaled", and goes with no other')
        if self.kind == "wall" and self.speed != 1.0:
            raise wrong('speed goes with kind = "scaled" alone')
        return self


class ListenConfig(Model):
    """Where the broker can be reached.

    Attributes:
        socket: Unix socket; whoever may open it commands the broker: its own user and root.
    """

    socket: Annotated[str, AfterValidator(_socket)]


class JournalConfig(Model):
    """The journal.

    Attributes:
        path: the SQLite file; it is made where it is missing.
    """

    path: FilePath


class TlsConfig(Model):
    """How the broker shows sites who it is, as `grms pki issue` writes it.

    Attributes:
        authority: certificate of the authority of the sites.
        certificate: of this broker.
        key: of this broker, readable by it alone.
    """

    authority: FilePath
    certificate: FilePath
    key: FilePath


class SiteConfig(Model):
    """A site whose resources can be reserved.

    Attributes:
        name: how resources name it; with TLS the name in its certificate.
        address: `unix:PATH` of its users' socket, or `HOST:PORT` with TLS.
        tls: with HOST:PORT.
        learn: ask the site what it has to reserve; else resources are what people register.
    """

    name: Annotated[str, AfterValidator(_site_name)]
    address: Annotated[str, AfterValidator(_address)]
    tls: TlsConfig | None = None
    learn: bool = True

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        if (self.tls is None) != self.address.startswith("unix:"):
            needs = "without [tls] it must be unix:PATH, the site's users' socket"
            if self.tls is not None:
                needs = "with [tls] it must be HOST:PORT, where the site listens for partners"
            raise wrong(f"address is {self.address!r}; {needs}")
        return self


class SimulationConfig(Model):
    """The simulated launcher, which resources without a site are at.

    Attributes:
        seed: of all chance.
        shortest: least share of its time that a run takes.
        longest: most share; what takes longer than its time has its reservation extended.
        failing: share of runs that fail.
        refusing: share of bookings that are refused.
    """

    seed: Annotated[int, Field(ge=0, le=2**62)] = 0
    shortest: Share = 1.0
    longest: Annotated[float, Field(ge=1, le=1000)] = 1.0
    failing: Share = 0.0
    refusing: Share = 0.0


class MqttConfig(Model):
    """Where the plan is published for those who watch.

    Attributes:
        address: HOST:PORT of the MQTT broker.
        username: where it wants one.
        password_file: file with the password alone.
        tls: the broker's keys; without it only loopback.
    """

    address: Annotated[str, AfterValidator(_address)]
    username: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    password_file: FilePath | None = None
    tls: TlsConfig | None = None

    @model_validator(mode="after")
    def _check_mqtt(self) -> Self:
        if self.address.startswith("unix:"):
            raise wrong(f"address is {self.address!r}; it must be HOST:PORT")
        try:
            self._made(None)
        except ValueError as error:
            raise wrong(str(error)) from None
        if self.password_file is not None and self.username is None:
            raise wrong("password_file goes with username")
        return self

    def _made(self, password: str | None) -> MqttSettings:
        host, _, port = self.address.rpartition(":")
        files = None
        if self.tls is not None:
            files = TlsFiles(*map(Path, (self.tls.authority, self.tls.certificate, self.tls.key)))
        return MqttSettings(host.strip("[]"), int(port), self.username, password, files)

    def settings(self) -> MqttSettings:
        """Returns how the MQTT broker is reached.

        Raises:
            OutputError: the file with the password cannot be read.
        """
        password = None
        if self.password_file is not None:
            try:
                password = Path(self.password_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise OutputError(
                    f"{self.password_file}: the password of mqtt cannot be read: {error}"
                ) from error
        return self._made(password)


class DashboardConfig(Model):
    """A page for those who run the broker.

    Attributes:
        listen: HOST:PORT; loopback, as it tells what users have planned.
        hosts: names by which browsers know a reverse proxy before it.
    """

    listen: Annotated[str, AfterValidator(_loopback)]
    hosts: list[Annotated[str, Field(min_length=1, max_length=253)]] = []  # noqa: RUF012  # pydantic copies it


class LimitsConfig(Model):
    """What is taken at most, and how long is waited.

    Attributes:
        open_tasks: of workflows that have not ended; beyond, submissions are refused.
        ended_workflows: that can still be asked for.
        runs: failed runs of one task until its workflow has failed.
        site_down_s: a site that is silent so long gets nothing new; real seconds.
        site_lost_s: a site that is silent so long counts as lost; real seconds.
        on_lost: what becomes of runs at a lost site: `wait`, or `rerun`, which risks that they
            run twice.
        message_bytes: largest message.
        watchers: calls that watch at one time.
        drain_s: how long a stopping daemon waits for calls to be answered.
    """

    open_tasks: Count = 100_000
    ended_workflows: Annotated[int, Field(ge=0, le=10**9)] = 1_000
    runs: Count = 3
    site_down_s: Seconds = 10.0
    site_lost_s: Seconds = 86_400.0
    on_lost: Literal["wait", "rerun"] = "wait"
    message_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = 64 << 20
    watchers: Count = 200
    drain_s: Seconds = 10.0


class BrokerConfig(Model):
    """A broker.

    Attributes:
        listen: where it can be reached.
        journal: where everything acknowledged is kept.
        clock: which time it is.
        cycle: when is planned.
        search: how is planned.
        sites: whose resources can be reserved.
        simulation: the simulated launcher.
        mqtt: where the plan is published; nowhere where left out.
        dashboard: a page for those who run it; none where left out.
        limits: what is taken at most, and how long is waited.
        logging: the log on standard error.
    """

    listen: ListenConfig
    journal: JournalConfig
    clock: ClockConfig = ClockConfig()
    cycle: CycleConfig = CycleConfig()
    search: SearchConfig = SearchConfig()
    sites: Annotated[list[SiteConfig], Field(max_length=1000)] = []  # noqa: RUF012  # pydantic copies it
    simulation: SimulationConfig = SimulationConfig()
    mqtt: MqttConfig | None = None
    dashboard: DashboardConfig | None = None
    limits: LimitsConfig = LimitsConfig()
    logging: LoggingConfig = LoggingConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [site.name for site in self.sites]
        for name in names:
            if names.count(name) > 1:
                raise wrong(f"sites: the name {name!r} comes twice")
        slot = self.cycle.slot_s / self.clock.speed
        if self.search.budget_s is not None and self.search.budget_s >= slot:
            raise wrong(
                f"search.budget_s is {self.search.budget_s:g}; it must be less than the planning "
                f"slot, which is {slot:g} real seconds"
            )
        if self.limits.site_lost_s < self.limits.site_down_s:
            raise wrong(
                f"limits.site_lost_s is {self.limits.site_lost_s:g}; it must be at least "
                f"limits.site_down_s, {self.limits.site_down_s:g}"
            )
        return self

    def make_clock(self) -> Clock:
        """Returns the broker's clock."""
        return Clock(self.clock.speed, self.clock.origin or 0.0)

    def settings(self) -> BrokerSettings:
        """Returns what the pure state is told."""
        return BrokerSettings(
            cycle=self.cycle.every_s,
            slot=self.cycle.slot_s,
            pause=self.cycle.pause_s,
            gather=self.cycle.gather_s,
            margin=self.cycle.margin_s,
            extension=self.cycle.extension,
            extension_max=self.cycle.extension_max,
            runs_max=self.limits.runs,
            tasks_max=self.limits.open_tasks,
            ended_max=self.limits.ended_workflows,
            on_lost=self.limits.on_lost,
        )

    def planning(self) -> PlanningSettings:
        """Returns how the search works."""
        search = self.search
        return PlanningSettings(
            math.inf if search.budget_s is None else search.budget_s,
            math.inf if search.evaluations is None else search.evaluations,
            search.workers,
            search.population,
            search.seed,
            goals=Goals(stability=search.stability),
            period=min(self.cycle.slot_s, self.cycle.every_s) / self.clock.speed,
        )

    def patience(self) -> Patience:
        """Returns how long a silent site is waited for."""
        return Patience(self.limits.site_down_s, self.limits.site_lost_s)

    def chance(self) -> Chance:
        """Returns how the simulated launcher behaves."""
        simulation = self.simulation
        return Chance(
            simulation.seed,
            simulation.shortest,
            simulation.failing,
            simulation.refusing,
            simulation.longest,
        )


def load_config(path: Path) -> BrokerConfig:
    """Reads a broker's configuration.

    Args:
        path: the TOML file.

    Raises:
        FileError: it cannot be read, is no TOML, or breaks the format.
    """
    document: dict[str, Any] = read_document(path)
    try:
        config = BrokerConfig.model_validate(document, context={"folder": path.parent})
    except ValidationError as error:
        raise FileError(str(path), mistakes_of(error, document, BrokerConfig)) from None
    if config.clock.origin is not None and config.clock.origin > time.time():
        text = f"is {config.clock.origin:g}; it must not lie ahead"
        raise FileError(str(path), [Mistake("clock.origin", text)])
    return config
