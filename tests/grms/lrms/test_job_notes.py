"""What is kept of each job, outside its folder."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from grms.lrms.job_notes import JobNotes, KeptPlace, Marks

OWN, LENT = "A+1+1", "A+1+2"


def test_it_is_kept_where_jobs_are_not(tmp_path: Path) -> None:
    """In folders of the daemon's alone: a job may do in its own what it likes."""
    notes = JobNotes(tmp_path)
    notes.runs_as(LENT, "ann")
    for name in (OWN, LENT):
        notes.keep(name, Marks(run=True, number="7"))
    for each in (notes, JobNotes(tmp_path)):
        assert [each.account(name) for name in (OWN, LENT, "A+1+3")] == ["", "ann", ""]
        assert [each.marks(name) for name in (OWN, LENT)] == [Marks(run=True, number="7")] * 2
        assert each.marks("A+1+3") is None
    files = sorted(
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()
    )
    assert files == [".accounts/A+1+2", ".marks/A+1+1.json", ".marks/A+1+2.json"]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {0o700}


def test_it_is_forgotten(tmp_path: Path) -> None:
    """What is outside the folders goes with them; of a job that nothing is known of there is nothing to do."""
    notes = JobNotes(tmp_path)
    notes.runs_as(LENT, "ann")
    notes.keep(LENT, Marks(run=True))
    for name in (LENT, LENT, OWN):
        notes.forget(name)
    assert notes.account(LENT) == ""
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run": true, "more": 1}', "null"])
def test_what_cannot_be_read_is_the_worst(tmp_path: Path, text: str) -> None:
    """The job may have run, and is not run again."""
    notes = JobNotes(tmp_path)
    notes.keep(OWN, Marks(run=False))
    (tmp_path / ".marks" / f"{OWN}.json").write_text(text)
    assert notes.marks(OWN) == Marks(run=True, released=True)


def test_a_place_that_cannot_be_read_is_that_of_one_job(tmp_path: Path) -> None:
    """All others are known; only where no note can be read it is the disk, and nothing is said of any place."""
    notes = JobNotes(tmp_path)
    assert notes.places() == {}
    place = KeptPlace("7", "A/1/1", left=True)
    notes.keep_place(OWN, place)
    folder = tmp_path / ".places"
    (folder / f"{LENT}.json").mkdir()
    (folder / "A+1+3.json").symlink_to("A+1+3.json")
    (folder / "A+1+4.json").write_bytes(b"\xff")
    assert notes.places() == {OWN: place}
    folder.rename(tmp_path / "away")
    folder.write_text("")
    with pytest.raises(NotADirectoryError):
        notes.places()


def test_jobs_are_named_of_which_nothing_was_kept_lately(tmp_path: Path) -> None:
    """Whether they have a folder or not."""
    notes = JobNotes(tmp_path)
    assert notes.names(2000.0) == []
    for name in (OWN, LENT):
        notes.keep(name, Marks(run=True))
    os.utime(tmp_path / ".marks" / f"{OWN}.json", (1000.0, 1000.0))
    assert notes.names(2000.0) == [OWN]


def test_an_empty_folder_is_not_taken_for_the_one_that_was_there(tmp_path: Path) -> None:
    """That of a file system that is not mounted at a start; nothing is said of any job until it is, or an operator says so."""
    folder, away, known = tmp_path / "jobs", tmp_path / "away", tmp_path / "north.spool"
    folder.mkdir()
    notes = JobNotes(folder, known)
    with pytest.raises(FileNotFoundError, match="not mounted"):
        notes.marks(OWN)  # before it was opened
    notes.open()
    notes.keep(OWN, Marks(run=True, released=True))
    JobNotes(folder, known).open()
    folder.rename(away)
    folder.mkdir()
    notes = JobNotes(folder, known)
    for _ in range(2):
        with pytest.raises(FileNotFoundError, match=f"delete {known}"):
            notes.open()
        for ask in (notes.marks, notes.account):
            with pytest.raises(FileNotFoundError, match="not mounted"):
                ask(OWN)
        with pytest.raises(FileNotFoundError, match="not mounted"):
            notes.keep(OWN, Marks(run=True))
    shutil.rmtree(folder)
    away.rename(folder)
    notes.open()
    assert notes.marks(OWN) == Marks(run=True, released=True)
    assert notes.marks(LENT) is None
    # A site that shares the folder, or whose file was lost, knows the same one.
    known.unlink()
    for other in (known, tmp_path / "south.spool"):
        JobNotes(folder, other).open()
    assert known.read_text() == other.read_text()
    shutil.rmtree(folder)
    folder.mkdir()
    known.unlink()
    JobNotes(folder, known).open()  # the operator has said so
    assert known.read_text() != other.read_text()
