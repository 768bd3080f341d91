"""Serial schedules of projects and their justification in plain Python.

Units are counted anew at every moment at which anything begins or ends; nothing of the planner is used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """A job of a project: `before` are the jobs that it waits for, `release` its earliest start."""

    seconds: float
    units: Mapping[str, int]
    before: frozenset[int] = frozenset()
    release: float = 0.0


Starts = dict[int, float]


def earliest(
    jobs: Sequence[Job], capacity: Mapping[str, int], placed: Starts, job: int, ready: float
) -> float:
    """Returns the earliest start of a job from `ready` on, beside those that are placed."""
    moments = {ready, *(placed[other] + jobs[other].seconds for other in placed)}
    for start in sorted(moment for moment in moments if moment >= ready):
        end = start + jobs[job].seconds
        edges = [start, *(placed[other] for other in placed if start < placed[other] < end)]
        if all(
            sum(
                jobs[other].units.get(kind, 0)
                for other in placed
                if placed[other] <= edge < placed[other] + jobs[other].seconds
            )
            + units
            <= capacity[kind]
            for edge in edges
            for kind, units in jobs[job].units.items()
        ):
            return start
    raise AssertionError("behind everything there is room for every job")


def serial(jobs: Sequence[Job], capacity: Mapping[str, int], sequence: Sequence[int]) -> Starts:
    """Returns the serial schedule: jobs in sequence, one as soon as those before it are placed."""
    placed: Starts = {}
    waiting: list[int] = []
    for job in sequence:
        waiting.append(job)
        while going := [each for each in waiting if jobs[each].before <= placed.keys()]:
            each = going[0]
            waiting.remove(each)
            ends = [placed[other] + jobs[other].seconds for other in jobs[each].before]
            ready = max([jobs[each].release, *ends])
            placed[each] = earliest(jobs, capacity, placed, each, ready)
    return placed


def justified(jobs: Sequence[Job], capacity: Mapping[str, int], starts: Starts) -> Starts:
    """Returns a schedule shifted to the right, latest ends first, and to the left, first starts first.

    Among equal ones the later, or earlier, in the order of `starts` goes first.
    """
    last = max(starts[job] + jobs[job].seconds for job in starts)
    right: Starts = {}
    # Sorting keeps the order of equal ones.
    order = list(reversed(starts))
    order.sort(key=lambda each: -(starts[each] + jobs[each].seconds))
    for job in order:
        after = [other for other, each in enumerate(jobs) if job in each.before]
        ready = max([0.0, *(right[other] + jobs[other].seconds for other in after)])
        right[job] = earliest(jobs, capacity, right, job, ready)
    ends = {job: last - right[job] for job in right}
    left = list(reversed(ends))
    left.sort(key=lambda job: ends[job] - jobs[job].seconds)
    return serial(jobs, capacity, left)
