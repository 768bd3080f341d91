"""What can happen to the broker: the events that `BrokerState.handle` takes.

Questions carry an `id`, chosen by the shell; the commands that answer carry it as `cause`. Any
event may be handed over twice, late, or after it has lost its meaning; it then changes nothing,
and where it was a question it gets the same answer.
"""

from dataclasses import dataclass

from broker.core.lifecycle import Outcome
from broker.core.offers import ResourceOffer
from broker.core.records import Program, Supply
from broker.model.plan import Plan
from broker.model.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has happened.

    Attributes:
        id: names a question; 0 for what nobody waits for.
    """

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
    """Somebody hands in a workflow. Answered by `ReplyWorkflow` or `Refuse`."""

    key: str
    workflow: Workflow
    programs: tuple[Program, ...] = ()


@dataclass(frozen=True, slots=True)
class Cancel(Event):
    """Somebody wants a workflow to end. Answered by `ReplyWorkflow` or `Refuse`."""

    workflow_id: str


@dataclass(frozen=True, slots=True)
class Replan(Event):
    """Somebody wants a plan now. Answered by `ReplyPlan`."""


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
        id: 0.
        number: of the plan, as `StartPlanning` had it.
        plan: what was found.
        fitness: of it; None where there was nothing to search.
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
    """Something has become of an attempt.

    Attributes:
        id: 0.
        booking: names the attempt.
    """

    booking: str


@dataclass(frozen=True, slots=True)
class Booked(BookingEvent):
    """Every resource is reserved.

    Attributes:
        id: 0.
        booking: names the attempt.
        reservations: the sites' names for them, in the order of its holds.
    """

    reservations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BookingLost(BookingEvent):
    """It has certainly not run and will not: refused, expired, or not launched in time.

    Attributes:
        id: 0.
        booking: names the attempt.
        reason: for a person.
        taken: indexes of the holds whose time somebody else has; the plan avoids it.
    """

    reason: str
    taken: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Extended(BookingEvent):
    """Its reservations end later now.

    Attributes:
        id: 0.
        booking: names the attempt.
        end: of them, seconds.
    """

    end: float


@dataclass(frozen=True, slots=True)
class ExtensionRefused(BookingEvent):
    """Its reservations end when they would have ended.

    Attributes:
        id: 0.
        booking: names the attempt.
        reason: for a person.
        taken: the time behind them belongs to somebody; else it cannot be had at all.
    """

    reason: str
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Started(BookingEvent):
    """Its run has begun."""

    start_time: float


@dataclass(frozen=True, slots=True)
class Ended(BookingEvent):
    """Its run is over.

    Attributes:
        id: 0.
        booking: names the attempt.
        outcome: how.
        start_time: seconds; None where it never started.
        end_time: seconds.
        reason: for a person; may be empty.
    """

    outcome: Outcome
    start_time: float | None
    end_time: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Released(BookingEvent):
    """Nothing is held or run by it any more."""


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
    """A site says what it has to reserve.

    Attributes:
        id: 0.
        site: its name.
        offers: all of its resources.
        begin: of the time that is spoken of, seconds.
        end: of it, seconds.
    """

    site: str
    offers: tuple[ResourceOffer, ...]
    begin: float
    end: float
