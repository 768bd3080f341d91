"""A batch system in memory with one job, for tests of what stands above one."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from grms.lrms.base import LrmsEnd, LrmsJob, LrmsPhase
from grms.lrms.batch.launcher import KEY as KEY_FORM
from grms.lrms.batch.queue_snapshot import Ending, JobRow, Question, QueueSnapshot
from grms.util.outcomes import Outcome

KEY = "A/1/1"
HELD = JobRow(f"hanse:S:{KEY}", "7", 1.0, LrmsPhase.HELD, 2)
END = Ending(40.0, LrmsEnd(Outcome.FAILED, 50.0, 10.0, 3))


class Forgetful:
    """A batch system with one job, which is as the test says; it notes what it is told."""

    def __init__(self) -> None:
        self.rows: tuple[JobRow, ...] = ()
        self.end: Ending | None = None
        self.told: list[str] = []
        self.now = 100.0
        self.forgets = True
        self.known: Ending | bool | None = None

    def encode(self, key: str) -> str:
        """See `BatchSystem.encode`."""
        return f"hanse:S:{key}"

    def decode(self, name: str) -> str | None:
        """See `BatchSystem.decode`."""
        key = name.removeprefix("hanse:S:")
        return key if KEY_FORM.fullmatch(key) else None

    async def open(self) -> None:
        """See `BatchSystem.open`."""

    async def look(self) -> QueueSnapshot:
        """See `BatchSystem.look`."""
        self.now += 1.0
        return QueueSnapshot(self.now, self.now, 8, 8, 8, 0, self.rows)

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

    async def cancel(self, row: JobRow) -> bool:
        """See `BatchSystem.cancel`."""
        del row
        self.told.append("cancel")
        end = LrmsEnd(Outcome.CANCELLED, self.now, 0.0)
        self.rows = (replace(HELD, phase=LrmsPhase.ENDED, end=end),)
        return True

    async def cancel_all(self, rows: Sequence[JobRow]) -> None:
        """See `BatchSystem.cancel_all`."""
        for row in rows:
            await self.cancel(row)

    async def held_since_submission(self, row: JobRow, *, released: bool) -> bool:
        """See `BatchSystem.held_since_submission`."""
        del row, released
        return True

    async def ending(self, question: Question) -> Ending | None:
        """See `BatchSystem.ending`."""
        del question
        return self.end

    async def knows(self, question: Question) -> Ending | bool | None:
        """See `BatchSystem.knows`."""
        del question
        return self.known
