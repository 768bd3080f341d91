"""The clock that a site's configuration names, and whether it goes with the site's journal.

A journal's moments mean something on the clock that they were read from alone: on another a job
may have started in the distant past or in the future.
"""

import math
from typing import Final

from grms.site.configuration.config import ClockConfig
from grms.site.engine.clock import Clock, ScaledClock, VirtualClock, WallClock
from grms.site.engine.journal import Journal, JournalError

NOTE: Final = "clock"
"""Under which the journal keeps the kind of its clock."""

BEHIND_S: Final = 300.0
"""So far a clock may be behind the last record, real seconds: the system's clock is set at times."""


def make_clock(config: ClockConfig, begin: float) -> Clock:
    """Returns a site's clock.

    Args:
        config: which.
        begin: what a virtual clock shows first, seconds.
    """
    if config.kind == "virtual":
        return VirtualClock(begin)
    if config.kind == "scaled":
        assert config.origin is not None
        return ScaledClock(config.speed, config.origin)
    return WallClock()


def check_clock(config: ClockConfig, clock: Clock, journal: Journal, latest: float) -> None:
    """Notes the kind of clock in the journal, and refuses one that is not the journal's.

    Args:
        config: of the clock.
        clock: it.
        journal: of the site.
        latest: moment of the journal's last record, seconds; minus infinity where there is none.

    Raises:
        JournalError: the journal was written under a clock of another kind, or its last record is
            in the future.
    """
    way = "set [clock] as it was, or name another journal"
    noted = journal.note(NOTE)
    if noted is None or latest == -math.inf:
        if noted != config.kind:
            journal.set_note(NOTE, config.kind)
    elif noted != config.kind:
        raise JournalError(
            f"{journal.path}: this journal was written under clock.kind = {noted!r}, and the "
            f"configuration says {config.kind!r}; {way}"
        )
    ahead = latest - clock.now()
    if ahead > BEHIND_S * config.speed:
        raise JournalError(
            f"{journal.path}: the last record is of {latest:.3f} s, and the site's clock shows "
            f"{clock.now():.3f} s, {ahead:.0f} s before it; if the system's clock is right, {way}"
        )
