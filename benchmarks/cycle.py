"""Measures the broker's cycle at its full size: 200 workflows, 7,000 tasks, 700 resources.

    python -m benchmarks.cycle                  writes figures-cycle.json
    python -m benchmarks.cycle --dry            does not
    python -m benchmarks.cycle --seconds 20     searches at most so long
    python -m benchmarks.cycle --profile FILE   keeps a profile of what is beside the search

Every task may run on every resource that is large enough for it, as tasks of recorded workflows
may. The workflows go over the wire as they do to the daemon, records into a journal on the disk,
and sites that book, run and end tasks answer at once, on a clock of the benchmark's own. One thread
plans. By planning: processor time of its preparation, to the first generation of the search, and of
all events until the next one; and what of the period of three minutes is left for the search if one
processor does all of that. In the end the most memory that the process has had.
"""

import cProfile
import heapq
import itertools
import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.frame import machine, options_of
from broker.model.pools import generate_pool
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.runtime.journal import Journal
from broker.runtime.replanner import PlanningSettings, plan_input
from broker.scheduler.commands import Append, Book, Command, Launch, Release, StartPlanning
from broker.scheduler.events import (
    Booked,
    Ended,
    Event,
    PlanFound,
    Register,
    Released,
    Restarted,
    Started,
    Submit,
    Tick,
)
from broker.scheduler.records import Supply
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from broker.v1 import workflow_pb2
from broker.wire.convert import read_workflow, write_workflow
from grms.util.outcomes import Outcome

FIGURES: Final = Path(__file__).with_name("figures-cycle.json")
WORKFLOWS: Final = 200
TASKS: Final = 35
RESOURCES: Final = 700
PLANNINGS: Final = 4
UNITS: Final = (1, 1, 1, 2, 4)
PERIOD_S: Final = 180.0
SEARCH_S: Final = 150.0
"""From the start of a planning to its plan, on the benchmark's clock."""


def workflows(rng: np.random.Generator, supplies: Sequence[Supply]) -> Iterator[Workflow]:
    """Yields layered workflows whose tasks take 1 to 30 minutes at performance 1."""
    fitting = {
        units: tuple(
            Alternative((Demand(each.name, units),))
            for each in supplies
            if each.resource.capacity >= units
        )
        for units in UNITS
    }
    for number in range(WORKFLOWS):
        tasks = []
        for row in range(TASKS):
            before = rng.choice(row, size=min(row, int(rng.integers(0, 3))), replace=False)
            alternatives = fitting[UNITS[rng.integers(len(UNITS))]]
            names = tuple(f"t{each}" for each in sorted(before))
            tasks.append(Task(f"t{row}", float(rng.uniform(60, 1800)), alternatives, names))
        due = 3600.0 * float(rng.uniform(6, 24))
        yield Workflow(f"w{number}", tuple(tasks), due_date=due, budget=1e4)


@dataclass
class Spent:
    """Processor time of one planning and of what follows it, seconds."""

    preparation: float = 0.0
    search: float = 0.0
    events: float = 0.0
    handled: int = 0

    def figures(self) -> dict[str, float]:
        """Returns it for the file of figures."""
        beside = self.preparation + self.events
        return {
            "preparation_s": round(self.preparation, 2),
            "search_s": round(self.search, 2),
            "events": self.handled,
            "events_s": round(self.events, 2),
            "beside_the_search_s": round(beside, 2),
            "left_of_the_period_s": round(PERIOD_S - beside, 2),
        }


