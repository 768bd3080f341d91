"""The page of a broker that serves: the countdown, the plan, and what a browser makes of it."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from broker.cli.main import cli
from broker.client import BrokerClient, CallError
from broker.model.network import DataFile
from broker.model.resources import Resource
from broker.scheduler.records import Supply
from grms.daemon.ports import free_port
from tests.broker.brokers import configure, diamond, register, serving
from tests.browser import Browser, complaints, is_wider, look, until, violations
from tests.visits import Visit

pytestmark = pytest.mark.usefixtures("forks")

POOL = tuple(Supply(Resource(name, capacity=1)) for name in ("alpha", "beta"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerClient]:
    """Returns a client of a broker with a page; one workflow runs for long."""
    folder = tmp_path_factory.mktemp("broker")
    more = f'[dashboard]\nlisten = "127.0.0.1:{free_port()}"\n[network]\nbandwidth = 1e4\n'
    with serving(configure(folder, more)) as (_, client):
        register(client, *POOL)
        client.submit(diamond("long", 600.0, "alpha", "beta"))
        yield client


def test_the_plan_is_told(broker: BrokerClient) -> None:
    """Every task of the workflow has a place on a resource."""
    visit = Visit.by(broker.open_page().address)
    deadline = time.monotonic() + 300
    tasks = {"a", "b", "c", "d"}  # the first begins before there is a plan
    found = visit.ask("/api/plan")
    while {bar["task"] for bar in found.get("bars", ())} != tasks:
        assert time.monotonic() < deadline
        found = visit.ask("/api/plan")
    assert {bar["resource"] for bar in found["bars"]} <= {"alpha", "beta"}
    assert found["workflows"][0]["name"] == "long"
    assert found["plan"]["number"] >= 1


def test_the_page_counts_down_and_draws_the_plan(broker: BrokerClient, driver: Browser) -> None:
    """A new workflow comes by itself; both widths and both schemes can be read by everybody."""
    driver.get(broker.open_page().address)
    until(driver, "return document.querySelectorAll('#plan rect').length >= 4")
    until(driver, "return /plan/i.test(document.getElementById('next').textContent)")
    given = DataFile("given", 1e6, ("a",))
    broker.submit(replace(diamond("fresh", 300.0, "alpha", "beta"), files=(given,)))
    until(driver, "return document.querySelectorAll('#plan rect').length >= 9")
    titles = "return [...document.querySelectorAll('#plan title')].map((e) => e.textContent)"
    sent = [each for each in driver.execute_script(titles) if each.startswith("1 MB for fresh/a")]
    assert len(sent) == 1
    assert "home → " in sent[0]
    script = (
        "return [...document.querySelectorAll('#workflows tbody th')].map((e) => e.textContent)"
    )
    assert driver.execute_script(script) == ["long", "fresh"]
    for width, dark in ((390, True), (1600, False)):
        look(driver, width, dark=dark)
        assert violations(driver) == []
        assert not is_wider(driver)
    assert complaints(driver) == []


def test_the_command_prints_a_link_that_is_good_once(tmp_path: Path) -> None:
    """It asks the daemon; where that serves no page it says so, and where it is not there as well."""
    folder = tmp_path / "with"
    folder.mkdir()
    path = configure(folder, f'[dashboard]\nlisten = "127.0.0.1:{free_port()}"\n')
    with serving(path):
        # The variable is for all commands, and gives way.
        done = CliRunner().invoke(
            cli, ["dashboard", str(path)], env={"GORBA_SOCKET": "absent.sock"}
        )
        assert done.exit_code == 0, done.output
        assert "clock" in Visit.by(done.output.strip()).ask("/api/site")
        with pytest.raises(AssertionError):
            Visit.by(done.output.strip())
    without = tmp_path / "without"
    without.mkdir()
    path = configure(without, "")
    with serving(path):
        refused = CliRunner().invoke(cli, ["dashboard", str(path)])
    assert isinstance(refused.exception, CallError)
    assert "serves no page" in str(refused.exception)
    away = CliRunner().invoke(cli, ["dashboard", str(path), "--timeout", "0.1"])
    assert isinstance(away.exception, CallError)
    assert CliRunner().invoke(cli, ["dashboard"], env={"GORBA_SOCKET": ""}).exit_code == 2
    for option in ("--socket", "--broker"):
        both = CliRunner().invoke(cli, ["dashboard", str(path), option, "absent.sock"])
        assert both.exit_code == 2
        assert "CONFIG and --socket exclude each other" in both.output
