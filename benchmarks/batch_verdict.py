"""Judges real jobs by what they wrote themselves: has each run once, and if not, whose doing was it?

Each job appends a line to a file of its own when it starts and one when it ends. A second start is the
batch system's doing where it is of the same submission and no release by the site lies between the two,
by the batch system's own log: then nobody but the batch system can have started it again. Every other
second start is the site's.
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

SAID: Final = frozenset(
    (Outcome.NODE_FAIL, Outcome.UNKNOWN, Outcome.CANCELLED, Outcome.LOST, Outcome.TIMEOUT)
)
"""How a job may be said to have ended whose batch system has failed; it may also be said to have failed itself
where it was killed before its end. A time-out is none of a job's own, as all end long before their limit: a
controller that has forgotten the end of a job waits for it up to the limit."""

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
        twice: folders of jobs that their batch system has run more than once.
    """

    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    twice: list[Path] = field(default_factory=list)


def judge(
    jobs: Mapping[str, Job],
    written: Mapping[str, Sequence[Line]],
    released: Mapping[Submission, Sequence[float]],
) -> JobsVerdict:
    """Judges all jobs.

    Args:
        jobs: as their users have them after all has ended, by their own word.
        written: what each has written, by the same word.
        released: when jobs were released by the site, seconds since 1970.
    """
    verdict = JobsVerdict()
    for name, job in jobs.items():
        lines = written.get(name, ())
        starts = [line for line in lines if line.starts]
        ends = len(lines) - len(starts)
        if not job.has_ended:
            verdict.problems.append(f"{name} is {job.state.value}: {job.reason}")
            continue
        assert job.outcome is not None
        verdict.counts[f"said_{job.outcome.value}"] += 1
        if len(starts) > 1:
            _twice(name, starts, released, verdict)
        if job.outcome is Outcome.COMPLETED:
            if not ends:
                text = f"{name} is said to have completed, and wrote {len(starts)} starts, no end"
                verdict.problems.append(text)
        elif job.outcome in SAID or (job.outcome is Outcome.FAILED and not ends):
            verdict.counts["failed_by_the_batch_system"] += 1
            verdict.counts["of_these_came_to_their_end"] += bool(ends)
            verdict.counts["of_these_never_started"] += not starts
        else:
            verdict.problems.append(f"{name} is said to be {job.outcome.value}: {job.reason}")
    return verdict


def _twice(
    name: str,
    starts: Iterable[Line],
    released: Mapping[Submission, Sequence[float]],
    verdict: JobsVerdict,
) -> None:
    first, *others = sorted(starts, key=lambda line: line.time)
    for line in others:
        story = f"{name} ran again: {first} and {line}"
        if line.folder != first.folder or line.number != first.number:
            verdict.problems.append(f"{story}, of two submissions")
            return
        moments = released.get((line.folder.parent.name, line.number), ())
        between = [moment for moment in moments if first.time < moment < line.time]
        if between:
            verdict.problems.append(f"{story}, and was released at {between}")
            return
    verdict.counts["run_twice_by_the_batch_system"] += 1
    verdict.twice.append(first.folder)


def slips_of(entries: Iterable[Mapping[str, object]]) -> dict[str, set[str]]:
    """Returns the jobs of each kind of slip that a daemon has logged, as the batch system names them."""
    found: dict[str, set[str]] = {}
    for entry in entries:
        if entry.get("event") == "lrms_slip":
            found.setdefault(str(entry["what"]), set()).add(str(entry["lrms_job"]))
    return found
