"""The client of a site for programs without an event loop."""

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

from grms.client.answers import Changes, Job, OutputPiece, Preview, Results
from grms.client.errors import SiteError
from grms.client.submission import JobDescription
from grms.client.unary import UnaryCalls
from grms.client.unary_methods import UnaryMethods
from grms.daemon.pacing import TIMEOUT_S
from grms.v1 import operator_pb2

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from grms.client.asynchronous import Client, ClientThread
    from grms.client.unary import Method

CHUNKS: Final = 16

T = TypeVar("T")


class SyncClient:
    """The same for programs without an event loop; a context. It may be used from several threads.

    Calls with one answer are made at once; others, and those that get no plain answer, by a `Client` in a thread
    of its own. `timeout_s` is the timeout of a call with its retries, seconds.
    """

    def __init__(self, socket: str | Path, *, timeout_s: float = TIMEOUT_S) -> None:
        self._socket = Path(socket)
        self._timeout_s = timeout_s
        self._calls = UnaryCalls(self._socket, timeout_s, self._by_library)
        self._site = UnaryMethods(self._calls)
        self._lock = Lock()
        self._started: ClientThread | None = None
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_closed = True
        self._calls.close()
        if self._started is not None:
            self._started.close()

    def submit(self, **wanted: Unpack[JobDescription]) -> Job:
        """Submits a job."""
        if wanted.get("inputs"):
            return self._do(lambda client: client.submit(**wanted))
        return self._now(self._site.submit_at_once(**wanted))

    def submit_many(self, jobs: Sequence[Mapping[str, Any]]) -> list[Job | SiteError]:
        """Submits many jobs, and returns what became of each."""
        return self._do(lambda client: client.submit_many(jobs))

    def get_many(
        self, job_ids: Sequence[str] = (), *, keys: Sequence[str] = ()
    ) -> list[Job | SiteError]:
        """Returns jobs by their ids, and then by their keys."""
        return self._now(self._site.get_many(job_ids, keys=keys))

    def cancel_many(self, job_ids: Sequence[str]) -> list[Job | SiteError]:
        """Requests the cancellation of many jobs."""
        return self._now(self._site.cancel_many(job_ids))

    def preview(self, **wanted: Unpack[JobDescription]) -> Preview:
        """Returns what would become of a job if it were submitted now, and submits nothing."""
        return self._now(self._site.preview(**wanted))

    def get(self, job_id: str = "", *, key: str = "") -> Job:
        """Returns a job, by its id or by the key with which it was submitted."""
        return self._now(self._site.get(job_id, key=key))

    def jobs(self, **wanted: Any) -> Iterator[Job]:
        """Yields the user's jobs."""
        return _each_now(self._site.jobs(**wanted))

    def take_back(self, job_id: str) -> Job:
        """Ends a job at its partner, and decides it anew."""
        return self._do(lambda client: client.take_back(job_id))

    def resubmit(self, job_id: str) -> Job:
        """Decides a job anew at once."""
        return self._do(lambda client: client.resubmit(job_id))

    def write_off(self, job_id: str) -> Job:
        """Ends a job as failed."""
        return self._do(lambda client: client.write_off(job_id))

    def results(self, job_id: str, *, wait: bool = False) -> Results:
        """Returns what a job has left."""
        return self._now(self._site.results(job_id, wait=wait))

    def fetch(self, job_id: str, name: str, offset_bytes: int = 0) -> Iterator[bytes]:
        """Yields a file that a job has left."""
        return self._each(lambda client: client.fetch(job_id, name, offset_bytes), CHUNKS)

    def remove_results(self, job_id: str) -> None:
        """Deletes what a job has left at this site."""
        self._now(self._site.remove_results(job_id))

    def follow(
        self, job_id: str, *, error: bool = False, once: bool = False
    ) -> Iterator[OutputPiece]:
        """Yields what a job prints, until its end."""
        return self._each(lambda client: client.follow(job_id, error=error, once=once))

    def cancel(self, job_id: str) -> Job:
        """Requests the cancellation of a job."""
        return self._now(self._site.cancel(job_id))

    def watch(self, job_id: str) -> Iterator[Job]:
        """Yields a job's state and its changes."""
        return self._each(lambda client: client.watch(job_id))

    def changes(self, after: str = "") -> Iterator[Changes]:
        """Yields at once, and then whenever jobs of the user change."""
        return self._each(lambda client: client.changes(after))

    def wait(self, job_id: str) -> Job:
        """Waits for the end of a job."""
        return self._do(lambda client: client.wait(job_id))

    def status(self) -> operator_pb2.StatusResponse:
        """Returns the state of the site."""
        return self._now(self._site.status())

    def guests(self, partner: str = "") -> operator_pb2.GuestsResponse:
        """Returns partners' jobs at the site."""
        return self._now(self._site.guests(partner))

    def partners(self) -> Sequence[operator_pb2.PartnerStatus]:
        """Returns the state of the partners."""
        return self._now(self._site.partners())

    def pilots(self) -> operator_pb2.PilotsResponse:
        """Returns the site's pilots."""
        return self._now(self._site.pilots())

    def pardon(self, partner: str) -> int:
        """Ends a partner's suspension."""
        return self._do(lambda client: client.pardon(partner))

    def reload(self) -> operator_pb2.ReloadPoliciesResponse:
        """Reloads the configuration."""
        return self._do(lambda client: client.reload())

    def open_pages(self) -> operator_pb2.OpenPagesResponse:
        """Returns a link to the site's pages."""
        return self._now(self._site.open_pages())

    def drain(self) -> operator_pb2.StatusResponse:
        """Stops accepting new work."""
        return self._now(self._site.drain())

    def resume(self) -> operator_pb2.StatusResponse:
        """Accepts new work again."""
        return self._now(self._site.resume())

    def _now(self, work: Coroutine[Any, Any, T]) -> T:
        # Calls that never wait for an event loop.
        if self._is_closed:
            work.close()
            raise RuntimeError("the client is closed")
        return _finished(work)

    def _do(self, work: "Callable[[Client], Coroutine[Any, Any, T]]") -> T:
        thread = self._thread()
        return thread.do(work(thread.client))

    def _each(
        self, entries: "Callable[[Client], AsyncIterator[T]]", at_once: int = 1
    ) -> Iterator[T]:
        thread = self._thread()
        return thread.each(entries(thread.client), at_once)

    def _thread(self) -> "ClientThread":
        # gRPC's library and asyncio take longer to load than all else; few commands need them.
        from grms.client.asynchronous import ClientThread  # noqa: PLC0415  # see above

        with self._lock:
            if self._is_closed:
                raise RuntimeError("the client is closed")
            if self._started is None:
                self._started = ClientThread(self._socket, self._timeout_s)
            return self._started

    def _by_library(self, method: "Method[Any]", request: "Message", left_s: float) -> Any:
        thread = self._thread()
        return thread.do(thread.call(method, request, left_s))


def _finished(work: Awaitable[T]) -> T:
    try:
        next(iter(work.__await__()))
    except StopIteration as done:
        found: T = done.value
        return found
    raise AssertionError("a call without an event loop has waited for one")


def _each_now(entries: AsyncIterator[T]) -> Iterator[T]:
    while True:
        try:
            yield _finished(anext(entries))
        except StopAsyncIteration:
            return
