"""What own users' jobs waited for at a Slurm with guests, by Slurm's own logs alone.

From slurmctld's log comes which jobs had processors, which waited, and when `guestp` was switched. So it is known
since when nothing was in the way of an own job, and of all that waited before it, but guests that may be ended: from then on
Slurm may take the time of its scheduler and of ending a guest, and no more. Guests are known by their names alone, and
so are markers, with which a job that is elsewhere keeps its place: such a job stands in the queue from the moment on that
it comes back, before all that came later than its marker.
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
    "name": re.compile(r"_update_job: setting name to (\S+) for JobId=(\d+)"),
    "begin": re.compile(r"_update_job: setting begin to (\S+) for JobId=(\d+)"),
}
_AWAY: Final = ":away"
"""Ends the name of a marker."""

_FAR_S: Final = 86_400.0
"""A job that may start only so much later is set aside."""

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
        name: at its end.
        placed: since when it has its place in the queue: when it was released, or submitted without a hold; infinity for
            never.
        stood: when it stood in the queue and could start, in order; the last may be open.
        guest: a partner's.
        preempted_for: number of the job that took its processors; empty for none.
    """

    number: str
    submitted: float
    name: str = ""
    placed: float = math.inf
    stood: list[tuple[float, float]] = field(default_factory=list)
    start: float = math.inf
    end: float = math.inf
    partition: str = ""
    processors: int = 0
    guest: bool = False
    preempted_for: str = ""

    @property
    def eligible(self) -> float:
        """Since when it stood in the queue at last; infinity for never."""
        return self.stood[-1][0] if self.stood else math.inf

    @property
    def came_back(self) -> bool:
        """Whether it stood in the queue again, or for the first time, long after it got its place."""
        return bool(self.stood) and self.stood[-1][0] > self.placed

    def waits(self) -> list[tuple[float, float]]:
        """Returns when it stood in the queue."""
        over = min(self.start, self.end)
        return [(begin, min(end, over)) for begin, end in self.stood if begin < over]


@dataclass(slots=True)
class _Seen:
    # The lines of slurmctld's log about one job.
    job: SeenJob
    lines: list[tuple[str, float, tuple[str, ...]]] = field(default_factory=list)

    def is_marker_at_first(self) -> bool:
        # Whether it was submitted as a marker: that the log does not say. One that came back got another name; one that did
        # not has ended as a marker, and never got any.
        names = [words[0] for kind, _, words in self.lines if kind == "name"]
        return not names[0].endswith(_AWAY) if names else self.job.name.endswith(_AWAY)

    def take(self) -> None:
        # Takes all lines, in order.
        job, aside, held = self.job, self.is_marker_at_first(), math.isinf(self.job.placed)
        if not (aside or held):
            job.stood.append((job.placed, math.inf))
        for kind, moment, words in self.lines:
            if kind == "release":
                job.placed = moment
            elif kind == "begin":
                aside = datetime.fromisoformat(words[0]).timestamp() > moment + _FAR_S
            elif kind == "start":
                job.start = moment
            elif kind == "end":
                job.end = min(job.end, moment)
            elif kind == "preempt":
                job.preempted_for = words[1]
            held = kind == "hold" or (held and kind != "release")
            stands = bool(job.stood) and job.stood[-1][1] == math.inf
            if stands and (held or aside or kind in {"release", "cancel"}):
                job.stood[-1] = (job.stood[-1][0], moment)
                stands = False
            if kind in {"release", "begin"} and not (aside or held or stands):
                job.stood.append((moment, math.inf))


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
    found = _read_log(log)
    ends: dict[int, float] = {}
    for number, name, partition, end, processors, submitted in _COMPLETED.findall(completions):
        sites = _GUEST.match(name)
        moment = datetime.fromisoformat(submitted).timestamp()
        for job in (each.job for each in found):
            if job.number == number and -1.0 <= job.submitted - moment < 2.0:
                job.name, job.partition, job.processors = name, partition, int(processors)
                job.guest = sites is not None and sites[1] != sites[2]
                if end != "Unknown":
                    ends.setdefault(id(job), datetime.fromisoformat(end).timestamp() + 1.0)
    for each in found:
        each.take()
        # The log has ends more exactly, but none of jobs that were cancelled or preempted.
        if each.job.end == math.inf:
            each.job.end = ends.get(id(each.job), math.inf)
    return [each.job for each in found if each.job.processors]


