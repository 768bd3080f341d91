"""Measures what gathering costs and spares: 3 % of runs fail, and every failure wants a plan.

    python -m benchmarks.replanning             writes figures-replanning.json
    python -m benchmarks.replanning --dry       does not

A broker without faults of its own on a clock of the benchmark's: workflows come one after another, a
share of the runs fails at a random moment, and a search takes half a minute or two and a half on that
clock but builds few schedules. The same workflows and the same luck with several values of
`cycle.gather_s`; the first is what a broker does that plans anew at every failure. By value: plannings
in an hour, the share of time in which a search runs, how long a failed task waits for its next
beginning, the makespan, and how late the workflows are.
"""

import heapq
import itertools
import json
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.frame import machine, options_of
from broker.model.pools import generate_pool
from broker.model.workflow import Alternative, Task, Workflow
from broker.runtime.replanner import PlanningSettings, plan_input
from broker.scheduler.commands import Book, Command, Launch, Release, StartPlanning
from broker.scheduler.events import (
    Booked,
    Ended,
    Event,
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
from grms.util.outcomes import Outcome

FIGURES: Final = Path(__file__).with_name("figures-replanning.json")
GATHER_S: Final = (5.0, 60.0, 180.0)
SEEDS: Final = (1, 2, 3, 4, 5)
WORKFLOWS: Final = 120
TASKS: Final = 20
RESOURCES: Final = 10
EVERY_S: Final = 24.0
FAILING: Final = 0.03
SEARCH_S: Final = (30.0, 150.0)
EVALUATIONS: Final = 120


def workflows(rng: np.random.Generator, pool: tuple[Supply, ...]) -> Iterator[Workflow]:
    """Yields workflows of tasks of 20 s to 3 minutes, due in 15 to 45 minutes."""
    anywhere = tuple(Alternative.of(each.name) for each in pool)
    for number in range(WORKFLOWS):
        tasks = []
        for row in range(TASKS):
            before = rng.choice(row, size=min(row, int(rng.integers(0, 3))), replace=False)
            names = tuple(f"t{each}" for each in sorted(before))
            tasks.append(Task(f"t{row}", float(rng.uniform(20, 180)), anywhere, names))
        due = number * EVERY_S + 60.0 * float(rng.uniform(15, 45))
        yield Workflow(f"w{number}", tuple(tasks), due_date=due, budget=1e4)


class World:
    """A broker, its planner and sites whose runs fail at random; `search` and `gather` are in seconds."""

    def __init__(self, search: float, gather: float, seed: int) -> None:
        self._search = search
        self._seed = seed
        self._queue: list[tuple[float, int, Event]] = []
        self._count = itertools.count()
        self._failed: dict[str, float] = {}
        self.now = 0.0
        self.plannings = 0
        self.waits: list[float] = []
        self.state = BrokerState(BrokerSettings(gather=gather, runs_max=1000))
        rng = np.random.default_rng(seed)
        pool = tuple(Supply(each) for each in generate_pool(RESOURCES, rng))
        self._tell(Restarted(0))
        for supply in pool:
            self._tell(Register(1, supply))
        for number, workflow in enumerate(workflows(rng, pool)):
            submit = Submit(1, workflow.name, workflow)
            heapq.heappush(self._queue, (number * EVERY_S, next(self._count), submit))

    def run(self) -> None:
        """Works until everything has ended."""
        memory = self.state.memory
        while self._queue or memory.live:
            due = self.state.next_time
            if self._queue and self._queue[0][0] <= due:
                moment, _, event = heapq.heappop(self._queue)
                self.now = max(self.now, moment)
                self._tell(event)
            else:
                self.now = max(self.now, due)
                self._tell(Tick(0))

    def _tell(self, event: Event) -> None:
        for command in self.state.handle(event, self.now):
            self._do(command)

    def _later(self, event: Event, delay: float) -> None:
        heapq.heappush(self._queue, (self.now + delay, next(self._count), event))

    def _luck(self, task: str, run: int, what: str) -> float:
        # Depends on a task's run only, not on the plans.
        seed = [self._seed, run, zlib.crc32(f"{task} {what}".encode())]
        return float(np.random.default_rng(seed).random())

    def _do(self, command: Command) -> None:
        match command:
            case Book(booking):
                self._later(Booked(0, booking.booking, ("1",)), 0.1)
            case Launch(booking):
                self._launch(command)
            case Release(booking):
                self._later(Released(0, booking.booking), 0.1)
            case StartPlanning():
                self.plannings += 1
                settings = PlanningSettings(float("inf"), EVALUATIONS, 1, 12, self._seed)
                self._later(
                    plan_input(command.number, command.planning_input, settings), self._search
                )
            case _:
                pass

    def _launch(self, command: Launch) -> None:
        booking, name = command.booking, command.name
        if name in self._failed:
            self.waits.append(self.now - self._failed.pop(name))
        workflow, task = booking.placement.key
        run = self.state.memory.live[workflow].tasks[task].runs
        self._later(Started(0, booking.booking, self.now), 0.1)
        if self._luck(name, run, "fails") < FAILING:
            length = booking.run_time * self._luck(name, run, "when")
            self._failed[name] = self.now + length
            outcome = Outcome.FAILED
        else:
            length, outcome = booking.run_time, Outcome.COMPLETED
        end = self.now + length
        self._later(Ended(0, booking.booking, outcome, self.now, end, "it failed"), length)


def measured(search: float, gather: float) -> dict[str, Any]:
    """Returns the figures of one setting: medians over the seeds, least and most beside them."""
    rows: dict[str, list[float]] = {}
    for seed in SEEDS:
        world = World(search, gather, seed)
        began = time.process_time()
        world.run()
        spent = time.process_time() - began
        ended = list(world.state.memory.workflows.values())
        last = max(each.end_time or 0.0 for each in ended)
        late = [max(0.0, (each.end_time or 0.0) - each.workflow.due_date) for each in ended]
        figures = {
            "plannings_per_hour": world.plannings / last * 3600,
            "share_of_time_searching": world.plannings * search / last,
            "failures": len(world.waits),
            "failed_task_waits_s": median(world.waits),
            "makespan_h": last / 3600,
            "workflow_takes_h": median((each.end_time or 0.0) - each.submit_time for each in ended)
            / 3600,
            "late_workflows": sum(each > 0 for each in late),
            "tardiness_h": sum(late) / 3600,
            "processor_s": spent,
        }
        for name, value in figures.items():
            rows.setdefault(name, []).append(value)
    return {
        "search_s": search,
        "gather_s": gather,
        **{
            name: {
                "median": round(median(values), 3),
                "least": round(min(values), 3),
                "most": round(max(values), 3),
            }
            for name, values in rows.items()
        },
    }


def main() -> None:
    """Measures, and keeps the figures."""
    parser = options_of(__doc__)
    parser.add_argument("--dry", action="store_true", help="write no file")
    options = parser.parse_args()
    figures = []
    for search, gather in itertools.product(SEARCH_S, GATHER_S):
        figures.append(measured(search, gather))
        print(json.dumps(figures[-1]), flush=True)
    if not options.dry:
        text = json.dumps({"machine": machine(), "replanning": figures}, indent=2)
        FIGURES.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
