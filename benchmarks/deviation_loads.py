"""Loads of workflows whose run times are not what was thought, and the chance that is in them.

Each of `GENERATORS` draws the workflows of an hour for one pool, 138 processors of twenty kinds with
a licence for two of them. They differ in how workflows come, in their shape, in how long their tasks
are, and in where these can run. Load 1 is the same work for each of them.
"""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from broker.model.network import Network
from broker.model.pools import generate_pool
from broker.model.program import Program
from broker.model.resources import Calendar, Resource
from broker.model.workflow import Alternative, Task, Workflow

HOUR: Final = 3600.0
WORK: Final = 540_000.0
"""Work of all tasks at load 1, in seconds on a resource of performance 1."""

FAST: Final = 2.56
"""Performance by which due dates are set: that of the large resources of the pool."""

NOTICE_S: Final = 360.0
"""Due dates leave so many seconds beside the run times: two planning cycles."""

POOL_SEED: Final = 77
LICENCE: Final = Resource("licence", kind="licence", price=0.02 / HOUR, capacity=6)
LICENSED: Final = ("bremen", "thorn")


@dataclass(frozen=True, slots=True)
class Noise:
    """How runs differ from their estimates.

    Attributes:
        least: least share of its estimate that a run takes; shares are uniform up to `most`.
        failing: share of the runs that fail at their end.
    """

    name: str
    least: float
    most: float
    failing: float = 0.0

    def luck(self, seed: int, task: str, run: int) -> tuple[float, bool]:
        """Returns the share of its estimate that a run takes, and whether it fails.

        It depends on nothing but the run, so whoever dispatches has the same luck.
        """
        rng = np.random.default_rng([seed, run, zlib.crc32(task.encode())])
        share = self.least + (self.most - self.least) * float(rng.random())
        return share, bool(rng.random() < self.failing)


NOISES: Final = (
    Noise("exact", 1.0, 1.0),
    Noise("±5 %", 0.95, 1.05),
    Noise("±10 %", 0.9, 1.1),
    Noise("0.7–1.25, 5 % fail", 0.7, 1.25, 0.05),
    Noise("0.4–1", 0.4, 1.0),
)


@dataclass(frozen=True, slots=True)
class Load:
    """Resources, and workflows with the moments at which they come, in seconds and in their order.

    Attributes:
        network: what their files take between sites; `None` if these are everywhere at once.
        programs: what the tasks of workflows run, by the workflow's name; without any they run nothing.
    """

    resources: tuple[Resource, ...]
    arrivals: tuple[tuple[float, Workflow], ...]
    network: Network | None = None
    programs: Mapping[str, tuple[Program, ...]] = field(default_factory=dict)


