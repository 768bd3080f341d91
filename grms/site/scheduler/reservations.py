"""The reservation half of a site: requests of brokers and users, and the passing of time.

Changes due by the moment of an event are recorded before the event is handled, so an answer does not depend on
how late a timer is. Asking twice with one key has the same answer and changes nothing.
"""

import math
from typing import Final

from grms.site.model.commands import (
    PilotKill,
    PilotMove,
    PilotRun,
    PilotWithdraw,
    PublishReservation,
    Refusal,
    Refuse,
    ReplyGroup,
    ReplyReservation,
)
from grms.site.model.events import (
    BookReservation,
    GroupedProgram,
    LaunchGroup,
    LaunchReservation,
    MoveReservation,
    ReleaseReservation,
    ReservationsDue,
)
from grms.site.model.forgotten_keys import FORGOTTEN_KEY
from grms.site.model.jobs import Request, lrms_key
from grms.site.model.lifecycle import Outcome, ReservationState
from grms.site.model.records import (
    Record,
    ReservationBooked,
    ReservationEnded,
    ReservationExpired,
    ReservationLaunched,
    ReservationMoved,
    ReservationReleased,
    ReservationStarted,
)
from grms.site.model.reservations import WINDOW_MAX_S, Reservation, Resource
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.transaction import Transaction

_PROCESSORS_MAX: Final = 2**31 - 1

GROUPED_MAX: Final = 1000
"""Most programs of one group."""

_RUNS_NO_PROGRAM: Final = (
    "this site cannot run a program in a reservation: its batch system is real, and none of its "
    "processors stand behind what can be reserved; hand the program in as a job (grms submit)"
)
RUNS_PROGRAMS_ALONE: Final = "this resource has pilots, which run programs; there is none"
"""Why a job without a program is refused there."""

_NO_PILOT: Final = "the pilot of {} is not there, or ends before the reservation does"
_NO_GROUPS: Final = "{} has no pilots: programs are launched in groups only where there are some"
_FORGOTTEN: Final = (
    "reservation {} of this key was over so long ago that it is forgotten; it is not made again"
)
_HAS_RUN: Final = (
    "its group was launched before, and how it ended is forgotten; it is not run again"
)
_NO_ROOM: Final = (
    "{} reservations are open or were over within {:g} s, and the idempotency keys of no more can be remembered: "
    "ask again later"
)
_OVER_TAKEN: Final = "{} has {} open reservations, and at most {}"


