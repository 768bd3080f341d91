"""Judges real jobs by what they wrote themselves: has each run once, and was told as it was?

Each job appends a line to a file of its own when it starts and one when it ends. A second start is a
problem whoever is to blame for it, as a launcher does not run a script again where that is not allowed; the
problem says whether the batch system may have started it on its own: where the second is of the same submission
and no release by the site lies between the two, by the batch system's own log.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from grms.client import Job, Outcome

SCRIPT: Final = (
    "#!/bin/sh\n"
    'note() { echo "$1 $PWD ${SLURM_JOB_ID:-$JOB_ID} $(date +%s.%N)" >>"$2"; }\n'
    'note start "$1"; sleep "$2"; note end "$1"\n'
)
"""What jobs run: the file of their own, and for how long."""

KILLED_AS: Final = frozenset(
    (Outcome.NODE_FAIL, Outcome.UNKNOWN, Outcome.FAILED, Outcome.TIMEOUT, Outcome.CANCELLED)
)
"""How a job may be said to have ended that began and wrote no end: its node or its controller has failed, and it
was killed."""

_RELEASE: Final = re.compile(r"\[(\S+)\] sched: _release_job_rec: release hold on JobId=(\d+) ")
"""A line of slurmctld's log, in local time."""

Submission = tuple[str, str]
"""Name of the folder of a site's jobs, and the batch system's number."""


def releases(log: str, place: str) -> dict[Submission, list[float]]:
    """Returns when holds were lifted, of a slurmctld's log, seconds since 1970.

    Args:
        log: its text.
        place: name of the folder of the site's jobs.
    """
    found: defaultdict[Submission, list[float]] = defaultdict(list)
    for moment, number in _RELEASE.findall(log):
        found[place, number].append(datetime.fromisoformat(moment).timestamp())
    return dict(found)


@dataclass(frozen=True, slots=True)
class Line:
    """A line that a job has written.

    Attributes:
        starts: at its start; else at its end.
        folder: in which it ran.
        number: by which the batch system knew it.
        time: seconds since 1970.
    """

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
    """What the jobs say.

    Attributes:
        problems: what is not as it has to be, in words.
        counts: of each case.
    """

    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def judge(
    jobs: Mapping[str, Job],
    written: Mapping[str, Sequence[Line]],
    released: Mapping[Submission, Sequence[float]],
    *,
    grace_s: float,
) -> JobsVerdict:
    """Judges all jobs.

    Args:
        jobs: as their users have them after all has ended, by their own word.
        written: what each has written, by the same word.
        released: when jobs were released by the site, seconds since 1970.
        grace_s: so much later than its told end a job may have written its last line.
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
        if wrong:
            verdict.problems.append(f"{name}, {job.outcome.value} ({job.reason}), {wrong}")
        if not starts:
            verdict.counts["of_these_never_started"] += 1
        elif len(starts) == len(lines):
            verdict.counts["killed_by_the_batch_system"] += 1
    return verdict


def _misjudged(job: Job, lines: Sequence[Line], grace_s: float) -> str:
    """Returns what of a job is not as its user is told; empty where all is."""
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


def slips_of(entries: Iterable[Mapping[str, object]]) -> dict[str, set[str]]:
    """Returns the jobs of each kind of slip that a daemon has logged, as the batch system names them."""
    found: dict[str, set[str]] = {}
    for entry in entries:
        if entry.get("event") == "lrms_slip":
            found.setdefault(str(entry["what"]), set()).add(str(entry["lrms_job"]))
    return found
