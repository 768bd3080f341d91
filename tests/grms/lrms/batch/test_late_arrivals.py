"""What comes after everybody has stopped waiting for it: a submission, an end, a second copy, a clock put back."""

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from grms.lrms.base import (
    Accepted,
    Appeared,
    Ended,
    LoadSeen,
    Lost,
    LrmsDiskError,
    LrmsEnd,
    LrmsError,
    LrmsEvent,
    LrmsJob,
    LrmsPhase,
    LrmsRecord,
    LrmsRefusedError,
    LrmsUnavailableError,
    Program,
    Requeued,
    Started,
    Unseen,
    Vanished,
)
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.queue_snapshot import Ending, JobRow, Question, QueueSnapshot
from grms.lrms.batch.tracked_job import Want
from grms.lrms.exit_status import LAUNCH, LAUNCH_ONCE
from grms.lrms.partitions import NO_PARTITIONS, Partition, Partitions
from grms.util.outcomes import Outcome
from lrms_sim.workload.requests import Request
from tests.grms.lrms.batch.forgetful import END, HELD, KEY, Forgetful
from tests.waiting import meanwhile

OWN = LrmsJob(KEY, 2, 60.0, program=Program("#!/bin/sh\n"))
PARTNERS = replace(OWN, partner="south")
HOUR_S = 3600.0


class Late(Forgetful):
    """A batch system that is told of a job, and does not answer.

    Attributes:
        answer: how each submission ends; None where it is answered.
        partitions: as each look shows them.
        together: jobs that were cancelled in one call.
        questions: for which records were looked at.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answer: LrmsError | None = LrmsUnavailableError("timed out")
        self.partitions = NO_PARTITIONS
        self.together: list[list[str]] = []
        self.questions: list[Question] = []

    async def ending(self, question: Question) -> Ending | None:
        """See `BatchSystem.ending`."""
        self.questions.append(question)
        return await super().ending(question)

    async def look(self) -> QueueSnapshot:
        """See `BatchSystem.look`."""
        return replace(await super().look(), partitions=self.partitions)

    async def submit(self, name: str, job: LrmsJob, folder: Path) -> str:
        """See `BatchSystem.submit`."""
        if self.answer is not None:
            raise self.answer
        return await super().submit(name, job, folder)

    async def cancel_all(self, rows: Sequence[JobRow]) -> None:
        """See `BatchSystem.cancel_all`."""
        self.together.append([row.number for row in rows])


class Scene:
    """An adapter of such a batch system, and what it has told."""

    def __init__(
        self, folder: Path, *, settle_s: float = 0.0, repeats: bool = False, site: str = ""
    ) -> None:
        self.system, self.spool, self._site = Late(), Spool(folder), site
        self._settle_s, self._repeats = settle_s, repeats
        self.events: list[LrmsEvent] = []
        self.new_life()

    def new_life(self) -> None:
        """Begins anew, as after a restart of the daemon."""
        self.lrms = BatchLrms(
            self.system,
            self.spool,
            poll_s=0.01,
            settle_s=self._settle_s,
            repeats=self._repeats,
            site=self._site,
            clock=lambda: self.system.now,
        )
        self.lrms.listen(self._hear)

    def _hear(self, events: Sequence[LrmsEvent]) -> None:
        self.events += [event for event in events if not isinstance(event, LoadSeen)]

    async def looks(self, times: int = 5, *, each_s: float = 0.0) -> None:
        """Looks so often, and carries out what each look has found, one after the other."""
        for _ in range(times):
            self.system.now += each_s
            seen = await self.lrms._poller.new()
            await self.lrms._orders.carry_out(seen.orders)

    async def submitted(self) -> None:
        """Submits a job, of which the batch system says nothing, and looks twice."""
        self.system.answer = None
        await self.lrms.open()
        await self.lrms.submit(OWN)
        await self.looks(2)

    async def known(self) -> LrmsRecord:
        """Returns what is known of the job."""
        record = await self.lrms.look_up(KEY)
        assert record is not None
        return record

    def told(self, *kinds: type[LrmsEvent]) -> list[LrmsEvent]:
        """Returns the events of some kinds."""
        return [event for event in self.events if isinstance(event, kinds)]


def shut(scene: Scene) -> None:
    """Drains the only partition."""
    scene.system.partitions = Partitions((Partition("main", "DRAIN", takes=False),))


def full(scene: Scene) -> None:
    """Fills the disk."""

    def prepare(*_: object, **__: object) -> Path:
        raise OSError(28, "No space left on device")

    scene.spool.prepare = prepare  # type: ignore[method-assign]  # of a test


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("what", [shut, full])
async def test_a_partners_job_that_has_gone_home_is_never_released_here(
    tmp_path: Path, what: object, restarted: bool
) -> None:
    """Its first submission had no answer and comes late, when the second one was turned away: it may run elsewhere."""
    scene = Scene(tmp_path)
    await scene.lrms.open()
    with pytest.raises(LrmsUnavailableError, match="timed out"):
        await scene.lrms.submit(PARTNERS)
    assert await scene.lrms.look_up(KEY) is None
    if restarted:
        scene.new_life()
    assert callable(what)
    what(scene)
    error = LrmsRefusedError if what is shut else LrmsDiskError
    with pytest.raises(error):
        await scene.lrms.submit(PARTNERS)
    scene.system.rows = (HELD,)
    await scene.looks()
    assert scene.system.told == []
    assert [type(event) for event in scene.events] == [Appeared], "who has given it up is asked"
    assert await scene.lrms.cancel(KEY, only_waiting=True)
    assert scene.system.told == ["cancel"]


@pytest.mark.parametrize("phase", [LrmsPhase.HELD, LrmsPhase.ENDED])
async def test_a_copy_that_a_new_process_sees_first_is_not_the_job(
    tmp_path: Path, phase: LrmsPhase
) -> None:
    """An earlier one has released the job, which a table does not show; the copy's submission has come late."""
    scene = Scene(tmp_path)
    await scene.submitted()
    assert scene.system.told == ["submit", "release"]
    scene.new_life()
    end = LrmsEnd(Outcome.CANCELLED, 60.0, 0.0) if phase is LrmsPhase.ENDED else None
    copy = replace(HELD, number="8", phase=phase, end=end)
    scene.system.rows, scene.system.known = (copy,), True
    assert (await scene.known()).phase is LrmsPhase.UNKNOWN
    await scene.looks(3)
    assert scene.system.told == ["submit", "release"]
    runs = replace(HELD, phase=LrmsPhase.RUNNING, start_time=70.0)
    scene.system.rows = (runs, copy)
    await scene.looks(1)
    assert scene.told(Ended, Appeared) == []
    assert len(scene.told(Started)) == 1
    assert scene.system.told[2:] == ["cancel"] * (phase is LrmsPhase.HELD)


