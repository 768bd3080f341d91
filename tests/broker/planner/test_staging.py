"""Plans with data: the kernel's, beside a plain builder and a plain validator."""

import math
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.model.heft import heft
from broker.model.network import Copy, DataFile, Link, Network
from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.planner._builder import Workspace
from broker.planner._worker import Worker
from broker.planner.compilation import compile_problem
from broker.planner.evaluation import compile_goals, lower_bounds
from broker.planner.goals import MAKESPAN_ONLY, Goals
from broker.planner.heuristics import upward_ranks
from broker.planner.methods import SEARCHES
from broker.planner.search import Budget, search
from tests.broker.model.test_heft_communication import published
from tests.broker.planner.building import built
from tests.broker.random_problems import HOUR, data_problem, data_problems
from tests.oracles.plan_builder import plain_build
from tests.oracles.plan_checker import plan_violations

SEARCHED = 1000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 60
"""Random problems that are planned from end to end."""


@given(st.data(), data_problems(), st.integers(0, 4), st.sampled_from((1, 3, 64, 256)))
def test_every_placement_is_the_plain_builders(
    data: st.DataObject, problem: Problem, strategy: int, buckets: int
) -> None:
    """Any sequence gives the oracle's plan, and its costs with those of the transfers."""
    compilation = compile_problem(problem)
    count = len(compilation.tasks)
    keys = [(workflow.name, task.name) for workflow, task in compilation.tasks]
    genes = data.draw(st.permutations(range(count)))
    workspace = Workspace(compilation.compiled, 20 * HOUR, buckets)
    for _ in range(2):  # the second time where files have been sent before
        workspace.build(np.array(genes, np.int32), strategy)
        columns = workspace.columns
        plan = compilation.plan(columns["choice"][:count], columns["start"][:count])
        expected, _ = plain_build(problem, [keys[gene] for gene in genes], strategy + 1)
        assert {p.key: (p.demands, p.start, p.end) for p in plan} == {
            key: (p.demands, p.start, p.end) for key, p in expected.items()
        }
        assert plan_violations(problem, plan, complete=False) == []
        # Who pays for a file that several read is another question than what is paid.
        for workflow in problem.workflows:
            planned = [key in expected and key[0] == workflow.name for key in keys]
            paid = float(columns["cost"][:count][planned].sum())
            told = math.fsum(
                p.cost for p in plan if p.workflow == workflow.name and p.key in set(keys)
            )
            assert paid == pytest.approx(told)


@given(st.data(), data_problems())
@settings(max_examples=30)
def test_ras_6_keeps_places_where_files_are_in_time(data: st.DataObject, problem: Problem) -> None:
    first = compile_problem(problem)
    count = len(first.tasks)
    keys = [(workflow.name, task.name) for workflow, task in first.tasks]
    before = built(problem, 3, data.draw(st.permutations(range(count))), complete=False)
    old = Plan(tuple(each for each in before if data.draw(st.booleans())))
    compilation = compile_problem(problem, old)
    genes = data.draw(st.permutations(range(count)))
    workspace = Workspace(compilation.compiled, 20 * HOUR)
    workspace.build(np.array(genes, np.int32), 5)
    plan = compilation.plan(workspace.columns["choice"][:count], workspace.columns["start"][:count])
    expected, _ = plain_build(problem, [keys[gene] for gene in genes], 6, old)
    assert {p.key: (p.demands, p.start) for p in plan} == {
        key: (p.demands, p.start) for key, p in expected.items()
    }


def test_searched_plans_have_no_violation() -> None:
    """Plans of our own search and of HEFT, with set-ups, hours, prices and fixed tasks."""
    transfers = 0
    for seed in range(SEARCHED):
        problem = data_problem(seed)
        settings_ = replace(SEARCHES["asma-shift"], population=5)
        found = search(
            problem, budget=Budget(math.inf, 60), settings=settings_, seed=seed, workers=1
        )
        for plan in (found.plan, heft(problem)):
            assert plan_violations(problem, plan, complete=False) == [], seed
            transfers += len(plan.transfers)
        worth = found.worth
        if worth is not None and not found.plan.unplanned:
            assert worth.cost == pytest.approx(math.fsum(each.cost for each in found.plan))
    assert transfers > SEARCHED


