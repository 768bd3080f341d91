"""A federation in motion: users submit in time, and its dashboards show it."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grms.client import SyncClient
from scenarios.cli.main import cli
from scenarios.live import demo as play_module
from scenarios.live.demo import first_arrival, play
from scenarios.live.detached import dashboard_link, down
from scenarios.live.folder import check_claim
from scenarios.spec.files import load_spec
from scenarios.util.errors import LiveError
from tests.visits import Visit

pytestmark = pytest.mark.usefixtures("forks")

SCENARIO = """
name = "moving"
title = "Two sites"
first_arrivals = 6

[broker.workflows]
benchmark = "sRsD"
tasks = 3
last_s = 1

[[sites]]
name = "north"
processors = 4
reservable = [{ resource_id = "fast", speed = 2.0 }]
transfer = { default = "awf" }
workload = { model = "lublin", days = 3, seed = 1, load = 0.7 }

[[sites]]
name = "south"
processors = 8
transfer = { default = "awf" }
workload = { model = "lublin", days = 3, seed = 2, load = 0.7 }
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Returns the file of a scenario with two sites, of whose jobs six are taken."""
    path = tmp_path / "moving.toml"
    path.write_text(SCENARIO)
    return path


def shown_at(visit: Visit, path: str, is_there: Callable[[Any], bool]) -> Any:
    """Returns what a dashboard answers as soon as something is there, and at last as it is."""
    deadline = time.monotonic() + 300
    while True:
        found = visit.ask(path)
        if is_there(found) or time.monotonic() > deadline:
            return found


def jobs_shown_at(visit: Visit, home: str, wanted: list[str]) -> list[str]:
    """Returns the jobs of a site's users that its dashboard shows, at best those that are wanted."""

    def theirs(found: Any) -> list[str]:
        return sorted(job["job_id"] for job in found["jobs"] if job["home"] == home)

    return theirs(shown_at(visit, "/api/jobs", lambda found: theirs(found) == wanted))


def test_the_users_of_a_scenario_submit_while_it_is_watched(tmp_path: Path, scenario: Path) -> None:
    """`up --play` starts daemons with dashboards, the broker's too, and submits; `down` ends them."""
    folder = tmp_path / "up"
    spec = load_spec(scenario)
    speed = "1e5"
    done = CliRunner().invoke(
        cli, ["up", str(scenario), "--folder", str(folder), "--play", "--speed", speed]
    )
    try:
        assert done.exit_code == 0, done.output
        assert "6 jobs were submitted" in done.output
        sockets = Path(json.loads((folder / "federation.json").read_text())["sockets"])
        pages = {}
        for name, command in (("north", "grms"), ("south", "grms"), ("broker", "gorba")):
            socket = sockets / f"{name}.sock"
            assert f"{command} dashboard --socket {socket} --open" in done.output
            pages[name] = Visit.by(dashboard_link(name, socket))
        plan = shown_at(pages.pop("broker"), "/api/plan", lambda found: bool(found["workflows"]))
        assert plan["workflows"][0]["name"] == "workflow-1"
        known = 0
        for name, visit in pages.items():
            with SyncClient(sockets / f"{name}.sock") as client:
                mine = sorted(job.job_id for job in client.jobs(all_users=True))

            assert jobs_shown_at(visit, name, mine) == mine
            known += len(mine)
        assert known == spec.first_arrivals
    finally:
        assert sorted(down(folder)) == ["broker", "north", "south"]
    # Nothing is left that the next one would take for somebody else's.
    check_claim(folder)


def test_the_first_arrival_is_that_of_all_sites(scenario: Path) -> None:
    """The clock begins shortly before it, so that nobody waits for a log's first night."""
    assert 0.0 <= first_arrival(load_spec(scenario)) < 1e7


def test_a_site_that_is_not_there_is_an_error(
    tmp_path: Path, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one says what is wrong."""
    monkeypatch.setattr(play_module, "CLIENT_TIMEOUT_S", 0.1)
    sockets = {name: tmp_path / f"{name}.sock" for name in ("north", "south")}
    with pytest.raises(LiveError, match="does not do what users ask"):
        play(load_spec(scenario), sockets, speed=1e9, origin=0.0)


def test_speed_is_of_what_is_played(scenario: Path) -> None:
    """On real time nobody submits."""
    done = CliRunner().invoke(cli, ["up", str(scenario), "--speed", "60"])
    assert done.exit_code == 2
    assert "--play" in done.output
