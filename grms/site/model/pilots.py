"""Pilots: jobs of the site in its own batch system, whose processors it hands out by the clock.

A resource with pilots has free time only while one of them is open. There is at most one open pilot of a resource;
another is asked for when the former takes no more runs. The job of a pilot is one of the site's own user, with a key
that names the pilot, and is offered to no partner.

The book is changed by journal records alone; `grms.site.scheduler.pilots` decides which.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from grms.site.model.records import (
    PilotAsked,
    PilotDrained,
    PilotOpened,
    PilotOver,
    PilotTally,
    Record,
)

PILOTS_KEPT: Final = 1000
"""Pilots that are over and still remembered."""

KEY_BEGIN: Final = "pilot "


@dataclass(frozen=True, slots=True)
class Pilot:
    """One pilot.

    Attributes:
        number: 1, 2, 3, … at its site.
        name: unique for all time; that of its folder.
        asked_time, open_time: seconds; the second is nan before.
        until: it takes runs that end by then, seconds; nan before it is open.
        host: the node where it is; empty before it is open.
        drained: why it takes no more runs; empty while it does.
        over_time: seconds; nan before.
        reason: of its end, for people.
        held, used: processor-seconds, once it is over.
        revision: counts the changes.
    """

    number: int
    resource_id: str
    name: str
    asked_time: float
    open_time: float = math.nan
    until: float = math.nan
    host: str = ""
    drained: str = ""
    over_time: float = math.nan
    reason: str = ""
    held: float = 0.0
    used: float = 0.0
    revision: int = 1

    @property
    def is_over(self) -> bool:
        """Whether its job has ended."""
        return not math.isnan(self.over_time)

    @property
    def is_open(self) -> bool:
        """Whether it takes runs."""
        return not (math.isnan(self.open_time) or self.drained or self.is_over)

    @property
    def state(self) -> str:
        """Where it stands, in a word: asked, open, draining or over."""
        if self.is_over:
            return "over"
        if self.drained:
            return "draining"
        return "asked" if math.isnan(self.open_time) else "open"

    @property
    def key(self) -> str:
        """The idempotency key of its job."""
        return key_of(self.number)


def key_of(number: int) -> str:
    """Returns the idempotency key of a pilot's job."""
    return f"{KEY_BEGIN}{number}"


def number_of(key: str) -> int:
    """Returns the pilot to which a key belongs; 0 for that of another job."""
    number = key.removeprefix(KEY_BEGIN)
    return int(number) if key.startswith(KEY_BEGIN) and number.isdecimal() else 0


class PilotBook:
    """All pilots of a site: present ones, and those that were over last.

    Attributes:
        pilots: by number, in order.
        present: those whose jobs have not ended, by number.
        next_number: of the next pilot.
        held, used: processor-seconds of all pilots that are over.
    """

    def __init__(self) -> None:
        self.pilots: dict[int, Pilot] = {}
        self.present: dict[int, Pilot] = {}
        self.next_number = 1
        self.held = self.used = 0.0
        self._over: deque[int] = deque()
        self._latest: dict[str, int] = {}
        self.changes: dict[type[Record], Callable[[Any], None]] = {
            PilotAsked: self._asked,
            PilotOpened: self._opened,
            PilotDrained: self._drained,
            PilotOver: self._was_over,
            PilotTally: self._tally,
        }

    def latest(self, resource_id: str) -> Pilot | None:
        """Returns the last pilot of a resource; `None` if none is remembered."""
        return self.pilots.get(self._latest.get(resource_id, 0))

    def open(self, resource_id: str) -> Pilot | None:
        """Returns the open pilot of a resource; `None` if it has none."""
        found = self.latest(resource_id)
        return found if found is not None and found.is_open else None

    # --- changes -------------------------------------------------------------------------------

    def _keep(self, changed: Pilot) -> None:
        self.pilots[changed.number] = self.present[changed.number] = changed

    def _asked(self, record: PilotAsked) -> None:
        self._latest[record.resource_id] = record.pilot
        self.next_number = record.pilot + 1
        self._keep(Pilot(record.pilot, record.resource_id, record.name, record.time))

    def _changed(self, number: int, **change: Any) -> Pilot:
        found = self.pilots[number]
        return replace(found, revision=found.revision + 1, **change)

    def _opened(self, record: PilotOpened) -> None:
        found = self.pilots[record.pilot]
        opened = record.time if math.isnan(found.open_time) else found.open_time
        changed = self._changed(
            record.pilot, open_time=opened, until=record.until, host=record.host
        )
        self._keep(changed)

    def _drained(self, record: PilotDrained) -> None:
        self._keep(self._changed(record.pilot, drained=record.reason))

    def _was_over(self, record: PilotOver) -> None:
        changed = self._changed(
            record.pilot,
            over_time=record.time,
            reason=record.reason,
            held=record.held,
            used=record.used,
        )
        self._keep(changed)
        del self.present[record.pilot]
        self.held += record.held
        self.used += record.used
        self._over.append(record.pilot)
        if len(self._over) > PILOTS_KEPT:
            forgotten = self.pilots.pop(self._over.popleft())
            if self._latest[forgotten.resource_id] == forgotten.number:
                del self._latest[forgotten.resource_id]

    def _tally(self, record: PilotTally) -> None:
        self.next_number = record.next_pilot
        self.held, self.used = record.held, record.used
