"""A simulated site: it reserves, and "runs" by waiting, on the broker's clock.

For trying out the broker. It lives in the broker's process and is told its reservations after a
restart; a run has continued meanwhile. Run time and failure depend on the booking's number and the
seed alone.
"""

import asyncio
import heapq
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

import numpy as np

from broker.executor.base import (
    Order,
    Reservation,
    ReservationRefused,
    ReservationState,
    Window,
    Wish,
)
from broker.executor.programs import NoGroups, NoPrograms
from grms.daemon.clock import RealClock
from grms.util.outcomes import Outcome

ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Chance:
    """How a simulated site behaves.

    Attributes:
        seed: of all chance.
        shortest: least share of its time that a run takes, from 0 to 1.
        longest: largest share; above 1 the broker has to move the end of its reservation.
        failing: share of runs that fail, from 0 to 1.
        refusing: share of bookings that are refused, from 0 to 1.
    """

    seed: int = 0
    shortest: float = 1.0
    failing: float = 0.0
    refusing: float = 0.0
    longest: float = 1.0


class SimulatedSite(NoGroups, NoPrograms):
    """A simulated site; `capacity` returns the units of a resource, 0 if there is none."""

    def __init__(
        self, clock: RealClock, capacity: Callable[[str], int], chance: Chance | None = None
    ) -> None:
        self._clock = clock
        self._capacity = capacity
        self._chance = chance or Chance()
        self._wishes: dict[str, Wish] = {}
        self._ends: dict[str, float] = {}
        self._known: dict[str, Reservation] = {}
        self._due: list[tuple[float, str]] = []
        self._changed = asyncio.Event()
        self._watchers: set[asyncio.Queue[Reservation | None]] = set()

    def _draw(self, name: str, what: str) -> float:
        # The part before the first dash is the journal's own; without it, runs are reproducible.
        number = name.partition("-")[2] or name
        seed = [self._chance.seed, zlib.crc32(f"{number} {what}".encode())]
        return float(np.random.default_rng(seed).random())

    async def book(self, wish: Wish) -> Reservation:
        """Reserves, or returns the reservation of the key."""
        known = self._known.get(wish.key)
        if known is not None:
            return known
        if self._draw(wish.key, "refused") < self._chance.refusing:
            raise ReservationRefused(f"{wish.resource} is not to be had", taken=True)
        held = self._peak(wish)
        if held + wish.units > self._capacity(wish.resource):
            raise ReservationRefused(
                f"{wish.units} units of {wish.resource} are not free from {wish.begin:.3f} to "
                f"{wish.end:.3f}",
                taken=True,
            )
        self._wishes[wish.key] = wish
        return self._keep(Reservation(wish.key, ReservationState.BOOKED), wish.end)

    def _peak(self, wish: Wish) -> int:
        # Most units held at once of the wish's resource in its time.
        edges: list[tuple[float, int]] = []
        for key, other in self._wishes.items():
            known = self._known[key]
            end = other.end if known.end_time is None else min(other.end, known.end_time)
            if (
                key != wish.key
                and other.resource == wish.resource
                and other.begin < wish.end
                and wish.begin < end
            ):
                edges += [(max(other.begin, wish.begin), other.units), (end, -other.units)]
        peak = held = 0
        for _, units in sorted(edges):
            held += units
            peak = max(peak, held)
        return peak

    async def restore(self, reservation_id: str, wish: Wish) -> None:
        """Takes over a reservation from before a restart."""
        if reservation_id not in self._known:
            self._wishes[reservation_id] = wish
            self._keep(Reservation(reservation_id, ReservationState.BOOKED), wish.end)

    async def launch(self, reservation_id: str, order: Order) -> Reservation:
        """Starts a simulated run in a reservation."""
        known = self._known.get(reservation_id)
        if known is None:
            raise ReservationRefused(f"there is no reservation {reservation_id}")
        if known.state is not ReservationState.BOOKED:
            return known
        wish = self._wishes[reservation_id]
        start = max(wish.begin, self._clock.now()) if order.started is None else order.started
        if start + order.run_time > wish.end + ROUNDING:
            raise ReservationRefused(
                f"{order.name} takes {order.run_time:.3f} s, and there are only "
                f"{wish.end - start:.3f} s left"
            )
        shortest, longest = self._chance.shortest, self._chance.longest
        share = shortest + (longest - shortest) * self._draw(reservation_id, "share")
        end = self._ends[reservation_id] = start + share * order.run_time
        running = replace(known, state=ReservationState.RUNNING, start_time=start)
        return self._keep(running, min(end, wish.end))

    async def move(self, reservation_id: str, old: Window, new: Window) -> Reservation:
        """Moves a reservation."""
        self._settle()
        known, wish = self._known.get(reservation_id), self._wishes.get(reservation_id)
        if known is None or wish is None:
            raise ReservationRefused(f"there is no reservation {reservation_id}, or it is over")
        if (wish.begin, wish.end) == new:
            return known
        begin, end = new
        if (wish.begin, wish.end) != old or end <= self._clock.now():
            raise ReservationRefused(f"it is from {wish.begin:.3f} to {wish.end:.3f} by now")
        if known.state is ReservationState.RUNNING and begin != wish.begin:
            raise ReservationRefused("it runs; only the end can be moved")
        moved = replace(wish, begin=begin, end=end)
        if self._peak(moved) + wish.units > self._capacity(wish.resource):
            raise ReservationRefused(
                f"{wish.resource} is not free from {begin:.3f} to {end:.3f}", taken=True
            )
        self._wishes[reservation_id] = moved
        return self._keep(known, min(self._ends.get(reservation_id, end), end))

    async def release(self, reservation_id: str) -> Reservation | None:
        """Releases a reservation."""
        known = self._known.get(reservation_id)
        if known is None:
            return None
        self._settle()
        known = self._known[reservation_id]
        if known.state in {ReservationState.BOOKED, ReservationState.RUNNING}:
            known = self._over(known, ReservationState.RELEASED, self._clock.now())
        return known

    async def offer(self, begin: float, end: float) -> None:
        """Returns `None`: resources are what people register."""

    async def watch(self) -> AsyncIterator[Reservation | None]:
        """Yields reservations as they change."""
        queue: asyncio.Queue[Reservation | None] = asyncio.Queue()
        self._watchers.add(queue)
        try:
            yield None
            for reservation in list(self._known.values()):
                yield reservation
            while True:
                yield await queue.get()
        finally:
            self._watchers.discard(queue)

    async def run(self) -> None:
        """Lets runs end and reservations expire until it is cancelled."""
        while True:
            self._settle()
            self._changed.clear()
            rest = self._clock.rest_s(self._due[0][0]) if self._due else None
            try:
                async with asyncio.timeout(rest):
                    await self._changed.wait()
            except TimeoutError:
                pass

    def _settle(self) -> None:
        now = self._clock.now()
        while self._due and self._due[0][0] <= now:
            moment, key = heapq.heappop(self._due)
            known = self._known[key]
            if known.state is ReservationState.RUNNING:
                # What would run longer is cut off at the end of its reservation.
                cut = self._ends[key] > moment + ROUNDING
                failed = cut or self._draw(key, "failed") < self._chance.failing
                outcome = Outcome.FAILED if failed else Outcome.NOT_RUN
                known = replace(known, outcome=outcome)
                self._over(known, ReservationState.ENDED, moment)
            elif known.state is ReservationState.BOOKED:
                self._over(known, ReservationState.EXPIRED, moment)

    def _over(self, known: Reservation, state: ReservationState, end: float) -> Reservation:
        self._wishes.pop(known.reservation_id, None)
        self._ends.pop(known.reservation_id, None)
        known = replace(known, state=state, end_time=end)
        self._known[known.reservation_id] = known
        self._tell(known)
        return known

    def _keep(self, known: Reservation, due: float) -> Reservation:
        self._known[known.reservation_id] = known
        self._due = [entry for entry in self._due if entry[1] != known.reservation_id]
        self._due.append((due, known.reservation_id))
        heapq.heapify(self._due)
        self._changed.set()
        self._tell(known)
        return known

    def _tell(self, known: Reservation) -> None:
        for queue in self._watchers:
            queue.put_nowait(known)
