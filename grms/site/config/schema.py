"""A site's configuration file as validated models.

The format is described in docs/operating.md. Relative paths in a file are relative to the file; in
the models they are absolute, so that a daemon may be started anywhere.
"""

import os
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    SerializeAsAny,
    field_validator,
    model_validator,
)

from grms.daemon.config_base import (
    ClockConfig,
    Count,
    FilePath,
    LoggingConfig,
    Model,
    Rate,
    Seconds,
    wrong,
)
from grms.lrms.adapter import LrmsSettings
from grms.lrms.batch_systems import settings_of
from grms.lrms.simulated.simulated import SimulatedSettings
from grms.policy.constraints import (
    ConstraintsField,
    ExchangeConstraints,
    ReofferField,
    constraints_said,
)
from grms.policy.registry import LOCATION_WORDS
from grms.site.config.circuit_breaker_table import CircuitBreakerConfig
from grms.site.config.connections import (
    Address,
    DashboardConfig,
    GuestsConfig,
    Hours,
    ListenConfig,
    MetricsConfig,
    MqttConfig,
    Name,
    OutgoingConfig,
    PartnerConfig,
    SiteTlsConfig,
)
from grms.site.config.rest_table import RestConfig
from grms.site.model.settings import Requeue
from grms.util.names import parse_endpoint
from lrms_sim.machine.node_kinds import KINDS_MAX
from lrms_sim.scheduling.user_defined import names_user_defined
from lrms_sim.util.messages import duration_of
from lrms_sim.util.plugins import LOCATION_GROUP
from lrms_sim.workload.requests import MEMORY_MAX

PARTNERS_MAX: Final = 1000
RESOURCES_MAX: Final = 10_000
PILOTS_MAX: Final = 1000
PILOT_TIME_MAX_S: Final = 365 * 86400.0
WATCHER: Final = "watcher"
"""The account of the daemon's own MQTT broker that may read everything; no site has this name."""

DASHBOARD_FILE_END: Final = ".dashboard.json"
"""File in the journal's folder, after the site's name: the token a reverse proxy shows the
dashboard."""

PSEUDONYMS_END: Final = ".pseudonyms.key"
"""Likewise: the key from which own users' pseudonyms are made."""


def _root(value: str) -> str:
    if value != os.path.normpath(value) or not value.startswith("/") or value in {"/", "//"}:
        raise wrong(f"{value!r} must be the path of a folder, from / on, without . and ..")
    return value


class JournalConfig(Model):
    """The journal.

    Attributes:
        path: the file; it is made where it is missing.
        survives: `power_loss`: what is acknowledged is on the disk; `crash`: it is with the
            operating system, which survives the daemon but not the machine. For replays.
    """

    path: FilePath
    survives: Literal["power_loss", "crash"] = "power_loss"


def _duration(value: object) -> object:
    if not isinstance(value, str):
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    seconds = duration_of(value)
    if seconds is None:
        raise wrong(f"{value!r} is no time; one is a number of seconds, or as '10min' or '8h'")
    return seconds


Duration = Annotated[
    float, BeforeValidator(_duration), Field(gt=0, le=PILOT_TIME_MAX_S, allow_inf_nan=False)
]