class Meanwhile(Scene):
    """A scene in which a job whose submission had no answer comes while it is submitted again."""

    async def comes(self) -> None:
        """Lets it come, and looks until it is released."""
        self.system.rows = (HELD,)
        await self.looks()
        assert self.system.told == ["release"]


@pytest.mark.parametrize("job", [PARTNERS, OWN], ids=["a partner's", "own"])
@pytest.mark.parametrize("when", ["prepared", "asked"])
async def test_what_has_come_while_it_was_submitted_again_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, job: LrmsJob
) -> None:
    """A look has found it, and it was released: refused, it would run elsewhere as well."""
    scene = Meanwhile(tmp_path)
    await scene.lrms.open()
    with pytest.raises(LrmsUnavailableError, match="timed out"):
        await scene.lrms.submit(job)
    assert await scene.lrms.look_up(KEY) is None
    attempts = 0

    async def submit(*_: object) -> str:
        nonlocal attempts
        attempts += 1
        await scene.comes()
        raise LrmsRefusedError("too many jobs")

    async def prepared(*_: object, **__: object) -> Path:
        await scene.comes()
        raise LrmsDiskError("No space left on device", unbegun=True)

    if when == "asked":
        monkeypatch.setattr(scene.system, "submit", submit)
    else:
        monkeypatch.setattr(scene.lrms, "_prepared", prepared)
    await scene.lrms.submit(job)
    assert attempts == (when == "asked")
    assert (await scene.known()).phase is LrmsPhase.WAITING
    await scene.looks()
    assert scene.system.told == ["release"]
    assert [type(event) for event in scene.events] == [Accepted]


