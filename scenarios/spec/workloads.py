"""The workloads of a scenario file, as validated models."""

from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from grms.daemon.config_base import FilePath, Model, wrong
from grms.policy.constraints import Period
from lrms_sim.util.messages import unknown
from lrms_sim.workload.jobs import JOBS_MAX, Shift
from lrms_sim.workload.preparation import PreparationOptions
from scenarios.spec.traces import TRACES

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