class LimitsConfig(Model):
    """What is taken at most, and how long is waited.

    Attributes:
        open_jobs: own users' jobs that have not ended; beyond, submissions are refused.
        open_jobs_per_user: the same for one user.
        ended_jobs: own users' jobs that have ended and can still be asked for.
        forgotten_keys: idempotency keys of jobs that ended before those; a job that is handed in again with one is
            refused.
        forgotten_keys_for: how long such a key is kept at least, while there are no more of them.
        guest_jobs: a partner's jobs that have not ended here; beyond, its offers are declined.
        unused_acceptances_per_hour: so many accepted offers of a partner may be taken back within
            an hour before their jobs begin, and one more for each of its jobs that has begun within
            a day; beyond, its offers are declined.
        submissions_per_s: of one user, on average; ten seconds' worth may come at once.
        offers_per_s: of one partner, the same.
        output_reads_per_s: pieces of what its running jobs print that a partner may ask for, on average, all its jobs
            together; ten seconds' worth may come at once. A piece has at most 64 KiB.
        message_bytes: largest message.
        calls: calls being answered at a time; half of them are one caller's at most.
        watchers: calls that watch at a time.
        connections: connections of users at a time.
        connections_per_user: of these, for one user who is no operator.
        connections_reserved: of these, for operators alone.
        partner_connections: connections at the port of partners at a time.
        partner_connections_per_site: of these, for one site.
        request_timeout_s: a request that a partner or a user has begun is to be whole by then, and
            so is the handshake of a partner's connection; and an answer is to be read.
        program_timeout_s: what an accepted job runs may come so long after the acceptance; then it
            goes back to its home site.
        offer_timeout_s: a partner that has not answered an offer by then is asked what became of
            it.
        decision_timeout_s: time in which partners are asked about one job; then it stays home
            unless an offer's outcome is unknown.
        run_time_grace_s: a partner may report a run time that exceeds the request by so much.
        clock_grace_s: what a partner reports of moments may be off by so much, as clocks differ.
        undecided_timeout_s: a job whose offer has no outcome by then is shown as stuck.
        delegated_timeout_s: a delegated job that has not ended so long after it could have been
            over, had it started at once, is shown as stuck.
        drain_s: how long a stopping daemon waits for calls to be answered.
    """

    open_jobs: Count = 100_000
    open_jobs_per_user: Count = 20_000
    ended_jobs: Count = 50_000
    forgotten_keys: Count = 1_000_000
    forgotten_keys_for: Duration = 2_592_000.0
    guest_jobs: Count = 20_000
    unused_acceptances_per_hour: Count = 20
    submissions_per_s: Rate = 1000.0
    offers_per_s: Rate = 200.0
    output_reads_per_s: Rate = 10.0
    message_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = 1 << 20
    calls: Count = 2000
    watchers: Count = 500
    connections: Count = 500
    connections_per_user: Count = 100
    connections_reserved: Count = 20
    partner_connections: Count = 500
    partner_connections_per_site: Count = 32
    request_timeout_s: Seconds = 20.0
    offer_timeout_s: Seconds = 2.0
    program_timeout_s: Seconds = 600.0
    decision_timeout_s: Seconds = 5.0
    run_time_grace_s: Seconds = 60.0
    clock_grace_s: Seconds = 300.0
    undecided_timeout_s: Seconds = 300.0
    delegated_timeout_s: Seconds = 604_800.0
    drain_s: Seconds = 10.0


class ResultsConfig(Model):
    """What jobs leave, of a site above a real batch system.

    Attributes:
        folder: of what has come home from partners; left out: beside the
            journal, with the site's name and `.results`.
        keep_days: so long after the end of a job its files are there, at home and here for partners.
        file_bytes: a file that is larger is not handed out, and none is taken.
        job_bytes: the same for all files of a job together.
        user_bytes: so much of what has come home is kept for one user; further files wait at the partner.
        partner_bytes: so much one partner's jobs may have here, inputs and folders; while it is more, its jobs with
            a script go back to it.
        tell_output: partners may follow what their jobs print while these run.
    """

    folder: FilePath | None = None
    keep_days: Annotated[float, Field(gt=0, le=3650, allow_inf_nan=False)] = 14.0
    file_bytes: Annotated[int, Field(ge=1, le=2**40)] = 64 << 20
    job_bytes: Annotated[int, Field(ge=1, le=2**40)] = 256 << 20
    user_bytes: Annotated[int, Field(ge=1, le=2**60)] = 64 << 30
    partner_bytes: Annotated[int, Field(ge=1, le=2**60)] = 256 << 30
    tell_output: bool = True


class WeightsConfig(Model):
    """What counts how much, each for the time for which a job has it.

    Attributes:
        processors: one processor.
        memory_gib: one GiB of memory, as requested.
        gpus: one GPU.
    """

    processors: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 1.0
    memory_gib: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    gpus: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0

    @model_validator(mode="after")
    def _check_sum(self) -> Self:
        if not (self.processors or self.memory_gib or self.gpus):
            raise wrong("all weights are 0; one of them must be more")
        return self


class UsageConfig(Model):
    """What jobs have used.

    Attributes:
        weights: by which costs and limits are summed up.
        given_hours_per_user: what jobs of one own user may use at all partners in a month, in hours of a processor; left
            out: there is no limit.
        keep_months: so many months, besides the present one, records of it are kept.
    """

    weights: WeightsConfig = WeightsConfig()
    given_hours_per_user: Hours | None = None
    keep_months: Annotated[int, Field(ge=1, le=1200)] = 24


class SharedConfig(Model):
    """A file system that this site has in common with partners.

    Attributes:
        roots: folders in which jobs may use files where they lie.
    """

    roots: list[Annotated[str, AfterValidator(_root)]] = Field(default_factory=list)


