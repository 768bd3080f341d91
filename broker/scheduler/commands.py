"""Commands that `BrokerState.handle` returns.

The shell carries them out in order; everything after an `Append` waits until its records are
durable. Commands about one booking are carried out in order, repeated until the site has answered,
and may be repeated after a restart: the booking's name makes that harmless.
"""

from dataclasses import dataclass
from enum import Enum

from broker.model.program import Input, Program
from broker.scheduler.planning_input import PlanningInput
from broker.scheduler.records import Group, Record
from broker.scheduler.state_tables import Booking


class Refusal(Enum):
    """Why a question is not answered; each is a status on the wire."""

    INVALID = "invalid argument"
    NOT_FOUND = "not found"
    PRECONDITION = "failed precondition"
    EXHAUSTED = "resource exhausted"


@dataclass(frozen=True, slots=True)
class Command:
    """Something to do."""


@dataclass(frozen=True, slots=True)
class Append(Command):
    """Writes records to the journal; what follows waits until they are durable."""

    records: tuple[Record, ...]


# --- answers -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer(Command):
    """Answers a question."""

    cause: int


@dataclass(frozen=True, slots=True)
class ReplyWorkflow(Answer):
    """Answers with the current workflow."""

    workflow_id: str


@dataclass(frozen=True, slots=True)
class ReplyAdded(Answer):
    """Answers `Add`: so many of its tasks were new."""

    workflow_id: str
    new: int


@dataclass(frozen=True, slots=True)
class ReplyPlan(Answer):
    """Answers `Replan` with the number of the plan to come."""

    number: int


@dataclass(frozen=True, slots=True)
class ReplyResource(Answer):
    """Answers with the current resource."""

    name: str


@dataclass(frozen=True, slots=True)
class Refuse(Answer):
    """Answers any question with an error.

    `reason` is for a person; `field` is the wrong one, or empty.
    """

    refusal: Refusal
    reason: str
    field: str = ""


# --- the search ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartPlanning(Command):
    """Begins a search, which may be a short one; leads to `PlanFound` or `PlanFailed`."""

    number: int
    planning_input: PlanningInput
    reason: str
    short: bool = False


@dataclass(frozen=True, slots=True)
class StopPlanning(Command):
    """Lets the search end with what it has."""

    number: int


# --- sites ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Book(Command):
    """Reserves all resources of an attempt, or none; leads to `Booked` or `BookingLost`.

    Where the booking has its reservations already they are only looked after again.
    """

    booking: Booking


@dataclass(frozen=True, slots=True)
class Launch(Command):
    """Runs a task in its reservation; leads to `Started` and `Ended`, or to `BookingLost`.

    A program leads to `HandedOver`, too. It has ended when all outputs that it has declared are there, and those
    of `needed` are at the broker.

    Attributes:
        program: what runs; `None` if it is only simulated.
        work: the task's, seconds.
        started: when its run is known to have begun; `None` if unknown.
        inputs: of the program, each a content.
        needed: outputs that others are given.
        again: the broker may have had it launched before it was started anew.
    """

    booking: Booking
    program: Program | None
    work: float
    name: str
    started: float | None = None
    inputs: tuple[Input, ...] = ()
    needed: frozenset[str] = frozenset()
    again: bool = False


@dataclass(frozen=True, slots=True)
class LaunchGroup(Command):
    """Runs programs in one go that share units of a resource.

    Leads for each to `Booked`, `Started` and `Ended`, or to `BookingLost` or `Refused`. What is not begun within the
    group's window is given back.
    """

    group: Group
    launches: tuple[Launch, ...]


@dataclass(frozen=True, slots=True)
class Move(Command):
    """Moves all reservations of an attempt, or none, to a window from `begin` to `end`, in seconds.

    Where its run has begun only the end is moved. Leads to `Moved` or `MoveRefused`.
    """

    booking: Booking
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Release(Command):
    """Gives up an attempt, and ends its run if there is one; leads to `Released`.

    Where the run ended meanwhile `Ended` comes before.
    """

    booking: Booking


@dataclass(frozen=True, slots=True)
class Withdraw(Command):
    """Gives up an attempt in a group unless it has begun; leads to `BookingLost` if it has not."""

    booking: Booking


# --- those who watch -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PublishWorkflow(Command):
    """Tells watchers that a workflow has changed."""

    workflow_id: str


@dataclass(frozen=True, slots=True)
class PublishPlan(Command):
    """Tells watchers that there is a plan, or, in `problem`, why there is none."""

    number: int
    problem: str = ""
