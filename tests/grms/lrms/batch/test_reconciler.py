"""What becomes of orders, above all when a batch system forgets a run; the rest is in the conformance scenes."""

import asyncio
import errno
import itertools
import subprocess
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from grms.lrms.base import (
    Ended,
    LoadSeen,
    LrmsEnd,
    LrmsEvent,
    LrmsJob,
    LrmsPhase,
    LrmsRefusedError,
    LrmsUnavailableError,
    Program,
    Vanished,
)
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.queue_snapshot import JobRow, QueueSnapshot
from grms.lrms.batch.reconciler import TOGETHER
from grms.lrms.job_notes import JobNotes, Marks
from grms.util.outcomes import Outcome
from tests.grms.lrms.batch.forgetful import END, HELD, KEY, Forgetful
from tests.waiting import TIME_OUT_S, meanwhile


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
        async with meanwhile(self.lrms.run()):
            async with asyncio.timeout(TIME_OUT_S):
                while self.system.told.count(word) < times:
                    self._changed.clear()
                    await self._changed.wait()
                last = self.system.now
                while self.system.now < last + 3.0:
                    self._changed.clear()
                    await self._changed.wait()

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
    def anomalies(self) -> dict[str, int]:
        """What was counted."""
        anomalies = self.lrms.anomalies
        names = ("release_undone", "run_forgotten", "end_undone", "run_again", "cancel_undone")
        return {name: getattr(anomalies, name) for name in names if getattr(anomalies, name)}


async def test_a_release_that_was_undone_before_a_run_is_made_again(tmp_path: Path) -> None:
    """It has certainly not run."""
    scene = Scene(tmp_path)
    await scene.released()
    scene.system.rows = (HELD,)
    await scene.told("release", 2)
    assert scene.system.told == ["submit", "release", "release"]
    assert scene.anomalies == {"release_undone": 1}


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
        scene.spool.clear(KEY, ["stdout"])
    if restarted:
        scene.new_life()
        await scene.lrms.look_up(KEY)
    await scene.told("cancel")
    assert scene.system.told == ["submit", "release", "cancel"]
    ends = [event for event in scene.events if isinstance(event, Ended | Vanished)]
    assert [type(event) for event in ends] == [Vanished]
    assert scene.anomalies == {"run_forgotten": 1}


async def test_the_end_of_a_run_that_was_forgotten_is_told_where_records_have_it(
    tmp_path: Path,
) -> None:
    """With its exit code; the copy that is held is cancelled."""
    scene = Scene(tmp_path)
    await scene.released()
    scene.system.end = END
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
        scene.system.end = ending
        scene.begins(ends=True)
        await scene.told("cancel")
        (event,) = [event for event in scene.events if isinstance(event, Ended)]
        assert event.end.exit_code == (0 if ending is None else END.end.exit_code)
        assert scene.anomalies == {"run_forgotten": 1}


async def test_a_run_that_was_forgotten_is_repeated_where_the_site_allows_it(
    tmp_path: Path,
) -> None:
    """And that is counted."""
    scene = Scene(tmp_path, repeats=True)
    await scene.released()
    scene.begins()
    await scene.told("release", 2)
    assert scene.anomalies == {"release_undone": 1, "run_again": 1}


@pytest.mark.parametrize("repeats", [False, True])
async def test_a_job_that_ended_and_is_held_again_is_not_released(
    tmp_path: Path, repeats: bool
) -> None:
    """It was to run, and has, also where a batch system may run it anew that has not told of its end."""
    scene = Scene(tmp_path, repeats=repeats)
    await scene.released()
    scene.begins()
    scene.system.rows = (replace(HELD, phase=LrmsPhase.ENDED, start_time=40.0, end=END.end),)
    async with asyncio.timeout(TIME_OUT_S):
        await scene.lrms.snapshot()
    scene.system.rows = (HELD,)
    await scene.told("cancel")
    assert scene.system.told == ["submit", "release", "cancel"]
    assert scene.anomalies == {"end_undone": 1}


