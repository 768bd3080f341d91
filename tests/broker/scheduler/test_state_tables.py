"""What records make a broker remember, one kind after the other."""

import math
from dataclasses import replace

import pytest

from broker.model.plan import Placement
from broker.model.program import Program
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.scheduler.invariants import check
from broker.scheduler.lifecycle import IllegalMove, TaskState, WorkflowState
from broker.scheduler.records import (
    BookingReleased,
    Counted,
    Hold,
    PlanAdopted,
    Record,
    ResourceRemoved,
    ResourceSet,
    Supply,
    TaskBooked,
    TaskEnded,
    TaskEnding,
    TaskFixed,
    TaskFreed,
    TaskLaunched,
    TaskMoved,
    TaskMoving,
    TaskStarted,
    WorkflowCancelled,
    WorkflowForgotten,
    WorkflowSubmitted,
)
from broker.scheduler.state_tables import Booking, LiveTask, StateTables

PROGRAM = Program("a", "#!/bin/sh\n").limited(1.0)

BOTH = (Alternative.of("alpha", "beta"),)


def flow(name: str = "flow") -> Workflow:
    """Returns a workflow of three tasks, the second of which waits for the first."""
    return Workflow(name, (Task("a", 10, BOTH), Task("b", 10, BOTH, ("a",)), Task("c", 10, BOTH)))


def place(task: str = "a", start: float = 20, cost: float = 3.0) -> Placement:
    """Returns a placement of 12 s on two resources."""
    return Placement("flow", task, (Demand("alpha"), Demand("beta")), start, start + 12, cost)


def fixed(task: str = "a", booking: str = "b-1", holds: int = 2) -> TaskFixed:
    """Returns the record that gives a task its final place, at so many sites."""
    where = tuple(Hold(f"site{number}", "x", 1) for number in range(holds))
    return TaskFixed(10, "w1", task, booking, place(task), where, 10.0)


def ended(state: TaskState, *, counted: bool = False, start: float | None = 21.0) -> TaskEnded:
    """Returns the record of a run's end."""
    return TaskEnded(31, "b-1", state, counted, start, 30.0, 2.5, "why")


def after(*records: Record) -> StateTables:
    """Returns a memory with a workflow, after some records."""
    memory = StateTables([WorkflowSubmitted(1, "w1", "key", flow(), (PROGRAM,))])
    for record in records:
        memory.apply(record)
    check(memory)
    return memory


RUN = (fixed(), TaskBooked(11, "b-1", ("r1", "r2")), TaskLaunched(20, "b-1"))


def where(memory: StateTables) -> tuple[str, float | None, int]:
    """Returns the state of the workflow, when it ended, and how many have not ended."""
    workflow = memory.workflows["w1"]
    return workflow.state.value, workflow.end_time, len(memory.live)


def task_of(memory: StateTables, name: str = "a") -> LiveTask:
    """Returns a task."""
    return memory.workflows["w1"].tasks[name]


def test_a_workflow_is_known_by_id_name_and_key() -> None:
    """With its programs, its graph both ways, and as live as long as it has not ended."""
    memory = after()
    known = memory.workflows["w1"]
    assert memory.live == {"flow": known}
    assert memory.by_key == {"key": known}
    assert (known.submit_time, known.state, known.revision) == (1, WorkflowState.ACCEPTED, 1)
    assert known.programs == {"a": PROGRAM}
    a, b, c = known.tasks.values()
    assert (a.successors, b.predecessors, c.predecessors) == ([b], [a], [])
    assert (a.name, memory.tasks_open, list(memory.tasks())) == ("flow/a", 3, [a, b, c])
    assert (memory.workflows_count, memory.latest) == (1, 1)


