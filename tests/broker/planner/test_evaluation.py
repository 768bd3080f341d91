import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from broker.planner._builder import Workspace
from broker.planner.compilation import compile_problem
from broker.planner.evaluation import compile_goals, judge, lower_bounds, widened
from broker.planner.goals import MAKESPAN_ONLY, Goal, Goals
from broker.problem import Problem
from broker.resources import Resource
from broker.workflow import Alternative, Task, Workflow
from tests.broker.random_problems import HOUR, problems
from tests.oracles.plan_worth import plain_criteria, plain_fitness

CASCADE = Goals(
    time=Goal(0.3, 0, 0.6),
    cost=Goal(0.2, 1, 0.6),
    delay=Goal(0.2, 2, 0.3),
    makespan=Goal(0.2, 1, 0.2),
    utilization=Goal(0.1, 3, 0.0),
)


@given(st.data(), problems(), st.sampled_from((Goals(), CASCADE, MAKESPAN_ONLY)))
def test_a_plan_is_worth_what_the_plain_sums_say(
    data: st.DataObject, problem: Problem, goals: Goals
) -> None:
    """Fitness, criteria and counts are the oracle's, with bounds from some other schedules."""
    compilation = compile_problem(problem)
    count = len(compilation.tasks)
    assume(count > 0)
    workspace = Workspace(compilation.compiled, 50 * HOUR)
    bounds = lower_bounds(compilation)
    provisional = compile_goals(compilation, goals, bounds)
    for _ in range(2):
        genes = data.draw(st.permutations(range(count)))
        workspace.build(np.array(genes, np.int32), data.draw(st.integers(0, 2)))
        bounds = widened(bounds, [provisional.worth(workspace)])
    workspace.build(np.array(data.draw(st.permutations(range(count))), np.int32), 0)
    worth = judge(compile_goals(compilation, goals, bounds), workspace)
    plan = compilation.plan(workspace.columns["choice"][:count], workspace.columns["start"][:count])
    fitness, raw = plain_fitness(problem, plan, goals, bounds)
    assert worth.criteria == pytest.approx(plain_criteria(problem, plan, bounds), abs=1e-6)
    assert worth.raw == pytest.approx(raw, abs=1e-2)
    assert worth.fitness == pytest.approx(fitness, abs=1e-2)
    assert 0 <= worth.fitness <= 100_000 * (1 + 1e-9)
    if not plan.unplanned:
        outcomes = plan.outcomes(problem.workflows)
        assert worth.late == sum(each.tardiness > 0 for each in outcomes)
        assert worth.over_budget == sum(each.over_budget > 0 for each in outcomes)
        assert worth.keeps_all_limits == all(each.keeps_its_limits for each in outcomes)


@given(problems(), st.integers(0, 2))
def test_no_plan_beats_the_lower_bounds(problem: Problem, strategy: int) -> None:
    """Completions, costs, delays and the makespan of any schedule are at least the bounds."""
    compilation = compile_problem(problem)
    count = len(compilation.tasks)
    assume(count > 0)
    workspace = Workspace(compilation.compiled, 50 * HOUR)
    workspace.build(np.arange(count, dtype=np.int32), strategy)
    bounds = lower_bounds(compilation)
    found = compile_goals(compilation, Goals(), bounds).worth(workspace)
    assert found["unplanned"] == 0
    assert (found["completion"] >= bounds.time_min - 1e-6).all()
    assert (found["workflow_cost"] >= bounds.cost_min - 1e-6).all()
    assert found["mean_delay"] >= bounds.delay[0] - 1e-6
    assert found["makespan"] >= bounds.makespan[0] - 1e-6


def worth_of(due_dates: list[float]) -> float:
    """Returns the fitness of ten equal workflows on ten resources, with these due dates."""
    flows = tuple(
        Workflow(f"w{i}", (Task("t", 10.0, (Alternative.of(f"r{i}"),)),), 0.0, due)
        for i, due in enumerate(due_dates)
    )
    problem = Problem(flows, tuple(Resource(f"r{i}") for i in range(10)))
    compilation = compile_problem(problem)
    workspace = Workspace(compilation.compiled, 10.0)
    workspace.build(np.arange(10, dtype=np.int32), 0)
    goals = Goals(tardiness_third=1e9)
    return judge(compile_goals(compilation, goals, lower_bounds(compilation)), workspace).fitness


def test_the_first_offender_costs_a_fifth() -> None:
    """One late workflow leaves 0.8 of the fitness, each further one less."""
    fitness = [worth_of([5.0] * late + [10.0] * (10 - late)) for late in range(11)]
    assert fitness[1] == pytest.approx(0.8 * fitness[0])
    assert fitness == sorted(fitness, reverse=True)
    # Half of them: a third of the first one's.
    assert fitness[5] == pytest.approx(0.8 * fitness[0] * 3 ** (-0.4 / 0.4))


def test_bounds_without_limits_are_the_worst_schedules() -> None:
    """A workflow without due date or budget is judged against what was found."""
    problem = Problem(
        (Workflow("w", (Task("t", 10.0, (Alternative.of("a"),)),), 0.0),),
        (Resource("a", price=2.0),),
    )
    compilation = compile_problem(problem)
    bounds = lower_bounds(compilation)
    assert bounds.time_max[0] == -math.inf
    workspace = Workspace(compilation.compiled, 10.0)
    workspace.build(np.zeros(1, np.int32), 0)
    bounds = widened(bounds, [compile_goals(compilation, Goals(), bounds).worth(workspace)])
    assert bounds.time_max[0] == 10
    assert bounds.cost_max[0] == 20
