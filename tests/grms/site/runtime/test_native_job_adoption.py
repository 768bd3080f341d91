"""Originals and the jobs made of them: one of the two runs, whoever is killed and whatever is forgotten."""

import asyncio
import errno
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from grms.daemon.loop import NotWrittenError
from grms.lrms.base import LrmsUnavailableError
from grms.lrms.native_jobs import (
    VARIABLE,
    Fate,
    NativeJob,
    NativeJobNotes,
    NativeJobRequest,
    NativeJobRow,
    Watched,
)
from grms.site.model.commands import Refusal, Refuse, ReplyJob
from grms.site.model.events import Cancel, Event, Submit
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.runtime.native_job_adoption import NativeJobAdoption
from grms.v1 import request_pb2

SETTLE_S = 6.0


@dataclass
class Job:
    """A job that the site has made of an original."""

    job_id: str
    token: str
    state: JobState = JobState.OFFERING
    partner: str = ""
    outcome: Outcome | None = None
    reason: str = ""
    runs: int = 0


class KilledError(Exception):
    """The watcher's process has ended."""


class Notes(NativeJobNotes):
    """Notes on a disk that may be full."""

    full: Callable[[], bool] = staticmethod(lambda: False)

    def _write(self, native_job: NativeJob) -> None:
        if self.full():
            raise OSError(errno.ENOSPC, "no room")
        super()._write(native_job)


