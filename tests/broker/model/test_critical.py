from itertools import pairwise

from hypothesis import given, settings

from broker.model.critical import CriticalPaths, critical_path
from broker.model.heft import heft
from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.workflow import Alternative, Demand, Task, Workflow
from tests.broker.random_problems import problems


def task(name: str, *after: str) -> Task:
    return Task(name, 1.0, (Alternative.of("r"),), after)


def place(workflow: str, task: str, start: float, end: float, *resources: str) -> Placement:
    return Placement(workflow, task, tuple(Demand(each) for each in resources), start, end, 0.0)


FLOWS = (
    Workflow("v", (task("a"), task("b", "a"), task("c", "b"))),
    Workflow("w", (task("x"), task("y", "x"))),
)
PLAN = Plan(
    (
        place("v", "a", 0.0, 2.0, "r"),
        place("v", "b", 5.0, 7.0, "r", "s"),
        place("v", "c", 8.0, 9.0, "t"),
        place("w", "x", 0.0, 3.0, "s"),
        place("w", "y", 3.0, 5.0, "s"),
    )
)


def told(*, of: str | None = None) -> list[tuple[str, str]]:
    return [(link.placement.task, link.reason) for link in critical_path(PLAN, FLOWS, of=of)]


def test_the_chain_goes_over_predecessors_resources_and_closures() -> None:
    """Each task tells what it waited for; who held a resource may be of another workflow."""
    assert told() == [("x", "begins"), ("y", "predecessor"), ("b", "resource"), ("c", "opening")]


def test_a_workflow_has_a_chain_of_its_own() -> None:
    """It ends with the workflow's last task."""
    assert told(of="w") == [("x", "begins"), ("y", "predecessor")]
    assert told(of="nobody") == []
    assert critical_path(Plan(()), FLOWS) == ()


@given(problems())
@settings(max_examples=50)
def test_a_chain_runs_from_beginning_to_end(problem: Problem) -> None:
    """It ends with the plan, goes forward in time, and every link is what it says."""
    plan = heft(problem)
    chain = CriticalPaths(plan, problem.workflows).ending_with()
    assert bool(chain) == bool(len(plan))
    if chain:
        assert chain[-1].placement.end == plan.makespan_end
        assert chain[0].reason == "begins"
    tasks = {(w.name, t.name): t for w in problem.workflows for t in w.tasks}
    for before, link in pairwise(chain):
        first, second = before.placement, link.placement
        assert first.end <= second.start + 1e-6
        same = first.workflow == second.workflow
        waits = same and first.task in tasks[second.key].predecessors
        if link.reason == "resource":
            assert set(first.resources) & set(second.resources)
            assert first.end == second.start
        else:
            assert waits
            assert (first.end == second.start) == (link.reason == "predecessor")
