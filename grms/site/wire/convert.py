"""Conversion between the state's values and wire messages."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from grms.daemon.job_files import MODE_MAX, JobFile, WantedFiles, check_inputs, check_wanted
from grms.daemon.job_needs import read_kinds, read_needs, write_needs
from grms.daemon.messages import WireError
from grms.daemon.shared_folders import SharedFile, check_shared
from grms.daemon.uploads import SHA256_BYTES
from grms.lrms.base import (
    RESTARTS,
    JobInput,
    LrmsJob,
    LrmsPhase,
    LrmsRefusedError,
    Program,
    SimulatedRun,
)
from grms.lrms.home_run import HomeRun
from grms.site.model.commands import ReplyPreview
from grms.site.model.held_jobs import OK, JobArray
from grms.site.model.jobs import (
    Completion,
    Exit,
    GuestJob,
    HomeJob,
    OfferId,
    Progress,
    Request,
    lrms_key,
)
from grms.site.model.lifecycle import PROVISIONAL, SHOWN, GuestState, JobState, Outcome
from grms.site.model.usage import PROCESSORS, UsageRecord, Weights, cost
from grms.util.dependencies import DEPENDENCIES_MAX, KINDS, Dependency
from grms.util.job_arrays import ArraySpec
from grms.util.names import PSEUDONYM
from grms.v1 import job_pb2, partner_pb2, request_pb2, reservation_pb2
from lrms_sim.machine.node_kinds import NodeKind
from lrms_sim.util.messages import printable, shorten
from lrms_sim.workload.groups import GROUPS

PROTOCOL_VERSION = 1
"""Of `proto/grms/v1`."""

PROGRESS_MAX: Final = 1000
"""Most offers in one question of where their jobs stand."""


STREAM_NAME_MAX: Final = 4096
"""Most characters of what a user calls a job's output."""

JOB_NAME_MAX: Final = 128
"""Most characters of the name that a script finds."""

REQUESTED_TIME_MAX: Final = 1e15
"""Longest time that a job may ask for, seconds: what a site keeps are sums of such times, and a sum that is
infinite, or hides all others behind it, says nothing of a partner any more."""

_OUTCOMES: dict[Outcome, Any] = {
    outcome: request_pb2.Outcome.Value(f"OUTCOME_{outcome.name}") for outcome in Outcome
}
_OUTCOMES_READ = {number: outcome for outcome, number in _OUTCOMES.items()}

SAID_MAX: Final = 100
"""Most characters that are kept of a partner's own word for an outcome."""

JOB_STATES: dict[JobState, Any] = {
    state: job_pb2.JobState.Value(f"JOB_STATE_{state.name}") for state in SHOWN
}
_JOB_STATES_READ = {number: state for state, number in JOB_STATES.items()}

JOB_PHASES: dict[LrmsPhase, Any] = {
    phase: request_pb2.JobPhase.Value(f"JOB_PHASE_{phase.name}")
    for phase in (
        *(LrmsPhase.WAITING, LrmsPhase.RUNNING),
        *(LrmsPhase.SUSPENDED, LrmsPhase.COMPLETING),
    )
}
_JOB_PHASES_READ = {number: phase for phase, number in JOB_PHASES.items()}

_DEPENDENCIES: dict[str, Any] = {
    kind: job_pb2.DependencyKind.Value(f"DEPENDENCY_KIND_{kind.upper()}") for kind in KINDS
}
_DEPENDENCIES_READ = {number: kind for kind, number in _DEPENDENCIES.items()}

_TO_FETCH = request_pb2.JobRequest(to_fetch=request_pb2.ProgramToFetch()).SerializeToString()

EPOCH_AHEAD_NS: Final = 86_400 * 10**9
"""So much later than now the epoch of an offer may be that a partner says it has seen, nanoseconds: the clock was
ahead when the journal was made. Who followed any claim would one day have an epoch that no new journal reaches."""

_OFFER_STATES = {
    None: partner_pb2.OFFER_STATE_UNKNOWN,
    GuestState.ACCEPTED: partner_pb2.OFFER_STATE_ACCEPTED,
    GuestState.DECLINED: partner_pb2.OFFER_STATE_DECLINED,
    GuestState.WITHDRAWN: partner_pb2.OFFER_STATE_WITHDRAWN,
    GuestState.ENDED: partner_pb2.OFFER_STATE_ENDED,
}
_OFFER_STATES_READ = {number: state for state, number in _OFFER_STATES.items()}


