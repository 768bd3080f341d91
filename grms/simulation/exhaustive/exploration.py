"""All states that can be reached, breadth first, and what is found on the way; of whatever `States` are.

The first story that leads to a violation is a shortest one. Without faults more every state has to lead to an end: that
is looked at when all states are known, from the ends backwards.

What may still go wrong decides nothing but what may go wrong. So a state is not visited where the same was reached, on no
longer a way, with each fault still to come at least as often: all that can follow it follows that one too, by the same
steps. What follows without a fault, and what is looked at, is the same of both. Nothing is lost by that: neither a
violation, nor its shortest story, nor a state that leads to no end.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from grms.simulation.exhaustive.budgets import BUDGET_BITS, BUDGET_MASK, Budgets

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
    """What is explored; a state is a number, whose last bits are what may still go wrong.

    Attributes:
        budgets: all that may.
    """

    budgets: Budgets

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
    """An exploration of `space`, whose results go to `found`.

    With `all_budgets` it also visits states that follow from others with less that may go wrong.
    """

    def __init__(self, space: States, found: F, *, all_budgets: bool = False) -> None:
        self.space = space
        self.found = found
        self._shift = 0 if all_budgets else BUDGET_BITS
        self._mask = 0 if all_budgets else BUDGET_MASK
        self._states: list[int] = []
        self._parents = array("i")
        # Of each state, but for what may go wrong: where it was first visited, and with what all since then, as bits.
        self._firsts = array("i")
        self._covered: list[int] = []
        self._from, self._to = array("i"), array("i")

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

    def _noting(self, numbers: dict[int, int]) -> Callable[[int, int], int]:
        # What notes a state that was found from another, by its place, and returns its number but for what may go wrong.
        states, parents, shift, mask = self._states, self._parents, self._shift, self._mask
        firsts, covered, below = self._firsts, self._covered, self.space.budgets.below

        def note(state: int, parent: int) -> int:
            what, budget = state >> shift, state & mask
            number = numbers.get(what)
            if number is None:
                number = numbers[what] = len(covered)
                covered.append(below(budget))
                firsts.append(len(states))
            elif covered[number] >> budget & 1:
                return number
            else:
                covered[number] |= below(budget)
            states.append(state)
            parents.append(parent)
            return number

        return note

    def _visit(self, found: F, most: int, *, liveness: bool) -> None:
        space, states, shift, firsts = self.space, self._states, self._shift, self._firsts
        numbers: dict[int, int] = {}
        note = self._noting(numbers)
        note(space.first(), 0)
        successors, add_from, add_to = space.successors, self._from.append, self._to.append
        at = level_end = transitions = 0
        while at < len(states) < most:
            if at > level_end:
                found.depth += 1
                level_end = len(states) - 1
            state = states[at]
            try:
                free, paid = successors(state)
            except FoundError as error:
                self._stop_at(found, at, error)
                return
            number = numbers[state >> shift]
            if liveness and firsts[number] == at:
                for after in free:
                    add_from(number)
                    add_to(note(after, at))
            else:
                for after in free:
                    note(after, at)
            for after in paid:
                note(after, at)
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
        count = len(self._covered)
        is_end = self.space.is_end
        ends = [number for number, at in enumerate(self._firsts) if is_end(self._states[at])]
        found.ends = len(ends)
        to = np.frombuffer(self._to, dtype=np.int32)
        source = np.frombuffer(self._from, dtype=np.int32)
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
            found.labels = self._way_to(self._firsts[int(np.argmin(leads))])


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
