"""What is kept of each job, in its folder or outside it."""

import stat
from pathlib import Path

import pytest

from grms.lrms.job_notes import JobNotes, Marks

OWN, LENT = "A+1+1", "A+1+2"


def test_it_is_kept_where_the_job_s_account_is_not(tmp_path: Path) -> None:
    """In the folder of a job of the daemon's own; in folders of the daemon's alone for another's."""
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
    assert files == [".accounts/A+1+2", ".marks/A+1+2.json", "A+1+1/state.json"]
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
    (tmp_path / OWN / "state.json").write_text(text)
    assert notes.marks(OWN) == Marks(run=True, released=True)
