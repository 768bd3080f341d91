"""What the page of a broker is told: its next plan, its bars, its workflows."""

import json

from broker.core.settings import BrokerSettings
from broker.core.state import BrokerState
from broker.dashboard.views import plan_document


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
