import os
import secrets
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grms.kit.journal import row_checksum
from grms.site.engine.journal import (
    COMPACTED_VERSION,
    GIVEN_BACK_VERSION,
    KIND_VERSIONS,
    LATER_VERSION,
    LRMS_VERSION,
    RAILS_VERSION,
    REOFFERS_VERSION,
    RESERVATIONS_VERSION,
    ROUNDS_VERSION,
    SCHEMA_VERSION,
    STAYS_VERSION,
    Journal,
    JournalDamagedError,
    JournalError,
    JournalFullError,
    JournalLaterError,
    JournalTakenError,
    check_to_read,
)
from grms.site.facts.codec import KINDS
from grms.site.facts.jobs import Request
from grms.site.facts.lifecycle import Outcome
from grms.site.facts.records import (
    JobEnded,
    JobKept,
    JobReceived,
    PartnerFaulted,
    Record,
    ReservationExpired,
)
from tests.grms.site.facts.test_codec import instances


def some(count: int, first: int = 1) -> list[Record]:
    """Returns records of as many jobs."""
    return [
        JobReceived(float(n), n, "ann", f"k{n}", "", Request(1, 10.0), b"run" * n)
        for n in range(first, first + count)
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Returns where a journal may be made."""
    return tmp_path / "journal.db"


@pytest.mark.parametrize("durability", ["power", "process"])
def test_what_was_appended_is_there_after_reopening(path: Path, durability: str) -> None:
    """All records, in order, and the journal's epoch stays."""
    with Journal(path, "a", durability=durability) as journal:  # type: ignore[arg-type]  # both are fine
        epoch = journal.epoch
        journal.append(some(3))
        journal.append([])
        journal.append(some(2, first=4))
        assert journal.count == 5
        assert journal.size_bytes > 0
    with Journal(path, "a") as journal:
        assert list(journal.records()) == some(5)
        assert (journal.count, journal.epoch) == (5, epoch)
        journal.append(some(1, first=6))
    with Journal(path, "a") as journal:
        assert list(journal.records()) == some(6)


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 70])
def test_a_group_is_there_whole_or_not_at_all(path: Path, count: int) -> None:
    """However many records it has, and whichever of its rows cannot be written."""
    group = some(count, first=2)
    with Journal(path, "a") as journal:
        journal.append(some(1))
        journal.append(group)
        with closing(sqlite3.connect(path)) as other, other:
            other.execute(
                "INSERT INTO records VALUES (?, 0, 'foreign', '', NULL, 0)", (2 * count + 1,)
            )
        with pytest.raises(JournalError):
            journal.append(group)
        assert journal.count == count + 1
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("DELETE FROM records WHERE kind = 'foreign'")
        journal.append(group)
        assert list(journal.records()) == [*some(1), *group, *group]


def test_the_records_of_some_kinds_can_be_read_alone(path: Path) -> None:
    """In their order; rows of other kinds are looked at all the same."""
    kept = [JobKept(float(n), n) for n in (1, 2)]
    with Journal(path, "a") as journal:
        journal.append([*some(1), kept[0], *some(1, first=2), kept[1]])
        assert list(journal.records({JobKept})) == kept
        assert list(journal.records(())) == []
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE records SET body = '{}' WHERE kind = 'JobReceived'")
    with Journal(path, "a") as journal, pytest.raises(JournalDamagedError, match="record 1 is not"):
        list(journal.records({JobKept}))


def test_a_new_journal_has_a_later_epoch(path: Path) -> None:
    """A journal that replaces a lost one is known by its greater epoch."""
    with Journal(path, "a") as journal:
        first = journal.epoch
    path.unlink()
    with Journal(path, "a") as journal:
        assert journal.epoch > first


def test_all_records_can_be_replaced(path: Path) -> None:
    """By fewer, all or none; what is appended goes on after them, and the epoch stays."""
    with Journal(path, "a") as journal:
        epoch = journal.epoch
        journal.append(some(9))
        pages = journal._connection.execute("PRAGMA page_count").fetchone()[0]
        journal._connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(JournalFullError):
            journal.replace(some(1) + some(1, first=100_000))
        assert list(journal.records()) == some(9)
        journal.replace(some(2, first=8))
        assert journal.count == 2
        journal.append(some(1, first=10))
    with Journal(path, "a") as journal:
        assert list(journal.records()) == some(3, first=8)
        assert (journal.count, journal.epoch) == (3, epoch)


