"""What a preparation did with a log: how often each rule applied, and what was lost."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final, Literal, get_args, get_type_hints

from lrms_sim.util.messages import share
from lrms_sim.util.option_fields import option

Treatment = Literal["dropped", "altered", "kept", "ignored"]

LOSSY_SHARE: Final = 0.25
"""From this share of dropped records on, the losses are reported with the figures."""

_KEEPING: Final = {
    "partial-execution": ("partial_execution", "keep"),
    "submit-time-negative": ("submit_time_negative", "keep"),
    "run-time-zero": ("run_time_zero", "one_second"),
    "requested-time-missing": ("requested_time_missing", "run_time"),
    "job-id-repeated": ("job_id_repeated", "renumber"),
}
"""Option and choice that keep the records that a rule drops, by the rule's reason."""


@dataclass(frozen=True, slots=True)
class PreparationOptions:
    """What to do with records that cannot be run as they stand.

    Attributes:
        processors_from: the field with the width, `allocated` (field 5) or `requested` (field 8);
            if it is not positive, the other one is taken.
        run_time_zero: a run time of 0 s: `drop` the job, or let it run for `one_second`. A
            negative (unknown) run time is always dropped.
        requested_time_missing: a request of 0 s or less: `drop` the job, or take its `run_time`.
        overrun: a run time above the request: `kill` the job when its request is used up, `extend`
            the request to the run time, or let the job `run` on, which no discipline knows before.
        too_wide: a job wider than the machine: `drop` it, or stop with an `error`.
        submit_time_negative: SWF writes -1 for "not known": `drop` the job, or `keep` it at the
            negative time.
        partial_execution: lines of status 2, 3 and 4 repeat a part of a job that has a line of
            its own, of another status (SWF 2.2): `drop` them, or `keep` them as jobs. Without such
            a line they are always kept.
        job_id_repeated: a number that an earlier record has: `renumber` the job past the
            largest number of the log, `drop` it, or stop with an `error`.
    """

    processors_from: Literal["allocated", "requested"] = option(
        "The field that says how wide a job is.", default="allocated"
    )
    run_time_zero: Literal["drop", "one_second"] = option("Jobs that ran for 0 s.", default="drop")
    requested_time_missing: Literal["drop", "run_time"] = option(
        "Jobs without a requested time.", default="drop"
    )
    overrun: Literal["kill", "extend", "run"] = option(
        "Jobs that ran longer than requested: kill them then, extend the request, or let them run on, "
        "unknown to the scheduler.",
        default="kill",
    )
    too_wide: Literal["drop", "error"] = option("Jobs wider than the machine.", default="drop")
    submit_time_negative: Literal["drop", "keep"] = option(
        "Jobs submitted before time 0.", default="drop"
    )
    partial_execution: Literal["drop", "keep"] = option(
        "Lines of status 2, 3, 4 that come with one of the whole job.", default="drop"
    )
    job_id_repeated: Literal["renumber", "drop", "error"] = option(
        "Job numbers that come again.", default="renumber"
    )

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for each in fields(self):
            choices = get_args(hints[each.name])
            choice = getattr(self, each.name)
            if choice not in choices:
                raise ValueError(
                    f"{each.name} is {choice!r}; it must be one of {', '.join(choices)}"
                )


@dataclass(frozen=True, slots=True)
class PreparationEntry:
    """How often one rule applied.

    Attributes:
        reason: the rule's short name, made of lower-case words and hyphens.
        description: the same for people.
        count: records concerned.
        treatment: `dropped`, `altered`, `kept` where something odd was left as it is, or `ignored` where
            something that the log says is not used.
    """

    reason: str
    description: str
    count: int
    treatment: Treatment


@dataclass(frozen=True, slots=True)
class PreparationReport:
    """What the preparation did with a log.

    A record that several rules would drop is counted under the first of them, so that records
    dropped and jobs prepared add up to the records read. Alterations are counted among the jobs
    prepared.

    Attributes:
        path: the log.
        records_read: job lines in the log.
        jobs_prepared: jobs in the resulting table.
        entries: one for each rule that applied at least once.
    """

    path: str
    records_read: int
    jobs_prepared: int
    entries: tuple[PreparationEntry, ...]

    @property
    def records_dropped(self) -> int:
        """Records of the log that became no job."""
        return self.records_read - self.jobs_prepared

    def count(self, reason: str) -> int:
        """Returns the number of records to which the rule of that short name applied."""
        return sum(entry.count for entry in self.entries if entry.reason == reason)

    @property
    def is_lossy(self) -> bool:
        """Whether so many records were dropped that one should know: `LOSSY_SHARE` of them."""
        return self.records_dropped > 0 and (
            self.records_dropped >= LOSSY_SHARE * self.records_read
        )

    def losses(self, option: Callable[[str, str], str]) -> str:
        """Returns in words how many records were dropped, why, and what keeps them.

        `option` formats an option of `PreparationOptions` and a choice as the user writes them.
        """
        dropped = [entry for entry in self.entries if entry.treatment == "dropped"]
        dropped.sort(key=lambda entry: (-entry.count, entry.reason))
        reasons = [
            f"{entry.count:,} {entry.description}"
            + (
                f" ({option(*_KEEPING[entry.reason])} keeps them)"
                if entry.reason in _KEEPING
                else ""
            )
            for entry in dropped
        ]
        part = share(self.records_dropped / self.records_read) if self.records_read else share(0)
        return (
            f"{self.records_dropped:,} of {self.records_read:,} records ({part}) were dropped: "
            f"{', '.join(reasons)}"
        )

    def rows(self) -> list[tuple[str, int, Treatment]]:
        """Returns what a person wants to see: description, count and treatment of each rule."""
        return [(entry.description, entry.count, entry.treatment) for entry in self.entries]


@dataclass(frozen=True, slots=True)
class LogDescription:
    """Summary of a log.

    Attributes:
        trace: the log as the user named it.
        installation: site of the machine; `None` if unknown.
        computer: the make of the machine; `None` if unknown.
        start: time 0 in UTC, ISO 8601; `None` if unknown.
        jobs: those left after the preparation.
        users: distinct users of these.
        span_days: days between the first and the last of their submissions.
        processors_max: greatest width.
        run_time_median_s: median of the run times, seconds.
        load: Σ run time · processors / (size · span), a number; nan without a span.
    """

    trace: str
    installation: str | None
    computer: str | None
    start: str | None
    processors: int
    records: int
    jobs: int
    users: int
    span_days: float
    processors_max: int
    run_time_median_s: float
    load: float
