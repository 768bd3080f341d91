"""Usage records on disk: a file for each month, in which every job that has ended has one record.

A journal forgets jobs; what these have used outlives them here. The journal comes first: a record is written here once
the end of its job is durable there, and at the start of a daemon every end that the journal has and the log has not is
written before the journal may be compacted. So a process that is killed between the two leaves nothing out, and a job
whose record is here already gets none again.

The records of each home are numbered, in the order in which they were written: a partner that reads its own learns nothing
of how many others there are. A file has those of the month in which they were written
(UTC); one that comes late is in a later file than its job's end. Each file is a journal of its own
(`grms.daemon.journal`), and only the last one is written to.

While a daemon runs, records are gathered for a second and written aside; what is not written when the process is killed is
written by the next one, at its start.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Self

import msgspec
import structlog
from msgspec.structs import replace

from grms.daemon.journal import (
    JournalError,
    JournalFile,
    JournalFullError,
    JournalKind,
    RecordCodec,
    reading,
)
from grms.site.model.commands import Command
from grms.site.model.events import Event
from grms.site.model.usage import UsageRecord, month_of
from grms.site.runtime.event_loop import Engine
from lrms_sim.util.files import sync_folder

KIND: Final = JournalKind(
    program="usage log",
    codec=RecordCodec([UsageRecord]),
    kinds=frozenset({UsageRecord.__name__}),
    only_one="one daemon alone writes it",
    cure="move this file away; at its next start the daemon writes anew what its journal has of it still",
)
"""What a file is known by, and how its records stand there."""

END: Final = ".usage"
"""Of the names of files, after the month, and of the folder, after the site's name."""

PARTNERS: Final = "partners"
"""Folder, in that of a site's log, with a log of what each partner has told."""

_SITE: Final = "site"
_LOG: Final = "log"
_BEFORE: Final = "records_before"


class _Month(JournalFile[UsageRecord]):
    # The file of a month.
    def __init__(self, path: Path, site: str, log: str, before: dict[str, int]) -> None:
        self._site = site
        notes = {_SITE: site, _LOG: log, _BEFORE: msgspec.json.encode(before).decode()}
        super().__init__(path, KIND, notes)

    def _check_notes(self, notes: dict[str, str]) -> None:
        _check_site(self.path, notes, self._site)


def _before(notes: dict[str, str]) -> dict[str, int]:
    # The number of the last record of each home in the files before.
    return msgspec.json.decode(notes.get(_BEFORE, "{}"), type=dict[str, int])


def _check_site(path: Path, notes: dict[str, str], site: str) -> None:
    if notes.get(_SITE) != site:
        raise JournalError(
            f"{path}: this has the usage of site {notes.get(_SITE)!r}, not of {site!r}"
        )


def usage_folder(journal: Path, site: str) -> Path:
    """Returns the folder of the log of a site, which is next to its journal."""
    return journal.with_name(f"{site}{END}")


def told_folder(folder: Path, partner: str) -> Path:
    """Returns the folder, in that of a site's log, with what a partner has told of own users' jobs."""
    return folder / PARTNERS / partner


def months(folder: Path) -> list[Path]:
    """Returns the files of a log, oldest first."""
    return sorted(folder.glob(f"????-??{END}"))


def read_usage(folder: Path, site: str, *, since: str = "") -> Iterator[UsageRecord]:
    """Yields the records of a site's log in their order, while a daemon may write it.

    Args:
        folder: the log; nothing is yielded if there is none.
        site: whose log it is.
        since: the first month in which they were written.

    Raises:
        JournalError: a file is damaged, or another site's, or cannot be read.
    """
    for path in months(folder):
        if path.name >= since:
            yield from _read_month(path, site)


def read_of_home(folder: Path, site: str, home: str, after: int) -> Iterator[UsageRecord]:
    """Yields the records of one home's jobs with greater numbers than `after`; otherwise as `read_usage`."""
    files = months(folder)
    for path, following in zip(files, [*files[1:], None], strict=True):
        if following is not None:
            with reading(following, KIND) as scan:
                if _before(scan.notes).get(home, 0) <= after:
                    continue
        for record in _read_month(path, site):
            if record.home == home and record.number > after:
                yield record


def _read_month(path: Path, site: str) -> Iterator[UsageRecord]:
    with reading(path, KIND) as scan:
        _check_site(path, scan.notes, site)
        yield from scan.records()


