"""Between the pure state and the simulated batch system.

Commands come when the records that they rest on are in the journal, so that no job runs that nobody
would know of after a restart. Until then a decision counts the jobs on their way to the machine in
(`Memory.load`).
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from google.protobuf.message import DecodeError

from grms.lrms.port import LrmsError
from grms.lrms.simulated import SimulatedLrms
from grms.lrms.stepped import LrmsEnded as Ended
from grms.lrms.stepped import SteppedJob, SteppedPhase
from grms.site.facts.commands import LrmsCancel, LrmsSubmit
from grms.site.facts.events import Event, LrmsAccepted, LrmsEnded, LrmsRefused, LrmsStarted
from grms.site.facts.jobs import Load, Request, lrms_key
from grms.site.facts.lifecycle import Outcome
from grms.site.facts.records import (
    EpochBegun,
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
from lrms_sim.groups import GROUPS

NOT_RUN: Final = "simulated: its script was not run"
"""The reason that a job with a script ends with."""

NewId = Iterator[int]
"""Gives each event its id."""


def lrms_job(key: str, request: Request, payload: bytes) -> SteppedJob:
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
    group = message.simulated.user_group if message.HasField("simulated") else 0
    if group not in {0, *GROUPS}:
        raise LrmsError(f"job {key}: user_group is {group}; it must be from 1 to {GROUPS[-1]}")
    return SteppedJob(
        key, request.processors, request.requested_time, run_time, group=group or None
    )


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

    Args:
        site: name of the site.
        epoch: of its journal.
    """

    def __init__(self, site: str, epoch: int) -> None:
        self._site = site
        self._epoch = epoch
        self._received: dict[int, tuple[str, Request, bytes]] = {}
        # What is asked for is read when all records have been: most jobs have ended by then.
        self._waiting: dict[str, tuple[Request, bytes]] = {}
        self._running: dict[str, tuple[Request, bytes, float]] = {}
        self._moment = -math.inf
        self._apply: dict[type[Record], Callable[[Any], None]] = {
            EpochBegun: self._epoch_begun,
            JobReceived: self._job_received,
            JobKept: self._job_kept,
            JobStarted: self._job_started,
            JobEnded: self._job_ended,
            GuestAccepted: self._guest_accepted,
            GuestStarted: self._guest_started,
            GuestEnded: self._guest_ended,
        }

    def apply(self, record: Record) -> None:
        """Makes a record part of the history; records come in the journal's order."""
        apply = self._apply.get(type(record))
        if apply is not None:
            apply(record)

    def machine(self, processors: int, discipline: Discipline) -> SimulatedLrms:
        """Returns the machine that goes on from there.

        Raises:
            LrmsError: the running jobs do not fit into it.
        """
        running, waiting = [], []
        for key, (request, payload, start_time) in self._running.items():
            if (job := _readable(key, request, payload)) is not None:
                running.append((job, start_time))
        for key, (request, payload) in self._waiting.items():
            if (job := _readable(key, request, payload)) is not None:
                waiting.append(job)
        return SimulatedLrms.restored(
            processors, discipline, running=running, waiting=waiting, moment=self._moment
        )

    @property
    def programs(self) -> set[str]:
        """Keys of the jobs on the machine that have a script."""
        here = {key: payload for key, (_, payload, _) in self._running.items()}
        here.update((key, payload) for key, (_, payload) in self._waiting.items())
        return {key for key, payload in here.items() if has_program(payload)}

    def _epoch_begun(self, record: EpochBegun) -> None:
        self._epoch = record.epoch

    def _job_received(self, record: JobReceived) -> None:
        key = lrms_key(self._site, self._epoch, record.job)
        self._received[record.job] = (key, record.request, record.payload)

    def _job_kept(self, record: JobKept) -> None:
        key, request, payload = self._received[record.job]
        self._submitted(key, (request, payload), record.time)

    def _job_started(self, record: JobStarted) -> None:
        self._started(self._received[record.job][0], record.start_time)

    def _job_ended(self, record: JobEnded) -> None:
        self._ended(self._received.pop(record.job)[0], record.end_time)

    def _guest_accepted(self, record: GuestAccepted) -> None:
        self._submitted(_guest_key(record), (record.request, record.payload), record.time)

    def _guest_started(self, record: GuestStarted) -> None:
        self._started(_guest_key(record), record.start_time)

    def _guest_ended(self, record: GuestEnded) -> None:
        self._ended(_guest_key(record), record.end_time)

    def _submitted(self, key: str, wanted: tuple[Request, bytes], time: float) -> None:
        self._waiting[key] = wanted
        self._moment = max(self._moment, time)

    def _started(self, key: str, time: float) -> None:
        wanted = self._waiting.pop(key, None)
        if wanted is not None:
            self._running[key] = (*wanted, time)
        self._moment = max(self._moment, time)

    def _ended(self, key: str, time: float) -> None:
        here = self._waiting.pop(key, None) or self._running.pop(key, None)
        if here is not None:
            self._moment = max(self._moment, time)


def _readable(key: str, request: Request, payload: bytes) -> SteppedJob | None:
    try:
        return lrms_job(key, request, payload)
    except LrmsError:
        return None  # it was refused then, and will be again


def _guest_key(record: GuestAccepted | GuestStarted | GuestEnded) -> str:
    return lrms_key(record.partner, record.offer.epoch, record.offer.number)


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
                outcome, reason = self._outcome(happened)
                events.append(
                    LrmsEnded(
                        next(self._new_id),
                        happened.job_id,
                        outcome,
                        happened.time,
                        happened.run_time,
                        reason,
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
        if command.lookup and (phase := self._machine.phase_now(key)) is not None:
            return self._found(key, phase)
        if has_program(command.payload):
            self._programs.add(key)
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
        phase = self._machine.phase_now(command.lrms_key)
        return [] if phase is None else self._found(command.lrms_key, phase)

    def _outcome(self, ended: Ended) -> tuple[Outcome, str]:
        if ended.job_id in self._programs:
            self._programs.remove(ended.job_id)
            return Outcome.NOT_RUN, NOT_RUN
        if ended.timed_out:
            return Outcome.TIMEOUT, "ended at the limit of its requested time"
        return Outcome.COMPLETED, ""

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

    def _found(self, key: str, phase: SteppedPhase) -> list[Event]:
        if phase is not SteppedPhase.CANCELLED:
            return [LrmsAccepted(next(self._new_id), key)]
        self._programs.discard(key)
        record = self._machine.lookup_now(key)
        assert record is not None
        end, run_time = record.end_time or 0.0, record.run_time or 0.0
        return [LrmsEnded(next(self._new_id), key, Outcome.CANCELLED, end, run_time)]