def test_a_second_daemon_is_refused(path: Path) -> None:
    """One journal, one process; when that has closed it another may have it."""
    with Journal(path, "a"), pytest.raises(JournalTakenError, match="another process has this"):
        Journal(path, "a")
    Journal(path, "a").close()


def test_a_journal_can_be_read_while_a_daemon_has_it(path: Path) -> None:
    """An operator looks at it with any SQLite tool."""
    with Journal(path, "a") as journal:
        journal.append(some(2))
        reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        kinds = reader.execute("SELECT kind FROM records ORDER BY number").fetchall()
        reader.close()
    assert kinds == [("JobReceived",), ("JobReceived",)]


def test_every_commit_is_synced(path: Path) -> None:
    """The mode in which SQLite promises that a commit survives a power failure."""
    with Journal(path, "a") as journal:
        assert journal._pragma("synchronous") == 2
        (mode,) = journal._connection.execute("PRAGMA journal_mode").fetchone()
        assert mode == "wal"


def test_another_sites_journal_is_refused(path: Path) -> None:
    """The error names both sites."""
    Journal(path, "a").close()
    with pytest.raises(JournalError, match="site 'a', not of 'b'"):
        Journal(path, "b")


def test_a_later_version_is_refused(path: Path) -> None:
    """What a later program wrote is not guessed at."""
    last = max(KIND_VERSIONS.values())
    with Journal(path, "a") as journal:
        journal._connection.execute(f"PRAGMA user_version={last + 1}")
    with pytest.raises(JournalError, match=rf"version {last + 1}.*version {last}"):
        Journal(path, "a")


def test_a_foreign_file_is_refused_and_left_alone(path: Path) -> None:
    """A text is no journal."""
    path.write_text("dear diary\n" * 200)
    with pytest.raises(JournalDamagedError, match="not a database"):
        Journal(path, "a")
    assert path.read_text() == "dear diary\n" * 200


def test_a_foreign_database_is_refused(path: Path) -> None:
    """Nor is another program's database."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE diary (line TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(JournalDamagedError, match="a database, but no journal"):
        Journal(path, "a")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """The folder is the operator's to make."""
    with pytest.raises(JournalError, match=r"nowhere.*the journal's folder must exist"):
        Journal(tmp_path / "nowhere" / "journal.db", "a")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("DELETE FROM records WHERE number = 2", "record 2 is missing"),
        (
            "UPDATE records SET body = replace(body, 'ann', 'bob') WHERE number = 2",
            "record 2 is not",
        ),
        ("UPDATE records SET payload = x'00' WHERE number = 3", "record 3 is not"),
        ("UPDATE records SET time = 9 WHERE number = 1", "record 1 is not"),
        ("UPDATE records SET kind = 'JobKept' WHERE number = 1", "record 1 is not"),
    ],
)
def test_a_changed_row_is_noticed(path: Path, change: str, what: str) -> None:
    """A row that is missing or not what was written stops the start, with its number."""
    with Journal(path, "a") as journal:
        journal.append(some(4))
        journal._connection.execute(change)
    with Journal(path, "a") as journal, pytest.raises(JournalDamagedError, match=what):
        list(journal.records())


def test_a_damaged_file_is_noticed(path: Path) -> None:
    """Overwritten pages are found when it is opened, or when it is read; a copy may be put back then."""
    with Journal(path, "a") as journal:
        journal.append(some(400))
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(content[:middle] + os.urandom(9000) + content[middle + 9000 :])
    cure = r"damaged: [\s\S]*; move it away with the files beside it and put back a copy; where there is none"
    with pytest.raises(JournalDamagedError, match=cure), Journal(path, "a") as journal:
        list(journal.records())


