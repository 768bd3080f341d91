"""Which time of resources is free, as far as the broker knows.

Taken is what its own attempts hold, until their sites have said that they hold nothing; what others
hold, as sites say; and hours in which a resource is closed. An attempt whose reservations are being
moved counts where they were and where they will be.
"""

import bisect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from broker.model.resources import EPOCH_IN_WEEK, WEEK, Resource
from broker.model.workflow import Demand
from broker.scheduler.lifecycle import AT_SITE, TaskState
from broker.scheduler.planning_cycle import PlanningCycle
from broker.scheduler.records import Place, Supply
from broker.scheduler.state_tables import Booking, LiveTask, StateTables

TOLERANCE = 1e-6
"""Seconds by which two windows may overlap, for rounding."""

OVERDUE_LEAST: Final = 1.0
"""What should be over by now is thought to take so many seconds more, or the margin if that is more."""

HORIZON: Final = 2 * WEEK
"""So far ahead free time is looked for, seconds."""


@dataclass(frozen=True, slots=True)
class View:
    """What counts as taken.

    Attributes:
        but: attempts that do not count.
        instead: begin and end that count for attempts in place of what they hold, in seconds.
        task: what is planned for others than this task counts, too, booked or not.
        planned_but: in place of `task`: says of which tasks what is planned does not count.
        own: only the broker's own attempts count.
    """

    but: Collection[str] = ()
    instead: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    task: LiveTask | None = None
    planned_but: Callable[[LiveTask], bool] | None = None
    own: bool = False


EVERYTHING: Final = View()

ALL_PLANNED: Final = View(planned_but=lambda _task: False)
"""What is planned for any task counts, too."""

FIRST_LOOK: Final = 16.0
"""So far ahead free time is looked at first, seconds; each next look goes four times as far."""


@dataclass(frozen=True, slots=True)
class Need:
    """Units of a resource that are looked for."""

    supply: Supply
    units: int


@dataclass(slots=True)
class _Planned:
    # What is planned at a place and not booked, in order of its beginning.
    starts: list[float]
    tasks: list[tuple[LiveTask, float, float, int]]
    passed: int = 0  # what is before has begun, or is over

    def there(self, until: float) -> Iterable[tuple[LiveTask, float, float, int]]:
        for at in range(self.passed, bisect.bisect_left(self.starts, until)):
            task, start, end, units = self.tasks[at]
            if task.state is TaskState.WAITING:
                where = task.placement
                if where is not None and where.start == start:
                    yield task, start, end, units

    def go_on(self, now: float) -> None:
        # What has left its place does not come back to it before the next plan.
        while self.passed < len(self.tasks):
            task, start, end, _ = self.tasks[self.passed]
            where = task.placement
            still = task.state is TaskState.WAITING and where is not None and where.start == start
            if still and end > now:
                return
            self.passed += 1


