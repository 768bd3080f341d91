"""How partners are called that are not called at their addresses, and how a site is that listens to nobody.

| `way` of a partner | its address here is | behind which is |
|---|---|---|
| `address` | its own | its port |
| `address`, through a proxy | a Unix socket | its port, by way of the proxy |
| `callback`, or it has opened a tunnel here | a Unix socket | a tunnel that it has opened (`hub`) |
| `relay` | a Unix socket | a tunnel to the relay, and one from there that it has opened |

Above these sockets everything is as ever: gRPC, TLS, and who is at the other end, by certificate. For the other direction
this site keeps tunnels open at partners and at the relay; what comes over them goes to its own port of partners.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import structlog

from grms.daemon.pacing import Seldom
from grms.daemon.socket_folder import SocketFolder
from grms.daemon.tunnel.dialing import Outside
from grms.daemon.tunnel.hub import TunnelHub
from grms.daemon.tunnel.local_endpoint import LocalEndpoint
from grms.daemon.tunnel.stream import CALL, GO, Stream, TunnelError, join
from grms.daemon.tunnel.waiter import Waiter
from grms.security.tls import CertificateTrust
from grms.site.config.connections import PartnerConfig
from grms.site.config.schema import SiteConfig
from grms.util.names import parse_endpoint

Log = structlog.typing.FilteringBoundLogger

RELAYED_S = 15.0
"""A relay has said by then whether a partner can be called."""

PROBLEMS_LOGGED_PER_S = 1 / 30
"""Rate of logging why nobody can call this site over a place."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a partner and this site reach each other.

    Attributes:
        word: "address", "proxy", "callback" or "relay".
        tunnels: over which one of the two is called, waiting or in use, as far as this site sees them.
        problem: why the partner cannot call this site, for a person; empty if nothing is known.
    """

    word: str
    tunnels: int = 0
    problem: str = ""


class Tunnels:
    """The ways of one site.

    Attributes:
        hub: the tunnels of partners that wait here; None where this site listens to nobody.
        take: serves a connection that has come over a tunnel: its socket, and where it comes from.
        on_arrived: is told how a partner is called from now on, as it has opened a tunnel here.

    Args:
        trust: whose certificates are believed; None without TLS, and there are no tunnels.
    """

    def __init__(self, config: SiteConfig, trust: CertificateTrust | None, log: Log) -> None:
        self.hub: TunnelHub | None = None
        self.take: Callable[[socket.socket, str], None] | None = None
        self.on_arrived: Callable[[str, str], None] = lambda *_: None
        self._config = config
        self._site = config.name
        self._trust = trust
        self._log = log
        self._logged = Seldom(PROBLEMS_LOGGED_PER_S)
        proxy = config.outgoing.proxy
        self._outside = Outside(None if proxy is None else parse_endpoint(proxy))
        self._relay = config.outgoing.relay
        self._partners: dict[str, PartnerConfig] = {}
        self._addresses: dict[str, str | None] = {}
        self._folder: SocketFolder | None = None
        self._endpoints: dict[str, LocalEndpoint] = {}
        self._group: asyncio.TaskGroup | None = None
        self._waiters: dict[str, tuple[Waiter, asyncio.Task[None]]] = {}
        self._rng = np.random.default_rng()

    # --- how partners are called ---------------------------------------------------------------

    def places(self, partners: Iterable[PartnerConfig]) -> dict[str, str | None]:
        """Takes the list of partners; returns what gRPC is to connect to for each, `None` if that is not known."""
        self._partners = {one.name: one for one in partners}
        found = {}
        for name, one in self._partners.items():
            moved = one.address is not None and one.address != self._addresses.get(name)
            found[name] = self.place(name, one.address)
            if moved and name in self._waiters:
                self._waiters[name][0].renew()
            if moved and name in self._endpoints:
                self._endpoints[name].hang_up()
        self._keep()
        return found

    def place(self, partner: str, address: str | None) -> str | None:
        """Returns what gRPC is to connect to for a partner whose address is this one, `None` if that is not known."""
        if address is not None:
            self._addresses[partner] = address
        way = self._partners[partner].way
        if partner not in self._endpoints and way == "address":
            if self._outside.proxy is None:
                return address
            if self._addresses.get(partner) is None:
                return None
        return self._endpoint(partner).address

    def problem(self, partner: str) -> str:
        """Returns why the last connection to a partner has not come about, as far as that is a matter of its way."""
        endpoint = self._endpoints.get(partner)
        return "" if endpoint is None else endpoint.problem

    def shown(self, partner: str) -> str:
        """Returns where a partner is, for a person; empty if that is not known."""
        one = self._partners.get(partner)
        if one is not None and one.way == "relay" and self._relay is not None:
            return self._relay.address
        return self._addresses.get(partner) or ""

    def way(self, partner: str) -> Way:
        """Returns how a partner and this site reach each other."""
        one = self._partners.get(partner)
        if one is None:
            return Way("address")
        word: str = one.way
        tunnels = 0 if self.hub is None else self.hub.count(partner)
        if word == "address" and tunnels:
            word = "callback"
        elif word == "address" and self._outside.proxy is not None:
            word = "proxy"
        waiter, _ = self._waiters.get("" if word == "relay" else partner, (None, None))
        if waiter is None:
            return Way(word, tunnels)
        problem = waiter.problem and f"{partner} cannot call this site: {waiter.problem}"
        return Way(word, tunnels + waiter.waiting + waiter.used, problem)

    def arrived(self, partner: str) -> None:
        """Notes that a partner has opened a tunnel here: it wants to be called over that."""
        self.on_arrived(partner, self._endpoint(partner).address)

    def _endpoint(self, partner: str) -> LocalEndpoint:
        endpoint = self._endpoints.get(partner)
        if endpoint is None:
            if self._folder is None:
                self._folder = SocketFolder()
            path = self._folder.path / f"{len(self._endpoints)}.sock"
            endpoint = LocalEndpoint(path, partial(self._connect, partner))
            self._endpoints[partner] = endpoint
            if self._group is not None:
                self._group.create_task(endpoint.open(), name=f"way to {partner}")
        return endpoint

    async def _connect(self, partner: str, stream: Stream) -> None:
        one = self._partners.get(partner)
        way = "address" if one is None else one.way
        if self.hub is not None and (way == "callback" or self.hub.knows(partner)):
            await self.hub.carry(partner, self._site, stream)
            return
        if way == "relay":
            await join(stream, await self._relayed(partner))
            return
        address = self._addresses.get(partner)
        if address is None:
            raise TunnelError(f"{partner} has no address")
        await join(stream, await self._outside.connect(parse_endpoint(address)))

    async def _relayed(self, partner: str) -> Stream:
        stream = await self._to_relay()
        await stream.ask(CALL, partner, wanted=GO, timeout_s=RELAYED_S)
        return stream

    async def _to_relay(self) -> Stream:
        assert self._relay is not None
        assert self._trust is not None
        endpoint = parse_endpoint(self._relay.address)
        return await self._outside.tunnel(endpoint, self._relay.name, self._trust)

    # --- how this site is called ---------------------------------------------------------------

    async def run(self) -> None:
        """Serves the ways, and keeps tunnels open, until it is cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for endpoint in self._endpoints.values():
                    await endpoint.open()
                self._keep()
                await asyncio.get_running_loop().create_future()
        finally:
            self._group = None
            for endpoint in self._endpoints.values():
                await endpoint.close()
            if self._folder is not None:
                self._folder.close()

    def renew(self) -> None:
        """Opens tunnels anew that wait, with the certificate that there is now."""
        for waiter, _ in self._waiters.values():
            waiter.renew()

    def _keep(self) -> None:
        if self._group is None or self._trust is None or self.take is None:
            return
        wanted = {
            name: name for name, one in self._partners.items() if self._config.keeps_open(one)
        }
        if self._relay is not None and any(one.way == "relay" for one in self._partners.values()):
            wanted[""] = f"the relay {self._relay.name}"
        for key in self._waiters.keys() - wanted.keys():
            self._waiters.pop(key)[1].cancel()
        for key in wanted.keys() - self._waiters.keys():
            where = wanted[key]
            waiter = Waiter(
                where,
                partial(self._to_partner, key) if key else self._to_relay,
                partial(self._deliver, partial(origin_of, key, where)),
                rng=self._rng,
                on_problem=self._tell,
            )
            task = self._group.create_task(waiter.run(), name=f"tunnels to {where}")
            self._waiters[key] = waiter, task

    async def _to_partner(self, partner: str) -> Stream:
        address = self._addresses.get(partner)
        assert self._trust is not None
        if address is None:
            raise TunnelError(f"{partner} has no address")
        return await self._outside.tunnel(parse_endpoint(address), partner, self._trust)

    async def _deliver(self, origin: Callable[[str], str], stream: Stream, caller: str) -> None:
        here, there = socket.socketpair()
        try:
            here.setblocking(False)
            there.setblocking(False)
            assert self.take is not None
            self.take(there, origin(caller))
            reader, writer = await asyncio.open_unix_connection(sock=here)
        except BaseException:
            here.close()
            raise
        await join(stream, Stream(reader, writer))

    def _tell(self, where: str, problem: str) -> None:
        if not problem:
            self._log.info("tunnels_open", to=where)
        elif (more := self._logged.to_tell(where)) is not None:
            self._log.warning("no_tunnels", to=where, problem=problem, **more)


def origin_of(partner: str, where: str, caller: str) -> str:
    """Returns where a call over a tunnel comes from, by which connections are counted until TLS says who it is.

    Over a tunnel to a partner that partner alone can call, whatever it says; a relay says who does.

    Args:
        partner: to which the tunnel leads; empty for a relay.
        where: the tunnel leads to, for a person.
        caller: as the other end says.
    """
    return partner or f"{caller}, by way of {where}"
