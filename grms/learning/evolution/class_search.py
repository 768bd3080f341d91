"""Coordinate descent over a table of choices (Algorithm 2 of paper 000, section 5.1).

A table has an integer gene for each class of states. Class after class is tried with every choice,
the rest of the table unchanged, and the best one stays. Of equal ones the present choice stays,
else the first: the order of classes and choices is part of the result.

Exact shortcut: a class that the present table never met in its replay cannot change anything, and
is skipped. The second row of an evaluation's figures has the classes met.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from grms.learning.evolution.genes import GeneSpace, Genome, IntegerArray
from grms.learning.evolution.strategies import Figures, Individual, Strategy, check_values

VISITS_ROW = 1
"""Row of an evaluation's figures that holds how often each class was met."""


class ClassSearch(Strategy):
    """One sweep over all classes, deterministic.

    Args:
        choices: shape (m,), number of choices of each class.
        standard: shape (m,), the initial table, which classes that are never met keep.
        others: more such tables; the sweep begins with the best of all, of equal ones the first.

    Raises:
        ValueError: such a table has another shape, or an invalid choice.
    """

    name = "iterative"

    def __init__(
        self,
        choices: IntegerArray,
        standard: IntegerArray,
        others: Sequence[IntegerArray] = (),
    ) -> None:
        for table in (standard, *others):
            if table.shape != choices.shape or ((table < 0) | (table >= choices)).any():
                raise ValueError(
                    f"the standard table has shape {table.shape}; one choice is needed for each of "
                    f"{len(choices)} classes, from 0 to below the number of its choices"
                )
        none = np.zeros(0)
        self.space = GeneSpace(none, none, none, choices=choices)
        self._table = standard.copy()
        self._others = [table.copy() for table in others]
        self._visits: tuple[float, ...] = ()
        self._next = 0
        self._value = math.inf
        self._asked: list[int] = []

    @property
    def best(self) -> Individual | None:
        """The present table; None before it was judged."""
        return Individual(self._genome(), self._value) if self._told else None

    @property
    def bound(self) -> float:
        """The value of the present table."""
        return self._value

    @property
    def exhausted(self) -> str:
        """Why there is nothing more to ask; empty while there is."""
        if not self._told or self._class() is not None:
            return ""
        return f"all {len(self._table)} classes are done"

    def ask(self) -> list[Genome]:
        """Returns the initial tables, or the present one with each other choice for the next class met.

        Raises:
            ValueError: all classes are done.
        """
        if not self._told:
            self._asked = [-1, *range(len(self._others))]
            return [self._genome(), *(_genome_of(table) for table in self._others)]
        place = self._class()
        if place is None:
            raise ValueError(f"{self.exhausted}; nothing is left to ask")
        self._next = place
        present = int(self._table[place])
        self._asked = [one for one in range(int(self.space.choices[place])) if one != present]
        return [self._genome(place, choice) for choice in self._asked]

    def tell(self, values: Sequence[float], figures: Sequence[Figures] = ()) -> None:
        """Learns the values of the genomes, and which classes were met.

        Raises:
            ValueError: nothing was asked, there are more or fewer values than genomes, one is not
                a finite number, or the figures of the best have no row of visits.
        """
        check_values(values, len(self._asked))
        first = min(range(len(values)), key=values.__getitem__)
        if values[first] < self._value:
            rows = figures[first] if first < len(figures) else ()
            if len(rows) <= VISITS_ROW or len(rows[VISITS_ROW]) != len(self._table):
                raise ValueError("an evaluation does not say how often each class was met")
            self._visits = tuple(rows[VISITS_ROW])
            self._value = float(values[first])
            if self._told:
                self._table[self._next] = self._asked[first]
            elif first:
                self._table = self._others[self._asked[first]].copy()
        if self._told:
            self._next += 1
        self._told += 1
        self._asked = []

    def _class(self) -> int | None:
        """Returns the next class that can change anything."""
        for place in range(self._next, len(self._table)):
            if self._visits[place] > 0 and self.space.choices[place] > 1:
                return place
        return None

    def _genome(self, place: int | None = None, choice: int = 0) -> Genome:
        table = self._table.copy()
        if place is not None:
            table[place] = choice
        return _genome_of(table)

    def to_state(self) -> dict[str, Any]:
        """Returns all the search knows as plain values that JSON keeps exactly."""
        return {
            "strategy": self.name,
            "choices": self.space.choices.tolist(),
            "table": self._table.tolist(),
            "others": [table.tolist() for table in self._others],
            "visits": list(self._visits),
            "next": self._next,
            "value": None if math.isinf(self._value) else self._value,
            "told": self._told,
            "asked": list(self._asked),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Returns the search that `to_state` described."""
        search = cls(
            np.array(state["choices"], np.int64),
            np.array(state["table"], np.int64),
            [np.array(table, np.int64) for table in state["others"]],
        )
        search._visits = tuple(state["visits"])
        search._next = state["next"]
        search._value = math.inf if state["value"] is None else state["value"]
        search._told = state["told"]
        search._asked = list(state["asked"])
        return search


def _genome_of(table: IntegerArray) -> Genome:
    return Genome(np.zeros(0), np.zeros(0, np.bool_), table.copy())
