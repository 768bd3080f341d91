"""Runs the broker of a scenario on the scenario's own clock, in this process.

The deciding parts are those of the daemons: the broker's pure state, its planner, and each site's
pure state. Here they share one virtual clock, a search takes as long as the scenario says and
builds as many schedules, and nothing is lost on the way; so equal scenarios give equal runs.

At one instant ends at sites come first, then what was said or planned for that instant, in order;
then the broker's own clock.
"""

import heapq
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from broker.model.plan import Plan
from broker.model.workflow import Workflow
from broker.runtime.replanner import PlanningSettings, plan_input
from broker.scheduler.commands import (
    Book,
    Command,
    Launch,
    Move,
    PublishPlan,
    Refuse,
    Release,
    StartPlanning,
    StopPlanning,
)
from broker.scheduler.events import (
    Booked,
    BookingLost,
    Cancel,
    Ended,
    Event,
    Moved,
    MoveRefused,
    PlanFound,
    Register,
    Released,
    Restarted,
    Started,
    Submit,
    Tick,
    Update,
)
from broker.scheduler.lifecycle import WorkflowState
from broker.scheduler.records import Supply
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from broker.scheduler.state_tables import Booking, LiveWorkflow
from grms.site.model.jobs import Request
from grms.site.model.lifecycle import ReservationState
from grms.site.model.reservations import Reservation, Resource
from grms.util.outcomes import Outcome
from scenarios.run.reserving_sites import RefusedError, ReservingSites
from scenarios.run.workflow_source import Submission, submissions_of, supplies_of
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import ScenarioError

STEPS_MAX: Final = 10_000_000
"""Most instants; beyond, a scenario has no end."""


@dataclass(frozen=True, slots=True)
class WorkflowResult:
    """What became of a workflow.

    Attributes:
        workflow: what was handed in, with its limits.
        submit_time: seconds.
        state: the last one.
        start_time: of its first task, seconds; `None` if nothing of it ran.
        end_time: of its last task, or when it was given up; seconds.
        cost: of all its tasks, those that were ended with it too.
    """

    workflow: Workflow
    submit_time: float
    state: WorkflowState
    start_time: float | None
    end_time: float
    cost: float
    runs: int

    @property
    def tardiness(self) -> float:
        """Seconds after the due date; 0 if in time or given up."""
        if self.state is not WorkflowState.SIMULATED:
            return 0.0
        return max(0.0, self.end_time - self.workflow.due_date)

    @property
    def over_budget(self) -> float:
        """Cost beyond the budget; 0 within it."""
        return max(0.0, self.cost - self.workflow.budget)


@dataclass(frozen=True, slots=True)
class BrokeredRun:
    """What a scenario's broker has done.

    Attributes:
        workflows: in the order in which they were handed in.
        plan: where and when every task has run; those of workflows given up too, up to where they
            were ended.
        broken: resource, begin and end of every breakdown, seconds.
    """

    supplies: tuple[Supply, ...]
    workflows: tuple[WorkflowResult, ...]
    plan: Plan
    plans: int
    refusals: int
    broken: tuple[tuple[str, float, float], ...]


def run_broker(
    spec: ScenarioSpec, progress: Callable[[int, int], None] | None = None
) -> BrokeredRun:
    """Runs a resolved scenario's broker until every workflow has ended.

    `progress` is called with the number of workflows that have ended, and of all.

    Raises:
        ScenarioError: a workflow is refused, or there is no end.
    """
    return _World(spec).run(progress)


def settings_of(spec: ScenarioSpec) -> BrokerSettings:
    """Returns how the broker of a scenario works."""
    assert spec.broker is not None
    cycle = spec.broker.cycle
    return BrokerSettings(
        cycle=cycle.every_s,
        slot=cycle.slot_s,
        pause=cycle.pause_s,
        margin=cycle.margin_s,
        ended_max=10**9,
    )


def result_of(live: LiveWorkflow, submission: Submission) -> WorkflowResult:
    """Returns what became of a workflow that has ended."""
    assert live.end_time is not None
    ran = [task for task in live.tasks.values() if task.end_time is not None]
    starts = [task.start_time for task in ran if task.start_time is not None]
    return WorkflowResult(
        submission.workflow,
        submission.time,
        live.state,
        min(starts, default=None),
        live.end_time,
        math.fsum(task.placement.cost for task in ran if task.placement is not None),
        sum(task.runs for task in live.tasks.values()),
    )


