"""The states of workflows and tasks, and their transitions.

Every change of a state goes through `legal`, and the documentation's tables come from here; a
transition that is not listed is an error of this program.

A task may return to its beginning any number of times (a reservation is refused, a resource breaks,
a site vanishes): it is planned again and never lost. It ends COMPLETED, its program was run;
SIMULATED, its time was kept and nothing was run; FAILED, after as many failures as configured; or
CANCELLED, with its workflow or with a predecessor that has failed.
"""

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

State = TypeVar("State", bound=Enum)


class WorkflowState(Enum):
    """State of a workflow; the wire has the same names."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    FAILING = "failing"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    SIMULATED = "simulated"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskState(Enum):
    """State of a task; the wire has the same names."""

    WAITING = "waiting"
    BOOKING = "booking"
    BOOKED = "booked"
    LAUNCHED = "launched"
    RUNNING = "running"
    ENDING = "ending"
    COMPLETED = "completed"
    SIMULATED = "simulated"
    FAILED = "failed"
    CANCELLED = "cancelled"


WORKFLOW_MOVES: Mapping[WorkflowState, Mapping[WorkflowState, str]] = {
    WorkflowState.ACCEPTED: {
        WorkflowState.RUNNING: "a task is launched",
        WorkflowState.CANCELLING: "cancelled while reservations are held",
        WorkflowState.CANCELLED: "cancelled",
        WorkflowState.COMPLETED: "closed, and no task was added",
    },
    WorkflowState.RUNNING: {
        WorkflowState.FAILING: "a task has failed for good, others run or may still begin",
        WorkflowState.CANCELLING: "cancelled while tasks run",
        WorkflowState.COMPLETED: "its last task has ended",
        WorkflowState.SIMULATED: "its last task has ended, and not every program was run",
        WorkflowState.FAILED: "a task has failed for good",
        WorkflowState.CANCELLED: "cancelled while no task runs",
    },
    WorkflowState.FAILING: {
        WorkflowState.CANCELLING: "cancelled while tasks run",
        WorkflowState.CANCELLED: "cancelled while no task runs",
        WorkflowState.FAILED: "its last task has ended",
    },
    WorkflowState.CANCELLING: {
        WorkflowState.CANCELLED: "what ran has ended",
        WorkflowState.COMPLETED: "its last task was quicker",
        WorkflowState.SIMULATED: "its last task was quicker, and not every program was run",
    },
    WorkflowState.COMPLETED: {},
    WorkflowState.SIMULATED: {},
    WorkflowState.FAILED: {},
    WorkflowState.CANCELLED: {},
}
TASK_MOVES: Mapping[TaskState, Mapping[TaskState, str]] = {
    TaskState.WAITING: {
        TaskState.BOOKING: "its start lies within the planning slot",
        TaskState.CANCELLED: "its workflow is cancelled or has failed, or a predecessor has",
    },
    TaskState.BOOKING: {
        TaskState.BOOKED: "every resource is reserved",
        TaskState.WAITING: "refused, too late, its resource or site is gone, or a predecessor's is",
        TaskState.CANCELLED: "its workflow is cancelled or has failed, or a predecessor has",
    },
    TaskState.BOOKED: {
        TaskState.LAUNCHED: "its time has come and its predecessors have ended",
        TaskState.WAITING: "too late, its resource or site is gone, or a predecessor's is",
        TaskState.CANCELLED: "its workflow is cancelled or has failed, or a predecessor has",
    },
    TaskState.LAUNCHED: {
        TaskState.RUNNING: "started",
        TaskState.COMPLETED: "ended before its start was reported",
        TaskState.SIMULATED: "its time is over before its start was reported, nothing was run",
        TaskState.FAILED: "failed once too often before its start was reported",
        TaskState.WAITING: "refused, failed, or its site is lost",
        TaskState.ENDING: "its workflow is cancelled, its resource is broken, or its site does not begin it",
        TaskState.CANCELLED: "ended while its workflow is given up",
    },
    TaskState.RUNNING: {
        TaskState.COMPLETED: "ended",
        TaskState.SIMULATED: "its time is over, nothing was run",
        TaskState.FAILED: "failed once too often",
        TaskState.WAITING: "failed, ended by its site, or its site is lost",
        TaskState.ENDING: "its workflow is cancelled or its resource is broken",
        TaskState.CANCELLED: "ended while its workflow is given up",
    },
    TaskState.ENDING: {
        TaskState.COMPLETED: "it was quicker",
        TaskState.SIMULATED: "it was quicker, nothing was run",
        TaskState.FAILED: "it began while it was taken back, and is not run again",
        TaskState.WAITING: "its run is over, it is planned again",
        TaskState.CANCELLED: "its run is over, as its workflow is",
    },
    TaskState.COMPLETED: {},
    TaskState.SIMULATED: {},
    TaskState.FAILED: {},
    TaskState.CANCELLED: {},
}
DONE = frozenset({TaskState.COMPLETED, TaskState.SIMULATED})
"""Its successors may begin."""

TASK_ENDS = DONE | {TaskState.FAILED, TaskState.CANCELLED}
WORKFLOW_ENDS = frozenset(
    {
        WorkflowState.COMPLETED,
        WorkflowState.SIMULATED,
        WorkflowState.FAILED,
        WorkflowState.CANCELLED,
    }
)
HELD = frozenset({TaskState.BOOKING, TaskState.BOOKED})
"""Fixed, but not handed to a site."""

AT_SITE = frozenset({TaskState.LAUNCHED, TaskState.RUNNING, TaskState.ENDING})
"""A run of it may be going on."""


class IllegalMove(Exception):  # noqa: N818  # named for what it says, as the states are
    """A state was to follow one that it may not follow: an error of this program."""


def legal(
    moves: Mapping[State, Mapping[State, str]], name: str, before: State, after: State
) -> State:
    """Returns the state that follows; `IllegalMove` if it may not."""
    if after not in moves[before]:
        raise IllegalMove(f"{name} is {before.name} and cannot become {after.name}")
    return after
