"""What journals have in common: opening, the lock, notes, transactions, errors."""

import os
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from grms.kit.journal import (
    JournalDamagedError,
    JournalError,
    JournalFile,
    JournalKind,
    JournalLaterError,
    JournalTakenError,
    row_checksum,
    written_by,
)
from lrms_sim.version import __version__

KIND = JournalKind(
    application_id=0x12345678,
    version=3,
    schema="CREATE TABLE things (name TEXT NOT NULL);",
    tables=frozenset({"things"}),
    program="tester",
    only_one="one tester at a time",
    cure="look around",
)


class Things(JournalFile):
    """The least journal: names of things."""

    def __init__(self, path: Path, **notes: str) -> None:
        super().__init__(path, KIND, notes)

    def put(self, *names: str | None) -> None:
        """Keeps names, all or none."""
        with self._transaction() as connection:
            for name in names:
                connection.execute("INSERT INTO things VALUES (?)", (name,))

    def names(self) -> list[str]:
        """Returns all names."""
        return [name for (name,) in self._connection.execute("SELECT name FROM things")]


def test_a_transaction_is_durable_or_did_not_happen(tmp_path: Path) -> None:
    """What was put is there after reopening; a failure in the middle leaves nothing of its own."""
    path = tmp_path / "j"
    with Things(path) as things:
        things.put("a", "b")
        with pytest.raises(JournalError, match="NOT NULL"):
            things.put("c", None)
        things.put("e")
    with Things(path) as things:
        assert things.names() == ["a", "b", "e"]


def test_every_commit_is_synced(tmp_path: Path) -> None:
    """The file is in write-ahead mode, and synchronous is FULL."""
    with Things(tmp_path / "j") as things:
        assert things._pragma("synchronous") == 2
        mode = things._connection.execute("PRAGMA journal_mode").fetchone()[0]
        assert mode == "wal"
        things.put("a" * 5000)
        assert things.size_bytes > 5000


def test_notes_stay_and_those_of_its_own_are_left_alone(tmp_path: Path) -> None:
    """A note can be changed; the epoch and what it was made with cannot."""
    with Things(tmp_path / "j", owner="ann") as things:
        epoch = things.note("epoch")
        things.set_note("replay", "1")
        things.set_note("replay", "2")
        for own in ("owner", "epoch"):
            with pytest.raises(ValueError, match=own):
                things.set_note(own, "mine")
    with Things(tmp_path / "j", owner="bob") as things:
        assert (things.note("owner"), things.note("replay")) == ("ann", "2")
        assert things.note("epoch") == epoch
        assert things.note("nothing") is None


