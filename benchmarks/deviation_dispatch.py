"""What dispatches a load in virtual time: Hanse's broker, and a greedy dispatcher as a constant.

Both have the same resources, workflows, and luck with each run (`deviation_loads`). The greedy one
thinks of nothing: it has no plan and reserves nothing, a task that can begin takes the fastest
resource that is free at that moment. Whatever plans has to be worth more than that.
"""

import heapq
import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Final

from benchmarks.deviation_loads import Load, Noise
from broker.model.network import DataFile, Network
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Task, Workflow
from broker.planner.goals import Goals
from broker.runtime.replanner import PlanningSettings, plan_input
from broker.scheduler.commands import (
    Book,
    Command,
    Launch,
    Move,
    Release,
    StartPlanning,
    StopPlanning,
)
from broker.scheduler.events import (
    Booked,
    BookingLost,
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
)
from broker.scheduler.lifecycle import WorkflowState
from broker.scheduler.planning_cycle import SHORT_S
from broker.scheduler.records import Supply
from broker.scheduler.settings import BrokerSettings, EstimatesFrom
from broker.scheduler.state import BrokerState
from broker.scheduler.state_tables import Booking
from grms.util.outcomes import Outcome

SEARCH_S: Final = 30.0
"""A search takes so long on the clock of the benchmark, if it is not ended."""

EVALUATIONS: Final = 300
"""Schedules that a search builds: what it finds depends on nothing but the situation and the seed."""

POPULATION: Final = 16
STABILITY: Final = 0.2
ANSWER_S: Final = 0.1
"""A site answers after so long."""

