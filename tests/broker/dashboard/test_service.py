"""The page of a broker that serves: the countdown, the plan, and what a browser makes of it."""

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from broker.client import BrokerClient
from broker.configuration.config import DASHBOARD_FILE
from broker.core.records import Supply
from broker.model.resources import Resource
from grms.kit.ports import free_port
from grms.kit.web.access import read_access
from tests.broker.brokers import configure, diamond, register, serving
from tests.browser import Browser, complaints, is_wider, look, until, violations

pytestmark = pytest.mark.usefixtures("forks")

POOL = tuple(Supply(Resource(name, capacity=1)) for name in ("alpha", "beta"))


def ask(address: str, path: str) -> Any:
    """Returns what the dashboard answers."""
    base, token = address.split("?token=")
    connection = http.client.HTTPConnection(base[len("http://") : -1], timeout=300)
    connection.request("GET", path, headers={"authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return json.loads(content)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, BrokerClient]]:
    """Returns the address of a broker's page, and a client; one workflow runs for long."""
    folder = tmp_path_factory.mktemp("broker")
    more = f'[dashboard]\nlisten = "127.0.0.1:{free_port()}"\n'
    with serving(configure(folder, more)) as (_, client):
        register(client, *POOL)
        client.submit(diamond("long", 600.0, "alpha", "beta"))
        yield read_access(folder / DASHBOARD_FILE), client


def test_the_plan_is_told(broker: tuple[str, BrokerClient]) -> None:
    """Every task of the workflow has a place on a resource."""
    address, _ = broker
    deadline = time.monotonic() + 300
    while not (found := ask(address, "/api/plan")).get("bars") and time.monotonic() < deadline:
        pass
    assert {bar["task"] for bar in found["bars"]} == {"a", "b", "c", "d"}
    assert {bar["resource"] for bar in found["bars"]} <= {"alpha", "beta"}
    assert found["workflows"][0]["name"] == "long"
    assert found["plan"]["number"] >= 1


def test_the_page_counts_down_and_draws_the_plan(
    broker: tuple[str, BrokerClient], driver: Browser
) -> None:
    """A new workflow comes by itself; both widths and both schemes can be read by everybody."""
    address, client = broker
    driver.get(address)
    until(driver, "return document.querySelectorAll('#plan rect').length >= 4")
    until(driver, "return /plan/i.test(document.getElementById('next').textContent)")
    client.submit(diamond("fresh", 300.0, "alpha", "beta"))
    until(driver, "return document.querySelectorAll('#plan rect').length >= 8")
    script = (
        "return [...document.querySelectorAll('#workflows tbody th')].map((e) => e.textContent)"
    )
    assert driver.execute_script(script) == ["long", "fresh"]
    for width, dark in ((390, True), (1600, False)):
        look(driver, width, dark=dark)
        assert violations(driver) == []
        assert not is_wider(driver)
    assert complaints(driver) == []
