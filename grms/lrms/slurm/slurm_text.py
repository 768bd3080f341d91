"""Parses the output of Slurm's programs and its completion log. Pure.

A job's name may contain anything, including line feeds and bars, so another user's job can imitate rows of the queue.
Therefore every row begins with a token drawn for this call, and free text comes last. The completion log has no such
token: if the log lines of a job disagree, none is believed.

Moments are printed as seconds since 1970 (`SLURM_TIME_FORMAT=%s`); only the log has the local time of the
controller's host.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, NamedTuple

from grms.lrms.base import LrmsEnd, LrmsPhase
from grms.lrms.batch.queue_snapshot import Ending, JobRow
from grms.lrms.exit_status import NOT_LAUNCHED
from grms.lrms.immediate_start import Taken
from grms.lrms.job_names import tag_of
from grms.lrms.node_groups import Promised
from grms.lrms.slurm.slurm_arrays import element_name
from grms.lrms.slurm.slurm_machine import DEFERRED, REQUEUED_HELD, node_names
from grms.util.outcomes import Outcome

TABLE_FORMAT: Final = "%i|%t|%C|%V|%S|%e|%r|%u(%U)|%N|%Y|%P|%j"
"""Format of squeue, after the token: id, state, processors, moments of submission, start and end, reason, user
with number, nodes, planned nodes, partitions, name.
"""

IsOwner = Callable[[str, str], bool]
"""Returns whether a job, by its name, belongs to whom it has to, by the user as Slurm prints it: `name(number)`."""

MARK: Final = "@"
"""Separates a user's name from the unique tag in a job's name."""

_FIELDS: Final = 13

PHASES: Final = {
    "PD": LrmsPhase.WAITING,
    "RH": LrmsPhase.HELD,
    "RQ": LrmsPhase.WAITING,
    "RF": LrmsPhase.WAITING,
    "RD": LrmsPhase.HELD,
    "SE": LrmsPhase.HELD,
    "R": LrmsPhase.RUNNING,
    "CF": LrmsPhase.RUNNING,
    "SI": LrmsPhase.RUNNING,
    "RS": LrmsPhase.RUNNING,
    "S": LrmsPhase.SUSPENDED,
    "ST": LrmsPhase.SUSPENDED,
    "CG": LrmsPhase.COMPLETING,
    "SO": LrmsPhase.COMPLETING,
    **dict.fromkeys(("CD", "F", "TO", "CA", "NF", "OOM", "PR", "BF", "DL", "RV"), LrmsPhase.ENDED),
}
"""By compact state (squeue(1), "Job state codes")."""

_OUTCOMES: Final = {
    "CD": Outcome.COMPLETED,
    "COMPLETED": Outcome.COMPLETED,
    "F": Outcome.FAILED,
    "FAILED": Outcome.FAILED,
    "BF": Outcome.FAILED,
    "BOOT_FAIL": Outcome.FAILED,
    "TO": Outcome.TIMEOUT,
    "TIMEOUT": Outcome.TIMEOUT,
    "DL": Outcome.TIMEOUT,
    "DEADLINE": Outcome.TIMEOUT,
    "CA": Outcome.CANCELLED,
    "CANCELLED": Outcome.CANCELLED,
    "PR": Outcome.PREEMPTED,
    "PREEMPTED": Outcome.PREEMPTED,
    "RV": Outcome.CANCELLED,
    "REVOKED": Outcome.CANCELLED,
    "NF": Outcome.NODE_FAIL,
    "NODE_FAIL": Outcome.NODE_FAIL,
    "OOM": Outcome.OUT_OF_MEMORY,
    "OUT_OF_MEMORY": Outcome.OUT_OF_MEMORY,
}
"""By state in either form; every other state is no end."""

_CAN_START: Final = frozenset(
    ("None", "Priority", "Resources", "ReqNodeNotAvail", "Cleaning", "NodeDown", "PartitionDown")
)
"""Reasons with which a waiting job starts as soon as there is room (squeue(1), "Job reason codes").

