"""Protection of guests, and where they are submitted, above a batch system that may refuse it."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from grms.lrms.base import LrmsJob, LrmsRefusedError
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.guest_preemption import RETRY_S
from grms.lrms.batch.guests_to_end import WaitingJob
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.queue_snapshot import JobRow
from grms.lrms.preemption import CANNOT, EndedBy, Preemption, preemption_of
from lrms_sim.workload.requests import Request
from tests.grms.lrms.batch.forgetful import Forgetful


class Switchable(Forgetful):
    """A batch system that ends guests, and protects some unless it refuses it."""

    def __init__(self) -> None:
        super().__init__()
        self.on = False
        self.refuses = False
        self.calls = 0

    @property
    def preemption(self) -> Preemption:
        """See `PreemptingSystem.preemption`."""
        return Preemption(EndedBy.BATCH_SYSTEM, protects=True)

    def placed(self, job: LrmsJob) -> LrmsJob:
        """See `PreemptingSystem.placed`."""
        return job

    def is_spared(self, row: JobRow) -> bool:
        """See `PreemptingSystem.is_spared`."""
        return row.partition == "guestp"

    async def keep_protection(self, *, on: bool) -> bool:
        """See `PreemptingSystem.keep_protection`."""
        if self.on == on:
            return False
        self.calls += 1
        if self.refuses:
            raise LrmsRefusedError("scontrol: Invalid user id")
        self.on = on
        return True

    async def waiting(self) -> list[WaitingJob]:
        """See `PreemptingSystem.waiting`; it ends guests itself."""
        raise AssertionError

    def free(self) -> Mapping[str, int]:
        """See `PreemptingSystem.free`; likewise."""
        raise AssertionError


async def test_protection_that_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said and tried again later; until it succeeds no guest is submitted as protected."""
    system = Switchable()
    lrms = BatchLrms(system, Spool(tmp_path), poll_s=1.0, settle_s=0.0, preempting=system)
    guests = lrms._guests  # what the loop calls
    assert guests is not None
    now = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    table = await system.look()
    guest = LrmsJob("H/1/1", 1, 60.0, partner="H", preemptible=True, protected=True)
    await guests.look(table)
    assert system.calls == 0
    assert guests.placed(guest).protected
    lrms.protect(on=True)
    system.refuses = True
    for _ in range(3):
        await guests.look(table)
    assert (system.calls, system.on) == (1, False)
    found = preemption_of(lrms)
    assert (found.ended_by, found.protects) == (EndedBy.BATCH_SYSTEM, False)
    assert found.why == "none can be protected: scontrol: Invalid user id"
    placed = guests.placed(guest)
    assert (placed.preemptible, placed.protected) == (True, False)
    system.refuses = False
    now[0] += RETRY_S
    await guests.look(table)
    assert (system.calls, system.on) == (2, True)
    assert preemption_of(lrms) == system.preemption
    system.on = False  # it has forgotten it
    await guests.look(table)
    assert system.on
    lrms.protect(on=False)
    await guests.look(table)
    assert not system.on


def test_who_may_be_ended(tmp_path: Path) -> None:
    """A guest that may be run again, and neither an own job nor one that must run once."""
    system = Switchable()
    guests = BatchLrms(
        system, Spool(tmp_path), poll_s=1.0, settle_s=0.0, preempting=system
    )._guests  # as above
    assert guests is not None
    once = Request(tasks=1, requeue=False)
    for job, may in (
        (LrmsJob("H/1/1", 1, 60.0, partner="H", preemptible=True), True),
        (LrmsJob("H/1/2", 1, 60.0, partner="H", preemptible=False, protected=True), False),
        (LrmsJob("H/1/3", 1, 60.0, partner="H", preemptible=True, request=once), False),
        (LrmsJob("S/1/4", 1, 60.0, user="ann", preemptible=True, protected=True), False),
    ):
        placed = guests.placed(job)
        assert (placed.preemptible, placed.protected) == (may, False)


def test_a_batch_system_without_it(tmp_path: Path) -> None:
    """It says that it ends none; so does anything that is no such port at all."""
    lrms = BatchLrms(Forgetful(), Spool(tmp_path), poll_s=1.0, settle_s=0.0)
    lrms.protect(on=True)
    assert preemption_of(lrms) == preemption_of(object()) == CANNOT