@dataclass
class Broker:
    """The pure state, its journal, a planner, and sites without faults."""

    journal: Journal
    settings: PlanningSettings
    profile: cProfile.Profile | None = None
    now: float = 0.0
    planning: bool = False
    spent: list[Spent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = BrokerState(BrokerSettings())
        self._queue: list[tuple[float, int, Event]] = []
        self._count = itertools.count()
        self.tell(Restarted(0))

    def tell(self, event: Event) -> None:
        """Hands over an event and carries out what comes of it."""
        began = time.process_time()
        commands = self._watched(lambda: self._handled(event))
        if self.spent:
            self.spent[-1].handled += 1
            self.spent[-1].events += time.process_time() - began
        for command in commands:
            self._do(command)

    def _handled(self, event: Event) -> list[Command]:
        commands = self.state.handle(event, self.now)
        for command in commands:
            if isinstance(command, Append):
                self.journal.append(command.records)
        return commands

    def _watched(self, work: Callable[[], Any]) -> Any:
        return work() if self.profile is None else self.profile.runcall(work)

    def _do(self, command: Command) -> None:
        match command:
            case Book(booking):
                self._later(Booked(0, booking.booking, ("1",)), 0.01)
            case Launch(booking):
                self._later(Started(0, booking.booking, self.now), 0.01)
                end = self.now + booking.run_time
                self._later(
                    Ended(0, booking.booking, Outcome.COMPLETED, self.now, end), booking.run_time
                )
            case Release(booking):
                self._later(Released(0, booking.booking), 0.01)
            case StartPlanning() if self.planning:
                self._later(self._plan(command), SEARCH_S)
            case StartPlanning():
                self._later(PlanFound(0, command.number, command.planning_input.old), 0.01)
            case _:
                pass

    def _plan(self, command: StartPlanning) -> PlanFound:
        spent = Spent()
        self.spent.append(spent)
        start = time.process_time()
        if self.profile is not None:
            self.profile.enable()

        def began(_search: object) -> None:
            if self.profile is not None:
                self.profile.disable()
            spent.preparation = time.process_time() - start

        found = plan_input(command.number, command.planning_input, self.settings, None, began)
        spent.search = time.process_time() - start - spent.preparation
        return found

    def _later(self, event: Event, delay: float) -> None:
        heapq.heappush(self._queue, (self.now + delay, next(self._count), event))

    def run_until(self, moment: float) -> None:
        """Lets everything happen that does until a moment."""
        while True:
            due = self.state.next_time
            happens = self._queue[0][0] if self._queue else float("inf")
            if min(due, happens) > moment:
                self.now = moment
                return
            if happens <= due:
                self.now, _, event = heapq.heappop(self._queue)
                self.tell(event)
            else:
                self.now = max(self.now, due)
                self.tell(Tick(0))


def measured(seconds: float, profile: cProfile.Profile | None) -> dict[str, Any]:
    """Returns the figures of some plannings."""
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "journal") as journal:
        broker = Broker(journal, PlanningSettings(seconds=seconds, workers=1), profile)
        supplies = [Supply(each) for each in generate_pool(RESOURCES, rng)]
        for supply in supplies:
            broker.tell(Register(1, supply))
        spoken = [
            write_workflow(each).SerializeToString(deterministic=True)
            for each in workflows(rng, supplies)
        ]
        began = time.process_time()
        for number, content in enumerate(spoken):
            workflow, programs = read_workflow(workflow_pb2.WorkflowSpec.FromString(content))
            broker.tell(Submit(1, f"key {number}", workflow, programs))
        submissions = time.process_time() - began
        broker.planning = True
        broker.run_until((PLANNINGS + 0.99) * PERIOD_S)
        plan = broker.state.memory.plan
        assert plan is not None
        return {
            "workflows": WORKFLOWS,
            "tasks": WORKFLOWS * TASKS,
            "resources": RESOURCES,
            "threads": 1,
            "submissions_s": round(submissions, 2),
            "plannings": [each.figures() for each in broker.spent[:PLANNINGS]],
            "without_a_place": len(plan.unplanned),
            "memory_most_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }


def main() -> None:
    """Measures, and keeps the figures."""
    parser = options_of(__doc__)
    parser.add_argument("--dry", action="store_true", help="write no file")
    parser.add_argument("--seconds", type=float, default=20.0, help="budget of a search")
    parser.add_argument("--profile", type=Path, help="where a profile goes")
    options = parser.parse_args()
    profile = cProfile.Profile() if options.profile else None
    figures = measured(options.seconds, profile)
    print(json.dumps(figures, indent=2))
    if profile is not None:
        profile.dump_stats(options.profile)
    elif not options.dry:
        text = json.dumps({"machine": machine(), "cycle": figures}, indent=2)
        FIGURES.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
