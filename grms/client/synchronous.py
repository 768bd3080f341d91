"""The client of a site for programs without an event loop."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from grms.client.answers import Job, Results
from grms.client.asynchronous import PAGE, Client
from grms.client.calls import TIMEOUT_S
from grms.v1 import operator_pb2

CHUNKS: Final = 16

T = TypeVar("T")


class SyncClient:
    """The same for programs without an event loop; a context.

    One thread of its own carries the calls; it may be used from several threads.

    Args:
        socket: the site's Unix socket.
        timeout_s: how long a call is tried, seconds.
    """

    def __init__(self, socket: str | Path, *, timeout_s: float = TIMEOUT_S) -> None:
        self._client = Client(socket, timeout_s=timeout_s)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="hanse client", daemon=True)

    def __enter__(self) -> Self:
        """Connects, when the first call is made."""
        self._thread.start()
        self._do(self._client.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Hangs up."""
        self._do(self._client.__aexit__(kind, error, trace))
        self._do(_finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def submit(self, **wanted: Any) -> Job:
        """See `Client.submit`."""
        return self._do(self._client.submit(**wanted))

    def get(self, job_id: str) -> Job:
        """See `Client.get`."""
        return self._do(self._client.get(job_id))

    def jobs(self, **wanted: Any) -> Iterator[Job]:
        """See `Client.jobs`."""
        return self._each(self._client.jobs(**wanted), PAGE)

    def take_back(self, job_id: str) -> Job:
        """See `Client.take_back`."""
        return self._do(self._client.take_back(job_id))

    def resubmit(self, job_id: str) -> Job:
        """See `Client.resubmit`."""
        return self._do(self._client.resubmit(job_id))

    def write_off(self, job_id: str) -> Job:
        """See `Client.write_off`."""
        return self._do(self._client.write_off(job_id))

    def results(self, job_id: str, *, wait: bool = False) -> Results:
        """See `Client.results`."""
        return self._do(self._client.results(job_id, wait=wait))

    def fetch(self, job_id: str, name: str, offset_bytes: int = 0) -> Iterator[bytes]:
        """See `Client.fetch`."""
        return self._each(self._client.fetch(job_id, name, offset_bytes), CHUNKS)

    def cancel(self, job_id: str) -> Job:
        """See `Client.cancel`."""
        return self._do(self._client.cancel(job_id))

    def watch(self, job_id: str) -> Iterator[Job]:
        """See `Client.watch`."""
        return self._each(self._client.watch(job_id))

    def wait(self, job_id: str) -> Job:
        """See `Client.wait`."""
        return self._do(self._client.wait(job_id))

    def status(self) -> operator_pb2.StatusResponse:
        """See `Client.status`."""
        return self._do(self._client.status())

    def partners(self) -> Sequence[operator_pb2.PartnerStatus]:
        """See `Client.partners`."""
        return self._do(self._client.partners())

    def pardon(self, partner: str) -> int:
        """See `Client.pardon`."""
        return self._do(self._client.pardon(partner))

    def reload(self) -> operator_pb2.ReloadPoliciesResponse:
        """See `Client.reload`."""
        return self._do(self._client.reload())

    def open_pages(self) -> operator_pb2.OpenPagesResponse:
        """See `Client.open_pages`."""
        return self._do(self._client.open_pages())

    def drain(self) -> operator_pb2.StatusResponse:
        """See `Client.drain`."""
        return self._do(self._client.drain())

    def resume(self) -> operator_pb2.StatusResponse:
        """See `Client.resume`."""
        return self._do(self._client.resume())

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C here ends the call there.
            future.cancel()
            raise

    def _each(self, entries: AsyncIterator[T], at_once: int = 1) -> Iterator[T]:
        # From thread to thread takes its time: of many entries, many go at once.
        async def following() -> list[T]:
            found: list[T] = []
            async for entry in entries:
                found.append(entry)
                if len(found) == at_once:
                    break
            return found

        while found := self._do(following()):
            yield from found


async def _finish() -> None:
    """Ends whatever still runs on this loop, as `asyncio.run` does."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
