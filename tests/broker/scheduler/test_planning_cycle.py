"""When planning begins, what it is given, and what becomes of the plan."""

import math
from dataclasses import replace

import pytest

from broker.model.network import DataFile, Link, Network
from broker.model.plan import Placement, Plan
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.scheduler.commands import PublishPlan, StartPlanning, StopPlanning
from broker.scheduler.events import PlanFailed, PlanFound
from broker.scheduler.lifecycle import TaskState
from broker.scheduler.planning_cycle import SHORT_SLOT_S, SHORT_TASKS_MAX, TAKEN_MAX, PlanningCycle
from broker.scheduler.planning_input import Taken
from broker.scheduler.records import (
    PlanAdopted,
    ResourceSet,
    Supply,
    TaskFixed,
    TaskLaunched,
    TaskStarted,
    WorkflowSubmitted,
)
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state_tables import StateTables
from broker.scheduler.transaction import Transaction

SETTINGS = BrokerSettings(cycle=100, slot=40, pause=3, gather=20, margin=2)
ON_ALPHA = (Demand("alpha"),)


def place(task: str, start: float, end: float, resource: str = "alpha") -> Placement:
    """Returns a placement of a task of the workflow `flow`."""
    return Placement("flow", task, (Demand(resource),), start, end, 1.0)


def memory(*tasks: str) -> StateTables:
    """Returns a memory with two resources, and a workflow of tasks that wait for nothing."""
    both = (Alternative.of("alpha"), Alternative.of("beta"))
    flow = Workflow("flow", tuple(Task(name, 10.0, both) for name in tasks or ("a", "b", "c")))
    supplies = [ResourceSet(0, Supply(Resource(name))) for name in ("alpha", "beta")]
    return StateTables([*supplies, WorkflowSubmitted(0, "w1", "k", flow, ())])


def began(
    cycle: PlanningCycle, known: StateTables, now: float, down: tuple[str, ...] = ()
) -> StartPlanning:
    """Returns the planning that begins at a moment."""
    transaction = Transaction(known, now)
    cycle.advance(transaction, down)
    (command,) = transaction.commands()
    assert isinstance(command, StartPlanning)
    return command


def adopted(cycle: PlanningCycle, known: StateTables, now: float, *placements: Placement) -> None:
    """Lets a search end with a plan."""
    found = PlanFound(0, cycle.running, Plan(tuple(placements)), 5.0)
    cycle.found(found, Transaction(known, now))


def quiet(known: StateTables) -> PlanningCycle:
    """Returns a cycle whose first planning went from 0 to 30 s."""
    cycle = PlanningCycle(known, SETTINGS)
    began(cycle, known, 0.0)
    adopted(cycle, known, 30.0)
    return cycle


def with_file(count: int = 3) -> StateTables:
    """Returns a memory with a workflow of so many tasks, one of which reads a file."""
    known = memory(*(f"t{number}" for number in range(count)))
    (live,) = known.live.values()
    live.workflow = replace(live.workflow, files=(DataFile("in", 5.0, ("t0",)),))
    return known


def test_a_short_search_comes_before_the_long_one_where_files_are_sent() -> None:
    """Its tasks wait for it, and its slot is short; the long one follows after a pause."""
    known = with_file()
    (live,) = known.live.values()
    task = live.tasks["t1"]
    cycle = PlanningCycle(known, replace(SETTINGS, network=Network(Link(1.0))))
    assert not cycle.holds(task)
    cycle.came(Transaction(known, 0.0), live, 3)
    assert cycle.holds(task)
    order = began(cycle, known, 0.0)
    assert (order.short, order.planning_input.now) == (True, SHORT_SLOT_S)
    assert cycle.holds(task)
    cycle.came(Transaction(known, 0.5), live, 3)
    adopted(cycle, known, 1.0)
    assert not cycle.holds(task), "the plan has no place for it, and it is dispatched as ever"
    assert cycle.next_time == 1.0 + SETTINGS.pause
    later = began(cycle, known, cycle.next_time)
    assert (later.short, later.planning_input.now) == (
        False,
        1.0 + SETTINGS.pause + SETTINGS.slot,
    )


