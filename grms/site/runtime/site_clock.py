"""The clock that a site's configuration names, and whether it matches the site's journal.

A journal's moments make sense only on the clock that they were read from: on another a job may have started in
the distant past or in the future. A clock that is behind the journal's last record may still be the right one, if
the system's clock was ahead for a while: then time continues from that record (`BehindClock`).
"""

import math
from typing import Final

import structlog

from grms.daemon.clock import (
    Clock,
    ScaledClock,
    VirtualClock,
    WallClock,
    ahead_of,
    going_on_from,
    too_far_ahead,
)
from grms.daemon.config_base import ClockConfig
from grms.site.runtime.journal import Journal, JournalError

Log = structlog.typing.FilteringBoundLogger

NOTE: Final = "clock"
"""Under which the journal keeps the kind of its clock."""


def make_clock(config: ClockConfig, latest: float) -> Clock:
    """Returns a site's clock, which is never behind the journal.

    `latest` is the moment of the journal's last record, seconds; minus infinity if there is none.
    """
    if config.kind == "virtual":
        return VirtualClock(latest)
    if config.kind == "scaled":
        assert config.origin is not None
        return going_on_from(ScaledClock(config.speed, config.origin), latest)
    return going_on_from(WallClock(), latest)


def check_clock(
    config: ClockConfig,
    clock: Clock,
    journal: Journal,
    latest: float,
    log: Log,
    *,
    accepted: bool = False,
) -> None:
    """Records the kind of clock in the journal, and refuses one that does not match it.

    `latest` is the moment of the journal's last record, seconds; minus infinity if there is none. `log` is told if
    the clock is behind it. `accepted`: an operator lets time continue from the last record however far ahead that is.

    Raises:
        JournalError: the journal was written under another kind of clock, or its last record is far in the future.
    """
    noted = journal.note(NOTE)
    if noted is None or latest == -math.inf:
        if noted != config.kind:
            journal.set_note(NOTE, config.kind)
    elif noted != config.kind:
        raise JournalError(
            f"{journal.path}: this journal was written under clock.kind = {noted!r}, and the "
            f"configuration says {config.kind!r}; set [clock] as it was"
        )
    ahead = ahead_of(clock)
    problem = too_far_ahead(latest, ahead, config.speed, "the site's")
    if problem and not accepted:
        raise JournalError(f"{journal.path}: {problem}")
    if ahead > config.speed:  # less is how clocks are set right all the time
        log.warning("clock_behind_journal", ahead_s=round(ahead, 3), latest_s=latest)
