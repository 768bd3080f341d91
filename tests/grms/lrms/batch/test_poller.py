"""Looks: shared by all who wait for one, and told once."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from grms.lrms.base import (
    Away,
    Back,
    Ended,
    LoadSeen,
    LrmsEnd,
    LrmsEvent,
    LrmsPhase,
    LrmsRefusedError,
    LrmsUnavailableError,
    Program,
    Unseen,
)
from grms.lrms.batch.job_tracker import JobTracker, Order
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.poller import Poller
from grms.lrms.batch.queue_snapshot import Ending, Question, QueueSnapshot
from grms.lrms.batch.tracked_job import Want
from grms.util.outcomes import Outcome
from tests.grms.lrms.batch.forgetful import HELD, KEY, Forgetful
from tests.waiting import TIME_OUT_S, meanwhile, until


class Slow(Forgetful):
    """A batch system that answers when the test lets it, or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()
        self.answers.set()
        self.fails: Exception | None = None
        self.begun = 0

    async def look(self) -> QueueSnapshot:
        """See `BatchSystem.look`."""
        self.begun += 1
        await self.answers.wait()
        if self.fails is not None:
            raise self.fails
        return await super().look()


class Scene:
    """Looks at such a batch system, and what they have told."""

    def __init__(self, folder: Path, *, poll_s: float = 0.01, system: Slow | None = None) -> None:
        self.system = system or Slow()
        tracker = JobTracker(self.system.encode, self.system.decode, settle_s=0.0, records_s=0.0)
        self.looks = Poller(self.system, Spool(folder), tracker, poll_s=poll_s)
        self.looks.tell = self._hear
        self.events: list[LrmsEvent] = []

    def _hear(self, events: Iterable[LrmsEvent]) -> None:
        self.events += events


async def test_one_look_is_shared_by_all_who_asked_before_it_began(tmp_path: Path) -> None:
    """Who asks while a look is under way waits for the next one, which others share."""
    scene = Scene(tmp_path)
    scene.system.answers.clear()
    async with asyncio.timeout(TIME_OUT_S), asyncio.TaskGroup() as group:
        first = group.create_task(scene.looks.new())
        await until(lambda: scene.system.begun == 1)
        later = [group.create_task(scene.looks.new()) for _ in range(3)]
        await asyncio.sleep(0)
        scene.system.answers.set()
    assert scene.system.begun == 2
    seen = [task.result() for task in later]
    assert seen[0] is seen[1] is seen[2]
    assert first.result() is not seen[0]
    assert await scene.looks.last() is seen[0]
    assert scene.system.begun == 2, "the last look does where any will do"


@pytest.mark.parametrize("error", [LrmsUnavailableError, LrmsRefusedError])
async def test_that_nobody_answers_is_told_once_until_somebody_does(
    tmp_path: Path, error: type[LrmsUnavailableError] | type[LrmsRefusedError]
) -> None:
    """Whoever asks is told each time; a table that is refused is no better."""
    scene = Scene(tmp_path)
    scene.system.fails = error("out of order")
    for _ in range(2):
        with pytest.raises(LrmsUnavailableError, match="out of order"):
            await scene.looks.last()
    assert scene.events == [Away("out of order")]
    scene.system.fails = None
    await scene.looks.new()
    await scene.looks.new()
    told = [type(event) for event in scene.events]
    assert told == [Away, Back, LoadSeen, LoadSeen]


async def test_a_job_that_was_never_handed_over_ends_with_the_next_look(tmp_path: Path) -> None:
    """Once."""
    scene = Scene(tmp_path)
    end = LrmsEnd(Outcome.CANCELLED, 5.0, 0.0, reason="it stays")
    scene.looks.staying["B/1/1"] = end
    await scene.looks.new()
    await scene.looks.new()
    assert [event for event in scene.events if isinstance(event, Ended)] == [Ended("B/1/1", end)]
    assert scene.looks.staying == {}


async def test_each_look_hands_on_what_is_to_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An order that fails does not end the following; a look that somebody wants comes before its time."""
    monkeypatch.setattr("grms.lrms.batch.poller.SOON", 0.0)
    scene = Scene(tmp_path, poll_s=1e6)
    scene.system.rows = (HELD,)
    scene.looks.tracker.intended(KEY, Want.RUN)
    carried: list[tuple[Order, ...]] = []
    twice = asyncio.Event()

    async def carry_out(orders: Iterable[Order]) -> None:
        carried.append(tuple(orders))
        if len(carried) == 2:
            twice.set()
            return
        scene.looks.want()
        raise LrmsUnavailableError("out of order")

    async with meanwhile(scene.looks.follow(carry_out)):
        async with asyncio.timeout(TIME_OUT_S):
            await twice.wait()
    assert [[order.row for order in orders] for orders in carried] == [[HELD], [HELD]]


class Silent(Slow):
    """A batch system that shows nothing, and does not answer when it is asked for one job."""

    asked = 0

    async def knows(self, question: Question) -> Ending | bool | None:
        """See `BatchSystem.knows`."""
        del question
        self.asked += 1
        raise LrmsUnavailableError("out of order")


async def test_one_silence_is_enough(tmp_path: Path) -> None:
    """Where nobody answers for one job that no table shows, the others are not asked about in that look."""
    scene = Scene(tmp_path, system=Silent())
    for number in range(5):
        scene.looks.tracker.gone(f"A/1/{number}", str(number), 100.0)
    await scene.looks.new()
    assert isinstance(scene.system, Silent)
    assert scene.system.asked == 1
    assert sum(isinstance(event, Unseen) for event in scene.events) == 5


@pytest.mark.parametrize("begun", [False, True])
async def test_who_is_asked_whether_it_has_a_job_is_told_whether_that_has_begun(
    tmp_path: Path, begun: bool
) -> None:
    """By its folder, where no look has shown it running: what has begun was not ended while it waited."""
    scene = Scene(tmp_path)
    asked: list[Question] = []

    async def knows(question: Question) -> bool:
        asked.append(question)
        return True

    scene.system.knows = knows  # type: ignore[method-assign]  # of a test
    folder = Spool(tmp_path).prepare(KEY, Program("#!/bin/sh\n"), run=True)
    scene.system.rows = (replace(HELD, phase=LrmsPhase.WAITING),)
    await scene.looks.new()
    if begun:
        (folder / "begun").write_text("0 1700000000\n")
    scene.system.rows = ()
    async with asyncio.timeout(TIME_OUT_S):
        while not asked:
            await scene.looks.new()
    assert [question.ran for question in asked] == [begun]
