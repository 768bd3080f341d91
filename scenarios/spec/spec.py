"""A scenario as a file says it, as validated models.

The format is described in docs/scenarios.md. Relative paths in a file are relative to the file;
in the models they are absolute, so that a model means the same wherever it is used.
"""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    model_validator,
)

from grms.daemon.config_base import FilePath, Model, absolute, wrong
from grms.federation.sites import BYZANTINE_PARTNERS, ByzantinePartner
from grms.policy.constraints import (
    ConstraintsField,
    ExchangeConstraints,
    Period,
    ReofferField,
    constraints_said,
)
from grms.policy.registry import LOCATION_WORDS, POOL_WORDS, TRANSFER_WORDS, is_user_defined
from lrms_sim.scheduling.disciplines import DISCIPLINES
from lrms_sim.scheduling.situations import zone_named
from lrms_sim.scheduling.user_defined import names_user_defined
from lrms_sim.util.messages import shown as shown_value
from lrms_sim.util.messages import unknown
from lrms_sim.util.plugins import DISCIPLINE_GROUP, LOCATION_GROUP
from lrms_sim.workload.jobs import JOBS_MAX, Shift
from lrms_sim.workload.preparation import PreparationOptions
from scenarios.spec.broker import RESERVABLE_MAX, BrokerSpec, ReservableSpec
from scenarios.spec.electricity import ElectricityClockSpec, ElectricitySpec
from scenarios.spec.traces import TRACES

PROCESSORS_MAX: Final = 2**31 - 1
"""Processors are counted with 32 bits."""

SITES_MAX: Final = 1000

OVERLOADED: Final = "overloaded"
BYZANTINE_NAMES: Final = (*BYZANTINE_PARTNERS, OVERLOADED)
"""Kinds of dishonest partners. The last is honest: its users submit too much."""

_WORKLOAD_STREAM: Final = 0
"""Number of the random stream of workloads; other purposes have others."""

SEED_MAX: Final = 2**63 - 1
"""What a TOML integer can hold."""


def known(value: str, what: str, choices: tuple[str, ...]) -> str:
    """Returns a word that is one of the choices.

    Raises:
        PydanticCustomError: it is none of them; the text has the likeliest.
    """
    if value not in choices:
        raise wrong(unknown(what, value, choices))
    return value


def _trace(value: str) -> str:
    return known(value, "log", tuple(TRACES))


def _model_name(value: str) -> str:
    return known(value, "model", ("lublin",))


Seed = Annotated[int, Field(ge=0, le=SEED_MAX)]
Day = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]


class ClockSpec(Model):
    """The clock all sites share.

    Attributes:
        time_zero: what falls on second 0 of the clock. `log`: time 0 of each log, so that days
            count from the beginning of the logs; `window`: the beginning of each workload's
            window; `first_job`: the first submission of each workload.
    """

    time_zero: Literal["log", "window", "first_job"] = "log"

    @property
    def shift(self) -> Shift:
        """The same for `lrms_sim.workload.jobs.window_by_days`."""
        return "none" if self.time_zero == "log" else self.time_zero


class WindowSpec(Model):
    """The part of a log that is replayed.

    Attributes:
        first_day: begins so many days of 86,400 s after the log's time 0; with the log's first job
            if omitted.
        last_day: ends before that day; with the log's last job if omitted.
        first_jobs: takes at most so many jobs, the earliest.
    """

    first_day: Day | None = None
    last_day: Day | None = None
    first_jobs: Annotated[int, Field(ge=1, le=JOBS_MAX)] | None = None

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.last_day is not None and self.last_day <= (self.first_day or 0):
            raise wrong(
                f"last_day is {self.last_day}; it must be more than first_day, {self.first_day or 0}"
            )
        return self

    @property
    def words(self) -> str:
        """Which part of the log it is, for people."""
        words = []
        if self.first_day is not None:
            words.append(f"from day {self.first_day:g}")
        if self.last_day is not None:
            words.append(f"before day {self.last_day:g}")
        if self.first_jobs is not None:
            words.append(f"the first {self.first_jobs:,} jobs")
        return ", ".join(words) or "the whole log"