class PilotConfig(Model):
    """The jobs whose processors a resource has.

    Attributes:
        wall_time: of each job, as `"8h"`, or seconds.
        partition: that runs it; empty for the batch system's choice.
        account: that pays for it, where the batch system wants to know; empty for the default.
        idle_limit: it ends after so long without work, and another is asked for when a broker has
            work; left out: there is always one, or one on its way.
        count: so many resources are there that are alike, each with pilots of its own; their names
            are numbered.
    """

    wall_time: Duration
    partition: str = ""
    account: str = ""
    idle_limit: Duration | None = None
    count: Annotated[int, Field(ge=1, le=PILOTS_MAX)] = 1


class PilotsConfig(Model):
    """What all pilots of a site have in common.

    Attributes:
        listen: host and port where they connect; left out: the name of this host, and any port.
        python: what runs the agent on a node: Python 3.8 or later.
        spare_s: a pilot ends by itself so long before its wall time.
        grace_s: between SIGTERM and SIGKILL for a program whose time is over.
    """

    listen: Address | None = None
    python: str = "/usr/bin/env python3"
    spare_s: Seconds = 60.0
    grace_s: Seconds = 5.0

    @field_validator("python")
    @classmethod
    def _check_python(cls, value: str) -> str:
        if not value.startswith("/") or not value.isprintable():
            text = (
                f"is {value!r}; it must be the path of a program, with one word at most behind it"
            )
            raise wrong(text)
        return value


class ResourceConfig(Model):
    """A resource that can be reserved.

    Attributes:
        resource_id: unique at the site.
        labels: what it is and has.
        processors: how many reservations of one processor it holds side by side.
        speed: run time on the reference resource over run time on this one.
        cost_per_hour: for one processor, in the federation's currency.
        pilot: the jobs that run programs there; left out: nothing is run, time is kept only.
    """

    resource_id: Annotated[str, Field(min_length=1, max_length=64)]
    labels: dict[str, str] = Field(default_factory=dict)
    processors: Count = 1
    speed: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = 1.0
    cost_per_hour: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 0.0
    pilot: PilotConfig | None = None

    @property
    def ids(self) -> list[str]:
        """The names of the resources that it stands for."""
        count = 1 if self.pilot is None else self.pilot.count
        if count == 1:
            return [self.resource_id]
        return [f"{self.resource_id}-{number}" for number in range(1, count + 1)]


class NodesConfig(Model):
    """Nodes of the machine that are alike, as partners are told of them.

    Attributes:
        nodes: how many there are, whether they work now or not.
        cores: of each.
        memory_mib: that jobs may have on each; 0 where it is not counted.
        gpus: of each.
    """

    nodes: Count
    cores: Annotated[int, Field(ge=1, le=2**15)]
    memory_mib: Annotated[int, Field(ge=0, le=MEMORY_MAX)] = 0
    gpus: Annotated[int, Field(ge=0, le=2**15)] = 0


