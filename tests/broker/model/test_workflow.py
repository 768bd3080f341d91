import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.network import DataFile
from broker.model.workflow import (
    CYCLE_SHOWN_MAX,
    MOMENT_MAX,
    WORK_MAX,
    Alternative,
    Demand,
    Instant,
    Task,
    Workflow,
    cycle_words,
    find_cycle,
)

ON_A = (Alternative.of("a"),)


def task(name: str, *predecessors: str) -> Task:
    """Returns a task of one second on resource a."""
    return Task(name, 1.0, ON_A, predecessors)


def sharing(*files: DataFile) -> Workflow:
    """Returns a workflow of x, and of y behind it, with files."""
    return Workflow("w", (task("x"), task("y", "x")), files=files)


def test_an_alternative_has_its_primary_resource_first() -> None:
    """The first demand is the primary resource; one unit of each is the default."""
    alternative = Alternative.of("cpu", "licence")
    assert alternative.primary == "cpu"
    assert alternative.resources == ("cpu", "licence")
    assert [demand.units for demand in alternative.demands] == [1, 1]


def test_a_workflow_knows_its_work() -> None:
    """Work is the sum over its tasks."""
    assert Workflow("w", (task("x"), task("y", "x"))).work == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Demand("a", 0), "a demand for 0 units of 'a'; at least 1"),
        (lambda: Alternative(()), "an alternative needs at least one resource"),
        (lambda: replace(ON_A[0], seconds=0.0), "0.0 seconds; more than 0 and at most 1e+10"),
        (
            lambda: replace(ON_A[0], seconds=2 * WORK_MAX),
            "20000000000.0 seconds; more than 0 and at most 1e+10",
        ),
        (lambda: replace(ON_A[0], setup=-1.0), "a set-up of -1.0 seconds; from 0 to 1e+10"),
        (
            lambda: replace(ON_A[0], setup=2 * WORK_MAX),
            "a set-up of 20000000000.0 seconds; from 0 to 1e+10",
        ),
        (
            lambda: Workflow("w", (task("x"),), preference=-0.1),
            "workflow 'w': the preference is -0.1; it is from 0 to 1",
        ),
        (lambda: Alternative.of("a", "b", "a"), "an alternative names a resource twice: a, b, a"),
        (
            lambda: Task("t", 0.0, ON_A),
            "task 't': work is 0.0; it must be more than 0 and at most 1e+10 s",
        ),
        (
            lambda: Task("t", math.inf, ON_A),
            "task 't': work is inf; it must be more than 0 and at most 1e+10 s",
        ),
        (
            lambda: Task("t", 1e11, ON_A),
            "task 't': work is 100000000000.0; it must be more than 0 and at most 1e+10 s",
        ),
        (
            lambda: Task("a\x1b[31m", 1.0, ON_A),
            "the name of a task has control characters: 'a\\x1b[31m'",
        ),
        (
            lambda: Workflow("w", (task("x"),), earliest_start=1e13),
            "workflow 'w': the earliest start is 1e+13; at most 1e+12 s",
        ),
        (lambda: Instant("t", 1.0, ON_A), "task 't': work is 1.0; an instant has none, nor times"),
        (lambda: Workflow("", (task("x"),)), "a workflow has no name"),
        (
            lambda: Task("t", math.nan, ON_A),
            "task 't': work is nan; it must be more than 0 and at most 1e+10 s",
        ),
        (lambda: Task("t", 1.0, ()), "task 't' has no alternative to run on"),
        (lambda: Task("t", 1.0, ON_A, ("t",)), "task 't' is its own predecessor"),
        (lambda: Task("t", 1.0, ON_A, ("s", "s")), "task 't' names a predecessor twice: s"),
        (lambda: Workflow("w", ()), "workflow 'w' has no task"),
        (lambda: Workflow("w", (task("x"), task("x"))), "workflow 'w': tasks of the same name: x"),
        (
            lambda: Workflow("w", tuple(task(name) for name in "cabaac")),
            "workflow 'w': tasks of the same name: a, c",
        ),
        (
            lambda: Workflow("w", (task("x", "y"),)),
            "workflow 'w': task 'x' waits for 'y', which is not there",
        ),
        (
            lambda: Workflow("w", (task("x", "z"), task("y", "x"), task("z", "y"))),
            "workflow 'w': tasks wait for each other: x → z → y → x",
        ),
        (
            lambda: Workflow("w", (task("x"),), math.nan),
            "workflow 'w': the earliest start is not a number",
        ),
        (
            lambda: Workflow("w", (task("x"),), math.inf),
            "workflow 'w': the earliest start is infinite",
        ),
        (
            lambda: Workflow("w", (task("x"),), due_date=math.nan),
            "workflow 'w': the due date is not a number",
        ),
        (
            lambda: Workflow("w", (task("x"),), earliest_start=-1e300),
            "workflow 'w': the earliest start is -1e+300; at most 1e+12 s before 1970",
        ),
        (
            lambda: Workflow("w", (task("x"),), due_date=-1.7e308),
            "workflow 'w': the due date is -1.7e+308; at most 1e+12 s before 1970",
        ),
        (
            lambda: Workflow("w", (task("x"),), budget=-1),
            "workflow 'w': the budget is -1; it must be at least 0",
        ),
        (
            lambda: Workflow("w", (task("x"),), budget=math.nan),
            "workflow 'w': the budget is nan; it must be at least 0",
        ),
        (
            lambda: Workflow("w", (task("x"),), preference=1.5),
            "workflow 'w': the preference is 1.5; it is from 0 to 1",
        ),
        (
            lambda: sharing(*(DataFile(name, 1.0, ("x",)) for name in "gfgef")),
            "workflow 'w': files of the same name: f, g",
        ),
        (
            lambda: sharing(DataFile("f", 1.0, ("z",))),
            "workflow 'w': file 'f': there is no task 'z'",
        ),
        (
            lambda: sharing(DataFile("f", 1.0, ("y",), "z")),
            "workflow 'w': file 'f': there is no task 'z'",
        ),
        (
            lambda: sharing(DataFile("f", 1.0, ("x",), "y")),
            "workflow 'w': task 'x' reads 'f' and does not wait for 'y', which makes it",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused_by_name(make: Any, message: str) -> None:
    """Every bound is checked, and the error says which workflow, task and value."""
    with pytest.raises(ValueError, match=r".") as error:
        make()
    assert str(error.value) == message


def test_the_bounds_themselves_are_allowed() -> None:
    """The longest work, and dates at the first and the last moment that plans can have."""
    longest = Task("x", WORK_MAX, ON_A)
    assert Workflow("w", (longest,), -MOMENT_MAX, -MOMENT_MAX).work == WORK_MAX
    assert Workflow("w", (longest,), MOMENT_MAX).earliest_start == MOMENT_MAX
    slowest = Alternative(ON_A[0].demands, WORK_MAX, WORK_MAX)
    assert slowest.duration(1.0, 1.0) == 2 * WORK_MAX
    for preference in (0.0, 1.0):
        free = Workflow("w", (longest,), budget=0.0, preference=preference)
        assert (free.budget, free.preference) == (0.0, preference)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_a_cycle_is_found_iff_there_is_one(edges: list[tuple[int, int]]) -> None:
    """What is returned is a closed chain of predecessors; without one tasks can be sorted."""
    predecessors: dict[str, list[str]] = {str(node): [] for node in range(8)}
    for node, before in edges:
        predecessors[str(node)].append(str(before))
    cycle = find_cycle(predecessors)
    if cycle:
        assert cycle[0] == cycle[-1]
        assert len(cycle) > 1
        for name, other in pairwise(cycle):
            assert other in predecessors[name]
        return
    left = dict(predecessors)
    while left:
        free = [node for node, before in left.items() if not set(before) & set(left)]
        assert free
        for each in free:
            del left[each]


def test_a_cycle_behind_a_task_without_predecessors_is_found() -> None:
    """The search goes on with what else a task waits for."""
    assert find_cycle({"x": ["a", "z"], "a": [], "z": ["x"]}) == ["x", "z", "x"]
    assert find_cycle({"x": ["a", "b", "z"], "a": ["b"], "b": [], "z": ["z"]}) == ["z", "z"]


def test_a_long_circle_is_not_said_in_full() -> None:
    """Twenty names, and how many more there are."""
    circle = [f"t{number}" for number in range(100)]
    assert cycle_words(["a", "b", "a"], " waits for ") == "a waits for b waits for a"
    assert cycle_words([*circle, "t0"]) == " → ".join(circle[:20]) + " … and 81 more"
    assert cycle_words(circle[:CYCLE_SHOWN_MAX]) == " → ".join(circle[:20])
    assert cycle_words(circle[: CYCLE_SHOWN_MAX + 1]) == " → ".join(circle[:20]) + " … and 1 more"


def test_a_long_chain_is_no_trouble() -> None:
    """Cycles are searched without recursion."""
    count = 20_000
    chain = {str(node): [str(node + 1)] if node < count else [] for node in range(count + 1)}
    assert find_cycle(chain) == []
    chain[str(count)] = ["0"]
    assert len(find_cycle(chain)) == count + 2
