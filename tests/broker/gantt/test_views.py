"""What the page of a broker is told: its next plan, its bars, its workflows."""

import json

from broker.gantt.views import plan_document
from broker.model.workflow import OpenWorkflow
from broker.scheduler.events import Close, Open, Submit
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from tests.broker.scheduler.test_state import chain, world


def test_an_empty_broker_has_nothing_to_plan() -> None:
    """And the document is JSON."""
    found = plan_document(BrokerState(BrokerSettings()), 5.0)
    assert (found["next_plan_s"], found["plan"], found["bars"], found["workflows"]) == (
        None,
        None,
        [],
        [],
    )
    json.dumps(found, allow_nan=False)


def test_an_open_workflow_is_shown_as_such() -> None:
    """Also without a task."""
    state = BrokerState(BrokerSettings())
    state.handle(Open(1, "key", OpenWorkflow("flow", ())), 2.0)
    (found,) = plan_document(state, 5.0)["workflows"]
    assert (found["state"], found["open"], found["tasks"]) == ("accepted", True, 0)
    assert (found["end_time_s"], found["due_date_s"]) == (None, None)
    state.handle(Close(2, "flow"), 6.0)
    (found,) = plan_document(state, 7.0)["workflows"]
    assert (found["state"], found["open"], found["end_time_s"]) == ("completed", False, 6.0)


def test_why_a_site_does_not_begin_a_task_is_shown_with_its_bar() -> None:
    """Why a task waits for its place is not: that is said of the plan."""
    made = world()
    made.hinders = 1.0
    made.tell(Submit(1, "key", chain("flow", 10)))
    while not made.hindered:
        made.step()
    while not any(bar["reason"] for bar in plan_document(made.state, made.now)["bars"]):
        made.step()
    (bar,) = plan_document(made.state, made.now)["bars"]
    assert (bar["task"], bar["state"], bar["reason"]) == ("t0", "launched", "held")