async def test_a_second_run_that_no_look_has_shown_is_counted(tmp_path: Path) -> None:
    """The job's folder knows of it; one that the batch system says to be a restart is ordered."""
    scene = Scene(tmp_path)
    await scene.released()
    (scene.spool.place(KEY) / "begun").write_text("0\n1\n0\n")
    scene.system.rows = (replace(HELD, phase=LrmsPhase.ENDED, start_time=40.0, end=END.end),)
    async with asyncio.timeout(TIME_OUT_S):
        await scene.lrms.snapshot()
        assert scene.anomalies == {"run_again": 1}
        scene.new_life()
        assert scene.anomalies == {}
        await scene.lrms.look_up(KEY)
    assert scene.anomalies == {"run_again": 1}, "it ended while the daemon was away"


class Many(Forgetful):
    """A batch system with very many held jobs.

    Attributes:
        ended: the numbers that each call was about.
        looks: how often its table was read.
        refuses: numbers that it does not end.
        named: numbers that were ended with their names.
        away: it answers no cancel.
    """

    def __init__(self, jobs: int) -> None:
        super().__init__()
        self.rows = tuple(
            replace(HELD, name=f"hanse:S:A/1/{number}", number=str(number))
            for number in range(1, jobs + 1)
        )
        self.ended: list[list[str]] = []
        self.named: list[str] = []
        self.refuses: set[str] = set()
        self.away = False
        self.looks = 0

    async def look(self) -> QueueSnapshot:
        """See `BatchSystem.look`."""
        self.looks += 1
        return await super().look()

    async def cancel_all(self, rows: Sequence[JobRow]) -> None:
        """See `BatchSystem.cancel_all`."""
        await asyncio.sleep(0)
        if self.away:
            raise LrmsUnavailableError("no controller")
        self.ended.append([row.number for row in rows])
        gone = set(self.ended[-1])
        end = LrmsEnd(Outcome.CANCELLED, self.now, 0.0)
        self.rows = tuple(
            replace(row, phase=LrmsPhase.ENDED, end=end)
            if row.number in gone - self.refuses
            else row
            for row in self.rows
        )
        if gone & self.refuses:
            raise LrmsRefusedError("some are not yours")

    async def cancel(self, row: JobRow) -> bool:
        """See `BatchSystem.cancel`."""
        self.named.append(row.number)
        if row.number in self.refuses:
            raise LrmsRefusedError(f"{row.number} is not yours")
        return True


def many(system: Many, folder: Path, *, settle_s: float = 0.0) -> BatchLrms:
    """Returns an adapter of it."""
    return BatchLrms(
        system, Spool(folder), poll_s=0.01, settle_s=settle_s, clock=lambda: system.now
    )


async def test_very_many_jobs_are_ended_in_few_calls(tmp_path: Path) -> None:
    """With a look for each call, however many ask; what is over, or nobody's, is told so."""
    system = Many(1000)
    lrms = many(system, tmp_path)
    asked = [lrms.cancel(f"A/1/{number}") for number in range(1, 1003)]
    assert await asyncio.gather(*asked) == [True] * 1000 + [False] * 2
    assert sorted(map(int, itertools.chain(*system.ended))) == list(range(1, 1001))
    assert max(map(len, system.ended)) <= TOGETHER
    assert len(system.ended) < 8
    assert system.looks < 10
    assert system.named == []
    assert not await lrms.cancel("A/1/1")


async def test_a_number_that_may_be_given_away_again_is_ended_by_its_name(tmp_path: Path) -> None:
    """That of a submission that a crash could still undo; the others go together."""
    system = Many(10)
    system.rows = tuple(
        replace(row, submit_time=101.0 if int(row.number) > 6 else 1.0) for row in system.rows
    )
    lrms = many(system, tmp_path, settle_s=50.0)
    assert all(await asyncio.gather(*(lrms.cancel(f"A/1/{number}") for number in range(1, 11))))
    assert [sorted(map(int, each)) for each in system.ended] == [list(range(1, 7))]
    assert system.named == ["7", "8", "9", "10"]


