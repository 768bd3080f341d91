"""Short programs that are launched in groups where pilots are.

To reserve a place for a program, launch it there and hear of its end takes longer than a program of a second runs,
and a plan that has such programs one by one, each with its margin, is mostly margin. So those that can begin
share units of one resource for a while: they are launched in one go, wait at their site, and begin one after the other
without a word of the broker's. What has not begun when the window of the group is over comes back and is launched with
the next, so that estimates that are much too short cost nothing but that; what they were wrong by is learned.

A group takes units that are free now, neither booked nor planned for tasks that are not launched so, and of the
programs that can begin its share, by what it has of the units that do this work. Within it each task has a place of
its own, one after the other, as plans and charts show it.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from broker.model.plan import Placement
from broker.model.program import Program
from broker.model.workflow import Alternative
from broker.scheduler.free_time import Need, View
from broker.scheduler.lifecycle import TaskState
from broker.scheduler.records import Place, Supply
from broker.scheduler.scheduling_context import SchedulingContext
from broker.scheduler.state_tables import LiveTask

LANE_S: Final = 4.0
"""So long a unit is kept at work by one group, as far as is known, seconds: launching takes some hundredths of one."""

MEMBERS_MAX: Final = 250
"""Most programs of a group: a site tells of each, and holds back 1,000 changes for one who reads slowly."""

BYTES_MAX: Final = 1 << 20
"""Most bytes of the scripts of a group together; the first is taken in any case."""

KNOWN_SHARE: Final = 0.1
"""Weight of the newest run in what is learned about estimates."""

RATIO_BOUNDS: Final = (0.01, 100.0)
"""Of what runs take to what was estimated."""


@dataclass(frozen=True, slots=True)
class Member:
    """A task of a group, its place, and seconds that its run should take."""

    task: LiveTask
    placement: Placement
    run_time: float


@dataclass(frozen=True, slots=True)
class Gathered:
    """A group to be launched; `end` is that of its window, seconds."""

    supply: Supply
    units: int
    end: float
    members: tuple[Member, ...]


class Groups:
    """Gathers programs that can begin into groups."""

    def __init__(self, context: SchedulingContext) -> None:
        self._memory = context.memory
        self._settings = context.settings
        self._free_time = context.free_time
        self._run_times = context.run_times
        self._ratios: dict[str, float] = {}
        self._outgrown: list[LiveTask] = []

    def grouped(self, task: LiveTask, alternative: Alternative) -> bool:
        """Returns whether a task is launched in a group where it takes this alternative.

        One whose workflow has a budget is so only where it is cheapest.
        """
        if not self._settings.early or task.program is None or len(alternative.demands) > 1:
            return False
        supply = self._memory.supplies.get(alternative.primary)
        if supply is None or not supply.groups:
            return False
        if self._run_times.run_time(task, supply.resource) > self._settings.grouped:
            return False
        if task.owner.workflow.budget == math.inf:
            return True
        return self._price(alternative) <= min(map(self._price, task.task.alternatives))

    def _price(self, alternative: Alternative) -> float:
        # For a second of work.
        supplies, price = self._memory.supplies, 0.0
        for demand in alternative.demands:
            if demand.resource not in supplies:
                return math.inf
            price += supplies[demand.resource].resource.price * demand.units
        return supplies[alternative.primary].resource.duration(price)

    def takes(self, task: LiveTask) -> bool:
        """Returns whether a task is launched in a group wherever it can run."""
        return all(self.grouped(task, each) for each in task.task.alternatives)

    def may_take(self, task: LiveTask) -> bool:
        """Returns whether a task can be launched in a group."""
        return any(self.grouped(task, each) for each in task.task.alternatives)

    def those_of(self, task: LiveTask) -> tuple[int, ...]:
        """Returns the numbers of the alternatives with which a task is launched in a group."""
        if not any(supply.groups for supply in self._memory.supplies.values()):
            return ()
        each = enumerate(task.task.alternatives)
        return tuple(number for number, one in each if self.grouped(task, one))

    def take_outgrown(self) -> list[LiveTask]:
        """Returns the tasks that `gather` has taken out as they are thought to take longer by now, each once."""
        found, self._outgrown = self._outgrown, []
        return found

    def learn(self, resource: str, run_time: float, took: float) -> None:
        """Learns from a run how long those like it take; both times in seconds."""
        low, high = RATIO_BOUNDS
        ratio = min(high, max(low, took / run_time))
        known = self._ratios.get(resource, 1.0)
        self._ratios[resource] = known + KNOWN_SHARE * (ratio - known)

    def gather(
        self,
        ready: "dict[tuple[str, str], LiveTask]",
        now: float,
        down: Collection[str],
        places: Collection[Place] | None,
    ) -> Gathered | None:
        """Returns the next group of tasks that can begin, which come in their order; `None` for none.

        With `places` only resources there are looked at. What cannot begin any more is taken out of `ready`.
        """
        for supply in self._open(down, places):
            found = self._gather_at(supply, ready, now)
            if found is not None:
                return found
        return None

    def _open(self, down: Collection[str], places: Collection[Place] | None) -> list[Supply]:
        # Resources where groups are launched, the fastest first.
        found = [
            supply
            for supply in self._memory.supplies.values()
            if supply.groups
            and not supply.broken
            and supply.site not in down
            and (places is None or supply.place in places)
        ]
        return sorted(found, key=lambda supply: -supply.resource.performance)

    def _gather_at(
        self, supply: Supply, ready: "dict[tuple[str, str], LiveTask]", now: float
    ) -> Gathered | None:
        ratio = self._ratios.get(supply.name, 1.0)
        some: list[tuple[LiveTask, Alternative, float]] = []
        width, size, bound, work = 0, 0, math.inf, 0.0
        units = 0
        too_wide: set[int] = set()
        gone: list[tuple[str, str]] = []
        for task, program, alternative in self._candidates(supply, ready, gone):
            demand = alternative.demands[0].units
            run_time = self._run_times.run_time(task, supply.resource)
            if not some and demand not in too_wide:
                width = demand
                units = self._units(supply, width, now, run_time)
                if not units and self._waits_for_groups(supply, width, now, run_time):
                    break
                bound = self._most(supply, width, units, len(ready))
                if not units:
                    too_wide.add(width)
            if demand != width or demand in too_wide:
                continue  # with another group
            size += len(program.script)
            if len(some) >= bound or (some and size > BYTES_MAX):
                break
            some.append((task, alternative, run_time))
            work += run_time
            if work * ratio > LANE_S * (units // width):
                break
        for key in gone:
            del ready[key]
        if not some:
            return None
        return self._gathered(supply, units, width, some, now=now, ratio=max(1.0, ratio))

    def _candidates(
        self,
        supply: Supply,
        ready: "dict[tuple[str, str], LiveTask]",
        gone: list[tuple[str, str]],
    ) -> Iterator[tuple[LiveTask, Program, Alternative]]:
        # What can begin there in a group; notes what cannot begin any more.
        for key, task in ready.items():
            if task.owner.closing or task.state is not TaskState.WAITING:
                gone.append(key)
                continue
            alternative, program = self._at(task, supply), task.program
            if alternative is not None and program is not None:
                yield task, program, alternative
            elif self._run_times.learned and not self.may_take(task):
                gone.append(key)
                self._outgrown.append(task)

    def _at(self, task: LiveTask, supply: Supply) -> Alternative | None:
        for alternative in task.task.alternatives:
            if alternative.primary == supply.name and self.grouped(task, alternative):
                return alternative
        return None

    def _units(self, supply: Supply, width: int, now: float, run_time: float) -> int:
        # How many units are free for as long as one run needs, in runs side by side.
        end = now + run_time + self._settings.margin
        for lanes in range(supply.resource.capacity // width, 0, -1):
            if self._fits(supply, lanes * width, now, end):
                return lanes * width
        return 0

    def _waits_for_groups(self, supply: Supply, width: int, now: float, run_time: float) -> bool:
        # Whether only groups are in its way, which are over in a moment: then narrower ones do not go before it.
        end = now + run_time + self._settings.margin
        return self._fits(supply, width, now, end, but=frozenset(self._memory.groups))

    def _fits(
        self,
        supply: Supply,
        units: int,
        now: float,
        end: float,
        *,
        but: Collection[str] = (),
    ) -> bool:
        view = View(but, planned_but=self.may_take)
        return self._free_time.fits([Need(supply, units)], now, end, view)

    def _most(self, supply: Supply, width: int, units: int, ready: int) -> float:
        # Its share of what can begin: other units may be free in a moment. Each unit gets two, so that it never waits.
        busy = sum(
            self._memory.shared_units(group)
            for attempts in self._memory.groups.values()
            for first in (next(iter(attempts.values())),)
            if (group := first.group) is not None and first.holds[0].place == supply.place
        )
        share = math.ceil(ready * units / max(1, units + busy))
        return min(MEMBERS_MAX, max(2 * (units // width), share))

    def _gathered(
        self,
        supply: Supply,
        units: int,
        width: int,
        some: list[tuple[LiveTask, Alternative, float]],
        *,
        now: float,
        ratio: float,
    ) -> Gathered:
        lanes = min(units // width, len(some))
        free = [now] * lanes
        members: list[Member] = []
        for number, (task, alternative, run_time) in enumerate(some):
            lane = number % lanes
            begin, end = free[lane], free[lane] + run_time
            free[lane] = end
            key = task.owner.workflow.name, task.task.name
            cost = supply.resource.cost(begin, end, width)
            placement = Placement(*key, alternative.demands, begin, end, cost)
            members.append(Member(task, placement, run_time))
        # The window is what its runs are thought to take, or less where others come: what does not begin comes back.
        margin, most = self._settings.margin, (max(free) - now) * ratio
        end = now + most + margin
        least = max(member.run_time for member in members) + margin
        while not self._fits(supply, lanes * width, now, end) and end > now + least:
            end = max(now + least, now + (end - now) / 2)
        return Gathered(supply, lanes * width, end, tuple(members))