class World:
    """A batch system and a site, in which anything may happen between two calls.

    Args:
        folder: for the notes.
        seed: of what happens.
        calm: nothing but what a test does.
    """

    def __init__(self, folder: Path, seed: int = 0, *, calm: bool = False) -> None:
        self.notes = Notes(folder)
        self.notes.full = lambda: not self.calm and self.rng.random() < 0.2
        self.rng = random.Random(seed)  # noqa: S311  # of a test
        self.calm = calm
        self.now = 1000.0
        self.table: dict[str, NativeJobRow] = {}
        self.changed: dict[str, tuple[float, NativeJobRow]] = {}
        self.started: list[str] = []
        self.told: list[str] = []
        self.jobs: dict[str, Job] = {}
        self.refuses: Refusal | None = None
        self.reason = ""
        self.blind = False
        self.watcher = self.new_watcher()

    def new_watcher(self) -> NativeJobAdoption:
        """Returns the watcher of a new process."""
        watched = Watched(self, self.notes, 1.0, SETTLE_S)
        return NativeJobAdoption(self, watched, structlog.get_logger(), lambda: self.now)  # type: ignore[arg-type]  # as far as it asks

    def add(self, number: str, *, held: bool = False) -> None:
        """A user hands in a job."""
        self.table[number] = NativeJobRow(
            number, int(self.now), "ann", waiting=True, cancelled=False, held=held,
            held_here=False, offered=True,
        )  # fmt: skip

    def set(self, number: str, **values: Any) -> None:
        """The batch system notes something, which a crash may undo for some seconds."""
        row = self.table[number]
        self.changed[number] = (self.now, row)
        self.table[number] = replace(row, **values)

    def happen(self) -> None:
        """Time passes; something happens, or the watcher is killed."""
        if self.calm:
            return
        self.now += self.rng.choice((0.0, 0.1, 1.0, 3.0))
        self.changed = {k: v for k, v in self.changed.items() if self.now - v[0] < SETTLE_S - 1}
        draw = self.rng.random()
        if draw < 0.04:
            raise KilledError
        if draw < 0.08:
            raise LrmsUnavailableError("away")
        if draw < 0.14:  # what was not yet saved is undone by a crash; what runs goes on
            for number, (_, row) in self.changed.items():
                if row.waiting and number not in self.started:
                    self.table[number] = row
            self.changed = {}
        self.start()
        for job in self.jobs.values():
            self.move(job)

    def start(self) -> None:
        """Starts what waits and is not held."""
        for number, row in list(self.table.items()):
            if row.waiting and not row.held and self.rng.random() < 0.2:
                self.table[number] = replace(row, waiting=False)
                self.started.append(number)

    def move(self, job: Job) -> None:
        """The site decides, offers, takes back, runs and ends a job."""
        draw = self.rng.random()
        if job.state is JobState.OFFERING and draw < 0.3:
            if draw < 0.15:
                job.state, job.partner = JobState.DELEGATED, "far"
            else:
                self.keep(job)
        elif job.state is JobState.DELEGATED and draw < 0.2:
            if draw < 0.06:
                job.state, job.partner = JobState.OFFERING, ""
            else:
                job.state, job.outcome = JobState.ENDED, Outcome.COMPLETED
                job.runs += 1
        elif job.state is JobState.QUEUED and draw < 0.5:
            job.state, job.outcome = JobState.ENDED, Outcome.COMPLETED
            job.runs += 1

    def keep(self, job: Job) -> None:
        """What the adapter of the batch system does with a job that stays at home."""
        try:
            chosen = self.notes.choose(job.token, Fate.HOME)
        except OSError:
            return  # asked again
        if chosen is Fate.HOME:
            job.state, job.outcome, job.reason = JobState.ENDED, Outcome.CANCELLED, "it stays"
        else:
            job.state = JobState.QUEUED

    # --- the batch system, as the watcher has it -------------------------------------------------

    async def rows(self) -> list[NativeJobRow]:
        """The table."""
        self.happen()
        return [] if self.blind else list(self.table.values())

    async def wanted(self, row: NativeJobRow) -> NativeJobRequest:
        """What it asks for."""
        self.happen()
        return NativeJobRequest(f"job {row.number}", 1, 60.0, "#!/bin/sh\n", self.reason)

    async def hold(self, number: str) -> None:
        """Of a job that has started it means nothing."""
        self.happen()
        if self.table[number].waiting:
            self.set(number, held=True, held_here=True)
        self.happen()

    async def release(self, number: str) -> None:
        """Lifts it."""
        self.happen()
        self.set(number, held=False, held_here=False)
        self.happen()

    async def cancel(self, number: str) -> None:
        """Of a job that waits."""
        self.happen()
        if self.table[number].waiting:
            self.set(number, waiting=False, cancelled=True, held=False, held_here=False)
        self.happen()

    async def gone(self, number: str, submitted: int) -> bool:
        """It is not there, or is another one, by its own word."""
        self.happen()
        row = self.table.get(number)
        return row is None or row.submitted != submitted

    async def tell(self, number: str, text: str) -> None:
        """Takes note."""
        self.told.append(f"{number} {text}")

    # --- the engine, as the watcher has it -------------------------------------------------------

    def stamp(self) -> tuple[int, None]:
        """As the engine's."""
        return 0, None

    async def ask(self, event: Event, read: Callable[[Any], Any]) -> Any:
        """Takes or ends a job."""
        self.happen()
        if isinstance(event, Cancel):
            job = self.job(event.job_id)
            if job.state is not JobState.DELEGATED:
                job.state, job.outcome = JobState.ENDED, Outcome.CANCELLED
            return read(ReplyJob(0, job.job_id))
        assert isinstance(event, Submit)
        if self.refuses is not None:
            return read(Refuse(0, self.refuses, "no"))
        assert event.user == "ann"
        program = request_pb2.JobRequest.FromString(event.payload).program
        job = Job(f"a-{len(self.jobs)}", program.environment[VARIABLE])
        job = self.jobs.setdefault(event.idempotency_key, job)
        self.happen()
        return read(ReplyJob(0, job.job_id))

    async def look(self, read: Callable[[Any], Any]) -> Any:
        """Shows the state, which is this."""
        return read(self)

    def job(self, job_id: str) -> Any:
        """As the state has it."""
        return next((job for job in self.jobs.values() if job.job_id == job_id), None)

    async def looks(self, count: int) -> None:
        """Looks so often, by a new process where one was killed."""
        for _ in range(count):
            self.now += 2.0
            try:
                await self.watcher.look()
            except KilledError:
                self.watcher = self.new_watcher()
            except LrmsUnavailableError:
                pass

    def runs_of(self, number: str) -> tuple[int, int]:
        """Returns how often an original has started, and how often its jobs have run."""
        tokens = [job for job in self.jobs.values() if number == self.number_of(job)]
        return self.started.count(number), sum(job.runs for job in tokens)

    def number_of(self, job: Job) -> str:
        """Returns of which original a job was made."""
        key = next(key for key, other in self.jobs.items() if other is job)
        return key.split()[1].partition("@")[0]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)

    async def at_once(work: Any, *arguments: Any, **named: Any) -> Any:
        return work(*arguments, **named)

    monkeypatch.setattr(asyncio, "to_thread", at_once)


