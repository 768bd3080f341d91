"""A live cycle over two site daemons, with kill -9 of the broker and of a site."""

import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from broker.client import BrokerClient
from broker.model.workflow import Alternative, Task, Workflow
from broker.scheduler.lifecycle import TaskState
from broker.scheduler.records import Supply
from broker.v1 import workflow_pb2
from grms.security.tls import TlsFiles
from tests.broker.brokers import (
    check_history,
    configure,
    diamond,
    history,
    register,
    serving,
    until_back,
    until_running,
)
from tests.broker.site_processes import BROKER, SiteProcess, plain_sites, pool, running, tls_sites
from tests.grms.keys import new_federation

pytestmark = pytest.mark.usefixtures("forks")

SITES = ("luebeck", "riga")
POOL = pool(*SITES)
NAMES = tuple(supply.name for supply in POOL)
SIMULATED = workflow_pb2.WORKFLOW_STATE_SIMULATED
CANCELLED = workflow_pb2.WORKFLOW_STATE_CANCELLED


def sited(
    folder: Path, sites: Sequence[SiteProcess], keys: TlsFiles | None = None, more: str = ""
) -> Path:
    """Writes the broker's configuration."""
    limits = f"[limits]\nsite_down_s = 1.0\n{more}"
    return configure(folder, limits + "".join(site.entry(keys) for site in sites))


def until_learned(client: BrokerClient, *supplies: Supply) -> None:
    """Returns when the broker has learned of these resources from their sites, and no others."""
    deadline = time.monotonic() + 300
    while sorted(client.resources(), key=lambda each: each.name) != sorted(
        supplies, key=lambda each: each.name
    ):
        assert time.monotonic() < deadline, client.resources()
        time.sleep(0.05)


def test_a_breakdown_a_cancel_and_kills_of_broker_and_site(tmp_path: Path) -> None:
    """Everything that was taken ends within precedence, and nothing is lost or completed twice.

    Over mutual TLS, and on resources that the broker learns from the sites, workflows arrive while a resource breaks under a task, one workflow is
    cancelled, the broker is killed in the middle, and then a site, which comes back.
    """
    made, keys = tls_sites(tmp_path, *SITES)
    with (
        running(made) as sites,
        serving(sited(tmp_path, made, keys)) as (process, client),
    ):
        until_learned(client, *POOL)
        client.submit(diamond("first", 0.5, *NAMES, first=5.0))
        client.submit(diamond("second", 1.0, *NAMES))
        place = until_running(client, "first")
        broken = next(supply for supply in POOL if supply.name == place)
        client.update(Supply(broken.resource, broken.site, broken.site_resource, broken=True))
        # It may begin so late that the cancel always comes first.
        later = time.time() + 3600.0
        client.submit(replace(diamond("unwanted", 5.0, *NAMES), earliest_start=later))
        client.cancel("unwanted")
        process.end(signal.SIGKILL)
        process.start()
        until_back(client)
        client.submit(diamond("third", 0.5, *NAMES))
        sites["riga"].kill()
        sites["riga"].start()
        for name in ("first", "second", "third"):
            assert client.wait(name).state == SIMULATED
        assert client.wait("unwanted").state == CANCELLED
        process.end(signal.SIGTERM)
    launches = check_history(tmp_path / "broker.journal")
    assert launches["first/a"] >= 2, "the task on the broken resource was begun again"
    assert not any(name.startswith("unwanted/") for name in launches)
    assert len(launches) == 12


def test_a_site_that_is_killed_under_a_run_is_waited_for(tmp_path: Path) -> None:
    """What runs there is taken up by its id when the site is back, and not run a second time."""
    made = plain_sites(tmp_path, *SITES)
    with running(made) as sites, serving(sited(tmp_path, made)) as (process, client):
        register(client, *POOL)
        client.submit(diamond("flow", 0.5, *NAMES, first=5.0))
        place = until_running(client, "flow")
        site = sites[place.partition("-")[0]]
        site.kill()
        client.submit(diamond("other", 0.5, *NAMES))
        assert client.wait("other").state == SIMULATED
        site.start()
        assert client.wait("flow").state == SIMULATED
        process.end(signal.SIGTERM)
    launches = check_history(tmp_path / "broker.journal")
    assert launches["flow/a"] == 1


def single(name: str, work: float, *, wait: float = 0.0) -> Workflow:
    """Returns a workflow of one task, twice as fast at luebeck, that may start after a while."""
    task = Task("only", work, (Alternative.of("luebeck-fast"), Alternative.of("riga-slow")))
    return Workflow(name, (task,), earliest_start=time.time() + wait)


