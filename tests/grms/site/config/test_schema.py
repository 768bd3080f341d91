"""What a site's configuration may say."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from grms.site.config.schema import SiteConfig

LEAST: dict[str, Any] = {
    "name": "kth",
    "processors": 100,
    "listen": {"users": "kth.sock"},
    "journal": {"path": "kth.journal"},
}


def config(**more: Any) -> SiteConfig:
    """Returns the least configuration with something more."""
    return SiteConfig.model_validate({**LEAST, **more}, context={"folder": Path("/etc/hanse")})


def partner(name: str = "ctc", address: str = "127.0.0.1:7001", **more: Any) -> dict[str, Any]:
    """Returns a partner's table."""
    return {"name": name, "address": address, **more}


def test_little_has_to_be_said() -> None:
    """Name, size, socket and journal are enough; paths are relative to the file."""
    site = config()
    assert site.listen.users == "/etc/hanse/kth.sock"
    assert site.journal.path == "/etc/hanse/kth.journal"
    assert site.journal.survives == "power_loss"
    assert site.suspect == "wait"
    assert site.location == "awrt"
    assert site.listen.endpoint is None


def test_everything_can_be_said() -> None:
    """Each table is taken as it is written."""
    site = config(
        operators=["root"],
        brokers=["gorba"],
        location=["ctc"],
        suspect="resubmit",
        lrms={"discipline": "easy"},
        clock={"kind": "scaled", "speed": 100.0, "origin": 1.0},
        listen={"users": "/run/k.sock", "partners": "[::1]:7000"},
        tls={"authority": "ca.pem", "certificate": "kth.pem", "key": "kth.key"},
        partners=[partner(address="ctc.example:7001", transfer="rules.json", processors=430)],
        resources=[{"resource_id": "gpu-1", "labels": {"kind": "gpu"}, "cost_per_hour": 2.5}],
        limits={"offers_per_s": 5.0},
        mqtt={"address": "broker.example:8883", "tls": True},
        metrics={"listen": "127.0.0.1:9464"},
        logging={"format": "json"},
    )
    assert site.partners[0].transfer == "/etc/hanse/rules.json"
    assert site.tls is not None
    assert site.tls.key == "/etc/hanse/kth.key"
    assert site.listen.endpoint is not None
    assert site.listen.endpoint.port == 7000


def piloted(**pilot: Any) -> dict[str, Any]:
    """Returns what is different in a file with a resource that has pilots."""
    table = {"wall_time": "10min", **pilot}
    resource = {"resource_id": "a", "processors": 2, "pilot": table}
    return {"lrms": {"kind": "slurm"}, "resources": [resource]}


