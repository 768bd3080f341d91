"""The log of what jobs have used: nothing is lost, nothing is there twice, whatever dies when."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from grms.daemon.journal import JournalDamagedError, JournalError, JournalFullError
from grms.site.model.lifecycle import Outcome
from grms.site.model.usage import UsageRecord
from grms.site.runtime.usage_log import (
    UsageLog,
    months,
    months_before,
    read_of_home,
    read_usage,
    usage_folder,
)
from tests.examples import runs

NEW_YEAR = 1_767_225_600.0
DAY = 86400.0


def record(job: int, time: float = NEW_YEAR, home: str = "home") -> UsageRecord:
    """Returns the record of a job that ended at that moment."""
    return UsageRecord(
        *(0, time, home, f"{home}/1/{job}", f"{home}-{job}", "", "ann", "", "", home, "", 2, 0, 0),
        *(10.0, time - 5.0, time - 4.0, time, 4.0, Outcome.COMPLETED, 0, None),
    )


def many(count: int, begin: float = NEW_YEAR, step: float = DAY) -> list[UsageRecord]:
    """Returns records of jobs that end at even distances."""
    return [record(job, begin + job * step) for job in range(count)]


def keys(folder: Path) -> list[str]:
    """Returns the keys in a log, in order; their numbers go from 1 on without a gap."""
    found = list(read_usage(folder, "home"))
    assert [one.number for one in found] == list(range(1, len(found) + 1))
    return [one.key for one in found]


def test_records_are_kept_by_the_month_in_which_they_are_written(tmp_path: Path) -> None:
    """Numbers go on from file to file; what is written is private."""
    folder = usage_folder(tmp_path / "home.journal", "home")
    with UsageLog(folder, "home") as log:
        for one in many(100):
            log.append([one], one.time)
        name = log.name
    assert [path.name for path in months(folder)] == [
        f"2026-0{month}.usage" for month in range(1, 5)
    ]
    assert keys(folder) == [one.key for one in many(100)]
    february = [one.number for one in read_usage(folder, "home", since="2026-02")]
    assert february == [*range(32, 101)]
    assert {path.suffix for path in folder.iterdir()} == {".usage", ".lock"}
    assert len([path for path in folder.iterdir() if path.suffix == ".lock"]) == 1
    assert folder.stat().st_mode & 0o077 == 0
    with UsageLog(folder, "home") as log:
        log.append([record(100)], NEW_YEAR + 100 * DAY)
        assert log.name == name
    assert len(keys(folder)) == 101
    assert [one.number for one in read_usage(folder, "home", since="2026-04")] == [*range(91, 102)]


@pytest.mark.parametrize("after", [0, 1, 15, 16, 17, 28, 29, 30, 49, 50, 1000])
def test_who_knows_the_first_reads_the_rest(tmp_path: Path, after: int) -> None:
    """A home reads its own records, whose numbers tell nothing of others'."""
    with UsageLog(tmp_path, "home") as log:
        for one in many(100):
            log.append([one, record(1, one.time, "far")], one.time)
    for home, count in (("home", 100), ("far", 100), ("near", 0)):
        found = [one.number for one in read_of_home(tmp_path, "home", home, after)]
        assert found == [*range(after + 1, count + 1)]


def test_numbers_are_of_each_home(tmp_path: Path) -> None:
    """They go on when the files before are gone."""
    log = UsageLog(tmp_path, "home")
    for turn in range(4):
        with log:
            some = [record(turn), record(turn, home="near"), record(turn, home="far")]
            log.append(some, NEW_YEAR + turn * 31 * DAY)
    log.catch_up([], NEW_YEAR + 400 * DAY, 1)
    with log:
        log.append([record(9, home="near")], NEW_YEAR + 400 * DAY)
    (last,) = read_usage(tmp_path, "home")
    assert (last.home, last.number) == ("near", 5)


def test_what_the_journal_knows_is_written_once(tmp_path: Path) -> None:
    """At each start all of it is compared with what is there."""
    log = UsageLog(tmp_path, "home")
    jobs = many(10)
    assert log.catch_up(jobs[:4], NEW_YEAR + 4 * DAY, 24) == 4
    assert log.catch_up(jobs[:4], NEW_YEAR + 4 * DAY, 24) == 0
    assert log.catch_up(jobs, NEW_YEAR + 40 * DAY, 24) == 6
    assert log.catch_up(jobs[2:], NEW_YEAR + 70 * DAY, 24) == 0
    assert log.catch_up([], NEW_YEAR + 70 * DAY, 24) == 0
    assert keys(tmp_path) == [one.key for one in jobs]


def test_a_long_journal_is_compared_in_parts(tmp_path: Path) -> None:
    """What is there is read once; what is new is written in order."""
    log, jobs = UsageLog(tmp_path, "home"), many(90)
    log.catch_up(jobs[20:40], NEW_YEAR + 40 * DAY, 24)
    counts = [
        log.catch_up(jobs[begin : begin + 30], jobs[begin + 29].time, 24, more=begin < 60)
        for begin in (0, 30, 60)
    ]
    assert counts == [20, 20, 30]
    assert sorted(keys(tmp_path)) == sorted(one.key for one in jobs)
    assert log.catch_up(jobs, NEW_YEAR + 90 * DAY, 24) == 0


def test_a_guests_job_is_not_taken_for_an_own_one(tmp_path: Path) -> None:
    """Their numbers may be the same."""
    log = UsageLog(tmp_path, "home")
    assert log.catch_up([record(1), record(1, home="near")], NEW_YEAR, 24) == 2
    assert log.catch_up([record(1, home="near"), record(1, home="far")], NEW_YEAR, 24) == 1


