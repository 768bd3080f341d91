"""Bits that have flipped in a write-ahead log are told from what a kill or a power failure leaves."""

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.kit.write_ahead import log_problem

HEAD, FRAME = 32, 24


@contextmanager
def database(folder: Path, page_size: int = 4096) -> Iterator[sqlite3.Connection]:
    """Yields a connection in write-ahead mode, which never copies its log into the file by itself."""
    with closing(sqlite3.connect(folder / "db", isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size={page_size}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("CREATE TABLE t (x)")
        yield connection


def log_of(folder: Path, commits: int = 6) -> bytes:
    """Returns the log of some commits, as a process that is killed leaves it."""
    with database(folder) as connection:
        for number in range(commits):
            connection.execute("INSERT INTO t VALUES (?)", (str(number) * 3000,))
        return (folder / "db-wal").read_bytes()


def problem(folder: Path, content: bytes) -> str:
    """Returns what is wrong with a log of that content."""
    path = folder / "log"
    path.write_bytes(content)
    return log_problem(path)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Returns a log of seven commits."""
    return log_of(tmp_path_factory.mktemp("log"))


def commits_of(content: bytes) -> list[int]:
    """Returns where the frames of a log end that end a commit."""
    size = FRAME + struct.unpack_from(">I", content, 8)[0]
    begins = range(HEAD, len(content), size)
    return [at + size for at in begins if struct.unpack_from(">I", content, at + 4)[0]]


@pytest.mark.parametrize("page_size", [512, 4096, 65536])
def test_a_log_as_it_was_written(tmp_path: Path, page_size: int) -> None:
    """Whatever the size of its pages, and also while a transaction is under way that has begun to write."""
    assert not log_problem(tmp_path / "db-wal")
    with database(tmp_path, page_size) as connection:
        for number in range(5):
            connection.execute("INSERT INTO t VALUES (?)", (bytes([number]) * 10_000,))
            assert not log_problem(tmp_path / "db-wal")
        connection.execute("PRAGMA cache_size=2")
        before = (tmp_path / "db-wal").stat().st_size
        connection.execute("BEGIN")
        for number in range(40):
            connection.execute("INSERT INTO t VALUES (?)", (bytes([number]) * 10_000,))
        assert (tmp_path / "db-wal").stat().st_size > before
        assert not log_problem(tmp_path / "db-wal")
        connection.execute("ROLLBACK")
        assert not log_problem(tmp_path / "db-wal")


def test_an_older_log_in_the_same_file(tmp_path: Path) -> None:
    """A log that was copied into the file is written over from its beginning, little by little."""
    with database(tmp_path) as connection:
        for number in range(9):
            connection.execute("INSERT INTO t VALUES (?)", (str(number) * 3000,))
        size = (tmp_path / "db-wal").stat().st_size
        connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
        for number in range(4):
            connection.execute("INSERT INTO t VALUES (?)", (str(number) * 3000,))
            assert (tmp_path / "db-wal").stat().st_size == size
            assert not log_problem(tmp_path / "db-wal")


def test_a_log_that_a_kill_has_cut_off(tmp_path: Path, log: bytes) -> None:
    """At any byte: nobody has been told of a commit that is not whole."""
    for length in (*range(64), *range(64, len(log), 97)):
        assert not problem(tmp_path, log[:length]), length
    assert not problem(tmp_path, bytes(len(log)))


def test_a_last_commit_that_a_power_failure_has_torn(tmp_path: Path, log: bytes) -> None:
    """Its pages may come to the disk in any order: what is behind a missing one is no damage."""
    begin, end = commits_of(log)[-2:]
    for at in range(begin, end, 512):
        torn = log[:at] + bytes(min(512, end - at)) + log[at + 512 :]
        assert not problem(tmp_path, torn), at


@given(where=st.floats(0.0, 1.0, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, log: bytes, where: float, bit: int
) -> None:
    """Wherever it is before the last two commits; of these, SQLite takes for the end what it would after a failure."""
    flipped = bytearray(log)
    flipped[int(where * commits_of(log)[-3])] ^= 1 << bit
    found = problem(tmp_path_factory.getbasetemp(), bytes(flipped))
    assert found.endswith("of its log (-wal) is not what was written")
