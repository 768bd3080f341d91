import json
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.learning.evolution.catalog import strategy_from_state
from grms.learning.evolution.class_search import ClassSearch
from grms.learning.evolution.strategies import Figures

CHOICES = np.array([3, 1, 4, 2], np.int64)


class Table:
    """A made-up objective: a table of costs, and classes that some choices keep from being met."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.cost = rng.integers(1, 4, size=(4, 4)).astype(float)
        self.hidden = rng.random((4, 4, 4)) < 0.15
        self.asked = 0

    def visits(self, table: Sequence[int]) -> list[float]:
        """Returns 1 for each class that no class before it hides."""
        seen: list[float] = []
        for place in range(4):
            hidden = any(
                seen[before] > 0 and self.hidden[before, table[before], place]
                for before in range(place)
            )
            seen.append(0.0 if hidden else 1.0)
        return seen

    def judge(self, table: Sequence[int]) -> tuple[float, Figures]:
        """Returns the costs of all classes that are met, and the visits."""
        self.asked += 1
        visits = self.visits(table)
        value = sum(self.cost[i, table[i]] for i in range(4) if visits[i])
        return value, ((value,), tuple(visits))


def plain(problem: Table, standard: Sequence[int]) -> tuple[list[int], float]:
    """Algorithm 2 as it is printed, without any shortcut; the present choice is tried first."""
    table = list(standard)
    best = problem.judge(table)[0]
    for place, choices in enumerate(CHOICES):
        present = table[place]
        best = problem.judge(table)[0]
        for choice in range(choices):
            trial = [*table[:place], choice, *table[place + 1 :]]
            value = problem.judge(trial)[0]
            if choice != present and value < best:
                best, table = value, trial
    return table, best


def run(search: ClassSearch, problem: Table) -> None:
    while not search.exhausted:
        found = [problem.judge(genome.integer.tolist()) for genome in search.ask()]
        search.tell([value for value, _ in found], [figures for _, figures in found])


@given(
    st.integers(0, 2**32),
    st.tuples(st.integers(0, 2), st.just(0), st.integers(0, 3), st.integers(0, 1)),
)
def test_it_finds_what_the_printed_algorithm_finds(seed: int, standard: tuple[int, ...]) -> None:
    """With fewer evaluations: classes that are never met are passed over."""
    problem, other = Table(seed), Table(seed)
    search = ClassSearch(CHOICES, np.array(standard, np.int64))
    run(search, problem)
    table, value = plain(other, standard)
    assert search.best is not None
    assert search.best.value == value
    assert search.best.genome.integer.tolist() == table
    assert problem.asked <= 1 + sum(CHOICES - 1) < other.asked


def test_a_class_that_is_not_met_is_not_tried() -> None:
    """The next class that was met is asked for instead."""
    search = ClassSearch(CHOICES, np.zeros(4, np.int64))
    assert [genome.integer.tolist() for genome in search.ask()] == [[0, 0, 0, 0]]
    search.tell([9.0], [((), (0.0, 5.0, 7.0, 0.0))])
    assert [genome.integer.tolist() for genome in search.ask()] == [
        [0, 0, 1, 0],
        [0, 0, 2, 0],
        [0, 0, 3, 0],
    ]
    assert search.bound == 9.0
    search.tell([9.0, 8.0, 8.0], [((), (0.0, 5.0, 7.0, 0.0))] * 3)
    assert search.best is not None
    assert (search.best.value, search.best.genome.integer.tolist()) == (8.0, [0, 0, 2, 0])
    assert search.exhausted == "all 4 classes are done"
    with pytest.raises(ValueError, match="nothing is left to ask"):
        search.ask()


@pytest.mark.parametrize("told", [0, 1, 2, 3])
@pytest.mark.parametrize("asked", [False, True])
def test_a_saved_search_goes_on(told: int, *, asked: bool) -> None:
    """Through JSON, between asking and telling too."""
    search, problem = ClassSearch(CHOICES, np.zeros(4, np.int64)), Table(3)
    problem.hidden[:] = False
    for _ in range(told):
        found = [problem.judge(genome.integer.tolist()) for genome in search.ask()]
        search.tell([value for value, _ in found], [figures for _, figures in found])
    if asked:
        search.ask()
    again = strategy_from_state(json.loads(json.dumps(search.to_state())))
    assert isinstance(again, ClassSearch)
    run(search, problem)
    run(again, problem)
    assert again.to_state() == search.to_state()


@pytest.mark.parametrize("told", [0, 1, 3])
def test_the_best_of_several_tables_is_begun_with(told: int) -> None:
    """Judged side by side; from there on as if it had been the standard, over a resumption too."""
    problem = Table(3)
    problem.hidden[:] = False
    tables = [np.minimum(number, CHOICES - 1) for number in range(3)]
    values = [problem.judge(table.tolist())[0] for table in tables]
    best = tables[values.index(min(values))]
    search = ClassSearch(CHOICES, tables[0], tables[1:])
    assert [one.integer.tolist() for one in search.ask()] == [table.tolist() for table in tables]
    for _ in range(told):
        found = [problem.judge(genome.integer.tolist()) for genome in search.ask()]
        search.tell([value for value, _ in found], [figures for _, figures in found])
        if search.generation == 0:
            assert search.best is not None
            assert search.best.genome.integer.tolist() == best.tolist()
    again = strategy_from_state(json.loads(json.dumps(search.to_state())))
    assert isinstance(again, ClassSearch)
    alone = ClassSearch(CHOICES, best)
    run(again, problem)
    run(alone, problem)
    assert again.best is not None
    assert alone.best is not None
    assert again.best.value == alone.best.value
    assert again.best.genome.integer.tolist() == alone.best.genome.integer.tolist()


def test_what_cannot_be_searched_or_told() -> None:
    """A standard that is no table, values without visits, values that were not asked for."""
    for standard in ([0, 0, 0], [0, 0, 4, 0], [-1, 0, 0, 0]):
        with pytest.raises(ValueError, match="one choice is needed for each of 4 classes"):
            ClassSearch(CHOICES, np.array(standard, np.int64))
    search = ClassSearch(CHOICES, np.zeros(4, np.int64))
    with pytest.raises(ValueError, match="nothing was asked"):
        search.tell([1.0])
    search.ask()
    with pytest.raises(ValueError, match="does not say how often each class was met"):
        search.tell([1.0])
    with pytest.raises(ValueError, match="does not say how often each class was met"):
        search.tell([1.0], [((1.0,), (1.0, 1.0))])
