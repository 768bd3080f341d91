"""What the journal holds is read beside its daemon, in pieces."""

from pathlib import Path

import pytest

from grms.site.monitoring import dashboard_history as history
from grms.site.monitoring.dashboard_history import past_records
from grms.site.runtime.journal import Journal
from tests.grms.site.monitoring.notes_of_records import delegated_story, guest_story, received


def test_records_come_as_they_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon has the file open meanwhile, and writes what is not wanted."""
    monkeypatch.setattr(history, "RECORDS_AT_ONCE", 4)
    written = [*delegated_story(), *guest_story()]
    with Journal(tmp_path / "home.journal", "home", durability="process") as journal:
        for begin in range(0, len(written), 2):
            journal.append(written[begin : begin + 2])
        last = journal.count
        journal.append([received(9)])
        pieces = list(past_records(journal.path, "home", last))
        assert [len(piece) for piece in pieces] == [4, 4, 2]
        assert [record for piece in pieces for record in piece] == written


def test_only_the_last_ones_are_read(tmp_path: Path) -> None:
    """A long journal holds up nobody."""
    with Journal(tmp_path / "home.journal", "home", durability="process") as journal:
        journal.append([received(number) for number in range(1, 8)])
        (piece,) = past_records(journal.path, "home", journal.count, most=2)
        assert piece == [received(6), received(7)]
        assert list(past_records(journal.path, "home", 0)) == []
