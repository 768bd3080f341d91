"""What a site needs of its local batch system (LRMS): the port that every adapter implements.

The LRMS is left untouched: it is handed jobs, told to release or end those that it was handed, and
looked at. Everything is asynchronous. A command returns when the LRMS has acknowledged it, or says
that it was refused or that nobody answered; what then becomes of jobs is told as events.

The rules that keep a job from being lost and from running twice:

- Every job has a key, unique for all time. A key that the LRMS has is never submitted a second
  time: `submit` of it changes nothing. After `LrmsUnavailableError` a command may have been carried
  out or not; whoever gave it looks the key up before it repeats it.
- A batch system may forget what it has acknowledged, and undo a cancel or a release. An adapter of
  such a one tells `Lost`, `Vanished` and `Appeared` when it sees that, and takes precautions of its
  own: it may hold what it submits until it is sure, and release it last.
- A doubt is no end. That a table does not show a job proves nothing: it is told as `Unseen`, and as
  `Ended`, `Lost` or `Vanished` only by other evidence.
- Events about one key come in the order in which things happened, each once in the life of an
  adapter. After a restart they may come again; whoever hears them takes that.

Moments are seconds of the site's clock, which under a real batch system is the time since 1970.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from grms.kit.job_files import JobFile
from grms.kit.shared_folders import SharedFile
from grms.lrms.partitions import NO_PARTITIONS, Partitions
from grms.outcomes import Outcome
from grms.values import QuickEnum, dataclass
from lrms_sim.errors import HanseError

if TYPE_CHECKING:
    # It is of numpy, which a client need not load.
    from grms.lrms.plan import QueuePlan


class LrmsError(HanseError):
    """The LRMS has not done what it was told; the text says what and why.

    Args:
        reason: for a person.

    Attributes:
        reason: the same.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LrmsRefusedError(LrmsError):
    """The LRMS has answered that it does not do it, and has not done it.

    Args:
        reason: for a person, in the words of the LRMS.
        passing: it will when something has changed there that is no matter of the job: a partition is drained, an
            amount used up. Else repeating it is of no use.

    Attributes:
        passing: the same.
    """

    def __init__(self, reason: str, *, passing: bool = False) -> None:
        super().__init__(reason)
        self.passing = passing


class LrmsUnavailableError(LrmsError):
    """Nobody has answered, or not in time. The command may have been carried out all the same."""


class LrmsDiskError(LrmsUnavailableError):
    """A job's own folder, or what is kept of it, cannot be read or written now: the disk is full, or away.

    Args:
        reason: for a person.
        unbegun: nothing has reached the LRMS by this command, nor by one before it.

    Attributes:
        unbegun: the same.
    """

    def __init__(self, reason: str, *, unbegun: bool = False) -> None:
        super().__init__(reason)
        self.unbegun = unbegun


