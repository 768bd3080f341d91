"""Where tunnels arrive: at a partner of the site that has opened them, or at a relay.

A site that cannot be called has a few connections wait here. Whoever wants to call it takes one: the daemon itself,
or, at a relay, another site.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from grms.daemon.tunnel.stream import CALL, GO, NO, OK, WAIT, Stream, TunnelError, join

FIRST_LINE_S: Final = 10.0
"""Within this the first line is to come."""

SILENCE_MAX_S: Final = 30.0
"""One that waits says something every ten seconds; without it for so long it is gone."""

GO_S: Final = 5.0
"""Within this whoever waits answers that its bytes may come."""

NEXT_S: Final = 5.0
"""So long a caller waits for the next tunnel of a site whose others are all in use."""


CALLS_MAX: Final = 16
"""Most calls of one site to another that go on at a relay at one time: others want to call it too."""


class _Waiting:
    # A tunnel that nobody has taken yet.
    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.taken = False
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def follow(self) -> None:
        """Answers that it is still there, until it was taken and its site has agreed, or it is over."""
        try:
            while not await self._agreed():
                if not self.taken:
                    self.stream.say()
                    # Whoever says much and reads nothing fills no memory.
                    await self.stream.read_by(SILENCE_MAX_S)
            if not self.answered.done():
                self.answered.set_result(None)
        except TunnelError as error:
            if not self.answered.done():
                self.answered.set_exception(error)
                self.answered.exception()  # nobody may ask
            self.stream.abort()

    async def _agreed(self) -> bool:
        word, _ = await self.stream.line(SILENCE_MAX_S)
        if word and not (word == GO and self.taken):
            raise TunnelError(f"it says {word!r} while it waits")
        return bool(word)


class TunnelHub:
    """The tunnels that wait, by site; who uses them.

    Args:
        path: of the Unix socket to which the tunnels' bytes come, once TLS has said whose they are.
        caller: tells which site is at the other end of a connection there, by its source; empty for nobody.
        refuses: tells why a site may not wait here; empty if it may.
        forbids: tells why a site may not call another through here; empty if it may. None where no calls are passed on.
        on_refused: is told why one may not wait here, or call another.
        on_waiting: is told of each site's tunnel that waits.
        on_ended: is told which site has called which through here, and how many bytes went there and back.
    """

    def __init__(
        self,
        path: Path,
        caller: Callable[[str], str],
        *,
        refuses: Callable[[str], str],
        forbids: Callable[[str, str], str] | None = None,
        on_refused: Callable[[str], None] = lambda _: None,
        on_waiting: Callable[[str], None] = lambda _: None,
        on_ended: Callable[[str, str, int, int], None] = lambda *_: None,
    ) -> None:
        self.path = path
        self._caller = caller
        self._refuses = refuses
        self._forbids = forbids
        self._on_refused = on_refused
        self._on_waiting = on_waiting
        self._on_ended = on_ended
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._used: Counter[str] = Counter()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._arrived = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._callers: dict[asyncio.Task[None], tuple[str, str]] = {}

    async def open(self) -> None:
        """Begins to take tunnels."""
        self._server = await asyncio.start_unix_server(self._serve, self.path)

    async def close(self) -> None:
        """Ends all of them."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def check(self) -> None:
        """Ends calls from site to site that are not allowed any more."""
        for task, (site, target) in self._callers.items():
            if self._forbids is not None and self._forbids(site, target):
                task.cancel()

    def waiting(self, site: str) -> int:
        """Returns how many tunnels of a site wait."""
        return len(self._waiting.get(site, ()))

    def knows(self, site: str) -> bool:
        """Returns whether a site has tunnels here, waiting or in use."""
        return bool(self.count(site))

    def count(self, site: str) -> int:
        """Returns how many tunnels of a site wait or are in use."""
        return self.waiting(site) + self._used[site]

    async def take(self, site: str, caller: str) -> Stream:
        """Returns a tunnel to a site for one caller, who has to close it.

        Raises:
            TunnelError: it has none.
        """
        while True:
            tunnel = await self._next(site)
            tunnel.taken = True
            tunnel.stream.say(GO, caller)
            # In use from now on: its site opens the next one, for which others may wait.
            self._used[site] += 1
            try:
                async with asyncio.timeout(GO_S):
                    await tunnel.answered
            except (TimeoutError, TunnelError):
                tunnel.stream.abort()
                continue
            except BaseException:
                tunnel.stream.abort()
                raise
            finally:
                self._used[site] -= 1
            return tunnel.stream

    async def _next(self, site: str) -> _Waiting:
        if not self.waiting(site) and self._used[site]:
            try:
                async with asyncio.timeout(NEXT_S), self._arrived:
                    await self._arrived.wait_for(lambda: self.waiting(site))
            except TimeoutError:
                raise TunnelError(f"all connections that {site} keeps open are in use") from None
        if not self.waiting(site):
            raise TunnelError(f"{site} has no connection open here over which it can be called")
        # The newest: older ones may be of a process that has died, or moved, without a word.
        return self._waiting[site].pop()

    async def carry(self, site: str, caller: str, stream: Stream) -> None:
        """Joins a connection of this process with a tunnel to a site, until one of them ends.

        Raises:
            TunnelError: there is none; the caller's connection is as before.
        """
        await self._join(site, stream, await self.take(site, caller))

    async def _join(self, site: str, stream: Stream, tunnel: Stream) -> None:
        self._used[site] += 1
        try:
            await join(stream, tunnel)
        finally:
            self._used[site] -= 1

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        stream = Stream(reader, writer)
        try:
            source = writer.get_extra_info("peername")
            site = self._caller(f"unix-abstract:{bytes(source)[1:].decode()}" if source else "")
            await self._admit(stream, site)
        except TunnelError as error:
            stream.say(NO, str(error))
            stream.close()
        except asyncio.CancelledError:
            stream.abort()
        finally:
            self._tasks.discard(task)

    async def _admit(self, stream: Stream, site: str) -> None:
        word, target = await stream.line(FIRST_LINE_S)
        if not site:
            raise TunnelError("the certificate names no site")
        if word == WAIT:
            self._check_allowed(self._refuses(site))
            await self._wait(stream, site)
        elif word == CALL and self._forbids is not None:
            self._check_allowed(self._forbids(site, target))
            if self._calls[site, target] >= CALLS_MAX:
                self._check_allowed(
                    f"{site} has {CALLS_MAX} calls to {target} open, as many as it may"
                )
            self._calls[site, target] += 1
            try:
                await self._call(site, target, stream)
            finally:
                self._calls[site, target] -= 1
        else:
            raise TunnelError(f"{word!r} is not known here")

    def _check_allowed(self, problem: str) -> None:
        if problem:
            self._on_refused(problem)
            raise TunnelError(problem)

    async def _call(self, site: str, target: str, stream: Stream) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._callers[task] = site, target
        try:
            tunnel = await self.take(target, site)
            stream.say(GO)
            try:
                await self._join(target, stream, tunnel)
            finally:
                self._on_ended(site, target, stream.carried, tunnel.carried)
        finally:
            del self._callers[task]

    async def _wait(self, stream: Stream, site: str) -> None:
        tunnel = _Waiting(stream)
        stream.say(OK)
        waiting = self._waiting.setdefault(site, deque())
        waiting.append(tunnel)
        try:
            async with self._arrived:
                self._arrived.notify_all()
            self._on_waiting(site)
            await tunnel.follow()
        except OSError as error:  # as where there are no descriptors left
            raise TunnelError(f"no connection can wait here now: {error.strerror}") from error
        finally:
            if tunnel in waiting:
                waiting.remove(tunnel)
            if not waiting:
                self._waiting.pop(site, None)
