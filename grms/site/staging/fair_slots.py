"""Shares a few slots between large and small work: the smallest first, and never large work alone."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

LARGE_BYTES: Final = 16 << 20
"""Work beyond this size is large."""


class FairSlots:
    """A few slots, at least 2, as one is kept free of large work."""

    def __init__(self, places: int) -> None:
        assert places > 1, places
        self._free = places
        self._free_for_large = places - 1
        self._order = itertools.count()
        self._small: list[tuple[int, int, asyncio.Future[None]]] = []
        self._large: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncIterator[None]:
        """Waits for a slot for work of `size` bytes, and holds it until the context ends."""
        large = size > LARGE_BYTES
        told = asyncio.get_running_loop().create_future()
        heapq.heappush(self._large if large else self._small, (size, next(self._order), told))
        self._let_in()
        try:
            await told
        except asyncio.CancelledError:
            if told.done() and not told.cancelled():
                self._leave(large=large)
            raise
        try:
            yield
        finally:
            self._leave(large=large)

    def _leave(self, *, large: bool) -> None:
        self._free += 1
        self._free_for_large += large
        self._let_in()

    def _let_in(self) -> None:
        while self._free:
            if self._small:
                queue, large = self._small, False
            elif self._large and self._free_for_large:
                queue, large = self._large, True
            else:
                return
            _, _, told = heapq.heappop(queue)
            if told.cancelled():
                continue
            self._free -= 1
            self._free_for_large -= large
            told.set_result(None)
