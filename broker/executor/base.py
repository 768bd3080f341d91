"""Sites as the broker uses them: reserve, launch, move, watch, release, read what programs have left.

`Site` is the port: one for reservations at a site's daemon (`broker.executor.remote`), for ordinary jobs of its
batch system (`broker.executor.jobs`), where nothing is reserved, and for simulated ones (`broker.executor.simulated`).
Every call is idempotent: the key, which is the booking's name with the number of the hold, makes a
repeated call return the first answer.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from broker.model.program import Program
from broker.scheduler.offers import ResourceOffer
from grms.client import Results
from grms.util.outcomes import Outcome


class SiteUnavailable(Exception):  # noqa: N818  # named for what it says
    """A site does not answer, or takes no work now; whether the call took effect is not known."""


class ReservationRefused(Exception):  # noqa: N818  # named for what it says
    """A site refuses for good; the text says why.

    Attributes:
        taken: the time is reserved by somebody else.
    """

    def __init__(self, reason: str, *, taken: bool = False) -> None:
        self.taken = taken
        super().__init__(reason)


class ReservationUnknown(ReservationRefused):
    """A site knows no such reservation: it never had it, or has forgotten it, with what has run in it."""


class ProgramRefused(Exception):  # noqa: N818  # named for what it says
    """A site can never run this program; the text says why."""


class ReservationState(Enum):
    """Where a reservation stands; the words of `proto/grms/v1/reservation.proto`."""

    BOOKED = "booked"
    LAUNCHED = "launched"
    RUNNING = "running"
    ENDED = "ended"
    RELEASED = "released"
    EXPIRED = "expired"
    OTHER = "other"
    """A state of a later version: the reservation exists, and its job has not ended."""


Window = tuple[float, float]
"""Begin and end, seconds."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A reservation request.

    Attributes:
        key: unique for all time.
        begin, end: seconds.
    """

    key: str
    resource: str
    units: int
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file that a program is given.

    Attributes:
        name: in the program's folder.
        size: bytes.
        sha256: of the content, 32 bytes.
        path: of the content, at the broker.
    """

    name: str
    size: int
    sha256: bytes
    path: Path


@dataclass(frozen=True, slots=True)
class Order:
    """What to run in a reservation.

    Attributes:
        key: unique for all time.
        work: most seconds on a resource of performance 1.
        run_time: expected seconds on this resource; it may run to the end of its reservation.
        name: of workflow and task, for people.
        program: `None` if it is only simulated.
        inputs: all files that the program is given; handed over before it.
        started: when the run began; `None` if unknown.
        job: what the site calls the run, if it is known to have it already; else empty.
    """

    key: str
    units: int
    work: float
    run_time: float
    name: str
    program: Program | None = None
    inputs: tuple[GivenFile, ...] = ()
    started: float | None = None
    job: str = ""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation as its site reports it.

    Attributes:
        start_time, end_time: of its run, seconds; `None` before.
        job: what the site calls the run, where that is not the reservation; else empty.
        exit_code: of its program; `None` if there is none, or it is unknown.
        signal: that ended it; `None` if there was none, or it is unknown.
        reason: why it ended so, for a person; may be empty.
        kept: seconds that it had run before its start, until it wrote the state from which it goes on.
        hindered: why its site does not begin its run, other than that there is no room yet; empty if that is not so.
    """

    reservation_id: str
    state: ReservationState
    start_time: float | None = None
    end_time: float | None = None
    outcome: Outcome | None = None
    job: str = ""
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    kept: float = 0.0
    hindered: str = ""


@dataclass(frozen=True, slots=True)
class GroupWish:
    """Programs that are to share units of a resource.

    Attributes:
        begin, end: of the window in which they begin, seconds.
        orders: each for one program; its units are those that it holds.
    """

    resource: str
    units: int
    begin: float
    end: float
    orders: tuple[Order, ...]


class Site(Protocol):
    """One site. Every method may raise `SiteUnavailable`."""

    async def book(self, wish: Wish) -> Reservation:
        """Reserves a resource, or raises `ReservationRefused`."""

    async def restore(self, reservation_id: str, wish: Wish) -> None:
        """Tells a site that keeps nothing over a restart what it had promised."""

    async def launch(self, reservation_id: str, order: Order) -> Reservation:
        """Runs a task in a reservation.

        Raises:
            ReservationRefused: not in this reservation; it has not run.
            ReservationUnknown: the site does not know it; nobody knows whether an earlier call has had it run.
            ProgramRefused: nowhere here; it has not run.
        """

    async def launch_group(self, wish: GroupWish) -> tuple[Reservation | ProgramRefused, ...]:
        """Runs programs that share units, all of them but those that can never run there.

        Raises:
            ReservationRefused: the site takes none of them; what it does not know by the key has not run.
        """

    async def move(self, reservation_id: str, old: Window, new: Window) -> Reservation:
        """Moves a reservation from a window to another, or raises `ReservationRefused`.

        One that is in the new window already stays there.
        """

    async def release(self, reservation_id: str) -> Reservation | None:
        """Releases a reservation and ends its run; `None` if the site does not know it."""

    async def withdraw(self, reservation_id: str) -> Reservation | None:
        """Has a program of a group not begin, unless it has; `None` if the site does not know it."""

    async def offer(self, begin: float, end: float) -> tuple[ResourceOffer, ...] | None:
        """Returns what can be reserved in a time window; `None` if the site does not say.

        Raises:
            ReservationRefused: the answer is invalid, or the site refuses.
        """

    def watch(self) -> AsyncIterator[Reservation | None]:
        """Yields `None` once the site answers, then all reservations and their changes."""

    async def files(self, reservation_id: str, job: str) -> Results:
        """Returns what a program has left; while it runs its streams, and not `complete`.

        Raises:
            ReservationRefused: nothing is there of it.
        """

    def read(
        self, reservation_id: str, job: str, name: str, begin: int = 0
    ) -> AsyncIterator[bytes]:
        """Yields a file of a program from a byte on.

        Raises:
            ReservationRefused: there is no such file.
        """