@given(
    st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), min_size=1, max_size=8
    )
)
def test_flipped_bits_are_noticed_or_mean_nothing(flips: list[tuple[float, int]]) -> None:
    """Wherever they are: in records, in notes, in what SQLite keeps of its tables."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "journal")
        with Journal(path, "a") as journal:
            journal.append(some(9))
        content = bytearray(path.read_bytes())
        for where, bit in flips:
            content[int(where * len(content))] ^= 1 << bit
        path.write_bytes(content)
        try:
            with Journal(path, "a") as journal:
                assert list(journal.records()) == some(journal.count)
        except JournalError:
            pass


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (b"ann", b"\xffnn", "a text in it is not UTF-8;"),
        (b"TABLE records", b"TABLE rec\xffrds", "malformed|not what was written"),
        (b"JobReceived", b"Job\xffeceived", "a text in it is not UTF-8;"),
    ],
)
def test_a_text_that_is_none_any_more_is_damage(
    path: Path, before: bytes, after: bytes, what: str
) -> None:
    """It is said so, without the text, in which may be what is nobody's business."""
    with Journal(path, "a") as journal:
        journal.append(some(2))
    content = path.read_bytes()
    assert before in content
    path.write_bytes(content.replace(before, after))
    with pytest.raises(JournalDamagedError, match=what) as damage, Journal(path, "a") as journal:
        list(journal.records())
    assert "idempotency" not in str(damage.value)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE notes SET value = 'x' WHERE key = 'epoch'",
        "UPDATE notes SET value = '9223372036854775808' WHERE key = 'epoch'",
        "UPDATE records SET payload = 'text' WHERE number = 2",
        "UPDATE records SET checksum = 'text' WHERE number = 2",
        "UPDATE records SET checksum = 'text' WHERE number = 4",
    ],
)
def test_a_value_of_another_kind_is_damage(path: Path, change: str) -> None:
    """It is no fault of the program, and shows no traceback."""
    with Journal(path, "a") as journal:
        journal.append(some(4))
        journal._connection.execute(change)
    with pytest.raises(JournalDamagedError), Journal(path, "a") as journal:
        list(journal.records())


def test_a_truncated_file_is_noticed(path: Path) -> None:
    """Nor is half a file used."""
    with Journal(path, "a") as journal:
        journal.append(some(400))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(JournalDamagedError, match="damaged"), Journal(path, "a") as journal:
        list(journal.records())


def test_a_full_disk_is_said_so_and_costs_nothing(path: Path) -> None:
    """All records of an append are there, or none; after making room it goes on."""
    with Journal(path, "a") as journal:
        journal.append(some(2))
        pages = journal._pragma("page_count")
        journal._connection.execute(f"PRAGMA max_page_count={pages + 2}")
        with pytest.raises(JournalFullError, match="the disk is full; make room"):
            journal.append(some(500, first=3))
        assert journal.count == 2
        journal._connection.execute("PRAGMA max_page_count=1000000")
        journal.append(some(1, first=3))
        assert list(journal.records()) == some(3)
    with Journal(path, "a") as journal:
        journal.append(some(500, first=4))
        assert list(journal.records()) == some(503)


def test_notes_are_kept(path: Path) -> None:
    """A word about the journal outlives the process; its own are not for others to change."""
    with Journal(path, "a") as journal:
        assert journal.note("replay") is None
        journal.set_note("replay", "x")
        journal.set_note("replay", "y")
        with pytest.raises(ValueError, match="the journal's own"):
            journal.set_note("epoch", "1")
    with Journal(path, "a") as journal:
        assert journal.note("replay") == "y"


