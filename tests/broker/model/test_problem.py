import math
from dataclasses import replace
from typing import Any

import pytest

from broker.model.plan import Placement
from broker.model.problem import Problem
from broker.model.resources import Calendar, Resource, WeeklyWindow
from broker.model.workflow import Alternative, Demand, Task, Workflow
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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Problem((), (A,)), "no workflow"),
        (lambda: Problem((FLOW,), ()), "no resource"),
        (lambda: Problem((FLOW,), (A,), now=math.nan), "now is nan"),
        (lambda: Problem((FLOW, FLOW), (A,)), "workflows of the same name: w"),
        (lambda: Problem((FLOW,), (A, A)), "resources of the same name: a"),
        (
            lambda: Problem((FLOW,), (Resource("b"),)),
            "workflow 'w', task 'x': there is no resource 'a'",
        ),
        (lambda: Problem((FLOW,), (A,), fixed=(fixed("z", 0, 1),)), "fixed task w/z is not there"),
        (
            lambda: Problem((FLOW,), (A,), fixed=(fixed("x", 0, 1), fixed("x", 2, 3))),
            "w/x is fixed twice",
        ),
        (
            lambda: Problem((FLOW,), (A,), fixed=(fixed("y", 0, 1),)),
            "task w/y is fixed, and its predecessor 'x' is not",
        ),
        (
            lambda: Problem((FLOW,), (A,), fixed=(fixed("x", 0, 60, "b"),)),
            "w/x runs on 'b', which is not there",
        ),
        (lambda: Problem((FLOW,), (A,), fixed=(fixed("x", 5, 1),)), "w/x runs from 5 to 1"),
        (lambda: Problem((FLOW,), (A,), fixed=(fixed("x", 5, math.inf),)), "from 5 to inf"),
    ],
)
def test_what_does_not_fit_together_is_named(make: Any, message: str) -> None:
    """Each error says which workflow, task or resource is wrong."""
    with pytest.raises(ValueError, match=r".") as error:
        make()
    assert message in str(error.value)


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
    with pytest.raises(ValueError, match=r"1 tasks can run nowhere.*w/x"):
        Problem((flow,), (resource,), NOW)


def test_resources_that_are_needed_together_have_to_be_open_together() -> None:
    """An office by day and a night owl share no hour; with the owl elsewhere they share some."""
    flow = flow_on(Alternative.of("a", "b"), HOUR)
    day, owl = Resource("a", calendar=OFFICE), Resource("b", calendar=NIGHT)
    with pytest.raises(ValueError, match="w/x"):
        Problem((flow,), (day, owl), NOW)
    Problem((flow,), (day, replace(owl, utc_offset=-9 * HOUR)), NOW)


def test_a_demand_has_to_fit_into_the_capacity() -> None:
    """Another alternative that is large enough makes the task possible."""
    three = Alternative((Demand("a", 3),))
    with pytest.raises(ValueError, match="w/x"):
        Problem((flow_on(three),), (Resource("a", capacity=2),), NOW)
    Problem((flow_on(three),), (Resource("a", capacity=3),), NOW)
