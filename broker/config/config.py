"""The broker's configuration: docs/broker.md describes the file, docs/examples/broker.toml is one.

All errors are reported at once, with file, key, value, and what is allowed. Relative paths are
relative to the file.
"""

import math
import time
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from broker.config.connections import DashboardConfig, ListenConfig, MqttConfig, SiteConfig
from broker.executor.contents import Contents
from broker.executor.simulated import Chance
from broker.executor.site_monitor import Patience
from broker.io.documents import read_document
from broker.io.networks import NetworkTable
from broker.planner.goals import Goals
from broker.runtime.replanner import PlanningSettings
from broker.scheduler.settings import BrokerSettings, EstimatesFrom
from broker.util.errors import FileError
from grms.daemon.clock import ScaledClock
from grms.daemon.config_base import ClockConfig, Count, FilePath, LoggingConfig, Model, wrong
from grms.daemon.config_errors import mistakes_of
from lrms_sim.util.file_errors import Mistake

DASHBOARD_FILE: Final = "broker.dashboard.json"
"""In the journal's folder: the token that a reverse proxy presents to the dashboard."""

MARGIN_MIN: Final = 0.1
"""Seconds: below, bookings expire while a site answers, are made anew, and nothing runs."""

Seconds = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Bytes = Annotated[int, Field(ge=1, le=10**15)]
Share = Annotated[float, Field(ge=0, le=1)]


class CycleConfig(Model):
    """The planning cycle; seconds of the broker's clock.

    Attributes:
        every_s: between the starts of two plannings.
        slot_s: tasks that start within this time stay as they are.
        pause_s: least time between a plan and an urgent one.
        gather_s: least time between a plan and one that can wait a little, such as for failures.
        margin_s: by which a reservation is longer than its run: room for latency to the site and
            for predecessors that end late.
        extension: share of its time by which a run that takes longer gets more each time.
        extension_max: share of its time that it gets in all, or a program until its limit if that is later; then
            it is cut off. With 0 no run gets more time.
        early: a task that can begin does so where units are free; else each waits for its time in
            the plan.
        grouped_s: programs that are thought to run no longer are launched in groups where pilots are, if
            `early`; 0 books each by itself.
        estimates: how long programs are thought to take: "file", as their users say; or "learned", which also goes
            by runs of the same program.
        islands: populations with which the search works side by side; each has a thread, and they share the
            search's budget.
    """

    every_s: Seconds = 180.0
    slot_s: Seconds = 180.0
    pause_s: Seconds = 5.0
    gather_s: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 60.0
    margin_s: Annotated[float, Field(ge=MARGIN_MIN, le=1e9, allow_inf_nan=False)] = 2.0
    extension: Annotated[float, Field(ge=0, le=1000)] = 0.25
    extension_max: Annotated[float, Field(ge=0, le=1000)] = 1.0
    early: bool = True
    grouped_s: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 5.0
    estimates: EstimatesFrom = "file"
    islands: Annotated[int, Field(ge=1, le=256)] = 1


class SearchConfig(Model):
    """The search.

    Attributes:
        budget_s: most real seconds per planning; less than the planning slot. By default what is
            left of the slot, or of the cycle if that is shorter.
        evaluations: most schedules per search; unlimited by default.
        workers: threads; all processors by default.
        stability: share of a plan's worth lost by moving every task placed by the previous plan, so
            that tasks move only if the plan gains by it; 0 ignores the previous plan.
    """

    budget_s: Seconds | None = None
    evaluations: Count | None = None
    workers: Annotated[int, Field(ge=1, le=256)] | None = None
    population: Annotated[int, Field(ge=3, le=10_000)] = 60
    seed: Annotated[int, Field(ge=0, le=2**62)] = 1
    stability: Annotated[float, Field(ge=0, lt=1)] = 0.2


class BrokerClockConfig(ClockConfig):
    """Which time it is; no coordinator of a replay tells it."""

    kind: Literal["wall", "scaled"] = "wall"


class JournalConfig(Model):
    """The journal, created if missing."""

    path: FilePath


class SimulationConfig(Model):
    """The simulated launcher, for resources without a site.

    Attributes:
        shortest: least share of its time that a run takes.
        longest: largest share; tasks that take longer have their reservation extended.
        failing: share of runs that fail.
        refusing: share of bookings that are refused.
    """

    seed: Annotated[int, Field(ge=0, le=2**62)] = 0
    shortest: Share = 1.0
    longest: Annotated[float, Field(ge=1, le=1000)] = 1.0
    failing: Share = 0.0
    refusing: Share = 0.0


