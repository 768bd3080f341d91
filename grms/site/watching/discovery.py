"""Partners as they announce themselves: where to try to reach them.

Presence is written by whoever the MQTT broker lets write it, so it is a hint and no more: which
address to try for a partner that one has chosen to have. Who answers there is known by its
certificate. A site that is not on the list does not exist here, whatever it announces, and what
strangers publish takes no memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from grms.names import Endpoint, check_site_name, parse_endpoint
from grms.telemetry.payloads import PROTOCOL, decode_presence
from grms.telemetry.topics import site_of_presence


@dataclass(frozen=True, slots=True)
class PartnerAppeared:
    """A partner is there, or has moved.

    Attributes:
        partner: its name.
        endpoint: the address to try.
    """

    partner: str
    endpoint: Endpoint


class Discovery:
    """What one knows of partners' addresses.

    Where the MQTT broker is gone nothing changes: its silence says nothing of partners. One that has vanished keeps
    its address, where open jobs are asked for; it appears anew when it is back.

    Args:
        site: this site's name.
        partners: the sites that may be partners. An endpoint is where the configuration says one
            is; presence does not change it. None where it is to be discovered.

    Raises:
        ValueError: a name is none, or the site is its own partner.
    """

    def __init__(self, site: str, partners: Mapping[str, Endpoint | None]) -> None:
        self._site = check_site_name(site)
        self._partners: dict[str, Endpoint | None] = {}
        self._there: dict[str, Endpoint] = {}
        self.set_partners(partners)

    def set_partners(self, partners: Mapping[str, Endpoint | None]) -> None:
        """Replaces the list of partners; those that are no longer on it are forgotten.

        A partner that is new on the list appears with its next presence; subscribing again lets
        the broker repeat what it has retained.

        Raises:
            ValueError: a name is none, or the site is its own partner.
        """
        for name in partners:
            if check_site_name(name) == self._site:
                raise ValueError(f"the site {name!r} cannot be its own partner")
        self._partners = dict(partners)
        self._there = {name: address for name, address in self._there.items() if name in partners}

    def received(self, topic: str, content: bytes) -> PartnerAppeared | None:
        """Takes note of a presence.

        Args:
            topic: on which it came.
            content: what came; anything, from anybody.

        Returns:
            Who has appeared by it, or has moved; None for nobody.
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
    """Returns where a site says that it is; None where it is gone.

    Raises:
        ValueError: it is no presence of the site, or none of a site that could be reached.
    """
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
