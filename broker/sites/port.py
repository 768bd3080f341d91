"""Sites as the broker uses them: reserve, launch, extend, watch, release.

`Site` is the port. `broker.sites.simulated` pretends, `broker.sites.remote` talks to a site's daemon.
Every call may be repeated: the key, which is the booking's name with the number of the hold, makes
the second a question for the answer of the first.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from broker.core.lifecycle import Outcome
from broker.core.offers import ResourceOffer
from broker.core.records import Program


class SiteUnavailable(Exception):  # noqa: N818  # named for what it says
    """A site does not answer, or takes no work now; whether the call took effect is not known."""


class ReservationRefused(Exception):  # noqa: N818  # named for what it says
    """A site will not do what it was asked, for good; the text says why.

    Attributes:
        taken: the time belongs to somebody else.
    """

    def __init__(self, reason: str, *, taken: bool = False) -> None:
        self.taken = taken
        super().__init__(reason)


class ReservationState(Enum):
    """Where a reservation stands; the words of `proto/grms/v1/reservation.proto`."""

    BOOKED = "booked"
    LAUNCHED = "launched"
    RUNNING = "running"
    ENDED = "ended"
    RELEASED = "released"
    EXPIRED = "expired"
    OTHER = "other"
    """A word of a later version of the site: it stands, and its job has not ended."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be reserved.

    Attributes:
        key: names the wish for ever.
        resource: the site's name for the resource.
        units: of it.
        begin: seconds.
        end: seconds.
    """

    key: str
    resource: str
    units: int
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Order:
    """What is to run in a reservation.

    Attributes:
        key: names the launch for ever.
        units: of the resource.
        work: seconds on a resource of performance 1, at most.
        run_time: seconds on this resource, as was thought; it may run to the end of its reservation.
        name: of workflow and task, for people.
        program: what runs; None where it is only simulated.
        started: when the run is known to have begun; None where that is not known.
    """

    key: str
    units: int
    work: float
    run_time: float
    name: str
    program: Program | None = None
    started: float | None = None


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation as its site has it.

    Attributes:
        reservation_id: the site's name for it.
        state: where it stands.
        start_time: of its run, seconds; None before.
        end_time: of its run, seconds; None before.
        outcome: of its run, where it has ended.
    """

    reservation_id: str
    state: ReservationState
    start_time: float | None = None
    end_time: float | None = None
    outcome: Outcome | None = None


class Site(Protocol):
    """One site. Every method may raise `SiteUnavailable`."""

    async def book(self, wish: Wish) -> Reservation:
        """Reserves a resource, or raises `ReservationRefused`."""

    async def restore(self, reservation_id: str, wish: Wish) -> None:
        """Tells a site that keeps nothing over a restart what it had promised."""

    async def launch(self, reservation_id: str, order: Order) -> Reservation:
        """Runs a task in a reservation, or raises `ReservationRefused`."""

    async def extend(self, reservation_id: str, end: float) -> Reservation:
        """Moves the end of a reservation, or raises `ReservationRefused`."""

    async def release(self, reservation_id: str) -> Reservation | None:
        """Gives a reservation back and ends its run; None where the site does not know it."""

    async def offer(self, begin: float, end: float) -> tuple[ResourceOffer, ...] | None:
        """Returns what can be reserved in a window of time; None for a site that does not say.

        Raises:
            ReservationRefused: what it says means nothing, or it will not say.
        """

    def watch(self) -> AsyncIterator[Reservation | None]:
        """Yields None once the site answers, then reservations as they are and as they change."""