def test_a_long_search_begins_though_workflows_with_files_keep_coming() -> None:
    """After short ones have gone on for as long as what can wait is gathered; then they are short again."""
    known = with_file()
    (live,) = known.live.values()
    cycle = PlanningCycle(known, replace(SETTINGS, network=Network(Link(1.0))))
    now, kinds = 0.0, list[bool]()
    for _ in range(14):
        cycle.came(Transaction(known, now), live, 3)
        now = max(now, cycle.next_time)
        kinds.append(began(cycle, known, now).short)
        adopted(cycle, known, now + 1.0)
        now += 1.5
    assert kinds == [*[True] * 6, False, *[True] * 6, False]


@pytest.mark.parametrize(
    ("known", "settings"),
    [
        (with_file(), SETTINGS),
        (memory(), replace(SETTINGS, network=Network(Link(1.0)))),
        (with_file(), replace(SETTINGS, network=Network(Link(1.0)), early=False)),
        (with_file(SHORT_TASKS_MAX + 1), replace(SETTINGS, network=Network(Link(1.0)))),
    ],
    ids=["no network", "no files", "nothing begins early", "too many tasks"],
)
def test_else_the_first_search_is_a_long_one(known: StateTables, settings: BrokerSettings) -> None:
    """And nothing waits for it."""
    (live,) = known.live.values()
    cycle = PlanningCycle(known, settings)
    cycle.came(Transaction(known, 0.0), live, 3)
    assert not any(cycle.holds(task) for task in live.tasks.values())
    assert not began(cycle, known, 0.0).short


# --- when ----------------------------------------------------------------------------------------


def test_the_first_planning_begins_at_once_and_the_next_after_a_cycle() -> None:
    """From beginning to beginning."""
    cycle = quiet(memory())
    assert cycle.next_time == 100.0


def test_nothing_is_due_while_a_search_runs_or_nothing_is_to_be_planned() -> None:
    """Whatever is wanted."""
    known = memory()
    cycle = PlanningCycle(known, SETTINGS)
    began(cycle, known, 0.0)
    cycle.want_now("somebody asks")
    assert cycle.next_time == math.inf
    idle = PlanningCycle(StateTables(), SETTINGS)
    idle.want_now("somebody asks")
    assert idle.next_time == math.inf
    known = memory("a")
    cycle = quiet(known)
    assert cycle.next_time == 100.0
    known.apply(TaskFixed(30.0, "w1", "a", "b-1", place("a", 50, 60), (), 10.0))
    assert cycle.next_time == math.inf, "the task that wanted a place has one"


def test_what_is_urgent_waits_for_a_short_pause_only() -> None:
    """After the end of the last planning; on its own reason."""
    known = memory()
    cycle = quiet(known)
    cycle.want(Transaction(known, 31.0), "a run has failed")
    cycle.want_now("a site is gone")
    cycle.want_now("another is gone")
    assert cycle.next_time == 33.0
    assert began(cycle, known, 33.0).reason == "a site is gone"


def test_what_is_urgent_never_waits_longer_than_what_is_not() -> None:
    """A pause that is longer than the cycle puts nothing off."""
    known = memory()
    cycle = PlanningCycle(known, BrokerSettings(cycle=10.0, pause=50.0, gather=60.0))
    began(cycle, known, 0.0)
    adopted(cycle, known, 5.0)
    cycle.want_now("a site is gone")
    assert cycle.next_time == 10.0


def test_what_can_wait_is_gathered() -> None:
    """Many failures cost one planning: not before the least pause, and it names the first."""
    known = memory()
    cycle = quiet(known)
    for moment in (31.0, 35.0, 49.0):
        cycle.want(Transaction(known, moment), f"failure at {moment}")
    assert cycle.next_time == 50.0
    transaction = Transaction(known, 49.9)
    cycle.advance(transaction, ())
    assert transaction.commands() == []
    assert began(cycle, known, 50.0).reason == "failure at 31.0"
    adopted(cycle, known, 60.0)
    assert cycle.next_time == 150.0, "nothing of it is wanted any more"


def test_after_a_quiet_time_the_first_failure_waits_for_those_that_come_with_it() -> None:
    """A machine that fails takes many runs with it."""
    known = memory()
    cycle = quiet(known)
    cycle.want(Transaction(known, 70.0), "first")
    cycle.want(Transaction(known, 71.0), "second")
    assert cycle.next_time == 73.0