def read_request(message: request_pb2.JobRequest, field: str) -> tuple[Request, bytes]:
    """Returns a job's request, and its program as opaque bytes; `field` is its name in errors.

    Raises:
        WireError: a bound is violated.
    """
    request = _read_asked(message, field)
    if message.WhichOneof("payload") is None and len(UnknownFieldSet(message)):
        text = "what runs is of a kind that came with a later version; this one would run nothing"
        raise WireError(f"{field}.payload", text)
    if message.program.inputs or message.program.outputs:
        _check_files(message.program, f"{field}.program")
    _check_checkpoint(request, message.program, f"{field}.program.checkpoint")
    if len(message.program.name) > JOB_NAME_MAX or "\0" in message.program.name:
        text = f"name: at most {JOB_NAME_MAX} characters, without NUL"
        raise WireError(f"{field}.program.name", text)
    for name, value in (("output", message.streams.output), ("error", message.streams.error)):
        if len(value) > STREAM_NAME_MAX:
            text = f"{name}: it has {len(value)} characters; at most {STREAM_NAME_MAX} are taken"
            raise WireError(f"{field}.streams.{name}", text)
    program = request_pb2.JobRequest()
    program.CopyFrom(message)
    for told in ("processors", "requested_time_s", "needs"):
        program.ClearField(told)
    if program.HasField("simulated"):
        run_time = program.simulated.run_time_s
        if not (math.isfinite(run_time) and run_time > 0):
            raise WireError(
                f"{field}.simulated.run_time_s",
                f"run_time_s is {run_time}; it must be finite and more than 0",
            )
        group = program.simulated.user_group
        if group not in {0, *GROUPS}:
            raise WireError(
                f"{field}.simulated.user_group",
                f"user_group is {group}; it must be from 1 to {GROUPS[-1]}, or 0 for none",
            )
    return request, program.SerializeToString(deterministic=True)


CHECKPOINT_LEAST_S: Final = 1.0
"""A job cannot say that it writes its state more often than so, seconds."""


def _check_checkpoint(request: Request, program: request_pb2.Program, field: str) -> None:
    said = program.checkpoint
    if not program.HasField("checkpoint"):
        return
    if not CHECKPOINT_LEAST_S <= said.every_s <= request.requested_time:
        text = (
            f"every_s is {said.every_s:g}; it must be from {CHECKPOINT_LEAST_S:g} s to the requested time, "
            f"{request.requested_time:g} s"
        )
        raise WireError(f"{field}.every_s", text)
    try:
        wanted = check_wanted(said.files)
    except ValueError as error:
        raise WireError(f"{field}.files", f"files: {error}") from error
    if not wanted.declared:
        raise WireError(f"{field}.files", "files: the job says in none that it writes its state")
    shared = {each.name for each in program.inputs if each.shared_path}
    if in_place := sorted(each for each in shared if each in wanted.names or wanted.matches(each)):
        text = f"files: {in_place[0]!r} is used in place, and does not travel"
        raise WireError(f"{field}.files", text)
    if request.needs is not None and request.needs.requeue is False:
        text = "the job must not run a second time, and says how it goes on in one"
        raise WireError(field, text)


def checkpoint_of(payload: bytes) -> float:
    """Returns how often a job writes its state at least, seconds; 0 if it does not."""
    program = request_pb2.JobRequest.FromString(payload).program
    return program.checkpoint.every_s if program.HasField("checkpoint") else 0.0


def state_files(payload: bytes) -> WantedFiles:
    """Returns the files in which a job writes its state."""
    return check_wanted(request_pb2.JobRequest.FromString(payload).program.checkpoint.files)


def restored(files: Iterable[JobFile], begun: int) -> bytes:
    """Returns what a job runs besides, to go on from its state; it is put behind the payload.

    `begun` is how often it has begun before. Of inputs with the same name the last counts (`whole`).
    """
    program = request_pb2.Program(environment={RESTARTS: str(begun)})
    for file in files:
        program.inputs.add(
            name=file.name, size_bytes=file.size, sha256=file.sha256, mode=file.mode & MODE_MAX
        )
    return request_pb2.JobRequest(program=program).SerializeToString(deterministic=True)


def whole(payload: bytes) -> request_pb2.JobRequest:
    """Returns a payload as a message; of inputs with the same name it has the last: state that the job goes on from."""
    message = request_pb2.JobRequest.FromString(payload)
    inputs = {each.name: each for each in message.program.inputs}
    if len(inputs) < len(message.program.inputs):
        last = list(inputs.values())
        del message.program.inputs[:]
        message.program.inputs.extend(last)
    return message