@pytest.mark.parametrize("job", [PARTNERS, OWN], ids=["a partner's", "own"])
@pytest.mark.parametrize("earlier", [False, True])
async def test_what_is_refused_keeps_its_folder_only_if_an_earlier_attempt_may_come(
    tmp_path: Path, earlier: bool, job: LrmsJob
) -> None:
    """The site looks it up once more, and takes for its own what has come: that has to be able to run."""
    scene = Scene(tmp_path)
    await scene.lrms.open()
    if earlier:
        with pytest.raises(LrmsUnavailableError, match="timed out"):
            await scene.lrms.submit(job)
    scene.system.answer = LrmsRefusedError("not allowed")
    with pytest.raises(LrmsRefusedError, match="not allowed"):
        await scene.lrms.submit(job)
    assert (tmp_path / "A+1+1" / "launch").exists() == earlier
    if not earlier:
        return
    scene.system.rows = (HELD,)
    await scene.looks(3)
    assert scene.system.told == [], "it is held until the site has asked for it"
    assert (await scene.known()).phase is LrmsPhase.HELD
    await scene.looks(2)
    assert scene.system.told == ["release"]


async def test_a_refused_job_whose_marks_cannot_be_deleted_is_asked_again(tmp_path: Path) -> None:
    """By them a later look-up would take it for one that an earlier process has submitted."""
    scene = Scene(tmp_path)
    await scene.lrms.open()
    scene.system.answer = LrmsRefusedError("not allowed")

    def drop(key: str) -> None:
        del key
        raise OSError(5, "Input/output error")

    scene.spool.drop = drop  # type: ignore[method-assign]  # of a test
    with pytest.raises(LrmsDiskError) as caught:
        await scene.lrms.submit(PARTNERS)
    assert not caught.value.unbegun


async def test_an_own_job_that_comes_late_runs_when_it_is_handed_in_again(tmp_path: Path) -> None:
    """It was refused for what passes, as far as anybody has said."""
    scene = Scene(tmp_path)
    await scene.lrms.open()
    scene.system.answer = LrmsRefusedError("sleeping and retrying", passing=True)
    with pytest.raises(LrmsRefusedError):
        await scene.lrms.submit(OWN)
    scene.system.rows = (HELD,)
    await scene.lrms.submit(OWN)
    await scene.looks()
    assert scene.system.told == ["release"]
    assert [type(event) for event in scene.events] == [Accepted]
    assert (tmp_path / "A+1+1" / "launch").exists()


async def test_an_own_job_that_is_given_up_before_it_comes_is_cancelled(tmp_path: Path) -> None:
    """Nobody knows its number; it may be there already, or come in the next looks."""
    for comes in (False, True):
        scene = Scene(tmp_path / str(comes))
        await scene.lrms.open()
        scene.system.answer = LrmsRefusedError("sleeping and retrying", passing=True)
        with pytest.raises(LrmsRefusedError):
            await scene.lrms.submit(OWN)
        assert await scene.lrms.cancel(KEY)
        scene.system.rows = (HELD,) if comes else ()
        await scene.looks()
        assert scene.system.told == ["cancel"] * comes
        (event,) = scene.told(Ended)
        assert isinstance(event, Ended)
        assert event.end.outcome is Outcome.CANCELLED
        scene.system.told.clear()
        scene.system.rows = (HELD,)
        await scene.looks(2)
        assert "release" not in scene.system.told


async def test_a_folder_that_is_half_deleted_makes_no_job_begun(tmp_path: Path) -> None:
    """Of one that was refused the marks go first, else nobody could say that it never ran."""
    scene = Scene(tmp_path)
    await scene.lrms.open()
    scene.spool.prepare(KEY, OWN.program or Program(""), run=True, limit_s=60.0)

    delete = shutil.rmtree

    def cut_off(path: Path, **__: object) -> None:
        delete(path)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "rmtree", cut_off)
        with pytest.raises(KeyboardInterrupt):
            scene.spool.drop(KEY)
    scene.new_life()
    assert await scene.lrms.look_up(KEY) is None
    assert scene.spool.runs(KEY) == []


