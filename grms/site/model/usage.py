"""What jobs have used: of each a record, of each month sums.

A month is one of UTC, and a job belongs to that in which it has ended, with all that it has used, by the clock of the
site that ran it: so that site and the job's home count it to the same one. Sums are of processors, memory and GPUs as
requested, each times run time; weights are applied when something is compared or shown, and so may be changed.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec

from grms.site.model.jobs import KEY_PARTS, GuestJob, HomeJob, Request, lrms_key
from grms.site.model.lifecycle import JobState, Outcome
from grms.util.values import dataclass

MONTHS_KEPT: Final = 3
"""Of so many months sums are kept: the last ones in which a job has ended."""

USERS_MAX: Final = 10_000
"""Most users of one partner, or of this site at one partner, that are told apart in a month; others are counted
together."""

OTHERS: Final = ""
"""Stands for them, and for users who are not known."""

_MIB_PER_GIB: Final = 1024
_LAST: Final = 253_370_764_799.0  # of the year 9998


def month_of(time: float) -> str:
    """Returns the month of a moment, as "2026-11"; `time` is in seconds since 1970, UTC."""
    return f"{datetime.fromtimestamp(min(max(time, 0.0), _LAST), UTC):%Y-%m}"


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much: a processor, a GiB of memory and a GPU, each for as long as a job has them.

    Raises:
        ValueError: one is negative or not finite, or all are 0.
    """

    processors: float = 1.0
    memory_gib: float = 0.0
    gpus: float = 0.0

    def __post_init__(self) -> None:
        """Checks the bounds."""
        all_of_them = (self.processors, self.memory_gib, self.gpus)
        if not all(0 <= weight < math.inf for weight in all_of_them) or not any(all_of_them):
            raise ValueError(
                f"weights are {all_of_them}; they must be finite and at least 0, one of them more"
            )

    @property
    def plain(self) -> bool:
        """Whether processors alone count, each as one."""
        return (self.processors, self.memory_gib, self.gpus) == (1.0, 0.0, 0.0)


PROCESSORS: Final = Weights()
"""Processors alone."""


class Used(NamedTuple):
    """What jobs have used.

    Attributes:
        jobs: how many have run.
        processor_s, memory_mib_s, gpu_s: Σ processors, memory in MiB, and GPUs, each times run time, seconds.
    """

    jobs: int = 0
    processor_s: float = 0.0
    memory_mib_s: float = 0.0
    gpu_s: float = 0.0

    @classmethod
    def by(cls, request: Request, run_time: float) -> "Used":
        """Returns what one job uses in so many seconds."""
        needs = request.needs
        memory, gpus = (0, 0) if needs is None else (needs.memory_least, needs.gpus_least)
        return cls(1, request.processors * run_time, memory * run_time, gpus * run_time)

    def and_(self, other: "Used") -> "Used":
        """Returns the sum of both."""
        return Used(
            self.jobs + other.jobs,
            self.processor_s + other.processor_s,
            self.memory_mib_s + other.memory_mib_s,
            self.gpu_s + other.gpu_s,
        )

    def cost(self, weights: Weights) -> float:
        """Returns the weighted sum, processor seconds where processors alone count."""
        return (
            weights.processors * self.processor_s
            + weights.memory_gib * self.memory_mib_s / _MIB_PER_GIB
            + weights.gpus * self.gpu_s
        )


NOTHING_USED: Final = Used()


@dataclasses.dataclass(slots=True)
class Committed:
    """What open jobs may still use: their requests times requested time. Counted in thousandths, so that no rest stays.

    Attributes:
        jobs: how many there are.
        processors, memory_mib, gpus: Σ of each times requested time, thousandths of a second.
    """

    jobs: int = 0
    processors: int = 0
    memory_mib: int = 0
    gpus: int = 0

    def add(self, request: Request, sign: int = 1) -> None:
        """Counts a job in, or out again with -1; the same request both times."""
        used = Used.by(request, request.requested_time)
        self.jobs += sign
        self.processors += sign * round(1000 * used.processor_s)
        self.memory_mib += sign * round(1000 * used.memory_mib_s)
        self.gpus += sign * round(1000 * used.gpu_s)

    @property
    def used(self) -> Used:
        """The same in seconds."""
        return Used(self.jobs, self.processors / 1000, self.memory_mib / 1000, self.gpus / 1000)


