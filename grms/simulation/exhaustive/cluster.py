"""A batch system in trouble, as a value: a controller that acknowledges, forgets and hides, and nodes that go on.

The controller writes down what it knows from time to time. When it dies it knows what it wrote down last, which may be
from before a submission, a release, a start, an end or a cancellation, and gives numbers away again; the nodes do not
notice. Each job's folder says what its script has done, but only the present folder: one that was made anew says
nothing of what was before. Time has three classes: just now, long enough for what was acknowledged to be written down,
and beyond every limit.

A job may be set aside as a marker: it gets another name and a start far ahead. A file in its folder then has its launcher
wait, or end, or go on in the folder of a later submission (`Folder.aside`).

Jobs may come together as an array. Until an element is parted from it, by whatever is asked for it alone, it has no record of its
own: who ends it takes it from the array without a trace, and who ends all leaves one row without an index.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

from grms.lrms.base import LrmsEnd, LrmsPhase
from grms.lrms.batch.queue_snapshot import Ending, JobRow
from grms.lrms.exit_status import NOT_HERE
from grms.lrms.job_notes import KeptPlace, Marks
from grms.util.outcomes import Outcome

SITE_NAME: Final = "a"

NOW: Final = 1000.0
"""When each step begins, seconds; moments are ages between steps."""

SETTLE_S: Final = 6.0
LIMIT_S: Final = 10.0
GRACE_S: Final = 10.0
AGES: Final = (0.0, SETTLE_S, 30.0)
"""Classes of ages, seconds: just now, written down, beyond a limit and the grace after it."""

HELD: Final = "held"
WAITS: Final = "waits"
RUNS: Final = "runs"
DONE: Final = "done"
FENCED: Final = "fenced"
CANCELLED: Final = "cancelled"
TIMEOUT: Final = "timeout"
FAILED: Final = "failed"
TURNED_AWAY: Final = "turned away"
"""Its launcher has ended before the script, as the job is elsewhere."""

OVER: Final = frozenset({DONE, FENCED, CANCELLED, TIMEOUT, FAILED, TURNED_AWAY})

MARKER: Final = ":away"
"""Ends the name of a marker."""

ASKED: Final = "asked"
ASIDE: Final = "aside"
"""What the file says that has a launcher wait, and end; else the key in whose folder it is to go on."""

SUBMISSION: Final = "submission"
OPERATOR: Final = "operator"
SITE: Final = "site"

_CODES: Final = {DONE: 0, FENCED: 113, FAILED: 127, TURNED_AWAY: NOT_HERE}
"""How launchers end."""

_PHASES: Final = {
    HELD: LrmsPhase.HELD,
    WAITS: LrmsPhase.WAITING,
    RUNS: LrmsPhase.RUNNING,
}


def age_class(age: float) -> float:
    """Returns the class of an age, seconds."""
    return max((each for each in AGES if each <= age), default=0.0)


def moment(age: float) -> float:
    """Returns when something of an age was, seconds."""
    return NOW - age - 0.5


class Element(NamedTuple):
    """What an element of an array has of that.

    Attributes:
        array: number of the array.
        task: its index there.
        parted: it has a record of its own.
        unnamed: it has the name of the array still.
    """

    array: int
    task: int
    parted: bool = False
    unnamed: bool = True


ALL: Final = "*"
"""Ends the name of an array."""


def array_name(key: str) -> str:
    """Returns the name of the array in which a job is."""
    return f"{key.rpartition('/')[0]}/{ALL}"


def index_of(key: str) -> int:
    """Returns the index in an array of the first submission of a job."""
    return int(key.split("/")[2])


class Job(NamedTuple):
    """A job as the controller knows it.

    Attributes:
        key: the name that it has there.
        holder: who holds it: its submission, an operator, or the site again (`SUBMISSION`, `OPERATOR`, `SITE`); empty for
            nobody.
        submitted, started: ages; -1 of what was not.
        came_as: the key in whose folder its launcher begins, if it has another name by now; else empty.
        far: its start is far ahead.
        element: what it has of an array; `None` if it came alone.
    """

    number: int
    key: str
    phase: str = HELD
    holder: str = SUBMISSION
    submitted: float = 0.0
    started: float = -1.0
    came_as: str = ""
    far: bool = False
    element: Element | None = None

    @property
    def shown_number(self) -> str:
        """The number as tables have it."""
        element = self.element
        return str(self.number) if element is None else f"{element.array}_{element.task}"

    @property
    def shown_key(self) -> str:
        """The name that it has there, which may be that of an array."""
        unnamed = self.element is not None and self.element.unnamed
        return array_name(self.key) if unnamed else self.key

    @property
    def is_unparted(self) -> bool:
        """Whether it has no record of its own."""
        return self.element is not None and not self.element.parted

    @property
    def live(self) -> bool:
        """Whether it may start, or runs."""
        return self.phase not in OVER

    @property
    def place(self) -> str:
        """The key in whose folder its launcher begins."""
        return self.came_as or self.key

    def named(self, key: str) -> "Job":
        """Returns the job with another name."""
        place = self.place
        return self._replace(key=key, came_as="" if place == key else place)

    def end(self) -> LrmsEnd | None:
        """Returns how it has ended, as far as the controller knows."""
        if self.live:
            return None
        ran = 0.0 if self.started < 0 else 1.0
        code = _CODES.get(self.phase)
        if code is not None:
            return LrmsEnd(Outcome.FAILED if code else Outcome.COMPLETED, NOW, ran, code)
        if self.phase == TIMEOUT:
            return LrmsEnd(Outcome.TIMEOUT, NOW, LIMIT_S)
        return LrmsEnd(Outcome.CANCELLED, NOW, ran)

    def ending(self) -> Ending | None:
        """Returns the same with its start."""
        end = self.end()
        return None if end is None else Ending(self._start(), end)

    def _start(self) -> float | None:
        return None if self.started < 0 else moment(self.started)

    def row(self, name: str) -> JobRow:
        """Returns its row in a table, which says of a failure no more than that."""
        end, exact = self.end(), self.phase not in {FENCED, FAILED, TIMEOUT, TURNED_AWAY}
        if end is not None and not exact:
            end = replace(end, exit_code=None)
        return JobRow(
            name,
            str(self.number),
            moment(self.submitted),
            _PHASES.get(self.phase, LrmsPhase.ENDED),
            1,
            self._start(),
            end,
            exact,
            reason=FAR if self.far and self.phase == WAITS else "",
            can_start=self.phase == WAITS and not self.far,
        )


FAR: Final = "BeginTime"
"""The reason of a job that waits for its start."""


class Process(NamedTuple):
    """What runs on a node: the launcher of a job in one of its folders, and below it the script unless that is skipped.

    Attributes:
        key: in whose folder its launcher has begun.
        folder: which of the folders of that key, or of `place`, it is in.
        place: the key in whose folder it is by now, if that is another.
        waits: the launcher waits until it is known whether the job is set aside.
    """

    number: int
    key: str
    folder: int
    skips: bool
    place: str = ""
    waits: bool = False


class Folder(NamedTuple):
    """A job's folder, and the notes beside it.

    Attributes:
        made: how often it was made anew; 0 for none there.
        begun: age of the begin of its script; -1 for none.
        ended: the script has run to its end.
        aside: what has a launcher wait or end (`ASKED`, `ASIDE`), or go on elsewhere; empty for nothing.
    """

    key: str
    made: int = 0
    marks: Marks | None = None
    begun: float = -1.0
    ended: bool = False
    aside: str = ""


HELD_THERE: Final = "a place is held"
HAS: Final = "has it"
RAN_THERE: Final = "has run it"
SENT_HOME: Final = "has sent it home"
ENDED_THERE: Final = "has ended it"
DECLINED: Final = "has declined it"
"""Where a job stands at a partner."""


class Guest(NamedTuple):
    """A job at a partner, which answers at once, and reports an end when it likes.

    Attributes:
        offer: the number of the last offer of it.
        phase: where it stands there.
        reported: its home has heard how it has ended.
    """

    offer: tuple[int, int]
    phase: str
    reported: bool = False


class Program(NamedTuple):
    """What has become of what a user wants run, in truth.

    Attributes:
        launched: how often a batch system has started it.
        begun: how often its script has begun.
        finished: it has run to its end.
        by_hand: somebody has ended or requeued it, at the batch system.
        denied: the batch system has refused it for good.
        ended_early: somebody has ended it at the batch system before that had started it.
        guest: it at a partner; `None` if it was never offered.
    """

    launched: int = 0
    begun: int = 0
    finished: bool = False
    by_hand: bool = False
    denied: bool = False
    ended_early: bool = False
    guest: Guest | None = None

    @property
    def away_word(self) -> str:
        """What the partner has done with it."""
        return "" if self.guest is None else self.guest.phase

    @property
    def is_away(self) -> bool:
        """Whether a partner has it, or has run it to its end."""
        return self.guest is not None and self.guest.phase in {HAS, RAN_THERE}


Written = tuple[tuple[Job, ...], int]
"""What a controller knows after a crash: jobs and next number."""

NOTHING_WRITTEN: Final[Written] = ((), 1)


class Cluster(NamedTuple):
    """A batch system with its nodes and the jobs' folders.

    Attributes:
        jobs: as the controller knows them.
        next: number of the next one.
        written: what it knows after a crash: jobs and next number.
        arriving: names of submissions on their way, and in whose folders they begin.
        places: notes of places that are kept, by key.
        forgot: how often a crash has undone something.
        down: the controller is not there.
    """

    programs: tuple[Program, ...]
    jobs: tuple[Job, ...] = ()
    next: int = 1
    written: Written = NOTHING_WRITTEN
    arriving: tuple[tuple[str, str], ...] = ()
    places: tuple[tuple[str, KeptPlace], ...] = ()
    processes: tuple[Process, ...] = ()
    folders: tuple[Folder, ...] = ()
    forgot: int = 0
    down: bool = False


def program_of(key: str) -> int:
    """Returns the place of the program that a job runs."""
    return int(key.removesuffix(MARKER).split("/")[2]) - 1


def key_of(at: int) -> str:
    """Returns the key of the first submission of a program, by its place."""
    return f"{SITE_NAME}/1/{at + 1}"


@dataclass
class World:
    """A cluster while something happens to it.

    Attributes:
        value: what it is by now.
        once: a second run of a job skips the script.
        looks: launchers look whether their jobs are set aside.
        waits: launchers wait until that is known; else they end.
    """

    value: Cluster
    once: bool = True
    looks: bool = True
    waits: bool = True

    # --- parts ---------------------------------------------------------------------------------

    def job(self, number: int) -> Job | None:
        """Returns a job by its number."""
        return next((job for job in self.value.jobs if job.number == number), None)

    def _put(self, job: Job) -> None:
        jobs = tuple(job if one.number == job.number else one for one in self.value.jobs)
        self.value = self.value._replace(jobs=jobs)

    def folder(self, key: str) -> Folder:
        """Returns a job's folder."""
        return next((one for one in self.value.folders if one.key == key), Folder(key))

    def keep(self, folder: Folder) -> None:
        """Replaces a job's folder."""
        others = [one for one in self.value.folders if one.key != folder.key]
        self.value = self.value._replace(folders=tuple(sorted([*others, folder])))

    def note_place(self, key: str, place: KeptPlace | None) -> None:
        """Keeps the note of a place, or deletes it."""
        others = [one for one in self.value.places if one[0] != key]
        kept = others if place is None else [*others, (key, place)]
        self.value = self.value._replace(places=tuple(sorted(kept, key=lambda one: one[0])))

    def at_partner(self, key: str, guest: Guest | None, *, ran: bool = False) -> None:
        """Notes where a job stands at a partner; `ran`: it has run to its end there."""
        self._program(key, lambda one: one._replace(guest=guest, finished=one.finished or ran))

    def _program(self, key: str, change: Callable[[Program], Program]) -> None:
        at = program_of(key)
        programs = list(self.value.programs)
        programs[at] = change(programs[at])
        self.value = self.value._replace(programs=tuple(programs))

    # --- what it is told -----------------------------------------------------------------------

    def submit(self, key: str, place: str = "") -> int:
        """Takes a job, held; returns its number. A marker's launcher begins in the folder of `place`."""
        number = self.value.next
        job = Job(number, key, came_as=place, far=key.endswith(MARKER))
        jobs = (*self.value.jobs, job)
        self.value = self.value._replace(jobs=jobs, next=number + 1)
        return number

    def submit_array(self, keys: Sequence[str]) -> int:
        """Takes jobs as an array, held; returns its number."""
        array = self.value.next
        elements = (Element(array, index_of(key)) for key in keys)
        jobs = (
            Job(number, key, element=element)
            for number, (key, element) in enumerate(zip(keys, elements, strict=True), array)
        )
        self.value = self.value._replace(jobs=(*self.value.jobs, *jobs), next=array + len(keys))
        return array

    def part(self, number: int, *, named: bool = False) -> None:
        """Gives an element a record of its own, `named` with its own name."""
        job = self.job(number)
        assert job is not None
        if job.element is not None:
            unnamed = job.element.unnamed and not named
            self._put(job._replace(element=job.element._replace(parted=True, unnamed=unnamed)))

    def unparted(self, array: int) -> list[Job]:
        """Returns the elements of an array that have no records of their own."""
        elements = ((job, job.element) for job in self.value.jobs)
        return [job for job, of in elements if of and of.array == array and not of.parted]

    def leave_array(self, those: Sequence[Job]) -> None:
        """Ends elements of an array that have no records of their own, and leaves a row if these were the last."""
        assert those[0].element is not None
        array = those[0].element.array
        jobs = tuple(job for job in self.value.jobs if job not in those)
        self.value = self.value._replace(jobs=jobs)
        if not self.unparted(array) and self.job(array) is None:
            row = Job(array, array_name(those[0].key), CANCELLED, "", those[0].submitted)
            self.value = self.value._replace(jobs=(*jobs, row))

    def deny(self, key: str) -> None:
        """Refuses a job for good."""
        self._program(key, lambda one: one._replace(denied=True))

    def arrive(self, key: str, place: str) -> None:
        """Takes a job whose submission comes late."""
        arriving = list(self.value.arriving)
        arriving.remove((key, place))
        self.value = self.value._replace(arriving=tuple(arriving))
        if key.endswith(ALL):
            self.submit_array(place.split())
        else:
            self.submit(key, place)

    def release(self, number: int) -> bool:
        """Lets a held job start; returns whether there is one that has not ended."""
        job = self.job(number)
        if job is not None and job.phase == HELD:
            self._put(job._replace(phase=WAITS, holder=""))
            self.part(number)
        return job is not None and job.live

    def change(self, number: int, *, key: str = "", far: bool | None = None) -> bool:
        """Gives a job another name or start; returns whether all of it was done, as Slurm does a part of it."""
        job = self.job(number)
        if job is None or not job.live:
            return False
        job = job.named(key) if key else job
        pending = job.phase != RUNS
        if far is not None and pending:
            job = job._replace(far=far)
        self._put(job)
        return far is None or pending

    def hold(self, number: int) -> bool:
        """Holds a job that waits; returns whether there is one that does."""
        job = self.job(number)
        if job is None or job.phase not in {WAITS, HELD}:
            return False
        self._put(job._replace(phase=HELD, holder=job.holder or SITE))
        self.part(number)
        return True

    def cancel(self, number: int, key: str, *, only_waiting: bool) -> bool | None:
        """Ends a job; returns whether it has ended by that, `None` if there is no such job."""
        job = self.job(number)
        if job is None or job.key != key:
            return None
        if not job.live or (only_waiting and job.phase == RUNS):
            return False
        self._end(job, CANCELLED)
        self._killed(job)
        return True

    def _end(self, job: Job, phase: str) -> None:
        self._put(job._replace(phase=phase, holder=""))

    def _killed(self, job: Job) -> None:
        processes = (p for p in self.value.processes if not _is_of(p, job))
        self.value = self.value._replace(processes=tuple(processes))

    # --- what happens by itself ------------------------------------------------------------------

    def start(self, number: int) -> None:
        """Starts a job that waits."""
        job = self.job(number)
        assert job is not None
        self._put(job._replace(phase=RUNS, started=0.0))
        self._launched(Process(number, job.place, self.folder(job.place).made, skips=False))

    def goes_on(self, process: Process) -> None:
        """Lets a launcher that waits look again."""
        processes = list(self.value.processes)
        processes.remove(process)
        self.value = self.value._replace(processes=tuple(processes))
        self._launched(process._replace(waits=False))

    def _launched(self, process: Process) -> None:
        # What a launcher does until the script begins, or it waits or ends.
        folder = self.folder(process.place or process.key)
        aside = folder.aside if self.looks and folder.made == process.folder else ""
        if aside == ASKED and self.waits:
            self._put_process(process._replace(waits=True))
            return
        if aside in {ASKED, ASIDE}:
            self._launcher_ends(process, TURNED_AWAY)
            return
        if aside:
            self._launched(process._replace(place=aside, folder=self.folder(aside).made))
            return
        self._program(process.key, lambda one: one._replace(launched=one.launched + 1))
        if not folder.made or folder.made != process.folder:
            self._launcher_ends(process, FAILED)
            return
        skips = self.once and folder.begun >= 0
        if not skips:
            self._program(process.key, lambda one: one._replace(begun=one.begun + 1))
            self.keep(folder._replace(begun=0.0, ended=False))
        self._put_process(process._replace(skips=skips))

    def _put_process(self, process: Process) -> None:
        self.value = self.value._replace(processes=tuple(sorted([*self.value.processes, process])))

    def _launcher_ends(self, process: Process, phase: str) -> None:
        job = self.job(process.number)
        if job is not None and _is_of(process, job) and job.phase == RUNS:
            self._end(job, phase)

    def process_ends(self, process: Process, *, killed: bool = False) -> None:
        """Ends what runs on a node."""
        processes = list(self.value.processes)
        processes.remove(process)
        self.value = self.value._replace(processes=tuple(processes))
        if killed:
            return
        if not process.skips:
            self._program(process.key, lambda one: one._replace(finished=True))
            folder = self.folder(process.place or process.key)
            if folder.made == process.folder:
                self.keep(folder._replace(ended=True))
        self._launcher_ends(process, FENCED if process.skips else DONE)

    def has_script(self, number: int) -> bool:
        """Returns whether the script of a job runs, and not only its launcher."""
        job = self.job(number)
        return job is not None and any(
            _is_of(one, job) and not one.waits for one in self.value.processes
        )

    def is_orphan(self, process: Process) -> bool:
        """Returns whether the controller knows nothing of what runs on a node."""
        job = self.job(process.number)
        return job is None or not _is_of(process, job) or job.phase != RUNS

    def times_out(self, number: int) -> None:
        """Ends a job at its limit."""
        job = self.job(number)
        assert job is not None
        self._end(job, TIMEOUT)
        self._killed(job)

    def ended_by_hand(self, number: int) -> None:
        """An operator ends a job; who ends a marker does not end the job, which is elsewhere."""
        job = self.job(number)
        assert job is not None
        marker = job.key.endswith(MARKER)
        if not (marker and self.value.programs[program_of(job.key)].is_away):
            self._has_ended_by_hand(job, early=not marker)
        if job.is_unparted:
            self.leave_array([job])
            return
        self._end(job, CANCELLED)
        self._killed(job)

    def _has_ended_by_hand(self, job: Job, *, early: bool = True) -> None:
        def change(one: Program) -> Program:
            before = early and not one.launched
            return one._replace(by_hand=True, ended_early=one.ended_early or before)

        self._program(job.key, change)

    def array_ended_by_hand(self, array: int) -> None:
        """An operator ends an array."""
        for job in self._of_array(array):
            if job.live and not job.is_unparted:
                self.ended_by_hand(job.number)
        those = self.unparted(array)
        for job in those:
            self._has_ended_by_hand(job)
        if those:
            self.leave_array(those)

    def array_held_by_hand(self, array: int) -> None:
        """An operator holds what waits of an array."""
        for job in self._of_array(array):
            if job.phase == WAITS:
                self.held_by_hand(job.number)

    def _of_array(self, array: int) -> list[Job]:
        return [job for job in self.value.jobs if job.element and job.element.array == array]

    def requeued(self, number: int) -> None:
        """An operator starts a job anew."""
        job = self.job(number)
        assert job is not None
        self._program(job.key, lambda one: one._replace(by_hand=True))
        self._put(job._replace(phase=WAITS, started=-1.0))
        self._killed(job)

    def started_by_hand(self, number: int) -> None:
        """An operator gives a job a start now."""
        self.change(number, far=False)

    def held_by_hand(self, number: int) -> None:
        """An operator holds a job that waits."""
        job = self.job(number)
        assert job is not None
        self._put(job._replace(phase=HELD, holder=OPERATOR))

    def released_by_hand(self, number: int) -> None:
        """An operator releases a job."""
        self.release(number)

    def write(self) -> None:
        """Writes down what the controller knows."""
        self.value = self.value._replace(written=(self.value.jobs, self.value.next))

    def dies(self) -> None:
        """Ends the controller, and with it what it has not written down."""
        jobs, number = self.value.written
        forgot = self.value.forgot + (jobs != self.value.jobs)
        self.value = self.value._replace(jobs=jobs, next=number, forgot=forgot, down=True)

    def comes_up(self) -> None:
        """Starts the controller."""
        self.value = self.value._replace(down=False)

    def forget(self, number: int) -> None:
        """Removes a job that has ended from the controller's memory.

        How it has ended is nobody's to know any more, nor by the last of an array what has become of the others.
        """
        job = self.job(number)
        assert job is not None
        of_array = job.element is not None or job.key.endswith(ALL)
        for at in range(len(self.value.programs)):
            if of_array or at == program_of(job.key):  # a later submission of it, too
                self._program(key_of(at), lambda one: one._replace(ended_early=False))
        jobs = tuple(job for job in self.value.jobs if job.number != number)
        self.value = self.value._replace(jobs=jobs)
        written, following = self.value.written
        written = tuple(job for job in written if job.number != number)
        self.value = self.value._replace(written=(written, following))

    def passes(self, age: float, *, writes: bool) -> None:
        """Lets time pass until what was just now has an age; the controller has written everything down by then.

        Without `writes` it never forgets anything, and what it writes does not matter.
        """
        if writes and not self.value.down:
            self.write()
        jobs = tuple(_aged(job, age) for job in self.value.jobs)
        written = tuple(_aged(job, age) for job in self.value.written[0])
        folders = tuple(
            one._replace(begun=max(one.begun, age)) if one.begun >= 0 else one
            for one in self.value.folders
        )
        self.value = self.value._replace(
            jobs=jobs, written=(written, self.value.written[1]), folders=folders
        )


