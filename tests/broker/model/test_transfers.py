"""Where the files of tasks come from, and since when they are where."""

import math
from dataclasses import replace

import pytest

from broker.model.network import Copy, DataFile, Link, Network
from broker.model.plan import Placement, Plan, Transfer
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.transfers import Source, Staging
from broker.model.workflow import Alternative, Demand, Task, Workflow

ON_A = (Alternative.of("a"),)
AT_SITE = DataFile("f", 10.0, ("x", "y"), site="store")
MADE = DataFile("g", 5.0, ("y",), "x")
GIVEN = DataFile("h", 1.0, ("y",))
FLOW = Workflow(
    "w", (Task("x", 1.0, ON_A), Task("y", 1.0, ON_A, ("x",))), files=(AT_SITE, MADE, GIVEN)
)
NETWORK = Network(Link(2.0), {"a": "riga"})


def staged(*copies: Copy, fixed: tuple[Placement, ...] = ()) -> Staging:
    """Returns the data of a workflow of two tasks with a file of each kind."""
    return Staging(
        Problem((FLOW,), (Resource("a"),), 0.0, fixed=fixed, network=NETWORK, copies=copies)
    )


def test_a_source_has_all_files_of_a_task_or_a_site() -> None:
    """Each is of the one kind or the other."""
    found = staged()
    assert found.sources(("w", "x")) == (Source("", "store", (AT_SITE,)),)
    assert found.sources(("w", "y")) == (
        Source("", "store", (AT_SITE,)),
        Source("x", "", (MADE,)),
        Source("", "home", (GIVEN,)),
    )
    assert found.sources(("w", "z")) == ()
    assert found


@pytest.mark.parametrize("moments", [(3.0, 7.0), (7.0, 3.0)])
def test_a_file_is_there_from_the_first_copy_on(moments: tuple[float, float]) -> None:
    """Whichever is told first."""
    found = staged(*(Copy("w", "f", "riga", since) for since in moments))
    assert found.there("w", "f", "riga") == 3.0
    assert found.there("w", "f", "store") == found.there("w", "g", "riga") == math.inf


@pytest.mark.parametrize(("since", "there"), [(2.0, 2.0), (9.0, 4.0)])
def test_what_a_task_has_begun_with_is_there(since: float, there: float) -> None:
    """From its beginning on, or from that of a copy before it."""
    begun = Placement("w", "x", (Demand("a"),), 4.0, 5.0, 1.0)
    found = staged(Copy("w", "f", "riga", since), fixed=(begun,))
    assert found.there("w", "f", "riga") == there
    assert found.there("w", "h", "riga") == math.inf


FAR = replace(
    NETWORK,
    default=Link(2.0, 1.0, 0.5),
    sites={"a": "riga", "b": "riga", "c": "kiel"},
    links={("store", "kiel"): Link(10.0, 0.0, 0.25)},
)
X = Placement("w", "x", (Demand("a"),), 2.0, 4.0, 7.0)
PLACED = {X.key: X}
EVERYWHERE = [Copy("w", name, "kiel", -math.inf) for name in "fgh"]


def far(*copies: Copy, now: float = 0.0, under_way: tuple[Transfer, ...] = ()) -> Staging:
    """Returns the data of the same workflow between three sites; links carry one transfer at a time where one is under way."""
    contended = replace(FAR, contention="link") if under_way else FAR
    resources = tuple(Resource(name) for name in "abc")
    return Staging(
        Problem((FLOW,), resources, now, network=contended, copies=copies, under_way=under_way)
    )


@pytest.mark.parametrize(
    ("copies", "now", "resource", "ready"),
    [
        # From the store to Riga 1 + 10/2; what x makes is in Riga; from home 1 + 1/2.
        ([], 0.0, "a", 6.0),
        ([], 0.0, "b", 6.0),
        # To Kiel 10/10, 4 + 1 + 5/2 and 1 + 1/2.
        ([], 0.0, "c", 7.5),
        ([], 10.0, "c", 13.5),
        ([Copy("w", "f", "kiel", 9.0)], 0.0, "c", 9.0),
        ([Copy("w", "g", "kiel", 1.25)], 0.0, "c", 1.5),
        ([Copy("w", "g", "kiel", 1.25), Copy("w", "h", "kiel", 0.0)], 0.0, "c", 1.25),
        # What a task has begun with before anybody has kept account was always there.
        (EVERYWHERE, 0.0, "c", -math.inf),
        (EVERYWHERE[1:], 0.0, "c", 1.0),
    ],
)
def test_a_task_is_ready_when_the_last_of_its_files_is_there(
    copies: list[Copy], now: float, resource: str, ready: float
) -> None:
    """Without contention a schedule says the same."""
    found = far(*copies, now=now)
    assert found.ready(("w", "y"), resource, PLACED) == ready
    assert found.schedule().ready(("w", "y"), resource, PLACED) == ready
    assert found.ready(("w", "z"), resource, PLACED) == -math.inf
    assert Staging(Problem((FLOW,), (Resource("a"),), 0.0)).ready(
        ("w", "y"), "a", PLACED
    ) == -math.inf  # fmt: skip


