import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.daemon.mqtt import payloads
from grms.daemon.mqtt.payloads import Presence, encode
from grms.site.monitoring.discovery import Discovery, PartnerAppeared
from grms.util.names import Endpoint

HERE = Endpoint("ctc.example", 7001)
THERE = Endpoint("ctc.example", 7002)


def online(site: str = "CTC", endpoint: object = HERE, **changes: str) -> bytes:
    """Returns the presence of a site that is there."""
    presence = Presence(site=site, state="online", instance="1", endpoint=str(endpoint))
    return encode(presence.model_copy(update=changes))


def offline(site: str = "CTC") -> bytes:
    """Returns the last will of a site."""
    return encode(Presence(site=site, state="offline", instance="1"))


def discovery(fixed: Endpoint | None = None) -> Discovery:
    """Returns what KTH knows of its partners CTC and SDSC before it has heard anything."""
    return Discovery("KTH", {"CTC": fixed, "SDSC": None})


def test_a_partner_comes_goes_and_comes_back() -> None:
    """Each appearance is told once; a repetition is none."""
    found, topic = discovery(), payloads.presence("CTC")
    assert found.received(topic, online()) == PartnerAppeared("CTC", HERE)
    assert found.received(topic, online()) is None
    assert found.received(topic, online(endpoint=THERE)) == PartnerAppeared("CTC", THERE)
    for gone in (offline(), b""):  # a retained presence that was deleted is as good as a last will
        assert found.received(topic, gone) is None
        assert found.received(topic, online()) == PartnerAppeared("CTC", HERE)


def test_a_configured_address_stays() -> None:
    """Presence does not move a partner whose address the operator has written down."""
    found, topic = discovery(fixed=HERE), payloads.presence("CTC")
    assert found.received(topic, online(endpoint=THERE)) == PartnerAppeared("CTC", HERE)
    assert found.received(topic, online(endpoint=HERE)) is None
    assert found.received(topic, offline()) is None
    assert found.received(topic, online(endpoint=THERE)) == PartnerAppeared("CTC", HERE)


def test_whoever_is_not_listed_does_not_exist() -> None:
    """A stranger's presence changes nothing and takes no memory."""
    found = discovery()
    for number in range(100):
        name = f"stranger{number}"
        assert found.received(payloads.presence(name), online(name)) is None
    assert found._there == {}


@pytest.mark.parametrize(
    ("topic", "content"),
    [
        (payloads.presence("CTC"), online("SDSC")),
        (payloads.presence("CTC"), offline("SDSC")),
        (payloads.presence("CTC"), online("KTH")),
        (payloads.presence("KTH"), online("KTH")),
        (payloads.presence("CTC"), b"{}"),
        (payloads.presence("CTC"), b"\xff"),
        (payloads.presence("CTC"), online(endpoint="0.0.0.0:1")),
        (payloads.presence("CTC"), online(endpoint="")),
        (payloads.presence("CTC"), online(endpoint="unix:/run/x.sock")),
        (payloads.presence("CTC"), online(endpoint="dns:///a:1")),
        (payloads.presence("CTC"), online(protocol="grms.v2")),
        (payloads.jobs("CTC"), online()),
        ("hanse/v1/sites/CTC/presence/x", online()),
        ("$SYS/broker/uptime", b"1"),
    ],
)
def test_what_means_nothing_changes_nothing(topic: str, content: bytes) -> None:
    """Another's name, an address that is none, another protocol: who was there is there."""
    found = discovery()
    found.received(payloads.presence("CTC"), online())
    assert found.received(topic, content) is None
    assert found._there == {"CTC": HERE}


@given(st.text(max_size=40), st.binary(max_size=100))
def test_nothing_that_comes_is_an_error(topic: str, content: bytes) -> None:
    """Any bytes on any topic are taken without an exception."""
    found = discovery()
    for each in (topic, payloads.presence("CTC")):
        found.received(each, content)
    assert set(found._there) <= {"CTC"}


def test_the_list_can_change_while_the_daemon_runs() -> None:
    """Whoever is taken off is forgotten, and is new when he is put back."""
    found, topic = discovery(), payloads.presence("CTC")
    found.received(topic, online())
    found.set_partners({"SDSC": None})
    assert found.received(topic, online()) is None
    found.set_partners({"CTC": None, "SDSC": None})
    assert found.received(topic, online()) == PartnerAppeared("CTC", HERE)


def test_names_are_checked() -> None:
    """A site is not its own partner, and a name that is none is refused."""
    with pytest.raises(ValueError, match="'KTH' cannot be its own partner"):
        Discovery("KTH", {"KTH": None})
    with pytest.raises(ValueError, match="no name for a site"):
        Discovery("KTH", {"a/b": None})
    with pytest.raises(ValueError, match="no name for a site"):
        Discovery("+", {})
