"""The lives of tasks, one step at a time."""

import math
from dataclasses import replace

import pytest

from broker.model.plan import Placement
from broker.model.program import Input, Output, Program, Rerun
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
    Ended,
    HandedOver,
    Hindered,
    Moved,
    MoveRefused,
    Refused,
    Released,
    Restarted,
    SiteDown,
    SiteLost,
    SiteUp,
    Started,
)
from broker.scheduler.invariants import check
from broker.scheduler.lifecycle import TaskState, WorkflowState
from broker.scheduler.planning_cycle import PlanningCycle
from broker.scheduler.planning_input import Taken
from broker.scheduler.records import (
    PlanAdopted,
    ResourceRemoved,
    ResourceSet,
    Supply,
    TaskEnded,
    TaskRefused,
    WorkflowCancelled,
    WorkflowSubmitted,
)
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state_tables import LiveTask, Run, StateTables
from broker.scheduler.task_execution import SLOT_TOLERANCE, TaskExecution
from broker.scheduler.transaction import Transaction
from broker.wire.convert import write_live
from grms.util.outcomes import Outcome

SETTINGS = BrokerSettings(cycle=100, slot=40, pause=3, gather=20, margin=4, runs_max=2, early=False)
ALPHA = Supply(Resource("alpha", price=0.5), "riga", "a1")
BETA = Supply(Resource("beta", performance=2.0))


def place(task: str, start: float, *resources: str) -> Placement:
    """Returns a placement of 14 s, for 10 s of work on alpha."""
    demands = tuple(Demand(each) for each in resources or ("alpha",))
    return Placement("flow", task, demands, start, start + 14, 7.0)


class Scene:
    """A floor with a workflow of three tasks, `b` after `a`; their places are given at 0 s."""

    def __init__(
        self,
        *places: Placement,
        settings: BrokerSettings = SETTINGS,
        order: str = "abc",
        programs: tuple[Program, ...] = (),
    ) -> None:
        some = (Alternative.of("alpha"), Alternative.of("beta"))
        waits = {"b": ("a",)}
        tasks = tuple(Task(name, 10, some, waits.get(name, ())) for name in order)
        self.memory = StateTables(
            [
                ResourceSet(0, ALPHA),
                ResourceSet(0, BETA),
                WorkflowSubmitted(0, "w1", "k", Workflow("flow", tasks), programs),
                PlanAdopted(0, 1, None, places, ()),
            ]
        )
        self.cycle = PlanningCycle(self.memory, settings)
        self.execution = TaskExecution(self.memory, settings, self.cycle, "e")

    def at(self, now: float, event: object = None) -> list[Command]:
        """Hands over an event, lets what is due be done, and returns the commands for sites."""
        transaction = Transaction(self.memory, now)
        before = shown(self.memory)
        handlers = {
            Booked: self.execution.booked, BookingLost: self.execution.lost, Started: self.execution.started,
            Ended: self.execution.ended, Released: self.execution.released, SiteUp: self.execution.site_up,
            SiteDown: self.execution.site_down, Moved: self.execution.moved, MoveRefused: self.execution.moves.refused, SiteLost: self.execution.site_lost,
            Restarted: self.execution.take_up, HandedOver: self.execution.handed_over, Hindered: self.execution.hindered, Refused: self.execution.refused,
        }  # fmt: skip
        if event is not None:
            handlers[type(event)](event, transaction)  # type: ignore[operator]  # an event of these
        self.execution.advance(transaction)
        check(self.memory)
        # Watchers hear of every workflow of which something is shown that has changed.
        if shown(self.memory) != before:
            assert PublishWorkflow("w1") in transaction.commands()
        return [
            each
            for each in transaction.commands()
            if isinstance(each, Book | Launch | Move | Release)
        ]

    def task(self, name: str = "a") -> LiveTask:
        """Returns a task."""
        return self.memory.workflows["w1"].tasks[name]


def shown(memory: StateTables) -> list[object]:
    """Returns what those who watch the workflow see of it."""
    flow = memory.workflows["w1"]
    return [(one.state, one.start_time, one.booking, one.failures) for one in flow.tasks.values()]


def kinds(commands: list[Command]) -> list[str]:
    """Returns commands as words: what is done for which attempt."""
    found = []
    for each in commands:
        assert isinstance(each, Book | Launch | Move | Release)
        found.append(f"{type(each).__name__} {each.booking.booking}")
    return found