@pytest.mark.parametrize("ends", [False, True])
async def test_a_job_without_a_number_ends_some_time(tmp_path: Path, ends: bool) -> None:
    """It has begun by its folder, and nothing shows it: nobody can be asked for it by its number."""
    scene = Scene(tmp_path)
    await scene.lrms.open()
    scene.spool.prepare(KEY, OWN.program or Program(""), run=True, limit_s=60.0)
    (tmp_path / "A+1+1" / "begun").write_text("0 90\n")
    assert (await scene.known()).phase is LrmsPhase.UNKNOWN
    if ends:
        assert await scene.lrms.cancel(KEY)
    await scene.looks(80, each_s=30.0)
    (event,) = scene.told(Ended, Vanished)
    assert isinstance(event, Ended if ends else Vanished)
    assert event == scene.events[-1]
    assert all(isinstance(event, Unseen) for event in scene.events[:-1])


def jobs(count: int, phase: LrmsPhase) -> tuple[JobRow, ...]:
    """Returns rows of so many jobs."""
    start_time = None if phase is LrmsPhase.HELD else 5.0
    return tuple(
        replace(HELD, name=f"hanse:S:A/1/{n}", number=str(n), phase=phase, start_time=start_time)
        for n in range(1, count + 1)
    )


def over(rows: tuple[JobRow, ...]) -> tuple[JobRow, ...]:
    """Returns the same, ended; records say how."""
    return tuple(replace(row, phase=LrmsPhase.ENDED, exact=False, end=END.end) for row in rows)


async def test_no_end_is_lost_with_whoever_has_looked(tmp_path: Path) -> None:
    """A call that is cancelled in the middle of a look has told what it had found out by then."""
    scene = Scene(tmp_path)
    await scene.lrms.open()
    rows = scene.system.rows = jobs(2, LrmsPhase.RUNNING)
    await scene.looks(1)
    scene.system.rows, scene.system.end = over(rows), END
    reached = asyncio.Event()
    ending = scene.system.ending

    async def slow(question: Question) -> Ending | None:
        if question.key.endswith("2") and not reached.is_set():
            reached.set()
            await asyncio.Event().wait()
        return await ending(question)

    scene.system.ending = slow  # type: ignore[method-assign]  # of a test
    async with meanwhile(scene.lrms.look_up("A/1/9")):
        await reached.wait()
    await scene.looks(2)
    assert [event.key for event in scene.events if isinstance(event, Ended)] == ["A/1/1", "A/1/2"]


