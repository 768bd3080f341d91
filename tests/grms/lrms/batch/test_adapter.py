"""What the adapter does when a job ends between a look and a command; the rest is in the conformance scenes."""

from dataclasses import replace
from pathlib import Path

import pytest

from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.launch import Spool
from grms.lrms.batch.table import JobRow
from grms.lrms.port import LrmsJob, LrmsPhase, LrmsRefusedError, Program
from tests.grms.lrms.batch.forgetful import END, HELD, KEY, Forgetful


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
