"""Tracks the jobs of one batch system, and interprets each new poll. Pure.

A poll is compared with what is known: changes become events, and deviations from what was ordered become orders to
repeat. Three lists meet here, also after a restart: what this site wants (`want`), what the batch system had at the
last poll, and what it has now.

Hold first, release last. A batch system like Slurm acknowledges a job and forgets it if it crashes within seconds;
it forgets cancels and releases likewise. So every job is submitted held. It is released once the submission is old
enough to survive such a crash (`settle_s`) and a poll has shown the job. A job that disappears while held has
certainly not started, and may be submitted again; a second copy, from a submission that arrived late, is held as
well and is cancelled; a release that was undone leaves a job that waits for the next poll.

What was there before this process stays held until the site asks for it, as it does at its start for each job that is
to be here (`looked_up`). Its note says only that it was to run once: since then its user may have read that it was
cancelled, or it may have gone to a partner, and what is held may be a copy that came late.

Doubt is not an end. A queue listing may be empty, truncated, filtered or hidden from the site's user while all jobs
run. So a missing job is asked about (`Question`), and ends only by evidence: a record, the job's own folder, or the
batch system's answer, for that one job, that it does not know it. If the job may have begun, even that counts only
after its limit, as the script may still run on a node that a controller has forgotten. Until then it is `Unseen`. A
running job is never cancelled because of what a listing shows, but only if this site wants it gone.
"""

import enum
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from grms.lrms.anomalies import Anomalies
from grms.lrms.base import (
    Accepted,
    Appeared,
    Ended,
    Hindered,
    Lost,
    LrmsEnd,
    LrmsEvent,
    LrmsLoad,
    LrmsPhase,
    LrmsRecord,
    Paused,
    Requeued,
    SeenAgain,
    Started,
    Unseen,
    Vanished,
)
from grms.lrms.batch.queue_snapshot import Ending, Evidence, JobRow, Question, QueueSnapshot
from grms.lrms.batch.tracked_job import TrackedJob, Want
from grms.lrms.exit_status import (
    NOT_HERE,
    as_evicted,
    ended_itself,
    is_fenced,
    is_later_start,
    is_stillborn,
    is_unstarted,
    true_end,
    with_kept,
    with_unbegun,
)
from grms.util.outcomes import Outcome
from lrms_sim.workload.requests import Request

MISSING_LOOKS: Final = 2
"""A job is asked about after this many consecutive polls without it."""

PAUSE_LOOKS: Final = 30
"""And again after 1, 2, 4, … polls, at most after this many."""

QUESTIONS_MOST: Final = 200
"""Most jobs asked about at one time; others follow after the next polls."""

STEP_S: Final = 60.0
"""Most seconds counted between two polls, as the clock may have been adjusted."""

GRACE_S: Final = 300.0
"""How long after its limit an unknown job is waited for, seconds: limits are enforced late, and nodes' clocks
differ.
"""

REFUSED_S: Final = 300.0
"""How long a guest waits whose submission hold is not lifted before it says so, and goes home, seconds: a batch system refuses
for minutes what it does again after that, as while its accounting is away.
"""

LONGEST_S: Final = 7 * 86400.0
"""Assumed for an unknown limit."""

REMEMBERED: Final = 50_000
"""Ended jobs that are remembered; the oldest are forgotten first."""

HELD: Final = "its user, or an operator, holds it in the batch system"
"""What a job waits for whose hold is not that of its submission."""

_KILLED = frozenset((9, 15))
"""Signals with which batch systems end jobs: SIGKILL, SIGTERM."""

_HAS_STARTED = frozenset((LrmsPhase.RUNNING, LrmsPhase.SUSPENDED, LrmsPhase.COMPLETING))
_NOT_STARTED = frozenset((LrmsPhase.WAITING, LrmsPhase.HELD))


class Act(enum.Enum):
    """Operations on the batch system.

    RELEASE: lift the hold with which the job was submitted.
    ASK: find out whether the hold is that one, and then lift it.
    TAG: give a job its tag again, which somebody has renamed: after a restart nobody would know it by another name.
    """

    RELEASE = "release"
    ASK = "ask"
    CANCEL = "cancel"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class Order:
    """An operation on a job.

    `key` is empty for a copy without a key of its own.
    """

    act: Act
    key: str
    row: JobRow


@dataclass(frozen=True, slots=True)
class Findings:
    """Result of a poll: events, questions about jobs that have ended or are missing, and orders to repeat."""

    events: list[LrmsEvent] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)


