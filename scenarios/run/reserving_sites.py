"""Sites whose resources a scenario's broker reserves: each decides by its own pure state.

The state is that of a site's daemon; here it has resources and nothing else, and nobody's journal.
"""

import itertools
import math
from collections import deque
from collections.abc import Iterable, Mapping

from grms.site.model.commands import PublishReservation, Refuse, ReplyReservation
from grms.site.model.events import (
    BookReservation,
    Event,
    LaunchReservation,
    MoveReservation,
    ReleaseReservation,
    ReservationsDue,
)
from grms.site.model.jobs import Request
from grms.site.model.reservations import Reservation, Resource
from grms.site.model.settings import SiteSettings
from grms.site.scheduler.state import SiteState

_OWNER = "broker"


class RefusedError(Exception):
    """A site refuses what was asked; the text says why."""


class ReservingSites:
    """All sites of a scenario, on one clock.

    Attributes:
        heard: what has changed at sites since it was last taken from here, by (site, reservation).
    """

    def __init__(self, sites: Mapping[str, Iterable[Resource]]) -> None:
        self.heard: deque[tuple[str, Reservation]] = deque()
        # The size of the batch machine beside the resources is of no account.
        self._states = {
            site: SiteState(SiteSettings(site, 1, resources=tuple(resources)))
            for site, resources in sites.items()
        }
        self._ids = itertools.count(1)

    @property
    def next_time(self) -> float:
        """When time next changes a reservation somewhere, seconds; infinity for never."""
        states = self._states.values()
        return min((each.memory.reservations.next_time for each in states), default=math.inf)

    def settle(self, now: float) -> None:
        """Lets time do its part up to now, in seconds."""
        for site, state in self._states.items():
            if state.memory.reservations.next_time <= now:
                self._handle(site, ReservationsDue(next(self._ids)), now)

    def book(
        self,
        site: str,
        key: str,
        resource_id: str,
        window: tuple[float, float],
        *,
        processors: int,
        now: float,
    ) -> int:
        """Returns the number of a new reservation; `RefusedError` if it cannot be had.

        `key` identifies repeated requests; `window` has begin and end; times are in seconds.
        """
        event = BookReservation(
            next(self._ids), _OWNER, key, resource_id, *window, processors=processors
        )
        return self._handle(site, event, now).number

    def launch(
        self, place: tuple[str, int], key: str, request: Request, run_time: float, now: float
    ) -> None:
        """Launches a job, which may run to the end of its reservation.

        `place` is site and reservation number, `key` identifies repeated launches; `run_time` is on
        the reference resource; times are in seconds.

        Raises:
            RefusedError: it does not fit into what is left.
        """
        site, number = place
        event = LaunchReservation(
            next(self._ids), _OWNER, number, key, request, run_time, to_the_end=True
        )
        self._handle(site, event, now)

    def move(
        self,
        place: tuple[str, int],
        old: tuple[float, float],
        new: tuple[float, float],
        now: float,
    ) -> None:
        """Moves a reservation from a window to another; `RefusedError` if it cannot be there.

        `place` is site and reservation number; times are in seconds.
        """
        site, number = place
        self._handle(site, MoveReservation(next(self._ids), _OWNER, number, old, new), now)

    def release(self, place: tuple[str, int], now: float) -> None:
        """Gives a reservation back.

        `now` is in seconds.
        """
        site, number = place
        self._handle(site, ReleaseReservation(next(self._ids), _OWNER, number), now)

    def _handle(self, site: str, event: Event, now: float) -> Reservation:
        answer: Reservation | None = None
        for command in self._states[site].handle(event, now):
            if isinstance(command, PublishReservation):
                self.heard.append((site, command.reservation))
                answer = command.reservation
            elif isinstance(command, ReplyReservation):
                answer = command.reservation
            elif isinstance(command, Refuse):
                raise RefusedError(command.reason)
        assert answer is not None
        return answer
