"""Keeps connections open over which a site that listens to nobody is called."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import numpy as np

from grms.daemon.pacing import Backoff, BackoffSettings
from grms.daemon.tunnel.stream import GO, OK, WAIT, Stream, TunnelError

IDLE: Final = 2
"""Connections that wait at a time: the next caller finds one while another is opened for the one after."""

USED_MAX: Final = 64
"""Beyond so many in use no further ones are opened."""

PING_S: Final = 10.0
"""Interval at which one that waits says that it is there: shorter than any firewall forgets it."""

SILENCE_MAX_S: Final = 25.0
"""One to which the other side says nothing for so long is given up."""

ANSWER_S: Final = 10.0
"""Within this the other side says whether one may wait."""

PAUSES: Final = BackoffSettings(first_s=0.2, most_s=10.0)
"""Between attempts."""

EMPTY_S: Final = 0.05
"""After a call that has said nothing. It is short: at a relay one caller would keep others waiting by such calls."""


class Waiter:
    """Keeps some connections to one place waiting.

    Attributes:
        where: the partner or relay, for a person.
        waiting: how many wait now.
        used: how many are in use now.
        problem: why none waits, for a person; empty if some do.

    Args:
        dial: opens a tunnel to that place.
        deliver: serves a caller's connection until it is over: the connection, and who calls as that place says it.
    """

    def __init__(
        self,
        where: str,
        dial: Callable[[], Awaitable[Stream]],
        deliver: Callable[[Stream, str], Awaitable[None]],
        *,
        rng: np.random.Generator,
        on_problem: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        self.where = where
        self.waiting = self.used = 0
        self.problem = "not reached yet"
        self._dial = dial
        self._deliver = deliver
        self._backoff = Backoff(PAUSES, rng)
        self._on_problem = on_problem
        self._changed = asyncio.Event()
        self._useless = 0
        self._empty = False
        self._streams: set[Stream] = set()

    async def run(self) -> None:
        """Keeps them until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                if self._useless > IDLE:
                    # The last ones were taken, and dropped before a word: without pauses that would go on for ever.
                    await self._pause()
                elif self._empty:
                    self._empty = False
                    await asyncio.sleep(EMPTY_S)
                if self.waiting >= IDLE or self.used >= USED_MAX:
                    await self._changed.wait()
                    continue
                try:
                    stream = await self._opened()
                except TunnelError as error:
                    self._tell(str(error))
                    await self._pause()
                    continue
                self._tell("")
                self.waiting += 1
                group.create_task(self._hold(stream), name=f"tunnel to {self.where}")

    def renew(self) -> None:
        """Opens those anew that nobody uses."""
        for stream in self._streams:
            stream.close()

    def _tell(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self._on_problem(self.where, problem)

    def _count(self, *, useful: bool) -> None:
        if useful:
            self._useless = 0
            self._backoff.reset()
        else:
            self._useless += 1

    async def _pause(self) -> None:
        # To its end, as each connection that is dropped is a change.
        await asyncio.sleep(self._backoff.next_s())

    async def _opened(self) -> Stream:
        stream = await self._dial()
        await stream.ask(WAIT, wanted=OK, timeout_s=ANSWER_S)
        return stream

    async def _hold(self, stream: Stream) -> None:
        # Counted as waiting from before it has begun.
        self._streams.add(stream)
        caller = None
        try:
            caller = await self._called(stream)
        except TunnelError:
            self._count(useful=False)
            stream.close()
        except asyncio.CancelledError:
            stream.abort()
            raise
        finally:
            self._streams.discard(stream)
            self.waiting -= 1
            self._changed.set()
        if caller is None:
            return
        self.used += 1
        try:
            stream.say(GO)
            await self._deliver(stream, caller)
            self._empty = not stream.carried
        except OSError as error:  # as where there are no descriptors left
            self._count(useful=False)
            self._tell(f"a call of {caller} is not served: {error.strerror or error}")
        finally:
            stream.close()
            self.used -= 1
            self._changed.set()

    async def _called(self, stream: Stream) -> str:
        pings = asyncio.create_task(_ping(stream), name="ping")
        try:
            while True:
                word, caller = await stream.line(SILENCE_MAX_S)
                if word == GO:
                    return caller
                if word:
                    raise TunnelError(f"it says {word!r} while one waits")
                self._count(useful=True)
        finally:
            pings.cancel()


async def _ping(stream: Stream) -> None:
    while True:
        await asyncio.sleep(PING_S)
        stream.say()