def running(settings: BrokerSettings = SETTINGS, *programs: Program) -> Scene:
    """Returns a scene in which `a` runs since 20 s and `b` is booked behind it."""
    scene = Scene(place("a", 20), place("b", 36), settings=settings, programs=programs)
    scene.at(0)
    scene.at(1, Booked(0, "e-1", ("r1",)))
    scene.at(1, Booked(0, "e-2", ("r2",)))
    (launch,) = scene.at(20)
    assert isinstance(launch, Launch)
    program = programs[0] if programs else None
    assert (launch.program, launch.work, launch.name) == (program, 10, "flow/a")
    scene.at(21, Started(0, "e-1", 20.5))
    return scene


def test_what_starts_within_the_slot_is_fixed_after_what_it_waits_for() -> None:
    """In the words of its sites; what starts later waits for its moment."""
    scene = Scene(place("b", 40), place("a", 20, "alpha", "beta"), place("c", 60))
    commands = scene.at(0)
    assert kinds(commands) == ["Book e-1", "Book e-2"]
    booking = scene.task("a").booking
    assert booking is not None
    assert [(hold.site, hold.resource, hold.units) for hold in booking.holds] == [
        ("riga", "a1", 1), ("", "beta", 1),
    ]  # fmt: skip
    assert (booking.run_time, booking.placement.start) == (10.0, 20)
    assert scene.task("c").state is TaskState.WAITING
    assert scene.execution.next_time == 20.0, "its slot, and the first start"
    assert kinds(scene.at(20)) == ["Book e-3"]


def test_the_slot_ends_where_rounding_does() -> None:
    """What begins then belongs to it."""
    for start, booked in ((40 + SLOT_TOLERANCE, ["Book e-1"]), (40 + 2 * SLOT_TOLERANCE, [])):
        assert kinds(Scene(place("a", start)).at(0)) == booked


def test_what_stands_before_what_it_waits_for_is_fixed_as_well() -> None:
    """In whatever order a workflow names its tasks."""
    scene = Scene(place("a", 20), place("b", 36), order="bac")
    assert kinds(scene.at(0)) == ["Book e-1", "Book e-2"]
    assert [scene.task(name).state for name in "ab"] == [TaskState.BOOKING, TaskState.BOOKING]


def test_nothing_is_fixed_while_a_search_runs_or_what_it_waits_for_is_not() -> None:
    """The plan may change until its end."""
    scene = Scene(place("b", 20))
    assert scene.at(0) == []
    scene = Scene(place("a", 20))
    scene.cycle.running = 2
    assert scene.at(0) == []


@pytest.mark.parametrize("what", ["gone", "broken", "down"])
def test_what_has_lost_its_resource_is_planned_again(what: str) -> None:
    """It is not booked there, and a plan is wanted."""
    scene = Scene(place("a", 60))
    assert scene.at(0) == []
    transaction = Transaction(scene.memory, 1)
    if what == "gone":
        transaction.note(ResourceRemoved(1, "alpha"))
    elif what == "broken":
        transaction.note(ResourceSet(1, replace(ALPHA, broken=True)))
    else:
        scene.execution.down.add("riga")
    assert scene.at(21) == []
    assert scene.task().state is TaskState.WAITING
    assert scene.cycle._wanted == "flow/a has lost its resource"


def test_a_resource_that_has_become_slower_is_held_no_longer_than_planned() -> None:
    """A run takes the time that its work needs there, up to the end of its place."""
    for performance, run_time in ((1.0, 10.0), (0.5, 14.0)):
        scene = Scene(place("a", 20))
        slower = Supply(Resource("alpha", performance=performance), "riga", "a1")
        Transaction(scene.memory, 0).note(ResourceSet(0, slower))
        (book,) = scene.at(0)
        assert isinstance(book, Book)
        assert book.booking.run_time == run_time


def test_a_booking_without_an_answer_is_given_up_at_its_latest_start() -> None:
    """Nothing but time tells of a site that is silent."""
    scene = Scene(place("a", 20))
    scene.at(0)
    assert scene.execution.next_time == math.nextafter(22, math.inf)
    assert scene.at(22) == []
    assert kinds(scene.at(22.1)) == ["Release e-1"]


def test_what_can_be_booked_no_more_in_time_is_booked_later() -> None:
    """The run has to fit into what is left, and half of the margin with it."""
    late = 20 + 14 - 10 - 2
    assert kinds(Scene(place("a", 20)).at(late)) == ["Book e-1"]
    (book,) = Scene(place("a", 20)).at(late + 0.1)
    assert isinstance(book, Book)
    assert (book.booking.placement.start, book.booking.placement.end) == (late + 0.1, late + 14.1)