def test_the_lock_goes_with_its_process_however_that_ends(tmp_path: Path) -> None:
    """While another process has it nobody else gets it; killed, it has let go."""
    path = tmp_path / "j"
    Things(path).close()
    code = (
        "import fcntl, sys; f = open(sys.argv[1], 'ab'); fcntl.flock(f, fcntl.LOCK_EX); "
        "print('has it', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(  # noqa: S603  # this program
        [sys.executable, "-c", code, f"{path}.lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"has it\n"
        with pytest.raises(JournalTakenError, match=r"another process has .*one tester at a time"):
            Things(path)
        holder.kill()
        holder.wait(300)
        Things(path).close()


@pytest.mark.parametrize(
    ("statement", "error", "words"),
    [
        ("PRAGMA application_id=7", JournalDamagedError, "no journal of a tester"),
        ("CREATE TABLE more (x)", JournalDamagedError, "no journal of a tester"),
        ("DELETE FROM notes", JournalDamagedError, "no epoch.*; look around"),
        ("PRAGMA user_version=2", JournalError, "version 2, .* reads versions 3 to 3"),
    ],
)
def test_what_is_no_journal_of_this_kind_is_refused(
    tmp_path: Path, statement: str, error: type[JournalError], words: str
) -> None:
    """The error names the file, what is wrong, and what to do; the file can be opened by others."""
    path = tmp_path / "j"
    Things(path).close()
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(error, match=f"{path}: .*{words}"):
        Things(path)
    with pytest.raises(error):
        Things(path)


@pytest.mark.parametrize("checkpointed", [True, False])
@pytest.mark.parametrize(
    "more", ["", "CREATE TABLE more (x)", "DELETE FROM notes WHERE key = 'epoch'"]
)
def test_what_a_later_version_has_written_is_not_called_damaged(
    tmp_path: Path, more: str, checkpointed: bool
) -> None:
    """Whatever else is in it: who wrote it and who can read it is said, and nothing of it is changed."""
    path = tmp_path / "j"
    Things(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA user_version=9")
    connection.execute("UPDATE notes SET value = '7.5.1' WHERE key = 'written_by'")
    if more:
        connection.execute(more)
    if checkpointed:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    held = path.read_bytes()
    said = (
        f"{path}: this journal is of version 9, written by Hanse 7.5.1; this program, Hanse "
        rf"{__version__}, reads journals up to version 3: use Hanse 7.5.1 or a later one"
    )
    with pytest.raises(JournalLaterError, match=said) as error:
        Things(path)
    assert "damaged" not in str(error.value)
    assert "move it away" not in str(error.value)
    assert path.read_bytes() == held
    connection.close()


def test_a_later_log_with_a_gap_is_a_later_one(tmp_path: Path) -> None:
    """The version stands in the file: what is beside it is not judged by a version that may not know it."""
    path = tmp_path / "j"
    Things(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version=9")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.with_name("j-wal").write_bytes(b"of another kind" * 1000)
    with pytest.raises(JournalLaterError, match="version 9"):
        Things(path)


def test_who_has_opened_a_journal_last_is_noted(tmp_path: Path) -> None:
    """Also in one of before, which says nothing of it."""
    with Things(tmp_path / "j") as things:
        assert things.note("written_by") == __version__
        with pytest.raises(ValueError, match="the journal's own"):
            things.set_note("written_by", "x")
        things._connection.execute("DELETE FROM notes WHERE key = 'written_by'")
    assert written_by(tmp_path / "j") is None
    Things(tmp_path / "j").close()
    assert written_by(tmp_path / "j") == __version__
    assert written_by(tmp_path / "none") is None
    assert not (tmp_path / "none").exists()


def test_a_file_that_is_no_database_and_a_missing_folder_are_said(tmp_path: Path) -> None:
    """Neither is touched."""
    text = tmp_path / "text"
    text.write_text("no database, but long enough to be looked at " * 50)
    text.chmod(0o644)
    with pytest.raises(JournalDamagedError, match="damaged"):
        Things(text)
    assert text.read_text().startswith("no database")
    assert text.stat().st_mode & 0o777 == 0o644
    with pytest.raises(JournalError, match="folder must exist"):
        Things(tmp_path / "missing" / "j")
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_left_alone(tmp_path: Path, kind: str) -> None:
    """A device would have lost its mode; and nothing is made beside it."""
    path = tmp_path / "j"
    if kind == "folder":
        path.mkdir(0o755)
    else:
        os.mkfifo(path, 0o666)
    before = path.stat().st_mode
    with pytest.raises(JournalError, match="this is no file; name one"):
        Things(path)
    assert path.stat().st_mode == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_journal_is_its_users_alone(tmp_path: Path) -> None:
    """Whatever the umask is, nobody else reads scripts and keys, in no file of it."""
    mask = os.umask(0)
    try:
        with Things(tmp_path / "j") as things:
            assert things.narrowed is None
            things.put("a")
            names = {path.name for path in tmp_path.iterdir()}
            assert names == {"j", "j.lock", "j-wal", "j-shm"}
            for path in tmp_path.iterdir():
                assert path.stat().st_mode & 0o777 == 0o600, path
    finally:
        os.umask(mask)


def test_a_journal_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    """What it was is known, so that it can be told."""
    with Things(tmp_path / "j"):
        pass
    (tmp_path / "j").chmod(0o644)
    with Things(tmp_path / "j") as things:
        assert things.narrowed == 0o644
        assert (tmp_path / "j").stat().st_mode & 0o777 == 0o600


def test_another_name_does_not_get_past_the_lock(tmp_path: Path) -> None:
    """A symbolic link, to the file or on the way to it, is the same journal; a hard link none."""
    (tmp_path / "real").mkdir()
    (tmp_path / "way").symlink_to("real")
    (tmp_path / "link").symlink_to("real/j")
    with Things(tmp_path / "real" / "j") as things:
        for path in (tmp_path / "link", tmp_path / "way" / "j"):
            with pytest.raises(JournalTakenError):
                Things(path)
        assert things.path == tmp_path.resolve() / "real" / "j"
    with Things(tmp_path / "link"), pytest.raises(JournalTakenError):
        Things(tmp_path / "real" / "j")
    (tmp_path / "hard").hardlink_to(tmp_path / "real" / "j")
    with pytest.raises(JournalError, match="has 2 names"):
        Things(tmp_path / "hard")


def test_a_rows_checksum_is_that_of_journals_of_before() -> None:
    """By the format's own words; each part of a row counts, and so does the row before."""
    row = (1.5, "JobKept", "{}", b"script")
    known = zlib.crc32(b"script", zlib.crc32(b"7 1.5 JobKept {} ", 99))
    assert row_checksum(99, 7, row) == known
    assert row_checksum(0, 7, row[:3]) == row_checksum(0, 7, (*row[:3], None))
    others = [(2.5, *row[1:]), (1.5, "X", *row[2:]), (*row[:2], "", b"script"), (*row[:3], b"")]
    assert known not in [row_checksum(99, 7, other) for other in others]
    assert known not in {row_checksum(98, 7, row), row_checksum(99, 8, row)}


def killed(folder: Path, *names: str) -> Path:
    """Returns a journal whose process was killed: all of it is in the log."""
    with Things(folder / "live") as things:
        for name in names:
            things.put(name)
        for end in ("", "-wal"):
            copy = folder / f"j{end}"
            copy.write_bytes((folder / f"live{end}").read_bytes())
            copy.chmod(0o600)
    return folder / "j"


def test_a_killed_journal_is_read_from_its_log(tmp_path: Path) -> None:
    """The last commit too."""
    with Things(killed(tmp_path, "a", "b", "c")) as things:
        assert things.names() == ["a", "b", "c"]


def test_a_bit_that_has_flipped_in_the_log_is_damage(tmp_path: Path) -> None:
    """SQLite would take it for the end, and delete what is behind; all stays as it was found."""
    path = killed(tmp_path, *"abcdefgh")
    log = tmp_path / "j-wal"
    for at in (0, 25, 40, 5000):
        content = bytearray(log.read_bytes())
        content[at] ^= 4
        log.write_bytes(content)
        for _ in range(2):
            with pytest.raises(JournalDamagedError, match=r"of its log \(-wal\) is not what was"):
                Things(path)
        assert log.read_bytes() == bytes(content)
        content[at] ^= 4
        log.write_bytes(content)
    with Things(path) as things:
        assert things.names() == list("abcdefgh")


def test_a_log_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """With its reason."""
    (tmp_path / "j-wal").mkdir()
    with pytest.raises(JournalError, match=r"its log cannot be read: Is a directory"):
        Things(tmp_path / "j")


def test_a_journal_without_its_log_is_no_new_one(tmp_path: Path) -> None:
    """It is what it was when it was made, so that partners can say what it has forgotten."""
    path = killed(tmp_path, "a")
    with Things(tmp_path / "live") as things:
        epoch = things.note("epoch")
    (tmp_path / "j-wal").unlink()
    with Things(path) as things:
        assert things.names() == []
        assert things.note("epoch") == epoch


def test_damage_is_told_in_one_line(tmp_path: Path) -> None:
    """SQLite may say it in several."""
    with Things(tmp_path / "j") as things:
        said = things.damaged("*** in database main ***\nOn tree page 15: Rowid 0 out of order")
    assert "*** in database main *** On tree page 15: Rowid 0 out of order; " in str(said)
