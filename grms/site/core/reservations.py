"""Resources that can be reserved: a partition of their own, beside the batch machine.

The book is pure: `now`, keys and callers are arguments, and what changes is returned, so that whoever
owns the disk can keep it before anybody is told. A reservation holds processors of one resource from
its beginning up to and not including its end. A job launched in it runs from the beginning, or from
now if that has passed, for its time over the resource's speed; what is left of the window is then
free again. The end of a reservation can be moved while the time behind it is free.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise
from typing import Final

from grms.site.facts.lifecycle import Outcome

RESERVATIONS_MAX: Final = 10_000
"""Open reservations of one caller."""

WINDOW_MAX_S: Final = 10 * 365 * 86400.0
KEPT: Final = 10_000
"""Reservations that are over and still remembered."""


class ReservationState(Enum):
    """Where a reservation stands; the wire has the same names."""

    BOOKED = "booked"
    LAUNCHED = "launched"
    RUNNING = "running"
    ENDED = "ended"
    RELEASED = "released"
    EXPIRED = "expired"


MOVES: Mapping[ReservationState, frozenset[ReservationState]] = {
    ReservationState.BOOKED: frozenset(
        {ReservationState.LAUNCHED, ReservationState.RELEASED, ReservationState.EXPIRED}
    ),
    ReservationState.LAUNCHED: frozenset({ReservationState.RUNNING, ReservationState.RELEASED}),
    ReservationState.RUNNING: frozenset({ReservationState.ENDED, ReservationState.RELEASED}),
    ReservationState.ENDED: frozenset(),
    ReservationState.RELEASED: frozenset(),
    ReservationState.EXPIRED: frozenset(),
}
"""What a reservation's state may become."""


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that can be reserved.

    Attributes:
        resource_id: unique at its site.
        labels: what it is and has.
        processors: how many reservations of one processor it holds side by side.
        speed: run time on the reference resource over run time on this one.
        cost_per_hour: for one processor.
    """

    resource_id: str
    labels: Mapping[str, str] = field(default_factory=dict)
    processors: int = 1
    speed: float = 1.0
    cost_per_hour: float = 0.0


@dataclass(frozen=True, slots=True)
class Reservation:
    """A promise of processors in a window.

    Attributes:
        number: 1, 2, 3, … at its site.
        owner: who has it.
        key: the owner's word for it.
        resource_id: of what.
        begin: seconds.
        end: seconds; the reservation does not include it.
        processors: how many.
        state: where it stands.
        launch_key: the owner's word for the launch; empty before.
        launch_time: when the job was launched, seconds; nan before.
        run_time: seconds the launched job takes on this resource; 0 before.
        cut_off: the job would run on, but has no more time.
        needed_time: seconds it would take if it were not cut off; 0 before.
        to_the_end: the job may run to the end of the reservation.
        booked_end: the end that was booked, seconds; nan where it was never moved.
        start_time: nan before the job's start.
        end_time: nan before the job's end.
        cost: of the whole window.
        revision: counts the changes.
    """

    number: int
    owner: str
    key: str
    resource_id: str
    begin: float
    end: float
    processors: int
    state: ReservationState = ReservationState.BOOKED
    launch_key: str = ""
    launch_time: float = math.nan
    run_time: float = 0.0
    cut_off: bool = False
    start_time: float = math.nan
    end_time: float = math.nan
    cost: float = 0.0
    revision: int = 1
    needed_time: float = 0.0
    to_the_end: bool = False
    booked_end: float = math.nan

    @property
    def asked_end(self) -> float:
        """The end that was booked, seconds, wherever it is now."""
        return self.end if math.isnan(self.booked_end) else self.booked_end

    @property
    def is_open(self) -> bool:
        """Whether it still holds processors."""
        return bool(MOVES[self.state])

    @property
    def outcome(self) -> Outcome | None:
        """How the launched job came to its end; None before, and where there was none."""
        if self.state is ReservationState.ENDED:
            return Outcome.FAILED if self.cut_off else Outcome.COMPLETED
        if self.state is ReservationState.RELEASED and self.launch_key:
            return Outcome.CANCELLED
        return None

    def moved(self, state: ReservationState, **change: float | str) -> "Reservation":
        """Returns it in another state.

        Raises:
            ReservationRefused: the table does not have this move.
        """
        if state not in MOVES[self.state]:
            raise ReservationRefused(f"reservation {self.number} is {self.state.value}")
        return replace(self, state=state, revision=self.revision + 1, **change)  # type: ignore[arg-type]  # fields by name


class ReservationRefused(Exception):  # noqa: N818  # named for what it says
    """A wish that cannot be granted; the text says why."""


class ReservationLimit(ReservationRefused):
    """The caller has as many reservations as it may have."""


class NoSuchReservation(ReservationRefused):
    """There is none of that number that is the caller's, or no such resource.

    Attributes:
        field: of the request, what there is not.
    """

    def __init__(self, reason: str, field: str) -> None:
        self.field = field
        super().__init__(reason)


class ReservationBook:
    """All reservations of a site.

    Args:
        resources: what can be reserved.
        reservations: what was kept, in order of numbers.
    """

    def __init__(
        self, resources: Iterable[Resource], reservations: Iterable[Reservation] = ()
    ) -> None:
        self.resources = {resource.resource_id: resource for resource in resources}
        self.reservations: dict[int, Reservation] = {}
        self._keys: dict[tuple[str, str], int] = {}
        self._next = 1
        for reservation in reservations:
            self.keep(reservation)

    def keep(self, reservation: Reservation) -> None:
        """Takes a reservation as it now is into the book."""
        self.reservations[reservation.number] = reservation
        self._keys[reservation.owner, reservation.key] = reservation.number
        self._next = max(self._next, reservation.number + 1)
        if len(self.reservations) > KEPT:
            self._forget()

    def get(self, number: int, owner: str) -> Reservation:
        """Returns a caller's reservation.

        Raises:
            NoSuchReservation: there is none of that number, or it is another's.
        """
        found = self.reservations.get(number)
        if found is None or found.owner != owner:
            raise NoSuchReservation(
                f"there is no reservation {number} of {owner}", "reservation_id"
            )
        return found

    def free(self, resource: Resource, begin: float, end: float) -> list[tuple[float, float, int]]:
        """Returns the free processors of a resource in a window.

        Returns:
            Begin, end and processors of each stretch with any, in order, not overlapping.
        """
        held = [
            r
            for r in self.reservations.values()
            if r.is_open and r.resource_id == resource.resource_id and r.begin < end
        ]
        edges = sorted(
            {begin, end} | {edge for r in held for edge in (r.begin, r.end) if begin < edge < end}
        )
        stretches: list[tuple[float, float, int]] = []
        for left, right in pairwise(edges):
            used = sum(r.processors for r in held if r.begin <= left < r.end)
            number = resource.processors - used
            if number <= 0:
                continue
            if stretches and stretches[-1][1:] == (left, number):
                stretches[-1] = (stretches[-1][0], right, number)
            else:
                stretches.append((left, right, number))
        return stretches

    def book(
        self,
        owner: str,
        key: str,
        resource_id: str,
        window: tuple[float, float],
        *,
        processors: int,
        now: float,
    ) -> Reservation:
        """Returns a new reservation, not kept yet, or the one this key has made before.

        Args:
            owner: who wants it.
            key: the owner's word for it.
            resource_id: of what.
            window: begin and end, seconds.
            processors: how many.
            now: seconds.

        Raises:
            NoSuchReservation: there is no such resource.
            ReservationLimit: the owner has as many as it may have.
            ReservationRefused: the time is past, or no longer free; or the key was used for
                another wish.
        """
        begin, end = window
        number = self._keys.get((owner, key))
        if number is not None:
            known = self.reservations[number]
            wish = (resource_id, begin, end, processors)
            if (known.resource_id, known.begin, known.asked_end, known.processors) != wish:
                raise ReservationRefused(f"the key belongs to another reservation, {number}")
            return known
        resource = self.resources.get(resource_id)
        if resource is None:
            raise NoSuchReservation(f"there is no resource {resource_id!r} here", "resource_id")
        if end <= now:
            raise ReservationRefused(f"the window ends at {end}, and it is {now}")
        if sum(r.is_open and r.owner == owner for r in self.reservations.values()) >= (
            RESERVATIONS_MAX
        ):
            raise ReservationLimit(f"{owner} has {RESERVATIONS_MAX} open reservations, the most")
        self._check_free(resource, processors, begin, end)
        cost = resource.cost_per_hour * processors * (end - begin) / 3600
        return Reservation(self._next, owner, key, resource_id, begin, end, processors, cost=cost)

    def _check_free(self, resource: Resource, processors: int, begin: float, end: float) -> None:
        stretches = self.free(resource, begin, end)
        covered = sum(right - left for left, right, n in stretches if n >= processors)
        if not math.isclose(covered, end - begin, rel_tol=1e-12, abs_tol=1e-9):
            raise ReservationRefused(
                f"{processors} processors of {resource.resource_id} are not free from {begin} to "
                f"{end}"
            )

    def extend(self, number: int, owner: str, end: float, now: float) -> Reservation:
        """Returns a reservation with a later end; as it is where its end is not before that.

        A job that may run to the end of its reservation goes on until then.

        Args:
            number: of the reservation.
            owner: whose it is.
            end: the new one, seconds.
            now: seconds.

        Raises:
            NoSuchReservation: there is none of that number that is the caller's.
            ReservationRefused: it is over, the time behind it is not free, or it would be too long.
        """
        found = self.get(number, owner)
        if not found.is_open or self._over_by(found) <= now:
            raise ReservationRefused(f"reservation {number} is over")
        if end <= found.end:
            return found
        if end - found.begin > WINDOW_MAX_S:
            raise ReservationRefused(f"a reservation is at most {WINDOW_MAX_S:g} s long")
        resource = self.resources[found.resource_id]
        self._check_free(resource, found.processors, found.end, end)
        run_time, cut_off = found.run_time, found.cut_off
        if found.to_the_end:
            allowed = end - max(found.begin, found.launch_time)
            run_time, cut_off = min(found.needed_time, allowed), found.needed_time > allowed
        return replace(
            found,
            end=end,
            booked_end=found.asked_end,
            run_time=run_time,
            cut_off=cut_off,
            cost=resource.cost_per_hour * found.processors * (end - found.begin) / 3600,
            revision=found.revision + 1,
        )

    @staticmethod
    def _over_by(found: Reservation) -> float:
        # When an open reservation is over if nobody does anything.
        if found.launch_key:
            return max(found.begin, found.launch_time) + found.run_time
        return found.end

    def release(self, number: int, owner: str, now: float) -> Reservation:
        """Returns a reservation given back; one that is over already as it is.

        Raises:
            NoSuchReservation: there is none of that number that is the caller's.
        """
        found = self.get(number, owner)
        if not found.is_open:
            return found
        end_time = now if found.state is ReservationState.RUNNING else math.nan
        return found.moved(ReservationState.RELEASED, end_time=end_time)

    def launch(
        self,
        number: int,
        owner: str,
        key: str,
        *,
        processors: int,
        requested_time: float,
        run_time: float,
        now: float,
        to_the_end: bool = False,
    ) -> Reservation:
        """Returns a reservation with a job in it.

        Args:
            number: of the reservation.
            owner: whose it is.
            key: the owner's word for the launch.
            processors: of the job.
            requested_time: seconds it may run on the reference resource; then it is cut off.
            run_time: seconds it takes there.
            now: seconds.
            to_the_end: it may run to the end of the reservation, however much it has requested.

        Raises:
            NoSuchReservation: there is none of that number that is the caller's.
            ReservationRefused: the job does not fit into what is left of it, or another job is
                in it.
        """
        found = self.get(number, owner)
        if found.launch_key:
            if found.launch_key != key:
                raise ReservationRefused(f"another job was launched in reservation {number}")
            return found
        speed = self.resources[found.resource_id].speed
        here, needed = min(run_time, requested_time) / speed, run_time / speed
        start = max(found.begin, now)
        if processors > found.processors or start + here > found.end:
            raise ReservationRefused(
                f"the job needs {processors} processors for {here:g} s from {start:g}; reservation "
                f"{number} has {found.processors} until {found.end:g}"
            )
        allowed = found.end - start if to_the_end else requested_time / speed
        return found.moved(
            ReservationState.LAUNCHED,
            launch_key=key,
            launch_time=now,
            run_time=min(needed, allowed),
            cut_off=needed > allowed,
            needed_time=needed,
            to_the_end=to_the_end,
        )

    def due(self, now: float) -> list[Reservation]:
        """Returns what time has changed up to now, not kept yet; call again until it is empty."""
        changed = []
        for r in self.reservations.values():
            if r.state is ReservationState.BOOKED and r.end <= now:
                changed.append(r.moved(ReservationState.EXPIRED))
            elif r.state is ReservationState.LAUNCHED and r.begin <= now:
                changed.append(
                    r.moved(ReservationState.RUNNING, start_time=max(r.begin, r.launch_time))
                )
            elif r.state is ReservationState.RUNNING and r.start_time + r.run_time <= now:
                changed.append(
                    # Its window stays as it was asked for, so that its key is known again; what is
                    # over holds nothing.
                    r.moved(ReservationState.ENDED, end_time=r.start_time + r.run_time)
                )
        return changed

    @property
    def next_time(self) -> float:
        """When time next changes something, seconds; infinity for never."""
        moments = [math.inf]
        for r in self.reservations.values():
            if r.state is ReservationState.BOOKED:
                moments.append(r.end)
            elif r.state is ReservationState.LAUNCHED:
                moments.append(r.begin)
            elif r.state is ReservationState.RUNNING:
                moments.append(r.start_time + r.run_time)
        return min(moments)

    def _forget(self) -> None:
        for number, reservation in list(self.reservations.items()):
            if not reservation.is_open:
                del self.reservations[number]
                self._keys.pop((reservation.owner, reservation.key), None)
                return