class PreparationSpec(Model):
    """What to do with records that cannot be run as they stand.

    Attributes: those of `lrms_sim.workload.preparation.PreparationOptions`, with the same defaults.
    """

    processors_from: Literal["allocated", "requested"] = "allocated"
    run_time_zero: Literal["drop", "one_second"] = "drop"
    requested_time_missing: Literal["drop", "run_time"] = "drop"
    overrun: Literal["kill", "extend"] = "kill"
    too_wide: Literal["drop", "error"] = "drop"
    submit_time_negative: Literal["drop", "keep"] = "drop"
    partial_execution: Literal["drop", "keep"] = "drop"
    job_id_repeated: Literal["renumber", "drop", "error"] = "renumber"

    @property
    def options(self) -> PreparationOptions:
        """The same for `lrms_sim.workload.preparation.prepare`."""
        return PreparationOptions(**self.model_dump())


class CheckpointSpec(Model):
    """Which jobs of a workload keep their state, and go on from it where they were sent home.

    Attributes:
        every: seconds, or a text such as "1h"; at least 1 s.
        jobs: every so many-th of them, counted from 1; all if 1.
    """

    every: Period
    jobs: Annotated[int, Field(ge=1, le=JOBS_MAX)] = 1


class TraceWorkload(Model):
    """A log of the Parallel Workloads Archive.

    Attributes:
        trace: its key; `scenario fetch` lists them.
        window: which part of it.
        preparation: what to do with records that cannot be run as they stand.
        checkpoint: which of its jobs keep their state; none if omitted.
    """

    trace: Annotated[str, AfterValidator(_trace)]
    window: WindowSpec = WindowSpec()
    preparation: PreparationSpec = PreparationSpec()
    checkpoint: CheckpointSpec | None = None


class SwfWorkload(Model):
    """A log of the user's own, in the Standard Workload Format.

    Attributes:
        swf: the file, plain or packed.
        window: which part of it.
        preparation: what to do with records that cannot be run as they stand.
        checkpoint: which of its jobs keep their state; none if omitted.
    """

    swf: FilePath
    window: WindowSpec = WindowSpec()
    preparation: PreparationSpec = PreparationSpec()
    checkpoint: CheckpointSpec | None = None


class LublinWorkload(Model):
    """A synthetic workload after Lublin and Feitelson.

    Attributes:
        model: the word `lublin`.
        jobs: number of jobs; this or `days` is given.
        days: time in which all jobs are submitted, in days of 86,400 s.
        load: processor-seconds of all jobs over what the machine could do until the last
            submission; the model's own if omitted.
        seed: of this workload; derived from the scenario's seed and the site's name if omitted.
        checkpoint: which of its jobs keep their state; none if omitted.
    """

    model: Annotated[str, AfterValidator(_model_name)]
    jobs: Annotated[int, Field(ge=0, le=JOBS_MAX)] | None = None
    days: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = None
    load: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] | None = None
    seed: Seed | None = None
    checkpoint: CheckpointSpec | None = None

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        if (self.jobs is None) == (self.days is None):
            found = "neither" if self.jobs is None else "both"
            raise wrong(f"one of jobs and days is needed; found {found}")
        return self


def _workload_kind(value: object) -> str | None:
    if isinstance(value, (TraceWorkload, SwfWorkload, LublinWorkload)):
        return next(kind for kind in ("trace", "swf", "model") if hasattr(value, kind))
    if not isinstance(value, dict):
        return None
    kinds = [kind for kind in ("trace", "swf", "model") if kind in value]
    return kinds[0] if len(kinds) == 1 else None


WorkloadSpec = Annotated[
    Annotated[TraceWorkload, Tag("trace")]
    | Annotated[SwfWorkload, Tag("swf")]
    | Annotated[LublinWorkload, Tag("model")],
    Discriminator(_workload_kind),
]