def _read_asked(message: request_pb2.JobRequest, field: str) -> Request:
    try:
        request = Request(message.processors, message.requested_time_s)
    except ValueError as error:
        name = str(error).partition(" ")[0]
        wire_name = "requested_time_s" if name == "requested_time" else name
        raise WireError(f"{field}.{wire_name}", str(error)) from error
    if message.HasField("needs"):
        try:
            needs = read_needs(message.needs, request.requested_time)
            request = Request(request.processors, request.requested_time, needs)
        except ValueError as error:
            raise WireError(f"{field}.needs", str(error)) from error
    if request.requested_time > REQUESTED_TIME_MAX:
        raise WireError(
            f"{field}.requested_time_s",
            f"requested_time_s is {request.requested_time}; it must be at most {REQUESTED_TIME_MAX:g}",
        )
    return request


def _check_files(program: request_pb2.Program, field: str) -> None:
    shared = [_read_shared(each) for each in program.inputs if each.shared_path]
    try:
        check_wanted(program.outputs)
    except ValueError as error:
        raise WireError(f"{field}.outputs", f"outputs: {error}") from error
    for what, names in (
        ("inputs", [each.name for each in program.inputs if not each.shared_path]),
        ("inputs", [each.name for each in shared if not each.runs]),
    ):
        try:
            check_inputs(names)
        except ValueError as error:
            raise WireError(f"{field}.{what}", f"{what}: {error}") from error
    names_all = [each.name for each in program.inputs]
    if len(set(names_all)) < len(names_all):
        raise WireError(f"{field}.inputs", "inputs: a name comes twice")
    try:
        for file in shared:
            check_shared(file)
    except ValueError as error:
        raise WireError(f"{field}.inputs.shared_path", str(error)) from error
    if program.script and any(each.runs for each in shared):
        raise WireError(f"{field}.script", "script: it is both here and used in place")
    for each in program.inputs:
        if not each.shared_path and len(each.sha256) != SHA256_BYTES:
            text = (
                f"sha256 of {each.name!r} has {len(each.sha256)} bytes; it must have {SHA256_BYTES}"
            )
            raise WireError(f"{field}.inputs.sha256", text)


def read_input(message: request_pb2.InputFile) -> JobFile:
    """Returns an input file of a job."""
    return JobFile(message.name, message.size_bytes, message.sha256, mode=message.mode & MODE_MAX)


def given_inputs(payload: bytes) -> tuple[JobFile, ...]:
    """Returns a job's input files, without those that it uses in place; the payload is that of `read_request`."""
    message = whole(payload)
    return tuple(read_input(each) for each in message.program.inputs if not each.shared_path)


def shared_files(payload: bytes) -> tuple[SharedFile, ...]:
    """Returns the files that a job uses in place; the payload is that of `read_request`."""
    message = request_pb2.JobRequest.FromString(payload)
    return tuple(_read_shared(each) for each in message.program.inputs if each.shared_path)


def _read_shared(message: request_pb2.InputFile) -> SharedFile:
    return SharedFile(message.name, message.shared_path, message.written)


def write_request(request: Request, payload: bytes) -> request_pb2.JobRequest:
    """Returns a job's request as a message, for its user and for partners.

    How its own site runs it is in no message: its user's variables are private.
    """
    message = whole(payload)
    message.ClearField("home")
    message.ClearField("streams")
    message.processors = request.processors
    message.requested_time_s = request.requested_time
    if request.needs is not None:
        message.needs.CopyFrom(write_needs(request.needs))
    return message


def without_program(payload: bytes) -> bytes:
    """Returns a payload as offers have it: with a mark in place of the script.

    One without a script is returned as it is.
    """
    if not request_pb2.JobRequest.FromString(payload).HasField("program"):
        return payload
    return _TO_FETCH


def is_to_fetch(payload: bytes) -> bool:
    """Returns whether the script of a partner's job is still with the partner."""
    # A newer partner may say more of it.
    return request_pb2.JobRequest.FromString(payload).HasField("to_fetch")


def declared_outputs(payload: bytes) -> WantedFiles | None:
    """Returns the files that a job declares; `None` if it has no script."""
    message = request_pb2.JobRequest.FromString(payload)
    return check_wanted(message.program.outputs) if message.HasField("program") else None


