"""What the journal says of the batch system: which jobs run there and which wait."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from grms.kit.job_files import JobFile
from grms.lrms.port import HomeRun, JobInput, LrmsJob, LrmsRefusedError, Program, SimulatedRun
from grms.site.facts.jobs import HomeJob, Request, lrms_key
from grms.site.facts.memory import Memory
from grms.site.facts.records import (
    GuestAccepted,
    GuestConfirmed,
    GuestEnded,
    GuestRequeued,
    GuestReserved,
    GuestStarted,
    JobEnded,
    JobKept,
    JobLeft,
    JobRequeued,
    JobStarted,
    Record,
)
from grms.site.facts.wire import given_inputs, shared_files
from grms.v1 import request_pb2
from lrms_sim.groups import GROUPS

_GROUPS_SAID = frozenset({0, *GROUPS})
"""The numbers of groups that a request may have; 0 is none."""


def lrms_job(
    key: str,
    request: Request,
    payload: bytes,
    *,
    user: str = "",
    partner: str = "",
    contents: Callable[[int, JobFile], Path] | None = None,
) -> LrmsJob:
    """Returns a job as the port has it.

    Args:
        key: its name.
        request: what it asks for.
        payload: a `JobRequest` with what runs alone, serialized.
        user: whose it is; empty for a partner's.
        partner: whose it is; empty for an own user's.
        contents: says where a file lies that the job is given, by its number and what it is.

    Raises:
        LrmsRefusedError: the payload is none.
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
            dict(said.environment),
            tuple(said.outputs),
            tuple(
                JobInput(file, "" if contents is None else str(contents(number, file)))
                for number, file in files
            ),
            shared_files(payload),
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
    )


def _simulated(key: str, said: request_pb2.SimulatedProgram) -> SimulatedRun:
    run_time, group = said.run_time_s, said.user_group
    if not (math.isfinite(run_time) and run_time > 0):
        text = f"job {key}: run_time_s is {run_time}; it must be finite and more than 0"
        raise LrmsRefusedError(text)
    if group and group not in GROUPS:
        text = f"job {key}: user_group is {group}; it must be from 1 to {GROUPS[-1]}"
        raise LrmsRefusedError(text)
    return SimulatedRun(run_time, group or None)


class _Guest:
    # What a partner's job asks for, as a home job has it.
    __slots__ = ("lrms_key", "partner", "payload", "request")

    def __init__(self, key: str, record: GuestAccepted) -> None:
        self.lrms_key = key
        self.request = record.request
        self.payload = record.payload
        self.partner = record.partner


def _job_of(wanted: HomeJob | _Guest) -> LrmsJob | None:
    # It is read when all records have been: most jobs have ended by then.
    user, partner = (wanted.user, "") if isinstance(wanted, HomeJob) else ("", wanted.partner)
    try:
        return lrms_job(wanted.lrms_key, wanted.request, wanted.payload, user=user, partner=partner)
    except LrmsRefusedError:
        return None  # it was refused then, and will be again


class LrmsHistory:
    """Jobs that the batch system has, as far as the journal knows.

    Attributes:
        moment: the last one at which anything is known to have happened, seconds; minus infinity
            where nothing has.

    Args:
        memory: what the records so far make: each of them comes here first, and then becomes a part of it.
    """

    def __init__(self, memory: Memory) -> None:
        self._jobs = memory.jobs
        self._waiting: dict[str, HomeJob | _Guest] = {}
        self._running: dict[str, tuple[HomeJob | _Guest, float]] = {}
        self._reserved: dict[str, HomeJob | _Guest] = {}
        self.moment = -math.inf
        self._apply: dict[type[Record], Callable[[Any], None]] = {
            JobKept: self._job_kept,
            JobLeft: self._job_left,
            JobStarted: self._job_started,
            JobRequeued: self._job_requeued,
            JobEnded: self._job_ended,
            GuestAccepted: self._guest_accepted,
            GuestReserved: self._guest_reserved,
            GuestConfirmed: self._guest_confirmed,
            GuestStarted: self._guest_started,
            GuestRequeued: self._guest_requeued,
            GuestEnded: self._guest_ended,
        }

    def apply(self, record: Record) -> None:
        """Makes a record part of the history; records come in the journal's order."""
        apply = self._apply.get(type(record))
        if apply is not None:
            apply(record)

    def running(self) -> list[tuple[LrmsJob, float]]:
        """Returns the jobs that have started and not ended, with their starts, seconds."""
        wanted = self._running.values()
        return [(job, start) for each, start in wanted if (job := _job_of(each)) is not None]

    def waiting(self) -> list[LrmsJob]:
        """Returns the jobs that were handed over and have not started, oldest first."""
        return [job for each in self._waiting.values() if (job := _job_of(each)) is not None]

    def _job_kept(self, record: JobKept) -> None:
        job = self._jobs[record.job]
        self._waiting[job.lrms_key] = job
        self.moment = max(self.moment, record.time)

    def _job_left(self, record: JobLeft) -> None:
        # Should the batch system get it once more, it has another key by then.
        self._ended(self._jobs[record.job].lrms_key, record.time)

    def _job_started(self, record: JobStarted) -> None:
        self._started(self._jobs[record.job].lrms_key, record.start_time)

    def _job_requeued(self, record: JobRequeued) -> None:
        self._requeued(self._jobs[record.job].lrms_key, record.time)

    def _job_ended(self, record: JobEnded) -> None:
        self._ended(self._jobs[record.job].lrms_key, record.end_time)

    def _guest_accepted(self, record: GuestAccepted) -> None:
        self._submitted(_Guest(_guest_key(record), record), record.time)

    def _guest_reserved(self, record: GuestReserved) -> None:
        key = _guest_key(record)
        self._reserved[key] = self._waiting.pop(key)

    def _guest_confirmed(self, record: GuestConfirmed) -> None:
        self._submitted(self._reserved.pop(_guest_key(record)), record.time)

    def _guest_started(self, record: GuestStarted) -> None:
        self._started(_guest_key(record), record.start_time)

    def _guest_requeued(self, record: GuestRequeued) -> None:
        self._requeued(_guest_key(record), record.time)

    def _guest_ended(self, record: GuestEnded) -> None:
        self._reserved.pop(_guest_key(record), None)
        self._ended(_guest_key(record), record.end_time)

    def _submitted(self, wanted: HomeJob | _Guest, time: float) -> None:
        self._waiting[wanted.lrms_key] = wanted
        self.moment = max(self.moment, time)

    def _started(self, key: str, time: float) -> None:
        wanted = self._waiting.pop(key, None)
        if wanted is not None:
            self._running[key] = (wanted, time)
        self.moment = max(self.moment, time)

    def _requeued(self, key: str, time: float) -> None:
        here = self._running.pop(key, None)
        if here is not None:
            self._waiting[key] = here[0]
        self.moment = max(self.moment, time)

    def _ended(self, key: str, time: float) -> None:
        here = self._waiting.pop(key, None) or self._running.pop(key, None)
        if here is not None:
            self.moment = max(self.moment, time)


def _guest_key(
    record: GuestAccepted
    | GuestReserved
    | GuestConfirmed
    | GuestStarted
    | GuestRequeued
    | GuestEnded,
) -> str:
    return lrms_key(record.partner, record.offer.epoch, record.offer.number)
