"""Answers of a site to its clients: jobs, their results, and errors.

`grms.client` exports all of it.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from grms.util.outcomes import Outcome
from grms.v1 import job_pb2, request_pb2, results_pb2


class JobState(enum.StrEnum):
    """Where a job stands; the words of `proto/grms/v1/job.proto`."""

    HELD = "held"
    RECEIVED = "received"
    OFFERING = "offering"
    RESOLVING = "resolving"
    WITHDRAWING = "withdrawing"
    SUBMITTING = "submitting"
    QUEUED = "queued"
    RUNNING = "running"
    DELEGATED = "delegated"
    SUSPECT = "suspect"
    ENDED = "ended"
    UNKNOWN = "unknown"
    """A state of a later version of the site; the job has not ended."""


class JobPhase(enum.StrEnum):
    """Where a job stands in the batch system that has it; the words of `proto/grms/v1/request.proto`."""

    WAITING = "waiting"
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETING = "completing"


@dataclass(frozen=True, slots=True)
class ArrayCounts:
    """How an array is.

    Attributes:
        elements: as submitted, in Slurm's notation.
        count: of elements.
        held: of those that wait for other jobs, or for room in the array.
        under_way: of those that are decided, and have not ended.
        completed, not_completed: of those that have ended.
    """

    elements: str
    count: int
    held: int
    under_way: int
    completed: int
    not_completed: int


@dataclass(frozen=True, slots=True)
class SentHome:
    """A partner has ended a job for other ones.

    Attributes:
        site: the partner.
        times: how often.
        lost_s: how long it ran there for nothing in all, by the partner's clock, seconds.
        kept_s: how long it ran there in all until it wrote the state from which it goes on, likewise.
        problem: why it does not go on from the state that it wrote there the last time; empty if it does, or writes none.
    """

    site: str
    times: int
    lost_s: float
    kept_s: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as its site shows it.

    Attributes:
        job_id: given by the site.
        name: given by the user; may be empty.
        requested_time_s: wall-time limit in seconds.
        executed_on: the site that has it or has run it; empty while undecided.
        submit_time_s: on the site's clock, seconds.
        start_time_s: likewise; `None` before the start, and for a job elsewhere until its site has told it.
        end_time_s: likewise; `None` before the end.
        outcome: `None` before the end.
        reason: of its state, for people; may be empty.
        stuck: reasons why it cannot continue by itself; empty if it can.
        exit_code: of its script; `None` if there is none, or it is unknown.
        signal: that ended it; `None` if there was none, or it is unknown.
        offered_to: the partner asked to hold a slot for it while it is queued; else empty.
        leaving: that partner holds a slot, and the job is being withdrawn from the batch system.
        needs: what it asks for besides processors, for people; empty for nothing.
        array_id: of the array of which it is an element; empty for none.
        array_index: in that array; `None` for none.
        dependencies: what it waits, or has waited for, in Slurm's notation.
        array: of an array as a whole; `None` of a job.
        phase: where it stands in the batch system that has it; `None` while none has it, and for a job elsewhere until
            its site has told it.
        since_s: since when it is in its state and phase, seconds; `None` if unknown.
        told_time_s: when the partner that has it last said where it stands, seconds; `None` for never.
        cost: processor seconds that it has used, so far if it runs; `None` if it has not started.
        account: that pays for it, as its user named it; empty for the default.
        sites: that may run it; empty for any.
        sent_home: by which partners, in the order of the first time.
        place: that it keeps in its site's queue while it is at a partner that may send it home, or has had there again, for
            people; may be empty.
    """

    job_id: str
    name: str
    user: str
    processors: int
    requested_time_s: float
    state: JobState
    executed_on: str
    submit_time_s: float
    start_time_s: float | None
    end_time_s: float | None
    outcome: Outcome | None
    cancel_requested: bool
    reason: str
    stuck: str = ""
    exit_code: int | None = None
    signal: int | None = None
    offered_to: str = ""
    leaving: bool = False
    needs: str = ""
    array_id: str = ""
    array_index: int | None = None
    dependencies: tuple[str, ...] = ()
    array: ArrayCounts | None = None
    phase: JobPhase | None = None
    since_s: float | None = None
    told_time_s: float | None = None
    cost: float | None = None
    account: str = ""
    sites: tuple[str, ...] = ()
    sent_home: tuple[SentHome, ...] = ()
    place: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state is JobState.ENDED


