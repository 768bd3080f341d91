"""Reservations that are moved: for what takes longer, is late, or can begin earlier."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.plan import Placement, Plan
from broker.model.program import Program
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.scheduler.commands import (
    Append,
    Book,
    Command,
    Launch,
    Move,
    PublishWorkflow,
    Release,
)
from broker.scheduler.events import (
    Booked,
    BookingLost,
    Cancel,
    Ended,
    Event,
    Moved,
    MoveRefused,
    PlanFound,
    Register,
    Released,
    Restarted,
    Started,
    Submit,
    Tick,
    Update,
)
from broker.scheduler.invariants import check
from broker.scheduler.lifecycle import TaskState, WorkflowState
from broker.scheduler.planning_input import Taken
from broker.scheduler.records import Record, Supply, TaskMoved
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from grms.util.outcomes import Outcome
from lrms_sim.workload.requests import Request
from tests.broker.broker_world import World
from tests.broker.scheduler.test_state import chain, drawn_workflow, world
from tests.examples import FEW

SETTINGS = BrokerSettings(cycle=1000, slot=200, pause=2, gather=5, margin=4, early=False)


class Told:
    """A state, and what it has done.

    Attributes:
        commands: all of them, in order.
    """

    def __init__(self, settings: BrokerSettings = SETTINGS) -> None:
        self.now = 0.0
        self.state = BrokerState(settings)
        self.commands: list[Command] = []
        for name in ("alpha", "beta"):
            self.tell(Register(1, Supply(Resource(name))))

    def tell(self, *events: Event) -> list[Command]:
        """Hands over events; returns the commands that came of them."""
        before = self.shown()
        came = [each for event in events for each in self.state.handle(event, self.now)]
        check(self.state.memory)
        # Watchers hear of every workflow of which something is shown that has changed.
        for name, seen in self.shown().items():
            assert seen == before.get(name) or PublishWorkflow(name) in came, name
        self.commands += came
        return came

    def shown(self) -> dict[str, list[object]]:
        """Returns what those who watch see of each workflow."""
        return {
            name: [flow.state, *((t.state, t.start_time, t.placement) for t in flow.tasks.values())]
            for name, flow in self.state.memory.workflows.items()
        }

    def at(self, now: float, *events: Event) -> list[Command]:
        """Hands over events at a moment; time alone where there is none."""
        self.now = now
        return self.tell(*(events or (Tick(0),)))

    def plan(self, *placements: Placement) -> None:
        """Lets the search that runs end with a plan."""
        self.tell(PlanFound(0, self.state.cycle.running, Plan(placements)))

    def names(self, kind: type[Launch | Move | Release]) -> list[str]:
        """Returns the attempts of commands of a kind."""
        return [each.booking.booking for each in self.commands if isinstance(each, kind)]


def place(task: str, start: float, resource: str = "alpha") -> Placement:
    """Returns a placement of 24 s, for a task of 20 s."""
    return Placement("flow", task, (Demand(resource),), start, start + 24, 24.0)


def running(
    settings: BrokerSettings = SETTINGS,
    *behind: Placement,
    programs: tuple[Program, ...] = (),
) -> Told:
    """Returns a state in which task `a` runs on alpha from 50 s on and others are booked."""
    told = Told(settings)
    both = (Alternative.of("alpha"), Alternative.of("beta"))
    after = {"z": ("y",)}
    tasks = tuple(Task(name, 20.0, both, after.get(name, ())) for name in "axyz")
    told.tell(Submit(1, "k", Workflow("flow", tasks), programs))
    told.plan(place("a", 50), *behind)
    for number in range(1, 2 + len(behind)):
        told.tell(Booked(0, f"b-{number}", (str(number),)))
    told.at(50.0)
    assert told.names(Launch) == ["b-1"]
    told.tell(Started(0, "b-1", 50.0))
    return told


def moves(commands: list[Command]) -> list[tuple[str, float, float]]:
    """Returns the moves among commands: attempt, begin and end."""
    return [
        (each.booking.booking, each.begin, each.end) for each in commands if isinstance(each, Move)
    ]


def test_a_run_has_its_end_moved_shortly_before_it() -> None:
    """Once; by a quarter of its time or four margins; and the plan knows it."""
    told = running()
    assert told.at(60.0) == []
    assert told.state.next_time == 71.0, "three quarters of the margin before the end"
    assert told.at(70.9) == []
    assert moves(told.at(71.0)) == [("b-1", 50.0, 74.0 + 16.0)]
    assert moves(told.at(71.1)) == [], "it is asked for once"
    assert told.state.cycle._wanted == "flow/a takes longer than was thought"
    told.tell(Moved(0, "b-1", 50.0, 90.0))
    task = told.state.memory.live["flow"].tasks["a"]
    assert task.booking is not None
    assert task.placement == task.booking.placement
    assert task.booking.placement.end == 90
    told.at(85.0, Ended(0, "b-1", Outcome.COMPLETED, 50.0, 85.0))
    assert task.state is TaskState.COMPLETED
    assert told.names(Move) == ["b-1"]


def test_its_end_is_moved_up_to_a_bound_and_then_it_is_cut() -> None:
    """After twice its time the site cuts it off; the reason says so, and it counts as a failure."""
    told = running()
    told.at(71.0)
    told.tell(Moved(0, "b-1", 50.0, 90.0))
    assert moves(told.at(87.0)) == [("b-1", 50.0, 94.0)], "20 s in all"
    told.tell(Moved(0, "b-1", 50.0, 94.0))
    assert moves(told.at(93.5)) == []
    told.at(94.0, Ended(0, "b-1", Outcome.FAILED, 50.0, 94.0))
    task = told.state.memory.live["flow"].tasks["a"]
    assert (task.state, task.failures) == (TaskState.WAITING, 1)
    assert task.reason == "it was cut off at the end of its reservation"


@pytest.mark.parametrize(
    ("limit", "extension_max", "last"),
    [(400.0, 1.0, 454.0), (30.0, 1.0, 94.0), (400.0, 0.5, 454.0), (400.0, 0.0, 74.0)],
)
def test_a_program_has_until_its_limit(limit: float, extension_max: float, last: float) -> None:
    """Which is apart from its estimate; fewer moves than steps of a quarter of that lead there."""
    program = Program("a", "#!/bin/sh\n", request=Request(wall_time=limit))
    told = running(replace(SETTINGS, extension_max=extension_max), programs=(program,))
    task = told.state.memory.live["flow"].tasks["a"]
    asked = 0
    for _ in range(100):
        if told.state.next_time > 500.0:
            break
        for name, begin, end in moves(told.at(told.state.next_time)):
            assert name == "b-1"
            asked += 1
            told.tell(Moved(0, name, begin, end))
    assert task.booking is not None
    assert task.booking.placement.end == last
    assert asked < 15


def test_moves_grow_once_a_run_is_far_beyond_its_estimate() -> None:
    """By a quarter of its estimate first, and then of all that it has had."""
    program = Program("a", "#!/bin/sh\n", request=Request(wall_time=400.0))
    told = running(replace(SETTINGS, margin=1), programs=(program,))
    ends = []
    while told.state.next_time < 150.0:
        for name, begin, end in moves(told.at(told.state.next_time)):
            told.tell(Moved(0, name, begin, end))
            ends.append(end - 74.0)
    assert ends == [5.0, 10.0, 15.0, 20.0, 30.0, 42.5, 58.125, 77.65625]


def test_what_no_time_is_left_for_is_given_back() -> None:
    """It is planned again, and says why."""
    told = running(SETTINGS, place("x", 80))
    told.state.cycle.avoid(Taken("alpha", 76.0, 1e9))
    told.at(71.0)
    assert told.names(Release) == ["b-2"]
    task = told.state.memory.live["flow"].tasks["x"]
    assert task.booking is None
    assert task.reason == "there is no later time for it on its resources"


def test_a_run_that_fails_before_has_its_own_reason() -> None:
    """The end of its reservation was not in its way."""
    told = running()
    told.at(60.0, Ended(0, "b-1", Outcome.FAILED, 50.0, 60.0, "no memory"))
    assert told.state.memory.live["flow"].tasks["a"].reason == "no memory"
    told = running()
    told.at(60.0, Ended(0, "b-1", Outcome.FAILED, 50.0, 60.0))
    assert told.state.memory.live["flow"].tasks["a"].reason == ""


@pytest.mark.parametrize("more", [{"extension_max": 0.0}, {"extension": 0.0, "margin": 0.0}])
def test_no_end_is_moved_where_that_is_not_wanted(more: dict[str, float]) -> None:
    """The site cuts it off at the end of its reservation."""
    told = running(replace(SETTINGS, **more))  # type: ignore[arg-type]  # numbers
    told.at(74.0)
    assert told.names(Move) == []


def test_a_share_of_its_time_is_added_where_that_is_more() -> None:
    """Long runs are not asked for every few seconds."""
    told = running(replace(SETTINGS, margin=1, extension=0.5))
    assert moves(told.at(73.25)) == [("b-1", 50.0, 74.0 + 10.0)]


def test_what_is_booked_behind_is_shifted_first() -> None:
    """No further than it has to be, in its order, with all that wait for it; the last one first."""
    told = running(SETTINGS, place("y", 80), place("x", 104), place("z", 110, "beta"))
    assert moves(told.at(71.0)) == [("b-4", 114.0, 138.0), ("b-3", 114.0, 138.0)]
    assert told.tell(Moved(0, "b-4", 114.0, 138.0))
    assert moves(told.tell(Moved(0, "b-3", 114.0, 138.0))) == [("b-2", 90.0, 114.0)]
    assert moves(told.tell(Moved(0, "b-2", 90.0, 114.0))) == [("b-1", 50.0, 90.0)]
    told.tell(Moved(0, "b-1", 50.0, 90.0))
    tasks = told.state.memory.live["flow"].tasks
    starts = [task.placement.start for task in tasks.values() if task.placement is not None]
    assert starts == [50.0, 114.0, 90.0, 114.0]
    assert told.names(Release) == []


def test_what_begins_where_a_run_would_end_stays() -> None:
    """A moment earlier it does not."""
    for start, first in ((90.0, ("b-1", 50.0, 90.0)), (89.9, ("b-2", 90.0, 114.0))):
        told = running(SETTINGS, place("x", start))
        assert moves(told.at(71.0)) == [first]


def test_what_waits_for_a_late_run_is_shifted_with_it() -> None:
    """A run that is late by a second costs those behind it no more than that, and frees nothing."""
    told = Told(SETTINGS)
    alpha, beta = (Alternative.of("alpha"),), (Alternative.of("beta"),)
    flow = Workflow("flow", (Task("a", 20, alpha), Task("b", 20, beta, ("a",))))
    told.tell(Submit(1, "k", flow))
    told.plan(place("a", 50), place("b", 74, "beta"))
    told.tell(Booked(0, "b-1", ("1",)), Booked(0, "b-2", ("2",)))
    told.at(50.0)
    told.tell(Started(0, "b-1", 50.0))
    assert moves(told.at(71.0)) == [("b-2", 90.0, 114.0), ("b-1", 50.0, 90.0)]
    told.tell(Moved(0, "b-2", 90.0, 114.0), Moved(0, "b-1", 50.0, 90.0))
    told.state._execution._settings = replace(SETTINGS, early=True)
    came = told.at(75.0, Ended(0, "b-1", Outcome.COMPLETED, 50.0, 75.0))
    assert moves(came) == [("b-2", 75.0, 99.0)]
    told.tell(Moved(0, "b-2", 75.0, 99.0))
    assert told.names(Launch) == ["b-1", "b-2"]
    assert told.names(Release) == []


def test_a_run_that_is_lost_meanwhile_is_not_asked_for() -> None:
    """What was shifted for it stays where it is by then."""
    told = running(SETTINGS, place("x", 80))
    assert moves(told.at(71.0)) == [("b-2", 90.0, 114.0)]
    told.tell(BookingLost(0, "b-1", "its reservation is expired"))
    told.tell(Moved(0, "b-2", 90.0, 114.0))
    assert told.names(Move) == ["b-2"]
    assert told.names(Release) == ["b-1"]
    assert told.state.memory.live["flow"].tasks["a"].state is TaskState.WAITING


@pytest.mark.parametrize("taken", [True, False])
def test_a_run_that_cannot_have_more_is_asked_for_once(taken: bool) -> None:
    """The time behind it is somebody's, or its site cannot move it; it is cut off then."""
    told = running(SETTINGS, place("y", 80, "beta"), place("x", 100))
    told.at(71.0)
    told.tell(MoveRefused(0, "b-1", "not free", taken=taken))
    told.at(73.9)
    assert told.names(Move) == ["b-1"]
    assert told.names(Release) == []
    booking = told.state.memory.booked["b-1"].booking
    assert booking is not None
    assert (booking.moving, booking.placement.end) == (None, 74.0)


