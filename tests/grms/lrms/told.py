"""What an adapter of a batch system tells its site, as tests wait for it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from grms.lrms.base import Ended, LoadSeen, LrmsEvent
from grms.lrms.batch.adapter import BatchLrms
from tests.waiting import TIME_OUT_S, meanwhile, until


@asynccontextmanager
async def followed(lrms: BatchLrms) -> AsyncIterator[None]:
    """Follows a batch system within the context, which has a time limit."""
    await lrms.open()
    async with meanwhile(lrms.run()):
        async with asyncio.timeout(TIME_OUT_S):
            yield


class Told:
    """A site of a test's own.

    Attributes:
        lrms: its adapter.
        events: what that has told.
    """

    lrms: BatchLrms
    events: list[LrmsEvent]

    def of(self, key: str, *kinds: type[LrmsEvent]) -> list[LrmsEvent]:
        """Returns what was told of a job; of some kinds, if any are named."""
        mine = [event for event in self.events if getattr(event, "key", None) == key]
        return [event for event in mine if isinstance(event, kinds or LrmsEvent)]

    async def told(self, key: str, kind: type[LrmsEvent], times: int = 1) -> LrmsEvent:
        """Returns the event of a kind about a job when it has been told so often."""
        await self.until(lambda: len(self.of(key, kind)) >= times)
        return self.of(key, kind)[times - 1]

    async def ended(self, key: str) -> Ended:
        """Returns the end of a job."""
        event = await self.told(key, Ended)
        assert isinstance(event, Ended)
        return event

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns when a condition holds."""
        async with asyncio.timeout(TIME_OUT_S):
            await until(condition)

    async def looks(self, count: int) -> None:
        """Returns after so many further looks."""
        seen = sum(isinstance(event, LoadSeen) for event in self.events) + count
        await self.until(lambda: sum(isinstance(each, LoadSeen) for each in self.events) >= seen)

    def runs(self, key: str) -> int:
        """Returns how often a job's script was begun."""
        path = self.lrms.folders.place(key) / "runs"
        return len(path.read_text().splitlines()) if path.exists() else 0
