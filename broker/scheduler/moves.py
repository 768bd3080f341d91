"""Reservations that are moved: earlier, later, or to a later end.

A task that is booked, and late as what it waits for is late, is shifted to the right: to the next
time that is free on the resource that it has. What is booked behind it there is shifted with it, so
that the order stays. A run that takes longer than was thought has the end of its reservation moved,
and what is booked behind it is shifted first. So lateness goes as far as it reaches, and no further.

Every pass goes over the booked tasks in the order of their beginnings and finds the window that each
can have when those before it have theirs. A move is asked for once the window is free of everything
else that the broker holds; so the last of a row moves first. One that cannot be moved before it is
too late is given up and planned again.
"""

import math
from collections.abc import Callable, Collection, Sequence

from broker.scheduler.commands import Move
from broker.scheduler.events import Moved, MoveRefused
from broker.scheduler.free_time import TOLERANCE, Need, View
from broker.scheduler.lifecycle import AT_SITE, DONE, HELD, TaskState
from broker.scheduler.planning_input import Taken
from broker.scheduler.records import TaskMoved, TaskMoving
from broker.scheduler.scheduling_context import SchedulingContext
from broker.scheduler.state_tables import Booking, LiveTask
from broker.scheduler.transaction import Transaction

ASKED_BEFORE = 0.75
"""Share of the margin by which the end of a reservation is anticipated: then its run is overdue."""

URGENT_BEFORE = 0.4
"""Share of the margin before the end of the reservation of a run: what is still in its way then is given up.

Where many short tasks are booked behind it they are moved one after another, and that takes longer than the run has.
"""

ANSWERED_AFTER = 0.1
"""Share of the margin in which a site should have answered: sooner nothing is given up."""

LEAST_MARGINS = 4.0
"""Least extension, in margins: asking takes time, too."""


