from pathlib import Path

from click.testing import CliRunner

from broker.cli.main import cli
from tests.broker.cli.test_daemon_cli import gorba


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
    assert "--socket" in result.output