class LrmsPhase(QuickEnum):
    """Where a job stands in the LRMS.

    HELD: it does not start before it is released, by whomever it is held.
    WAITING: in the queue.
    RUNNING: it has processors.
    SUSPENDED: it has started, and does not run now.
    COMPLETING: it is over; its processors are not free yet.
    ENDED: it is over, in whatever way.
    UNKNOWN: the LRMS has it and says nothing that the adapter understands, or does not show it.
    """

    HELD = "held"
    WAITING = "waiting"
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETING = "completing"
    ENDED = "ended"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class JobInput:
    """A file that a job finds in its folder.

    Attributes:
        file: its name there, size and digest.
        content: path of its content, a file of the site's own; empty where the site has none.
    """

    file: JobFile
    content: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """What a real batch system runs.

    Attributes:
        script: text of the batch script, with its first line (`#!`).
        arguments: of the script.
        environment: variables of the job beside those that the LRMS sets.
        outputs: files that the job leaves in its folder and that its user wants.
        inputs: files that it finds there.
        shared: files that it uses where they lie; one of them may be the script, whose text is then empty.
    """

    script: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    inputs: tuple[JobInput, ...] = ()
    shared: tuple[SharedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class HomeRun:
    """Where and how a job was handed in, so that its own site runs it as if the batch system had been asked itself.

    Attributes:
        folder: in which it begins.
        environment: `NAME=value` each: all that it begins with, beside what the batch system sets.
        options: of the batch system's own program, `--name` or `--name=value`.
    """

    folder: str
    environment: tuple[bytes, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def umask(self) -> int:
        """The mask of its user, as Slurm writes it among the variables; negative where it is not there."""
        found = [each[12:] for each in self.environment if each.startswith(b"SLURM_UMASK=")]
        is_mask = bool(found) and found[-1].isdigit() and not found[-1].strip(b"01234567")
        return int(found[-1], 8) & 0o777 if is_mask else -1


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """What a simulated machine does for a job; no other adapter looks at it.

    Attributes:
        run_time: seconds it really runs; cut off at the requested time.
        group: user group, 1 to 5; read under a discipline by group only. None where nobody has
            said, which counts as 5.
    """

    run_time: float
    group: int | None = None


@dataclass(frozen=True, slots=True)
class LrmsJob:
    """A job as it is handed to the LRMS.

    Attributes:
        key: names it, unique for all time: `home site/epoch in hexadecimal/number`.
        processors: how many it needs, all at once.
        requested_time: seconds after which it may be killed.
        user: whose it is, by the name that the kernel of this machine has; empty for a guest.
        partner: the home site of a guest; empty for a job of the site's own users.
        program: what runs; None where there is none.
        simulated: what a simulated machine does instead; None: as long as requested.
        account: local account as which it runs; empty for the site's own. An adapter that cannot do
            that refuses the job.
        name: as its script is to find it in a variable of the batch system; may be empty.
        home: how it runs here, where it is a job of the site's own users and they have said so. An
            adapter that does not know how runs it in a folder of its own.
    """

    key: str
    processors: int
    requested_time: float
    user: str = ""
    partner: str = ""
    program: Program | None = None
    simulated: SimulatedRun | None = None
    account: str = ""
    name: str = ""
    home: HomeRun | None = None


@dataclass(frozen=True, slots=True)
class LrmsEnd:
    """How a job ended.

    Attributes:
        outcome: in one word.
        end_time: when, seconds.
        run_time: how long it held its processors, seconds; 0 where it never started.
        exit_code: that its script returned; None where it returned none, or nobody knows.
        signal: that ended it; None where none did, or nobody knows.
        reason: for a person, in the words of the LRMS; may be empty.
    """

    outcome: Outcome
    end_time: float
    run_time: float
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LrmsRecord:
    """What the LRMS knows of a job.

    Attributes:
        phase: where it stands.
        start_time: of its present or last run, seconds; None where it has not started.
        end: how it ended; None where it has not.
        reason: why it stands where it stands, in the words of the LRMS; may be empty.
        restarted: it is known to have started, and waits again.
    """

    phase: LrmsPhase
    start_time: float | None = None
    end: LrmsEnd | None = None
    reason: str = ""
    restarted: bool = False


@dataclass(frozen=True, slots=True)
class LrmsLoad:
    """The three numbers a decision rests on, as they were at a moment.

    Attributes:
        taken_at: that moment, seconds.
        processors: size of the part of the machine that the site may use.
        free: processors that no job holds.
        waiting: waiting parallelism: the sum of the processors of the jobs that wait and could
            start, everybody's; not of those that are held, depend on others, or can never start.
        plan: whether one more job would start at that moment; None where the numbers have to do.
        partitions: which jobs are taken at that moment, and start when there is room.
    """

    taken_at: float
    processors: int
    free: int
    waiting: int
    plan: "QueuePlan | None" = field(default=None, compare=False)
    partitions: Partitions = field(default=NO_PARTITIONS, compare=False)


@dataclass(frozen=True, slots=True)
class LrmsSnapshot:
    """One look at the LRMS.

    Attributes:
        taken_at: when, seconds.
        processors: as in `LrmsLoad`.
        free: same.
        waiting: same.
        jobs: what it has of this site's, ended ones too as long as it remembers them, by key. Jobs
            that were not submitted by this site are not in it.
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
    """The LRMS has a job, and every load told from now on counts it, unless it is held.

    It comes with or after the return of `submit`; an adapter that looks at intervals tells it when
    it has seen the job.
    """

    key: str


@dataclass(frozen=True, slots=True)
class Started:
    """A job has started.

    Attributes:
        key: of the job.
        start_time: when, seconds.
    """

    key: str
    start_time: float


@dataclass(frozen=True, slots=True)
class Requeued:
    """A job that had started waits again, and will start once more; what it has done is lost.

    Attributes:
        key: of the job.
        time: when, seconds.
        reason: for a person: a node failed, it was preempted, an operator wanted it.
    """

    key: str
    time: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hindered:
    """A job waits for something that is no room: nobody knows when it could start.

    The part of the machine that would run it is shut, or no part runs such a job. Told again when the reason is
    another one, and without any when there is none any more.

    Attributes:
        key: of the job.
        reason: for a person, in the words of the LRMS; empty where nothing is in its way any more.
    """

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A job has ended, in whatever way and by whomever: by itself, by `cancel`, by other hands.

    Of a job so short that its start was not seen, `Started` is told before it.

    Attributes:
        key: of the job.
        end: how.
    """

    key: str
    end: LrmsEnd


@dataclass(frozen=True, slots=True)
class Lost:
    """The LRMS has forgotten a job that it had acknowledged, and that has certainly not started.

    It may be submitted again under its key.
    """

    key: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Vanished:
    """A job is gone, and nothing says whether it ran, or how it ended. It must not be repeated.

    The LRMS itself does not know it, and the time is over within which it could still run.
    """

    key: str
    time: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unseen:
    """Where a job stands is not known, and nothing says that it is over; told once, until `SeenAgain` or its end.

    Attributes:
        key: of the job.
        reason: for a person.
    """

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class SeenAgain:
    """Where a job stands is known again."""

    key: str


@dataclass(frozen=True, slots=True)
class Appeared:
    """There is a job under a key that was not there, and that nobody has submitted now.

    A cancel that was undone, an end that was taken back, an orphan of an older journal. Whoever
    hears it goes on with the job where it is wanted, and cancels it where it is not.
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
"""Takes what one look has shown, in order. It is called on the event loop, returns at once and does
not raise."""


class Lrms(Protocol):
    """A local batch system.

    The order of calls: `listen`, `open`, then `run` as a task beside all others, `close` at the
    end. All calls come from one event loop; several may be under way at once, but never two about
    one key. A call may be cancelled at any moment (a time-out); its outcome is then as unknown as
    after `LrmsUnavailableError`, and no process may be left behind.
    """

    @property
    def remembers(self) -> float:
        """So long after its end `look_up` surely finds a job, seconds.

        Infinity where there are records of all. A job that is not found later than that may have
        ended: it is not repeated.
        """

    def listen(self, tell: Tell) -> None:
        """Sets who receives events; called once, before anything else."""

    async def open(self) -> None:
        """Makes ready, without waiting for an LRMS that does not answer.

        Raises:
            LrmsError: something is missing that an operator has to mend.
        """

    async def run(self) -> None:
        """Follows the LRMS and tells events, until it is cancelled; it never ends by itself."""

    async def close(self) -> None:
        """Gives back what `open` took; jobs go on."""

    def encode(self, key: str) -> str:
        """Returns the name under which the LRMS has a job of this site, for people and logs.

        It differs for every key, and for sites that share one LRMS: a job of site A that site B
        has taken is B's, and A's adapter does not see it.
        """

    async def submit(self, job: LrmsJob, *, held: bool = False) -> None:
        """Puts a job into the queue; a key that the LRMS has, or has had, changes nothing.

        The exception is a key that was told as `Lost`: it is submitted as if it were new.

        Args:
            job: what to run.
            held: it does not start before `release`.

        Raises:
            LrmsRefusedError: it will never be taken, as when it is wider than the machine.
            LrmsUnavailableError: whether it was taken is unknown.
        """

    async def release(self, key: str) -> None:
        """Lets a job start that was submitted held; one that is not held is left as it is.

        A hold that its user or an operator has set stays.

        Raises:
            LrmsRefusedError: there is no such job, or it may not be released.
            LrmsUnavailableError: whether it was done is unknown.
        """

    async def cancel(self, key: str, *, only_waiting: bool = False) -> bool:
        """Ends a job; that it has ended is told as `Ended`.

        Args:
            key: which.
            only_waiting: leave it alone if it has started, also where it waits again since. The LRMS
                itself must decide that, in one step.

        Returns:
            Whether it was there, had not ended, and was told to end.

        Raises:
            LrmsRefusedError: it may not be ended.
            LrmsUnavailableError: whether it was done is unknown.
        """

    async def look_up(self, key: str) -> LrmsRecord | None:
        """Returns what is known of a job, also of one that ended long ago as far as records reach.

        Calls that come close together may share one look, as long as it began after the call.

        Returns:
            What is known; None where the LRMS has never had it, or has lost it.

        Raises:
            LrmsUnavailableError: nobody answered.
        """

    async def snapshot(self) -> LrmsSnapshot:
        """Takes a look at the LRMS now.

        Raises:
            LrmsUnavailableError: nobody answered.
        """


@runtime_checkable
class WithProblem(Protocol):
    """An LRMS that may answer, and be handed no jobs all the same."""

    @property
    def problem(self) -> str:
        """Why, for a person; empty where that is not so."""
