import io
import math

import pytest
from rich.console import Console

from broker.gantt.terminal import WORKFLOWS_MAX, print_plan
from broker.model.heft import heft
from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.planner.methods import Comparison
from broker.planner.search import Budget
from tests.broker.small import POOL, SMALL, flow


def printed(problem: Problem, plan: Plan, results: list[object], encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    print_plan(Console(file=stream, width=80), problem, plan, results)  # type: ignore[arg-type]  # a list of results
    stream.flush()
    return raw.getvalue().decode(encoding)


def test_a_plan_fits_eighty_columns() -> None:
    """Headline, methods, workflows and critical path, each in lines of at most 80."""
    comparison = Comparison(SMALL, workers=1)
    comparison.baselines()
    comparison.search("asma-shift", Budget(math.inf, 50))
    text = printed(SMALL, comparison.best.plan, list(comparison.results))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith("12 tasks of 3 workflows on 3 resources end after ")
    assert any(line.startswith("HEFT ") for line in lines)
    assert any(line.startswith("ASMA guided ") for line in lines)
    assert any(line.startswith("alpha ") for line in lines)
    assert lines[-1].startswith("Critical path: ")


def test_many_workflows_are_cut_to_the_worst() -> None:
    """Late ones come first, then dear ones; how many are left out is said."""
    workflows = [flow(f"w{n}", 1) for n in range(WORKFLOWS_MAX + 3)]
    workflows[7] = flow("dear", 1, budget=0.1)
    workflows[9] = flow("late", 1, due_date=0.1)
    problem = Problem(tuple(workflows), POOL)
    lines = printed(problem, heft(problem), []).splitlines()
    rows = lines[lines.index(next(each for each in lines if "to spare" in each)) + 2 :]
    assert rows[0].startswith("late ")
    assert rows[1].startswith("dear ")
    assert "… and 3 more workflows, with less to tell" in lines


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_utf8_gets_what_it_can_show(encoding: str) -> None:
    """Nothing fails, whatever workflows are called."""
    problem = Problem((flow("Müller–Łódź – ein sehr langer Name", 2, due_date=0.5),), POOL)
    text = printed(problem, heft(problem), [], encoding)
    assert "M" in text
    assert "1 late" in text
