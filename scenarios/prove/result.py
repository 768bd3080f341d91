"""What came of a run: the checker's verdicts of its history, and what they were given by."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from scenarios.prove.history import events_of
from scenarios.prove.plan import Plan
from scenarios.prove.proof import Run
from scenarios.prove.users import CLIENTS
from scenarios.util.errors import LiveError

CHECKER: Final = Path(__file__).with_name("checker.py")
COMMANDS: Final = {"sbatch": "sbatch", "grms": "grms submit --key"}
KINDS: Final = ("once", "failed", "refused", "twice", "lost", "pending", "false")
"""What the checker may find of a job, as it names it."""

BAD: Final = KINDS[3:]


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job over time, all in seconds since the first event.

    Attributes:
        word: that it has in common with the same job of the other command.
        tries: when a command was called.
        answers: when one was answered.
        runs: when it began, each time, and when it came to its end; None where it did not.
        shown_at: the site that had it, as its user is shown; empty where no end is shown.
        kind: one of `KINDS`.
        why: in words; empty where it ran once.
    """

    word: str
    client: str
    site: str
    tries: tuple[float, ...]
    answers: tuple[float, ...]
    runs: tuple[tuple[float, float | None], ...]
    shown_at: str
    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class FaultSpan:
    """Something that was broken, in seconds since the first event; `place` is empty for the link."""

    kind: str
    place: str
    begin: float
    end: float
    number: int


@dataclass(frozen=True)
class Proof:
    """A run and its verdicts."""

    plan: Plan
    run: Run
    jobs: tuple[JobLine, ...]
    faults: tuple[FaultSpan, ...]
    seconds: float

    def of(self, client: str) -> list[JobLine]:
        """Returns the jobs of a command."""
        return [job for job in self.jobs if job.client == client]

    def kinds(self, client: str) -> Counter[str]:
        """Returns how many of its jobs came to which end."""
        return Counter(job.kind for job in self.of(client))

    @property
    def counts(self) -> Counter[str]:
        """How many faults there were of each kind."""
        return Counter(span.kind for span in self.faults)

    @property
    def delegated(self) -> int:
        """How many jobs of `grms submit` ran at the other site."""
        return sum(job.shown_at not in {"", job.site} for job in self.of("grms"))

    @property
    def holds(self) -> bool:
        """Whether no job of `grms submit` is lost, ran twice, or contradicts what its user was shown."""
        return not any(self.kinds("grms")[kind] for kind in BAD)

    @cached_property
    def worst(self) -> FaultSpan | None:
        """The hang during which jobs of `sbatch` were started most often, of several the soonest over; None without one."""
        spans = [span for span in self.faults if span.kind == "hang"]
        return max(
            spans,
            key=lambda span: (self.starts("sbatch", span), span.begin - self._last(span)),
            default=None,
        )

    def _last(self, span: FaultSpan) -> float:
        jobs = [job for client in CLIENTS for job in self.during(client, span)]
        return max((begin for job in jobs for begin, _ in job.runs), default=span.end)

    def starts(self, client: str, span: FaultSpan | None = None) -> int:
        """Returns how often jobs of a command began, all or those that were submitted during a fault."""
        return sum(len(job.runs) for job in self.during(client, span))

    def during(self, client: str, span: FaultSpan | None) -> list[JobLine]:
        """Returns the jobs of a command that were submitted during a fault, or all."""
        jobs = self.of(client)
        if span is None:
            return jobs
        return [job for job in jobs if job.word.startswith(f"{span.number}.")]

    @property
    def headline(self) -> str:
        """The outcome in a sentence."""
        parts = []
        for client, how in (("sbatch", "by sbatch with retries"), ("grms", "by grms submit --key")):
            kinds, count = self.kinds(client), len(self.of(client))
            jobs = "1 job" if count == 1 else f"{count:,} jobs"
            parts.append(
                f"{how} {jobs} ran {self.starts(client):,} times, {kinds['twice'] or 'none'} more than once, "
                f"{kinds['lost'] or 'none'} lost"
            )
        words = "; ".join(parts)
        return f"{words[0].upper()}{words[1:]}."


def judged(plan: Plan, run: Run) -> Proof:
    """Returns what the checker, a process of its own, finds in the history of a run.

    Raises:
        LiveError: the checker cannot read it.
    """
    done = subprocess.run(  # noqa: S603  # the checker
        [sys.executable, "-I", str(CHECKER), "--json", str(run.history)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in {0, 1}:
        raise LiveError(f"the checker cannot judge the history: {done.stderr.strip()}")
    events = sorted(events_of(run.history), key=lambda event: float(event["time"]))
    begin = float(events[0]["time"])
    of_jobs: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if "job" in event:
            of_jobs.setdefault(event["job"], []).append(event)
    jobs = [_line(each, of_jobs[each["job"]], begin) for each in json.loads(done.stdout)]
    faults = [
        FaultSpan(
            each["kind"], each["place"], each["time"] - begin, each["until"] - begin, each["number"]
        )
        for each in events
        if each["event"] == "fault"
    ]
    return Proof(plan, run, tuple(jobs), tuple(faults), float(events[-1]["time"]) - begin)


def _line(found: dict[str, str], events: list[dict[str, Any]], begin: float) -> JobLine:
    def times(name: str) -> tuple[float, ...]:
        return tuple(each["time"] - begin for each in events if each["event"] == name)

    runs = []
    for each in events:
        if each["event"] == "started":
            # A batch system that has lost its state gives numbers away a second time.
            end = next(
                (
                    one["time"] - begin
                    for one in events
                    if one["event"] == "ended"
                    and one["number"] == each["number"]
                    and one["time"] >= each["time"]
                ),
                None,
            )
            runs.append((each["time"] - begin, end))
    site = next((str(each["site"]) for each in events if each["event"] == "submitted"), "")
    return JobLine(
        found["job"].partition("-")[2],
        found["client"],
        site,
        times("submitted"),
        times("acknowledged"),
        tuple(runs),
        next((str(each["site"]) for each in events if each["event"] == "told"), ""),
        found["kind"],
        found["why"],
    )
