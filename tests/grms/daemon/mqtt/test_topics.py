import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.daemon.mqtt import topics
from tests.grms.util.test_names import SITE_NAMES


@given(SITE_NAMES)
def test_a_site_is_found_by_its_presence(site: str) -> None:
    """The topic of a site's presence, and no other of its topics, leads back to it."""
    assert topics.site_of_presence(topics.presence(site)) == site
    assert topics.site_of_presence(topics.jobs(site)) is None
    assert topics.site_of_presence(topics.metrics(site)) is None


def test_the_topics_are_these() -> None:
    """Watchers and access lists rely on the names."""
    assert topics.presence("KTH") == "hanse/v1/sites/KTH/presence"
    assert topics.jobs("KTH") == "hanse/v1/sites/KTH/jobs"
    assert topics.metrics("KTH") == "hanse/v1/sites/KTH/metrics"
    assert topics.PLAN == "hanse/v1/broker/plan"
    assert topics.PRESENCE_OF_ALL == "hanse/v1/sites/+/presence"


@pytest.mark.parametrize("site", ["+", "#", "a/b", "", "a\0"])
def test_wildcards_are_no_sites(site: str) -> None:
    """A name cannot reach another site's topics."""
    for topic in (topics.presence, topics.jobs, topics.metrics):
        with pytest.raises(ValueError, match="no name for a site"):
            topic(site)


@given(st.text(max_size=60) | st.from_regex(r"hanse/v1/sites/.*/presence", fullmatch=True))
def test_any_topic_is_a_presence_or_not(topic: str) -> None:
    """No topic makes an error, and only a site's exact one is its presence."""
    site = topics.site_of_presence(topic)
    assert site is None or topics.presence(site) == topic