def test_a_task_is_launched_when_its_time_has_come_and_what_it_waits_for_has_ended() -> None:
    """What is late is moved; where that cannot be, its booking is given up at its latest start."""
    scene = running()
    assert scene.at(30.9) == []
    ended = Ended(0, "e-1", Outcome.COMPLETED, 20.5, 30.5)
    assert scene.at(30.95, ended) == []
    assert kinds(scene.at(36)) == ["Launch e-2"]
    scene = running()
    assert kinds(scene.at(31)) == ["Move e-2"], "its end comes after that"
    assert kinds(scene.at(31.5, Moved(0, "e-2", 44.0, 58.0))) == ["Move e-1"]
    scene = running()
    scene.at(31)
    assert kinds(scene.at(32, MoveRefused(0, "e-2", "it has no other time"))) == ["Release e-2"]
    reason = "is late, or in the way of a longer run, and cannot be moved"
    assert scene.task("b").reason == reason
    assert scene.cycle._wanted == f"flow/b: {reason}"
    scene = Scene(place("a", 20))
    scene.at(0)
    assert kinds(scene.at(22, Booked(0, "e-1", ("r1",)))) == ["Launch e-1"], (
        "half of its margin late"
    )


def test_a_booking_that_is_lost_takes_along_what_waits_for_it() -> None:
    """Its time is avoided where somebody else has it."""
    scene = Scene(place("a", 20, "alpha", "beta"), place("b", 36))
    scene.at(0)
    commands = scene.at(1, BookingLost(0, "e-1", "not free", (1,)))
    assert kinds(commands) == ["Release e-1", "Release e-2"]
    assert scene.task("a").reason == "not free"
    assert scene.task("b").reason == "waits for 'a', which is planned again"
    assert scene.cycle._taken == [Taken("beta", 20, 34)]
    assert scene.at(2, BookingLost(0, "e-1", "not free", (1,))) == []


def test_a_run_that_fails_is_tried_so_often_and_then_its_workflow_is_given_up() -> None:
    """What is booked of it is released; what a site ended by itself does not count."""
    scene = running()
    commands = scene.at(25, Ended(0, "e-1", Outcome.CANCELLED, 20.5, 25.0, "its site"))
    assert kinds(commands) == ["Release e-2"]
    assert (scene.task().state, scene.task().failures) == (TaskState.WAITING, 0)
    scene = running(replace(SETTINGS, runs_max=1))
    commands = scene.at(25, Ended(0, "e-1", Outcome.FAILED, 20.5, 25.0))
    assert kinds(commands) == ["Release e-2"]
    assert scene.task().state is TaskState.FAILED
    assert scene.task("b").reason == "task 'a' has failed"
    scene = running()
    scene.at(25, Ended(0, "e-1", Outcome.FAILED, 20.5, 25.0))
    assert (scene.task().state, scene.task().failures) == (TaskState.WAITING, 1)


def test_what_runs_of_a_workflow_that_has_failed_goes_on() -> None:
    """Only what has not begun is given up with it."""
    scene = Scene(
        place("a", 20), place("c", 20, "beta"), settings=replace(SETTINGS, runs_max=1), order="ac"
    )
    scene.at(0)
    for number in (1, 2):
        scene.at(1, Booked(0, f"e-{number}", (f"r{number}",)))
    scene.at(20)
    assert scene.at(25, Ended(0, "e-1", Outcome.FAILED, 20.5, 25.0)) == []
    assert [scene.task(name).state for name in "ac"] == [TaskState.FAILED, TaskState.LAUNCHED]


def test_a_run_costs_what_its_resources_cost_while_it_ran() -> None:
    """As planned where a resource is gone; nothing where it never started."""
    scene = running()
    scene.at(30, Ended(0, "e-1", Outcome.COMPLETED, None, 30.0))
    placement = scene.task().placement
    assert placement is not None
    assert (placement.start, placement.end, placement.cost) == (20.5, 30.0, 0.5 * 9.5)
    # An end before the start, by a clock that was set back, is no time on the resource.
    scene = running()
    scene.at(30, Ended(0, "e-1", Outcome.COMPLETED, 20.5, 20.0))
    placement = scene.task().placement
    assert placement is not None
    assert placement.cost == 0.0
    scene = running()
    Transaction(scene.memory, 22).note(ResourceRemoved(22, "alpha"))
    scene.at(30, Ended(0, "e-1", Outcome.COMPLETED, 20.5, 30.0))
    placement = scene.task().placement
    assert placement is not None
    assert placement.cost == 7.0