async def test_each_of_many_is_told_what_became_of_its_own(tmp_path: Path) -> None:
    """One that is refused is refused alone; where nobody answers nobody knows, and all ask again."""
    system = Many(5)
    system.refuses = {"3"}
    lrms = many(system, tmp_path)
    calls = (lrms.cancel(f"A/1/{number}") for number in range(1, 6))
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [answer for answer in answers if answer is not True] == [answers[2]]
    assert isinstance(answers[2], LrmsRefusedError)
    assert answers[2].reason == "3 is not yours"
    system = Many(5)
    system.away = True
    lrms = many(system, tmp_path)
    calls = (lrms.cancel(f"A/1/{number}") for number in range(1, 6))
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(answer) for answer in answers] == [LrmsUnavailableError] * 5
    system.away = False
    assert await lrms.cancel("A/1/1")


async def test_who_gives_up_ends_it_for_the_others_no_less(tmp_path: Path) -> None:
    """The one whose turn it was, and one that waited."""
    system = Many(5)
    gate = asyncio.Event()
    look = system.look

    async def late() -> QueueSnapshot:
        await gate.wait()
        return await look()

    system.look = late  # type: ignore[method-assign]  # of a test
    lrms = many(system, tmp_path)
    calls = [asyncio.create_task(lrms.cancel(f"A/1/{number}")) for number in range(1, 6)]
    await asyncio.sleep(0.01)
    for call in (calls[0], calls[3]):
        call.cancel()
    await asyncio.sleep(0)
    gate.set()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    gone = [isinstance(answer, asyncio.CancelledError) for answer in answers]
    assert gone == [True, False, False, True, False]
    assert [answer for answer in answers if answer is True] == [True] * 3