def read_offer(message: partner_pb2.OfferId, field: str = "offer") -> OfferId:
    """Returns the name of an offer; `field` is its name in errors.

    Raises:
        WireError: it is invalid.
    """
    if not 1 <= message.number < 2**63 or not 1 <= message.epoch < 2**63:
        raise WireError(
            field,
            f"offer {message.epoch}/{message.number} is none; both numbers are at least 1",
        )
    return OfferId(message.epoch, message.number)


def read_seen(message: partner_pb2.DescribeResponse, *, epoch: int, now_ns: int) -> OfferId | None:
    """Returns the last of this site's offers that a partner has seen; `None` if it knows of none.

    `epoch` is this site's; `now_ns` is in nanoseconds since 1970.

    Raises:
        WireError: there can be no such offer. An epoch is the moment at which a journal was made.
    """
    if not message.HasField("offer_seen"):
        return None
    seen = read_offer(message.offer_seen, "offer_seen")
    if seen.epoch > max(epoch, now_ns + EPOCH_AHEAD_NS):
        raise WireError(
            "offer_seen",
            f"it says it has seen offer {seen.epoch}/{seen.number}, of an epoch that is still to come",
        )
    return seen


def read_nodes(message: partner_pb2.DescribeResponse) -> tuple[NodeKind, ...]:
    """Returns the nodes of a partner, where it has told them.

    Raises:
        WireError: no site has such nodes.
    """
    try:
        return read_kinds(message.nodes)
    except ValueError as error:
        raise WireError("nodes", str(error)) from error


def read_rerun(message: partner_pb2.OfferRequest, request: Request) -> tuple[float, float]:
    """Returns how often a job writes its state, and what is left of its request as it goes on from it, seconds; 0 if not.

    Raises:
        WireError: one is no such duration.
    """
    for field, value in (("checkpoint_s", message.checkpoint_s), ("left_s", message.left_s)):
        if not 0 <= value <= request.requested_time:
            text = f"{field} is {value:g}; it must be from 0 to the requested time, {request.requested_time:g} s"
            raise WireError(field, text)
    return message.checkpoint_s, message.left_s


def write_offer(offer: OfferId) -> partner_pb2.OfferId:
    """Returns the name of an offer as a message."""
    return partner_pb2.OfferId(epoch=offer.epoch, number=offer.number)


def read_completion(message: partner_pb2.Completion, field: str) -> Completion:
    """Returns the end of a delegated job.

    Raises:
        WireError: it is invalid.
    """
    if message.outcome == request_pb2.OUTCOME_UNSPECIFIED:
        raise WireError(f"{field}.outcome", f"outcome is {message.outcome}; it must be a known one")
    if not math.isfinite(message.end_time_s):
        raise WireError(
            f"{field}.end_time_s", f"end_time_s is {message.end_time_s}; it must be finite"
        )
    if not (math.isfinite(message.run_time_s) and message.run_time_s >= 0):
        text = f"run_time_s is {message.run_time_s}; it must be finite and at least 0"
        raise WireError(f"{field}.run_time_s", text)
    outcome, said = _read_outcome(message)
    code = message.exit_code if message.HasField("exit_code") else None
    signal = message.signal if message.HasField("signal") else None
    try:
        left = Exit(code, signal)
    except ValueError as error:
        raise WireError(f"{field}.{str(error).partition(' ')[0]}", str(error)) from error
    offer = read_offer(message.offer, f"{field}.offer")
    kept = message.kept_s
    if not (math.isfinite(kept) and kept >= 0):
        text = f"kept_s is {kept}; it must be finite and at least 0"
        raise WireError(f"{field}.kept_s", text)
    return Completion(offer, outcome, message.end_time_s, message.run_time_s, left, said, kept)


def _read_outcome(message: partner_pb2.Completion) -> tuple[Outcome, str]:
    """Returns a job's outcome, and a newer partner's word for one unknown to this program."""
    if message.outcome in _OUTCOMES_READ:
        return _OUTCOMES_READ[message.outcome], ""
    said = shorten(printable(message.outcome_text), SAID_MAX)
    return Outcome.UNKNOWN, said or f"outcome {int(message.outcome)}"


def write_completion(completion: Completion) -> partner_pb2.Completion:
    """Returns the end of a delegated job as a message."""
    message = partner_pb2.Completion(
        offer=write_offer(completion.offer),
        end_time_s=completion.end_time,
        run_time_s=completion.run_time,
        outcome_text=completion.outcome.value,
        kept_s=completion.kept,
    )
    write_end(message, completion.outcome, completion.exit)
    return message