class UsageLog:
    """A log that is written. No file is open before `open` or the first `append`, and none after `close`.

    Attributes:
        folder: with the files; made if missing.
        site: whose log it is.
        name: of this log, which another one in its place has not; known once a file was open.
    """

    def __init__(self, folder: Path, site: str) -> None:
        self.folder = folder
        self.name = ""
        self.site = site
        self._file: _Month | None = None
        self._numbers: dict[str, int] = {}
        self._known: set[str] | None = None  # while a journal is compared with it, in parts

    def catch_up(
        self, records: Sequence[UsageRecord], now: float, keep_months: int, *, more: bool = False
    ) -> int:
        """Writes those of some records whose jobs have none here, and returns how many these were.

        Args:
            records: what the journal knows of, in its order.
            now: seconds.
            keep_months: files that are older are deleted.
            more: others of the journal follow, in a further call.

        Raises:
            JournalError: the log cannot be read or written.
        """
        with self:
            self._open(month_of(now))
            self._expire(now, keep_months)
            if records and self._known is None:
                since = month_of(min(record.time for record in records))
                # No two jobs have the same key, whosever they are.
                self._known = {one.key for one in read_usage(self.folder, self.site, since=since)}
            known: Collection[str] = self._known or ()
            missing = [record for record in records if record.key not in known]
            self.append(missing, now)
        if not more:
            self._known = None
        return len(missing)

    def open(self, now: float) -> None:
        """Opens the file to which records are written at a moment, seconds, as `append` does where none is open.

        Raises:
            JournalFullError: there is no room.
            JournalError: the log cannot be read or written.
        """
        self._open(month_of(now))

    def append(self, records: Iterable[UsageRecord], now: float) -> None:
        """Writes records, which are durable when it returns.

        Raises:
            JournalFullError: there is no room; none of them is there, and it may be tried again.
            JournalError: the disk has failed.
        """
        file, numbers = self._open(month_of(now)), dict(self._numbers)
        numbered = []
        for record in records:
            number = numbers[record.home] = numbers.get(record.home, 0) + 1
            numbered.append(replace(record, number=number))
        file.append(numbered)
        self._numbers = numbers

    def _open(self, month: str) -> _Month:
        # The file to write to. A clock that was put back leaves it as it is: names are in the order of numbers.
        files = months(self.folder)
        last = max([f"{month}{END}", *(path.name for path in files[-1:])])
        if self._file is not None and self._file.path.name == last:
            return self._file
        self.close()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.name, self._numbers = self._last(files)
        self._file = _Month(self.folder / last, self.site, self.name, self._numbers)
        for lock in self.folder.glob(f"*{END}.lock"):
            if lock.name != f"{last}.lock":
                lock.unlink(missing_ok=True)  # the folder belongs to the journal's daemon alone
        sync_folder(self.folder.parent)
        return self._file

    def _last(self, files: Sequence[Path]) -> tuple[str, dict[str, int]]:
        # Name of the log, and number of the last record of each home; what is not whole yet has none.
        for path in reversed(files):
            if path.stat().st_size:
                with reading(path, KIND) as scan:
                    _check_site(path, scan.notes, self.site)
                    numbers = _before(scan.notes)
                    for record in scan.records():
                        numbers[record.home] = record.number
                    return scan.notes.get(_LOG, ""), numbers
        return str(time.time_ns()), {}

    def _expire(self, now: float, keep_months: int) -> None:
        first = months_before(month_of(now), keep_months)
        for path in months(self.folder)[:-1]:
            if path.name < first:
                path.unlink()

    def close(self) -> None:
        """Closes the file that is open, if any."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def months_before(month: str, count: int) -> str:
    """Returns the month so many before one."""
    year, number = map(int, month.split("-"))
    whole = 12 * year + number - 1 - count
    return f"{max(0, whole // 12):04}-{whole % 12 + 1:02}"


GATHERED_S: Final = 1.0
"""How long records are gathered, seconds."""

RETRY_S: Final = 10.0
"""Pause after the disk was full, seconds."""


class UsageWriter:
    """Hears of jobs that end, and writes their records to a log."""

    def __init__(
        self, engine: Engine, log: UsageLog, out: structlog.typing.FilteringBoundLogger
    ) -> None:
        self.log = log
        self._engine = engine
        self._out = out
        self._ended: list[UsageRecord] = []  # perhaps not yet in the journal
        self._due: list[UsageRecord] = []
        self._wanted = asyncio.Event()
        engine.state.memory.on_usage = self._ended.append
        engine.on_event(self._seen)

    def _seen(self, _event: Event, _commands: Sequence[Command]) -> None:
        if self._ended:
            records = self._ended.copy()
            self._ended.clear()
            self._engine.after(partial(self._is_due, records))

    def _is_due(self, records: Sequence[UsageRecord]) -> None:
        self._due += records
        self._wanted.set()

    def open(self) -> None:
        """Opens the log, so that what is wrong with it is known before the first job ends, and that another daemon has it.

        Raises:
            JournalError: it cannot be written.
        """
        self.log.open(self._engine.clock.now())

    async def run(self) -> None:
        """Writes until it is cancelled."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(GATHERED_S)
            self._wanted.clear()
            records = self._due.copy()
            writing = asyncio.ensure_future(asyncio.to_thread(self._write, records))
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                # What has been begun is finished, so that it is not written a second time.
                await asyncio.wait([writing])
                if writing.exception() is None:
                    del self._due[: len(records)]
                raise
            except JournalFullError as error:
                self._out.error("usage_cannot_be_written", problem=str(error))  # no fault of ours
                self._wanted.set()
                await asyncio.sleep(RETRY_S)
            except JournalError as error:
                self._engine.fail(error)
                return
            else:
                del self._due[: len(records)]

    def _write(self, records: Sequence[UsageRecord]) -> None:
        self.log.append(records, self._engine.clock.now())

    def close(self) -> None:
        """Writes the rest, as far as it can be written; the next start does what is left."""
        try:
            if self._due and self._engine.failure is None:
                self._write(self._due)
                self._due = []
        except JournalError as error:
            self._out.error("usage_cannot_be_written", problem=str(error))  # same
        finally:
            self.log.close()