class JobTracker:
    """The jobs of one batch system.

    Attributes:
        anomalies: counts of what the batch system has not kept.
        slipped: the same as a list with the keys of the jobs; the consumer clears it.

    Args:
        encode: returns the name of a key at the batch system.
        decode: returns the key of a name; `None` for a name of another site.
        settle_s: age in seconds from which a submission is safe.
        records_s: delay in seconds until records have the end of a job.
        grace_s: how long after its limit an unknown job is waited for, seconds.
        forgets: whether the batch system may forget what it has acknowledged.
        fences: whether a second run of a job skips its script.
        site: this site's name; jobs whose keys do not begin with it are guests.
        is_marker: returns whether a name is that under which the place of a job is kept, which is given by its key.
        evicts: whether this site ends jobs for others, of which their notes say so.
    """

    def __init__(
        self,
        encode: Callable[[str], str],
        decode: Callable[[str], str | None],
        *,
        settle_s: float,
        records_s: float = 0.0,
        grace_s: float = GRACE_S,
        forgets: bool = True,
        fences: bool = False,
        evicts: bool = False,
        site: str = "",
        is_marker: Callable[[str, str], bool] | None = None,
    ) -> None:
        self._encode = encode
        self._decode = decode
        self._settle_s = settle_s
        self._records_s = records_s
        self._grace_s = grace_s
        self._forgets = forgets
        self._fences = fences
        self._evicts = evicts
        self._own = f"{site}/"
        self._is_marker = is_marker
        self._jobs: dict[str, TrackedJob] = {}
        self._over: OrderedDict[str, TrackedJob] = OrderedDict()
        self._copies: set[tuple[str, str]] = set()
        self._looked_at: float | None = None
        self._polls = 0
        self.anomalies = Anomalies()
        self.slipped: list[tuple[str, str]] = []

    def _key(self, row: JobRow) -> str | None:
        return row.known_as or self._decode(row.name)

    def job(self, key: str) -> TrackedJob | None:
        """Returns what is known of a job; `None` if it was lost or never there."""
        return self._jobs.get(key) or self._over.get(key)

    def unfollowed(self, rows: Sequence[JobRow]) -> dict[str, set[str]]:
        """Returns the jobs that are not followed and of which no row shows a run: the numbers of their rows by key."""
        found: dict[str, set[str]] = {}
        for row in rows:
            key = self._key(row) if _is_unbegun(row) else None
            if key is not None and self.job(key) is None:
                found.setdefault(key, set()).add(row.number)
        if found:
            for row in rows:
                if not _is_unbegun(row):
                    found.pop(self._key(row) or "", None)
        return found

    def gone(self, key: str, number: str, at: float, *, asked: bool = True) -> None:
        """Records that a job released before this process began is missing from the poll at `at`, seconds.

        `asked`: the site asks for it; else it may have ended, or left, long ago.
        """
        self._jobs[key] = TrackedJob(
            key,
            Want.RUN if asked else Want.NOTHING,
            number,
            accepted=True,
            released_at=0.0,
            maybe_released=True,
            missing=MISSING_LOOKS,
            missing_since=at,
            missing_s=self._records_s,
        )

    def intended(self, key: str, want: Want) -> TrackedJob:
        """Notes that a job is about to be submitted, and returns it."""
        job = self._jobs[key] = TrackedJob(key, want)
        return job

    def acknowledged(self, key: str, number: str, at: float) -> None:
        """Records that the batch system acknowledged a job at `at`, seconds."""
        job = self._jobs.get(key)
        if job is not None:  # else a look has shown its end meanwhile, or that it was lost
            job.number, job.acknowledged_at = number, at

    def refused(self, key: str) -> None:
        """Notes that a job is not to run here; should the batch system have it all the same, it stays held."""
        self._jobs.pop(key, None)

    def releasing(self, key: str) -> None:
        """Notes that a job's hold is about to be lifted: from now on it may have run, whatever is answered."""
        job = self._jobs.get(key)
        if job is not None:
            job.maybe_released = True

    def released(self, key: str, at: float, *, again: bool = False) -> None:
        """Records that a job's submission hold was lifted at `at` (seconds), `again` if it had begun before."""
        job = self._jobs.get(key)
        if job is not None:
            if job.released_at is not None:
                self._anomaly("release_undone", key)
            if again:
                self._ran_again(job)
            job.released_at = at

    def release_refused(self, key: str, reason: str) -> None:
        """Notes that the batch system does not lift a job's submission hold; if it is held still, the next poll tells why."""
        job = self._jobs.get(key)
        if job is not None:
            job.refused = reason

    def run_forgotten(
        self, key: str, evidence: Evidence, at: float
    ) -> tuple[list[LrmsEvent], bool]:
        """Handles a job that is held as if never released, although it has begun to run.

        The batch system forgot the run in a crash. The script may still run, so its end is awaited until its limit.
        As its progress is unknown, it is not repeated. `evidence` is about that run.

        Returns:
            The events, and whether it is over: the held copy is then useless.
        """
        job = self._jobs.get(key)
        if job is None:
            return [], True
        if not job.forgotten:
            job.forgotten = True
            self._anomaly("run_forgotten", key)
        ending = evidence.ending
        if ending is not None:
            end = as_evicted(ending.end) if evidence.evicted else ending.end
            ending = replace(ending, end=self._true_end(end, evidence))
        elif evidence.script is not None:
            ending = self._own_ending(job, evidence, at)
        elif not self._is_over(job, evidence, at):
            text = (
                "it had begun to run, and the batch system has forgotten it; its end is waited for"
            )
            return self._doubted(job, text, at), False
        job.want, job.came_back = Want.OVER, True
        if ending is not None:
            return self._ended(job, ending), True
        text = f"job {job.number} had begun to run, and the batch system has forgotten it"
        return self._vanished(job, text, at), True

    def is_unbegun_copy(self, key: str, ending: Ending, evidence: Evidence) -> bool:
        """Returns whether what was cancelled is a guest whose run the batch system has forgotten: a copy that has not begun.

        That waited still, or was started anew after the run had begun, on nodes that were not ready yet.

        A run that the batch system itself has requeued has left no end either, and is over: such a job may begin
        several times, and is left out.
        """
        once = self._fences or evidence.preemptible
        unbegun = ending.start_time is None and is_unstarted(ending.end)
        if ending.start_time is not None and ending.end.outcome is Outcome.CANCELLED:
            unbegun = is_later_start(ending.start_time, evidence.begun_at)
        return unbegun and once and self._is_guest(key) and _has_no_end(evidence)

    def has_run(self, key: str, unordered: int) -> None:
        """Notes how often a job that has ended has run without anybody's order, by its own word."""
        job = self._over.get(key)
        if job is None and unordered:
            job = TrackedJob(key, Want.NOTHING)  # of an older life of this process
            self._remember(job)
        while job is not None and job.ran_again < unordered:
            self._ran_again(job)

    def looked_up(self, key: str) -> None:
        """Records that the site asks for a job, which has not ended for it, and is to be here."""
        job = self._jobs.get(key)
        if job is not None:
            job.looked_up = True

    def hold_stays(self, key: str) -> None:
        """Records that somebody else holds a job."""
        job = self._jobs.get(key)
        if job is not None:
            job.hold_stays = True

    def settled(self, job: TrackedJob, at: float) -> bool:
        """Returns whether a job's submission can no longer be forgotten, at a moment."""
        return max(at - job.acknowledged_at, job.shown_s) >= self._settle_s

    def key_of(self, number: str) -> str | None:
        """Returns the key of a job that is to run, by the batch system's id; `None` if there is none."""
        found = (job.key for job in self._jobs.values() if job.number == number)
        return next((key for key in found if self._jobs[key].want is Want.RUN), None)

    def left(self, key: str, at: float) -> list[LrmsEvent]:
        """Returns the events of a job that has left the queue for elsewhere, and has never begun here; `at` in seconds."""
        job = self._jobs.get(key)
        if job is None or job.start_time is not None:
            return []
        job.want = Want.GONE
        return self._cancelled(job, at, "it has left; its place is kept")

    def says_all(self, row: JobRow) -> bool:
        """Returns whether nothing but its row is to be looked at for how a job has ended."""
        is_guest = self._is_guest(self._key(row) or self._own)
        asks = self._evicts or (self._fences and is_guest)
        if asks and row.end is not None and row.end.outcome is Outcome.CANCELLED:
            return False
        if row.end is not None and row.end.outcome is Outcome.PREEMPTED:
            return False  # what it has written says how much of it is kept
        if not row.exact or row.end is None:
            return row.exact
        # One whose start was forgotten, or that was started anew, may have run: its folder says so.
        return not (is_unstarted(row.end) or (self._fences and is_stillborn(row.end)))

    def unshown(self, key: str) -> JobRow | None:
        """Returns what is known of a job that no table shows, by which it can be ended all the same."""
        job = self._jobs.get(key)
        if job is None or not job.number or not job.missing:
            return None
        if job.row is not None and job.row.number == job.number:
            return job.row
        return JobRow(self._encode(key), job.number, None, LrmsPhase.UNKNOWN, 0)

    # --- a look ----------------------------------------------------------------------------------

    def see(self, table: QueueSnapshot) -> Findings:
        """Compares a poll with what is known.

        Returns:
            Events. Jobs with questions have not ended yet: `conclude` ends them, or the next poll asks again.
        """
        last, self._looked_at = self._looked_at, table.taken_at
        step_s = 0.0 if last is None else min(max(0.0, table.taken_at - last), STEP_S)
        findings = Findings()
        shown: dict[str, list[JobRow]] = {}
        unnamed: dict[str, JobRow] = {}
        for row in table.rows:
            key = self._key(row)
            if key is not None:
                shown.setdefault(key, []).append(row)
            else:
                unnamed[row.number] = row
        for key, rows in list(shown.items()):
            if self._is_hidden(key, rows):
                del shown[key]
            else:
                self._shown(key, rows, table, step_s, findings)
        self._polls += 1
        for job in self._jobs.values():
            job.doubt_s += step_s if job.doubt else 0.0
        unseen, aside = [job for key, job in self._jobs.items() if key not in shown], set[str]()
        for job in unseen:
            if self._is_shown_aside(job, unnamed.get(job.number)):
                self._shown_aside(job, table, findings)
                aside.add(job.key)
        asking = [
            job for job in unseen if job.key not in aside and self._not_shown(job, table, step_s)
        ]
        # The longest unasked go first, so that all are asked eventually.
        for job in sorted(asking, key=lambda job: (job.asked, job.key))[:QUESTIONS_MOST]:
            findings.questions.append(self._question(job, None))
        return findings

    def conclude(self, question: Question, evidence: Evidence, at: float) -> list[LrmsEvent]:
        """Ends the job of a question if there is evidence of its end; `at` is the time of the poll, seconds."""
        job = self._jobs.get(question.key)
        if job is None:
            return []
        if question.row is None:
            # Here, as there may have been no time for the question.
            job.ask_in, job.pause = job.pause - 1, min(2 * job.pause, PAUSE_LOOKS)
            job.asked = self._polls
        job.evicted |= evidence.evicted
        ending = evidence.ending
        if ending is None and question.row is not None:
            ending = _of_row(question.row)
        if ending is None:
            return self._concluded_unseen(job, evidence, at)
        if is_fenced(
            ending.end,
            evidence.script,
            begun=evidence.begun,
            begun_at=evidence.begun_at,
            once=self._fences,
        ) or self.is_unbegun_copy(job.key, ending, evidence):
            return self._concluded_fenced(job, evidence, at)
        if ending.end.exit_code == NOT_HERE and evidence.begun is False:
            del self._jobs[job.key]
            return [Lost(job.key, "it was started while it was to leave, and has not begun")]
        return self._concluded_end(job, ending, evidence)

    def _concluded_end(
        self, job: TrackedJob, ending: Ending, evidence: Evidence
    ) -> list[LrmsEvent]:
        if job.evicted:
            # First: ended within a second it looks unstarted, and a script that ends well on SIGTERM looks done.
            ending = replace(ending, end=as_evicted(ending.end))
        end = self._true_end(ending.end, evidence)
        if job.want is not Want.GONE:  # else it was this site that has cancelled it
            end = with_unbegun(end, ending.start_time, begun=evidence.begun)
        if end != ending.end:
            if evidence.script is not None:
                self._anomaly("end_forgotten", job.key)
            ending = replace(ending, end=end)
        if job.want is Want.GONE and ending.end.signal in _KILLED:
            # Not every batch system distinguishes a cancelled job from one that died of itself.
            end = replace(ending.end, outcome=Outcome.CANCELLED, signal=None)
            ending = replace(ending, end=end)
        began = job.start_time if ending.start_time is None else ending.start_time
        end = with_kept(ending.end, began, evidence.written_at)
        events: list[LrmsEvent] = []
        if began is None and is_unstarted(end) and evidence.begun and not job.restarted:
            # It was started, and waited again, between two polls, or in an earlier life of this process.
            events.append(Requeued(job.key, "it had begun to run"))
        return [*events, *self._ended(job, replace(ending, end=end))]

    def _concluded_unseen(self, job: TrackedJob, evidence: Evidence, at: float) -> list[LrmsEvent]:
        # Neither the queue nor any record has it.
        unknown = evidence.known is False
        if not evidence.known:
            # Without a number it cannot be asked for.
            known_end = unknown or evidence.script is not None or not job.number
            if job.want is Want.GONE and known_end and not _has_completed(evidence):
                if self._may_live(job, evidence, at):
                    text = "it is to end, and the batch system does not know it; it may run until its limit"
                    return self._doubted(job, text, at)
                return self._cancelled(job, at, "cancelled, and gone since")
            if evidence.script is not None:
                return self._ended(job, self._own_ending(job, evidence, at))
        over = self._concluded_unknown(job, evidence, at) if unknown else None
        if over is not None:
            return over
        if not job.number and self._is_over(job, evidence, at):
            text = "it had begun to run, and nobody knows its number"
            return self._vanished(job, text, at)
        if unknown:
            text = "the batch system does not know it; until its limit is over its own word is waited for"
        elif evidence.known:
            text = "its table does not show it; asked for it alone, the batch system has it"
        else:
            text = "no table shows it, and the batch system does not say whether it has it"
        return self._doubted(job, text, at)

    def _concluded_unknown(
        self, job: TrackedJob, evidence: Evidence, at: float
    ) -> list[LrmsEvent] | None:
        # The batch system does not know it. `None` if it may run all the same.
        ran = evidence.begun or job.start_time is not None
        if not self._forgets and evidence.evicted:
            # It has ended it, and forgets nothing: no record has to say so.
            return self._evicted(job, evidence)
        if not self._forgets and not ran:
            return self._cancelled(
                job, at, "deleted"
            )  # it never ran, and nothing is forgotten here
        let_go = evidence.released or job.maybe_released or job.released_at is not None
        if not (ran or let_go or job.left_hold):
            del self._jobs[job.key]
            self._anomaly("submission_forgotten", job.key)
            return [Lost(job.key, f"the batch system has forgotten job {job.number}")]
        if self._is_over(job, evidence, at):
            text = f"job {job.number} is gone, and no record says how it ended"
            return self._vanished(job, text, at)
        return None

    def _concluded_fenced(self, job: TrackedJob, evidence: Evidence, at: float) -> list[LrmsEvent]:
        # A second run that skipped the script has ended: the first one's end counts.
        if not job.fenced:
            job.fenced = True
            self._anomaly("run_fenced", job.key)
        gone = job.want is Want.GONE and not _has_completed(evidence)
        if gone and not self._may_live(job, evidence, at):
            return self._cancelled(job, at, "cancelled")
        if evidence.script is not None:
            return self._ended(job, self._own_ending(job, evidence, at))
        if self._is_over(job, evidence, at):
            text = f"job {job.number} was started twice; how its one run ended no record says"
            return self._vanished(job, text, at)
        text = "it was started twice, and ran once; the end of that run is waited for"
        return self._doubted(job, text, at)

    def _may_live(self, job: TrackedJob, evidence: Evidence, at: float) -> bool:
        # Whether a guest that is to end may run on, on a node of which the batch system has forgotten it. Its home, told
        # that it has ended, could run it again at once. An own job that was cancelled is run again by nobody.
        if not self._forgets or not self._is_guest(job.key):
            return False
        ran = job.start_time is not None and evidence.script is None
        if not (ran or _has_no_end(evidence)):
            return False
        return not self._is_over(job, evidence, at)

    def _is_guest(self, key: str) -> bool:
        return not key.startswith(self._own)

    def _is_over(self, job: TrackedJob, evidence: Evidence, at: float) -> bool:
        # Whether a begun run has certainly reached its limit; premature if the clock jumps.
        if not job.doubt or job.doubt_s < self._grace_s:
            return False
        latest = job.missing_since if job.missing else job.doubt_at
        began = job.start_time if evidence.begun_at is None else evidence.begun_at
        began = latest if began is None else min(began, latest)
        return at >= began + (evidence.limit_s or LONGEST_S) + self._grace_s

    def _true_end(self, end: LrmsEnd, evidence: Evidence) -> LrmsEnd:
        limit_s, begun = evidence.limit_s, evidence.begun
        return true_end(end, evidence.script, limit_s, begun=begun, once=self._fences)

    @staticmethod
    def _own_ending(job: TrackedJob, evidence: Evidence, at: float) -> Ending:
        script, began = evidence.script, evidence.begun_at
        assert script is not None
        if began is not None and script.run_time is not None:
            at = min(at, began + script.run_time)
        return Ending(began if job.start_time is None else job.start_time, ended_itself(script, at))

    def _doubted(self, job: TrackedJob, reason: str, at: float) -> list[LrmsEvent]:
        if job.doubt == reason:
            return []
        if not job.doubt:
            job.doubt_at, job.doubt_s = at, 0.0
        job.doubt = reason
        return [Unseen(job.key, reason)]

    def _vanished(self, job: TrackedJob, reason: str, at: float) -> list[LrmsEvent]:
        del self._jobs[job.key]
        self._remember(job)
        return [Vanished(job.key, at, reason)]

    def _evicted(self, job: TrackedJob, evidence: Evidence) -> list[LrmsEvent]:
        began = evidence.begun_at if job.start_time is None else job.start_time
        at = job.missing_since
        end = LrmsEnd(Outcome.CANCELLED, at, 0.0 if began is None else max(0.0, at - began))
        end = with_kept(as_evicted(end), began, evidence.written_at)
        return self._ended(job, Ending(began, end))

    def _cancelled(self, job: TrackedJob, at: float, reason: str) -> list[LrmsEvent]:
        ran = 0.0 if job.start_time is None else max(0.0, at - job.start_time)
        end = LrmsEnd(Outcome.CANCELLED, at, ran, reason=reason)
        return self._ended(job, Ending(job.start_time, end))

    def _shown(
        self, key: str, rows: list[JobRow], table: QueueSnapshot, step_s: float, findings: Findings
    ) -> None:
        job = self._jobs.get(key)
        row = self._chosen(rows, job)
        for copy in rows:
            if copy is not row and copy.live:
                self._copy(key, copy, findings)
        if job is None:
            job = self._found(key, row, findings)
            if job is None:
                return
        if job.doubt and (job.missing or (row.live and row.phase is not LrmsPhase.HELD)):
            job.doubt = ""
            findings.events.append(SeenAgain(key))
        job.missing = 0
        job.shown_s += 0.0 if job.row is None else step_s
        job.refused_s += step_s if job.refused else 0.0
        job.number = row.number
        if job.row is None and not job.acknowledged_at:
            job.acknowledged_at = row.submit_time or table.began_at
        if row.phase is not LrmsPhase.HELD:
            job.hold_stays, job.left_hold, job.refused, job.refused_s = False, True, "", 0.0
        self._compared(job, row, table, findings)
        if row.live and row.known_as and not self._is_named(row) and job.want is not Want.GONE:
            findings.orders.append(Order(Act.TAG, key, row))
        job.row = row

    def _is_named(self, row: JobRow) -> bool:
        # As a job of this site, or as a marker.
        marks = self._is_marker is not None and self._is_marker(row.name, row.known_as)
        return marks or self._decode(row.name) is not None

    def _is_hidden(self, key: str, rows: list[JobRow]) -> bool:
        # Whether a table shows copies of a job alone, none of which has begun: a table may leave out rows, and such a copy
        # neither stands for the job nor says how it has ended. What has become of the job itself is asked for.
        job = self._jobs.get(key)
        if job is None or not job.number:
            return False
        return all(row.number != job.number and _is_unbegun(row) for row in rows)

    def _copy(self, key: str, copy: JobRow, findings: Findings) -> None:
        # A held one has certainly not begun. Of running copies none is known to be the better one.
        if (key, copy.number) not in self._copies:
            self._copies.add((key, copy.number))
            self._anomaly("copied", key)
            if copy.phase in _HAS_STARTED:
                self._anomaly("run_again", key)
        if copy.phase is LrmsPhase.HELD:
            findings.orders.append(Order(Act.CANCEL, "", copy))

    @staticmethod
    def _chosen(rows: list[JobRow], job: TrackedJob | None) -> JobRow:
        # A job that runs or has run takes precedence; of waiting copies the oldest stays.
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

    def _found(self, key: str, row: JobRow, findings: Findings) -> TrackedJob | None:
        # A job that is not followed: ended long ago, or back, or of an earlier process.
        old = self._over.get(key)
        if not row.live:
            return None
        if old is not None and old.want in {Want.GONE, Want.OVER}:
            if not old.came_back:
                old.came_back = True
                self._anomaly("cancel_undone", key)
            if _is_to_end(old.want, row.phase):
                findings.orders.append(Order(Act.CANCEL, key, row))
            return None
        # A job whose end was emitted does not run again. If its end is unknown it stays held. So does any other, which
        # may be elsewhere by now, or over: until the site asks for it, as for one that it has handed in again.
        want = Want.NOTHING
        if old is not None:
            want = Want.OVER if old.end is not None else Want.HELD
            self._anomaly("end_undone", key)
        job = self._jobs[key] = TrackedJob(key, want)
        self._over.pop(key, None)
        findings.events.append(Appeared(key, record_of(row)))
        job.accepted = True
        job.start_time = row.start_time
        return job

    def _compared(
        self, job: TrackedJob, row: JobRow, table: QueueSnapshot, findings: Findings
    ) -> None:
        if not job.accepted:
            job.accepted = True
            findings.events.append(Accepted(job.key))
        if row.phase in _NOT_STARTED:
            if job.start_time is not None:
                job.start_time, job.restarted = None, True
                findings.events.append(Requeued(job.key, row.reason))
        elif row.start_time is not None and row.phase is not LrmsPhase.ENDED:
            findings.events.extend(self._started(job, row.start_time, _again(job, row)))
        if job.start_time is not None and row.phase in _HAS_STARTED and row.phase is not job.phase:
            job.phase = row.phase
            findings.events.append(Paused(job.key, row.phase, table.taken_at))
        self._hindered(job, row, findings)
        if not row.live:
            question = self._question(job, row)
            if self.says_all(row):
                findings.events.extend(self.conclude(question, Evidence(), table.taken_at))
            else:
                findings.questions.append(question)
        elif _is_to_end(job.want, row.phase):
            findings.orders.append(Order(Act.CANCEL, job.key, row))
        elif job.want is not Want.GONE and row.phase is LrmsPhase.HELD and not job.hold_stays:
            self._held(job, row, table, findings)

    def _hindered(self, job: TrackedJob, row: JobRow, findings: Findings) -> None:
        # Two polls: a batch system that has just started does not know its own partitions at first.
        before = "" if job.row is None else job.row.hindered
        held = row.phase is LrmsPhase.HELD and job.hold_stays
        reason = f"{HELD} ({row.reason})" if held else row.hindered
        # A partner's job may still be released: it does not go home for a moment's refusal.
        told = job.refused and (job.refused_s >= REFUSED_S or not self._is_guest(job.key))
        if told and row.phase is LrmsPhase.HELD and not held:
            reason = f"the batch system does not lift its hold: {job.refused}"
        if row.deferred and job.restarted:
            reason = ""  # the batch system itself puts off the next start of what it has requeued
        if row.live and reason != job.hindered and (not reason or before or held or job.refused):
            job.hindered = reason
            findings.events.append(Hindered(job.key, reason, deferred=held or row.deferred))

    def _held(self, job: TrackedJob, row: JobRow, table: QueueSnapshot, findings: Findings) -> None:
        if job.want is Want.HELD or not self.settled(job, table.taken_at):
            return
        if job.want is Want.NOTHING and not job.looked_up:
            return  # it may be a copy of one that has ended, or has left, before this process began
        if job.released_at is not None and _is_later(job.released_at, table):
            return  # this look does not know of it yet
        sure = job.want is Want.RUN and job.released_at is None and job.start_time is None
        findings.orders.append(Order(Act.RELEASE if sure else Act.ASK, job.key, row))

    def _started(self, job: TrackedJob, start_time: float, again: bool = False) -> list[LrmsEvent]:
        if job.start_time is not None and not again:
            return []
        events: list[LrmsEvent] = []
        if job.start_time is not None:
            if not self._fences:
                self._ran_again(job)  # else its folder says whether it ran
            events.append(Requeued(job.key, "it was started anew"))
        job.start_time, job.phase, job.restarted = start_time, LrmsPhase.RUNNING, False
        events.append(Started(job.key, start_time))
        return events

    def _is_shown_aside(self, job: TrackedJob, row: JobRow | None) -> bool:
        if self._is_marker is None or row is None or not row.live:
            return False
        return self._is_marker(row.name, job.key)

    def _shown_aside(self, job: TrackedJob, table: QueueSnapshot, findings: Findings) -> None:
        # It is there, under the name that it has while it is elsewhere: it is about to leave, or a crash has undone that it
        # came back (`kept_places`). It is not asked about under its own name, under which nobody knows it.
        if job.doubt:
            job.doubt = ""
            findings.events.append(SeenAgain(job.key))
        job.missing, job.missing_since, job.missing_s = 1, table.began_at, 0.0
        job.pause, job.ask_in = 1, 0

    def _not_shown(self, job: TrackedJob, table: QueueSnapshot, step_s: float) -> bool:
        # Proves nothing; returns whether it should be asked about now.
        if _is_later(job.acknowledged_at, table):
            return False
        if not (job.number or job.maybe_released or job.want is Want.GONE):
            return False  # it has not come, and whoever hands it in again looks it up
        if job.missing:
            job.missing_s += step_s
        else:
            job.missing_since, job.missing_s = table.began_at, 0.0
            job.pause, job.ask_in = 1, 0
        job.missing += 1
        if job.missing < MISSING_LOOKS or job.missing_s < self._records_s:
            return False
        if job.ask_in:
            job.ask_in -= 1
            return False
        return True

    def _question(self, job: TrackedJob, row: JobRow | None) -> Question:
        last = row or job.row
        return Question(
            job.key,
            row.name if row is not None and row.known_as else self._encode(job.key),
            job.number,
            None if last is None else last.submit_time,
            row,
            ran=job.start_time is not None,
        )

    def _ended(self, job: TrackedJob, ending: Ending) -> list[LrmsEvent]:
        events: list[LrmsEvent] = []
        if ending.start_time is not None:
            events.extend(self._started(job, ending.start_time))
        job.end = as_evicted(ending.end) if job.evicted else ending.end
        events.append(Ended(job.key, job.end))
        self._jobs.pop(job.key, None)
        self._remember(job)
        return events

    def _remember(self, job: TrackedJob) -> None:
        self._over[job.key] = job
        if len(self._over) > REMEMBERED:
            self._over.popitem(last=False)

    def _ran_again(self, job: TrackedJob) -> None:
        job.ran_again += 1
        self._anomaly("run_again", job.key)

    def _anomaly(self, what: str, key: str) -> None:
        setattr(self.anomalies, what, getattr(self.anomalies, what) + 1)
        self.slipped.append((what, key))

    # --- what others ask -------------------------------------------------------------------------

    def load(self, table: QueueSnapshot) -> LrmsLoad:
        """Returns the load at a poll, with the plan.

        A job of this site counts from when it should run, although it may be held for some seconds to be safe and
        then wait for the scheduler: as started if there is room for it, as the next job would otherwise get the
        same room.
        """
        free, waiting, plan = table.free, table.waiting_others, table.plan
        idle = table.idle
        before: list[Request] = []
        for row in table.rows:
            key = self._key(row)
            job = None if key is None else self._jobs.get(key)
            coming = job is not None and job.want is Want.RUN and not job.hold_stays
            if not row.can_start and not (row.phase is LrmsPhase.HELD and coming):
                continue
            if plan is not None and not row.can_start:
                plan = plan.less(row.processors)  # the batch system has not planned it
            if not row.can_start:
                before.append(row.request or Request.of_processors(row.processors))
            if idle is not None:
                idle = max(0, idle - row.processors)
            if row.processors <= free:
                free -= row.processors
            else:
                waiting += row.processors
        nodes = None if table.nodes is None else table.nodes.behind(before)
        return LrmsLoad(
            table.taken_at, table.processors, free, waiting, plan, table.partitions, nodes, idle
        )

    def row(self, key: str, rows: Iterable[JobRow]) -> JobRow | None:
        """Returns the row of a job in a table; of several copies the one that counts."""
        several = [row for row in rows if self._key(row) == key]
        if not several or self._is_hidden(key, several):
            return None
        return self._chosen(several, self._jobs.get(key))

    def records(self, rows: Iterable[JobRow]) -> Mapping[str, LrmsRecord]:
        """Returns what is known of the jobs of a table, by key."""
        found: dict[str, list[JobRow]] = {}
        for row in rows:
            key = self._key(row)
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


