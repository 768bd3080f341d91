"""Which time is free, held against a look at every second."""

import math
import random
from functools import partial

import pytest

from broker.model.plan import Placement
from broker.model.resources import Calendar, Resource, WeeklyWindow
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.scheduler.free_time import ALL_PLANNED, EVERYTHING, FreeTime, View
from broker.scheduler.planning_cycle import PlanningCycle
from broker.scheduler.records import (
    Hold,
    PlanAdopted,
    ResourceSet,
    Supply,
    TaskBooked,
    TaskFixed,
    TaskFreed,
    TaskLaunched,
    TaskMoving,
    WorkflowSubmitted,
)
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state_tables import StateTables

NAMES = ("alpha", "beta")
END = 60
MARGIN = 2.0


def drawn(seed: int) -> tuple[StateTables, FreeTime, random.Random]:
    """Returns tables with attempts at random times on two resources of three units."""
    rng = random.Random(seed)  # noqa: S311  # no secret
    tasks = tuple(Task(f"t{n}", 5.0, (Alternative.of("alpha"),)) for n in range(8))
    supplies = (ResourceSet(0.0, Supply(Resource(name, capacity=3))) for name in NAMES)
    flow = Workflow("flow", tasks)
    known = StateTables([*supplies, WorkflowSubmitted(0.0, "w1", "k", flow, ())])
    for number, task in enumerate(tasks):
        begin = float(rng.randrange(END))
        end = begin + rng.randrange(1, 15)
        names = rng.sample(NAMES, rng.choice((1, 1, 2)))
        units = rng.choice((1, 1, 2))
        demands = tuple(Demand(name, units) for name in names)
        place = Placement("flow", task.name, demands, begin, end, 1.0)
        holds = tuple(Hold("", name, units) for name in names)
        known.apply(TaskFixed(0.0, "w1", task.name, f"b-{number}", place, holds, 5.0))
    settings = BrokerSettings(margin=MARGIN)
    return known, FreeTime(known, PlanningCycle(known, settings), MARGIN), rng


def is_free(known: StateTables, name: str, units: int, second: int, view: View) -> bool:
    """Returns whether units of a resource are free in the second that begins then."""
    taken = 0
    for booking, attempt in known.holding.get(("", name), {}).items():
        if booking in view.but:
            continue
        begin, end = view.instead.get(booking, (attempt.begin, attempt.end))
        if begin <= second < end:
            taken += sum(hold.units for hold in attempt.holds if hold.resource == name)
    return taken + units <= 3


def all_free(
    known: StateTables, demands: tuple[Demand, ...], length: int, view: View, second: int
) -> bool:
    """Returns whether all that is asked for is free for so many seconds."""
    return all(
        is_free(known, demand.resource, demand.units, each, view)
        for demand in demands
        for each in range(second, second + length)
    )


@pytest.mark.parametrize("seed", range(40))
def test_what_is_free_is_what_a_look_at_every_second_finds(seed: int) -> None:
    """Now and later, for one resource and for both, with attempts left out and moved in thought."""
    known, free_time, rng = drawn(seed)
    free_time.now = float(rng.randrange(10))
    for _ in range(60):
        demands = tuple(Demand(name, rng.choice((1, 2, 3))) for name in rng.sample(NAMES, 2))
        demands = demands[: rng.choice((1, 2))]
        needs = free_time.needs(demands, ())
        assert needs is not None
        view = rng.choice((EVERYTHING, View({"b-1", "b-2"}), View((), {"b-3": (4.0, 9.0)})))
        since = rng.choice((int(free_time.now), rng.randrange(END)))
        length = rng.randrange(1, 12)

        free_from = partial(all_free, known, demands, length, view)
        assert free_time.fits(needs, since, since + length, view) == free_from(since)
        first = next(each for each in range(since, 3 * END) if free_from(each))
        assert free_time.earliest(needs, since, length, view) == first
        latest = float(rng.randrange(since, since + 20))
        bounded = free_time.earliest(needs, since, length, view, latest)
        assert bounded == first if first <= latest else bounded > latest


