import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.model.heft import heft, in_order, upward_ranks
from broker.model.plan import Placement
from broker.model.problem import Problem
from broker.model.resources import DAY, Calendar, PriceRule, Resource, WeeklyWindow
from broker.model.workflow import Alternative, Demand, Instant, Task, Workflow
from tests.broker.drawn import pools, workflows
from tests.broker.random_problems import problems, timed_problems
from tests.oracles.plan_checker import plan_violations

MONDAY = 7 * DAY * 2000 + 4 * DAY
"""A Monday at 0:00 UTC."""

HOUR = 3600.0


def task(name: str, work: float, *resources: str, after: tuple[str, ...] = ()) -> Task:
    return Task(name, work, tuple(Alternative.of(each) for each in resources), after)


def places(problem: Problem) -> list[tuple[str, str, float, float]]:
    """Returns task, primary resource, start and end in order of time; checks the plan."""
    plan = heft(problem)
    assert plan_violations(problem, plan) == []
    return [(each.task, each.resources[0], each.start, each.end) for each in plan]


@given(st.one_of(problems(), timed_problems()))
def test_plans_are_valid(problem: Problem) -> None:
    """Precedence, capacities, calendars, co-allocation and fixed tasks are respected."""
    plan = heft(problem)
    assert plan_violations(problem, plan, complete=False) == []
    tasks = sum(len(workflow.tasks) for workflow in problem.workflows)
    assert len(plan) + len(plan.unplanned) == tasks
    assert heft(problem) == plan


@given(problems(plain=True))
@settings(max_examples=50)
def test_nothing_waits_without_reason(problem: Problem) -> None:
    """Every task starts when it may, or when another ends on one of its resources."""
    plan = heft(problem)
    assert plan.unplanned == ()
    fixed = {each.key for each in problem.fixed}
    ends = {each.end for each in plan}
    for workflow in problem.workflows:
        for each in workflow.tasks:
            placement = plan.placement(workflow.name, each.name)
            assert placement is not None
            if placement.key not in fixed:
                may = max(problem.now, workflow.earliest_start)
                assert placement.start == may or placement.start in ends


def test_ranks_are_those_of_the_paper() -> None:
    """A task's rank is its mean time plus the largest rank after it."""
    pool = (Resource("slow"), Resource("fast", performance=3.0))
    workflow = Workflow(
        "w",
        (
            task("d", 3.0, "slow", "fast", after=("b", "c")),
            task("a", 6.0, "slow"),
            task("b", 3.0, "slow", "fast", after=("a",)),
            task("c", 9.0, "slow", "fast", after=("a",)),
        ),
    )
    ranks = upward_ranks(Problem((workflow,), pool), workflow)
    assert ranks == pytest.approx({"d": 2.0, "c": 8.0, "b": 4.0, "a": 14.0})


def test_tasks_go_where_they_end_first() -> None:
    """The highest rank goes first, to the fastest; a slower free resource beats a busy fast one."""
    pool = (Resource("slow"), Resource("fast", performance=3.0))
    tasks = (task("x", 3.0, "slow", "fast"), task("y", 6.0, "slow", "fast"))
    assert places(Problem((Workflow("w", tasks),), pool)) == [
        ("x", "slow", 0.0, 3.0),
        ("y", "fast", 0.0, 2.0),
    ]


def test_gaps_are_filled() -> None:
    """A short task goes between longer ones of higher rank (the insertion policy)."""
    pool = (Resource("r"), Resource("s"))
    tasks = (
        task("a", 2.0, "s"),
        task("b", 9.0, "r", after=("a",)),
        task("c", 2.0, "r"),
        task("d", 3.0, "r"),
    )
    assert places(Problem((Workflow("w", tasks),), pool)) == [
        ("a", "s", 0.0, 2.0),
        ("c", "r", 0.0, 2.0),
        ("b", "r", 2.0, 11.0),
        ("d", "r", 11.0, 14.0),
    ]


