"""What the tests of batch systems share."""

import pytest


@pytest.fixture(autouse=True)
def _time_for_every_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not end a look before it has asked; the tests of just this set less."""
    monkeypatch.setattr("grms.lrms.batch.poller.ORDERS_POLLS", 10_000)