class FreeTime:
    """Answers where and when units are free; `now` is the moment of the turn, in seconds."""

    def __init__(self, memory: StateTables, cycle: PlanningCycle, margin: float) -> None:
        self._memory = memory
        self._cycle = cycle
        self._overdue = max(margin, OVERDUE_LEAST)
        self.now = -math.inf
        self._planned: dict[Place, _Planned] = {}
        self._open: dict[str, tuple[Resource, list[tuple[float, float]]]] = {}
        self._known_at = (-1, -1, -math.inf)
        self._holdings: dict[Place, list[tuple[str, float, float, int]]] = {}
        self._busy: dict[Place, int] = {}
        self._shortages: dict[tuple[str, int, bool], float] = {}
        self._longest: dict[tuple[str, int, float], float] = {}

    def needs(self, demands: Iterable[Demand], down: Collection[str]) -> list[Need] | None:
        """Returns demands with their resources; `None` if one of these cannot be used now."""
        found = []
        for demand in demands:
            supply = self._memory.supplies.get(demand.resource)
            if supply is None or supply.broken or supply.site in down:
                return None
            if demand.units > supply.resource.capacity:
                return None
            found.append(Need(supply, demand.units))
        return found

    # --- what is planned -----------------------------------------------------------------------

    def planned(self, tasks: Iterable[LiveTask]) -> None:
        """Takes up where the plan has tasks that are not booked."""
        found: dict[Place, list[tuple[LiveTask, float, float, int]]] = {}
        for task in tasks:
            place = task.placement
            if task.state is not TaskState.WAITING or place is None:
                continue
            for demand in place.demands:
                supply = self._memory.supplies.get(demand.resource)
                if supply is not None:
                    entry = (task, place.start, place.end, demand.units)
                    found.setdefault(supply.place, []).append(entry)
        self._planned = {}
        self._known_at = (-1, -1, -math.inf)
        for key, entries in found.items():
            entries.sort(key=lambda entry: entry[1])
            self._planned[key] = _Planned([entry[1] for entry in entries], entries)

    def _still_planned(
        self, place: Place, begin: float, end: float, but: Callable[[LiveTask], bool]
    ) -> Iterable[tuple[float, float, int]]:
        planned = self._planned.get(place)
        if planned is None:
            return
        planned.go_on(self.now)
        for task, start, until, units in planned.there(end):
            if until > begin and not but(task):
                yield start, until, units

    def planned_at(self, place: Place, moment: float) -> list[LiveTask]:
        """Returns the tasks that wait and that the plan has at a place at a moment, in seconds."""
        planned = self._planned.get(place)
        if planned is None or moment == math.inf:
            return []
        there = planned.there(moment + 2 * TOLERANCE)
        return [task for task, _, until, _ in there if until >= moment - 2 * TOLERANCE]

    # --- what is free --------------------------------------------------------------------------

    def fits(
        self, needs: Sequence[Need], begin: float, end: float, view: View = EVERYTHING
    ) -> bool:
        """Returns whether units are free from `begin` to `end`, in seconds."""
        if begin == self.now and end > begin + TOLERANCE and not (view.but or view.instead):
            # On a busy pool mostly no unit is free now, and that is quickly seen.
            for need in needs:
                supply = need.supply
                if self._busy_now(supply.place) > supply.resource.capacity - need.units:
                    return False
        return not any(
            since < end - TOLERANCE and begin < until - TOLERANCE
            for need in needs
            for since, until in self._taken(need, begin, end, view)
        )

    def earliest(
        self,
        needs: Sequence[Need],
        since: float,
        length: float,
        view: View = EVERYTHING,
        latest: float = math.inf,
    ) -> float:
        """Returns from when on units are free for a time, `since` the soonest; infinity for never.

        A beginning after `latest` may be one at which units are not free. All in seconds.
        """
        horizon = min(since + HORIZON, latest) + length + TOLERANCE
        taken = [span for need in needs for span in self._taken(need, since, horizon, view)]
        start = since
        for begin, end in sorted(taken):
            if begin >= start + length - TOLERANCE:
                break
            start = max(start, end)
        return start if start <= since + HORIZON else math.inf

    def short_from(self, need: Need, *, planned: bool = True) -> float:
        """Returns the next moment from now on at which units are not free, in seconds; infinity for never.

        With `planned` what is planned counts as taken, too.
        """
        key = need.supply.name, need.units, planned
        found = self._shortages.get(key) if self._is_known() else None
        if found is None:
            view = ALL_PLANNED if planned else EVERYTHING
            length, found = FIRST_LOOK, math.inf
            while found == math.inf and length < HORIZON:
                length *= 4
                spans = self._taken(need, self.now, self.now + length, view)
                past = self.now + TOLERANCE
                found = min((since for since, until in spans if until > past), default=math.inf)
            self._shortages[key] = found
        return found

    def longest(self, need: Need, latest: float) -> float:
        """Returns the longest time for which units are free from a moment on that is now or later, all in seconds.

        It begins no later than `latest`, and what is planned counts as taken. It is infinite from two weeks on.
        """
        key = need.supply.name, need.units, latest
        found = self._longest.get(key) if self._is_known() else None
        if found is None:
            length = latest - self.now + FIRST_LOOK
            while found is None:
                length *= 4
                found = self._longest_within(need, latest, self.now + length)
                if length > HORIZON and found is None:
                    found = math.inf
            self._longest[key] = found
        return found

    def _longest_within(self, need: Need, latest: float, horizon: float) -> float | None:
        # `None` where the last one goes beyond the horizon.
        start, longest = self.now, 0.0
        for since, until in sorted(self._taken(need, self.now, horizon, ALL_PLANNED)):
            longest = max(longest, since - start + TOLERANCE)
            start = max(start, until)
            if start > latest:
                return longest
        return None

    def _taken(
        self, need: Need, begin: float, end: float, view: View
    ) -> Iterable[tuple[float, float]]:
        # Spans in which there are too few units, between two moments.
        supply = need.supply
        if not view.own:
            yield from self._closed(supply.resource, begin, end)
            for since, until in self._cycle.taken_of(supply.name):
                if since < end and begin < until:
                    yield since, until
        free = supply.resource.capacity - need.units
        edges = self._edges(supply.place, begin, end, view)
        held, short = 0, math.inf
        for moment, units in sorted(edges):
            held += units
            if held > free and short == math.inf:
                short = moment
            elif held <= free and short < math.inf:
                # One that ends and another that begins at the same moment overlap by no more than is rounded.
                if moment > short + TOLERANCE:
                    yield short, moment
                short = math.inf

    def _edges(self, place: Place, begin: float, end: float, view: View) -> list[tuple[float, int]]:
        edges: list[tuple[float, int]] = []
        but, instead = view.but, view.instead
        for name, since, until, units in self._holding(place):
            if but and name in but:
                continue
            if instead and name in instead:
                since, until = instead[name]  # noqa: PLW2901  # counts in its place
            if since < end and begin < until:
                edges += [(max(since, begin), units), (until, -units)]
        but_planned, own = view.planned_but, view.task
        if own is not None:
            but_planned = lambda task: task is own  # noqa: E731  # told apart by identity
        if but_planned is not None:
            for since, until, units in self._still_planned(place, begin, end, but_planned):
                edges += [(max(since, begin), units), (until, -units)]
        return edges

    def _holding(self, place: Place) -> list[tuple[str, float, float, int]]:
        # Who holds units of it, from when until when, and how many; worked out once for each change.
        self._is_known()
        found = self._holdings.get(place)
        if found is None:
            found = self._holdings[place] = [
                (
                    name,
                    booking.begin,
                    self._until(booking),
                    booking.units.get(place, 0),
                )
                for name, booking in self._memory.holding.get(place, {}).items()
                if booking.group is None
            ]
            found += self._of_groups(place)
        return found

    def _is_known(self) -> bool:
        # Whether what was worked out still holds; forgets it if not.
        known_at = self._memory.changes, self._cycle.taken_changes, self.now
        if known_at == self._known_at:
            return True
        self._known_at = known_at
        for known in (self._holdings, self._busy, self._shortages, self._longest):
            known.clear()
        return False

    def _of_groups(self, place: Place) -> Iterable[tuple[str, float, float, int]]:
        # The same for attempts that share units: each group once.
        for name, attempts in self._memory.groups.items():
            first = next(iter(attempts.values()))
            group = first.group
            if group is not None and place in first.units:
                until = group.end if group.end > self.now + TOLERANCE else self.overdue(group.end)
                yield name, group.begin, until, self._memory.shared_units(group)

    def any_room(self, places: Collection[Place]) -> bool:
        """Returns whether a unit of one of these places is free at this moment."""
        if not places:
            return False
        capacities: dict[Place, int] = {}
        for supply in self._memory.supplies.values():
            place = supply.place
            if place in places:
                capacities[place] = max(capacities.get(place, 0), supply.resource.capacity)
        return any(self._busy_now(place) < most for place, most in capacities.items())

    def _busy_now(self, place: Place) -> int:
        holding = self._holding(place)
        found = self._busy.get(place)
        if found is None:
            found = self._busy[place] = sum(
                units
                for _, since, until, units in holding
                if since <= self.now and until > self.now + TOLERANCE
            )
        return found

    def _until(self, booking: Booking) -> float:
        # What runs, and should be over by now, holds its units until its site says that it is.
        end = booking.end
        if end <= self.now + TOLERANCE:
            task = self._memory.booked.get(booking.booking)
            if task is not None and task.state in AT_SITE:
                return self.overdue(end)
        return end

    def overdue(self, end: float) -> float:
        """Returns when a run is thought to be over that should be at a moment, both in seconds."""
        return end if end > self.now + TOLERANCE else self.now + self._overdue

    # --- hours ---------------------------------------------------------------------------------

    def _closed(
        self, resource: Resource, begin: float, end: float
    ) -> Iterable[tuple[float, float]]:
        for since, until in resource.calendar.closures:
            if since < end and begin < until:
                yield since, until
        spans = self._opening(resource)
        if not spans:
            return
        week = begin - (begin + EPOCH_IN_WEEK + resource.utc_offset) % WEEK - WEEK
        open_until = -math.inf
        while open_until < end:
            for first, last in spans:
                if open_until > -math.inf and week + first > open_until:
                    yield open_until, week + first
                open_until = max(open_until, week + last)
            week += WEEK

    def _opening(self, resource: Resource) -> list[tuple[float, float]]:
        known = self._open.get(resource.name)
        if known is None or known[0] is not resource:
            known = self._open[resource.name] = (resource, resource.opening_spans())
        return known[1]