def test_names_are_never_given_twice() -> None:
    """What was forgotten counts, too; counters never go back."""
    memory = after(Counted(5, 70, 900))
    memory.apply(Counted(4, 7, 9))
    assert (memory.workflows_count, memory.bookings_count, memory.latest) == (70, 900, 5)
    memory.apply(WorkflowSubmitted(6, "w12", "k2", flow("other"), ()))
    memory.apply(fixed(booking="e-17-12"))
    assert (memory.workflows_count, memory.bookings_count) == (70, 900)
    memory.apply(fixed("c", "e-17-901"))
    memory.apply(WorkflowSubmitted(6, "w71", "k3", flow("third"), ()))
    assert (memory.workflows_count, memory.bookings_count) == (71, 901)


def test_resources_are_set_replaced_and_removed() -> None:
    """By their names."""
    first, second = Supply(Resource("alpha")), Supply(Resource("alpha"), broken=True)
    memory = StateTables([ResourceSet(0, first)])
    assert memory.supplies == {"alpha": first}
    memory.apply(ResourceSet(1, second))
    assert memory.supplies == {"alpha": second}
    memory.apply(ResourceRemoved(2, "alpha"))
    assert memory.supplies == {}
    with pytest.raises(KeyError):
        memory.apply(ResourceRemoved(2, "alpha"))


def test_a_plan_gives_places_and_reasons_to_what_is_to_be_planned() -> None:
    """And takes the places away from what it does not have; others keep theirs."""
    adopted = PlanAdopted(9, 4, 7.5, (place("b", 40), place("c", 60)), ())
    memory = after(fixed(), adopted)
    assert memory.plan is adopted
    assert [task_of(memory, name).placement for name in "abc"] == [
        place("a"), place("b", 40), place("c", 60),
    ]  # fmt: skip
    assert memory.live["flow"].revision == 3
    memory.apply(PlanAdopted(10, 5, None, (place("c", 70),), (("flow", "b", "no way"),)))
    assert [task_of(memory, name).placement for name in "abc"] == [place("a"), None, place("c", 70)]
    assert [task_of(memory, name).reason for name in "abc"] == ["", "no way", ""]


def test_a_booking_goes_from_fixed_to_launched() -> None:
    """Each step leaves what it says; the start is told once or before the launch is answered."""
    memory = after(PlanAdopted(9, 1, 1.0, (), (("flow", "a", "old reason"),)), fixed())
    task = task_of(memory)
    assert (task.state, task.placement, task.reason) == (TaskState.BOOKING, place(), "")
    assert memory.booked == {"b-1": task}
    assert task.booking == Booking("b-1", place(), fixed().holds, 10.0)
    assert where(memory) == ("accepted", None, 1)
    memory.apply(TaskBooked(11, "b-1", ("r1", "r2")))
    assert (task.state, task.booking.reservations) == (TaskState.BOOKED, ("r1", "r2"))
    memory.apply(TaskLaunched(20, "b-1"))
    assert (task.state, task.runs, task.start_time) == (TaskState.LAUNCHED, 1, None)
    assert where(memory) == ("running", None, 1)
    memory.apply(TaskStarted(21, "b-1", 20.5))
    assert (task.state, task.start_time) == (TaskState.RUNNING, 20.5)
    check(memory)


def test_a_start_that_is_told_while_a_run_is_ended_is_kept() -> None:
    """It goes on being ended."""
    memory = after(*RUN, TaskEnding(22, "b-1", "broken"), TaskStarted(23, "b-1", 20.5))
    task = task_of(memory)
    assert (task.state, task.reason, task.start_time) == (TaskState.ENDING, "broken", 20.5)
    assert task.plannable


def test_what_may_be_planned() -> None:
    """What waits, and what is being ended unless its workflow is given up."""
    memory = after(*RUN)
    assert [task_of(memory, name).plannable for name in "abc"] == [False, True, True]
    memory.apply(TaskEnding(22, "b-1", ""))
    assert task_of(memory).plannable
    memory.apply(WorkflowCancelled(23, "w1"))
    assert [task_of(memory, name).plannable for name in "abc"] == [False, False, False]


