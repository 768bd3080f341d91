"""Fetches what own users' jobs have used at partners, as these have recorded it.

A partner numbers its records of this site's jobs. What was fetched is kept beside the own usage, a log for each partner; the
last record there says where to go on, so that each is there once, however often a daemon dies between the two. A partner
whose log is another one than before is read from its beginning, and what is known is passed over.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog
from grpc import aio

from grms.daemon.journal import JournalError, JournalFullError
from grms.daemon.messages import WireError
from grms.site.config.schema import SiteConfig
from grms.site.model.usage import UsageRecord
from grms.site.peers.peer import SenselessError, answer_to, stub_of
from grms.site.peers.peers import PeerClients
from grms.site.runtime.event_loop import Engine
from grms.site.runtime.usage_log import UsageLog, read_usage, told_folder
from grms.site.wire.convert import read_usage_page
from grms.v1 import partner_pb2

FIRST_S: Final = 5.0
"""After the start, until partners are asked for the first time, seconds."""

INTERVAL_S: Final = 600.0
"""Between two turns, seconds."""

FETCHED_MAX: Final = 20_000
"""Most records of one partner in a turn."""

FOREIGN_MAX: Final = 100_000
"""Most records of one partner about offers of epochs that this site's journal is not of: of a journal that was lost. Of the
present epoch there are no more than offers."""

TIMEOUT_S: Final = 20.0
"""For one answer: the partner reads its disk."""


class Told:
    """What a partner has told.

    Attributes:
        log: where it is kept.
        name: of the partner's log, as it was last; empty before the first answer.
        number: of the last record of that.
        known: keys of jobs.
        foreign: how many of these are of other epochs.
    """

    def __init__(self, folder: Path, partner: str) -> None:
        self.log = UsageLog(told_folder(folder, partner), partner)
        self.name, self.number = "", 0
        self.known: set[str] = set()
        self.foreign = 0

    def load(self, now: float, keep_months: int, epoch: int) -> None:
        """Reads what is kept, and deletes what is old; `JournalError` if that is impossible."""
        if not self.log.folder.exists():
            return
        self.log.catch_up([], now, keep_months)
        for record in read_usage(self.log.folder, self.log.site):
            self._take(record, epoch)

    def add(self, records: Sequence[UsageRecord], now: float, epoch: int) -> int:
        """Keeps those that are new, and returns how many these are; `JournalError` if that is impossible."""
        new: dict[str, UsageRecord] = {}
        foreign = self.foreign
        for record in records:
            foreign += _is_foreign(record, epoch)
            if record.key not in self.known and foreign <= FOREIGN_MAX:
                new.setdefault(record.key, record)
        if new:
            with self.log:
                self.log.append(new.values(), now)
        for record in new.values():
            self._take(record, epoch)
        for record in records[-1:]:
            self.name, self.number = record.told_log, record.told_number
        return len(new)

    def _take(self, record: UsageRecord, epoch: int) -> None:
        self.known.add(record.key)
        self.foreign += _is_foreign(record, epoch)
        self.name, self.number = record.told_log, record.told_number


def _is_foreign(record: UsageRecord, epoch: int) -> bool:
    return int(record.key.split("/")[1], 16) != epoch


class UsageFetcher:
    """Asks all partners in turns; `folder` is that of the site's own usage."""

    def __init__(
        self,
        engine: Engine,
        links: PeerClients,
        config: SiteConfig,
        folder: Path,
        out: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._engine = engine
        self._links = links
        self._site = config.name
        self._keep_months = config.usage.keep_months
        self._folder = folder
        self._out = out
        self._told: dict[str, Told] = {}

    async def run(self) -> None:
        """Asks until it is cancelled."""
        await asyncio.sleep(FIRST_S)
        while True:  # waits for time, not for an event
            for name, book in list(self._engine.state.partners.items()):
                if book.reachable and not (book.faulty or book.incompatible):
                    await self.fetch(name)
            await asyncio.sleep(INTERVAL_S)

    async def fetch(self, partner: str) -> None:
        """Fetches what is new at a partner, until there is no more, or it does not answer."""
        try:
            told = await self._known(partner)
            count = 0
            while count < FETCHED_MAX:
                records, more = await self._ask(partner, told)
                if records:
                    # To the end, whoever is cancelled meanwhile: a part of a record would be cut off, and asked for again.
                    add = asyncio.to_thread(
                        told.add, records, self._engine.clock.now(), self._epoch
                    )
                    await asyncio.shield(asyncio.ensure_future(add))
                count += len(records)
                if not (records and more):
                    return
        except JournalFullError as error:
            self._out.error("usage_cannot_be_written", problem=str(error))  # no fault of ours
        except JournalError as error:
            self._told.pop(partner, None)
            self._out.error("usage_not_fetched", partner=partner, problem=str(error))  # same
        except (aio.AioRpcError, ConnectionError, SenselessError, WireError):
            pass  # the link has been told

    @property
    def _epoch(self) -> int:
        return self._engine.state.memory.epoch

    async def _known(self, partner: str) -> Told:
        told = self._told.get(partner)
        if told is None:
            told = Told(self._folder, partner)
            now = self._engine.clock.now()
            await asyncio.to_thread(told.load, now, self._keep_months, self._epoch)
            self._told[partner] = told
        return told

    async def _ask(self, partner: str, told: Told) -> tuple[Sequence[UsageRecord], bool]:
        link = self._links.links[partner]
        request = partner_pb2.ListUsageRequest(site=self._site, log=told.name, after=told.number)
        try:
            stub = stub_of(self._links.links, partner)
            answer = await answer_to(stub.ListUsage(request, timeout=TIMEOUT_S))
            after = told.number if answer.log == told.name else 0
            now = self._engine.clock.now()
            records = read_usage_page(answer, partner, self._site, after, now)
            self._check(partner, records)
        except (SenselessError, WireError) as error:
            link.answered()
            link.senseless(f"asked what jobs have used: {error}")
            raise
        except aio.AioRpcError as error:
            link.silent(error)
            raise
        link.answered()
        return records, answer.more

    def _check(self, partner: str, records: Sequence[UsageRecord]) -> None:
        memory = self._engine.state.memory
        most = memory.book(partner).next_number
        for record in records:
            _, epoch, number = record.key.split("/")
            if int(epoch, 16) == memory.epoch and int(number) >= most:
                raise SenselessError(f"it tells of offer {number}, which was never made")
            if int(epoch, 16) > memory.epoch:
                raise SenselessError("it tells of an offer of a journal that is not made yet")
