"""Schedules of job shops as longest paths, and moves in their critical blocks, written plainly."""

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise

Orders = list[list[int]]
Change = tuple[int, int, bool]
"""A task, another one of its resource, and whether the first goes right behind it, else before."""


@dataclass(frozen=True)
class Shop:
    """Durations, releases and predecessors, by task."""

    durations: Sequence[float]
    releases: Sequence[float]
    predecessors: Sequence[Sequence[int]]

    def _before(self, orders: Orders) -> dict[int, set[int]]:
        before = {task: set(each) for task, each in enumerate(self.predecessors)}
        for order in orders:
            for first, second in pairwise(order):
                before[second].add(first)
        return before

    def times(self, orders: Orders) -> tuple[list[float], list[float]]:
        """Returns heads and tails.

        Raises:
            CycleError: the orders contradict precedence.
        """
        before = self._before(orders)
        heads, tails = list(self.releases), [0.0] * len(self.durations)
        order = list(TopologicalSorter(before).static_order())
        for task in order:
            for other in before[task]:
                heads[task] = max(heads[task], heads[other] + self.durations[other])
        for task in reversed(order):
            for other in before[task]:
                tails[other] = max(tails[other], self.durations[task] + tails[task])
        return heads, tails

    def makespan(self, orders: Orders) -> float:
        """Returns when the last task ends."""
        heads, _ = self.times(orders)
        return max(head + span for head, span in zip(heads, self.durations, strict=True))

    def through(self, orders: Orders, tasks: Sequence[int]) -> float:
        """Returns the length of the longest path through any of the tasks."""
        heads, tails = self.times(orders)
        return max(heads[task] + self.durations[task] + tails[task] for task in tasks)

    def estimate(self, orders: Orders, change: Change) -> float:
        """Returns what a move comes to if all else stays: new heads and tails of what it passes."""
        heads, tails = self.times(orders)
        spans = self.durations
        after, passed = changed(orders, change)
        order = next(each for each in after if change[0] in each)
        first, last = min(map(order.index, passed)), max(map(order.index, passed))
        passed = order[first : last + 1]
        end = heads[order[first - 1]] + spans[order[first - 1]] if first else 0.0
        begins = []
        for task in passed:
            ends = [heads[each] + spans[each] for each in self.predecessors[task]]
            begins.append(max([self.releases[task], end, *ends]))
            end = begins[-1] + spans[task]
        behind = order[last + 1 : last + 2]
        rest = max([0.0, *(spans[each] + tails[each] for each in behind)])
        longest = 0.0
        for task, begin in zip(reversed(passed), reversed(begins), strict=True):
            ways = [
                spans[each] + tails[each]
                for each, before in enumerate(self.predecessors)
                if task in before
            ]
            rest = max([rest, *ways])
            longest = max(longest, begin + spans[task] + rest)
            rest += spans[task]
        return longest

    def changes(self, orders: Orders, path: Sequence[int]) -> set[Change]:
        """Returns the moves in the blocks of a critical path that surely close no cycle."""
        heads, tails = self.times(orders)
        neighbours = {pair for order in orders for pair in pairwise(order)}
        blocks = [[path[0]]]
        for task in path[1:]:
            if (blocks[-1][-1], task) in neighbours:
                blocks[-1].append(task)
            else:
                blocks.append([task])
        found = set()
        for block in blocks:
            for task in block[:-1]:
                found |= {(task, block[-1], True), (block[0], task, True)}
            for task in block[1:]:
                found |= {(task, block[0], False), (block[-1], task, False)}
        return {
            (moved, pivot, behind)
            for moved, pivot, behind in found
            if moved != pivot
            and (
                all(
                    self.durations[task] + tails[task] <= self.durations[pivot] + tails[pivot]
                    for task, before in enumerate(self.predecessors)
                    if moved in before
                )
                and moved not in self.predecessors[pivot]
                if behind
                else all(
                    heads[task] + self.durations[task] <= heads[pivot] + self.durations[pivot]
                    for task in self.predecessors[moved]
                )
                and pivot not in self.predecessors[moved]
            )
        }


def changed(orders: Orders, change: Change) -> tuple[Orders, list[int]]:
    """Returns the orders after a move, and the tasks that it passes, with the moved one."""
    moved, pivot, behind = change
    result = [list(order) for order in orders]
    order = next(each for each in result if moved in each)
    places = sorted((order.index(moved), order.index(pivot)))
    passed = order[places[0] : places[1] + 1]
    order.remove(moved)
    order.insert(order.index(pivot) + behind, moved)
    return result, passed
