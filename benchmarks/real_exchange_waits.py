"""What own users' jobs waited for at a Slurm with guests, by Slurm's own logs alone.

From slurmctld's log comes which jobs had processors, which waited, and when `guestp` was switched. So it is known
since when nothing was in the way of an own job, and of all that waited before it, but guests that may be ended: from then on
Slurm may take the time of its scheduler and of ending a guest, and no more. Guests are known by their names alone.
"""

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

RECOVERED_S: Final = 10.0
"""Waits until so long after a controller's return are its own."""

_STAMP: Final = re.compile(r"\[(\S+)\] (.*)")
_LINES: Final = {
    "submit": re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) InitPrio=(\d+) "),
    "release": re.compile(r"sched: _release_job_rec: release hold on JobId=(\d+) "),
    "hold": re.compile(r"sched: _hold_job_rec: hold on JobId=(\d+) "),
    "start": re.compile(r"sched: Allocate JobId=(\d+) |_start_job: Started JobId=(\d+) in "),
    "end": re.compile(r"_job_complete: JobId=(\d+) done"),
    "preempt": re.compile(
        r"preempted JobId=(\d+) has been killed to reclaim resources for JobId=(\d+)"
    ),
    "cancel": re.compile(r"REQUEST_KILL_JOB JobId=(\d+) uid"),
}
_SWITCHED: Final = re.compile(
    r"setting preempt_mode to (\S+) for partition guestp|slurmctld version \S+ started"
)
_COMPLETED: Final = re.compile(
    r"JobId=(\d+) .* Name=(\S+) JobState=\S+ Partition=(\S+) .* EndTime=(\S+) .* ProcCnt=(\d+) .* SubmitTime=(\S+) "
)
_GUEST: Final = re.compile(r"hanse:([^:]+):([^/]+)/")
"""Begins the name of a daemon's job: the site, and the job's home."""


@dataclass(slots=True)
class SeenJob:
    """A job in Slurm's logs; times are seconds since 1970.

    Attributes:
        eligible: when it was released, or submitted without a hold; infinity for never.
        left_queue: when it was held or cancelled before its start.
        guest: a partner's.
        preempted_for: number of the job that took its processors; empty for none.
    """

    number: str
    submitted: float
    eligible: float = math.inf
    start: float = math.inf
    end: float = math.inf
    left_queue: float = math.inf
    partition: str = ""
    processors: int = 0
    guest: bool = False
    preempted_for: str = ""

    @property
    def waited_until(self) -> float:
        """When it no longer stood in the queue."""
        return min(self.left_queue, self.start, self.end)

    def note(self, kind: str, moment: float, words: tuple[str, ...]) -> None:
        """Takes a line of slurmctld's log."""
        if kind == "release":
            self.eligible, self.left_queue = moment, math.inf
        elif kind == "hold":
            self.left_queue = moment
        elif kind == "start":
            self.start = moment
        elif kind == "end":
            self.end = min(self.end, moment)
        elif kind == "preempt":
            self.preempted_for = words[1]
        elif kind == "cancel":
            self.left_queue = min(self.left_queue, moment)


@dataclass(slots=True)
class Waits:
    """What is wrong, in words, and figures."""

    problems: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)


def _stamped(log: str) -> Iterator[tuple[float, str]]:
    for line in log.splitlines():
        found = _STAMP.match(line)
        if found is not None:
            yield datetime.fromisoformat(found[1]).timestamp(), found[2]


def read_jobs(log: str, completions: str) -> list[SeenJob]:
    """Returns all jobs in slurmctld's log, with what jobcomp/filetxt knows of them; without that no processors."""
    found: list[SeenJob] = []
    latest: dict[str, SeenJob] = {}
    for moment, text in _stamped(log):
        for kind, pattern in _LINES.items():
            if (match := pattern.search(text)) is None:
                continue
            words = tuple(word for word in match.groups() if word)
            if kind == "submit":  # after a crash a number may be given away again
                job = SeenJob(words[0], moment, math.inf if words[1] == "0" else moment)
                latest[words[0]] = job
                found.append(job)
            elif words[0] in latest:
                latest[words[0]].note(kind, moment, words)
    for number, name, partition, end, processors, submitted in _COMPLETED.findall(completions):
        sites = _GUEST.match(name)
        moment = datetime.fromisoformat(submitted).timestamp()
        for job in found:
            if job.number == number and -1.0 <= job.submitted - moment < 2.0:
                job.partition, job.processors = partition, int(processors)
                job.guest = sites is not None and sites[1] != sites[2]
                # The log has ends more exactly, but none of jobs that were cancelled or preempted.
                if job.end == math.inf and end != "Unknown":
                    job.end = datetime.fromisoformat(end).timestamp() + 1.0
    return [job for job in found if job.processors]


def protected_spans(log: str) -> list[tuple[float, float]]:
    """Returns when `guestp` was OFF; a controller that begins has it as slurm.conf says, CANCEL."""
    found: list[tuple[float, float]] = []
    since = math.inf
    for moment, text in _stamped(log):
        switched = _SWITCHED.search(text)
        if switched is None:
            continue
        if switched[1] == "OFF":
            since = min(since, moment)
        elif since < math.inf:
            found.append((since, moment))
            since = math.inf
    return [*found, (since, math.inf)] if since < math.inf else found


