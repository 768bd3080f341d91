"""The port of a site to its local batch system (LRMS), implemented by every adapter.

The LRMS is left untouched: it gets jobs, and releases or ends those that it got, and is polled. Everything is
asynchronous. A command returns when the LRMS has acknowledged it, or raises that it was refused or unanswered; what
then happens to jobs is reported by events.

The rules that keep a job from being lost and from running twice:

- Every job has a key, unique for all time. A key that the LRMS has is never submitted a second
  time: `submit` then does nothing. After `LrmsUnavailableError` a command may have taken effect or
  not; the caller looks the key up before it repeats it.
- A refusal is about one attempt. An earlier one without an answer may arrive later: where the caller
  gives the job up, as it does a partner's job that is refused and any job that it has cancelled, it does not start.
- A copy of a job that has begun, which such an attempt may leave, does not start either. It neither stands for the job nor says how
  that has ended: `look_up` does not return it, and its end is not told.
- A batch system may forget what it has acknowledged, and undo a cancel or a release. Its adapter
  then emits `Lost`, `Vanished` and `Appeared`, and takes precautions of its own: it may hold what
  it submits until it is sure, and release it last.
- Doubt is not an end. Absence of a job from the queue proves nothing: it is reported as `Unseen`,
  and as `Ended`, `Lost` or `Vanished` only on other evidence.
- Events of one key come in the order of what happened, each once in the life of an adapter. After
  a restart they may be repeated; consumers must accept that.

Moments are seconds of the site's clock, which under a real batch system is the time since 1970.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from grms.daemon.job_files import JobFile
from grms.daemon.shared_folders import SharedFile
from grms.lrms.home_run import HomeRun
from grms.lrms.partitions import NO_PARTITIONS, Partitions
from grms.util.outcomes import Outcome
from grms.util.values import QuickEnum, dataclass
from lrms_sim.util.errors import HanseError
from lrms_sim.workload.requests import Request

if TYPE_CHECKING:
    # It imports numpy, which a client need not load.
    from grms.lrms.immediate_start import QueuePlan


class LrmsError(HanseError):
    """The LRMS has not carried out a command; `reason` says why, for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LrmsRefusedError(LrmsError):
    """The LRMS has refused a command, and not carried it out.

    Attributes:
        passing: it may succeed after a change that is independent of the job: a partition is drained, a
            quota used up. Otherwise repeating it is useless.
        full: as many jobs are in the queue as may be there; with one less there is room.
    """

    def __init__(self, reason: str, *, passing: bool = False, full: bool = False) -> None:
        super().__init__(reason)
        self.passing = passing
        self.full = full


class NoDeputyError(LrmsRefusedError):
    """Nothing can be run as a user now, whose deputy is not there or does not do it; nothing was."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, passing=True)


class LrmsUnavailableError(LrmsError):
    """Nobody has answered, or not in time. The command may have been carried out all the same."""


class LrmsDiskError(LrmsUnavailableError):
    """A job's own folder, or its notes, cannot be accessed now: the disk is full, or away.

    If `unbegun`, nothing has reached the LRMS by this command, nor by an earlier one.
    """

    def __init__(self, reason: str, *, unbegun: bool = False) -> None:
        super().__init__(reason)
        self.unbegun = unbegun


class UserAwayError(LrmsUnavailableError):
    """A process of one user's has not answered, or without sense: that says nothing of the LRMS, nor of other users."""


class LrmsPhase(QuickEnum):
    """Where a job stands in the LRMS.

    HELD: it does not start before it is released, whoever holds it.
    WAITING: in the queue.
    RUNNING: it has processors.
    SUSPENDED: it has started, and is paused.
    COMPLETING: it is over; its processors are not free yet.
    ENDED: it is over, in any way.
    UNKNOWN: the LRMS reports a state that the adapter does not understand, or does not show the job.
    """

    HELD = "held"
    WAITING = "waiting"
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETING = "completing"
    ENDED = "ended"
    UNKNOWN = "unknown"


RESTARTS: Final = "HANSE_RESTART_COUNT"
"""Variable of a job that goes on from its state: how often it has begun before."""