class ReservationHandler:
    """Handles requests about reservations, and their changes over time."""

    def __init__(self, memory: StateTables) -> None:
        self.memory = memory
        self._book = memory.reservations

    # --- time ----------------------------------------------------------------------------------

    def due(self, _event: ReservationsDue, transaction: Transaction) -> None:
        """Records changes over time."""
        self.settle(transaction)

    def settle(self, transaction: Transaction) -> None:
        """Records changes over time up to now, in the order in which they happened."""
        book = self._book
        while book.next_time <= transaction.now:
            found = book.next_due
            record: Record
            if found.state is ReservationState.BOOKED:
                record = ReservationExpired(transaction.now, found.number)
            elif found.state is ReservationState.LAUNCHED:
                record = ReservationStarted(transaction.now, found.number, found.due_time)
            else:
                record = ReservationEnded(transaction.now, found.number, found.due_time)
            self._change(found.number, record, transaction)

    # --- questions -----------------------------------------------------------------------------

    def book(self, event: BookReservation, transaction: Transaction) -> None:
        """Reserves a resource, or finds what this key has reserved before."""
        self.settle(transaction)
        book = self._book
        refusal = self._malformed(event)
        if refusal is not None:
            transaction.do(refusal)
            return
        number = book.keys.get((event.owner, event.idempotency_key))
        if number is not None:
            self._again(event, book.reservations[number], transaction)
            return
        if forgotten := book.forgotten(event.owner, event.idempotency_key):
            reason = _FORGOTTEN.format(forgotten)
            transaction.do(Refuse(event.id, Refusal.PRECONDITION, reason, FORGOTTEN_KEY))
            return
        resource = book.resources.get(event.resource_id)
        if resource is None:
            transaction.do(_no_resource(event.id, event.resource_id))
            return
        refusal = self._refusal(event, resource, transaction.now)
        if refusal is not None:
            transaction.do(refusal)
            return
        number = book.next_number
        record = ReservationBooked(
            transaction.now,
            number,
            event.owner,
            event.idempotency_key,
            event.resource_id,
            event.begin,
            event.end,
            event.processors,
            resource.cost(event.processors, event.begin, event.end),
        )
        self._change(number, record, transaction)
        self._reply(number, transaction)

    def _again(self, event: BookReservation, known: Reservation, transaction: Transaction) -> None:
        wish = (event.resource_id, (event.begin, event.end), event.processors)
        if (known.resource_id, known.booked, known.processors) == wish:
            self._reply(known.number, transaction)
        else:
            reason = f"the key belongs to another reservation, {known.number}"
            transaction.do(Refuse(event.id, Refusal.PRECONDITION, reason))

    def _malformed(self, event: BookReservation) -> Refuse | None:
        most = self.memory.settings.limits.text_characters
        length, begin, end = len(event.idempotency_key), event.begin, event.end
        if not 1 <= length <= most:
            reason = f"idempotency_key has {length} characters; 1 to {most} are possible"
            return Refuse(event.id, Refusal.INVALID, reason, "idempotency_key")
        return _misstated(event.id, begin, end, event.processors)

    def _refusal(self, event: BookReservation, resource: Resource, now: float) -> Refuse | None:
        if event.end <= now:
            reason = f"the window ends at {event.end}, and it is {now}"
            return Refuse(event.id, Refusal.PRECONDITION, reason)
        most = self.memory.settings.limits.reservations_open
        if self._book.open_by_owner[event.owner] >= most:
            reason = f"{event.owner} has {most} open reservations, the most"
            return Refuse(event.id, Refusal.EXHAUSTED, reason)
        if not self._book.is_free(resource, event.processors, event.begin, event.end):
            return _not_free(event.id, resource, event.processors, event.begin, event.end)
        return self._no_room(event.id, 1, now)

    def _no_room(self, question: int, more: int, now: float) -> Refuse | None:
        # Why so many more cannot be remembered for as long as they may be asked for again.
        if self._book.has_room(more, now):
            return None
        limits = self.memory.settings.limits
        reason = _NO_ROOM.format(limits.reservation_keys_kept, limits.reservation_keys_kept_s)
        return Refuse(question, Refusal.EXHAUSTED, reason)

    def launch(self, event: LaunchReservation, transaction: Transaction) -> None:
        """Puts a job into a reservation, or finds the one that this key has put there before."""
        found = self._found(event, transaction)
        if found is None:
            return
        number, key = found.number, event.launch_key
        most = self.memory.settings.limits.text_characters
        resource = self._book.resources.get(found.resource_id)
        if not 1 <= len(key) <= most:
            reason = f"idempotency_key has {len(key)} characters; 1 to {most} are possible"
            transaction.do(Refuse(event.id, Refusal.INVALID, reason, "idempotency_key"))
        elif found.launch_key == key:
            self._reply(number, transaction)
        elif found.launch_key:
            reason = f"another job was launched in reservation {number}"
            transaction.do(Refuse(event.id, Refusal.PRECONDITION, reason))
        elif not found.may_become(ReservationState.LAUNCHED):
            reason = f"reservation {number} is {found.state.value}"
            transaction.do(Refuse(event.id, Refusal.PRECONDITION, reason))
        elif resource is None:
            transaction.do(_no_resource(event.id, found.resource_id))
        elif resource.piloted:
            self._launch_in_pilot(event, found, transaction)
        elif event.program and not self.memory.settings.runs_nothing:
            transaction.do(Refuse(event.id, Refusal.PRECONDITION, _RUNS_NO_PROGRAM, "job.program"))
        else:
            self._launch(event, found, resource, transaction)

    def _launch(
        self,
        event: LaunchReservation,
        found: Reservation,
        resource: Resource,
        transaction: Transaction,
    ) -> None:
        requested, speed = event.request.requested_time, resource.speed
        here, needed = min(event.run_time, requested) / speed, event.run_time / speed
        processors, start = event.request.processors, max(found.begin, transaction.now)
        if processors > found.processors or start + here > found.end:
            reason = (
                f"the job needs {processors} processors for {here:g} s from {start:g}; reservation "
                f"{found.number} has {found.processors} until {found.end:g}"
            )
            transaction.do(Refuse(event.id, Refusal.PRECONDITION, reason))
            return
        allowed = found.end - start if event.to_the_end else requested / speed
        record = ReservationLaunched(
            transaction.now,
            found.number,
            event.launch_key,
            run_time=min(needed, allowed),
            cut_off=needed > allowed,
            needed_time=needed,
            to_the_end=event.to_the_end,
        )
        self._change(found.number, record, transaction)
        self._reply(found.number, transaction)

    def _launch_in_pilot(
        self, event: LaunchReservation, found: Reservation, transaction: Transaction
    ) -> None:
        reason = RUNS_PROGRAMS_ALONE
        if event.program:
            holds = found.processors, f"reservation {found.number}"
            reason = self._not_for_pilots(event.request, event.payload, *holds)
        if reason:
            transaction.do(Refuse(event.id, Refusal.INVALID, reason, "job"))
            return
        pilot = self.memory.pilots.open(found.resource_id)
        if pilot is None or found.end > pilot.until or found.end <= transaction.now:
            reason = _NO_PILOT.format(found.resource_id)
            transaction.do(Refuse(event.id, Refusal.PRECONDITION, reason))
            return
        limit = event.request.requested_time
        record = ReservationLaunched(
            transaction.now,
            found.number,
            event.launch_key,
            run_time=limit,
            cut_off=False,
            needed_time=limit,
            to_the_end=True,
            pilot=pilot.number,
            run_key=lrms_key(self.memory.settings.name, self.memory.epoch, found.number),
            request=event.request,
            payload=event.payload,
        )
        self._change(found.number, record, transaction)
        transaction.do(PilotRun(transaction.cause, pilot.number, found.number))
        self._reply(found.number, transaction)

    # --- groups --------------------------------------------------------------------------------

    def launch_group(self, event: LaunchGroup, transaction: Transaction) -> None:
        """Launches programs that share processors of a pilot, or finds those that these keys have launched before.

        A group is launched as a whole. So if some of it is known or was forgotten, the rest has been launched with it.
        """
        self.settle(transaction)
        refusal = self._malformed_group(event)
        if refusal is not None:
            transaction.do(refusal)
            return
        book, keys = self._book, self._book.keys
        named = ((event.owner, each.key) for each in event.programs)
        if not any(key in keys or book.forgotten(*key) for key in named):
            wanted = [
                each for each in event.programs if not self._not_in_group(each, event.processors)
            ]
            if wanted:
                refusal = self._group_refusal(event, wanted, transaction.now)
                if refusal is not None:
                    transaction.do(refusal)
                    return
                self._launch_all(event, wanted, transaction)
        answers: list[Reservation | str] = []
        for each in event.programs:
            key = event.owner, each.key
            number, refused = keys.get(key), self._not_in_group(each, event.processors)
            if number is not None:
                answers.append(book.reservations[number])
            elif refused and not book.forgotten(*key):
                answers.append(refused)
            else:
                answers.append(_has_run(event, each, book.forgotten(*key)))
        transaction.do(ReplyGroup(event.id, tuple(answers)))

    def _malformed_group(self, event: LaunchGroup) -> Refuse | None:
        most, programs = self.memory.settings.limits.text_characters, event.programs
        if not 1 <= len(programs) <= GROUPED_MAX:
            reason = f"the group has {len(programs)} programs; 1 to {GROUPED_MAX} are possible"
            return Refuse(event.id, Refusal.INVALID, reason, "programs")
        for index, each in enumerate(programs):
            if not 1 <= len(each.key) <= most:
                reason = f"idempotency_key has {len(each.key)} characters; 1 to {most} are possible"
                field = f"programs[{index}].idempotency_key"
                return Refuse(event.id, Refusal.INVALID, reason, field)
        if len({each.key for each in programs}) < len(programs):
            reason = "two programs of the group have the same idempotency_key"
            return Refuse(event.id, Refusal.INVALID, reason, "programs")
        return _misstated(event.id, event.begin, event.end, event.processors)

    def _group_refusal(
        self, event: LaunchGroup, wanted: list[GroupedProgram], now: float
    ) -> Refuse | None:
        resource = self._book.resources.get(event.resource_id)
        if resource is None:
            return _no_resource(event.id, event.resource_id)
        if not resource.piloted:
            reason = _NO_GROUPS.format(event.resource_id)
            return Refuse(event.id, Refusal.PRECONDITION, reason)
        most, has = (
            self.memory.settings.limits.reservations_open,
            self._book.open_by_owner[event.owner],
        )
        if has + len(wanted) > most:
            reason = _OVER_TAKEN.format(event.owner, has, most)
            return Refuse(event.id, Refusal.EXHAUSTED, reason)
        pilot = self.memory.pilots.open(event.resource_id)
        if pilot is None or event.end > pilot.until or event.end <= now:
            return Refuse(event.id, Refusal.PRECONDITION, _NO_PILOT.format(event.resource_id))
        if not self._book.is_free(resource, event.processors, event.begin, event.end):
            return _not_free(event.id, resource, event.processors, event.begin, event.end)
        return self._no_room(event.id, len(wanted), now)

    def _not_in_group(self, program: GroupedProgram, processors: int) -> str:
        # Why a program can never run in a group of so many processors; empty if it can.
        return program.refusal or self._not_for_pilots(
            program.request, program.payload, processors, "the group"
        )

    def _launch_all(
        self, event: LaunchGroup, wanted: list[GroupedProgram], transaction: Transaction
    ) -> None:
        book, settings, now = self._book, self.memory.settings, transaction.now
        resource, pilot = (
            book.resources[event.resource_id],
            self.memory.pilots.open(event.resource_id),
        )
        assert pilot is not None
        group = book.next_number
        for each in wanted:
            number, processors = book.next_number, each.request.processors
            run_time = each.run_time / resource.speed
            cost = resource.cost(processors, now, now + run_time)
            booked = ReservationBooked(
                now,
                number,
                event.owner,
                each.key,
                event.resource_id,
                event.begin,
                event.end,
                processors,
                cost,
                group,
                event.processors,
            )
            transaction.note(booked)
            launched = ReservationLaunched(
                now,
                number,
                each.key,
                run_time=run_time,
                cut_off=False,
                needed_time=each.request.requested_time,
                to_the_end=True,
                pilot=pilot.number,
                run_key=lrms_key(settings.name, self.memory.epoch, number),
                request=each.request,
                payload=each.payload,
            )
            transaction.note(launched)
            transaction.do(PilotRun(transaction.cause, pilot.number, number))

    def _not_for_pilots(
        self, request: Request, payload: bytes, processors: int, holder: str
    ) -> str:
        asked, most = request.asked, self.memory.settings.limits.payload_bytes
        if request.processors > processors:
            return f"the program needs {request.processors} processors; {holder} has {processors}"
        if len(payload) > most:
            return f"what is to run has {len(payload)} bytes; at most {most} are possible"
        unknown = {
            "GPUs": asked.gpus is not None,
            f"{asked.nodes_min} nodes": asked.nodes_min > 1,
            "whole nodes": asked.exclusive,
            "licences": bool(asked.licences),
            "a container image": bool(asked.image),
            "a signal before its end": bool(asked.signal),
        }
        wants = [what for what, is_wanted in unknown.items() if is_wanted]
        if wants:
            return (
                f"the program asks for {wants[0]}; a pilot hands out processors of one node alone"
            )
        return ""

    def move(self, event: MoveReservation, transaction: Transaction) -> None:
        """Moves a reservation to another window; one that is there already stays as it is.

        A job that may run to the end of its reservation runs until the new one.
        """
        found = self._found(event, transaction)
        if found is None:
            return
        if reason := window_problem(*event.new):
            transaction.do(Refuse(event.id, Refusal.INVALID, reason, "new_window"))
            return
        if (found.begin, found.end) == event.new:
            self._reply(found.number, transaction)
            return
        resource = self._book.resources.get(found.resource_id)
        if reason := _immovable(found, event, transaction.now):
            transaction.do(Refuse(event.id, Refusal.PRECONDITION, reason))
        elif resource is None:
            transaction.do(_no_resource(event.id, found.resource_id))
        elif not self._book.is_free(resource, found.processors, *event.new, but=found.number):
            transaction.do(_not_free(event.id, resource, found.processors, *event.new))
        else:
            begin, end = event.new
            run_time, cut_off = found.run_time, found.cut_off
            if found.to_the_end and not found.pilot:
                allowed = end - max(begin, found.launch_time)
                run_time, cut_off = min(found.needed_time, allowed), found.needed_time > allowed
            cost = resource.cost(found.processors, begin, end)
            record = ReservationMoved(
                transaction.now, found.number, begin, end, run_time, cut_off=cut_off, cost=cost
            )
            self._change(found.number, record, transaction)
            if found.pilot:
                transaction.do(PilotMove(transaction.cause, found.pilot, found.number))
            self._reply(found.number, transaction)

    def release(self, event: ReleaseReservation, transaction: Transaction) -> None:
        """Releases a reservation; one that is over stays as it is."""
        found = self._found(event, transaction)
        if found is None:
            return
        if found.is_open and found.pilot and event.unless_begun:
            transaction.do(PilotWithdraw(transaction.cause, found.pilot, found.number))
        elif found.is_open:
            self._change(
                found.number, ReservationReleased(transaction.now, found.number), transaction
            )
            if found.pilot:
                transaction.do(PilotKill(transaction.cause, found.pilot, found.number))
        self._reply(found.number, transaction)

    # --- parts ---------------------------------------------------------------------------------

    def _found(
        self,
        event: LaunchReservation | MoveReservation | ReleaseReservation,
        transaction: Transaction,
    ) -> Reservation | None:
        self.settle(transaction)
        found = self._book.get(event.reservation, event.owner)
        if found is None:
            reason = f"there is no reservation {event.reservation} of {event.owner}"
            transaction.do(Refuse(event.id, Refusal.NOT_FOUND, reason, "reservation_id"))
        return found

    def _change(self, number: int, record: Record, transaction: Transaction) -> None:
        transaction.note(record)
        transaction.do(PublishReservation(transaction.cause, self._book.reservations[number]))

    def _reply(self, number: int, transaction: Transaction) -> None:
        transaction.do(ReplyReservation(transaction.cause, self._book.reservations[number]))