def test_what_cannot_be_shifted_there_is_shifted_further_or_given_up() -> None:
    """Time that others hold is kept away from; what no site moves gives way to the run."""
    told = running(SETTINGS, place("x", 80))
    assert moves(told.at(71.0)) == [("b-2", 90.0, 114.0)]
    came = told.tell(MoveRefused(0, "b-2", "not free", taken=True))
    assert moves(came) == [("b-2", 114.0, 138.0)]
    told.tell(MoveRefused(0, "b-2", "the site does not have this call"))
    assert told.names(Release) == ["b-2"]
    assert moves(told.tell(Released(0, "b-2"))) == [("b-1", 50.0, 90.0)]


def test_answers_that_come_too_late_change_nothing() -> None:
    """The run has ended, or was given up, while its site was asked; or nobody has asked."""
    told = running()
    told.at(71.0)
    told.tell(Ended(0, "b-1", Outcome.COMPLETED, 50.0, 73.0))
    for late in (Moved(0, "b-1", 50.0, 90.0), MoveRefused(0, "b-1", "not free", taken=True)):
        assert told.tell(late) == []
    told = running(SETTINGS, place("y", 80))
    assert told.tell(Moved(0, "b-2", 80.0, 104.0)) == []
    assert told.tell(MoveRefused(0, "b-2", "not free", taken=True)) == []
    assert told.state.memory.live["flow"].tasks["y"].placement == place("y", 80)