def write_end(
    message: partner_pb2.Completion | job_pb2.Job | reservation_pb2.Reservation,
    outcome: Outcome,
    left: Exit,
) -> None:
    """Writes how something has ended into a message."""
    message.outcome = _OUTCOMES[outcome]
    if left.code is not None:
        message.exit_code = left.code
    if left.signal is not None:
        message.signal = left.signal


def read_answer(message: partner_pb2.OfferResponse) -> bool | None:
    """Returns whether an offer was accepted; `None` for a newer partner's unknown answer.

    Raises:
        WireError: the message says nothing.
    """
    if message.answer == partner_pb2.ANSWER_UNSPECIFIED:
        raise WireError("answer", f"answer is {message.answer}; it must be a known one")
    known = {partner_pb2.ANSWER_ACCEPTED: True, partner_pb2.ANSWER_DECLINED: False}
    return known.get(message.answer)


def read_status(message: partner_pb2.OfferStatus) -> tuple[GuestState | None, Completion | None]:
    """Returns what has become of an offer, and its end if it has ended.

    A state known only to a newer partner counts as that of a job that it has and that has not ended.

    Raises:
        WireError: the message says nothing.
    """
    if message.state == partner_pb2.OFFER_STATE_UNSPECIFIED:
        raise WireError("state", f"state is {message.state}; it must be a known one")
    state = _OFFER_STATES_READ.get(message.state, GuestState.ACCEPTED)
    if state is not GuestState.ENDED:
        return state, None
    return state, read_completion(message.completion, "completion")


def write_status(
    status: GuestState | None, completion: Completion | None
) -> partner_pb2.OfferStatus:
    """Returns the state of an offer as a message."""
    message = partner_pb2.OfferStatus(state=_OFFER_STATES[status])
    if completion is not None:
        message.completion.CopyFrom(write_completion(completion))
    return message


def read_asked(message: partner_pb2.ProgressRequest) -> list[OfferId]:
    """Returns the offers about whose jobs a partner asks.

    Raises:
        WireError: there are too many, or one has numbers out of their bounds.
    """
    if len(message.offers) > PROGRESS_MAX:
        text = f"{len(message.offers)} offers; at most {PROGRESS_MAX} are possible"
        raise WireError("offers", text)
    return [read_offer(offer, f"offers[{number}]") for number, offer in enumerate(message.offers)]


def read_progress(
    message: partner_pb2.ProgressResponse, asked: Sequence[OfferId]
) -> tuple[Progress, ...]:
    """Returns where delegated jobs stand; those that stand as only a newer partner knows are left out.

    `asked` are the offers about whose jobs the partner was asked.

    Raises:
        WireError: a number is out of its bounds, or it tells of a job that it was not asked about.
    """
    found, expected = [], frozenset(asked)
    for number, job in enumerate(message.jobs):
        field = f"jobs[{number}]"
        offer = read_offer(job.offer, f"{field}.offer")
        if offer not in expected:
            text = f"{field} is about offer {offer.epoch}/{offer.number}, which was not asked about"
            raise WireError(field, text)
        phase = _JOB_PHASES_READ.get(job.phase)
        if phase is None:
            continue
        start_time = job.start_time_s if job.HasField("start_time_s") else math.nan
        if not math.isfinite(start_time) and job.HasField("start_time_s"):
            raise WireError(field, f"{field}.start_time_s is {start_time}; it must be finite")
        try:
            found.append(Progress(offer, phase, job.since_s, start_time))
        except ValueError as error:
            raise WireError(field, f"{field}: {error}") from error
    return tuple(found)


def write_progress(guest: GuestJob) -> partner_pb2.JobProgress | None:
    """Returns where a partner's job stands; `None` if it has ended."""
    standing = guest.standing
    if standing is None:
        return None
    phase, since = standing
    message = partner_pb2.JobProgress(
        offer=write_offer(guest.offer), phase=JOB_PHASES[phase], since_s=since
    )
    if not math.isnan(guest.start_time):
        message.start_time_s = guest.start_time
    return message


