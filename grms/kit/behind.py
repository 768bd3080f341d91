"""Clocks that are behind a journal: how time goes on from its last record, and when that takes a question first.

A journal may have been written while the system's clock was ahead.
"""

from typing import Final

AHEAD_S: Final = 86_400.0
"""So far the last record may be ahead of a clock without a question, real seconds."""

CATCHING_UP: Final = 0.5
"""Speed of a clock for which the true one has to catch up, as a part of that one's."""


def going_on(shown: float, begin: float, since: float) -> float:
    """Returns what a clock shows that goes on from a moment, slower, until the true one has caught up.

    Args:
        shown: what the true one shows, seconds.
        begin: moment from which it goes on, seconds; minus infinity for none.
        since: what the true one showed then, seconds.
    """
    return max(shown, begin + (shown - since) * CATCHING_UP)


def too_far_ahead(latest: float, ahead: float, speed: float, whose: str) -> str:
    """Returns why time does not go on from a journal's last record by itself; empty where it does.

    Args:
        latest: moment of the record, seconds.
        ahead: by how much that is ahead of the clock, seconds.
        speed: seconds of the clock for a real one.
        whose: clock it is, in words.
    """
    if ahead <= AHEAD_S * speed:
        return ""
    return (
        f"the last record is of {latest:.3f} s, and {whose} clock shows {latest - ahead:.3f} s, "
        f"{ahead:.0f} s before it; set the system's clock (and [clock]) right, or, where they are, start "
        "once with --behind: time goes on from the last record, at half its speed until the clock has caught up"
    )
