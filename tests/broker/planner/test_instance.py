import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.problem import Problem
from broker.model.resources import PriceRule, Resource, WeeklyWindow
from broker.model.workflow import Alternative, Task, Workflow
from broker.planner._instance import CompiledProblem
from broker.planner.compilation import compile_problem
from tests.broker.random_problems import HOUR, NOW, problems
from tests.oracles.plan_checker import price_between


@given(problems(fixed=False), st.integers(-50, 300), st.integers(1, 400))
def test_the_cost_of_a_placement_is_that_of_its_resources(
    problem: Problem, begin: int, length: int
) -> None:
    """Flat or by the week, for any number of resources and units."""
    compilation = compile_problem(problem)
    start = NOW + begin * HOUR / 2
    duration = length * HOUR / 2
    for number, choice in enumerate(compilation.choices):
        expected = sum(
            demand.units * price_between(problem.resource[demand.resource], start, start + duration)
            for demand in choice.demands
        )
        cost = compilation.compiled.placement_cost(number, start, duration)
        assert cost == pytest.approx(expected, abs=1e-3)


def test_costs_are_exact_at_dates_of_today() -> None:
    """A third of a second, 1.8 billion seconds after 1970, costs a third of the price, flat or not."""
    dear = PriceRule(3.0, WeeklyWindow(0, 6 * HOUR))
    third = Alternative.of("a")
    for rules in ((), (dear,)):
        resource = Resource("a", performance=3.0, price=3.0, price_rules=rules)
        flow = Workflow("w", (Task("t", 1.0, (third,)),))
        compiled = compile_problem(Problem((flow,), (resource,), NOW)).compiled
        assert compiled.placement_cost(0, NOW + 5 / 7, 1 / 3) == pytest.approx(1.0, rel=1e-12)
        assert resource.cost_for(NOW + 5 / 7, 1 / 3) == pytest.approx(1.0, rel=1e-12)


@given(problems())
def test_a_choice_that_is_not_there_is_refused(problem: Problem) -> None:
    """Numbers below 0 and from the number of choices on."""
    compiled = compile_problem(problem).compiled
    for number in (-1, compiled.choices):
        with pytest.raises(ValueError, match=f"choice {number} of {compiled.choices}"):
            compiled.placement_cost(number, 0.0, 1.0)


def test_arrays_of_a_wrong_type_are_refused() -> None:
    """The kernels read memory: whatever is not float64 or int32 does not get in."""
    sizes = dict.fromkeys(
        ("tasks", "workflows", "resources", "choices", "words", "prices_vary", "now", "keeping"),
        1.0,
    )
    sizes = {name: int(value) for name, value in sizes.items()}
    with pytest.raises(ValueError, match="Buffer dtype mismatch"):
        CompiledProblem(sizes, {"work": np.zeros(1, np.float32)})