@pytest.mark.parametrize("seed", range(12))
async def test_one_of_the_two_runs(tmp_path: Path, seed: int) -> None:
    """Whatever is killed, undone, unavailable and not to be noted at whichever step: no job runs twice, and none is lost."""
    world = World(tmp_path, seed)
    for number in range(4):
        world.add(str(number))
        await world.looks(3)
    await world.looks(60)
    world.calm = True
    for _ in range(40):
        world.now += SETTLE_S
        for job in world.jobs.values():
            if job.state is not JobState.ENDED:
                world.move(job)
        world.start()
        await world.looks(1)
    for name in map(str, range(4)):
        assert sum(world.runs_of(name)) == 1, (name, world.runs_of(name), world.jobs)


async def calm(folder: Path, **of_row: Any) -> World:
    world = World(folder, calm=True)
    world.add("7", **of_row)
    await world.looks(7)
    return world


async def test_a_job_that_stays_is_released(tmp_path: Path) -> None:
    """And is touched by nobody afterwards, also where somebody holds it again."""
    world = await calm(tmp_path)
    (job,) = world.jobs.values()
    assert world.table["7"].held_here
    world.keep(job)
    await world.looks(12)
    assert not world.table["7"].held
    world.set("7", held=True, held_here=True)
    await world.looks(5)
    assert world.table["7"].held_here


async def test_a_job_that_goes_is_cancelled(tmp_path: Path) -> None:
    """With a word for its user where it is; as often as the cancel is undone."""
    world = await calm(tmp_path)
    (job,) = world.jobs.values()
    job.state, job.partner = JobState.DELEGATED, "far"
    for _ in range(2):
        await world.looks(5)
        assert world.table["7"].cancelled
        world.table["7"] = replace(world.table["7"], waiting=True, cancelled=False, held_here=True)
    assert world.told == ["7 hanse: it is a-0 now, at far"]
    # What comes back from the partner runs here as a job of the site's.
    world.keep(job)
    assert job.state is JobState.QUEUED


async def test_nothing_is_submitted_while_the_hold_is_young(tmp_path: Path) -> None:
    """A crash could undo it: the original would start, and the site's job be with a partner."""
    world = World(tmp_path, calm=True)
    world.add("7")
    for _ in range(4):
        await world.looks(1)
        assert not world.jobs
    await world.looks(2)
    assert len(world.jobs) == 1


async def test_a_table_that_does_not_show_a_job_decides_nothing(tmp_path: Path) -> None:
    """It is held all the time, and goes its way when it is shown again; one that is really gone is over."""
    for gone in (False, True):
        world = World(tmp_path / str(gone), calm=True)
        world.add("1")
        await world.watcher.look()
        await world.watcher.look()
        (native_job,) = world.notes.all()
        world.blind = True
        if gone:
            del world.table["1"]
        for _ in range(5):
            world.now += SETTLE_S
            await world.watcher.look()
        left = world.notes.of(native_job.token)
        if gone:
            assert left is None
            continue
        assert left is not None
        assert left.fate is None
        world.blind = False
        await world.watcher.look()
        assert len(world.jobs) == 1
        assert world.table["1"].held_here


async def test_what_cannot_be_carried_stays_and_is_told(tmp_path: Path) -> None:
    """Nothing is held for it; what the plugin has held is released, and nobody asks again."""
    world = World(tmp_path, calm=True)
    world.reason = "it has arguments"
    world.add("7")
    world.add("8", held=True)
    await world.looks(3)
    assert world.told == [f"{number} hanse: it stays here: it has arguments" for number in "78"]
    assert not world.jobs
    assert not world.table["8"].held
    assert world.notes.all() == []


