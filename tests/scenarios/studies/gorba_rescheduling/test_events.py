import math
from dataclasses import replace

import pytest

from broker.planner.planning import Planner
from scenarios.studies.gorba_rescheduling.events import (
    PLANNING_SLOT,
    Event,
    Setting,
    first_planning,
    reschedule,
)
from tests.oracles.plan_checker import plan_violations

SETTING = Setting("sRlD", 40, 5, 0.2, 0.3, 0.0, 60)


@pytest.fixture(scope="module")
def event() -> Event:
    """Returns the event of `SETTING`."""
    return reschedule(SETTING, *first_planning(SETTING))


def test_the_first_plan_is_valid() -> None:
    """Its problem has the tasks, resources and limits of the setting."""
    problem, plan = first_planning(SETTING)
    assert plan_violations(problem, plan) == []
    assert sum(len(workflow.tasks) for workflow in problem.workflows) == 40
    assert len(problem.resources) == 5
    assert all(workflow.due_date < math.inf for workflow in problem.workflows)


def test_what_has_started_stays(event: Event) -> None:
    """A fifth of the tasks has ended; what starts within three minutes is fixed as well."""
    problem, old = event.problem, event.old
    moment = problem.now - PLANNING_SLOT
    ended = sum(each.end <= moment for each in old)
    assert ended == 8
    names = {workflow.name for workflow in problem.workflows}
    assert set(problem.fixed) == {
        each for each in old if each.start < problem.now and each.workflow in names
    }


def test_finished_workflows_leave_and_new_ones_come(event: Event) -> None:
    """Three tenths as many tasks as before, of workflows that cannot start earlier than now."""
    problem, old = event.problem, event.old
    moment = problem.now - PLANNING_SLOT
    new = [each for each in problem.workflows if each.name.startswith("n")]
    assert sum(len(workflow.tasks) for workflow in new) == 12
    assert all(workflow.earliest_start == problem.now for workflow in new)
    for workflow in problem.workflows:
        if workflow not in new:
            assert any(each.end > moment for each in old if each.workflow == workflow.name)


def test_heuristics_can_only_just_keep_the_limits(event: Event) -> None:
    """Without reduction one of them nearly does; with it none does."""
    best = Planner(event.problem, old=event.old).heuristics[0].worth
    assert best.late + best.over_budget <= 2
    harder = replace(SETTING, reduction=0.15)
    tight = reschedule(harder, *first_planning(harder))
    planner = Planner(tight.problem, old=tight.old)
    assert not any(each.worth.keeps_all_limits for each in planner.heuristics)


def test_the_setting_says_it_all() -> None:
    """The same setting gives the same event, another share or seed another one."""
    first = first_planning(SETTING)
    assert reschedule(SETTING, *first).problem == reschedule(SETTING, *first).problem
    for other in (replace(SETTING, new=0.5), replace(SETTING, finished=0.1)):
        assert reschedule(other, *first).problem != reschedule(SETTING, *first).problem
    assert first_planning(replace(SETTING, seed=2))[0] != first[0]
    assert SETTING.name == "sRlD-40-5-20-30"