class Moves:
    """Moves reservations; `free` gives up the booking of a task, with a reason."""

    def __init__(
        self, context: SchedulingContext, free: Callable[[LiveTask, Transaction, str], None]
    ) -> None:
        self._memory = context.memory
        self._settings = context.settings
        self._cycle = context.cycle
        self._free_time = context.free_time
        self._free = free
        self._run_times = context.run_times
        self._longer: dict[str, float] = {}
        self._pressing: dict[str, float] = {}
        self._stuck: set[str] = set()
        self.wanted = False

    # --- runs that take longer -----------------------------------------------------------------

    def advance(self, booking: Booking, transaction: Transaction) -> float:
        """Has the end of a run's reservation moved, if due.

        Returns when to look again, in seconds; infinity if something else has to happen first.
        """
        name, end = booking.booking, booking.placement.end
        more = self._more(booking)
        if name in self._longer and name not in self._stuck and not booking.moving:
            if transaction.now < self._pressing[name]:
                return self._pressing[name]
            self.wanted = True
            return float("inf")
        if name in self._longer or name in self._stuck or booking.moving or more <= 0:
            return float("inf")
        moment = end - ASKED_BEFORE * self._settings.margin
        if transaction.now < moment:
            return moment
        last = end - URGENT_BEFORE * self._settings.margin
        answered = transaction.now + ANSWERED_AFTER * self._settings.margin
        self._longer[name], self._pressing[name] = end + more, max(last, answered)
        self.wanted = True
        return self._pressing[name]

    def _more(self, booking: Booking) -> float:
        # By how much it is extended next; 0 for nothing any more.
        settings = self._settings
        time = booking.run_time
        if booking.extended >= settings.extension_max * time:
            time += (
                booking.extended
            )  # far beyond its estimate, few moves go on to the limit of a program
        step = max(settings.extension * time, LEAST_MARGINS * settings.margin)
        return min(step, self._most_extended(booking) - booking.extended)

    def _most_extended(self, booking: Booking) -> float:
        # In all, seconds; a run that was thought to be short has no less time than its user's estimate gives it, and
        # a program goes on until the limit at which its site kills it, which is apart from any estimate.
        task = self._memory.booked.get(booking.booking)
        supply = self._memory.supplies.get(booking.placement.resources[0])
        time = booking.run_time
        if task is not None and supply is not None:
            time = self._run_times.most(task, supply.resource, time)
        most = self._settings.extension_max * time + (time - booking.run_time)
        if self._settings.extension_max > 0 and task is not None and task.program is not None:
            most = max(most, task.program.limit - booking.run_time)
        return most

    def over(self, booking: str) -> None:
        """Forgets an attempt that is over."""
        self._longer.pop(booking, None)
        self._pressing.pop(booking, None)
        self._stuck.discard(booking)

    # --- what is asked for ---------------------------------------------------------------------

    def can_move(self, task: LiveTask) -> bool:
        """Returns whether a move of a booked task may be asked for."""
        booking = task.booking
        return (
            task.state is TaskState.BOOKED
            and booking is not None
            and booking.moving is None
            and booking.booking not in self._stuck
        )

    def move(self, booking: Booking, begin: float, end: float, transaction: Transaction) -> None:
        """Asks for a window, in seconds."""
        transaction.note(TaskMoving(transaction.now, booking.booking, begin, end))
        transaction.do(Move(booking, begin, end))

    def moved(self, event: Moved, transaction: Transaction) -> None:
        """The reservations are there now."""
        task = self._memory.booked.get(event.booking)
        if task is None or task.booking is None:
            return
        before = task.booking.placement
        self._longer.pop(event.booking, None)
        self._pressing.pop(event.booking, None)
        if task.booking.moving is None and (before.start, before.end) == (event.begin, event.end):
            return
        transaction.note(TaskMoved(transaction.now, event.booking, event.begin, event.end))
        transaction.changed(task.owner)
        transaction.touched.append(task)
        if event.end > before.end:
            self.wanted = True  # those behind it may have to make room

    def refused(self, event: MoveRefused, transaction: Transaction) -> None:
        """The reservations stay; time that others hold is kept away from."""
        task = self._memory.booked.get(event.booking)
        if task is None or task.booking is None or task.booking.moving is None:
            return
        booking = task.booking
        begin, end = task.booking.moving
        place = booking.placement
        transaction.note(TaskMoved(transaction.now, event.booking, place.start, place.end))
        self._longer.pop(event.booking, None)
        self._pressing.pop(event.booking, None)
        transaction.touched.append(task)
        if not event.taken or task.state in AT_SITE:
            self._stuck.add(event.booking)
            return
        for since, until in ((begin, min(end, place.start)), (max(begin, place.end), end)):
            for resource in place.resources if since < until else ():
                self._cycle.avoid(Taken(resource, since, until))
        self.wanted = True

    # --- shifting to the right -----------------------------------------------------------------

    def shift(self, transaction: Transaction, down: Collection[str]) -> None:
        """Finds every booked task its window, and asks for the moves that can be asked for now."""
        if not self.wanted:
            return
        self.wanted = False
        held = self._held()
        open_ones = {task.booking.booking for task in held if task.booking is not None}
        windows = self._extended()
        moves: list[tuple[LiveTask, float]] = []
        for task in held:
            booking = task.booking
            assert booking is not None
            place = booking.placement
            since = self._since(task, booking, windows, transaction.now)
            needs = self._free_time.needs(place.demands, down)
            start = place.start
            if needs is not None and since >= start:
                length = place.end - place.start
                start = self._free_time.earliest(needs, since, length, View(open_ones, windows))
                if start > place.start + TOLERANCE:
                    moves.append((task, start))
            open_ones.discard(booking.booking)
            windows[booking.booking] = (start, start + place.end - place.start)
        behind: list[Booking] = []
        for task, start in reversed(moves):
            booking = task.booking
            if booking is not None and not self._ask(
                task, booking, start, transaction, behind=behind, down=down
            ):
                behind.append(booking)
        for name, end in list(self._longer.items()):
            self._ask_longer(name, end, transaction, down)

    def _held(self) -> list[LiveTask]:
        held = [
            task
            for task in self._memory.booked.values()
            if task.state in HELD and not task.owner.closing
        ]
        begins = {id(task): task.booking.begin for task in held if task.booking is not None}
        return sorted(held, key=lambda task: begins[id(task)])

    def _extended(self) -> dict[str, tuple[float, float]]:
        # Where runs will be that take longer.
        found = {}
        for name, end in self._longer.items():
            task = self._memory.booked.get(name)
            if task is not None and task.booking is not None:
                found[name] = (task.booking.placement.start, end)
        return found

    def _since(
        self, task: LiveTask, booking: Booking, windows: dict[str, tuple[float, float]], now: float
    ) -> float:
        # From when on it can be there: those that it waits for have ended.
        start = booking.placement.start
        waits = False
        ends: dict[str, float] = {}
        for before in task.predecessors:
            other = before.booking
            if before.state not in DONE and other is not None:
                waits = True
                end = windows.get(other.booking, (0.0, other.end))[1]
                ends[before.task.name] = end
                start = max(start, end)
        start = max(
            start, self._cycle.files.arrival(task, booking.placement.resources[0], now, ends)
        )
        late = booking.latest_start - self._settings.margin / 2
        return max(start, self._free_time.overdue(now)) if waits and now >= late else start

    def _ask(
        self,
        task: LiveTask,
        booking: Booking,
        start: float,
        transaction: Transaction,
        *,
        behind: list[Booking],
        down: Collection[str],
    ) -> bool:
        # Returns whether it is asked for; `behind` are those that have to move before it and have not.
        if start == float("inf"):
            self._free(task, transaction, "there is no later time for it on its resources")
            return True
        place = booking.placement
        end = start + place.end - place.start
        needs = self._free_time.needs(place.demands, down)
        places = {hold.place for hold in booking.holds}
        passed = any(
            other.begin < end and not places.isdisjoint(hold.place for hold in other.holds)
            for other in behind
        )
        if (
            self.can_move(task)
            and needs is not None
            and not passed
            and self._free_time.fits(needs, start, end, View({booking.booking}))
        ):
            self.move(booking, start, end, transaction)
            return True
        if booking.booking in self._stuck:
            self._free(
                task, transaction, "is late, or in the way of a longer run, and cannot be moved"
            )
            return True
        self.wanted = True  # once those in its way have moved
        return False

    def _held_by_others(self, booking: Booking, since: float, end: float) -> bool:
        return any(
            other.begin < end and since < other.end
            for hold in booking.holds
            for name, other in self._memory.holding.get(hold.place, {}).items()
            if name != booking.booking
        )

    def _ask_longer(
        self, name: str, end: float, transaction: Transaction, down: Collection[str]
    ) -> None:
        task = self._memory.booked.get(name)
        if task is None or task.booking is None or task.booking.moving is not None:
            return
        booking = task.booking
        needs = self._free_time.needs(booking.placement.demands, down)
        since = booking.placement.end
        if needs is None:
            # Its resource is not planned with now, and what is given up there may still hold it.
            free = not self._held_by_others(booking, since, end)
        else:
            free = self._free_time.fits(needs, since, end, View({name}, own=True))
        if free:
            self.move(booking, booking.placement.start, end, transaction)
            self._cycle.want(transaction, f"{task.name} takes longer than was thought")
            return
        self.wanted = True
        if needs is not None and self._pressing.get(name, math.inf) <= transaction.now:
            self._make_room(booking, needs, end, transaction)

    def _make_room(
        self, booking: Booking, needs: Sequence[Need], end: float, transaction: Transaction
    ) -> None:
        # Gives up what is booked behind a run, from its end on, until that has room.
        since = booking.placement.end
        places = {hold.place for hold in booking.holds}
        gone = {booking.booking, *self._memory.releasing}
        for task in self._held():
            other = task.booking
            if (
                other is None
                or other.begin >= end
                or since >= other.end
                or places.isdisjoint(other.units)
            ):
                continue
            # Asked only now: it takes longer the more is booked.
            if self._free_time.fits(needs, since, end, View(gone, own=True)):
                return
            gone.add(other.booking)
            self._free(task, transaction, "is in the way of a run that takes longer")