@dataclass(frozen=True, slots=True)
class JobInput:
    """An input file in a job's folder.

    Attributes:
        file: its name there, size and digest.
        content: path of its content at the site; empty if the site has none.
    """

    file: JobFile
    content: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """What a real batch system runs.

    Attributes:
        script: text of the batch script, with its first line (`#!`).
        environment: variables in addition to those set by the LRMS.
        outputs: files in its folder that its user wants.
        shared: files used in place; one of them may be the script, whose text is then empty.
        checkpoint: files in its folder in which it writes its state, from which a later run goes on; empty if it does not.
        merged: standard error goes where standard output goes.
        truncated: a further run begins its output anew, instead of adding to it.
    """

    script: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    inputs: tuple[JobInput, ...] = ()
    shared: tuple[SharedFile, ...] = ()
    merged: bool = False
    truncated: bool = False
    checkpoint: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """Behaviour of a job on a simulated machine; other adapters ignore it.

    Attributes:
        run_time: actual run time in seconds; cut off at the requested time.
        group: user group, 1 to 5, for disciplines by group; `None` counts as 5.
        row: its place among all jobs of a replay, for jobs of one moment; `None` outside of replays.
    """

    run_time: float
    group: int | None = None
    row: int | None = None


@dataclass(frozen=True, slots=True)
class LrmsJob:
    """A job as submitted to the LRMS.

    Attributes:
        key: unique for all time: `home site/epoch in hexadecimal/number`.
        processors: needed all at once.
        requested_time: wall-time limit in seconds.
        user: owner, by the name of this machine's kernel; empty for a guest.
        partner: the home site of a guest; empty for a local job.
        program: `None` if there is none.
        simulated: behaviour on a simulated machine; `None`: as long as requested.
        account: local account as which it runs; empty for the site's own. An adapter that does not
            support this refuses the job.
        protected: of a preemptible guest: it is not ended as long as the site protects its guests. An adapter that
            cannot protect any ends it as the others.
        name: of the job for its script, in a variable of the batch system; may be empty.
        home: settings of a local job at its own site, if given. An adapter that does not support them
            runs it in a folder of its own.
        request: all that it asks for, in the names of this site and with its wall time; `None`:
            processors alone. What its `home` says in options of its own goes first.
        preemptible: a guest that may be ended for another job (PREEMPTED), as its home site runs it again. An adapter
            that cannot have that runs it as any other; of a job without it no adapter has the LRMS do that.
        at_once: of a preemptible guest: processors are idle, on which it starts at once, past the queue. A simulated
            machine refuses it where that is not so; others have a queue for such guests.
        place: since when it waits for a place to run, seconds, if it comes back to its queue, or the queue is made anew; `None`
            for a new one. A simulated machine puts it where it would stand since then; an adapter whose LRMS has no such
            place puts it behind all others.
        aside: it runs elsewhere, and only its place in the queue is kept: it does not start before it is submitted again
            without this. For `WithPlaces` alone.
    """

    key: str
    processors: int
    requested_time: float
    user: str = ""
    partner: str = ""
    program: Program | None = None
    simulated: SimulatedRun | None = None
    account: str = ""
    protected: bool = False
    name: str = ""
    home: HomeRun | None = None
    request: Request | None = None
    preemptible: bool = False
    at_once: bool = False
    place: float | None = None
    aside: bool = False

    @property
    def once(self) -> bool:
        """Whether its user has said that it must not run again."""
        return self.request is not None and self.request.requeue is False


@dataclass(frozen=True, slots=True)
class LrmsEnd:
    """How a job ended.

    Attributes:
        end_time: seconds.
        run_time: how long it held its processors, seconds; 0 if it never started.
        exit_code: of its script; `None` if there is none, or it is unknown.
        signal: that ended it; `None` if there was none, or it is unknown.
        reason: for people, in the words of the LRMS; may be empty.
        kept: of a job that was ended for another one: how long it had run when it last wrote its state, seconds; 0 if it
            has written none, or is not followed by files.
    """

    outcome: Outcome
    end_time: float
    run_time: float
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    kept: float = 0.0


