"""Planning in a thread."""

import math
from dataclasses import replace
from typing import Any

import pytest
import structlog

from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.planner.search import Budget, Search
from broker.runtime.replanner import PlanningSettings, Replanner, Searching, plan_input
from broker.scheduler.commands import StartPlanning
from broker.scheduler.events import Event, PlanFailed, PlanFound
from broker.scheduler.planning_input import PlanningInput
from tests.broker.scheduler.test_state import chain
from tests.waiting import meanwhile, run, until

RESOURCES = (Resource("alpha"), Resource("beta", performance=2.0))
BY_EVALUATIONS = PlanningSettings(seconds=math.inf, evaluations=500, workers=1)


def planning_input(*works: float, old: Plan | None = None) -> PlanningInput:
    """Returns what is to be planned: two chains of tasks."""
    flows = tuple(chain(name, *works, resources=("alpha", "beta")) for name in ("x", "y"))
    return PlanningInput(100.0, flows, RESOURCES, old=old or Plan(()), margin=1.0)


def test_every_task_gets_a_place_after_the_slot() -> None:
    """Reservations have the margin, and the plan is judged."""
    found = plan_input(1, planning_input(10, 20), BY_EVALUATIONS)
    assert len(found.plan) == 4
    assert found.fitness is not None
    for placement in found.plan:
        assert placement.start >= 100
        work = {"t0": 10, "t1": 20}[placement.task]
        speed = {"alpha": 1.0, "beta": 2.0}[placement.resources[0]]
        assert placement.end - placement.start >= work / speed + 1


def test_the_same_seed_and_budget_give_the_same_plan() -> None:
    """Threads and the clock play no part where the budget is one of evaluations."""
    first = plan_input(7, planning_input(10, 20, 5), BY_EVALUATIONS)
    again = plan_input(7, planning_input(10, 20, 5), BY_EVALUATIONS)
    assert first.plan == again.plan


def test_islands_give_the_same_plan_whatever_the_threads() -> None:
    """Two populations within the same budget; every task has a place, as with one."""
    work = planning_input(10, 20, 5, 7, 9)
    plans = []
    for workers in (2, 3):
        settings = replace(BY_EVALUATIONS, islands=2, workers=workers)
        plans.append(plan_input(7, work, settings))
    assert plans[0].plan == plans[1].plan
    assert len(plans[0].plan) == 10
    assert plans[0].fitness is not None
    old = replace(work, old=plans[0].plan)
    assert len(plan_input(8, old, replace(BY_EVALUATIONS, islands=2, workers=2)).plan) == 10


def test_an_old_plan_is_taken_up() -> None:
    """The search begins from it, and still gives every task a place."""
    old = plan_input(1, planning_input(10, 20), BY_EVALUATIONS).plan
    found = plan_input(2, planning_input(10, 20, 30, old=old), BY_EVALUATIONS)
    assert len(found.plan) == 6


def test_nothing_to_plan_is_no_error() -> None:
    """The event has the reasons and no fitness."""
    empty = PlanningInput(0, (chain("x", 1),), ())
    found = plan_input(1, empty, BY_EVALUATIONS)
    assert (len(found.plan), found.fitness) == (0, None)
    assert found.unplanned == (("x", "t0", "there is no resource that can be used"),)


@pytest.mark.parametrize("islands", [1, 2])
async def test_a_search_can_be_stopped_and_tells_its_progress(islands: int) -> None:
    """It ends with what it has, long before its time, and the next one is not touched by that."""
    events: list[Event] = []
    seen: list[Searching] = []
    settings = PlanningSettings(seconds=50, workers=islands, islands=islands)
    log = structlog.get_logger()
    replanner = Replanner(settings, events.append, log, seen.append)
    async with meanwhile(replanner.run()):
        replanner.start(StartPlanning(1, planning_input(10, 20, 30), "the cycle"))
        await until(lambda: bool(seen))
        replanner.stop(1)
        await until(lambda: bool(events))
        found = events[0]
        assert isinstance(found, PlanFound)
        assert len(found.plan) == 6
        assert (seen[0].number, seen[0].islands) == (1, islands)
        # A search is ended with the daemon, too.
        replanner.start(StartPlanning(2, planning_input(10, 20, 30), "the cycle"))
        await until(lambda: seen[-1].number == 2)


async def test_a_search_that_fails_is_told_and_the_next_one_is_done() -> None:
    """The broker goes on with the plan that it has."""
    events: list[Event] = []
    replanner = Replanner(BY_EVALUATIONS, events.append, structlog.get_logger())
    async with meanwhile(replanner.run()):
        broken = PlanningInput(math.nan, (chain("x", 1),), RESOURCES)
        replanner.start(StartPlanning(1, broken, "the cycle"))
        replanner.start(StartPlanning(2, planning_input(10), "the cycle"))
        await until(lambda: len(events) == 2)
        assert isinstance(events[0], PlanFailed)
        assert "now is nan" in events[0].reason
        assert isinstance(events[1], PlanFound)


class HandClock:
    """Real time as the test wants it."""

    def __init__(self) -> None:
        self.moment = 1000.0

    def __call__(self) -> float:
        """Returns the time, seconds."""
        return self.moment


def budgets(
    monkeypatch: pytest.MonkeyPatch, settings: PlanningSettings, *late: float
) -> list[float]:
    """Returns the budgets of plannings that are each so many seconds later than they should."""
    given: list[float] = []
    clock = HandClock()

    def plan(
        number: int, _planning_input: PlanningInput, own: PlanningSettings, *_: object
    ) -> PlanFound:
        given.append(round(own.seconds, 9))
        clock.moment += own.seconds + late[number - 1]
        return PlanFound(0, number, Plan(()))

    monkeypatch.setattr("broker.runtime.replanner.plan_input", plan)

    async def scene() -> None:
        events: list[Event] = []
        replanner = Replanner(settings, events.append, structlog.get_logger(), clock=clock)
        async with meanwhile(replanner.run()):
            for number in range(1, len(late) + 1):
                replanner.start(StartPlanning(number, planning_input(10), "the cycle"))
                await until(lambda n=number: len(events) == n)  # type: ignore[misc]  # bound now

    run(scene)
    return given


def test_the_search_gets_what_is_left_of_the_period(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less a reserve: what plannings were late the last times, and a bit more."""
    settings = PlanningSettings(seconds=math.inf, period=100.0)
    assert budgets(monkeypatch, settings, 0, 20, 0, 0, 0, 0, 0, 0) == [
        95, 95, 75, 75, 75, 75, 75, 95,
    ]  # fmt: skip
    assert budgets(monkeypatch, settings, 90, 0) == [95, 0]


def test_a_smaller_budget_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody has configured is not exceeded, and not added to."""
    settings = PlanningSettings(seconds=30, period=100.0)
    assert budgets(monkeypatch, settings, 0, 60, 0) == [30, 30, 25]


def test_preparation_is_part_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search is told of what is left, and it is never less than nothing."""
    seen: list[float] = []

    class Recorded(Search):
        def __init__(self, problem: Problem, *, budget: Budget, **more: Any) -> None:
            seen.append(budget.seconds)
            super().__init__(problem, budget=budget, **more)

    monkeypatch.setattr("broker.runtime.replanner.Search", Recorded)
    plan_input(1, planning_input(10), PlanningSettings(seconds=0.5, evaluations=10, workers=1))
    plan_input(2, planning_input(10), PlanningSettings(seconds=0.0, workers=1))
    assert 0 < seen[0] < 0.5
    assert seen[1] == 0
