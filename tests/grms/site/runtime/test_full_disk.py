"""A disk that is full or away beneath the jobs' folders: no job is lost, none runs twice, and all goes on."""

import asyncio
import errno
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from grms.daemon.clock import VirtualClock
from grms.lrms import base
from grms.lrms.base import LrmsEnd, LrmsJob, LrmsPhase, LrmsRefusedError, Program
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.launcher import Spool
from grms.lrms.job_notes import JobNotes
from grms.site.model.commands import LrmsCancel, LrmsSubmit
from grms.site.model.events import LrmsNews, LrmsRefused
from grms.site.model.jobs import Request
from grms.site.runtime import executor_queue as lrms_queue
from grms.site.runtime.executor_driver import DriverLimits, LrmsDriver
from grms.util.outcomes import Outcome
from grms.v1 import request_pb2
from tests.grms.lrms.batch.forgetful import HELD, KEY, Forgetful
from tests.waiting import TIME_OUT_S, meanwhile, until

ERRORS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.ESTALE,
    errno.EROFS,
    errno.EMFILE,
    errno.ENOENT,
    errno.EACCES,
)
"""What a disk says that is full, broken, away or mounted otherwise; or this process of itself."""

METHODS = [
    (kind, name)
    for kind, names in (
        (Spool, ("prepare", "marks", "wanted", "released", "runs", "evidence", "drop", "probe")),
        (JobNotes, ("open", "account", "runs_as", "forget", "marks", "keep")),
    )
    for name in names
]
PAYLOAD = request_pb2.JobRequest(program=request_pb2.Program(script="#!/bin/sh\n"))


@dataclass
class Fault:
    """A method that fails so often.

    Attributes:
        left: how often it will.
        failed: how often it has.
    """

    left: int
    failed: int = 0


def failing(patch: pytest.MonkeyPatch, kind: type, name: str, number: int, times: int) -> Fault:
    """Lets a method fail with an error of the disk, so often from now on."""
    fault, sound = Fault(times), getattr(kind, name)

    def method(*args: Any, **kwargs: Any) -> Any:
        if fault.left:
            fault.left -= 1
            fault.failed += 1
            raise OSError(number, os.strerror(number), "/jobs")
        return sound(*args, **kwargs)

    patch.setattr(kind, name, method)
    return fault


class Runs(Forgetful):
    """A batch system that runs its job as soon as it may.

    Attributes:
        refuses: what it says to one; empty where it takes it.
        submitted: called when it takes one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.refuses = ""
        self.submitted: Callable[[], None] = lambda: None
        self._late = 0

    async def submit(self, name: str, job: LrmsJob, folder: Path) -> str:
        """See `BatchSystem.submit`."""
        if self.refuses:
            raise LrmsRefusedError(self.refuses)
        assert (folder / "launch").is_file()
        self.submitted()
        return await super().submit(name, job, folder)

    async def look(self) -> Any:
        """See `BatchSystem.look`."""
        if self.rows and self.rows[0].phase is LrmsPhase.WAITING:
            self.rows = (replace(HELD, phase=LrmsPhase.RUNNING, start_time=40.0),)
        elif self.rows and self.rows[0].phase is LrmsPhase.RUNNING:
            self._late += 1
            if self._late > 2:
                end = LrmsEnd(Outcome.COMPLETED, 50.0, 10.0, 0)
                self.rows = (
                    replace(HELD, phase=LrmsPhase.ENDED, start_time=40.0, end=end, exact=False),
                )
        return await super().look()


@asynccontextmanager
async def driven(
    system: Forgetful, folder: Path
) -> AsyncIterator[tuple[LrmsDriver, list[LrmsNews], asyncio.Task[None]]]:
    """Drives an adapter of a batch system; yields the driver, what it tells, and its task."""
    lrms = BatchLrms(system, Spool(folder), poll_s=0.005, settle_s=0.0, clock=lambda: system.now)
    clock = VirtualClock(0.0)
    limits = DriverLimits(load_age=1e9, command_timeout_s=TIME_OUT_S, commands=2)
    driver = LrmsDriver(lrms, clock, limits, structlog.get_logger())
    told: list[LrmsNews] = []

    def hear(*news: LrmsNews) -> None:
        told.extend(news)

    driver.listen(hear)
    await lrms.open()
    async with meanwhile(driver.run()) as running:
        yield driver, told, running


def submission(partner: str = "") -> LrmsSubmit:
    """Returns the command to submit the job, of an own user or of a partner's."""
    payload, user = PAYLOAD.SerializeToString(), "" if partner else "ann"
    return LrmsSubmit(0, KEY, Request(2, 60.0), payload, user=user, partner=partner)


