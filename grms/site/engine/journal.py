"""The journal: a site's records in one SQLite file.

A site may forget everything but this. `append` returns when its records are on the disk: the file
is in write-ahead mode and every commit is synced (`synchronous=FULL`). One commit takes some
milliseconds on an ordinary disk however many records it has, so the daemon puts the records of
all events that have come meanwhile into one.

`durability="process"` leaves the sync out: what was appended survives the end of the process in
any way, `kill -9` as well, but not a power failure. It is for replays, which a power failure ends
anyway.

Each row carries a checksum over itself and the row before, so that a changed, missing or foreign
row is noticed at the next start. One that is put back from an older copy is not noticed here, but by
partners (docs/protocol.md). Where a journal is lost a new one is begun; its epoch, the moment of its
creation, tells partners that it is another.
"""

import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

from grms.kit.journal import (
    JournalDamagedError,
    JournalError,
    JournalFile,
    JournalFullError,
    JournalKind,
    JournalLaterError,
    JournalTakenError,
    later_version,
    row_checksum,
    written_by,
)
from grms.names import check_site_name
from grms.site.facts._rows import RowError, check, hand_over
from grms.site.facts.codec import decode, encode, form_of
from grms.site.facts.lifecycle import Outcome
from grms.site.facts.records import Record

__all__ = [
    "COMPACTED_VERSION",
    "SCHEMA_VERSION",
    "Journal",
    "JournalDamagedError",
    "JournalError",
    "JournalFullError",
    "JournalLaterError",
    "JournalTakenError",
    "check_to_read",
]

ROWS_AT_ONCE: Final = 4096
"""Rows that are read before any of them is handed on."""

SCHEMA_VERSION: Final = 1
"""Of the tables and of the records in them; a later one may not be readable by this program."""

COMPACTED_VERSION: Final = 2
"""Of a journal that was compacted: it has records that a program of version 1 does not know."""

LATER_VERSION: Final = 3
"""Of a journal with a record of a kind that came after compaction; see `KIND_VERSIONS`."""

RESERVATIONS_VERSION: Final = 4
"""Of a journal with records of reservations; before they were notes (`reservation_notes`)."""

LRMS_VERSION: Final = 5
"""Of a journal with records of what only real batch systems do; see `KIND_VERSIONS`."""

RAILS_VERSION: Final = 6
"""Of a journal with what a site notes for its rails; see `KIND_VERSIONS`."""

REOFFERS_VERSION: Final = 7
"""Of a journal with steps of jobs that were offered while they waited; see `KIND_VERSIONS`."""

ROUNDS_VERSION: Final = 8
"""Of a journal that says when rounds of offers begin and end; see `KIND_VERSIONS`."""

STAYS_VERSION: Final = 9
"""Of a journal that says of a job that its batch system will not let it go; see `KIND_VERSIONS`."""

GIVEN_BACK_VERSION: Final = 10
"""Of a journal that says of a partner's job that it is to leave the queue; see `KIND_VERSIONS`."""

KIND_VERSIONS: Final = {
    "EpochBegun": LATER_VERSION,
    "JobResubmitted": LATER_VERSION,
    "JobReturned": LATER_VERSION,
    "JobTakenBack": LATER_VERSION,
    "JobWrittenOff": LATER_VERSION,
    "PartnerFaulted": LATER_VERSION,
    "PartnerStanding": LATER_VERSION,
    "ReportDisbelieved": LATER_VERSION,
    "ReservationBooked": RESERVATIONS_VERSION,
    "ReservationEnded": RESERVATIONS_VERSION,
    "ReservationExpired": RESERVATIONS_VERSION,
    "ReservationExtended": RESERVATIONS_VERSION,
    "ReservationLaunched": RESERVATIONS_VERSION,
    "ReservationReleased": RESERVATIONS_VERSION,
    "ReservationStarted": RESERVATIONS_VERSION,
    "ReservationTally": RESERVATIONS_VERSION,
    "GuestExited": LRMS_VERSION,
    "GuestLost": LRMS_VERSION,
    "GuestRequeued": LRMS_VERSION,
    "JobExited": LRMS_VERSION,
    "JobLost": LRMS_VERSION,
    "JobRequeued": LRMS_VERSION,
    "JobPromised": RAILS_VERSION,
    "PartnerBooks": RAILS_VERSION,
    "PartnerPardoned": RAILS_VERSION,
    "PromisesReviewed": RAILS_VERSION,
    "SiteBooks": RAILS_VERSION,
    "GuestConfirmed": REOFFERS_VERSION,
    "GuestReserved": REOFFERS_VERSION,
    "JobLeaving": REOFFERS_VERSION,
    "JobLeft": REOFFERS_VERSION,
    "JobReofferEnded": REOFFERS_VERSION,
    "JobReoffered": REOFFERS_VERSION,
    "RoundHeld": ROUNDS_VERSION,
    "JobStays": STAYS_VERSION,
    "GuestLeaving": GIVEN_BACK_VERSION,
    "GuestStays": GIVEN_BACK_VERSION,
}
"""Kinds of records that came later, and the version that a journal with one has.

A program that does not know them is to say that the journal is of a later version, not that it is
damaged."""