_Drafted = tuple[float, Sequence[int], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Draft:
    """A workflow before its work is scaled: tasks with their work, predecessors and places.

    No places stand for all.
    """

    come: float
    tasks: Sequence[_Drafted]


Generator = Callable[[np.random.Generator, int], list[Draft]]


def pool() -> tuple[Resource, ...]:
    """Returns the processors, open at all hours, and the licence."""
    drawn = generate_pool(20, np.random.default_rng(POOL_SEED))
    always = (replace(each, calendar=Calendar(), price_rules=()) for each in drawn)
    return (*always, LICENCE)


def _steady(rng: np.random.Generator, share: int) -> list[Draft]:
    # At equal distances; any earlier task may come before a task.
    count = 300 // share
    drafts = []
    for number in range(count):
        tasks = []
        for row in range(int(rng.integers(3, 10))):
            before = [each for each in range(row) if rng.random() < 0.35]
            tasks.append((float(rng.uniform(30, 570)), before, ()))
        drafts.append(Draft(HOUR * number / 300, tasks))
    return drafts


def _bursts(rng: np.random.Generator, share: int) -> list[Draft]:
    # Up to twenty at a time; one task opens into several, which one task closes.
    count = 300 // share
    drafts: list[Draft] = []
    now = 0.0
    while len(drafts) < count:
        size = int(rng.integers(1, 21))
        for _ in range(min(size, count - len(drafts))):
            wide = int(rng.integers(2, 9))
            middle = range(1, wide + 1)
            tasks: list[_Drafted] = [(float(rng.uniform(30, 120)), (), ())]
            tasks += [(float(rng.uniform(60, 500)), (0,), ()) for _ in middle]
            tasks.append((float(rng.uniform(30, 240)), tuple(middle), ()))
            drafts.append(Draft(now, tasks))
        now += float(rng.exponential(HOUR / 300 * size))
    return drafts


def _chains(rng: np.random.Generator, share: int) -> list[Draft]:
    # By chance; many steps in a row, each at home on a third of the resources.
    names = [each.name for each in pool() if each is not LICENCE]
    drafts = []
    now = 0.0
    for _ in range(150 // share):
        tasks = []
        for row in range(int(rng.integers(6, 15))):
            home = sorted(rng.choice(len(names), size=7, replace=False).tolist())
            work = float(np.clip(rng.lognormal(5.5, 0.6), 20, 1500))
            tasks.append((work, (row - 1,) if row else (), [names[each] for each in home]))
        drafts.append(Draft(now, tasks))
        now += float(rng.exponential(HOUR / 150))
    return drafts


def _wide(rng: np.random.Generator, share: int) -> list[Draft]:
    # By chance; few workflows of three wide stages, and some tasks much longer than most.
    drafts = []
    now = 0.0
    for _ in range(60 // share):
        tasks: list[_Drafted] = []
        before: list[int] = []
        for width in (int(rng.integers(8, 19)), int(rng.integers(4, 13)), int(rng.integers(1, 5))):
            stage = list(range(len(tasks), len(tasks) + width))
            for _ in stage:
                size = min(len(before), 4)
                after = (
                    sorted(rng.choice(before, size=size, replace=False).tolist()) if size else []
                )
                tasks.append((float(np.clip(rng.lognormal(5.0, 1.0), 10, 3000)), after, ()))
            before = stage
        drafts.append(Draft(now, tasks))
        now += float(rng.exponential(HOUR / 60))
    return drafts


GENERATORS: Final[dict[str, Generator]] = {
    "steady": _steady,
    "bursts": _bursts,
    "chains": _chains,
    "wide": _wide,
}


def _way(name: str) -> Alternative:
    return Alternative.of(name, LICENCE.name) if name in LICENSED else Alternative.of(name)


def draw(generator: str, load: float, seed: int, share: int = 1) -> Load:
    """Returns a load; with `share` only so manieth part of its workflows, as dense as all.

    Half of the workflows have a budget, 1 to 1.8 times what their work costs on average.
    """
    rng = np.random.default_rng([seed, zlib.crc32(generator.encode())])
    resources = pool()
    processors = [each for each in resources if each is not LICENCE]
    price = sum(each.capacity * each.price for each in processors) / sum(
        each.capacity * each.performance for each in processors
    )
    drafts = GENERATORS[generator](rng, share)
    drawn = math.fsum(work for draft in drafts for work, _, _ in draft.tasks)
    factor = load * WORK / share / drawn
    ways = {each.name: _way(each.name) for each in processors}
    everywhere = tuple(ways.values())
    arrivals = []
    for number, draft in enumerate(drafts):
        tasks: list[Task] = []
        ends: list[float] = []
        for row, (work, before, places) in enumerate(draft.tasks):
            alternatives = tuple(ways[name] for name in places) or everywhere
            names = tuple(f"t{each}" for each in before)
            tasks.append(Task(f"t{row}", factor * work, alternatives, names))
            ends.append(max((ends[each] for each in before), default=0.0) + factor * work / FAST)
        due = draft.come + NOTICE_S + float(rng.uniform(1.5, 3.5)) * max(ends)
        total = math.fsum(task.work for task in tasks)
        budget = float(rng.uniform(1.0, 1.8)) * price * total if rng.random() < 0.5 else math.inf
        workflow = Workflow(f"w{number}", tuple(tasks), due_date=due, budget=budget)
        arrivals.append((draft.come, workflow))
    return Load(resources, tuple(arrivals))
