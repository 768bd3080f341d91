"""Reads what Slurm says of its machine: size, limits, scheduler. Pure."""

import re
from datetime import timedelta


def read_scheduler(text: str) -> str:
    """Returns the kind of scheduler (`backfill`, `builtin`) of what `scontrol show config` has printed; may be empty."""
    found = re.search(r"^SchedulerType\s*=\s*sched/(\w+)\s*$", text, re.MULTILINE)
    return "" if found is None else found.group(1)


def read_machine(text: str) -> tuple[int, int, int]:
    """Returns the processors that work, all that there are, and those that are free.

    Args:
        text: what `sinfo -h -o %C` has printed: allocated/idle/other/total; `other` are on nodes
            that are down or drained.

    Raises:
        ValueError: it is something else.
    """
    found = re.fullmatch(r"(\d+)/(\d+)/(\d+)/(\d+)\s*", text.strip())
    if found is None:
        raise ValueError(f"sinfo says {text.strip()[:80]!r}, not allocated/idle/other/total")
    allocated, idle, _, everything = (int(number) for number in found.groups())
    return allocated + idle, everything, idle


def whole_minutes(requested_time: float) -> int:
    """Returns a limit in whole minutes, rounded up as Slurm does.

    Args:
        requested_time: seconds.
    """
    return max(1, -int(-requested_time // 60))


def read_limit(text: str) -> float | None:
    """Returns a limit that Slurm prints, in seconds; None for none (`UNLIMITED`, `infinite`).

    Raises:
        ValueError: it is no limit.
    """
    if text in {"UNLIMITED", "infinite", "NOT_SET", "N/A", "NONE"}:
        return None
    found = re.fullmatch(r"(?:(\d+)-)?(?:(?:(\d+):)?(\d+):)?(\d+)", text)
    if found is None:
        raise ValueError(f"{text!r} is no time limit as Slurm writes them")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()
