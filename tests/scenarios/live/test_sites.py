"""Configurations and processes of a live scenario."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from grms.daemon.ports import free_ports
from grms.lrms.simulated.simulated import SimulatedSettings
from grms.policy.constraints import FAIR_EXCHANGE, SHORT_GUESTS, START_NOW, rounds_said
from grms.policy.registry import TRANSFER_POLICIES
from grms.policy.transfer import AcceptWhenFit, AlwaysAgree, AlwaysKeep, Constrained, TransferPolicy
from grms.site.config.load import load_config, load_policies, parse_config
from grms.site.config.schema import SiteConfig
from lrms_sim.util.files import to_toml
from scenarios.live.sites import (
    LiveSettings,
    SiteProcess,
    site_documents,
    transfer_word,
)
from scenarios.spec.files import parse_spec
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import LiveError
from tests.waiting import until

pytestmark = pytest.mark.services

SPEC = """
name = "two"
[[sites]]
name = "a"
processors = 8
discipline = "easy"
location = ["b"]
partners_asked = 2
workload = { model = "lublin", jobs = 0 }
transfer = { b = "keep" }
[[sites]]
name = "b"
processors = 64
workload = { model = "lublin", jobs = 0 }
transfer = { pool = [{ processors = 10, policy = "awf" }, { processors = 900, policy = "keep" }] }
"""


def discipline_of(config: SiteConfig) -> str:
    """Returns the discipline of a simulated batch system."""
    assert isinstance(config.lrms, SimulatedSettings)
    return config.lrms.discipline


def spec() -> ScenarioSpec:
    """Returns a scenario of two sites."""
    return parse_spec(SPEC.encode(), folder=Path(), shown="two.toml")


@pytest.mark.parametrize("clock", ["virtual", "scaled", "wall"])
def test_every_site_has_a_configuration_that_is_valid(tmp_path: Path, clock: str) -> None:
    """With the scenario's machine, discipline, order and policies."""
    settings = LiveSettings(tmp_path, tmp_path, clock, 10.0, 5.0)  # type: ignore[arg-type]  # one of the words
    documents = site_documents(spec(), settings, [7001, 7002])
    for name, document in documents.items():
        SiteProcess(name, tmp_path, tmp_path).configure(document)
    first, second = (load_config(tmp_path / f"{name}.toml") for name in "ab")
    assert (first.processors, discipline_of(first), first.location) == (8, "easy", ["b"])
    assert (first.partners_asked, second.partners_asked) == (2, None)
    assert first.partners[0].transfer == "keep"
    assert first.partners[0].address == second.listen.partners == "127.0.0.1:7002"
    assert second.location == ("awrt-completed" if clock == "virtual" else "awrt")
    assert second.clock.kind == clock
    assert transfer_word(spec().sites[1], spec().sites[0]) == "awf"


async def test_a_daemon_that_cannot_serve_says_why(tmp_path: Path) -> None:
    """The error has what it wrote last."""
    process = SiteProcess("a", tmp_path, tmp_path)
    process.config_path.write_text("name = 7\n")
    for detached in (False, True):
        with pytest.raises(LiveError, match=r"the daemon of a has ended; it wrote: .*journal"):
            await process.start(detached=detached)
        assert process.pid == 0
        await process.stop()