def _discipline(value: str) -> str:
    # A name of ours first: entry points are looked up in the files of all that is installed.
    if value in DISCIPLINES or names_user_defined(DISCIPLINE_GROUP, value):
        return value
    return known(value, "discipline", tuple(DISCIPLINES))


def _byzantine(value: str) -> str:
    return known(value, "rogue", BYZANTINE_NAMES)


def _strategy(value: str, info: ValidationInfo) -> str:
    if not value.endswith(".json"):
        text = f"{shown_value(value)} is no strategy file; the path of one (*.json) is expected"
        raise wrong(text)
    return absolute(value, info)


def _time_zone(value: str | float) -> str | float:
    try:
        zone_named(value)
    except ValueError as error:
        raise wrong(str(error)) from error
    return value


def _transfer(value: str, info: ValidationInfo) -> str:
    return _policy(value, info, TRANSFER_WORDS)


def _pool_transfer(value: str, info: ValidationInfo) -> str:
    return _policy(value, info, POOL_WORDS)


def _policy(value: str, info: ValidationInfo, words: tuple[str, ...]) -> str:
    if value in words or is_user_defined(value):
        return value
    if not value.endswith(".json"):
        text = unknown("transfer policy", value, words)
        text += ", and the path of a rule base file (*.json)"
        raise wrong(text)
    return absolute(value, info)


def _location(value: str | list[str]) -> str | list[str]:
    if (
        isinstance(value, str)
        and value not in LOCATION_WORDS
        and not names_user_defined(LOCATION_GROUP, value)
    ):
        words = ", ".join(LOCATION_WORDS)
        text = f"{shown_value(value)} is no location policy; there are: {words}, and a list of all partners"
        raise wrong(text)
    return value


Processors = Annotated[int, Field(ge=1, le=PROCESSORS_MAX)]
Transfer = Annotated[str, AfterValidator(_transfer)]
PoolTransfer = Annotated[str, AfterValidator(_pool_transfer)]
SiteName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


class PoolEntry(Model):
    """A transfer policy learned against a partner of a certain size.

    Attributes:
        processors: size of that partner.
        policy: `awf`, `keep`, or the path of a rule base file.
    """

    processors: Processors
    policy: PoolTransfer


class TransferSpec(BaseModel):
    """Which transfer policy a site uses for which partner.

    Every key other than the two below is the name of a partner, its value the policy for that
    partner: `awf`, `keep`, `none` (the two neither ask nor answer each other), or the path of a
    rule base file.

    Attributes:
        default: for partners that are not named; `awf` where neither this nor a pool is given.
        pool: for partners that are not named, the policy whose size is nearest to the partner's
            (paper 003, section 8.1). This or `default`, not both.
    """

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    __pydantic_extra__: dict[str, Transfer]

    default: Transfer | None = None
    pool: Annotated[list[PoolEntry], Field(min_length=1, max_length=SITES_MAX)] | None = None

    @model_validator(mode="after")
    def _check_pool(self) -> Self:
        if self.pool is not None and self.default is not None:
            raise wrong("has both default and pool; partners that are not named need one of them")
        sizes = [entry.processors for entry in self.pool or ()]
        repeated = next((size for size in sizes if sizes.count(size) > 1), None)
        if repeated is not None:
            raise wrong(f"has two pool entries for {repeated} processors; each size once")
        return self

    @property
    def partners(self) -> Mapping[str, str]:
        """The policies of partners that are named."""
        return self.__pydantic_extra__ or {}


