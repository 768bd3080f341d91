"""How many connections the file descriptors of this process allow.

A connection takes three: its origin, and both ends of the way to gRPC. One that has come over a tunnel which this site
keeps open takes five: the tunnel and one more end of the way from it. A partner that is not called at its address takes
four: the socket that stands for it, both ends of the way there, and what is behind it. If there are fewer than the
configuration wants, fewer connections are accepted, so that journal, partners and operators always
have theirs. Those of auxiliary listeners, one descriptor each, are reserved too
(`grms.daemon.process`).
"""

import resource
from pathlib import Path
from typing import Final

import structlog

from grms.daemon.process import FIGURES_MAX, MQTT_MAX, PAGES_MAX, REST_MAX, beside
from grms.daemon.tunnel.waiter import IDLE
from grms.site.config.schema import SiteConfig
from grms.site.gateway.open_calls import CallShares
from grms.site.gateway.peer_listener import PortLimits
from grms.site.gateway.user_listener import Shares, UserSocket

PER_CONNECTION: Final = 3
PER_TUNNELLED: Final = 5
PER_WAY: Final = 4
KEPT: Final = 16
"""Reserved for files opened briefly, such as certificates and policies."""


def available() -> int:
    """Returns how many descriptors may still be opened, after the limit was raised to its most."""
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != most:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        except (ValueError, OSError):
            most = limit  # a sandbox may forbid it
    return most - sum(1 for _ in Path("/proc/self/fd").iterdir())


def beside_all(config: SiteConfig) -> int:
    """Returns the most descriptors that a site's auxiliary listeners may take in all."""
    own_broker = config.publishes and config.mqtt is not None and config.mqtt.embedded
    doors = (
        (config.dashboard is not None, PAGES_MAX),
        (config.metrics is not None, FIGURES_MAX),
        (own_broker, MQTT_MAX),
        (config.rest is not None, REST_MAX),
    )
    return sum(beside(most) for there, most in doors if there)


def outward(config: SiteConfig) -> int:
    """Returns the descriptors with which a site calls its partners, and has them call it over tunnels that wait."""
    direct = config.outgoing.proxy is None
    called = sum(1 if direct and one.way == "address" else PER_WAY for one in config.partners)
    places = sum(config.keeps_open(one) for one in config.partners)
    places += any(one.way == "relay" for one in config.partners)
    return called + IDLE * places


def affordable(
    there: int, reserved: int, wanted: tuple[int, int], *, tunnelled: bool = False
) -> tuple[int, int]:
    """Returns affordable connections of users and of partners, at least one of each.

    `there` are the descriptors still free, `reserved` those for calls of partners, `wanted` the
    configured connections of users and of partners; the latter may be `tunnelled`.
    """
    per_partner = PER_TUNNELLED if tunnelled else PER_CONNECTION
    room = max(0, there - KEPT - reserved)
    total = PER_CONNECTION * wanted[0] + per_partner * wanted[1]
    if room >= total:
        return wanted
    users = max(1, room * wanted[0] // max(1, total)) if wanted[0] else 0
    others = max(1, (room - PER_CONNECTION * users) // per_partner) if wanted[1] else 0
    return min(users, wanted[0]), min(others, wanted[1])


def connection_limits(
    config: SiteConfig, log: structlog.typing.FilteringBoundLogger
) -> tuple[Shares, PortLimits]:
    """Returns the limits of connections, reduced if there are not enough descriptors."""
    limits = config.limits
    wanted = (limits.connections, limits.partner_connections if config.is_called else 0)
    there = available()
    # After that: the limit is what it will be.
    there = max(0, there - beside_all(config))
    tunnelled = any(config.keeps_open(one) or one.way == "relay" for one in config.partners)
    users, partners = affordable(there, outward(config), wanted, tunnelled=tunnelled)
    if (users, partners) != wanted:
        log.warning(
            "descriptors_limit_connections",
            descriptors=there,
            users=users,
            partners=partners,
            wanted=wanted,
            remedy="raise the limit of open files (ulimit -n, LimitNOFILE=)",
        )
    shares = Shares.of(users, limits.connections_per_user, limits.connections_reserved)
    port = PortLimits(
        connections=max(1, partners),
        connections_per_site=limits.partner_connections_per_site,
        handshake_s=limits.request_timeout_s,
        request_s=limits.request_timeout_s,
        requests=max(1, limits.calls // 8),
        calls=CallShares.of(limits.calls, limits.message_bytes),
    )
    return shares, port


def user_socket(config: SiteConfig, shares: Shares, limits: PortLimits) -> UserSocket:
    """Returns the socket of users, whose requests have the same limits as partners'."""
    path = Path(config.listen.users)
    return UserSocket(
        path,
        shares,
        request_s=limits.request_s,
        requests=limits.requests,
        calls=limits.calls,
    )
