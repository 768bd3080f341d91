"""A job of a site in Slurm's words: number, state, reason and all else that the commands print. Pure.

A job that is held, decided, offered or waits, here or at a partner, is pending; its list of nodes is the name of the
site that runs it, as a site does not tell which nodes it has given to a job.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from grms.v1 import job_pb2, request_pb2


class State(NamedTuple):
    """A state as Slurm calls it, in a word and in letters."""

    word: str
    letters: str


PENDING: Final = State("PENDING", "PD")
RUNNING: Final = State("RUNNING", "R")
SUSPENDED: Final = State("SUSPENDED", "S")
COMPLETING: Final = State("COMPLETING", "CG")
COMPLETED: Final = State("COMPLETED", "CD")
CANCELLED: Final = State("CANCELLED", "CA")
FAILED: Final = State("FAILED", "F")
TIMEOUT: Final = State("TIMEOUT", "TO")
NODE_FAIL: Final = State("NODE_FAIL", "NF")
OUT_OF_MEMORY: Final = State("OUT_OF_MEMORY", "OOM")

OPEN: Final = frozenset((PENDING, RUNNING, SUSPENDED, COMPLETING))
"""States before the end."""

NEVER: Final = frozenset(
    (
        *("PREEMPTED", "PR", "BOOT_FAIL", "BF", "DEADLINE", "DL", "CONFIGURING", "CF", "RESIZING"),
        *("RS", "RESV_DEL_HOLD", "RD", "REQUEUED", "RQ", "REQUEUE_FED", "RF", "REQUEUE_HOLD", "RH"),
        *("REVOKED", "RV", "SIGNALING", "SI", "SPECIAL_EXIT", "SE", "STAGE_OUT", "SO", "STOPPED"),
        "ST",
    )
)
"""States of Slurm that no job of a site has."""

STATES: Final = (
    *(PENDING, RUNNING, SUSPENDED, COMPLETED, CANCELLED, FAILED, TIMEOUT, NODE_FAIL),
    *(OUT_OF_MEMORY, COMPLETING),
)

_ENDS: Final = {
    request_pb2.OUTCOME_COMPLETED: (COMPLETED, "None"),
    request_pb2.OUTCOME_NOT_RUN: (COMPLETED, "None"),
    request_pb2.OUTCOME_FAILED: (FAILED, "NonZeroExitCode"),
    request_pb2.OUTCOME_CANCELLED: (CANCELLED, "None"),
    request_pb2.OUTCOME_TIMEOUT: (TIMEOUT, "TimeLimit"),
    request_pb2.OUTCOME_NODE_FAIL: (NODE_FAIL, "NodeDown"),
    request_pb2.OUTCOME_OUT_OF_MEMORY: (OUT_OF_MEMORY, "OutOfMemory"),
    request_pb2.OUTCOME_LOST: (FAILED, "SystemFailure"),
    request_pb2.OUTCOME_UNKNOWN: (FAILED, "SystemFailure"),
}
_PHASES: Final = {
    request_pb2.JOB_PHASE_WAITING: PENDING,
    request_pb2.JOB_PHASE_RUNNING: RUNNING,
    request_pb2.JOB_PHASE_SUSPENDED: SUSPENDED,
    request_pb2.JOB_PHASE_COMPLETING: COMPLETING,
}
_HAS_PHASES: Final = frozenset(
    (job_pb2.JOB_STATE_RUNNING, job_pb2.JOB_STATE_DELEGATED, job_pb2.JOB_STATE_SUSPECT)
)
_WITH_REASON: Final = frozenset((PENDING, FAILED, TIMEOUT, OUT_OF_MEMORY))
_KINDS: Final = {
    job_pb2.DEPENDENCY_KIND_AFTEROK: "afterok",
    job_pb2.DEPENDENCY_KIND_AFTERANY: "afterany",
    job_pb2.DEPENDENCY_KIND_AFTERNOTOK: "afternotok",
    job_pb2.DEPENDENCY_KIND_AFTERCORR: "aftercorr",
    job_pb2.DEPENDENCY_KIND_SINGLETON: "singleton",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A job, or elements of an array that wait for the same.

    Attributes:
        number: as commands name it: `12`, `12_3` or `12_[4-6]`.
        array: number of its array, or its own.
        index: in the array; empty for a job that is no element.
        site: its home site.
        ran_at: the site that runs or has run it; empty before its start.
        reason: Slurm's word, `None` where there is none.
        said: what the site says of it, for people.
        limit_s: wall-time limit, seconds.
        submit_s, start_s, end_s: moments, seconds since 1970; `None` if not (yet) known.
        elapsed_s: run time so far, seconds.
        code, signal: of its end; 0 if there is none, or it is unknown.
    """

    number: str
    array: str
    index: str
    site: str
    name: str
    user: str
    state: State
    reason: str
    said: str
    ran_at: str
    partition: str
    account: str
    qos: str
    features: str
    licences: str
    cpus: int
    tasks: int
    nodes: int
    limit_s: float
    submit_s: float
    start_s: float | None
    end_s: float | None
    elapsed_s: float
    code: int
    signal: int
    dependency: str
    memory: str

    @property
    def raw(self) -> str:
        """Its number where that has to stand for one job."""
        return self.number

    @property
    def place(self) -> str:
        """The last column of `squeue`: where it runs, or why it does not."""
        return f"({self.reason})" if self.state in _WITH_REASON else self.ran_at

    @property
    def exit(self) -> str:
        """Exit code and signal as Slurm joins them."""
        return f"{self.code}:{self.signal}"