def test_opening_hours_prices_and_offsets_count() -> None:
    """A task does not outlast the opening in which it starts, and pays the price of each hour."""
    office = Calendar((WeeklyWindow(8 * HOUR, 12 * HOUR, (0, 1)),))
    dear = (PriceRule(5.0, WeeklyWindow(10 * HOUR, DAY)),)
    pool = (Resource("r", price=1.0, price_rules=dear, calendar=office, utc_offset=HOUR),)
    tasks = (task("a", 3 * HOUR, "r"), task("b", 3 * HOUR, "r", after=("a",)))
    problem = Problem((Workflow("w", tasks),), pool, now=MONDAY)
    assert places(problem) == [
        ("a", "r", MONDAY + 7 * HOUR, MONDAY + 10 * HOUR),
        ("b", "r", MONDAY + 31 * HOUR, MONDAY + 34 * HOUR),
    ]
    assert [each.cost for each in heft(problem)] == pytest.approx([7 * HOUR] * 2)


def test_an_opening_over_the_turn_of_the_week_is_one() -> None:
    """Sunday evening and Monday morning are not parted by midnight."""
    weekend = (WeeklyWindow(20 * HOUR, DAY, (6,)), WeeklyWindow(0.0, 9 * HOUR, (0,)))
    pool = (Resource("r", calendar=Calendar(weekend)),)
    problem = Problem((Workflow("w", (task("a", 10 * HOUR, "r"),)),), pool, now=MONDAY)
    start = MONDAY + 6 * DAY + 20 * HOUR
    assert places(problem) == [("a", "r", start, start + 10 * HOUR)]


def test_a_long_way_east_the_next_opening_is_found_as_well() -> None:
    """Fourteen hours ahead of UTC, Monday's first hour has passed at two and comes in a week."""
    first_hour = Calendar((WeeklyWindow(0.0, HOUR, (0,)),))
    pool = (Resource("r", calendar=first_hour, utc_offset=14 * HOUR),)
    at_two = MONDAY - 12 * HOUR
    problem = Problem((Workflow("w", (task("a", HOUR / 2, "r"),)),), pool, now=at_two)
    start = MONDAY - 14 * HOUR + 7 * DAY
    assert places(problem) == [("a", "r", start, start + HOUR / 2)]


def test_a_task_may_end_as_a_closure_begins_and_start_as_it_ends() -> None:
    """A gap exactly as long as the task is long enough, between closures too."""
    pool = (Resource("r", calendar=Calendar((), ((3.0, 5.0), (7.0, 9.0)))),)
    tasks = (task("a", 3.0, "r"), task("b", 2.0, "r"), task("c", 1.0, "r"))
    assert places(Problem((Workflow("w", tasks),), pool)) == [
        ("a", "r", 0.0, 3.0),
        ("b", "r", 5.0, 7.0),
        ("c", "r", 9.0, 10.0),
    ]


def test_nothing_runs_over_an_instant_that_takes_the_whole_resource() -> None:
    """A task may end or begin at that moment; one that leaves units over is in nobody's way."""
    pool = (Resource("r"), Resource("pair", capacity=2))
    tasks = (
        Instant("stop", 0.0, (Alternative.of("r"),)),
        Instant("blink", 0.0, (Alternative.of("pair"),)),
        task("a", 3.0, "r"),
        task("b", 2.0, "r"),
        task("c", 3.0, "pair"),
    )
    fixed = (
        Placement("w", "stop", (Demand("r"),), 2.0, 2.0, 0.0),
        Placement("w", "blink", (Demand("pair"),), 2.0, 2.0, 0.0),
    )
    problem = Problem((Workflow("w", tasks),), pool, fixed=fixed)
    assert sorted(places(problem)) == [
        ("a", "r", 2.0, 5.0),
        ("b", "r", 0.0, 2.0),
        ("blink", "pair", 2.0, 2.0),
        ("c", "pair", 0.0, 3.0),
        ("stop", "r", 2.0, 2.0),
    ]


