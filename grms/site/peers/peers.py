"""The links to all partners, and what is sent through them."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from grms.security.tls import CertificateTrust
from grms.site.model.commands import Send
from grms.site.peers.lock_step import LockStepSender
from grms.site.peers.peer import PeerClient, PeerClientSettings
from grms.site.peers.replies import ChannelMaker, Problems
from grms.site.peers.sender import Sender
from grms.site.runtime.event_loop import Engine


class PeerClients:
    """The links to all partners; the engine sends through them.

    Attributes:
        trust: whether certificates are believed still; None without TLS.

    Args:
        settings: how partners are dealt with.
        addresses: of the partners, by name; `None` if unknown yet.
        place: tells what to connect to for a partner at an address.
    """

    def __init__(
        self,
        settings: PeerClientSettings,
        engine: Engine,
        addresses: Mapping[str, str | None],
        make_channel: ChannelMaker,
        *,
        place: Callable[[str, str], str | None] = lambda _, address: address,
        problems: Problems | None = None,
        trust: CertificateTrust | None = None,
    ) -> None:
        self.trust = trust
        self.instance = settings.instance
        self._place = place
        self.links: dict[str, PeerClient] = {}
        rng, told = np.random.default_rng(), problems or Problems()
        self._senders: dict[str, Sender] = {}
        self._make_link = partial(
            PeerClient, settings, engine, make_channel=make_channel, rng=rng, problems=told
        )
        kind = LockStepSender if settings.virtual else Sender
        self._make_sender = partial(kind, settings=settings, engine=engine)
        self._group: asyncio.TaskGroup | None = None
        self.list_partners(addresses)

    async def run(self) -> None:
        """Keeps the links until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for link in self.links.values():
                    link.begin(group)
                await asyncio.get_running_loop().create_future()
            finally:
                self._group = None

    def send(self, command: Send) -> None:
        """Begins to send; the outcome comes back as an event. Nothing is sent while closing."""
        sender = self._senders.get(command.partner)
        if self._group is not None and sender is not None:
            sender.send(command, self._group)

    def heard(self, partner: str) -> None:
        """Takes note that a partner has called."""
        self.links[partner].heard()

    def introduced(self, partner: str, instance: int) -> None:
        """Takes note of which instance of a partner's daemon has said who it is."""
        self.links[partner].introduced(instance)

    def move(self, partner: str, address: str) -> None:
        """Notes that a partner is at another address, unless it is no partner."""
        if (link := self.links.get(partner)) is not None and (
            place := self._place(partner, address)
        ) is not None:
            link.move(place)

    def list_partners(self, addresses: Mapping[str, str | None]) -> None:
        """Replaces the list of partners: links are made, moved and given up accordingly.

        The link of one that is no longer listed stays, as open questions wait on it, but connects
        to no one. `addresses` are by name, `None` if unknown or announced by the partner.
        """
        for name, address in addresses.items():
            link = self.links.get(name)
            if link is None:
                link = self.links[name] = self._make_link(name=name, address=address)
                self._senders[name] = self._make_sender(link)
                if self._group is not None:
                    link.begin(self._group)
            elif address is not None:
                link.move(address)
        for name in self.links.keys() - addresses.keys():
            self.links[name].give_up()

    def renew(self) -> None:
        """Begins every connection anew, with the certificate that there is now."""
        for link in self.links.values():
            link.renew()

    @property
    def reports_open(self) -> int:
        """Ends of partners' jobs that have not been acknowledged."""
        return sum(sender.reports_open for sender in self._senders.values())