def read_usage_page(
    message: partner_pb2.ListUsageResponse, partner: str, home: str, after: int, now: float
) -> tuple[UsageRecord, ...]:
    """Returns what jobs have used at a partner that their home has delegated.

    Args:
        message: of the partner.
        partner: which has run them.
        home: this site.
        after: the number that the partner was asked to begin behind.
        now: when it has said so, seconds.

    Raises:
        WireError: a number is out of its bounds, or out of order.
    """
    found = []
    for place, one in enumerate(message.records):
        field = f"records[{place}]"
        if one.number <= after:
            raise WireError(field, f"{field}.number is {one.number}, after {after}")
        after = one.number
        offer = read_offer(one.offer, f"{field}.offer")
        times = one.accept_time_s, one.start_time_s, one.end_time_s
        if not all(map(math.isfinite, times)):
            raise WireError(field, f"{field} has times {times}; they must be finite")
        if not 0 <= one.run_time_s < math.inf or not 0 < one.requested_time_s < math.inf:
            text = (
                f"{field} has run {one.run_time_s} s of {one.requested_time_s} s, which cannot be"
            )
            raise WireError(field, text)
        if one.processors < 1 or max(one.memory_mib, one.gpus) >= 2**53:
            raise WireError(field, f"{field} has had {one.processors} processors")
        key = lrms_key(home, offer.epoch, offer.number)
        found.append(
            UsageRecord(
                number=0,
                time=now,
                home=home,
                key=key,
                job_id="",
                name="",
                user=one.owner if PSEUDONYM.fullmatch(one.owner) else "",
                account="",
                partition="",
                site=partner,
                offer=key,
                processors=one.processors,
                memory_mib=one.memory_mib,
                gpus=one.gpus,
                requested_time=one.requested_time_s,
                submit_time=one.accept_time_s,
                start_time=one.start_time_s,
                end_time=one.end_time_s,
                run_time=one.run_time_s,
                outcome=_OUTCOMES_READ.get(one.outcome, Outcome.UNKNOWN),
                exit_code=one.exit_code if one.HasField("exit_code") else None,
                signal=one.signal if one.HasField("signal") else None,
                told_log=shorten(message.log, SAID_MAX),
                told_number=one.number,
            )
        )
    return tuple(found)


def write_usage(record: UsageRecord) -> partner_pb2.GuestUsage:
    """Returns what a partner's job has used here, for its home."""
    _, epoch, number = record.offer.split("/")
    return partner_pb2.GuestUsage(
        number=record.number,
        offer=write_offer(OfferId(int(epoch, 16), int(number))),
        owner=record.user,
        processors=record.processors,
        memory_mib=record.memory_mib,
        gpus=record.gpus,
        requested_time_s=record.requested_time,
        accept_time_s=record.submit_time,
        start_time_s=record.start_time,
        end_time_s=record.end_time,
        run_time_s=record.run_time,
        outcome=_OUTCOMES[record.outcome],
        exit_code=record.exit_code,
        signal=record.signal,
    )


def read_sites(request: job_pb2.SubmitRequest, site: str) -> tuple[str, ...]:
    """Returns the names of the sites that may run a job, each once; empty for any. `site` is who is asked.

    Raises:
        WireError: the site itself is said to be the only one, and others are named.
    """
    named = tuple(dict.fromkeys(request.sites))
    if not request.home_only:
        return named
    if set(named) - {site}:
        text = f"home_only is set, and sites names {', '.join(map(repr, named))}; give one of them"
        raise WireError("sites", text)
    return (site,)


def read_dependencies(messages: Sequence[job_pb2.Dependency]) -> tuple[Dependency, ...]:
    """Returns what a job waits for.

    Raises:
        WireError: there is no such dependency, or there are too many.
    """
    found = []
    for message in messages:
        if message.kind not in _DEPENDENCIES_READ:
            text = f"dependencies has kind {message.kind}; it must be a known one"
            raise WireError("dependencies.kind", text)
        try:
            found.append(Dependency(_DEPENDENCIES_READ[message.kind], message.job_id))
        except ValueError as error:
            raise WireError("dependencies", str(error)) from error
    unique = tuple(dict.fromkeys(found))
    if len(unique) > DEPENDENCIES_MAX:
        text = f"{len(unique)} dependencies; at most {DEPENDENCIES_MAX} are possible, and an array is one"
        raise WireError("dependencies", text)
    return unique


def read_array(text: str) -> ArraySpec | None:
    """Returns the elements of an array; `None` for one job.

    Raises:
        WireError: they are none.
    """
    try:
        return ArraySpec.parse(text) if text else None
    except ValueError as error:
        raise WireError("array", shorten(str(error), SAID_MAX)) from error


def element_part(elements: ArraySpec, array_id: str, index: int) -> bytes:
    """Returns what an element's program has besides that of its array, which it is put behind: variables."""
    environment = elements.variables(array_id, index)
    program = request_pb2.Program(environment=environment)
    return request_pb2.JobRequest(program=program).SerializeToString(deterministic=True)