def minutes(seconds: float) -> int:
    """Returns a limit in whole minutes, rounded up as Slurm does."""
    return max(1, -int(-seconds // 60))


def row_of(job: job_pb2.Job, now_s: float) -> Row:
    """Returns a job in Slurm's words; `now_s` is the present moment on the site's clock."""
    request, needs = job.request, job.request.needs
    site, _, number = job.job_id.rpartition("-")
    state, reason = _standing(job)
    start_s = job.start_time_s if job.HasField("start_time_s") else None
    end_s = job.end_time_s if job.HasField("end_time_s") else None
    if state in OPEN - {PENDING} and start_s is not None:
        end_s = start_s + request.requested_time_s  # as Slurm has it: no later than that
    until_s = now_s if state in OPEN else end_s
    elapsed_s = 0.0 if start_s is None or until_s is None else max(0.0, until_s - start_s)
    return Row(
        number=number,
        array=number.partition("_")[0],
        index=str(job.array_index) if job.array_id else "",
        site=site,
        name=job.name,
        user=job.user,
        state=state,
        reason=reason,
        said=job.reason,
        ran_at="" if state is PENDING or start_s is None else job.executed_on,
        partition=needs.partition,
        account=needs.account,
        qos=needs.qos,
        features="&".join(needs.features),
        licences=",".join(f"{each.name}:{each.count}" for each in needs.licences),
        cpus=request.processors,
        tasks=needs.tasks or request.processors,
        nodes=max(1, needs.nodes_min),
        limit_s=request.requested_time_s,
        submit_s=job.submit_time_s,
        start_s=None if state is PENDING else start_s,
        end_s=None if state is PENDING else end_s,
        elapsed_s=0.0 if state is PENDING else elapsed_s,
        code=job.exit_code,
        signal=job.signal,
        dependency=",".join(map(_dependency, job.dependencies)) if state is PENDING else "",
        memory=_memory(needs.memory),
    )


def _standing(job: job_pb2.Job) -> tuple[State, str]:
    if job.state == job_pb2.JOB_STATE_ENDED:
        # What a later version of the site may say is an end all the same.
        state, reason = _ENDS.get(job.outcome, (FAILED, "SystemFailure"))
        # Slurm's word for a script that has ended by a signal, which is not an exit code.
        is_killed = job.outcome == request_pb2.OUTCOME_FAILED and job.signal and not job.exit_code
        return (state, "JobLaunchFailure") if is_killed else (state, reason)
    if job.state in _HAS_PHASES:
        phase = _PHASES.get(job.phase)
        if phase is not None:
            return phase, "None"
        if job.state == job_pb2.JOB_STATE_RUNNING:
            return RUNNING, "None"
    if job.state == job_pb2.JOB_STATE_HELD:
        return PENDING, "Dependency" if job.dependencies else "JobArrayTaskLimit"
    return PENDING, "BadConstraints" if job.stuck else "None"


def _dependency(each: job_pb2.Dependency) -> str:
    kind = _KINDS.get(each.kind, "after")
    number = each.job_id.rpartition("-")[2]
    return f"{kind}:{number}(unfulfilled)" if number else f"{kind}(unfulfilled)"


def _memory(memory: request_pb2.Memory) -> str:
    if not memory.mib:
        return "0"
    return f"{memory.mib // 1024}G" if memory.mib % 1024 == 0 else f"{memory.mib}M"


def together(rows: Iterable[Row]) -> Iterator[Row]:
    """Yields rows, with one for all elements of an array that wait for the same, where the first of them stood."""
    waiting: dict[tuple[str, str, str], list[Row]] = {}
    order: list[Row | tuple[str, str, str]] = []
    for row in rows:
        if row.state is not PENDING or not row.index:
            order.append(row)
            continue
        key = (row.array, row.reason, row.dependency)
        if key not in waiting:
            order.append(key)
        waiting.setdefault(key, []).append(row)
    for each in order:
        if isinstance(each, Row):
            yield each
            continue
        same = waiting[each]
        indices = _ranges([int(row.index) for row in same])
        # Slurm has brackets around a single one as well.
        yield replace(same[0], number=f"{same[0].array}_[{indices}]", index=indices)


def _ranges(indices: Sequence[int]) -> str:
    parts: list[list[int]] = []
    for index in sorted(indices):
        if parts and index == parts[-1][1] + 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in parts)


def read_states(text: str) -> frozenset[State] | None:
    """Returns the states that a list of words or letters names; `None` for all.

    Raises:
        ValueError: one is none of Slurm's; the text is the word.
    """
    known = {word: state for state in STATES for word in state}
    found = set()
    for word in text.upper().split(","):
        if word == "ALL":
            return None
        if word in known:
            found.add(known[word])
        elif word not in NEVER:
            raise ValueError(word)
    return frozenset(found)


META: Final = {
    "plugin": {"type": "openapi/v0.0.38", "name": "Slurm OpenAPI v0.0.38"},
    "Slurm": {"version": {"major": 22, "micro": 8, "minor": 5}, "release": "22.05.8"},
}
"""What documents of that version say of themselves."""


def job_document(row: Row, user_id: int, group_id: int, group_name: str) -> dict[str, Any]:
    """Returns a job as a document; what no site knows of a job is not there.

    `user_id`, `group_id` and `group_name` are those of the job's user on this host.
    """
    has_index = row.index.isdecimal()
    return {
        "account": row.account,
        "array_job_id": int(row.array) if row.index else 0,
        "array_task_id": int(row.index) if has_index else None,
        "array_task_string": "" if has_index else row.index,
        "cluster": row.site,
        "cpus": row.cpus,
        "dependency": row.dependency,
        "end_time": int(row.end_s or 0),
        "exit_code": row.code << 8 | row.signal,
        "features": row.features,
        "group_id": group_id,
        "group_name": group_name,
        "job_id": int(row.array),
        "job_state": row.state.word,
        "licenses": row.licences,
        "name": row.name,
        "node_count": row.nodes,
        "nodes": row.ran_at,
        "partition": row.partition,
        "qos": row.qos,
        "start_time": int(row.start_s or 0),
        "state_description": row.said,
        "state_reason": row.reason,
        "submit_time": int(row.submit_s),
        "tasks": row.tasks,
        "time_limit": minutes(row.limit_s),
        "user_id": user_id,
        "user_name": row.user,
    }
