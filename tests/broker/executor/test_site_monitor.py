"""What a site's words and its silence come to; `test_dispatcher` does the same over real gRPC."""

from typing import Any

import pytest
import structlog

from broker.executor.base import SiteUnavailable
from broker.executor.site_monitor import Patience, SiteMonitor
from broker.scheduler.events import Event, SiteDown, SiteLost
from grms.daemon.clock import ScaledClock
from tests.waiting import meanwhile, until


def monitor(site: Any, events: list[Event], patience: Patience) -> SiteMonitor:
    """Returns one that notes what it tells."""
    log = structlog.get_logger()
    return SiteMonitor(
        "riga",
        site,
        events.append,
        lambda _site, _known: None,
        lambda _site: None,
        clock=ScaledClock(1.0, 0.0),
        log=log,
        patience=patience,
    )


def test_silence_is_told_in_two_steps() -> None:
    """A site is down once, and lost once, each after its time and never the second alone."""
    events: list[Event] = []
    one = monitor(None, events, Patience(10.0, 100.0))

    def told(seconds: float, before: int) -> tuple[int, list[type[Event]]]:
        events.clear()
        after = one._silence(seconds, before, "why")
        return after, [type(event) for event in events]

    assert told(9.9, 0) == (0, [])
    assert told(10.0, 0) == (1, [SiteDown])
    assert told(99.9, 1) == (1, [])
    assert told(100.0, 1) == (2, [SiteLost])
    assert told(100.0, 0) == (2, [SiteDown, SiteLost])
    assert told(1e9, 2) == (2, [])


class Stream:
    """What a site says: one word, then silence for good; it counts how often it was closed."""

    closed = 0

    def __init__(self) -> None:
        self._said = False

    def __aiter__(self) -> "Stream":
        """Returns itself."""
        return self

    async def __anext__(self) -> None:
        """Says one word."""
        if self._said:
            raise SiteUnavailable("it is gone")
        self._said = True

    async def aclose(self) -> None:
        """Counts."""
        type(self).closed += 1


class Bare:
    """The same without a way to close it."""

    __init__, __aiter__, __anext__ = Stream.__init__, Stream.__aiter__, Stream.__anext__


@pytest.mark.parametrize("kind", [Stream, Bare])
async def test_a_conversation_that_has_ended_is_closed_and_begun_again(kind: type) -> None:
    """Where it can be closed."""
    begun = []

    class Site:
        def watch(self) -> object:
            begun.append(kind())
            return begun[-1]

    Stream.closed = 0
    following = monitor(Site(), [], Patience(0.2)).follow()
    async with meanwhile(following):
        await until(lambda: len(begun) > 2)
        ended = range(len(begun) - 1, len(begun) + 1)
        assert Stream.closed in (ended if kind is Stream else (0,))
