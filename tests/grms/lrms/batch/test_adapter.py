"""What the adapter does when a job ends between a look and a command; the rest is in the conformance scenes."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grms.lrms.base import (
    Accepted,
    Away,
    Back,
    Ended,
    Hindered,
    Lost,
    LrmsEnd,
    LrmsEvent,
    LrmsJob,
    LrmsPhase,
    LrmsRefusedError,
    LrmsUnavailableError,
    Program,
    SeenAgain,
    Started,
    Unseen,
    Vanished,
)
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.job_tracker import GRACE_S
from grms.lrms.batch.job_tracker import HELD as HELD_BY
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.queue_snapshot import Ending, JobRow, QueueSnapshot
from grms.lrms.gridengine.gridengine_adapter import GridEngineTable
from grms.lrms.job_notes import Marks
from grms.lrms.partitions import Partition, Partitions
from grms.lrms.slurm.slurm_adapter import SlurmTable
from grms.util.outcomes import Outcome
from tests.clusters.fake_slurm import FakeSlurm, Part
from tests.clusters.gridengine import GridEngineCluster, need_gridengine
from tests.grms.lrms.batch.forgetful import END, HELD, KEY, Forgetful
from tests.grms.lrms.batch.scene import Scene, undisturbed
from tests.waiting import TIME_OUT_S, meanwhile, until


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


async def test_one_that_no_table_shows_does_not_leave_the_queue(tmp_path: Path) -> None:
    """It waited when it was seen last, and may run by now; a hold that was set meanwhile is lifted again."""
    system = Blinking()
    lrms = await waiting(system, tmp_path)
    await lrms.snapshot()
    system.rows = ()
    assert not await lrms.cancel(KEY, only_waiting=True)
    assert system.told == ["submit"]
    system.rows = (replace(HELD, phase=LrmsPhase.WAITING),)
    system.blinks = True
    assert not await lrms.cancel(KEY, only_waiting=True)
    assert system.told == ["submit", "hold", "release"]


class Overtaken(Forgetful):
    """A batch system in which an administrator ends a held job just before it is cancelled."""

    async def hold(self, row: JobRow) -> None:
        """See `BatchSystem.hold`."""
        del row
        self.told.append("hold")
        self.rows = (HELD,)

    async def cancel(self, row: JobRow) -> bool:
        """See `BatchSystem.cancel`."""
        await super().cancel(row)
        return False


class Refusing(Overtaken):
    """A batch system that holds a job, and says that it does not."""

    async def hold(self, row: JobRow) -> None:
        """See `BatchSystem.hold`."""
        await super().hold(row)
        raise LrmsRefusedError("Requested partition configuration not available now")

    async def cancel(self, row: JobRow) -> bool:
        """See `BatchSystem.cancel`."""
        return not await super().cancel(row)


class Silent(Overtaken):
    """A batch system that holds a job, and does not answer the first time."""

    async def hold(self, row: JobRow) -> None:
        """See `BatchSystem.hold`."""
        await super().hold(row)
        if self.told.count("hold") == 1:
            raise LrmsUnavailableError("timed out")

    async def cancel(self, row: JobRow) -> bool:
        """See `BatchSystem.cancel`."""
        return not await super().cancel(row)


class Lifted(Forgetful):
    """A batch system that ends only what waits, in which somebody lifts a hold just before that; its job then starts.

    Attributes:
        answers: whether it shows its queue after that.
    """

    def __init__(self, begun: Path | None, *, answers: bool = True) -> None:
        super().__init__()
        self._begun = begun
        self.answers = True
        self._will_answer = answers

    async def look(self) -> QueueSnapshot:
        """See `BatchSystem.look`."""
        if not self.answers:
            raise LrmsUnavailableError("timed out")
        return await super().look()

    async def hold(self, row: JobRow) -> None:
        """See `BatchSystem.hold`."""
        self.told.append("hold")
        self.rows = (replace(row, phase=LrmsPhase.HELD),)

    async def cancel(self, row: JobRow) -> bool:
        """See `BatchSystem.cancel`."""
        self.told.append("cancel")
        self.rows = (replace(row, phase=LrmsPhase.RUNNING, start_time=self.now),)
        if self._begun is not None:
            self._begun.write_text("0 101\n")
        self.answers = self._will_answer
        return True


@pytest.mark.parametrize("begun", [False, True])
async def test_one_whose_hold_was_lifted_is_not_let_go(tmp_path: Path, begun: bool) -> None:
    """Its user can release it, and runs it under the account of the daemon: it runs here, and must not elsewhere."""
    system = Lifted(Spool(tmp_path).place(KEY) / "begun" if begun else None)
    lrms = await waiting(system, tmp_path)
    assert not await lrms.cancel(KEY, only_waiting=True)
    assert system.told == ["submit", "hold", "cancel"]


async def test_one_that_may_have_started_is_let_go_only_after_a_look(tmp_path: Path) -> None:
    """The batch system was to end what waits, and does not say what became of it: nobody knows whether it runs."""
    system = Lifted(None, answers=False)
    lrms = await waiting(system, tmp_path)
    with pytest.raises(LrmsUnavailableError, match="timed out"):
        await lrms.cancel(KEY, only_waiting=True)
    system.answers = True
    assert not await lrms.cancel(KEY, only_waiting=True)


async def test_what_an_administrator_was_faster_to_end_is_not_let_go(tmp_path: Path) -> None:
    """The batch system has no such job any more when it is to end it, and the answer says so."""
    system = Overtaken()
    lrms = await waiting(system, tmp_path)
    assert not await lrms.cancel(KEY, only_waiting=True)
    assert system.told == ["submit", "hold", "cancel"]


async def test_a_job_that_is_held_in_spite_of_a_refusal_is_let_go(tmp_path: Path) -> None:
    """Slurm refuses where the partition is inactive, and holds it: it would wait there for ever."""
    system = Refusing()
    lrms = await waiting(system, tmp_path)
    assert await lrms.cancel(KEY, only_waiting=True)
    assert system.told == ["submit", "hold", "cancel"]


@pytest.mark.parametrize(
    "row",
    [
        replace(HELD, reason="JobHeldAdmin"),
        replace(HELD, phase=LrmsPhase.WAITING, hindered="it is put off", deferred=True),
    ],
)
async def test_a_job_that_somebody_lets_wait_is_not_let_go(tmp_path: Path, row: JobRow) -> None:
    """Elsewhere it would start against the will of who holds it; it is let go when he has released it."""
    system = Overtaken()
    lrms = await waiting(system, tmp_path)
    await lrms.snapshot()
    system.rows = (row,)
    for ask in (lrms.cancel(KEY, only_waiting=True), lrms.leave(KEY)):
        with pytest.raises(LrmsRefusedError, match=r"holds it|put off"):
            await ask
    assert system.told == ["submit"]
    system.rows = (replace(HELD, phase=LrmsPhase.WAITING),)
    assert not await lrms.cancel(KEY, only_waiting=True)
    assert system.told == ["submit", "hold", "cancel"]


@pytest.mark.parametrize("wanted", [False, True])
async def test_what_nobody_waits_for_is_ended_though_it_is_put_off(
    tmp_path: Path, *, wanted: bool
) -> None:
    """A controller's older memory shows a job that is elsewhere by now: once its time has come it would run twice."""
    system = Refusing()
    await waiting(system, tmp_path)
    system.rows = (replace(HELD, phase=LrmsPhase.WAITING, hindered="it is put off", deferred=True),)
    lrms = BatchLrms(system, Spool(tmp_path), poll_s=0.01, settle_s=0.0, clock=lambda: system.now)
    await lrms.snapshot()
    if wanted:
        await lrms.look_up(KEY)
        with pytest.raises(LrmsRefusedError, match="put off"):
            await lrms.cancel(KEY, only_waiting=True)
    else:
        assert await lrms.cancel(KEY, only_waiting=True)
    assert system.told == (["submit"] if wanted else ["submit", "hold", "cancel"])