@dataclass(frozen=True, slots=True)
class LrmsRecord:
    """What the LRMS knows of a job.

    Attributes:
        start_time: of its present or last run, seconds; `None` if it has not started.
        end: `None` if it has not ended.
        reason: of its state, in the words of the LRMS; may be empty.
        restarted: it is known to have started, and waits again; or did so when it ended.
    """

    phase: LrmsPhase
    start_time: float | None = None
    end: LrmsEnd | None = None
    reason: str = ""
    restarted: bool = False


class NodeView(Protocol):
    """Nodes and partitions at one poll. Pure; requests are in the names of this site, with a wall time."""

    @property
    def guarded_features(self) -> frozenset[str]:
        """Those that keep jobs away from what has them, unless a job names them."""

    def named(self, request: Request, *, guest: bool) -> Request:
        """Returns a job with the account and QOS under which it is submitted, where these count for whether it runs.

        With `guest` it is a partner's.
        """

    def lacks(self, request: Request) -> str:
        """Returns why no node here could run such a job, whatever its state and limits; empty if some could."""

    def why_not(self, request: Request) -> str:
        """Returns why such a job, submitted now, would not start even with room; empty if it would."""

    def starts_now(self, request: Request, now: float, before: Sequence[Request] = ()) -> bool:
        """Returns whether such a job, submitted behind all others, would start at once.

        `now` is in seconds, not before the poll; `before` were submitted, and are not in the poll yet.
        """


@dataclass(frozen=True, slots=True)
class LrmsLoad:
    """The numbers used by a decision, at one moment.

    Attributes:
        taken_at: that moment, seconds.
        processors: size of the part of the machine that the site may use.
        free: processors that no job holds.
        waiting: waiting parallelism: the sum of the processors of everybody's jobs that wait and could
            start, excluding those that are held, depend on others, or can never start.
        plan: whether one more job would start at that moment; `None` if only the numbers are known.
        partitions: which jobs are accepted at that moment, and start when there is room.
        nodes: the same for what a job asks for besides processors; `None` if the batch system says nothing of nodes.
        idle: used by nobody at all, where `free` has those, too, whose jobs lose them to own ones; `None`: not told.
    """

    taken_at: float
    processors: int
    free: int
    waiting: int
    plan: "QueuePlan | None" = field(default=None, compare=False)
    partitions: Partitions = field(default=NO_PARTITIONS, compare=False)
    nodes: NodeView | None = field(default=None, compare=False)
    idle: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class LrmsSnapshot:
    """One poll of the LRMS.

    Attributes:
        taken_at: seconds.
        processors, free, waiting: as in `LrmsLoad`.
        jobs: of this site, by key, including ended ones as long as it remembers them.
    """

    taken_at: float
    processors: int
    free: int
    waiting: int
    jobs: Mapping[str, LrmsRecord]

    @property
    def load(self) -> LrmsLoad:
        """The numbers alone."""
        return LrmsLoad(self.taken_at, self.processors, self.free, self.waiting)


# --- events --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Accepted:
    """The LRMS has a job, and every later load includes it, unless it is held.

    It comes with or after the return of `submit`; a polling adapter emits it when it has seen the job.
    """

    key: str


@dataclass(frozen=True, slots=True)
class Started:
    """A job has started; `start_time` in seconds."""

    key: str
    start_time: float


@dataclass(frozen=True, slots=True)
class Paused:
    """A started job is suspended, is completing, or runs again.

    `phase` is RUNNING, SUSPENDED or COMPLETING; `time` is that of the poll that has shown it, seconds. It is emitted
    on each change after `Started`, which means RUNNING.
    """

    key: str
    phase: LrmsPhase
    time: float


