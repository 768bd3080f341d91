"""What a job prints while it runs: read at the site that runs it, and followed from its home.

A partner is asked again and again for the next bytes, a bounded piece at a time; it answers for jobs of the asker alone.
When the job has ended, the rest is read from what has come home, so that nothing is missed or seen twice.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

import grpc
from grpc import aio

from grms.daemon.job_files import CHUNK_BYTES, STDERR
from grms.daemon.pacing import Backoff, BackoffSettings
from grms.site.model.jobs import HomeJob
from grms.site.model.lifecycle import JobState
from grms.site.peers.peer import SenselessError, answer_to, stub_of
from grms.site.peers.peers import PeerClients
from grms.site.runtime.event_loop import Engine
from grms.site.staging.download import NoResultsError, ResultServer
from grms.site.wire.convert import write_offer
from grms.v1 import partner_pb2
from lrms_sim.util.messages import printable

PIECE_BYTES: Final = CHUNK_BYTES
"""Most bytes of one answer of a partner."""

HERE: Final = BackoffSettings(first_s=0.2, most_s=1.0)
"""Between looks at a file of this site."""

THERE: Final = BackoffSettings(first_s=0.5, most_s=5.0)
"""Between questions to a partner, while its job prints nothing."""

PAUSE_S: Final = 0.1
"""After each piece of a partner's: it cannot make this site busier than that."""

CALL_TIMEOUT_S: Final = 10.0
"""Timeout of a question, seconds."""

_DELEGATED: Final = (JobState.DELEGATED, JobState.SUSPECT)
_NOT_TOLD: Final = (
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.INVALID_ARGUMENT,
)


@dataclass(frozen=True, slots=True)
class Printed:
    """The next part of a job's output.

    Attributes:
        anew: what was printed before is of an earlier run; this begins at the first byte.
        notice: for people, in place of content: why there is none.
    """

    content: bytes = b""
    anew: bool = False
    notice: str = ""


@dataclass(slots=True)
class _Seen:
    # How much of which run was seen, and whether that run is another one than before.
    at: int
    run: str = ""
    anew: bool = False
    notice: str = ""

    def look_at(self, run: str) -> None:
        if self.run and run != self.run:
            self.at, self.anew = 0, self.at > 0
        self.run = run

    def take(self, begin: int, content: bytes) -> Printed:
        anew = self.anew or begin < self.at
        self.at, self.anew = begin + len(content), False
        return Printed(content, anew)


class OutputFollower:
    """Follows the output of the site's own users' jobs, wherever they run."""

    def __init__(self, engine: Engine, results: ResultServer, links: PeerClients) -> None:
        self._engine = engine
        self._results = results
        self._links = links

    async def follow(
        self, job_id: str, name: str, begin: int, *, once: bool, stopped: Callable[[], bool]
    ) -> AsyncIterator[Printed]:
        """Yields what a job prints from a byte on, until it has ended; with `once` what there is by now.

        It stops when `stopped` says so.

        Raises:
            FileProblemError: the output cannot be served.
            NoResultsError: there is none, and there will be none.
        """
        seen, here, there = _Seen(begin), Backoff(HERE), Backoff(THERE)
        while not stopped() and (job := self._engine.state.job(job_id)) is not None:
            coming = await self._coming(job) if job.state is JobState.ENDED else ""
            if job.state is JobState.ENDED and not coming:
                async for each in self._rest(job, name, seen):
                    yield each
                return
            found = Printed(notice=coming) if coming else await self._next(job, name, seen)
            pauses = there if job.partner else here
            if found.content or found.anew:
                yield found
                here.reset()
                there.reset()
                await asyncio.sleep(PAUSE_S if job.partner else 0.0)
                continue
            if found.notice and found.notice != seen.notice:
                yield found
            seen.notice = found.notice
            if once:
                return
            await asyncio.sleep(pauses.next_s())

    async def _coming(self, job: HomeJob) -> str:
        """Returns why the output of an ended job is still to come; empty if it is here, or never will be."""
        found = await self._results.of_job(job)
        return "" if found.complete else found.problem

    async def _next(self, job: HomeJob, name: str, seen: _Seen) -> Printed:
        problem, said = "", None
        if job.partner and job.state in _DELEGATED:
            seen.look_at(_run(job))
            problem, said = await self._asked(job, name, seen.at)
        elif not job.partner:
            seen.look_at(_run(job))
            said = await self._results.read_output(job.lrms_key, name, seen.at, PIECE_BYTES)
        return Printed(notice=problem) if said is None else seen.take(*said)

    async def _rest(self, job: HomeJob, name: str, seen: _Seen) -> AsyncIterator[Printed]:
        size = await self._results.size_of(job, name)
        seen.look_at(_run(job))
        if seen.anew or size < seen.at:
            seen.at = 0
            yield Printed(anew=True)
        async for some in self._results.read_job(job, name, seen.at):
            yield Printed(some)

    async def _asked(
        self, job: HomeJob, name: str, at: int
    ) -> tuple[str, tuple[int, bytes] | None]:
        """Returns why a partner has said nothing, or where its answer begins, and its bytes."""
        request = partner_pb2.ReadGuestOutputRequest(
            site=self._engine.state.settings.name,
            offer=write_offer(job.offer),
            error=name == STDERR,
            offset_bytes=at,
        )
        try:
            stub = stub_of(self._links.links, job.partner)
            answer: Any = await answer_to(stub.ReadGuestOutput(request, timeout=CALL_TIMEOUT_S))
        except aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
                return "", None  # in a moment
            if error.code() in _NOT_TOLD:
                return f"{job.partner} does not say what it prints; it comes after its end", None
            return (
                f"{job.partner} cannot be asked now: {printable(error.details() or '')[:200]}",
                None,
            )
        except (SenselessError, ConnectionError) as error:
            return f"{job.partner} cannot be asked now: {printable(str(error))[:200]}", None
        if answer.offset_bytes not in {0, at} or len(answer.content) > PIECE_BYTES:
            return f"{job.partner} answers with something else", None
        return "", (answer.offset_bytes, answer.content)


def _run(job: HomeJob) -> str:
    # Which run of the job prints.
    return f"{job.partner}/{job.offer_epoch}/{job.offer_number}" if job.partner else job.lrms_key


async def read_guest_output(
    results: ResultServer, partner: str, key: str, name: str, begin: int
) -> tuple[int, bytes]:
    """Returns the next bytes that a partner's running job has printed, and where they begin.

    Raises:
        FileProblemError: the output cannot be served.
        NoResultsError: there is none, or it is larger than the site hands out.
    """
    if begin >= results.limits.file_bytes:
        text = f"more than {results.limits.file_bytes} bytes are not told to {partner}"
        raise NoResultsError(text, later=False)
    most = min(PIECE_BYTES, results.limits.file_bytes - begin)
    said = await results.read_output(key, name, begin, most)
    return (begin, b"") if said is None else said
