"""The MQTT topics, all below `hanse/v1/`."""

from grms.util.names import SITE_NAME, check_site_name

ROOT = "hanse/v1"

PLAN = f"{ROOT}/broker/plan"
"""Retained."""

BROKER_PRESENCE = f"{ROOT}/broker/presence"
"""Retained."""

PRESENCE_OF_ALL = f"{ROOT}/sites/+/presence"
"""Filter for the presence of every site."""


def presence(site: str) -> str:
    """Returns the retained topic of a site's presence; `ValueError` if it is no name for a site."""
    return f"{ROOT}/sites/{check_site_name(site)}/presence"


def jobs(site: str) -> str:
    """Returns the topic of a site's job events; `ValueError` if it is no name for a site."""
    return f"{ROOT}/sites/{check_site_name(site)}/jobs"


def metrics(site: str) -> str:
    """Returns the retained topic of a site's figures, for its operators alone.

    Raises:
        ValueError: it is no name for a site.
    """
    return f"{ROOT}/sites/{check_site_name(site)}/metrics"


def site_of_presence(topic: str) -> str | None:
    """Returns the site whose presence a topic is, `None` for another topic."""
    parts = topic.split("/")
    matches = len(parts) == 5 and [*parts[:3], parts[4]] == ["hanse", "v1", "sites", "presence"]
    return parts[3] if matches and SITE_NAME.fullmatch(parts[3]) else None
