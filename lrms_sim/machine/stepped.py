"""One batch machine, driven step by step: jobs come while it runs, and its owner looks at it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from lrms_sim.kernel._easy_plus_plus import EasyPlusPlusScheduler
from lrms_sim.kernel._kernel import MachineKernel
from lrms_sim.kernel._strategies import StrategyScheduler
from lrms_sim.machine.machine import check_machine, notes_of
from lrms_sim.scheduling.disciplines import Discipline, Fcfs, scheduler_of
from lrms_sim.workload.groups import GROUPS
from lrms_sim.workload.jobs import JOBS_MAX, JobTable

USERS_MAX: Final = 2**24

SUBMITTED: Final = np.dtype(
    [
        ("processors", np.int64),
        ("requested_time", np.float64),
        ("run_time", np.float64),
        ("group", np.int64),
        ("waiting_since", np.float64),
    ]
)
"""A job of a batch; the fields are the arguments of `Machine.submit`."""

History = tuple[float, float] | tuple[tuple[int, float, float], ...]
"""What a discipline remembers of ended jobs: two sums (rules), or rows by user (EASY++)."""


@dataclass(frozen=True, slots=True)
class MachineState:
    """State of a machine.

    Attributes:
        now: the clock, seconds; minus infinity before the first event.
        processors_free: processors not held by a job; with a pass per event a job whose
            estimated end has come holds none.
        processors_waiting: waiting parallelism, the sum of the waiting jobs' processors.
    """

    now: float
    processors: int
    processors_free: int
    processors_waiting: int
    jobs_running: int
    jobs_waiting: int


class Machine:
    """A machine driven step by step: submit, advance, query, collect; the default is FCFS.

    Submissions at one instant form one batch: they join the queue as they come and the pass over it
    is made when the clock is advanced, to that instant or beyond. The schedule is that of
    `simulate`.

    Args:
        processors: its size.
        discipline: default FCFS.
        overruns: jobs may run for longer than they have requested. Then none can start past the queue.
    """

    def __init__(
        self, processors: int, discipline: Discipline | None = None, *, overruns: bool = False
    ) -> None:
        check_machine(JobTable.empty(), processors, "machine")
        self._processors = processors
        self._job_ids: list[int] = []
        scheduler = scheduler_of(Fcfs() if discipline is None else discipline, self._job_ids)
        self._scheduler = scheduler
        self._kernel = MachineKernel(processors, scheduler)
        self._kernel.keep_log()
        self._overruns = overruns
        self._count = 0
        self._float_columns = np.zeros((6 if overruns else 5, 0))
        self._width_column = np.zeros(0, np.int32)
        self._group_column = np.zeros(0, np.int8)
        self._user_column = np.zeros(0, np.int32)
        self._rank_column = np.zeros(0, np.int32)
        self._room(64)

    def _room(self, capacity: int) -> None:
        floats = np.full((len(self._float_columns), capacity), math.nan)
        floats[:, : self._count] = self._float_columns[:, : self._count]
        widths = np.zeros(capacity, np.int32)
        widths[: self._count] = self._width_column[: self._count]
        groups = np.full(capacity, GROUPS[-1], np.int8)
        groups[: self._count] = self._group_column[: self._count]
        users = np.full(capacity, -1, np.int32)
        users[: self._count] = self._user_column[: self._count]
        ranks = np.zeros(capacity, np.int32)
        ranks[: self._count] = self._rank_column[: self._count]
        self._float_columns = floats
        self._width_column = widths
        self._group_column = groups
        self._user_column = users
        self._rank_column = ranks
        submit, request, run, start, end = floats[:5]
        self._submit_column, self._request_column, self._run_column = submit, request, run
        self._start_column, self._end_column = start, end
        self._kernel.bind(
            submit,
            widths,
            request,
            run,
            start,
            end,
            groups,
            users,
            ranks,
            floats[5] if self._overruns else None,
        )

    def submit(
        self,
        *,
        submit_time: float,
        processors: int,
        requested_time: float,
        run_time: float,
        group: int | None = None,
        user: int = -1,
        waiting_since: float | None = None,
        job_id: int | None = None,
        rank: int | None = None,
    ) -> int:
        """Puts a job into the queue at `submit_time` and returns its number, 0, 1, 2, … in order.

        Everything before that instant happens first. The pass is made by `advance`.

        Args:
            submit_time: seconds, not before the clock.
            processors: at most the machine's.
            requested_time: seconds, more than 0, and at least `run_time` unless the machine has overruns.
            run_time: seconds, more than 0; hidden from the discipline.
            group: of the job's user, 1 to 5; used by some disciplines only.
            user: number of the user, -1 for unknown; used by EASY++ only.
            waiting_since: seconds, for a job that came from another machine; default `submit_time`.
            job_id: in its log, for disciplines written in Python; default its number.
            rank: of jobs that end at one moment the least ends first; default its number.

        Raises:
            ValueError: an argument is out of its bounds.
        """
        since = submit_time if waiting_since is None else min(waiting_since, submit_time)
        job = self._new_job(
            submit_time,
            since,
            processors,
            requested_time=requested_time,
            run_time=run_time,
            group=group,
            user=user,
            job_id=job_id,
            rank=rank,
        )
        self._kernel.enqueue(job, submit_time)
        return job

    def _check_times(self, moment: float, requested_time: float, run_time: float) -> None:
        if not (math.isfinite(run_time) and run_time > 0):
            raise ValueError(f"run_time is {run_time}; it must be finite and more than 0")
        least = math.ulp(moment) if self._overruns else run_time
        if not (math.isfinite(requested_time) and requested_time >= least and requested_time > 0):
            raise ValueError(
                f"requested_time is {requested_time}; it must be finite and "
                + ("more than 0" if self._overruns else f"at least the run_time, {run_time}")
            )

    def _new_job(
        self,
        moment: float,
        since: float,
        processors: int,
        *,
        requested_time: float,
        run_time: float,
        group: int | None,
        user: int,
        job_id: int | None = None,
        rank: int | None = None,
    ) -> int:
        # A row of the columns for a job that comes at a moment.
        if not (math.isfinite(moment) and moment >= self._kernel.now):
            raise ValueError(f"submit_time is {moment}; the clock already shows {self._kernel.now}")
        if not 1 <= processors <= self._processors:
            raise ValueError(f"processors is {processors}; this machine has {self._processors}")
        self._check_times(moment, requested_time, run_time)
        if group is None and self._scheduler.needs_groups:
            raise ValueError("this discipline needs the user group of every job")
        if group is not None and group not in GROUPS:
            raise ValueError(f"group is {group}; it must be in {GROUPS[0]}..{GROUPS[-1]}")
        if not -1 <= user < USERS_MAX:
            raise ValueError(f"user is {user}; it must be from -1 to {USERS_MAX - 1}")
        job = self._count
        if job == JOBS_MAX:
            raise ValueError(f"this machine has taken {job} jobs, the most one can")
        if job == len(self._width_column):
            self._room(2 * job)
        # One by one: to make an array of three numbers first takes longer.
        self._submit_column[job] = since
        self._request_column[job] = requested_time
        self._run_column[job] = run_time
        if self._overruns:
            self._float_columns[5, job] = requested_time
        self._width_column[job] = processors
        self._group_column[job] = GROUPS[-1] if group is None else group
        self._user_column[job] = user
        self._rank_column[job] = job if rank is None else rank
        self._job_ids.append(job if job_id is None else job_id)
        self._count += 1
        return job

    def take_back(
        self, job: Mapping[str, Any], behind: Sequence[int], *, submit_time: float
    ) -> tuple[int, list[int]]:
        """Puts a job into the queue before others, which waited for a shorter time than it.

        The pass is pending then.

        Args:
            job: the arguments of `submit` but `submit_time`.
            behind: numbers of all waiting jobs that shall stand behind it, in their order.
            submit_time: when it comes, seconds, not before the clock.

        Returns:
            Its number, and the new numbers of the others.

        Raises:
            ValueError: an argument is out of its bounds, or one of the others does not wait.
        """
        said = {"group": None, "user": -1, **job}
        since = min(said.pop("waiting_since", submit_time), submit_time)
        # It is looked at before anything changes: who is refused leaves all others where they are.
        mine = self._new_job(submit_time, since, said.pop("processors"), **said)
        for number in behind:
            if not self.withdraw(number, pass_later=True):
                raise ValueError(f"job {number} does not wait")
        self._kernel.enqueue(mine, submit_time)
        numbers = [
            self.submit(
                submit_time=submit_time,
                processors=int(self._width_column[number]),
                requested_time=float(self._request_column[number]),
                run_time=float(self._run_column[number]),
                group=int(self._group_column[number]),
                user=int(self._user_column[number]),
                waiting_since=float(self._submit_column[number]),
                job_id=self._job_ids[number],
                rank=int(self._rank_column[number]),
            )
            for number in behind
        ]
        return mine, numbers

    def start_guest(
        self,
        *,
        now: float,
        processors: int,
        requested_time: float,
        run_time: float,
        seen: bool,
        rank: int | None = None,
    ) -> int:
        """Starts a job at once, past the queue, on processors that nobody uses; returns its number.

        No pass follows. One that is not `seen` holds processors that the discipline takes for free, and loses them
        to jobs of the queue (`preempted`).

        Args:
            now: seconds, not before the clock.
            processors: at most those that are idle.
            requested_time: seconds, at least `run_time`.
            run_time: seconds, more than 0.
            seen: the discipline knows of it.
            rank: of jobs that start at one moment the greatest loses its processors first; default its number.

        Raises:
            ValueError: an argument is out of its bounds, or too few processors are idle.
        """
        return self._starts(
            now,
            now,
            processors,
            requested_time=requested_time,
            run_time=run_time,
            rank=rank,
            seen=seen,
        )

    def resume(
        self,
        *,
        now: float,
        start_time: float,
        processors: int,
        requested_time: float,
        run_time: float,
        seen: bool = True,
        rank: int | None = None,
    ) -> int:
        """Has a job run that has started on a machine before this one, as `start_guest`, since `start_time`, seconds."""
        return self._starts(
            now,
            start_time,
            processors,
            requested_time=requested_time,
            run_time=run_time,
            rank=rank,
            seen=seen,
        )

    def _starts(
        self,
        now: float,
        start_time: float,
        processors: int,
        *,
        requested_time: float,
        run_time: float,
        rank: int | None,
        seen: bool,
    ) -> int:
        if not self.preempts:
            raise ValueError("under this discipline no job starts past the queue")
        if processors > self.idle:
            raise ValueError(f"processors is {processors}; {self.idle} are idle")
        job = self._new_job(
            now,
            start_time,
            processors,
            requested_time=requested_time,
            run_time=run_time,
            group=None,
            user=-1,
            rank=rank,
        )
        self._kernel.resume(job, start_time, now)
        if not seen:
            self._kernel.hide(job, False)
        return job

    def hide(self, job: int) -> None:
        """Has the discipline see a running job no more; the pass is pending then."""
        if self._overruns:
            raise ValueError("where jobs outlive their requests the discipline sees all of them")
        self._kernel.hide(job, True)

    def show(self, job: int) -> None:
        """Has the discipline see such a job again; no pass follows."""
        self._kernel.show(job)

    def preempted(self) -> list[int]:
        """Returns the jobs that have lost their processors to others since the last call, in the order of that.

        The discipline does not know that these ran. `times_of` has that moment as their end.
        """
        return self._kernel.drain_preempted()

    @property
    def preempts(self) -> bool:
        """Whether the discipline can have jobs lose their processors."""
        return bool(self._scheduler.preempts) and not self._overruns

    @property
    def idle(self) -> int:
        """Processors that nobody at all uses."""
        return self._kernel.idle

    def submit_all(self, submit_time: float, jobs: npt.NDArray[np.void]) -> int:
        """Submits jobs of unknown users at one time, in order; returns the number of the first.

        `jobs` has shape (n,) and type `SUBMITTED`, whose fields are the arguments of `submit`.

        Raises:
            ValueError: something is out of its bounds. No job has been submitted.
        """
        first = self._count
        behind = first + len(jobs)
        processors, group = jobs["processors"], jobs["group"]
        requested_time, run_time = jobs["requested_time"], jobs["run_time"]
        fit = (processors >= 1) & (processors <= self._processors)
        least = math.ulp(submit_time) if self._overruns else run_time
        fit &= (run_time > 0) & (requested_time >= least) & (requested_time > 0)
        fit &= np.isfinite(requested_time) & np.isfinite(run_time)
        fit &= (group >= GROUPS[0]) & (group <= GROUPS[-1])
        if not (
            math.isfinite(submit_time)
            and submit_time >= self._kernel.now
            and behind <= JOBS_MAX
            and bool(fit.all())
        ):
            raise ValueError("one of these jobs is out of its bounds; `submit` says which")
        if behind > len(self._width_column):
            self._room(max(behind, 2 * first))
        rows = slice(first, behind)
        self._submit_column[rows] = np.minimum(jobs["waiting_since"], submit_time)
        self._request_column[rows] = requested_time
        self._run_column[rows] = run_time
        if self._overruns:
            self._float_columns[5, rows] = requested_time
        self._width_column[rows] = processors
        self._group_column[rows] = group
        self._rank_column[rows] = np.arange(first, behind, dtype=np.int32)
        self._job_ids.extend(range(first, behind))
        self._count = behind
        for job in range(first, behind):
            self._kernel.enqueue(job, submit_time)
        return first

    def advance(self, to: float, *, inclusive: bool = True) -> None:
        """Advances the clock and does everything due up to and including that time.

        Args:
            to: seconds, not before the clock; infinity runs until the machine is empty.
            inclusive: False leaves what is due at that very time, for a machine with passes per
                event that is about to take submissions of that time. Jobs whose estimated end has
                come by then count as gone on such a machine.

        Raises:
            ValueError: the time is past, or not a number.
        """
        if not to >= self._kernel.now:
            raise ValueError(f"cannot advance to {to}; the clock already shows {self._kernel.now}")
        self._kernel.advance(to, inclusive)

    def starts_now(self, *, processors: int, requested_time: float) -> bool:
        """Returns whether such a job, submitted now, would start now.

        The queue discipline decides, for a job behind the waiting ones; docs/disciplines.md says
        which disciplines may say no too often. A pending pass is made first, so that submissions
        before and after the question share none. `requested_time` is in seconds, more than 0.

        Raises:
            ValueError: an argument is out of its bounds.
        """
        if not 1 <= processors <= self._processors:
            raise ValueError(f"processors is {processors}; this machine has {self._processors}")
        if not (math.isfinite(requested_time) and requested_time > 0):
            raise ValueError(
                f"requested_time is {requested_time}; it must be finite and more than 0"
            )
        return self._kernel.starts_now(processors, requested_time)

    def make_pass(self) -> None:
        """Makes the pass that is left to be made at this moment, if one is."""
        self._kernel.make_pass()

    def withdraw(self, job: int, *, pass_later: bool = False) -> bool:
        """Takes a waiting job out of the queue, as if it had not come; returns whether it was waiting.

        The pass that follows is pending, as after a submission. With a pass per event it is made at
        once, unless `pass_later` leaves it to `make_pass`, for more withdrawals at this time.

        Raises:
            ValueError: there is no such job.
        """
        if not 0 <= job < self._count:
            raise ValueError(f"job is {job}; this machine has taken {self._count} jobs")
        return self._kernel.withdraw(job, pass_later)

    def collect(self) -> tuple[list[int], list[int]]:
        """Returns the jobs that started and the jobs that ended since the last call.

        Starts are in the order in which they were made, ends in the order (end time, job); with a
        pass per event, jobs that end together are in the order of their starts.
        """
        return self._kernel.drain_log()

    @property
    def needs_groups(self) -> bool:
        """Whether the discipline needs the user group of every job."""
        return self._scheduler.needs_groups

    @property
    def history(self) -> History | None:
        """What the discipline remembers of jobs that have ended; None for nothing."""
        scheduler = self._scheduler
        if isinstance(scheduler, StrategyScheduler | EasyPlusPlusScheduler):
            return scheduler.history
        return None

    def remember(self, history: History | None) -> None:
        """Takes over the `history` of a previous machine with the same discipline."""
        known: Any = history
        if history is None:
            return
        if isinstance(self._scheduler, StrategyScheduler):
            self._scheduler.remember(*known)
        elif isinstance(self._scheduler, EasyPlusPlusScheduler):
            self._scheduler.remember(known)

    @property
    def notes(self) -> object:
        """What a discipline written in Python has noted so far: the result of its `notes()`; else `None`."""
        return notes_of(self._scheduler)

    @property
    def now(self) -> float:
        """The machine's clock, seconds."""
        return self._kernel.now

    @property
    def state(self) -> MachineState:
        """The machine as it stands now."""
        kernel = self._kernel
        return MachineState(
            now=kernel.now,
            processors=self._processors,
            processors_free=kernel.processors_free,
            processors_waiting=kernel.processors_waiting,
            jobs_running=kernel.jobs_running,
            jobs_waiting=kernel.jobs_waiting,
        )

    def times_of(self, job: int) -> tuple[float, float]:
        """Returns start and end of one job, seconds; nan while it waits.

        Raises:
            ValueError: there is no such job.
        """
        if not 0 <= job < self._count:
            raise ValueError(f"job is {job}; this machine has taken {self._count} jobs")
        return self._start_column.item(job), self._end_column.item(job)

    @property
    def next_event_time(self) -> float:
        """When the machine next does something by itself, seconds; infinity for never."""
        return self._kernel.next_event_time

    @property
    def start_time(self) -> npt.NDArray[np.float64]:
        """Start of each job so far, seconds, by job; nan while it waits. A copy."""
        return self._float_columns[3, : self._count].copy()

    @property
    def end_time(self) -> npt.NDArray[np.float64]:
        """End of each job that has started, seconds, by job; nan while it waits. A copy.

        For running jobs it is known to the simulation only.
        """
        return self._float_columns[4, : self._count].copy()
