import math
from collections.abc import Sequence
from unittest.mock import Mock

import numpy as np
import pytest

from broker.model.instances import (
    CLASSES,
    UNLIMITED,
    Activity,
    cheapest_cost,
    critical_path,
    flexible_job_shop,
    job_shop,
    paper_problem,
    paper_resources,
    paper_workflows,
    project,
    with_limits,
)
from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Instant, Task, Workflow
from broker.planner.planning import Planner
from tests.oracles.plan_checker import plan_violations


def generator(seed: int = 1) -> np.random.Generator:
    """Returns a generator of chance."""
    return np.random.default_rng(seed)


def dependency_degree(workflows: Sequence[Workflow]) -> float:
    """Returns D (equation 3.2), within workflows: 1 where every task waits for all earlier ones."""
    most = sum(len(workflow.tasks) * (len(workflow.tasks) - 1) / 2 for workflow in workflows)
    return sum(len(task.predecessors) for each in workflows for task in each.tasks) / most


def resource_degree(problem: Problem) -> float:
    """Returns R (equation 3.3): 1 where every task can use every resource."""
    tasks = [task for workflow in problem.workflows for task in workflow.tasks]
    return sum(len(task.alternatives) for task in tasks) / (len(tasks) * len(problem.resources))


def heuristic_plans(problem: Problem) -> list[Plan]:
    """Returns the plans of the nine heuristics."""
    planner = Planner(problem)
    return [
        planner.plan(each.heuristic.genes, each.heuristic.strategy)[0]
        for each in planner.heuristics
    ]


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("tasks", [50, 200, 1000])
def test_degrees_are_about_0_2_and_0_8(name: str, tasks: int) -> None:
    """D and R are small or large as the name of the class says; sizes are the paper's."""
    problem = paper_problem(name, tasks, generator())
    wanted = {"s": 0.2, "l": 0.8}
    assert resource_degree(problem) == pytest.approx(wanted[name[0]], abs=0.06)
    assert dependency_degree(problem.workflows) == pytest.approx(wanted[name[2]], abs=0.06)
    assert len(problem.resources) == tasks // 10
    assert sum(len(workflow.tasks) for workflow in problem.workflows) == tasks
    assert all(3 <= len(workflow.tasks) <= 7 for workflow in problem.workflows[:-1])
    works = [task.work for workflow in problem.workflows for task in workflow.tasks]
    assert 180 <= min(works) < max(works) <= 420


@pytest.mark.parametrize("name", CLASSES)
def test_workflows_have_every_size_from_three_to_seven(name: str) -> None:
    """The bounds are sizes as any other; the last workflow takes what is left."""
    workflows = paper_problem(name, 400, generator()).workflows
    assert {len(workflow.tasks) for workflow in workflows[:-1]} == {3, 4, 5, 6, 7}


def test_one_task_is_a_workflow() -> None:
    """It waits for nothing and has something to run on."""
    (workflow,) = paper_workflows("lRlD", 1, paper_resources(5, generator()), generator())
    (task,) = workflow.tasks
    assert task.predecessors == ()
    assert 1 <= len(task.alternatives) <= 5


def test_chance_at_its_bounds_asks_for_no_more_than_there_is() -> None:
    """A share of all is all, also where the number that rounds it is the least: 0."""
    chance = Mock(wraps=generator())
    chance.uniform.side_effect = max
    chance.random.return_value = 0.0
    pool = paper_resources(5, generator())
    for workflow in paper_workflows("lRlD", 40, pool, chance):
        for number, task in enumerate(workflow.tasks):
            assert task.predecessors == tuple(f"t{before}" for before in range(number))
            assert [each.primary for each in task.alternatives] == [each.name for each in pool]


def test_the_same_seed_gives_the_same_problem() -> None:
    """And another one another problem."""
    first = paper_problem("sRlD", 60, generator(5))
    assert first == paper_problem("sRlD", 60, generator(5))
    assert first != paper_problem("sRlD", 60, generator(6))


def test_faster_resources_cost_more_for_the_same_work() -> None:
    """On average; the ratio differs from one to the next."""
    pool = paper_resources(400, generator())
    price_of_work = np.array([each.price / each.performance for each in pool])
    speed = np.array([each.performance for each in pool])
    assert np.corrcoef(speed, price_of_work)[0, 1] > 0.3
    assert price_of_work[speed > 1.1].mean() > price_of_work[speed < 1.1].mean()