def test_an_alternative_that_is_too_small_is_left_alone() -> None:
    """Two units of one are never free, whatever is in use; the slower one is taken."""
    pool = (Resource("r"), Resource("slow", performance=0.5))
    either = (Alternative((Demand("r", 2),)), Alternative.of("slow"))
    tasks = (task("a", 9.0, "r"), Task("b", 2.0, either))
    assert places(Problem((Workflow("w", tasks),), pool)) == [
        ("a", "r", 0.0, 9.0),
        ("b", "slow", 0.0, 4.0),
    ]


def test_resources_taken_together_are_free_together() -> None:
    """The start is put off until every resource of the alternative is free long enough."""
    pool = (
        Resource("cpu", capacity=2),
        Resource("licence", calendar=Calendar((), ((2.0, 5.0), (6.0, 8.0)))),
    )
    both = (Alternative((Demand("cpu", 2), Demand("licence"))),)
    problem = Problem((Workflow("w", (Task("a", 3.0, both),)),), pool)
    assert places(problem) == [("a", "cpu", 8.0, 11.0)]


def test_resources_that_are_never_open_together_are_left_alone() -> None:
    """An alternative without a common opening long enough is none; the other one is taken."""
    morning = Calendar((WeeklyWindow(0.0, 10 * HOUR),))
    noon = Calendar((WeeklyWindow(9 * HOUR, 15 * HOUR),))
    pool = (
        Resource("m", calendar=morning),
        Resource("n", calendar=noon),
        Resource("slow", performance=0.1),
    )
    both = (Alternative.of("m", "n"), Alternative.of("slow"))
    tasks = (Task("a", 2 * HOUR, both), Task("b", HOUR, both))
    assert places(Problem((Workflow("w", tasks),), pool, now=MONDAY)) == [
        ("a", "slow", MONDAY, MONDAY + 20 * HOUR),
        ("b", "m", MONDAY + 9 * HOUR, MONDAY + 10 * HOUR),
    ]


def test_fixed_tasks_hold_their_places() -> None:
    """What runs already keeps its resource; what has ended does not."""
    tasks = (task("old", 5.0, "r"), task("run", 5.0, "r", after=("old",)), task("new", 1.0, "r"))
    fixed = (
        Placement("w", "old", (Demand("r"),), 0.0, 5.0, 0.0),
        Placement("w", "run", (Demand("r"),), 5.0, 10.0, 0.0),
    )
    problem = Problem((Workflow("w", tasks),), (Resource("r"),), now=6.0, fixed=fixed)
    assert places(problem)[2] == ("new", "r", 10.0, 11.0)


def test_what_ended_just_now_may_have_run_on_what_is_gone() -> None:
    """A fixed task that ends now holds nothing, so its resource need not be there any more."""
    tasks = (task("old", 5.0, "r"), task("new", 1.0, "r", after=("old",)))
    fixed = (Placement("w", "old", (Demand("gone"),), 0.0, 5.0, 0.0),)
    problem = Problem((Workflow("w", tasks),), (Resource("r"),), now=5.0, fixed=fixed)
    assert places(problem) == [("old", "gone", 0.0, 5.0), ("new", "r", 5.0, 6.0)]


def test_what_is_closed_for_good_is_left_unplanned() -> None:
    """A task without a place, and all that wait for it, are listed."""
    closing = Resource("r", calendar=Calendar((), ((7.0, math.inf),)))
    tasks = (task("a", 4.0, "r"), task("b", 4.0, "r"), task("c", 1.0, "s", after=("b",)))
    problem = Problem((Workflow("w", tasks),), (closing, Resource("s")))
    plan = heft(problem)
    assert plan.unplanned == (("w", "a"),)
    assert [each.task for each in plan] == ["b", "c"]


@settings(max_examples=30)
@given(st.data(), pools())
def test_tasks_are_ordered_by_precedence(data: st.DataObject, pool: tuple[Resource, ...]) -> None:
    """Every task comes once, after all that it waits for."""
    workflow = data.draw(workflows("w", pool))
    order = [task.name for task in in_order(workflow)]
    assert sorted(order) == sorted(task.name for task in workflow.tasks)
    for task in workflow.tasks:
        assert all(order.index(each) < order.index(task.name) for each in task.predecessors)