@dataclass(slots=True)
class _Held:
    # A booking at its sites: the numbers of its reservations, the primary one first.
    booking: Booking
    numbers: list[tuple[str, int]]


class _World:
    """The broker, its sites and its users on one clock."""

    def __init__(self, spec: ScenarioSpec) -> None:
        assert spec.broker is not None
        self.now = 0.0
        self._spec = spec
        self._broker = spec.broker
        self._supplies = supplies_of(spec)
        self._submissions = submissions_of(spec)
        self._sites = ReservingSites(
            {
                site.name: [
                    Resource(r.resource_id, {}, r.processors, r.speed, r.cost_per_hour)
                    for r in site.reservable or ()
                ]
                for site in spec.sites
            }
        )
        self._held: dict[str, _Held] = {}
        self._by_reservation: dict[tuple[str, int], str] = {}
        self._queue: list[tuple[float, int, Event]] = []
        self._count = itertools.count(1)
        self._searching: tuple[int, PlanFound] | None = None
        self._plans = 0
        self._refusals = 0
        self._ids: dict[int, Submission] = {}
        self.state = BrokerState(settings_of(spec))

    # --- the clock -----------------------------------------------------------------------------

    def run(self, progress: Callable[[int, int], None] | None) -> BrokeredRun:
        self._tell(Restarted(0))
        for supply in self._supplies:
            self._tell(Register(next(self._count), supply))
        for submission in self._submissions:
            number = next(self._count)
            self._ids[number] = submission
            self._at(submission.time, Submit(number, submission.workflow.name, submission.workflow))
            if submission.cancel_time is not None:
                cancel = Cancel(next(self._count), submission.workflow.name)
                self._at(submission.cancel_time, cancel)
        broken = self._breakdowns()
        total = len(self._submissions)
        for _ in range(STEPS_MAX):
            memory = self.state.memory
            if progress is not None:
                progress(len(memory.workflows) - len(memory.live), total)
            if len(memory.workflows) == total and not memory.live and not memory.releasing:
                return self._result(broken)
            self._step()
        raise ScenarioError(f"the broker's workflows have no end after {STEPS_MAX} steps")

    def _breakdowns(self) -> tuple[tuple[str, float, float], ...]:
        found = []
        by_place = {(each.site, each.site_resource): each for each in self._supplies}
        for each in self._broker.breakdowns:
            supply = by_place[each.site, each.resource_id]
            self._at(each.at_s, Update(next(self._count), replace(supply, broken=True)))
            self._at(each.until_s, Update(next(self._count), supply))
            found.append((supply.name, each.at_s, each.until_s))
        return tuple(found)

    def _at(self, time: float, event: Event) -> None:
        heapq.heappush(self._queue, (time, next(self._count), event))

    def _step(self) -> None:
        if self._sites.heard:
            self._changed(*self._sites.heard.popleft())
            return
        due = self._sites.next_time
        said = self._queue[0][0] if self._queue else math.inf
        moment = min(due, said, self.state.next_time)
        if moment == math.inf:
            raise ScenarioError("nothing happens any more, and not every workflow has ended")
        self.now = max(self.now, moment)
        if due <= self.now:
            self._sites.settle(self.now)
        elif said <= self.now:
            event = heapq.heappop(self._queue)[2]
            if isinstance(event, PlanFound):
                if self._searching is None or self._searching[0] != event.number:
                    return  # It was ended before, and its plan is in force.
                self._searching = None
            self._tell(event)
        else:
            self._tell(Tick(0))

    # --- the broker wants ----------------------------------------------------------------------

    def _tell(self, event: Event) -> None:
        for command in self.state.handle(event, self.now):
            self._do(command)

    def _do(self, command: Command) -> None:
        match command:
            case Book():
                self._book(command.booking)
            case Launch():
                self._launch(command)
            case Move():
                self._move(command)
            case Release():
                self._release(command.booking)
            case StartPlanning():
                self._plan(command)
            case StopPlanning() if self._searching is not None:
                # A search that is ended early has had less time; here its plan is the same.
                self._at(self.now, self._searching[1])
            case PublishPlan():
                self._plans += not command.problem
            case Refuse():
                what = self._ids.get(command.cause)
                name = what.workflow.name if what is not None else "a change"
                raise ScenarioError(f"broker: {name} is refused: {command.reason}")
            case _:
                pass

    def _plan(self, command: StartPlanning) -> None:
        planning = self._broker.planning
        settings = PlanningSettings(
            math.inf, planning.evaluations, 1, planning.population, self._spec.seed
        )
        found = plan_input(command.number, command.planning_input, settings)
        self._searching = command.number, found
        self._at(self.now + planning.takes_s, found)

    def _book(self, booking: Booking) -> None:
        held = self._held[booking.booking] = _Held(booking, [])
        for index, hold in enumerate(booking.holds):
            place = booking.placement
            try:
                number = self._sites.book(
                    hold.site,
                    f"{booking.booking}.{index}",
                    hold.resource,
                    (place.start, place.end),
                    processors=hold.units,
                    now=self.now,
                )
            except RefusedError as error:
                self._refusals += 1
                self._at(self.now, BookingLost(0, booking.booking, str(error), (index,)))
                return
            held.numbers.append((hold.site, number))
            self._by_reservation[hold.site, number] = booking.booking
        names = tuple(str(number) for _, number in held.numbers)
        self._at(self.now, Booked(0, booking.booking, names))

    def _launch(self, command: Launch) -> None:
        name = command.booking.booking
        request = Request(command.booking.holds[0].units, command.work)
        try:
            self._sites.launch(
                self._held[name].numbers[0], f"{name}.launch", request, command.work, self.now
            )
        except RefusedError as error:
            self._refusals += 1
            self._at(self.now, BookingLost(0, name, str(error)))

    def _move(self, command: Move) -> None:
        name, place = command.booking.booking, command.booking.placement
        old, new = (place.start, place.end), (command.begin, command.end)
        moved: list[tuple[str, int]] = []
        try:
            for one in self._held[name].numbers:
                self._sites.move(one, old, new, self.now)
                moved.append(one)
        except RefusedError as error:
            for one in moved:  # in the same moment nobody else has taken the time that it had
                self._sites.move(one, new, old, self.now)
            self._at(self.now, MoveRefused(0, name, str(error), taken=True))
        else:
            self._at(self.now, Moved(0, name, *new))

    def _release(self, booking: Booking) -> None:
        held = self._held.pop(booking.booking, None)
        for place in held.numbers if held is not None else ():
            self._sites.release(place, self.now)
            del self._by_reservation[place]
        self._at(self.now, Released(0, booking.booking))

    # --- sites tell ----------------------------------------------------------------------------

    def _changed(self, site: str, reservation: Reservation) -> None:
        name = self._by_reservation.get((site, reservation.number))
        if name is None or self._held[name].numbers[0] != (site, reservation.number):
            return
        if reservation.state is ReservationState.RUNNING:
            self._tell(Started(0, name, reservation.start_time))
        elif reservation.state is ReservationState.ENDED:
            assert reservation.outcome is not None
            outcome = Outcome(reservation.outcome.value)
            times = reservation.start_time, reservation.end_time
            self._tell(Ended(0, name, outcome, *times))
        elif reservation.state is ReservationState.EXPIRED:
            self._tell(BookingLost(0, name, "its reservation is expired"))

    # --- the end -------------------------------------------------------------------------------

    def _result(self, broken: tuple[tuple[str, float, float], ...]) -> BrokeredRun:
        by_name: Mapping[str, LiveWorkflow] = {
            live.workflow.name: live for live in self.state.memory.workflows.values()
        }
        ran = [
            task.placement
            for live in by_name.values()
            for task in live.tasks.values()
            if task.end_time is not None and task.placement is not None
        ]
        return BrokeredRun(
            self._supplies,
            tuple(result_of(by_name[each.workflow.name], each) for each in self._submissions),
            Plan(tuple(ran)),
            self._plans,
            self._refusals,
            broken,
        )
