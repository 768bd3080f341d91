"""Runs that take longer than was thought."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.commands import Command, Extend, Launch, PublishWorkflow, Release
from broker.core.events import (
    Booked,
    BookingLost,
    Cancel,
    Ended,
    Event,
    Extended,
    ExtensionRefused,
    PlanFound,
    Register,
    Released,
    Started,
    Submit,
    Tick,
)
from broker.core.invariants import check
from broker.core.lifecycle import Outcome, TaskState, WorkflowState
from broker.core.records import Record, Supply, TaskExtended
from broker.core.settings import BrokerSettings
from broker.core.state import BrokerState
from broker.model.plan import Placement, Plan
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from tests.broker.broker_world import World
from tests.broker.core.test_state import chain, drawn_workflow, world
from tests.examples import FEW

SETTINGS = BrokerSettings(cycle=1000, slot=200, pause=2, gather=5, margin=4)


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

    def names(self, kind: type[Extend | Launch | Release]) -> list[str]:
        """Returns the attempts of commands of a kind."""
        return [each.booking.booking for each in self.commands if isinstance(each, kind)]


def place(task: str, start: float, resource: str = "alpha") -> Placement:
    """Returns a placement of 24 s, for a task of 20 s."""
    return Placement("flow", task, (Demand(resource),), start, start + 24, 24.0)


def running(settings: BrokerSettings = SETTINGS, *behind: Placement) -> Told:
    """Returns a state in which task `a` runs on alpha from 50 s on and others are booked."""
    told = Told(settings)
    both = (Alternative.of("alpha"), Alternative.of("beta"))
    after = {"z": ("y",)}
    tasks = tuple(Task(name, 20.0, both, after.get(name, ())) for name in "axyz")
    told.tell(Submit(1, "k", Workflow("flow", tasks)))
    told.plan(place("a", 50), *behind)
    for number in range(1, 2 + len(behind)):
        told.tell(Booked(0, f"b-{number}", (str(number),)))
    told.at(50.0)
    assert told.names(Launch) == ["b-1"]
    told.tell(Started(0, "b-1", 50.0))
    return told


def test_a_run_is_extended_shortly_before_its_reservation_ends() -> None:
    """Once; by a quarter of its time or four margins; and the plan knows it."""
    told = running()
    assert told.at(60.0) == []
    assert told.state.next_time == 73.0, "a quarter of the margin before the end"
    assert told.at(72.9) == []
    (extend,) = told.at(73.0)
    assert isinstance(extend, Extend)
    assert (extend.booking.booking, extend.end) == ("b-1", 74 + 16)
    assert told.at(73.1) == [], "it is asked for once"
    told.tell(Extended(0, "b-1", 90.0))
    task = told.state.memory.live["flow"].tasks["a"]
    assert task.booking is not None
    assert task.placement == task.booking.placement
    assert task.booking.placement.end == 90
    assert told.state.cycle._wanted == "flow/a takes longer than was thought"
    assert told.state.next_time <= 89.0
    told.at(85.0, Ended(0, "b-1", Outcome.COMPLETED, 50.0, 85.0))
    assert task.state is TaskState.COMPLETED
    assert told.names(Extend) == ["b-1"]


def test_it_is_extended_up_to_a_bound_and_then_cut() -> None:
    """After twice its time the site cuts it off; the reason says so, and it counts as a failure."""
    told = running()
    told.at(73.0)
    told.tell(Extended(0, "b-1", 90.0))
    (last,) = [each for each in told.at(89.0) if isinstance(each, Extend)]
    assert last.end == 94.0, "20 s in all"
    told.tell(Extended(0, "b-1", 94.0))
    assert not [each for each in told.at(93.5) if isinstance(each, Extend)]
    told.at(94.0, Ended(0, "b-1", Outcome.FAILED, 50.0, 94.0))
    task = told.state.memory.live["flow"].tasks["a"]
    assert (task.state, task.failures) == (TaskState.WAITING, 1)
    assert task.reason == "it was cut off at the end of its reservation"


def test_a_run_that_fails_before_has_its_own_reason() -> None:
    """The end of its reservation was not in its way."""
    told = running()
    told.at(60.0, Ended(0, "b-1", Outcome.FAILED, 50.0, 60.0, "no memory"))
    assert told.state.memory.live["flow"].tasks["a"].reason == "no memory"
    told = running()
    told.at(60.0, Ended(0, "b-1", Outcome.FAILED, 50.0, 60.0))
    assert told.state.memory.live["flow"].tasks["a"].reason == ""


@pytest.mark.parametrize("more", [{"extension_max": 0.0}, {"extension": 0.0, "margin": 0.0}])
def test_nothing_is_extended_where_that_is_not_wanted(more: dict[str, float]) -> None:
    """The site cuts it off at the end of its reservation."""
    values = {"cycle": 1000, "slot": 200, "pause": 2, "gather": 5, "margin": 4} | more
    told = running(BrokerSettings(**values))  # type: ignore[arg-type]  # numbers
    told.at(74.0)
    assert told.names(Extend) == []


def test_a_share_of_its_time_is_added_where_that_is_more() -> None:
    """Long runs are not asked for every few seconds."""
    told = running(BrokerSettings(cycle=1000, slot=200, margin=1, extension=0.5))
    (extend,) = told.at(73.8)
    assert isinstance(extend, Extend)
    assert extend.end == 74 + 10


def test_what_is_booked_behind_gives_way() -> None:
    """It is planned again, with all that wait for it; then the run is asked for once more."""
    told = running(SETTINGS, place("y", 80), place("x", 100), place("z", 110, "beta"))
    told.at(73.0)
    came = told.tell(ExtensionRefused(0, "b-1", "not free", taken=True))
    assert [each.booking.booking for each in came if isinstance(each, Release)] == ["b-3", "b-4"]
    tasks = told.state.memory.live["flow"].tasks
    assert tasks["y"].reason == "gives way to flow/a, which takes longer"
    states = [tasks[name].state for name in "axyz"]
    assert states == [TaskState.RUNNING, TaskState.BOOKED, TaskState.WAITING, TaskState.WAITING]
    assert told.names(Extend) == ["b-1"]
    told.tell(Released(0, "b-4"))
    assert told.names(Extend) == ["b-1"]
    told.tell(Released(0, "b-3"))
    assert told.names(Extend) == ["b-1", "b-1"]
    told.tell(Extended(0, "b-1", 90.0))
    assert tasks["a"].placement is not None
    assert tasks["a"].placement.end == 90


def test_what_begins_where_a_run_would_end_need_not_give_way() -> None:
    """A moment earlier it does."""
    for start, released in ((90.0, []), (89.9, ["b-2"])):
        told = running(SETTINGS, place("x", start))
        (extend,) = told.at(73.0)
        assert isinstance(extend, Extend)
        assert extend.end == 90.0
        told.tell(ExtensionRefused(0, "b-1", "not free", taken=True))
        assert told.names(Release) == released


def test_a_run_that_is_lost_meanwhile_is_not_asked_for_again() -> None:
    """What gave way to it is released in vain, and nothing of it is remembered."""
    told = running(SETTINGS, place("x", 80))
    told.at(73.0)
    told.tell(ExtensionRefused(0, "b-1", "not free", taken=True))
    assert told.names(Release) == ["b-2"]
    told.tell(BookingLost(0, "b-1", "its reservation is expired"))
    told.tell(Released(0, "b-2"))
    assert told.names(Extend) == ["b-1"]
    assert told.names(Release) == ["b-2", "b-1"]
    assert told.state.memory.live["flow"].tasks["a"].state is TaskState.WAITING


def test_what_somebody_else_has_is_not_asked_for_twice() -> None:
    """Nobody gives way elsewhere, at another time, or for a site that cannot extend."""
    behind = (place("y", 80, "beta"), place("x", 100))
    for taken in (True, False):
        told = running(SETTINGS, *behind)
        told.at(73.0)
        told.tell(ExtensionRefused(0, "b-1", "not free", taken=taken))
        told.at(73.9)
        assert told.names(Extend) == ["b-1"]
        assert told.names(Release) == []
    told = running(SETTINGS, place("y", 80))
    told.at(73.0)
    told.tell(ExtensionRefused(0, "b-1", "the site does not have this call"))
    assert told.names(Release) == []


def test_a_second_refusal_changes_nothing() -> None:
    """What the site said first, that it cannot extend at all, counts until the run is over."""
    told = running(SETTINGS, place("x", 80))
    told.at(73.0)
    for taken in (False, True):
        told.tell(ExtensionRefused(0, "b-1", "not free", taken=taken))
        assert told.names(Release) == []


def test_answers_that_come_too_late_change_nothing() -> None:
    """The run has ended, or was given up, while its site was asked."""
    told = running()
    told.at(73.0)
    told.tell(Ended(0, "b-1", Outcome.COMPLETED, 50.0, 73.0))
    for late in (Extended(0, "b-1", 90.0), ExtensionRefused(0, "b-1", "not free", taken=True)):
        assert told.tell(late) == []
    told = running(SETTINGS, place("y", 80))
    told.tell(Extended(0, "b-2", 999.0))
    assert told.state.memory.live["flow"].tasks["y"].placement == place("y", 80)


def test_a_run_of_a_workflow_that_is_given_up_is_not_extended() -> None:
    """Nothing is wanted of it any more."""
    told = running()
    told.tell(Cancel(1, "flow"))
    told.at(73.5)
    assert told.names(Extend) == []


def test_a_later_end_outlives_a_restart() -> None:
    """With what was added so far; and what was asked and not answered is asked again."""
    records: list[Record] = []
    told = running()
    told.at(73.0)
    told.tell(Extended(0, "b-1", 90.0))
    for command in told.commands:
        records += getattr(command, "records", ())
    told.state = BrokerState.recover(SETTINGS, records)
    booking = told.state.memory.booked["b-1"].booking
    assert booking is not None
    assert (booking.placement.end, booking.extended) == (90.0, 16.0)
    told.commands.clear()
    told.at(89.5)
    assert told.names(Extend) == ["b-1"]


# --- whole lives ---------------------------------------------------------------------------------


def test_nothing_is_cut_that_could_have_been_extended() -> None:
    """Alone on its resources no run is cut that takes up to twice its time."""
    made = world(3, overruns=1.0)
    made.tell(Submit(1, "a", chain("flow", 30, 30, 30, resources=("alpha",))))
    made.run()
    assert made.extensions > 3
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
    extended = [each for each in made.journal if isinstance(each, TaskExtended)]
    assert all(each.end > each.time - 60 for each in extended)
