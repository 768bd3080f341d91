import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.model.resources import Calendar, Resource
from broker.model.workflow import Alternative, Task, Workflow
from broker.planner._builder import Workspace
from broker.planner.compilation import compile_problem
from broker.planner.evaluation import Worth, compile_goals, judge, lower_bounds, widened
from broker.planner.goals import MAKESPAN_ONLY, Goal, Goals
from tests.broker.random_problems import HOUR, problems, random_problem
from tests.oracles.plan_worth import plain_criteria, plain_fitness

CASCADE = Goals(
    time=Goal(0.3, 0, 0.6),
    cost=Goal(0.2, 1, 0.6),
    delay=Goal(0.2, 2, 0.3),
    makespan=Goal(0.2, 1, 0.2),
    utilization=Goal(0.1, 3, 0.0),
)

# No time allowed, and a due date before the submission.
NOTHING_ALLOWED = st.sampled_from(
    [random_problem(seed, plain=False, workflows_max=5, fixed=True) for seed in (283, 49754312)]
)


@given(st.data(), NOTHING_ALLOWED | problems(), st.sampled_from((Goals(), CASCADE, MAKESPAN_ONLY)))
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
    assert worth.fitness == pytest.approx(fitness, abs=1e-2, rel=1e-6)
    if plan.unplanned:
        assert -worth.unplanned <= worth.fitness <= -worth.unplanned + 0.5 + 1e-9
    else:
        assert 0 < worth.fitness <= 100_000 * (1 + 1e-9)
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


def queued(due_dates: list[float], now: float = 0.0, begin: float = 0.0) -> Problem:
    """Returns equal workflows of 10 s with these due dates, each with a fast and a slow resource.

    The fast one takes 10 s, the slow one, which is free, 20 s.
    """
    flows = tuple(
        Workflow(
            f"w{i}",
            (Task("t", 10.0, (Alternative.of(f"f{i}"), Alternative.of(f"s{i}"))),),
            begin,
            due,
        )
        for i, due in enumerate(due_dates)
    )
    fast = tuple(Resource(f"f{i}", price=1.0) for i in range(len(due_dates)))
    slow = tuple(Resource(f"s{i}", performance=0.5) for i in range(len(due_dates)))
    return Problem(flows, (*fast, *slow), now)


def worths(problem: Problem, goals: Goals, strategies: tuple[int, ...]) -> list[Worth]:
    """Returns what the schedules of the tasks in their order are worth, by strategy."""
    compilation = compile_problem(problem)
    workspace = Workspace(compilation.compiled, 100.0)
    order = np.arange(len(compilation.tasks), dtype=np.int32)
    bounds = lower_bounds(compilation)
    provisional = compile_goals(compilation, goals, bounds)
    for strategy in (0, 1):
        workspace.build(order, strategy)
        bounds = widened(bounds, [provisional.worth(workspace)])
    compiled = compile_goals(compilation, goals, bounds)
    found = []
    for strategy in strategies:
        workspace.build(order, strategy)
        found.append(judge(compiled, workspace))
    return found


def test_the_first_offender_costs_a_fifth() -> None:
    """One late workflow leaves 0.8 of the fitness, each further one less."""
    # All take the cheap resource and end at 20, so that raw fitness is that of one plan.
    goals = Goals(tardiness_third=1e9)
    found = [
        worths(queued([15.0] * late + [20.0] * (10 - late)), goals, (1,))[0] for late in range(11)
    ]
    assert [each.late for each in found] == list(range(11))
    fitness = [each.fitness / each.raw for each in found]
    assert fitness[1] == pytest.approx(0.8 * fitness[0])
    assert fitness == sorted(fitness, reverse=True)
    # Half of them: a third of the first one's.
    assert fitness[5] == pytest.approx(0.8 * fitness[0] * 3 ** (-0.4 / 0.4))


@pytest.mark.parametrize("late", [1e3, 1e6, 1e9])
def test_lateness_that_no_plan_avoids_costs_nothing(late: float) -> None:
    """Whatever time has passed since the due dates, plans compare as without them."""
    overdue = worths(queued([15.0] * 4, late), Goals(), (0, 1))
    without = worths(queued([math.inf] * 4, late), Goals(), (0, 1))
    assert [each.late for each in overdue] == [4, 4]
    # What is soonest is worth the same; what is not loses less than one late workflow would cost.
    assert overdue[0].fitness == pytest.approx(without[0].fitness)
    assert 0.9 * without[1].fitness < overdue[1].fitness < without[1].fitness


def test_one_overdue_workflow_does_not_hide_the_lateness_of_another() -> None:
    """The first that could be in time costs a fifth, whether others are overdue or not."""
    for overdue in ([], [-1e7] * 3):
        in_time, too_late = (
            worths(queued([*overdue, due, 50.0]), Goals(tardiness_third=1e9), (1,))[0]
            for due in (50.0, 15.0)
        )
        ratio = too_late.fitness / too_late.raw / (in_time.fitness / in_time.raw)
        assert ratio == pytest.approx(0.8, rel=1e-6)


