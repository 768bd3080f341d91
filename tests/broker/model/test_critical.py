import math
from itertools import pairwise

from hypothesis import given, settings

from broker.model.critical import CriticalPaths, critical_path
from broker.model.heft import heft
from broker.model.network import DataFile
from broker.model.plan import Placement, Plan, Transfer
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
    other = Plan((place("v", "a", 0.0, 10.0, "r"), place("w", "x", 2.0, 3.0, "s")))
    for of, task_name in (("w", "x"), ("v", "a"), (None, "a")):
        (link,) = critical_path(other, FLOWS, of=of)
        assert link.placement.task == task_name
    assert critical_path(Plan(()), FLOWS) == ()


def test_an_instant_does_not_wait_for_itself() -> None:
    """A task that takes no time ends on its resource as it starts, and has held up nobody."""
    plan = Plan((place("w", "x", 5.0, 5.0, "r"), place("v", "a", 5.0, 5.0, "r")))
    for of, name in (("v", "a"), ("w", "x")):
        chain = critical_path(plan, FLOWS, of=of)
        assert [(link.placement.task, link.reason) for link in chain] == [(name, "begins")]


def test_moments_four_roundings_apart_are_the_same() -> None:
    """A sum in another order may be that far off; five are a gap, so something was closed."""
    for roundings, reason in ((4, "predecessor"), (5, "opening")):
        for side in (-1, 1):
            end = 1.5 + side * roundings * math.ulp(1.5)
            plan = Plan((place("w", "x", 0.0, end, "r"), place("w", "y", 1.5, 3.0, "s")))
            assert [link.reason for link in critical_path(plan, FLOWS)] == ["begins", reason]


def test_the_walk_ends_though_tasks_wait_for_each_other() -> None:
    """What was fixed may have run before its predecessor; the chain names each of them once."""
    plan = Plan((place("w", "y", 5.0, 7.0, "r"), place("w", "x", 7.0, 9.0, "r")))
    chain = critical_path(plan, FLOWS)
    assert [(link.placement.task, link.reason) for link in chain] == [
        ("y", "opening"),
        ("x", "resource"),
    ]


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


def test_files_that_were_sent_are_a_reason() -> None:
    """Those for the task itself as they arrive, and those that another one was sent, as nobody knows when it needed them."""
    files = (DataFile("f", 1.0, ("x", "y")), DataFile("g", 1.0, ("z",)))
    flow = Workflow("w", (task("x"), task("y"), task("z")), files=files)
    plan = Plan(
        (
            place("w", "x", 4.0, 5.0, "r"),
            place("w", "y", 7.0, 9.0, "s"),
            place("w", "z", 1.0, 3.0, "t"),
        ),
        transfers=(Transfer("w", "x", ("f",), "home", "riga", 0.0, 4.0, 1.0, 0.0),),
    )

    def reasons(sent: Plan) -> dict[str, str]:
        """Returns for each task why it begins when it does."""
        return {
            each.task: critical_path(
                Plan(tuple(one for one in sent if one.end <= each.end), transfers=sent.transfers),
                (flow,),
            )[-1].reason
            for each in sent
        }

    assert reasons(plan) == {"x": "files", "y": "files", "z": "begins"}
    assert reasons(Plan(plan.placements)) == {"x": "begins", "y": "begins", "z": "begins"}
