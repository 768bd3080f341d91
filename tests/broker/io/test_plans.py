import json
import math
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.io.plans import plan_document, read_plan
from broker.io.writing import to_json
from broker.model.heft import heft
from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.model.resources import Calendar, Resource
from broker.model.workflow import Alternative, Task, Workflow
from broker.planner.methods import Result
from broker.util.errors import FileError
from tests.broker.random_problems import problems


@given(problems())
@settings(max_examples=15)
def test_plans_survive_being_written(
    tmp_path_factory: pytest.TempPathFactory, problem: Problem
) -> None:
    """Placements and tasks without a place are read back to the last bit."""
    plan = heft(problem)
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    path.write_text(to_json(plan_document(problem, plan)))
    read = read_plan(path)
    assert read == plan


def closing() -> tuple[Problem, Plan]:
    """Returns a problem of two tasks, one of which finds no time, and a plan for it."""
    on = (Alternative.of("r"),)
    workflow = Workflow("w", (Task("a", 4.0, on), Task("b", 4.0, on)), due_date=9.0, budget=1.0)
    resource = Resource("r", price=1.0, calendar=Calendar((), ((7.0, math.inf),)))
    problem = Problem((workflow,), (resource,))
    return problem, heft(problem)


def test_everything_that_people_compare_is_in_the_file() -> None:
    """Figures, methods, workflows and the critical path; what is infinite is null."""
    problem, plan = closing()
    result = Result("heft", "", plan, None, 0.5, None)
    document = plan_document(problem, plan, results=[result], made={"seed": 3})
    document = json.loads(to_json(document))
    assert document["format"] == "hanse plan 1"
    assert document["made"] == {"seed": 3}
    assert document["figures"]["makespan"] is None
    assert document["figures"]["unplanned"] == 1
    assert document["methods"][0] == {
        "method": "heft",
        "detail": "",
        "fitness": None,
        "seconds": 0.5,
        "evaluations": None,
        **document["figures"],
    }
    assert document["workflows"] == [
        {
            "name": "w",
            "tasks": 2,
            "start": 0.0,
            "completion": None,
            "due_date": 9.0,
            "tardiness": None,
            "cost": 4.0,
            "budget": 1.0,
            "over_budget": 3.0,
        }
    ]
    assert document["critical_path"] == [{"workflow": "w", "task": "a", "reason": "begins"}]
    assert document["unplanned"] == [{"workflow": "w", "task": "b"}]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"format": "hanse plan 2"},
            "format: is 'hanse plan 2'; this program reads 'hanse plan 1'",
        ),
        ({"format": None}, "format: is None; this program reads"),
        ({"placements": [{}]}, "placements[0].workflow: is missing"),
        ({"placements": 1}, "placements: is 1; it must be a list"),
        ({"plan": 1}, "plan: 'plan' is no key here, did you mean"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    """File, key, value and what is allowed are in the text."""
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_document(*closing()) | changes))
    with pytest.raises(FileError) as caught:
        read_plan(path)
    assert str(caught.value).startswith(f"{path}: {said}")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cost": 1e308}, "cost: is 1e+308; it must be at most 1e+300"),
        (
            {"resources": [{"resource": "a", "units": 10**30}]},
            "resources[0].units: is 1000000000000000000000000000000; it must be at most",
        ),
    ],
)
def test_numbers_that_nothing_can_be_planned_with_are_said(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    """As those in a file of workflows are."""
    document = plan_document(*closing())
    document["placements"][0] |= changes
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document))
    with pytest.raises(FileError) as caught:
        read_plan(path)
    assert str(caught.value).startswith(f"{path}: placements[0].{said}")


def test_a_task_that_is_placed_twice_is_said(tmp_path: Path) -> None:
    """A file that was tampered with is refused."""
    document = plan_document(*closing())
    document["placements"] *= 2
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document))
    with pytest.raises(FileError, match="placements: placed twice: w/a"):
        read_plan(path)


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.text()))
@settings(max_examples=20)
def test_any_json_is_a_plan_or_said_to_be_none(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, object]
) -> None:
    """No file ends in another exception."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    path.write_text(json.dumps(document))
    with suppress(FileError):
        read_plan(path)
