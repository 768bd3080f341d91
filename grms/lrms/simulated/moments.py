"""Events of a simulated machine in order."""

from enum import IntEnum

from lrms_sim.machine.stepped import Machine


class Kind(IntEnum):
    """What it was; of one moment the least comes first."""

    END = 0
    START = 1
    END_AT_ONCE = 2


def moments(machine: Machine) -> list[tuple[float, Kind, int]]:
    """Returns events since the last call: moment in seconds, kind, and the job's number."""
    started, ended = machine.collect()
    if not started and not ended:
        return []
    # Both are in order of time; merged, ends of a moment come before its starts.
    found: list[tuple[float, Kind, int, int]] = []
    for order, number in enumerate(ended):
        start, end = machine.times_of(number)
        # A job too short for the clock's resolution still starts before it ends.
        found.append((end, Kind.END if end > start else Kind.END_AT_ONCE, order, number))
    for order, number in enumerate(started):
        found.append((machine.times_of(number)[0], Kind.START, order, number))
    found.sort()
    return [(time, kind, number) for time, kind, _, number in found]
