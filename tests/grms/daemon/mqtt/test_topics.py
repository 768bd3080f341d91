import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.daemon.mqtt import payloads
from tests.grms.util.test_names import SITE_NAMES


@given(SITE_NAMES)
def test_a_site_is_found_by_its_presence(site: str) -> None:
    """The topic of a site's presence, and no other of its topics, leads back to it."""
    assert payloads.site_of_presence(payloads.presence(site)) == site
    assert payloads.site_of_presence(payloads.jobs(site)) is None
    assert payloads.site_of_presence(payloads.metrics(site)) is None


def test_the_topics_are_these() -> None:
    """Watchers and access lists rely on the names."""
    assert payloads.presence("KTH") == "hanse/v1/sites/KTH/presence"
    assert payloads.jobs("KTH") == "hanse/v1/sites/KTH/jobs"
    assert payloads.metrics("KTH") == "hanse/v1/sites/KTH/metrics"
    assert payloads.PLAN == "hanse/v1/broker/plan"
    assert payloads.PRESENCE_OF_ALL == "hanse/v1/sites/+/presence"


@pytest.mark.parametrize("site", ["+", "#", "a/b", "", "a\0"])
def test_wildcards_are_no_sites(site: str) -> None:
    """A name cannot reach another site's topics."""
    for topic in (payloads.presence, payloads.jobs, payloads.metrics):
        with pytest.raises(ValueError, match="no name for a site"):
            topic(site)


@given(st.text(max_size=60) | st.from_regex(r"hanse/v1/sites/.*/presence", fullmatch=True))
def test_any_topic_is_a_presence_or_not(topic: str) -> None:
    """No topic makes an error, and only a site's exact one is its presence."""
    site = payloads.site_of_presence(topic)
    assert site is None or payloads.presence(site) == topic