async def test_who_cannot_be_asked_in_time_is_asked_first_in_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load grows old meanwhile; nobody waits for ever behind those of whom no record comes."""
    scene = Scene(tmp_path)
    await scene.lrms.open()
    rows = scene.system.rows = jobs(3, LrmsPhase.RUNNING)
    await scene.looks(1)
    scene.system.rows = over(rows)
    asked: list[str] = []

    async def one(question: Question) -> Ending | None:
        asked.append(question.key)
        time.sleep(0.001)  # noqa: ASYNC251  # so that there is no time for a second
        raise LrmsUnavailableError("no data base")

    scene.system.ending = one  # type: ignore[method-assign]  # of a test
    monkeypatch.setattr("grms.lrms.batch.poller.ORDERS_POLLS", 0.05)
    await scene.looks(6)
    assert set(asked) == {"A/1/1", "A/1/2", "A/1/3"}
    assert scene.told(Ended) == []


async def test_jobs_that_no_time_was_left_for_are_asked_about_next(tmp_path: Path) -> None:
    """What no table shows is asked about less and less often; who has not been asked about does not wait for that."""
    scene = Scene(tmp_path)
    await scene.lrms.open()
    scene.system.rows = jobs(40, LrmsPhase.RUNNING)
    await scene.looks(1)
    scene.system.rows = ()
    asked: Counter[str] = Counter()

    async def knows(question: Question) -> bool:
        asked[question.key] += 1
        time.sleep(0.004)  # noqa: ASYNC251  # so that a look has time for few
        return True

    scene.system.knows = knows  # type: ignore[method-assign]  # of a test
    await scene.looks(60)
    assert len(asked) == 40
    assert max(asked.values()) <= min(asked.values()) + 2


@pytest.mark.parametrize("ends", [LrmsPhase.ENDED, None])
async def test_a_submission_may_be_answered_after_its_end_was_seen(
    tmp_path: Path, ends: LrmsPhase | None
) -> None:
    """An operator has cancelled the job at once, or the batch system has forgotten it."""
    scene = Scene(tmp_path)
    await scene.lrms.open()
    scene.system.answer = None
    submit = scene.system.submit

    async def slow(name: str, job: LrmsJob, folder: Path) -> str:
        number = await submit(name, job, folder)
        await scene.lrms._poller.new()
        end = None if ends is None else replace(HELD, phase=ends, end=CANCELLED)
        scene.system.rows, scene.system.known = (() if end is None else (end,)), False
        for _ in range(4):
            await scene.lrms._poller.new()
        return number

    scene.system.submit = slow  # type: ignore[method-assign]  # of a test
    await scene.lrms.submit(OWN)
    assert len(scene.told(Ended if ends else Lost)) == 1


async def test_cancels_that_take_long_keep_no_job_from_its_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does one without an answer: others have their turn before that is told."""
    monkeypatch.setattr("grms.lrms.batch.poller.ORDERS_POLLS", 1)
    scene = Scene(tmp_path)
    await scene.lrms.open()
    for number in (1, 2):
        scene.spool.prepare(f"A/1/{number}", OWN.program or Program(""), run=True, limit_s=60.0)
    scene.system.rows = jobs(2, LrmsPhase.HELD)
    await scene.lrms.look_up("A/1/2")
    job = scene.lrms._tracker.job("A/1/1")
    assert job is not None
    job.want = Want.GONE
    released: list[str] = []

    async def cancel(_row: JobRow) -> None:
        time.sleep(0.03)  # noqa: ASYNC251  # longer than there is time for orders
        raise LrmsUnavailableError("no answer")

    async def release(row: JobRow) -> None:
        released.append(row.number)

    scene.system.cancel = cancel  # type: ignore[method-assign, assignment]  # of a test
    scene.system.release = release  # type: ignore[method-assign]  # same
    with pytest.raises(LrmsUnavailableError):
        await scene.looks(1)
    assert released == ["2"]


async def test_orders_that_no_time_was_left_for_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs whose hold nobody can explain stand before others in each look, and keep none from its release."""
    scene = Scene(tmp_path)
    await scene.lrms.open()
    scene.system.rows = jobs(4, LrmsPhase.HELD)
    for number in range(1, 5):
        scene.spool.prepare(f"A/1/{number}", OWN.program or Program(""), run=True, limit_s=60.0)
    asked: list[str] = []

    async def held(row: JobRow, *, released: bool) -> bool:
        del released
        asked.append(row.number)
        time.sleep(0.002)  # noqa: ASYNC251  # so that there is no time for a second
        raise LrmsRefusedError("nobody can say")

    scene.system.held_since_submission = held  # type: ignore[method-assign]  # of a test
    monkeypatch.setattr("grms.lrms.batch.poller.ORDERS_POLLS", 0.1)
    for number in range(1, 5):
        await scene.lrms.look_up(f"A/1/{number}")
    await scene.looks(8)
    assert set(asked) == {"1", "2", "3", "4"}


async def test_a_number_that_is_another_jobs_by_now_is_not_cancelled(tmp_path: Path) -> None:
    """What no table shows is ended by its name as well, however many are ended at one time."""
    scene = Scene(tmp_path)
    await scene.lrms.open()
    scene.system.rows = jobs(2, LrmsPhase.RUNNING)
    await scene.looks(1)
    scene.system.rows = (replace(HELD, name="hanse:S:A/1/3", number="1"),)
    await scene.looks(1)
    cancelled: list[str] = []

    async def cancel(row: JobRow) -> bool:
        cancelled.append(row.name)
        return True

    scene.system.cancel = cancel  # type: ignore[method-assign]  # of a test
    await asyncio.gather(scene.lrms.cancel("A/1/1"), scene.lrms.cancel("A/1/2"))
    assert scene.system.together == []
    assert cancelled == ["hanse:S:A/1/1", "hanse:S:A/1/2"]


async def test_a_clock_that_was_put_back_delays_no_release(tmp_path: Path) -> None:
    """Nor what is not shown, nor a release that the batch system has forgotten."""
    scene = Scene(tmp_path, settle_s=6.0)
    scene.system.answer = None
    await scene.lrms.open()
    await scene.lrms.submit(OWN)
    scene.system.now -= HOUR_S
    await scene.looks(5)
    assert scene.system.told == ["submit"]
    await scene.looks(5)
    assert scene.system.told == ["submit", "release"]
    scene.system.now -= HOUR_S
    scene.system.rows = (HELD,)
    await scene.looks(1)
    assert scene.system.told == ["submit", "release", "release"]
    scene.system.now -= HOUR_S
    scene.system.rows, scene.system.known = (), True
    await scene.looks(5)
    assert len(scene.told(Unseen)) == 1


async def test_a_call_waits_no_longer_for_a_clock_that_was_put_back(tmp_path: Path) -> None:
    """A release is made when looks have shown the job for long enough."""
    scene = Scene(tmp_path, settle_s=0.05)
    scene.system.answer = None
    await scene.lrms.open()
    await scene.lrms.submit(OWN, held=True)
    scene.system.now -= HOUR_S
    async with asyncio.timeout(60.0):
        await scene.lrms.release(KEY)
    assert scene.system.told == ["submit", "release"]


async def test_a_name_that_only_looks_like_one_of_ours_is_no_job(tmp_path: Path) -> None:
    """Whoever shares the daemon's account may have called his own job so."""
    scene = Scene(tmp_path)
    await scene.lrms.open()
    strange = replace(HELD, name="hanse:S:foo", phase=LrmsPhase.RUNNING, start_time=5.0)
    scene.system.rows = (strange,)
    await scene.looks(1)
    scene.system.rows = over((strange,))
    await scene.looks(2)
    assert scene.events == []


