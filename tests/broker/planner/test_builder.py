import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.instances import paper_problem
from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.model.resources import Calendar, Resource
from broker.model.workflow import Alternative, Task, Workflow
from broker.planner._builder import Workspace
from broker.planner.compilation import Compilation, compile_problem
from tests.broker.random_problems import HOUR, NOW, problems, random_problem, timed_problems
from tests.oracles.plan_builder import plain_build
from tests.oracles.plan_checker import plan_violations


def built(compilation: Compilation, workspace: Workspace, genes: list[int], strategy: int) -> Plan:
    """Returns the plan that a workspace builds."""
    workspace.build(np.array(genes, np.int32), strategy)
    count = len(compilation.tasks)
    return compilation.plan(workspace.columns["choice"][:count], workspace.columns["start"][:count])


@given(
    st.data(),
    st.one_of(problems(), timed_problems()),
    st.integers(1, 5),
    st.sampled_from((1, 3, 64, 256)),
)
def test_every_placement_is_the_plain_builders(
    data: st.DataObject, problem: Problem, strategy: int, buckets: int
) -> None:
    """Any sequence gives the oracle's plan, whatever the buckets, and planned in its order."""
    compilation = compile_problem(problem)
    count = len(compilation.tasks)
    genes = data.draw(st.permutations(range(count)))
    horizon = data.draw(st.sampled_from((HOUR, 20 * HOUR, 400 * HOUR)))
    workspace = Workspace(compilation.compiled, horizon, buckets)
    keys = [(workflow.name, task.name) for workflow, task in compilation.tasks]
    for _ in range(2):  # the second time in timetables that have been used
        plan = built(compilation, workspace, list(genes), strategy - 1)
        expected, order = plain_build(problem, [keys[gene] for gene in genes], strategy)
        assert {p.key: (p.demands, p.start, p.end) for p in plan} == {
            key: (p.demands, p.start, p.end) for key, p in expected.items()
        }
        assert [keys[row] for row in workspace.columns["order"][: workspace.planned]] == order
        assert plan_violations(problem, plan, complete=False) == []


def test_a_rounding_is_no_price() -> None:
    """What is left of a workflow costs nothing where that is least: the rest of its budget is for it, and no rounding."""
    problem = random_problem(405635, plain=False, workflows_max=5, fixed=True)
    compilation = compile_problem(problem)
    keys = [(workflow.name, task.name) for workflow, task in compilation.tasks]
    genes = [0, 2, 3, 4, 5, 6, 1, *range(7, len(keys))]
    plan = built(compilation, Workspace(compilation.compiled, HOUR, 1), genes, 4)
    expected, _ = plain_build(problem, [keys[gene] for gene in genes], 5)
    assert {p.key: (p.demands, p.start, p.end) for p in plan} == {
        key: (p.demands, p.start, p.end) for key, p in expected.items()
    }
    assert expected["w0", "t0"].cost > 0.0


@given(st.data(), problems(fixed=False), st.integers(0, 4))
def test_every_task_finds_a_place(data: st.DataObject, problem: Problem, strategy: int) -> None:
    """A plan is complete, and valid, where no resource is closed for good."""
    compilation = compile_problem(problem)
    genes = data.draw(st.permutations(range(len(compilation.tasks))))
    plan = built(compilation, Workspace(compilation.compiled, 100 * HOUR), list(genes), strategy)
    assert plan.unplanned == ()
    assert plan_violations(problem, plan) == []


@given(st.data(), st.one_of(problems(), timed_problems()), st.integers(0, 4))
def test_ras_6_keeps_places_as_the_plain_builder_does(
    data: st.DataObject, problem: Problem, strategy: int
) -> None:
    """Any sequence gives the oracle's plan, some of whose tasks an old plan has somewhere."""
    first = compile_problem(problem)
    count = len(first.tasks)
    numbers = st.permutations(range(count))
    before = built(first, Workspace(first.compiled, 20 * HOUR), list(data.draw(numbers)), strategy)
    old = Plan(tuple(each for each in before if data.draw(st.booleans())))
    compilation = compile_problem(problem, old)
    workspace = Workspace(compilation.compiled, 20 * HOUR)
    genes = data.draw(numbers)
    plan = built(compilation, workspace, list(genes), 5)
    keys = [(workflow.name, task.name) for workflow, task in compilation.tasks]
    expected, _ = plain_build(problem, [keys[gene] for gene in genes], 6, old)
    assert {p.key: (p.demands, p.start) for p in plan} == {
        key: (p.demands, p.start) for key, p in expected.items()
    }


