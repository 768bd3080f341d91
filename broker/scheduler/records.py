"""What the broker's journal holds: facts, each with its moment.

The state after a restart is what comes of applying all records in order; `broker.scheduler.state_tables` says how.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from broker.model.additions import Addition
from broker.model.plan import Placement
from broker.model.program import Output, Program
from broker.model.resources import Resource
from broker.model.workflow import Demand, OpenWorkflow, Workflow
from broker.scheduler.lifecycle import TaskState
from grms.util.outcomes import Outcome

Place = tuple[str, str]
"""A site, empty for the simulated launcher, and its word for a resource."""


@dataclass(frozen=True, slots=True)
class Supply:
    """A resource and where it is.

    Attributes:
        resource: what is planned with.
        site: the site that has it; empty for the simulated launcher.
        broken: nothing can run on it.
        requires: what tasks hold together with it, which may require more in its turn; counted in
            by whoever hands in a workflow.
        groups: its site takes programs in groups.
    """

    resource: Resource
    site: str = ""
    site_resource: str = ""
    broken: bool = False
    requires: tuple[Demand, ...] = ()
    groups: bool = False

    @property
    def name(self) -> str:
        """The resource's name."""
        return self.resource.name

    @property
    def place(self) -> Place:
        """Where it is, in the words of its site."""
        return self.site, self.site_resource or self.name


@dataclass(frozen=True, slots=True)
class Hold:
    """Units of one resource at one site; `site` is empty for the simulated launcher."""

    site: str
    resource: str
    units: int

    @property
    def place(self) -> Place:
        """Where they are."""
        return self.site, self.resource


@dataclass(frozen=True, slots=True)
class Group:
    """Attempts that share units of one resource.

    Attributes:
        name: unique for all time.
        units: so many of them at a time.
        begin, end: of the window in which they begin and are thought to be over, seconds.
    """

    name: str
    units: int
    begin: float
    end: float


class Record(msgspec.Struct, frozen=True, tag=True, array_like=True, forbid_unknown_fields=True):
    """A fact; `time` is when it became one, in seconds."""

    time: float


class WorkflowSubmitted(Record, frozen=True):
    """A workflow was taken."""

    workflow_id: str
    key: str
    workflow: Workflow
    programs: tuple[Program, ...]


class WorkflowOpened(Record, frozen=True):
    """A workflow to which tasks are added was taken; `workflow` has none."""

    workflow_id: str
    key: str
    workflow: OpenWorkflow


class TasksAdded(Record, frozen=True):
    """Tasks were added to it, each after those that it waits for."""

    workflow_id: str
    additions: tuple[Addition, ...]


class WorkflowClosed(Record, frozen=True):
    """No more tasks are added to it."""

    workflow_id: str


class WorkflowCancelled(Record, frozen=True):
    """Its end was asked for."""

    workflow_id: str


class WorkflowForgotten(Record, frozen=True):
    """It had ended, and has been dropped."""

    workflow_id: str


class Counted(Record, frozen=True):
    """Number of names given so far; it outlives the records of what is forgotten."""

    workflows: int
    bookings: int


class ResourceSet(Record, frozen=True):
    """A resource was registered or changed."""

    supply: Supply


class ResourceRemoved(Record, frozen=True):
    """A resource was taken out."""

    name: str


class PlanAdopted(Record, frozen=True):
    """A plan took the place of the one before.

    Attributes:
        number: of the plan, counted from 1.
        fitness: of it; `None` if there was nothing to search.
        placements: of tasks that were subject to planning; all others of these have no place.
        unplanned: workflow, task and reason of those without a place.
    """

    number: int
    fitness: float | None
    placements: tuple[Placement, ...]
    unplanned: tuple[tuple[str, str, str], ...]


class TaskFixed(Record, frozen=True):
    """A task's place is final, and its resources are to be reserved.

    Attributes:
        holds: the same in the words of sites, the primary resource first.
        run_time: seconds that the run may take there; not more than the placement has.
        group: the task is launched in, with no reservation of its own before: from now on it may be running;
            `None` for none.
    """

    workflow_id: str
    task: str
    booking: str
    placement: Placement
    holds: tuple[Hold, ...]
    run_time: float
    group: Group | None = None


class FilesSent(Record, frozen=True):
    """Files have begun to go to a site together, for a task whose run is simulated.

    Attributes:
        begin: seconds.
        end: when they are there; seconds.
        size: bytes of all of them.
    """

    workflow_id: str
    task: str
    files: tuple[str, ...]
    source: str
    target: str
    begin: float
    end: float
    size: float
    cost: float


class RunMeasured(Record, frozen=True):
    """A program has come to its end by itself: from this estimates are learned; it outlives its workflow.

    Attributes:
        program: what it is known by.
        input_bytes: that it was given; `None` if unknown.
        resource: the primary one.
        estimate: work that its task has from its user, seconds.
        work: that it took, seconds at performance 1.
    """

    program: str
    input_bytes: float | None
    resource: str
    estimate: float
    work: float


class BookingRecord(Record, frozen=True):
    """Something became of a booking."""

    booking: str


class TaskBooked(BookingRecord, frozen=True):
    """Its resources are reserved; `reservations` are the sites' names, in the order of its holds."""

    reservations: tuple[str, ...]


class TaskLaunched(BookingRecord, frozen=True):
    """It is handed to its site: from now on it may be running."""


class TaskHandedOver(BookingRecord, frozen=True):
    """Its site has taken its program, and calls the run `job`."""

    job: str


class TaskHindered(BookingRecord, frozen=True):
    """Its site does not begin its run, for a `reason` other than room; empty: nothing hinders it any more."""

    reason: str


class TaskRefused(BookingRecord, frozen=True):
    """Its site can never run its program, or did not begin it for long: alternatives whose primary resource is `resource` do not count any more."""

    resource: str


class TaskStarted(BookingRecord, frozen=True):
    """Its run has begun."""

    start_time: float


class TaskMoving(BookingRecord, frozen=True):
    """Its reservations are to be moved to a window from `begin` to `end`, in seconds."""

    begin: float
    end: float


class TaskMoved(BookingRecord, frozen=True):
    """Its reservations are from `begin` to `end`, in seconds, and none is being moved."""

    begin: float
    end: float


class TaskEnding(BookingRecord, frozen=True):
    """Its run is to be ended."""

    reason: str


class TaskFreed(BookingRecord, frozen=True):
    """Its booking is given up; the reservations are still to be released.

    It is planned again, or cancelled where its workflow is given up.
    """

    reason: str


class TaskEnded(BookingRecord, frozen=True):
    """Its run is over.

    Attributes:
        state: COMPLETED, SIMULATED, FAILED, CANCELLED, or WAITING: it is planned again.
        counted: whether the run counts as a failure of the task.
        start_time: seconds; `None` if it never started.
        end_time: seconds.
        reason: for a person; may be empty.
        outcome: how the run came to its end; `None` where nobody has said it.
        exit_code: of its program; `None` for none or unknown.
        signal: that ended it; `None` for none or unknown.
        outputs: that its program has declared and left.
    """

    state: TaskState
    counted: bool
    start_time: float | None
    end_time: float
    cost: float
    reason: str
    outcome: Outcome | None = None
    exit_code: int | None = None
    signal: int | None = None
    outputs: tuple[Output, ...] = ()


class BookingReleased(BookingRecord, frozen=True):
    """It no longer holds anything."""


KINDS: Final = tuple(
    kind
    for kind in (*Record.__subclasses__(), *BookingRecord.__subclasses__())
    if kind is not BookingRecord
)
