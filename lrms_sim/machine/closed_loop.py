"""Workloads with feedback: a job is submitted after its predecessor has ended and its user has thought.

Fields 17 and 18 of the Standard Workload Format give the predecessor of some jobs and the think
time after its end. Replayed as recorded, such jobs arrive at their original times, however long
their predecessor waits here; `simulate_closed` submits them when their users would have.

Feitelson, "Workload Modeling for Computer Systems Performance Evaluation" (2015), section 8.4.
"""

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from lrms_sim.machine.machine import check_machine, user_numbers
from lrms_sim.machine.stepped import Machine
from lrms_sim.scheduling.disciplines import Discipline, Fcfs
from lrms_sim.scheduling.user_defined import Decides, MachineView
from lrms_sim.workload.groups import known_user_groups
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.preparation import Prepared, predecessors
from lrms_sim.workload.schedule import MachineInfo, Schedule
from lrms_sim.workload.swf_log import SwfLog

PROGRESS_JOBS = 10_000
"""Submissions between two calls of a progress function."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The predecessor's `job_id`, and seconds between its end and the submission, at least 0."""

    job_id: int
    think_time: float


def waits_of(log: SwfLog, prepared: Prepared) -> dict[int, Wait]:
    """Returns the predecessors of a log's jobs, by job id.

    Jobs that name themselves or a job that was not prepared wait for none. An unknown think time is
    0.
    """
    rows, ids = prepared.records, prepared.jobs.job_id
    job_of = dict(zip(rows.tolist(), ids.tolist(), strict=True))
    return {
        job_of[row]: Wait(job_of[before], max(0.0, float(log.think_time[row])))
        for row, before in predecessors(log, rows).items()
    }


def simulate_closed(
    jobs: JobTable,
    processors: int,
    discipline: Discipline | Decides | Callable[[MachineView], object] | None = None,
    *,
    waits: Mapping[int, Wait],
    name: str = "machine",
    progress: Callable[[int], None] | None = None,
) -> Schedule:
    """Replays a workload with feedback on one machine; without any, as `simulate` does.

    The jobs of the schedule have their times and order of submission in this replay.

    Args:
        jobs: the workload, n jobs, none wider than the machine.
        processors: size of the machine.
        discipline: default FCFS; may be written in Python.
        waits: by job id, of the jobs with a predecessor. Those whose predecessor is not in the
            table, or that form a circle, are submitted as the table says.
        name: the machine's name in the schedule.
        progress: called now and then with the number of jobs submitted so far.

    Raises:
        ValueError: as `simulate`.
        TypeError: same.
    """
    check_machine(jobs, processors, name, overruns=True)
    machine = Machine(
        processors,
        cast("Discipline", Fcfs() if discipline is None else discipline),
        overruns=jobs.overruns,
    )
    run = _Run(jobs, machine, _known(jobs, waits))
    done = 0
    while run.step():
        if progress is not None and run.submitted - done >= PROGRESS_JOBS:
            done = run.submitted
            progress(done)
    if run.submitted < len(jobs) or machine.state.jobs_waiting:
        left = len(jobs) - run.submitted + machine.state.jobs_waiting
        raise ValueError(f"the discipline has left {left} jobs waiting on an idle machine")
    return run.schedule(MachineInfo(name, processors))


def _known(jobs: JobTable, waits: Mapping[int, Wait]) -> dict[int, tuple[int, float]]:
    """Returns row and think time of each row's predecessor, without jobs that would wait for ever."""
    row_of = {job_id: row for row, job_id in enumerate(jobs.job_id.tolist())}
    found = {
        row_of[job_id]: (row_of[wait.job_id], wait.think_time)
        for job_id, wait in waits.items()
        if job_id in row_of and wait.job_id in row_of
    }
    ends: set[int] = set()
    for begin in range(len(jobs)):
        way: list[int] = []
        on_it: set[int] = set()
        row = begin
        while row in found and row not in ends and row not in on_it:
            way.append(row)
            on_it.add(row)
            row = found[row][0]
        if row in on_it:
            # The first of a circle in the order of the table begins it.
            del found[min(way[way.index(row) :])]
        ends.update(way)
    return found


class _Run:
    """State of one replay."""

    def __init__(
        self, jobs: JobTable, machine: Machine, before: dict[int, tuple[int, float]]
    ) -> None:
        self.jobs = jobs
        self.machine = machine
        self.submitted = 0
        self._after: dict[int, list[tuple[int, float]]] = {}
        for row, (other, think_time) in before.items():
            self._after.setdefault(other, []).append((row, think_time))
        self._ids = jobs.job_id.tolist()
        self._groups = known_user_groups(jobs).tolist() if machine.needs_groups else None
        self._users = user_numbers(jobs.user).tolist()
        self._rows: list[int] = []
        self._times: list[float] = []
        self._heap = [
            (float(jobs.submit_time[row]), self._ids[row], row)
            for row in range(len(jobs))
            if row not in before
        ]
        heapq.heapify(self._heap)

    def step(self) -> bool:
        """Goes on to the next moment at which something happens; returns whether there was one."""
        moment = self._heap[0][0] if self._heap else math.inf
        event = self.machine.next_event_time
        if moment == event == math.inf:
            return False
        # What is submitted at the moment of an end joins the queue before the pass that follows.
        if moment <= event:
            while self._heap and self._heap[0][0] == moment:
                self._submit(heapq.heappop(self._heap)[2], moment)
        self.machine.advance(min(moment, event))
        for number in self.machine.collect()[0]:
            _, end = self.machine.times_of(number)
            for row, think_time in self._after.get(self._rows[number], ()):
                heapq.heappush(self._heap, (end + think_time, self._ids[row], row))
        return True

    def _submit(self, row: int, moment: float) -> None:
        jobs = self.jobs
        self.machine.submit(
            submit_time=moment,
            processors=jobs.processors.item(row),
            requested_time=jobs.requested_time.item(row),
            run_time=jobs.run_time.item(row),
            group=None if self._groups is None else self._groups[row],
            user=self._users[row],
            job_id=self._ids[row],
        )
        self._rows.append(row)
        self._times.append(moment)
        self.submitted += 1

    def schedule(self, machine: MachineInfo) -> Schedule:
        """Returns what has come of it."""
        rows, times = np.array(self._rows, np.int64), np.array(self._times)
        # A job can be submitted after others of its instant that have larger ids.
        order = np.lexsort((self.jobs.job_id[rows], times))
        rows = rows[order]
        columns = {name: column[rows] for name, column in self.jobs.columns().items()}
        jobs = type(self.jobs)(**columns | {"submit_time": times[order]})
        where = np.zeros(len(jobs), np.int16)
        start, end = self.machine.start_time[order], self.machine.end_time[order]
        notes = self.machine.notes
        return Schedule(jobs, start, end, (machine,), where, where, jobs.job_id, notes)
