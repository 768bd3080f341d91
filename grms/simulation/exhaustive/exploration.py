"""All states that can be reached, breadth first, and what is found on the way; of whatever `States` are.

The first story that leads to a violation is a shortest one. Without faults more every state has to lead to an end: that
is looked at when all states are known, from the ends backwards.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

Label = tuple[Any, ...]
"""What happens, for a story."""

Step = tuple[int, bool, Label]
"""The state after it, whether it is no fault, and what it is."""


class FoundError(Exception):
    """A step leads to what must not be."""

    def __init__(self, text: str, label: Label) -> None:
        self.text = text
        self.label = label
        super().__init__(text)


class States(Protocol):
    """What is explored; a state is a number."""

    def first(self) -> int:
        """Returns the first state."""

    def successors(self, state: int) -> tuple[list[int], list[int]]:
        """Returns the states that follow one without a fault, and with one.

        Raises:
            FoundError: a step leads to what must not be.
        """

    def steps(self, state: int) -> list[Step]:
        """Returns the same with labels.

        Raises:
            FoundError: a step leads to what must not be; with its label.
        """

    def is_end(self, state: int) -> bool:
        """Returns whether nothing is left to be done."""


@dataclass(slots=True)
class Found:
    """What an exploration has found.

    Attributes:
        states, transitions: how many.
        depth: the longest of the shortest ways to a state.
        complete: all states within the bound were visited.
        violation: the first; empty for none.
        story: the steps to it in words, or to a state that leads to no end.
        labels: the same steps, to be taken again.
        stuck: how many states lead to no end without faults.
        ends: how many are one.
    """

    states: int = 0
    transitions: int = 0
    depth: int = 0
    complete: bool = False
    violation: str = ""
    story: list[str] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    stuck: int = 0
    ends: int = 0


F = TypeVar("F", bound=Found)


class Explorer(Generic[F]):
    """An exploration of `space`, whose results go to `found`."""

    def __init__(self, space: States, found: F) -> None:
        self.space = space
        self.found = found
        self._states: list[int] = []
        self._parents = array("l")
        self._from, self._to = array("l"), array("l")

    def run(
        self,
        most: int = 100_000_000,
        *,
        liveness: bool = True,
        check: Callable[[F], None] = lambda _: None,
    ) -> F:
        """Visits all states, or about `most`; stops at the first violation.

        `check` looks at the whole when all states are known, before liveness is.
        """
        found = self.found
        try:
            self._visit(found, most, liveness=liveness)
        except FoundError as error:
            found.violation = error.text
        found.states = len(self._states)
        if found.complete:
            check(found)
        if found.complete and liveness and not found.violation:
            self._check_liveness(found)
        return found

    def _visit(self, found: F, most: int, *, liveness: bool) -> None:
        space, states, parents = self.space, self._states, self._parents
        first = space.first()
        index = {first: 0}
        states.append(first)
        parents.append(0)
        successors, add_from, add_to = space.successors, self._from.append, self._to.append
        at = level_end = transitions = 0
        while at < len(states) < most:
            if at > level_end:
                found.depth += 1
                level_end = len(states) - 1
            try:
                free, paid = successors(states[at])
            except FoundError as error:
                self._stop_at(found, at, error)
                return
            for state in free:
                number = index.get(state)
                if number is None:
                    number = index[state] = len(states)
                    states.append(state)
                    parents.append(at)
                if liveness:
                    add_from(at)
                    add_to(number)
            for state in paid:
                if state not in index:
                    index[state] = len(states)
                    states.append(state)
                    parents.append(at)
            transitions += len(free) + len(paid)
            at += 1
        found.transitions = transitions
        found.complete = at == len(states)

    def _stop_at(self, found: F, at: int, error: FoundError) -> None:
        # Once more with labels, for the story.
        found.labels = self._way_to(at)
        found.violation = error.text
        try:
            self.space.steps(self._states[at])
        except FoundError as again:
            found.violation = again.text
            found.labels.append(again.label)

    def _way_to(self, at: int) -> list[Label]:
        way = [at]
        while way[-1]:
            way.append(self._parents[way[-1]])
        way.reverse()
        labels = []
        for one, other in pairwise(way):
            target = self._states[other]
            steps = self.space.steps(self._states[one])
            labels.append(next(label for to, _, label in steps if to == target))
        return labels

    def _check_liveness(self, found: F) -> None:
        count = len(self._states)
        ends = [at for at, state in enumerate(self._states) if self.space.is_end(state)]
        found.ends = len(ends)
        to = np.frombuffer(self._to, dtype=np.int64)
        source = np.frombuffer(self._from, dtype=np.int64)
        order = np.argsort(to, kind="stable")
        before, bounds = source[order], np.searchsorted(to[order], np.arange(count + 1))
        leads = np.zeros(count, dtype=bool)
        leads[ends] = True
        wave = np.array(ends, dtype=np.int64)
        while wave.size:
            lengths = bounds[wave + 1] - bounds[wave]
            offsets = np.concatenate(([0], np.cumsum(lengths)[:-1]))
            starts = np.repeat(bounds[wave] - offsets, lengths)
            near = np.unique(before[starts + np.arange(int(lengths.sum()))])
            wave = near[~leads[near]]
            leads[wave] = True
        found.stuck = int(count - leads.sum())
        if found.stuck:
            found.violation = f"{found.stuck} of {count} states lead to no end, even without faults"
            found.labels = self._way_to(int(np.argmin(leads)))


def taken_again(space: States, labels: list[Label]) -> str:
    """Takes the steps of a story again; returns the violation at its end, empty for none.

    Raises:
        ValueError: a step cannot be taken.
    """
    state = space.first()
    for at, label in enumerate(labels):
        try:
            steps = space.steps(state)
        except FoundError as error:
            if at == len(labels) - 1 and error.label == label:
                return error.text
            raise ValueError(f"step {at + 1}: {error.text}") from error
        found = [to for to, _, one in steps if one == label]
        if not found:
            raise ValueError(f"step {at + 1} cannot be taken: {label}")
        state = found[0]
    return ""