def _has_no_end(evidence: Evidence) -> bool:
    return evidence.begun is True and evidence.script is None


def _has_completed(evidence: Evidence) -> bool:
    # Before anybody's cancel has reached it, or in spite of that: whoever wanted its end gets to know what it has done.
    return evidence.script is not None and evidence.script.code == 0


def _is_unbegun(row: JobRow) -> bool:
    return row.phase is LrmsPhase.HELD or not (row.live or row.start_time is not None)


def _is_to_end(want: Want, phase: LrmsPhase) -> bool:
    if want is Want.GONE:
        return phase is not LrmsPhase.COMPLETING
    return want is Want.OVER and phase in _NOT_STARTED


def _is_later(moment: float, table: QueueSnapshot) -> bool:
    # Whether a poll cannot show something from that moment, allowing for a clock set back since.
    return table.began_at <= moment <= table.taken_at + STEP_S


def _again(job: TrackedJob, row: JobRow) -> bool:
    # A batch system may correct a start by a second; a new submission of the same job is a requeue.
    if job.start_time is None or row.start_time is None:
        return False
    later = row.start_time - job.start_time
    before = None if job.row is None else job.row.submit_time
    return later > _SAME_START_S or (later > 0 and before != row.submit_time)


_SAME_START_S = 2.0


def _of_row(row: JobRow) -> Ending | None:
    return None if row.end is None else Ending(row.start_time, row.end)