CANCELLED = LrmsEnd(Outcome.CANCELLED, 60.0, 0.0)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("", Outcome.CANCELLED),
        ("0 50\n", Outcome.CANCELLED),
        ("0 50\nended 0 52\n", Outcome.COMPLETED),
        ("0 50\nended 3 52\n", Outcome.FAILED),
        ("0 50\nended 143 52\n", Outcome.CANCELLED),
    ],
)
@pytest.mark.parametrize("repeats", [False, True])
async def test_what_was_cancelled_as_it_waited_again_has_ended_before(
    tmp_path: Path, said: str, outcome: Outcome, repeats: bool
) -> None:
    """Its run was forgotten: the table says all that it knows, and the job's folder more. Also after a restart."""
    scene = Scene(tmp_path, repeats=repeats, site="A")
    await scene.submitted()
    if said:
        (tmp_path / "A+1+1" / "begun").write_text(said)
    scene.system.rows = (replace(HELD, phase=LrmsPhase.ENDED, start_time=60.0, end=CANCELLED),)
    await scene.looks(1)
    (event,) = scene.told(Ended)
    assert isinstance(event, Ended)
    expected = Outcome.CANCELLED if repeats else outcome
    assert event.end.outcome is expected
    assert (await scene.known()).end == event.end
    scene.new_life()
    record = await scene.known()
    assert record.end is not None
    assert record.end.outcome is expected
    assert scene.system.questions == [], "the table has said all that there is to be asked for"