WRITER = """
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from grms.site.engine.journal import Journal
from grms.site.facts.records import JobKept
with Journal(Path(sys.argv[1]), "a", durability="process") as journal:
    number = journal.count
    while True:
        journal.append([JobKept(0.0, number + 1), JobKept(0.0, number + 2)])
        number += 2
        print(number, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(path: Path) -> None:
    """However a process ends, what `append` returned for is there, and the journal is free."""
    told = 0
    for _ in range(3):
        with subprocess.Popen(  # noqa: S603  # a program of this test
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            for _ in range(40):
                told = int(writer.stdout.readline())
            with pytest.raises(JournalTakenError):
                Journal(path, "a")
            writer.send_signal(signal.SIGKILL)
            rest = writer.stdout.read().split()
            writer.wait()
            told = int(rest[-1]) if rest and len(rest) > 1 else told
        with Journal(path, "a") as journal:
            records = list(journal.records())
        assert len(records) >= told
        assert records == [JobKept(0.0, number + 1) for number in range(len(records))]
        assert len(records) % 2 == 0


def test_an_error_of_the_disk_is_told_apart_from_a_full_one(path: Path) -> None:
    """What makes room, and what does not, is known by SQLite's own codes."""
    with Journal(path, "a") as journal:
        for code, kind in (
            (sqlite3.SQLITE_FULL, JournalFullError),
            (sqlite3.SQLITE_IOERR_SHMSIZE, JournalFullError),
            (sqlite3.SQLITE_CORRUPT, JournalDamagedError),
            (sqlite3.SQLITE_NOTADB, JournalDamagedError),
            (sqlite3.SQLITE_IOERR_WRITE, JournalError),
        ):
            error = sqlite3.OperationalError("what SQLite says")
            error.sqlite_errorcode = code
            assert type(journal._explained(error)) is kind
            assert str(path) in str(journal._explained(error))


def test_records_of_later_kinds_are_told_by_the_version(path: Path) -> None:
    """A program of before says that it is too old, and not that the journal is damaged."""
    later: list[Record] = [PartnerFaulted(1.0, "b", "it says 7")]
    with Journal(path, "a") as journal:
        journal.append(some(3))
        assert version_of(path) == SCHEMA_VERSION
        journal.replace(some(2))
        assert version_of(path) == COMPACTED_VERSION
        journal.append(later)
        assert version_of(path) == LATER_VERSION
        journal.append(some(1, first=3))
        assert version_of(path) == LATER_VERSION
        journal.replace(some(2))
        assert version_of(path) == COMPACTED_VERSION
        journal.replace(some(2) + later)
        assert version_of(path) == LATER_VERSION
    with Journal(path, "a") as journal:
        assert list(journal.records()) == some(2) + later
        journal.append([ReservationExpired(2.0, 1), *later])
        assert version_of(path) == RESERVATIONS_VERSION
        journal.append(later)
        assert version_of(path) == RESERVATIONS_VERSION
    with Journal(path, "a") as journal:
        journal.append(later)
        assert version_of(path) == RESERVATIONS_VERSION
        journal.replace(some(2) + later)
        assert version_of(path) == LATER_VERSION


def test_records_take_the_place_of_notes(path: Path) -> None:
    """All of it or nothing; other notes and records stay."""
    with Journal(path, "a") as journal:
        journal.set_note("replay", "x")
        for key in ("thing", "thing/1", "thing/2"):
            journal.set_note(key, "y")
        journal.append(some(2))
        pages = journal._pragma("page_count")
        journal._connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(JournalFullError):
            journal.take_over(some(500, first=3), "thing")
        journal._connection.execute("PRAGMA max_page_count=1000000")
        assert (journal.note("thing/1"), journal.last_time, journal.count) == ("y", 2.0, 2)
        journal.take_over(some(3, first=3), "thing")
        assert journal.last_time == 5.0
        assert list(journal.records()) == some(5)
        keys = ("thing", "thing/1", "thing/2", "replay")
        assert [journal.note(key) for key in keys] == [None, None, None, "x"]
    with Journal(path.with_name("new"), "a") as journal:
        assert journal.last_time == 0.0


def version_of(path: Path) -> int:
    """Returns the version that a journal's file has."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


@pytest.mark.parametrize("outcome", Outcome)
def test_a_later_word_in_a_record_of_before_is_told_by_the_version(
    path: Path, outcome: Outcome
) -> None:
    """A user's reason that looks like one changes nothing."""
    older = {"completed", "failed", "cancelled", "timeout", "not_run"}
    with Journal(path, "a") as journal:
        journal.append([JobEnded(1.0, 1, Outcome.FAILED, 1.0, 1.0, '"outcome":"lost"')])
        assert version_of(path) == SCHEMA_VERSION
        journal.append([JobEnded(1.0, 1, outcome, 1.0, 1.0, "")])
        assert version_of(path) == (SCHEMA_VERSION if outcome.value in older else LRMS_VERSION)


