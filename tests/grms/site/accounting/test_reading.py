"""A journal is read beside its daemon."""

from pathlib import Path

import pytest

from grms.site.accounting import reading
from grms.site.accounting.reading import read_accounts
from grms.site.runtime.journal import Journal, JournalError
from tests.grms.site.accounting.stories import at_home, at_partner, guest, received


def test_a_journal_is_read_while_its_daemon_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has been committed so far, and nothing of the file is changed."""
    monkeypatch.setattr(reading, "LOOKED_EVERY", 2)
    path, seen = tmp_path / "home.journal", list[int]()
    with Journal(path, "home", durability="process") as journal:
        journal.append([*at_home(1, 0.0, 1.0, 5.0), *at_partner(2, 0.0, 1.0, 5.0)])
        journal.append(guest(1, 0.0, 0.0, 5.0))
        found = read_accounts(path, "home", seen.append)
        journal.append([received(3, 50.0)])
        later = read_accounts(path, "home")
    assert ([run.job for run in found.own], len(found.guests), found.open) == ([1, 2], 1, 0)
    assert (later.open, later.last_time) == (1, 50.0)
    assert seen == [2, 4, 6, 8, 10]
    # And when nobody has it.
    assert read_accounts(path, "home").own == later.own


def test_a_file_that_is_no_journal_of_this_site_is_refused(tmp_path: Path) -> None:
    """The error says which file, and why."""
    path = tmp_path / "home.journal"
    with pytest.raises(JournalError, match=r"there is no such journal"):
        read_accounts(path, "home")
    path.write_text("no journal, and longer than the first line of one " * 9)
    with pytest.raises(JournalError, match=r"home\.journal: .*it is no journal"):
        read_accounts(path, "home")
    path.unlink()
    with Journal(path, "other", durability="process") as journal:
        journal.append([received(1, 0.0)])
    with pytest.raises(JournalError, match=r"this is the journal of site 'other', not of 'home'"):
        read_accounts(path, "home")


def test_a_journal_of_a_later_version_is_refused(tmp_path: Path) -> None:
    """It says what to do."""
    path = tmp_path / "home.journal"
    Journal(path, "home", durability="process").close()
    path.write_bytes(path.read_bytes().replace(b"journal 1\n", b"journal 9\n"))
    with pytest.raises(JournalError, match=r"of version 9; .*use the one that wrote it"):
        read_accounts(path, "home")