def test_what_changes_is_seen_at_once() -> None:
    """An attempt that comes, is being moved, or is given up, within one moment and over moments."""
    task = Task("a", 10.0, (Alternative.of("alpha"),))
    flow = Workflow("flow", (task,))
    supply = Supply(Resource("alpha"))
    known = StateTables([ResourceSet(0.0, supply), WorkflowSubmitted(0.0, "w1", "k", flow, ())])
    free_time = FreeTime(known, PlanningCycle(known, BrokerSettings(margin=MARGIN)), MARGIN)
    free_time.now = 0.0
    needs = free_time.needs((Demand("alpha"),), ())
    assert needs is not None
    assert free_time.fits(needs, 0.0, 10.0)
    place = Placement("flow", "a", (Demand("alpha"),), 5.0, 15.0, 1.0)
    known.apply(TaskFixed(0.0, "w1", "a", "b-1", place, (Hold("", "alpha", 1),), 8.0))
    assert free_time.earliest(needs, 0.0, 5.0) == 0.0
    assert free_time.earliest(needs, 0.0, 6.0) == 15.0
    known.apply(TaskMoving(0.0, "b-1", 20.0, 30.0))
    assert (
        free_time.earliest(needs, 0.0, 6.0) == 30.0
    )  # it counts where it was and where it will be
    known.apply(TaskFreed(0.0, "b-1", "is not needed"))
    assert free_time.earliest(needs, 0.0, 6.0) == 30.0  # until its site has let it go


def test_a_run_that_should_be_over_holds_its_units() -> None:
    """For as long as the margin, from whatever moment on it is looked at."""
    task = Task("a", 10.0, (Alternative.of("alpha"),))
    supply = Supply(Resource("alpha"))
    flow = Workflow("flow", (task,))
    known = StateTables([ResourceSet(0.0, supply), WorkflowSubmitted(0.0, "w1", "k", flow, ())])
    place = Placement("flow", "a", (Demand("alpha"),), 0.0, 12.0, 1.0)
    known.apply(TaskFixed(0.0, "w1", "a", "b-1", place, (Hold("", "alpha", 1),), 10.0))
    free_time = FreeTime(known, PlanningCycle(known, BrokerSettings(margin=MARGIN)), MARGIN)
    needs = free_time.needs((Demand("alpha"),), ())
    assert needs is not None
    free_time.now = 12.0
    assert free_time.fits(needs, 12.0, 13.0)  # it was never launched
    known.apply(TaskBooked(1.0, "b-1", ("r1",)))
    known.apply(TaskLaunched(1.0, "b-1"))
    for now in (12.0, 20.0):
        free_time.now = now
        assert not free_time.fits(needs, now, now + 1.0)
        assert free_time.earliest(needs, now, 1.0) == now + MARGIN


@pytest.mark.parametrize("seed", range(30))
def test_room_is_where_a_unit_is_free_now(seed: int) -> None:
    """At one of the places that are asked for; nowhere else, and at no place that is not there."""
    known, free, _ = drawn(seed)
    for second in range(0, END, 5):
        free.now = float(second)
        for names in ((), ("alpha",), ("beta",), NAMES, ("gone",)):
            expected = any(
                name in NAMES and is_free(known, name, 1, second, EVERYTHING) for name in names
            )
            assert free.any_room({("", name) for name in names}) is expected


def test_what_ends_and_begins_at_the_same_moment_overlaps_by_no_more_than_is_rounded() -> None:
    """Or a run that takes longer would be cut off, as time behind it seems to be held twice."""
    tasks = tuple(Task(name, 10.0, (Alternative.of("alpha"),)) for name in "ab")
    flow = Workflow("flow", tasks)
    supply = ResourceSet(0.0, Supply(Resource("alpha", capacity=2)))
    known = StateTables([supply, WorkflowSubmitted(0.0, "w1", "k", flow, ())])
    third = 0.1 + 0.2
    for number, (name, begin, end) in enumerate((("a", 0.0, third), ("b", 0.3, 9.0))):
        place = Placement("flow", name, (Demand("alpha"),), begin, end, 1.0)
        hold = (Hold("", "alpha", 1),)
        known.apply(TaskFixed(0.0, "w1", name, f"b-{number}", place, hold, end - begin))
    free_time = FreeTime(known, PlanningCycle(known, BrokerSettings(margin=MARGIN)), MARGIN)
    needs = free_time.needs((Demand("alpha"),), ())
    assert needs is not None
    assert third > 0.3
    assert free_time.fits(needs, 0.0, 9.0)
    assert free_time.earliest(needs, 0.0, 9.0) == 0.0


