from pathlib import Path

import pytest

from tests.broker.brokers import configure, serving
from tests.broker.cli.test_daemon_cli import FILES, gorba
from tests.schemas import printed

pytestmark = pytest.mark.usefixtures("forks")


CHAIN = """
[[resources]]
name = "tool"
requires = ["os"]
[[resources]]
name = "os"
kind = "os"
capacity = 9
requires = [{ resource = "hardware", units = 2 }]
[[resources]]
name = "hardware"
kind = "hardware"
capacity = 4
"""
FLOW = '[[workflows]]\nname = "flow"\ntasks = [{ name = "a", work = 1 }]\n'


def test_what_a_resource_requires_is_held_at_a_broker_too(tmp_path: Path) -> None:
    """A pool is registered, then a workflow of another file handed in: its task holds all three."""
    (tmp_path / "pool.toml").write_text(CHAIN)
    (tmp_path / "flow.toml").write_text(FLOW)
    with serving(configure(tmp_path)) as (_, client):
        assert gorba(tmp_path, "resources", "add", str(tmp_path / "pool.toml")).exit_code == 0
        assert gorba(tmp_path, "resources", "broken", "os").exit_code == 0
        assert gorba(tmp_path, "resources", "broken", "--repaired", "os").exit_code == 0
        listed = printed(
            "gorba-resources-list", gorba(tmp_path, "resources", "list", "--json").output
        )
        assert listed["resources"][1]["requires"] == [{"resource": "hardware", "units": 2}]
        assert gorba(tmp_path, "submit", str(tmp_path / "flow.toml"), "--wait").exit_code == 3
        (task,) = client.get("flow").tasks
        held = [(each.resource, each.units) for each in task.demands]
        assert held == [("tool", 1), ("os", 1), ("hardware", 2)]


def test_a_circle_over_several_registrations_is_refused(tmp_path: Path) -> None:
    """The last one of it, before anything of its file is there."""
    (tmp_path / "pool.toml").write_text(CHAIN)
    (tmp_path / "more.toml").write_text(
        '[[resources]]\nname = "new"\n[[resources]]\nname = "hardware"\nrequires = ["tool"]\n'
    )
    with serving(configure(tmp_path)) as (_, client):
        gorba(tmp_path, "resources", "add", str(tmp_path / "pool.toml"))
        refused = gorba(tmp_path, "resources", "add", "--replace", str(tmp_path / "more.toml"))
        assert "require each other: tool → os → hardware → tool" in str(refused.exception)
        assert [each.name for each in client.resources()] == ["tool", "os", "hardware"]


def test_broken_resources_and_cancelled_workflows(tmp_path: Path) -> None:
    """A workflow without a resource that works waits, with the reason, until it is cancelled."""
    path = tmp_path / "all.toml"
    path.write_text(FILES)
    with serving(configure(tmp_path)):
        gorba(tmp_path, "resources", "add", str(path))
        assert gorba(tmp_path, "resources", "broken", "alpha", "beta").exit_code == 0
        assert gorba(tmp_path, "resources", "list").output.count("broken") == 2
        gorba(tmp_path, "submit", str(path))
        wanted = "no resource that can be used"
        assert any(wanted in gorba(tmp_path, "plan", "show").output for _ in range(50))
        assert "cancelled" in gorba(tmp_path, "cancel", "flow").output
        assert gorba(tmp_path, "resources", "broken", "--repaired", "alpha").exit_code == 0
        assert gorba(tmp_path, "resources", "remove", "beta").exit_code == 0
        assert gorba(tmp_path, "resources", "list").output.count("\n") == 2
        unknown = gorba(tmp_path, "resources", "broken", "delta")
        assert unknown.exit_code == 2
        assert "there are: alpha" in unknown.output