@settings(max_examples=runs(40, 500), deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 60), st.integers(0, 3)),
        max_size=8,
    )
)
def test_whatever_dies_when_each_job_is_there_once(
    tmp_path_factory: pytest.TempPathFactory, lives: list[tuple[int, int, int, int]]
) -> None:
    """Daemons that are killed between the journal and the log, or while they write, with clocks that go on or back."""
    folder = tmp_path_factory.mktemp("log")
    journal: list[UsageRecord] = []
    now, number = NEW_YEAR + 40 * DAY, 0
    for written, unwritten, days, torn in lives:
        log = UsageLog(folder, "home")
        now += (days - 20) * DAY  # a clock that is put back moves no record
        log.catch_up(journal, now, 1000)
        assert sorted(keys(folder)) == sorted(one.key for one in journal)
        with log:
            for _ in range(written):
                number += 1
                journal.append(record(number, now))
                log.append([journal[-1]], now)
        for _ in range(unwritten):
            number += 1
            journal.append(record(number, now))
        if torn and months(folder):
            # A write that was cut off: no one was told of it.
            last = months(folder)[-1]
            with last.open("ab") as file:
                file.write(b"\xd4HJ\n\x05\x00"[: 2 * torn])
    UsageLog(folder, "home").catch_up(journal, now, 1000)
    assert sorted(keys(folder)) == sorted(one.key for one in journal)


def test_a_log_may_be_opened_before_anything_is_written(tmp_path: Path) -> None:
    """As a daemon does: nobody else writes it from then on, and the first record is in the month of its own."""
    with UsageLog(tmp_path, "home") as log:
        log.open(NEW_YEAR + 30 * DAY)
        assert [path.name for path in months(tmp_path)] == ["2026-01.usage"]
        with pytest.raises(JournalError, match="one daemon alone writes it"):
            UsageLog(tmp_path, "home").append([record(1)], NEW_YEAR + 30 * DAY)
        log.append([record(1)], NEW_YEAR + 31 * DAY)
    assert [path.name for path in months(tmp_path)] == ["2026-01.usage", "2026-02.usage"]
    assert [one.number for one in read_usage(tmp_path, "home")] == [1]


def test_old_months_go(tmp_path: Path) -> None:
    """The present one and so many before it stay; numbers are not given again."""
    log = UsageLog(tmp_path, "home")
    with log:
        for one in many(12, step=31 * DAY):
            log.append([one], one.time)
    log.catch_up([], NEW_YEAR + 360 * DAY, 3)
    assert [path.name[:7] for path in months(tmp_path)] == [
        "2026-09",
        "2026-10",
        "2026-11",
        "2026-12",
    ]
    with log:
        log.append([record(99)], NEW_YEAR + 360 * DAY)
    assert [one.number for one in read_usage(tmp_path, "home")][-1] == 13
    log.catch_up([], NEW_YEAR + 3600 * DAY, 1)
    with log:
        log.append([record(100)], NEW_YEAR + 3600 * DAY)
    assert [one.number for one in read_usage(tmp_path, "home")] == [14]


@pytest.mark.parametrize(
    ("month", "count", "before"),
    [
        ("2026-11", 1, "2026-10"),
        ("2026-01", 1, "2025-12"),
        ("2026-11", 24, "2024-11"),
        ("0001-01", 99, "0000-10"),
    ],
)
def test_months_are_counted_back(month: str, count: int, before: str) -> None:
    """Over the ends of years; before the first year there is none."""
    assert months_before(month, count) == before


def test_a_full_disk_takes_nothing_and_another_try_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record is there twice, and no number is left out."""
    with UsageLog(tmp_path, "home") as log:
        log.append([record(1)], NEW_YEAR)

        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr("grms.daemon.journal.os.pwrite", full)
            with pytest.raises(JournalFullError, match="the disk is full"):
                log.append([record(2)], NEW_YEAR)
        log.append([record(2)], NEW_YEAR)
    assert keys(tmp_path) == ["home/1/1", "home/1/2"]


def test_what_was_changed_is_refused(tmp_path: Path) -> None:
    """With the byte, and what to do; so is the log of another site."""
    log = UsageLog(tmp_path, "home")
    log.catch_up([record(1)], NEW_YEAR, 24)
    with pytest.raises(JournalError, match="usage of site 'home', not of 'other'"):
        UsageLog(tmp_path, "other").catch_up([], NEW_YEAR, 24)
    with pytest.raises(JournalError, match="usage of site 'home', not of 'other'"):
        list(read_usage(tmp_path, "other"))
    path = tmp_path / "2026-01.usage"
    log.catch_up([record(1), record(2)], NEW_YEAR, 24)
    content = bytearray(path.read_bytes())
    content[-200] ^= 1
    path.write_bytes(content)
    with pytest.raises(JournalDamagedError, match="move this file away"):
        UsageLog(tmp_path, "home").catch_up([record(1)], NEW_YEAR, 24)
    path.unlink()
    UsageLog(tmp_path, "home").catch_up([record(1), record(2)], NEW_YEAR, 24)
    assert keys(tmp_path) == ["home/1/1", "home/1/2"]


def test_there_need_be_no_log(tmp_path: Path) -> None:
    """A site whose daemon has never run has used nothing."""
    assert not list(read_usage(tmp_path / "none", "home"))


def check_numbers(found: Sequence[UsageRecord]) -> None:
    """Checks that a record is as it was given, but for its number."""
    assert [replace(one, number=0) for one in found] == many(len(found))


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    """To the last bit."""
    UsageLog(tmp_path, "home").catch_up(many(5), NEW_YEAR + 9 * DAY, 24)
    check_numbers(list(read_usage(tmp_path, "home")))
