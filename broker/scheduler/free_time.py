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


class FreeTime:
    """Answers where and when units are free; `now` is the moment of the turn, in seconds."""

    def __init__(self, memory: StateTables, cycle: PlanningCycle, margin: float) -> None:
        self._memory = memory
        self._cycle = cycle
        self._overdue = max(margin, OVERDUE_LEAST)
        self.now = -math.inf
        self._planned: dict[Place, _Planned] = {}
        self._open: dict[str, tuple[Resource, list[tuple[float, float]]]] = {}
        self._known_at = (-1, -math.inf)
        self._holdings: dict[Place, list[tuple[str, float, float, int]]] = {}
        self._busy: dict[Place, int] = {}

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
        for key, entries in found.items():
            entries.sort(key=lambda entry: entry[1])
            self._planned[key] = _Planned([entry[1] for entry in entries], entries)

    def _still_planned(
        self, place: Place, begin: float, end: float, but: Callable[[LiveTask], bool]
    ) -> Iterable[tuple[float, float, int]]:
        planned = self._planned.get(place)
        if planned is None:
            return
        for at in range(bisect.bisect_left(planned.starts, end)):
            task, start, until, units = planned.tasks[at]
            if until > begin and task.state is TaskState.WAITING and not but(task):
                where = task.placement
                if where is not None and where.start == start:
                    yield start, until, units

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
        known_at = self._memory.changes, self.now
        if known_at != self._known_at:
            self._known_at = known_at
            self._holdings.clear()
            self._busy.clear()
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