def test_the_second_reservation_of_a_run_is_released_at_its_end() -> None:
    """Its site does not know that the run is over."""
    scene = Scene(place("a", 20, "alpha", "beta"))
    scene.at(0)
    scene.at(1, Booked(0, "e-1", ("r1", "r2")))
    scene.at(20)
    commands = scene.at(30, Ended(0, "e-1", Outcome.COMPLETED, 20.0, 30.0))
    assert kinds(commands) == ["Release e-1"]
    scene.at(31, Released(0, "e-1"))
    assert scene.memory.releasing == {}


def test_a_run_that_is_to_be_ended_is_over_when_its_site_has_released_it() -> None:
    """It is planned again; once is enough."""
    scene = running()
    transaction = Transaction(scene.memory, 22)
    scene.execution.resource_gone("alpha", transaction, "alpha is broken")
    scene.execution.advance(transaction)
    assert kinds(transaction.commands()[1:3]) == ["Release e-1", "Release e-2"]
    assert scene.task().state is TaskState.ENDING
    transaction = Transaction(scene.memory, 22)
    scene.execution.resource_gone("alpha", transaction, "alpha is broken")
    scene.execution.advance(transaction)
    assert transaction.commands() == []
    transaction = Transaction(scene.memory, 23)
    scene.execution.released(Released(0, "e-1"), transaction)
    assert (scene.task().state, scene.task().reason) == (TaskState.WAITING, "alpha is broken")
    assert scene.task().failures == 0
    (append,) = [each for each in transaction.commands() if isinstance(each, Append)]
    (end,) = append.records
    assert isinstance(end, TaskEnded)
    assert (end.start_time, end.end_time, end.cost) == (20.5, 23, 0.5 * 2.5)


def test_nothing_is_begun_of_a_workflow_that_is_given_up() -> None:
    """What has a place in the plan keeps it in vain, and nothing is looked at again."""
    scene = Scene(place("a", 20), place("c", 60))
    assert kinds(scene.at(0)) == ["Book e-1"]
    transaction = Transaction(scene.memory, 1)
    transaction.note(WorkflowCancelled(1, "w1"))
    scene.execution.close(
        scene.memory.workflows["w1"], transaction, running=True, reason="cancelled"
    )
    released = [each for each in transaction.commands() if isinstance(each, Release)]
    assert kinds(list(released)) == ["Release e-1"]
    assert scene.at(2, Released(0, "e-1")) == []
    assert scene.at(20) == []
    assert scene.at(30) == []


def test_a_run_that_is_to_be_ended_is_over_when_it_is_lost() -> None:
    """Its site holds nothing of it any more, and there is nothing to release."""
    scene = running()
    scene.execution.resource_gone("alpha", Transaction(scene.memory, 22), "alpha is broken")
    assert scene.at(23, BookingLost(0, "e-1", "its reservation is expired")) == []
    assert scene.task().state is TaskState.WAITING
    assert scene.task().reason == "its reservation is expired"


def test_a_run_that_is_ended_may_have_its_next_place_already() -> None:
    """It is booked there as soon as its site has let it go."""
    scene = running()
    scene.execution.resource_gone("alpha", Transaction(scene.memory, 22), "alpha is broken")
    scene.memory.apply(PlanAdopted(23, 2, None, (place("a", 50, "beta"),), ()))
    assert kinds(scene.at(24, Released(0, "e-1"))) == ["Book e-3"]


def test_a_run_that_ends_with_its_reservation_was_cut_off() -> None:
    """A moment earlier it failed by itself."""
    for end, reason in (
        (34 - SLOT_TOLERANCE, "it was cut off at the end of its reservation"),
        (33.9, ""),
    ):
        scene = running()
        scene.at(34, Ended(0, "e-1", Outcome.FAILED, 20.5, end))
        assert scene.task().reason == reason


