"""The tasks that can begin, and which of them an event may let begin.

An event frees units at a place or two, and of thousands of tasks that wait those can begin there whose runs fit into
what is free: only these are looked at. Tasks that may run on the same resources stand together in the order of their
places in the plan (`BoundedOrder`), with their work as values; how much work fits is asked once for all of them. What
is left out could not have begun, so what begins is the same as if all were looked at.

Looked at besides are tasks that have come to be ready; tasks whose own place in the plan is what ends the free time, as
that does not count for themselves; and booked tasks that could move to now. Tasks that wait for files are all looked at, as
they begin when their files are there.
"""

import bisect
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from broker.model.workflow import Alternative
from broker.scheduler.bounded_order import BoundedOrder, Key
from broker.scheduler.dispatch import AHEAD_SLOTS, CAUTION
from broker.scheduler.free_time import Need
from broker.scheduler.groups import Groups
from broker.scheduler.lifecycle import TaskState
from broker.scheduler.records import Place, Supply
from broker.scheduler.scheduling_context import SchedulingContext
from broker.scheduler.state_tables import LiveTask

TaskKey = tuple[str, str]
"""A workflow's id and the name of a task."""

READY: Final = frozenset((TaskState.WAITING, TaskState.BOOKED))
"""In which a task can begin, or begin sooner."""

_SLACK: Final = 1e-5
"""Seconds by which more is thought to fit than is free, for rounding: to look at a task in vain changes nothing."""

_FIRST: Final[Key] = (-math.inf, -1)


@dataclass(slots=True)
class _Entry:
    # `number` is its place among those with the same start; `indexed` is what it is found by.
    key: TaskKey
    task: LiveTask
    number: int
    indexed: "list[tuple[BoundedOrder[_Entry], Key]]" = field(default_factory=list)
    grouped: tuple[int, ...] = ()

    def at(self, now: float) -> Key:
        place = self.task.placement
        return (now if place is None else place.start), self.number


@dataclass(slots=True)
class _Alike:
    # Tasks that may run on the same resources, and of which equal work takes equally long on each.
    sample: LiveTask
    shared: tuple[Alternative, ...]
    grouped: tuple[int, ...]
    waits: bool
    by_place: dict[Place, list[Alternative]]
    alternatives: list[Alternative]
    fastest: float
    rate: float
    planned: BoundedOrder[_Entry] = field(default_factory=BoundedOrder)
    booked: BoundedOrder[_Entry] = field(default_factory=BoundedOrder)
    unplanned: BoundedOrder[_Entry] = field(default_factory=BoundedOrder)
    hopeless: BoundedOrder[_Entry] = field(
        default_factory=BoundedOrder
    )  # late wherever they are booked ahead


_Next = Callable[[Key], tuple[Key, _Entry] | None]


