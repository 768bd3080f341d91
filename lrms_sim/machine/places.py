"""Assigns processors to jobs of a schedule that only counts them: the lowest free ones."""

import heapq
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from lrms_sim.workload.schedule import Schedule

Range = tuple[int, int]
"""The first of neighbouring processors, and how many they are."""


def places(schedule: Schedule, machine: int = 0) -> list[list[Range]]:
    """Returns the processor ranges of each row that ran on a machine; none for others.

    Jobs get the lowest free processors, in the order of starts.
    """
    rows = np.flatnonzero(schedule.executed_on == machine)
    found = held(
        [(float(schedule.start_time[row]), float(schedule.end_time[row])) for row in rows.tolist()],
        schedule.jobs.processors[rows].tolist(),
        int(schedule.machines[machine].processors),
    )
    ranges: list[list[Range]] = [[] for _ in range(len(schedule))]
    for row, mine in zip(rows.tolist(), found, strict=True):
        ranges[row] = mine
    return ranges


def held(
    spans: Sequence[tuple[float, float]],
    counts: Sequence[int],
    processors: int,
    jobs: Sequence[int] | None = None,
    rounding: float = 0.0,
) -> list[list[Range]]:
    """Returns which processors are held in each span of time, in seconds.

    Returns:
        For each span the ranges, in order and disjoint; fewer than its count if no more are free.

    Args:
        spans: begin and end of each.
        counts: processors held in each.
        processors: of the machine, possibly millions.
        jobs: the job of each span: one that continues keeps its processors as far as they are free.
        rounding: seconds by which an end may be after another begin and still count as before.
    """
    # Spans from a processor to before another, in order and apart.
    free = [(0, processors)]
    running: list[tuple[float, int]] = []
    found: list[list[Range]] = [[] for _ in spans]
    last: dict[int, list[Range]] = {}
    for number in sorted(range(len(spans)), key=lambda number: (spans[number][0], number)):
        begin, end = spans[number]
        while running and running[0][0] <= begin + rounding:
            for first, count in found[heapq.heappop(running)[1]]:
                _give_back(free, first, first + count)
        mine: list[Range] = []
        wanted = counts[number]
        before = [] if jobs is None else last.get(jobs[number], [])
        for low, count in (*before, (0, processors)):
            got = _lowest(free, wanted, low, low + count)
            wanted -= sum(count for _, count in got)
            mine += got
        found[number] = _together(mine)
        if jobs is not None:
            last[jobs[number]] = found[number]
        heapq.heappush(running, (end, number))
    return found


def _lowest(free: list[tuple[int, int]], wanted: int, low: int, high: int) -> list[Range]:
    # Takes the free processors with the least numbers, from one to before another.
    taken: list[Range] = []
    at = max(bisect_left(free, (low + 1,)) - 1, 0)
    while wanted and at < len(free) and free[at][0] < high:
        first, end = free[at]
        begin = max(first, low)
        count = min(wanted, min(end, high) - begin)
        if count <= 0:
            at += 1
            continue
        taken.append((begin, count))
        wanted -= count
        left = [span for span in ((first, begin), (begin + count, end)) if span[0] < span[1]]
        free[at : at + 1] = left
        at += first < begin
    return taken


def _together(ranges: list[Range]) -> list[Range]:
    # In order; those that touch become one.
    joined: list[Range] = []
    for first, count in sorted(ranges):
        if joined and sum(joined[-1]) == first:
            joined[-1] = joined[-1][0], joined[-1][1] + count
        else:
            joined.append((first, count))
    return joined


def _give_back(free: list[tuple[int, int]], first: int, end: int) -> None:
    # Spans that touch become one.
    at = bisect_left(free, (first, end))
    begin = at
    if at < len(free) and free[at][0] == end:
        end = free[at][1]
        at += 1
    if begin > 0 and free[begin - 1][1] == first:
        begin -= 1
        first = free[begin][0]
    free[begin:at] = [(first, end)]
