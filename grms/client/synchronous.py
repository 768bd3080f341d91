"""The client of a site for programs without an event loop."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from grms.client.answers import Changes, Job, OutputPiece, Preview, Results
from grms.client.asynchronous import PAGE, Client
from grms.client.calls import TIMEOUT_S
from grms.client.errors import SiteError
from grms.v1 import operator_pb2

CHUNKS: Final = 16

T = TypeVar("T")


class SyncClient:
    """The same for programs without an event loop; a context.

    Calls run in a thread of its own; it may be used from several threads. `timeout_s` is the timeout of a call with
    its retries, seconds.
    """

    def __init__(self, socket: str | Path, *, timeout_s: float = TIMEOUT_S) -> None:
        self._client = Client(socket, timeout_s=timeout_s)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="hanse client", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._client.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._do(self._client.__aexit__(kind, error, trace))
        self._do(_finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def submit(self, **wanted: Any) -> Job:
        """Submits a job."""
        return self._do(self._client.submit(**wanted))

    def submit_many(self, jobs: Sequence[Mapping[str, Any]]) -> list[Job | SiteError]:
        """Submits many jobs, and returns what became of each."""
        return self._do(self._client.submit_many(jobs))

    def get_many(
        self, job_ids: Sequence[str] = (), *, keys: Sequence[str] = ()
    ) -> list[Job | SiteError]:
        """Returns jobs by their ids, and then by their keys."""
        return self._do(self._client.get_many(job_ids, keys=keys))

    def cancel_many(self, job_ids: Sequence[str]) -> list[Job | SiteError]:
        """Requests the cancellation of many jobs."""
        return self._do(self._client.cancel_many(job_ids))

    def preview(self, **wanted: Any) -> Preview:
        """Returns what would become of a job if it were submitted now, and submits nothing."""
        return self._do(self._client.preview(**wanted))

    def get(self, job_id: str = "", *, key: str = "") -> Job:
        """Returns a job, by its id or by the key with which it was submitted."""
        return self._do(self._client.get(job_id, key=key))

    def jobs(self, **wanted: Any) -> Iterator[Job]:
        """Yields the user's jobs."""
        return self._each(self._client.jobs(**wanted), PAGE)

    def take_back(self, job_id: str) -> Job:
        """Ends a job at its partner, and decides it anew."""
        return self._do(self._client.take_back(job_id))

    def resubmit(self, job_id: str) -> Job:
        """Decides a job anew at once."""
        return self._do(self._client.resubmit(job_id))

    def write_off(self, job_id: str) -> Job:
        """Ends a job as failed."""
        return self._do(self._client.write_off(job_id))

    def results(self, job_id: str, *, wait: bool = False) -> Results:
        """Returns what a job has left."""
        return self._do(self._client.results(job_id, wait=wait))

    def fetch(self, job_id: str, name: str, offset_bytes: int = 0) -> Iterator[bytes]:
        """Yields a file that a job has left."""
        return self._each(self._client.fetch(job_id, name, offset_bytes), CHUNKS)

    def remove_results(self, job_id: str) -> None:
        """Deletes what a job has left at this site."""
        self._do(self._client.remove_results(job_id))

    def follow(
        self, job_id: str, *, error: bool = False, once: bool = False
    ) -> Iterator[OutputPiece]:
        """Yields what a job prints, until its end."""
        return self._each(self._client.follow(job_id, error=error, once=once))

    def cancel(self, job_id: str) -> Job:
        """Requests the cancellation of a job."""
        return self._do(self._client.cancel(job_id))

    def watch(self, job_id: str) -> Iterator[Job]:
        """Yields a job's state and its changes."""
        return self._each(self._client.watch(job_id))

    def changes(self, after: str = "") -> Iterator[Changes]:
        """Yields at once, and then whenever jobs of the user change."""
        return self._each(self._client.changes(after))

    def wait(self, job_id: str) -> Job:
        """Waits for the end of a job."""
        return self._do(self._client.wait(job_id))

    def status(self) -> operator_pb2.StatusResponse:
        """Returns the state of the site."""
        return self._do(self._client.status())

    def guests(self, partner: str = "") -> operator_pb2.GuestsResponse:
        """Returns partners' jobs at the site."""
        return self._do(self._client.guests(partner))

    def partners(self) -> Sequence[operator_pb2.PartnerStatus]:
        """Returns the state of the partners."""
        return self._do(self._client.partners())

    def pilots(self) -> operator_pb2.PilotsResponse:
        """Returns the site's pilots."""
        return self._do(self._client.pilots())

    def pardon(self, partner: str) -> int:
        """Ends a partner's suspension."""
        return self._do(self._client.pardon(partner))

    def reload(self) -> operator_pb2.ReloadPoliciesResponse:
        """Reloads the configuration."""
        return self._do(self._client.reload())

    def open_pages(self) -> operator_pb2.OpenPagesResponse:
        """Returns a link to the site's pages."""
        return self._do(self._client.open_pages())

    def drain(self) -> operator_pb2.StatusResponse:
        """Stops accepting new work."""
        return self._do(self._client.drain())

    def resume(self) -> operator_pb2.StatusResponse:
        """Accepts new work again."""
        return self._do(self._client.resume())

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
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

    def _each(self, entries: AsyncIterator[T], at_once: int = 1) -> Iterator[T]:
        # Switching threads is slow, so many entries go at once.
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
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