class ReadyTasks:
    """Tasks that can begin: those that wait, and those that are booked for later."""

    def __init__(self, context: SchedulingContext, groups: Groups) -> None:
        self._memory = context.memory
        self._settings = context.settings
        self._free_time = context.free_time
        self._files = context.files
        self._groups = groups
        self._run_times = context.run_times
        self._entries: dict[TaskKey, _Entry] = {}
        self._fresh: set[TaskKey] = set()
        self._left: set[TaskKey] = set()
        self._regrouped: set[TaskKey] = set()
        self._relearned: set[str] = set()
        self._numbers = itertools.count()
        self._alike: dict[tuple[int, bool, tuple[int, ...], str], _Alike] = {}
        self._places: dict[Place, list[Supply]] = {}
        self._booked_at: dict[Place, BoundedOrder[_Entry]] = {}
        self._supplies_at = -1

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def fresh(self) -> bool:
        """Whether tasks have been added that were not looked at."""
        return bool(self._fresh)

    def clear(self) -> None:
        """Takes all out."""
        self._entries.clear()
        self._fresh.clear()
        self._left.clear()
        self._regrouped.clear()
        self._forget_order()

    def add(self, key: TaskKey, task: LiveTask) -> None:
        """Adds a task, or has it looked at anew."""
        entry = self._entries.get(key)
        if entry is None:
            self._entries[key] = _Entry(key, task, next(self._numbers))
        else:
            self._unindex(entry)
        self._fresh.add(key)

    def discard(self, key: TaskKey) -> None:
        """Takes a task out."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._unindex(entry)

    def left(self, key: TaskKey) -> None:
        """Notes that another thing has become of a task: it is taken out if it cannot begin when the next are looked at."""
        if key in self._entries:
            self._left.add(key)

    def relearned(self, program: str) -> None:
        """Notes that runs of a program are thought to take another time."""
        self._relearned.add(program)

    def take(
        self, now: float, freed: Collection[Place], down: Collection[str]
    ) -> Iterator[tuple[TaskKey, LiveTask, bool]]:
        """Yields each task that may begin by what has become free, in the order of the plan, and whether it is new.

        What happens to one of them counts for those behind it. All of it has to be taken.
        """
        self._take_out(now)
        self._renew()
        entries = [self._entries[key] for key in self._fresh if key in self._entries]
        fresh, self._fresh = self._fresh, set()
        first = sorted(((entry.at(now), entry) for entry in entries), key=lambda one: one[0])
        yield from self._merged(now, freed, down, first, fresh)
        for entry in entries:
            if entry.key in self._entries and entry.key not in self._fresh:
                self._index(entry, now)

    def _merged(
        self,
        now: float,
        freed: Collection[Place],
        down: Collection[str],
        first: list[tuple[Key, _Entry]],
        fresh: Collection[TaskKey],
    ) -> Iterator[tuple[TaskKey, LiveTask, bool]]:
        regrouped, self._regrouped = self._regrouped, set()
        cursor, known_at, streams = _FIRST, -1, list[_Next]()
        while True:
            if known_at != self._memory.changes:
                known_at = self._memory.changes
                streams = [_of(first), *self._streams(now, freed, down, regrouped)]
            found = [each for stream in streams if (each := stream(cursor)) is not None]
            if not found:
                return
            cursor, entry = min(found, key=lambda one: one[0])
            yield entry.key, entry.task, entry.key in fresh

    def _take_out(self, now: float) -> None:
        for key in self._left:
            entry = self._entries.get(key)
            if entry is None:
                continue
            if entry.task.owner.closing or entry.task.state not in READY:
                self.discard(key)
            elif entry.indexed:
                self._unindex(entry)
                self._index(entry, now)
        self._left.clear()

    # --- what may begin ------------------------------------------------------------------------

    def _streams(
        self,
        now: float,
        freed: Collection[Place],
        down: Collection[str],
        regrouped: Iterable[TaskKey],
    ) -> Iterator[_Next]:
        besides = {key: self._entries[key] for key in regrouped if key in self._entries}
        for alike in self._alike.values():
            bound = self._fitting(alike, now, freed, down, besides)
            if bound > -math.inf:
                for order in (alike.planned, alike.booked):
                    yield _within(order, bound)
                yield self._unplanned(alike, alike.hopeless, bound, now)
            if alike.unplanned:
                ahead = max(bound, self._fitting_ahead(alike, now, down))
                yield self._unplanned(alike, alike.unplanned, ahead, now)
        for place in freed:
            if place in self._booked_at:
                yield self._sooner(place)
        listed = [(each.at(now), each) for each in besides.values() if each.key not in self._fresh]
        yield _of(sorted(listed, key=lambda one: one[0]))

    def _fitting(
        self,
        alike: _Alike,
        now: float,
        freed: Collection[Place],
        down: Collection[str],
        besides: dict[TaskKey, _Entry],
    ) -> float:
        # The most work that fits from now on into what is free where units have become free. Notes tasks
        # that would be in their own way.
        bound = -math.inf
        for place in freed:
            for alternative in alike.by_place.get(place, ()):
                needs = self._free_time.needs(alternative.demands, down)
                if needs is None:
                    continue
                if alike.waits:
                    return math.inf
                until = math.inf
                for need in needs:
                    short = self._free_time.short_from(need)
                    until = min(until, short)
                    for task in self._free_time.planned_at(need.supply.place, short):
                        entry = self._entries.get((task.owner.workflow_id, task.task.name))
                        if entry is not None and entry.task is task:
                            besides[entry.key] = entry
                bound = max(bound, self._work(alike, needs, until - now))
        return bound

    def _fitting_ahead(self, alike: _Alike, now: float, down: Collection[str]) -> float:
        # The most work that fits into what is free and begins no more than some slots ahead.
        if alike.waits:
            return math.inf
        bound, latest = -math.inf, now + AHEAD_SLOTS * self._settings.slot
        for alternative in alike.alternatives:
            needs = self._free_time.needs(alternative.demands, down)
            if needs is not None:
                longest = min(self._free_time.longest(need, latest) for need in needs)
                bound = max(bound, self._work(alike, needs, longest))
        return bound

    def _work(self, alike: _Alike, needs: list[Need], length: float) -> float:
        least = self._run_times.rate(alike.sample, needs[0].supply.resource)
        return (length - self._settings.margin + _SLACK) / least * (1 + 1e-9)

    def _unplanned(
        self, alike: _Alike, order: BoundedOrder[_Entry], bound: float, now: float
    ) -> _Next:
        # Those without a place stand where one that begins now would.
        def following(cursor: Key) -> tuple[Key, _Entry] | None:
            if cursor[0] > now:
                return None
            found = order.after((0.0, cursor[1] if cursor[0] == now else -1), bound)
            if found is None:
                return None
            (_, number), entry = found
            if order is alike.unplanned and self._is_hopeless(alike, entry.task, now):
                self._unindex(entry)
                self._index(entry, now)
            return (now, number), entry

        return following

    def _sooner(self, place: Place) -> _Next:
        # Booked tasks whose own units there are free from now until they begin.
        until = -math.inf
        for supply in self._places.get(place, ()):
            until = max(until, self._free_time.short_from(Need(supply, 1), planned=False))
        order = self._booked_at[place]

        def following(cursor: Key) -> tuple[Key, _Entry] | None:
            found = order.after(cursor, math.inf)
            return found if found is not None and found[0][0] <= until + _SLACK else None

        return following

    # --- how they are found --------------------------------------------------------------------

    def _renew(self) -> None:
        # Sorts those anew for which what is known of resources, or of programs, has changed.
        if self._supplies_at != self._memory.supply_changes:
            changed = [entry for entry in self._entries.values() if entry.indexed]
            self._forget_order()
            self._supplies_at = self._memory.supply_changes
            for supply in self._memory.supplies.values():
                self._places.setdefault(supply.place, []).append(supply)
        elif self._relearned and self._run_times.learned:
            changed = []
            for entry in self._entries.values():
                program = entry.task.program
                if entry.indexed and program is not None and program.called in self._relearned:
                    changed.append(entry)
            for entry in changed:
                self._unindex(entry)
            for key in [key for key in self._alike if key[3] in self._relearned]:
                del self._alike[key]
        else:
            changed = []
        self._relearned.clear()
        for entry in changed:
            before = entry.grouped
            self._index(entry, self._free_time.now)
            if entry.grouped != before:
                self._regrouped.add(entry.key)

    def _forget_order(self) -> None:
        for entry in self._entries.values():
            entry.indexed.clear()
        self._alike.clear()
        self._booked_at.clear()
        self._places.clear()
        self._supplies_at = -1

    def _index(self, entry: _Entry, now: float) -> None:
        task = entry.task
        alike = self._alike_of(task)
        entry.grouped = alike.grouped
        work = self._run_times.work(task)
        place = task.placement
        if place is None:
            order = alike.hopeless if self._is_hopeless(alike, task, now) else alike.unplanned
            self._put(order, (0.0, entry.number), work, entry)
            return
        at = entry.at(now)
        if task.booking is None:
            self._put(alike.planned, at, work, entry)
            return
        self._put(alike.booked, at, work, entry)
        for where in task.booking.units:
            self._put(self._booked_at.setdefault(where, BoundedOrder()), at, 0.0, entry)

    @staticmethod
    def _put(order: BoundedOrder[_Entry], at: Key, value: float, entry: _Entry) -> None:
        order.add(at, value, entry)
        entry.indexed.append((order, at))

    @staticmethod
    def _unindex(entry: _Entry) -> None:
        for order, at in entry.indexed:
            order.remove(at)
        entry.indexed.clear()

    def _is_hopeless(self, alike: _Alike, task: LiveTask, now: float) -> bool:
        # Whether it misses its due date wherever it is booked, now and later.
        due = task.owner.workflow.due_date
        if due == math.inf:
            return False
        least = self._run_times.work(task) * alike.rate
        return now + least + CAUTION * task.behind / alike.fastest > due + _SLACK

    def _alike_of(self, task: LiveTask) -> _Alike:
        alternatives, program = task.task.alternatives, task.program
        grouped = () if program is None else self._groups.those_of(task)
        waits = bool(self._files.files(task))
        called = program.called if program is not None and self._run_times.learned else ""
        key = (id(alternatives), waits, grouped, called)
        known = self._alike.get(key)
        if known is None or known.shared is not alternatives:
            known = self._alike[key] = self._made(task, grouped, waits=waits)
        return known

    def _made(self, task: LiveTask, grouped: tuple[int, ...], *, waits: bool) -> _Alike:
        by_place: dict[Place, list[Alternative]] = {}
        usable: list[Alternative] = []
        fastest, rate = 0.0, math.inf
        supplies = self._memory.supplies
        for number, alternative in enumerate(task.task.alternatives):
            first = supplies.get(alternative.primary)
            if first is not None:
                fastest = max(fastest, first.resource.performance)
                rate = min(rate, self._run_times.rate(task, first.resource))
            if number in grouped:
                continue
            usable.append(alternative)
            found = (supplies.get(name) for name in alternative.resources)
            for place in {supply.place: None for supply in found if supply is not None}:
                by_place.setdefault(place, []).append(alternative)
        return _Alike(
            task, task.task.alternatives, grouped, waits, by_place, usable, fastest or 1.0, rate
        )


def _of(entries: list[tuple[Key, _Entry]]) -> _Next:
    def following(cursor: Key) -> tuple[Key, _Entry] | None:
        number = bisect.bisect_right(entries, cursor, key=lambda one: one[0])
        return entries[number] if number < len(entries) else None

    return following


def _within(order: BoundedOrder[_Entry], bound: float) -> _Next:
    return lambda cursor: order.after(cursor, bound)
