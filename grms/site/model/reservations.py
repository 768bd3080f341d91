"""The reservation book: which resource is promised to whom, when, and what became of it.

Reservable resources are a partition of their own, separate from the batch machine. A reservation holds processors
of one resource from its beginning up to and not including its end. A job launched in it runs from the beginning,
or from now if that has passed, for its time over the resource's speed; the rest of the window is then free again.
A reservation can be moved to another window that is free.

Reservations of a group share processors: together they hold as many as the group was given, and fewer once fewer are
left in it. Each has one program, which waits in the pilot until processors of the group are free.

Where a resource has pilots (`grms.site.model.pilots`) programs run in its reservations. Then start and end are what the
pilot tells, and the resource is free only as long as its open pilot is there.

The book is changed by journal records alone; `grms.site.scheduler.reservations` decides which.
"""

import heapq
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from grms.site.model.forgotten_keys import ForgottenReservationKeys
from grms.site.model.jobs import NO_EXIT, Exit, Request
from grms.site.model.lifecycle import RESERVATION_MOVES, IllegalMove, Outcome, ReservationState
from grms.site.model.pilots import PilotBook
from grms.site.model.records import (
    ForgottenReservationsTally,
    Record,
    ReservationBooked,
    ReservationEnded,
    ReservationExpired,
    ReservationLaunched,
    ReservationMoved,
    ReservationReleased,
    ReservationStarted,
    ReservationTally,
)

WINDOW_MAX_S: Final = 10 * 365 * 86400.0
"""Longest window of a reservation, seconds."""

_SLACK: Final = 64
"""Moments that no longer count, beside as many as there are open reservations."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A reservable resource.

    Attributes:
        resource_id: unique at its site.
        labels: its kinds and properties.
        processors: capacity, in concurrent reservations of one processor.
        speed: run time on the reference resource over run time on this one.
        cost_per_hour: of one processor.
        piloted: its processors are those of a pilot.
    """

    resource_id: str
    labels: Mapping[str, str] = field(default_factory=dict)
    processors: int = 1
    speed: float = 1.0
    cost_per_hour: float = 0.0
    piloted: bool = False

    def cost(self, processors: int, begin: float, end: float) -> float:
        """Returns the cost of processors from a beginning to an end, both in seconds."""
        return self.cost_per_hour * processors * (end - begin) / 3600


