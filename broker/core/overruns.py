"""Runs that take longer than expected.

A reservation is longer than its run by the margin. Shortly before it ends, the reservation of a run
that is still going is extended if the time after it is free; else the broker's own bookings there
give way and are planned again. Only if neither helps, or after the longest extension, the site cuts
the run off.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from broker.core.commands import Extend
from broker.core.cycle import Cycle
from broker.core.events import Extended, ExtensionRefused
from broker.core.lifecycle import AT_SITE, HELD
from broker.core.memory import Booking, LiveTask, Memory
from broker.core.records import TaskExtended
from broker.core.settings import BrokerSettings
from broker.core.turn import Turn

ASKED_BEFORE = 0.25
"""Share of the margin by which an end is anticipated."""

LEAST_MARGINS = 4.0
"""Least extension, in margins: asking takes time, too."""


@dataclass(slots=True)
class _Asked:
    # What stands between an attempt and its later end.
    end: float
    giving_way: set[str] = field(default_factory=set)
    refused: bool = False


class Overruns:
    """Extends reservations; `free` gives up the booking of a task, with a reason."""

    def __init__(
        self,
        memory: Memory,
        settings: BrokerSettings,
        cycle: Cycle,
        free: Callable[[LiveTask, Turn, str], None],
    ) -> None:
        self._memory = memory
        self._settings = settings
        self._cycle = cycle
        self._free = free
        self._asked: dict[str, _Asked] = {}

    def advance(self, booking: Booking, turn: Turn) -> float:
        """Extends an attempt whose run is at a site, if due.

        Returns when to look again, in seconds; infinity if something else has to happen first.
        """
        end = booking.placement.end
        more = self._more(booking)
        if booking.booking in self._asked or more <= 0:
            return math.inf
        moment = end - ASKED_BEFORE * self._settings.margin
        if turn.now < moment:
            return moment
        self._asked[booking.booking] = _Asked(end + more)
        turn.do(Extend(booking, end + more))
        return math.inf

    def _more(self, booking: Booking) -> float:
        # By how much it is extended next; 0 for nothing any more.
        settings = self._settings
        step = max(settings.extension * booking.run_time, LEAST_MARGINS * settings.margin)
        return min(step, settings.extension_max * booking.run_time - booking.extended)

    def over(self, booking: str) -> None:
        """Forgets an attempt that is over."""
        self._asked.pop(booking, None)

    def released(self, booking: str, turn: Turn) -> None:
        """What gave way is gone: those that waited for it are asked for again."""
        for name, asked in list(self._asked.items()):
            if booking in asked.giving_way:
                asked.giving_way.discard(booking)
                if not asked.giving_way:
                    del self._asked[name]
                    turn.touched.append(self._memory.booked[name])

    def extended(self, event: Extended, turn: Turn) -> None:
        """The reservations end later now; what was planned behind them is planned again."""
        self._asked.pop(event.booking, None)
        task = self._memory.booked.get(event.booking)
        if task is None or task.booking is None or task.state not in AT_SITE:
            return
        if event.end > task.booking.placement.end:
            turn.note(TaskExtended(turn.now, event.booking, event.end))
            turn.changed(task.owner)
            self._cycle.want(turn, f"{task.name} takes longer than was thought")
        turn.touched.append(task)

    def refused(self, event: ExtensionRefused, turn: Turn) -> None:
        """What is booked here behind the run gives way to it, if there is any."""
        asked = self._asked.get(event.booking)
        task = self._memory.booked.get(event.booking)
        if asked is None or asked.refused or task is None or task.booking is None:
            return
        behind = self._behind(task.booking, asked.end) if event.taken else []
        if not behind:
            asked.refused = True
            return
        for other in behind:
            if other.booking is not None:  # freeing one frees those that wait for it
                asked.giving_way.add(other.booking.booking)
                self._free(other, turn, f"gives way to {task.name}, which takes longer")

    def _behind(self, booking: Booking, end: float) -> list[LiveTask]:
        # Tasks that are booked, and not launched, where and when the run would go on.
        places = {(hold.site, hold.resource) for hold in booking.holds}
        return [
            other
            for other in self._memory.booked.values()
            if other.state in HELD
            and other.booking is not None
            and other.booking.placement.start < end
            and other.booking.placement.end > booking.placement.end
            and any((hold.site, hold.resource) in places for hold in other.booking.holds)
        ]