def test_a_run_of_a_workflow_that_is_given_up_is_not_moved() -> None:
    """Nothing is wanted of it any more."""
    told = running()
    told.tell(Cancel(1, "flow"))
    told.at(72.5)
    assert told.names(Move) == []


def restarted(told: Told) -> list[Command]:
    """Kills the broker; returns what the next one does first."""
    records: list[Record] = []
    for command in told.commands:
        if isinstance(command, Append):
            records += command.records
    told.state = BrokerState.recover(SETTINGS, records)
    told.commands.clear()
    told.tell(Restarted(0))
    return told.commands


def test_a_move_outlives_a_restart() -> None:
    """With what was added so far; and what was asked and not answered is asked again, once."""
    told = running()
    told.at(71.0)
    assert [type(each) for each in restarted(told) if isinstance(each, Book | Move | Launch)] == [
        Book,
        Move,
        Launch,
    ]
    assert moves(told.commands) == [("b-1", 50.0, 90.0)]
    told.tell(Moved(0, "b-1", 50.0, 90.0))
    told.tell(Moved(0, "b-1", 50.0, 90.0))
    booking = told.state.memory.booked["b-1"].booking
    assert booking is not None
    assert (booking.moving, booking.placement.end, booking.extended) == (None, 90.0, 16.0)
    told = running()
    told.at(71.0)
    told.tell(Moved(0, "b-1", 50.0, 90.0))
    assert moves(restarted(told)) == []
    assert moves(told.at(89.5)) == [("b-1", 50.0, 94.0)]


