"""The example of a site's configuration and its systemd unit belong together."""

import configparser
import os
import tomllib
from pathlib import Path

import pytest

from grms.util.names import check_site_name, parse_endpoint
from tests.programs import run_program

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
UNIT = "hanse-grms@.service"


IMPLIES_NO_NEW_PRIVILEGES = (
    *("SystemCallFilter", "SystemCallArchitectures", "SystemCallLog", "RestrictAddressFamilies"),
    *("RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID", "LockPersonality"),
    *("MemoryDenyWriteExecute", "PrivateDevices", "ProtectClock", "ProtectHostname"),
    *("ProtectKernelLogs", "ProtectKernelModules", "ProtectKernelTunables", "DynamicUser"),
)
"""What systemd does by seccomp, and so not without that flag for a service that is not root's (systemd.exec(5))."""


def service_of(name: str) -> configparser.SectionProxy:
    """Returns what a unit says of its service."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]  # systemd's keys have capitals
    unit.read(EXAMPLES / name, encoding="utf-8")
    return unit["Service"]


def test_the_drop_in_lets_sudo_work() -> None:
    """It takes back all of the unit that would have sudo refuse; with what it leaves, sudo works."""
    service, back = service_of("hanse-grms@.service"), service_of(f"{UNIT}.d/sudo.conf")
    assert service["NoNewPrivileges"] == "yes"
    assert back["NoNewPrivileges"] == "no"
    implied = {key for key in IMPLIES_NO_NEW_PRIVILEGES if key in service}
    assert len(implied) > 10
    assert {key for key in implied if back.get(key) not in {"", "no"}} == set()
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    for names, works in ((back["CapabilityBoundingSet"], True), ("", False)):
        left = ["-all", *(f"+{name.removeprefix('CAP_').lower()}" for name in names.split())]
        words = ["setpriv", f"--bounding-set={','.join(left)}", "--inh-caps=-all"]
        done = run_program([*words, "sudo", "-n", "-u", "nobody", "--", "id", "-un"])
        assert (done.stdout == "nobody\n") == works, done.stderr
        assert "audit" not in done.stderr or not works


def test_systemctl_reload_reloads() -> None:
    """By the signal that the daemon takes for it."""
    assert service_of(UNIT)["ExecReload"].split()[1:] == ["-HUP", "$MAINPID"]


def test_the_daemon_can_write_what_its_configuration_names() -> None:
    """Journal and socket of the example are in the folders that the unit makes writable."""
    site = tomllib.loads((EXAMPLES / "site.toml").read_text(encoding="utf-8"))
    service = service_of(UNIT)
    assert service["ProtectSystem"] == "strict"
    state = Path("/var/lib", service["StateDirectory"].replace("%i", site["name"]))
    runtime = Path("/run", service["RuntimeDirectory"].replace("%i", site["name"]))
    assert Path(site["journal"]["path"]).is_relative_to(state)
    assert Path(site["listen"]["users"]).is_relative_to(runtime)
    # On a socket the kernel tells users' numbers only where the unit does not hide them.
    assert "PrivateUsers" not in service


def test_the_addresses_of_the_example_are_addresses() -> None:
    """Every name and endpoint in the example is one."""
    site = tomllib.loads((EXAMPLES / "site.toml").read_text(encoding="utf-8"))
    for partner in site["partners"]:
        check_site_name(partner["name"])
    assert not parse_endpoint(site["listen"]["partners"]).is_unspecified
    assert parse_endpoint(site["metrics"]["listen"]).is_loopback
    parse_endpoint(site["mqtt"]["address"])
