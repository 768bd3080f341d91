"""What the adapter does when a job ends between a look and a command; the rest is in the conformance scenes."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.kinds import SlurmTable
from grms.lrms.batch.launch import Spool
from grms.lrms.batch.table import Ending, JobRow, Table
from grms.lrms.partitions import Partition, Partitions
from grms.lrms.port import (
    Ended,
    LrmsEnd,
    LrmsEvent,
    LrmsJob,
    LrmsOutcome,
    LrmsPhase,
    LrmsRefusedError,
    Program,
)
from tests.clusters.fake_slurm import FakeSlurm
from tests.grms.lrms.batch.forgetful import END, HELD, KEY, Forgetful
from tests.waiting import TIME_OUT_S, until


class TooLate(Forgetful):
    """A batch system that refuses to hold its job; before that the job ends, where the test says so."""

    def __init__(self, *, ends: bool) -> None:
        super().__init__()
        self._ends = ends

    async def hold(self, row: JobRow) -> None:
        """See `BatchSystem.hold`."""
        self.told.append("hold")
        if self._ends:
            self.rows = (replace(row, phase=LrmsPhase.ENDED, start_time=40.0, end=END.end),)
        raise LrmsRefusedError("denied: job does not exist")


async def waiting(system: Forgetful, folder: Path) -> BatchLrms:
    """Returns an adapter whose job waits in a batch system, as the last look has shown."""
    lrms = BatchLrms(system, Spool(folder), poll_s=0.01, settle_s=0.0, clock=lambda: system.now)
    await lrms.submit(LrmsJob(KEY, 2, 60.0, program=Program("#!/bin/sh\n")))
    system.rows = (replace(HELD, phase=LrmsPhase.WAITING),)
    return lrms


async def test_a_job_that_has_ended_since_the_look_is_not_cancelled(tmp_path: Path) -> None:
    """Grid Engine shows a job for a moment that is gone; it may have run, and nothing is to be done."""
    system = TooLate(ends=True)
    lrms = await waiting(system, tmp_path)
    assert not await lrms.cancel(KEY, only_waiting=True)
    assert system.told == ["submit", "hold"]


async def test_a_job_that_may_not_be_held_is_not_cancelled(tmp_path: Path) -> None:
    """It waits on, could start at any moment, and whoever asks is told why."""
    system = TooLate(ends=False)
    lrms = await waiting(system, tmp_path)
    with pytest.raises(LrmsRefusedError, match="does not exist"):
        await lrms.cancel(KEY, only_waiting=True)
    assert system.told == ["submit", "hold"]


class Restarting(Forgetful):
    """A batch system whose job starts and waits again while it is about to be held."""

    def __init__(self, begun: Path) -> None:
        super().__init__()
        self._begun = begun

    async def hold(self, row: JobRow) -> None:
        """See `BatchSystem.hold`."""
        self.told.append("hold")
        self._begun.write_text("0 41\n")
        self.rows = (replace(row, phase=LrmsPhase.HELD),)


async def test_a_job_that_has_begun_once_is_not_let_go(tmp_path: Path) -> None:
    """Its folder says so where no look has shown it; one that was held meanwhile goes on."""
    system = Restarting(Spool(tmp_path).place(KEY) / "begun")
    lrms = await waiting(system, tmp_path)
    assert not await lrms.cancel(KEY, only_waiting=True)
    assert system.told == ["submit", "hold", "release"]
    assert not await lrms.cancel(KEY, only_waiting=True)
    assert system.told == ["submit", "hold", "release"]


async def test_what_is_asked_after_a_restart_is_the_truth_too(tmp_path: Path) -> None:
    """The table, or a record, says that the time was over; or there is none: the job's folder says how it ended."""
    late = LrmsEnd(LrmsOutcome.TIMEOUT, 1000.0, 960.0)
    told = replace(HELD, phase=LrmsPhase.ENDED, start_time=40.0, end=late, exact=False)
    system = Forgetful()
    await waiting(system, tmp_path)
    spool = Spool(tmp_path)
    for rows, ending in (
        ((told,), None),
        ((told,), Ending(40.0, late)),
        ((), Ending(40.0, late)),
        ((), None),
    ):
        for said, code in (("0 1000\n", None), ("0 1000\nended 3 1020\n", 3)):
            (spool.place(KEY) / "begun").write_text(said)
            spool.released(KEY, "7")
            system.rows, system.ending = rows, ending
            lrms = BatchLrms(system, spool, poll_s=0.01, settle_s=0.0, clock=lambda: 2000.0)
            record = await lrms.look_up(KEY)
            assert record is not None
            assert record.end is not None
            assert record.end.exit_code == code
            known = LrmsOutcome.TIMEOUT if rows or ending else LrmsOutcome.UNKNOWN
            assert record.end.outcome is (LrmsOutcome.FAILED if code else known)