def test_a_run_that_was_ended_before_it_began_costs_nothing() -> None:
    """It has no start either."""
    scene = Scene(place("a", 20))
    scene.at(0)
    scene.at(1, Booked(0, "e-1", ("r1",)))
    scene.at(20)
    transaction = Transaction(scene.memory, 21)
    scene.execution.resource_gone("alpha", transaction, "alpha is broken")
    scene.execution.advance(transaction)
    assert PublishWorkflow("w1") in transaction.commands()
    transaction = Transaction(scene.memory, 22)
    scene.execution.released(Released(0, "e-1"), transaction)
    (append,) = [each for each in transaction.commands() if isinstance(each, Append)]
    (end,) = append.records
    assert isinstance(end, TaskEnded)
    assert (end.start_time, end.cost) == (None, 0.0)


def test_what_a_site_has_can_be_planned_with_again_when_it_is_back() -> None:
    """A silent site that held nothing is wanted all the same; one that was never silent is not."""
    scene = Scene(place("c", 900))
    scene.at(0)
    scene.at(1, SiteUp(0, "riga"))
    assert scene.cycle._wanted == ""
    scene.at(2, SiteDown(0, "riga"))
    scene.at(3, SiteUp(0, "riga"))
    assert scene.cycle._wanted == "site 'riga' is back"


def test_a_resource_that_is_gone_takes_what_is_there_and_no_more() -> None:
    """What is booked there is freed, what runs there ends, and what waits for that has no place."""
    scene = Scene(place("a", 20), place("b", 36, "beta"), place("c", 38))
    scene.at(0)
    for number in (1, 2, 3):
        scene.at(1, Booked(0, f"e-{number}", (f"r{number}",)))
    transaction = Transaction(scene.memory, 2)
    scene.execution.resource_gone("beta", transaction, "beta is broken")
    released = [each for each in transaction.commands() if isinstance(each, Release)]
    assert kinds(list(released)) == ["Release e-2"]
    assert [scene.task(name).state for name in "abc"] == [
        TaskState.BOOKED,
        TaskState.WAITING,
        TaskState.BOOKED,
    ]
    scene = Scene(place("a", 20), place("b", 36, "beta"))
    scene.at(0)
    for number in (1, 2):
        scene.at(1, Booked(0, f"e-{number}", (f"r{number}",)))
    scene.at(20)
    transaction = Transaction(scene.memory, 22)
    scene.execution.resource_gone("alpha", transaction, "alpha is broken")
    scene.execution.advance(transaction)
    assert scene.task().state is TaskState.ENDING
    assert scene.task("b").reason == "waits for 'a', which is planned again"
    assert scene.cycle._wanted == "flow/a: alpha is broken"
    assert PublishWorkflow("w1") in transaction.commands()


def test_a_silent_site_loses_what_is_booked_there_and_keeps_what_runs() -> None:
    """Once; when it is back everything is looked at again."""
    scene = running()
    assert kinds(scene.at(22, SiteDown(0, "riga"))) == ["Release e-2"]
    assert scene.at(22, SiteDown(0, "riga")) == []
    assert scene.task().state is TaskState.RUNNING
    assert scene.cycle._urgent == "site 'riga' does not answer"
    scene.cycle._urgent = ""
    scene.at(22, SiteDown(0, "riga"))
    assert scene.cycle._urgent == ""
    assert scene.at(23, SiteLost(0, "riga")) == []
    transaction = Transaction(scene.memory, 24)
    scene.execution.site_up(SiteUp(0, "riga"), transaction)
    assert scene.execution.next_time < 0
    assert scene.execution.down == set()
    scene = running(replace(SETTINGS, on_lost="rerun"))
    scene.at(22, SiteDown(0, "riga"))
    assert scene.at(23, SiteLost(0, "elsewhere")) == []
    assert kinds(scene.at(23, SiteLost(0, "riga"))) == ["Release e-1"]
    assert (scene.task().state, scene.task().reason) == (TaskState.WAITING, "site 'riga' is lost")


def test_after_a_restart_everything_open_is_asked_for_again() -> None:
    """In order: bookings, launches of what runs, releases of what is given up."""
    scene = running()
    transaction = Transaction(scene.memory, 30)
    execution = TaskExecution(scene.memory, SETTINGS, scene.cycle, "e")
    execution.take_up(Restarted(0), transaction)
    again = [
        each for each in transaction.commands() if isinstance(each, Book | Launch | Move | Release)
    ]
    assert kinds(list(again)) == ["Book e-1", "Launch e-1", "Book e-2"]
    launch = again[1]
    assert isinstance(launch, Launch)
    assert launch.started == 20.5
    assert scene.cycle._urgent == "the broker has begun to work"
    execution.resource_gone("alpha", transaction, "broken")
    transaction = Transaction(scene.memory, 31)
    execution.take_up(Restarted(0), transaction)
    again = [
        each for each in transaction.commands() if isinstance(each, Book | Launch | Move | Release)
    ]
    assert kinds(list(again)) == ["Book e-1", "Launch e-1", "Release e-1", "Release e-2"]