@pytest.mark.parametrize("said", ["", "0 50\n"])
@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("seen", [False, True])
async def test_what_is_cancelled_as_it_waits_again_is_told_as_started(
    tmp_path: Path, said: str, repeats: bool, seen: bool
) -> None:
    """Between two polls, or while no daemon lived: the end alone would say that it has never run."""
    scene = Scene(tmp_path, repeats=repeats, site="A")
    await scene.submitted()
    if said:
        (tmp_path / "A+1+1" / "begun").write_text(said)
    if said and seen:
        running = replace(HELD, phase=LrmsPhase.RUNNING, start_time=50.0)
        for row in (running, replace(HELD, phase=LrmsPhase.WAITING)):
            scene.system.rows = (row,)
            await scene.looks(1)
    scene.system.rows = (replace(HELD, phase=LrmsPhase.ENDED, end=CANCELLED),)
    await scene.looks(1)
    told = [type(event) for event in scene.told(Requeued, Ended)]
    assert told == [Requeued, Ended] if said else [Ended]
    scene.new_life()
    record = await scene.known()
    assert record.end is not None
    assert (record.end.outcome, record.restarted) == (Outcome.CANCELLED, bool(said))


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("site", ["A", "south"])
@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("0 50\nended 0 52\n", Outcome.COMPLETED),
        ("0 50\nended 143 52\n", Outcome.CANCELLED),
        ("0 50\nended 1 52\n", Outcome.CANCELLED),
    ],
)
async def test_what_has_completed_and_is_forgotten_is_not_cancelled(
    tmp_path: Path, copy: bool, site: str, said: str, outcome: Outcome
) -> None:
    """Its user has cancelled it since, or its home; a second copy of it, which comes late, has never begun."""
    scene = Scene(tmp_path, site=site)
    await scene.submitted()
    (tmp_path / "A+1+1" / "begun").write_text(said)
    scene.system.rows, scene.system.known = (replace(HELD, number="8"),) * copy, False

    async def cancel(row: JobRow) -> bool:
        return row.number != "7"

    scene.system.cancel = cancel  # type: ignore[method-assign]  # there is no such job any more
    await scene.lrms.cancel(KEY)
    await scene.looks(4)
    (event,) = scene.told(Ended, Vanished)
    assert isinstance(event, Ended)
    assert event.end.outcome is outcome
    scene.new_life()
    record = await scene.known()
    assert record.end is not None
    assert (record.end.outcome is Outcome.COMPLETED) == (outcome is Outcome.COMPLETED)


@pytest.mark.parametrize("requeue", [None, True, False])
async def test_what_may_not_run_again_runs_once_where_others_may(
    tmp_path: Path, requeue: bool | None
) -> None:
    """Its user has said so (`--no-requeue`), and the site's file lets jobs run again."""
    scene = Scene(tmp_path, repeats=True)
    scene.system.answer = None
    await scene.lrms.open()
    asked = Request(requeue=requeue, wall_time=OWN.requested_time)
    await scene.lrms.submit(replace(OWN, request=asked))
    launch = (tmp_path / "A+1+1" / "launch").read_text()
    assert launch == (LAUNCH_ONCE if requeue is False else LAUNCH)


async def test_a_very_long_wait_for_records_holds_up_no_cancelled_job(tmp_path: Path) -> None:
    """Nobody has to be asked for it."""
    scene = Scene(tmp_path)
    scene.system.answer = None
    await scene.lrms.open()
    rows = scene.system.rows = jobs(2, LrmsPhase.WAITING)
    await scene.looks(1)

    async def silent(question: Question) -> Ending | None:
        del question
        raise LrmsUnavailableError("no data base")

    scene.system.ending = silent  # type: ignore[method-assign]  # of a test
    scene.system.rows = (*over(rows[:1]), replace(rows[1], phase=LrmsPhase.ENDED, end=CANCELLED))
    await scene.looks(1)
    assert [event.key for event in scene.events if isinstance(event, Ended)] == ["A/1/2"]


@pytest.mark.parametrize("goes", ["cancelled", "let go", "ended by hand"])
async def test_a_late_copy_of_what_is_no_longer_here_is_not_released_by_the_next_process(
    tmp_path: Path, goes: str
) -> None:
    """The job's note says that it was to run: its user has read since that it was cancelled, or a partner has it."""
    scene = Scene(tmp_path)
    await scene.lrms.open()
    with pytest.raises(LrmsUnavailableError, match="timed out"):
        await scene.lrms.submit(OWN)
    assert await scene.lrms.look_up(KEY) is None
    scene.system.answer = None
    await scene.lrms.submit(OWN)
    if goes == "ended by hand":
        await scene.system.cancel(HELD)
    else:
        assert await scene.lrms.cancel(KEY, only_waiting=goes == "let go")
    await scene.looks(1)
    assert [event.end.outcome for event in scene.events if isinstance(event, Ended)] == [
        Outcome.CANCELLED
    ]
    scene.new_life()
    scene.system.rows = (*scene.system.rows, replace(HELD, number="8"))
    await scene.looks(5, each_s=HOUR_S)
    assert "release" not in scene.system.told
    snapshot = await scene.lrms.snapshot()
    assert snapshot.jobs[KEY].phase is LrmsPhase.HELD, "the site ends it, as for it the job is over"
    assert await scene.lrms.cancel(KEY, only_waiting=True)
    await scene.looks(2)
    assert scene.system.told[-1] == "cancel"
    assert "release" not in scene.system.told