def test_prices_are_as_far_off_as_the_noise() -> None:
    """The price of a second is performance^1.5 times a number evenly from 1 − noise to 1 + noise."""
    for noise in (0.25, 0.5):
        pool = paper_resources(400, generator(), price_noise=noise)
        factors = np.array([each.price / each.performance**1.5 for each in pool])
        assert 1 - noise <= factors.min() < 1 - 0.95 * noise
        assert 1 + 0.95 * noise < factors.max() <= 1 + noise
        assert factors.mean() == pytest.approx(1.0, abs=0.1 * noise)
    assert [each.price for each in paper_resources(9, generator(), price_noise=0.0)] == (
        pytest.approx([each.performance**1.5 for each in paper_resources(9, generator())])
    )


@pytest.mark.parametrize("reduction", [0.0, 0.2, 1.0])
def test_limits_are_below_what_the_heuristics_achieve_on_average(reduction: float) -> None:
    """By the reduction, but never below what is possible plus a tenth."""
    problem = paper_problem("lRsD", 50, generator())
    plans = heuristic_plans(problem)
    limited = with_limits(problem, plans, reduction)
    for number, workflow in enumerate(limited.workflows):
        outcomes = [plan.outcomes(problem.workflows)[number] for plan in plans]
        completion = sum(each.completion for each in outcomes) / len(outcomes)
        cost = sum(each.cost for each in outcomes) / len(outcomes)
        least = critical_path(problem, workflow) * 1.1
        assert workflow.due_date == pytest.approx(max(completion * (1 - reduction), least))
        least = cheapest_cost(problem, workflow) * 1.1
        assert workflow.budget == pytest.approx(max(cost * (1 - reduction), least))


@pytest.mark.parametrize(
    ("reduction", "slack", "due_dates", "budget"),
    [(0.25, 0.1, (130.0, 61.25), 22.0), (1.0, 0.0, (110.0, 60.0), 20.0)],
)
def test_due_dates_count_from_when_a_workflow_may_start(
    reduction: float, slack: float, due_dates: tuple[float, float], budget: float
) -> None:
    """Which is its earliest start or now; without slack the least that is possible is the limit."""
    tasks = (Task("x", 10.0, (Alternative.of("r"),)),)
    flows = (Workflow("w", tasks, earliest_start=100.0), Workflow("v", tasks))
    problem = Problem(flows, (Resource("r", price=2.0),), now=50.0)
    plans = [
        Plan(
            tuple(
                Placement(name, "x", tasks[0].alternatives[0].demands, start, start + 10, 20.0)
                for name, start in starts.items()
            )
        )
        for starts in ({"w": 120.0, "v": 50.0}, {"w": 140.0, "v": 60.0})
    ]
    limited = with_limits(problem, plans, reduction, slack=slack)
    assert tuple(workflow.due_date for workflow in limited.workflows) == due_dates
    assert [workflow.budget for workflow in limited.workflows] == [budget] * 2


def test_least_time_and_cost_are_those_of_the_best_resources() -> None:
    """The critical path goes over the fastest, the cost over the cheapest alternatives."""
    fast, cheap = Resource("f", performance=2, price=8), Resource("c", price=3)
    either = (Alternative.of("f"), Alternative.of("c"))
    tasks = (Task("y", 4.0, either, ("x",)), Task("x", 6.0, either), Task("z", 2.0, either))
    workflow = Workflow("w", tasks, 0.0)
    problem = Problem((workflow,), (fast, cheap))
    assert critical_path(problem, workflow) == 5
    assert cheapest_cost(problem, workflow) == 36


def test_a_job_shop_has_one_resource_for_each_operation() -> None:
    """Operations follow each other, and a plan of it is valid."""
    jobs: Sequence[Sequence[tuple[int, float]]] = [[(0, 3), (1, 2)], [(1, 4), (0, 1)]]
    problem = job_shop(jobs)
    assert [workflow.name for workflow in problem.workflows] == ["j0", "j1"]
    assert [task.predecessors for task in problem.workflows[0].tasks] == [(), ("o0",)]
    assert problem.resources == (Resource("m0"), Resource("m1"))
    for plan in heuristic_plans(problem):
        assert plan_violations(problem, plan) == []
        assert 6 <= plan.makespan_end <= 10
    on = [(Alternative.of(f"m{number}"),) for number in range(3)]
    assert job_shop([[(2, 3), (1, 0)]]) == Problem(
        (
            Workflow(
                "j0",
                (Task("o0", 3.0, on[2]), Instant("o1", 0.0, on[1], ("o0",))),
                earliest_start=0.0,
            ),
        ),
        (Resource("m0"), Resource("m1"), Resource("m2")),
    )