async def test_a_hold_of_the_sites_own_without_an_answer_is_its_own(tmp_path: Path) -> None:
    """It was held to be let go, and nobody knows whether it was ended: the next attempt ends it."""
    system = Silent()
    lrms = await waiting(system, tmp_path)
    await lrms.snapshot()
    with pytest.raises(LrmsUnavailableError):
        await lrms.cancel(KEY, only_waiting=True)
    assert await lrms.cancel(KEY, only_waiting=True)
    assert system.told == ["submit", "hold", "hold", "cancel"]


class Dying(Overtaken):
    """A batch system that tells a user's hold from that of a submission; the daemon dies when it has held a job itself.

    Attributes:
        dies: whether it does.
        refuses: whether it then refuses to end it.
    """

    def __init__(self, *, dies: bool, refuses: bool = False) -> None:
        super().__init__()
        self.dies = dies
        self.refuses = refuses

    async def hold(self, row: JobRow) -> None:
        """See `BatchSystem.hold`."""
        await super().hold(row)
        if self.dies:
            raise LrmsUnavailableError("the daemon is dead")

    async def cancel(self, row: JobRow) -> bool:
        """See `BatchSystem.cancel`."""
        if self.refuses:
            raise LrmsRefusedError("denied")
        return await super().cancel(row)

    async def held_since_submission(self, row: JobRow, *, released: bool) -> bool:
        """See `BatchSystem.held_since_submission`."""
        del row, released
        return False


