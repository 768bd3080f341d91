"""How partners are called, as a site's file says it: what cannot be is said, and what is, is shown."""

from pathlib import Path

import pytest

from grms.cli.main import run_command
from grms.site.config.load import ConfigError, parse_config
from grms.site.config.schema import SiteConfig

HEAD = """
name = "north"
processors = 4
listen.users = "users.sock"
journal.path = "north.journal"
"""
TLS = """
[tls]
authority = "ca.crt"
certificate = "north.crt"
key = "north.key"
"""
LISTENS = 'listen.partners = "127.0.0.1:7001"\n'
RELAY = '[outgoing]\nrelay = {name = "meet", address = "relay.example:7002"}\n'
PROXY = '[outgoing]\nproxy = "[::1]:3128"\n'
VIRTUAL = 'clock.kind = "virtual"\n'


def partner(more: str = "") -> str:
    """Returns a partner's table."""
    return f'[[partners]]\nname = "south"\n{more}\n'


CALLED = partner('address = "south.example:7001"')
CALLBACK, RELAYED = partner('way = "callback"'), partner('way = "relay"')


def parsed(text: str) -> SiteConfig:
    """Returns the configuration of a text."""
    return parse_config(text.encode(), folder=Path("/etc/hanse"), shown="north.toml")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (TLS + CALLBACK, "partners.south.way is 'callback', and this site has no listen.partners"),
        (TLS + RELAYED, "partners.south.way is 'relay', and [outgoing.relay] is missing"),
        (
            TLS + RELAY + partner('way = "relay"\naddress = "a:1"'),
            "partners.south.way is 'relay', and nobody calls its address; leave it out",
        ),
        (
            LISTENS + TLS + partner('way = "callback"\nkeep_open = true'),
            "partners.south.keep_open goes with way = 'address' alone",
        ),
        (TLS + partner('way = "pigeon"'), "partners[0].way"),
        (
            TLS + partner(),
            "partners.south.address is missing, and mqtt.discovery is off; is its way 'callback' or 'relay'?",
        ),
        (partner(), "partners.south.address is missing, and mqtt.discovery is off"),
        (LISTENS + CALLBACK, "partners.south.way needs [tls]"),
        (RELAY + partner('address = "127.0.0.1:1"'), "outgoing.relay needs [tls]"),
        (PROXY + partner('address = "127.0.0.1:1"'), "outgoing.proxy needs [tls]"),
        (VIRTUAL + PROXY + TLS + CALLED, "outgoing.proxy is for sites that live"),
        (TLS + RELAY.replace("meet", "north") + CALLED, "outgoing.relay.name 'north' is a site"),
        (TLS + RELAY.replace("meet", "south") + RELAYED, "outgoing.relay.name 'south' is a site"),
        (PROXY.replace("[::1]:3128", "http://proxy"), "outgoing.proxy"),
    ],
)
def test_what_cannot_be_is_said(text: str, mistake: str) -> None:
    """A site that neither listens nor has another way hears so before it starts."""
    with pytest.raises(ConfigError) as raised:
        parsed(HEAD + text)
    assert mistake in str(raised.value)


@pytest.mark.parametrize(
    ("text", "words", "kept"),
    [
        (
            TLS + CALLED,
            "south.example:7001, calls back over connections kept open there",
            (True, True),
        ),
        (LISTENS + TLS + CALLED, "south.example:7001", (False, True)),
        (
            LISTENS + TLS + partner('address = "[2001:db8::1]:7001"\nkeep_open = true'),
            "[2001:db8::1]:7001, calls back over connections kept open there",
            (True, True),
        ),
        (
            TLS + partner('address = "south.example:7001"\nkeep_open = false'),
            "south.example:7001",
            (False, True),
        ),
        (
            LISTENS + TLS + CALLBACK,
            "called back over connections that it keeps open to listen.partners",
            (False, True),
        ),
        (
            TLS + RELAY + RELAYED,
            "met at the relay meet, relay.example:7002",
            (False, True),
        ),
        (
            TLS + PROXY + CALLED,
            "south.example:7001, through [::1]:3128, calls back over connections kept open there",
            (True, True),
        ),
        (
            partner('address = "127.0.0.1:7001"'),
            "127.0.0.1:7001, cannot call this site, which has neither listen.partners nor [tls]",
            (False, False),
        ),
        (VIRTUAL + LISTENS + TLS + CALLED, "south.example:7001", (False, True)),
    ],
)
def test_ways_are_shown(
    text: str,
    words: str,
    kept: tuple[bool, bool],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`grms validate` says how a partner is called, and calls; `kept`: whether connections are kept open, and may come."""
    config = parsed(HEAD + text)
    (one,) = config.partners
    assert (config.keeps_open(one), config.is_called) == kept
    path = tmp_path / "north.toml"
    path.write_text(HEAD + text)
    assert run_command(["validate", str(path)]) == 0
    more = "" if words == one.address else f"  south: {words}\n"
    assert capsys.readouterr().out == f"valid: north, 4 processors, partners: south\n{more}"
