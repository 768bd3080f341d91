"""What the adapter does when a batch system forgets a run; what every one does is in the conformance scenes."""

import asyncio
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.launch import Spool
from grms.lrms.batch.table import Ending, JobRow, Question, Table
from grms.lrms.port import (
    Ended,
    LoadSeen,
    LrmsEnd,
    LrmsEvent,
    LrmsJob,
    LrmsOutcome,
    LrmsPhase,
    Program,
    Vanished,
)
from tests.waiting import TIME_OUT_S

KEY = "A/1/1"
HELD = JobRow(f"hanse:S:{KEY}", "7", 1.0, LrmsPhase.HELD, 2)
END = Ending(40.0, LrmsEnd(LrmsOutcome.FAILED, 50.0, 10.0, 3))


class Forgetful:
    """A batch system with one job, which is as the test says; it notes what it is told."""

    def __init__(self) -> None:
        self.rows: tuple[JobRow, ...] = ()
        self.ending: Ending | None = None
        self.told: list[str] = []
        self.now = 100.0

    def encode(self, key: str) -> str:
        """See `BatchSystem.encode`."""
        return f"hanse:S:{key}"

    def decode(self, name: str) -> str | None:
        """See `BatchSystem.decode`."""
        return name.removeprefix("hanse:S:")

    async def open(self) -> None:
        """See `BatchSystem.open`."""

    async def look(self) -> Table:
        """See `BatchSystem.look`."""
        self.now += 1.0
        return Table(self.now, self.now, 8, 8, 8, 0, self.rows)

    async def submit(self, name: str, job: LrmsJob, folder: Path) -> str:
        """See `BatchSystem.submit`."""
        del name, job, folder
        self.told.append("submit")
        self.rows = (HELD,)
        return "7"

    async def release(self, row: JobRow) -> None:
        """See `BatchSystem.release`."""
        del row
        self.told.append("release")
        self.rows = (replace(HELD, phase=LrmsPhase.WAITING),)

    async def hold(self, row: JobRow) -> None:
        """See `BatchSystem.hold`."""

    async def cancel(self, row: JobRow) -> None:
        """See `BatchSystem.cancel`."""
        del row
        self.told.append("cancel")
        end = LrmsEnd(LrmsOutcome.CANCELLED, self.now, 0.0)
        self.rows = (replace(HELD, phase=LrmsPhase.ENDED, end=end),)

    async def held_since_submission(self, row: JobRow, *, released: bool) -> bool:
        """See `BatchSystem.held_since_submission`."""
        del row, released
        return True

    async def endings(self, questions: Sequence[Question]) -> dict[str, Ending]:
        """See `BatchSystem.endings`."""
        return {} if self.ending is None else {question.key: self.ending for question in questions}


class Scene:
    """An adapter that follows a forgetful batch system."""

    def __init__(self, folder: Path, *, repeats: bool = False) -> None:
        self.system, self.spool = Forgetful(), Spool(folder)
        self.events: list[LrmsEvent] = []
        self.repeats = repeats
        self._changed = asyncio.Event()
        self.lrms = self.new_life()

    def new_life(self) -> BatchLrms:
        """Begins anew, as after a restart of the daemon."""
        self.lrms = BatchLrms(
            self.system,
            self.spool,
            poll_s=0.01,
            settle_s=0.0,
            repeats=self.repeats,
            clock=lambda: self.system.now,
        )
        self.lrms.listen(self._hear)
        return self.lrms

    def _hear(self, events: Sequence[LrmsEvent]) -> None:
        self.events += [event for event in events if not isinstance(event, LoadSeen)]
        self._changed.set()

    async def told(self, word: str, times: int = 1) -> None:
        """Follows until the batch system has been told something so often, and some looks longer."""
        follows = asyncio.create_task(self.lrms.run())
        async with asyncio.timeout(TIME_OUT_S):
            while self.system.told.count(word) < times:
                self._changed.clear()
                await self._changed.wait()
            last = self.system.now
            while self.system.now < last + 3.0:
                self._changed.clear()
                await self._changed.wait()
        follows.cancel()
        await asyncio.wait([follows])

    async def released(self) -> None:
        """Submits the job, and follows it until it was released."""
        await self.lrms.submit(LrmsJob(KEY, 2, 60.0, program=Program("#!/bin/sh\n")))
        await self.told("release")

    def begins(self) -> None:
        """Starts the job as the batch system does, and lets the batch system forget that."""
        folder = self.spool.place(KEY)
        subprocess.run(["/bin/sh", str(folder / "launch")], cwd=folder, check=True, timeout=300)  # noqa: S603  # the folder's own
        self.system.rows = (HELD,)

    @property
    def slips(self) -> dict[str, int]:
        """What was counted."""
        slips = self.lrms.slips
        names = ("release_undone", "run_forgotten", "end_undone", "run_again", "cancel_undone")
        return {name: getattr(slips, name) for name in names if getattr(slips, name)}