def test_a_start_is_noted_once() -> None:
    """And only of what runs."""
    scene = running()
    scene.at(22, Started(0, "e-1", 21.9))
    scene.at(22, Started(0, "e-2", 21.9))
    assert scene.task().start_time == 20.5
    assert scene.task("b").start_time is None


SCRIPT = "#!/bin/sh\n"
MAKER = Program("a", SCRIPT, outputs=("x",)).limited(10.0)
USER = Program("b", SCRIPT, inputs=(Input("in", task="a", output="x"),)).limited(10.0)
LEFT = Output("x", 3, bytes(32))


def failed(code: int | None = 3, outcome: Outcome = Outcome.FAILED) -> Ended:
    """Returns the end of the program of `a`."""
    return Ended(0, "e-1", outcome, 20.5, 25.0, exit_code=code)


def test_a_program_that_fails_is_not_run_again() -> None:
    """Its workflow has failed, and what it returned is known; it is never run again by itself."""
    scene = running(SETTINGS, MAKER)
    assert kinds(scene.at(25, failed())) == ["Release e-2"]
    task = scene.task()
    assert (task.state, task.outcome, task.exit_code) == (TaskState.FAILED, Outcome.FAILED, 3)
    assert task.reason == "it has ended with exit code 3"
    assert task.run == Run("riga", "r1")
    assert scene.task("b").state is TaskState.CANCELLED


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (failed(75), TaskState.WAITING),
        (failed(3), TaskState.FAILED),
        (failed(None, Outcome.NODE_FAIL), TaskState.WAITING),
        (failed(None, Outcome.TIMEOUT), TaskState.FAILED),
        (failed(None, Outcome.CANCELLED), TaskState.FAILED),
        (failed(None, Outcome.UNKNOWN), TaskState.FAILED),
    ],
)
def test_a_program_is_run_again_where_that_was_asked_for(event: Ended, state: TaskState) -> None:
    """After these exit codes and ends, and no others."""
    rerun = Rerun(2, (75,), ("node_fail",))
    scene = running(SETTINGS, replace(MAKER, rerun=rerun))
    scene.at(25, event)
    assert (scene.task().state, scene.task().failures) == (state, 1)


def test_a_program_is_given_what_its_predecessor_has_left() -> None:
    """As a content; that predecessor knows which of its outputs others are given."""
    scene = running(SETTINGS, MAKER, USER)
    scene.at(25, Ended(0, "e-1", Outcome.COMPLETED, 20.5, 25.0, exit_code=0, outputs=(LEFT,)))
    (launch,) = scene.at(36)
    assert isinstance(launch, Launch)
    assert launch.inputs == (Input("in", 3, bytes(32)),)
    assert launch.needed == frozenset()
    scene = Scene(place("a", 20), programs=(MAKER, USER))
    scene.at(0)
    scene.at(1, Booked(0, "e-1", ("r1",)))
    (launch,) = scene.at(20)
    assert isinstance(launch, Launch)
    assert launch.needed == {"x"}


def test_who_is_given_files_of_a_simulated_task_is_simulated() -> None:
    """There are none."""
    scene = running(SETTINGS, MAKER, USER)
    scene.at(25, Ended(0, "e-1", Outcome.NOT_RUN, 20.5, 25.0))
    (launch,) = scene.at(36)
    assert isinstance(launch, Launch)
    assert (launch.program, launch.inputs) == (None, ())


def test_a_program_goes_on_where_its_resource_is_gone() -> None:
    """It is run once; what is booked there is given up."""
    scene = running(SETTINGS, MAKER)
    transaction = Transaction(scene.memory, 22)
    scene.execution.resource_gone("alpha", transaction, "broken")
    assert kinds([each for each in transaction.commands() if isinstance(each, Release)]) == [
        "Release e-2"
    ]
    assert scene.task().state is TaskState.RUNNING


def test_a_program_at_a_lost_site_is_waited_for() -> None:
    """Unless the task itself asks for another run then."""
    lost = replace(SETTINGS, on_lost="rerun")
    scene = running(lost, MAKER)
    scene.at(22, SiteDown(0, "riga"))
    assert scene.at(23, SiteLost(0, "riga")) == []
    assert scene.task().state is TaskState.RUNNING
    scene = running(lost, replace(MAKER, rerun=Rerun(2, outcomes=("lost",))))
    scene.at(22, SiteDown(0, "riga"))
    assert kinds(scene.at(23, SiteLost(0, "riga"))) == ["Release e-1"]


