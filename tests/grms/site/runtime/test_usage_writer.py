"""What jobs have used, as a daemon writes it: beside its journal, through kills and full disks."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from grms.client import SyncClient
from grms.daemon.journal import JournalError, JournalFullError
from grms.site.model.usage import UsageRecord
from grms.site.runtime.usage_log import months, read_usage, usage_folder
from tests.grms.site.daemons import document, running, two_sites
from tests.grms.site.peers.partner import full
from tests.waiting import until

GRMS: Final = (sys.executable, "-c", "from grms.command import main; main()")


def log_of(folder: Path, site: str = "home") -> list[UsageRecord]:
    """Returns the records in the log of a site in a folder."""
    return list(read_usage(usage_folder(folder / f"{site}.journal", site), site))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grms.site.runtime.usage_log.GATHERED_S", 0.01)
    monkeypatch.setattr("grms.site.runtime.usage_log.RETRY_S", 0.05)


async def test_home_and_partner_record_the_same_job(tmp_path: Path) -> None:
    """Under one name for both, with what it had and how it ended; the partner has no user's name."""
    async with two_sites(tmp_path) as (home, _):
        await full(home)
        job = await home.submit("goes", 2, run_time_s=0.2, name="align")
        await home.ended(job.job_id)
        await until(lambda: len(log_of(tmp_path)) == len(log_of(tmp_path, "away")) == 1)
    (own,), (guest,) = log_of(tmp_path), log_of(tmp_path, "away")
    assert (own.job_id, own.name, own.home, own.site) == ("home-2", "align", "home", "away")
    assert (guest.home, guest.site, guest.user, guest.name) == ("home", "away", "", "")
    assert own.offer == guest.offer == guest.key
    assert own.user != ""
    assert own.processors == guest.processors == 2
    assert own.run_time == guest.run_time == pytest.approx(0.2)
    assert own.end_time == guest.end_time


async def test_a_job_that_has_ended_is_recorded_when_the_daemon_ends(tmp_path: Path) -> None:
    """Or at its next start; it is there once."""
    for start in range(3):
        async with running(document(tmp_path), tmp_path) as site:
            job = await site.submit(f"k{start}")
            await site.ended(job.job_id)
    async with running(document(tmp_path), tmp_path):
        assert [one.job_id for one in log_of(tmp_path)] == ["home-1", "home-2", "home-3"]


async def test_a_log_that_was_deleted_is_written_anew(tmp_path: Path) -> None:
    """As far as the journal knows; that is all of it here."""
    async with running(document(tmp_path), tmp_path) as site:
        await site.ended((await site.submit("k")).job_id)
    before = log_of(tmp_path)
    for path in months(tmp_path / "home.usage"):
        path.unlink()
    async with running(document(tmp_path), tmp_path):
        assert log_of(tmp_path) == before
    assert len(before) == 1


async def test_a_full_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs go on, and their records come when there is room."""
    async with running(document(tmp_path), tmp_path) as site:
        usage = site.core.usage
        assert usage is not None
        tries = []
        append = usage.log.append

        def full_once(records: Any, now: float) -> None:
            tries.append(len(records))
            if len(tries) < 3:
                raise JournalFullError("home.usage: the disk is full")
            append(records, now)

        monkeypatch.setattr(usage.log, "append", full_once)
        await site.ended((await site.submit("k")).job_id)
        await until(lambda: len(log_of(tmp_path)) == 1)
        assert tries == [1, 1, 1]


async def test_a_disk_that_fails_ends_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does with the journal: nothing that is written then can be relied on."""
    with pytest.raises(JournalError, match="it is gone"):
        async with running(document(tmp_path), tmp_path) as site:
            usage = site.core.usage
            assert usage is not None

            def fails(*_: object) -> None:
                raise JournalError("home.usage: it is gone")

            monkeypatch.setattr(usage.log, "append", fails)
            await site.ended((await site.submit("k")).job_id)
            await site.core.engine.failed.wait()
            assert isinstance(site.core.engine.failure, JournalError)


@contextmanager
def serving(config: Path, end: signal.Signals) -> Iterator[SyncClient]:
    """Yields a client of a daemon in a process of its own, which gets a signal in the end."""
    command = [*GRMS, "serve", str(config)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as daemon:  # noqa: S603  # it is ours
        try:
            with SyncClient(config.parent / "home.sock", timeout_s=60.0) as site:
                yield site
        finally:
            daemon.send_signal(end)
            daemon.wait(60)


@pytest.mark.usefixtures("forks")
def test_kills_at_any_moment_leave_each_job_one_record(tmp_path: Path) -> None:
    """A daemon is killed again and again, while jobs end; its journal has them all, and so has the log."""
    path = tmp_path / "home.toml"
    path.write_text(
        "name = 'home'\nprocessors = 64\n[listen]\nusers = 'home.sock'\n[journal]\npath = 'home.journal'\n"
    )
    jobs: list[str] = []
    for life in range(5):
        with serving(path, signal.SIGTERM if life > 2 else signal.SIGKILL) as site:
            if life == 4:
                site.status()
                break
            jobs += [
                site.submit(
                    processors=1,
                    requested_time_s=60.0,
                    run_time_s=0.05 * (number + 1),
                    key=f"{life}/{number}",
                ).job_id
                for number in range(8)
            ]
            if life == 3:
                for job in jobs:
                    site.wait(job)
            else:
                time.sleep(0.12 * life)  # the moment of the kill is what is tried
    found = log_of(tmp_path)
    assert sorted(one.job_id for one in found) == sorted(jobs)
    assert [one.number for one in found] == list(range(1, len(jobs) + 1))
