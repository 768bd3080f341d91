"""How many connections a door beside the main ones may take: pages, figures, an MQTT broker.

Each takes one descriptor of the process. Whoever reaches such a door, every local user at that, is not to
use up those that the daemon needs for its users, its partners and its journal.
"""

import resource
from typing import Final

PART: Final = 16
"""Such a door has one of so many descriptors at most."""

LEAST: Final = 2
"""Connections that it has however few there are."""

PAGES_MAX: Final = 64
"""Most connections to pages at one time."""

FIGURES_MAX: Final = 16
"""Most connections to where figures are collected."""

MQTT_MAX: Final = 256
"""Most connections to an MQTT broker in the daemon."""

BACKLOG: Final = 16
"""Connections that are taken at once at most, before it is looked whether they are too many."""


def beside(most: int) -> int:
    """Returns how many connections a door may take, by the descriptors that the process may have.

    Args:
        most: that it takes where there are enough.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return most
    return min(most, max(LEAST, limit // PART))