@pytest.mark.parametrize("cancelled", [False, True])
async def test_who_takes_a_job_back_has_it(tmp_path: Path, cancelled: bool) -> None:
    """Released by an operator, or cancelled by its user while it is held: the site's job ends."""
    world = await calm(tmp_path)
    values = {"waiting": False, "cancelled": True} if cancelled else {}
    world.set("7", held=False, held_here=False, **values)
    await world.looks(1)
    (job,) = world.jobs.values()
    assert job.outcome is Outcome.CANCELLED
    (note,) = world.notes.all()
    assert note.fate is Fate.HOME
    del world.table["7"]
    await world.looks(5)
    assert world.notes.all() == []


async def test_a_site_that_refuses_leaves_the_job_at_home(tmp_path: Path) -> None:
    """One that cannot say is asked again, and the job is held meanwhile."""
    world = World(tmp_path, calm=True)
    world.refuses = Refusal.UNAVAILABLE
    world.add("7")
    await world.looks(5)
    assert world.table["7"].held_here
    world.refuses = Refusal.EXHAUSTED
    await world.looks(10)
    assert not world.table["7"].held


async def test_its_run_outlives_a_batch_system_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks again after a while."""
    world = World(tmp_path, calm=True)
    looks = 0

    async def rows() -> list[NativeJobRow]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise LrmsUnavailableError("away")
        raise KilledError

    async def no_pause(_: float) -> None:
        return

    monkeypatch.setattr(world, "rows", rows)
    monkeypatch.setattr(
        "grms.site.runtime.native_job_adoption.asyncio",
        SimpleNamespace(sleep=no_pause, to_thread=asyncio.to_thread),
    )
    with pytest.raises(KilledError):
        await world.watcher.run()


async def test_a_job_that_cannot_be_noted_holds_up_no_other(tmp_path: Path) -> None:
    """It is left alone, and is taken when there is room."""
    world = World(tmp_path, calm=True)
    world.add("7")
    world.add("8")
    full = [True, False, True, True, True]
    world.notes.full = lambda: full.pop(0) if full else False
    with capture_logs() as log:
        await world.looks(1)
        assert (world.table["7"].held_here, world.table["8"].held_here) == (False, True)
        await world.looks(6)
    assert world.table["7"].held_here
    assert full == []
    told = [each["lrms_job"] for each in log if each["event"] == "native_job_not_moved"]
    assert told == ["7", "8"]


async def test_a_full_disk_does_not_let_a_job_run_twice(tmp_path: Path) -> None:
    """The site's job is cancelled without a look at it, which the journal could refuse."""
    world = World(tmp_path, calm=True)
    world.add("7")
    await world.looks(7)
    (job,) = world.jobs.values()
    ask = world.ask

    async def full(_: object) -> None:
        raise NotWrittenError("the disk is full")

    async def noted(event: Any, read: Any) -> None:
        await ask(event, read)  # it is handed over, and done when the journal can be written
        raise NotWrittenError("the disk is full")

    world.set("7", held=False, held_here=False, waiting=False)
    world.started.append("7")
    vars(world).update(look=full, ask=noted)
    await world.looks(1)
    assert job.state is JobState.ENDED
    assert job.outcome is Outcome.CANCELLED


async def test_a_death_before_the_cancel_is_made_up_for(tmp_path: Path) -> None:
    """That the original runs is noted first; the next look cancels the site's job."""
    world = World(tmp_path, calm=True)
    world.add("7")
    await world.looks(7)
    (job,) = world.jobs.values()

    async def killed(*_: object) -> None:
        raise KilledError

    world.set("7", held=False, held_here=False, waiting=False)
    world.started.append("7")
    vars(world)["ask"] = killed
    await world.looks(1)
    assert job.outcome is None
    del vars(world)["ask"]
    await world.looks(2)
    assert job.outcome is Outcome.CANCELLED