async def test_looks_go_on_while_very_many_jobs_are_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load does not grow old meanwhile, and each job is released once."""
    monkeypatch.setattr("grms.lrms.batch.poller.ORDERS_POLLS", 2)
    system = Many(60)
    told: list[str] = []
    gap = most = 0

    async def release(row: JobRow) -> None:
        nonlocal gap, most
        gap += 1
        most = max(most, gap)
        await asyncio.sleep(0.004)
        told.append(row.number)
        rows = [row if each.number == row.number else each for each in system.rows]
        system.rows = tuple(
            replace(each, phase=LrmsPhase.WAITING) if each.number == row.number else each
            for each in rows
        )

    def hear(events: Sequence[LrmsEvent]) -> None:
        nonlocal gap
        if any(isinstance(event, LoadSeen) for event in events):
            gap = 0

    system.release = release  # type: ignore[method-assign]  # of a test
    spool = Spool(tmp_path)
    for number in range(1, 61):
        spool.prepare(f"A/1/{number}", Program("#!/bin/sh\n"), run=True)
    lrms = many(system, tmp_path)
    await asyncio.gather(*(lrms.look_up(f"A/1/{number}") for number in range(1, 61)))
    lrms.listen(hear)
    async with meanwhile(lrms.run()):
        async with asyncio.timeout(TIME_OUT_S):
            while len(told) < 60:  # noqa: ASYNC110  # what is told has no event
                await asyncio.sleep(0.01)
    assert sorted(map(int, told)) == list(range(1, 61))
    assert most < 30


@pytest.mark.parametrize("repeats", [False, True])
async def test_one_that_was_released_since_the_look_is_not_released_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeats: bool
) -> None:
    """Its run is not taken for one that was forgotten, nor for one by order."""
    monkeypatch.setattr("grms.lrms.batch.poller.ORDERS_POLLS", 10**6)
    system, spool = Many(2), Spool(tmp_path)
    gate, waits, told = asyncio.Event(), asyncio.Event(), list[str]()

    async def release(row: JobRow) -> None:
        told.append(row.number)
        if row.number == "1" and not gate.is_set():
            waits.set()
            await gate.wait()
        else:
            (spool.place("A/1/2") / "begun").write_text("0 1700000000\n")
        rows = {each.number: each for each in system.rows}
        begun = LrmsPhase.WAITING if row.number == "1" else LrmsPhase.RUNNING
        rows[row.number] = replace(row, phase=begun, start_time=system.now)
        system.rows = tuple(rows.values())

    system.release = release  # type: ignore[method-assign]  # of a test
    for number in (1, 2):
        spool.prepare(f"A/1/{number}", Program("#!/bin/sh\n"), run=True)
    lrms = BatchLrms(
        system, spool, poll_s=0.01, settle_s=0.0, repeats=repeats, clock=lambda: system.now
    )
    await lrms.snapshot()
    for number in (1, 2):
        await lrms.submit(LrmsJob(f"A/1/{number}", 2, 60.0, program=Program("#!/bin/sh\n")))
    async with meanwhile(lrms.run()), asyncio.timeout(TIME_OUT_S):
        await waits.wait()
        await lrms.release(
            "A/1/2"
        )  # what the look has found due for it comes after the other's turn
        gate.set()
        looks = system.looks
        while system.looks < looks + 2:  # noqa: ASYNC110  # a look has no event
            await asyncio.sleep(0.01)
    assert told == ["1", "2"]
    assert not [what for what in asdict(lrms.anomalies).values() if what]


async def test_whose_hold_is_not_told_of_is_asked_about_again(tmp_path: Path) -> None:
    """The batch system has forgotten a release, and refuses once to say whose hold it shows: the job is not left held."""
    system, spool, told = Many(1), Spool(tmp_path), list[str]()
    answers: list[bool | LrmsRefusedError] = [LrmsRefusedError("try again"), True]

    async def release(row: JobRow) -> None:
        told.append(row.number)  # and forgets it

    async def held_since_submission(row: JobRow, *, released: bool) -> bool:
        assert (released, row.number) == (True, "1")
        answer = answers.pop(0) if answers else False
        if isinstance(answer, LrmsRefusedError):
            raise answer
        return answer

    system.release = release  # type: ignore[method-assign]  # of a test
    system.held_since_submission = held_since_submission  # type: ignore[method-assign]  # likewise
    spool.prepare("A/1/1", Program("#!/bin/sh\n"), run=True)
    lrms = BatchLrms(system, spool, poll_s=0.01, settle_s=0.0, clock=lambda: system.now)
    await lrms.snapshot()
    await lrms.submit(LrmsJob("A/1/1", 2, 60.0, program=Program("#!/bin/sh\n")))
    async with meanwhile(lrms.run()), asyncio.timeout(TIME_OUT_S):
        while len(told) < 2:  # a look has no event
            system.now += 1.0
            await asyncio.sleep(0.01)


class Together(Many):
    """One that releases many jobs in a call.

    Attributes:
        calls: the numbers that each call was about.
        unreleased: numbers that it refuses to release, after which it goes on.
    """

    def __init__(self, jobs: int) -> None:
        super().__init__(jobs)
        self.calls: list[list[str]] = []
        self.unreleased: set[str] = set()

    async def release_all(self, rows: Sequence[JobRow]) -> None:
        """See `ReleasesMany.release_all`."""
        await asyncio.sleep(0)
        if self.away:
            raise LrmsUnavailableError("no controller")
        self.calls.append([row.number for row in rows])
        done = set(self.calls[-1]) - self.unreleased
        self.rows = tuple(
            replace(row, phase=LrmsPhase.WAITING) if row.number in done else row
            for row in self.rows
        )
        if done != set(self.calls[-1]):
            raise LrmsRefusedError("some are not yours")

    def held(self) -> list[int]:
        """Returns the numbers of those that are held."""
        return [int(row.number) for row in self.rows if row.phase is LrmsPhase.HELD]


async def released_together(
    system: Together, folder: Path, jobs: int, done: Callable[[], bool]
) -> tuple[BatchLrms, Spool]:
    """Follows jobs that were prepared by an earlier life, and are to run, until all is as it should be."""
    spool = Spool(folder)
    for number in range(1, jobs + 1):
        if not (folder / f"A+1+{number}").exists():
            spool.prepare(f"A/1/{number}", Program("#!/bin/sh\n"), run=True)
    lrms = many(system, folder)
    await lrms.snapshot()
    for number in range(1, jobs + 1):
        await lrms.submit(LrmsJob(f"A/1/{number}", 2, 60.0, program=Program("#!/bin/sh\n")))
    async with meanwhile(lrms.run()):
        async with asyncio.timeout(TIME_OUT_S):
            while not done():  # noqa: ASYNC110  # what is told has no event
                await asyncio.sleep(0.01)
    return lrms, spool


async def test_jobs_that_are_due_at_once_are_released_in_few_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each once, after it was noted that it is; a crash between leaves jobs of which it is known."""
    monkeypatch.setattr("grms.lrms.batch.reconciler.RELEASED_TOGETHER", 5)
    system = Together(12)
    jobs = len(system.rows)
    lrms, spool = await released_together(system, tmp_path, jobs, lambda: not system.held())
    assert sorted(map(int, itertools.chain(*system.calls))) == list(range(1, jobs + 1))
    assert [len(each) for each in system.calls] == [5, 5, 2]
    for number in range(1, jobs + 1):
        marks = spool.marks(f"A/1/{number}")
        assert marks is not None
        assert (marks.released, marks.number) == (True, str(number))
    assert not [what for what in asdict(lrms.anomalies).values() if what]