OTHERS_HOLD = Hindered(KEY, f"{HELD_BY} ({HELD.reason})", deferred=True)


def follower(system: Dying, folder: Path) -> BatchLrms:
    """Returns an adapter as after a restart of the daemon."""
    return BatchLrms(system, Spool(folder), poll_s=0.01, settle_s=0.0, clock=lambda: system.now)


async def told_after_restart(system: Dying, folder: Path) -> tuple[list[str], list[LrmsEvent]]:
    """Has a new adapter follow the held job; returns what that tells the batch system, and the site about the hold."""
    lrms, events = follower(system, folder), list[LrmsEvent]()
    lrms.listen(events.extend)
    system.told.clear()
    await lrms.look_up(KEY)
    async with meanwhile(lrms.run()):
        await until(lambda: OTHERS_HOLD in events or bool(system.told))
        if system.told:
            await until(lambda: lrms.folders.marks(KEY) == Marks(True, True, "7", limit_s=60.0))
    return list(system.told), [each for each in events if isinstance(each, Hindered)]


async def test_a_hold_of_the_sites_own_does_not_outlive_it(tmp_path: Path) -> None:
    """The daemon died between the hold and the end of a job that nobody lets go any more; a later hold is a user's."""
    system = Dying(dies=True)
    lrms = await waiting(system, tmp_path)
    with pytest.raises(LrmsUnavailableError):
        await lrms.cancel(KEY, only_waiting=True)
    assert await told_after_restart(system, tmp_path) == (["release"], [])
    system.rows = (HELD,)
    assert await told_after_restart(system, tmp_path) == ([], [OTHERS_HOLD])


@pytest.mark.parametrize("before", ["never", "lifted", "not held", "begun"])
async def test_a_users_hold_outlives_the_site(tmp_path: Path, before: str) -> None:
    """Also of a job that the site has held, or was about to: it was released since, or was not let go, or has begun."""
    system = Dying(dies=before != "lifted", refuses=True)
    lrms = await waiting(system, tmp_path)
    if before != "never":
        with pytest.raises((LrmsUnavailableError, LrmsRefusedError)):
            await lrms.cancel(KEY, only_waiting=True)
    if before == "not held":
        system.rows = (replace(HELD, phase=LrmsPhase.WAITING),)
        await follower(system, tmp_path).look_up(KEY)
    if before == "begun":
        (Spool(tmp_path).place(KEY) / "begun").write_text("0 41\n")
    system.rows = (HELD,)
    assert await told_after_restart(system, tmp_path) == ([], [OTHERS_HOLD])


