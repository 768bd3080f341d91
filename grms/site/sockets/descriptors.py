"""How many connections the descriptors of this process are enough for.

A connection takes three: where it comes from, and both ends of the way to gRPC. Where there are fewer
than the configuration wants, fewer connections are taken, so that journal, partners and operators
have theirs whatever others do. What doors beside these may take, each of one descriptor, is kept for them
(`grms.kit.descriptors`).
"""

import resource
from pathlib import Path
from typing import Final

import structlog

from grms.kit.descriptors import FIGURES_MAX, MQTT_MAX, PAGES_MAX, beside
from grms.site.configuration.config import SiteConfig
from grms.site.sockets.partners import PortLimits
from grms.site.sockets.shares import CallShares
from grms.site.sockets.users import Shares, UserSocket

PER_CONNECTION: Final = 3
"""Descriptors of one connection."""

KEPT: Final = 16
"""Descriptors kept for files that are opened for a moment, such as certificates and policies."""


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
    """Returns how many descriptors the doors of a site beside its main ones may take in all.

    Args:
        config: of the site.
    """
    own_broker = config.publishes and config.mqtt is not None and config.mqtt.embedded
    doors = (
        (config.dashboard is not None, PAGES_MAX),
        (config.metrics is not None, FIGURES_MAX),
        (own_broker, MQTT_MAX),
    )
    return sum(beside(most) for there, most in doors if there)


def affordable(there: int, partners: int, wanted: tuple[int, int]) -> tuple[int, int]:
    """Returns how many connections of users and of partners can be afforded, at least one of each.

    Args:
        there: descriptors that may still be opened.
        partners: to which there will be connections, too.
        wanted: connections of users, and of partners.
    """
    room = max(0, there - KEPT - partners) // PER_CONNECTION
    total = sum(wanted)
    if room >= total:
        return wanted
    users = max(1, room * wanted[0] // max(1, total)) if wanted[0] else 0
    others = max(1, room - users) if wanted[1] else 0
    return min(users, wanted[0]), min(others, wanted[1])


def connection_limits(
    config: SiteConfig, log: structlog.typing.FilteringBoundLogger
) -> tuple[Shares, PortLimits]:
    """Returns how connections are shared out; fewer where there are not enough descriptors.

    Args:
        config: of the site.
        log: where the lack of descriptors is told.
    """
    limits, listen = config.limits, config.listen
    wanted = (limits.connections, limits.partner_connections if listen.partners else 0)
    there = available()
    # After that: the limit is what it will be.
    there = max(0, there - beside_all(config))
    users, partners = affordable(there, len(config.partners), wanted)
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
    """Returns the socket of users, whose requests have the same limits as partners'.

    Args:
        config: of the site.
        shares: of its connections.
        limits: of the port of partners.
    """
    path = Path(config.listen.users)
    return UserSocket(
        path,
        shares,
        request_s=limits.request_s,
        requests=limits.requests,
        calls=limits.calls,
    )
