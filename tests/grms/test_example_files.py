"""The example of a site's configuration and its systemd unit belong together."""

import configparser
import tomllib
from pathlib import Path

from grms.names import check_site_name, parse_endpoint

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def test_the_daemon_can_write_what_its_configuration_names() -> None:
    """Journal and socket of the example are in the folders that the unit makes writable."""
    site = tomllib.loads((EXAMPLES / "site.toml").read_text(encoding="utf-8"))
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]  # systemd's keys have capitals
    unit.read(EXAMPLES / "hanse-grms@.service", encoding="utf-8")
    service = unit["Service"]
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
