"""Events that `BrokerState.handle` takes.

Questions carry an `id`, chosen by the shell; the commands that answer carry it as `cause`. Any
event may be delivered twice, late, or after it has lost its meaning; it then changes nothing, and a
question gets the same answer.
"""

from dataclasses import dataclass

from broker.model.additions import Addition
from broker.model.plan import Plan
from broker.model.program import Output, Program
from broker.model.workflow import OpenWorkflow, Workflow
from broker.scheduler.offers import ResourceOffer
from broker.scheduler.records import Supply
from grms.util.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has happened; `id` is that of a question, else 0."""

    id: int


@dataclass(frozen=True, slots=True)
class Restarted(Event):
    """The daemon begins to work with what its journal held; handed over once, first."""


@dataclass(frozen=True, slots=True)
class Tick(Event):
    """Time has passed: something may be due."""


# --- people ask ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Submit(Event):
    """A submission of a workflow. Answered by `ReplyWorkflow` or `Refuse`."""

    key: str
    workflow: Workflow
    programs: tuple[Program, ...] = ()


@dataclass(frozen=True, slots=True)
class Open(Event):
    """A workflow that tasks are added to. Answered by `ReplyWorkflow` or `Refuse`."""

    key: str
    workflow: OpenWorkflow


@dataclass(frozen=True, slots=True)
class Add(Event):
    """Tasks for an open workflow, each after those that it waits for. Answered by `ReplyAdded` or `Refuse`."""

    workflow_id: str
    additions: tuple[Addition, ...]


@dataclass(frozen=True, slots=True)
class Close(Event):
    """No more tasks are added to a workflow. Answered by `ReplyWorkflow` or `Refuse`."""

    workflow_id: str


@dataclass(frozen=True, slots=True)
class Cancel(Event):
    """A request to end a workflow. Answered by `ReplyWorkflow` or `Refuse`."""

    workflow_id: str


@dataclass(frozen=True, slots=True)
class Replan(Event):
    """A request for a new plan. Answered by `ReplyPlan`."""


@dataclass(frozen=True, slots=True)
class Register(Event):
    """There is a new resource. Answered by `ReplyResource` or `Refuse`."""

    supply: Supply


@dataclass(frozen=True, slots=True)
class Update(Event):
    """A resource has changed. Answered by `ReplyResource` or `Refuse`."""

    supply: Supply


@dataclass(frozen=True, slots=True)
class Remove(Event):
    """A resource is taken out. Answered by `ReplyResource` or `Refuse`."""

    name: str


# --- the search ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanFound(Event):
    """The search has ended with a plan.

    Attributes:
        number: of the plan, as `StartPlanning` had it.
        fitness: of it; `None` if there was nothing to search.
        unplanned: workflow, task and reason of those without a place.
    """

    number: int
    plan: Plan
    fitness: float | None = None
    unplanned: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PlanFailed(Event):
    """The search has met an error; the plan stays as it is."""

    number: int
    reason: str


# --- sites ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BookingEvent(Event):
    """Something has become of an attempt."""

    booking: str


@dataclass(frozen=True, slots=True)
class Booked(BookingEvent):
    """Every resource is reserved; `reservations` are the sites' names, in the order of the holds."""

    reservations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BookingLost(BookingEvent):
    """It has certainly not run and will not: refused, expired, or not launched in time.

    `taken` are indexes of holds whose time others have; the plan avoids it.
    """

    reason: str
    taken: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Moved(BookingEvent):
    """Its reservations are from `begin` to `end` now, in seconds."""

    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class MoveRefused(BookingEvent):
    """Its reservations stay where they are.

    If `taken`, the time belongs to others; else it is not available at all.
    """

    reason: str
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Started(BookingEvent):
    """Its run has begun."""

    start_time: float


@dataclass(frozen=True, slots=True)
class Refused(BookingEvent):
    """It has certainly not run and will not, and its site can never run its program."""

    reason: str


@dataclass(frozen=True, slots=True)
class Hindered(BookingEvent):
    """Its site does not begin its run, for a `reason` other than that there is no room yet; empty: nothing hinders it."""

    reason: str


@dataclass(frozen=True, slots=True)
class HandedOver(BookingEvent):
    """Its site has taken its program, and calls the run `job`."""

    job: str


@dataclass(frozen=True, slots=True)
class Ended(BookingEvent):
    """Its run is over. Times are in seconds; `start_time` is `None` if it never started.

    Attributes:
        reason: for a person; may be empty.
        exit_code: of its program; `None` for none or unknown.
        signal: that ended it; `None` for none or unknown.
        outputs: that its program has declared; those that successors are given are at the broker.
        kept: seconds that it had run before, until it wrote the state from which it went on.
    """

    outcome: Outcome
    start_time: float | None
    end_time: float
    reason: str = ""
    exit_code: int | None = None
    signal: int | None = None
    outputs: tuple[Output, ...] = ()
    kept: float = 0.0


@dataclass(frozen=True, slots=True)
class Released(BookingEvent):
    """It no longer holds or runs anything."""


@dataclass(frozen=True, slots=True)
class SiteUp(Event):
    """A site answers again."""

    site: str


@dataclass(frozen=True, slots=True)
class SiteDown(Event):
    """A site does not answer."""

    site: str


@dataclass(frozen=True, slots=True)
class SiteLost(Event):
    """A site has not answered for longer than the configuration is willing to wait."""

    site: str


@dataclass(frozen=True, slots=True)
class Offered(Event):
    """A site says what it has to reserve from `begin` to `end`, in seconds."""

    site: str
    offers: tuple[ResourceOffer, ...]
    begin: float
    end: float