def two_sites(size: float, *, inputs: str = "home", price: float = 0.0) -> Problem:
    """Returns a task on a, and a reader of its file that is twice as fast on b."""
    resources = (Resource("a"), Resource("b", performance=2.0))
    tasks = (
        Task("first", 10.0, (Alternative.of("a"),)),
        Task("second", 20.0, (Alternative.of("a"), Alternative.of("b")), ("first",)),
    )
    files = (DataFile("made", size, ("second",), "first"),)
    network = Network(Link(2.0, 1.0, price), inputs=inputs)
    return Problem((Workflow("w", tasks, 0.0, files=files),), resources, 0.0, network=network)


def place(plan: Plan, task: str) -> Placement:
    found = plan.placement("w", task)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("size", "where", "start"), [(16.0, "b", 19.0), (18.0, "b", 20.0), (20.0, "a", 10.0)]
)
def test_a_task_goes_where_it_ends_first_with_its_files(
    size: float, where: str, start: float
) -> None:
    """On the fast resource with little to send; of equal ends the fast one's, too."""
    second = place(built(two_sites(size), 3), "second")
    assert (second.resources[0], second.start) == (where, start)


def test_the_paper_strategies_begin_where_files_are() -> None:
    """RAS-1 takes the earliest start: beside its files, and not the faster resource."""
    plan = built(two_sites(2.0), 0)
    assert place(plan, "second").resources == ("a",)
    assert plan.transfers == ()


def test_transfers_count_for_a_budget() -> None:
    """RAS-5 takes the slow resource at hand where sending would exceed the budget."""
    problem = two_sites(2.0, price=0.5)
    a, b = problem.resources
    priced = replace(problem, resources=(replace(a, price=0.5), replace(b, price=1.0)))
    exact = replace(priced, workflows=(replace(problem.workflows[0], budget=15.0),))
    assert place(built(priced, 4), "second").cost == 11.0
    assert place(built(exact, 4), "second").resources == ("a",)


def test_a_file_is_sent_to_a_site_once() -> None:
    """Two readers at one site: the one that begins first has it sent, and pays."""
    resources = (Resource("a"), Resource("b", capacity=2))
    tasks = (
        Task("first", 10.0, (Alternative.of("a"),)),
        *(Task(name, 5.0, (Alternative.of("b"),), ("first",)) for name in ("one", "two")),
    )
    files = (
        DataFile("both", 4.0, ("one", "two"), "first"),
        DataFile("own", 2.0, ("two",), "first"),
    )
    problem = Problem(
        (Workflow("w", tasks, files=files),), resources, 0.0, network=Network(Link(1.0, 0.0, 1.0))
    )
    plan = built(problem, 3)
    assert [(t.task, t.files, t.begin, t.end, t.cost) for t in plan.transfers] == [
        ("two", ("own",), 10.0, 12.0, 2.0),
        ("one", ("both",), 10.0, 14.0, 4.0),
    ]
    assert (place(plan, "one").start, place(plan, "two").start) == (14.0, 16.0)
    assert plan_violations(problem, plan) == []


def test_inputs_come_from_where_they_are() -> None:
    """From the place that the network says, that the file says, or from nowhere if a copy is there."""
    problem = two_sites(0.0)
    workflow = problem.workflows[0]

    near = Network(Link(2.0, 1.0))

    def starts(file: DataFile, network: Network = near, copies: tuple[Copy, ...] = ()) -> float:
        changed = replace(workflow, files=(file,))
        there = replace(problem, workflows=(changed,), network=network, copies=copies)
        return place(built(there, 3), "first").start

    given = DataFile("given", 8.0, ("first",))
    assert starts(given) == 5.0
    assert starts(replace(given, site="a")) == 0.0
    assert starts(given, network=Network(Link(2.0), inputs="a")) == 0.0
    assert starts(given, copies=(Copy("w", "given", "a", 3.0),)) == 3.0