async def test_a_release_that_was_undone_before_a_run_is_made_again(tmp_path: Path) -> None:
    """It has certainly not run."""
    scene = Scene(tmp_path)
    await scene.released()
    scene.system.rows = (HELD,)
    await scene.told("release", 2)
    assert scene.system.told == ["submit", "release", "release"]
    assert scene.slips == {"release_undone": 1}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("cleared", [False, True])
async def test_a_run_that_was_forgotten_is_not_repeated(
    tmp_path: Path, restarted: bool, cleared: bool
) -> None:
    """Neither after a restart of the daemon, nor when what the job left is gone from its folder."""
    scene = Scene(tmp_path)
    await scene.released()
    scene.begins()
    if cleared:
        scene.spool.clear(KEY)
    if restarted:
        scene.new_life()
    await scene.told("cancel")
    assert scene.system.told == ["submit", "release", "cancel"]
    ends = [event for event in scene.events if isinstance(event, Ended | Vanished)]
    assert [type(event) for event in ends] == [Vanished]
    assert scene.slips == {"run_forgotten": 1}


async def test_the_end_of_a_run_that_was_forgotten_is_told_where_records_have_it(
    tmp_path: Path,
) -> None:
    """With its exit code; the copy that is held is cancelled."""
    scene = Scene(tmp_path)
    await scene.released()
    scene.system.ending = END
    scene.begins()
    await scene.told("cancel")
    assert [event for event in scene.events if isinstance(event, Ended)] == [Ended(KEY, END.end)]
    assert scene.system.told == ["submit", "release", "cancel"]


async def test_a_run_that_was_forgotten_is_repeated_where_the_site_allows_it(
    tmp_path: Path,
) -> None:
    """And that is counted."""
    scene = Scene(tmp_path, repeats=True)
    await scene.released()
    scene.begins()
    await scene.told("release", 2)
    assert scene.slips == {"release_undone": 1, "run_again": 1}


async def test_a_job_that_ended_and_is_held_again_is_not_released(tmp_path: Path) -> None:
    """It was to run, and has."""
    scene = Scene(tmp_path)
    await scene.released()
    scene.begins()
    scene.system.rows = (replace(HELD, phase=LrmsPhase.ENDED, start_time=40.0, end=END.end),)
    async with asyncio.timeout(TIME_OUT_S):
        await scene.lrms.snapshot()
    scene.system.rows = (HELD,)
    await scene.told("cancel")
    assert scene.system.told == ["submit", "release", "cancel"]
    assert scene.slips == {"end_undone": 1, "run_forgotten": 1}


async def test_a_second_run_that_no_look_has_shown_is_counted(tmp_path: Path) -> None:
    """The job's folder knows of it; one that the batch system says to be a restart is ordered."""
    scene = Scene(tmp_path)
    await scene.released()
    (scene.spool.place(KEY) / "begun").write_text("0\n1\n0\n")
    scene.system.rows = (replace(HELD, phase=LrmsPhase.ENDED, start_time=40.0, end=END.end),)
    async with asyncio.timeout(TIME_OUT_S):
        await scene.lrms.snapshot()
        assert scene.slips == {"run_again": 1}
        scene.new_life()
        assert scene.slips == {}
        await scene.lrms.look_up(KEY)
    assert scene.slips == {"run_again": 1}, "it ended while the daemon was away"
