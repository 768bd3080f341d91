"""The account that a site keeps of itself: has exchange paid for what it costs the site's own users?

In a *shadow* the site's own users' jobs are alone on its machine, under its own discipline. At each end
there, w·(end in the shadow - real end) is what exchange has gained for that job, with w its work p·m. The
gain that is saved is bounded by a part of what the jobs would have waited and run alone, and everything fades.
What waiting jobs have lost by now is owed. While the saved gain covers what is owed the site is *in credit*,
and guests that it has accepted as protected stay; otherwise its own jobs may take their processors.

Who keeps an account tells it what happens to own users' jobs, wherever they run:

* `submitted` once, in order of submission; `started` at each real start, here or elsewhere; `returned`
  when a job was sent home; `ended` when it has really ended; `forgotten` when it will never run.
* `look` at every multiple of `AccountRules.every`, whether anybody waits or not, after the ends and starts
  of that moment and before its submissions. It answers whether the site has lost or regained credit.

`OwnAccount.record` is all of it as plain values for a journal, and `OwnAccount.of_record` continues exactly
there. The federation kernel keeps the same account by the same compiled functions, on its own columns.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, TypedDict

import numpy as np

from grms.federation._own_account import OwnAccountKernel
from grms.policy.constraints import AccountRules
from lrms_sim.scheduling.disciplines import Discipline, scheduler_of

__all__ = ["AccountRules", "Balance", "CreditChange", "OwnAccount", "accountable"]

VERSION: Final = 1
"""Of the record."""

_COLUMNS: Final = 7
_SUBMIT, _REQUEST, _RUN, _START, _END, _REAL_START, _REAL_END = range(_COLUMNS)


class Sums(TypedDict):
    """The sums of an account between the compiled functions and this module."""

    gain: float
    saved: float
    base: float
    booked: float
    weight: float
    ran: float
    work: float
    asked: float
    in_credit: bool
    since: float
    clock: float
    joined: int
    first_arrival: float


class CreditChange(IntEnum):
    """What a look has changed."""

    LOST = -1
    NONE = 0
    REGAINED = 1


@dataclass(frozen=True, slots=True)
class Balance:
    """An account as it stands, in processor seconds times seconds: work times time won.

    Attributes:
        in_credit: until the next look.
        since: moment of the last turn, seconds; minus infinity before the first.
        gain: S, what exchange has brought, fading; negative if it has cost.
        saved: SB, the same, bounded by `cap` times `base`.
        base: B, what the jobs' response times would have been alone, fading.
        owed: H at the last look.
        booked: number of jobs in gain and base, fading likewise.
        weight: their work, processor seconds, fading likewise.
        ran: the sum of work times run time, fading likewise; what is left of `base` is their waiting alone.
    """

    in_credit: bool
    since: float
    gain: float
    saved: float
    base: float
    owed: float
    booked: float
    weight: float
    ran: float


def accountable(discipline: Discipline) -> bool:
    """Returns whether an account can be kept under a discipline: those that can lose jobs, and know them again."""
    return bool(scheduler_of(discipline, []).preempts)


class OwnAccount:
    """The account of one site; see the module for what it has to be told.

    Jobs are named by any hashable value that a journal can keep, such as a number or a text.

    Args:
        processors: of the site's machine.
        discipline: of the site, for its shadow.
        rules: how the account is kept.

    Raises:
        ValueError: no account can be kept under that discipline.
    """

    def __init__(self, processors: int, discipline: Discipline, rules: AccountRules) -> None:
        self._processors = processors
        self._discipline = discipline
        self._rules = rules
        self._begin(64)
        self._owed = 0.0

    def _begin(self, capacity: int) -> None:
        rules = self._rules
        self._kernel = OwnAccountKernel(
            self._processors,
            scheduler_of(self._discipline, []),
            rules.every,
            rules.allowed,
            rules.cap,
            rules.memory,
        )
        self._floats = np.full((_COLUMNS, 0), math.nan)
        self._widths = np.zeros(0, np.int32)
        self._names: list[Any] = []
        self._rows: dict[Any, int] = {}
        self._waiting: dict[Any, None] = {}
        self._forgotten: set[int] = set()
        self._room(capacity)

    def _room(self, capacity: int) -> None:
        count = len(self._names)
        floats = np.full((_COLUMNS, capacity), math.nan)
        floats[_RUN] = math.inf
        floats[:, :count] = self._floats[:, :count]
        widths = np.zeros(capacity, np.int32)
        widths[:count] = self._widths[:count]
        self._floats, self._widths = floats, widths
        self._kernel.bind(
            floats[_SUBMIT],
            widths,
            floats[_REQUEST],
            floats[_RUN],
            floats[_START],
            floats[_END],
            floats[_REAL_START],
            floats[_REAL_END],
        )

    def _append(self, job: Any, submit_time: float, processors: int, requested_time: float) -> int:
        row = len(self._names)
        if row == len(self._widths):
            self._room(2 * row)
        self._names.append(job)
        self._rows[job] = row
        self._floats[_SUBMIT, row] = submit_time
        self._floats[_REQUEST, row] = requested_time
        self._widths[row] = processors
        return row

    def _row(self, job: Any) -> int:
        row = self._rows.get(job)
        if row is None:
            raise ValueError(f"job {job!r} is not one of this account's")
        if self._floats[_RUN, row] < math.inf:
            raise ValueError(f"job {job!r} has ended")
        return row

    def submitted(
        self, job: Any, *, submit_time: float, processors: int, requested_time: float
    ) -> None:
        """Notes an own user's job, in order of submission.

        Args:
            job: its name, which no other open job has.
            submit_time: seconds; not before that of the job before it.
            processors: at most the machine's.
            requested_time: seconds, more than 0.

        Raises:
            ValueError: an argument is out of its bounds, or the job is there already.
        """
        if job in self._rows:
            raise ValueError(f"job {job!r} is there already")
        if not 1 <= processors <= self._processors:
            raise ValueError(f"processors is {processors}; this machine has {self._processors}")
        if not (math.isfinite(requested_time) and requested_time > 0):
            raise ValueError(
                f"requested_time is {requested_time}; it must be finite and more than 0"
            )
        last = self._floats[_SUBMIT, len(self._names) - 1] if self._names else -math.inf
        if not (math.isfinite(submit_time) and submit_time >= last):
            raise ValueError(f"submit_time is {submit_time}; the job before it came at {last}")
        self._kernel.submitted(self._append(job, submit_time, processors, requested_time))
        self._waiting[job] = None

    def started(self, job: Any, now: float) -> None:
        """Notes that an own job really runs since `now`, seconds, here or at a partner."""
        self._floats[_REAL_START, self._row(job)] = now
        self._waiting.pop(job, None)

    def returned(self, job: Any) -> None:
        """Notes that an own job was sent home and waits again."""
        self._floats[_REAL_START, self._row(job)] = math.nan
        self._waiting[job] = None

    def ended(self, job: Any, now: float, run_time: float) -> None:
        """Notes that an own job has really ended.

        Args:
            job: its name.
            now: seconds.
            run_time: of the whole job in seconds, more than 0: with what checkpoints have kept of earlier
                starts, and without what was lost with them.
        """
        row = self._row(job)
        if not (math.isfinite(run_time) and run_time > 0):
            raise ValueError(f"run_time is {run_time}; it must be finite and more than 0")
        self._floats[_REAL_START, row] = math.nan
        self._floats[_REAL_END, row] = now
        # In the shadow it would otherwise outlive its request, which no discipline expects.
        self._kernel.ended(row, min(run_time, float(self._floats[_REQUEST, row])))
        self._waiting.pop(job, None)

    def is_open(self, job: Any) -> bool:
        """Returns whether it knows a job, and that has not ended."""
        row = self._rows.get(job)
        return row is not None and not self._floats[_RUN, row] < math.inf

    @property
    def first_arrival(self) -> float:
        """When the first job was submitted, seconds; nan before."""
        return self._kernel.sums["first_arrival"]

    def forgotten(self, job: Any) -> None:
        """Leaves out a job that will never run, such as one that its user has cancelled before its start.

        The shadow is made anew without it, from everything that is open; what has been booked stays.
        """
        self._forgotten.add(self._row(job))
        self._restart()

    def look(self, now: float) -> CreditChange:
        """Looks at the account at a multiple of its period, seconds, and says what has changed."""
        self._kernel.look(now)
        self._owed = self.owed(now)
        change = CreditChange(self._kernel.turn(self._owed, now))
        if len(self._names) == len(self._widths) and self._finished() * 2 > len(self._names):
            self._restart()
        return change

    def owed(self, now: float) -> float:
        """Returns H: what own jobs that wait have lost by `now`, as far as the shadow knows."""
        waiting = np.array(sorted(self._rows[job] for job in self._waiting), np.int32)
        return self._kernel.owed(waiting, now)

    @property
    def late(self) -> int:
        """The number of own jobs that wait and have begun in the shadow.

        There may be more: the shadow goes only so far as it knows run times.
        """
        rows = [self._rows[job] for job in self._waiting]
        return int(np.count_nonzero(~np.isnan(self._floats[_START, rows])))

    @property
    def in_credit(self) -> bool:
        """Whether the site is in credit until the next look; it is before the first."""
        return self._kernel.sums["in_credit"]

    @property
    def rules(self) -> AccountRules:
        """How the account is kept."""
        return self._rules

    @property
    def balance(self) -> Balance:
        """The account as it stands since the last look."""
        sums = self._kernel.sums
        return Balance(
            sums["in_credit"],
            sums["since"],
            sums["gain"],
            sums["saved"],
            sums["base"],
            self._owed,
            sums["booked"],
            sums["weight"],
            sums["ran"],
        )

    def _finished(self) -> int:
        """Number of jobs that have ended really and in the shadow."""
        count = len(self._names)
        clock = self._kernel.sums["clock"]
        with np.errstate(invalid="ignore"):
            done = self._floats[_START, :count] + self._floats[_RUN, :count] <= clock
        return int(np.count_nonzero(done))

    def record(self) -> dict[str, Any]:
        """Returns everything as plain values: numbers, texts, lists; `None` for no time."""
        sums = self._kernel.sums
        jobs = []
        joined = 0
        # Not by its times: one that has run longer than it asked for ends in the past of the shadow, and is booked later.
        running = set(self._kernel.running)
        for row, name in enumerate(self._names):
            submit, request, run, start, _, real_start, real_end = self._floats[:, row].tolist()
            is_over = not math.isnan(start) and row not in running
            if row in self._forgotten or is_over:
                continue
            joined += row < sums["joined"]
            width = int(self._widths[row])
            times = [submit, width, request, run, start, real_start, real_end]
            jobs.append([name, *map(_plain, times), name in self._waiting])
        return {
            "version": VERSION,
            "sums": {name: _plain(value) for name, value in ({**sums, "joined": joined}).items()},
            "owed": self._owed,
            "jobs": jobs,
        }

    @classmethod
    def of_record(
        cls,
        record: Mapping[str, Any],
        processors: int,
        discipline: Discipline,
        rules: AccountRules,
    ) -> "OwnAccount":
        """Returns the account that goes on where `record` was made.

        The machine, its discipline and the rules may have changed since; the shadow goes on with the new ones.

        Raises:
            ValueError: it is no such record.
        """
        account = cls(processors, discipline, rules)
        if record.get("version") != VERSION:
            raise ValueError(f"the record of an account has version {record.get('version')!r}")
        try:
            account._resume(record["sums"], record["jobs"])
            account._owed = float(record["owed"])
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"the record of an account is damaged: {error!r}") from error
        return account

    def _resume(self, sums: Mapping[str, Any], jobs: Iterable[Any]) -> None:
        rows = list(jobs)
        free = self._processors
        for name, submit, width, request, run, start, real_start, real_end, waits in rows:
            row = self._append(name, submit, min(width, self._processors), request)
            free -= min(width, self._processors) if start is not None else 0
            # On a machine that has become smaller not everybody runs any more.
            began = start if free >= 0 else None
            times = [math.inf if run is None else run, began, math.nan, real_start, real_end]
            self._floats[_RUN:, row] = [math.nan if time is None else time for time in times]
            if waits:
                self._waiting[name] = None
        known: Sums = {
            "gain": sums["gain"],
            "saved": sums["saved"],
            "base": sums["base"],
            "booked": sums["booked"],
            "weight": sums["weight"],
            "ran": sums["ran"],
            "work": sums["work"],
            "asked": sums["asked"],
            "in_credit": sums["in_credit"],
            "since": -math.inf if sums["since"] is None else sums["since"],
            "clock": -math.inf if sums["clock"] is None else sums["clock"],
            "joined": sums["joined"],
            "first_arrival": math.nan if sums["first_arrival"] is None else sums["first_arrival"],
        }
        self._kernel.resume(np.arange(len(rows), dtype=np.int32), known, known["clock"])

    def _restart(self) -> None:
        """Leaves behind what has ended: memory is bounded by the jobs that are open."""
        record = self.record()
        self._begin(max(64, 2 * len(record["jobs"])))
        self._resume(record["sums"], record["jobs"])


def _plain(value: Any) -> Any:
    """Returns a value that JSON knows; no moment is `None`."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