async def ended(told: list[LrmsNews], running: asyncio.Task[None]) -> list[LrmsNews]:
    """Waits for the job's end, and returns what was told that is no look."""
    await until(
        lambda: running.done() or any(isinstance(one, base.Ended | LrmsRefused) for one in told)
    )
    assert not running.done(), running.exception()
    return told


@pytest.mark.parametrize("partner", ["", "south"])
@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.__getitem__)
@pytest.mark.parametrize("method", METHODS, ids=lambda one: f"{one[0].__name__}.{one[1]}")
async def test_an_error_of_the_disk_ends_no_job_and_no_daemon(
    method: tuple[type, str],
    number: int,
    partner: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever fails, an own job runs once when there is room; a partner's does, or goes home undecided."""
    monkeypatch.setattr(lrms_queue, "PAUSE_FIRST_S", 0.001)
    system = Runs()
    failing(monkeypatch, *method, number, 3)
    async with driven(system, tmp_path / "jobs") as (driver, told, running):
        driver.do(submission(partner))
        await ended(told, running)
        last = told[-1]
        if isinstance(last, LrmsRefused):
            assert partner
            assert last.undelivered
            assert system.told == []
            assert not list((tmp_path / "jobs").glob(KEY.replace("/", "+")))
        else:
            assert isinstance(last, base.Ended)
            assert last.end.outcome is Outcome.COMPLETED
            assert system.told == ["submit", "release"]
            kinds = [type(one) for one in told]
            assert kinds == [base.Accepted, base.Started, base.Ended]
        await until(lambda: driver.problem == "" and driver.load() is not None)


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.__getitem__)
async def test_a_refused_job_whose_folder_cannot_be_deleted_is_refused(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the batch system has said is told; the folder is left to the sweeper."""
    system = Runs()
    system.refuses = "no such account"
    fault = failing(monkeypatch, Spool, "drop", number, 1)
    async with driven(system, tmp_path) as (driver, told, running):
        driver.do(submission())
        await ended(told, running)
        assert isinstance(told[-1], LrmsRefused)
        assert told[-1].reason == "no such account"
        assert fault.failed == 1


async def test_a_full_disk_is_shown_and_declines_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An own job waits for room, the load is not known meanwhile, a cancel goes through, and the log is not filled."""
    monkeypatch.setattr(lrms_queue, "PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr(lrms_queue, "PAUSE_MOST_S", 0.001)
    system = Runs()
    faults = [
        failing(monkeypatch, Spool, each, errno.ENOSPC, 10**6) for each in ("prepare", "probe")
    ]
    with structlog.testing.capture_logs() as log:
        async with driven(system, tmp_path) as (driver, told, running):
            await until(lambda: driver.load() is not None)
            driver.do(submission())
            await until(lambda: faults[0].failed > 20)
            assert "No space left on device" in driver.problem
            assert driver.load() is None
            assert driver.load_age is not None
            assert told == []
            for fault in faults:
                fault.left = 0
            await until(lambda: driver.load() is not None)
            assert driver.problem == ""
            await ended(told, running)
            assert system.told == ["submit", "release"]
    words = [each["event"] for each in log if each["event"].startswith("spool_")]
    assert words == ["spool_failed", "spool_unusable", "spool_usable"]


async def test_a_job_that_is_cancelled_while_the_disk_is_full_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written for it, and what it holds is what the disk lacks."""
    system = Runs()
    monkeypatch.setattr(Spool, "released", _full)
    async with driven(system, tmp_path) as (driver, told, running):
        driver.do(submission())
        await until(lambda: any(isinstance(one, base.Accepted) for one in told))
        driver.do(LrmsCancel(0, KEY))
        await ended(told, running)
        assert isinstance(told[-1], base.Ended)
        assert told[-1].end.outcome is Outcome.CANCELLED
        assert system.told == ["submit", "cancel"]


async def test_one_job_whose_folder_fails_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have its turn while it waits for the next attempt."""
    sound = Spool.prepare
    bad = {f"A/1/{number}" for number in range(2, 9)}

    def prepare(spool: Spool, key: str, *args: Any, **kwargs: Any) -> Path:
        if key in bad:
            _full()
        return sound(spool, key, *args, **kwargs)

    system = Runs()
    monkeypatch.setattr(Spool, "prepare", prepare)
    monkeypatch.setattr(lrms_queue, "PAUSE_FIRST_S", TIME_OUT_S)
    monkeypatch.setattr(lrms_queue, "PAUSE_MOST_S", TIME_OUT_S)
    async with driven(system, tmp_path) as (driver, told, running):
        for key in sorted(bad):
            driver.do(replace(submission(), lrms_key=key))
        driver.do(submission())
        await ended(told, running)
        assert system.told == ["submit", "release"]
        assert driver.commands_open == len(bad)


def _full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_folders_that_are_not_mounted_any_more_are_no_word_about_jobs(tmp_path: Path) -> None:
    """A job that was released is not taken for one that was never there, and its files are not gone."""
    folder, away = tmp_path / "jobs", tmp_path / "away"
    system = Runs()
    async with driven(system, folder) as (driver, told, running):
        driver.do(submission())
        await ended(told, running)
        folder.rename(away)
        folder.mkdir()  # what a file system was mounted on
        spool = driver.lrms.folders  # type: ignore[attr-defined]  # a `BatchLrms`
        for look in (spool.left, spool.marks, spool.runs, spool.evidence):
            with pytest.raises(OSError, match="not mounted"):
                look(KEY)
        with pytest.raises(OSError, match="not mounted"):
            spool.clear(KEY, [])
        with pytest.raises(OSError, match="not mounted"):
            spool.prepare("A/1/2", Program("#!/bin/sh\n"), run=True)
        with pytest.raises(OSError, match="not mounted"):
            spool.wanted("A/1/2")
        folder.rmdir()
        with pytest.raises(OSError, match="not mounted"):
            spool.probe()
        assert not folder.exists()
        away.rename(folder)
        assert spool.marks(KEY).released
        assert spool.left(KEY) is not None
        assert spool.marks("A/1/2") is None
        assert not running.done()


# --- a real one ----------------------------------------------------------------------------------


@contextmanager
def mounted(place: Path) -> Iterator[None]:
    """Has a file system of 1 MB in a folder, or skips the test."""
    command = ["mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=100", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, check=False, capture_output=True).returncode == 0  # noqa: S603  # ours
    except FileNotFoundError:
        done = False
    if not done:
        pytest.skip("file systems are mounted by root alone")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)  # noqa: S603, S607  # ours


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    place = tmp_path / "small"
    place.mkdir()
    with mounted(place):
        yield place


@pytest.mark.parametrize("inodes", [False, True])
@pytest.mark.parametrize("partner", ["", "south"])
async def test_a_real_disk_without_room(
    small: Path, partner: str, monkeypatch: pytest.MonkeyPatch, *, inodes: bool
) -> None:
    """Of bytes or of files; filled before a submission, or before the release of what was submitted."""
    monkeypatch.setattr(lrms_queue, "PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr(lrms_queue, "PAUSE_MOST_S", 0.05)
    folder = small / "jobs"
    system = Runs()
    async with driven(system, folder) as (driver, told, running):
        free = fill(small / "others", inodes=inodes)
        driver.do(submission(partner))
        await until(lambda: running.done() or driver.problem != "")
        assert not running.done(), running.exception()
        if partner:
            await ended(told, running)
            assert isinstance(told[-1], LrmsRefused)
            assert told[-1].undelivered
            assert not (folder / KEY.replace("/", "+")).exists()
            return
    # The next start, with the disk as full.
    async with driven(system, folder) as (driver, told, running):
        driver.do(replace(submission(), lookup=True))
        await until(lambda: running.done() or driver.problem != "")
        assert not running.done(), running.exception()
        full: list[Callable[[], None]] = []
        system.submitted = lambda: full.append(fill(small / "others", inodes=inodes))
        free()
        await until(lambda: running.done() or (bool(full) and driver.problem != ""))
        assert not running.done(), running.exception()
        assert system.told == ["submit"]
        full[0]()
        await ended(told, running)
        assert isinstance(told[-1], base.Ended)
        assert told[-1].end.outcome is Outcome.COMPLETED
        assert system.told == ["submit", "release"]


def fill(place: Path, *, inodes: bool) -> Callable[[], None]:
    """Fills a file system, of bytes or of files; returns what makes room again."""
    place.mkdir(exist_ok=True)
    made: list[Path] = []
    try:
        while True:
            made.append(place / str(len(made)))
            made[-1].write_bytes(b"" if inodes else bytes(4096))
    except OSError:
        pass

    def free() -> None:
        for path in made:
            path.unlink(missing_ok=True)

    return free
