"""The journal on the disk."""

import sqlite3
from pathlib import Path

import pytest

from broker.events import Submit
from broker.journal import Journal, JournalError, JournalFullError
from broker.memory import Memory
from broker.records import BookingReleased, Counted, PlanAdopted, WorkflowForgotten
from tests.broker.test_codec import lived
from tests.broker.test_state import chain, world


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
    connection = sqlite3.connect(tmp_path / "b")
    connection.execute("UPDATE records SET time = time + 1 WHERE number = 2")
    connection.commit()
    connection.close()
    with Journal(tmp_path / "b") as journal, pytest.raises(JournalError, match="record 2"):
        list(journal.records())


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
    connection = sqlite3.connect(tmp_path / "b")
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(JournalError, match=word):
        Journal(tmp_path / "b")


def test_no_database_and_no_folder_are_said(tmp_path: Path) -> None:
    """Each error names the file."""
    (tmp_path / "text").write_text("no database, but long enough to be looked at " * 50)
    with pytest.raises(JournalError, match="damaged"):
        Journal(tmp_path / "text")
    with pytest.raises(JournalError, match="folder must exist"):
        Journal(tmp_path / "missing" / "b")
