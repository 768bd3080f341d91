"""Clocks behind a journal: how time continues from its last record, and when to ask first."""

from typing import Final

AHEAD_S: Final = 86_400.0
"""How far the last record may be ahead of the clock without asking, real seconds."""

CATCHING_UP: Final = 0.5
"""Speed of a clock that waits for the true one to catch up, relative to it."""


def going_on(shown: float, begin: float, since: float) -> float:
    """Returns the time of a clock that continues from `begin`, slower, until the true one has caught up.

    `since` is what the true one showed at `begin`; all in seconds, with minus infinity for no begin.
    """
    return max(shown, begin + (shown - since) * CATCHING_UP)


def too_far_ahead(latest: float, ahead: float, speed: float, whose: str) -> str:
    """Returns why time cannot simply continue from a journal's last record; empty if it can.

    `latest` is the time of the record and `ahead` its lead over the clock, both in seconds; `speed` is in clock
    seconds per real second, `whose` names the clock.
    """
    if ahead <= AHEAD_S * speed:
        return ""
    return (
        f"the last record is of {latest:.3f} s, and {whose} clock shows {latest - ahead:.3f} s, "
        f"{ahead:.0f} s before it; set the system's clock (and [clock]) right, or, where they are, start "
        "once with --behind: time goes on from the last record, at half its speed until the clock has caught up"
    )