def test_every_kind_is_of_before_or_later() -> None:
    """Those of before are these; a further kind needs a further version."""
    before = {
        "AbandonedSettled", "GuestAccepted", "GuestAcknowledged", "GuestCancelRequested",
        "GuestDeclined", "GuestEnded", "GuestStarted", "GuestWithdrawn", "JobAbandoned",
        "JobCancelRequested", "JobDeclined", "JobDelegated", "JobEnded", "JobKept", "JobOffered",
        "JobReceived", "JobStarted", "PartnerTally", "SiteTally",
    }  # fmt: skip
    assert set(KINDS) == before | set(KIND_VERSIONS)
    assert set(KIND_VERSIONS.values()) == {
        LATER_VERSION,
        RESERVATIONS_VERSION,
        LRMS_VERSION,
        RAILS_VERSION,
        REOFFERS_VERSION,
        ROUNDS_VERSION,
        STAYS_VERSION,
        GIVEN_BACK_VERSION,
    }


@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("kind", sorted(KINDS))
@given(data=st.data())
def test_a_journal_with_a_record_of_any_kind_is_opened_again(
    tmp_path: Path, kind: str, data: st.DataObject
) -> None:
    """By the program that has written it: it reads every version that it writes."""
    place = tmp_path / f"{secrets.token_hex(8)}.journal"
    record = data.draw(instances(KINDS[kind]))
    with Journal(place, "a") as journal:
        journal.append([record])
    with Journal(place, "a") as journal:
        assert list(journal.records()) == [record]


@pytest.mark.parametrize("moment", [-0.0, 0.0, 3, 5e-324, -1e300])
def test_a_moment_is_kept_however_it_is_written(path: Path, moment: float) -> None:
    """SQLite knows no zero with a sign, and no whole number where it keeps others; neither is damage."""
    record = replace(some(1)[0], time=moment)
    with Journal(path, "a") as journal:
        journal.append([record])
    with Journal(path, "a") as journal:
        assert list(journal.records()) == [record]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("JobTeleported", '{"job":1}'),
        ("JobStarted", '{"job":1,"start_time":1.0,"mood":"good"}'),
        ("JobEnded", '{"job":1,"outcome":"preempted","end_time":1.0,"run_time":1.0,"reason":""}'),
        ("JobKept", '{"job":1}'),
    ],
    ids=["kind", "field", "outcome", "known"],
)
def test_a_record_that_is_whole_and_not_known_is_a_later_versions(
    path: Path, kind: str, body: str
) -> None:
    """Its checksum proves that it was written so: nothing is damaged, and nothing is to be moved away."""
    with Journal(path, "a") as journal:
        journal.append(some(3))
        row = (9.0, kind, body, None)
        checksum = row_checksum(journal._checksum, 4, row)
        journal._connection.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", (4, *row, checksum)
        )
        journal._connection.execute("UPDATE notes SET value = '7.5' WHERE key = 'written_by'")

        def read() -> None:
            list(journal.records())

        def take() -> None:
            takers: dict[str, Any] = {"JobStarted": lambda *_: None, "JobEnded": lambda *_: None}
            journal.hand_over(lambda _: None, takers, lambda _: None)

        for each in (read, take):
            if kind == "JobKept":
                each()
                continue
            with pytest.raises(
                JournalLaterError, match=r"record 4: .*Hanse 7.5 has written"
            ) as error:
                each()
            assert "damaged" not in str(error.value)
            assert "move it away" not in str(error.value)


def test_who_only_looks_is_told_of_a_later_version_too(path: Path) -> None:
    """By which it was written, where it says so."""
    Journal(path, "a").close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version=99")
        with pytest.raises(JournalLaterError, match="version 99, written by a later version"):
            check_to_read(connection, path, "a")
        connection.execute("UPDATE notes SET value = '7.5' WHERE key = 'written_by'")
        with pytest.raises(JournalLaterError, match=r"use Hanse 7\.5 or a later one"):
            check_to_read(connection, path, "a")
