"""What the broker's journal holds: facts, each with its moment.

The state after a restart is what comes of applying all records in order; `broker.core.memory` says how.
"""

from dataclasses import dataclass

from broker.core.lifecycle import TaskState
from broker.model.plan import Placement
from broker.model.resources import Resource
from broker.model.workflow import Demand, Workflow


@dataclass(frozen=True, slots=True)
class Program:
    """What a task runs on a real batch system.

    Attributes:
        task: its name.
        content: a serialized `grms.v1.Program`; handed on as it is.
    """

    task: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Supply:
    """A resource and where it is.

    Attributes:
        resource: what is planned with.
        site: the site that has it; empty for the simulated launcher.
        site_resource: its name there.
        broken: nothing can run on it.
        requires: what tasks hold together with it, which may require more in its turn; counted in
            by whoever hands in a workflow.
    """

    resource: Resource
    site: str = ""
    site_resource: str = ""
    broken: bool = False
    requires: tuple[Demand, ...] = ()

    @property
    def name(self) -> str:
        """The resource's name."""
        return self.resource.name


@dataclass(frozen=True, slots=True)
class Hold:
    """Units of one resource at one site.

    Attributes:
        site: its name; empty for the simulated launcher.
        resource: its name there.
        units: of it.
    """

    site: str
    resource: str
    units: int


@dataclass(frozen=True, slots=True)
class Record:
    """A fact.

    Attributes:
        time: when it became one, seconds.
    """

    time: float


@dataclass(frozen=True, slots=True)
class WorkflowSubmitted(Record):
    """A workflow was taken."""

    workflow_id: str
    key: str
    workflow: Workflow
    programs: tuple[Program, ...]


@dataclass(frozen=True, slots=True)
class WorkflowCancelled(Record):
    """Its end was asked for."""

    workflow_id: str


@dataclass(frozen=True, slots=True)
class WorkflowForgotten(Record):
    """It had ended, and is not remembered any more."""

    workflow_id: str


@dataclass(frozen=True, slots=True)
class Counted(Record):
    """So many names were ever given; it outlives the records of what is forgotten."""

    workflows: int
    bookings: int


@dataclass(frozen=True, slots=True)
class ResourceSet(Record):
    """A resource was registered or changed."""

    supply: Supply


@dataclass(frozen=True, slots=True)
class ResourceRemoved(Record):
    """A resource was taken out."""

    name: str


@dataclass(frozen=True, slots=True)
class PlanAdopted(Record):
    """A plan took the place of the one before.

    Attributes:
        number: of the plan, counted from 1.
        fitness: of it; None where there was nothing to search.
        placements: of tasks that were subject to planning; all others of these have no place.
        unplanned: workflow, task and reason of those without a place.
    """

    number: int
    fitness: float | None
    placements: tuple[Placement, ...]
    unplanned: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class TaskFixed(Record):
    """A task's place is final, and its resources are to be reserved.

    Attributes:
        workflow_id: its workflow.
        task: its name.
        booking: names this attempt for ever.
        placement: where and when.
        holds: the same in the words of sites, the primary resource first.
        run_time: seconds that the run may take there; not more than the placement has.
    """

    workflow_id: str
    task: str
    booking: str
    placement: Placement
    holds: tuple[Hold, ...]
    run_time: float


@dataclass(frozen=True, slots=True)
class BookingRecord(Record):
    """Something became of a booking."""

    booking: str


@dataclass(frozen=True, slots=True)
class TaskBooked(BookingRecord):
    """Its resources are reserved.

    Attributes:
        time: when it became one, seconds.
        booking: names the attempt.
        reservations: the sites' names for them, in the order of its holds.
    """

    reservations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskLaunched(BookingRecord):
    """It is handed to its site: from now on it may be running."""


@dataclass(frozen=True, slots=True)
class TaskStarted(BookingRecord):
    """Its run has begun."""

    start_time: float


@dataclass(frozen=True, slots=True)
class TaskExtended(BookingRecord):
    """Its run takes longer than was thought, and its reservations end later.

    Attributes:
        time: when it became one, seconds.
        booking: names the attempt.
        end: of the reservations, seconds.
    """

    end: float


@dataclass(frozen=True, slots=True)
class TaskEnding(BookingRecord):
    """Its run is to be ended."""

    reason: str


@dataclass(frozen=True, slots=True)
class TaskFreed(BookingRecord):
    """Its booking is given up; the reservations are still to be released.

    It is planned again, or cancelled where its workflow is given up.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class TaskEnded(BookingRecord):
    """Its run is over.

    Attributes:
        state: COMPLETED, FAILED, CANCELLED, or WAITING: it is planned again.
        counted: whether the run counts as a failure of the task.
        start_time: seconds; None where it never started.
        end_time: seconds.
        cost: of the run.
        reason: for a person; may be empty.
    """

    state: TaskState
    counted: bool
    start_time: float | None
    end_time: float
    cost: float
    reason: str


@dataclass(frozen=True, slots=True)
class BookingReleased(BookingRecord):
    """Nothing is held by it any more."""
