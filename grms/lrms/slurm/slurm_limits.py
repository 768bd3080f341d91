"""Slurm's time limits, as it prints and takes them. Pure.

Little is imported: whoever submits a job needs this.
"""

import re


def whole_minutes(requested_time: float) -> int:
    """Returns a limit in seconds in whole minutes, rounded up as Slurm does."""
    return max(1, -int(-requested_time // 60))


def read_limit(text: str) -> float | None:
    """Returns a limit printed by Slurm, in seconds; `None` for none (`UNLIMITED`, `infinite`).

    Raises:
        ValueError: it is no limit.
    """
    if text in {"UNLIMITED", "infinite", "NOT_SET", "N/A", "NONE"}:
        return None
    found = re.fullmatch(r"(?:(\d+)-)?(?:(?:(\d+):)?(\d+):)?(\d+)", text)
    if found is None:
        raise ValueError(f"{text!r} is no time limit as Slurm writes them")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(seconds + 60 * (minutes + 60 * (hours + 24 * days)))