_ENDS: Final = frozenset({"GuestEnded", "JobEnded"})
_LATER_OUTCOMES: Final = tuple(
    f'"outcome":"{outcome.value}"'
    for outcome in (Outcome.NODE_FAIL, Outcome.OUT_OF_MEMORY, Outcome.LOST, Outcome.UNKNOWN)
)
"""Words in records of kinds of before that those programs do not know either."""

_SCHEMA = """
CREATE TABLE records (
    number INTEGER PRIMARY KEY,
    time REAL NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    payload BLOB,
    checksum INTEGER NOT NULL
);
"""
_ROW = "(?, ?, ?, ?, ?, ?)"
_INSERTS: Final = tuple(
    f"INSERT INTO records VALUES {', '.join([_ROW] * rows)}"  # noqa: S608  # no value is in it
    for rows in range(33)
)
"""The statements that append so many rows; the first is none. A connection keeps them prepared."""

_KIND = JournalKind(
    application_id=0x48414E53,  # "HANS"
    version=SCHEMA_VERSION,
    schema=_SCHEMA,
    tables=frozenset({"records"}),
    program="daemon",
    only_one="only one daemon may run for a site at a time",
    cure="move it away with the files beside it and put back a copy; where there is none, begin a new one, after "
    "looking into the batch system for jobs that run",
    versions_read=frozenset(range(COMPACTED_VERSION, max(KIND_VERSIONS.values()) + 1)),
)


