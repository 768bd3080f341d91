"""What begins is the same as if every task that can begin were looked at."""

import random
from dataclasses import replace
from typing import Any

from broker.model.network import DataFile, Link, Network
from broker.model.program import Program
from broker.model.resources import Calendar, Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.scheduler.events import Cancel, Register, SiteDown, SiteUp, Submit, Update
from broker.scheduler.lifecycle import TaskState
from broker.scheduler.ready_tasks import ReadyTasks
from broker.scheduler.records import Supply
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from tests.broker.broker_world import World
from tests.oracles.plain_ready import PlainReadyTasks


class Compared(World):
    """A world that journals in the same way whether its broker looks at all tasks or not."""

    plain = False

    def tell(self, event: Any) -> None:
        """Hands over an event to a broker of the kind."""
        execution = self.state._execution
        kind = PlainReadyTasks if self.plain else ReadyTasks
        if type(execution._ready) is not kind:
            execution._ready = kind(execution._context, execution._groups)
        super().tell(event)


class PlainWorld(Compared):
    """One whose broker looks at all."""

    plain = True


NAMES = ("alpha", "beta", "gamma", "delta")
SEEDS = range(40, 56)
LINK = Link(bandwidth=10.0, latency=0.5)


def drawn(chance: random.Random, name: str, now: float) -> Submit:
    """Returns a submission of a workflow whose tasks mostly share their alternatives, and are mostly alike."""
    shared = tuple(Alternative.of(each) for each in chance.sample(NAMES, chance.randint(1, 4)))
    works = [chance.uniform(1, 40) for _ in range(chance.randint(1, 4))]
    tasks = []
    for number in range(chance.randint(1, 14)):
        before = (f"t{chance.randrange(number)}",) if number and chance.random() < 0.4 else ()
        mine = shared
        if chance.random() < 0.2:
            mine = (Alternative(tuple(Demand(each) for each in chance.sample(NAMES, 2))),)
        tasks.append(Task(f"t{number}", chance.choice(works), mine, before))
    more: dict[str, Any] = {}
    if chance.random() < 0.4:
        more["due_date"] = now + chance.uniform(5, 400)
    if chance.random() < 0.3:
        more["budget"] = chance.uniform(5, 400)
    if chance.random() < 0.5:
        readers = tuple(each.name for each in tasks if chance.random() < 0.6)
        if readers:
            more["files"] = (DataFile("f", chance.uniform(1, 300), readers, site="home"),)
    programs: tuple[Program, ...] = ()
    if "files" not in more and chance.random() < 0.5:
        called = chance.choice(("fit", "split"))
        programs = tuple(
            Program(task.name, f"#!/bin/sh\n{called}\n").limited(task.work) for task in tasks
        )
    return Submit(1, name, Workflow(name, tuple(tasks), **more), programs)


def _happens(made: Compared, chance: random.Random, name: str) -> None:
    event = chance.random()
    if event < 0.1:
        made.tell(Cancel(0, name))
    elif event < 0.2:
        made.restart()
    elif event < 0.3:
        supply = made.state.memory.supplies[chance.choice(NAMES)]
        made.tell(Update(0, replace(supply, resource=replace(supply.resource, performance=2.2))))
    elif event < 0.4:
        made.tell(SiteDown(0, ""))
        made.step()
        made.tell(SiteUp(0, ""))


def lived(kind: type[Compared], seed: int, settings: BrokerSettings) -> Compared:
    """Returns a world after some time with whatever may happen."""
    chance = random.Random(seed)  # noqa: S311  # a test's own chance
    made = kind(seed, settings, faults=chance.choice((0.0, 0.05)), late=chance.choice((0.0, 0.1)))
    made.overruns = chance.choice((0.0, 0.3))
    for number, name in enumerate(NAMES):
        resource = Resource(name, performance=1.0 + number / 2, price=0.1 * (1 + number))
        if chance.random() < 0.2:
            resource = replace(resource, calendar=Calendar(closures=((60.0, 90.0),)))
        made.tell(Register(0, Supply(resource, groups=name == "delta" and chance.random() < 0.2)))
    for number in range(chance.randint(2, 5)):
        name = f"flow{number}"
        made.tell(drawn(chance, name, made.now))
        for _ in range(chance.randint(0, 60)):
            made.step()
        _happens(made, chance, name)
    for _ in range(300):
        if not made.step():
            break
    return made


def test_what_has_left_is_out_whatever_else_has_gone_before() -> None:
    """Of many that were left some are not there any more: all others are looked at, and none is still to begin."""
    state = BrokerState(BrokerSettings(early=False))
    state.handle(Register(1, Supply(Resource("alpha"))), 0.0)
    some = tuple(Task(f"t{number}", 1.0, (Alternative.of("alpha"),)) for number in range(40))
    state.handle(Submit(1, "k", Workflow("flow", some)), 0.0)
    execution = state._execution
    ready = ReadyTasks(execution._context, execution._groups)
    tasks = {("w1", name): task for name, task in state.memory.live["flow"].tasks.items()}
    for key, task in tasks.items():
        ready.add(key, task)
        ready.left(key)
    for number, (key, task) in enumerate(tasks.items()):
        if number % 2:
            ready.discard(key)
        else:
            task.state = TaskState.BOOKING
    assert list(ready.take(0.0, (), ())) == []
    assert not ready


def test_the_same_tasks_begin_at_the_same_time() -> None:
    """Whatever happens, with files, budgets, due dates, learned estimates and several resources for a task."""
    network = Network(LINK, {name: "home" if name == "alpha" else name for name in NAMES})
    begun = 0
    for seed in SEEDS:
        settings = BrokerSettings(
            cycle=50,
            slot=20,
            pause=2,
            margin=4 if seed % 3 else 1,
            runs_max=50,
            estimates="learned" if seed % 2 else "file",
            network=network if seed % 5 == 0 else None,
        )
        ours, plain = (lived(kind, seed, settings) for kind in (Compared, PlainWorld))
        assert ours.journal == plain.journal, seed
        begun += len(ours.completed)
    assert begun > 10
