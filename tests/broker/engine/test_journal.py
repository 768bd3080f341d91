"""The journal on the disk."""

import sqlite3
import zlib
from pathlib import Path

import pytest

from broker.core.events import Submit
from broker.core.memory import Memory
from broker.core.records import BookingReleased, Counted, PlanAdopted, WorkflowForgotten
from broker.engine.journal import Journal, JournalError, JournalFullError
from grms.kit.journal import JournalLaterError, row_checksum
from tests.broker.core.test_codec import lived
from tests.broker.core.test_state import chain, world


def change(path: Path, statement: str) -> None:
    """Changes a journal that nobody has open."""
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_what_was_appended_is_there_after_a_restart(tmp_path: Path) -> None:
    """A memory made of the file is the memory that wrote it; a plan makes the last one go."""
    made = lived(3)
    with Journal(tmp_path / "b") as journal:
        for record in made.journal:
            journal.append([record])
        epoch = journal.epoch
    with Journal(tmp_path / "b") as journal:
        records = list(journal.records())
        assert journal.epoch == epoch
    plans = [each for each in made.journal if isinstance(each, PlanAdopted)]
    assert [each for each in records if isinstance(each, PlanAdopted)] == plans[-1:]
    again, known = Memory(records), made.state.memory
    assert [w.state for w in again.workflows.values()] == [
        w.state for w in known.workflows.values()
    ]
    for before, after in zip(known.tasks(), again.tasks(), strict=True):
        assert (before.state, before.booking) == (after.state, after.booking)
        assert before.placement == after.placement
    assert again.releasing == known.releasing
    assert again.bookings_count == known.bookings_count


def test_what_is_forgotten_goes_and_its_names_are_not_given_again(tmp_path: Path) -> None:
    """Records of a forgotten workflow leave the file; counts stay."""
    made = world()
    made.tell(Submit(1, "a", chain("old", 1)))
    made.run()
    made.tell(Submit(1, "b", chain("new", 1)))
    memory = made.state.memory
    counted = Counted(made.now, memory.workflows_count, memory.bookings_count)
    with Journal(tmp_path / "b") as journal:
        journal.append([*made.journal, counted, WorkflowForgotten(made.now, "w1")])
        again = Memory(journal.records())
    assert list(again.workflows) == ["w2"]
    assert (again.workflows_count, again.bookings_count) == (2, memory.bookings_count)


def test_all_of_a_group_is_written_or_nothing(tmp_path: Path) -> None:
    """A failure in the middle leaves the file as it was."""
    made = world()
    made.tell(Submit(1, "a", chain("flow", 1)))
    with Journal(tmp_path / "b") as journal:
        with pytest.raises(KeyError):
            journal.append([*made.journal, BookingReleased(1.0, "of no task")])
        assert list(journal.records()) == []


def test_a_full_disk_is_told_apart_and_can_be_made_good(tmp_path: Path) -> None:
    """Nothing is appended, and after there is room the same records are."""
    made = world()
    made.tell(Submit(1, "a", chain("flow", *[1.0] * 500)))
    with Journal(tmp_path / "b") as journal:
        pages = journal._connection.execute("PRAGMA page_count").fetchone()[0]  # a small disk
        journal._connection.execute(f"PRAGMA max_page_count={pages}")  # same
        with pytest.raises(JournalFullError, match="disk is full"):
            journal.append(made.journal)
        journal._connection.execute("PRAGMA max_page_count=100000")  # a larger one
        journal.append(made.journal)
        assert len(list(journal.records())) == len(made.journal)


def test_one_process_has_it(tmp_path: Path) -> None:
    """A second opening is refused while the first lasts."""
    with Journal(tmp_path / "b"), pytest.raises(JournalError, match="only one broker"):
        Journal(tmp_path / "b")
    Journal(tmp_path / "b").close()


def test_a_changed_record_is_noticed(tmp_path: Path) -> None:
    """The error names the record and says what to do."""
    with Journal(tmp_path / "b") as journal:
        journal.append(world().journal)
    change(tmp_path / "b", "UPDATE records SET time = time + 1 WHERE number = 2")
    with Journal(tmp_path / "b") as journal, pytest.raises(JournalError, match="record 2"):
        list(journal.records())


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM records WHERE number = 2",
        "DELETE FROM records WHERE number = (SELECT max(number) FROM records)",
        "DELETE FROM records",
        "UPDATE records SET number = number + 100 WHERE number = 2",
        "INSERT INTO records SELECT 999, time, kind, workflow, body, checksum FROM records LIMIT 1",
        "DELETE FROM notes WHERE key = 'tally'",
    ],
)
def test_a_missing_or_foreign_record_is_noticed(tmp_path: Path, statement: str) -> None:
    """Rows go when their workflow does; when any other goes, comes or moves, the start says so, and what not to do."""
    with Journal(tmp_path / "b") as journal:
        journal.append(lived(3).journal)
        assert list(journal.records())
    change(tmp_path / "b", statement)
    said = "damaged: .*never an older copy of it"
    with Journal(tmp_path / "b") as journal, pytest.raises(JournalError, match=said):
        list(journal.records())