def test_a_budget_that_is_just_enough_is_kept_at_dates_of_today() -> None:
    """The cheapest plan costs what it costs at second 0: rounded dates make no workflow too dear."""
    tasks = tuple(Task(f"t{n}", 200.0, (Alternative.of("a"),)) for n in range(5))
    pool = (Resource("a", performance=3.0, price=0.03),)
    for now in (0.0, 1.79e9):
        flow = Workflow("w", tasks, budget=10.0)
        (worth,) = worths(Problem((flow,), pool, now), Goals(), (0,))
        assert (worth.over_budget, worth.excess) == (0, 0.0)
        assert worth.cost == pytest.approx(10.0, rel=1e-12)


def test_limits_beyond_measure_are_as_good_as_none() -> None:
    """Due dates and budgets so large that their sum is no number: nobody is late or too dear."""
    for worth in worths(queued([1.7e308] * 3), Goals(), (0, 1)):
        assert worth.late == 0
        assert 0 < worth.fitness <= 100_000
    flows = [replace(each, budget=1.7e308) for each in queued([math.inf] * 3).workflows]
    problem = replace(queued([math.inf] * 3), workflows=tuple(flows))
    assert [each.over_budget for each in worths(problem, Goals(), (0, 1))] == [0, 0]


def test_no_penalty_is_so_large_that_plans_become_equal() -> None:
    """Workflows a million times later than allowed, by one second more or less."""
    goals = Goals(tardiness_third=1e-6)
    found = worths(queued([15.0] * 3), goals, (0, 1))
    more = worths(queued([15.0 - 1e-3] * 3), goals, (1,))
    assert found[0].fitness > found[1].fitness > more[0].fitness > 0


def test_the_time_allowed_is_that_from_the_submission() -> None:
    """Replanning later does not make a second of lateness worse than it was."""
    # At 2 the workflow still has 13 s until its due date; it was given 15.
    early, later = (
        worths(queued([15.0] * 2, now, begin=0.0), Goals(offenders_third=1e9), (1,))[0]
        for now in (0.0, 2.0)
    )
    assert early.tardiness == 10
    assert later.tardiness == 14
    thirds = [math.log(each.fitness / each.raw / 0.8, 1 / 3) for each in (early, later)]
    assert thirds[0] == pytest.approx(10 / 30 / 0.2, abs=1e-3)
    assert thirds[1] == pytest.approx(14 / 30 / 0.2, abs=1e-3)


def test_a_budget_below_what_is_possible_counts_as_little() -> None:
    """It is no offender; spending less is still worth more."""
    problem = queued([math.inf] * 3)
    only_fast = replace(
        problem,
        workflows=tuple(
            replace(
                each,
                budget=0.0,
                tasks=(replace(each.tasks[0], alternatives=each.tasks[0].alternatives[:1]),),
            )
            for each in problem.workflows
        ),
    )
    found = worths(only_fast, Goals(), (0,))[0]
    assert found.over_budget == 3
    assert found.fitness == pytest.approx(found.raw)


def test_the_fewer_tasks_without_a_place_the_better() -> None:
    """However good the rest is; and of as many, what is worth more."""

    def with_tasks(hours: float) -> Problem:
        shut = Resource("a", calendar=Calendar(closures=((hours, math.inf),)))
        chain = tuple(
            Task(f"t{i}", 1.0, (Alternative.of("a"),), (f"t{i - 1}",) if i else ())
            for i in range(4)
        )
        return Problem((Workflow("w", chain, 0.0, 5.0),), (shut,))

    fitness = [worths(with_tasks(hours), Goals(), (0,))[0].fitness for hours in (1.5, 2.5, 3.5, 9)]
    assert fitness == sorted(fitness)
    assert -3 < fitness[0] < -2 < fitness[1] < -1 < fitness[2] < 0 < fitness[3]


def test_moving_tasks_costs_what_stability_says() -> None:
    """A share of the fitness for all tasks, of that a part for each; nothing without an old plan."""
    problem = queued([math.inf] * 4)
    first = compile_problem(problem)
    workspace = Workspace(first.compiled, 100.0)
    order = np.arange(4, dtype=np.int32)
    workspace.build(order, 0)
    old = first.plan(workspace.columns["choice"][:4], workspace.columns["start"][:4])
    for kept in (0, 2, 4):
        compilation = compile_problem(problem, Plan(old.placements[:kept]))
        workspace = Workspace(compilation.compiled, 100.0)
        bounds = lower_bounds(compilation)
        found = {}
        for stability in (0.0, 0.3):
            goals = compile_goals(compilation, Goals(stability=stability), bounds)
            for strategy in (0, 1):
                workspace.build(order, strategy)
                found[stability, strategy] = judge(goals, workspace)
        assert found[0.3, 0].fitness == found[0.0, 0].fitness
        assert [found[0.3, strategy].moved for strategy in (0, 1)] == [0, kept]
        rest = 0.7 if kept else 1.0
        assert found[0.3, 1].fitness == pytest.approx(rest * found[0.0, 1].fitness)


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
