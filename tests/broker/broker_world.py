"""A world around the broker's pure state: sites, a search, a journal, and faults, on one seed.

Sites keep what they were told over every restart of the broker, and answer a repeated order as
before. What the broker has ordered, and what sites tell it, may take its time or be lost with it.
"""

import heapq
import itertools
import math
import random
from dataclasses import dataclass, field

from broker.model.resources import Resource
from broker.scheduler.commands import (
    Append,
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
    HandedOver,
    Hindered,
    Moved,
    MoveRefused,
    Refused,
    Released,
    Restarted,
    Started,
    Tick,
)
from broker.scheduler.invariants import check
from broker.scheduler.lifecycle import TaskState
from broker.scheduler.records import Record, Supply
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from broker.scheduler.state_tables import Booking
from grms.util.outcomes import Outcome
from tests.broker.plain_planner import plan_plainly

STEPS_MAX = 20_000
ROUNDING = 1e-5


@dataclass
class Run:
    """What a site has of an attempt."""

    booking: Booking
    task: str
    state: str = "booked"
    start: float = math.inf
    end: float = math.inf
    needed: float = math.inf
    outcome: Outcome = Outcome.COMPLETED

    def __post_init__(self) -> None:
        """Takes the window of the attempt; moves change it here and there."""
        self.window = self.booking.placement.start, self.booking.placement.end

    @property
    def held(self) -> bool:
        """Whether it holds its resources."""
        return self.state in {"booked", "hindered", "running"}