async def test_a_hold_that_somebody_has_lifted_and_set_again_is_his(tmp_path: Path) -> None:
    """A later daemon has seen the job wait between the two holds, and had not looked it up before."""
    system = Dying(dies=True)
    lrms = await waiting(system, tmp_path)
    with pytest.raises(LrmsUnavailableError):
        await lrms.cancel(KEY, only_waiting=True)
    lrms, events = follower(system, tmp_path), list[LrmsEvent]()
    lrms.listen(events.extend)
    system.told.clear()
    for phase in (LrmsPhase.HELD, LrmsPhase.WAITING, LrmsPhase.HELD):
        system.rows = (replace(HELD, phase=phase),)
        await lrms.snapshot()
    await lrms.look_up(KEY)
    async with meanwhile(lrms.run()):
        await until(lambda: OTHERS_HOLD in events or bool(system.told))
    assert system.told == []


class Blinking(Forgetful):
    """A batch system whose table is empty once it has held a job, where the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.blinks = False

    async def hold(self, row: JobRow) -> None:
        """See `BatchSystem.hold`."""
        del row
        self.told.append("hold")
        self.rows = () if self.blinks else self.rows


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
    late = LrmsEnd(Outcome.TIMEOUT, 1000.0, 960.0)
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
            system.rows, system.end = rows, ending
            lrms = BatchLrms(system, spool, poll_s=0.01, settle_s=0.0, clock=lambda: 2000.0)
            record = await lrms.look_up(KEY)
            assert record is not None
            if not (rows or ending or code):
                # Nothing says that it is over, whatever the time is.
                assert (record.phase, record.end) == (LrmsPhase.UNKNOWN, None)
                assert record.start_time == 1000.0
                continue
            assert record.end is not None
            assert record.end.exit_code == code
            assert record.end.outcome is (Outcome.FAILED if code else Outcome.TIMEOUT)


@pytest.mark.parametrize(
    ("outcome", "start_time"), [(Outcome.PREEMPTED, 990.0), (Outcome.CANCELLED, None)]
)
async def test_after_a_restart_a_second_start_is_not_the_end_of_a_guest_either(
    tmp_path: Path, outcome: Outcome, start_time: float | None
) -> None:
    """Its home could run it again while the first run, which the batch system has forgotten, lives."""
    end = LrmsEnd(outcome, 1000.0, 0.0 if start_time is None else 10.0)
    system = Forgetful()
    await waiting(system, tmp_path)
    spool = Spool(tmp_path)
    spool.released(KEY, "7")
    system.rows = (replace(HELD, phase=LrmsPhase.ENDED, start_time=start_time, end=end),)
    for said, phase in (("0 40\n", LrmsPhase.UNKNOWN), ("0 40\nended 0 60\n", LrmsPhase.ENDED)):
        (spool.place(KEY) / "begun").write_text(said)
        lrms = BatchLrms(system, spool, poll_s=0.01, settle_s=0.0, clock=lambda: 2000.0)
        record = await lrms.look_up(KEY)
        assert record is not None
        assert record.phase is phase
        if record.end is not None:
            assert (record.end.outcome, record.end.run_time) == (Outcome.COMPLETED, 20.0)


async def test_an_end_that_the_controller_has_forgotten_is_told(tmp_path: Path) -> None:
    """It ends the job at its limit; the user is told what the script has returned, and the anomaly is counted."""
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
        async with meanwhile(lrms.run()):
            async with asyncio.timeout(TIME_OUT_S):
                cluster.machine.forgotten.add("1")
                script = "#!/bin/sh\nexit 3\n"
                await lrms.submit(LrmsJob(KEY, 1, 600.0, program=Program(script)))
                await until(lambda: lrms.folders.evidence(KEY).script is not None)
                assert not any(isinstance(event, Ended) for event in events)
                cluster.ask("scontrol", "update", "JobId=1", "EndTime=now")
                await until(lambda: any(isinstance(event, Ended) for event in events))
            (event,) = [event for event in events if isinstance(event, Ended)]
            assert (event.end.outcome, event.end.exit_code) == (Outcome.FAILED, 3)
            assert lrms.anomalies.end_forgotten == 1
            assert "TIMEOUT" in cluster.ask("scontrol", "show", "job", "1")
    finally:
        cluster.down()


@pytest.mark.parametrize("emptied", [False, True])
async def test_a_job_that_its_node_never_started_is_the_nodes_failure(
    tmp_path: Path, *, emptied: bool
) -> None:
    """Slurm ends it at its limit. One that has emptied its folder has begun, and its time was over."""
    scene = Scene(FakeSlurm(tmp_path / "cluster", nodes=1, cpus=1), tmp_path)
    async with scene.up():
        scene.cluster.machine.unheard.add("1")
        key = await scene.submitted(1)
        await until(lambda: scene.has(key, Started))
        if emptied:
            for path in scene.lrms.folders.place(key).iterdir():
                path.unlink()
        scene.cluster.ask("scontrol", "update", "JobId=1", "EndTime=now")
        await until(lambda: scene.has(key, Ended, Vanished))
    (end,) = [each.end for each in scene.events if isinstance(each, Ended)]
    assert end.outcome is (Outcome.TIMEOUT if emptied else Outcome.NODE_FAIL)
    assert ("was never started" in end.reason) is not emptied
    assert scene.lrms.anomalies.end_forgotten == 0


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
    assert record.phase is LrmsPhase.UNKNOWN
    await lrms.submit(LrmsJob(KEY, 2, 60.0, program=Program("#!/bin/sh\n")))
    assert system.told == ["submit"]


async def test_a_job_that_has_emptied_its_folder_is_not_released_again(tmp_path: Path) -> None:
    """The batch system has forgotten the release and the run; once its limit is over the copy is ended."""
    system = Forgetful()
    lrms = await emptied(system, tmp_path)
    system.rows = (HELD,)
    await lrms.look_up(KEY)
    await lrms.release(KEY)
    assert system.told == ["submit"]
    until_over = 60.0 + GRACE_S
    for _ in range(int(until_over)):
        await lrms.release(KEY)
    assert system.told == ["submit", "cancel"]


class Parted(Forgetful):
    """A batch system with one partition, which is as the test says."""

    def __init__(self, partition: Partition) -> None:
        super().__init__()
        self.partition = partition

    async def look(self) -> QueueSnapshot:
        """See `BatchSystem.look`."""
        return replace(await super().look(), partitions=Partitions((self.partition,)))


@pytest.mark.parametrize(
    ("partition", "own", "guest"),
    [
        (Partition("main", "UP"), None, None),
        (Partition("main", "DOWN", starts=False), None, True),
        (Partition("main", "DRAIN", takes=False), True, True),
        (Partition("main", "UP", longest_s=59.0), None, False),
        (Partition("main", "UP", widest=1), None, False),
    ],
)
async def test_what_no_part_takes_is_refused(
    partition: Partition, own: bool | None, guest: bool | None, tmp_path: Path
) -> None:
    """For now or for good; an own job may wait for a part that is down, or a limit. What is there is not asked about."""
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


@pytest.mark.services
async def test_a_queue_that_is_shut_takes_no_partners_job(tmp_path: Path) -> None:
    """Grid Engine takes it all the same, and would keep it; what waits there is hindered. A shorter limit likewise."""
    need_gridengine()
    cluster = GridEngineCluster(tmp_path / "cell", slots=4)
    cluster.up()
    lrms = BatchLrms(
        GridEngineTable(
            kind="gridengine",
            root=str(cluster.folder),
            master_port=cluster.ports[0],
            execution_port=cluster.ports[1],
        ).system("S"),
        Spool(tmp_path / "jobs"),
        poll_s=0.1,
        settle_s=0.0,
    )
    events: list[LrmsEvent] = []
    lrms.listen(events.extend)
    job = LrmsJob(KEY, 1, 600.0, name="my job", partner="A", program=Program("#!/bin/sh\n"))
    try:
        await lrms.open()
        await lrms.submit(job, held=True)
        async with meanwhile(lrms.run()):
            cluster.ask("qmod", "-d", "main")
            await lrms.release(KEY)
            await until(lambda: Hindered(KEY, "main is disabled or suspended") in events)
            with pytest.raises(LrmsRefusedError, match="main is disabled") as caught:
                await lrms.submit(replace(job, key="A/1/2"))
            assert caught.value.passing
            cluster.ask("qconf", "-mattr", "queue", "h_rt", "0:5:0", "main")
            cluster.ask("qmod", "-e", "main")
            await until(
                lambda: any(
                    "5 min" in event.reason for event in events if isinstance(event, Hindered)
                )
            )
            with pytest.raises(LrmsRefusedError, match="the longest job in main may run 5 min"):
                await lrms.submit(replace(job, key="A/1/3"))
    finally:
        cluster.down()


# --- a doubt is no end -----------------------------------------------------------------------------


def scene_at(folder: Path, **settings: Any) -> Scene[FakeSlurm]:
    """Returns a scene with a fake of Slurm."""
    cluster = FakeSlurm(folder / "cluster", nodes=1, cpus=4)
    return Scene(cluster, folder, **settings)


async def test_a_partition_that_is_hidden_hides_no_job(tmp_path: Path) -> None:
    """An operator hides it while jobs run and wait in it."""
    scene = scene_at(tmp_path)
    async with scene.up():
        key, held = await scene.running(1), await scene.submitted(2, held=True)
        scene.cluster.ask("scontrol", "update", "PartitionName=main", "Hidden=YES")
        await scene.looks(8)
        assert not scene.has(key, Unseen)
        await undisturbed(scene, [key])
        assert not scene.has(held, Ended, Lost, Unseen)
        assert scene.states() == ["CD", "PD"]


@pytest.mark.parametrize("way", ["empty", "half", "filtered", "hanging"])
async def test_what_a_table_does_not_show_goes_on(tmp_path: Path, way: str) -> None:
    """A wrapper answers without rows, cuts the table, filters it, or hangs: nothing ends, and all comes back."""
    scene = scene_at(tmp_path, program_timeout_s=2.0)
    async with scene.up():
        first, second = await scene.running(1), await scene.running(2)
        held = await scene.submitted(3, held=True)
        await until(lambda: scene.has(held, Accepted))
        machine = scene.cluster.machine
        program = scene.cluster.folder / "bin" / "squeue"
        text = program.read_text()
        if way == "hanging":
            program.write_text("#!/bin/sh\nexec sleep 300\n")
            await until(lambda: any(isinstance(event, Away) for event in scene.events))
            program.write_text(text)
            await until(lambda: any(isinstance(event, Back) for event in scene.events))
        else:
            machine.shows = {"empty": 0, "half": 1}.get(way)
            machine.hides = {f"hanse:S:{second}"} if way == "filtered" else set()
            unseen = [first, second, held] if way == "empty" else [second]
            await until(lambda: all(scene.has(key, Unseen) for key in unseen))
            record = await scene.lrms.look_up(second)
            assert record is not None
            assert (record.phase, record.end) == (LrmsPhase.UNKNOWN, None)
            await scene.looks(8)
            machine.shows, machine.hides = None, set()
            await until(lambda: all(scene.has(key, SeenAgain) for key in unseen))
        assert scene.states() == ["PD", "R", "R"]
        await undisturbed(scene, [first, second])
        await scene.lrms.release(held)
        await undisturbed(scene, [held])


async def test_a_restart_under_an_empty_table_ends_nothing(tmp_path: Path) -> None:
    """What was released is followed until its rows are back; nothing is submitted or cancelled."""
    scene = scene_at(tmp_path)
    async with scene.started():
        async with scene.life():
            key = await scene.running(1)
        scene.cluster.machine.shows = 0
        scene.events.clear()
        async with scene.life():
            for _ in range(2):
                record = await scene.lrms.look_up(key)
                assert record is not None
                assert (record.phase, record.end) == (LrmsPhase.UNKNOWN, None)
            await scene.submitted(1)
            assert scene.has(key, Unseen)
            await scene.looks(5)
            scene.cluster.machine.shows = None
            await until(lambda: scene.has(key, SeenAgain))
            await undisturbed(scene, [key])
            assert scene.states() == ["CD"]


async def test_one_that_no_table_shows_can_be_cancelled(tmp_path: Path) -> None:
    """Its user wants its end, whatever a table shows."""
    scene = scene_at(tmp_path)
    async with scene.up():
        key = await scene.running(1)
        scene.cluster.machine.shows = 0
        await until(lambda: scene.has(key, Unseen))
        assert await scene.lrms.cancel(key)
        assert "CANCELLED" in scene.cluster.ask("scontrol", "show", "job", "1")
        await until(lambda: scene.has(key, Ended))
        (end,) = [event.end for event in scene.events if isinstance(event, Ended)]
        assert end.outcome is Outcome.CANCELLED


async def test_a_controller_without_a_memory_ends_no_script(tmp_path: Path) -> None:
    """It comes back with an empty state while a script runs on: the job's folder says how that ends."""
    scene = scene_at(tmp_path)
    async with scene.up():
        key, held = await scene.running(1), await scene.submitted(2, held=True)
        await until(lambda: scene.has(held, Accepted))
        scene.cluster.machine.crash(empty=True, kills=False)
        scene.cluster.start_controller()
        await until(lambda: scene.has(key, Unseen) and scene.has(held, Lost))
        await scene.looks(5)
        assert not scene.has(key, Ended, Vanished)
        assert await scene.submitted(2, held=True) == held
        end = await scene.ends(key)
        assert (end.outcome, end.exit_code) == (Outcome.COMPLETED, 0)
        assert scene.runs(key) == 1
        assert scene.lrms.anomalies.submission_forgotten == 1


