import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.plan import Plan
from broker.planner.compilation import Compilation, compile_problem
from broker.planner.heuristics import (
    RULES,
    Genes,
    planning_heuristics,
    replanning_heuristics,
    sequence,
)
from broker.planner.planning import Planner
from broker.problem import Problem
from broker.resources import Resource
from broker.workflow import Alternative, Task, Workflow
from tests.broker.random_problems import problems

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
    ],
)
def test_a_rule_says_what_comes_first(rule: str, order: list[str]) -> None:
    """By due date of the workflow, work of the task, work of the workflow; precedence holds."""
    compilation = three()
    assert names(compilation, sequence(compilation, rule, range(5))) == order


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


def test_there_are_three_rules() -> None:
    """Another one is refused with their names."""
    with pytest.raises(ValueError, match=f"one of {', '.join(RULES)}"):
        sequence(three(), "longest", range(5))