def window_problem(begin: float, end: float) -> str:
    """Returns what is wrong with a window (seconds), for a person; empty if it can be reserved."""
    if math.isfinite(begin) and math.isfinite(end) and 0 < end - begin <= WINDOW_MAX_S:
        return ""
    return f"window is {begin} to {end}; its end must be after its beginning"


def _immovable(found: Reservation, event: MoveReservation, now: float) -> str:
    # Why it stays where it is, whatever is free; empty if it can be moved.
    number, (begin, end) = found.number, event.new
    if not found.is_open or found.group:
        return f"reservation {number} is {'one of a group' if found.is_open else 'over'}"
    if (found.begin, found.end) != event.old:
        return (
            f"reservation {number} is from {found.begin} to {found.end}, and not from "
            f"{event.old[0]} to {event.old[1]}"
        )
    if end <= now:
        return f"the window ends at {end}, and it is {now}"
    if found.state is ReservationState.RUNNING and begin != found.begin:
        return f"the job in reservation {number} runs; only the end can be moved"
    if found.launch_key and not found.to_the_end:
        until = max(begin, found.launch_time) + found.run_time
        if until > end:
            return f"the job in reservation {number} would run until {until:g}, beyond {end:g}"
    return ""


def _has_run(event: LaunchGroup, program: GroupedProgram, number: int) -> Reservation:
    # What is known of a program whose reservation is forgotten; `number` is 0 if its key is dropped as well.
    return Reservation(
        number,
        event.owner,
        program.key,
        event.resource_id,
        event.begin,
        event.end,
        program.request.processors,
        0.0,
        booked=(event.begin, event.end),
        state=ReservationState.ENDED,
        launch_key=program.key,
        ended_as=Outcome.UNKNOWN,
        reason=_HAS_RUN,
    )


def _misstated(cause: int, begin: float, end: float, processors: int) -> Refuse | None:
    if reason := window_problem(begin, end):
        return Refuse(cause, Refusal.INVALID, reason, "window")
    if not 1 <= processors <= _PROCESSORS_MAX:
        reason = f"processors is {processors}; it must be at least 1"
        return Refuse(cause, Refusal.INVALID, reason, "processors")
    return None


def _no_resource(cause: int, resource_id: str) -> Refuse:
    reason = f"there is no resource {resource_id!r} here"
    return Refuse(cause, Refusal.NOT_FOUND, reason, "resource_id")


def _not_free(cause: int, resource: Resource, processors: int, begin: float, end: float) -> Refuse:
    name = resource.resource_id
    reason = f"{processors} processors of {name} are not free from {begin} to {end}"
    return Refuse(cause, Refusal.PRECONDITION, reason)
