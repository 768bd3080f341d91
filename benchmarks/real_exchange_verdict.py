"""Judges real jobs that were exchanged, ended for others and run again: by their own notes, and by journals.

Nothing of the daemons' code decides here but what reads their journals. A job notes its start, each step with what it
has computed by then, and its end; so its notes say where each of its runs was, from when to when, from which step on,
and whether two ran at a time. What own jobs waited for, Slurm's logs say
(`real_exchange_waits`).
"""

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from benchmarks.real_exchange_waits import spread
from grms.client import Job, Outcome
from grms.site.model.jobs import GuestRef
from grms.site.model.lifecycle import Outcome as Ending
from grms.site.model.records import (
    AccountLooked,
    GuestProtected,
    JobEnded,
    JobOffered,
    JobReceived,
    JobReoffered,
    JobSentHome,
    Record,
    StateMissed,
)
from grms.site.runtime.journal import Journal

_SLURM_NAME: Final = re.compile(r"hanse:([^:]+):([^/]+)/[^/]+/(\d+)(?:/\d+)?(?::away)?")

LATE_S: Final = 60.0
"""An own job that starts by so much later than without exchange has to be explained."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A job as it is to be submitted.

    Attributes:
        native: by `sbatch`, past all daemons.
        submit: seconds since the first moment.
        steps: seconds that it computes.
        keeps: it writes its state, and goes on from it.
        deaf: it ignores SIGTERM.
    """

    name: str
    site: str
    native: bool
    submit: float
    processors: int
    steps: int
    limit_s: float
    keeps: bool
    deaf: bool


@dataclass(frozen=True, slots=True)
class Told:
    """What a job's user is shown after its end, and the result that they get."""

    job: Job
    result: str


@dataclass(slots=True)
class Run:
    """A run of a job, by its notes; `last` is the time of its last note, `at` the steps that it began with and has reached."""

    folder: Path
    number: str
    start: float
    restarts: int
    began_at: int
    at: int
    last: float
    ended: bool = False

    @property
    def place(self) -> str:
        """The site."""
        return self.folder.parent.name.removeprefix("jobs-")


@dataclass(slots=True)
class Ran:
    """A job as it ran: `submitted` in seconds since 1970, `runs` by their starts."""

    wanted: Wanted
    submitted: float
    runs: list[Run]
    sent_home: int = 0
    completed: bool = False


@dataclass(slots=True)
class Verdict:
    """What is wrong, in words, and counts."""

    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def computed(steps: int) -> int:
    """Returns what a job has computed after so many steps."""
    value = 1
    for _ in range(steps):
        value = (value * 1103515245 + 12345) % 2147483648
    return value


def read_runs(path: Path) -> tuple[list[Run], list[str]]:
    """Returns the runs of a job by their starts, and what is wrong with its notes."""
    found: dict[tuple[str, str], list[Run]] = defaultdict(list)
    problems = []
    for line in path.read_text().splitlines() if path.exists() else ():
        words = line.split()
        if len(words) != 7:
            problems.append(f"has noted {line!r}")
            continue
        kind, folder, number, moment, restarts, at, value = words
        if int(value) != computed(int(at)):
            problems.append(f"has computed {value} in {at} steps")
        mine = found[folder, number]
        if kind == "start":
            mine.append(
                Run(
                    Path(folder),
                    number,
                    float(moment),
                    int(restarts),
                    int(at),
                    int(at),
                    float(moment),
                )
            )
            continue
        mine[-1].at, mine[-1].last, mine[-1].ended = int(at), float(moment), kind == "end"
    return sorted(
        (run for runs in found.values() for run in runs), key=lambda run: run.start
    ), problems


