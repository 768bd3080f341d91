"""States that a model makes, action by action, where what happens meanwhile is chosen in all ways.

A model is code that runs as it would, but for what its surroundings do: wherever that could be this or that it asks
`Choices.pick`. An action is run once for each sequence of answers, so that real code, whatever calls it makes, is
explored without a word about its inside. A choice may be a fault, which costs as a bound says, and a model that raises
`ViolationError` has done what must not be.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from grms.simulation.exhaustive.budgets import BUDGET_BITS, BUDGET_MASK, Budgets
from grms.simulation.exhaustive.exploration import (
    Explorer,
    Found,
    FoundError,
    Label,
    Step,
    taken_again,
)

S = TypeVar("S", bound=Hashable)


class ViolationError(Exception):
    """What must not be."""


class Choices:
    """What happens in one run of an action.

    Attributes:
        words: of what was chosen but for the usual, for a story.
        kinds: of the faults among it.
    """

    def __init__(self, given: Sequence[int], budgets: Budgets, kind: str) -> None:
        self._given = given
        self._budgets = budgets
        self.taken: list[int] = []
        self.counts: list[int] = []
        self.words: list[str] = []
        self.kinds = [kind] if kind else []

    def pick(self, usual: str, *others: tuple[str, str]) -> str:
        """Returns what happens: the usual, or another, which may be a fault of a kind; empty for none."""
        possible = [other for other in others if self._budgets.cost(*self.kinds, other[1]) >= 0]
        at = self._given[len(self.taken)] if len(self.taken) < len(self._given) else 0
        self.taken.append(at)
        self.counts.append(1 + len(possible))
        if not at:
            return usual
        word, kind = possible[at - 1]
        self.words.append(word)
        if kind:
            self.kinds.append(kind)
        return word


class Action(NamedTuple, Generic[S]):
    """What may happen in a state; `kind` is the fault that it is, empty for none."""

    label: Label
    happen: Callable[[Choices], S]
    kind: str = ""


class Model(Protocol[S]):
    """What is explored.

    Attributes:
        faults: how often each may come.
    """

    @property
    def faults(self) -> Mapping[str, int]:
        """How often each fault may come."""

    def first(self) -> S:
        """Returns the first state."""

    def actions(self, state: S) -> Iterable[Action[S]]:
        """Returns all that may happen in a state."""

    def wrong(self, state: S) -> str:
        """Returns what must not be of a state; empty if all is well."""

    def is_end(self, state: S) -> bool:
        """Returns whether nothing is left to be done."""


class _Move(NamedTuple):
    cost: int
    after: int
    label: Label
    violation: str


class ChoiceSpace(Generic[S]):
    """The states of a model, each with what may still go wrong, as numbers."""

    def __init__(self, model: Model[S]) -> None:
        self.model = model
        self._budgets = Budgets(dict(model.faults))
        self._numbers: dict[S, int] = {}
        self._values: list[S] = []
        self._wrong: list[str] = []
        self._ends: dict[int, bool] = {}
        self._moves: dict[int, list[_Move]] = {}

    def value(self, state: int) -> S:
        """Returns a state as the model has it."""
        return self._values[state >> BUDGET_BITS]

    def first(self) -> int:
        """Returns the first state."""
        return self._number(self.model.first()) << BUDGET_BITS

    def _number(self, value: S) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self._values)
            self._values.append(value)
            self._wrong.append(self.model.wrong(value))
        return number

    def is_end(self, state: int) -> bool:
        """Returns whether nothing is left to be done."""
        number = state >> BUDGET_BITS
        known = self._ends.get(number)
        if known is None:
            known = self._ends[number] = self.model.is_end(self._values[number])
        return known

    def _moves_of(self, number: int) -> list[_Move]:
        moves = self._moves.get(number)
        if moves is None:
            value = self._values[number]
            moves = [
                move for action in self.model.actions(value) for move in self._runs(value, action)
            ]
            self._moves[number] = moves
        return moves

    def _runs(self, value: S, action: Action[S]) -> Iterator[_Move]:
        if self._budgets.cost(action.kind) < 0:
            return
        todo: list[tuple[int, ...]] = [()]
        while todo:
            given = todo.pop()
            choices = Choices(given, self._budgets, action.kind)
            violation, after = "", value
            try:
                after = action.happen(choices)
            except ViolationError as error:
                violation = str(error)
            cost = self._budgets.cost(*choices.kinds)
            label = (*action.label, *choices.words)
            number = -1 if violation else self._number(after)
            violation = violation or self._wrong[number]
            yield _Move(cost, number, label, violation)
            for at in range(len(given), len(choices.counts)):
                before = tuple(choices.taken[:at])
                todo += [(*before, other) for other in range(1, choices.counts[at])]

    def steps(self, state: int) -> list[Step]:
        """Returns the states that may follow one, with labels."""
        budget = state & BUDGET_MASK
        found: list[Step] = []
        for cost, number, label, violation in self._moves_of(state >> BUDGET_BITS):
            left = self._budgets.left[cost][budget]
            if left < 0:
                continue
            if violation:
                raise FoundError(violation, label)
            found.append((number << BUDGET_BITS | left, not cost, label))
        return found

    def successors(self, state: int) -> tuple[list[int], list[int]]:
        """Returns the states that follow one without a fault, and with one."""
        free: list[int] = []
        paid: list[int] = []
        for after, is_free, _ in self.steps(state):
            (free if is_free else paid).append(after)
        return free, paid


def explore_model(model: Model[S], *, most: int = 100_000_000, liveness: bool = True) -> Found:
    """Explores a model; at most about `most` states."""
    found = Explorer(ChoiceSpace(model), Found()).run(most, liveness=liveness)
    found.story = [
        f"{step:3d} {'; '.join(map(str, label))}" for step, label in enumerate(found.labels, 1)
    ]
    return found


def replay_model(model: Model[S], labels: list[Label]) -> str:
    """Takes the steps of a story again; returns the violation at its end, empty for none.

    Raises:
        ValueError: a step cannot be taken.
    """
    return taken_again(ChoiceSpace(model), labels)
