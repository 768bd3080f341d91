"""Usage records on disk: a file for each month, in which every job that has ended has one record.

A journal forgets jobs; what these have used outlives them here. The journal comes first: a record is written here once
the end of its job is durable there, and at the start of a daemon every end that the journal has and the log has not is
written before the journal may be compacted. So a process that is killed between the two leaves nothing out, and a job
whose record is here already gets none again.

Records are numbered, in the order in which they were written. A file has those of the month in which they were written
(UTC); one that comes late is in a later file than its job's end. Each file is a journal of its own
(`grms.daemon.journal`), and only the last one is written to.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from msgspec.structs import replace

from grms.daemon.journal import (
    JournalError,
    JournalFile,
    JournalKind,
    RecordCodec,
    reading,
)
from grms.site.model.usage import UsageRecord, month_of
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

_SITE: Final = "site"
_LOG: Final = "log"
_BEFORE: Final = "records_before"


class _Month(JournalFile[UsageRecord]):
    # The file of a month.
    def __init__(self, path: Path, site: str, log: str, before: int) -> None:
        self._site = site
        super().__init__(path, KIND, {_SITE: site, _LOG: log, _BEFORE: str(before)})

    def _check_notes(self, notes: dict[str, str]) -> None:
        _check_site(self.path, notes, self._site)


def _check_site(path: Path, notes: dict[str, str], site: str) -> None:
    if notes.get(_SITE) != site:
        raise JournalError(
            f"{path}: this has the usage of site {notes.get(_SITE)!r}, not of {site!r}"
        )


def usage_folder(journal: Path, site: str) -> Path:
    """Returns the folder of the log of a site, which is next to its journal."""
    return journal.with_name(f"{site}{END}")


def months(folder: Path) -> list[Path]:
    """Returns the files of a log, oldest first."""
    return sorted(folder.glob(f"????-??{END}"))


def read_usage(
    folder: Path, site: str, *, since: str = "", after: int = 0
) -> Iterator[UsageRecord]:
    """Yields the records of a site's log in their order, while a daemon may write it.

    Args:
        folder: the log; nothing is yielded if there is none.
        site: whose log it is.
        since: the first month in which they were written.
        after: number of the last record that is not yielded.

    Raises:
        JournalError: a file is damaged, or another site's, or cannot be read.
    """
    files = [path for path in months(folder) if path.name >= since]
    for place, path in enumerate(files):
        if after and place + 1 < len(files):
            first = next(read_month(files[place + 1], site), None)
            if first is not None and first.number <= after + 1:
                continue
        for record in read_month(path, site):
            if record.number > after:
                yield record


def read_month(path: Path, site: str) -> Iterator[UsageRecord]:
    """Yields the records of one file; raises as `read_usage`."""
    with reading(path, KIND) as scan:
        _check_site(path, scan.notes, site)
        yield from scan.records()


class UsageLog:
    """A log that is written. No file is open before the first `append`, and none after `close`.

    Attributes:
        folder: with the files; made if missing.
        name: of this log, which another one in its place has not.
    """

    def __init__(self, folder: Path, site: str) -> None:
        self.folder = folder
        self.name = ""
        self._site = site
        self._file: _Month | None = None
        self._number = 0

    def catch_up(self, records: Sequence[UsageRecord], now: float, keep_months: int) -> int:
        """Writes those of some records whose jobs have none here, and returns how many these were.

        `records` are all that the journal knows of, in its order. Files that are older than `keep_months` are deleted.

        Raises:
            JournalError: the log cannot be read or written.
        """
        with self:
            self._open(month_of(now))
            self._expire(now, keep_months)
            if not records:
                return 0
            since = month_of(min(record.time for record in records))
            # No two jobs have the same key, whosever they are.
            known = {record.key for record in read_usage(self.folder, self._site, since=since)}
            missing = [record for record in records if record.key not in known]
            self.append(missing, now)
            return len(missing)

    def append(self, records: Iterable[UsageRecord], now: float) -> None:
        """Writes records, which are durable when it returns.

        Raises:
            JournalFullError: there is no room; none of them is there, and it may be tried again.
            JournalError: the disk has failed.
        """
        file = self._open(month_of(now))
        numbered = [
            _numbered(record, self._number + count) for count, record in enumerate(records, 1)
        ]
        file.append(numbered)
        self._number += len(numbered)

    def _open(self, month: str) -> _Month:
        # The file to write to. A clock that was put back leaves it as it is: names are in the order of numbers.
        files = months(self.folder)
        last = max([f"{month}{END}", *(path.name for path in files[-1:])])
        if self._file is not None and self._file.path.name == last:
            return self._file
        self.close()
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.name, self._number = self._last(files)
        path = self.folder / last
        self._file = _Month(path, self._site, self.name, self._number)
        for lock in self.folder.glob(f"*{END}.lock"):
            if lock.name != f"{last}.lock":
                lock.unlink(missing_ok=True)  # the folder belongs to the journal's daemon alone
        sync_folder(self.folder.parent)
        return self._file

    def _last(self, files: Sequence[Path]) -> tuple[str, int]:
        # Name of the log, and number of its last record; what is not whole yet has no number.
        for path in reversed(files):
            if path.stat().st_size:
                with reading(path, KIND) as scan:
                    _check_site(path, scan.notes, self._site)
                    number = int(scan.notes.get(_BEFORE, "0"))
                    for record in scan.records():
                        number = record.number
                    return scan.notes.get(_LOG, ""), number
        return str(time.time_ns()), 0

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def months_before(month: str, count: int) -> str:
    """Returns the month so many before one."""
    year, number = map(int, month.split("-"))
    whole = 12 * year + number - 1 - count
    return f"{max(0, whole // 12):04}-{whole % 12 + 1:02}"


def _numbered(record: UsageRecord, number: int) -> UsageRecord:
    return replace(record, number=number)