def judge_jobs(
    wanted: Iterable[Wanted],
    told: Mapping[str, Told],
    notes: Path,
    submitted: Mapping[str, float],
    *,
    lost_natives: bool,
) -> tuple[dict[str, Ran], Verdict]:
    """Judges each job by its notes and by what its user was told.

    With `lost_natives` jobs past the daemons may have been forgotten by a controller that died, and any job may have been
    killed by one.
    """
    ran, verdict = {}, Verdict()
    for job in wanted:
        path = notes / job.name
        if job.native:
            text = path.read_text().split() if path.exists() else []
            runs = [
                Run(Path(), "", float(each), 0, 0, job.steps, float(each) + job.steps)
                for each in text
            ]
            ran[job.name] = Ran(job, submitted[job.name], runs, completed=bool(runs))
            verdict.counts["natives_ran"] += bool(runs)
            if not runs and not lost_natives:
                verdict.problems.append(f"{job.name} never ran")
            continue
        runs, problems = read_runs(path)
        if job.name not in told:
            verdict.problems.append(f"{job.name} is not known any more")
            continue
        known = told[job.name]
        mine = Ran(job, submitted[job.name], runs, sum(one.times for one in known.job.sent_home))
        ran[job.name] = mine
        problems += _judge_job(mine, known, verdict.counts, may_be_killed=lost_natives)
        verdict.problems += [f"{job.name} {text}" for text in problems]
    return ran, verdict


def _judge_job(ran: Ran, told: Told, counts: Counter[str], *, may_be_killed: bool) -> Iterator[str]:
    job, runs = told.job, ran.runs
    if not job.has_ended:
        yield f"is {job.state.value}: {job.reason or job.stuck}"
        return
    assert job.outcome is not None
    counts[f"said_{job.outcome.value}"] += 1
    counts["sent_home"] += ran.sent_home
    counts["jobs_sent_home"] += ran.sent_home > 0
    ends = sum(run.ended for run in runs)
    ran.completed = job.outcome is Outcome.COMPLETED
    if ran.completed:
        if not runs or not runs[-1].ended:
            yield f"is completed, and has come to its end {ends} times in {len(runs)} runs"
        # A program that ignores SIGTERM may come to its end before SIGKILL: Slurm says preempted all the same.
        counts["came_to_their_ends_while_they_were_ended"] += max(0, ends - 1)
        right = f"{ran.wanted.steps} {computed(ran.wanted.steps)}\n"
        if told.result != right:
            yield f"has the result {told.result!r}; {right!r} is right"
        if runs and job.executed_on != runs[-1].place:
            yield f"is said to have run at {job.executed_on}, and ran at {runs[-1].place}"
        counts["elsewhere"] += bool(runs) and runs[-1].place != ran.wanted.site
        counts["right_results_after_being_sent_home"] += ran.sent_home > 0 and told.result == right
    elif ends or not may_be_killed:
        yield f"is {job.outcome.value} ({job.reason}), and has come to its end {ends} times"
    else:
        counts["killed_by_slurm"] += 1
    if len(runs) > 1 + ran.sent_home:
        yield f"has begun {len(runs)} times, and was sent home {ran.sent_home} times"
    for before, after in pairwise(runs):
        if after.start < before.last:
            yield f"ran twice at a time: {before} and {after}"
        yield from _judge_restart(ran.wanted, before, after, counts)


def _judge_restart(job: Wanted, before: Run, after: Run, counts: Counter[str]) -> Iterator[str]:
    counts["restarts"] += 1
    if not job.keeps:
        if after.began_at:
            yield f"keeps nothing, and began at step {after.began_at}"
        return
    counts["restarts_of_jobs_that_keep_state"] += 1
    # The state is moved into place before the step is noted.
    if after.began_at > before.at + 1:
        yield f"went on from step {after.began_at}; it had come to {before.at}"
    if after.began_at and not after.restarts:
        yield f"began at step {after.began_at}, and was not told that it had run before"
    counts["went_on_from_state"] += after.began_at > 0
    counts["steps_kept"] += after.began_at
    counts["steps_lost_of_those"] += max(0, before.at - after.began_at)
    if before.at > before.began_at and after.began_at <= before.began_at:
        counts["state_missed"] += 1


