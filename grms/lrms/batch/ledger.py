"""What is known of the jobs of one batch system, and what a new look at it means. Pure.

A look is compared with what is known: what has happened since becomes events, and what is not as it
was ordered becomes orders to repeat. Three lists meet here, after a restart too: what this site
wants (`want`), what the batch system had at the last look, and what it has now.

Hold first, release last. A batch system like Slurm answers that it has a job and forgets it when it
crashes within seconds; it forgets cancels and releases likewise. So every job is submitted held. It
is released when the submission is older than such a crash can undo (`settle_s`) and a look has shown
it, once. What is gone while it was held has certainly not started, and may be submitted again; a
second copy, of a submission that arrived late, is held as well and is cancelled; a release that was
undone leaves a job that waits for the next look.
"""

import enum
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from grms.lrms.batch.table import Ending, JobRow, Question, Table
from grms.lrms.launched import ScriptEnd, ended_itself, true_end
from grms.lrms.port import (
    Accepted,
    Appeared,
    Ended,
    Hindered,
    Lost,
    LrmsEnd,
    LrmsEvent,
    LrmsLoad,
    LrmsOutcome,
    LrmsPhase,
    LrmsRecord,
    Requeued,
    Started,
    Vanished,
)
from grms.lrms.slips import Slips

MISSING_LOOKS: Final = 2
"""A job is gone when so many looks one after the other have not shown it."""

REMEMBERED: Final = 50_000
"""Ended jobs that are remembered; the oldest are forgotten first."""

_KILLED = frozenset((9, 15))
"""Signals with which batch systems end jobs: SIGKILL, SIGTERM."""

_HAS_STARTED = frozenset((LrmsPhase.RUNNING, LrmsPhase.SUSPENDED, LrmsPhase.COMPLETING))
_NOT_STARTED = frozenset((LrmsPhase.WAITING, LrmsPhase.HELD))


class Want(enum.Enum):
    """What this site wants of a job.

    NOTHING: nobody has said; the job was there before this process.
    HELD: that it waits for a release.
    RUN: that it runs.
    GONE: that it ends.
    """

    NOTHING = "nothing"
    HELD = "held"
    RUN = "run"
    GONE = "gone"


class Act(enum.Enum):
    """What is to be done at the batch system.

    RELEASE: lift the hold with which the job was submitted.
    ASK: find out whether the hold is that one, and then lift it.
    CANCEL: end the job.
    """

    RELEASE = "release"
    ASK = "ask"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Order:
    """Something to be done at the batch system.

    Attributes:
        act: what.
        key: of the job; empty for a copy that has no key of its own.
        row: which job.
    """

    act: Act
    key: str
    row: JobRow


