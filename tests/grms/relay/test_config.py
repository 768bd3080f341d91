"""A relay's file: what is wrong in it is said, and who may meet whom."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from grms.cli.main import cli, run_command
from grms.relay.config import load_relay
from grms.site.config.load import ConfigError
from tests.grms.keys import new_federation

GOOD = """
name = "meet"
listen = "127.0.0.1:7002"
meet = [["north", "south"], ["north", "east", "west"]]

[tls]
authority = "ca.crt"
certificate = "meet.crt"
key = "meet.key"
"""


def loaded(folder: Path, text: str) -> list[str]:
    """Returns what is wrong with a file."""
    path = folder / "relay.toml"
    path.write_text(text)
    try:
        load_relay(path)
    except ConfigError as error:
        return [line.removeprefix(f"{path}: ") for line in str(error).split("\n")]
    return []


def test_two_of_one_group_may_meet(tmp_path: Path) -> None:
    """In either direction, and no others."""
    (tmp_path / "relay.toml").write_text(GOOD)
    relay = load_relay(tmp_path / "relay.toml")
    assert relay.tls.key == str(tmp_path / "meet.key")
    assert relay.sites == {"north", "south", "east", "west"}
    names = sorted(relay.sites)
    met = [(one, other) for one in names for other in names if relay.may_meet(one, other)]
    assert {frozenset(each) for each in met} == {
        frozenset(each.split()) for each in ("north south", "north east", "north west", "east west")
    }
    assert len(met) == 8


@pytest.mark.parametrize(
    ("before", "after", "mistake"),
    [
        ('["north", "south"]', '["north"]', "meet[0]"),
        ('["north", "south"]', '["north", "north"]', "meet[0] has 'north' twice"),
        ('["north", "south"]', '["north", "meet"]', "meet[0] has 'meet', the relay itself"),
        ('["north", "south"]', '["north", "a b"]', "'a b' is no name for a site"),
        ("127.0.0.1:7002", "7002", "'7002' is no endpoint"),
        ("meet = ", "met = ", "'met' is no key here, did you mean 'meet'?"),
        ("[tls]", "[tsl]", "tls: is missing"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, before: str, after: str, mistake: str) -> None:
    """With its place."""
    assert mistake in "\n".join(loaded(tmp_path, GOOD.replace(before, after, 1)))


def test_the_command_checks_the_file_and_the_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2 where something is wrong; nothing is served."""
    path = tmp_path / "relay.toml"
    path.write_text(GOOD)
    assert run_command(["relay", str(path), "--check"]) == 2
    assert "tls: " in capsys.readouterr().err
    new_federation(tmp_path).site("meet")
    assert run_command(["relay", str(path), "--check"]) == 0
    assert capsys.readouterr().out == (
        "valid: relay meet at 127.0.0.1:7002, who may meet: north, south; north, east, west\n"
    )
    path.write_text(GOOD.replace('"meet"', '"other"', 1))
    assert run_command(["relay", str(path)]) == 2
    assert "is for the site meet, not for other" in capsys.readouterr().err
    assert "CONFIG" in CliRunner().invoke(cli, ["relay", "--help"]).output