def until_booked(client: BrokerClient, name: str, resource: str) -> None:
    """Returns when the only task of a workflow is booked at a resource and does not run yet."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        (task,) = client.get(name).tasks
        if task.state == workflow_pb2.TASK_STATE_BOOKED:
            assert task.demands[0].resource == resource
            return
        time.sleep(0.005)
    raise AssertionError(f"{name} was not booked")


def test_a_site_that_vanishes_for_good_loses_no_task(tmp_path: Path) -> None:
    """What was booked there is planned at the other site, and so is what ran there.

    The latter because the configuration wants it: `on_lost = "rerun"`.
    """
    made = plain_sites(tmp_path, *SITES)
    config = sited(tmp_path, made, more='site_lost_s = 1.5\non_lost = "rerun"\n')
    config.write_text(config.read_text().replace("slot_s = 0.6", "slot_s = 2.0"))
    with running(made) as sites, serving(config) as (process, client):
        register(client, *POOL)
        client.submit(single("runs", 12.0))
        assert until_running(client, "runs") == "luebeck-fast"
        client.submit(single("waits", 0.5, wait=5.0))
        until_booked(client, "waits", "luebeck-fast")
        sites["luebeck"].kill()
        for name in ("waits", "runs"):
            ended = client.wait(name)
            assert ended.state == SIMULATED
            assert ended.tasks[0].demands[0].resource == "riga-slow"
        assert list(client.plan().silent_sites) == ["luebeck"]
        process.end(signal.SIGTERM)
    journal = tmp_path / "broker.journal"
    launches = check_history(journal)
    assert (launches["runs/only"], launches["waits/only"]) == (2, 1)
    places = history(journal)
    for name in ("runs/only", "waits/only"):
        assert (name, "luebeck", TaskState.WAITING) in places, "it was given up there"
        assert (name, "riga", TaskState.SIMULATED) in places


def test_a_hangup_lets_the_broker_read_its_configuration_anew(tmp_path: Path) -> None:
    """Renewed keys, and another address of a site, are in force at once; nothing ends by it.

    Keys that cannot be used change nothing; what takes a restart is named.
    """
    made, keys = tls_sites(tmp_path, "riga")
    riga = made[0]
    stranger = new_federation(tmp_path / "elsewhere").site(BROKER)
    for each in ("authority", "certificate", "key"):
        shutil.copy(getattr(stranger, each), tmp_path / f"used-{each}")
    used = TlsFiles(*(tmp_path / f"used-{each}" for each in ("authority", "certificate", "key")))
    with (
        running(made),
        serving(sited(tmp_path, made, used)) as (process, client),
    ):
        assert client.resources() == []
        for each in ("authority", "certificate"):
            shutil.copy(getattr(keys, each), tmp_path / f"used-{each}")
        process.hangup()
        assert "is not the key of" in process.logged("not_reloaded")["problem"]
        shutil.copy(keys.key, tmp_path / "used-key")
        text = process.config.read_text()
        process.config.write_text(text.replace("margin_s = 0.5", "margin_s = 0.4"))
        process.hangup()
        reloaded = process.logged("reloaded")
        assert (reloaded["sites"], reloaded["restart_needed"]) == (["riga"], ["cycle"])
        until_learned(client, *pool("riga"))
        client.submit(diamond("flow", 0.3, *(supply.name for supply in pool("riga"))))
        assert client.wait("flow").state == SIMULATED
        assert process.end(signal.SIGTERM) == 0
    assert riga.name == "riga"


def test_a_site_with_another_s_certificate_is_not_spoken_to(tmp_path: Path) -> None:
    """An address with the wrong site behind it gets nothing; the task runs at the right one."""
    made, keys = tls_sites(tmp_path, *SITES)
    luebeck, riga = made
    entries = luebeck.entry(keys) + luebeck.entry(keys, name="riga")
    config = configure(tmp_path, f"[limits]\nsite_down_s = 0.5\n{entries}")
    with running([luebeck]), serving(config) as (process, client):
        register(client, *pool("luebeck"), *pool("riga"))
        client.submit(diamond("flow", 0.3, *NAMES))
        ended = client.wait("flow")
        assert ended.state == SIMULATED
        assert all(
            demand.resource.startswith("luebeck-")
            for task in ended.tasks
            for demand in task.demands
        )
        process.end(signal.SIGTERM)
    assert "site_down" in (tmp_path / "broker.log").read_text()
    assert riga.name == "riga"