def _is_of(process: Process, job: Job) -> bool:
    # Whether a process is that of a job, as the nodes have it.
    return (process.number, process.key) == (job.number, job.place)


def _aged(job: Job, age: float) -> Job:
    started = max(job.started, age) if job.started >= 0 else job.started
    return job._replace(submitted=max(job.submitted, age), started=started)


def with_marks(folder: Folder, **changes: object) -> Folder:
    """Returns a folder with other notes; those of a job that was submitted by an older site say that it is to run."""
    marks = folder.marks or Marks(run=True)
    return folder._replace(marks=replace(marks, **changes))  # type: ignore[arg-type]  # by name


ClusterStep = tuple[str, Callable[[World], None], str]
"""What may happen to a cluster by itself: in words, what it does, and which fault it is; empty for none."""


def cluster_steps(cluster: Cluster, *, forgets: bool) -> Iterator[ClusterStep]:
    """Yields what may happen to a cluster by itself; `forgets`: its controller may die."""
    for process in cluster.processes:
        orphan = World(cluster).is_orphan(process)
        if process.waits:
            if _may_go_on(process, cluster):
                goes_on = partial(World.goes_on, process=process)
                yield f"the launcher of {process.key} has waited long enough", goes_on, ""
            continue
        skips = ", which skips the script," if process.skips else ""
        what = f"process of {process.key} in folder {process.folder}{skips}"
        if not cluster.down or orphan:
            yield f"the {what} ends", partial(World.process_ends, process=process), ""
        if orphan and not cluster.down:
            kills = partial(World.process_ends, process=process, killed=True)
            yield f"a node ends the {what}", kills, "orphan"
    if cluster.down:
        yield "the controller starts", World.comes_up, ""
        return
    yield "the controller dies", World.dies, "undo"
    if forgets and (cluster.jobs, cluster.next) != cluster.written:
        yield "the controller writes down what it knows", World.write, ""
    for key, place in sorted(set(cluster.arriving)):
        yield f"a submission of {key} comes", partial(World.arrive, key=key, place=place), ""
    for job in cluster.jobs:
        yield from _job_steps(job, cluster)
    yield from _array_steps(cluster)


