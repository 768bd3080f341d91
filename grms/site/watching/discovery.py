"""Partners as they announce themselves: where to try to reach them.

Presence is written by whoever the MQTT broker lets write it, so it is a hint and no more: which
address to try for a partner that one has chosen to have. Who answers there is known by its
certificate. A site that is not on the list does not exist here, whatever it announces, and what
strangers publish takes no memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from grms.names import Endpoint, check_site_name, parse_endpoint
from grms.telemetry.payloads import PROTOCOL, decode_presence
from grms.telemetry.topics import site_of_presence


class Ignored(StrEnum):
    """Why a presence was ignored."""

    NO_PRESENCE = "no_presence"
    """It came on another topic."""

    OWN = "own"
    """It is this site's own."""

    NOT_LISTED = "not_listed"
    """It is of no partner."""

    MALFORMED = "malformed"
    """It cannot be read."""

    OTHER_NAME = "other_name"
    """It speaks of another site than its topic does."""

    NO_ENDPOINT = "no_endpoint"
    """It is of a site that partners do not reach, or has an address that stands for all."""

    OTHER_PROTOCOL = "other_protocol"
    """It is of a daemon that speaks another protocol version."""


@dataclass(frozen=True, slots=True)
class PartnerAppeared:
    """A partner is there, or has moved.

    Attributes:
        partner: its name.
        endpoint: the address to try.
    """

    partner: str
    endpoint: Endpoint


@dataclass(frozen=True, slots=True)
class PartnerVanished:
    """A partner says, or the MQTT broker in its name, that it is gone.

    Attributes:
        partner: its name.
    """

    partner: str


PartnerChange = PartnerAppeared | PartnerVanished


class Discovery:
    """What one knows of partners' addresses.

    Where the MQTT broker is gone nothing changes: its silence says nothing of partners.

    Args:
        site: this site's name.
        partners: the sites that may be partners. An endpoint is where the configuration says one
            is; presence does not change it. None where it is to be discovered.

    Attributes:
        ignored: how often a presence was ignored, by reason.

    Raises:
        ValueError: a name is none, or the site is its own partner.
    """

    def __init__(self, site: str, partners: Mapping[str, Endpoint | None]) -> None:
        self.ignored: dict[Ignored, int] = dict.fromkeys(Ignored, 0)
        self._site = check_site_name(site)
        self._partners: dict[str, Endpoint | None] = {}
        self._announced: dict[str, Endpoint] = {}
        self._gone: set[str] = set()
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
        self._announced = {
            name: endpoint for name, endpoint in self._announced.items() if name in partners
        }
        self._gone &= partners.keys()

    def endpoint(self, partner: str) -> Endpoint | None:
        """Returns the address to try for a partner; None if it is not known, or not a partner.

        A partner that has vanished keeps its address: open jobs are asked for there.
        """
        return self._partners.get(partner) or self._announced.get(partner)

    def endpoints(self) -> Mapping[str, Endpoint]:
        """Returns every partner whose address is known."""
        found = ((name, self.endpoint(name)) for name in self._partners)
        return {name: endpoint for name, endpoint in found if endpoint is not None}

    def received(self, topic: str, content: bytes) -> PartnerChange | None:
        """Takes note of a presence.

        Args:
            topic: on which it came.
            content: what came; anything, from anybody.

        Returns:
            What has changed by it, None for nothing.
        """
        found = self._read(topic, content)
        if isinstance(found, Ignored):
            self.ignored[found] += 1
            return None
        site, endpoint = found
        return self._vanish(site) if endpoint is None else self._appear(site, endpoint)

    def _read(self, topic: str, content: bytes) -> tuple[str, Endpoint | None] | Ignored:
        """Returns whose presence it is and where the site says it is, None for gone."""
        site = site_of_presence(topic)
        if site is None or site not in self._partners:
            own = site == self._site
            return (
                Ignored.NO_PRESENCE if site is None else Ignored.OWN if own else Ignored.NOT_LISTED
            )
        return self._read_of(site, content)

    @staticmethod
    def _read_of(site: str, content: bytes) -> tuple[str, Endpoint | None] | Ignored:
        if not content:  # how retained messages are deleted
            return site, None
        try:
            presence = decode_presence(content)
            endpoint = parse_endpoint(presence.endpoint) if presence.endpoint else None
        except ValueError:
            return Ignored.MALFORMED
        if endpoint is not None and endpoint.is_unspecified:
            endpoint = None
        if presence.site != site:
            return Ignored.OTHER_NAME
        if presence.state == "offline":
            return site, None
        if endpoint is None:
            return Ignored.NO_ENDPOINT
        return (site, endpoint) if presence.protocol == PROTOCOL else Ignored.OTHER_PROTOCOL

    def _appear(self, site: str, endpoint: Endpoint) -> PartnerChange | None:
        before, was_gone = self.endpoint(site), site in self._gone
        unheard = site not in self._announced
        self._announced[site] = endpoint
        self._gone.discard(site)
        now = self._partners[site] or endpoint
        return PartnerAppeared(site, now) if unheard or was_gone or now != before else None

    def _vanish(self, site: str) -> PartnerChange | None:
        if site in self._gone or site not in self._announced:
            return None
        self._gone.add(site)
        return PartnerVanished(site)
