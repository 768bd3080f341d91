"""Between the pure state and the simulated batch system.

Commands come when the records that they rest on are in the journal, so that no job runs that nobody
would know of after a restart. Until then a decision counts the jobs on their way to the machine in
(`Memory.load`).
"""

import math
from collections.abc import Iterable, Iterator
from typing import Final

from google.protobuf.message import DecodeError

from grms.lrms.port import LrmsEnded as Ended
from grms.lrms.port import LrmsError, LrmsJob, LrmsPhase, LrmsRecord
from grms.lrms.simulated import SimulatedLrms
from grms.site.commands import LrmsCancel, LrmsSubmit
from grms.site.events import Event, LrmsAccepted, LrmsEnded, LrmsRefused, LrmsStarted
from grms.site.jobs import Load, Request, lrms_key
from grms.site.lifecycle import Outcome
from grms.site.records import (
    GuestAccepted,
    GuestEnded,
    GuestStarted,
    JobEnded,
    JobKept,
    JobReceived,
    JobStarted,
    Record,
)
from grms.v1 import request_pb2
from lrms_sim.disciplines import Discipline

NOT_RUN: Final = "simulated: its script was not run"
"""The reason that a job with a script ends with."""

NewId = Iterator[int]
"""Gives each event its id."""


def lrms_job(key: str, request: Request, payload: bytes) -> LrmsJob:
    """Returns a job as the port has it.

    Args:
        key: its id.
        request: what it asks for.
        payload: a `JobRequest` with its program alone, serialized.

    Raises:
        LrmsError: the payload is none.
    """
    message = request_pb2.JobRequest()
    try:
        message.ParseFromString(payload)
    except DecodeError as error:
        raise LrmsError(f"job {key}: what it runs cannot be read") from error
    run_time = message.simulated.run_time_s if message.HasField("simulated") else None
    if run_time is not None and not (math.isfinite(run_time) and run_time > 0):
        raise LrmsError(f"job {key}: run_time_s is {run_time}; it must be finite and more than 0")
    return LrmsJob(key, request.processors, request.requested_time, run_time)


def has_program(payload: bytes) -> bool:
    """Returns whether a job has a script, which a simulated machine does not run."""
    message = request_pb2.JobRequest()
    try:
        message.ParseFromString(payload)
    except DecodeError:
        return False
    return message.HasField("program")


class MachineHistory:
    """What the journal says of the simulated machine: which jobs run on it and which wait.

    Attributes:
        programs: keys of those that have a script.

    Args:
        site: name of the site.
        epoch: of its journal.
    """

    def __init__(self, site: str, epoch: int) -> None:
        self._site = site
        self._epoch = epoch
        self._received: dict[int, tuple[Request, bytes]] = {}
        self._waiting: dict[str, LrmsJob] = {}
        self._running: dict[str, tuple[LrmsJob, float]] = {}
        self._moment = -math.inf
        self.programs: set[str] = set()

    def apply(self, record: Record) -> None:
        """Makes a record part of the history; records come in the journal's order."""
        if isinstance(record, JobReceived):
            self._received[record.job] = (record.request, record.payload)
        elif isinstance(record, JobKept):
            request, payload = self._received[record.job]
            self._submitted(self._key(record.job), request, payload, record.time)
        elif isinstance(record, JobStarted):
            self._started(self._key(record.job), record.start_time)
        elif isinstance(record, JobEnded):
            self._received.pop(record.job, None)
            self._ended(self._key(record.job), record.end_time)
        elif isinstance(record, GuestAccepted):
            key = lrms_key(record.partner, record.offer.epoch, record.offer.number)
            self._submitted(key, record.request, record.payload, record.time)
        elif isinstance(record, GuestStarted):
            key = lrms_key(record.partner, record.offer.epoch, record.offer.number)
            self._started(key, record.start_time)
        elif isinstance(record, GuestEnded):
            key = lrms_key(record.partner, record.offer.epoch, record.offer.number)
            self._ended(key, record.end_time)

    def machine(self, processors: int, discipline: Discipline) -> SimulatedLrms:
        """Returns the machine that goes on from there.

        Raises:
            LrmsError: the running jobs do not fit into it.
        """
        return SimulatedLrms.restored(
            processors,
            discipline,
            running=self._running.values(),
            waiting=list(self._waiting.values()),
            moment=self._moment,
        )

    def _key(self, job: int) -> str:
        return lrms_key(self._site, self._epoch, job)

    def _submitted(self, key: str, request: Request, payload: bytes, time: float) -> None:
        try:
            self._waiting[key] = lrms_job(key, request, payload)
        except LrmsError:
            return  # it was refused then, and will be again
        if has_program(payload):
            self.programs.add(key)
        self._moment = max(self._moment, time)

    def _started(self, key: str, time: float) -> None:
        job = self._waiting.pop(key, None)
        if job is not None:
            self._running[key] = (job, time)
        self._moment = max(self._moment, time)

    def _ended(self, key: str, time: float) -> None:
        here = self._waiting.pop(key, None) or self._running.pop(key, None)
        if here is not None:
            self._moment = max(self._moment, time)
            self.programs.discard(key)