TOLERANCE: Final = 1e-6
GIVEN_UP_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Found:
    """What became of a load.

    Attributes:
        on_time: share of the workflows that were completed by their due dates.
        in_budget: share of those that cost no more than their budgets.
        mean_flow_s: mean time from the coming of a workflow to its end.
        open: workflows that were not completed.
        plans: searches.
        moves: of reservations.
        cut: runs that were cut off at the end of their reservation.
        processor_s: processor time of the dispatcher, and of the world around it.
    """

    on_time: float
    in_budget: float
    mean_flow_s: float
    open: int = 0
    plans: int = 0
    moves: int = 0
    cut: int = 0
    processor_s: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Returns it with its figures rounded."""
        return {
            name: round(value, 5) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


# --- the greedy dispatcher -----------------------------------------------------------------------

_Turn = Callable[[Workflow, float], float]

RULES: Final[dict[str, _Turn]] = {
    "greedy fifo": lambda _workflow, since: since,
    "greedy edf": lambda workflow, _since: workflow.due_date,
}
"""By which figure the tasks that can begin take turns: since when they can, or the due date."""


@dataclass(frozen=True, slots=True)
class _Ended:
    # A run of the greedy dispatcher that is over.
    task: Task
    where: Alternative
    run: int
    failed: bool


class _Data:
    """Where the files of a load are, for a dispatcher that has them sent when a task is dispatched."""

    def __init__(self, load: Load, network: Network) -> None:
        self._network = network
        # By number of the workflow and task what it reads; by number, file and site since when it is there.
        self._reads: list[dict[str, list[DataFile]]] = []
        self._there: list[dict[tuple[str, str], float]] = []
        # By number and file where it was made, or given.
        self._origin: list[dict[str, str]] = []
        # By source and target, where a link carries one transfer at a time, until when it is taken.
        self._busy: dict[tuple[str, str], float] = {}
        for _, workflow in load.arrivals:
            reads: dict[str, list[DataFile]] = {}
            origin = {}
            for file in workflow.files:
                for reader in file.readers:
                    reads.setdefault(reader, []).append(file)
                if not file.maker:
                    origin[file.name] = file.site or network.inputs
            self._reads.append(reads)
            self._origin.append(origin)
            self._there.append({})

    def ready(self, number: int, task: Task, where: Alternative, now: float) -> float:
        """Returns when the files of a task are at a resource, if they are sent there now."""
        return self._looked(number, task, where, now)[0]

    def send(self, number: int, task: Task, where: Alternative, now: float) -> float:
        """Has the files of a task sent to a resource now; returns when they are there."""
        arrival, ends = self._looked(number, task, where, now)
        site = self._network.site(where.primary)
        for file in self._reads[number].get(task.name, ()):
            self._there[number].setdefault((file.name, site), arrival)
        if self._network.contended:
            self._busy |= ends
        return arrival

    def _looked(
        self, number: int, task: Task, where: Alternative, now: float
    ) -> tuple[float, dict[tuple[str, str], float]]:
        # The same, and until when links are taken then, where they carry one transfer at a time.
        site = self._network.site(where.primary)
        there, origin = self._there[number], self._origin[number]
        latest, sizes = now, dict[tuple[str, str], float]()
        for file in self._reads[number].get(task.name, ()):
            if (file.name, site) in there:
                latest = max(latest, there[file.name, site])
            elif origin[file.name] != site:
                key = origin[file.name], file.maker
                sizes[key] = sizes.get(key, 0.0) + file.size
        ends: dict[tuple[str, str], float] = {}
        for (source, _), size in sizes.items():
            begin, link = now, (source, site)
            if self._network.contended:
                begin = max(now, ends.get(link, self._busy.get(link, now)))
            ends[link] = begin + self._network.link(source, site).seconds(size)
            latest = max(latest, ends[link])
        return latest, ends

    def made(self, number: int, task: Task, where: Alternative, workflow: Workflow) -> None:
        """Notes that a task has made its files."""
        site = self._network.site(where.primary)
        for file in workflow.files:
            if file.maker == task.name:
                self._origin[number][file.name] = site


class Greedy:
    """A dispatcher that begins what can begin, by one of `RULES`.

    Where the load has a network, files are sent when their task is dispatched, and it holds its resource
    until they have come. With `locality` it takes the free resource on which the task ends first with
    them; else the fastest. It knows until when links are taken that carry one transfer at a time.
    """

    def __init__(
        self, load: Load, noise: Noise, seed: int, rule: str, *, locality: bool = True
    ) -> None:
        self._data = None if load.network is None else _Data(load, load.network)
        self._locality = locality
        self._load = load
        self._noise = noise
        self._seed = seed
        self._turn = RULES[rule]
        self._resources = {each.name: each for each in load.resources}
        self._free = {each.name: each.capacity for each in load.resources}
        self._by_speed = _by_speed(self._resources)
        self._count = itertools.count()
        # By turn: order, number of the workflow, task, and how manieth run of it.
        self._ready: list[tuple[float, int, int, Task, int]] = []
        # By moment: order, number of the workflow that comes, or of which a run is over.
        self._queue: list[tuple[float, int, int, _Ended | None]] = []
        self._waits = [
            {task.name: set(task.predecessors) for task in workflow.tasks}
            for _, workflow in load.arrivals
        ]
        self._ends = [0.0] * len(load.arrivals)
        self._costs = [0.0] * len(load.arrivals)
        for number, (come, _) in enumerate(load.arrivals):
            heapq.heappush(self._queue, (come, next(self._count), number, None))

    def run(self) -> Found:
        """Works until everything has ended."""
        began = time.process_time()
        while self._queue:
            now, _, number, ended = heapq.heappop(self._queue)
            if ended is None:
                for task in self._load.arrivals[number][1].tasks:
                    if not task.predecessors:
                        self._take(number, task, 1, now)
            else:
                self._ended(number, ended, now)
            # What happens at one moment is known before anything begins.
            if not (self._queue and self._queue[0][0] == now):
                self._begin(now)
        return _found(self._load, self._ends, self._costs, 0, time.process_time() - began)

    def _take(self, number: int, task: Task, run: int, now: float) -> None:
        turn = self._turn(self._load.arrivals[number][1], now)
        heapq.heappush(self._ready, (turn, next(self._count), number, task, run))

    def _ended(self, number: int, ended: _Ended, now: float) -> None:
        for demand in ended.where.demands:
            self._free[demand.resource] += demand.units
        if ended.failed:
            self._take(number, ended.task, ended.run + 1, now)
            return
        self._ends[number] = now
        if self._data is not None:
            workflow = self._load.arrivals[number][1]
            self._data.made(number, ended.task, ended.where, workflow)
        for task in self._load.arrivals[number][1].tasks:
            before = self._waits[number][task.name]
            if ended.task.name in before:
                before.discard(ended.task.name)
                if not before:
                    self._take(number, task, 1, now)

    def _begin(self, now: float) -> None:
        later = []
        while self._ready:
            entry = heapq.heappop(self._ready)
            _, _, number, task, run = entry
            where = self._where(number, task, now)
            if where is None:
                later.append(entry)
                continue
            name = f"{self._load.arrivals[number][1].name}/{task.name}"
            share, failed = self._noise.luck(self._seed, name, run)
            length = self._resources[where.primary].duration(task.work) * share
            if self._data is not None:
                length += self._data.send(number, task, where, now) - now
            for demand in where.demands:
                self._free[demand.resource] -= demand.units
                resource = self._resources[demand.resource]
                self._costs[number] += resource.cost(now, now + length, demand.units)
            ended = _Ended(task, where, run, failed)
            heapq.heappush(self._queue, (now + length, next(self._count), number, ended))
        self._ready = later  # in order, so a heap

    def _where(self, number: int, task: Task, now: float) -> Alternative | None:
        able = (each for each in self._by_speed(task) if self._fits(each))
        data = self._data
        if data is None or not self._locality:
            return next(able, None)
        resources = self._resources
        return min(
            able,
            key=lambda each: (
                data.ready(number, task, each, now) + resources[each.primary].duration(task.work)
            ),
            default=None,
        )

    def _fits(self, where: Alternative) -> bool:
        return all(self._free[demand.resource] >= demand.units for demand in where.demands)


def _by_speed(resources: dict[str, Resource]) -> Callable[[Task], Sequence[Alternative]]:
    known: dict[int, tuple[Alternative, ...]] = {}

    def sorted_once(task: Task) -> Sequence[Alternative]:
        # Tasks share their alternatives, and the load outlives this.
        found = known.get(id(task.alternatives))
        if found is None:
            found = known[id(task.alternatives)] = tuple(
                sorted(task.alternatives, key=lambda each: -resources[each.primary].performance)
            )
        return found

    return sorted_once


def _found(
    load: Load, ends: Sequence[float], costs: Sequence[float], left: int, spent: float, **more: int
) -> Found:
    workflows = [workflow for _, workflow in load.arrivals]
    pairs = list(zip(workflows, ends, costs, strict=True))
    return Found(
        fmean(end <= workflow.due_date for workflow, end, _ in pairs),
        fmean(cost <= workflow.budget * (1 + 1e-9) for workflow, _, cost in pairs),
        fmean(end - come for end, (come, _) in zip(ends, load.arrivals, strict=True)),
        left,
        processor_s=spent,
        **more,
    )


# --- the broker ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Run:
    # What a site has of an attempt; `ends` is when its run would be over, infinite before its launch.
    holds: tuple[tuple[str, int], ...]
    begin: float
    end: float
    start: float = math.inf
    ends: float = math.inf
    fails: bool = False


class World:
    """A broker, its search, and sites that hold it to what it has reserved, on a clock of their own."""

    def __init__(
        self,
        load: Load,
        noise: Noise,
        seed: int,
        *,
        early: bool = True,
        estimates: EstimatesFrom = "file",
        extension_max: float = 1.0,
    ) -> None:
        self._load = load
        self._resources = {each.name: each for each in load.resources}
        self._noise = noise
        self._seed = seed
        self._queue: list[tuple[float, int, Event | str]] = []
        self._count = itertools.count()
        self._runs: dict[str, _Run] = {}
        self._held: dict[str, set[str]] = {each.name: set() for each in load.resources}
        self._capacity = {each.name: each.capacity for each in load.resources}
        self._searching: PlanFound | None = None
        self.now = 0.0
        self.plans = self.moves = self.cut = 0
        settings = BrokerSettings(
            runs_max=1000,
            early=early,
            network=load.network,
            estimates=estimates,
            extension_max=extension_max,
        )
        self.state = BrokerState(settings)
        self._tell(Restarted(0))
        for resource in load.resources:
            self._tell(Register(1, Supply(resource)))
        for come, workflow in load.arrivals:
            programs = load.programs.get(workflow.name, ())
            submission = Submit(1, workflow.name, workflow, programs)
            heapq.heappush(self._queue, (come, next(self._count), submission))

    def run(self) -> Found:
        """Works until everything has ended."""
        began = time.process_time()
        memory = self.state.memory
        self.go_on(GIVEN_UP_S)
        by_name = {each.workflow.name: each for each in memory.workflows.values()}
        ends, costs, left = [], [], 0
        for _, workflow in self._load.arrivals:
            live = by_name[workflow.name]
            completed = live.state is WorkflowState.COMPLETED and live.end_time is not None
            left += not completed
            ends.append(live.end_time if completed and live.end_time is not None else GIVEN_UP_S)
            places = (task.placement for task in live.tasks.values())
            costs.append(math.fsum(place.cost for place in places if place is not None))
        spent = time.process_time() - began
        more = {"plans": self.plans, "moves": self.moves, "cut": self.cut}
        return _found(self._load, ends, costs, left, spent, **more)

    def go_on(self, until: float) -> None:
        """Works until everything has ended, or until a moment."""
        memory = self.state.memory
        while (self._queue or memory.live) and self.now < until:
            due = self.state.next_time
            if self._queue and self._queue[0][0] <= due:
                moment, _, event = heapq.heappop(self._queue)
                self.now = max(self.now, moment)
                if isinstance(event, str):
                    self._ended(event)
                else:
                    self._tell(event)
            else:
                self.now = max(self.now, due)
                self._tell(Tick(0))

    def _tell(self, event: Event) -> None:
        for command in self.state.handle(event, self.now):
            self._do(command)

    def _later(self, event: Event | str, delay: float) -> None:
        heapq.heappush(self._queue, (self.now + delay, next(self._count), event))

    def _do(self, command: Command) -> None:
        match command:
            case Book(booking):
                self._book(booking)
            case Launch(booking):
                self._launch(booking)
            case Move(booking):
                self._move(booking, command.begin, command.end)
            case Release(booking):
                self._drop(booking.booking)
                self._later(Released(0, booking.booking), ANSWER_S)
            case StartPlanning():
                self._search(command)
            case StopPlanning() if self._searching is not None:
                self._later(self._searching, ANSWER_S)  # what comes again is not listened to
            case _:
                pass

    def _search(self, order: StartPlanning) -> None:
        self.plans += 1
        settings = PlanningSettings(
            math.inf, EVALUATIONS, 1, POPULATION, self._seed, goals=Goals(stability=STABILITY)
        )
        self._searching = plan_input(order.number, order.planning_input, settings)
        self._later(self._searching, SHORT_S if order.short else SEARCH_S)

    # --- sites ---------------------------------------------------------------------------------

    def _fits(
        self, holds: Sequence[tuple[str, int]], begin: float, end: float, but: str
    ) -> str | None:
        # The first resource of which too few units are free.
        for name, units in holds:
            edges = []
            for other in self._held[name]:
                run = self._runs[other]
                if other != but and run.begin < end - TOLERANCE and begin < run.end - TOLERANCE:
                    taken = sum(count for each, count in run.holds if each == name)
                    edges += [(max(run.begin, begin), taken), (run.end - TOLERANCE, -taken)]
            if (
                max(itertools.accumulate(u for _, u in sorted(edges)), default=0) + units
                > (self._capacity[name])
            ):
                return name
        return None

    def _book(self, booking: Booking) -> None:
        name, place = booking.booking, booking.placement
        holds = tuple((each.resource, each.units) for each in booking.holds)
        short = self._fits(holds, place.start, place.end, name)
        if short is not None:
            index = [each for each, _ in holds].index(short)
            self._later(BookingLost(0, name, f"{short} is not free", (index,)), ANSWER_S)
            return
        self._runs[name] = _Run(holds, place.start, place.end)
        for each, _ in holds:
            self._held[each].add(name)
        self._later(Booked(0, name, tuple(str(each) for each in range(len(holds)))), ANSWER_S)

    def _move(self, booking: Booking, begin: float, end: float) -> None:
        name = booking.booking
        run = self._runs.get(name)
        if run is None:
            return
        self.moves += 1
        begin = run.begin if run.start < math.inf else begin
        if self._fits(run.holds, begin, end, name) is not None:
            self._later(MoveRefused(0, name, "is not free", taken=True), ANSWER_S)
            return
        run.begin, run.end = begin, end
        self._later(Moved(0, name, begin, end), ANSWER_S)

    def _launch(self, booking: Booking) -> None:
        name = booking.booking
        run = self._runs[name]
        workflow, task = booking.placement.key
        number = self.state.memory.live[workflow].tasks[task].runs
        share, run.fails = self._noise.luck(self._seed, f"{workflow}/{task}", number)
        run.start = max(self.now, run.begin)
        run.ends = run.start + self._estimated(booking, workflow, task) * share
        self._later(Started(0, name, run.start), run.start - self.now + ANSWER_S / 2)
        self._later(name, min(run.ends, run.end) - self.now)

    def _estimated(self, booking: Booking, workflow: str, task: str) -> float:
        # Seconds that a run takes by its user's word, of which the luck is a share.
        if not self._load.programs:
            return booking.run_time
        live = self.state.memory.live[workflow].tasks[task]
        return self._resources[booking.placement.resources[0]].duration(live.task.work)

    def _ended(self, name: str) -> None:
        run = self._runs.get(name)
        if run is None:
            return
        end = min(run.ends, run.end)
        if self.now < end - TOLERANCE:  # it has been given more time
            self._later(name, end - self.now)
            return
        cut = run.ends > run.end + TOLERANCE
        self.cut += cut
        self._drop(name)
        outcome = Outcome.FAILED if run.fails or cut else Outcome.COMPLETED
        reason = "cut off" if cut else "it failed" if run.fails else ""
        self._tell(Ended(0, name, outcome, run.start, self.now, reason))

    def _drop(self, name: str) -> None:
        run = self._runs.pop(name, None)
        if run is not None:
            for each, _ in run.holds:
                self._held[each].discard(name)