class LimitsConfig(Model):
    """Limits and timeouts.

    Attributes:
        open_tasks: of workflows that have not ended; further submissions are refused.
        ended_workflows: that can still be queried.
        runs: failed runs of a simulated task after which its workflow fails; a program runs once, unless its
            task asks for more.
        site_down_s: a site silent for so long gets nothing new; real seconds.
        site_lost_s: a site silent for so long counts as lost; real seconds.
        on_lost: what to do with runs at a lost site: `wait`, or `rerun`, which risks running
            them twice; programs are waited for, unless their tasks ask for more runs.
        hindered_s: a task whose batch system names a reason other than room for so long is planned elsewhere, if
            another resource can run it; seconds of the broker's clock.
        watchers: concurrent watch calls.
        drain_s: how long a stopping daemon waits for calls to finish.
    """

    open_tasks: Count = 100_000
    ended_workflows: Annotated[int, Field(ge=0, le=10**9)] = 1_000
    runs: Count = 3
    site_down_s: Seconds = 10.0
    site_lost_s: Seconds = 86_400.0
    on_lost: Literal["wait", "rerun"] = "wait"
    hindered_s: Seconds = 600.0
    message_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = 64 << 20
    watchers: Count = 200
    drain_s: Seconds = 10.0


class FilesConfig(Model):
    """Files that programs are given, and outputs that others are given.

    Attributes:
        folder: where they are; beside the journal by default.
        file_bytes: most of one file.
        total_bytes: most of all of them.
    """

    folder: FilePath | None = None
    file_bytes: Bytes = 10**9
    total_bytes: Bytes = 64 * 10**9


class BrokerConfig(Model):
    """The configuration of a broker.

    Attributes:
        files: where files of programs are kept.
        network: what files of workflows take between sites; they do not count if absent.
        sites: whose resources can be reserved.
        mqtt: where the plan is published; nowhere if absent.
        dashboard: none if absent.
    """

    listen: ListenConfig
    journal: JournalConfig
    clock: BrokerClockConfig = BrokerClockConfig()
    cycle: CycleConfig = CycleConfig()
    search: SearchConfig = SearchConfig()
    sites: Annotated[list[SiteConfig], Field(max_length=1000)] = []  # noqa: RUF012  # pydantic copies it
    simulation: SimulationConfig = SimulationConfig()
    files: FilesConfig = FilesConfig()
    network: NetworkTable | None = None
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
        self._check_islands()
        if self.limits.site_lost_s < self.limits.site_down_s:
            raise wrong(
                f"limits.site_lost_s is {self.limits.site_lost_s:g}; it must be at least "
                f"limits.site_down_s, {self.limits.site_down_s:g}"
            )
        return self

    def _check_islands(self) -> None:
        islands = self.cycle.islands
        for key, most in (
            ("workers", self.search.workers),
            ("evaluations", self.search.evaluations),
        ):
            if islands > 1 and most is not None and most < islands:
                raise wrong(
                    f"cycle.islands is {islands}; it must be at most search.{key}, which is {most}"
                )

    def make_clock(self) -> ScaledClock:
        """Returns the broker's clock."""
        return ScaledClock(self.clock.speed, self.clock.origin or 0.0)

    def settings(self) -> BrokerSettings:
        """Returns the settings of the pure state."""
        return BrokerSettings(
            cycle=self.cycle.every_s,
            slot=self.cycle.slot_s,
            pause=self.cycle.pause_s,
            gather=self.cycle.gather_s,
            margin=self.cycle.margin_s,
            extension=self.cycle.extension,
            extension_max=self.cycle.extension_max,
            early=self.cycle.early,
            grouped=self.cycle.grouped_s,
            estimates=self.cycle.estimates,
            runs_max=self.limits.runs,
            tasks_max=self.limits.open_tasks,
            ended_max=self.limits.ended_workflows,
            on_lost=self.limits.on_lost,
            hindered=self.limits.hindered_s,
            network=None if self.network is None else self.network.network(None),
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
            islands=self.cycle.islands,
        )

    def contents(self) -> Contents:
        """Returns the store of files."""
        files = self.files
        folder = Path(files.folder or f"{self.journal.path}.files")
        return Contents(folder, file_bytes=files.file_bytes, total_bytes=files.total_bytes)

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
    """Reads a broker's configuration; `FileError` if it cannot be read, is no TOML, or breaks the format."""
    document: dict[str, Any] = read_document(path)
    try:
        config = BrokerConfig.model_validate(document, context={"folder": path.parent})
    except ValidationError as error:
        raise FileError(str(path), mistakes_of(error, document, BrokerConfig)) from None
    if config.clock.origin is not None and config.clock.origin > time.time():
        text = f"is {config.clock.origin:g}; it must not lie ahead"
        raise FileError(str(path), [Mistake("clock.origin", text)])
    return config