@pytest.mark.parametrize("asks", ["look-up", "submission"])
async def test_what_an_earlier_process_has_submitted_is_released_when_the_site_asks_for_it(
    tmp_path: Path, asks: str
) -> None:
    """As it does at its start for each job that it has open."""
    scene = Scene(tmp_path)
    scene.system.answer = None
    await scene.lrms.open()
    await scene.lrms.submit(OWN)
    scene.new_life()
    await scene.looks(5, each_s=HOUR_S)
    assert scene.system.told == ["submit"]
    if asks == "look-up":
        assert (await scene.known()).phase is LrmsPhase.HELD
    else:
        await scene.lrms.submit(OWN)
    await scene.looks(2)
    assert scene.system.told == ["submit", "release"]


RAN = replace(HELD, phase=LrmsPhase.RUNNING, start_time=90.0)


class Copied(Scene):
    """A job that has begun, of which nobody knows any more how it ended, and then a copy, held as it came.

    `holder` holds the copy; `number` is its number.
    """

    async def comes(self, *, restarted: bool, number: str, holder: str = "submission") -> None:
        """Brings it there; `restarted`: the daemon has died meanwhile, and this is its next life."""
        self.system.answer, self.system.known = None, False
        await self.lrms.open()
        await self.lrms.submit(replace(OWN, requested_time=60.0))
        await self.looks(2)
        (self.spool.place(KEY) / "begun").write_text("0 90\n")
        self.system.rows = (RAN,)
        await self.looks(1)
        self.system.rows = ()
        await self.looks(80, each_s=30.0)
        assert [type(event) for event in self.told(Ended, Vanished)] == [Vanished]
        self.system.told.clear()
        if restarted:
            self.new_life()
        self.copy = replace(HELD, number=number)
        self.system.rows = (self.copy,)

        async def held(row: JobRow, *, released: bool) -> bool:
            del row, released
            return holder == "submission"

        self.system.held_since_submission = held  # type: ignore[method-assign]  # of a test
        await self.looks(80, each_s=30.0)
        assert len(self.told(Appeared)) == 1, "the site is told, and says that it has no such job"
        assert self.system.told == []


@pytest.mark.parametrize("number", ["7", "8"])
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_held_copy_of_what_has_begun_and_is_over_for_the_site_is_ended(
    tmp_path: Path, restarted: bool, number: str
) -> None:
    """An operator ended the run, and the batch system forgot it; the copy's number may be that of the run."""
    scene = Copied(tmp_path, site="A")
    await scene.comes(restarted=restarted, number=number)
    assert not await scene.lrms.cancel(KEY, only_waiting=True), "its run has begun, and stays so"
    assert scene.system.told == ["cancel"]
    scene.system.rows = (scene.copy,)  # the batch system forgets that
    await scene.looks(2)
    assert scene.system.told == ["cancel", "cancel"]
    assert scene.told(Started)[1:] == []


async def test_a_copy_that_an_operator_holds_is_his(tmp_path: Path) -> None:
    """He may know why."""
    scene = Copied(tmp_path, site="A")
    await scene.comes(restarted=False, number="8", holder="operator")
    assert not await scene.lrms.cancel(KEY, only_waiting=True)
    await scene.looks(2)
    assert scene.system.told == []


@pytest.mark.parametrize("asked", ["looked up", "handed in"])
async def test_a_copy_that_is_found_after_the_job_was_lost_runs(tmp_path: Path, asked: str) -> None:
    """An operator ended the job while it was held, and it was forgotten: so the site hands it in again."""
    scene = Scene(tmp_path)
    scene.system.answer, scene.system.known = None, False
    await scene.lrms.open()
    await scene.lrms.submit(OWN)
    scene.system.rows = (replace(HELD, number="8"),)
    await scene.looks(2)
    assert [type(event) for event in scene.told(Lost)] == [Lost]
    await scene.looks(3, each_s=HOUR_S)
    assert scene.system.told == ["submit"], "it may be elsewhere by now"
    if asked == "looked up":
        assert (await scene.known()).phase is LrmsPhase.HELD
    else:
        await scene.lrms.submit(OWN)
    await scene.looks(2)
    assert scene.system.told == ["submit", "release"]
    assert scene.told(Ended, Vanished) == []