def write_array(array: JobArray, elements: Iterable[HomeJob], held: int) -> job_pb2.Job:
    """Returns an array as a whole; `elements` are the remembered ones, and `held` how many of them are."""
    jobs = list(elements)
    ended = len(array.spec) - array.open
    state = JobState.ENDED if not array.open else JobState.HELD
    for job in jobs:
        if job.shown in {JobState.HELD, JobState.ENDED}:
            continue
        state = job.shown
        if state is JobState.RUNNING:
            break
    message = job_pb2.Job(
        job_id=array.array_id,
        user=array.user,
        name=array.name,
        request=write_request(array.request, array.payload),
        state=JOB_STATES[state],
        submit_time_s=jobs[0].submit_time,
        # Of one that is in part over what goes on counts.
        cancel_requested=all(
            job.cancel_requested
            for job in jobs
            if job.state is not JobState.ENDED or not array.open
        ),
        revision=sum(job.revision for job in jobs),
        dependencies=_write_dependencies(array.dependencies),
        sites=jobs[0].sites,
        array=job_pb2.ArraySummary(
            elements=str(array.spec),
            count=len(array.spec),
            held=held,
            under_way=len(array.under_way),
            completed=ended - array.not_ok,
            not_completed=array.not_ok,
        ),
    )
    started = [job.start_time for job in jobs if not math.isnan(job.start_time)]
    if started:
        message.start_time_s = min(started)
    if not array.open:
        bad = [job for job in jobs if job.outcome not in OK]
        others = (job.outcome for job in jobs if job.outcome not in {None, Outcome.COMPLETED})
        outcome = Outcome.FAILED if array.not_ok else next(others, Outcome.COMPLETED)
        message.end_time_s = max(job.end_time for job in jobs)
        worst = max((job.exit.code or 0 for job in bad), default=0)
        write_end(
            message,
            (bad[0].outcome if bad else None) or outcome or Outcome.COMPLETED,
            Exit(worst or None),
        )
        if array.not_ok:
            message.reason = f"{array.not_ok} of {len(array.spec)} elements have not completed"
    return message


def _write_dependencies(dependencies: Iterable[Dependency]) -> list[job_pb2.Dependency]:
    return [
        job_pb2.Dependency(kind=_DEPENDENCIES[each.kind], job_id=each.job_id)
        for each in dependencies
    ]


def write_preview(site: str, preview: ReplyPreview) -> job_pb2.PreviewResponse:
    """Returns what would become of a job at a site."""
    return job_pb2.PreviewResponse(
        site=site,
        asked=preview.asked,
        kept=preview.kept,
        reason=preview.reason,
        passed_over=[
            job_pb2.PartnerPassedOver(partner=partner, reason=reason)
            for partner, reason in preview.passed_over
        ],
        held=preview.held,
        known=preview.known,
    )


def read_job_state(number: int) -> JobState:
    """Returns a job's state.

    Raises:
        WireError: there is no such state.
    """
    if number not in _JOB_STATES_READ:
        raise WireError("states", f"states has {number}; it must be a known one")
    return _JOB_STATES_READ[number]


def write_job(
    job: HomeJob,
    site: str,
    now: float = math.nan,
    weights: Weights = PROCESSORS,
    *,
    program: bool = True,
) -> job_pb2.Job:
    """Returns a user's job as its user sees it; with `program`, including the program.

    `now` is in seconds; if it is nan, what a running job has cost so far is left out. `weights` are for the cost.
    """
    message = job_pb2.Job(
        job_id=job.job_id,
        user=job.user,
        name=job.name,
        request=write_request(job.request, job.program if program else b""),
        state=JOB_STATES[job.shown],
        executed_on=executed_on(job, site),
        submit_time_s=job.submit_time,
        cancel_requested=job.cancel_requested,
        revision=job.revision,
        reason=job.reason.encode(
            errors="replace"
        ).decode(),  # half a character would end the daemon
        offered_to=job.partner if job.state in PROVISIONAL else "",
        leaving=job.state is JobState.LEAVING,
        array_id=job.array_id,
        array_index=job.index,
        dependencies=_write_dependencies(job.dependencies),
        sites=job.sites,
        sent_home=[
            job_pb2.SentHome(
                site=each.site,
                times=each.times,
                lost_s=each.lost,
                kept_s=each.kept,
                problem=each.problem,
            )
            for each in job.sent_home
        ],
    )
    if job.standing is not None:
        message.phase = JOB_PHASES[job.standing[0]]
    for field, time in (
        ("start_time_s", job.begun_time),
        ("end_time_s", job.end_time),
        ("since_s", job.since),
        ("told_time_s", job.progress_time),
        ("cost", cost(job, now, weights)),
    ):
        if not math.isnan(time):
            setattr(message, field, time)
    if job.outcome is not None:
        write_end(message, job.outcome, job.exit)
    return message


