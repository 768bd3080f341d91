"""What the page of a broker is told: its next plan, its bars, its workflows."""

import json

from broker.gantt.views import plan_document
from broker.model.workflow import OpenWorkflow
from broker.scheduler.events import Close, Open
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState


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
