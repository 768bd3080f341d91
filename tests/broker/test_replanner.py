"""Planning in a thread."""

import asyncio
import math

import structlog

from broker.commands import StartPlanning
from broker.events import Event, PlanFailed, PlanFound
from broker.plan import Plan
from broker.replanner import PlanningSettings, Replanner, Searching, plan_situation
from broker.resources import Resource
from broker.situation import Situation
from tests.broker.test_state import chain
from tests.waiting import run, until

RESOURCES = (Resource("alpha"), Resource("beta", performance=2.0))
BY_EVALUATIONS = PlanningSettings(seconds=math.inf, evaluations=500, workers=1)


def situation(*works: float, old: Plan | None = None) -> Situation:
    """Returns what is to be planned: two chains of tasks."""
    flows = tuple(chain(name, *works, resources=("alpha", "beta")) for name in ("x", "y"))
    return Situation(100.0, flows, RESOURCES, old=old or Plan(()), margin=1.0)


def test_every_task_gets_a_place_after_the_slot() -> None:
    """Reservations have the margin, and the plan is judged."""
    found = plan_situation(1, situation(10, 20), BY_EVALUATIONS)
    assert len(found.plan) == 4
    assert found.fitness is not None
    for placement in found.plan:
        assert placement.start >= 100
        work = {"t0": 10, "t1": 20}[placement.task]
        speed = {"alpha": 1.0, "beta": 2.0}[placement.resources[0]]
        assert placement.end - placement.start >= work / speed + 1


def test_the_same_seed_and_budget_give_the_same_plan() -> None:
    """Threads and the clock play no part where the budget is one of evaluations."""
    first = plan_situation(7, situation(10, 20, 5), BY_EVALUATIONS)
    again = plan_situation(7, situation(10, 20, 5), BY_EVALUATIONS)
    assert first.plan == again.plan


def test_an_old_plan_is_taken_up() -> None:
    """The search begins from it, and still gives every task a place."""
    old = plan_situation(1, situation(10, 20), BY_EVALUATIONS).plan
    found = plan_situation(2, situation(10, 20, 30, old=old), BY_EVALUATIONS)
    assert len(found.plan) == 6


def test_nothing_to_plan_is_no_error() -> None:
    """The event has the reasons and no fitness."""
    empty = Situation(0, (chain("x", 1),), ())
    found = plan_situation(1, empty, BY_EVALUATIONS)
    assert (len(found.plan), found.fitness) == (0, None)
    assert found.unplanned == (("x", "t0", "there is no resource that can be used"),)


def test_a_search_can_be_stopped_and_tells_its_progress() -> None:
    """It ends with what it has, long before its time, and the next one is not touched by that."""

    async def scene() -> None:
        events: list[Event] = []
        seen: list[Searching] = []
        settings = PlanningSettings(seconds=50, workers=1)
        log = structlog.get_logger()
        replanner = Replanner(settings, events.append, log, seen.append)
        task = asyncio.create_task(replanner.run(), name="planning")
        replanner.start(StartPlanning(1, situation(10, 20, 30), "the cycle"))
        await until(lambda: bool(seen))
        replanner.stop(1)
        await until(lambda: bool(events))
        found = events[0]
        assert isinstance(found, PlanFound)
        assert len(found.plan) == 6
        assert seen[0].number == 1
        # A search is ended with the daemon, too.
        replanner.start(StartPlanning(2, situation(10, 20, 30), "the cycle"))
        await until(lambda: seen[-1].number == 2)
        task.cancel()
        await asyncio.wait([task])

    run(scene)


def test_a_search_that_fails_is_told_and_the_next_one_is_done() -> None:
    """The broker goes on with the plan that it has."""

    async def scene() -> None:
        events: list[Event] = []
        replanner = Replanner(BY_EVALUATIONS, events.append, structlog.get_logger())
        task = asyncio.create_task(replanner.run(), name="planning")
        broken = Situation(math.nan, (chain("x", 1),), RESOURCES)
        replanner.start(StartPlanning(1, broken, "the cycle"))
        replanner.start(StartPlanning(2, situation(10), "the cycle"))
        await until(lambda: len(events) == 2)
        assert isinstance(events[0], PlanFailed)
        assert "now is nan" in events[0].reason
        assert isinstance(events[1], PlanFound)
        task.cancel()
        await asyncio.wait([task])

    run(scene)
