"""Brokers for the tests of telemetry."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.grms.keys import new_federation
from tests.grms.mqtt import Broker, Embedded, Mosquitto


@pytest.fixture(params=["embedded", pytest.param("mosquitto", marks=pytest.mark.services)])
async def broker(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Broker]:
    """Returns a broker that runs: the one inside the daemon, then a real Mosquitto."""
    made: Broker
    if request.param == "embedded":
        made = Embedded()
    else:
        made = Mosquitto(tmp_path / "mosquitto", new_federation(tmp_path / "keys"))
    await made.start()
    yield made
    await made.kill()


@pytest.fixture
async def mosquitto(tmp_path: Path) -> AsyncIterator[Mosquitto]:
    """Returns a Mosquitto that runs with the configuration of the examples."""
    made = Mosquitto(tmp_path / "mosquitto", new_federation(tmp_path / "keys"))
    await made.start()
    yield made
    await made.kill()
