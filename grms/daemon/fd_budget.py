"""Connection limits of auxiliary listeners: pages, metrics, an MQTT broker.

Limits connections on auxiliary listeners, which every local user can reach, so that they cannot exhaust the file
descriptors needed for users, partners and the journal.
"""

import resource
from typing import Final

PART: Final = 16
"""A listener gets at most one in this many descriptors."""

LEAST: Final = 2
"""Least number of connections."""

PAGES_MAX: Final = 64
"""Most concurrent connections to pages."""

FIGURES_MAX: Final = 16
"""Most concurrent connections to the metrics."""

REST_MAX: Final = 256
"""Most concurrent connections to the HTTP interface for users."""

MQTT_MAX: Final = 256
"""Most connections to the daemon's MQTT broker."""

BACKLOG: Final = 16
"""Most connections accepted at once, before they are counted."""


def beside(most: int) -> int:
    """Returns the connection limit of a listener, at most `most`, given the process's descriptors."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return most
    return min(most, max(LEAST, limit // PART))
