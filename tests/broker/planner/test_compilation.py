import numpy as np
from hypothesis import given

from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.planner.arrays import Prices
from broker.planner.compilation import Compilation, compile_problem
from tests.broker.random_problems import problems


def members(compilation: Compilation, row: int) -> list[Alternative]:
    """Returns the alternatives of a task as its set of bits has them, fastest first."""
    compiled = compilation.compiled
    words = max(1, -(-compiled.choices // 64))
    row_words = compiled.column("usable_fastest")[row * words : (row + 1) * words]
    bits = np.unpackbits(row_words.view(np.uint8), bitorder="little")
    return [compilation.choices[number] for number in np.flatnonzero(bits)]


@given(problems())
def test_sets_hold_the_alternatives_that_are_possible(problem: Problem) -> None:
    """Every task has just those of its alternatives that could be used if nothing else were."""
    compilation = compile_problem(problem)
    for row, (_, task) in enumerate(compilation.tasks):
        expected = {each for each in task.alternatives if problem.is_possible(task, each)}
        found = members(compilation, row)
        assert set(found) == expected
        assert len(found) == len(expected)
        speeds = [problem.resource[each.primary].performance for each in found]
        assert speeds == sorted(speeds, reverse=True)


@given(problems())
def test_both_orders_have_every_choice_once(problem: Problem) -> None:
    """The cheapest come first in the second order, by the price of work."""
    compilation = compile_problem(problem)
    count = len(compilation.choices)
    order = compilation.compiled.column("by_rank_cheapest")[:count]
    assert sorted(order) == list(range(count))
    of_work = Prices(problem).of_work
    prices = [of_work(compilation.choices[number]) for number in order]
    assert prices == sorted(prices)
    rank = compilation.compiled.column("rank_cheapest")
    assert [rank[number] for number in order] == list(range(count))


def test_equal_alternatives_are_one_choice() -> None:
    """Whether they are the same object or not."""
    tasks = tuple(
        Task(f"t{i}", 1.0, (Alternative.of("a"), Alternative((Demand("b", 2),)))) for i in range(3)
    )
    pool = (Resource("a"), Resource("b", capacity=2))
    compilation = compile_problem(Problem((Workflow("w", tasks),), pool))
    assert len(compilation.choices) == 2