def test_files_of_one_source_come_together_as_far_as_they_are_not_there() -> None:
    """In one transfer, which has the latency once."""
    files = (DataFile("f", 10.0, ("x",)), DataFile("g", 4.0, ("x",)), DataFile("h", 2.0, ("x",)))
    flow = Workflow("w", (Task("x", 1.0, ON_A),), files=files)

    def ready(*copies: Copy) -> float:
        problem = Problem((flow,), (Resource("a"),), 3.0, network=FAR_A, copies=copies)
        return Staging(problem).ready(("w", "x"), "a", {})

    assert ready() == 3.0 + 1.0 + 16.0 / 2.0
    assert ready(Copy("w", "f", "riga", 5.0)) == 3.0 + 1.0 + 6.0 / 2.0
    assert ready(Copy("w", "f", "riga", 8.0)) == 8.0
    assert ready(*(Copy("w", name, "riga", 4.0) for name in "fgh")) == 4.0


FAR_A = replace(FAR, sites={"a": "riga"}, links={})


def test_a_transfer_waits_for_its_link_and_is_found_by_who_comes_later() -> None:
    """It takes the first gap; the plan has all of them in order of time, and their costs in those of the tasks."""
    taken = Transfer("v", "z", ("q",), "store", "kiel", 0.0, 20.0, 200.0, 1.0)
    found = far(under_way=(taken,))
    schedule = found.schedule()
    on_c = replace(X, demands=(Demand("c"),), start=21.0, end=24.0)
    assert schedule.ready(("w", "x"), "c", {}) == 21.0
    assert schedule.ready(("w", "x"), "a", {}) == 6.0
    schedule.place(("w", "x"), "c", {})
    # What x was sent is there for y, and what it makes is made there.
    assert schedule.ready(("w", "y"), "c", {X.key: on_c}) == 21.0
    assert schedule.ready(("w", "y"), "a", {X.key: on_c}) == 24.0 + 1.0 + 5.0 / 2.0
    schedule.place(("w", "y"), "a", {X.key: on_c})
    y = Placement("w", "y", (Demand("a"),), 27.5, 28.5, 2.0)
    made = schedule.completed(Plan((on_c, y)))
    assert made.transfers == (
        Transfer("w", "y", ("h",), "home", "riga", 0.0, 1.5, 1.0, 0.5),
        Transfer("w", "y", ("f",), "store", "riga", 0.0, 6.0, 10.0, 5.0),
        Transfer("w", "x", ("f",), "store", "kiel", 20.0, 21.0, 10.0, 2.5),
        Transfer("w", "y", ("g",), "kiel", "riga", 24.0, 27.5, 5.0, 2.5),
    )
    assert {each.key: each.cost for each in made} == {("w", "x"): 9.5, ("w", "y"): 10.0}


def test_without_contention_a_plan_has_each_file_sent_to_a_site_once() -> None:
    """By who begins there first; what is there, or made there, is not sent, and costs nothing."""
    found = far(Copy("w", "h", "kiel", 0.0))
    on_c = replace(X, demands=(Demand("c"),))
    y = Placement("w", "y", (Demand("c"),), 5.0, 6.0, 2.0)
    plan = found.schedule().completed(Plan((y, on_c)))
    assert plan.transfers == (Transfer("w", "x", ("f",), "store", "kiel", 0.0, 1.0, 10.0, 2.5),)
    assert {each.key: each.cost for each in plan} == {("w", "x"): 9.5, ("w", "y"): 2.0}
    apart = found.schedule().completed(Plan((X, y)))
    assert [each.files for each in apart.transfers] == [("f",), ("f",), ("g",)]
    assert [(each.task, each.begin, each.end) for each in apart.transfers] == [
        ("y", 0.0, 1.0),
        ("x", 0.0, 6.0),
        ("y", 4.0, 7.5),
    ]
    nothing = Plan((y,))
    assert staged_nowhere().schedule().completed(nothing) is nothing


def staged_nowhere() -> Staging:
    """Returns the data of a problem without a network."""
    return Staging(Problem((FLOW,), (Resource("a"),), 0.0))