@dataclass(slots=True)
class FollowedJob:
    """A job that is followed.

    Attributes:
        key: of the job.
        want: what this site wants of it.
        number: the batch system's id; empty while it is not known whether it was taken.
        acknowledged_at: when that was, seconds.
        row: what the last look that showed it has shown.
        start_time: that was told; None where none was, or it waits again.
        accepted: whether that was told.
        released_at: when a release was acknowledged, seconds; None where none was.
        left_hold: a look has shown it otherwise than held.
        hold_stays: somebody else holds it.
        end: how it ended, once told.
        missing: looks one after the other that have not shown it.
        missing_since: when the first of them began, seconds.
        ran_again: runs that nobody had ordered, as far as they were noticed.
        came_back: that it is there after its end was noticed.
        hindered: what it waits for, where that is no room, as was told.
    """

    key: str
    want: Want
    number: str = ""
    acknowledged_at: float = 0.0
    row: JobRow | None = None
    start_time: float | None = None
    accepted: bool = False
    released_at: float | None = None
    left_hold: bool = False
    hold_stays: bool = False
    end: LrmsEnd | None = None
    missing: int = 0
    missing_since: float = 0.0
    ran_again: int = 0
    came_back: bool = False
    hindered: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a look has shown.

    Attributes:
        events: what has happened.
        questions: jobs that have ended; how is to be found in records.
        orders: what is to be done again.
    """

    events: list[LrmsEvent] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)


class JobLedger:
    """The jobs of one batch system.

    Attributes:
        slips: how often the batch system has not kept what it said.
        slipped: the same one by one, each with the key of its job; who writes them down empties it.

    Args:
        encode: name of a key at the batch system.
        decode: key of a name; None of a name that is not this site's.
        settle_s: age in seconds at which a submission can no longer be forgotten.
        records_s: seconds after which records say how a job has ended that is gone.
    """

    def __init__(
        self,
        encode: Callable[[str], str],
        decode: Callable[[str], str | None],
        *,
        settle_s: float,
        records_s: float = 0.0,
    ) -> None:
        self._encode = encode
        self._decode = decode
        self._settle_s = settle_s
        self._records_s = records_s
        self._jobs: dict[str, FollowedJob] = {}
        self._over: OrderedDict[str, FollowedJob] = OrderedDict()
        self.slips = Slips()
        self.slipped: list[tuple[str, str]] = []

    def job(self, key: str) -> FollowedJob | None:
        """Returns what is known of a job; None of one that was lost or never there."""
        return self._jobs.get(key) or self._over.get(key)

    def gone(self, key: str, number: str, at: float) -> None:
        """Notes a job that was released before this process began, and is in no table any more.

        Args:
            key: of the job.
            number: the batch system's id.
            at: moment of the look that has not shown it, seconds.
        """
        self._jobs[key] = FollowedJob(
            key,
            Want.RUN,
            number,
            accepted=True,
            released_at=0.0,
            missing=MISSING_LOOKS,
            missing_since=at - self._records_s,
        )

    def intended(self, key: str, want: Want) -> FollowedJob:
        """Notes that a job is about to be submitted, and returns it."""
        job = self._jobs[key] = FollowedJob(key, want)
        return job

    def acknowledged(self, key: str, number: str, at: float) -> None:
        """Notes that the batch system has a job.

        Args:
            key: of the job.
            number: the batch system's id.
            at: when it was acknowledged, seconds.
        """
        job = self._jobs[key]
        job.number, job.acknowledged_at = number, at

    def refused(self, key: str) -> None:
        """Notes that the batch system has not taken a job."""
        self._jobs.pop(key, None)

    def released(self, key: str, at: float, *, again: bool = False) -> None:
        """Notes that the hold with which a job was submitted was lifted.

        Args:
            key: of the job.
            at: when, seconds.
            again: it had begun to run before.
        """
        job = self._jobs.get(key)
        if job is not None:
            if job.released_at is not None:
                self._slip("release_undone", key)
            if again:
                self._ran_again(job)
            job.released_at = at

    def run_forgotten(self, key: str, ending: Ending | None, at: float) -> list[LrmsEvent]:
        """Ends a job that is held as if it had never been released, and has begun to run.

        The batch system has forgotten the run in a crash, and will end it where it goes on. How far
        it came nobody can say, so that it is not repeated.

        Args:
            key: of the job.
            ending: what records say of that run; None where they say nothing.
            at: seconds.

        Returns:
            What is to be told of it; nothing where it was told that it has ended.
        """
        job = self._jobs.get(key)
        if job is None:
            return []
        self._slip("run_forgotten", key)
        job.want, job.came_back = Want.GONE, True
        if ending is not None:
            return self._ended(job, ending)
        self._jobs.pop(key)
        self._remember(job)
        text = f"job {job.number} had begun to run, and the batch system has forgotten it"
        return [Vanished(key, at, text)]

    def has_run(self, key: str, unordered: int) -> None:
        """Notes how often a job that has ended has run without anybody's order, by its own word."""
        job = self._over.get(key)
        if job is None and unordered:
            job = FollowedJob(key, Want.NOTHING)  # of an older life of this process
            self._remember(job)
        while job is not None and job.ran_again < unordered:
            self._ran_again(job)

    def hold_stays(self, key: str) -> None:
        """Notes that a job is held by somebody else."""
        job = self._jobs.get(key)
        if job is not None:
            job.hold_stays = True

    def settled(self, job: FollowedJob, at: float) -> bool:
        """Returns whether a job's submission can no longer be forgotten, at a moment."""
        return at - job.acknowledged_at >= self._settle_s

    # --- a look ----------------------------------------------------------------------------------

    def see(self, table: Table) -> Findings:
        """Compares a look with what is known.

        Returns:
            What has happened. Jobs about which there are questions have not ended yet: `conclude`
            ends them, or the next look asks again.
        """
        findings = Findings()
        shown: dict[str, list[JobRow]] = {}
        for row in table.rows:
            key = self._decode(row.name)
            if key is not None:
                shown.setdefault(key, []).append(row)
        for key, rows in shown.items():
            self._shown(key, rows, table, findings)
        for key, job in self._jobs.items():
            if key not in shown:
                self._not_shown(job, table, findings)
        return findings

    def conclude(
        self,
        question: Question,
        ending: Ending | None,
        at: float,
        script: ScriptEnd | None = None,
        limit_s: float = 0.0,
    ) -> list[LrmsEvent]:
        """Ends a job whose end was looked up.

        Args:
            question: about which job.
            ending: what records say; None where they say nothing.
            at: moment of the look, seconds.
            script: how its script has ended, by its folder; None where that says nothing.
            limit_s: its requested time; 0 where that is not known.

        Returns:
            What is to be told of it.
        """
        job = self._jobs[question.key]
        if ending is None and question.row is not None:
            ending = _of_row(question.row)
        if ending is not None:
            end = true_end(ending.end, script, limit_s)
            if end != ending.end:
                self._slip("end_forgotten", job.key)
                ending = replace(ending, end=end)
            if job.want is Want.GONE and ending.end.signal in _KILLED:
                # Not every batch system tells a job that it has ended from one that died of itself.
                end = replace(ending.end, outcome=LrmsOutcome.CANCELLED, signal=None)
                ending = replace(ending, end=end)
            return self._ended(job, ending)
        if job.want is Want.GONE:
            ran = 0.0 if job.start_time is None else max(0.0, at - job.start_time)
            end = LrmsEnd(LrmsOutcome.CANCELLED, at, ran, reason="cancelled, and gone since")
            return self._ended(job, Ending(job.start_time, end))
        if script is not None:
            return self._ended(job, Ending(job.start_time, ended_itself(script, at)))
        del self._jobs[job.key]
        if job.released_at is None and not job.left_hold:
            self._slip("submission_forgotten", job.key)
            return [Lost(job.key, f"the batch system has forgotten job {job.number}")]
        text = f"job {job.number} is gone, and no record says how it ended"
        self._remember(job)
        return [Vanished(job.key, at, text)]

    def _shown(self, key: str, rows: list[JobRow], table: Table, findings: Findings) -> None:
        job = self._jobs.get(key)
        row = self._chosen(rows, job)
        for copy in rows:
            if copy is not row and copy.live:
                self._slip("copied", key)
                if copy.phase in _HAS_STARTED:
                    self._slip("run_again", key)
                findings.orders.append(Order(Act.CANCEL, "", copy))
        if job is None:
            job = self._found(key, row, findings)
            if job is None:
                return
        job.missing = 0
        job.number = row.number
        if job.row is None and not job.acknowledged_at:
            job.acknowledged_at = row.submit_time or table.began_at
        if row.phase is not LrmsPhase.HELD:
            job.hold_stays, job.left_hold = False, True
        self._compared(job, row, table, findings)
        job.row = row

    @staticmethod
    def _chosen(rows: list[JobRow], job: FollowedJob | None) -> JobRow:
        # What has run or runs goes before what could; of copies that wait the oldest stays.
        def rank(row: JobRow) -> tuple[int, bool, float, int, str]:
            if row.phase in _HAS_STARTED:
                place = 0
            elif row.phase is LrmsPhase.ENDED:
                place = 1 if row.start_time is not None else 4
            else:
                place = 2 if row.phase is not LrmsPhase.HELD else 3
            other = job is not None and row.number != job.number
            return place, other, row.submit_time or 0.0, len(row.number), row.number

        return min(rows, key=rank)

    def _found(self, key: str, row: JobRow, findings: Findings) -> FollowedJob | None:
        # A job that nobody follows: ended long ago, or back, or of an older life of this process.
        old = self._over.get(key)
        if not row.live:
            return None
        if old is not None and old.want is Want.GONE:
            if not old.came_back:
                old.came_back = True
                self._slip("cancel_undone", key)
            if row.phase is LrmsPhase.COMPLETING:
                return None
            findings.orders.append(Order(Act.CANCEL, key, row))
            return None
        want = Want.NOTHING if old is None else old.want
        if old is not None and old.end is not None:
            want = Want.NOTHING  # it was to run, and has
            self._slip("end_undone", key)
        job = self._jobs[key] = FollowedJob(key, want)
        self._over.pop(key, None)
        findings.events.append(Appeared(key, record_of(row)))
        job.accepted = True
        job.start_time = row.start_time
        return job

    def _compared(self, job: FollowedJob, row: JobRow, table: Table, findings: Findings) -> None:
        if not job.accepted:
            job.accepted = True
            findings.events.append(Accepted(job.key))
        if row.phase in _NOT_STARTED:
            if job.start_time is not None:
                job.start_time = None
                findings.events.append(Requeued(job.key, table.taken_at, row.reason))
        elif row.start_time is not None and row.phase is not LrmsPhase.ENDED:
            findings.events.extend(self._started(job, row.start_time, _again(job, row)))
        self._hindered(job, row, findings)
        if not row.live:
            question = self._question(job, row)
            if row.exact:
                findings.events.extend(self.conclude(question, None, table.taken_at))
            else:
                findings.questions.append(question)
        elif job.want is Want.GONE:
            if row.phase is not LrmsPhase.COMPLETING:
                findings.orders.append(Order(Act.CANCEL, job.key, row))
        elif row.phase is LrmsPhase.HELD and not job.hold_stays:
            self._held(job, row, table, findings)

    @staticmethod
    def _hindered(job: FollowedJob, row: JobRow, findings: Findings) -> None:
        # By two looks: a batch system that has just begun does not know its own parts at first.
        before = "" if job.row is None else job.row.hindered
        if row.live and row.hindered != job.hindered and (not row.hindered or before):
            job.hindered = row.hindered
            findings.events.append(Hindered(job.key, row.hindered))

    def _held(self, job: FollowedJob, row: JobRow, table: Table, findings: Findings) -> None:
        if job.want is Want.HELD or not self.settled(job, table.taken_at):
            return
        if job.released_at is not None and job.released_at >= table.began_at:
            return  # this look does not know of it yet
        sure = job.want is Want.RUN and job.released_at is None and job.start_time is None
        findings.orders.append(Order(Act.RELEASE if sure else Act.ASK, job.key, row))

    def _started(self, job: FollowedJob, start_time: float, again: bool = False) -> list[LrmsEvent]:
        if job.start_time is not None and not again:
            return []
        events: list[LrmsEvent] = []
        if job.start_time is not None:
            self._ran_again(job)
            events.append(Requeued(job.key, start_time, "it was started anew"))
        job.start_time = start_time
        events.append(Started(job.key, start_time))
        return events

    def _not_shown(self, job: FollowedJob, table: Table, findings: Findings) -> None:
        if not job.number or job.acknowledged_at > table.began_at:
            return
        if not job.missing:
            job.missing_since = table.began_at
        job.missing += 1
        gone_s = table.taken_at - job.missing_since
        if job.missing >= MISSING_LOOKS and gone_s >= self._records_s:
            findings.questions.append(self._question(job, None))

    def _question(self, job: FollowedJob, row: JobRow | None) -> Question:
        last = row or job.row
        return Question(
            job.key,
            self._encode(job.key),
            job.number,
            None if last is None else last.submit_time,
            row,
            ran=job.start_time is not None,
        )

    def _ended(self, job: FollowedJob, ending: Ending) -> list[LrmsEvent]:
        events: list[LrmsEvent] = []
        if ending.start_time is not None:
            events.extend(self._started(job, ending.start_time))
        job.end = ending.end
        events.append(Ended(job.key, ending.end))
        self._jobs.pop(job.key, None)
        self._remember(job)
        return events

    def _remember(self, job: FollowedJob) -> None:
        self._over[job.key] = job
        if len(self._over) > REMEMBERED:
            self._over.popitem(last=False)

    def _ran_again(self, job: FollowedJob) -> None:
        job.ran_again += 1
        self._slip("run_again", job.key)

    def _slip(self, what: str, key: str) -> None:
        setattr(self.slips, what, getattr(self.slips, what) + 1)
        self.slipped.append((what, key))

    # --- what others ask -------------------------------------------------------------------------

    def load(self, table: Table) -> LrmsLoad:
        """Returns the three numbers of a look, and what is planned.

        A job of this site counts from the moment on from which it is wanted to run, although it may
        be held for some seconds to be sure of it, and wait some more for the scheduler: as one that
        has started where there is room for it, or the next job would be given the same room.
        """
        free, waiting, plan = table.free, table.waiting_others, table.plan
        for row in table.rows:
            key = self._decode(row.name)
            job = None if key is None else self._jobs.get(key)
            coming = job is not None and job.want is Want.RUN and not job.hold_stays
            if not row.can_start and not (row.phase is LrmsPhase.HELD and coming):
                continue
            if plan is not None and not row.can_start:
                plan = plan.less(row.processors)  # the batch system has not planned it
            if row.processors <= free:
                free -= row.processors
            else:
                waiting += row.processors
        return LrmsLoad(table.taken_at, table.processors, free, waiting, plan, table.partitions)

    def row(self, key: str, rows: Iterable[JobRow]) -> JobRow | None:
        """Returns the row of a job in a table; of several copies the one that counts."""
        several = [row for row in rows if self._decode(row.name) == key]
        return self._chosen(several, self._jobs.get(key)) if several else None

    def records(self, rows: Iterable[JobRow]) -> Mapping[str, LrmsRecord]:
        """Returns what is known of the jobs of a table, by key."""
        found: dict[str, list[JobRow]] = {}
        for row in rows:
            key = self._decode(row.name)
            if key is not None:
                found.setdefault(key, []).append(row)
        records = {}
        for key, several in found.items():
            record = record_of(self._chosen(several, self._jobs.get(key)))
            job = self._over.get(key)
            if record.end is not None and job is not None and job.end is not None:
                record = replace(record, end=job.end)  # with what records have said
            records[key] = record
        return records


def record_of(row: JobRow) -> LrmsRecord:
    """Returns a row of the table as the port has it."""
    return LrmsRecord(row.phase, row.start_time, row.end, row.reason)


def _again(job: FollowedJob, row: JobRow) -> bool:
    # A batch system may put a start right by a second; a new submission of the same job is a requeue.
    if job.start_time is None or row.start_time is None:
        return False
    later = row.start_time - job.start_time
    before = None if job.row is None else job.row.submit_time
    return later > _SAME_START_S or (later > 0 and before != row.submit_time)


_SAME_START_S = 2.0


def _of_row(row: JobRow) -> Ending | None:
    return None if row.end is None else Ending(row.start_time, row.end)