def test_what_a_site_calls_a_run_is_known_after_a_restart() -> None:
    """It is told once, and goes with the launch that is asked for again."""
    scene = running(SETTINGS, MAKER)
    scene.at(22, HandedOver(0, "e-1", "north-7"))
    transaction = Transaction(scene.memory, 23)
    scene.execution.handed_over(HandedOver(0, "e-1", "north-7"), transaction)
    scene.execution.handed_over(HandedOver(0, "e-9", "north-9"), transaction)
    assert transaction.commands() == []
    assert scene.task().run == Run("riga", "r1", "north-7")
    execution = TaskExecution(scene.memory, SETTINGS, scene.cycle, "e")
    execution.take_up(Restarted(0), transaction)
    launches = [each for each in transaction.commands() if isinstance(each, Launch)]
    assert [each.booking.job for each in launches] == ["north-7"]


def hindered(program: Program = MAKER) -> Scene:
    """Returns a scene in which `a` is launched at 20 s, and its site says at 22 s why it does not begin it."""
    scene = Scene(place("a", 20), programs=(program,))
    scene.at(0)
    scene.at(1, Booked(0, "e-1", ("r1",)))
    scene.at(20)
    scene.at(22, Hindered(0, "e-1", "main is closed"))
    return scene


def test_what_its_site_does_not_begin_says_why() -> None:
    """Until it has begun, or nothing hinders it any more; those who watch are told."""
    scene = hindered()
    told = write_live(scene.memory.workflows["w1"])
    assert told.reason == "task 'a': main is closed"
    assert [each.reason for each in told.tasks] == ["main is closed", "", ""]
    transaction = Transaction(scene.memory, 23)
    scene.execution.hindered(Hindered(0, "e-1", "main is closed"), transaction)
    scene.execution.hindered(Hindered(0, "e-9", "main is closed"), transaction)
    assert transaction.commands() == []
    scene.execution.hindered(Hindered(0, "e-1", "main is down"), transaction)
    assert PublishWorkflow("w1") in transaction.commands()
    assert (scene.task().reason, since(scene)) == ("main is down", 22.0)
    scene.at(24, Hindered(0, "e-1", ""))
    assert (scene.task().reason, since(scene)) == ("", None)
    scene.at(25, Hindered(0, "e-1", "main is closed"))
    scene.at(26, Started(0, "e-1", 25.5))
    scene.at(27, Hindered(0, "e-1", "main is closed"))  # which comes late
    assert (scene.task().state, scene.task().reason) == (TaskState.RUNNING, "")


def since(scene: Scene) -> float | None:
    """Returns since when the site does not begin `a`."""
    booking = scene.task().booking
    assert booking is not None
    return booking.hindered_since


def test_what_its_site_does_not_begin_for_long_goes_elsewhere() -> None:
    """It is taken back first, and planned there again no more."""
    scene = hindered()
    scene.at(621.9)
    assert scene.task().state is TaskState.LAUNCHED
    assert kinds(scene.at(622)) == ["Release e-1"]
    task = scene.task()
    assert task.state is TaskState.ENDING
    assert task.reason == "alpha does not begin it: main is closed"
    assert [each.primary for each in task.task.alternatives] == ["beta"]
    scene.at(623, Ended(0, "e-1", Outcome.CANCELLED, None, 623.0, "cancelled"))
    assert (task.state, task.runs, task.failures) == (TaskState.WAITING, 0, 0)


def test_what_is_hindered_everywhere_waits_at_the_last() -> None:
    """There is nothing else that can run it."""
    scene = hindered()
    scene.memory.apply(TaskRefused(22.0, "e-1", "beta"))
    scene.at(10_000)
    assert (scene.task().state, scene.task().reason) == (TaskState.LAUNCHED, "main is closed")