# --- earlier -------------------------------------------------------------------------------------

EARLY = replace(SETTINGS, early=True)


def two_in_a_row(*more: Placement) -> Told:
    """Returns a state in which `a` runs since 50 s, and `b`, which waits for it, has its place at 90."""
    told = Told(EARLY)
    alpha, both = (Alternative.of("alpha"),), (Alternative.of("alpha"), Alternative.of("beta"))
    tasks = (Task("a", 20, alpha), Task("b", 20, alpha, ("a",)), Task("x", 20, both, ("a",)))
    told.tell(Submit(1, "k", Workflow("flow", tasks, earliest_start=50.0)))
    told.plan(place("a", 50), place("b", 90), *more)
    told.at(50.0)
    told.tell(*(Booked(0, f"b-{number}", (str(number),)) for number in range(1, 3 + len(more))))
    assert told.names(Launch) == ["b-1"]
    told.tell(Started(0, "b-1", 50.0))
    return told


def test_a_booked_task_begins_when_it_can() -> None:
    """Its reservation is moved to now as soon as what it waits for has ended, and then it is launched."""
    told = two_in_a_row(place("x", 120))
    came = told.at(60.0, Ended(0, "b-1", Outcome.COMPLETED, 50.0, 60.0))
    assert moves(came) == [("b-2", 60.0, 84.0)]
    assert told.names(Launch) == ["b-1"]
    told.tell(Moved(0, "b-2", 60.0, 84.0))
    assert told.names(Launch) == ["b-1", "b-2"]


