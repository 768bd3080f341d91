"""The journal of a site; what all journals have in common is in `tests/grms/daemon/test_journal.py`."""

import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grms.site.model.jobs import Request
from grms.site.model.records import KINDS, JobKept, JobReceived, Record
from grms.site.runtime.journal import (
    Journal,
    JournalDamagedError,
    JournalError,
    JournalTakenError,
    reading_of,
)
from tests.grms.site.model.test_records import instances


def some(count: int, first: int = 1) -> list[Record]:
    """Returns records of as many jobs."""
    return [
        JobReceived(float(n), n, "ann", f"k{n}", "", Request(1, 10.0), b"run" * n)
        for n in range(first, first + count)
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Returns where a journal may be made."""
    return tmp_path / "journal"


@pytest.mark.parametrize("durability", ["power", "process"])
def test_what_was_appended_is_there_after_reopening(path: Path, durability: str) -> None:
    """All records, in order, and the journal's epoch stays."""
    with Journal(path, "a", durability=durability) as journal:  # type: ignore[arg-type]  # both are fine
        epoch = journal.epoch
        journal.append(some(3))
        journal.append([])
        journal.append(some(2, first=4))
        assert journal.count == 5
    with Journal(path, "a") as journal:
        assert list(journal.records()) == some(5)
        assert (journal.count, journal.epoch) == (5, epoch)
        journal.replace(some(2, first=8))
        journal.append(some(1, first=10))
    with Journal(path, "a") as journal:
        assert list(journal.records()) == some(3, first=8)
        assert (journal.count, journal.epoch) == (3, epoch)


def test_a_new_journal_has_a_later_epoch(path: Path) -> None:
    """A journal that replaces a lost one is known by its greater epoch."""
    with Journal(path, "a") as journal:
        first = journal.epoch
    path.unlink()
    with Journal(path, "a") as journal:
        assert journal.epoch > first


@pytest.mark.parametrize("epoch", ["0", str(2**63), "soon", "-1"])
def test_an_epoch_that_is_none_is_damage(
    path: Path, epoch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partners tell journals by it; the journal is free for the next one."""
    monkeypatch.setattr("grms.daemon.journal.time.time_ns", lambda: epoch)
    for _ in range(2):
        with pytest.raises(JournalDamagedError, match=f"its epoch is '{epoch}'"):
            Journal(path, "a")


def test_another_sites_journal_is_refused(path: Path) -> None:
    """To be written and to be looked at; the error names both sites."""
    Journal(path, "a").close()
    with pytest.raises(JournalError, match="site 'a', not of 'b'"):
        Journal(path, "b")
    with pytest.raises(JournalError, match="site 'a', not of 'b'"), reading_of(path, "b"):
        pass
    with reading_of(path, "a") as scan:
        assert list(scan.records()) == []
    with pytest.raises(ValueError, match="no name for a site"):
        Journal(path, "a b")


@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_journal_with_a_record_of_any_kind_is_opened_again(
    tmp_path: Path, kind: type[Record], data: st.DataObject
) -> None:
    """By the program that has written it."""
    place = tmp_path / f"{secrets.token_hex(8)}.journal"
    record = data.draw(instances(kind))
    with Journal(place, "a") as journal:
        journal.append([record])
    with Journal(place, "a") as journal:
        assert list(journal.records()) == [record]


WRITER = """
import sys
from pathlib import Path
from grms.site.runtime.journal import Journal
from grms.site.model.records import JobKept
with Journal(Path(sys.argv[1]), "a", durability="process") as journal:
    number = journal.count
    while True:
        journal.append([JobKept(0.0, number + 1), JobKept(0.0, number + 2)])
        number += 2
        if number % 64 == 0:
            journal.replace(journal.records())
        print(number, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(path: Path) -> None:
    """However a process ends, also while it compacts, what `append` returned for is there, and the journal is free."""
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
