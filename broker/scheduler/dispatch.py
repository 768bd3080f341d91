"""Where a task that can begin would begin now.

A task can begin when those that it waits for have ended. It begins at once where units are free for
all of its time, neither booked nor planned for others, if it ends no later there than where the plan
has it, its files are there and have no farther way than by the plan, and its workflow stays within its budget. So an idle resource waits for nothing, and what the
plan has thought of keeps its time.
"""

import math
from collections.abc import Collection, Iterator
from typing import Final

from broker.model.plan import Placement
from broker.model.workflow import Alternative
from broker.scheduler.free_time import TOLERANCE, Need, View
from broker.scheduler.groups import Groups
from broker.scheduler.records import Place
from broker.scheduler.scheduling_context import SchedulingContext
from broker.scheduler.state_tables import LiveTask, LiveWorkflow

CAUTION: Final = 1.5
"""The chain behind a task is thought to take so many times as long as its fastest runs would."""

AHEAD_SLOTS: Final = 1.0
"""So many planning slots ahead a task without a place in a plan is booked.

Only if it would miss its due date where it could begin now, or cannot begin, and is on time ahead.
"""


_Best = tuple[bool, bool, float, float, Placement]
"""Whether it is late, whether too dear, then its end or its cost, and its cost: less is better."""


