"""States that a model makes, action by action, where what happens meanwhile is chosen in all ways.

A model is code that runs as it would, but for what its surroundings do: wherever that could be this or that it asks
`Choices.pick`. An action is run once for each sequence of answers, so that real code, whatever calls it makes, is
explored without a word about its inside. A choice may be a fault, which costs as a bound says, and a model that raises
`ViolationError` has done what must not be.
"""

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

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


class _Parts:
    """Keeps each part of states once, by the fields in which it is found."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], dict[Any, Any]] = {}

    def shared(self, value: Any, path: tuple[str, ...] = ()) -> Any:
        """Returns the same value, made of parts that others have as well."""
        if not isinstance(value, tuple):
            return value
        if names := getattr(value, "_fields", ()):
            parts = zip(names, value, strict=True)
            value = type(value)(*(self.shared(part, (*path, name)) for name, part in parts))
        return self._known.setdefault(path, {}).setdefault(value, value)


class ChoiceSpace(Generic[S]):
    """The states of a model, each with what may still go wrong, as numbers."""

    def __init__(self, model: Model[S]) -> None:
        self.model = model
        self.budgets = Budgets(dict(model.faults))
        self._parts = _Parts()
        self._numbers: dict[S, int] = {}
        self._values: list[S] = []
        self._wrong: dict[int, str] = {}
        self._ends: dict[int, bool] = {}
        # Of each state costs and the states after it, in turn; of those with a violation among them not.
        self._moves: dict[int, array[int]] = {}

    def value(self, state: int) -> S:
        """Returns a state as the model has it."""
        return self._values[state >> BUDGET_BITS]

    def first(self) -> int:
        """Returns the first state."""
        return self._number(self.model.first()) << BUDGET_BITS

    def _number(self, value: S) -> int:
        number = self._numbers.get(value)
        if number is None:
            value = self._parts.shared(value)
            number = self._numbers[value] = len(self._values)
            self._values.append(value)
            if wrong := self.model.wrong(value):
                self._wrong[number] = wrong
        return number

    def is_end(self, state: int) -> bool:
        """Returns whether nothing is left to be done."""
        number = state >> BUDGET_BITS
        known = self._ends.get(number)
        if known is None:
            known = self._ends[number] = self.model.is_end(self._values[number])
        return known

    def _moves_of(self, number: int) -> list[_Move]:
        value = self._values[number]
        return [move for action in self.model.actions(value) for move in self._runs(value, action)]

    def _runs(self, value: S, action: Action[S]) -> Iterator[_Move]:
        if self.budgets.cost(action.kind) < 0:
            return
        todo: list[tuple[int, ...]] = [()]
        while todo:
            given = todo.pop()
            choices = Choices(given, self.budgets, action.kind)
            violation, after = "", value
            try:
                after = action.happen(choices)
            except ViolationError as error:
                violation = str(error)
            cost = self.budgets.cost(*choices.kinds)
            label = (*action.label, *choices.words)
            number = -1 if violation else self._number(after)
            violation = violation or self._wrong.get(number, "")
            yield _Move(cost, number, label, violation)
            for at in range(len(given), len(choices.counts)):
                before = tuple(choices.taken[:at])
                todo += [(*before, other) for other in range(1, choices.counts[at])]

    def steps(self, state: int) -> list[Step]:
        """Returns the states that may follow one, with labels."""
        budget = state & BUDGET_MASK
        found: list[Step] = []
        for cost, number, label, violation in self._moves_of(state >> BUDGET_BITS):
            left = self.budgets.left[cost][budget]
            if left < 0:
                continue
            if violation:
                raise FoundError(violation, label)
            found.append((number << BUDGET_BITS | left, not cost, label))
        return found

    def successors(self, state: int) -> tuple[list[int], list[int]]:
        """Returns the states that follow one without a fault, and with one."""
        number, budget = state >> BUDGET_BITS, state & BUDGET_MASK
        free: list[int] = []
        paid: list[int] = []
        known = self._moves.get(number)
        if known is None:
            moves = self._moves_of(number)
            known = array("q", (part for move in moves for part in move[:2]))
            if any(move.violation for move in moves):
                self.steps(state)
            else:
                self._moves[number] = known
        for cost, after in zip(known[::2], known[1::2], strict=True):
            left = self.budgets.left[cost][budget]
            if left >= 0:
                (paid if cost else free).append(after << BUDGET_BITS | left)
        return free, paid


def explore_model(
    model: Model[S],
    *,
    most: int = 100_000_000,
    liveness: bool = True,
    all_budgets: bool = False,
) -> Found:
    """Explores a model; at most about `most` states. `all_budgets` is that of `Explorer`."""
    explorer = Explorer(ChoiceSpace(model), Found(), all_budgets=all_budgets)
    found = explorer.run(most, liveness=liveness)
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
