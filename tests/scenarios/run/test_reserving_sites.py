"""A scenario's sites reserve as a daemon's state does, on the scenario's clock."""

import math

import pytest

from grms.site.model.jobs import Request
from grms.site.model.lifecycle import ReservationState
from grms.site.model.reservations import Resource
from scenarios.run.reserving_sites import RefusedError, ReservingSites


def two_sites() -> ReservingSites:
    """Returns a site with a resource of two processors, and one with none."""
    return ReservingSites({"a": [Resource("gpu", processors=2, speed=2.0)], "b": []})


def test_what_is_reserved_and_launched_is_heard_of() -> None:
    """Every change once, with its site, in the order in which it happened."""
    sites = two_sites()
    assert sites.next_time == math.inf
    number = sites.book("a", "k", "gpu", (10.0, 20.0), processors=1, now=0.0)
    assert sites.book("a", "k", "gpu", (10.0, 20.0), processors=1, now=0.0) == number
    sites.launch(("a", number), "go", Request(1, 8.0), 24.0, 0.0)
    sites.move(("a", number), (10.0, 20.0), (10.0, 21.0), 5.0)
    assert sites.next_time == 10.0
    sites.settle(9.0)
    sites.settle(10.0)
    sites.settle(99.0)
    heard = [(site, one.state, one.end_time) for site, one in sites.heard]
    assert [(site, state) for site, state, _ in heard] == [
        ("a", ReservationState.BOOKED),
        ("a", ReservationState.LAUNCHED),
        ("a", ReservationState.LAUNCHED),
        ("a", ReservationState.RUNNING),
        ("a", ReservationState.ENDED),
    ]
    assert heard[-1][-1] == 21.0, "it runs to the end of its reservation"


def test_what_cannot_be_had_is_refused() -> None:
    """With the site's own reason; what time has changed by then is heard of all the same."""
    sites = two_sites()
    number = sites.book("a", "k", "gpu", (10.0, 20.0), processors=2, now=0.0)
    with pytest.raises(RefusedError, match="2 processors of gpu are not free"):
        sites.book("a", "l", "gpu", (10.0, 20.0), processors=2, now=0.0)
    with pytest.raises(RefusedError, match="there is no resource 'gpu' here"):
        sites.book("b", "l", "gpu", (10.0, 20.0), processors=2, now=0.0)
    sites.release(("a", number), 1.0)
    assert sites.book("a", "l", "gpu", (10.0, 20.0), processors=2, now=2.0) == 2
    sites.heard.clear()
    with pytest.raises(RefusedError, match="reservation 2 is expired"):
        sites.launch(("a", 2), "go", Request(1, 8.0), 8.0, 20.0)
    assert [one.state for _, one in sites.heard] == [ReservationState.EXPIRED]