def _array_steps(cluster: Cluster) -> Iterator[ClusterStep]:
    for job in cluster.jobs:
        if job.is_unparted:
            parts = partial(World.part, number=job.number)
            yield f"an operator changes job {job.shown_number}", parts, "part"
    live = ((job.element.array, job.phase) for job in cluster.jobs if job.element and job.live)
    phases: dict[int, list[str]] = {}
    for array, phase in live:
        phases.setdefault(array, []).append(phase)
    for array, those in phases.items():
        if len(those) > 1:
            ends = partial(World.array_ended_by_hand, array=array)
            yield f"an operator ends array {array}", ends, "end by hand"
        if those.count(WAITS) > 1:
            holds = partial(World.array_held_by_hand, array=array)
            yield f"an operator holds array {array}", holds, "hold"


def _may_go_on(process: Process, cluster: Cluster) -> bool:
    folder = World(cluster).folder(process.place or process.key)
    return folder.aside != ASKED or folder.made != process.folder


def _job_steps(job: Job, cluster: Cluster) -> Iterator[ClusterStep]:
    number = job.number
    what = f"job {job.shown_number} ({job.key})"
    if job.far and job.live:
        by_hand = partial(World.started_by_hand, number=number)
        yield f"an operator gives {what} a start now", by_hand, "start by hand"
    if job.phase == WAITS and not job.far:
        yield f"{what} starts", partial(World.start, number=number), ""
    if job.phase == WAITS:
        yield f"an operator holds {what}", partial(World.held_by_hand, number=number), "hold"
    elif job.holder == OPERATOR:
        yield f"an operator releases {what}", partial(World.released_by_hand, number=number), ""
    elif job.phase == RUNS:
        again = partial(World.requeued, number=number)
        yield f"an operator has {what} started anew", again, "requeue"
        lost = not any(_is_of(one, job) for one in cluster.processes)
        if lost and job.started >= AGES[2]:
            yield f"{what} is over its limit", partial(World.times_out, number=number), ""
    elif not job.live and job.submitted > 0:
        yield f"the controller forgets {what}", partial(World.forget, number=number), ""
    if job.live:
        yield f"an operator ends {what}", partial(World.ended_by_hand, number=number), "end by hand"
