"""The lives of tasks, from their fixed places to their ends.

A task is fixed, and its resources are booked, when its start comes to lie within the planning slot
and all its predecessors are fixed or have ended. It is launched at its start, after its
predecessors have ended; before, where they have ended and its units are free from now on. A task
that can begin, and is not booked, begins where units are free (`dispatch`), and short programs in groups
(`groups`). What is late is moved (`moves`). What else goes wrong before its launch (a refusal, a broken resource, a site that does not
answer) frees it: the booking is released in the background and the task is planned again. After its
launch it counts as running until its site says what became of it.
"""

import heapq
import itertools
import math
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from broker.model.plan import Placement
from broker.model.program import Input, Program, ending_words
from broker.model.workflow import Alternative
from broker.scheduler.commands import Book, Launch, LaunchGroup, Move, Release, Withdraw
from broker.scheduler.dispatch import Dispatch
from broker.scheduler.events import (
    Booked,
    BookingEvent,
    BookingLost,
    Ended,
    HandedOver,
    Hindered,
    Moved,
    Refused,
    Released,
    Restarted,
    SiteDown,
    SiteLost,
    SiteUp,
    Started,
)
from broker.scheduler.file_arrivals import WAITING_FOR_FILES
from broker.scheduler.free_time import TOLERANCE, View
from broker.scheduler.groups import Gathered, Groups
from broker.scheduler.lifecycle import AT_SITE, DONE, HELD, TaskState
from broker.scheduler.moves import Moves
from broker.scheduler.planning_cycle import PlanningCycle
from broker.scheduler.planning_input import Taken
from broker.scheduler.ready_tasks import READY, ReadyTasks
from broker.scheduler.records import (
    BookingReleased,
    Group,
    Hold,
    Place,
    TaskBooked,
    TaskEnded,
    TaskEnding,
    TaskFixed,
    TaskFreed,
    TaskHandedOver,
    TaskHindered,
    TaskLaunched,
    TaskRefused,
    TaskStarted,
)
from broker.scheduler.scheduling_context import SchedulingContext
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state_tables import Booking, LiveTask, LiveWorkflow, StateTables
from broker.scheduler.transaction import Transaction
from grms.util.outcomes import Outcome

SOONER = 2.0
"""A booked task goes to another resource if it ends sooner there by so many margins."""

SLOT_TOLERANCE = 1e-6
"""Seconds beyond the planning slot that still belong to it, for rounding."""

_DONE: Final = {
    Outcome.COMPLETED: TaskState.COMPLETED,
    Outcome.NOT_RUN: TaskState.SIMULATED,
}


def _inputs_there(task: LiveTask) -> bool:
    # A program that is given files of a task that was simulated is simulated, too, and not run in a group.
    return task.program is not None and _inputs(task.program, task.owner) is not None


def _planned_start(task: LiveTask) -> float:
    return math.inf if task.placement is None else task.placement.start


def _inputs(program: Program, owner: LiveWorkflow) -> tuple[Input, ...] | None:
    # All as contents; `None` where a predecessor was only simulated, and has left nothing.
    found = []
    for each in program.inputs:
        if not each.task:
            found.append(each)
            continue
        left = {file.name: file for file in owner.tasks[each.task].outputs}.get(each.output)
        if left is None:
            return None
        found.append(Input(each.name, left.size, left.sha256))
    return tuple(found)


def _other(task: LiveTask, primary: str) -> bool:
    # Whether it can also run where another resource is the primary one.
    return any(each.primary != primary for each in task.task.alternatives)


def _needed(task: LiveTask) -> frozenset[str]:
    # What is added later may be given any output of an open workflow's tasks.
    if task.owner.growing:
        return frozenset(() if task.program is None else task.program.outputs)
    return task.owner.needed.get(task.task.name, frozenset())


