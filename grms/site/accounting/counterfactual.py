"""The effect of exchange on local users: their jobs as they ran, compared with the same jobs alone.

Alone: the simulator replays local users' jobs on the site's own machine with its own discipline, as if
there were no partners. The report states three limits of this model: jobs that have not ended are missing, as
their run time is unknown, so that the machine alone is slightly emptier than it would have been; jobs that
never came through Hanse are missing; and a real batch system differs from the simulator. The last error is
measured: the simulator replays everything that ran on the machine, and the result is shown next to the facts.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from grms.site.accounting.accounts import Accounts, GuestRun, OwnRun
from lrms_sim.analysis.metrics import awrt, mean_wait_time
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import Discipline
from lrms_sim.workload.groups import GROUPS
from lrms_sim.workload.jobs import BoolArray, FloatArray, JobTable
from lrms_sim.workload.schedule import MachineInfo, Schedule


@dataclass(frozen=True, slots=True)
class Compared:
    """Local users' jobs that ran at one place, with exchange and alone.

    Attributes:
        place: empty at home.
        work: resource consumption, processor seconds.
        mean_wait, mean_wait_alone, awrt, awrt_alone: seconds; nan without jobs.
    """

    place: str
    jobs: int
    work: float
    mean_wait: float
    mean_wait_alone: float
    awrt: float
    awrt_alone: float

    @property
    def improvement(self) -> float:
        """1 - AWRT with exchange / AWRT alone; nan of no jobs."""
        return 1.0 - self.awrt / self.awrt_alone if self.awrt_alone > 0 else math.nan


@dataclass(frozen=True, slots=True)
class Traded:
    """Jobs exchanged with a partner, by their ends in the window.

    Attributes:
        given: local users' jobs that it ran.
        given_work, taken_work: resource consumption, processor seconds.
        taken: its jobs that ran here.
    """

    partner: str
    given: int
    given_work: float
    taken: int
    taken_work: float


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Local users' jobs that are not compared, by reason.

    Attributes:
        open: they have not ended.
        never_ran: they ended without a run.
        disbelieved: a partner's report on them is impossible.
        too_wide: the site's own machine is too small.
    """

    open: int
    never_ran: int
    disbelieved: int
    too_wide: int


@dataclass(frozen=True, slots=True)
class ExchangeReport:
    """Effect of exchange in a window.

    Attributes:
        begin: of the window, seconds; jobs that ended later are compared.
        end: of the window, seconds: the last record.
        total: all compared jobs of local users.
        places: the same by place, home first, then by name; only places with jobs.
        partners: by name; only those with exchanged jobs.
        home_awrt_replayed: AWRT of the local users' jobs at home in the simulator's replay of the machine,
            seconds: compared with that of the first place it gives the simulator's error. nan without jobs.
        known_since: from when on the journal has all ends of local jobs, seconds.
        guests_known_since: the same for guests.
    """

    begin: float
    end: float
    total: Compared
    places: tuple[Compared, ...]
    partners: tuple[Traded, ...]
    left_out: LeftOut
    home_awrt_replayed: float
    known_since: float
    guests_known_since: float


def exchange(
    accounts: Accounts,
    processors: int,
    discipline: Discipline,
    since: float = math.inf,
    not_before: float = -math.inf,
) -> ExchangeReport:
    """Returns the effect of exchange.

    All known jobs are replayed; those that ended in the window are compared. Jobs are chosen by end rather
    than submission: otherwise those delayed by exchange beyond the window would be missing, and the effect
    would look too good.

    The window has length `since` (seconds) before the last record, and begins no earlier than `not_before`.

    Raises:
        ValueError: the discipline cannot replay such jobs.
    """
    end = accounts.last_time
    begin = max(end - since if since < math.inf else -math.inf, not_before)
    compared, left_out = comparable(accounts, processors, begin)
    was = as_it_was(compared, processors)
    alone = replay(was.jobs, processors, discipline)
    window = was.end_time > begin
    names = sorted({run.partner for run in compared})
    where = {
        name: np.fromiter((run.partner == name for run in compared), bool, len(compared)) & window
        for name in names
    }
    return ExchangeReport(
        begin=max(begin, accounts.first_time),
        end=end,
        total=_row("", was, alone, window),
        places=tuple(
            _row(name, was, alone, chosen) for name, chosen in where.items() if chosen.any()
        ),
        partners=_traded(accounts, begin),
        left_out=left_out,
        home_awrt_replayed=_home_replayed(compared, accounts.guests, was, window, discipline),
        known_since=_known_since(accounts),
        guests_known_since=_guests_known_since(accounts),
    )