class SiteSpec(Model):
    """One institution.

    Attributes:
        name: unique in the scenario; letters, digits, `_`, `.` and `-`.
        processors: size of its machine.
        discipline: of the machine's queue; or a table with one of the next keys, or with `name` and
            these.
        strategy: a strategy file instead of a discipline.
        group_order: for a discipline by group: the groups, the one served first in front.
        time_zone: of the site, for strategies that ask what time it is: a name of the IANA database
            or seconds east of UTC; the log's own if omitted.
        location: in which order partners are asked: `awrt` or `awrt-completed` (as the paper has
            it), `awrt-open` (jobs that are open at a partner count, as they do in a daemon), or a
            list of all partners' names.
        partners_asked: how many partners are asked about one job in one decision at most, the first
            of that order; all if omitted.
        workload: what its own users submit.
        transfer: which jobs it gives away and takes.
        rails: what its exchange keeps to, whatever its transfer policies would like: a word, or a
            table with other numbers.
        reoffer: own jobs that still wait are offered again at the multiples of this period, or as a
            table says; on their arrival alone if omitted.
        reservable: resources beside the batch machine that a broker can reserve.
        rogue: how it differs from an honest partner, one of `BYZANTINE_NAMES`; honest if omitted.
        electricity: what it pays and draws, and whether it looks at that; nothing is known if omitted.
    """

    name: SiteName
    processors: Processors
    discipline: Annotated[str, AfterValidator(_discipline)] = "fcfs"
    strategy: Annotated[str, AfterValidator(_strategy)] | None = None
    group_order: list[int] | None = None
    time_zone: Annotated[str | float | int, AfterValidator(_time_zone)] | None = None
    location: Annotated[str | list[str], AfterValidator(_location)] = "awrt"
    partners_asked: Annotated[int, Field(ge=1, le=SITES_MAX)] | None = None
    workload: WorkloadSpec
    transfer: TransferSpec = TransferSpec()
    rails: ConstraintsField | None = None
    reoffer: ReofferField | None = None
    reservable: (
        Annotated[list[ReservableSpec], Field(min_length=1, max_length=RESERVABLE_MAX)] | None
    ) = None
    rogue: Annotated[str, AfterValidator(_byzantine)] | None = None
    electricity: ElectricitySpec | None = None

    @model_validator(mode="before")
    @classmethod
    def _unfold_discipline(cls, values: Any) -> Any:
        # discipline = { strategy = "a.json", time_zone = … } is the same keys without a table.
        given = values.get("discipline") if isinstance(values, dict) else None
        if not isinstance(given, dict):
            return values
        keys = ("name", "strategy", "group_order", "time_zone")
        for key in given:
            known(key, "key of discipline", keys)
            if key != "name" and key in values:
                text = f"has {key} and discipline.{key}; one of them is enough"
                raise wrong(text)
        flat = {key: value for key, value in given.items() if key != "name"}
        if "name" in given:
            flat["discipline"] = given["name"]
        return {key: value for key, value in values.items() if key != "discipline"} | flat

    @model_validator(mode="after")
    def _check_delay(self) -> Self:
        delays = self.electricity is not None and self.electricity.delay
        if delays and (self.discipline != "easy" or self.strategy is not None):
            raise wrong('electricity.delay goes with discipline = "easy" alone')
        return self

    @model_validator(mode="after")
    def _check_queue(self) -> Self:
        by_group = self.discipline.endswith("-group")
        if self.strategy is not None and (
            "discipline" in self.model_fields_set and self.discipline != "fcfs"
        ):
            text = f"has the strategy {shown_value(self.strategy)} and the discipline {self.discipline!r}; one is possible"
            raise wrong(text)
        if self.group_order is None:
            return self
        if self.strategy is not None or not by_group:
            text = "group_order goes with a discipline by group, such as easy-group"
            raise wrong(text)
        if sorted(self.group_order) != [1, 2, 3, 4, 5]:
            text = f"group_order is {shown_value(self.group_order)}; each of 1 to 5 is needed once"
            raise wrong(text)
        return self

    @property
    def queue_name(self) -> str:
        """What the queue is called in reports."""
        if self.strategy is not None:
            return Path(self.strategy).stem
        if self.group_order is not None:
            return f"{self.discipline}-{''.join(map(str, self.group_order))}"
        return self.discipline

    @property
    def constraints_in_force(self) -> ExchangeConstraints | None:
        """What all its transfer policies keep to; `None` if nothing is."""
        return constraints_said(self.rails)

    @property
    def deals_as(self) -> ByzantinePartner | None:
        """What it does to its partners; `None` for what an honest site does."""
        return None if self.rogue is None else BYZANTINE_PARTNERS.get(self.rogue)

    @property
    def reservable_processors(self) -> int:
        """Processors of all resources that can be reserved."""
        return sum(resource.processors for resource in self.reservable or ())