class SiteConfig(Model):
    """A site.

    Attributes:
        name: unique in the federation.
        processors: size of its machine.
        nodes: what partners are told of its nodes, so that they do not offer what can never run here; left out:
            nothing, and such offers are declined.
        operators: users, by name, who may use the operators' service; the daemon's own user and
            root always may.
        brokers: names, as certificates have them, that may reserve resources over the network.
        location: in which order partners are asked: a list of their names; or `awrt` or
            `awrt-open`, in ascending order of the AWRT of the jobs given to them, where jobs that
            are still open count with the time they have waited; or `awrt-completed`, where they do
            not.
        partners_asked: how many of them a decision asks about one job at most; all if omitted.
        rails: what the exchange keeps to under any policy: a word, or a table with other numbers.
        reoffer: when own jobs that wait are offered again: a period or a table; never if omitted.
        circuit_breaker: when exchange stands still, as it has cost own users too much; never if omitted.
        requeue: which own jobs partners may end for other jobs, so that they are run again from their start: `never`;
            `ask`, those whose user has said so; or `allow`, all but those whose user has said that they must not.
        suspect: what becomes of a job at a lost partner: `wait`, or `resubmit`, which may run it
            twice.
        suspect_after_s: a partner with open jobs that is silent so long counts as lost.
        lrms: the local batch system.
        clock: which time it is.
        listen: where the daemon can be reached.
        outgoing: how partners are connected to.
        tls: mutual TLS; without it partners are spoken to on loopback alone.
        journal: where everything acknowledged is kept.
        partners: sites one exchanges jobs with, in the order that breaks ties.
        resources: what can be reserved: simulated ones where the batch system is simulated, pilots
            above a real one.
        pilots: what all pilots have in common.
        limits: what is taken at most, and how long is waited.
        mqtt: where telemetry is published; nowhere if omitted.
        metrics: figures for operators; none if omitted.
        dashboard: pages for operators; none if omitted.
        rest: users over HTTP; nowhere if omitted.
        results: what jobs leave.
        guests: partners' jobs.
        usage: what jobs have used.
        shared: a file system that is common with partners.
        logging: the log on standard error.
    """

    name: Name
    processors: Annotated[int, Field(ge=1, le=2**31 - 1)]
    nodes: Annotated[list[NodesConfig], Field(max_length=KINDS_MAX)] = Field(default_factory=list)
    operators: list[str] = Field(default_factory=list)
    brokers: list[Name] = Field(default_factory=list)
    location: str | list[str] = "awrt"
    partners_asked: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    rails: ConstraintsField | None = None
    reoffer: ReofferField | None = None
    circuit_breaker: CircuitBreakerConfig | None = None
    requeue: Requeue = "never"
    suspect: Literal["wait", "resubmit"] = "wait"
    suspect_after_s: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] = 86400.0
    lrms: Annotated[SerializeAsAny[LrmsSettings], PlainValidator(settings_of)] = SimulatedSettings()
    clock: ClockConfig = ClockConfig()
    listen: ListenConfig
    outgoing: OutgoingConfig = OutgoingConfig()
    tls: SiteTlsConfig | None = None
    journal: JournalConfig
    partners: Annotated[list[PartnerConfig], Field(max_length=PARTNERS_MAX)] = Field(
        default_factory=list
    )
    resources: Annotated[list[ResourceConfig], Field(max_length=RESOURCES_MAX)] = Field(
        default_factory=list
    )
    pilots: PilotsConfig = PilotsConfig()
    limits: LimitsConfig = LimitsConfig()
    mqtt: MqttConfig | None = None
    metrics: MetricsConfig | None = None
    dashboard: DashboardConfig | None = None
    rest: RestConfig | None = None
    results: ResultsConfig = ResultsConfig()
    guests: GuestsConfig = GuestsConfig()
    usage: UsageConfig = UsageConfig()
    shared: SharedConfig = SharedConfig()
    logging: LoggingConfig = LoggingConfig()

    @field_validator("location", mode="before")
    @classmethod
    def _check_location_word(cls, value: object) -> object:
        if isinstance(value, list) and all(isinstance(name, str) for name in value):
            return value
        if value not in LOCATION_WORDS and not (
            isinstance(value, str) and names_user_defined(LOCATION_GROUP, value)
        ):
            words = ", ".join(map(repr, LOCATION_WORDS))
            raise wrong(f"is {value!r}; it must be {words} or a list of partners' names")
        return value

    @model_validator(mode="after")
    def _check_partners(self) -> Self:
        names = [partner.name for partner in self.partners]
        for position, name in enumerate(names):
            if name == self.name:
                raise wrong(f"partners[{position}].name is the site itself, {name!r}")
            if name in names[:position]:
                raise wrong(f"partners[{position}].name {name!r} comes twice")
            if self.partners[position].shared and not self.shared.roots:
                raise wrong(
                    f"partners[{position}].shared needs shared.roots, the folders in common"
                )
        order = self.location if isinstance(self.location, list) else []
        for position, name in enumerate(order):
            if name not in names:
                known = ", ".join(names) or "none"
                raise wrong(f"location[{position}] {name!r} is no partner; there are: {known}")
            if name in order[:position]:
                raise wrong(f"location[{position}] {name!r} comes twice")
        return self

    @model_validator(mode="after")
    def _check_resources(self) -> Self:
        ids: set[str] = set()
        for position, resource in enumerate(self.resources):
            for resource_id in resource.ids:
                if resource_id in ids:
                    text = f"resources[{position}].resource_id {resource_id!r} comes twice"
                    raise wrong(text)
                ids.add(resource_id)
        if len(ids) > RESOURCES_MAX:
            raise wrong(f"resources are {len(ids)} with all pilots; at most {RESOURCES_MAX}")
        return self

    @model_validator(mode="after")
    def _check_pilots(self) -> Self:
        for position, resource in enumerate(self.resources):
            pilot, where = resource.pilot, f"resources[{position}].pilot"
            if pilot is None:
                if self.lrms.kind != "simulated":
                    text = (
                        f"resources[{position}] has no pilot: what is launched there would not be run, as "
                        f"the batch system is real ({self.lrms.kind}); give it a table [resources.pilot]"
                    )
                    raise wrong(text)
                continue
            if self.lrms.kind == "simulated":
                raise wrong(f"{where} needs a real batch system; lrms.kind is 'simulated'")
            if pilot.wall_time < 2 * self.pilots.spare_s:
                text = f"{where}.wall_time is {pilot.wall_time:g} s; pilots.spare_s takes {self.pilots.spare_s:g} s of it"
                raise wrong(f"{text}: at most half of it")
            if resource.processors > self.processors:
                text = f"resources[{position}].processors is {resource.processors}; the site has {self.processors}"
                raise wrong(text)
        if self.pilots.listen is not None and parse_endpoint(self.pilots.listen).is_unspecified:
            raise wrong("pilots.listen must be an address by which nodes reach this host")
        return self

    @model_validator(mode="after")
    def _check_real_time(self) -> Self:
        if self.lrms.kind != "simulated" and self.clock.kind != "wall":
            text = f"clock.kind is {self.clock.kind!r}; a real batch system ({self.lrms.kind}) needs 'wall'"
            raise wrong(text)
        if self.circuit_breaker is not None and self.clock.kind == "virtual":
            raise wrong("circuit_breaker is for sites that live; a virtual clock stands still")
        return self

    @model_validator(mode="after")
    def _check_accounts(self) -> Self:
        named = [f"partners.{name}.account" for name in self.accounts]
        named += ["guests.users"] if self.guests.users is not None else []
        if named and self.lrms.kind != "slurm":
            raise wrong(
                f"{named[0]} needs lrms.kind = 'slurm', which alone runs jobs as other accounts"
            )
        return self

    @model_validator(mode="after")
    def _check_network(self) -> Self:
        if self.tls is None:
            addresses = {
                "listen.partners": self.listen.partners,
                **{f"partners.{p.name}.address": p.address for p in self.partners},
            }
            for key, address in addresses.items():
                if address is not None and not parse_endpoint(address).is_loopback:
                    text = f"{key} is {address}; without [tls] only loopback addresses are allowed"
                    raise wrong(text)
        if self.metrics is not None and not parse_endpoint(self.metrics.listen).is_loopback:
            text = f"metrics.listen is {self.metrics.listen}; it tells the site's load, so only loopback is allowed"
            raise wrong(text)
        if self.dashboard is not None:
            if not parse_endpoint(self.dashboard.listen).is_loopback:
                text = f"dashboard.listen is {self.dashboard.listen}; it tells the site's load, so only loopback is allowed; put a reverse proxy before it"
                raise wrong(text)
            if self.clock.kind == "virtual":
                raise wrong("dashboard is for sites that live; a virtual clock stands still")
        return self

    @model_validator(mode="after")
    def _check_rest(self) -> Self:
        if self.rest is None:
            return self
        if self.rest.certificate is None and not parse_endpoint(self.rest.listen).is_loopback:
            text = f"rest.listen is {self.rest.listen}; without rest.certificate only loopback is allowed, as tokens would be sent in clear"
            raise wrong(f"{text}; put a reverse proxy with TLS before it")
        if self.clock.kind == "virtual":
            raise wrong("rest is for sites that live; a virtual clock stands still")
        if not self.lrms.as_users:
            text = f"rest needs a batch system that runs jobs as their users; with lrms.kind = {self.lrms.kind!r}"
            raise wrong(f"{text} and this configuration all would run as the daemon's account")
        return self

    @model_validator(mode="after")
    def _check_ways(self) -> Self:
        mqtt = self.mqtt or MqttConfig()
        for partner in self.partners:
            problem = self._problem_of_way(partner, found=mqtt.enabled and mqtt.discovery)
            if problem:
                raise wrong(f"partners.{partner.name}.{problem}")
        relay = self.outgoing.relay
        if relay is not None and relay.name in {self.name, *(one.name for one in self.partners)}:
            text = (
                f"outgoing.relay.name {relay.name!r} is a site; a relay has a name and certificate"
            )
            raise wrong(f"{text} of its own")
        used = [f"outgoing.{key}" for key in ("proxy", "relay") if getattr(self.outgoing, key)]
        for partner in self.partners:
            used += [f"partners.{partner.name}.way"] if partner.way != "address" else []
            used += [f"partners.{partner.name}.keep_open"] if partner.keep_open else []
        if used and self.tls is None:
            raise wrong(f"{used[0]} needs [tls]: who is at the other end is known by certificates")
        if used and self.clock.kind == "virtual":
            text = f"{used[0]} is for sites that live; in a replay they call each other's addresses"
            raise wrong(text)
        return self

    def _problem_of_way(self, partner: PartnerConfig, *, found: bool) -> str:
        # Of the way in which a partner is called: a key, and what is wrong with it; `found` says whether its address is
        # looked for.
        match partner.way:
            case "address" if partner.address is None and not found:
                more = "" if self.tls is None else "; is its way 'callback' or 'relay'?"
                return f"address is missing, and mqtt.discovery is off{more}"
            case "callback" if self.listen.partners is None:
                return (
                    "way is 'callback', and this site has no listen.partners: neither could call the other; where both only "
                    "call out they meet at a relay: way = 'relay', with [outgoing.relay]"
                )
            case "relay" if self.outgoing.relay is None:
                return "way is 'relay', and [outgoing.relay] is missing"
            case "relay" if partner.address is not None:
                return "way is 'relay', and nobody calls its address; leave it out"
            case "callback" | "relay" if partner.keep_open:
                return "keep_open goes with way = 'address' alone"
        return ""

    @model_validator(mode="after")
    def _check_mqtt(self) -> Self:
        mqtt = self.mqtt or MqttConfig()
        if mqtt.address is None:
            given = mqtt.model_fields_set - {"enabled", "embedded", "outbox"}
            if given:
                raise wrong(f"mqtt.address is missing, and mqtt.{min(given)} goes with it")
            if self.publishes and self.name == WATCHER:
                raise wrong(f"a site called {WATCHER!r} needs mqtt.address, a broker of its own")
            return self
        if mqtt.embedded:
            raise wrong("mqtt.address and mqtt.embedded name two brokers; leave one of them out")
        if mqtt.tls and self.tls is None:
            raise wrong("mqtt.tls uses the keys of [tls], which is missing")
        if not mqtt.tls and not parse_endpoint(mqtt.address).is_loopback:
            text = f"mqtt.address is {mqtt.address}; without mqtt.tls only loopback is allowed"
            raise wrong(text)
        if mqtt.password_file is not None and mqtt.username is None:
            raise wrong("mqtt.password_file needs mqtt.username")
        return self

    @property
    def constraints_in_force(self) -> ExchangeConstraints | None:
        """What all its transfer policies keep to; `None` if nothing is."""
        return constraints_said(self.rails)

    @property
    def sharing(self) -> list[str]:
        """Partners with which the folders of `shared` are common."""
        return [partner.name for partner in self.partners if partner.shared]

    def keeps_open(self, partner: PartnerConfig) -> bool:
        """Returns whether connections are kept open at a partner's over which it calls this site."""
        if partner.way != "address" or self.tls is None or self.clock.kind == "virtual":
            return False
        return self.listen.partners is None if partner.keep_open is None else partner.keep_open

    def way_of(self, partner: PartnerConfig) -> str:
        """Returns how a partner is called, and how it calls this site, in words; its address where that is all."""
        match partner.way:
            case "callback":
                return "called back over connections that it keeps open to listen.partners"
            case "relay":
                relay = self.outgoing.relay
                assert relay is not None  # it was checked
                via = "" if self.outgoing.proxy is None else f", through {self.outgoing.proxy}"
                return f"met at the relay {relay.name}, {relay.address}{via}"
        words = [partner.address or "found by MQTT discovery"]
        if self.outgoing.proxy is not None:
            words.append(f"through {self.outgoing.proxy}")
        if self.keeps_open(partner):
            words.append("calls back over connections kept open there")
        elif not self.is_called:
            words.append("cannot call this site, which has neither listen.partners nor [tls]")
        return ", ".join(words)

    @property
    def is_called(self) -> bool:
        """Whether partners may call this site, at its port or over connections that it keeps open."""
        return self.listen.partners is not None or (
            self.tls is not None and self.clock.kind != "virtual"
        )

    @property
    def accounts(self) -> dict[str, str]:
        """The accounts of partners' jobs, by partner, of those that have one."""
        return {each.name: each.account for each in self.partners if each.account is not None}

    @property
    def publishes(self) -> bool:
        """Whether there is an MQTT broker to publish to."""
        mqtt = self.mqtt
        return mqtt is not None and mqtt.enabled and (mqtt.embedded or mqtt.address is not None)
