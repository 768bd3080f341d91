"""The commands around a broker, with one that serves."""

from pathlib import Path

from click.testing import CliRunner, Result

from broker.cli import cli
from tests.broker.brokers import configure, serving

FILES = """
[[resources]]
name = "alpha"
[[resources]]
name = "beta"
performance = 2.0
[[workflows]]
name = "flow"
[[workflows.tasks]]
name = "a"
work = 0.4
alternatives = ["alpha", "beta"]
[[workflows.tasks]]
name = "b"
work = 0.4
predecessors = ["a"]
alternatives = ["alpha", "beta"]
"""


def gorba(folder: Path, *arguments: str) -> Result:
    """Runs a command with the socket of the broker."""
    return CliRunner().invoke(cli, arguments, env={"GORBA_SOCKET": str(folder / "gorba.sock")})


def test_a_workflow_from_file_to_end(tmp_path: Path) -> None:
    """Resources are added, a workflow handed in, followed, listed, and its plan shown."""
    path = tmp_path / "all.toml"
    path.write_text(FILES)
    with serving(configure(tmp_path)):
        assert gorba(tmp_path, "plan", "show").output == "there is no plan yet\n"
        added = gorba(tmp_path, "resources", "add", str(path))
        assert added.output.split() == ["alpha", "beta"]
        head, first, second = gorba(tmp_path, "resources", "list").output.splitlines()
        assert head.split() == ["RESOURCE", "KIND", "SPEED", "UNITS", "PRICE", "SITE"]
        assert first.split() == ["alpha", "cpu", "1", "1", "0", "simulated"]
        assert second.split() == ["beta", "cpu", "2", "1", "0", "simulated"]
        taken = gorba(tmp_path, "submit", str(path), "--key", "k")
        assert taken.output == "w1\n"
        assert gorba(tmp_path, "submit", str(path), "--key", "k").output == "w1\n"
        followed = gorba(tmp_path, "watch", "flow")
        assert "b: completed" in followed.output
        assert followed.output.rstrip().splitlines()[-1].startswith("w1 ")
        assert "completed  2/2 tasks" in gorba(tmp_path, "list").output
        assert gorba(tmp_path, "list", "--open").output == ""
        assert gorba(tmp_path, "plan", "show").output.startswith("plan ")
        assert int(gorba(tmp_path, "replan").output) >= 2
        again = gorba(tmp_path, "submit", str(path), "--wait")
        assert again.exit_code == 0


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


def test_without_a_broker_there_is_a_plain_error(tmp_path: Path) -> None:
    """It names the socket."""
    result = gorba(tmp_path, "list", "--timeout", "0.2")
    assert result.exit_code != 0
    assert "is it running" in str(result.exception)
    assert str(tmp_path / "gorba.sock") in str(result.exception)


def test_a_socket_has_to_be_named() -> None:
    """The error says how."""
    result = CliRunner().invoke(cli, ["list"])
    assert result.exit_code == 2
    assert "--broker" in result.output