_HERE = (JobState.SUBMITTING, JobState.QUEUED, JobState.RUNNING)
_THERE = (JobState.DELEGATED, JobState.SUSPECT)


def executed_on(job: HomeJob, site: str) -> str:
    """Returns the site that has a job or has run it; empty while that is open."""
    if job.shown in _HERE:
        return site
    if job.state in _THERE:
        return job.partner
    if job.state is JobState.ENDED:
        return job.partner or (
            site if job.start_time == job.start_time else ""
        )  # nan: never started
    return ""


# --- a job as the port to the batch system defines it --------------------------------------------


JOB_ID_VARIABLE: Final = "HANSE_JOB_ID"
"""In which a job finds its name at its own site; a partner is not told how many jobs there are."""


def own_environment(key: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of a site's own job, with its name as its user knows it.

    `key` is that of the batch system, empty for none; `environment` what the job is submitted with.
    """
    if "HANSE_ARRAY_TASK_ID" in environment:
        job_id = f"{environment['HANSE_ARRAY_JOB_ID']}_{environment['HANSE_ARRAY_TASK_ID']}"
    else:
        home, _, rest = key.partition("/")
        number = rest.split("/")[1:2]
        job_id = f"{home}-{number[0]}" if number else ""
    return {**environment, JOB_ID_VARIABLE: job_id} if job_id else dict(environment)


def lrms_job(
    key: str,
    request: Request,
    payload: bytes,
    *,
    user: str = "",
    partner: str = "",
    preemptible: bool = False,
    protected: bool = False,
    at_once: bool = False,
    place: float | None = None,
    contents: Callable[[int, JobFile], Path] | None = None,
) -> LrmsJob:
    """Returns a job as the port defines it.

    The payload is a serialized `JobRequest` with only the program. `user` is empty for a partner's job, `partner` for
    a local user's; `preemptible`, `protected`, `at_once` and `place` are those of `LrmsJob`; `contents` returns where an input file
    is, by its number and description.

    Raises:
        LrmsRefusedError: the payload is invalid.
    """
    message = request_pb2.JobRequest()
    try:
        message.ParseFromString(payload)
    except DecodeError as error:
        raise LrmsRefusedError(f"job {key}: what it runs cannot be read") from error
    program, simulated = None, None
    runs = message.WhichOneof("payload")
    if runs == "simulated":
        simulated = _simulated(key, message.simulated)
    elif runs == "program":
        said = message.program
        files = enumerate(given_inputs(payload))
        program = Program(
            said.script,
            tuple(said.arguments),
            own_environment(key, said.environment) if user else dict(said.environment),
            tuple(said.outputs),
            tuple(
                JobInput(file, "" if contents is None else str(contents(number, file)))
                for number, file in files
            ),
            shared_files(payload),
            said.merged,
            said.truncated,
            tuple(said.checkpoint.files),
        )
    elif runs == "to_fetch":
        program = Program("")  # a simulated machine does not run it, and no other is given it so
    home = None
    if message.HasField("home") and not partner:
        given = message.home
        home = HomeRun(given.folder, tuple(given.environment), tuple(given.options))
    return LrmsJob(
        key,
        request.processors,
        request.requested_time,
        user,
        partner,
        program,
        simulated,
        name=message.program.name,
        home=home,
        request=request.needs,
        preemptible=preemptible,
        protected=protected,
        at_once=at_once,
        place=place,
    )


def _simulated(key: str, said: request_pb2.SimulatedProgram) -> SimulatedRun:
    run_time, group = said.run_time_s, said.user_group
    if not (math.isfinite(run_time) and run_time > 0):
        text = f"job {key}: run_time_s is {run_time}; it must be finite and more than 0"
        raise LrmsRefusedError(text)
    if group and group not in GROUPS:
        text = f"job {key}: user_group is {group}; it must be from 1 to {GROUPS[-1]}"
        raise LrmsRefusedError(text)
    return SimulatedRun(run_time, group or None, said.place or None)
