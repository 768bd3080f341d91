"""What exchange has brought own users, as plainly as it can be written.

A second, independent reading of docs/how-to/what-exchange-brings.md: the story of every job is looked up
in the list of records anew, and the machine alone is first come, first served.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grms.site.model import records
from grms.site.model.records import Record

LEFT = (
    records.JobDeclined,
    records.JobReturned,
    records.JobSentHome,
    records.JobAbandoned,
)
"""With these a job is with no partner any more."""


@dataclass(frozen=True, slots=True)
class PlainRun:
    """A job that has ended; its times in seconds."""

    job: int
    place: str
    processors: int
    submit: float
    start: float
    run_time: float

    @property
    def work(self) -> float:
        """Processor seconds."""
        return self.processors * self.run_time


def ended_runs(story: Sequence[Record]) -> list[PlainRun]:
    """Returns own users' jobs that have run and ended, by submission and number."""
    runs = []
    for end in story:
        if not isinstance(end, records.JobEnded) or end.run_time == 0:
            continue
        if not isinstance(end.job, int):
            continue
        about = [record for record in story if getattr(record, "job", None) == end.job]
        received = next(one for one in about if isinstance(one, records.JobReceived))
        place = ""
        for one in about:
            if isinstance(one, records.JobOffered):
                place = one.partner
            if isinstance(one, LEFT):
                place = ""
        after = story[story.index(end) + 1 :]
        if place and after and isinstance(after[0], records.ReportDisbelieved):
            continue
        start = max(received.time, end.end_time - end.run_time)
        runs.append(
            PlainRun(
                end.job, place, received.request.processors, received.time, start, end.run_time
            )
        )
    return sorted(runs, key=lambda run: (run.submit, run.job))


def starts_alone(runs: Sequence[PlainRun], processors: int) -> list[float]:
    """Returns when each job starts on a machine that serves first who came first."""
    starts: list[float] = []
    last = -float("inf")
    for run in runs:
        begins = max(last, run.submit)
        ends = sorted(start + other.run_time for start, other in zip(starts, runs, strict=False))
        for moment in [begins, *(end for end in ends if end > begins)]:
            busy = sum(
                other.processors
                for start, other in zip(starts, runs, strict=False)
                if start + other.run_time > moment
            )
            if busy + run.processors <= processors:
                last = moment
                break
        starts.append(last)
    return starts


def figures(story: Sequence[Record], processors: int, begin: float) -> dict[str, Any]:
    """Returns jobs, mean wait and AWRT, as it was and alone, of all and by place.

    Args:
        story: the records.
        processors: size of the machine, which no job is wider than.
        begin: jobs that have ended after it count, seconds.
    """
    runs = ended_runs(story)
    alone = starts_alone(runs, processors)
    found = {}
    counted = [
        (run, start)
        for run, start in zip(runs, alone, strict=True)
        if run.start + run.run_time > begin
    ]
    for place in [None, *sorted({run.place for run, _ in counted})]:
        chosen = [(run, start) for run, start in counted if place in (None, run.place)]
        if not chosen:
            continue
        work = sum(run.work for run, _ in chosen)
        found["all" if place is None else place] = {
            "jobs": len(chosen),
            "work": work,
            "mean_wait": sum(run.start - run.submit for run, _ in chosen) / len(chosen),
            "mean_wait_alone": sum(start - run.submit for run, start in chosen) / len(chosen),
            "awrt": sum(run.work * (run.start + run.run_time - run.submit) for run, _ in chosen)
            / work,
            "awrt_alone": sum(
                run.work * (start + run.run_time - run.submit) for run, start in chosen
            )
            / work,
        }
    return found