@dataclass(frozen=True, slots=True)
class UsageLimits:
    """What may be exchanged with one partner in a month, weighted processor seconds; infinity for no limit.

    Attributes:
        taken: by all its jobs here.
        taken_user: by those of each of its users.
        given: by own users' jobs there.

    Raises:
        ValueError: one is negative, or not a number.
    """

    taken: float = math.inf
    taken_user: float = math.inf
    given: float = math.inf

    def __post_init__(self) -> None:
        """Checks the bounds."""
        for limit in (self.taken, self.taken_user, self.given):
            if not limit >= 0:
                raise ValueError(f"a limit of a month is {limit}; it must be at least 0")


NO_LIMITS: Final = UsageLimits()


def held_time(job: HomeJob | GuestJob, now: float) -> float:
    """Returns how long a job has held its processors, so far if it runs, seconds; nan if it has not started.

    `now` is in seconds, or nan if what runs does not count. A suspended job holds them.
    """
    begun = job.begun_time
    if math.isnan(begun):
        return math.nan
    return job.run_time if job.state is JobState.ENDED else max(0.0, now - begun)


def cost(job: HomeJob | GuestJob, now: float, weights: Weights = PROCESSORS) -> float:
    """Returns what a job has used, weighted; nan as with `held_time`."""
    return Used.by(job.request, held_time(job, now)).cost(weights)


# --- records -------------------------------------------------------------------------------------


