"""A batch system of one machine: jobs are processes, first come first served.

Its queue is a folder with one file a job, and it moves on whenever it is looked at. What a site needs beyond that is
done by `BatchLrms`: it looks at the queue at intervals, holds what it submits until it is sure, and reads in a job's
folder how its script has ended.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from grms.lrms.adapter import Adapter, LrmsSite
from grms.lrms.base import LrmsJob, LrmsPhase
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.queue_snapshot import Ending, JobRow, Question, QueueSnapshot
from grms.lrms.batch.settings import AbsolutePath, BatchSettings


class ShellQueueTable(BatchSettings):
    """The table `[lrms]`.

    Attributes:
        kind: `shell-queue`.
        queue: folder of the queue.
    """

    kind: Literal["shell-queue"]
    queue: AbsolutePath


@dataclass(slots=True)
class Entry:
    """One job's file; `start_time` and `process` are 0 until it starts."""

    name: str
    number: int
    folder: str
    processors: int
    limit_s: float
    submit_time: float
    held: bool = True
    start_time: float = 0.0
    process: int = 0

    @property
    def phase(self) -> LrmsPhase:
        """Where the job stands."""
        if self.process:
            return LrmsPhase.RUNNING
        return LrmsPhase.HELD if self.held else LrmsPhase.WAITING


class ShellQueue:
    """The queue as a `BatchSystem`.

    Args:
        site: name of the site, which is part of the names of its jobs.
        folder: of the queue.
        processors: size of the machine.
    """

    forgets = False  # a file that was written stays

    def __init__(self, site: str, folder: Path, processors: int) -> None:
        self._prefix = f"{site}+"
        self._folder = folder
        self._processors = processors
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def encode(self, key: str) -> str:
        """Returns the name of a job, which is the name of its file."""
        return self._prefix + key.replace("/", "+")

    def decode(self, name: str) -> str | None:
        """Returns the key of a name of this site."""
        mine = name.startswith(self._prefix)
        return name.removeprefix(self._prefix).replace("+", "/") if mine else None

    async def open(self) -> None:
        """Makes the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)

    async def look(self) -> QueueSnapshot:
        """Takes out what has ended, starts what fits, and returns the queue."""
        began_at = time.time()
        entries = self._entries()
        for entry in [entry for entry in entries if entry.process and not self._runs(entry)]:
            self._file(entry.name).unlink()
            entries.remove(entry)
        free = self._processors - sum(entry.processors for entry in entries if entry.process)
        for entry in entries:
            if entry.phase is LrmsPhase.WAITING:
                if entry.processors > free:
                    break
                free -= entry.processors
                self._start(entry)
        rows = [self._row(entry) for entry in entries if self.decode(entry.name)]
        size = self._processors
        return QueueSnapshot(began_at, time.time(), size, size, free, 0, tuple(rows))

    async def submit(self, name: str, job: LrmsJob, folder: Path) -> str:
        """Writes the file of a job, held."""
        number = time.time_ns()
        self._write(
            Entry(name, number, str(folder), job.processors, job.requested_time, time.time())
        )
        return str(number)

    async def release(self, row: JobRow) -> None:
        """Lets a job start."""
        self._set_held(row.name, held=False)

    async def hold(self, row: JobRow) -> None:
        """Keeps a waiting job from starting."""
        self._set_held(row.name, held=True)

    async def cancel(self, row: JobRow) -> bool:
        """Takes out a job that waits; ends one that runs with all its processes, which a look will find.

        Returns whether it was there.
        """
        entries = [entry for entry in self._entries() if entry.name == row.name]
        for entry in entries:
            if not entry.process:
                self._file(entry.name).unlink()
            elif self._runs(entry):
                os.killpg(entry.process, signal.SIGTERM)
        return bool(entries)

    async def cancel_all(self, rows: Sequence[JobRow]) -> None:
        """Ends jobs."""
        for row in rows:
            await self.cancel(row)

    async def held_since_submission(self, row: JobRow, *, released: bool) -> bool:
        """Returns whether nobody has lifted the hold since."""
        del row
        return not released

    async def ending(self, question: Question) -> Ending | None:
        """Returns None: there are no records, the job's folder says how its script has ended."""
        del question
        return None  # of the protocol's type

    async def knows(self, question: Question) -> bool:
        """Returns whether a job has a file."""
        return self._file(question.name).exists()

    def _entries(self) -> list[Entry]:
        found = [Entry(**json.loads(path.read_text())) for path in self._folder.glob("*.json")]
        return sorted(found, key=lambda entry: entry.number)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _write(self, entry: Entry) -> None:
        whole = self._file(entry.name).with_suffix(".new")
        whole.write_text(json.dumps(asdict(entry)))
        whole.replace(self._file(entry.name))

    def _set_held(self, name: str, *, held: bool) -> None:
        for entry in self._entries():
            if entry.name == name and not entry.process:
                entry.held = held
                self._write(entry)

    def _start(self, entry: Entry) -> None:
        words = ["timeout", f"{entry.limit_s:.0f}", f"{entry.folder}/launch"]
        child = subprocess.Popen(words, cwd=entry.folder, start_new_session=True)
        self._children[child.pid] = child
        entry.process, entry.start_time = child.pid, time.time()
        self._write(entry)

    def _runs(self, entry: Entry) -> bool:
        if (child := self._children.get(entry.process)) is not None:
            return child.poll() is None
        try:  # started before the daemon was
            os.kill(entry.process, 0)
        except ProcessLookupError:
            return False
        return True

    def _row(self, entry: Entry) -> JobRow:
        return JobRow(
            entry.name,
            str(entry.number),
            entry.submit_time,
            entry.phase,
            entry.processors,
            start_time=entry.start_time or None,
            can_start=entry.phase is LrmsPhase.WAITING,
        )


def _make(settings: ShellQueueTable, site: LrmsSite) -> BatchLrms:
    return BatchLrms(
        ShellQueue(site.name, Path(settings.queue), site.processors),
        settings.spool_of(site),
        poll_s=settings.poll_s,
        settle_s=0.0,
        grace_s=settings.grace_s,
        repeats=settings.requeue,
    )


ADAPTER = Adapter(ShellQueueTable, _make)