def judge_waits(
    log: str,
    completions: str,
    *,
    processors: int,
    bound_s: float,
    away: Sequence[tuple[float, float]] = (),
) -> Waits:
    """Judges how long own jobs stood before processors that nothing had but guests that may be ended.

    Slurm takes waiting jobs in order: while it ends a guest for an own job, it ends none for own jobs behind that one. So
    such a one may wait for that time, too, and then for a guest of its own.

    Args:
        log: of slurmctld, from its begin.
        completions: of jobcomp/filetxt.
        processors: of the cluster.
        bound_s: so long Slurm may take to end a guest and to start the own job, seconds.
        away: when the controller did not answer; jobs that waited then are left out.
    """
    machine = _Machine(read_jobs(log, completions), protected_spans(log), processors)
    problems: list[str] = []
    waits, with_guests, behind, counts = [], [], list[float](), Counter[str]()
    for job in machine.own:
        if job.start == math.inf:
            continue
        since = machine.unblocked_since(job)
        if any(left < job.start and job.eligible < back + RECOVERED_S for left, back in away):
            counts["left_out_as_the_controller_was_away"] += 1
            continue
        wait = job.start - since
        waits.append(wait)
        there = [one for one in machine.guests if one.start < job.start and one.end > since]
        ended = [one for one in machine.guests if one.preempted_for == job.number]
        if there or ended:
            with_guests.append(wait)
        second = machine.behind_others(job, since)
        if second and there:
            behind.append(second)
        if wait > bound_s + second and (there or ended):
            names = ", ".join(f"{one.number} ({one.partition}, {one.processors})" for one in there)
            problems.append(
                f"own job {job.number} ({job.processors} processors) started {wait:.1f} s after nothing but guests was "
                f"in its way, {second:.1f} s of it behind others for which guests were ended: {names}; {len(ended)} were "
                "ended for it"
            )
    return Waits(
        problems,
        {
            "own_started": len(waits),
            "wait_s": spread(waits),
            "own_with_guests_there": len(with_guests),
            "wait_with_guests_there_s": spread(with_guests),
            "of_these_behind_own_jobs_with_guests_in_the_way_s": spread(behind),
            "guests_started": len(machine.guests),
            "guests_waited_s": spread([one.start - one.eligible for one in machine.guests]),
            "guests_never_started": machine.never_started,
            "guests_ended_for_own_jobs": sum(bool(one.preempted_for) for one in machine.guests),
            **counts,
        },
    )


def spread(values: Sequence[float]) -> dict[str, float]:
    """Returns median, 99th percentile and maximum; nothing of none."""
    if not values:
        return {}
    ordered = sorted(values)
    rank = math.ceil(0.99 * len(ordered)) - 1
    found = {"median": statistics.median(ordered), "p99": ordered[rank], "max": ordered[-1]}
    return {name: round(value, 2) for name, value in found.items()}


class _Machine:
    """A cluster over time: `own` are others' jobs than guests, by the moment from which they could start.

    `never_started` counts guests that could have, and were cancelled.
    """

    def __init__(
        self, jobs: Sequence[SeenJob], protected: Sequence[tuple[float, float]], processors: int
    ) -> None:
        own = [job for job in jobs if not job.guest and job.eligible < math.inf]
        self.own = sorted(own, key=lambda job: job.eligible)
        self.guests = [job for job in jobs if job.guest and job.start < math.inf]
        self.never_started = sum(
            job.guest and job.start == math.inf and job.eligible < math.inf for job in jobs
        )
        self._preempting = {one.preempted_for for one in self.guests}
        self._processors = processors
        # What own jobs have to wait for: own jobs that run, and guests that are not to be ended.
        self._kept = [(job.start, job.end, job.processors) for job in self.own]
        for guest in self.guests:
            if guest.partition == "guestp":  # else each may be ended
                for begin, end in protected:
                    span = max(begin, guest.start), min(end, guest.end)
                    self._kept.append((*span, guest.processors))

    def behind_others(self, job: SeenJob, since: float) -> float:
        """Returns for how long from a moment to its start a job was behind others for which guests were ended, seconds."""
        before = self.own[: self.own.index(job)]
        spans = [
            (one.eligible, one.waited_until) for one in before if one.number in self._preempting
        ]
        seconds, reached = 0.0, since
        for first, last in sorted(spans):
            begin, end = max(first, reached), min(last, job.start)
            if begin < end:
                seconds, reached = seconds + end - begin, end
        return seconds

    def unblocked_since(self, job: SeenJob) -> float:
        """Returns since when there was room for a job and all that waited before it, until its start."""
        before = self.own[: self.own.index(job)]
        spans = [(one.eligible, one.waited_until, one.processors) for one in before]
        changes: defaultdict[float, int] = defaultdict(int)
        for first, last, width in (*self._kept, *spans):
            begin, end = max(first, job.eligible), min(last, job.start)
            if begin < end:
                changes[begin] += width
                changes[end] -= width
        since, used, free = job.eligible, 0, True
        for moment in sorted(changes):
            if moment >= job.start:
                break
            used += changes[moment]
            fits = used + job.processors <= self._processors
            if fits and not free:
                since = moment
            free = fits
        return since if free else job.start