def test_a_booking_knows_its_latest_start_and_its_sites() -> None:
    """A run that is as long as its reservation, or longer by rounding, starts at its beginning."""
    holds = (Hold("riga", "x", 1), Hold("luebeck", "y", 2))
    assert Booking("b", place(), holds, 10.0).latest_start == 22.0
    assert Booking("b", place(), holds, 12.5).latest_start == 20.0
    assert Booking("b", place(), holds, 10.0).sites == {"riga", "luebeck"}


def test_a_booking_that_is_given_up_is_released_and_its_task_waits() -> None:
    """With the reason; a place that a plan has found meanwhile stays."""
    memory = after(fixed(), TaskFreed(12, "b-1", "refused"))
    task = task_of(memory)
    assert (task.state, task.reason, task.booking) == (TaskState.WAITING, "refused", None)
    assert (task.placement, task.start_time) == (None, None)
    assert list(memory.releasing) == ["b-1"]
    assert memory.booked == {}
    memory.apply(BookingReleased(13, "b-1"))
    assert memory.releasing == {}
    moved = PlanAdopted(23, 2, 1.0, (place("a", 90),), ())
    memory = after(*RUN, TaskEnding(22, "b-1", ""), moved, TaskFreed(24, "b-1", "lost"))
    assert task_of(memory).placement == place("a", 90)


@pytest.mark.parametrize(("holds", "kept"), [(1, []), (2, ["b-1"])])
def test_a_run_s_end_leaves_its_other_reservations_to_be_released(
    holds: int, kept: list[str]
) -> None:
    """The site of the first knows that it is over, that of the second does not."""
    memory = after(fixed(holds=holds), *RUN[1:], ended(TaskState.COMPLETED))
    assert list(memory.releasing) == kept
    assert memory.booked == {}


def test_the_end_of_a_run_is_where_and_when_it_was() -> None:
    """With its true times and cost, whatever was planned."""
    memory = after(*RUN, ended(TaskState.COMPLETED))
    task = task_of(memory)
    assert (task.state, task.start_time, task.end_time) == (TaskState.COMPLETED, 21.0, 30.0)
    assert task.placement == Placement("flow", "a", place().demands, 21.0, 30.0, 2.5)
    assert (task.reason, task.failures, task.has_ended) == ("why", 0, True)
    assert not memory.live["flow"].failed


def test_a_run_that_ends_was_where_it_was_booked() -> None:
    """Though a plan has found its task another place while it was being ended."""
    memory = after(*RUN, TaskEnding(25, "b-1", "broken"))
    other = Placement("flow", "a", (Demand("gamma"),), 90.0, 102.0, 1.0)
    memory.apply(PlanAdopted(26, 1, None, (other,), ()))
    assert task_of(memory).placement == other
    memory.apply(ended(TaskState.COMPLETED))
    assert task_of(memory).placement == Placement("flow", "a", place().demands, 21.0, 30.0, 2.5)


def test_a_workflow_that_says_no_earliest_start_has_that_of_its_submission() -> None:
    """One that says one keeps it."""
    for said, planned in ((-math.inf, 1.0), (5.0, 5.0)):
        workflow = replace(flow(), earliest_start=said)
        known = StateTables([WorkflowSubmitted(1, "w1", "key", workflow, ())]).workflows["w1"]
        assert known.planned == replace(workflow, earliest_start=planned)


def test_a_run_that_is_tried_again_leaves_no_times() -> None:
    """It counts where it is said to."""
    for counted in (True, False):
        memory = after(*RUN, ended(TaskState.WAITING, counted=counted))
        task = task_of(memory)
        assert (task.state, task.placement, task.end_time) == (TaskState.WAITING, None, None)
        assert (task.failures, task.start_time, task.runs) == (int(counted), None, 1)