def as_it_was(runs: Sequence[OwnRun], processors: int) -> Schedule:
    """Returns the real run times as a schedule.

    As a partner's clock may be slow, no job starts before its submission. One that ran slightly longer than
    requested counts as requested so. `runs` are ordered by submission and number.
    """
    jobs = JobTable.from_columns(
        job_id=[run.job for run in runs],
        submit_time=[run.submit_time for run in runs],
        processors=np.array([run.processors for run in runs], np.int32),
        run_time=[run.run_time for run in runs],
        requested_time=[max(run.requested_time, run.run_time) for run in runs],
    )
    ends = np.array([run.end_time for run in runs], np.float64)
    start = np.maximum(ends - jobs.run_time, jobs.submit_time)
    return _schedule(jobs, start, start + jobs.run_time, processors)


def replay(jobs: JobTable, processors: int, discipline: Discipline) -> Schedule:
    """Returns how the site's machine serves jobs by itself.

    A journal has no user groups, which some disciplines use: all jobs are in the last one.
    """
    groups = np.full(len(jobs), GROUPS[-1], np.int8)
    return simulate(jobs, processors, discipline, groups=groups)


def _schedule(jobs: JobTable, start: FloatArray, end: FloatArray, processors: int) -> Schedule:
    here = np.zeros(len(jobs), np.int16)
    machine = MachineInfo("home", processors)
    return Schedule(jobs, start, end, (machine,), here, here, jobs.job_id)


def comparable(accounts: Accounts, processors: int, begin: float) -> tuple[list[OwnRun], LeftOut]:
    """Returns the jobs that can be replayed, by submission and number, and counts the others.

    The others are counted if they ended after `begin`, seconds.
    """
    good = []
    never_ran = disbelieved = too_wide = 0
    for run in accounts.own:
        late = run.end_time > begin
        if run.job in accounts.disbelieved:
            disbelieved += late
        elif not run.run_time > 0:
            never_ran += late
        elif run.processors > processors:
            too_wide += late
        else:
            good.append(run)
    good.sort(key=lambda run: (run.submit_time, run.job))
    return good, LeftOut(accounts.open, never_ran, disbelieved, too_wide)


def _row(place: str, was: Schedule, alone: Schedule, where: BoolArray) -> Compared:
    return Compared(
        place=place,
        jobs=int(np.count_nonzero(where)),
        work=float(np.sum(was.jobs.resource_consumption[where])),
        mean_wait=mean_wait_time(was, where=where),
        mean_wait_alone=mean_wait_time(alone, where=where),
        awrt=awrt(was, where=where),
        awrt_alone=awrt(alone, where=where),
    )


def _traded(accounts: Accounts, begin: float) -> tuple[Traded, ...]:
    given = _sums(run for run in accounts.own if run.partner and run.end_time > begin)
    taken = _sums(run for run in accounts.guests if run.end_time > begin)
    nothing = (0, 0.0)
    return tuple(
        Traded(name, *given.get(name, nothing), *taken.get(name, nothing))
        for name in sorted({*given, *taken})
    )


def _sums(runs: Iterable[OwnRun | GuestRun]) -> dict[str, tuple[int, float]]:
    """Returns the number of jobs with each partner, and their work in processor seconds."""
    found: dict[str, tuple[int, float]] = {}
    for run in runs:
        count, work = found.get(run.partner, (0, 0.0))
        found[run.partner] = count + 1, work + run.run_time * run.processors
    return found


def _home_replayed(
    compared: Sequence[OwnRun],
    guests: Sequence[GuestRun],
    was: Schedule,
    window: BoolArray,
    discipline: Discipline,
) -> float:
    """Returns the AWRT of local jobs at home when the simulator replays all that ran on the machine."""
    processors = was.machines[0].processors
    home = np.array([not run.partner for run in compared], bool)
    own = [run for run in compared if not run.partner]
    ran = [run for run in guests if run.run_time > 0 and run.processors <= processors]
    if not own:
        return math.nan
    both: list[OwnRun | GuestRun] = [*own, *ran]
    order = np.array(
        [run.handed_after for run in own] + [run.accepted_after for run in ran], np.int64
    )
    table = JobTable.from_columns(
        job_id=order,
        submit_time=[run.handed_time for run in own] + [run.accept_time for run in ran],
        processors=np.array([run.processors for run in both], np.int32),
        run_time=[run.run_time for run in both],
        requested_time=[max(run.requested_time, run.run_time) for run in both],
    )
    together = replay(table, processors, discipline)
    # Back in the order of `own`.
    end = np.empty(len(table))
    end[np.argsort(order)] = together.end_time[np.argsort(table.job_id)]
    rows = np.flatnonzero(home)
    jobs = was.jobs.select(rows)
    ends = end[: len(own)]
    return awrt(_schedule(jobs, ends - jobs.run_time, ends, processors), where=window[rows])


def _known_since(accounts: Accounts) -> float:
    if math.isnan(accounts.shortened_time):
        return accounts.first_time
    return min((run.end_time for run in accounts.own), default=accounts.shortened_time)


def _guests_known_since(accounts: Accounts) -> float:
    shortened = accounts.shortened_time
    return accounts.first_time if math.isnan(shortened) else shortened