async def test_files_of_the_users_folder_are_no_modules_of_a_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file there that has the name of a module is not run in its place."""
    settings = LiveSettings(tmp_path, tmp_path)
    document = site_documents(spec(), settings, free_ports(2))["a"]
    (tmp_path / "secrets.py").write_text("raise SystemExit('a file of the user')")
    monkeypatch.chdir(tmp_path)
    process = SiteProcess("a", tmp_path, tmp_path)
    process.configure(document)
    for detached in (False, True):
        await process.start(detached=detached)
        await process.stop()


ORPHAN = """
import asyncio, sys
from pathlib import Path
from scenarios.live.sites import SiteProcess
async def main():
    folder = Path(sys.argv[1])
    process = SiteProcess("a", folder, folder)
    await process.start()
    print(process.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_no_daemon_outlives_whoever_started_it(tmp_path: Path) -> None:
    """Not even where that one is killed and can do nothing about it."""
    settings = LiveSettings(tmp_path, tmp_path)
    document = site_documents(spec(), settings, free_ports(2))["a"]
    SiteProcess("a", tmp_path, tmp_path).configure(document)
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ORPHAN, str(tmp_path), stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert Path(f"/proc/{pid}").exists()
    parent.send_signal(signal.SIGKILL)
    await parent.wait()

    def gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        # Its new parent may not have noticed yet.
        return "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]

    await until(gone)


SITE = {"processors": 4, "workload": {"model": "lublin", "jobs": 1}}


def of_two(**keys: object) -> ScenarioSpec:
    """Returns a scenario of two sites, the first with these keys."""
    sites = [{"name": "a", **SITE, **keys}, {"name": "b", **SITE}]
    return ScenarioSpec.model_validate({"name": "x", "sites": sites})


def test_what_only_a_replay_can_do_is_refused(tmp_path: Path) -> None:
    """A daemon that would ignore it would be another federation."""
    settings = LiveSettings(tmp_path, tmp_path)
    with pytest.raises(
        LiveError, match=r"a is a Byzantine partner \(liar\): only a replay in one process"
    ):
        site_documents(of_two(rogue="liar"), settings, [1, 2])
    assert len(site_documents(of_two(rogue="overloaded"), settings, [1, 2])) == 2
    with pytest.raises(LiveError, match=r"a looks at prices \(electricity\.prefer"):
        site_documents(of_two(electricity={"price": 1, "prefer": "cost"}), settings, [1, 2])
    assert len(site_documents(of_two(electricity={"price": 1}), settings, [1, 2])) == 2


@pytest.mark.parametrize(
    "said", ["15min", 60, {"every": "1h", "order": "widest", "questions": 9, "pause": "1d"}]
)
def test_rounds_of_a_daemon_are_those_of_the_scenario(tmp_path: Path, said: object) -> None:
    """A period or a table; a site without them has none."""
    spec = of_two(reoffer=said)
    documents = site_documents(spec, LiveSettings(tmp_path, tmp_path), [1, 2])
    first, second = (
        parse_config(to_toml(each).encode(), folder=tmp_path, shown="x")
        for each in documents.values()
    )
    assert rounds_said(first.reoffer) == rounds_said(spec.sites[0].reoffer)
    assert rounds_said(first.reoffer) is not None
    assert second.reoffer is None


@pytest.mark.parametrize(
    ("keys", "policy"),
    [
        (
            {"rails": "fair-exchange"},
            Constrained(FAIR_EXCHANGE, AlwaysAgree(), "agree within constraints"),
        ),
        (
            {"rails": {"rules": "short-guests", "guest_length": 3}, "transfer": {"default": "awf"}},
            Constrained(
                replace(SHORT_GUESTS, guest_length=3), AcceptWhenFit(), "awf within constraints"
            ),
        ),
        ({"rails": "none"}, AcceptWhenFit()),
        ({"transfer": {"b": "start-now"}}, TRANSFER_POLICIES["start-now"]),
        (
            {"transfer": {"b": "keep"}, "rails": "start-now"},
            Constrained(START_NOW, AlwaysKeep(), "keep within constraints"),
        ),
    ],
)
def test_a_daemon_keeps_to_the_constraints_of_the_scenario(
    keys: dict[str, object], policy: TransferPolicy, tmp_path: Path
) -> None:
    """Its configuration gives the very policy of the replay, by another name for people."""
    document = site_documents(of_two(**keys), LiveSettings(tmp_path, tmp_path), [1, 2])["a"]
    SiteProcess("a", tmp_path, tmp_path).configure(document)
    path = tmp_path / "a.toml"
    assert load_policies(load_config(path), str(path)) == {"b": policy}
