"""Which guests are ended when jobs of the site's own users wait for room, where the batch system ends none. Pure.

Processors are counted on the nodes of a waiting job's partitions. A job that waits although there seem to be enough, for
longer than the batch system takes to look, needs them together on its nodes, and guests are ended node by node.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

PATIENCE_S: Final = 6.0
"""So long a job may wait for processors that are free until they count as free on the wrong nodes, seconds."""


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that waits for room, and is no guest.

    Attributes:
        number: the batch system's id.
        nodes_min: of how many nodes it needs processors.
        limit_s: its limit, seconds; `None` if unknown.
        start_time: when the batch system means to start it, seconds; `None` if it does not say.
        places: nodes that it may have.
        partitions: of which one is to run it.
        since: since when it has waited for room, as far as polls have seen, seconds.
    """

    number: str
    processors: int
    nodes_min: int
    limit_s: float | None
    start_time: float | None
    places: frozenset[str]
    partitions: frozenset[str] = frozenset()
    since: float = math.inf


@dataclass(frozen=True, slots=True)
class RunningGuest:
    """A guest that may be ended; `start_time` in seconds, `nodes` are those on which it has its processors."""

    key: str
    processors: int
    start_time: float
    nodes: tuple[str, ...]

    def on(self, places: Collection[str]) -> int:
        """Returns how many processors it has on some nodes, if it has as many on each of its own."""
        return self.processors * sum(node in places for node in self.nodes) // len(self.nodes)


def to_end(
    waiting: Iterable[WaitingJob],
    free: dict[str, int],
    guests: Iterable[RunningGuest],
    now: float,
) -> list[RunningGuest]:
    """Returns the guests to end so that waiting jobs start.

    Args:
        waiting: in the order in which the batch system starts them.
        free: processors that no job has, by node.
        guests: that may be ended.
        now: seconds.
    """
    left, there = sorted(guests, key=lambda guest: (-guest.start_time, guest.key)), dict(free)
    chosen: list[RunningGuest] = []
    before: float | None = None  # when the first job that no guest's end lets start is to start
    for job in waiting:
        if before is not None and (job.limit_s is None or now + job.limit_s > before):
            continue  # it would delay that one
        victims = _victims(job, there, left, now)
        if victims is None:
            if before is None:
                if job.start_time is None:
                    break  # nobody knows what would delay it
                before = job.start_time
            continue
        for guest in victims:
            left.remove(guest)
            for node in guest.nodes:
                there[node] = there.get(node, 0) + guest.processors // len(guest.nodes)
        chosen += victims
        _take(job, there)
    return chosen


def _victims(
    job: WaitingJob, free: dict[str, int], guests: Sequence[RunningGuest], now: float
) -> list[RunningGuest] | None:
    # The youngest that suffice, none where there is room; `None` if all together do not.
    room = sum(count for node, count in free.items() if node in job.places)
    near = [guest for guest in guests if guest.on(job.places)]
    if room >= job.processors:
        return _together(job, free, near) if now - job.since >= PATIENCE_S else []
    found = []
    for guest in near:
        if room >= job.processors:
            break
        found.append(guest)
        room += guest.on(job.places)
    if room < job.processors:
        return None
    # A younger, narrower one may not be needed beside an older, wider one.
    for guest in sorted(found, key=lambda each: each.on(job.places)):
        if room - guest.on(job.places) >= job.processors:
            found.remove(guest)
            room -= guest.on(job.places)
    return found


def _together(
    job: WaitingJob, free: dict[str, int], guests: Sequence[RunningGuest]
) -> list[RunningGuest] | None:
    # On the nodes that lose the fewest processors of guests; `None` if no nodes would do.
    each = -(-job.processors // job.nodes_min)
    ways: list[tuple[int, str, list[RunningGuest]]] = []
    for node in sorted(job.places):
        room, found = free.get(node, 0), []
        for guest in guests:
            if room >= each:
                break
            if node in guest.nodes:
                found.append(guest)
                room += guest.on((node,))
        if room >= each:
            ways.append((sum(guest.processors for guest in found), node, found))
    if len(ways) < job.nodes_min:
        return None
    best = sorted(ways, key=lambda way: way[:2])[: job.nodes_min]
    return list({guest.key: guest for _, _, found in best for guest in found}.values())


def _take(job: WaitingJob, free: dict[str, int]) -> None:
    # What it is going to have, from the emptiest nodes, so that the next one is not given the same.
    left = job.processors
    for node in sorted(job.places, key=lambda node: -free.get(node, 0)):
        some = min(left, max(0, free.get(node, 0)))
        free[node] = free.get(node, 0) - some
        left -= some
