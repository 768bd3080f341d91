"""What becomes of orders, above all when a batch system forgets a run; the rest is in the conformance scenes."""

import asyncio
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.launch import Spool
from grms.lrms.port import (
    Ended,
    LoadSeen,
    LrmsEvent,
    LrmsJob,
    LrmsPhase,
    Program,
    Vanished,
)
from tests.grms.lrms.batch.forgetful import END, HELD, KEY, Forgetful
from tests.waiting import TIME_OUT_S


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

    def begins(self, *, ends: bool = False) -> None:
        """Starts the job as the batch system does, and lets the batch system forget that."""
        folder = self.spool.place(KEY)
        subprocess.run(["/bin/sh", str(folder / "launch")], cwd=folder, check=True, timeout=300)  # noqa: S603  # the folder's own
        begin, end = (folder / "begun").read_text().splitlines(keepends=True)
        (folder / "begun").write_text(begin + end if ends else begin)
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


async def test_the_end_of_a_run_that_was_forgotten_is_told_where_its_folder_has_it(
    tmp_path: Path,
) -> None:
    """Its script has ended by itself, so that nobody need say that this is unknown; records go first."""
    for number, ending in enumerate((None, END)):
        scene = Scene(tmp_path / str(number))
        await scene.lrms.open()
        await scene.released()
        scene.system.ending = ending
        scene.begins(ends=True)
        await scene.told("cancel")
        (event,) = [event for event in scene.events if isinstance(event, Ended)]
        assert event.end.exit_code == (0 if ending is None else END.end.exit_code)
        assert scene.slips == {"run_forgotten": 1}


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