def _read_log(log: str) -> list[_Seen]:
    found: list[_Seen] = []
    latest: dict[str, _Seen] = {}
    for moment, text in _stamped(log):
        for kind, pattern in _LINES.items():
            if (match := pattern.search(text)) is None:
                continue
            words = tuple(word for word in match.groups() if word)
            if kind == "submit":  # after a crash a number may be given away again
                placed = math.inf if words[1] == "0" else moment
                latest[words[0]] = _Seen(SeenJob(words[0], moment, placed=placed))
                found.append(latest[words[0]])
            elif (number := words[-1 if kind in {"name", "begin"} else 0]) in latest:
                latest[number].lines.append((kind, moment, words))
    return found


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
        if any(left < job.start and job.eligible < back + RECOVERED_S for left, back in away):
            counts["left_out_as_the_controller_was_away"] += 1
            continue
        mine = [_Wait(machine, job, *span) for span in machine.unblocked(job)]
        waits.append(max(wait.seconds for wait in mine))
        mine = [wait for wait in mine if wait.guests or wait.ended]
        if mine:
            with_guests.append(max(wait.seconds for wait in mine))
        behind += [wait.second for wait in mine if wait.second and wait.guests]
        problems += [wait.words() for wait in mine if wait.seconds > bound_s + wait.second]
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


class _Wait:
    """How long an own job stood before nothing but guests; `second` of these seconds it was behind others that did, too."""

    def __init__(self, machine: "_Machine", job: SeenJob, begin: float, end: float) -> None:
        self._job = job
        self._starts = end == job.start
        self.seconds = end - begin
        self.guests = [one for one in machine.guests if one.start < end and one.end > begin]
        self.ended = [
            one for one in machine.guests if self._starts and one.preempted_for == job.number
        ]
        self.second = machine.behind_others(job, begin, end)

    def words(self) -> str:
        """Returns what is wrong with it."""
        job = self._job
        names = ", ".join(
            f"{one.number} ({one.partition}, {one.processors})" for one in self.guests
        )
        did = "started" if self._starts else "did not start"
        return (
            f"own job {job.number} ({job.processors} processors) {did} {self.seconds:.1f} s after nothing but guests was "
            f"in its way, {self.second:.1f} s of it behind others for which guests were ended: {names}; {len(self.ended)} "
            "were ended for it"
        )


class _Machine:
    """A cluster over time: `own` are others' jobs than guests, by their places in the queue.

    `never_started` counts guests that could have, and were cancelled.
    """

    def __init__(
        self, jobs: Sequence[SeenJob], protected: Sequence[tuple[float, float]], processors: int
    ) -> None:
        own = [job for job in jobs if not job.guest and job.stood]
        self.own = sorted(own, key=lambda job: job.placed)
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

    def behind_others(self, job: SeenJob, since: float, until: float) -> float:
        """Returns for how long in a span a job was behind others for which guests were ended, seconds."""
        before = self.own[: self.own.index(job)]
        spans = [span for one in before if one.number in self._preempting for span in one.waits()]
        seconds, reached = 0.0, since
        for first, last in sorted(spans):
            begin, end = max(first, reached), min(last, until)
            if begin < end:
                seconds, reached = seconds + end - begin, end
        return seconds

    def unblocked(self, job: SeenJob) -> list[tuple[float, float]]:
        """Returns when there was room for a job and all that waited before it, up to its start, which is in the last span."""
        before = self.own[: self.own.index(job)]
        spans = [(*span, one.processors) for one in before for span in one.waits()]
        changes: defaultdict[float, int] = defaultdict(int)
        for first, last, width in (*self._kept, *spans):
            begin, end = max(first, job.eligible), min(last, job.start)
            if begin < end:
                changes[begin] += width
                changes[end] -= width
        found, since, used = list[tuple[float, float]](), job.eligible, 0
        free = True
        for moment in sorted(changes):
            if moment >= job.start:
                break
            used += changes[moment]
            fits = used + job.processors <= self._processors
            if fits and not free:
                since = moment
            elif free and not fits and moment > since:
                found.append((since, moment))
            free = fits
        return [*found, (since if free else job.start, job.start)]