class Journal(JournalFile):
    """An open journal; nobody else can open it meanwhile, but read it.

    After a `JournalFullError` of `append` none of the records is in the journal: whatever waits for
    them must not be done before they have been appended again, in order. After any other
    `JournalError` the process has to end: its state is ahead of a journal that nobody knows.

    Args:
        path: of the file; made where it does not exist, in an existing folder.
        site: whose journal it is.
        durability: "power" or "process"; see the module.

    Raises:
        JournalTakenError: another process has it.
        JournalDamagedError: the file is damaged, or no journal.
        JournalLaterError: a later version of this program has written it.
        JournalError: it is another site's, or cannot be opened.
    """

    def __init__(
        self, path: Path, site: str, *, durability: Literal["power", "process"] = "power"
    ) -> None:
        check_site_name(site)
        self.site = site
        super().__init__(path, _KIND, {"site": site}, durability=durability)

    def _prepare(self) -> None:
        super()._prepare()
        with self._explaining():
            last = self._connection.execute(
                "SELECT number, checksum FROM records ORDER BY number DESC LIMIT 1"
            ).fetchone()
            self._count = int(last[0]) if last else 0
            self._checksum = int(last[1]) if last else 0
        self._version = self._pragma("user_version")

    def _check_header(self) -> None:
        super()._check_header()
        site = self.note("site")
        if site != self.site:
            raise JournalError(
                f"{self.path}: this is the journal of site {site!r}, not of {self.site!r}; name "
                f"another file in the site's configuration"
            )
        self.epoch = int(self.note("epoch") or 0)
        if not 1 <= self.epoch < 2**63:
            raise self.damaged("it has no epoch")

    def append(self, records: Iterable[Record]) -> None:
        """Puts records at the end; when it returns they are durable, all of them.

        It may be called in any thread, but not in two at once.

        Raises:
            JournalFullError: the disk is full. Nothing was appended; it may be tried again.
            JournalError: the disk has failed otherwise. What was appended is not known.
        """
        rows = _rows(records, self._count, self._checksum)
        if rows:
            self._write(rows, self._version)

    def replace(self, records: Iterable[Record]) -> None:
        """Puts others in the place of all records: all of it or nothing.

        Raises:
            ValueError: there is none.
            JournalFullError: the disk is full. Nothing was changed.
            JournalError: the disk has failed otherwise.
        """
        rows = _rows(records, 0, 0)
        if not rows:
            raise ValueError("a journal cannot be left without records")
        self._write(rows, COMPACTED_VERSION, ("DELETE FROM records",))

    def take_over(self, records: Iterable[Record], notes: str) -> None:
        """Puts records at the end in the place of notes: all of it or nothing.

        Args:
            records: that say what the notes have said; at least one.
            notes: what the keys of the notes begin with.

        Raises:
            JournalFullError: the disk is full. Nothing was changed.
            JournalError: the disk has failed otherwise.
        """
        rows = _rows(records, self._count, self._checksum)
        self._write(rows, self._version, ("DELETE FROM notes WHERE key GLOB ?", f"{notes}*"))

    def _write(
        self, rows: Sequence[tuple[Any, ...]], version: int, *before: tuple[str, ...]
    ) -> None:
        version = max(version, *map(_version_of, rows))
        if len(rows) < len(_INSERTS) and version == self._version and not before:
            # One statement is a transaction of its own, and costs a third less than one in three.
            try:
                self._connection.execute(_INSERTS[len(rows)], tuple(chain.from_iterable(rows)))
            except sqlite3.Error as error:
                raise self._explained(error) from error
        else:
            with self._transaction() as connection:
                for statement, *values in before:
                    connection.execute(statement, values)
                if version != self._version:
                    connection.execute(f"PRAGMA user_version={version}")
                connection.executemany(_INSERTS[1], rows)
        self._count, self._checksum = int(rows[-1][0]), int(rows[-1][-1])
        self._version = version

    def records(self, kinds: Iterable[type[Record]] | None = None) -> Iterator[Record]:
        """Yields records, oldest first; all rows are looked at, whatever is wanted of them.

        Args:
            kinds: which are wanted; None for all.

        Raises:
            JournalDamagedError: a row is missing or not what was written; the text names it.
            JournalLaterError: one is what a later version of this program has written.
        """
        wanted = None if kinds is None else {kind.__name__ for kind in kinds}
        for rows in self._blocks():
            for row in rows:
                if wanted is None or row[1] in wanted:
                    yield self._decoded(row)

    def hand_over(
        self,
        record: Callable[[Record], None],
        plain: Mapping[str, Callable[..., None]],
        look: Callable[[int], None],
    ) -> float:
        """Hands the records to whoever takes them, oldest first.

        Args:
            record: takes a record.
            plain: takes the fields of a record of a kind instead, by the kind's name, so that none
                has to be made.
            look: is told now and then how many have been handed over.

        Returns:
            The latest moment of those whose fields were taken; minus infinity for none.

        Raises:
            JournalDamagedError: a row is missing or not what was written; the text names it.
            JournalLaterError: one is what a later version of this program has written.
        """
        takers = {kind: (form_of(kind), take) for kind, take in plain.items()}
        count, latest = 0, -math.inf
        for rows in self._blocks():
            try:
                reached = hand_over(rows, takers, lambda row: record(self._decoded(row)))
            except RowError as error:
                raise self.later(f"record {error.number}: {error}") from error
            latest = max(latest, reached)
            count += len(rows)
            look(count)
        return latest

    def _decoded(self, row: tuple[Any, ...]) -> Record:
        try:
            return decode(row)
        except ValueError as error:
            raise self.later(f"record {row[4]}: {error}") from error

    def _blocks(self) -> Iterator[list[tuple[Any, ...]]]:
        """Yields rows as they were written, some thousand at a time: time to checksum."""
        count, checksum = 0, 0
        with self._explaining():
            cursor = self._connection.execute(
                "SELECT time, kind, body, payload, number, checksum FROM records ORDER BY number"
            )
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                try:
                    checksum = check(rows, count + 1, checksum)
                except ValueError as error:
                    raise self.damaged(str(error)) from error
                count += len(rows)
                yield rows

    @property
    def count(self) -> int:
        """How many records it holds."""
        return self._count

    @property
    def last_time(self) -> float:
        """Moment of the last record, seconds; 0 where there is none."""
        with self._explaining():
            row = self._connection.execute(
                "SELECT time FROM records ORDER BY number DESC LIMIT 1"
            ).fetchone()
        return 0.0 if row is None else float(row[0])


def check_to_read(connection: sqlite3.Connection, path: Path, site: str) -> None:
    """Checks that what somebody has opened to look at is the journal of a site.

    Args:
        connection: to the file; it may be for reading alone, and a daemon may have the file.
        path: as errors call it.
        site: whose journal it is to be.

    Raises:
        JournalError: it is none, of another site, or of a later version.
        sqlite3.Error: the file cannot be read.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _KIND.application_id:
        raise JournalError(f"{path}: this is no journal of a site")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    readable = {_KIND.version, *_KIND.versions_read}
    if version not in readable:
        raise JournalLaterError(later_version(path, version, max(readable), written_by(path)))
    found = connection.execute("SELECT value FROM notes WHERE key = 'site'").fetchone()
    if found != (site,):
        whose = "nobody" if found is None else repr(found[0])
        raise JournalError(f"{path}: this is the journal of {whose}, not of {site!r}")


def _rows(records: Iterable[Record], number: int, checksum: int) -> list[tuple[Any, ...]]:
    rows = []
    for record in records:
        row = encode(record)
        number += 1
        checksum = row_checksum(checksum, number, row)
        rows.append((number, *row, checksum))
    return rows


def _version_of(row: tuple[Any, ...]) -> int:
    # Of the oldest program that knows all words of a row.
    kind, body = row[2], row[3]
    if kind in _ENDS and any(word in body for word in _LATER_OUTCOMES):
        return LRMS_VERSION
    return KIND_VERSIONS.get(kind, SCHEMA_VERSION)