class Dispatch:
    """Chooses where tasks begin now."""

    def __init__(self, context: SchedulingContext, groups: Groups) -> None:
        self._memory = context.memory
        self._cycle = context.cycle
        self._files = context.files
        self._settings = context.settings
        self._free_time = context.free_time
        self._groups = groups
        self._run_times = context.run_times

    def choose(
        self,
        task: LiveTask,
        now: float,
        down: Collection[str],
        places: Collection[Place] | None = None,
        sooner_than: float | None = None,
    ) -> Placement | None:
        """Returns where a task begins now, or once its files are there if it has no place in the plan; `None` if it has to wait.

        Where it would be launched in a group is not looked at. With `places` only alternatives that need one of them
        are. With `sooner_than` its
        run has to be over before that moment, in seconds, within the budget.
        """
        if self._cycle.holds(task):
            return None
        latest = sooner_than
        unplanned = task.placement is None
        fastest = self._fastest(task) if unplanned else 1.0
        due = task.owner.workflow.due_date
        view = View(task=task)
        best: _Best | None = None
        for alternative, needs, begin in self._possible(task, now, down, places):
            run_time = self._run_times.run_time(task, needs[0].supply.resource)
            end = begin + run_time + self._settings.margin
            # Free time is looked for last, as it takes longest.
            if begin + run_time > _latest_useful(latest, best) or not self._free_time.fits(
                needs, begin, end, view
            ):
                continue
            if latest is None:
                latest = self._latest_end(task, now, down)
                if begin + run_time > latest + TOLERANCE:
                    continue
            cost = self._cost(needs, begin, end)
            dear = not self._affordable(task, cost)
            if dear and sooner_than is not None:
                continue
            late = unplanned and due < math.inf and begin + run_time + _behind(task, fastest) > due
            key = (late, dear, cost if dear else begin + run_time, cost)
            if best is None or key < best[:4]:
                best = (*key, self._placement(task, alternative, begin, end, cost))
        if unplanned and (best is None or best[0]):
            ahead = self._ahead(task, now, down, due, fastest)
            if ahead is not None:
                return ahead
        return None if best is None else best[4]

    def _possible(
        self, task: LiveTask, now: float, down: Collection[str], places: Collection[Place] | None
    ) -> Iterator[tuple[Alternative, list[Need], float]]:
        # Alternatives that it may take now, what they need, and when its files are there.
        is_near = self._files.nearness(task)
        for alternative in task.task.alternatives:
            needs = self._needs_at(places, alternative, down)
            if needs is None or self._groups.grouped(task, alternative):
                continue
            if not is_near(alternative.primary):
                continue
            begin = max(now, self._files.arrival(task, alternative.primary, now))
            # Until the files of one that has a place are there, units may be of use to others.
            if begin <= now + TOLERANCE or task.placement is None:
                yield alternative, needs, begin

    def _needs_at(
        self, places: Collection[Place] | None, alternative: Alternative, down: Collection[str]
    ) -> list[Need] | None:
        # With `places` only of what is at one of them, which is seen soonest.
        if places is not None:
            supplies = (self._memory.supplies.get(name) for name in alternative.resources)
            if not any(each is not None and each.place in places for each in supplies):
                return None
        return self._free_time.needs(alternative.demands, down)

    def _fastest(self, task: LiveTask) -> float:
        found = 0.0
        for alternative in task.task.alternatives:
            supply = self._memory.supplies.get(alternative.primary)
            if supply is not None:
                found = max(found, supply.resource.performance)
        return found or 1.0

    def _ahead(
        self, task: LiveTask, now: float, down: Collection[str], due: float, fastest: float
    ) -> Placement | None:
        best: tuple[bool, float, float, Placement] | None = None
        view = View(task=task)
        latest_start = now + AHEAD_SLOTS * self._settings.slot
        behind = _behind(task, fastest) if due < math.inf else 0.0
        for alternative in task.task.alternatives:
            needs = self._free_time.needs(alternative.demands, down)
            if needs is None or self._groups.grouped(task, alternative):
                continue
            run_time = self._run_times.run_time(task, needs[0].supply.resource)
            length = run_time + self._settings.margin
            if now + run_time + behind > due:
                continue
            if best is not None and not best[0] and now + run_time > best[1]:
                continue
            since = max(now, self._files.arrival(task, alternative.primary, now))
            start = self._free_time.earliest(needs, since, length, view, latest_start)
            if start > latest_start or start + run_time + behind > due:
                continue
            cost = self._cost(needs, start, start + length)
            dear = not self._affordable(task, cost)
            key = (dear, cost if dear else start + run_time, cost)
            if best is None or key < best[:3]:
                best = (*key, self._placement(task, alternative, start, start + length, cost))
        return None if best is None else best[3]

    @staticmethod
    def _placement(
        task: LiveTask, alternative: Alternative, now: float, end: float, cost: float
    ) -> Placement:
        workflow = task.owner.workflow.name
        return Placement(workflow, task.task.name, alternative.demands, now, end, cost)

    def _latest_end(self, task: LiveTask, now: float, down: Collection[str]) -> float:
        # When its run would be over where the plan has it.
        place = task.placement
        if place is None:
            return math.inf
        needs = self._free_time.needs(place.demands, down)
        if needs is None:
            return math.inf
        length = place.end - place.start
        since = max(now, place.start, self._files.arrival(task, place.resources[0], now))
        start = self._free_time.earliest(needs, since, length, View(task=task))
        return start + length - self._settings.margin

    def _cost(self, needs: list[Need], begin: float, end: float) -> float:
        return math.fsum(need.supply.resource.cost(begin, end, need.units) for need in needs)

    def _affordable(self, task: LiveTask, cost: float) -> bool:
        # Whether its workflow stays within its budget if what has no place costs as much for its work.
        workflow = task.owner
        budget = workflow.workflow.budget
        if budget == math.inf:
            return True
        share = cost / task.task.work
        return _spent(workflow, task, share) + cost <= budget


def _behind(task: LiveTask, fastest: float) -> float:
    # What the chain behind a task is thought to take, in seconds; only one that has a due date is asked for it.
    return CAUTION * task.behind / fastest


def _latest_useful(latest: float | None, best: _Best | None) -> float:
    # A run that ends later is not chosen, whatever else it is.
    most = math.inf if latest is None else latest + TOLERANCE
    return most if best is None or best[0] or best[1] else min(most, best[2])


def _spent(workflow: LiveWorkflow, but: LiveTask, share: float) -> float:
    spent = []
    for task in workflow.tasks.values():
        if task is but:
            continue
        if task.placement is not None:
            spent.append(task.placement.cost)
        elif not task.has_ended:
            spent.append(share * task.task.work)
    return math.fsum(spent)