@pytest.mark.parametrize(
    ("rerun", "state"),
    [
        (Rerun(), TaskState.FAILED),
        (Rerun(2, outcomes=("cancelled",)), TaskState.WAITING),
    ],
)
def test_what_begins_while_it_is_taken_back_has_run(rerun: Rerun, state: TaskState) -> None:
    """Nobody runs it a second time without its own rule; what had completed by then has completed."""
    for outcome, then in ((Outcome.CANCELLED, state), (Outcome.COMPLETED, TaskState.COMPLETED)):
        scene = hindered(replace(MAKER, rerun=rerun))
        scene.at(622)
        scene.at(623, Ended(0, "e-1", outcome, 622.0, 623.0, exit_code=0))
        assert (scene.task().state, scene.task().runs) == (then, 1)
        because = "it began while it was taken back (alpha does not begin it: main is closed)"
        assert (scene.task().reason == because) is (then is TaskState.FAILED)


def test_what_runs_no_program_is_a_job_of_its_site_too() -> None:
    """As where a recording is submitted and ordinary jobs keep its time: the job is known after a restart."""
    scene = running(SETTINGS)
    scene.at(22, HandedOver(0, "e-1", "north-7"))
    assert scene.task().run is None
    transaction = Transaction(scene.memory, 23)
    execution = TaskExecution(scene.memory, SETTINGS, scene.cycle, "e")
    execution.take_up(Restarted(0), transaction)
    launches = [each for each in transaction.commands() if isinstance(each, Launch)]
    assert [each.booking.job for each in launches] == ["north-7"]


def test_a_program_that_fails_after_its_workflow_has_failed() -> None:
    """Says so, too: it was run."""
    other = Program("c", SCRIPT).limited(10.0)
    scene = Scene(place("a", 20), place("c", 20, "beta"), programs=(MAKER, other))
    scene.at(0)
    for name in ("e-1", "e-2"):
        scene.at(1, Booked(0, name, (f"r-{name}",)))
    scene.at(20)
    scene.at(25, failed())
    scene.at(26, Ended(0, "e-2", Outcome.FAILED, 20.5, 26.0, exit_code=4))
    assert (scene.task("c").state, scene.task("c").exit_code) == (TaskState.FAILED, 4)
    assert scene.memory.workflows["w1"].state is WorkflowState.FAILED


@pytest.mark.parametrize(
    ("events", "runs"),
    [
        ((Ended(0, "e-1", Outcome.FAILED, None, 21.0, "no node runs it"),), 0),
        ((Ended(0, "e-1", Outcome.CANCELLED, None, 21.0),), 0),
        ((BookingLost(0, "e-1", "its site refuses it"),), 0),
        ((Ended(0, "e-1", Outcome.UNKNOWN, None, 21.0, "it may have run"),), 1),
        ((Ended(0, "e-1", Outcome.FAILED, 20.5, 21.0),), 1),
        ((Started(0, "e-1", 20.5), Ended(0, "e-1", Outcome.FAILED, None, 21.0)), 1),
        ((Started(0, "e-1", 20.5), BookingLost(0, "e-1", "its site is gone")), 1),
    ],
)
def test_only_what_has_begun_is_a_run(
    events: tuple[Ended | Started | BookingLost, ...], runs: int
) -> None:
    """As far as its site says; where that does not know it, it may have begun."""
    scene = Scene(place("a", 20), programs=(MAKER,))
    scene.at(0)
    scene.at(1, Booked(0, "e-1", ("r1",)))
    scene.at(20)
    assert scene.task().runs == 1
    for event in events:
        scene.at(21, event)
    assert (scene.task().booking, scene.task().runs) == (None, runs)


def test_a_program_that_a_site_can_never_run_is_planned_elsewhere() -> None:
    """Where its alternatives have another resource; else it has failed, and says why."""
    scene = Scene(place("a", 20), programs=(MAKER,))
    scene.at(0)
    scene.at(1, Booked(0, "e-1", ("r1",)))
    scene.at(20)
    assert kinds(scene.at(21, Refused(0, "e-1", "too wide"))) == ["Release e-1"]
    task = scene.task()
    assert (task.state, task.reason, task.failures) == (TaskState.WAITING, "too wide", 0)
    assert [each.primary for each in task.task.alternatives] == ["beta"]
    assert scene.memory.workflows["w1"].planned.tasks[0] == task.task
    task.placement = place("a", 40, "beta")
    scene.at(30)
    scene.at(31, Booked(0, "e-2", ("r2",)))
    scene.at(40)
    assert kinds(scene.at(41, Refused(0, "e-2", "too wide here, too"))) == ["Release e-2"]
    assert (task.state, task.reason) == (TaskState.FAILED, "too wide here, too")
    assert task.runs == 0
    assert scene.at(42, Refused(0, "e-2", "again")) == []
