import math
from dataclasses import replace
from typing import Any

import pytest

from broker.model.plan import Placement
from broker.model.problem import Problem
from broker.model.resources import Calendar, Resource, WeeklyWindow
from broker.model.workflow import MOMENT_MAX, Alternative, Demand, Instant, Task, Workflow
from tests.broker.random_problems import HOUR, NOW

ON_A = Alternative.of("a")
FLOW = Workflow("w", (Task("x", 60.0, (ON_A,)), Task("y", 60.0, (ON_A,), ("x",))))
A = Resource("a")


def fixed(task: str, start: float, end: float, resource: str = "a") -> Placement:
    """Returns a fixed placement of workflow w."""
    return Placement("w", task, (Demand(resource),), start, end, 0.0)


def flow_on(alternative: Alternative, work: float = HOUR) -> Workflow:
    """Returns a workflow of one task."""
    return Workflow("w", (Task("x", work, (alternative,)),))


def test_resources_are_found_by_name() -> None:
    """A checked problem has them at hand."""
    assert Problem((FLOW,), (A,)).resource == {"a": A}


def test_what_has_ended_may_have_run_elsewhere() -> None:
    """A resource that is gone may still be in the past of a workflow."""
    Problem((FLOW,), (A,), now=100, fixed=(fixed("x", 0, 60, "gone"),))


def test_what_ends_at_this_moment_has_ended() -> None:
    """Where it ran may be gone by then, and not a moment before."""
    gone = (fixed("x", 0, 60, "gone"),)
    Problem((FLOW,), (A,), now=60, fixed=gone)
    with pytest.raises(
        ValueError, match=r"^the fixed task w/x runs on 'gone', which is not there$"
    ):
        Problem((FLOW,), (A,), now=59, fixed=gone)


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        (Demand("gone"), r"^workflow 'w', task 'x': there is no resource 'gone'$"),
        (Demand("a", 2), r"^1 task can run nowhere.*: w/x$"),
    ],
)
def test_a_fixed_task_needs_no_place_to_run(demand: Demand, message: str) -> None:
    """All that it could have run on may be gone or too small; one that is not fixed needs some."""
    alternatives = (Alternative((demand,)),)
    flow = Workflow("w", (Task("x", 60.0, alternatives), Task("y", 60.0, (ON_A,), ("x",))))
    Problem((flow,), (A,), now=60, fixed=(fixed("x", 0, 60),))
    with pytest.raises(ValueError, match=message):
        Problem((flow,), (A,), now=60)


def test_an_instant_may_be_fixed() -> None:
    """It starts and ends at one moment."""
    flow = Workflow("w", (Instant("x", 0.0, (ON_A,)),))
    Problem((flow,), (A,), now=5, fixed=(fixed("x", 5, 5),))


@pytest.mark.parametrize("now", [-MOMENT_MAX, MOMENT_MAX])
def test_a_plan_begins_at_most_so_far_from_1970(now: float) -> None:
    """At the last moment it may, after it no more."""
    assert Problem((FLOW,), (A,), now=now).now == now
    with pytest.raises(ValueError, match=r"^now is -?1e\+12; at most 1e\+12 s from 1970$"):
        Problem((FLOW,), (A,), now=math.nextafter(now, math.copysign(math.inf, now)))


