import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.instances import paper_problem
from broker.model.limits import Limits, with_limits
from broker.planner._builder import Workspace
from broker.planner.compilation import compile_problem
from tests.broker.planner.test_builder import built
from tests.broker.random_problems import HOUR
from tests.examples import FEW, THOROUGH
from tests.oracles.plan_builder import plain_build


@pytest.mark.parametrize(
    ("strategy", "dependencies"),
    [
        (strategy, dependencies)
        for strategy in range(1, 6)
        for dependencies in (("sD", "lD") if THOROUGH else ("sD", "lD")[strategy % 2 :][:1])
    ],
)
def test_choices_of_many_words_are_the_plain_builders(strategy: int, dependencies: str) -> None:
    """Sets of more than 64 choices are searched as lists of them are, and budgets are heeded."""
    free = paper_problem(f"lR{dependencies}", 60, np.random.default_rng(strategy), resources=150)
    problem = with_limits(free, Limits(due_factor=2.0, budget_factor=1.2))
    compilation = compile_problem(problem)
    genes = np.random.default_rng(7).permutation(60).tolist()
    keys = [(workflow.name, task.name) for workflow, task in compilation.tasks]
    expected, _ = plain_build(problem, [keys[gene] for gene in genes], strategy)
    for buckets in (16, 256):
        plan = built(
            compilation, Workspace(compilation.compiled, HOUR, buckets), genes, strategy - 1
        )
        assert {p.key: (p.demands, p.start, p.end) for p in plan} == {
            key: (p.demands, p.start, p.end) for key, p in expected.items()
        }


@FEW
@given(st.integers(0, 1000), st.sampled_from((1.0, 1.02, 1.2, 1.5)))
def test_a_share_of_the_budget_is_enough(seed: int, factor: float) -> None:
    """RAS-5 keeps every budget that the cheapest resources could keep, in any sequence."""
    rng = np.random.default_rng(seed)
    free = paper_problem("lRlD", 40, rng)
    problem = with_limits(free, Limits(due_factor=1.0, budget_factor=factor))
    compilation = compile_problem(problem)
    workspace = Workspace(compilation.compiled, HOUR)
    plan = built(compilation, workspace, rng.permutation(40).tolist(), 4)
    assert [each.over_budget for each in plan.outcomes(problem.workflows)] == pytest.approx(
        [0.0] * len(problem.workflows), abs=1e-4 * factor
    )
