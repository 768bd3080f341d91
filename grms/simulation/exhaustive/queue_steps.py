"""What a daemon does above a batch system in trouble: the real queue of commands, tracker, poller and adapter.

Each step is one of the things that the daemon does at a time, to its end: a poll with its orders, or a call of the
queue. What the batch system does about it, whether the answer comes, and whether the process dies between two of its
writes is chosen (`choices`). A poll may also come while a call is under way.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from grms.lrms import base
from grms.lrms.base import (
    LrmsEvent,
    LrmsJob,
    LrmsPhase,
    LrmsRecord,
    LrmsRefusedError,
    LrmsUnavailableError,
)
from grms.lrms.base import Program as Script
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.poller import Seen
from grms.lrms.batch.queue_snapshot import Ending, Evidence, JobRow, Question, QueueSnapshot
from grms.lrms.disk import Disk
from grms.lrms.exit_status import ScriptEnd
from grms.lrms.job_notes import Marks
from grms.lrms.slurm.slurm_arrays import ArrayElements
from grms.simulation.exhaustive.batch_state import (
    Knowledge,
    of_elements,
    of_places,
    of_queue,
    of_tracker,
    to_elements,
    to_places,
    to_queue,
    to_tracker,
)
from grms.simulation.exhaustive.calls_together import run_together
from grms.simulation.exhaustive.choices import Choices, ViolationError
from grms.simulation.exhaustive.cluster import (
    ASIDE,
    GRACE_S,
    LIMIT_S,
    MARKER,
    NOW,
    OPERATOR,
    RUNS,
    SETTLE_S,
    SITE_NAME,
    SUBMISSION,
    Cluster,
    Folder,
    World,
    moment,
    with_marks,
)
from grms.site.model.commands import LrmsCancel, LrmsSubmit
from grms.site.model.events import LrmsNews
from grms.site.runtime.executor_queue import Call, LrmsQueue, LrmsStep

P = ParamSpec("P")
R = TypeVar("R")

COMMANDS: Final = 2
"""Concurrent calls, beside cancellations."""

TICK_S: Final = 0.005
"""By which the clock moves whenever it is read, seconds."""

_NAME: Final = f"hanse:{SITE_NAME}:"
_EMPTY: Final = QueueSnapshot(NOW, NOW, 8, 8, 8, 0, ())
_SCRIPT: Final = Script("#!/bin/sh\n")


class DiedError(BaseException):
    """The process of the daemon is no more; nothing that it does hears of it."""


class Parts(NamedTuple):
    """What drives the batch system; a test may leave something out.

    Attributes:
        queue: makes the queue of commands.
        lrms: makes the adapter.
        settle_s: age from which a submission is taken to be safe, seconds.
        skips: whether the launcher skips a script that has begun before, where it must not run again.
        looks: whether launchers look whether their jobs are set aside.
        waits: whether they wait until that is known; else they end.
        slurm: makes the driver of Slurm where there are arrays; `None` for the real one.
    """

    queue: Callable[[int, float], LrmsQueue] = LrmsQueue
    lrms: Callable[..., BatchLrms] = BatchLrms
    settle_s: float = SETTLE_S
    skips: bool = True
    looks: bool = True
    waits: bool = True
    slurm: "Callable[[QueueStep], Any] | None" = None


class QueueStep:
    """A daemon's half towards the batch system, while something happens to it.

    `wanted` returns whether somebody has wanted a job's end, by its key; `hear` takes news. With `once` no script may
    begin twice. `site` is the name with which the keys of own jobs begin. `below` is what the adapter has below it. `passed`
    seconds have passed since it was known what is `known`.
    """

    def __init__(  # noqa: PLR0917  # what a step is made of
        self,
        known: Knowledge,
        world: World,
        choices: Choices,
        parts: Parts,
        hear: Callable[[LrmsNews], None],
        wanted: Callable[[str], bool],
        *,
        once: bool,
        site: str,
        below: "Below",
        passed: float = 0.0,
    ) -> None:
        self.world = world
        self.choices = choices
        self.wanted = wanted
        self._hear = hear
        self._now = NOW
        self._left: Cluster | None = None
        self.queue = to_queue(parts.queue(COMMANDS, float("inf")), known.queue)
        make = parts.slurm if below.arrays and parts.slurm is not None else below.system
        system, folders = make(self), below.folders(self)
        self._elements: ArrayElements | None = system._elements if below.arrays else None  # noqa: SLF001  # what is known of arrays
        if self._elements is not None:
            to_elements(self._elements, known.arrays, passed)
        self.lrms = parts.lrms(
            system,
            folders,
            poll_s=1.0,
            settle_s=parts.settle_s,
            grace_s=GRACE_S,
            repeats=not once,
            site=site,
            placing=system if below.places else None,
            clock=self.clock,
        )
        lrms = self.lrms
        self._poller = lrms._poller  # noqa: SLF001  # what a poll needs beside the port
        lrms._disk = lrms._orders._disk = self._poller.disk = InlineDisk(folders.probe)  # noqa: SLF001  # without threads
        if lrms._places is not None:  # noqa: SLF001  # same
            lrms._places._disk = lrms._disk  # noqa: SLF001  # same
            to_places(lrms._places, known.places, passed)  # noqa: SLF001  # as pickle would
        to_tracker(self._poller.tracker, known.tracker, passed)
        self._poller._last = 0, Seen(_EMPTY, ())  # noqa: SLF001  # a poll of before
        self._poller._away = known.away  # noqa: SLF001  # as pickle would
        self._poller.want_in = _no_timer  # type: ignore[method-assign]  # a poll may come at any time as it is
        lrms.listen(self._told)
        self._calls = list(known.calls)
        self._paused = list(known.paused)
        self._compared = known.compared
        self._in_poll = False

    def clock(self) -> float:
        """Returns the time, seconds; it is later each time."""
        self._now += TICK_S
        return self._now

    def knowledge(self) -> Knowledge:
        """Returns what it knows now, after it has taken what is to be done next."""
        if self._compared:
            self._calls += self.queue.calls()
        return Knowledge(
            of_queue(self.queue),
            tuple(self._calls),
            tuple(self._paused),
            of_tracker(self._poller.tracker, self._now),
            self._poller._away,  # noqa: SLF001  # as pickle would
            self._compared,
            of_places(self.lrms._places, self._now),  # noqa: SLF001  # same
            () if self._elements is None else of_elements(self._elements, self._now),
        )

    def may_die(self, before: str) -> None:
        """Lets the process die here, if that is chosen."""
        if self._left is None and self.choices.pick(
            "", (f"the daemon dies before {before}", "crash")
        ):
            self._left = self.world.value
        self.lives()

    def lives(self) -> None:
        """Returns if the process has not died; what else it does at that moment does nothing more."""
        if self._left is not None:
            raise DiedError

    def _run(self, *steps: Coroutine[Any, Any, R]) -> list[R | Exception]:
        # Runs calls to their ends, several at a time where they meet on the way; each has a result or an error.
        if self._elements is None:
            return [_result(each) for each in steps]
        answers = run_together(steps, is_over=lambda: self._left is not None)
        if self._left is not None:
            self.world.value = self._left
        self.lives()
        return answers

    # --- what it does --------------------------------------------------------------------------

    def do(self, command: LrmsSubmit | LrmsCancel) -> None:
        """Takes a command."""
        self.queue.add(command)

    def compare(self) -> None:
        """Looks for the first time in this life."""
        (snapshot,) = self._run(self.lrms.snapshot())
        if isinstance(snapshot, LrmsUnavailableError):
            return
        if isinstance(snapshot, Exception):
            raise snapshot
        self._compared = True
        self._news(self.queue.seen_first(snapshot.jobs.items()))

    def poll(self) -> None:
        """Polls, and carries out what is due by that."""
        (none,) = self._run(self._poll())
        if none is not None:
            raise none

    async def _poll(self) -> None:
        self._in_poll = True
        try:
            seen = await self._poller.new()
            await self.lrms._after_poll(seen.orders)  # noqa: SLF001  # what follows a poll
        except LrmsUnavailableError:
            pass  # it was told, and the next poll repeats what was not done
        finally:
            self._in_poll = False

    async def meanwhile(self) -> None:
        """Lets a poll come while a call is under way, if that is chosen."""
        self.lives()
        if not self._in_poll and self.choices.pick("", ("a poll meanwhile", "meanwhile")):
            await self._poll()

    def call(self, *calls: Call) -> None:
        """Makes a call of the queue, or several at a time."""
        for call in calls:
            self._calls.remove(call)
        answers = self._run(*map(self._answer, calls))
        for call, answer in zip(calls, answers, strict=True):
            self._news(self._answered(call, answer))

    def _answered(
        self, call: Call, answer: LrmsRecord | bool | Exception | None
    ) -> Sequence[LrmsNews]:
        command = call.command
        if isinstance(answer, LrmsRefusedError):
            if not self.queue.asks_again(call, passing=answer.passing):
                return self.queue.refused(call, answer.reason)
            _, news = self.queue.put_off(call, answer.reason)
            self._paused.append((call, True))
            return news
        if isinstance(answer, LrmsUnavailableError):
            if isinstance(command, LrmsSubmit) and command.partner:
                raise AssertionError("there are no partners here") from answer
            _, news = self.queue.unanswered(call, self._now)
            self._paused.append((call, False))
            return news
        if isinstance(answer, Exception):
            raise answer
        return self.queue.answered(call, answer, self._now)

    async def _answer(self, call: Call) -> LrmsRecord | bool | None:
        # As `ExecutorDriver` does.
        command = call.command
        if call.step is LrmsStep.LOOK_UP:
            aside = isinstance(command, LrmsSubmit) and command.aside
            return None if aside else await self.lrms.look_up(call.key)
        if isinstance(command, LrmsCancel):
            if command.keep_place:
                return await self.lrms.leave(call.key)
            return await self.lrms.cancel(call.key, only_waiting=command.only_waiting)
        job = LrmsJob(call.key, 1, LIMIT_S, user=command.user, program=_SCRIPT)
        if command.aside:
            await self.lrms.keep_place(replace(job, aside=True))
        else:
            await self.lrms.submit(job)
        return None

    def again(self, call: Call, *, put_off: bool) -> None:
        """Ends the pause of a call that had no answer, or was refused for now."""
        self._paused.remove((call, put_off))
        if put_off:
            self._news(self.queue.resume(call))
        else:
            self.queue.again(call)

    def _told(self, events: Sequence[LrmsEvent]) -> None:
        self._news(self.queue.told(events))

    def _news(self, news: Sequence[LrmsNews]) -> None:
        for one in news:
            self._hear(plain(one))


def plain(news: LrmsNews) -> LrmsNews:
    """Returns news without moments, which decide nothing here."""
    match news:
        case base.Started():
            return replace(news, start_time=0.0)
        case base.Paused():
            return replace(news, time=0.0)
        case base.Ended():
            ran = min(news.end.run_time, 1.0)
            return replace(news, end=replace(news.end, end_time=0.0, run_time=ran))
    return news


def _no_timer(seconds: float) -> None:
    del seconds


def _result(steps: Coroutine[Any, Any, R]) -> R | Exception:
    # Runs what waits for nobody to its end.
    while True:
        try:
            steps.send(None)
        except StopIteration as end:
            result: R = end.value
            return result
        except Exception as error:  # noqa: BLE001  # who asked for it raises it
            return error


# --- around the adapter --------------------------------------------------------------------------


class InlineDisk(Disk):
    """Works at once."""

    async def do(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """See `Disk.do`."""
        return work(*args, **kwargs)


class Folders(Spool):
    """The jobs' folders and notes, as values; the daemon may die before each is written."""

    def __init__(self, step: QueueStep) -> None:
        self._step = step
        self._world = step.world

    def probe(self) -> None:
        """See `Spool.probe`."""

    def account(self, key: str) -> str:
        """See `Spool.account`."""
        del key
        return ""

    def prepare(self, key: str, program: Script, **more: Any) -> Any:
        """See `Spool.prepare`."""
        del program
        self._step.may_die("it prepares the job's folder")
        old = self._world.folder(key)
        marks = Marks(bool(more["run"]), limit_s=float(more["limit_s"]))
        self._world.keep(Folder(key, old.made + 1, marks, aside=ASIDE if more["aside"] else ""))
        return key

    def marks(self, key: str) -> Marks | None:
        """See `Spool.marks`."""
        return self._world.folder(key).marks

    def wanted(self, key: str) -> None:
        """See `Spool.wanted`."""
        self._step.may_die("it notes that the job is wanted")
        self._world.keep(with_marks(self._world.folder(key), run=True))

    def released(self, key: str, number: str) -> None:
        """See `Spool.released`."""
        self._step.may_die("it notes the release")
        folder = self._world.folder(key)
        self._world.keep(with_marks(folder, run=True, released=True, number=number))

    def holds(self, key: str, is_to: bool) -> None:
        """See `Spool.holds`."""
        folder = self._world.folder(key)
        if folder.marks is not None and folder.marks.held is not is_to:
            self._step.may_die("it notes the hold")
            self._world.keep(with_marks(folder, held=is_to))

    def released_all(self, numbers: Mapping[str, str]) -> set[str]:
        """See `Spool.released_all`."""
        for key, number in numbers.items():
            self.released(key, number)
        return set(numbers)

    def runs(self, key: str) -> list[str]:
        """See `Spool.runs`."""
        return ["0"] * (self._world.folder(key).begun >= 0)

    def evidence(self, key: str) -> Evidence:
        """See `Spool.evidence`."""
        folder = self._world.folder(key)
        begun, marks = folder.begun >= 0, folder.marks
        return Evidence(
            script=ScriptEnd(0, 1.0) if folder.ended else None,
            begun=None if not begun and marks is None else begun,
            begun_at=moment(folder.begun) if begun else None,
            released=marks is not None and marks.released,
            limit_s=0.0 if marks is None else marks.limit_s,
        )

    def drop(self, key: str) -> None:
        """See `Spool.drop`."""
        self._step.may_die("it deletes the job's folder")
        self._world.keep(Folder(key, 0))