@dataclass
class World:
    """See the module.

    Attributes:
        seed: of all chance.
        settings: of the broker.
        faults: chance of a refusal, a failed run, and so on.
        late: chance that a word of a site comes long after it should.
        overruns: chance that a run takes up to twice its time.
        hinders: chance that a site never begins what could also run on another resource, and says so.
    """

    seed: int
    settings: BrokerSettings = field(
        default_factory=lambda: BrokerSettings(cycle=50, slot=20, pause=2, margin=4)
    )
    faults: float = 0.0
    late: float = 0.0
    overruns: float = 0.0
    hinders: float = 0.0
    hindered: int = 0
    extensions: int = 0
    moves: int = 0
    cuts: int = 0
    now: float = 0.0
    journal: list[Record] = field(default_factory=list)
    runs: dict[str, Run] = field(default_factory=dict)
    completed: list[str] = field(default_factory=list)
    answers: list[Command] = field(default_factory=list)
    restarts: int = 0

    def __post_init__(self) -> None:
        """Begins with an empty journal."""
        self.random = random.Random(self.seed)  # noqa: S311  # a test's own chance
        self.queue: list[tuple[float, int, Event | Run]] = []
        self.count = itertools.count()
        self.state = BrokerState(self.settings)
        self.tell(Restarted(0))

    def supply(self, name: str, *, broken: bool = False, **more: float) -> Supply:
        """Returns a resource at the simulated launcher."""
        return Supply(Resource(name, **more), broken=broken)  # type: ignore[arg-type]  # numbers

    def tell(self, event: Event) -> None:
        """Hands over an event and carries out what comes of it."""
        commands = self.state.handle(event, self.now)
        check(self.state.memory)
        assert all(not isinstance(each, Append) for each in commands[1:])
        for command in commands:
            self._carry_out(command)

    def later(self, event: Event | Run, delay: float) -> None:
        """Has something happen after a time; a run is looked at when it ends, not by rounding before."""
        moment = max(self.now, event.end) if isinstance(event, Run) else self.now + delay
        heapq.heappush(self.queue, (moment, next(self.count), event))

    def restart(self) -> None:
        """Kills the broker; what was on its way to it is lost, what it was told is journaled."""
        self.restarts += 1
        self.queue = []
        self.state = BrokerState.recover(self.settings, self.journal)
        check(self.state.memory)
        self.tell(Restarted(0))
        for run in list(self.runs.values()):
            self._report(run)

    def step(self) -> bool:
        """Lets the next thing happen; returns whether there was any."""
        due = self.state.next_time
        happens = self.queue[0][0] if self.queue else math.inf
        if min(due, happens) == math.inf:
            return False
        if happens <= due:
            self.now, _, event = heapq.heappop(self.queue)
            if isinstance(event, Run):
                self._report_end(event)
            else:
                self.tell(event)
        else:
            self.now = max(self.now, due)
            self.tell(Tick(0))
        return True

    def run(self) -> None:
        """Goes on until every workflow has ended and nothing is held."""
        for _ in range(STEPS_MAX):
            if not self.state.memory.live and not self.state.memory.releasing:
                return
            assert self.step(), "nothing happens any more, and not everything has ended"
        raise AssertionError(f"no end after {STEPS_MAX} steps")

    def unlucky(self) -> bool:
        """Returns whether something goes wrong now."""
        return self.random.random() < self.faults

    # --- sites ---------------------------------------------------------------------------------

    def _carry_out(self, command: Command) -> None:
        match command:
            case Append():
                self.journal += command.records
            case StartPlanning():
                assert all(
                    self.state.memory.live[p.workflow].tasks[p.task].state is not TaskState.WAITING
                    for p in command.planning_input.fixed
                )
                found = plan_plainly(command.number, command.planning_input)
                self.later(found, self.random.uniform(0, 0.9 * self.settings.slot))
            case StopPlanning():
                pass
            case Book():
                self._book(command.booking)
            case Launch():
                self._launch(command)
            case Move():
                self._move(command)
            case Release():
                self._release(command.booking)
            case _:
                self.answers.append(command)

    def _delay(self) -> float:
        # A word may come long after what waits for it should have begun.
        return self.random.uniform(0, 60 if self.random.random() < self.late else 0.5)

    def _book(self, booking: Booking) -> None:
        name = booking.booking
        if name in self.runs:
            self._report(self.runs[name])
        elif self.unlucky():
            self.later(BookingLost(0, name, "refused", (0,)), self._delay())
        else:
            run = self.runs[name] = Run(booking, "/".join(booking.placement.key))
            assert not self._overlapping(run, run.window), "two tasks on a unit at once"
            held = tuple(f"{name}.{number}" for number in range(len(booking.holds)))
            self.later(Booked(0, name, held), self._delay())

    def _launch(self, command: Launch) -> None:
        run = self.runs[command.booking.booking]
        if run.state != "booked":
            self._report(run)
            return
        workflow = self.state.memory.live[command.booking.placement.workflow]
        task = workflow.tasks[command.booking.placement.task]
        for predecessor in task.predecessors:
            assert self.completed.count(predecessor.name) == 1, "launched before a predecessor"
        assert run.task not in self.completed, "launched once more after its end"
        others = [r for r in self.runs.values() if r.task == run.task and r.state == "running"]
        assert not others, "two runs of a task at once"
        if self.unlucky():
            run.state = "released"
            kind = BookingLost if command.program is None else Refused
            self.later(kind(0, run.booking.booking, "refused"), self._delay())
            return
        elsewhere = len({each.primary for each in task.task.alternatives}) > 1
        if self.hinders and elsewhere and self.random.random() < self.hinders:
            run.state = "hindered"
            self.hindered += 1
            self._report(run)
            return
        run.state = "running"
        # Sites with ordinary jobs name one for whatever runs no program, too.
        self.later(HandedOver(0, run.booking.booking, f"job of {run.booking.booking}"), 0.0)
        begin, end = run.window
        assert begin - ROUNDING <= self.now < end, "launched outside of its reservation"
        run.start = self.now
        longer = self.overruns > 0 and self.random.random() < self.overruns
        share = self.random.uniform(1.0, 2.0) if longer else self.random.uniform(0.3, 1.0)
        run.needed = self.now + run.booking.run_time * share
        run.end = min(run.needed, end)
        run.outcome = Outcome.FAILED if self.unlucky() else Outcome.COMPLETED
        if self.faults and command.program is not None:
            self.later(Hindered(0, run.booking.booking, "held"), 0.0)
        self._report(run)

    def _move(self, command: Move) -> None:
        name, new = command.booking.booking, (command.begin, command.end)
        run = self.runs[name]
        self._settle(run)
        begin, _ = run.window
        if not run.held:
            self.later(MoveRefused(0, name, "it is over"), self._delay())
            return
        if run.window == new:
            self.later(Moved(0, name, *new), self._delay())
            return
        assert run.state != "running" or begin == new[0], "the beginning of a run was moved"
        assert not self._overlapping(run, new), "two tasks on a unit at once"
        if self.unlucky():
            self.later(MoveRefused(0, name, "not free", taken=True), self._delay())
            return
        run.window = new
        self.moves += 1
        if run.state == "running":
            self.extensions += 1
            run.end = min(run.needed, new[1])
            self.later(run, run.end - self.now)
        self.later(Moved(0, name, *new), self._delay())

    def _shares(self, run: Run, other: Run) -> bool:
        mine = set(run.booking.placement.resources)
        return bool(mine & set(other.booking.placement.resources))

    def _overlapping(self, run: Run, window: tuple[float, float]) -> list[Run]:
        # What holds one of its resources, which have one unit each, in this window.
        for other in self.runs.values():
            self._settle(other)
        begin, end = max(window[0], self.now), window[1]
        return [
            other
            for other in self.runs.values()
            if other is not run
            and other.held
            and self._shares(run, other)
            and other.window[0] < end - ROUNDING
            and begin < other.window[1] - ROUNDING
        ]

    def _release(self, booking: Booking) -> None:
        run = self.runs.setdefault(booking.booking, Run(booking, "/".join(booking.placement.key)))
        self._settle(run)
        delay = self._delay()
        if run.state == "ended":
            # The end of a run is told before its release.
            ended = Ended(0, booking.booking, run.outcome, run.start, run.end)
            self.later(ended, delay)
        else:
            run.state = "released"
        self.later(Released(0, booking.booking), delay + 0.1)

    def _settle(self, run: Run) -> None:
        if run.state == "running" and run.end <= self.now:
            run.state = "ended"
            if run.needed > run.window[1]:
                self.cuts += 1
                run.outcome = Outcome.FAILED
            if run.outcome is Outcome.COMPLETED:
                self.completed.append(run.task)

    def _report(self, run: Run) -> None:
        name = run.booking.booking
        self._settle(run)
        if run.state == "booked":
            held = tuple(f"{name}.{number}" for number in range(len(run.booking.holds)))
            self.later(Booked(0, name, held), self._delay())
        elif run.state == "hindered":
            self.later(Hindered(0, name, "held"), self._delay())
        elif run.state == "running":
            self.later(Started(0, name, run.start), 0.0)
            self.later(run, run.end - self.now)
        elif run.state == "ended":
            self.later(Ended(0, name, run.outcome, run.start, run.end), self._delay())
        else:
            self.later(BookingLost(0, name, "it was released"), self._delay())

    def _report_end(self, run: Run) -> None:
        self._settle(run)
        if run.state == "ended":
            self.later(
                Ended(0, run.booking.booking, run.outcome, run.start, run.end), self._delay()
            )