class ScenarioSpec(Model):
    """A whole scenario.

    Attributes:
        name: a word for the command line and for file names; lower-case letters, digits, `-`.
        title: one line for people.
        description: a paragraph for people.
        seed: what every random stream of the scenario is spawned from.
        clock: the clock all sites share.
        first_arrivals: takes at most so many jobs of all sites together, the earliest; all if
            omitted.
        sites: in the order that breaks ties.
        broker: plans workflows onto what the sites have to reserve; none if omitted.
        electricity: which moment falls on second 0; the first moment of each file if omitted.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
    title: Annotated[str, Field(max_length=200)] = ""
    description: Annotated[str, Field(max_length=20_000)] = ""
    seed: Seed = 1
    clock: ClockSpec = ClockSpec()
    first_arrivals: Annotated[int, Field(ge=1, le=JOBS_MAX)] | None = None
    sites: Annotated[list[SiteSpec], Field(min_length=1, max_length=SITES_MAX)]
    broker: BrokerSpec | None = None
    electricity: ElectricityClockSpec | None = None

    @model_validator(mode="after")
    def _check_preferences(self) -> Self:
        preferred = {one.electricity.prefer for one in self.sites if one.electricity} - {None}
        if len(preferred) > 1:
            raise wrong(
                "some sites prefer less cost, others less carbon; all need the same measure"
            )
        known = [
            one.electricity is not None and one.electricity.carbon is not None for one in self.sites
        ]
        if "carbon" in preferred and not all(known):
            name = self.sites[known.index(False)].name
            raise wrong(f"sites prefer less carbon, and {name} does not say electricity.carbon")
        return self

    @property
    def traces(self) -> list[str]:
        """Keys of the logs that have to be on this machine, each once, in site order."""
        keys = (s.workload.trace for s in self.sites if isinstance(s.workload, TraceWorkload))
        return list(dict.fromkeys(keys))

    @property
    def is_random(self) -> bool:
        """Whether a workload or a workflow is drawn from the scenario's seed."""
        return self.broker is not None or any(
            isinstance(site.workload, LublinWorkload) and site.workload.seed is None
            for site in self.sites
        )

    def resolved(self, seed: int | None = None) -> Self:
        """Returns the scenario with nothing left open: every synthetic workload has its seed.

        A derived seed depends on the scenario's seed and the site's name alone, so that a further
        site changes nobody's workload.

        Raises:
            ValueError: the seed is out of its bounds.
        """
        seed = self.seed if seed is None else seed
        if not 0 <= seed <= SEED_MAX:
            raise ValueError(f"the seed is {seed}; it must be from 0 to {SEED_MAX}")
        sites = []
        for site in self.sites:
            workload = site.workload
            if isinstance(workload, LublinWorkload) and workload.seed is None:
                workload = workload.model_copy(update={"seed": _derived_seed(seed, site.name)})
            sites.append(site.model_copy(update={"workload": workload}))
        return self.model_copy(update={"seed": seed, "sites": sites})

    def with_transfer(self, policy: str) -> Self:
        """Returns the scenario with one transfer policy for every site and partner.

        `policy` is `awf`, `keep`, `none`, or the path of a rule base file, relative to the working
        folder.

        Raises:
            ValueError: it is none of these; pydantic's error lists the choices.
        """
        transfer = TransferSpec.model_validate({"default": policy})
        sites = [site.model_copy(update={"transfer": transfer}) for site in self.sites]
        return self.model_copy(update={"sites": sites})

    def to_mapping(self) -> dict[str, Any]:
        """Returns the scenario as the values of its file; defaults are written out."""
        return self.model_dump(mode="json", exclude_none=True)


def _derived_seed(seed: int, name: str) -> int:
    key = (_WORKLOAD_STREAM, zlib.crc32(name.encode()))
    state = np.random.SeedSequence(seed, spawn_key=key).generate_state(1, np.uint64)
    return int(state[0]) >> 1