def test_a_flexible_job_shop_has_one_alternative_for_each_machine() -> None:
    """Each takes its own time, and operations follow each other."""
    problem = flexible_job_shop([[[(0, 3.0), (2, 5.0)], [(1, 2.0)]], [[(2, 4.0), (1, 1.5)]]], 3)
    zero, one, two = ((Demand(f"m{number}"),) for number in range(3))
    assert problem.workflows == (
        Workflow(
            "j0",
            (
                Task("o0", 3.0, (Alternative(zero, 3.0), Alternative(two, 5.0))),
                Task("o1", 2.0, (Alternative(one, 2.0),), ("o0",)),
            ),
            earliest_start=0.0,
        ),
        Workflow(
            "j1",
            (Task("o0", 1.5, (Alternative(two, 4.0), Alternative(one, 1.5))),),
            earliest_start=0.0,
        ),
    )
    assert problem.resources == (Resource("m0"), Resource("m1"), Resource("m2"))


def test_a_project_has_what_its_activities_need() -> None:
    """Milestones are no tasks, and who needs nothing is in nobody's way."""
    problem = project(
        [
            Activity("begin", 0.0, (0, 0), (1, 2)),
            Activity("dig", 3.0, (2, 1), (3,)),
            Activity("dry", 2.0, (0, 0), (3,)),
            Activity("half", 0.0, (0, 0), (4,)),
            Activity("build", 1.0, (0, 1), ()),
        ],
        (4, 1),
    )
    (workflow,) = problem.workflows
    assert workflow.tasks == (
        Task("dig", 3.0, (Alternative((Demand("R1", 2), Demand("R2", 1))),)),
        Task("dry", 2.0, (Alternative((Demand(UNLIMITED),)),)),
        Task("build", 1.0, (Alternative((Demand("R2", 1),)),), ("dig", "dry")),
    )
    assert problem.resources == (
        Resource("R1", capacity=4),
        Resource("R2", capacity=1),
        Resource(UNLIMITED, capacity=3),
    )


def test_a_project_may_begin_with_any_of_its_activities() -> None:
    """It needs no milestone there; what waits for a milestone waits for all that the milestone waits for."""
    problem = project(
        [
            Activity("last", 1.0, (1,), ()),
            Activity("first", 3.0, (1,), (2, 3)),
            Activity("next", 2.0, (1,), (3,)),
            Activity("half", 0.0, (0,), (0,)),
        ],
        (2,),
    )
    one = (Alternative((Demand("R1"),)),)
    tasks = (
        Task("last", 1.0, one, ("first", "next")),
        Task("first", 3.0, one),
        Task("next", 2.0, one, ("first",)),
    )
    assert problem.workflows == (Workflow("project", tasks, earliest_start=0.0),)
    assert problem.resources == (Resource("R1", capacity=2),)
    with pytest.raises(ValueError, match="zip"):
        project([Activity("dig", 3.0, (2, 1), ())], (4,))


def test_arguments_are_checked() -> None:
    """Unknown classes, no tasks and shares out of bounds are errors."""
    pool = paper_resources(5, generator())
    with pytest.raises(
        ValueError, match=r"^there is no class 'xRxD'; one of sRsD, sRlD, lRsD, lRlD$"
    ):
        paper_workflows("xRxD", 5, pool, generator())
    with pytest.raises(ValueError, match=r"^0 tasks; at least 1$"):
        paper_workflows("sRsD", 0, pool, generator())
    problem = paper_problem("sRsD", 5, generator())
    plans = heuristic_plans(problem)
    for reduction in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="reduction is"):
            with_limits(problem, plans, reduction)
    with pytest.raises(ValueError, match=r"^the slack is -1; at least 0$"):
        with_limits(problem, plans, 0.1, slack=-1)
    with pytest.raises(ValueError, match=r"^limits need at least one plan to start from$"):
        with_limits(problem, [], 0.1)