async def test_an_end_that_the_controller_has_forgotten_is_told(tmp_path: Path) -> None:
    """It ends the job at its limit; the user is told what the script has returned, and the slip is counted."""
    cluster = FakeSlurm(tmp_path / "cluster", nodes=1, cpus=1)
    cluster.up()
    lrms = BatchLrms(
        SlurmTable(kind="slurm", programs=cluster.programs).system("S"),
        Spool(tmp_path / "jobs"),
        poll_s=0.1,
        settle_s=0.0,
    )
    events: list[LrmsEvent] = []
    lrms.listen(events.extend)
    try:
        await lrms.open()
        follows = asyncio.create_task(lrms.run())
        async with asyncio.timeout(TIME_OUT_S):
            cluster.machine.forgotten.add("1")
            script = "#!/bin/sh\nexit 3\n"
            await lrms.submit(LrmsJob(KEY, 1, 600.0, program=Program(script)))
            await until(lambda: lrms.folders.script_end(KEY)[0] is not None)
            assert not any(isinstance(event, Ended) for event in events)
            cluster.ask("scontrol", "update", "JobId=1", "EndTime=now")
            await until(lambda: any(isinstance(event, Ended) for event in events))
        (event,) = [event for event in events if isinstance(event, Ended)]
        assert (event.end.outcome, event.end.exit_code) == (LrmsOutcome.FAILED, 3)
        assert lrms.slips.end_forgotten == 1
        assert "TIMEOUT" in cluster.ask("scontrol", "show", "job", "1")
        follows.cancel()
        await asyncio.wait([follows])
    finally:
        cluster.down()


async def emptied(system: Forgetful, folder: Path) -> BatchLrms:
    """Returns an adapter of the next life above a job that was released, and whose script has emptied its folder."""
    lrms = await waiting(system, folder)
    lrms.folders.released(KEY, "7")
    for path in lrms.folders.place(KEY).iterdir():
        path.unlink()
    return BatchLrms(system, Spool(folder), poll_s=0.01, settle_s=0.0, clock=lambda: system.now)


async def test_a_job_that_has_emptied_its_folder_is_not_submitted_again(tmp_path: Path) -> None:
    """The batch system has forgotten it; what was kept of it the job could not take away."""
    system = Forgetful()
    lrms = await emptied(system, tmp_path)
    system.rows = ()
    record = await lrms.look_up(KEY)
    assert record is not None
    assert record.phase is LrmsPhase.ENDED
    await lrms.submit(LrmsJob(KEY, 2, 60.0, program=Program("#!/bin/sh\n")))
    assert system.told == ["submit"]


async def test_a_job_that_has_emptied_its_folder_is_not_released_again(tmp_path: Path) -> None:
    """The batch system has forgotten the release and the run; the job is ended, as any that has begun."""
    system = Forgetful()
    lrms = await emptied(system, tmp_path)
    system.rows = (HELD,)
    await lrms.look_up(KEY)
    await lrms.release(KEY)
    assert system.told == ["submit", "cancel"]


class Parted(Forgetful):
    """A batch system with one partition, which is as the test says."""

    def __init__(self, partition: Partition) -> None:
        super().__init__()
        self.partition = partition

    async def look(self) -> Table:
        """See `BatchSystem.look`."""
        return replace(await super().look(), partitions=Partitions((self.partition,)))


@pytest.mark.parametrize(
    ("partition", "own", "guest"),
    [
        (Partition("main", "UP"), None, None),
        (Partition("main", "DOWN", starts=False), None, True),
        (Partition("main", "DRAIN", takes=False), True, True),
        (Partition("main", "UP", longest_s=59.0), False, False),
        (Partition("main", "UP", widest=1), False, False),
    ],
)
async def test_what_no_part_takes_is_refused(
    partition: Partition, own: bool | None, guest: bool | None, tmp_path: Path
) -> None:
    """For now or for good; an own job may wait for a part that is down. What is there already is not asked about."""
    for partner, passing in (("", own), ("A", guest)):
        system = Parted(partition)
        spool = Spool(tmp_path / f"{partner}-jobs")
        spool.open()
        lrms = BatchLrms(system, spool, poll_s=0.01, settle_s=0.0, clock=lambda: 100.0)
        job = LrmsJob(KEY, 2, 60.0, partner=partner, program=Program("#!/bin/sh\n"))
        if passing is None:
            await lrms.submit(job)
            system.partition = Partition("main", "INACTIVE", takes=False, starts=False)
            await lrms.look_up(KEY)
            await lrms.submit(job)
            assert system.told == ["submit"]
            continue
        with pytest.raises(LrmsRefusedError, match="main") as caught:
            await lrms.submit(job)
        assert (caught.value.passing, system.told) == (passing, [])
