from pathlib import Path

import pytest

from tests.broker.brokers import configure, serving
from tests.broker.commandline.test_daemon_cli import FILES, gorba

pytestmark = pytest.mark.usefixtures("forks")


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