def test_gathering_is_never_longer_than_the_cycle() -> None:
    """The regular planning does for what was gathered."""
    known = memory()
    cycle = PlanningCycle(known, SETTINGS)
    began(cycle, known, 0.0)
    adopted(cycle, known, 95.0)
    cycle.want(Transaction(known, 96.0), "a run has failed")
    assert cycle.next_time == 100.0
    planning = began(cycle, known, 100.0)
    assert planning.reason == "a run has failed"
    adopted(cycle, known, 101.0)
    assert cycle.next_time == 200.0


def test_a_regular_planning_says_so() -> None:
    """Numbers count up over what the journal has seen."""
    known = memory()
    Transaction(known, 0.0).note(PlanAdopted(0.0, 7, None, (), ()))
    cycle = PlanningCycle(known, SETTINGS)
    assert cycle.number == 8
    planning = began(cycle, known, 5.0)
    assert (planning.number, planning.reason, cycle.running) == (8, "the cycle", 8)
    assert cycle.number == 9


def test_a_search_is_stopped_once() -> None:
    """And the next one is begun right after it."""
    known = memory()
    cycle = PlanningCycle(known, SETTINGS)
    transaction = Transaction(known, 0.0)
    cycle.interrupt(transaction, "before any search")
    assert transaction.commands() == []
    began(cycle, known, 0.0)
    transaction = Transaction(known, 1.0)
    cycle.interrupt(transaction, "alpha is broken")
    cycle.interrupt(transaction, "beta is broken")
    assert transaction.commands() == [StopPlanning(1)]
    adopted(cycle, known, 2.0)
    assert cycle.next_time == 5.0
    assert began(cycle, known, 5.0).reason == "alpha is broken"
    transaction = Transaction(known, 6.0)
    cycle.interrupt(transaction, "once more")
    assert transaction.commands() == [StopPlanning(2)]


# --- what ----------------------------------------------------------------------------------------


def test_a_situation_begins_at_the_end_of_the_slot() -> None:
    """With what waits as it was planned, on resources that are in order at sites that answer."""
    known = memory()
    for name, site, broken in (("far", "riga", False), ("gone", "", True)):
        Transaction(known, 0).note(ResourceSet(0, Supply(Resource(name), site, broken=broken)))
    old = place("a", 90, 100)
    Transaction(known, 1).note(PlanAdopted(1, 1, 3.0, (old,), ()))
    planning_input = began(PlanningCycle(known, SETTINGS), known, 10.0, ("riga",)).planning_input
    assert planning_input.now == 50.0
    assert planning_input.margin == 2
    assert [each.name for each in planning_input.resources] == ["alpha", "beta"]
    assert planning_input.old == Plan((old,))
    assert (planning_input.fixed, planning_input.left_out) == ((), frozenset())
    assert [each.name for each in planning_input.workflows] == ["flow"]
    # A task that has failed is neither placed nor planned.
    task = known.live["flow"].tasks["b"]
    for state in (TaskState.BOOKING, TaskState.BOOKED, TaskState.LAUNCHED, TaskState.FAILED):
        task.move(state)
    again = began(PlanningCycle(known, SETTINGS), known, 20.0, ("riga",)).planning_input
    assert again.left_out == frozenset({("flow", "b")})


@pytest.mark.parametrize(
    ("now", "started", "expected"),
    [
        (20.0, None, (15.0, 27.0)),
        (30.0, None, (15.0, 30.0)),
        (20.0, 17.0, (17.0, 27.0)),
        (20.0, 29.0, (29.0, 29.0)),
    ],
)
def test_what_runs_stays_until_its_end_or_longer(
    now: float, started: float | None, expected: tuple[float, float]
) -> None:
    """A run that should have ended is still there; its true start is known."""
    known = memory()
    transaction = Transaction(known, 10.0)
    transaction.note(TaskFixed(10, "w1", "a", "b-1", place("a", 15, 27), (), 10.0))
    transaction.note(TaskFixed(10, "w1", "b", "b-2", place("b", 60, 70), (), 10.0))
    known.booked["b-1"].booking.reservations = ("1",)  # type: ignore[union-attr]  # it is there
    known.booked["b-1"].move(type(known.booked["b-1"].state)("booked"))
    transaction.note(TaskLaunched(15, "b-1"))
    if started is not None:
        transaction.note(TaskStarted(16, "b-1", started))
    planning_input = began(PlanningCycle(known, SETTINGS), known, now).planning_input
    assert [(each.task, each.start, each.end) for each in planning_input.fixed] == [
        ("a", *expected),
        ("b", 60, 70),
    ]


