"""When to plan, what, and what becomes of a plan.

While there is something to plan, planning begins every `cycle` seconds; at once if much of the plan
cannot be kept (a resource breaks, a site vanishes) or on request; and somewhat earlier than the
cycle after events that can wait a little (a failed run, a refused booking). Those are gathered, so
that many of them cost one planning. The end of the planning slot is the line: earlier starts were
fixed by the old plan before the search began, later ones belong to the new plan, so nothing is
fixed during a search.

Where a workflow comes that has files to be sent, and no search runs, a short search comes before the long one, as where its tasks begin
without a plan decides about the ways of all that they make. They wait for that. Where workflows keep coming, a long search begins all the same.
"""

import math
from collections.abc import Collection
from typing import Final

from broker.model.plan import Placement, Plan
from broker.scheduler.commands import PublishPlan, StartPlanning, StopPlanning
from broker.scheduler.events import PlanFailed, PlanFound
from broker.scheduler.file_arrivals import FileArrivals
from broker.scheduler.lifecycle import AT_SITE, DONE, HELD, TaskState
from broker.scheduler.planning_input import PlanningInput, Taken
from broker.scheduler.records import PlanAdopted
from broker.scheduler.run_times import RunTimes
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state_tables import LiveTask, LiveWorkflow, StateTables
from broker.scheduler.transaction import Transaction

TAKEN_MAX = 10_000
"""Most spans of refused time that are remembered; the oldest are dropped."""


SHORT_S: Final = 1.0
"""A short search ends after so many seconds."""

SHORT_SLOT_S: Final = 2.0
"""The planning slot of a short search."""

SHORT_TASKS_MAX: Final = 1_000
"""Where more tasks are to be planned, no search is short: even heuristics take longer."""


