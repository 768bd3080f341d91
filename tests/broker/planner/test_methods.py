import math
from dataclasses import replace

import pytest

from broker.model.heft import heft
from broker.model.problem import Problem
from broker.model.resources import Calendar, Resource
from broker.model.workflow import Alternative, Task, Workflow
from broker.planner import methods as searching
from broker.planner.methods import SEARCHES, TITLES, Comparison, best_of
from broker.planner.search import Budget
from lrms_sim.util.executors import ThreadExecutor
from tests.broker.small import SMALL
from tests.oracles.plan_checker import plan_violations

SHORT = Budget(math.inf, 100)


def compared(problem: Problem = SMALL, *methods: str, **options: object) -> Comparison:
    comparison = Comparison(problem, workers=1, **options)  # type: ignore[arg-type]  # options of any type
    comparison.baselines()
    for method in methods:
        comparison.search(method, SHORT)
    return comparison


def test_methods_stand_beside_each_other() -> None:
    """Every method gives a valid, judged plan; the best is the one of highest fitness."""
    comparison = compared(SMALL, *SEARCHES)
    assert [each.method for each in comparison.results] == ["heuristic", "heft", *SEARCHES]
    assert set(TITLES) == {each.method for each in comparison.results}
    for result in comparison.results:
        assert plan_violations(SMALL, result.plan) == []
        assert result.worth is not None
        assert result.worth.fitness <= (comparison.best.worth or result.worth).fitness
        assert result.seconds >= 0
    heuristic, baseline, *searches = comparison.results
    assert heuristic.detail.split(" & ")[1].startswith("RAS-")
    assert (heuristic.evaluations, baseline.evaluations) == (9, None)
    assert all(each.detail == "evaluations" for each in searches)
    assert all(each.evaluations and each.evaluations >= 100 for each in searches)


def test_a_search_is_never_worse_than_the_heuristics() -> None:
    """It begins with them."""
    comparison = compared(SMALL, "gleam")
    heuristic, _, search = comparison.results
    assert heuristic.worth is not None
    assert search.worth is not None
    assert search.worth.fitness >= heuristic.worth.fitness


def test_the_same_seed_gives_the_same_plans() -> None:
    """With a budget of schedules time does not matter."""
    plans = [[r.plan for r in compared(SMALL, "gleam", "asma", seed=4).results] for _ in range(2)]
    assert plans[0] == plans[1]


def test_what_leaves_a_task_out_is_not_judged() -> None:
    """HEFT's plan is shown without a fitness then."""
    closing = Resource("r", calendar=Calendar((), ((5.0, math.inf),)))
    flow = Workflow("w", tuple(Task(n, 4.0, (Alternative.of("r"),)) for n in "ab"))
    comparison = compared(Problem((flow,), (closing,)), "gleam")
    assert all(len(each.plan.unplanned) == 1 for each in comparison.results)
    assert comparison.results[1].worth is None


def test_nothing_to_plan_is_a_plan() -> None:
    """Where every task is fixed, what is fixed is all."""
    done = replace(SMALL, now=1e6, fixed=heft(SMALL).placements)
    comparison = compared(done, "gleam")
    assert [each.method for each in comparison.results] == ["heft", "gleam"]
    assert comparison.best.plan.placements == done.fixed
    assert best_of(comparison.results) is comparison.results[0]


def test_an_old_plan_is_where_searches_begin() -> None:
    """Then heuristics that use it count as such."""
    comparison = compared(SMALL, "gleam", old=heft(SMALL))
    assert comparison.results[0].evaluations == 18


def test_stopping_skips_what_is_to_come() -> None:
    """A search that runs ends with what it has; later ones are not begun."""
    comparison = compared()
    seen = []

    def stop_after_three(progress: object) -> None:
        seen.append(progress)
        if len(seen) == 3:
            comparison.stop()

    comparison.search("gleam", Budget(math.inf, 10**12), stop_after_three)
    comparison.search("asma", Budget(math.inf, 10**12))
    assert [(each.method, each.detail) for each in comparison.results[2:]] == [("gleam", "stopped")]
    assert comparison.stopped
    assert len(seen) == 3


def test_islands_are_a_method_like_others() -> None:
    """As many schedules on each; the plan is judged by the goals and bounds of all."""
    comparison = compared()
    with ThreadExecutor(1) as executor:
        comparison.search_on_islands("asma-shift", executor, 2, 100)
    found = comparison.results[-1]
    assert (found.method, found.detail) == ("asma-shift", "evaluations")
    assert found.evaluations is not None
    assert found.evaluations >= 2 * 100
    assert found.worth is not None
    assert found.worth.fitness >= comparison.results[0].worth.fitness  # type: ignore[union-attr]  # judged
    comparison.stop()
    with ThreadExecutor(1) as executor:
        comparison.search_on_islands("asma-shift", executor, 2, 100)
    assert comparison.results[-1] is found


def test_too_many_alternatives_are_planned_without_heft(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planner's own heuristics are compiled, and there at any size."""
    monkeypatch.setattr(searching, "HEFT_MAX", 10)
    comparison = compared(SMALL, "asma-shift")
    assert not comparison.with_heft
    assert [each.method for each in comparison.results] == ["heuristic", "asma-shift"]