def test_time_that_others_have_is_avoided_while_it_lasts() -> None:
    """Refused time until it has passed; what a site says until it says more."""
    known = memory()
    cycle = PlanningCycle(known, SETTINGS)
    cycle.avoid(Taken("alpha", 0, 10))
    cycle.avoid(Taken("alpha", 20, 30))
    cycle.avoid_others("riga", (Taken("beta", 1, 2),))
    cycle.avoid_others("riga", (Taken("beta", 3, 4),))
    planning_input = began(cycle, known, 10.0).planning_input
    assert planning_input.taken == (Taken("alpha", 20, 30), Taken("beta", 3, 4))


def test_so_many_refusals_are_remembered_and_no_more() -> None:
    """The oldest are forgotten, one for one that comes."""
    known = memory()
    cycle = PlanningCycle(known, SETTINGS)
    for number in range(TAKEN_MAX + 2):
        cycle.avoid(Taken("alpha", number, 1e9))
    taken = began(cycle, known, 0.0).planning_input.taken
    assert len(taken) == TAKEN_MAX
    assert (taken[0].begin, taken[-1].begin) == (2, TAKEN_MAX + 1)


# --- what becomes of it --------------------------------------------------------------------------


def test_a_plan_gives_places_where_they_can_still_be_used() -> None:
    """Not to tasks that are not to be planned, nor on resources that broke or went meanwhile."""
    known = memory("a", "b", "c", "d")
    cycle = PlanningCycle(known, SETTINGS)
    began(cycle, known, 0.0)
    assert not cycle.take_replaced()
    transaction = Transaction(known, 1.0)
    transaction.note(ResourceSet(1, Supply(Resource("beta"), broken=True)))
    transaction.note(TaskFixed(1, "w1", "d", "b-1", place("d", 5, 15), (), 10.0))
    places = (
        place("a", 50, 60), place("b", 50, 60, "beta"), place("c", 50, 60, "gone"),
        place("d", 80, 90),
    )  # fmt: skip
    transaction = Transaction(known, 2.0)
    unplanned = (("flow", "b", "why not"),)
    cycle.found(PlanFound(0, 1, Plan(places), 9.5, unplanned), transaction)
    assert known.plan == PlanAdopted(2.0, 1, 9.5, places[:1], unplanned)
    tasks = known.live["flow"].tasks
    assert [tasks[name].placement for name in "abc"] == [places[0], None, None]
    assert tasks["d"].placement == place("d", 5, 15)
    assert PublishPlan(1) in transaction.commands()
    assert "PublishWorkflow(workflow_id='w1')" in map(str, transaction.commands())
    assert cycle.take_replaced()
    assert not cycle.take_replaced()


def test_a_plan_that_nobody_waits_for_is_nothing() -> None:
    """As one of a search before a restart."""
    known = memory()
    cycle = PlanningCycle(known, SETTINGS)
    began(cycle, known, 0.0)
    transaction = Transaction(known, 2.0)
    cycle.found(PlanFound(0, 2, Plan(())), transaction)
    cycle.failed(PlanFailed(0, 2, "an error"), transaction)
    assert transaction.commands() == []
    assert cycle.running == 1


def test_a_search_that_failed_leaves_the_plan_and_says_why() -> None:
    """The next one comes with the cycle; what is due by the old plan is done."""
    known = memory()
    cycle = PlanningCycle(known, SETTINGS)
    began(cycle, known, 0.0)
    transaction = Transaction(known, 2.0)
    cycle.failed(PlanFailed(0, 1, "an error"), transaction)
    assert transaction.commands() == [PublishPlan(1, "an error")]
    assert cycle.running == 0
    assert cycle.take_replaced()
    assert cycle.next_time == 100.0
