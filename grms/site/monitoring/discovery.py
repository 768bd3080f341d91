"""Partners as they announce themselves: where to try to reach them.

Presence can be written by whoever the MQTT broker lets write it, so it is only a hint: which
address to try for a chosen partner. Who answers there is identified by certificate. A site that is
not listed does not exist here, whatever it announces, and strangers' messages take no memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from grms.daemon.mqtt.payloads import PROTOCOL, decode_presence, site_of_presence
from grms.util.names import Endpoint, check_site_name, parse_endpoint


@dataclass(frozen=True, slots=True)
class PartnerAppeared:
    """A partner has appeared or moved to `endpoint`."""

    partner: str
    endpoint: Endpoint


class Discovery:
    """Known addresses of partners.

    If the MQTT broker is gone nothing changes: its silence says nothing of partners. A partner that
    has vanished keeps its address, where open jobs are asked for; it appears anew when it is back.

    Args:
        partners: the sites that may be partners, with their configured endpoints, which presence
            does not change, or `None` to discover one.

    Raises:
        ValueError: a name is none, or the site is its own partner.
    """

    def __init__(self, site: str, partners: Mapping[str, Endpoint | None]) -> None:
        self._site = check_site_name(site)
        self._partners: dict[str, Endpoint | None] = {}
        self._there: dict[str, Endpoint] = {}
        self.set_partners(partners)

    def set_partners(self, partners: Mapping[str, Endpoint | None]) -> None:
        """Replaces the list of partners; those no longer on it are forgotten.

        A new partner appears with its next presence; subscribing again makes the broker repeat what
        it has retained.

        Raises:
            ValueError: a name is none, or the site is its own partner.
        """
        for name in partners:
            if check_site_name(name) == self._site:
                raise ValueError(f"the site {name!r} cannot be its own partner")
        self._partners = dict(partners)
        self._there = {name: address for name, address in self._there.items() if name in partners}

    def received(self, topic: str, content: bytes) -> PartnerAppeared | None:
        """Notes a presence; returns who has appeared or moved by it, or `None`.

        `content` may be anything, from anybody.
        """
        site = site_of_presence(topic)
        if site is None or site not in self._partners:
            return None
        try:
            announced = _announced(site, content)
        except ValueError:
            return None  # it means nothing
        if announced is None:
            self._there.pop(site, None)
            return None
        endpoint = self._partners[site] or announced
        before, self._there[site] = self._there.get(site), endpoint
        return None if endpoint == before else PartnerAppeared(site, endpoint)


def _announced(site: str, content: bytes) -> Endpoint | None:
    if not content:  # how retained messages are deleted
        return None
    presence = decode_presence(content)
    endpoint = parse_endpoint(presence.endpoint) if presence.endpoint else None
    if presence.site != site:
        raise ValueError(f"{presence.site} speaks in the name of {site}")
    if presence.state == "offline":
        return None
    if endpoint is None or endpoint.is_unspecified or presence.protocol != PROTOCOL:
        raise ValueError(f"{site} has no address, or speaks another protocol")
    return endpoint
