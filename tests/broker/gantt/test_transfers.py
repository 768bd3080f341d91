"""Transfers in the terminal, on the page and in the plan's file."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from broker.gantt.page import render_page
from broker.gantt.terminal import print_plan
from broker.gantt.wording import size, transfers_words
from broker.io.plans import plan_document
from broker.model.critical import critical_path
from broker.model.heft import heft
from broker.model.network import DataFile, Link, Network
from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Task, Workflow
from tests.oracles.plan_checker import plan_violations

A, B = (Alternative.of("a"),), (Alternative.of("b"),)


def chain() -> Problem:
    """Returns a task on a, two readers on b of which the second has its file by the first, and an input."""
    tasks = (
        Task("make", 10.0, A),
        Task("first", 5.0, B, ("make",)),
        Task("second", 5.0, B, ("make",)),
    )
    files = (
        DataFile("given", 40.0, ("make",)),
        DataFile("made", 3e6, ("first", "second"), "make"),
    )
    workflow = Workflow("w<>", tasks, 0.0, files=files)
    resources = (Resource("a"), Resource("b", capacity=2))
    return Problem((workflow,), resources, 0.0, network=Network(Link(1e6, 2.0, 1e-6)))


def test_a_plan_says_what_is_sent() -> None:
    problem = chain()
    plan = heft(problem)
    assert plan_violations(problem, plan) == []
    words = "2 transfers of 3 MB; they take 7 s together, and cost 3.00."
    assert transfers_words(plan) == words
    console = Console(file=io.StringIO(), width=80)
    print_plan(console, problem, plan, [])
    assert isinstance(console.file, io.StringIO)
    assert words in console.file.getvalue()
    page = render_page(problem, plan, title="T")
    assert words in page
    assert "from home" in page
    assert "between sites" in page
    (given, made) = plan_document(problem, plan)["transfers"]
    assert (given["source"], given["target"], given["size"]) == ("home", "a", 40.0)
    assert (made["files"], made["begin"], made["end"]) == (("made",), given["end"] + 10, 17.00004)


def test_a_plan_says_that_links_carry_one_at_a_time() -> None:
    problem = chain()
    network = replace(problem.network or Network(Link()), contention="link")
    problem = replace(problem, network=network)
    plan = heft(problem)
    assert plan_violations(problem, plan) == []
    words = (
        "2 transfers of 3 MB; they take 7 s together, and cost 3.00. A link carries one at a time."
    )
    console = Console(file=io.StringIO(), width=120)
    print_plan(console, problem, plan, [])
    assert isinstance(console.file, io.StringIO)
    assert words in console.file.getvalue()
    assert words in render_page(problem, plan, title="T")


def test_without_a_network_nothing_is_said() -> None:
    problem = replace(chain(), network=None)
    plan = heft(problem)
    console = Console(file=io.StringIO(), width=80)
    print_plan(console, problem, plan, [])
    assert isinstance(console.file, io.StringIO)
    assert "ransfer" not in console.file.getvalue()
    assert "Transfers" not in render_page(problem, plan, title="T")
    assert "transfers" not in plan_document(problem, plan)


def test_the_critical_path_waits_for_files() -> None:
    """For those that are sent for the task, for the inputs, and for those that another one has sent."""
    problem = chain()
    plan = heft(problem)
    assert [
        (each.placement.task, each.reason) for each in critical_path(plan, problem.workflows)
    ] == [
        ("make", "files"),
        ("second", "files"),
    ]
    # The other one ends last: it was sent nothing, and waits for the same files.
    later = [replace(p, end=p.end + 1) if p.task == "second" else p for p in plan]
    path = critical_path(Plan(tuple(later), (), plan.transfers), problem.workflows)
    assert [(each.placement.task, each.reason) for each in path] == [
        ("make", "files"),
        ("second", "files"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 B"), (999.0, "999 B"), (999.9, "1 KB"), (2.5e9, "2.5 GB"), (1e18, "1,000 PB")],
)
def test_sizes_have_the_largest_unit_of_which_there_is_one(value: float, text: str) -> None:
    assert size(value) == text


def test_the_validator_finds_what_is_wrong() -> None:
    """Each kind of mistake in transfers, and a task that begins before its files are there."""
    problem = chain()
    plan = heft(problem)
    given, made = plan.transfers

    def found(*transfers: object, **moved: float) -> list[str]:
        placements = tuple(
            replace(p, start=p.start + moved.get(p.task, 0.0), end=p.end + moved.get(p.task, 0.0))
            for p in plan
        )
        return plan_violations(problem, Plan(placements, (), tuple(transfers)))  # type: ignore[arg-type]  # transfers

    def said(text: str, violations: list[str]) -> bool:
        return any(text in each for each in violations)

    assert found(given, made) == []
    assert said("begins at", found(given, made, first=-1.0))
    assert said("begins at", found(given))
    assert said("sent twice", found(given, made, made))
    assert said("ends at", found(given, replace(made, end=made.end - 1)))
    assert said("is there from", found(given, replace(made, begin=made.begin - 1)))
    assert said("bytes, not", found(given, replace(made, size=1.0)))
    assert said("costs", found(given, replace(made, cost=0.0)))
    assert said("goes nowhere", found(replace(given, target="home"), made))
    assert said("before now", found(replace(given, begin=-1.0), made))
    without = replace(problem, network=None)
    assert said("no network", plan_violations(without, Plan(plan.placements, (), (made,))))