@pytest.mark.parametrize("taken", [False, True])
async def test_a_submission_without_an_answer_is_made_in_the_end(
    tmp_path: Path, taken: bool
) -> None:
    """The controller dies before it has it, or after: it is looked up, and exactly one copy runs."""
    scene = scene_at(tmp_path)
    async with scene.up():
        await scene.looks(1)
        if taken:
            scene.cluster.machine.loses = 1
        else:
            scene.cluster.machine.away = True
        with pytest.raises(LrmsUnavailableError):
            await scene.submitted(1)
        scene.cluster.start_controller()
        record = await scene.lrms.look_up("A/1/1")
        assert (record is not None) == taken
        key = await scene.submitted(1)
        await until(lambda: scene.runs(key) == 1)
        await undisturbed(scene, [key])
        assert scene.states() == ["CD"]


async def test_a_submission_that_was_cut_off_is_made_after_a_restart(tmp_path: Path) -> None:
    """Of the adapter too; nothing was kept of it but that it was to be."""
    scene = scene_at(tmp_path)
    async with scene.started():
        async with scene.life():
            await scene.looks(1)
            scene.cluster.machine.away = True
            with pytest.raises(LrmsUnavailableError):
                await scene.submitted(1)
        scene.cluster.start_controller()
        async with scene.life():
            assert await scene.lrms.look_up("A/1/1") is None
            key = await scene.submitted(1)
            await undisturbed(scene, [key])
            assert scene.states() == ["CD"]