@dataclass(frozen=True, slots=True)
class Requeued:
    """A started job waits again, and will start once more; its work is lost.

    `reason` is for people: a node failed, it was preempted, or an operator wanted it.
    """

    key: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hindered:
    """A job waits for something other than room: its start cannot be predicted.

    The partition that would run it is closed, or no partition runs such a job. Emitted again when the reason
    changes, and with an empty one when nothing is in its way any more.

    `deferred`: it waits as its user, or an operator, has told the batch system: for a release, a moment, or another job.
    """

    key: str
    reason: str
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """A job has ended, for any reason: by itself, by `cancel`, or by others.

    If a job ended between two polls, a `Started` event is emitted first; if it waited again by then, after a start, a
    `Requeued` one.
    """

    key: str
    end: LrmsEnd


@dataclass(frozen=True, slots=True)
class Lost:
    """The LRMS has forgotten an acknowledged job, which has certainly not started.

    It may be submitted again under its key.
    """

    key: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Vanished:
    """A job is gone, and it is unknown whether it ran or how it ended. It must not be repeated.

    The LRMS itself does not know it, and the time within which it could still run is over.
    """

    key: str
    time: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unseen:
    """The state of a job is unknown, without evidence of its end; emitted once, until `SeenAgain` or its end."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class SeenAgain:
    """Where a job stands is known again."""

    key: str


@dataclass(frozen=True, slots=True)
class Appeared:
    """A job exists under a key that was not there, and that was not submitted now.

    A cancel or an end was undone, or an older journal left an orphan. The consumer continues with the job if it is
    wanted, and cancels it otherwise.
    """

    key: str
    record: LrmsRecord


@dataclass(frozen=True, slots=True)
class LoadSeen:
    """The load as it has become known. It comes after what else was seen in the same look."""

    load: LrmsLoad


@dataclass(frozen=True, slots=True)
class Away:
    """The LRMS does not answer; told once, until `Back`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Back:
    """The LRMS answers again; events of what has changed meanwhile follow."""


LrmsEvent = (
    Accepted
    | Started
    | Paused
    | Requeued
    | Hindered
    | Ended
    | Lost
    | Vanished
    | Unseen
    | SeenAgain
    | Appeared
    | LoadSeen
    | Away
    | Back
)

Tell = Callable[[Sequence[LrmsEvent]], None]
"""Receives the events of one poll, in order. It is called on the event loop, returns at once and does not
raise.
"""


class Lrms(Protocol):
    """A local batch system.

    The order of calls: `listen`, `open`, then `run` as a task beside all others, finally `close`. All calls come
    from one event loop; several may be under way at once, but never two about one key. A call may be cancelled at
    any moment (a time-out); its outcome is then as unknown as after `LrmsUnavailableError`, and no process may be
    left behind.
    """

    @property
    def remembers(self) -> float:
        """How long after its end `look_up` surely finds a job, seconds.

        Infinity if there are records of all. A job that is missing later than that may have ended: it is not
        repeated.
        """

    def listen(self, tell: Tell) -> None:
        """Sets who receives events; called once, before anything else."""

    async def open(self) -> None:
        """Prepares, without waiting for an LRMS that does not answer.

        Raises:
            LrmsError: something is missing that an operator has to fix.
        """

    async def run(self) -> None:
        """Follows the LRMS and tells events, until it is cancelled; it never ends by itself."""

    async def close(self) -> None:
        """Gives back what `open` took; jobs go on."""

    def encode(self, key: str) -> str:
        """Returns the name of a job of this site in the LRMS, for people and logs.

        It differs for every key, and for sites that share one LRMS: a job of site A accepted by site B is B's, and
        invisible to A's adapter.
        """

    async def submit(self, job: LrmsJob, *, held: bool = False) -> None:
        """Submits a job; a key that the LRMS has, or has had, changes nothing.

        The exception is a key reported as `Lost`, which is submitted anew. With `held` it does not start before
        `release`.

        Raises:
            LrmsRefusedError: it will never be accepted, such as when it is wider than the machine.
            LrmsUnavailableError: whether it was accepted is unknown.
        """

    async def release(self, key: str) -> None:
        """Releases a job that was submitted held; one that is not held is left as it is.

        A hold set by its user or an operator stays.

        Raises:
            LrmsRefusedError: there is no such job, or it may not be released.
            LrmsUnavailableError: whether it was done is unknown.
        """

    async def cancel(self, key: str, *, only_waiting: bool = False) -> bool:
        """Ends a job; its end is reported as `Ended`.

        With `only_waiting`, a job that has started is left alone, even if it waits again since. The LRMS itself
        must decide that, atomically.

        Returns:
            Whether it was there, had not ended, and is being ended.

        Raises:
            LrmsRefusedError: it may not be ended.
            LrmsUnavailableError: whether it was done is unknown.
        """

    async def look_up(self, key: str) -> LrmsRecord | None:
        """Returns what is known of a job, including one that ended long ago as far as records reach.

        Only a job that is to be here is looked up: one of an earlier process may be kept from its start until it is
        looked up, or submitted again.

        Calls in close succession may share a poll, as long as it began after the call.

        Returns:
            `None` if the LRMS has never had it, or has lost it.

        Raises:
            LrmsUnavailableError: the LRMS did not answer.
        """

    async def snapshot(self) -> LrmsSnapshot:
        """Polls the LRMS now.

        Raises:
            LrmsUnavailableError: the LRMS did not answer.
        """