class Controller:
    """Whether a controller that is asked something hears it, and is heard."""

    def __init__(self, step: QueueStep) -> None:
        self._step = step
        self._world = step.world
        self._pick = step.choices.pick

    def answers(self, what: str) -> None:
        """Returns if it can be asked something that changes nothing; else raises `LrmsUnavailableError`."""
        self._step.lives()
        if self._world.value.down:
            raise LrmsUnavailableError("the controller is down")
        if self._pick("", (f"no answer to {what}", "answer")):
            raise LrmsUnavailableError("timed out")

    def tells(self, what: str, carry_out: Callable[[], R]) -> R:
        """Has something carried out; without an answer raises `LrmsUnavailableError`."""
        self._step.may_die(what)
        if self._world.value.down:
            raise LrmsUnavailableError("the controller is down")
        word = self._pick(
            "", (f"{what} gets lost", "answer"), (f"the answer to {what} gets lost", "answer")
        )
        if word == f"{what} gets lost":
            raise LrmsUnavailableError("timed out")
        result = carry_out()
        if word:
            raise LrmsUnavailableError("timed out")
        self._step.may_die(f"the answer to {what}")
        return result


class TroubledSystem:
    """The batch system as the adapter has it (`BatchSystem`)."""

    forgets = True

    def __init__(self, step: QueueStep) -> None:
        self._step = step
        self._world = step.world
        self._pick = step.choices.pick
        self._controller = Controller(step)
        self._answers, self._tells = self._controller.answers, self._controller.tells

    def encode(self, key: str) -> str:
        """See `BatchSystem.encode`."""
        return _NAME + key

    @staticmethod
    def name_in(name: str) -> str:
        """Returns a name without what is the same in all."""
        return name.removeprefix(_NAME)

    def decode(self, name: str) -> str | None:
        """See `BatchSystem.decode`."""
        key = self.name_in(name)
        return None if key.endswith(MARKER) else key

    async def open(self) -> None:
        """See `BatchSystem.open`."""

    async def look(self) -> QueueSnapshot:
        """See `BatchSystem.look`."""
        began_at = self._step.clock()
        self._answers("a poll")
        jobs = self._world.value.jobs
        ways = [("an empty table", "partial")] if jobs else []
        if len(jobs) > 1:
            ways += [(f"a table without {job.number}", "partial") for job in jobs]
        word = self._pick("", *ways)
        if word == "an empty table":
            jobs = ()
        elif word:
            jobs = tuple(job for job in jobs if not word.endswith(f" {job.number}"))
        rows = tuple(job.row(self.encode(job.key)) for job in jobs)
        return QueueSnapshot(began_at, self._step.clock(), 8, 8, 8, 0, rows)

    async def submit(self, name: str, job: LrmsJob, folder: Any) -> str:
        """See `BatchSystem.submit`."""
        del folder
        key = self.name_in(name)
        place = "" if key == job.key else job.key
        self._step.may_die("it submits")
        refusals = ("it is refused for now", "refuse"), ("it is refused for good", "deny")
        refusal = self._pick("", *refusals)
        if refusal:
            passing = refusal == refusals[0][0]
            if not (passing or job.aside):
                self._world.deny(job.key)
            raise LrmsRefusedError("the partition does not take it", passing=passing)
        if self._world.value.down:
            raise LrmsUnavailableError("the controller is down")
        if self._pick("", ("the submission comes later", "late")):
            arriving = tuple(sorted([*self._world.value.arriving, (key, place)]))
            self._world.value = self._world.value._replace(arriving=arriving)
            await self._meanwhile(job)
            raise LrmsUnavailableError("timed out")
        number = self._tells("a submission", lambda: self._world.submit(key, place))
        await self._meanwhile(job)
        return str(number)

    async def _meanwhile(self, job: LrmsJob) -> None:
        if not job.aside:  # else a poll would wait for what has places changed
            await self._step.meanwhile()

    async def release(self, row: JobRow) -> None:
        """See `BatchSystem.release`."""
        if not self._tells("a release", lambda: self._release(row)):
            raise LrmsRefusedError("Invalid job id specified")

    async def release_all(self, rows: Sequence[JobRow]) -> None:
        """See `ReleasesMany.release_all`; it goes on where it is refused one."""
        refused = [row for row in rows if not self._tells("a release", partial(self._release, row))]
        if refused:
            raise LrmsRefusedError("Invalid job id specified")

    def _release(self, row: JobRow) -> bool:
        job = self._world.job(int(row.number))
        if job is not None and job.holder == OPERATOR:
            raise ViolationError(f"an operator holds job {job.key}, and it is released")
        return self._world.release(int(row.number))

    async def hold(self, row: JobRow) -> None:
        """See `BatchSystem.hold`."""
        if not self._tells("a hold", lambda: self._world.hold(int(row.number))):
            raise LrmsRefusedError("Job is no longer pending execution")

    async def cancel(self, row: JobRow) -> bool:
        """See `BatchSystem.cancel`."""
        done = self._tells("a cancellation", lambda: self._cancel(row))
        return done is not None

    def _cancel(self, row: JobRow) -> bool | None:
        key, number = self.name_in(row.name), int(row.number)
        job = self._world.job(number)
        only = row.phase is LrmsPhase.HELD
        runs = job is not None and job.key == key and job.phase == RUNS and not only
        if runs and self._world.has_script(number) and not self.wanted(key):
            raise ViolationError(f"job {key} runs, and is ended, and nobody has wanted that")
        return self._world.cancel(number, key, only_waiting=only)

    def wanted(self, key: str) -> bool:
        """Returns whether somebody has wanted a job's end."""
        return self._step.wanted(key)

    async def cancel_all(self, rows: Sequence[JobRow]) -> None:
        """See `BatchSystem.cancel_all`."""
        for row in rows:
            await self.cancel(row)

    async def held_since_submission(self, row: JobRow, *, released: bool) -> bool:
        """See `BatchSystem.held_since_submission`."""
        del released
        self._answers("whose hold it is")
        job = self._world.job(int(row.number))
        return job is not None and job.holder == SUBMISSION

    async def ending(self, question: Question) -> Ending | None:
        """See `BatchSystem.ending`: there are no records."""
        if question.row is None:
            return None
        job = self._world.job(int(question.number))
        name = None if job is None else self.encode(job.key)
        return job.ending() if job is not None and name == question.name else None

    async def knows(self, question: Question) -> Ending | bool | None:
        """See `BatchSystem.knows`."""
        if not question.number:
            return None
        self._answers("whether it has the job")
        if self._pick("", ("it does not say whether it has the job", "partial")):
            return None
        job = self._world.job(int(question.number))
        if job is None or self.encode(job.key) != question.name:
            return False
        return job.ending() or True


class Below(NamedTuple):
    """What the adapter has below it.

    Attributes:
        system: makes the batch system.
        folders: makes the jobs' folders.
        places: whether it keeps places.
        arrays: whether it is the driver of Slurm, which takes arrays.
    """

    system: Callable[[QueueStep], Any] = TroubledSystem
    folders: Callable[[QueueStep], Folders] = Folders
    places: bool = False
    arrays: bool = False