def test_a_task_that_has_failed_fails_its_workflow_when_nothing_runs_any_more() -> None:
    """What waits is cancelled; what runs is waited for."""
    other = (fixed("c", "b-2"), TaskBooked(11, "b-2", ("r3",)), TaskLaunched(20, "b-2"))
    memory = after(*RUN, *other, ended(TaskState.FAILED, counted=True))
    workflow = memory.workflows["w1"]
    assert (workflow.failed, workflow.state) == (True, WorkflowState.FAILING)
    assert [task.state.value for task in workflow.tasks.values()] == [
        "failed", "cancelled", "launched",
    ]  # fmt: skip
    assert workflow.end_time is None
    memory.apply(TaskEnded(50, "b-2", TaskState.COMPLETED, False, 20, 49, 1.0, ""))
    assert where(memory) == ("failed", 50, 0)
    check(memory)


def test_a_cancelled_workflow_ends_with_its_last_run() -> None:
    """A task without a start has no times; places of what waited are gone."""
    memory = after(PlanAdopted(9, 1, 1.0, (place("c", 60),), ()), *RUN, WorkflowCancelled(22, "w1"))
    workflow = memory.workflows["w1"]
    assert (workflow.cancelled, workflow.state) == (True, WorkflowState.CANCELLING)
    assert task_of(memory, "c").placement is None
    memory.apply(ended(TaskState.CANCELLED, start=None))
    assert (workflow.state, workflow.has_ended, memory.live) == (WorkflowState.CANCELLED, True, {})
    assert (task_of(memory).end_time, task_of(memory).placement) == (None, None)
    memory.apply(WorkflowForgotten(40, "w1"))
    assert (memory.workflows, memory.by_key) == ({}, {})


def test_a_workflow_whose_tasks_have_all_ended_well_is_completed() -> None:
    """Also where its end was asked for meanwhile."""
    records: list[Record] = []
    for number, name in enumerate("abc", 1):
        booking = f"b-{number}"
        records += [
            fixed(name, booking, 1), TaskBooked(11, booking, ("r",)), TaskLaunched(20, booking),
        ]  # fmt: skip
        if name == "c":
            records.append(WorkflowCancelled(30, "w1"))
        records.append(TaskEnded(31, booking, TaskState.COMPLETED, False, 20, 30, 1.0, ""))
    memory = after(*records)
    workflow = memory.workflows["w1"]
    assert (workflow.state, workflow.end_time) == (WorkflowState.COMPLETED, 31)
    assert memory.live == {}


def test_a_move_takes_the_place_along() -> None:
    """Unless a plan has another place for the task, as it is being ended."""
    memory = after(*RUN, TaskMoving(29, "b-1", 20.0, 40.0))
    task = task_of(memory)
    booking = task.booking
    assert booking is not None
    assert (booking.moving, booking.begin, booking.end) == ((20.0, 40.0), 20.0, 40.0)
    assert (booking.placement.end, booking.extended) == (32.0, 0.0)
    memory.apply(TaskMoved(30, "b-1", 20.0, 40.0))
    memory.apply(TaskMoved(31, "b-1", 20.0, 45.0))
    assert (booking.moving, booking.placement.end, booking.extended) == (None, 45.0, 13.0)
    assert task.placement == booking.placement
    memory.apply(TaskMoved(32, "b-1", 15.0, 40.0))
    assert (booking.begin, booking.extended) == (15.0, 13.0), "no longer than before"
    moved = PlanAdopted(23, 2, 1.0, (place("a", 90),), ())
    memory = after(*RUN, TaskEnding(22, "b-1", ""), moved, TaskMoved(24, "b-1", 20.0, 40.0))
    assert task_of(memory).placement == place("a", 90)


def test_records_that_contradict_are_an_error() -> None:
    """Of a booking that is not there, or a move that is not allowed."""
    with pytest.raises(KeyError):
        after(TaskBooked(1, "b-9", ()))
    with pytest.raises(KeyError):
        after(BookingReleased(1, "b-9"))
    with pytest.raises(IllegalMove, match="flow/a is BOOKING and cannot become LAUNCHED"):
        after(fixed(), TaskLaunched(11, "b-1"))


def test_an_empty_memory_knows_no_time() -> None:
    """Every clock is later than that."""
    assert StateTables().latest == -math.inf
    assert StateTables().tasks_open == 0