def test_as_many_tasks_as_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is refused; the tasks of all workflows count."""
    flows = (FLOW, replace(FLOW, name="v"))
    monkeypatch.setattr("broker.model.problem.TASKS_MAX", 4)
    assert len(Problem(flows, (A,)).workflows) == 2
    monkeypatch.setattr("broker.model.problem.TASKS_MAX", 3)
    with pytest.raises(ValueError, match=r"^4 tasks; at most 3$"):
        Problem(flows, (A,))


def test_only_names_that_come_twice_are_said() -> None:
    """Each of them once, in order; those that come once are not to blame."""
    with pytest.raises(ValueError, match=r"^resources of the same name: a, c$"):
        Problem((FLOW,), tuple(Resource(name) for name in "cabaac"))


@pytest.mark.parametrize(("count", "rest"), [(10, ""), (11, " …")])
def test_ten_impossible_tasks_are_named(count: int, rest: str) -> None:
    """Of more than ten only how many they are is said."""
    three = (Alternative((Demand("a", 3),)),)
    flow = Workflow("w", tuple(Task(f"t{number}", 60.0, three) for number in range(count)))
    names = ", ".join(f"w/t{number}" for number in range(10))
    with pytest.raises(ValueError, match=rf"^{count} tasks can run nowhere.*: {names}{rest}$"):
        Problem((flow,), (A,))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Problem((), (A,)), "there is no workflow to plan"),
        (lambda: Problem((FLOW,), ()), "there is no resource to plan for"),
        (lambda: Problem((FLOW,), (A,), now=math.nan), "now is nan; it must be a finite number"),
        (lambda: Problem((FLOW, FLOW), (A,)), "workflows of the same name: w"),
        (lambda: Problem((FLOW,), (A, A)), "resources of the same name: a"),
        (
            lambda: Problem((FLOW,), (Resource("b"),)),
            "workflow 'w', task 'x': there is no resource 'a'",
        ),
        (
            lambda: Problem((FLOW,), (A,), fixed=(fixed("z", 0, 1),)),
            "the fixed task w/z is not there",
        ),
        (
            lambda: Problem((FLOW,), (A,), fixed=(fixed("x", 0, 1), fixed("x", 2, 3))),
            "the task w/x is fixed twice",
        ),
        (
            lambda: Problem((FLOW,), (A,), fixed=(fixed("y", 0, 1),)),
            "the task w/y is fixed, and its predecessor 'x' is not",
        ),
        (
            lambda: Problem((FLOW,), (A,), fixed=(fixed("x", 0, 60, "b"),)),
            "the fixed task w/x runs on 'b', which is not there",
        ),
        (
            lambda: Problem((FLOW,), (A,), fixed=(fixed("x", 5, 1),)),
            "the fixed task w/x runs from 5 to 1",
        ),
        (
            lambda: Problem((FLOW,), (A,), fixed=(fixed("x", 5, math.inf),)),
            "the fixed task w/x runs from 5 to inf",
        ),
    ],
)
def test_what_does_not_fit_together_is_named(make: Any, message: str) -> None:
    """Each error says which workflow, task or resource is wrong."""
    with pytest.raises(ValueError, match=r".") as error:
        make()
    assert str(error.value) == message


OFFICE = Calendar((WeeklyWindow(8 * HOUR, 18 * HOUR),))
NIGHT = Calendar((WeeklyWindow(20 * HOUR, 24 * HOUR), WeeklyWindow(0, 6 * HOUR)))


@pytest.mark.parametrize(
    ("resource", "hours", "possible"),
    [
        (Resource("a", calendar=OFFICE), 10, True),
        (Resource("a", calendar=OFFICE), 10.5, False),
        (Resource("a", calendar=OFFICE, performance=2), 20, True),
        (Resource("a", calendar=NIGHT), 10, True),
        (Resource("a", calendar=NIGHT, utc_offset=-3 * HOUR), 10, True),
        (Resource("a", calendar=NIGHT), 11, False),
        (Resource("a", calendar=Calendar(closures=((NOW - 5, math.inf),))), 1, False),
        (Resource("a", calendar=Calendar(closures=((NOW + 2 * HOUR, math.inf),))), 2, True),
        (Resource("a", calendar=Calendar(closures=((NOW + 2 * HOUR, math.inf),))), 3, False),
        (Resource("a", calendar=Calendar(closures=((NOW, NOW + 999 * HOUR),))), 300, True),
    ],
)
def test_a_task_needs_a_resource_that_is_open_long_enough(
    resource: Resource, hours: float, possible: bool
) -> None:
    """Openings over midnight and final closures count; an impossible task is named."""
    flow = flow_on(ON_A, hours * HOUR)
    if possible:
        Problem((flow,), (resource,), NOW)
        return
    with pytest.raises(
        ValueError,
        match=r"^1 task can run nowhere, as every alternative is too small, is never open long enough, or is closed for good: w/x$",
    ):
        Problem((flow,), (resource,), NOW)


def test_resources_that_are_needed_together_have_to_be_open_together() -> None:
    """An office by day and a night owl share no hour; with the owl elsewhere they share some."""
    flow = flow_on(Alternative.of("a", "b"), HOUR)
    day, owl = Resource("a", calendar=OFFICE), Resource("b", calendar=NIGHT)
    with pytest.raises(
        ValueError,
        match=r"^1 task can run nowhere, as every alternative is too small, is never open long enough, or is closed for good: w/x$",
    ):
        Problem((flow,), (day, owl), NOW)
    Problem((flow,), (day, replace(owl, utc_offset=-9 * HOUR)), NOW)


def test_a_demand_has_to_fit_into_the_capacity() -> None:
    """Another alternative that is large enough makes the task possible."""
    three = Alternative((Demand("a", 3),))
    with pytest.raises(
        ValueError,
        match=r"^1 task can run nowhere, as every alternative is too small, is never open long enough, or is closed for good: w/x$",
    ):
        Problem((flow_on(three),), (Resource("a", capacity=2),), NOW)
    Problem((flow_on(three),), (Resource("a", capacity=3),), NOW)
