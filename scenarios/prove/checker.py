"""Judges a history of jobs: which ran once, which twice, which were lost? It shares no code with what it judges.

    python checker.py history.jsonl                 what came of all jobs, and the story of each bad one
    python checker.py --client grms history.jsonl   of the jobs of one client; --json for programs

This file needs nothing but Python. A history has a line of JSON for each event, in any order, with the keys `event`, `time`
(seconds, any origin) and mostly `job`, a name that is unique in the history:

    submitted     a client (`client`) begins to submit the job; each of its attempts is one
    unanswered    an attempt ended without an answer, or with an error (`text`)
    acknowledged  an attempt was answered with the job's number (`id`)
    started       the job itself has written this, on its node, as its first act
    ended         the job itself has written this as its last act
    told          its user is shown that it is over (`outcome`, "completed" where it ran to its end)
    fault         something was broken until `until`; of no job, and for people alone
    closed        whoever wrote the history has waited for the end of everything; of no job

Exit status: 0 where no job is bad, 1 where one is, 2 where the file is no history.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KINDS = {
    "once": "ran once, from its start to its end",
    "failed": "did not run to its end, and its user was shown why",
    "refused": "was never acknowledged, and never ran",
    "twice": "ran more than once",
    "lost": "was acknowledged, did not run to its end, and no user was shown an end",
    "pending": "is not over in this history",
    "false": "contradicts what its user was shown, or cannot have happened",
}
"""What can come of a job."""

BAD = ("twice", "lost", "pending", "false")
OF_JOBS = ("submitted", "unanswered", "acknowledged", "started", "ended", "told")
OF_NONE = ("fault", "closed")
Event = dict[str, Any]


class HistoryError(ValueError):
    """A line that belongs into no history; the text says which and why."""


@dataclass
class Verdict:
    """What came of a job.

    Attributes:
        kind: one of `KINDS`.
        why: in words.
        events: of the job, by time.
    """

    job: str
    client: str
    kind: str
    why: str
    events: list[Event] = field(default_factory=list)

    def story(self, begin: float) -> Iterator[str]:
        """Yields a line for each event, with the seconds since `begin`."""
        for event in self.events:
            words = (
                f"{key} {value}"
                for key, value in event.items()
                if key not in {"event", "time", "job"}
            )
            yield f"{event['time'] - begin:8.1f} s  {event['event']:<12}  {', '.join(words)}".rstrip()


def read(lines: Iterable[str]) -> list[Event]:
    """Returns the events of a history, by time.

    Raises:
        HistoryError: a line is no event.
    """
    events = [_event(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    return sorted(events, key=lambda event: float(event["time"]))


def _event(number: int, line: str) -> Event:
    try:
        event = json.loads(line)
        if event["event"] not in OF_JOBS + OF_NONE:
            raise HistoryError(f"line {number}: there is no event {event['event']!r}")
        if not isinstance(event["time"], int | float) or event["time"] != event["time"]:
            raise HistoryError(f"line {number}: {event['time']!r} is no time")
        if event["event"] in OF_JOBS and not isinstance(event["job"], str):
            raise HistoryError(f"line {number}: {event['job']!r} is no job's name")
        needed = {"submitted": "client", "acknowledged": "id", "told": "outcome"}.get(
            event["event"]
        )
        if needed is not None and not isinstance(event[needed], str):
            raise HistoryError(f"line {number}: {event[needed]!r} is no {needed}")
    except json.JSONDecodeError as error:
        raise HistoryError(f"line {number} is no JSON: {error}") from error
    except (TypeError, KeyError) as error:
        raise HistoryError(f"line {number} lacks {error}: {line.strip():.200}") from error
    return dict(event)


def judge(events: Sequence[Event]) -> list[Verdict]:
    """Returns what came of each job, in the order of their first events; the events are by time."""
    of_jobs: dict[str, list[Event]] = {}
    for event in events:
        if event["event"] in OF_JOBS:
            of_jobs.setdefault(event["job"], []).append(event)
    is_over = any(event["event"] == "closed" for event in events)
    return [_judged(job, own, is_over=is_over) for job, own in of_jobs.items()]


def _judged(job: str, events: list[Event], *, is_over: bool) -> Verdict:
    clients = [str(event["client"]) for event in events if event["event"] == "submitted"]
    kind, why = _kind(events, is_over=is_over)
    return Verdict(job, clients[0] if clients else "nobody", kind, why, events)


def _kind(events: list[Event], *, is_over: bool) -> tuple[str, str]:
    times: dict[str, list[float]] = {name: [] for name in OF_JOBS}
    for event in events:
        times[event["event"]].append(event["time"])
    starts, ends = times["started"], times["ended"]
    outcomes = {event["outcome"] for event in events if event["event"] == "told"}
    numbers = {event["id"] for event in events if event["event"] == "acknowledged"}
    if len(starts) > 1:
        return "twice", f"started {len(starts)} times"
    impossible = _impossible(times, outcomes, numbers)
    if impossible:
        return "false", impossible
    if starts and ends:
        return (
            ("false", f"ran to its end, and is shown as {', '.join(outcomes)}")
            if (outcomes - {"completed"})
            else ("once", "")
        )
    done = "began and did not come to its end" if starts else "never began"
    if "completed" in outcomes:
        return "false", f"{done}, and is shown as completed"
    if outcomes:
        return "failed", f"{done}; shown as {', '.join(outcomes)}"
    if not is_over and (numbers or starts):
        return "pending", f"{done} so far"
    if numbers or starts:
        return "lost", f"{done}, and no user was shown an end"
    return (
        ("refused", "no attempt was acknowledged") if is_over else ("pending", "not acknowledged")
    )


def _impossible(times: dict[str, list[float]], outcomes: set[str], numbers: set[str]) -> str:
    starts, ends, submitted = times["started"], times["ended"], times["submitted"]
    if not submitted:
        return "no user has submitted it"
    if len(numbers) > 1:
        return f"is {len(numbers)} jobs: {', '.join(sorted(numbers))}"
    if len(outcomes) > 1:
        return f"is shown as {' and as '.join(sorted(outcomes))}"
    if len(ends) > len(starts):
        return f"ended {len(ends)} times and started {len(starts)} times"
    if ends and ends[0] < starts[0]:
        return "ended before it started"
    first = min([*starts, *times["acknowledged"], *times["told"]], default=submitted[0])
    return "began before it was submitted" if first < submitted[0] else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what came of the jobs, and returns the exit status."""
    parser = argparse.ArgumentParser(description="Judges a history of jobs.")
    parser.add_argument("history", type=Path)
    parser.add_argument("--client", help="judge the jobs of this client alone")
    parser.add_argument("--json", action="store_true", help="print verdicts as JSON")
    chosen = parser.parse_args(arguments)
    try:
        events = read(chosen.history.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError) as error:
        print(f"{chosen.history}: {error}", file=sys.stderr)
        return 2
    found = [each for each in judge(events) if chosen.client in {None, each.client}]
    bad = [each for each in found if each.kind in BAD]
    if chosen.json:
        kept = ("job", "client", "kind", "why")
        json.dump([{key: getattr(each, key) for key in kept} for each in found], sys.stdout)
        return int(bool(bad))
    for client in sorted({each.client for each in found}):
        counts = Counter(each.kind for each in found if each.client == client)
        words = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind] or kind in BAD)
        runs = sum(
            event["event"] == "started"
            for each in found
            if each.client == client
            for event in each.events
        )
        print(
            f"{client}: {counts.total()} job{'s' * (counts.total() != 1)} ran {runs} times: {words}"
        )
    for each in bad:
        print(f"\n{each.job} {each.why} ({each.kind}: {KINDS[each.kind]})")
        print(*each.story(events[0]["time"]), sep="\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