Others wait for a moment, another job, a hold, or an exhausted quota; some can never start. They do not compete for
the machine now.
"""

_TAKES_NOTHING: Final = frozenset(("ReqNodeNotAvail", "NodeDown", "PartitionDown"))
"""Reasons of waiting jobs that none of the nodes that work now will do for."""

_HELD_REASONS: Final = frozenset(("JobHeldUser", "JobHeldAdmin", REQUEUED_HELD))


class KnownJob(NamedTuple):
    """A job of this site by its key, and the moment of its submission, seconds since 1970."""

    key: str
    submit_time: float


NONE_KNOWN: Final[Mapping[str, KnownJob]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Queue:
    """Output of squeue.

    Attributes:
        waiting_others: processors of other jobs that wait and could start.
        running: everybody's holdings of processors.
        planned: everybody's jobs that wait and could start, with Slurm's planned starts; `None` if one of them
            has no plan.
        promised: nodes that those of all partitions are to have.
        unplanned: partitions in which another's of them waits that has no plan.
        own_unplanned: the same for jobs of this site: their names, each with its partitions.
    """

    rows: tuple[JobRow, ...]
    waiting_others: int
    running: tuple[Taken, ...] = ()
    planned: tuple[Taken, ...] | None = ()
    promised: tuple[Promised, ...] = ()
    unplanned: frozenset[str] = frozenset()
    own_unplanned: tuple[tuple[str, frozenset[str]], ...] = ()


def read_queue(
    text: str,
    *,
    token: str,
    is_owner: IsOwner,
    prefix: str,
    processors: int,
    partitions: Sequence[str] = (),
    preemptible: Collection[str] = (),
    known: Mapping[str, KnownJob] = NONE_KNOWN,
) -> Queue:
    """Parses the queue printed by squeue, rows in `TABLE_FORMAT` after the token of this call and a bar.

    `is_owner` says whether a job of this site, by its name, which begins with `prefix`, is its owner's; jobs
    wider than `processors` cannot start. The site's own jobs count in all partitions; others only in
    `partitions`, if given. `preemptible` are partitions whose jobs are ended for others. `known` are jobs of this site
    by their numbers: somebody may have given them names of his own.
    """
    used = set(partitions)
    rows: list[JobRow] = []
    running: list[Taken] = []
    planned: list[Taken] | None = []
    expected: list[tuple[bool, list[str]]] = []
    waiting = 0
    for line in text.split("\n"):
        fields = line.split("|", _FIELDS - 1)
        if len(fields) < _FIELDS or fields[0] != token:
            continue  # the rest of a name that has line feeds
        wanted, parts = int(fields[3]), fields[11].split(",")
        name = fields[12] = element_name(in_queue := fields[12], fields[1])
        tag = tag_of(name, prefix, MARK)
        renamed = "" if tag else _known_key(fields, known)
        ours = bool(tag or renamed) and is_owner(name if tag else prefix + renamed, fields[8])
        elsewhere = bool(used) and used.isdisjoint(parts)
        waits = fields[2] == "PD" and _reason(fields[7]) in _CAN_START
        if ours:
            row = replace(_row(fields, preemptible), in_array=name != in_queue, known_as=renamed)
            rows.append(replace(row, can_start=False) if elsewhere else row)
        if waits:
            expected.append((ours, fields))
        if elsewhere:
            continue
        if fields[2] == "R":
            running.append(_taken(fields, wanted) or Taken(wanted, -math.inf, math.inf))
        elif waits and wanted <= processors:
            waiting += 0 if ours else wanted
            plan = None if planned is None else _taken(fields, wanted)
            if planned is None or plan is None:
                planned = None  # one that is not planned may take anything
            else:
                planned.append(plan)
    return Queue(
        tuple(rows),
        waiting,
        tuple(running),
        None if planned is None else tuple(planned),
        *_expected(expected),
    )


def _known_key(fields: list[str], known: Mapping[str, KnownJob]) -> str:
    # With its number alone it could be another job, to which a crash has given it.
    job = known.get(fields[1])
    return "" if job is None or _seconds(fields[4]) != job.submit_time else job.key


def _expected(
    waiting: Iterable[tuple[bool, list[str]]],
) -> tuple[tuple[Promised, ...], frozenset[str], tuple[tuple[str, frozenset[str]], ...]]:
    # What is promised to jobs that wait, and where those wait to whom nothing is; own ones by their names.
    promised: list[Promised] = []
    unplanned: set[str] = set()
    own: list[tuple[str, frozenset[str]]] = []
    for ours, fields in waiting:
        promise, parts = _promised(fields), frozenset(fields[11].split(","))
        if promise is not None:
            promised.append(promise)
        elif _reason(fields[7]) in _TAKES_NOTHING:
            continue
        elif ours:
            own.append((fields[12], parts))
        else:
            unplanned |= parts
    return tuple(promised), frozenset(unplanned), tuple(own)


def _promised(fields: list[str]) -> Promised | None:
    # Nodes that a waiting job is to have; `None` if Slurm has no plan of it.
    begin, end, nodes = _seconds(fields[5]), _seconds(fields[6]), fields[10]
    if begin is None or end is None or nodes in {"", "(null)", "N/A"}:
        return None
    return Promised(begin, end, frozenset(node_names(nodes)))


def _taken(fields: list[str], processors: int) -> Taken | None:
    # From when until when a job has or will have processors; `None` if Slurm does not say.
    begin, end = _seconds(fields[5]), _seconds(fields[6])
    return None if begin is None or end is None or end < begin else Taken(processors, begin, end)


def _reason(text: str) -> str:
    # "ReqNodeNotAvail, UnavailableNodes:n1", and "Nodes_required_for_job_are_DOWN,_DRAINED_…"
    word = text.partition(",")[0].strip("()")
    return "ReqNodeNotAvail" if word.startswith("Nodes_required_for_job") else word


def _row(fields: list[str], preemptible: Collection[str]) -> JobRow:
    _, number, state, processors, submitted, started, ended, reason, _, nodes, *_, name = fields
    partition = fields[11]
    phase = PHASES.get(state, LrmsPhase.UNKNOWN)
    why = _reason(reason)
    if phase is LrmsPhase.WAITING and why in _HELD_REASONS:
        phase = LrmsPhase.HELD
    # For a waiting job this is its planned start, for a cancelled one that never ran its cancellation.
    start_time = _seconds(started) if nodes and phase not in _NOT_STARTED else None
    end = None
    if phase is LrmsPhase.ENDED:
        end_time = _seconds(ended) or 0.0
        state = _preempted(state, why, partition, preemptible)
        end = _end(state, start_time, end_time, reason)
    return JobRow(
        name,
        number,
        _seconds(submitted),
        phase,
        int(processors),
        start_time,
        end,
        exact=end is None or end.outcome not in _INEXACT,
        reason="" if reason == "None" else reason,
        can_start=phase is LrmsPhase.WAITING and why in _CAN_START,
        deferred=phase is LrmsPhase.WAITING and why in DEFERRED,
        partition=partition,
        nodes=node_names(nodes) if start_time is not None and end is None else (),
    )


def _preempted(state: str, reason: str, partition: str, preemptible: Collection[str]) -> str:
    # The state of an ended job, with what a controller has forgotten that died while it ended the job for another one.
    forgotten = state in {"F", "FAILED"} and reason == NOT_LAUNCHED
    return "PR" if forgotten and partition in preemptible else state


# The queue lacks the exit code of a failure. The others may be wrong: the job's folder knows better.
_INEXACT = frozenset((Outcome.FAILED, Outcome.TIMEOUT, Outcome.NODE_FAIL))
_NOT_STARTED = frozenset((LrmsPhase.WAITING, LrmsPhase.HELD, LrmsPhase.UNKNOWN))


def _end(state: str, start_time: float | None, end_time: float, reason: str) -> LrmsEnd:
    outcome = _OUTCOMES.get(state, Outcome.UNKNOWN)
    run_time = 0.0 if start_time is None else max(0.0, end_time - start_time)
    code = 0 if outcome is Outcome.COMPLETED else None
    why = "" if reason in {"None", ""} else reason
    if outcome is Outcome.CANCELLED and start_time is None and " by " not in why:
        why = "it was cancelled before it began"  # Slurm goes on saying what it had waited for
    return LrmsEnd(outcome, end_time, run_time, exit_code=code, reason=why)


def _seconds(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None  # N/A, Unknown


# --- the end of one job --------------------------------------------------------------------------

_SHOWN = re.compile(r"(?:^| )([A-Za-z][\w/:]*)=")


def read_job(text: str) -> dict[str, str]:
    """Returns the fields of the one job printed by `scontrol show job --oneliner`.

    Only for one's own jobs: others' free text could imitate fields. The first occurrence of each name counts, as the
    owner's text comes after Slurm's.
    """
    places = list(_SHOWN.finditer(text))
    ends = [*(place.start() for place in places[1:]), len(text)][: len(places)]
    fields: dict[str, str] = {}
    for place, end in zip(places, ends, strict=True):
        fields.setdefault(place.group(1), text[place.end() : end].strip())
    return fields


def ending_of(
    fields: dict[str, str], offset: float = 0.0, preemptible: Collection[str] = ()
) -> Ending | None:
    """Returns how a job ended, from fields of `scontrol show job` or the completion log.

    `offset` is added, in seconds, to moments in local time. Returns `None` if the job has not ended for good.
    `preemptible` are partitions whose jobs are ended for others.
    """
    state = fields.get("JobState", "").split(" ")[0]
    partition = fields.get("Partition", "")
    state = _preempted(state, fields.get("Reason", ""), partition, preemptible)
    if state not in _OUTCOMES:
        return None
    started, ended = (_moment(fields.get(name, ""), offset) for name in ("StartTime", "EndTime"))
    if ended is None:
        return None
    start_time = None if fields.get("NodeList", "") in {"", "(null)"} else started
    end = _end(state, start_time, ended, fields.get("Reason", ""))
    code, signal = _exit(fields.get("ExitCode", ""))
    if end.outcome not in {Outcome.COMPLETED, Outcome.FAILED}:
        code = signal = None  # what Slurm writes where the script has returned nothing
    return Ending(
        start_time,
        LrmsEnd(end.outcome, end.end_time, end.run_time, code, signal, end.reason),
    )


def _exit(text: str) -> tuple[int | None, int | None]:
    found = re.fullmatch(r"(\d+):(\d+)", text)
    if found is None:
        return None, None
    code, signal = int(found.group(1)), int(found.group(2))
    return (None, signal) if signal else (code, None)


def _moment(text: str, offset: float) -> float | None:
    seconds = _seconds(text)
    if seconds is not None:
        return seconds
    try:
        local = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return local.timestamp() + offset


# --- the completion log --------------------------------------------------------------------------

_LOGGED = re.compile(
    r"JobId=(?P<JobId>\d+) UserId=(?P<user>[^ ()]+\(\d+\)) GroupId=\S+ Name=(?P<Name>[^ ]+) "
    r"JobState=(?P<JobState>\w+) Partition=\S* TimeLimit=\S+ StartTime=(?P<StartTime>\S+) "
    r"EndTime=(?P<EndTime>\S+) NodeList=(?P<NodeList>\S+) "
    r".* SubmitTime=(?P<SubmitTime>\S+) (?:EligibleTime=\S+ )?"
    r"(?:ArrayJobId=(?P<array>\d+) ArrayTaskId=(?P<task>\d+) )?.*DerivedExitCode=\S+ ExitCode=(?P<ExitCode>\d+:\d+) ?"
)
"""A line of jobcomp/filetxt. The name of a job of this site has no blank."""


@dataclass(frozen=True, slots=True)
class Logged:
    """A line of the completion log about a job of this site, with moments in local time."""

    name: str
    number: str
    fields: dict[str, str]


def read_log(lines: Iterable[str], *, is_owner: IsOwner, prefix: str) -> list[Logged]:
    """Returns the lines of jobcomp/filetxt about this site's jobs.

    Lines must be complete; `is_owner` says whether a job, by its name, is its owner's; `prefix` is that of the names.
    """
    found = []
    for line in lines:
        if prefix not in line:
            continue
        match = _LOGGED.fullmatch(line.rstrip("\n"))
        if match is None:
            continue
        number = match["JobId"] if match["array"] is None else f"{match['array']}_{match['task']}"
        tag = tag_of(element_name(match["Name"], number), prefix, MARK)
        if tag and is_owner(tag, match["user"]):
            found.append(Logged(tag, number, match.groupdict()))
    return found


def logged_ending(
    lines: Iterable[Logged], number: str, submit_time: float | None, zone_offset: float
) -> Ending | None:
    """Returns how a job ended, from the log lines with its name.

    `submit_time` (seconds since 1970) determines the log's time zone; if unknown, `zone_offset` is used, in
    seconds from local time to UTC. Returns `None` if the log has no line, or contradictory ones: a job's
    name could imitate one of them.
    """
    endings: set[Ending] = set()
    for line in lines:
        if line.number != number:
            continue
        offset = zone_offset
        local = _moment(line.fields["SubmitTime"], 0.0)
        if submit_time is not None and local is not None:
            # Time zones differ by multiples of a quarter of an hour.
            offset = round((submit_time - local) / 900) * 900.0
            if abs(local + offset - submit_time) > _SAME_MOMENT_S:
                continue  # the number has been used twice
        ending = ending_of(line.fields, offset)
        if ending is not None:
            endings.add(ending)
    # The line of a preemption is written when it begins; a controller that forgets it then writes that the job has
    # failed, or its node.
    preempted = {each for each in endings if each.end.outcome is Outcome.PREEMPTED}
    begun = {each.start_time: each.end.end_time for each in preempted}
    endings = {
        each
        for each in endings
        if each.end.outcome not in _UNDONE
        or not 0.0 <= each.end.end_time - begun.get(each.start_time, -math.inf) <= _KILLED_S
    }
    return endings.pop() if len(endings) == 1 else None


_SAME_MOMENT_S = 2.0
_KILLED_S = 300.0
_UNDONE = frozenset((Outcome.FAILED, Outcome.NODE_FAIL))


def read_accounting(text: str, name: str, number: str, submit_time: float | None) -> Ending | None:
    """Returns how a job ended, from the output of `sacct --parsable2`.

    `text` has rows of JobIDRaw, State, ExitCode, Submit, Start, End, NodeList and JobName; moments in seconds
    since 1970. `name` is the unique tag of the job asked for by `number`; as that may have been reused, `submit_time` is
    compared if known.
    """
    endings = []
    for line in text.splitlines():
        fields = line.split("|", 7)
        if len(fields) < 8 or tag_of(element_name(fields[7], number), name, MARK) != name:
            continue
        _, state, code, submitted, started, ended, nodes, _ = fields
        moment = _seconds(submitted)
        if moment is None or abs(moment - (submit_time or moment)) > _SAME_MOMENT_S:
            continue
        ending = ending_of(
            {
                "JobState": state,
                "ExitCode": code,
                "Reason": state.lower() if " by " in state else "",
                "StartTime": started,
                "EndTime": ended,
                "NodeList": "" if nodes == "None assigned" else nodes,
            }
        )
        if ending is not None:
            endings.append(ending)
    return endings[-1] if endings else None


_SILENCE: Final = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Connection reset",
    "Connection timed out",
    "No route to host",
    "Zero Bytes were transmitted",
    "Communication connection failure",
    "backup controller",
    "standby mode",
    "temporarily unable to accept job",
    "Resource temporarily unavailable",
    "authentication",  # Munge is down, or clocks differ
    "Munge",
    "Unspecified error",
    "error writing",
    "Message send failure",
    "Message receive failure",
    "Transport endpoint is not connected",
    "Broken pipe",
    "Network is unreachable",
    "Host is down",
    "slurm_msg_sendto",  # of Slurm's own functions that send and receive, whatever the reason
    "slurm_receive_msg",
    "Unexpected missing socket",
    "Communication shutdown failure",
    "Header lengths are longer",
    "Insane message length",
    "Incompatible versions of client and server",  # an upgrade is under way
    "Can't find an address",
    "getaddrinfo",
    "Unable to establish control machine",
    "configuration source",  # which is the controller
    "failed to fetch config",
    "Unable to process configuration file",  # on a file system that is away
)
"""Messages of Slurm's programs without an answer of the controller; everything else is an answer."""


def is_no_answer(said: str) -> bool:
    """Returns whether a program has said that it has not been answered: what it was to do may be done or not."""
    return any(word.lower() in said.lower() for word in _SILENCE)
