"""Parses the output of Grid Engine's programs and its accounting file. Pure.

The queue is XML. A job's name may contain anything but a few characters, `/` and line feeds among them, so that no
name can close an element. Elements are therefore matched by their closing tags rather than parsed as XML, which a `<`
in anybody's name would break for all.

Moments are printed in UTC (`TZ=UTC`); the accounting file has seconds since 1970.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from grms.lrms.base import LrmsEnd, LrmsPhase
from grms.lrms.batch.queue_snapshot import Ending, JobRow
from grms.lrms.job_names import tag_of
from grms.lrms.partitions import Partition, Partitions
from grms.util.outcomes import Outcome

_JOB = re.compile(r'<job_list state="\w+">(.*?)</job_list>', re.DOTALL)
_FIELD = re.compile(r"<(\w+)>([^\n]*)</\1>\n")
_LIMIT = re.compile(r'^\s*<hard_request name="h_rt"[^>\n]*>(\d+)</hard_request>$', re.MULTILINE)
_HARD_QUEUE = re.compile(r"^\s*<hard_req_queue>([^<\n]*)</hard_req_queue>$", re.MULTILINE)
_QUEUE = re.compile(r"<cluster_queue_summary>(.*?)</cluster_queue_summary>", re.DOTALL)

IN_ERROR: Final = (
    "its node could not begin it, and Grid Engine waits until its error is cleared (qmod -cj)"
)
"""What a job waits for whose state is `Eqw`."""

MARK: Final = "+"
"""Separates a user's name from the unique tag in a job's name."""

LIMIT_REACHED = 37
SIGNALLED = 100
NOT_OVER = frozenset((24, 25, 99))
"""Codes of `failed` in the accounting file: the job was ended at a limit or by a signal, or it runs again:
migrated, rescheduled, or by its own request (accounting(5), "failed").
"""


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """A job that waits: its limit in seconds, `None` if it has none, and the queues that it asks for."""

    name: str
    number: str
    slots: int
    limit_s: float | None
    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GridTable:
    """Output of qstat: jobs of this site, and the slots of other jobs that wait and could start."""

    rows: tuple[JobRow, ...]
    waiting_others: int


def read_jobs(text: str, *, account: str, prefix: str, processors: int) -> GridTable:
    """Parses the output of `qstat -u '*' -xml -r`.

    Jobs of the site belong to `account` and have names beginning with `prefix`; jobs wider than `processors` cannot
    start.

    Raises:
        ValueError: it is not an answer of qstat.
    """
    if "<job_info" not in text or "</job_info>" not in text:
        raise ValueError(f"qstat says {text.strip()[:80]!r}, not a table of jobs")
    rows: list[JobRow] = []
    waiting = 0
    for job in _JOB.finditer(text):
        fields = dict(_FIELD.findall(job.group(1)))
        phase = phase_of(fields["state"])
        slots = int(fields["slots"])
        if tag_of(fields["JB_name"], prefix, MARK) and fields["JB_owner"] == account:
            rows.append(_row(fields, phase, slots))
        elif phase is LrmsPhase.WAITING and slots <= processors:
            waiting += slots * task_count(fields.get("tasks", "1"))
    return GridTable(tuple(rows), waiting)


def read_waiting(text: str) -> list[WaitingRow]:
    """Returns the jobs that wait and could start, those of the highest priority first.

    `text` is what `qstat -u '*' -xml -r` has printed.
    """
    found = []
    for job in _JOB.finditer(text):
        fields = dict(_FIELD.findall(job.group(1)))
        if phase_of(fields["state"]) is not LrmsPhase.WAITING:
            continue
        limit = _LIMIT.search(job.group(1))
        row = WaitingRow(
            fields["JB_name"],
            fields["JB_job_number"],
            int(fields["slots"]),
            None if limit is None else float(limit[1]),
            tuple(name.partition("@")[0] for name in _HARD_QUEUE.findall(job.group(1))),
        )
        found.append((-float(fields.get("JAT_prio", "0")), int(row.number), row))
    return [row for _, _, row in sorted(found, key=lambda each: each[:2])]


def _row(fields: dict[str, str], phase: LrmsPhase, slots: int) -> JobRow:
    started = fields.get("JAT_start_time")
    submitted = fields.get("JB_submission_time")
    why = ""
    if phase is LrmsPhase.HELD and "E" in fields["state"] and "h" not in fields["state"]:
        # Neither its user nor an operator holds it.
        phase, why = LrmsPhase.WAITING, IN_ERROR
    return JobRow(
        fields["JB_name"],
        fields["JB_job_number"],
        None if submitted is None else _moment(submitted),
        phase,
        slots,
        None if started is None else _moment(started),
        reason="it is in error" if "E" in fields["state"] else "",
        can_start=phase is LrmsPhase.WAITING and not why,
        hindered=why,
        partition=fields.get("queue_name", fields.get("hard_req_queue", "")).partition("@")[0],
        nodes=tuple(filter(None, [fields.get("queue_name", "")])),
    )


def phase_of(state: str) -> LrmsPhase:
    """Returns the phase of a job by its state letters (qstat(1))."""
    if set(state) & set("sST"):
        return LrmsPhase.SUSPENDED
    if set(state) & set("rt"):
        return LrmsPhase.RUNNING
    if set(state) & set("hE"):
        return LrmsPhase.HELD
    return LrmsPhase.WAITING if "q" in state else LrmsPhase.UNKNOWN


def task_count(text: str) -> int:
    """Returns how many tasks of an array a list such as `1-9:2,12` names."""
    count = 0
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part.strip())
        if found is not None:
            first, last, step = (int(number or 0) for number in found.groups())
            count += (last - first) // (step or 1) + 1 if last else 1
    return count or 1


def read_queues(text: str, queues: tuple[str, ...]) -> tuple[int, int, int]:
    """Returns the working, all, and free slots, as `qstat -g c -xml` has printed.

    `queues` are the cluster queues in use; all if empty.

    Raises:
        ValueError: it is something else, or has none of these queues.
    """
    working = everything = free = 0
    found = False
    for queue in _QUEUE.finditer(text):
        fields = dict(_FIELD.findall(queue.group(1)))
        if queues and fields.get("name") not in queues:
            continue
        found = True
        total = int(fields["total"])
        everything += total
        working += total - int(fields["manual_intervention"]) - int(fields["temp_disabled"])
        free += int(fields["available"])
    if not found:
        raise ValueError(f"qstat -g c shows none of the queues {', '.join(queues) or '(any)'}")
    return working, everything, min(free, working)


def read_parts(summary: str, limits: str, queues: tuple[str, ...]) -> Partitions:
    """Returns which jobs the queues take.

    A job is handed to any queue, whatever its state; it waits if all are disabled or suspended.

    `summary` is printed by `qstat -g c -xml`, `limits` by `qconf -sq`; `queues` are those in use, all if empty.

    Raises:
        ValueError: a limit is invalid.
    """
    longest = _longest(limits)
    each = []
    for queue in _QUEUE.finditer(summary):
        fields = dict(_FIELD.findall(queue.group(1)))
        name, total = fields.get("name", ""), int(fields["total"])
        if queues and name not in queues:
            continue
        shut = total > 0 and int(fields["manual_intervention"]) >= total
        state = "disabled or suspended" if shut else "open"
        each.append(
            Partition(name, state, starts=not shut, longest_s=longest.get(name), widest=total)
        )
    return Partitions(tuple(each))


def _longest(text: str) -> dict[str, float | None]:
    # By queue; one of its hosts may have another limit: INFINITY,[n1=0:5:0]
    found: dict[str, float | None] = {}
    name = ""
    for line in text.replace("\\\n", " ").splitlines():
        key, _, value = line.partition(" ")
        if key == "qname":
            name = value.strip()
        elif key == "h_rt" and name:
            words = re.findall(r"INFINITY|\d+(?::\d+){0,2}(?=[\],\s]|$)", value)
            if not words:
                raise ValueError(f"queue {name} has the limit {value.strip()[:80]!r}")
            seconds = [_span(word) for word in words]
            found[name] = (
                None if None in seconds else max(one for one in seconds if one is not None)
            )
    return found


def _span(text: str) -> float | None:
    if text == "INFINITY":
        return None
    return float(sum(int(word) * 60**place for place, word in enumerate(reversed(text.split(":")))))


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class Accounted:
    """A line of the accounting file about a job of this site; no `ending` if it has been rerun."""

    name: str
    number: str
    ending: Ending | None


def read_accounts(lines: Iterable[str], *, account: str, prefix: str) -> list[Accounted]:
    """Returns the lines of the accounting file about this site's jobs.

    Names and accounts contain no colon or line feed there. Lines must be complete; jobs of the site belong to
    `account` and have names beginning with `prefix`.
    """
    found = []
    for line in lines:
        fields = line.split(":")
        tag = tag_of(fields[4], prefix, MARK) if len(fields) > 13 else ""
        if tag and fields[3] == account:
            start, end, failed, status = (int(fields[place]) for place in range(9, 13))
            ending = None if failed in NOT_OVER else _ending(start, end, failed, status)
            found.append(Accounted(tag, fields[5], ending))
    return found


def _ending(start: int, end: int, failed: int, status: int) -> Ending:
    start_time = float(start) or None
    run_time = 0.0 if start_time is None else max(0.0, end - start_time)
    code = signal = None
    reason = "" if failed in {0, SIGNALLED} else f"Grid Engine says: failed {failed}"
    if failed == LIMIT_REACHED:
        outcome = Outcome.TIMEOUT
    elif failed == 0 and status == 0:
        outcome, code = Outcome.COMPLETED, 0
    else:
        outcome = Outcome.FAILED
        if failed == SIGNALLED and status > 128:
            signal = status - 128
        elif failed == 0:
            code = status
    return Ending(start_time, LrmsEnd(outcome, float(end), run_time, code, signal, reason))