def test_a_booked_task_does_not_begin_where_others_are() -> None:
    """Its units have to be free from now to its beginning; then it waits for its time."""
    told = two_in_a_row()
    told.state.cycle.avoid(Taken("alpha", 70.0, 80.0))
    assert moves(told.at(60.0, Ended(0, "b-1", Outcome.COMPLETED, 50.0, 60.0))) == []
    told.at(90.0)
    assert told.names(Launch) == ["b-1", "b-2"]


def test_a_task_goes_where_it_is_over_sooner() -> None:
    """To another resource, if that is worth it; its old reservation is given back."""
    told = two_in_a_row(place("x", 114))
    came = told.at(60.0, Ended(0, "b-1", Outcome.COMPLETED, 50.0, 60.0))
    assert moves(came) == [("b-2", 60.0, 84.0)]
    (book,) = [each for each in came if isinstance(each, Book)]
    assert (book.booking.placement.resources, book.booking.placement.start) == (("beta",), 60.0)
    assert told.names(Release) == ["b-3"]


def test_an_idle_broker_begins_at_once() -> None:
    """Without a plan: the task is booked where it is over first, and launched when it is booked."""
    told = Told(EARLY)
    told.tell(Update(1, Supply(Resource("beta", performance=2.0))))
    told.now = 7.0
    both = (Alternative.of("alpha"), Alternative.of("beta"))
    came = told.tell(Submit(1, "k", Workflow("flow", (Task("a", 20.0, both),))))
    (book,) = [each for each in came if isinstance(each, Book)]
    assert book.booking.placement.resources == ("beta",)
    assert (book.booking.placement.start, book.booking.placement.end) == (7.0, 21.0)
    told.tell(Booked(0, "b-1", ("1",)))
    assert told.names(Launch) == ["b-1"]


@pytest.mark.parametrize(
    ("due_date", "resource", "start"), [(60.0, "beta", 10.0), (200.0, "alpha", 0.0)]
)
def test_a_task_waits_a_moment_for_what_has_it_done_in_time(
    due_date: float, resource: str, start: float
) -> None:
    """What is free at once is too slow for its due date; without one so near it begins there."""
    told = Told(EARLY)
    told.tell(Update(1, Supply(Resource("beta", performance=4.0))))
    told.state.cycle.avoid(Taken("beta", 0.0, 10.0))
    both = (Alternative.of("alpha"), Alternative.of("beta"))
    flow = Workflow("flow", (Task("a", 100.0, both),), due_date=due_date)
    (book,) = [each for each in told.tell(Submit(1, "k", flow)) if isinstance(each, Book)]
    found = book.booking.placement
    assert (found.resources, found.start) == ((resource,), start)