def to_version_1(path: Path) -> None:
    """Makes a journal as the first version of the program wrote it."""
    connection = sqlite3.connect(path)
    for number, moment, kind, body in connection.execute(
        "SELECT number, time, kind, body FROM records"
    ).fetchall():
        checksum = zlib.crc32(f"{moment!r} {kind} {body}".encode())
        connection.execute("UPDATE records SET checksum = ? WHERE number = ?", (checksum, number))
    connection.execute("DELETE FROM notes WHERE key = 'tally'")
    connection.execute("PRAGMA user_version=1")
    connection.commit()
    connection.close()


def test_a_journal_of_before_is_read_and_gets_its_tally(tmp_path: Path) -> None:
    """Its records are as they were, more can be appended, and from now on a missing one is noticed."""
    made = lived(3)
    with Journal(tmp_path / "b") as journal:
        journal.append(made.journal[:-1])
        before = list(journal.records())
    to_version_1(tmp_path / "b")
    with Journal(tmp_path / "b") as journal:
        assert list(journal.records()) == before
        journal.append(made.journal[-1:])
        assert list(journal.records())[-1] == made.journal[-1]
    change(tmp_path / "b", "DELETE FROM records WHERE number = 1")
    with Journal(tmp_path / "b") as journal, pytest.raises(JournalError, match="damaged: it has"):
        list(journal.records())


def test_a_damaged_journal_of_before_stays_as_it_is(tmp_path: Path) -> None:
    """A changed row is not made good by a new checksum."""
    with Journal(tmp_path / "b") as journal:
        journal.append(world().journal)
    to_version_1(tmp_path / "b")
    change(tmp_path / "b", "UPDATE records SET time = time + 1 WHERE number = 2")
    for _ in range(2):
        with pytest.raises(JournalError, match="record 2"):
            Journal(tmp_path / "b")


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("PRAGMA user_version=9", "version 9"),
        ("PRAGMA application_id=7", "no journal"),
        ("DELETE FROM notes", "no epoch"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path: Path, statement: str, word: str) -> None:
    """Other versions, other databases and stumps are not used."""
    Journal(tmp_path / "b").close()
    change(tmp_path / "b", statement)
    with pytest.raises(JournalError, match=word):
        Journal(tmp_path / "b")


def test_no_database_and_no_folder_are_said(tmp_path: Path) -> None:
    """Each error names the file."""
    (tmp_path / "text").write_text("no database, but long enough to be looked at " * 50)
    with pytest.raises(JournalError, match="damaged"):
        Journal(tmp_path / "text")
    with pytest.raises(JournalError, match="folder must exist"):
        Journal(tmp_path / "missing" / "b")


def test_a_record_that_is_whole_and_not_known_is_a_later_versions(tmp_path: Path) -> None:
    """Nothing is damaged, and nothing is to be moved away."""
    with Journal(tmp_path / "b") as journal:
        journal.append(lived(1).journal)
    connection = sqlite3.connect(tmp_path / "b")
    (number,) = connection.execute("SELECT max(number) FROM records").fetchone()
    row = (9.0, "TaskTeleported", "{}")
    checksum = row_checksum(0, number + 1, row)
    connection.execute(
        "INSERT INTO records VALUES (?, ?, ?, '', ?, ?)", (number + 1, *row[:2], row[2], checksum)
    )
    (tally,) = connection.execute("SELECT value FROM notes WHERE key = 'tally'").fetchone()
    rows, total = map(int, tally.split())
    connection.execute(
        "UPDATE notes SET value = ? WHERE key = 'tally'", (f"{rows + 1} {total + checksum}",)
    )
    connection.execute("UPDATE notes SET value = '7.5' WHERE key = 'written_by'")
    connection.commit()
    connection.close()
    with Journal(tmp_path / "b") as journal:
        journal._connection.execute("UPDATE notes SET value = '7.5' WHERE key = 'written_by'")
        with pytest.raises(
            JournalLaterError, match=r"TaskTeleported.*Hanse 7.5 has written"
        ) as error:
            list(journal.records())
    assert "damaged" not in str(error.value)
