"""Situations as problems for a planner."""

import math

from broker.model.plan import Placement
from broker.model.resources import Calendar, Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.scheduler.planning_input import PlanningInput, Taken, pose
from tests.broker.plain_planner import plain_plan

ALPHA, BETA = Resource("alpha"), Resource("beta", performance=2.0)


def flow(*tasks: Task) -> Workflow:
    """Returns a workflow."""
    return Workflow("flow", tasks)


def task(name: str, *resources: str, after: tuple[str, ...] = (), work: float = 10) -> Task:
    """Returns a task that can run on any of the resources."""
    return Task(name, work, tuple(Alternative.of(each) for each in resources), after)


def test_alternatives_on_what_cannot_be_used_are_left_out() -> None:
    """A task keeps the alternatives whose resources are there."""
    planning_input = PlanningInput(100, (flow(task("a", "alpha", "gone")),), (ALPHA,))
    posed = pose(planning_input)
    assert posed.problem is not None
    assert posed.problem.now == 100
    assert [each.resources for each in posed.problem.workflows[0].tasks[0].alternatives] == [
        ("alpha",)
    ]
    assert posed.unplanned == ()


def test_what_can_run_nowhere_is_left_out_with_all_that_wait_for_it() -> None:
    """Each has its reason; the rest is planned. The order of tasks does not matter."""
    workflow = flow(
        task("c", "alpha", after=("b",)), task("b", "alpha", after=("a",)), task("a", "gone"),
        task("d", "alpha"),
    )  # fmt: skip
    posed = pose(PlanningInput(0, (workflow,), (ALPHA,)))
    assert posed.problem is not None
    assert [each.name for each in posed.problem.workflows[0].tasks] == ["d"]
    reasons = {name: reason for _, name, reason in posed.unplanned}
    assert reasons == {
        "a": "can run on none of the resources that can be used now",
        "b": "waits for 'a', which has no place",
        "c": "waits for 'b', which has no place",
    }


def test_without_resources_or_tasks_there_is_no_problem() -> None:
    """Nothing is handed to a planner that would refuse it."""
    nothing = pose(PlanningInput(0, (flow(task("a", "alpha")),), ()))
    assert nothing.problem is None
    assert nothing.unplanned == (("flow", "a", "there is no resource that can be used"),)
    placement = Placement("flow", "a", (Demand("alpha"),), -20, -10, 1)
    done = PlanningInput(0, (flow(task("a", "alpha")),), (ALPHA,), (placement,))
    assert pose(done).problem is None


def test_fixed_tasks_stay_and_tasks_of_workflows_given_up_go() -> None:
    """What runs in a cancelled workflow holds its resource; what does not run is gone."""
    workflow = flow(task("a", "alpha"), task("b", "alpha", after=("a",)))
    other = Workflow("other", (task("x", "alpha"),))
    placement = Placement("flow", "a", (Demand("alpha"),), -20, 30, 1)
    left = frozenset({("flow", "b")})
    posed = pose(PlanningInput(0, (workflow, other), (ALPHA,), (placement,), left))
    assert posed.problem is not None
    assert [[t.name for t in w.tasks] for w in posed.problem.workflows] == [["a"], ["x"]]
    assert posed.problem.fixed == (placement,)
    assert posed.unplanned == ()


def test_what_runs_out_of_reach_keeps_its_time_and_its_resource_gets_nothing() -> None:
    """Successors are planned after its end, on what can be used."""
    workflow = flow(task("a", "beta"), task("b", "alpha", "beta", after=("a",)))
    placement = Placement("flow", "a", (Demand("beta"),), -20, 30, 1)
    posed = pose(PlanningInput(0, (workflow,), (ALPHA,), (placement,)))
    assert posed.problem is not None
    assert posed.unplanned == ()
    assert [each.name for each in posed.problem.resources] == ["alpha", "beta"]
    wide = Placement("flow", "a", (Demand("beta", 3),), -20, 30, 1)
    both = pose(PlanningInput(0, (workflow,), (ALPHA,), (wide,))).problem
    assert both is not None
    assert both.resources[1].capacity == 3
    assert [each.resources for each in posed.problem.workflows[0].tasks[1].alternatives] == [
        ("alpha",)
    ]
    plan = plain_plan(posed.problem)
    after = plan.placement("flow", "b")
    assert after is not None
    assert after.start >= 30


def test_refused_time_is_closed() -> None:
    """The resource keeps its own closures, and is closed while others have it."""
    closed = Resource("alpha", calendar=Calendar(closures=((500, 600),)))
    taken = (Taken("alpha", 100, 200), Taken("beta", 0, 1))
    posed = pose(PlanningInput(0, (flow(task("a", "alpha")),), (closed,), taken=taken))
    assert posed.problem is not None
    assert posed.problem.resources[0].closure_spans() == [(100, 200), (500, 600)]


def test_every_reservation_has_the_margin() -> None:
    """Work is longer by so much that the fastest resource still has the margin."""
    posed = pose(PlanningInput(0, (flow(task("a", "alpha", "beta")),), (ALPHA, BETA), margin=3))
    assert posed.problem is not None
    work = posed.problem.workflows[0].tasks[0].work
    assert BETA.duration(work) == BETA.duration(10) + 3
    assert ALPHA.duration(work) > ALPHA.duration(10) + 3


def test_a_resource_closed_for_good_takes_nothing() -> None:
    """The planner would refuse such a problem as a whole."""
    closed = Resource("alpha", calendar=Calendar(closures=((50, math.inf),)))
    posed = pose(PlanningInput(45, (flow(task("a", "alpha")),), (closed, BETA)))
    assert posed.problem is None
    assert len(posed.unplanned) == 1


def test_tasks_that_share_their_alternatives_go_on_sharing_them() -> None:
    """A planning copies no list of resources for each of thousands of tasks."""
    everywhere = (Alternative.of("alpha"), Alternative.of("gone"), Alternative.of("beta"))
    workflow = flow(*(Task(f"t{i}", 10.0 + i, everywhere) for i in range(3)))
    posed = pose(PlanningInput(0, (workflow,), (ALPHA, BETA), margin=2))
    assert posed.problem is not None
    first, *others = posed.problem.workflows[0].tasks
    assert [each.primary for each in first.alternatives] == ["alpha", "beta"]
    assert all(each.alternatives is first.alternatives for each in others)
