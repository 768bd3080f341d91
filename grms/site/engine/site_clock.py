"""The clock that a site's configuration names, and whether it goes with the site's journal.

A journal's moments mean something on the clock that they were read from alone: on another a job
may have started in the distant past or in the future. A clock that has not reached the journal's last record
is the right one nevertheless, when the system's clock was ahead for a while: then time goes on from
that record (`BehindClock`).
"""

import math
from typing import Final

import structlog

from grms.kit.behind import too_far_ahead
from grms.kit.clock import Clock, ScaledClock, VirtualClock, WallClock, ahead_of, going_on_from
from grms.site.configuration.config import ClockConfig
from grms.site.engine.journal import Journal, JournalError

Log = structlog.typing.FilteringBoundLogger

NOTE: Final = "clock"
"""Under which the journal keeps the kind of its clock."""


def make_clock(config: ClockConfig, latest: float) -> Clock:
    """Returns a site's clock; it never shows less than the journal has.

    Args:
        config: which.
        latest: moment of the journal's last record, seconds; minus infinity where there is none.
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
    """Notes the kind of clock in the journal, and refuses one that is not the journal's.

    Args:
        config: of the clock.
        clock: it.
        journal: of the site.
        latest: moment of the journal's last record, seconds; minus infinity where there is none.
        log: is told where the clock is behind the journal.
        accepted: an operator says that time may go on from the last record however far ahead that is.

    Raises:
        JournalError: the journal was written under a clock of another kind, or its last record is
            far in the future.
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
