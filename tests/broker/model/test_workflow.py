import math
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
        (lambda: Demand("a", 0), "0 units of 'a'"),
        (lambda: Alternative(()), "at least one resource"),
        (lambda: Alternative.of("a", "b", "a"), "twice: a, b, a"),
        (lambda: Task("t", 0.0, ON_A), "'t': work is 0.0"),
        (lambda: Task("t", math.inf, ON_A), "work is inf"),
        (lambda: Task("t", 1e11, ON_A), "at most 1e+10 s"),
        (lambda: Task("a\x1b[31m", 1.0, ON_A), "control characters: 'a\\x1b[31m'"),
        (
            lambda: Workflow("w", (task("x"),), earliest_start=1e13),
            "'w': the earliest start is 1e",
        ),
        (lambda: Instant("t", 1.0, ON_A), "'t': work is 1.0; an instant has none"),
        (lambda: Workflow("", (task("x"),)), "a workflow has no name"),
        (lambda: Task("t", math.nan, ON_A), "work is nan"),
        (lambda: Task("t", 1.0, ()), "'t' has no alternative"),
        (lambda: Task("t", 1.0, ON_A, ("t",)), "'t' is its own predecessor"),
        (lambda: Task("t", 1.0, ON_A, ("s", "s")), "'t' names a predecessor twice"),
        (lambda: Workflow("w", ()), "'w' has no task"),
        (lambda: Workflow("w", (task("x"), task("x"))), "'w': tasks of the same name: x"),
        (lambda: Workflow("w", tuple(task(name) for name in "cabaac")), "same name: a, c"),
        (lambda: Workflow("w", (task("x", "y"),)), "'x' waits for 'y', which is not there"),
        (
            lambda: Workflow("w", (task("x", "z"), task("y", "x"), task("z", "y"))),
            "wait for each other: x → z → y → x",
        ),
        (lambda: Workflow("w", (task("x"),), math.nan), "earliest start is not a number"),
        (lambda: Workflow("w", (task("x"),), math.inf), "earliest start is infinite"),
        (lambda: Workflow("w", (task("x"),), due_date=math.nan), "due date is not a number"),
        (
            lambda: Workflow("w", (task("x"),), earliest_start=-1e300),
            "'w': the earliest start is -1e+300; at most 1e+12 s before 1970",
        ),
        (lambda: Workflow("w", (task("x"),), due_date=-1.7e308), "the due date is -1.7e+308"),
        (lambda: Workflow("w", (task("x"),), budget=-1), "budget is -1"),
        (lambda: Workflow("w", (task("x"),), budget=math.nan), "budget is nan"),
        (lambda: Workflow("w", (task("x"),), preference=1.5), "preference is 1.5"),
        (
            lambda: sharing(*(DataFile(name, 1.0, ("x",)) for name in "gfgef")),
            "'w': files of the same name: f, g",
        ),
        (lambda: sharing(DataFile("f", 1.0, ("z",))), "'w': file 'f': there is no task 'z'"),
        (lambda: sharing(DataFile("f", 1.0, ("y",), "z")), "'w': file 'f': there is no task 'z'"),
        (
            lambda: sharing(DataFile("f", 1.0, ("x",), "y")),
            "'w': task 'x' reads 'f' and does not wait for 'y', which makes it",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused_by_name(make: Any, message: str) -> None:
    """Every bound is checked, and the error says which workflow, task and value."""
    with pytest.raises(ValueError, match=r".") as error:
        make()
    assert message in str(error.value)


def test_the_bounds_themselves_are_allowed() -> None:
    """The longest work, and dates at the first and the last moment that plans can have."""
    longest = Task("x", WORK_MAX, ON_A)
    assert Workflow("w", (longest,), -MOMENT_MAX, -MOMENT_MAX).work == WORK_MAX
    assert Workflow("w", (longest,), MOMENT_MAX).earliest_start == MOMENT_MAX


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
