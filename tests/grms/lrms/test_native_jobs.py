"""The notes of originals: which of two runs is said once, and stays said."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grms.lrms.base import LrmsUnavailableError
from grms.lrms.native_jobs import Fate, NativeJobNotes


def test_what_was_said_first_counts(tmp_path: Path) -> None:
    """Over restarts, and whoever says something else later."""
    notes = NativeJobNotes(tmp_path / "notes")
    assert notes.all() == []
    original = notes.begin("17", 1000, "ann")
    assert NativeJobNotes(tmp_path / "notes").all() == [original]
    assert notes.choose(original.token, Fate.AWAY) is Fate.AWAY
    assert NativeJobNotes(tmp_path / "notes").choose(original.token, Fate.HOME) is Fate.AWAY
    changed = notes.change(original.token, job_id="a-1", held_at=3.0)
    assert (changed.fate, changed.job_id, changed.word) == (Fate.AWAY, "a-1", "17@1000")
    assert notes.of(original.token) == changed
    notes.forget(original.token)
    assert notes.all() == []
    assert notes.choose(original.token, Fate.HOME) is None


def test_of_two_at_once_one_is_first(tmp_path: Path) -> None:
    """The adapter of the batch system and the watcher may decide at the same moment."""
    notes = NativeJobNotes(tmp_path)
    tokens = [notes.begin(str(number), 1, "ann").token for number in range(8)]
    with ThreadPoolExecutor(4) as threads:
        said = list(threads.map(notes.choose, tokens * 4, [*Fate] * 16))
    for number, token in enumerate(tokens):
        assert len(set(said[number::8])) == 1, token


@pytest.mark.parametrize("token", ["", "../../etc/passwd", "x", "/" * 32, "a" * 32])
def test_a_token_that_is_none_is_unknown(tmp_path: Path, token: str) -> None:
    """A user can give any variable to a job."""
    assert NativeJobNotes(tmp_path).of(token) is None
    assert NativeJobNotes(tmp_path).choose(token, Fate.HOME) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"fate": "elsewhere"}', '{"fate": null}'])
def test_a_damaged_note_is_no_unknown_one(tmp_path: Path, text: str) -> None:
    """What was decided would be decided again; the site says which file it is."""
    notes = NativeJobNotes(tmp_path)
    token = notes.begin("17", 1000, "ann").token
    (tmp_path / token).write_text(text, encoding="utf-8")
    for read in (notes.all, lambda: notes.of(token), lambda: notes.choose(token, Fate.HOME)):
        with pytest.raises(LrmsUnavailableError, match=f"{token}: the note of a job is damaged"):
            read()