async def test_a_job_of_an_inactive_partition_is_let_go(tmp_path: Path) -> None:
    """Slurm holds it there, and says that it does not."""
    scene = Scene(FakeSlurm(tmp_path / "cluster", nodes=1, cpus=1), tmp_path)
    async with scene.up():
        key = await scene.running(1)
        waits = await scene.submitted(2)
        await until(lambda: "PD" in scene.states() and not scene.rows()[-1][1].startswith("Job"))
        scene.cluster.machine.partitions["main"] = Part("1-00:00:00", state="inactive")
        with pytest.raises(ValueError, match="not available now"):
            scene.cluster.ask("scontrol", "hold", "2")
        scene.cluster.ask("scontrol", "release", "2")
        assert await scene.lrms.cancel(waits, only_waiting=True)
        assert scene.states() == ["CA", "R"]
        await undisturbed(scene, [key])


async def test_a_job_that_an_operator_renames_is_followed(tmp_path: Path) -> None:
    """It gets its tag again, behind his word, so that the next process knows it too."""
    scene = Scene(FakeSlurm(tmp_path / "cluster", nodes=1, cpus=1), tmp_path)
    async with scene.up():
        key = await scene.running(1)
        waits = await scene.submitted(2)
        await until(lambda: scene.has(waits, Accepted))
        for number in scene.cluster.ask("squeue", "-h", "-a", "-o", "%i").split():
            scene.cluster.ask("scontrol", "update", f"JobId={number}", f"JobName=his-{number}")
        tags = [f"@hanse:S:{each}" for each in (key, waits)]
        await until(lambda: all(any(tag in row[3] for row in scene.rows()) for tag in tags))
        assert all(row[3].startswith("his-") for row in scene.rows())
        for each in (key, waits):
            end = await scene.ends(each)
            assert (end.outcome, end.exit_code, scene.runs(each)) == (Outcome.COMPLETED, 0, 1)