def test_what_is_planned_counts_for_whoever_is_to_leave_it_alone() -> None:
    """As long as its task waits and has that place; what is planned for a task itself is in nobody's way."""
    tasks = tuple(Task(name, 10.0, (Alternative.of("alpha"),)) for name in "abc")
    supply = ResourceSet(0.0, Supply(Resource("alpha")))
    flow = Workflow("flow", tasks)
    known = StateTables([supply, WorkflowSubmitted(0.0, "w1", "k", flow, ())])
    one = (Demand("alpha"),)
    places = [
        Placement("flow", n, one, begin, begin + 10.0, 1.0)
        for n, begin in (("a", 10.0), ("b", 30.0))
    ]
    known.apply(PlanAdopted(0.0, 1, 1.0, tuple(places), ()))
    a, b, c = known.tasks()
    free = FreeTime(known, PlanningCycle(known, BrokerSettings(margin=MARGIN)), MARGIN)
    free.planned((b, a, c))
    needs = free.needs(one, ())
    assert needs is not None

    def taken(view: View) -> list[float]:
        """Returns which of four spans of ten seconds are not free."""
        spans = (0.0, 10.0, 20.0, 30.0)
        return [begin for begin in spans if not free.fits(needs, begin, begin + 10.0, view)]

    assert taken(EVERYTHING) == []
    assert taken(View(task=c)) == taken(ALL_PLANNED) == [10.0, 30.0]
    assert taken(View(task=a)) == taken(View(planned_but=lambda each: each is a)) == [30.0]
    where = ("", "alpha")
    moments = (9.0, 10.0, 15.0, 20.0, 25.0, 35.0, math.inf)
    assert [free.planned_at(where, moment) for moment in moments] == [
        [], [a], [a], [a], [], [b], [],
    ]  # fmt: skip
    assert free.planned_at(("", "beta"), 15.0) == []
    known.apply(PlanAdopted(1.0, 2, 1.0, (places[1],), ()))
    assert (taken(View(task=c)), free.planned_at(where, 15.0)) == ([30.0], [])
    hold = (Hold("", "alpha", 1),)
    known.apply(TaskFixed(2.0, "w1", "b", "b-1", places[1], hold, 8.0))
    assert (taken(View(task=c)), taken(EVERYTHING)) == ([30.0], [30.0])
    assert free.planned_at(where, 35.0) == []


def test_nothing_is_free_between_opening_hours() -> None:
    """Each day anew, over the end of a week as well; a task has to fit into the hours in which it starts."""
    hour, day = 3600.0, 86_400.0
    office = Calendar((WeeklyWindow(8 * hour, 18 * hour),))
    supply = ResourceSet(0.0, Supply(Resource("alpha", calendar=office)))
    known = StateTables([supply])
    free = FreeTime(known, PlanningCycle(known, BrokerSettings(margin=MARGIN)), MARGIN)
    needs = free.needs((Demand("alpha"),), ())
    assert needs is not None
    for number in range(9):
        free.now = morning = number * day
        spans = ((7, 8), (7, 9), (8, 18), (9, 10), (17, 19), (18, 19), (20, 33))
        fitting = [
            span
            for span in spans
            if free.fits(needs, morning + span[0] * hour, morning + span[1] * hour)
        ]
        assert fitting == [(8, 18), (9, 10)]
        for since, begin in ((7, 8), (9, 9), (17.5, 32), (19, 32)):
            found = free.earliest(needs, morning + since * hour, hour)
            assert found == morning + begin * hour
