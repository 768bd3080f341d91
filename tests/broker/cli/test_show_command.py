"""What is shown of a broker's plan."""

import json
from pathlib import Path

import pytest

from broker.cli.show_command import PlanSelection, document, lines, page, pick, problem_and_plan
from broker.io.plans import read_plan
from broker.io.writing import to_json
from broker.model.resources import Resource
from broker.scheduler.records import Supply
from broker.util.errors import InputError
from broker.v1 import plan_pb2, workflow_pb2

DONE, RUNS, WAITS = (
    workflow_pb2.TASK_STATE_COMPLETED,
    workflow_pb2.TASK_STATE_RUNNING,
    workflow_pb2.TASK_STATE_WAITING,
)
SUPPLIES = (Supply(Resource("alpha", performance=2.0)), Supply(Resource("idle")))


def plan() -> plan_pb2.Plan:
    """Returns a plan of two workflows; a task of the first has completed."""
    message = plan_pb2.Plan(number=7, now_s=1000.0, adopted_s=990.0, fitness=61234.5)
    for workflow, task, start, state, before, resource in (
        ("one", "a", 900.0, DONE, (), "alpha"),
        ("one", "b", 980.0, RUNS, ("a",), "alpha"),
        ("one", "c", 1100.0, WAITS, ("b", "a"), "gone"),
        ("two", "a", 1050.0, WAITS, (), "alpha"),
    ):
        message.placements.add(
            workflow=workflow, task=task, start_time_s=start, end_time_s=start + 50, cost=2.0,
            state=state, predecessors=before,
            demands=[workflow_pb2.Demand(resource=resource, units=2 if resource == "gone" else 1)],
        )  # fmt: skip
    message.unplanned.add(workflow="two", task="b", reason="closed")
    return message


WORKFLOWS = [
    workflow_pb2.Workflow(workflow_id="w1", name="zero", end_time_s=5.0),
    workflow_pb2.Workflow(workflow_id="w2", name="one", due_date_s=1200.0, budget=9.0),
    workflow_pb2.Workflow(workflow_id="w3", name="two"),
]


def shown(*wanted: str, everything: bool = False) -> PlanSelection:
    """Returns what is shown of it."""
    return pick(plan(), WORKFLOWS, wanted, everything=everything)


def test_completed_tasks_are_left_out_and_counted() -> None:
    """Unless all are wanted."""
    assert lines(shown()) == [
        "plan 7, 10 s old, fitness 61,234",
        "     -20.0 s      +30.0 s  running    one/b on alpha",
        "    +100.0 s     +150.0 s  waiting    one/c on gone x2",
        "     +50.0 s     +100.0 s  waiting    two/a on alpha",
        "no place: two/b: closed",
        "1 task that has ended is left out; --all shows them",
    ]
    silent = plan()
    silent.silent_sites.append("riga")
    found = lines(pick(silent, WORKFLOWS, (), everything=False))
    assert found[1] == "no answer from riga: nothing new begins there"
    assert lines(shown()) == [found[0], *found[2:]]
    everything = lines(shown(everything=True))
    assert "    -100.0 s      -50.0 s  completed  one/a on alpha" in everything
    assert "left out" not in everything[-1]


@pytest.mark.parametrize("name", ["w3", "two"])
def test_one_workflow_is_shown_by_id_or_name(name: str) -> None:
    """And what of it has no place."""
    assert lines(shown(name))[1:] == [
        "     +50.0 s     +100.0 s  waiting    two/a on alpha",
        "no place: two/b: closed",
    ]
    assert list(shown(name).workflows) == ["two"]


def test_a_workflow_that_is_not_open_is_an_error() -> None:
    """It names those that are."""
    with pytest.raises(InputError, match=r"(?s)'zero'.*w2.*one"):
        shown("zero")
    with pytest.raises(InputError, match="none is open"):
        pick(plan(), WORKFLOWS[:1], ["one"], everything=False)


def test_before_the_first_plan_there_is_none() -> None:
    """That is no error for people, and one where a file is wanted."""
    empty = pick(plan_pb2.Plan(now_s=5.0), [], (), everything=False)
    assert lines(empty) == ["there is no plan yet"]
    with pytest.raises(InputError, match="nothing to draw"):
        page(empty, SUPPLIES)


def test_a_plan_is_a_problem_in_which_everything_is_fixed() -> None:
    """With limits, precedence as far as it is shown, and stand-ins for resources that are gone."""
    problem, made = problem_and_plan(shown(), SUPPLIES)
    assert [each.name for each in problem.resources] == ["alpha", "idle", "gone"]
    assert problem.resource["gone"].capacity == 2
    one, two = problem.workflows
    assert (one.due_date, one.budget) == (1200.0, 9.0)
    assert [(each.name, each.work, each.predecessors) for each in one.tasks] == [
        ("b", 100.0, ()), ("c", 50.0, ("b",)),
    ]  # fmt: skip
    assert two.name == "two"
    assert made.placements == problem_and_plan(shown(), SUPPLIES)[1].placements
    assert made.unplanned == (("two", "b"),)


def test_the_file_is_one_that_planning_can_begin_from(tmp_path: Path) -> None:
    """And has what only the broker knows."""
    path = tmp_path / "plan.json"
    path.write_text(to_json(document(shown(), SUPPLIES)))
    assert read_plan(path) == problem_and_plan(shown(), SUPPLIES)[1]
    made = json.loads(path.read_text())["made"]
    assert made["plan"] == 7
    assert made["workflows"] == {"one": "w2", "two": "w3"}
    assert made["states"] == {"one/b": "running", "one/c": "waiting", "two/a": "waiting"}
    assert made["reasons"] == {"two/b": "closed"}
    assert made["ended tasks left out"] == 1


def test_the_page_has_what_is_planned_and_no_resource_that_does_nothing() -> None:
    """Under the workflow's name where it is one."""
    text = page(shown(), SUPPLIES)
    assert "<title>Plan 7" in text
    assert "alpha" in text
    assert "idle" not in text
    assert "closes for good" not in text, "that is one reason of many"
    assert "tasks without a place" in text
    for figure in ("10 s before", "61,234"):
        assert f">{figure}<" in "".join(text.split("\n")).replace("> ", ">"), "for people"
    assert "990.0" not in text
    assert "<title>two" in page(shown("two"), SUPPLIES)
