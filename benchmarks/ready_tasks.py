"""Measures what the end of a run costs a broker with thousands of tasks that can begin.

    python -m benchmarks.ready_tasks          writes figures-ready-tasks.json
    python -m benchmarks.ready_tasks --dry    few tasks, and writes nothing

Twenty resources of seven units each are busy with tasks of one workflow, which wait for nothing but units and may run on all of them; so many more of these can begin.
Sites answer at once, on a clock of the benchmark's own. *New* is the broker, *old* one that looks at every task that can begin at each event
(`tests/oracles/plain_ready.py`). Tasks have places in a plan, or none yet; and in the third case they are runs of one program, have places, and
estimates are learned: then each end of a run has all that can begin sorted anew. Medians of the processor time of eleven ends of runs, all that
comes of each included, in milliseconds.
"""

# ruff: noqa: SLF001  # they are put in place of private parts

import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.cycle import Broker
from benchmarks.frame import keep, machine, options_of
from broker.model.program import Program
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Task, Workflow
from broker.runtime.journal import Journal
from broker.runtime.replanner import PlanningSettings
from broker.scheduler.commands import Command, Launch
from broker.scheduler.events import Ended, Event, HandedOver, Register, Restarted, Submit
from broker.scheduler.records import Supply
from broker.scheduler.settings import BrokerSettings, EstimatesFrom
from broker.scheduler.state import BrokerState
from tests.oracles.plain_ready import PlainReadyTasks

FIGURES: Final = Path(__file__).with_name("figures-ready-tasks.json")
READY: Final = (1000, 5000)
RESOURCES: Final = 20
UNITS: Final = 7
ENDS: Final = 11
KINDS: Final = ("new", "old")
CASES: Final = ("planned", "unplanned", "learned")
SEARCH: Final = PlanningSettings(seconds=1e9, evaluations=1, workers=1, population=3)


class Measured(Broker):
    """A broker of which the ends of runs are measured.

    Attributes:
        ends: processor time of each, seconds.
    """

    def __init__(self, journal: Journal, estimates: EstimatesFrom) -> None:
        self._estimates = estimates
        self.ends: list[float] = []
        super().__init__(journal, SEARCH)

    def __post_init__(self) -> None:
        """Begins with a state of its own settings."""
        super().__post_init__()
        self.state = BrokerState(BrokerSettings(estimates=self._estimates))
        self.tell(Restarted(0))

    def look_at_all(self) -> None:
        """Looks at every task that can begin from now on."""
        work = self.state._execution
        plain = PlainReadyTasks(work._context, work._groups)
        plain.__dict__.update(work._ready.__dict__)
        work._ready = plain

    @property
    def ready(self) -> int:
        """How many tasks can begin."""
        return len(self.state._execution._ready._entries)

    def _handled(self, event: Event) -> list[Command]:
        began = time.process_time()
        commands = super()._handled(event)
        if isinstance(event, Ended):
            self.ends.append(time.process_time() - began)
        return commands

    def _do(self, command: Command) -> None:
        if isinstance(command, Launch) and command.program is not None:
            name = command.booking.booking
            self._later(HandedOver(0, name, f"job of {name}"), 0.0)
        super()._do(command)


def measured(kind: str, case: str, ready: int, ends: int) -> dict[str, Any]:
    """Returns the median of one kind of broker in one case."""
    rng = np.random.default_rng(1)
    names = tuple(Alternative.of(f"r{number}") for number in range(RESOURCES))
    # Ends come singly, and the first ones only when there is a plan.
    count = ready + RESOURCES * UNITS
    tasks = tuple(Task(f"t{row}", float(rng.uniform(300, 3000)), names) for row in range(count))
    programs = tuple(
        Program(task.name, "#!/bin/sh\nfit\n").limited(task.work * 4)
        for task in (tasks if case == "learned" else ())
    )
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "journal") as journal:
        learned: EstimatesFrom = "learned" if case == "learned" else "file"
        broker = Measured(journal, learned)
        for number in range(RESOURCES):
            resource = Resource(f"r{number}", capacity=UNITS, performance=1.0 + number / 20)
            broker.tell(Register(1, Supply(resource)))
        broker.planning = case != "unplanned"
        broker.tell(Submit(1, "all", Workflow("all", tasks), programs))
        broker.run_until(299.0)
        if kind == "old":
            broker.look_at_all()
        broker.ends.clear()
        waiting = broker.ready
        moment = broker.now
        while len(broker.ends) < ends:
            moment += 1.0
            broker.run_until(moment)
        return {
            "kind": kind,
            "tasks": case,
            "ready": waiting,
            "ends": len(broker.ends),
            "median_ms": round(median(broker.ends) * 1000, 3),
        }


def main() -> None:
    """Measures, and keeps the figures."""
    parser = options_of(__doc__)
    parser.add_argument("--dry", action="store_true", help="few tasks; write no file")
    options = parser.parse_args()
    rows = []
    for ready in (100,) if options.dry else READY:
        for case in CASES:
            for kind in KINDS:
                rows.append(measured(kind, case, ready, 5 if options.dry else ENDS))
                print(json.dumps(rows[-1]), flush=True)
                if not options.dry:
                    found = {"machine": machine(), "rows": rows}
                    keep(FIGURES, found)


if __name__ == "__main__":
    main()