class PlanningCycle:
    """Decides when to plan.

    Attributes:
        running: the number of the plan being searched, or 0.
        files: what has been sent where.
        taken_changes: so often what others hold has changed.
    """

    def __init__(self, memory: StateTables, settings: BrokerSettings) -> None:
        self._memory = memory
        self.files = FileArrivals(memory, settings.network)
        self._settings = settings
        self.run_times = RunTimes(memory, settings)
        self._begun = -math.inf
        self._ended = -math.inf
        self._wanted = ""
        self._wanted_since = math.inf
        self._urgent = ""
        self._short_wanted = self._short = False
        self._long_since = (
            math.inf
        )  # when the first of the short searches began that no long one has followed
        self._stop_sent = False
        self._planning = 0
        self._come = 0
        self._until = -math.inf
        self._taken: list[Taken] = []
        self._others: dict[str, tuple[Taken, ...]] = {}
        self._spans: dict[str, list[tuple[float, float]]] | None = None
        self.taken_changes = 0
        self._replaced = False
        self._number = memory.plan.number if memory.plan else 0
        self.running = 0
        self.reason = ""

    @property
    def number(self) -> int:
        """Number of the next plan."""
        return self._number + 1

    def take_replaced(self) -> bool:
        """Returns whether there is a new plan since the last call."""
        replaced, self._replaced = self._replaced, False
        return replaced

    @property
    def next_time(self) -> float:
        """When planning is due, seconds; infinity while it goes on, or for never."""
        if self.running or not self._anything:
            return math.inf
        due = self._begun + self._settings.cycle
        if self._urgent:
            due = min(due, self._ended + self._settings.pause)
        if self._short_wanted:
            due = min(due, self._ended + self._settings.pause)
        if self._wanted:
            gathered = self._wanted_since + self._settings.pause
            due = min(due, max(self._ended + self._settings.gather, gathered))
        return due

    @property
    def _anything(self) -> bool:
        return any(workflow.wants_places for workflow in self._memory.live.values())

    @staticmethod
    def _wants_place(task: LiveTask) -> bool:
        return task.plannable and not task.owner.closing

    def want(self, transaction: Transaction, reason: str) -> None:
        """Has planning done soon, for this and for what else comes until then."""
        if not self._wanted:
            self._wanted, self._wanted_since = reason, transaction.now

    def want_now(self, reason: str) -> None:
        """Has planning done as soon as possible."""
        self._urgent = self._urgent or reason

    def interrupt(self, transaction: Transaction, reason: str) -> None:
        """Has planning done as soon as possible, and a search that runs end with what it has."""
        self.want_now(reason)
        if self.running and not self._stop_sent:
            self._stop_sent = True
            transaction.do(StopPlanning(self.running))

    def holds(self, task: LiveTask) -> bool:
        """Returns whether a task waits for the plan of a short search, which gives it its first place."""
        soon = self._short if self.running else self._short_wanted
        return soon and task.placement is None and self.files.counts(task.owner)

    def came(self, transaction: Transaction, workflow: LiveWorkflow, tasks: int) -> None:
        """Has a short search begin, or a search that runs end once more tasks have come since it began than it plans.

        The search after it plans them, too; so of many workflows, handed in one by one, only a few
        searches are ended.
        """
        late = transaction.now > self._long_since + self._settings.gather
        if self._settings.early and self.files.counts(workflow) and not (self.running or late):
            waiting = sum(each.counts[TaskState.WAITING] for each in self._memory.live.values())
            self._short_wanted = waiting <= SHORT_TASKS_MAX
        if self.running:
            self._come += tasks
            if self._come > self._planning:
                self.interrupt(transaction, "more has come than was being planned")

    def avoid(self, taken: Taken) -> None:
        """Keeps plans away from time that others hold."""
        self._taken = [*self._taken[-TAKEN_MAX + 1 :], taken]
        self._others_changed()

    def avoid_others(self, site: str, taken: tuple[Taken, ...]) -> None:
        """Keeps plans away from time that others have at a site, as it says; until it says more."""
        self._others[site] = taken
        self._others_changed()

    def _others_changed(self) -> None:
        self._spans = None
        self.taken_changes += 1

    def taken_of(self, resource: str) -> list[tuple[float, float]]:
        """Returns time of a resource that others hold: begin and end of spans, in seconds."""
        if self._spans is None:
            self._spans = {}
            for each in (*self._taken, *(one for some in self._others.values() for one in some)):
                self._spans.setdefault(each.resource, []).append((each.begin, each.end))
        return self._spans.get(resource, [])

    def advance(self, transaction: Transaction, down: Collection[str]) -> None:
        """Begins planning if it is due."""
        if transaction.now < self.next_time:
            return
        self._number += 1
        self.running = self._number
        self.reason = self._urgent or self._wanted or "the cycle"
        self._wanted = self._urgent = ""
        self._short, self._short_wanted = self._short_wanted, False
        if self._short:
            self.reason = "a workflow has come that sends files"
            self._urgent = "a short search was first"
            self._long_since = min(self._long_since, transaction.now)
        else:
            self._long_since = math.inf
        self._stop_sent = False
        self._begun = transaction.now
        slot = self._settings.slot
        self._until = transaction.now + (min(SHORT_SLOT_S, slot) if self._short else slot)
        self._taken = [each for each in self._taken if each.end > transaction.now]
        self._others_changed()
        planning_input = self._planning_input(transaction.now, down)
        self._come = 0
        transaction.do(StartPlanning(self._number, planning_input, self.reason, self._short))

    def _planning_input(self, now: float, down: Collection[str]) -> PlanningInput:
        fixed: list[Placement] = []
        old: list[Placement] = []
        left_out: set[tuple[str, str]] = set()
        self._planning = 0
        for task in self._memory.tasks():
            if self._wants_place(task):
                self._planning += 1
                if task.placement is not None:
                    old.append(task.placement)
            elif (stays := self._stays(task, now)) is not None:
                fixed.append(stays)
            else:
                left_out.add((task.owner.workflow.name, task.task.name))
        return PlanningInput(
            now=self._until,
            workflows=tuple(
                self.run_times.planned(each, self.files.planned(each))
                for each in self._memory.live.values()
                if each.tasks
            ),
            resources=tuple(
                supply.resource
                for supply in self._memory.supplies.values()
                if not supply.broken and supply.site not in down
            ),
            fixed=tuple(fixed),
            left_out=frozenset(left_out),
            old=Plan(tuple(old)),
            taken=(*self._taken, *(each for some in self._others.values() for each in some)),
            margin=self._settings.margin,
            network=self.files.network(),
            copies=self.files.copies(),
            under_way=self.files.under_way(now, [each.key for each in fixed]),
        )

    def _stays(self, task: LiveTask, now: float) -> Placement | None:
        placement = task.booking.placement if task.booking else task.placement
        if placement is None:
            return None
        if task.state in HELD | DONE:
            return placement
        if task.state not in AT_SITE:
            return None
        start = placement.start if task.start_time is None else task.start_time
        end = max(placement.end, now, start)
        return Placement(*placement.key, placement.demands, start, end, placement.cost)

    # --- what a search has found ---------------------------------------------------------------

    def found(self, event: PlanFound, transaction: Transaction) -> None:
        """Lets a plan take the place of the one before, as far as it still holds."""
        if event.number != self.running:
            return
        self._end(transaction)
        self.files.adopt(event.plan)
        kept = []
        for task in self._memory.tasks():
            if not self._wants_place(task):
                continue
            placement = event.plan.placement(task.owner.workflow.name, task.task.name)
            if placement is not None and self._usable(placement):
                kept.append(placement)
        transaction.note(
            PlanAdopted(transaction.now, event.number, event.fitness, tuple(kept), event.unplanned)
        )
        self._replaced = True
        for workflow in self._memory.live.values():
            transaction.changed(workflow)
        transaction.do(PublishPlan(event.number))

    def _usable(self, placement: Placement) -> bool:
        for name in placement.resources:
            supply = self._memory.supplies.get(name)
            if supply is None or supply.broken:
                return False
        return True

    def failed(self, event: PlanFailed, transaction: Transaction) -> None:
        """Keeps the plan there is."""
        if event.number == self.running:
            self._end(transaction)
            self._replaced = True
            transaction.do(PublishPlan(event.number, event.reason))

    def _end(self, transaction: Transaction) -> None:
        self.running = 0
        self._ended = transaction.now
