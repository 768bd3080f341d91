"""The broker beside a scenario's sites; it serves, and its page moves, in `test_play.py`."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

from broker.client import CallError
from broker.config.config import load_config
from lrms_sim.util.files import to_toml
from scenarios.library import scenario_path
from scenarios.live import brokers
from scenarios.live.brokers import CYCLE_S, MARGIN_S, SLOT_S, broker_document, play_workflows
from scenarios.live.sites import LiveSettings, site_documents
from scenarios.run.workflow_source import submissions_of
from scenarios.spec.files import load_spec
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import LiveError

pytestmark = pytest.mark.usefixtures("forks")


@pytest.fixture(scope="module")
def spec() -> ScenarioSpec:
    """Returns the bundled scenario with a broker: a breakdown, and a user who gives up."""
    return load_spec(scenario_path("batch-and-workflows")).resolved()


def settings(folder: Path, **more: Any) -> LiveSettings:
    """Returns how the daemons run."""
    return LiveSettings(folder, Path("/tmp/s"), reserves=True, **more)  # noqa: S108  # not made


@pytest.mark.parametrize("speed", [1.0, 200.0])
def test_a_broker_reads_its_configuration(spec: ScenarioSpec, tmp_path: Path, speed: float) -> None:
    """On real time it is the scenario's; a fast clock leaves real time to search and to book."""
    clock = (
        {"clock": "wall"} if speed == 1.0 else {"clock": "scaled", "speed": speed, "origin": 5.0}
    )
    document = broker_document(spec, settings(tmp_path, **clock), 9481)
    path = tmp_path / "broker.toml"
    path.write_text(to_toml(document))
    config = load_config(path)
    assert spec.broker is not None
    if speed == 1.0:
        assert (config.cycle.every_s, config.cycle.margin_s) == (180.0, 2.0)
    else:
        assert config.cycle.every_s == CYCLE_S * speed
        assert config.cycle.slot_s == SLOT_S * speed
        assert config.cycle.margin_s == MARGIN_S * speed
    assert config.make_clock().speed == speed
    assert [site.name for site in config.sites] == ["luebeck", "riga", "visby"]
    assert config.dashboard is not None
    assert "dashboard" not in broker_document(spec, settings(tmp_path, **clock), None)


def test_sites_offer_what_can_be_reserved(spec: ScenarioSpec, tmp_path: Path) -> None:
    """Only where a broker serves: a replay of batch jobs has nothing to reserve."""
    offered = site_documents(spec, settings(tmp_path), [1, 2, 3])
    assert [each["resource_id"] for each in offered["visby"]["resources"]] == ["old", "new"]
    plain = site_documents(spec, LiveSettings(tmp_path, tmp_path), [1, 2, 3])
    assert "resources" not in plain["visby"]


def test_what_a_broker_cannot_do_is_said(spec: ScenarioSpec, tmp_path: Path) -> None:
    """Its files have a name, and its clock a bound."""
    sites = [spec.sites[0].model_copy(update={"name": "broker"}), *spec.sites[1:]]
    with pytest.raises(LiveError, match="a site is called broker"):
        broker_document(spec.model_copy(update={"sites": sites}), settings(tmp_path), None)
    with pytest.raises(LiveError, match="at most 1,000,000 times as fast"):
        broker_document(spec, settings(tmp_path, clock="scaled", speed=1e7), None)


class Notes:
    """A client that notes what it is asked, and refuses what it is told to."""

    def __init__(self, refused: str = "") -> None:
        self.said: list[str] = []
        self._refused = refused

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _note(self, words: str) -> None:
        if words == self._refused:
            raise CallError("RESOURCE_EXHAUSTED", "too many open tasks")
        self.said.append(words)

    def submit(self, workflow: Any, *, key: str) -> None:
        """Notes a workflow."""
        assert key.startswith("play-workflow-")
        self._note(workflow.name)

    def cancel(self, name: str) -> None:
        """Notes who gives up."""
        self._note(f"cancel {name}")

    def update(self, supply: Any) -> None:
        """Notes a resource that breaks, or is in order again."""
        self._note(f"{supply.name} {'broken' if supply.broken else 'in order'}")


@pytest.fixture
def client_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Notes], None]:
    """Returns what puts a client in the place of the real one."""
    return lambda notes: monkeypatch.setattr(brokers, "BrokerClient", lambda _: notes)


def test_what_happens_at_the_broker(spec: ScenarioSpec, client_of: Callable[[Notes], None]) -> None:
    """Workflows, a user who gives up and a breakdown, in order, up to the last job."""
    notes = Notes()
    client_of(notes)
    play = play_workflows(spec, Path("s"), speed=1.0, origin=-1e12, before=35000.0)
    count = asyncio.run(play)
    there = [each.workflow.name for each in submissions_of(spec) if each.time <= 35000.0]
    assert count == len(there)
    assert [each for each in notes.said if each.startswith("workflow-")] == there
    assert notes.said.index("cancel workflow-12") > notes.said.index("workflow-12")
    assert "luebeck-fast broken" in notes.said
    assert "luebeck-fast in order" not in notes.said


def test_a_workflow_that_is_refused_is_an_error(
    spec: ScenarioSpec, client_of: Callable[[Notes], None]
) -> None:
    """With the broker's reason."""
    client_of(Notes("workflow-2"))
    with pytest.raises(LiveError, match="too many open tasks"):
        asyncio.run(play_workflows(spec, Path("s"), speed=1.0, origin=-1e12, before=1e9))