@dataclass(frozen=True, slots=True)
class Reservation:
    """A promise of processors in a window.

    Attributes:
        number: 1, 2, 3, … at its site.
        key: the owner's idempotency key.
        begin: seconds.
        end: seconds; not included.
        launch_key: the owner's idempotency key for the launch; empty before.
        launch_time: seconds; nan before.
        run_time: of the launched job on this resource, seconds; 0 before.
        cut_off: the job would run longer, but has no more time.
        start_time, end_time: of the job, seconds; nan before.
        cost: of the whole window.
        revision: counts the changes.
        needed_time: seconds the job would take if it were not cut off; 0 before.
        to_the_end: the job may run to the end of the reservation.
        booked: begin and end as booked, seconds, even if it has moved.
        pilot: number of the pilot that runs its program; 0 for none.
        run_key: names the folder of that run; empty without one.
        request: of the program; `None` without one.
        payload: the program, until it has ended; empty without one.
        ended_as: how the program has ended; `None` before, and without one.
        exit: of the program.
        reason: of its end, for people.
        group: number of the first reservation of its group; 0 for none.
        share: processors of the group.
    """

    number: int
    owner: str
    key: str
    resource_id: str
    begin: float
    end: float
    processors: int
    cost: float
    booked: tuple[float, float]
    state: ReservationState = ReservationState.BOOKED
    launch_key: str = ""
    launch_time: float = math.nan
    run_time: float = 0.0
    cut_off: bool = False
    needed_time: float = 0.0
    to_the_end: bool = False
    start_time: float = math.nan
    end_time: float = math.nan
    revision: int = 1
    pilot: int = 0
    run_key: str = ""
    request: Request | None = None
    payload: bytes = b""
    ended_as: Outcome | None = None
    exit: Exit = NO_EXIT
    reason: str = ""
    group: int = 0
    share: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it still holds processors."""
        return bool(RESERVATION_MOVES[self.state])

    @property
    def outcome(self) -> Outcome | None:
        """Outcome of the launched job; `None` before, and without a job.

        Without a pilot its time was kept and nothing was run.
        """
        if self.ended_as is not None:
            return self.ended_as
        if self.state is ReservationState.ENDED:
            return Outcome.FAILED if self.cut_off else Outcome.NOT_RUN
        if self.state is ReservationState.RELEASED and self.launch_key:
            return Outcome.CANCELLED
        return None

    @property
    def job_begin(self) -> float:
        """When its job starts, seconds: at the beginning, or at the launch if that came later."""
        return max(self.begin, self.launch_time)

    @property
    def due_time(self) -> float:
        """When time next changes its state, seconds; infinity for never."""
        if self.state is ReservationState.BOOKED:
            return self.end
        if self.pilot:
            return math.inf  # the pilot tells
        if self.state is ReservationState.LAUNCHED:
            return self.job_begin
        if self.state is ReservationState.RUNNING:
            return self.start_time + self.run_time
        return math.inf

    def may_become(self, state: ReservationState) -> bool:
        """Returns whether the table has this move."""
        return state in RESERVATION_MOVES[self.state]

    def moved(self, state: ReservationState, **change: Any) -> "Reservation":
        """Returns it in another state, with other attributes changed by name.

        Raises:
            IllegalMove: the table does not have this move.
        """
        if not self.may_become(state):
            raise IllegalMove(f"reservation {self.number}", [self.state], state)
        return replace(self, state=state, revision=self.revision + 1, **change)


class ReservationBook:
    """All reservations of a site: open ones, and those that were over last.

    At most `kept` finished reservations are remembered; the oldest is forgotten, but for its key.

    Attributes:
        resources: by name.
        reservations: by number, in order.
        keys: numbers of reservations by (owner, idempotency key).
        forgotten_keys: the same of those that are forgotten.
        open: those that still hold processors, by number.
        open_by_owner: number of open ones, of owners with any.
        over: numbers of finished ones, in that order.
        next_number: of the next reservation.
    """

    def __init__(
        self,
        resources: Iterable[Resource],
        kept: int,
        pilots: PilotBook | None = None,
        *,
        keys_kept: int = 500_000,
        keys_kept_s: float = 3600.0,
    ) -> None:
        self.resources = {resource.resource_id: resource for resource in resources}
        self.reservations: dict[int, Reservation] = {}
        self.keys: dict[tuple[str, str], int] = {}
        self.forgotten_keys = ForgottenReservationKeys(keys_kept, keys_kept_s)
        self.open: dict[int, Reservation] = {}
        self.open_by_owner: Counter[str] = Counter()
        self.over: deque[int] = deque()
        self.next_number = 1
        self._kept = kept
        self._pilots = pilots or PilotBook()
        self._due: list[tuple[float, int, int]] = []
        self.changes: dict[type[Record], Callable[[Any], None]] = {
            ReservationBooked: self._booked,
            ReservationMoved: self._moved,
            ReservationLaunched: self._launched,
            ReservationStarted: self._started,
            ReservationEnded: self._ended,
            ReservationReleased: self._released,
            ReservationExpired: self._expired,
            ReservationTally: self._tally,
            ForgottenReservationsTally: self._keys_tally,
        }

    # --- questions -----------------------------------------------------------------------------

    def get(self, number: int, owner: str) -> Reservation | None:
        """Returns a caller's reservation; `None` if there is none of that number, or it is another's."""
        found = self.reservations.get(number)
        return found if found is not None and found.owner == owner else None

    def forgotten(self, owner: str, key: str) -> int:
        """Returns the number of the forgotten reservation of a key; 0 if there is none."""
        return self.forgotten_keys.number(owner, key)

    def has_room(self, more: int, moment: float) -> bool:
        """Returns whether the keys of so many more reservations can be remembered, if asked at a moment, seconds."""
        return self.forgotten_keys.has_room(len(self.open) + more, moment)

    def free(
        self, resource: Resource, begin: float, end: float, but: int = 0
    ) -> list[tuple[float, float, int]]:
        """Returns the free processors of a resource in a window, seconds.

        These are begin, end and processors of each stretch with any, in order, not overlapping. What
        the reservation of the number `but` holds counts as free.
        """
        stretches: list[tuple[float, float, int]] = []
        if resource.piloted:
            pilot = self._pilots.open(resource.resource_id)
            if pilot is None:
                return []
            begin, end = max(begin, pilot.open_time), min(end, pilot.until)
            if begin >= end:
                return []
        changes: Counter[float] = Counter({begin: 0, end: 0})
        uncounted: dict[int, int] = {}  # processors of groups
        for held in self.open.values():
            if held.number == but or held.resource_id != resource.resource_id:
                continue
            if held.begin < end and begin < held.end:
                processors = held.processors
                if held.group:
                    rest = uncounted.get(held.group, held.share)
                    processors = min(processors, rest)
                    uncounted[held.group] = rest - processors
                changes[max(begin, held.begin)] += processors
                changes[min(end, held.end)] -= processors
        left, number = begin, resource.processors
        for moment in sorted(changes):
            if changes[moment] and moment > left:
                stretches.append((left, moment, number))
                left = moment
            number -= changes[moment]
        stretches.append((left, end, number))
        return [each for each in stretches if each[0] < each[1] and each[2] > 0]

    def is_free(
        self, resource: Resource, processors: int, begin: float, end: float, but: int = 0
    ) -> bool:
        """Returns whether so many processors of a resource are free during a whole window.

        What the reservation of the number `but` holds counts as free.
        """
        if resource.piloted:
            pilot = self._pilots.open(resource.resource_id)
            if pilot is not None:
                begin = max(begin, pilot.open_time)  # what has passed by then is not asked for
        reached = begin
        for left, right, number in self.free(resource, begin, end, but):
            if left > reached or number < processors:
                return False
            reached = right
        return reached >= end

    @property
    def next_time(self) -> float:
        """When time next changes a state, seconds; infinity for never."""
        while self._due:
            moment, number, revision = self._due[0]
            found = self.open.get(number)
            if found is not None and found.revision == revision:
                return moment
            heapq.heappop(self._due)
        return math.inf

    @property
    def next_due(self) -> Reservation:
        """The reservation whose state time changes at `next_time`.

        Raises:
            IndexError: there is none.
        """
        assert self.next_time < math.inf
        return self.open[self._due[0][1]]

    # --- changes -------------------------------------------------------------------------------

    def _keep(self, changed: Reservation, moment: float) -> None:
        number = changed.number
        self.reservations[number] = changed
        if changed.is_open:
            self.open[number] = changed
            heapq.heappush(self._due, (changed.due_time, number, changed.revision))
            if len(self._due) > 2 * len(self.open) + _SLACK:
                self._due = [(one.due_time, one.number, one.revision) for one in self.open.values()]
                heapq.heapify(self._due)
            return
        del self.open[number]
        self.open_by_owner[changed.owner] -= 1
        if not self.open_by_owner[changed.owner]:
            del self.open_by_owner[changed.owner]
        self.over.append(number)
        if len(self.over) > self._kept:
            forgotten = self.reservations.pop(self.over.popleft())
            del self.keys[forgotten.owner, forgotten.key]
            self.forgotten_keys.add(forgotten.owner, forgotten.key, forgotten.number, moment)

    def _booked(self, record: ReservationBooked) -> None:
        number = record.reservation
        self.keys[record.owner, record.idempotency_key] = number
        self.open_by_owner[record.owner] += 1
        self.next_number = number + 1
        self._keep(
            Reservation(
                number,
                record.owner,
                record.idempotency_key,
                record.resource_id,
                record.begin,
                record.end,
                record.processors,
                record.cost,
                booked=(record.begin, record.end),
                group=record.group,
                share=record.share,
            ),
            record.time,
        )

    def _moved(self, record: ReservationMoved) -> None:
        found = self.open[record.reservation]
        self._keep(
            replace(
                found,
                begin=record.begin,
                end=record.end,
                run_time=record.run_time,
                cut_off=record.cut_off,
                cost=record.cost,
                revision=found.revision + 1,
            ),
            record.time,
        )

    def _launched(self, record: ReservationLaunched) -> None:
        self._keep(
            self.reservations[record.reservation].moved(
                ReservationState.LAUNCHED,
                launch_key=record.launch_key,
                launch_time=record.time,
                run_time=record.run_time,
                cut_off=record.cut_off,
                needed_time=record.needed_time,
                to_the_end=record.to_the_end,
                pilot=record.pilot,
                run_key=record.run_key,
                request=record.request,
                payload=record.payload,
            ),
            record.time,
        )

    def _started(self, record: ReservationStarted) -> None:
        found = self.reservations[record.reservation]
        self._keep(found.moved(ReservationState.RUNNING, start_time=record.start_time), record.time)

    def _ended(self, record: ReservationEnded) -> None:
        # Its window stays as it was asked for, so that its key is known again; what is over holds
        # nothing.
        found = self.reservations[record.reservation]
        change = {
            "end_time": record.end_time,
            "ended_as": record.outcome,
            "exit": record.exit,
            "reason": record.reason,
            "payload": b"",
        }
        self._keep(found.moved(ReservationState.ENDED, **change), record.time)

    def _released(self, record: ReservationReleased) -> None:
        found = self.reservations[record.reservation]
        ran = found.state is ReservationState.RUNNING
        change: dict[str, Any] = {"end_time": record.time} if ran else {}
        change |= {"reason": record.reason, "payload": b""}
        self._keep(found.moved(ReservationState.RELEASED, **change), record.time)

    def _expired(self, record: ReservationExpired) -> None:
        found = self.reservations[record.reservation]
        self._keep(found.moved(ReservationState.EXPIRED), record.time)

    def _tally(self, record: ReservationTally) -> None:
        self.next_number = record.next_reservation

    def _keys_tally(self, record: ForgottenReservationsTally) -> None:
        self.forgotten_keys.restore(record.rows)