async def test_jobs_are_released_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    """Slurm shows those that are held last to first; released in that order, they would start in it."""
    system = Together(12)
    *later, first = reversed(system.rows)
    system.rows = (*(replace(row, submit_time=9.0) for row in later), replace(first, submit_time=8))
    system.rows = (*system.rows[3:], *system.rows[:3])
    await released_together(system, tmp_path, 12, lambda: not system.held())
    assert list(itertools.chain(*system.calls)) == [str(number) for number in range(1, 13)]


async def test_one_that_is_refused_keeps_no_other_from_its_release(tmp_path: Path) -> None:
    """Those that were released are not asked for again, whatever has become of them since; the one is."""
    system = Together(6)
    system.unreleased = {"3"}

    def asked_again() -> bool:
        return system.told.count("release") + sum(map(len, system.calls[1:])) > 2

    system.release = _refused_release(system)  # type: ignore[method-assign, assignment]  # of a test
    lrms, _ = await released_together(system, tmp_path, 6, asked_again)
    assert sorted(system.calls[0]) == ["1", "2", "3", "4", "5", "6"]
    assert set(itertools.chain(*system.calls[1:])) <= {"3"}
    assert system.held() == [3]
    assert not [what for what in asdict(lrms.anomalies).values() if what]


async def test_a_batch_system_that_takes_no_lists_is_asked_for_one_after_the_other(
    tmp_path: Path,
) -> None:
    """A call about several that is refused as a whole is not repeated for ever."""
    system = Together(4)

    async def release_all(rows: Sequence[JobRow]) -> None:
        system.calls.append([row.number for row in rows])
        raise LrmsRefusedError("Invalid job id specified")

    async def release(row: JobRow) -> None:
        system.told.append(row.number)
        system.rows = tuple(
            replace(each, phase=LrmsPhase.WAITING) if each.number == row.number else each
            for each in system.rows
        )

    system.release_all = release_all  # type: ignore[method-assign]  # of a test
    system.release = release  # type: ignore[method-assign]  # of a test
    await released_together(system, tmp_path, 4, lambda: not system.held())
    assert [sorted(each) for each in system.calls] == [["1", "2", "3", "4"]]
    assert sorted(system.told) == ["1", "2", "3", "4"]