class Journals:
    """What the journals of all sites say of the order of things; jobs by the keys with which they were submitted."""

    def __init__(self, folder: Path, sites: Sequence[str]) -> None:
        self.counts: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.sent_home: defaultdict[str, list[float]] = defaultdict(list)
        self.ended_there: dict[tuple[str, str], JobEnded] = {}
        self._names: dict[tuple[str, int], str] = {}
        self._offered: dict[tuple[str, int], str] = {}
        for name in sites:
            with Journal(folder / f"{name}.journal", name) as journal:
                for record in journal.records():
                    self._note(name, record)

    def _note(self, site: str, record: Record) -> None:
        self.counts["guests_protected"] += isinstance(record, GuestProtected)
        self.counts["states_missed"] += isinstance(record, StateMissed)
        self.counts["account_looks"] += isinstance(record, AccountLooked)
        if isinstance(record, JobReceived):
            self._names[site, record.job] = record.idempotency_key
        elif isinstance(record, JobOffered | JobReoffered):
            self._offered[site, record.number] = self._names[site, record.job]
        elif isinstance(record, JobSentHome):
            self.sent_home[self._names[site, record.job]].append(record.time)
        elif isinstance(record, JobEnded) and isinstance(record.job, int):
            self.ends[self._names[site, record.job]] += 1
        elif isinstance(record, JobEnded):
            assert isinstance(record.job, GuestRef)
            offer = record.job.offer
            self.ended_there[site, f"{record.job.partner}+{offer.epoch:x}+{offer.number}"] = record
            self.counts["guests_preempted"] += record.outcome is Ending.PREEMPTED

    def name_of(self, name: str) -> str:
        """Returns the name with which its user submitted a job that Slurm has under another; of others that one."""
        found = _SLURM_NAME.fullmatch(name)
        if found is None:
            return name
        here, home, number = found[1], found[2], int(found[3])
        return (self._names if here == home else self._offered).get((home, number), name)

    def judge(self, ran: Mapping[str, Ran]) -> Verdict:
        """Judges that each job ended once, and began again only when its host, and then its home, had noted its end."""
        verdict = Verdict(counts=self.counts)
        for name, one in ran.items():
            if one.wanted.native:
                continue
            if self.ends[name] != 1:
                text = f"{name} has ended {self.ends[name]} times in its home's journal"
                verdict.problems.append(text)
            for before, after in pairwise(one.runs):
                if wrong := self._too_soon(name, before, after):
                    verdict.problems.append(f"{name} {wrong}")
                else:
                    verdict.counts["restarts_after_the_hosts_word"] += 1
        return verdict

    def _too_soon(self, name: str, before: Run, after: Run) -> str:
        there = self.ended_there.get((before.place, before.folder.name))
        if there is None or there.outcome is not Ending.PREEMPTED:
            return f"began again after {before}, which its host never sent home"
        moments = self.sent_home[name]
        if before.last <= there.time and any(there.time <= one <= after.start for one in moments):
            return ""
        return (
            f"began again at {after.start:.3f}; it wrote until {before.last:.3f}, its host noted its end at "
            f"{there.time:.3f}, its home at {moments}"
        )


def waited(jobs: Mapping[str, Ran]) -> dict[str, float]:
    """Returns how long each job that has completed has waited, seconds.

    What counts is the last start; of a job that goes on from its state so much earlier as it had come before.
    """
    found = {}
    for name, ran in jobs.items():
        if ran.completed and ran.runs:
            last = ran.runs[-1]
            found[name] = round(last.start - last.began_at - ran.submitted, 3)
    return found


def starts_compared(alone: Mapping[str, float], jobs: Mapping[str, Ran]) -> dict[str, Any]:
    """Returns by how much own jobs start later than without exchange, with each one that is `LATE_S` late.

    `alone` has how long each has waited without exchange.
    """
    waits = waited(jobs)
    later = {name: waits[name] - alone[name] for name in waits if name in alone}
    late = [
        {
            "job": name,
            "later_s": round(delay, 1),
            "alone_s": alone[name],
            "processors": jobs[name].wanted.processors,
            "sent_home": jobs[name].sent_home,
            "runs": [
                f"{run.place} {run.start - jobs[name].submitted:.1f}" for run in jobs[name].runs
            ],
        }
        for name, delay in sorted(later.items(), key=lambda pair: -pair[1])
        if delay > LATE_S
    ]
    return {
        "own_jobs": len(later),
        "within_60_s": len(later) - len(late),
        "percent_within_60_s": round(100 * (1 - len(late) / max(1, len(later))), 2),
        "later_s": spread(list(later.values())),
        "mean_wait_s": {
            "alone": round(statistics.fmean(alone[name] for name in later), 1),
            "exchange": round(statistics.fmean(waits[name] for name in later), 1),
        },
        "late": late,
    }
