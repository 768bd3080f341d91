"""Asks partners where delegated jobs stand: whether they wait, run, are suspended or completing.

Nothing rests on the answers. They are asked for as long as jobs are open there, kept in memory alone, and shown to
these jobs' users. So a question that has no answer is not repeated; the next one asks for the same.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from grpc import aio

from grms.daemon.messages import WireError
from grms.site.config.schema import SiteConfig
from grms.site.model.events import ProgressTold
from grms.site.model.jobs import HomeJob, OfferId
from grms.site.model.lifecycle import JobState
from grms.site.model.partners import PartnerBook
from grms.site.peers.peer import SenselessError, answer_to, stub_of
from grms.site.peers.peers import PeerClients
from grms.site.runtime.event_loop import Engine
from grms.site.wire.convert import PROGRESS_MAX, read_progress, write_offer
from grms.v1 import partner_pb2

INTERVAL_S: Final = 10.0
"""Between the last question of one turn and the first of the next, real seconds."""

_THERE = (JobState.DELEGATED, JobState.SUSPECT)


class ProgressWatch:
    """Asks all partners, in turns."""

    def __init__(self, engine: Engine, links: PeerClients, config: SiteConfig) -> None:
        self._engine = engine
        self._links = links
        self._site = config.name
        self._timeout_s = config.limits.offer_timeout_s

    async def run(self) -> None:
        """Asks until it is cancelled."""
        while True:  # waits for time, not for an event
            await asyncio.sleep(INTERVAL_S)
            books = list(self._engine.state.partners.values())
            async with asyncio.TaskGroup() as group:
                for book in books:
                    if book.reachable and not (book.faulty or book.incompatible):
                        group.create_task(self.ask(book), name=f"progress at {book.name}")

    async def ask(self, book: PartnerBook) -> None:
        """Asks a partner about all jobs that it has, until a question has no answer."""
        offers = [job.offer for job in book.open.values() if _is_there(job)]
        for begin in range(0, len(offers), PROGRESS_MAX):
            if not await self._ask_some(book.name, offers[begin : begin + PROGRESS_MAX]):
                return

    async def _ask_some(self, partner: str, offers: Sequence[OfferId]) -> bool:
        link = self._links.links[partner]
        request = partner_pb2.ProgressRequest(site=self._site, offers=map(write_offer, offers))
        try:
            stub = stub_of(self._links.links, partner)
            answer = await answer_to(stub.Progress(request, timeout=self._timeout_s))
            jobs = read_progress(answer, offers)
        except (SenselessError, WireError) as error:
            link.senseless(f"asked where jobs stand: {error}")
            return False
        except (aio.AioRpcError, ConnectionError) as error:
            if isinstance(error, aio.AioRpcError):
                link.silent(error)
            return False
        link.answered()
        if jobs:
            self._engine.tell(ProgressTold(self._engine.new_id(), partner, jobs))
        return True


def _is_there(job: HomeJob) -> bool:
    return job.state in _THERE