@dataclass(frozen=True, slots=True)
class Changes:
    """What has changed of a user's jobs.

    Attributes:
        jobs: each as it is by then, however often it has changed.
        token: what has been told by now; for `Client.changes` of a later program. Empty where more follows at once.
        user: the caller as the site knows them.
    """

    jobs: tuple[Job, ...]
    token: str
    user: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What would become of a job that is not submitted; of an array, of its first element.

    Attributes:
        site: the site that was asked.
        asked: partners that it would be offered to, in order, until one accepts; what they answer nobody knows before.
        kept: the site runs it if none of them accepts; else it waits there, and is offered again later.
        reason: of the site's own decision.
        passed_over: partners that it would not be offered to, and why.
        held: what it waits for first; empty for nothing.
        known: the job with the same key, which a submission would return; else empty.
    """

    site: str
    asked: tuple[str, ...]
    kept: bool
    reason: str
    passed_over: Mapping[str, str]
    held: str
    known: str


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file that a job has left, or should have left.

    Attributes:
        name: `stdout`, `stderr`, or of a file for which a declaration of the job's stands; a folder or pattern
            without a file is `missing`.
        sha256: of its content; empty if there is none, or the job has not ended.
        problem: why there is no content: `missing`, `no_file` (it is a link, a folder or the like),
            `too_large`; empty if there is.
        mode: permission bits; 0 if unknown.
        written_as: what the job's user has called this stream, a relative name; `/dev/null` if it is not wanted, empty
            if it has no other name.
    """

    name: str
    size_bytes: int
    sha256: bytes
    problem: str
    mode: int = 0
    written_as: str = ""


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """The next part of what a job prints.

    Attributes:
        anew: what came before is of an earlier run; this begins at the first byte.
        notice: why nothing can be seen now, for people; the content is empty then.
    """

    content: bytes = b""
    anew: bool = False
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """Results of a job.

    Attributes:
        files: its streams first, then its declared outputs.
        complete: it has ended, and the files are final.
        problem: why the files are not here; empty if they are.
        folder: of files that are not served, at the site that ran the job; empty if unknown.
        kept_until_s: when they may be deleted, seconds since 1970; 0 if unknown.
        other_files, other_bytes: of unlisted files there.
        left_out: of these, those that the job declares and that no list can have: they are too many, or have names
            that cannot travel; at least so many.
        append: its user wants streams to be added to files of their names.
    """

    files: tuple[ResultFile, ...]
    complete: bool
    problem: str
    folder: str = ""
    kept_until_s: float = 0.0
    other_files: int = 0
    other_bytes: int = 0
    left_out: int = 0
    append: bool = False


_STATES: Final[dict[int, JobState]] = {
    number: JobState(name.removeprefix("JOB_STATE_").lower())
    for name, number in job_pb2.JobState.items()
    if number != job_pb2.JOB_STATE_UNSPECIFIED
}
_PHASES: Final[dict[int, JobPhase]] = {
    number: JobPhase(name.removeprefix("JOB_PHASE_").lower())
    for name, number in request_pb2.JobPhase.items()
    if number != request_pb2.JOB_PHASE_UNSPECIFIED
}
_KINDS: Final[dict[int, str]] = {
    number: name.removeprefix("DEPENDENCY_KIND_").lower()
    for name, number in job_pb2.DependencyKind.items()
}
_OUTCOMES: Final = {request_pb2.OUTCOME_UNSPECIFIED: None} | {
    number: Outcome(name.removeprefix("OUTCOME_").lower())
    for name, number in request_pb2.Outcome.items()
    if number != request_pb2.OUTCOME_UNSPECIFIED
}