def _refused_release(system: Together) -> Callable[[JobRow], Coroutine[Any, Any, None]]:
    async def release(row: JobRow) -> None:
        system.told.append("release")
        assert row.number == "3"
        raise LrmsRefusedError("3 is not yours")

    return release


async def test_one_that_has_begun_is_not_released_with_the_others(tmp_path: Path) -> None:
    """It is held as if it had never run: its own folder knows better, and its copy is cancelled."""
    system = Together(4)
    spool = Spool(tmp_path)
    spool.prepare("A/1/2", Program("#!/bin/sh\n"), run=True)
    folder = spool.place("A/1/2")
    (folder / "begun").write_text("0 1700000000\nended 0 1700000001\n")
    await released_together(
        system, tmp_path, 4, lambda: system.held() == [2] and system.named == ["2"]
    )
    assert sorted(itertools.chain(*system.calls)) == ["1", "3", "4"]


async def test_releases_without_an_answer_are_made_again(tmp_path: Path) -> None:
    """All of them, as nobody knows of any; what is noted of them stays."""
    system = Together(3)
    system.away = True
    release_all, attempts = system.release_all, 0

    async def counted(rows: Sequence[JobRow]) -> None:
        nonlocal attempts
        attempts += 1
        system.away = attempts < 2
        await release_all(rows)

    system.release_all = counted  # type: ignore[method-assign]  # of a test
    await released_together(system, tmp_path, 3, lambda: not system.held())
    assert attempts == 2
    assert [sorted(each) for each in system.calls] == [["1", "2", "3"]]


async def test_a_note_that_the_disk_does_not_take_delays_its_own_job_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not released before it is noted."""
    system = Together(3)
    keep, failed = JobNotes.keep, list[str]()

    def fails_once(self: JobNotes, name: str, marks: Marks) -> None:
        if name == "A+1+2" and marks.released and len(failed) < 2:
            failed.append(name)
            raise OSError(errno.ENOSPC, "full")
        keep(self, name, marks)

    monkeypatch.setattr(JobNotes, "keep", fails_once)

    async def release(row: JobRow) -> None:
        await system.release_all([row])  # one alone

    system.release = release  # type: ignore[method-assign]  # of a test
    await released_together(system, tmp_path, 3, lambda: not system.held())
    assert len(failed) == 2
    assert [sorted(each) for each in system.calls] == [["1", "3"], ["2"]]


async def test_one_that_is_let_go_meanwhile_is_not_released_with_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is about to go to another site, when the jobs before it take their time."""
    monkeypatch.setattr("grms.lrms.batch.reconciler.RELEASED_TOGETHER", 2)
    system = Together(5)
    spool, lrms = Spool(tmp_path), many(system, tmp_path)
    for number in range(1, 6):
        spool.prepare(f"A/1/{number}", Program("#!/bin/sh\n"), run=True)
    release_all, leaving = system.release_all, list[tuple[str, asyncio.Task[bool]]]()

    async def slowly(rows: Sequence[JobRow]) -> None:
        if not leaving:
            left = next(each.number for each in system.rows if each not in rows)
            leaves = lrms.cancel(f"A/1/{left}", only_waiting=True)
            leaving.append((left, asyncio.create_task(leaves)))
            await asyncio.sleep(0)
        await release_all(rows)

    system.release_all = slowly  # type: ignore[method-assign]  # of a test
    await lrms.snapshot()
    for number in range(1, 6):
        await lrms.submit(LrmsJob(f"A/1/{number}", 2, 60.0, program=Program("#!/bin/sh\n")))
    async with meanwhile(lrms.run()):
        async with asyncio.timeout(TIME_OUT_S):
            while not leaving or len(system.held()) > 1:  # noqa: ASYNC110  # what is told has no event
                await asyncio.sleep(0.01)
            [(left, task)] = leaving
            assert await task
    assert left not in itertools.chain(*system.calls)
    assert set(system.named) == {left}
    marks = spool.marks(f"A/1/{left}")
    assert marks is None or not marks.released