def test_ras_6_builds_the_old_plan_again() -> None:
    """In the order of its starts, nothing new and nothing broken: every task where it was."""
    problem = paper_problem("lRsD", 60, np.random.default_rng(2))
    first = compile_problem(problem)
    order = list(np.random.default_rng(3).permutation(60))
    old = built(first, Workspace(first.compiled, 20 * HOUR), order, 0)
    compilation = compile_problem(problem, old)
    rows = {(w.name, t.name): row for row, (w, t) in enumerate(compilation.tasks)}
    genes = [rows[placement.key] for placement in old]
    again = built(compilation, Workspace(compilation.compiled, 20 * HOUR), genes, 5)
    assert again == old


@given(st.data(), st.one_of(problems(), timed_problems()), st.integers(0, 4))
def test_no_task_ends_before_its_earliest_end(
    data: st.DataObject, problem: Problem, strategy: int
) -> None:
    """Any plan's ends are at or after those that `earliest_ends` says."""
    compilation = compile_problem(problem)
    count = len(compilation.tasks)
    workspace = Workspace(compilation.compiled, 20 * HOUR)
    least = workspace.earliest_ends()
    genes = data.draw(st.permutations(range(count)))
    workspace.build(np.array(genes, np.int32), strategy)
    placed = workspace.columns["choice"][:count] >= 0
    assert (workspace.columns["end"][:count] >= least - 1e-6)[placed].all()
    assert np.isfinite(least[placed]).all()


def chain(count: int) -> Workflow:
    """Returns tasks of an hour each, one after another."""
    on = (Alternative.of("a"),)
    tasks = [Task("t0", HOUR, on)]
    tasks += [Task(f"t{i}", HOUR, on, (f"t{i - 1}",)) for i in range(1, count)]
    return Workflow("w", tuple(tasks), earliest_start=NOW)


def test_a_gene_waits_for_its_predecessors() -> None:
    """A sequence in reverse is planned in the order of precedence (phenotypic repair)."""
    problem = Problem((chain(4),), (Resource("a"),), NOW)
    compilation = compile_problem(problem)
    workspace = Workspace(compilation.compiled, 10 * HOUR)
    plan = built(compilation, workspace, [3, 2, 1, 0], 0)
    assert [placement.task for placement in plan] == ["t0", "t1", "t2", "t3"]
    assert [placement.start - NOW for placement in plan] == [0, HOUR, 2 * HOUR, 3 * HOUR]


def test_what_is_closed_for_good_leaves_tasks_without_a_place() -> None:
    """Tasks that no longer fit before a final closure are unplanned, and what follows them is."""
    closed = Resource("a", calendar=Calendar(closures=((NOW + 2.5 * HOUR, float("inf")),)))
    problem = Problem((chain(4),), (closed,), NOW)
    compilation = compile_problem(problem)
    plan = built(compilation, Workspace(compilation.compiled, 10 * HOUR), [0, 1, 2, 3], 0)
    assert [placement.task for placement in plan] == ["t0", "t1"]
    assert plan.unplanned == (("w", "t2"), ("w", "t3"))


@pytest.mark.parametrize("genes", [[0, 1, 1], [0, 1], [0, 1, 3], [-1, 0, 1], []])
def test_a_sequence_names_every_task_once(genes: list[int]) -> None:
    """Anything else is refused before the kernel sees it."""
    compiled = compile_problem(Problem((chain(3),), (Resource("a"),), NOW)).compiled
    with pytest.raises(ValueError, match="3 tasks once"):
        Workspace(compiled, HOUR).build(np.array(genes, np.int32), 0)


def test_strategies_and_sizes_have_bounds() -> None:
    """There are six strategies, a positive horizon and at most 256 buckets."""
    compiled = compile_problem(Problem((chain(3),), (Resource("a"),), NOW)).compiled
    genes = np.arange(3, dtype=np.int32)
    for strategy in (-1, 6):
        with pytest.raises(ValueError, match="strategy"):
            Workspace(compiled, HOUR).build(genes, strategy)
    for horizon in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="horizon"):
            Workspace(compiled, horizon)
    for buckets in (0, 257):
        with pytest.raises(ValueError, match="buckets"):
            Workspace(compiled, HOUR, buckets)