PILOTED = piloted()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"name": "a/b"}, "'a/b' is no name for a site"),
        ({"guests": {"banned": ["north:ann"]}}, "'north:ann' is no user of a partner's"),
        ({"guests": {"unknown_users": "refuse"}}, "it needs guests.users"),
        ({"guests": {"place_held_s": 9.9}}, "place_held_s"),
        ({"guests": {"preemptible": "sometimes"}}, "preemptible"),
        ({"requeue": "always"}, "requeue"),
        ({"guests": {"place_held_s": 86_401}}, "place_held_s"),
        ({"guests": {"users": "map"}}, "guests.users needs lrms.kind = 'slurm'"),
        ({"partners": [partner(account="grid")]}, "partners.ctc.account needs lrms.kind = 'slurm'"),
        ({"partners": [partner(account="root")]}, "'root' is no local account for jobs"),
        ({"partners": [partner(account="-u")]}, "'-u' is no local account for jobs"),
        ({"processors": 0}, "greater than or equal to 1"),
        ({"processors": "96"}, "valid integer"),
        ({"lrms": {"discipline": "lifo"}}, "'lifo' is no discipline; there are: fcfs"),
        ({"lrms": {"discipline": "easy-plus-plus"}}, "is not told whose job it is"),
        (
            {"location": "random"},
            "is 'random'; it must be 'awrt', 'awrt-completed', 'awrt-open' or a list",
        ),
        ({"location": ["ctc"]}, r"location\[0\] 'ctc' is no partner; there are: none"),
        ({"partners_asked": 0}, "greater than or equal to 1"),
        ({"clock": {"kind": "scaled"}}, "origin is needed"),
        ({"clock": {"speed": 2.0}}, "speed goes with kind = 'scaled' alone"),
        ({"clock": {"kind": "lunar"}}, "'wall', 'scaled' or 'virtual'"),
        ({"suspect": "panic"}, "'wait' or 'resubmit'"),
        ({"listen": {"users": "x" * 101}}, "longer than 100 bytes"),
        ({"partners": [partner(address="nowhere")]}, "'nowhere' is no endpoint"),
        ({"partners": [{"name": "ctc"}]}, "address is missing, and mqtt.discovery is off"),
        ({"partners": [partner("kth")]}, "is the site itself"),
        ({"partners": [partner(), partner()]}, r"partners\[1\].name 'ctc' comes twice"),
        ({"partners": [partner(transfer="yes")]}, "'yes' is no transfer policy; there are: awf"),
        ({"metrics": {"listen": "0.0.0.0:1"}}, "it tells the site's load"),
        ({"resources": [{"resource_id": "a"}] * 2}, "resource_id 'a' comes twice"),
        (
            {"resources": [{"resource_id": "a"}], "lrms": {"kind": "slurm"}},
            r"resources\[0\] has no pilot: .* the batch system is real \(slurm\); give it a table",
        ),
        (
            {"resources": [{"resource_id": "a", "pilot": {"wall_time": "8h"}}]},
            r"resources\[0\].pilot needs a real batch system; lrms.kind is 'simulated'",
        ),
        (PILOTED | {"processors": 1}, r"resources\[0\].processors is 2; the site has 1"),
        (PILOTED | {"pilots": {"spare_s": 301.0}}, r"wall_time is 600 s; pilots.spare_s takes 301"),
        (
            PILOTED | {"pilots": {"listen": "0.0.0.0:7"}},
            "an address by which nodes reach this host",
        ),
        (PILOTED | {"pilots": {"python": "python3"}}, "it must be the path of a program"),
        (piloted(wall_time="soon"), "'soon' is no time"),
        (piloted(wall_time=True), "valid number"),
        (piloted(count=0), "greater than or equal to 1"),
        (
            {
                **piloted(count=2),
                "resources": [*piloted(count=2)["resources"], {"resource_id": "a-2"}],
            },
            r"resources\[1\].resource_id 'a-2' comes twice",
        ),
        ({"limits": {"message_bytes": 1}}, "greater than or equal to 1024"),
        ({"colour": "red"}, "Extra inputs"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], text: str) -> None:
    """Each mistake is refused with what was found and what is allowed."""
    with pytest.raises(ValidationError, match=text):
        config(**change)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"listen": {"users": "s", "partners": "0.0.0.0:7000"}}, "listen.partners is 0.0.0.0:7000"),
        ({"partners": [partner(address="10.0.0.1:7")]}, "partners.ctc.address is 10.0.0.1:7"),
    ],
)
def test_without_tls_partners_are_on_loopback_alone(change: dict[str, Any], text: str) -> None:
    """Neither is another address listened on nor called; with TLS both are."""
    with pytest.raises(ValidationError, match=f"{text}; without .tls. only loopback"):
        config(**change)
    files = {"authority": "ca.crt", "certificate": "kth.crt", "key": "kth.key"}
    config(**change, tls=files)


def test_a_partner_can_be_discovered() -> None:
    """With discovery a partner needs no address."""
    mqtt = {"address": "127.0.0.1:1883", "discovery": True}
    assert config(mqtt=mqtt, partners=[{"name": "ctc"}]).partners[0].address is None


@pytest.mark.parametrize(
    ("mqtt", "more", "text"),
    [
        ({"tls": True}, {}, "mqtt.address is missing, and mqtt.tls goes with it"),
        ({"discovery": True}, {}, "mqtt.address is missing, and mqtt.discovery goes with it"),
        ({"address": "127.0.0.1:1883", "tls": True}, {}, "mqtt.tls uses the keys of"),
        ({"address": "mqtt.example:1883"}, {}, "without mqtt.tls only loopback is allowed"),
        ({"address": "127.0.0.1:1", "password_file": "p"}, {}, "password_file needs mqtt.username"),
        ({"embedded": True}, {"name": "watcher"}, "needs mqtt.address"),
        ({"embedded": True, "address": "127.0.0.1:1883"}, {}, "name two brokers"),
        (
            {"address": "127.0.0.1:1", "discovery": True, "enabled": False},
            {"partners": [{"name": "ctc"}]},
            "mqtt.discovery is off",
        ),
    ],
)
def test_telemetry_that_could_not_work(
    mqtt: dict[str, Any], more: dict[str, Any], text: str
) -> None:
    """What would do nothing, or show a password to others, is refused at the start."""
    with pytest.raises(ValidationError, match=text):
        config(mqtt=mqtt, **more)


@pytest.mark.parametrize(
    ("clock", "mqtt", "publishes"),
    [
        ("wall", None, False),
        ("virtual", None, False),
        ("wall", {}, False),
        ("wall", {"outbox": 5}, False),
        ("wall", {"embedded": True}, True),
        ("virtual", {"embedded": True}, True),
        ("virtual", {"address": "127.0.0.1:1883"}, True),
        ("wall", {"address": "127.0.0.1:1883", "enabled": False}, False),
        ("wall", {"embedded": True, "enabled": False}, False),
    ],
)
def test_who_publishes(clock: str, mqtt: dict[str, Any] | None, *, publishes: bool) -> None:
    """Only a site whose configuration names an MQTT broker, or asks for one of its own."""
    more = {} if mqtt is None else {"mqtt": mqtt}
    assert config(clock={"kind": clock}, **more).publishes is publishes
