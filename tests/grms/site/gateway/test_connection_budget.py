"""How many connections there are descriptors for."""

import resource
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from grms.daemon.process import FIGURES_MAX, MQTT_MAX, PAGES_MAX
from grms.site.config.load import parse_config
from grms.site.gateway import connection_budget as descriptors
from grms.site.gateway.connection_budget import (
    KEPT,
    affordable,
    available,
    beside_all,
    connection_limits,
    outward,
)


def test_what_is_there_is_shared_out() -> None:
    """All that is wanted where there is room; else in proportion, and never nothing."""
    assert affordable(10_000, 3, (500, 500)) == (500, 500)
    assert affordable(KEPT + 3 * 100, 0, (500, 500)) == (50, 50)
    assert affordable(KEPT + 3 * 100 + 5, 5, (300, 100)) == (75, 25)
    assert affordable(KEPT + 3 * 10, 0, (500, 0)) == (10, 0)
    assert affordable(0, 0, (500, 500)) == (1, 1)
    assert affordable(KEPT + 7 + 3 * 10 + 5 * 20, 7, (10, 20), tunnelled=True) == (10, 20)
    assert affordable(KEPT + 3 * 10 + 5 * 20 - 1, 0, (10, 20), tunnelled=True) == (9, 20)
    assert affordable(KEPT + 80, 0, (100, 100), tunnelled=True) == (10, 10)


def test_ways_to_partners_are_kept_free() -> None:
    """One descriptor for a partner at its address, four beyond a socket of this site's own, two for tunnels that wait."""
    begin = """name = "kth"
processors = 4
listen = { users = "u.sock"LISTEN }
journal = { path = "j" }
tls = { authority = "a", certificate = "c", key = "k" }
"""

    def needed(partners: str, *, listens: bool) -> int:
        listen = ', partners = "127.0.0.1:7000"' if listens else ""
        text = begin.replace("LISTEN", listen) + partners
        return outward(parse_config(text.encode(), folder=Path("/nowhere"), shown="x"))

    plain = '[[partners]]\nname = "ctc"\naddress = "ctc.example:1"\n'
    back = '[[partners]]\nname = "sdsc"\nway = "callback"\n'
    met = '[[partners]]\nname = "lanl"\nway = "relay"\n'
    outgoing = '[outgoing]\nrelay = { name = "meet", address = "meet.example:1" }\n'
    proxy = 'proxy = "proxy.example:3128"\n'
    assert needed(plain, listens=True) == 1
    assert needed(plain, listens=False) == 1 + 2
    assert needed(plain + back, listens=True) == 1 + 4
    assert needed(outgoing + plain + met, listens=False) == 1 + 2 + 4 + 2
    assert needed(outgoing + proxy + plain + met, listens=True) == 4 + 4 + 2


def test_a_lack_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, at the start, with what is taken instead and what to do."""
    text = b"""name = "kth"
processors = 4
listen = { users = "u.sock", partners = "127.0.0.1:7000" }
journal = { path = "j" }
mqtt = { enabled = false }
"""
    config = parse_config(text, folder=Path("/tmp"), shown="x")  # noqa: S108  # nothing is opened
    monkeypatch.setattr(descriptors, "available", lambda: KEPT + 3 * 20)
    with capture_logs() as logs:
        shares, port = connection_limits(config, structlog.get_logger())
    assert (shares.total, shares.per_user, shares.reserved) == (10, 4, 2)
    assert port.connections == 10
    (entry,) = logs
    assert entry["event"] == "descriptors_limit_connections"
    assert entry["wanted"] == (500, 500)
    assert "ulimit -n" in entry["remedy"]
    monkeypatch.setattr(descriptors, "available", lambda: 100_000)
    with capture_logs() as logs:
        shares, port = connection_limits(config, structlog.get_logger())
    assert (shares.total, shares.per_user, shares.reserved) == (500, 100, 20)
    assert not logs


def test_what_other_doors_may_take_is_kept_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every local user reaches dashboard, metrics and the daemon's own MQTT broker."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10_000, 10_000))
    begin = (
        'name = "kth"\nprocessors = 4\nlisten = { users = "u.sock" }\njournal = { path = "j" }\n'
    )

    def kept(text: str) -> int:
        config = parse_config((begin + text).encode(), folder=Path("/nowhere"), shown="x")
        return beside_all(config)

    off = "mqtt = { enabled = false }\n"
    assert kept(off) == 0
    assert kept("") == 0
    assert kept("mqtt = { embedded = true }\n") == MQTT_MAX
    assert kept('mqtt = { address = "127.0.0.1:1883" }\n') == 0
    both = 'metrics = { listen = "127.0.0.1:9464" }\ndashboard = { listen = "127.0.0.1:9480" }\n'
    assert kept(off + both) == FIGURES_MAX + PAGES_MAX
    config = parse_config((begin + off + both).encode(), folder=Path("/nowhere"), shown="x")
    there = KEPT + FIGURES_MAX + PAGES_MAX + 3 * 100
    monkeypatch.setattr(descriptors, "available", lambda: there)
    assert connection_limits(config, structlog.get_logger())[0].total == 100


def test_open_files_count() -> None:
    """What is open is not available any more."""
    before = available()
    with Path("/dev/null").open():
        assert available() == before - 1