class UsageRecord(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """What one job has used, for good.

    Attributes:
        number: of the record among those of its home in its site's log: 1, 2, 3, …; 0 before it is there.
        time: when the site has noted the end, seconds.
        home, key: where the job was submitted, and its name there for all time.
        job_id: as users know it; of a partner's job as the batch system does.
        name: given by the user; empty of a partner's job.
        user: of the job's home; of a partner's job a pseudonym, or empty.
        account, partition: as its request names them, in the names of this site; empty for the default.
        site: that ran it; empty if none did.
        offer: by which it was exchanged, `home/epoch/number`, the epoch in hexadecimal; empty at home.
        processors, memory_mib, gpus: of all its nodes, as requested.
        requested_time, run_time: seconds.
        submit_time: or, of a partner's job, its acceptance, seconds.
        start_time: of its last run, seconds; `None` if it has not run.
        end_time: seconds.
        exit_code, signal: `None` if there was none, or it is unknown.
        told_log, told_number: of a record that a partner has told: its log there, and its number in that.
    """

    number: int
    time: float
    home: str
    key: str
    job_id: str
    name: str
    user: str
    account: str
    partition: str
    site: str
    offer: str
    processors: int
    memory_mib: int
    gpus: int
    requested_time: float
    submit_time: float
    start_time: float | None
    end_time: float
    run_time: float
    outcome: Outcome
    exit_code: int | None
    signal: int | None
    told_log: str = ""
    told_number: int = 0

    @property
    def used(self) -> Used:
        """What it has used."""
        return Used(
            int(self.run_time > 0),
            self.processors * self.run_time,
            self.memory_mib * self.run_time,
            self.gpus * self.run_time,
        )


def usage_of(job: HomeJob | GuestJob, site: str, time: float) -> UsageRecord:
    """Returns the record of a job that has just ended; `time` is when that was noted, seconds."""
    assert job.outcome is not None
    asked = job.asked_here.needs
    ran = not math.isnan(job.start_time)
    if isinstance(job, HomeJob):
        home, ran_at, job_id, name, user = site, job.partner or site, job.job_id, job.name, job.user
        offer = lrms_key(site, job.offer_epoch, job.offer_number) if job.partner else ""
    else:
        home, ran_at, job_id, name, user = job.partner, site, job.lrms_key, "", job.pseudonym
        offer = job.lrms_key
    return UsageRecord(
        number=0,
        time=time,
        home=home,
        key="/".join(job.lrms_key.split("/")[:KEY_PARTS]),
        job_id=job_id,
        name=name,
        user=user,
        account="" if asked is None else asked.account,
        partition="" if asked is None else asked.partition,
        site=ran_at if ran else "",
        offer=offer,
        processors=job.request.processors,
        memory_mib=0 if asked is None else asked.memory_least,
        gpus=0 if asked is None else asked.gpus_least,
        requested_time=job.request.requested_time,
        submit_time=job.submit_time if isinstance(job, HomeJob) else job.accept_time,
        start_time=job.start_time if ran else None,
        end_time=job.end_time,
        run_time=job.run_time,
        outcome=job.outcome,
        exit_code=job.exit.code,
        signal=job.exit.signal,
    )


# --- sums ----------------------------------------------------------------------------------------

Sums = dict[tuple[str, str], Used]
"""By partner, and user."""


class UsageRow(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A sum, as a record of the journal has it; `taken` of a partner's user here, else of an own user there."""

    month: str
    taken: bool
    partner: str
    user: str
    jobs: int
    processor_s: float
    memory_mib_s: float
    gpu_s: float


class UsageBook:
    """What was exchanged in each of the last months.

    Attributes:
        taken: by month, what partners' users have used here.
        given: by month, what own users have used at partners.
    """

    def __init__(self) -> None:
        self.taken: dict[str, Sums] = {}
        self.given: dict[str, Sums] = {}

    def __eq__(self, other: object) -> bool:
        """Books are equal if their sums are."""
        return isinstance(other, UsageBook) and self.rows() == other.rows()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def take(self, partner: str, user: str, end_time: float, used: Used) -> None:
        """Counts a partner's job that has run here."""
        self._count(self.taken, partner, user, month_of(end_time), used)

    def give(self, partner: str, user: str, end_time: float, used: Used) -> None:
        """Counts an own user's job that has run at a partner."""
        self._count(self.given, partner, user, month_of(end_time), used)

    @staticmethod
    def _count(months: dict[str, Sums], partner: str, user: str, month: str, used: Used) -> None:
        if month not in months:
            if len(months) == MONTHS_KEPT:
                oldest = min(months)
                if month < oldest:
                    return  # it is told very late
                del months[oldest]
            months[month] = {}
        sums = months[month]
        who = partner, user
        if who not in sums and sum(name == partner for name, _ in sums) >= USERS_MAX:
            who = partner, OTHERS
        sums[who] = sums.get(who, NOTHING_USED).and_(used)

    def rows(self) -> tuple[UsageRow, ...]:
        """Returns all sums, in order."""
        return tuple(
            UsageRow(month, taken, *who, used.jobs, *used[1:])
            for taken, months in ((True, self.taken), (False, self.given))
            for month, sums in sorted(months.items())
            for who, used in sorted(sums.items())
        )

    def restore(self, rows: tuple[UsageRow, ...]) -> None:
        """Takes sums in place of all that there are."""
        self.taken, self.given = {}, {}
        for row in rows:
            months = self.taken if row.taken else self.given
            used = Used(row.jobs, row.processor_s, row.memory_mib_s, row.gpu_s)
            months.setdefault(row.month, {})[row.partner, row.user] = used


def total(
    months: Mapping[str, Sums], month: str, *, partner: str | None = None, user: str | None = None
) -> Used:
    """Returns what was used in a month, of one partner, one user, or both."""
    found = NOTHING_USED
    for used in _matching(months.get(month, {}), partner, user):
        found = found.and_(used)
    return found


def _matching(sums: Sums, partner: str | None, user: str | None) -> Iterator[Used]:
    if partner is not None and user is not None:
        if (partner, user) in sums:
            yield sums[partner, user]
        return
    for (one, whose), used in sums.items():
        if partner in {None, one} and user in {None, whose}:
            yield used
