"""A client with an event loop in a thread of its own, for programs that have none."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from google.protobuf.message import Message

from grms.client.asynchronous import Client
from grms.client.calls import Calls
from grms.client.unary_calls import Method, by_library

T = TypeVar("T")


class ClientThread:
    """A client that is connected, and its thread; it may be used from several threads."""

    def __init__(self, socket: Path, timeout_s: float) -> None:
        self.client = Client(socket, timeout_s=timeout_s)
        self._calls = Calls(socket, timeout_s)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="hanse client", daemon=True)
        self._thread.start()
        self.do(self._open())

    async def _open(self) -> None:
        await self.client.__aenter__()
        self._calls.open()

    async def call(self, method: Method, request: Message, left_s: float) -> Any:
        """Returns the answer of a method, by gRPC's library, within so many seconds."""
        return await by_library(self._calls, method, request, left_s)

    def close(self) -> None:
        """Hangs up, and ends the thread."""
        self.do(self._calls.close())
        self.do(self.client.__aexit__(None, None, None))
        self.do(_finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Returns what a coroutine of the client returns."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # it is closed
            work.close()
            raise
        try:
            return future.result()
        except BaseException:
            # Ctrl-C here ends the call there.
            future.cancel()
            raise

    def each(self, entries: AsyncIterator[T], at_once: int = 1) -> Iterator[T]:
        """Yields what the client does, so many entries at once: switching threads is slow."""

        async def following() -> list[T]:
            found: list[T] = []
            async for entry in entries:
                found.append(entry)
                if len(found) == at_once:
                    break
            return found

        while found := self.do(following()):
            yield from found


async def _finish() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
