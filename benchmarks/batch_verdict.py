"""Judges real jobs by what they wrote themselves: has each run once, and was told as it was?

Each job appends a line to a file of its own at start and end. A second start is always a problem, as a launcher
does not repeat a script if that is not allowed; the problem says whether the batch system may have started it on
its own: if the second is of the same submission and the batch system's log has no release by the site between the
two.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from grms.client import Job, Outcome

SCRIPT: Final = (
    "#!/bin/sh\n"
    'note() { echo "$1 $PWD ${SLURM_JOB_ID:-$JOB_ID} $(date +%s.%N)" >>"$2"; }\n'
    'file="$1${HANSE_ARRAY_TASK_ID:+[$HANSE_ARRAY_TASK_ID]}"\n'
    'note start "$file"; sleep "$2"; note end "$file"\n'
)
"""Script of the jobs; its arguments are the job's file, behind which an element puts its index, and the run time."""

KILLED_AS: Final = frozenset(
    (Outcome.NODE_FAIL, Outcome.UNKNOWN, Outcome.FAILED, Outcome.TIMEOUT, Outcome.CANCELLED)
)
"""Possible outcomes of a job that began and wrote no end: its node or controller failed, and it was killed."""

_RELEASE: Final = re.compile(r"\[(\S+)\] sched: _release_job_rec: release hold on JobId=(\d+) ")
"""A line of slurmctld's log, in local time."""

_NOT_REQUEUED: Final = re.compile(r" _slurm_rpc_requeue: Requeue of JobId=(\d+) returned an error")
_ENDED_BY_ROOT: Final = re.compile(r" _slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=(\d+) uid 0\s")
_CANCELLED: Final = re.compile(r"(?m)^JobId=(\d+) .* Name=hanse:[^: ]+:(\S+) JobState=CANCELLED ")

Submission = tuple[str, str]
"""Name of the folder of a site's jobs, and the batch system's number."""


def releases(log: str, place: str) -> dict[Submission, list[float]]:
    """Returns release times in a slurmctld log, seconds since 1970; `place` names the folder of the site's jobs."""
    found: defaultdict[Submission, list[float]] = defaultdict(list)
    for moment, number in _RELEASE.findall(log):
        found[place, number].append(datetime.fromisoformat(moment).timestamp())
    return dict(found)


def given_up(log: str, completions: str) -> set[str]:
    """Returns the keys of jobs that Slurm's own node daemons have ended.

    A node that could not start a job asks for it to be requeued, and where that is disabled for it has it ended. If the
    controller has died in between and forgotten the start, it ends as cancelled before its start, by root.

    `log` is slurmctld's, `completions` that of jobcomp/filetxt.
    """
    numbers = {*_NOT_REQUEUED.findall(log)} & {*_ENDED_BY_ROOT.findall(log)}
    return {key for number, key in _CANCELLED.findall(completions) if number in numbers}


@dataclass(frozen=True, slots=True)
class Line:
    """A line written by a job at its start or, without `starts`, its end; `time` in seconds since 1970."""

    starts: bool
    folder: Path
    number: str
    time: float


def read_lines(path: Path) -> list[Line]:
    """Returns what a job has written; nothing where it never started."""
    if not path.exists():
        return []
    found = []
    for text in path.read_text().splitlines():
        word, folder, number, time = text.split()
        found.append(Line(word == "start", Path(folder), number, float(time)))
    return found


@dataclass(slots=True)
class JobsVerdict:
    """Result of judging the jobs by their own lines: violations in words, and counts of each case."""

    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def judge(
    jobs: Mapping[str, Job],
    written: Mapping[str, Sequence[Line]],
    released: Mapping[Submission, Sequence[float]],
    *,
    grace_s: float,
    given_up: Collection[str] = (),
) -> JobsVerdict:
    """Judges all jobs.

    `jobs` are as shown to users after everything has ended, `written` their lines, both by name; `released` are the
    times of the site's releases, seconds since 1970. A job may have written its last line until `grace_s` seconds
    after its reported end. Those in `given_up` may have been cancelled by the batch system itself.
    """
    verdict = JobsVerdict()
    for name, job in jobs.items():
        lines = written.get(name, ())
        if not job.has_ended:
            verdict.problems.append(f"{name} is {job.state.value}: {job.reason or job.stuck}")
            continue
        assert job.outcome is not None
        verdict.counts[f"said_{job.outcome.value}"] += 1
        starts = [line for line in lines if line.starts]
        if len(starts) > 1:
            verdict.problems.append(_twice(name, starts, released))
        wrong = _misjudged(job, lines, grace_s)
        if not lines and job.outcome is Outcome.CANCELLED and name in given_up:
            verdict.counts["cancelled_by_a_node"] += 1
        elif wrong:
            verdict.problems.append(f"{name}, {job.outcome.value} ({job.reason}), {wrong}")
        if not starts:
            verdict.counts["of_these_never_started"] += 1
        elif len(starts) == len(lines):
            verdict.counts["killed_by_the_batch_system"] += 1
    return verdict


def _misjudged(job: Job, lines: Sequence[Line], grace_s: float) -> str:
    """Returns a contradiction between a job and what its user is shown; empty if there is none."""
    ends = [line.time for line in lines if not line.starts]
    if not lines:
        return "" if job.outcome in {Outcome.NODE_FAIL, Outcome.UNKNOWN} else "never began"
    if not ends:
        return "" if job.outcome in KILLED_AS else "wrote no end"
    if job.outcome is Outcome.NODE_FAIL:
        return ""  # what a node still runs that was given up, nobody can say
    if job.end_time_s is not None and job.end_time_s < max(ends) - grace_s:
        return f"ran for {max(ends) - job.end_time_s:.1f} s after its end was told"
    return "" if job.outcome is Outcome.COMPLETED else "came to its end by itself"


def _twice(
    name: str, starts: Iterable[Line], released: Mapping[Submission, Sequence[float]]
) -> str:
    first, *others = sorted(starts, key=lambda line: line.time)
    for line in others:
        story = f"{name} ran again: {first} and {line}"
        if line.folder != first.folder or line.number != first.number:
            return f"{story}, of two submissions"
        moments = released.get((line.folder.parent.name, line.number), ())
        between = [moment for moment in moments if first.time < moment < line.time]
        if between:
            return f"{story}, and was released at {between}"
    return f"{story}, by the batch system itself"


def anomalies_of(entries: Iterable[Mapping[str, object]]) -> dict[str, set[str]]:
    """Returns the jobs of each kind of anomaly that a daemon has logged, as the batch system names them."""
    found: dict[str, set[str]] = {}
    for entry in entries:
        if entry.get("event") == "lrms_anomaly":
            found.setdefault(str(entry["what"]), set()).add(str(entry["lrms_job"]))
    return found