class TaskExecution:
    """Executes tasks; `down` are the sites that do not answer, `moves` moves reservations."""

    def __init__(
        self, memory: StateTables, settings: BrokerSettings, cycle: PlanningCycle, epoch: str
    ) -> None:
        self._memory = memory
        self._settings = settings
        self._cycle = cycle
        self._epoch = epoch
        self.down: set[str] = set()
        self._context = context = SchedulingContext.of(memory, settings, cycle)
        self._free_time = context.free_time
        self._files = context.files
        self._run_times = context.run_times
        self._groups = Groups(context)
        self._dispatch = Dispatch(context, self._groups)
        self.moves = Moves(context, self.free)
        self._all = True
        self._ready = ReadyTasks(context, self._groups)
        self._short: dict[tuple[str, str], LiveTask] = {}  # of those, what is launched in groups
        self._fresh_short = False
        self._short_in_order = True
        self._freed: set[Place] = set()
        self._begun: set[str] = (
            set()
        )  # groups of which one has begun, or that are known to be refused
        self._orphaned: list[tuple[LiveTask, str]] = []
        self._due: list[tuple[float, int, LiveTask]] = []
        self._entries = itertools.count()

    # --- what is due ---------------------------------------------------------------------------

    @property
    def next_time(self) -> float:
        """When something is due for a task, seconds; infinity for never."""
        if self._all:
            return -math.inf
        return min(self._due[0][0] if self._due else math.inf, self._files.next_time)

    def advance(self, transaction: Transaction) -> None:
        """Does what is due now, for the tasks touched, or for all if any may be affected."""
        self._free_time.now = transaction.now
        if self._cycle.take_replaced() or self._all:
            self._all = False
            self._due.clear()
            self._ready.clear()
            self._short.clear()
            transaction.touched = sorted(self._memory.tasks(), key=_planned_start)
            self._free_time.planned(transaction.touched)
        while self._due and self._due[0][0] <= transaction.now:
            transaction.touched.append(heapq.heappop(self._due)[2])
        # What is done for one task may give another one something to do.
        again = bool(self._freed) or self.moves.wanted or self._files.next_time <= transaction.now
        while transaction.touched or self._orphaned or again:
            again = False
            tasks, transaction.touched = transaction.touched, []
            if self._files.contended:
                for (
                    task
                ) in tasks:  # all wait before one is asked when it is there, which costs less
                    self._send(task, transaction)
            for task in tasks:  # fixing a task lets those that wait for it be fixed
                self._advance(task, transaction, tasks)
            self._files.begin(transaction)
            self._begin(transaction)
            self._free_orphans(transaction)
            self.moves.shift(transaction, self.down)

    def _advance(self, task: LiveTask, transaction: Transaction, tasks: list[LiveTask]) -> None:
        if task.owner.closing:
            return
        self._send(task, transaction)
        if task.state is TaskState.WAITING:
            if self._fix(task, transaction):
                tasks += task.successors
            else:
                self._look(task, transaction)
        elif task.state in HELD:
            assert task.booking is not None
            self._advance_held(task, task.booking, transaction)
        elif task.state in {TaskState.LAUNCHED, TaskState.RUNNING}:
            assert task.booking is not None
            if self._goes_elsewhere(task, task.booking, transaction):
                return
            if task.booking.group is None:
                self._wake(task, self.moves.advance(task.booking, transaction))

    def _goes_elsewhere(self, task: LiveTask, booking: Booking, transaction: Transaction) -> bool:
        # Whether its site has not begun it for so long that it is taken back there, as another resource can run it.
        since, primary = booking.hindered_since, booking.placement.resources[0]
        if task.state is not TaskState.LAUNCHED or since is None or not _other(task, primary):
            return False
        if transaction.now < since + self._settings.hindered:
            self._wake(task, since + self._settings.hindered)
            return False
        transaction.note(TaskRefused(transaction.now, booking.booking, primary))
        self.end(task, transaction, f"{primary} does not begin it: {task.reason}")
        return True

    def _send(self, task: LiveTask, transaction: Transaction) -> None:
        if task.state in WAITING_FOR_FILES and not task.owner.closing:
            self._files.send(task, transaction)

    def _look(self, task: LiveTask, transaction: Transaction) -> None:
        # Notes a task that can begin before its time.
        if not self._settings.early or any(b.state not in DONE for b in task.predecessors):
            return
        soonest = task.owner.earliest_start
        if soonest > transaction.now:
            self._wake(task, soonest)
            return
        if task.placement is not None and task.booking is None:
            arrival = self._arrival(task, task.placement, transaction)
            if arrival > transaction.now:
                self._wake(task, arrival)
        key = task.owner.workflow_id, task.task.name
        in_groups = task.state is TaskState.WAITING and self._groups.may_take(task)
        if in_groups and _inputs_there(task):
            self._short[key] = task
            self._fresh_short, self._short_in_order = True, False
            if self._groups.takes(task):
                return
        self._ready.add(key, task)

    def _advance_held(self, task: LiveTask, booking: Booking, transaction: Transaction) -> None:
        start, late = booking.placement.start, booking.latest_start - self._settings.margin / 2
        ready = task.state is TaskState.BOOKED and all(
            before.state in DONE for before in task.predecessors
        )
        if booking.moving is not None:
            return  # its site says where it is
        if ready:
            start = max(start, self._arrival(task, booking.placement, transaction))
        if ready and start <= transaction.now <= late:
            self._launch(task, booking, transaction)
        elif transaction.now <= late:
            self._wake(task, start if ready and start <= late else math.nextafter(late, math.inf))
            if ready:
                self._look(task, transaction)
        elif transaction.now <= late + self._settings.margin / 2 and self.moves.can_move(task):
            self.moves.wanted = True
            self._wake(task, math.nextafter(late + self._settings.margin / 2, math.inf))
        else:
            self.free(task, transaction, "could not be launched in time")

    def _begin(self, transaction: Transaction) -> None:
        # Lets what can begin now begin, where time has become free or for what has come to be ready.
        freed, self._freed = self._freed, set()
        self._begin_groups(transaction, freed)
        if not (self._ready and (self._ready.fresh or freed)):
            return
        # A booked task gains nothing by time that has become free where all of it is taken again.
        room, known_at = self._free_time.any_room(freed), self._memory.changes
        for key, task, fresh in self._ready.take(transaction.now, freed, self.down):
            places = None if fresh else freed
            if task.owner.closing or task.state not in READY:
                self._ready.discard(key)
            elif task.state is TaskState.WAITING:
                where = self._dispatch.choose(task, transaction.now, self.down, places)
                if where is not None:
                    self._fix_at(task, where, transaction)
                    self._ready.discard(key)
                elif self._is_short_by_now(key, task):
                    transaction.touched.append(task)
            elif (fresh or room) and self.moves.can_move(task):
                self._earlier(task, transaction, places)
            if known_at != self._memory.changes:
                room, known_at = self._free_time.any_room(freed), self._memory.changes

    def _is_short_by_now(self, key: tuple[str, str], task: LiveTask) -> bool:
        # Whether runs of its program have meanwhile shown that it goes with a group.
        return (
            self._run_times.learned
            and key not in self._short
            and self._groups.may_take(task)
            and _inputs_there(task)
        )

    def _begin_groups(self, transaction: Transaction, freed: Collection[Place]) -> None:
        # The same for short programs, many in one go.
        places = None if self._fresh_short else freed
        self._fresh_short = False
        if not self._short or (places is not None and not self._free_time.any_room(places)):
            return
        if not self._short_in_order:
            # What has no place in the plan comes last. Places change with the plan alone, which has all looked at anew.
            self._short_in_order = True
            self._short = dict(sorted(self._short.items(), key=lambda one: _planned_start(one[1])))
        while (
            found := self._groups.gather(self._short, transaction.now, self.down, places)
        ) is not None:
            self._launch_group(found, transaction)
        transaction.touched += self._groups.take_outgrown()

    def _launch_group(self, found: Gathered, transaction: Transaction) -> None:
        now, site, resource = transaction.now, *found.supply.place
        count = self._memory.bookings_count
        group = Group(f"{self._epoch}-{count + 1}", found.units, now, found.end)
        launches = []
        for member in found.members:
            task = member.task
            holds = (Hold(site, resource, member.placement.demands[0].units),)
            count += 1
            fixed = TaskFixed(
                now,
                task.owner.workflow_id,
                task.task.name,
                f"{self._epoch}-{count}",
                member.placement,
                holds,
                member.run_time,
                group,
            )
            transaction.note(fixed)
            transaction.changed(task.owner)
            assert task.booking is not None
            launches.append(self._launching(task, task.booking))
            key = task.owner.workflow_id, task.task.name
            del self._short[key]
            self._ready.left(key)
        transaction.do(LaunchGroup(group, tuple(launches)))

    def _earlier(
        self, task: LiveTask, transaction: Transaction, freed: Collection[Place] | None
    ) -> None:
        # Moves a booked task to now if its units are free until its beginning, or to where it ends
        # sooner; with `freed` only where that comes of time at these places.
        booking = task.booking
        assert booking is not None
        place = booking.placement
        if place.start <= transaction.now + TOLERANCE:
            return
        begin = max(transaction.now, self._arrival(task, place, transaction))
        now = False
        if begin < place.start - TOLERANCE and (
            freed is None or any(hold.place in freed for hold in booking.holds)
        ):
            needs = self._free_time.needs(place.demands, self.down)
            own = View({booking.booking})
            now = needs is not None and self._free_time.fits(needs, begin, place.start, own)
        start = begin if now else place.start
        soonest = start + booking.run_time - SOONER * self._settings.margin
        where = self._dispatch.choose(task, transaction.now, self.down, freed, sooner_than=soonest)
        if where is not None:
            transaction.note(TaskFreed(transaction.now, booking.booking, "begins sooner elsewhere"))
            transaction.do(Release(booking))
            self._fix_at(task, where, transaction)
        elif now:
            self.moves.move(booking, begin, begin + place.end - place.start, transaction)

    def _arrival(self, task: LiveTask, place: Placement, transaction: Transaction) -> float:
        # When its files are there; minus infinity if it waits for none.
        return self._files.arrival(task, place.resources[0], transaction.now)

    def _free_orphans(self, transaction: Transaction) -> None:
        # What waits for a task without a place has none either.
        while self._orphaned:
            task, reason = self._orphaned.pop(0)
            if not task.plannable:
                continue  # it has another place already
            for after in task.successors:
                if after.state in HELD:
                    self.free(after, transaction, reason)

    def _wake(self, task: LiveTask, moment: float) -> None:
        # A task that changes before is looked at in vain then.
        if moment < math.inf:
            heapq.heappush(self._due, (moment, next(self._entries), task))

    def _fix(self, task: LiveTask, transaction: Transaction) -> bool:
        placement = task.placement
        if placement is None or self._cycle.running or self._waits_for_group(task, placement):
            return False
        if placement.start > transaction.now + self._settings.slot + SLOT_TOLERANCE:
            self._wake(task, placement.start - self._settings.slot)
            return False
        if any(before.plannable for before in task.predecessors):
            return False
        needs = self._free_time.needs(placement.demands, self.down)
        if needs is None:
            self._cycle.want(transaction, f"{task.name} has lost its resource")
            return False
        length = placement.end - placement.start
        run_time = min(self._run_times.run_time(task, needs[0].supply.resource), length)
        ends = [each.booking.end for each in task.predecessors if each.booking is not None]
        since = max([placement.start, *ends, self._arrival(task, placement, transaction)])
        if transaction.now > since + length - run_time - self._settings.margin / 2:
            since = transaction.now
        start = self._free_time.earliest(needs, since, length)
        if start > transaction.now + self._settings.slot + SLOT_TOLERANCE:
            if start < math.inf:
                self._wake(task, start - self._settings.slot)
            return False
        self._fix_at(task, replace(placement, start=start, end=start + length), transaction)
        return True

    def _waits_for_group(self, task: LiveTask, placement: Placement) -> bool:
        # Whether it has no reservation of its own there: it is launched with others when it can begin.
        simulated = any(before.state is TaskState.SIMULATED for before in task.predecessors)
        return not simulated and self._groups.grouped(task, Alternative(placement.demands))

    def _fix_at(self, task: LiveTask, placement: Placement, transaction: Transaction) -> None:
        supplies, length = self._memory.supplies, placement.end - placement.start
        holds = tuple(
            Hold(*supplies[demand.resource].place, demand.units) for demand in placement.demands
        )
        primary = supplies[placement.resources[0]].resource
        run_time = min(self._run_times.run_time(task, primary), length)
        name = f"{self._epoch}-{self._memory.bookings_count + 1}"
        transaction.note(
            TaskFixed(
                transaction.now,
                task.owner.workflow_id,
                task.task.name,
                name,
                placement,
                holds,
                run_time,
            )
        )
        assert task.booking is not None
        self._files.send(task, transaction)
        transaction.do(Book(task.booking))
        transaction.changed(task.owner)
        self._ready.left((task.owner.workflow_id, task.task.name))
        self._advance_held(task, task.booking, transaction)

    def _launch(self, task: LiveTask, booking: Booking, transaction: Transaction) -> None:
        transaction.note(TaskLaunched(transaction.now, booking.booking))
        self._ready.left((task.owner.workflow_id, task.task.name))
        transaction.do(self._launching(task, booking))
        transaction.changed(task.owner)
        self._wake(task, self.moves.advance(booking, transaction))

    def _launching(self, task: LiveTask, booking: Booking) -> Launch:
        program = task.program
        inputs = None if program is None else _inputs(program, task.owner)
        return Launch(
            booking,
            # What is given files of a task that was simulated is simulated, too.
            None if inputs is None else program,
            self._run_times.work(task),
            task.name,
            task.start_time,
            inputs or (),
            _needed(task),
        )

    # --- giving up -----------------------------------------------------------------------------

    def free(self, task: LiveTask, transaction: Transaction, reason: str) -> None:
        """Gives up a booking, and those of the tasks that wait for this one."""
        assert task.booking is not None
        booking = task.booking
        self.moves.over(booking.booking)
        self._ready.left((task.owner.workflow_id, task.task.name))
        transaction.note(TaskFreed(transaction.now, booking.booking, reason))
        transaction.do(Release(booking))
        transaction.changed(task.owner)
        transaction.touched.append(task)  # it may have another place by now
        self._again(task, transaction, f"{task.name}: {reason}")

    def _again(self, task: LiveTask, transaction: Transaction, reason: str) -> None:
        self._orphaned.append((task, f"waits for {task.task.name!r}, which is planned again"))
        if not (task.owner.closing or task.has_ended):
            self._cycle.want(transaction, reason)

    def end(self, task: LiveTask, transaction: Transaction, reason: str) -> None:
        """Ends a run, as its workflow is given up, its resource is broken, or its site does not begin it."""
        if task.state is TaskState.ENDING or task.booking is None:
            return
        booking = task.booking
        transaction.note(TaskEnding(transaction.now, booking.booking, reason))
        transaction.do(Release(booking))
        transaction.changed(task.owner)
        if not task.owner.closing:
            self._again(task, transaction, f"{task.name}: {reason}")

    def close(
        self, workflow: LiveWorkflow, transaction: Transaction, *, running: bool, reason: str
    ) -> None:
        """Gives up a workflow's bookings, and its runs if requested."""
        for task in workflow.tasks.values():
            self._ready.left((workflow.workflow_id, task.task.name))
            if task.state in HELD:
                self.free(task, transaction, reason)
            elif running and task.state in AT_SITE:
                self.end(task, transaction, reason)
            else:
                self._withdraw(task, transaction)
        transaction.changed(workflow)

    @staticmethod
    def _withdraw(task: LiveTask, transaction: Transaction) -> None:
        # What waits at its site behind others of its group does not begin; its site knows whether it has.
        booking = task.booking
        if task.state is TaskState.LAUNCHED and booking is not None and booking.group is not None:
            transaction.do(Withdraw(booking))

    def resource_gone(self, name: str, transaction: Transaction, reason: str) -> None:
        """Gives up the bookings on a resource, and ends its runs."""
        for task in list(self._memory.tasks()):
            if task.booking is None or name not in task.booking.placement.resources:
                continue
            if task.state in HELD:
                self.free(task, transaction, reason)
            elif task.state in AT_SITE and task.program is None:
                # A program is run once: it goes on, and its site says what becomes of it.
                self.end(task, transaction, reason)

    # --- sites tell ----------------------------------------------------------------------------

    def take_up(self, _event: Restarted, transaction: Transaction) -> None:
        """Asks again for everything that was open when the daemon ended."""
        self._files.take_up()
        groups: dict[Group, list[Launch]] = {}
        for task in list(self._memory.tasks()):
            if task.booking is None:
                continue
            group = task.booking.group
            if group is not None and not task.booking.reservations:
                # Its site may have launched it, and finds it by its name.
                again = replace(self._launching(task, task.booking), again=True)
                groups.setdefault(group, []).append(again)
                continue
            transaction.do(Book(task.booking))
            if task.booking.moving is not None:
                transaction.do(Move(task.booking, *task.booking.moving))
            if task.state in AT_SITE:
                transaction.do(replace(self._launching(task, task.booking), again=True))
            if task.state is TaskState.ENDING:
                transaction.do(Release(task.booking))
            elif task.owner.closing:
                self._withdraw(task, transaction)
        self._take_up_groups(groups, transaction)
        for booking in self._memory.releasing.values():
            transaction.do(Release(booking))
        self._cycle.want_now("the broker has begun to work")

    def _take_up_groups(self, groups: dict[Group, list[Launch]], transaction: Transaction) -> None:
        for group, launches in groups.items():
            transaction.do(LaunchGroup(group, tuple(launches)))
            for launch in launches:
                task = self._memory.booked[launch.booking.booking]
                if task.state is TaskState.ENDING:
                    transaction.do(Release(launch.booking))
                elif task.owner.closing:
                    self._withdraw(task, transaction)

    def moved(self, event: Moved, transaction: Transaction) -> None:
        """The reservations are in another window."""
        task = self._memory.booked.get(event.booking)
        if task is not None and task.booking is not None:
            self._freed.update(hold.place for hold in task.booking.holds)
        self.moves.moved(event, transaction)

    def booked(self, event: Booked, transaction: Transaction) -> None:
        """The resources are reserved."""
        task = self._memory.booked.get(event.booking)
        if task is None or task.booking is None:
            return
        unnamed = task.booking.group is not None and not task.booking.reservations
        if task.state is TaskState.BOOKING or unnamed:
            transaction.note(TaskBooked(transaction.now, event.booking, event.reservations))
            transaction.touched.append(task)
            transaction.changed(task.owner)

    def lost(self, event: BookingLost, transaction: Transaction) -> None:
        """The booking is void."""
        task = self._memory.booked.get(event.booking)
        if task is None or task.booking is None:
            return
        placement, group = task.booking.placement, task.booking.group
        for index in event.taken if group is None else ():
            self._cycle.avoid(Taken(placement.resources[index], placement.start, placement.end))
        if group is not None and group.name not in self._begun:
            # Refused as a whole, or given back before any has begun: the next one would be, too.
            self._begun.add(group.name)
            self._cycle.avoid(Taken(placement.resources[0], group.begin, group.end))
            self._wake(task, group.end)
        if task.state is TaskState.ENDING:
            self._over(event, transaction, event.reason)
        else:
            self.free(task, transaction, event.reason)

    def handed_over(self, event: HandedOver, transaction: Transaction) -> None:
        """Its site has taken a program."""
        task = self._memory.booked.get(event.booking)
        if task is None or task.booking is None or task.state not in AT_SITE:
            return
        if task.booking.job != event.job:
            transaction.note(TaskHandedOver(transaction.now, event.booking, event.job))
            transaction.changed(task.owner)

    def hindered(self, event: Hindered, transaction: Transaction) -> None:
        """Its site says why it does not begin a run, or that nothing hinders it any more."""
        task = self._memory.booked.get(event.booking)
        if task is None or task.state is not TaskState.LAUNCHED or task.reason == event.reason:
            return
        transaction.note(TaskHindered(transaction.now, event.booking, event.reason))
        transaction.touched.append(task)
        transaction.changed(task.owner)

    def refused(self, event: Refused, transaction: Transaction) -> None:
        """Its site can never run a program: it is planned elsewhere, or has failed where there is nothing else."""
        task = self._memory.booked.get(event.booking)
        if task is None or task.booking is None or task.state not in AT_SITE:
            return
        booking, primary = task.booking, task.booking.placement.resources[0]
        if _other(task, primary) and task.state is not TaskState.ENDING and not task.owner.closing:
            transaction.note(TaskRefused(transaction.now, event.booking, primary))
            self.free(task, transaction, event.reason)
            return
        self.ended(
            Ended(0, event.booking, Outcome.FAILED, None, transaction.now, event.reason),
            transaction,
        )
        transaction.do(Release(booking))

    def started(self, event: Started, transaction: Transaction) -> None:
        """A run has begun."""
        task = self._memory.booked.get(event.booking)
        if task is not None and task.state in AT_SITE and task.start_time is None:
            if task.booking is not None and task.booking.group is not None:
                self._begun.add(task.booking.group.name)
            transaction.note(TaskStarted(transaction.now, event.booking, event.start_time))
            transaction.changed(task.owner)

    def ended(self, event: Ended, transaction: Transaction) -> None:
        """A run is over."""
        task = self._memory.booked.get(event.booking)
        if task is None or task.state not in AT_SITE:
            return
        assert task.booking is not None
        booking = task.booking
        state, counted = self._after(task, event)
        start = event.start_time if event.start_time is not None else task.start_time
        if state in DONE and start is None:
            start = min(transaction.now, event.end_time)
        cost = self._cost(booking, start, event.end_time)
        self.moves.over(booking.booking)
        if booking.group is not None and start is not None and event.outcome is Outcome.COMPLETED:
            resource = booking.placement.resources[0]
            self._groups.learn(resource, booking.run_time, event.end_time - start)
        self._run_times.measure(task, booking, event, start, transaction)
        if task.program is not None:
            self._ready.relearned(task.program.called)
        reason = event.reason or self._why(task, booking, event)
        if state is TaskState.FAILED and task.state is TaskState.ENDING:
            reason = f"it began while it was taken back ({task.reason})"
        transaction.note(
            TaskEnded(
                transaction.now,
                booking.booking,
                state,
                counted,
                start,
                event.end_time,
                cost,
                reason,
                event.outcome,
                event.exit_code,
                event.signal,
                event.outputs,
            )
        )
        self._free_places(booking)
        if booking.booking in self._memory.releasing:
            transaction.do(Release(booking))
        transaction.changed(task.owner)
        if state in DONE:
            transaction.touched += task.successors
        elif state is TaskState.FAILED:
            times = f" {task.failures} times" if task.failures > 1 else ""
            reason = f"task {task.task.name!r} has failed{times}"
            self._failed(task, transaction, reason)
        else:
            transaction.touched.append(task)  # a plan may have given it its next place already
            self._again(task, transaction, f"{task.name}: {reason or event.outcome.value}")

    def _free_places(self, booking: Booking) -> None:
        # One of a group frees units only where the others need no more than are left.
        group = booking.group
        if group is not None and group.name not in self._memory.groups:
            self._begun.discard(group.name)
        if group is None or self._memory.shared_units(group) < group.units:
            self._freed.update(hold.place for hold in booking.holds)

    def _failed(self, task: LiveTask, transaction: Transaction, reason: str) -> None:
        if task.on_failure != "continue":
            running = task.on_failure == "terminate"
            self.close(task.owner, transaction, running=running, reason=reason)
            return
        for after in task.waiting_for_it():
            if after.state in HELD:
                self.free(after, transaction, reason)

    def _after(self, task: LiveTask, event: Ended) -> tuple[TaskState, bool]:
        outcome = event.outcome
        if outcome in _DONE:
            return _DONE[outcome], False
        program, closing = task.program, task.owner.closing
        # A program that has begun while it was taken back, to run elsewhere, has run: its rule says whether it does again.
        begun = event.start_time is not None or task.start_time is not None
        taken_back = task.state is TaskState.ENDING and not (program and begun and not closing)
        if taken_back or (program is None and closing):
            return (TaskState.CANCELLED if closing else TaskState.WAITING), False
        runs = task.failures + 1
        if program is None:
            counted = outcome is not Outcome.CANCELLED
            again = not counted or runs < self._settings.runs_max
        else:
            counted = True
            again = not closing and program.rerun.wanted(runs, outcome.value, event.exit_code)
        return (TaskState.WAITING if again else TaskState.FAILED), counted

    @staticmethod
    def _why(task: LiveTask, booking: Booking, event: Ended) -> str:
        # Why a run has failed, where its site does not say it.
        if task.program is not None:
            return ending_words(event.outcome, event.exit_code, event.signal, task.program.limit)
        # One that was only simulated has gone on to the end of its reservation.
        last = booking.placement.end - SLOT_TOLERANCE
        if event.outcome not in {Outcome.FAILED, Outcome.TIMEOUT} or event.end_time < last:
            return ""
        return "it was cut off at the end of its reservation"

    def _cost(self, booking: Booking, start: float | None, end: float) -> float:
        if start is None:
            return 0.0
        cost = 0.0
        for demand in booking.placement.demands:
            supply = self._memory.supplies.get(demand.resource)
            if supply is None:
                return booking.placement.cost
            cost += supply.resource.cost(start, max(start, end), demand.units)
        return cost

    def released(self, event: Released, transaction: Transaction) -> None:
        """The booking holds nothing now."""
        held = self._memory.releasing.get(event.booking)
        if held is not None:
            transaction.note(BookingReleased(transaction.now, event.booking))
            self._free_places(held)
            self.moves.wanted = True
            return
        self._over(event, transaction, "")

    def _over(self, event: BookingEvent, transaction: Transaction, reason: str) -> None:
        # The end of a run that was to be ended, and may never have begun.
        task = self._memory.booked.get(event.booking)
        if task is not None and task.state is TaskState.ENDING:
            told = reason or task.reason
            cancelled = Ended(0, event.booking, Outcome.CANCELLED, None, transaction.now, told)
            self.ended(cancelled, transaction)

    def site_up(self, event: SiteUp, transaction: Transaction) -> None:
        """A site answers again."""
        if event.site in self.down:
            self.down.discard(event.site)
            self._cycle.want(transaction, f"site {event.site!r} is back")
            self._all = True

    def site_down(self, event: SiteDown, transaction: Transaction) -> None:
        """What is booked there is planned again; what runs there is waited for."""
        if event.site in self.down:
            return
        self.down.add(event.site)
        reason = f"site {event.site!r} does not answer"
        for task in list(self._memory.tasks()):
            if task.state in HELD and task.booking and event.site in task.booking.sites:
                self.free(task, transaction, reason)
        self._cycle.want_now(reason)

    def site_lost(self, event: SiteLost, transaction: Transaction) -> None:
        """Gives up the runs there if the configuration says so."""
        if self._settings.on_lost != "rerun":
            return
        for task in list(self._memory.tasks()):
            program = task.program
            once = program is not None and not program.rerun.wanted(
                task.failures + 1, Outcome.LOST.value, None
            )
            if (
                task.state in AT_SITE
                and task.booking
                and event.site in task.booking.sites
                and not once
            ):
                self.free(task, transaction, f"site {event.site!r} is lost")