class QueuePlace(QuickEnum):
    """What place a job has in the LRMS's queue that comes back to it.

    AS_SUBMITTED: where it would stand by `LrmsJob.place`.
    KEPT: where its place was kept while it was elsewhere (`WithPlaces`); behind all others where that was lost.
    BEHIND: behind all others, or by a priority that counts from now on.
    """

    AS_SUBMITTED = "where it would stand by its submission"
    KEPT = "where it stood"
    BEHIND = "a place behind all that wait then, or by a priority that counts from then on"


@runtime_checkable
class WithQueuePlace(Protocol):
    """An LRMS that tells what place a job has that comes back to its queue."""

    @property
    def queue_place(self) -> QueuePlace:
        """What place it has, by the last poll."""


@runtime_checkable
class WithPlaces(WithQueuePlace, Protocol):
    """An LRMS that can keep the place in its queue of a job that is elsewhere.

    What is kept never starts before the job is submitted again (`submit` without `LrmsJob.aside`), whoever starts it. `cancel`
    with any of the job's keys gives the place up. `snapshot` shows places as held jobs, by the keys of the jobs' first submissions.
    """

    async def keep_place(self, job: LrmsJob) -> None:
        """Keeps a place for a job that is elsewhere, behind all that wait now; where one is kept it changes nothing.

        Raises:
            LrmsRefusedError: none is kept; that is no harm but to the place.
            LrmsUnavailableError: whether one is kept is unknown.
        """

    async def leave(self, key: str) -> bool:
        """Ends a job as `cancel` with `only_waiting`, `Ended` included, and keeps its place for a later key of the same job."""

    def place_words(self, key: str) -> str:
        """Returns whether and how a job keeps its place, for people; empty if nothing is known. `key` is one of the job's."""


def queue_place_of(lrms: object) -> QueuePlace:
    """Returns what place a job has that comes back to an LRMS's queue; of one without the port that it is behind all others."""
    return lrms.queue_place if isinstance(lrms, WithQueuePlace) else QueuePlace.BEHIND


def place_words(lrms: object, key: str, *, away: bool) -> str:
    """Returns what place a job keeps in an LRMS's queue, or has had there again, for people.

    `key` is one of the job's. Nothing is empty; of one that is `away` it is known what place it would have.
    """
    words = lrms.place_words(key) if isinstance(lrms, WithPlaces) else ""
    place = queue_place_of(lrms)
    if words or not away:
        return words
    return f"it comes back to {(QueuePlace.BEHIND if place is QueuePlace.KEPT else place).value}"


@runtime_checkable
class TakesMany(Protocol):
    """An LRMS that takes many jobs in fewer calls, if their submissions come together."""

    @property
    def submissions_at_once(self) -> int:
        """How many `submit` are worth calling at one time; 0: as many as other commands."""


@runtime_checkable
class WithProblem(Protocol):
    """An LRMS that may answer, and be handed no jobs all the same."""

    @property
    def problem(self) -> str:
        """Why, for people; empty if jobs can be submitted."""