async def test_a_job_that_is_moved_to_another_partition_is_followed(tmp_path: Path) -> None:
    """It is not forgotten, and there is no second copy of it; its load is not the site's any more."""
    scene = scene_at(tmp_path, partitions=["main"])
    async with scene.up():
        held = await scene.submitted(1, held=True)
        key = await scene.running(2)
        await until(lambda: scene.has(held, Accepted))
        for number in ("1", "2"):
            scene.cluster.ask("scontrol", "update", f"JobId={number}", "Partition=urgent")
        await scene.looks(8)
        assert not scene.has(held, Unseen, Lost)
        assert [row[2] for row in scene.rows()] == ["urgent", "urgent"]
        await scene.lrms.release(held)
        await undisturbed(scene, [key, held])


@pytest.mark.parametrize("held", [False, True])
async def test_a_run_that_the_controller_has_forgotten_is_waited_for(
    tmp_path: Path, held: bool
) -> None:
    """It starts the job once more, which does not run again; or it holds it. The one run's own word counts."""
    scene = scene_at(tmp_path)
    async with scene.up():
        key = await scene.running(1)
        scene.cluster.machine.forget_run("1", held=held)
        await until(lambda: scene.has(key, Unseen))
        await scene.looks(5)
        assert not scene.has(key, Ended, Vanished)
        async with scene.life():
            # Another life of the adapter comes to the same.
            record = await scene.lrms.look_up(key)
            assert record is not None
            assert record.end is None
        end = await scene.ends(key)
        assert (end.outcome, end.exit_code) == (Outcome.COMPLETED, 0)
        assert scene.runs(key) == 1
        await until(lambda: scene.states() == (["CA"] if held else ["F"]))


async def test_a_job_that_may_run_anew_does(tmp_path: Path) -> None:
    """Where the site allows it there is no fence."""
    scene = scene_at(tmp_path, requeue=True)
    async with scene.up():
        key = await scene.running(1)
        scene.cluster.machine.forget_run("1")
        await until(lambda: scene.runs(key) == 2)
        assert (await scene.ends(key)).outcome is Outcome.COMPLETED