def read_job(message: job_pb2.Job) -> Job:
    """Returns a job from its message."""
    request = message.request
    reason = message.reason
    if message.outcome not in _OUTCOMES and not reason:
        reason = f"it ended by outcome {message.outcome}, a word of a later version"
    return Job(
        job_id=message.job_id,
        name=message.name,
        user=message.user,
        processors=request.processors,
        requested_time_s=request.requested_time_s,
        state=_STATES.get(message.state, JobState.UNKNOWN),
        executed_on=message.executed_on,
        submit_time_s=message.submit_time_s,
        start_time_s=_optional(message, "start_time_s"),
        end_time_s=_optional(message, "end_time_s"),
        outcome=_OUTCOMES.get(message.outcome, Outcome.UNKNOWN),
        cancel_requested=message.cancel_requested,
        reason=reason,
        stuck=message.stuck,
        exit_code=_optional(message, "exit_code"),
        signal=_optional(message, "signal"),
        offered_to=message.offered_to,
        leaving=message.leaving,
        needs=_needs(request),
        array_id=message.array_id,
        array_index=message.array_index if message.array_id else None,
        dependencies=tuple(map(_dependency, message.dependencies)),
        array=_counts(message.array) if message.HasField("array") else None,
        phase=_PHASES.get(message.phase),
        since_s=_optional(message, "since_s"),
        told_time_s=_optional(message, "told_time_s"),
        cost=_optional(message, "cost"),
        account=request.needs.account,
        sites=tuple(message.sites),
        sent_home=tuple(
            SentHome(one.site, one.times, one.lost_s, one.kept_s, one.problem)
            for one in message.sent_home
        ),
        place=message.place,
    )


def read_preview(message: job_pb2.PreviewResponse) -> Preview:
    """Returns what would become of a job, from its message."""
    return Preview(
        site=message.site,
        asked=tuple(message.asked),
        kept=message.kept,
        reason=message.reason,
        passed_over={each.partner: each.reason for each in message.passed_over},
        held=message.held,
        known=message.known,
    )


def _optional(message: job_pb2.Job, field: Any) -> Any:
    return getattr(message, field) if message.HasField(field) else None


def _dependency(message: job_pb2.Dependency) -> str:
    kind = _KINDS.get(message.kind, f"kind {message.kind} of a later version")
    return f"{kind}:{message.job_id}" if message.job_id else kind


def _counts(message: job_pb2.ArraySummary) -> ArrayCounts:
    return ArrayCounts(
        message.elements,
        message.count,
        message.held,
        message.under_way,
        message.completed,
        message.not_completed,
    )


def _needs(message: request_pb2.JobRequest) -> str:
    if not message.HasField("needs"):
        return ""
    from grms.daemon.job_needs import read_needs  # noqa: PLC0415  # of few jobs, and slow to import

    try:
        return str(read_needs(message.needs, message.requested_time_s))
    except ValueError as error:
        return f"cannot be shown here: {error}"


def read_results(message: results_pb2.ResultList) -> Results:
    """Returns the results of a job from their message."""
    return Results(
        tuple(
            ResultFile(
                file.name,
                file.size_bytes,
                file.sha256,
                _problem(file.problem),
                file.mode,
                file.written_as,
            )
            for file in message.files
        ),
        message.complete,
        message.problem,
        message.folder,
        message.kept_until_s,
        message.other_files,
        message.other_bytes,
        message.left_out,
        message.append,
    )


def _problem(number: int) -> str:
    if number == results_pb2.FILE_PROBLEM_UNSPECIFIED:
        return ""
    if number not in results_pb2.FileProblem.values():
        return "no_file"  # a newer site's word
    return results_pb2.FileProblem.Name(number).removeprefix("FILE_PROBLEM_").lower()


_WORDS: Final = {
    Outcome.CANCELLED: "was cancelled",
    Outcome.TIMEOUT: "was ended at the limit of its requested time",
    Outcome.NODE_FAIL: "was lost with its node",
    Outcome.OUT_OF_MEMORY: "was ended as it needed more memory than it had",
    Outcome.LOST: "is not known to the batch system any more, and had not started",
    Outcome.PREEMPTED: "was ended by the batch system for another job",
    Outcome.NOT_RUN: "was simulated: the site does not run programs",
    Outcome.UNKNOWN: "is over, and nobody can say how it ended",
}


def ending(job: Job) -> str:
    """Returns why a job that has ended has failed, for people; empty if it has not."""
    if job.outcome is Outcome.COMPLETED and not job.exit_code:
        return ""
    if job.outcome in _WORDS:
        words = _WORDS[job.outcome]
    elif job.signal is not None:
        words = f"was ended by signal {job.signal}"
    elif job.exit_code is not None:
        words = f"ended with exit code {job.exit_code}"
    else:
        words = "failed"
    if job.outcome is Outcome.TIMEOUT:
        words += f" ({job.requested_time_s / 60:g} min)"
    where = f" at {job.executed_on}" if job.executed_on else ""
    return f"Job {job.job_id} {words}{where}{job.reason and f': {job.reason}'}."