class MachineDriver:
    """Carries out commands to the simulated machine, and tells what it has done as events.

    Args:
        machine: the machine.
        new_id: gives each event its id.
        programs: keys of the jobs on the machine that have a script.
    """

    def __init__(self, machine: SimulatedLrms, new_id: NewId, programs: Iterable[str] = ()) -> None:
        self._machine = machine
        self._new_id = new_id
        self._programs = set(programs)

    @property
    def next_event_time(self) -> float:
        """When the machine next does something by itself, seconds; infinity for never."""
        return self._machine.next_event_time

    def load(self, now: float) -> Load:
        """Returns the three numbers a decision rests on, as they are at a moment."""
        state = self._machine.state_now(now)
        return Load(state.processors, state.processors_free, state.processors_waiting)

    def poll(self, now: float) -> list[Event]:
        """Returns what the machine has done since the last call, up to and including a moment."""
        events: list[Event] = []
        for happened in self._machine.poll_now(now):
            if isinstance(happened, Ended):
                events.append(
                    LrmsEnded(
                        next(self._new_id),
                        happened.job_id,
                        Outcome.COMPLETED,
                        happened.time,
                        happened.run_time,
                        self._ended(happened.job_id),
                    )
                )
            else:
                events.append(LrmsStarted(next(self._new_id), happened.job_id, happened.time))
        return events

    def finish(self, moment: float) -> None:
        """Does everything due up to a moment after which no submission of it comes, seconds."""
        self._machine.finish(moment)

    def submit(self, command: LrmsSubmit, now: float) -> list[Event]:
        """Puts a job into the machine's queue, unless it is there."""
        key = command.lrms_key
        if has_program(command.payload):
            self._programs.add(key)
        if command.lookup and (record := self._machine.lookup_now(key)) is not None:
            return self._found(key, record)
        if command.started:
            reason = "the batch system does not know the job any more"
            return [LrmsEnded(next(self._new_id), key, Outcome.FAILED, now, 0.0, reason)]
        try:
            job = lrms_job(key, command.request, command.payload)
            self._machine.submit_now(job, now)
        except LrmsError as error:
            return [LrmsRefused(next(self._new_id), key, str(error))]
        return [LrmsAccepted(next(self._new_id), key)]

    def cancel(self, command: LrmsCancel, now: float) -> list[Event]:
        """Ends a job; nothing where it has ended already or was never there."""
        if not self._machine.cancel_now(command.lrms_key, now):
            return []
        record = self._machine.lookup_now(command.lrms_key)
        return [] if record is None else self._found(command.lrms_key, record)

    def _ended(self, key: str) -> str:
        if key not in self._programs:
            return ""
        self._programs.remove(key)
        return NOT_RUN

    def follow(self, key: str) -> None:
        """Counts a job in `first_end`, until it has ended.

        Args:
            key: of a job that the machine has.
        """
        self._machine.follow(key)

    def first_end(self) -> float:
        """Returns a moment before which no job that is followed ends, seconds.

        Only a simulation knows it. Infinity for no job.
        """
        return self._machine.first_end()

    def _found(self, key: str, record: LrmsRecord) -> list[Event]:
        if record.phase is LrmsPhase.CANCELLED:
            self._programs.discard(key)
            end, run_time = record.end_time or 0.0, record.run_time or 0.0
            return [LrmsEnded(next(self._new_id), key, Outcome.CANCELLED, end, run_time)]
        return [LrmsAccepted(next(self._new_id), key)]
