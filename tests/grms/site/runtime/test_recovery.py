"""A journal at a start of the daemon: as long as it has to be."""

from pathlib import Path

import grpc
import pytest
import structlog
from grpc import aio
from structlog.testing import capture_logs

from grms.simulation.fault_run import Trial
from grms.site.model.compaction import Reading
from grms.site.runtime import executor_recovery, recovery
from grms.site.runtime.journal import Journal, JournalFullError
from grms.site.scheduler.state import SiteState
from tests.grms.site.daemons import document, running, two_sites
from tests.grms.site.model.test_compaction import inside
from tests.waiting import until


async def test_a_daemon_forgets_what_it_need_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended jobs beyond the limit leave the journal; numbers and keys go on where they were."""
    monkeypatch.setattr(recovery.compact, "__defaults__", (10,))
    more = {"limits": {"ended_jobs": 2}}
    async with two_sites(tmp_path, more, more) as (home, away):
        await home.submit("fills", processors=4, run_time_s=500.0, requested_time_s=500.0)
        for number in range(8):
            job = await home.ended((await home.submit(f"k{number}")).job_id)
            assert job.executed_on == "away"
        book = home.core.engine.state.partners["away"]
        offered, consumption = book.offered, book.consumption
        guests = away.core.engine.state.partners["home"]
        await until(lambda: not guests.guests)
        before = home.core.journal.count, away.core.journal.count
    with capture_logs() as logs:
        async with two_sites(tmp_path, more, more) as (home, away):
            assert [log["event"] for log in logs].count("journal_compacted") == 2
            assert home.core.journal.count < before[0] / 2
            assert away.core.journal.count < before[1] / 2
            book = home.core.engine.state.partners["away"]
            assert (book.offered, book.consumption) == (offered, consumption)
            assert (await home.submit("k7")).job_id == "home-9"
            again = await home.submit(
                "fills", processors=4, run_time_s=500.0, requested_time_s=500.0
            )
            assert again.job_id == "home-1"
            assert (await home.submit("new")).job_id == "home-10"
            with pytest.raises(aio.AioRpcError) as error:
                await home.ended("home-2")
            assert error.value.code() is grpc.StatusCode.NOT_FOUND
    with Journal(tmp_path / "home.journal", "home") as journal:
        assert len(list(journal.records())) == journal.count


def test_a_journal_is_read_as_its_records_say(tmp_path: Path) -> None:
    """In blocks and by fields: the memory, the batch system's jobs, the last moment, every bit."""
    for seed in range(4):
        trial = Trial(seed, SiteState)
        trial.run()
        for site in trial.sites.values():
            path = tmp_path / f"{site.settings.name}-{seed}.journal"
            with Journal(path, site.settings.name, durability="process") as journal:
                journal.append(site.journal)
                log = structlog.get_logger()
                found = recovery.read(journal, site.settings, recovery.Progress(log, 0))
            plain = Reading(site.settings)
            for record in site.journal:
                plain.apply(record)
            assert inside(found.memory) == inside(plain.memory)
            assert found.moment == plain.moment
            assert executor_recovery.running(found.memory) == executor_recovery.running(
                plain.memory
            )
            assert executor_recovery.waiting(found.memory) == executor_recovery.waiting(
                plain.memory
            )
            assert found.memory.lrms_moment == plain.memory.lrms_moment


async def test_a_full_disk_leaves_the_journal_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon serves with the long one."""
    monkeypatch.setattr(recovery.compact, "__defaults__", (1,))
    more = document(tmp_path, limits={"ended_jobs": 1})
    async with running(more, tmp_path) as site:
        for number in range(4):
            await site.ended((await site.submit(f"k{number}")).job_id)
        before = site.core.journal.count

    def full(_journal: Journal, _records: object) -> None:
        raise JournalFullError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "replace", full)
        async with running(more, tmp_path) as site:
            assert site.core.journal.count == before
    async with running(more, tmp_path) as site:
        assert site.core.journal.count < before / 2