def test_what_fixed_tasks_have_is_there() -> None:
    """A file made before now is sent from now on; where a reader runs, it is already."""
    problem = two_sites(20.0)
    (workflow,) = problem.workflows
    third = Task("third", 20.0, (Alternative.of("b"),), ("first",))
    file = replace(workflow.files[0], readers=("second", "third"))
    workflow = replace(workflow, tasks=(*workflow.tasks, third), files=(file,))
    first = Placement("w", "first", (Demand("a"),), 0.0, 10.0, 0.0)
    second = Placement("w", "second", (Demand("b"),), 21.0, 31.0, 0.0)
    later = replace(problem, workflows=(workflow,), now=25.0, fixed=(first,))
    assert place(built(later, 3), "third").start == 36.0
    both = replace(later, fixed=(first, second))
    assert place(built(both, 3), "third").start == 31.0
    assert built(both, 3).transfers == ()


def test_upward_ranks_count_files() -> None:
    """The mean of both directions, no file, and the mean duration."""
    ranks = upward_ranks(compile_problem(two_sites(16.0)))
    assert ranks.tolist() == [10.0 + 9.0 + 15.0, 15.0]


def test_special_kernels_leave_data_to_the_builder() -> None:
    """Tabu search and justification know no files, so they are not used where there are some."""
    machines = tuple(Resource(name) for name in "ab")
    tasks = (
        Task("first", 10.0, (Alternative.of("a"),)),
        Task("second", 10.0, (Alternative.of("b"),), ("first",)),
    )
    plain = Problem((Workflow("w", tasks, 0.0),), machines, 0.0)
    files = (DataFile("made", 5.0, ("second",), "first"),)
    data = Problem(
        (Workflow("w", tasks, 0.0, files=files),), machines, 0.0, network=Network(Link(1.0))
    )
    for problem, special in ((plain, True), (data, False)):
        compilation = compile_problem(problem)
        bounds = lower_bounds(compilation)
        bounds = replace(bounds, makespan=(0.0, 99.0), delay=(0.0, 99.0))
        goals = compile_goals(compilation, Goals(), bounds)
        assert Worker(compilation.compiled, goals, 100.0).justifies is special


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Link(0.0), "bandwidth is 0"),
        (lambda: Link(-1.0), "bandwidth is -1"),
        (lambda: Link(1e-300), "bandwidth is 1e-300; at least 1e-06"),
        (lambda: Link(math.nan), "bandwidth is nan"),
        (lambda: Link(1.0, -1.0), "latency is -1"),
        (lambda: Link(1.0, 0.0, math.inf), "price of a byte is inf"),
        (lambda: DataFile("f", -1.0, ("t",)), "size is -1"),
        (lambda: DataFile("f", math.nan, ("t",)), "size is nan"),
        (lambda: DataFile("f", 1.0, ("t",), "t"), "makes and reads"),
        (lambda: DataFile("f", 1.0, ("t",), "u", "x"), "has a task and a site"),
        (lambda: Network(Link(), {"q": "x"}).check(["a"]), "no resource 'q'"),
        (lambda: Network(Link(), {}, {("a", "q"): Link()}).check(["a"]), "no site 'q'"),
        (lambda: Network(Link(), inputs="q").check(["a"]), "inputs: there is no site 'q'"),
    ],
)
def test_mistakes_are_named(make: object, text: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=text):
        make()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (DataFile("f", 1.0, ("gone",)), "no task 'gone'"),
        (DataFile("f", 1.0, ("second",), "gone"), "no task 'gone'"),
        (DataFile("f", 1.0, ("first",), "second"), "does not wait for 'second'"),
        (DataFile("made", 1.0, ("first",)), "files of the same name: made"),
    ],
)
def test_files_are_of_tasks(file: DataFile, text: str) -> None:
    workflow = two_sites(1.0).workflows[0]
    with pytest.raises(ValueError, match=text):
        replace(workflow, files=(*workflow.files, file))


def test_part_of_a_workflow_has_its_files() -> None:
    workflow = two_sites(1.0).workflows[0]
    assert workflow.only(workflow.tasks) == workflow
    assert workflow.only(workflow.tasks[:1]).files == ()


def test_the_search_beats_heft_on_its_own_example() -> None:
    """HEFT ends at 80; 2,000 schedules end sooner."""
    problem = published()
    found = search(
        problem,
        budget=Budget(math.inf, 2000),
        settings=SEARCHES["asma-shift"],
        goals=MAKESPAN_ONLY,
        seed=1,
        workers=1,
    )
    assert plan_violations(problem, found.plan) == []
    assert found.plan.makespan_end == 73.0