def test_nothing_begins_before_its_time_where_that_is_not_wanted() -> None:
    """With `early` off it waits for its place in the plan."""
    told = Told(SETTINGS)
    both = (Alternative.of("alpha"), Alternative.of("beta"))
    told.tell(Submit(1, "k", Workflow("flow", (Task("a", 20.0, both),))))
    told.plan(place("a", 50))
    told.tell(Booked(0, "b-1", ("1",)))
    told.at(49.0)
    assert told.names(Move) == told.names(Launch) == []
    told.at(50.0)
    assert told.names(Launch) == ["b-1"]


@FEW
@given(st.lists(st.integers(0, 20), min_size=1, max_size=6), st.integers(0, 15), st.randoms())
def test_a_row_is_shifted_in_its_order_and_no_further_than_it_has_to_be(
    gaps: list[int], late: int, chance: random.Random
) -> None:
    """Whatever answers come first: never two at once, and nobody is later than the run in front."""
    told = Told(SETTINGS)
    alpha = (Alternative.of("alpha"),)
    names = [f"t{number}" for number in range(len(gaps) + 1)]
    told.tell(Submit(1, "k", Workflow("flow", tuple(Task(name, 20.0, alpha) for name in names))))
    starts = [50.0]
    for gap in gaps:
        starts.append(starts[-1] + 24 + gap)
    told.state.cycle._settings = replace(SETTINGS, slot=1000)
    told.state._execution._settings = replace(SETTINGS, slot=1000)
    told.plan(*(place(name, start) for name, start in zip(names, starts, strict=True)))
    told.tell(*(Booked(0, f"b-{number + 1}", ("1",)) for number in range(len(names))))
    told.at(50.0)
    told.tell(Started(0, "b-1", 50.0))
    asked = moves(told.at(71.0 + late / 10))
    windows = {f"b-{n + 1}": (start, start + 24) for n, start in enumerate(starts)}
    while asked:
        name, begin, end = asked.pop(chance.randrange(len(asked)))
        assert all(
            end <= other[0] or other[1] <= begin for key, other in windows.items() if key != name
        ), "two at once"
        windows[name] = begin, end
        asked += moves(told.tell(Moved(0, name, begin, end)))
    found = [windows[f"b-{number + 1}"] for number in range(len(names))]
    assert found == sorted(found), "order is kept"
    assert found[0] == (50.0, 90.0)
    spare = 0.0
    for (begin, _), start, gap in zip(found[1:], starts[1:], gaps, strict=True):
        spare += gap
        assert begin == start + max(0.0, 16.0 - spare)


# --- whole lives ---------------------------------------------------------------------------------


def test_nothing_is_cut_that_could_have_had_more_time() -> None:
    """Alone on its resources no run is cut that takes up to twice its time."""
    made = world(3, overruns=1.0)
    made.tell(Submit(1, "a", chain("flow", 30, 30, 30, resources=("alpha",))))
    made.run()
    assert made.extensions >= 3, "each of them"
    assert made.cuts == 0
    tasks = made.state.memory.workflows["w1"].tasks.values()
    assert [task.runs for task in tasks] == [1, 1, 1]


@FEW
@given(st.integers(0, 2**32))
def test_with_runs_that_take_longer_nothing_is_lost(seed: int) -> None:
    """Whatever gives way to whom: all is done once, in order, also over restarts."""
    made: World = world(seed, overruns=0.4)
    made.late = made.random.choice([0.0, 0.1])
    made.settings = BrokerSettings(cycle=50, slot=20, pause=2, margin=4, runs_max=1000)
    made.restart()
    for number in range(3):
        name = f"flow{number}"
        made.tell(Submit(number + 1, name, drawn_workflow(made.random, name)))
    for _ in range(made.random.randint(0, 150)):
        made.step()
        if made.random.random() < 0.02:
            made.restart()
    made.run()
    for workflow in made.state.memory.workflows.values():
        assert workflow.state is WorkflowState.COMPLETED
        name = workflow.workflow.name
        assert {made.completed.count(f"{name}/{task}") for task in workflow.tasks} == {1}
    assert all(each.begin < each.end for each in made.journal if isinstance(each, TaskMoved))
