"""What the page of a broker is told: its next plan, its bars, its workflows."""

import json

from broker.gantt.views import plan_document
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
