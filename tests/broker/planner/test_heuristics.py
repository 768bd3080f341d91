import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.heft import heft
from broker.model.instances import paper_problem
from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Task, Workflow
from broker.planner.compilation import Compilation, compile_problem
from broker.planner.heuristics import (
    RULES,
    Genes,
    own_heuristics,
    planning_heuristics,
    replanning_heuristics,
    sequence,
)
from broker.planner.planning import Planner
from tests.broker.random_problems import problems
from tests.examples import FEW

ON_A = (Alternative.of("a"),)


def names(compilation: Compilation, genes: Genes) -> list[str]:
    """Returns workflow and task of each gene."""
    return [f"{compilation.tasks[g][0].name}.{compilation.tasks[g][1].name}" for g in genes]


def three() -> Compilation:
    """Returns three workflows that each rule puts in another order."""
    flows = (
        Workflow("a", (Task("x", 9.0, ON_A), Task("y", 1.0, ON_A, ("x",))), due_date=30),
        Workflow("b", (Task("x", 4.0, ON_A), Task("y", 8.0, ON_A)), due_date=10),
        Workflow("c", (Task("x", 5.0, ON_A),), due_date=20),
    )
    return compile_problem(Problem(flows, (Resource("a"),)))


@pytest.mark.parametrize(
    ("rule", "order"),
    [
        ("shortest due time", ["b.x", "b.y", "c.x", "a.x", "a.y"]),
        ("shortest task", ["b.x", "c.x", "b.y", "a.x", "a.y"]),
        ("shortest workflow", ["c.x", "a.x", "a.y", "b.x", "b.y"]),
        # Due dates less what is to come: 20, 29; 6, 2; 15.
        ("latest start", ["b.y", "b.x", "c.x", "a.x", "a.y"]),
        ("upward rank", ["a.x", "b.y", "c.x", "b.x", "a.y"]),
    ],
)
def test_a_rule_says_what_comes_first(rule: str, order: list[str]) -> None:
    """By due date, work of the task, work of the workflow, or time to go; precedence holds."""
    compilation = three()
    assert names(compilation, sequence(compilation, rule, range(5))) == order


def test_latest_start_goes_by_the_dates_given() -> None:
    """A workflow that cannot be in time, as infinity says, comes behind those that can."""
    dates = np.array([30.0, math.inf, 20.0])
    found = names(three(), sequence(three(), "latest start", range(5), dates))
    assert found == ["c.x", "a.x", "a.y", "b.y", "b.x"]


@given(problems())
def test_sequences_respect_precedence(problem: Problem) -> None:
    """Nine heuristics, three sequences: every task once, after its predecessors."""
    compilation = compile_problem(problem)
    found = planning_heuristics(compilation)
    assert len(found) == len({each.name for each in found}) == 9
    for each in found:
        assert sorted(each.genes) == list(range(len(compilation.tasks)))
        place = {int(gene): number for number, gene in enumerate(each.genes)}
        begin = compilation.compiled.column("predecessor_begin")
        predecessor = compilation.compiled.column("predecessor")
        for task in range(len(compilation.tasks)):
            for before in predecessor[begin[task] : begin[task + 1]]:
                assert place[int(before)] < place[task]


@FEW
@given(st.data(), problems(fixed=False))
def test_replanning_keeps_the_old_order_and_appends_what_is_new(
    data: st.DataObject, problem: Problem
) -> None:
    """Tasks of the old plan come first, by start; the others as the rule says."""
    compilation = compile_problem(problem)
    planner = Planner(problem)
    best = planner.heuristics[0].heuristic
    plan, _ = planner.plan(best.genes, best.strategy)
    known = data.draw(st.sets(st.sampled_from([w.name for w in problem.workflows])))
    old = Plan(tuple(each for each in plan if each.workflow in known))
    for each in replanning_heuristics(compilation, old):
        assert each.name.startswith("replanning: ")
        keys = [(compilation.tasks[g][0].name, compilation.tasks[g][1].name) for g in each.genes]
        kept = [key for key in keys if key[0] in known]
        assert keys[: len(kept)] == kept
        starts = [old.placement(*key).start for key in kept]  # type: ignore[union-attr]  # all there
        assert starts == sorted(starts)
        assert len(set(keys)) == len(compilation.tasks)


@given(problems(), st.booleans())
def test_our_own_heuristics_are_of_every_task(problem: Problem, replanning: bool) -> None:
    """Twelve without an old plan, five more with one; each a sequence of all tasks."""
    compilation = compile_problem(problem)
    old = Plan(problem.fixed) if replanning else None
    found = own_heuristics(compilation, old)
    assert len({each.name for each in found}) == len(found) == 12 + 5 * replanning
    for each in found:
        assert sorted(each.genes) == list(range(len(compilation.tasks)))


def test_tasks_without_a_due_date_go_last() -> None:
    """By latest start, and the longest chains of them first."""
    flows = (
        Workflow("a", (Task("x", 1.0, ON_A),)),
        Workflow("b", (Task("x", 2.0, ON_A),)),
        Workflow("c", (Task("x", 1.0, ON_A),), due_date=1000.0),
    )
    compilation = compile_problem(Problem(flows, (Resource("a"),)))
    order = names(compilation, sequence(compilation, "latest start", range(3)))
    assert order == ["c.x", "b.x", "a.x"]


@FEW
@given(st.integers(0, 1000), st.sampled_from(("sRsD", "lRlD")))
def test_the_longest_chains_where_they_end_first_are_heft(seed: int, name: str) -> None:
    """Upward rank and RAS-4 place every task as HEFT does."""
    problem = paper_problem(name, 30, np.random.default_rng(seed))
    planner = Planner(problem)
    found = own_heuristics(planner.compilation)
    same = next(each for each in found if each.name == "upward rank & RAS-4")
    plan, _ = planner.plan(same.genes, same.strategy)
    expected = heft(problem)
    assert {p.key: (p.demands, p.start) for p in plan} == {
        p.key: (p.demands, p.start) for p in expected
    }


def test_there_are_five_rules() -> None:
    """Another one is refused with their names."""
    with pytest.raises(ValueError, match=f"one of {', '.join(RULES)}"):
        sequence(three(), "longest", range(5))
