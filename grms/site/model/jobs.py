"""What the site knows of jobs: requests, offers, ends, and the jobs themselves.

A request is all that a decision may see of a job. The payload, the actual program, is bytes that are carried from
the user to a batch system and never inspected here.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache, partial
from typing import ClassVar, Final, Protocol, Self

import msgspec

from grms.lrms.base import LrmsEnd, LrmsPhase
from grms.site.model.lifecycle import (
    GUEST_MOVES,
    GUEST_SHOWN_AS,
    JOB_MOVES,
    SHOWN_AS,
    WAITING,
    GuestState,
    IllegalMove,
    JobState,
    Outcome,
)
from grms.util.dependencies import Dependency
from grms.util.values import dataclass
from lrms_sim.workload.requests import Request as Needs

LEFT_LEAST: Final = 1.0
"""What is left at least of a request as its job goes on from state that it has written, seconds."""

KEY_PARTS = 3
"""Parts of a first `lrms_key`: home, epoch and number."""

STORY_MAX = 32
"""How many of its last states a job remembers, for the message of an `IllegalMove`."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a job asks for.

    `processors` are needed all at once, at least 1; `requested_time` is the wall-time limit, seconds, more than 0.
    `needs` are the same with all that it asks for besides; `None` if it asks for processors alone.

    Raises:
        ValueError: a bound is violated.
    """

    processors: int
    requested_time: float
    needs: Needs | None = None

    def __post_init__(self) -> None:
        """Checks the bounds."""
        if not 1 <= self.processors < 2**31:
            raise ValueError(f"processors is {self.processors}; it must be at least 1")
        if not (self.requested_time > 0 and math.isfinite(self.requested_time)):
            raise ValueError(
                f"requested_time is {self.requested_time}; it must be finite and more than 0"
            )
        needs = self.needs
        if needs is not None and (needs.processors, needs.wall_time) != (
            self.processors,
            self.requested_time,
        ):
            raise ValueError(
                f"needs are {needs.processors} processors for {needs.wall_time} s; they must be those "
                f"of the request, {self.processors} for {self.requested_time} s"
            )

    @classmethod
    def of(cls, needs: Needs) -> Self:
        """Returns the request of a job that asks for all that; its wall time is known."""
        assert needs.wall_time is not None
        return cls(needs.processors, needs.wall_time, needs)

    @property
    def asked(self) -> Needs:
        """All that it asks for, where it is processors alone as well."""
        return self.needs or Needs.of_processors(self.processors, self.requested_time)

    @property
    def shape(self) -> Needs | None:
        """What is to be asked of the nodes; None where it asks for nothing but what every batch system has."""
        needs = self.needs
        if needs is None:
            return None
        more = needs.partition or needs.qos or needs.image or needs.signal
        return needs if more or not needs.processors_alone else None


StartsNow = Callable[[int, float], bool]
"""Says whether a job of so many processors and that requested time, seconds, would start now."""


class Nodes(Protocol):
    """What the batch system says of its nodes at the moment of an event, to be asked while that is handled."""

    @property
    def guarded_features(self) -> frozenset[str]:
        """Those that keep jobs away from what has them, unless a job names them."""

    def named(self, needs: Needs, *, guest: bool) -> Needs:
        """Returns a job with the account and QOS under which it is submitted, where these count for whether it runs."""

    def lacks(self, needs: Needs) -> str:
        """Returns why no node here could run such a job, whatever its state and limits; empty if some could."""

    def why_not(self, needs: Needs) -> str:
        """Returns why such a job would not start here, however much room there is; empty if it would."""

    def starts_now(self, needs: Needs, *, before: Sequence[Needs] = ()) -> bool:
        """Returns whether such a job would start at once, behind all that wait, and these as well."""


@dataclass(frozen=True, slots=True)
class Load:
    """The batch system's state at the moment of an event; partners never see it.

    Attributes:
        processors: size of the machine.
        processors_free: not held by running jobs.
        processors_waiting: waiting parallelism, the sum of the waiting jobs' processors.
        asked: the batch system's own answer whether it would start a job at that moment; callable only while the
            event is handled. `None` if it has none.
        waits: its own answer whether a job waits in its queue, by key; likewise. `None` if it has to be looked up.
        refuses: why a job of so many processors and that requested time, seconds, would not start here however
            much room there is; empty if it would. `None` if any would.
        nodes: its answers about jobs that ask for more than processors; `None` if it has none about its nodes.
        coming: requests of jobs that are on their way to it, which it does not know of.
        processors_idle: used by nobody at all, where `processors_free` has those, too, whose jobs are ended for own
            jobs; `None` where these are the same.
        hidden: processors of the latter, where the batch system that is asked takes them for used.
    """

    processors: int
    processors_free: int
    processors_waiting: int
    asked: StartsNow | None = field(default=None, compare=False, repr=False)
    waits: Callable[[str], bool] | None = field(default=None, compare=False, repr=False)
    refuses: Callable[[int, float], str] | None = field(default=None, compare=False, repr=False)
    nodes: Nodes | None = field(default=None, compare=False, repr=False)
    coming: Collection[Request] = field(default=(), compare=False, repr=False)
    processors_idle: int | None = field(default=None, compare=False)
    hidden: int = field(default=0, compare=False)

    @property
    def idle(self) -> int:
        """Processors that nobody at all uses."""
        return self.processors_free if self.processors_idle is None else self.processors_idle

    def starts_now(self, request: Request) -> bool:
        """Returns whether the batch system would start a job at once, behind all that wait.

        If it cannot be asked, only what is certain is a yes: no job waits, and there is room. The request is no wider
        than the machine.
        """
        shape = self._shape(request)
        if shape is not None:
            return self.nodes is not None and self.nodes.starts_now(
                shape, before=[each.asked for each in self.coming]
            )
        if self.asked is not None:
            starts = self.asked(request.processors, request.requested_time)
            if starts or not self.hidden:
                return starts
        return self.processors_waiting == 0 and request.processors <= self.processors_free

    def named(self, request: Request, *, guest: bool) -> Request:
        """Returns the request with the account and QOS under which it is submitted, where these count for whether it runs.

        With `guest` it is a partner's. It is for questions to this load, not for records: the site's file may change.
        """
        if self.nodes is None:
            return request
        needs = self.nodes.named(request.asked, guest=guest)
        return request if needs == request.asked else Request.of(needs)

    def lacks(self, request: Request) -> str:
        """Returns why no node here could run a job, whatever its state and limits; empty if some could, or nobody says it."""
        shape = self._shape(request)
        return "" if shape is None or self.nodes is None else self.nodes.lacks(shape)

    def refusal(self, request: Request) -> str:
        """Returns why a job would not start here, however much room there is; empty if it would.

        The part of the machine that would run it is shut, or no part runs such jobs.
        """
        if request.processors > self.processors:
            return f"{self.processors} processors work; it needs {request.processors}"
        shape = self._shape(request)
        if shape is not None:
            return NO_NODES if self.nodes is None else self.nodes.why_not(shape)
        if self.refuses is None:
            return ""
        return self.refuses(request.processors, request.requested_time)

    def room_for(self, request: Request) -> int:
        """Returns the free processors that a job could have: fewer than it needs where its nodes have none for it.

        Args:
            request: of the job, no wider than the machine.
        """
        free = self.processors_free
        if self._shape(request) is None or free < request.processors or self.starts_now(request):
            return free
        return request.processors - 1

    def _shape(self, request: Request) -> Needs | None:
        # An account is asked about where there is somebody to ask: of one without nodes every account is good.
        needs = request.needs
        named = needs is not None and needs.account and self.nodes is not None
        return needs if named else request.shape


NO_NODES: Final = (
    "it asks for more than processors, and the batch system here says nothing of its nodes"
)


@dataclass(frozen=True, slots=True)
class Weighed:
    """Input of the last decision about a home job, for watchers; not durable.

    Attributes:
        load: of the batch system as the policy got it; `None` if it did not answer.
        kept_for: the partner for which the site's policy wanted to keep the job; empty if it wanted to give it away,
            or no partner was left to ask.
    """

    load: Load | None
    kept_for: str


@dataclass(frozen=True, slots=True)
class OfferId:
    """Names one offer of a home site to one partner.

    `epoch` is of the home site's journal, greater for a journal that replaces a lost one; `number` is 1, 2, 3, … for
    each partner and epoch.
    """

    epoch: int
    number: int


class GuestRef(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Names a guest job, by its home site and the offer."""

    partner: str
    offer: OfferId


JobRef = int | GuestRef
"""Says which job is meant: an own user's by the site's number of it, or a partner's."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a job's script exited, as far as is known.

    `code` is 0 to 255, `signal` 1 to 127; `None` if there was none, or it is unknown.

    Raises:
        ValueError: a number is out of its bounds.
    """

    code: int | None = None
    signal: int | None = None

    def __post_init__(self) -> None:
        """Checks the bounds."""
        if self.code is not None and not 0 <= self.code <= 255:
            raise ValueError(f"exit_code is {self.code}; it must be from 0 to 255")
        if self.signal is not None and not 1 <= self.signal <= 127:
            raise ValueError(f"signal is {self.signal}; it must be from 1 to 127")

    @classmethod
    def known(cls, code: int | None, signal: int | None) -> "Exit":
        """Returns a batch system's exit information without numbers out of bounds, which count as unknown."""
        if code is None and signal is None:
            return NO_EXIT
        return cls(
            code if code in range(256) else None,
            signal if signal in range(1, 128) else None,
        )


NO_EXIT = Exit()
"""Nothing is known."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The end of a delegated job.

    Attributes:
        end_time: on the clock of the site that ran it, seconds.
        run_time: how long it held its processors, seconds; 0 if it never started.
        said: a newer partner's word for an outcome unknown to this program; else empty.
        kept: of a job that was ended for another one: how long it had run when it last wrote its state, seconds; 0 if
            nothing is kept.

    Raises:
        ValueError: a time is not finite, or a duration is negative.
    """

    offer: OfferId
    outcome: Outcome
    end_time: float
    run_time: float
    exit: Exit = NO_EXIT
    said: str = ""
    kept: float = 0.0

    def __post_init__(self) -> None:
        """Checks the bounds: a partner's report enters sums by which others are judged."""
        if not math.isfinite(self.end_time):
            raise ValueError(f"end_time is {self.end_time}; it must be finite")
        if not 0 <= self.run_time < math.inf:
            raise ValueError(f"run_time is {self.run_time}; it must be finite and at least 0")
        if not 0 <= self.kept < math.inf:
            raise ValueError(f"kept is {self.kept}; it must be finite and at least 0")


@dataclass(frozen=True, slots=True)
class SentHome:
    """What a partner has sent home of one job, after it had begun there.

    Attributes:
        times: how often.
        lost: how long it has run there in all without what is kept, by the partner's clock, seconds.
        kept: how long it has run there in all until it wrote the state from which it goes on, likewise.
        kept_times: how often it has come with such state.
        problem: why it does not go on from what it wrote there the last time, for people; empty if it does.
    """

    site: str
    times: int
    lost: float
    kept: float = 0.0
    kept_times: int = 0
    problem: str = ""


class StateThere(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where the state lies that a job has written before it was sent home.

    `kept` is how long it had run there by then, as the partner says, seconds.
    """

    partner: str
    offer: OfferId
    kept: float


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a delegated job stands, in the words of the partner that has it.

    Attributes:
        phase: WAITING, RUNNING, SUSPENDED or COMPLETING.
        since: when that began, on the partner's clock, seconds.
        start_time: on that clock, seconds; nan while it waits.

    Raises:
        ValueError: a time is not finite.
    """

    offer: OfferId
    phase: LrmsPhase
    since: float
    start_time: float = math.nan

    def __post_init__(self) -> None:
        """Checks the bounds."""
        if not math.isfinite(self.since):
            raise ValueError(f"since is {self.since}; it must be finite")
        if math.isinf(self.start_time):
            raise ValueError(f"start_time is {self.start_time}; it must be finite")


class LocalJob(msgspec.Struct, eq=False, kw_only=True):
    """A job that the batch system has or may get, of a local user or of a partner.

    Attributes:
        lrms_key: its unique name in the batch system, for all time.
        cancel_requested: its user, or its home site, wants it to end.
        kept_time: from when on the batch system is to have it, seconds; nan before.
        leaving: the batch system was told to release it, and may do so, or still do so.
        told_once: it was told so once, by this process, and has not answered.
        end_told: its end, as a job that was cancelled as it waited, until that answer tells whose cancel it was.
        lost: how often the batch system has lost it before its start.
        hindered: what it waits for other than room: the batch system does not accept it now, or the part of the
            machine that would run it is shut. Not durable; the batch system reports it again after a restart.
        deferred: it waits as somebody has told the batch system, for a release, a moment, or another job. Not durable either.
        preemptible: the batch system may end it for another job, and its home site runs it again; a partner's alone.
        protected: of a preemptible one: not as long as the site is in credit.
        begun: it has started here, whatever it does now.
        paused: SUSPENDED or COMPLETING, of a job that runs here; `None` for neither. Like the next not durable.
        paused_time: since when, as far as was seen, seconds.
        requeued_time: when it has begun to wait again, seconds; nan for never.
        start_time: of its last start, seconds; nan before, and while it waits again.
        end_time: seconds; nan before.
        run_time: how long it held its processors in the end, seconds.
        outcome: `None` before the end.
        reason: for a person; why it is in its state.
        story: its last states, oldest first.
    """

    MOVES: ClassVar[Mapping[JobState, Mapping[JobState, str]]]

    lrms_key: str
    request: Request
    payload: bytes
    state: JobState
    cancel_requested: bool = False
    kept_time: float = math.nan
    leaving: bool = False
    told_once: bool = False
    end_told: LrmsEnd | None = None
    lost: int = 0
    hindered: str = ""
    deferred: bool = False
    preemptible: bool = False
    protected: bool = False
    begun: bool = False
    paused: LrmsPhase | None = None
    paused_time: float = math.nan
    requeued_time: float = math.nan
    start_time: float = math.nan
    end_time: float = math.nan
    run_time: float = 0.0
    outcome: Outcome | None = None
    exit: Exit = NO_EXIT
    reason: str = ""
    story: list[JobState]

    @property
    def ref(self) -> JobRef:
        """Its name in records."""
        raise NotImplementedError

    @property
    def asked_here(self) -> Request:
        """What it asks of the own batch system, in the names of this site."""
        return self.request

    @property
    def program(self) -> bytes:
        """What runs."""
        return self.payload

    @property
    def came(self) -> float:
        """When it was submitted or released, or accepted, seconds."""
        raise NotImplementedError

    @property
    def owner(self) -> tuple[str, str]:
        """Its local user, or else the partner whose job it is; the other is empty."""
        raise NotImplementedError

    @property
    def standing(self) -> tuple[LrmsPhase, float] | None:
        """Where it stands in the batch system that has it, and since when, seconds; `None` if none has it."""
        if self.state is JobState.RUNNING:
            if self.paused is None:
                return LrmsPhase.RUNNING, self.start_time
            return self.paused, self.paused_time
        if self.state is JobState.SUBMITTING or self.state in WAITING:
            waits = self.kept_time if math.isnan(self.requeued_time) else self.requeued_time
            return LrmsPhase.WAITING, waits
        return None

    @property
    def begun_time(self) -> float:
        """When it has started, seconds; nan before."""
        return self.start_time

    def move(self, target: JobState) -> None:
        """Changes the state.

        Raises:
            IllegalMove: the table does not have this move.
        """
        if target not in self.MOVES[self.state]:
            raise IllegalMove(f"job {self}", self.story, target)
        self.state = target
        if len(self.story) == STORY_MAX:
            del self.story[0]
        self.story.append(target)


class HomeJob(LocalJob, eq=False, kw_only=True):
    """A job of one of the site's local users.

    Attributes:
        job: the site's number of it: 1, 2, 3, …
        job_id: its name for users.
        user, name: never sent to partners.
        submit_time: seconds.
        partner: to which it is offered or delegated; empty at home.
        offer_epoch, offer_number: of that offer; 0 at home.
        offer_time: seconds; nan at home.
        accept_time: of that offer, seconds; nan before.
        asked: partners that were offered it, in order.
        put: number of these, from the end, asked in the current decision.
        remaining: partners still to be asked in this decision; `None`: no decision has begun.
        questions_left: how many more partners this decision may ask; negative: any number.
        decision_time: when the decision began, seconds; nan before.
        take_back: an operator wants it back from where it is.
        overdue: it has passed its deadline, and its operator has been shown it.
        question: the question about its offer that is under way, by the id of its event; 0 for none.
        cancel_told: that question tells the partner to end the job.
        attempts: how often in a row that question went unanswered.
        confirms: its partner holds a place for it, and is to be told to start it.
        rerun: its partner was told that it may be run again.
        sent_home: by partner, in the order of the first time.
        checkpoint: it writes its state so often at least, seconds; 0 if it does not.
        state_there: the state that it has written, which is on its way home; it goes nowhere before that has come, or
            cannot come. `None` if nothing is on the way.
        restored: what it runs besides, to go on from state that has come home.
        restored_time: how long it had run in all before that, seconds.
        revision: counts the changes.
        unfit: why this site's own batch system would never run it, in its words; empty if it may.
        here: it is offered to nobody.
        sites: that may run it, partners or this one; empty for any.
        unplaced: how often neither this site nor any partner asked could run it.
        unplaced_time: of the last such finding, seconds; nan for none.
        weighed: input of its last decision; `None` before the first, and after a restart.
        array: number of the array of which it is an element; 0 for none.
        index: in that array.
        part: what an element runs besides the payload of its array.
        dependencies: what it waits or has waited for.
        released_time: when it was held no more, seconds; nan before, and if it never was.
        limited: which limits of a month have kept it from being offered, for its user; empty for none. Not durable.
        progress: where its partner has last said it stands; `None` before. Like the next not durable.
        progress_time: when that was said, on this site's clock, seconds.
    """

    MOVES = JOB_MOVES

    job: int
    job_id: str
    user: str
    idempotency_key: str
    name: str
    submit_time: float
    state: JobState = JobState.RECEIVED
    partner: str = ""
    offer_epoch: int = 0
    offer_number: int = 0
    offer_time: float = math.nan
    accept_time: float = math.nan
    asked: tuple[str, ...] = ()
    put: int = 0
    remaining: list[str] | None = None
    questions_left: int = -1
    decision_time: float = math.nan
    take_back: bool = False
    overdue: bool = False
    question: int = 0
    cancel_told: bool = False
    attempts: int = 0
    confirms: bool = False
    rerun: bool = False
    sent_home: tuple[SentHome, ...] = ()
    checkpoint: float = 0.0
    state_there: StateThere | None = None
    restored: bytes = b""
    restored_time: float = 0.0
    revision: int = 1
    story: list[JobState] = msgspec.field(default_factory=partial(list, (JobState.RECEIVED,)))
    unfit: str = ""
    here: bool = False
    sites: tuple[str, ...] = ()
    unplaced: int = 0
    unplaced_time: float = math.nan
    weighed: Weighed | None = None
    array: int = 0
    index: int = 0
    part: bytes = b""
    dependencies: tuple[Dependency, ...] = ()
    released_time: float = math.nan
    limited: str = ""
    progress: Progress | None = None
    progress_time: float = math.nan

    def __str__(self) -> str:
        """Names the job."""
        return self.job_id

    def move(self, target: JobState) -> None:
        """Changes the state; a change visible to watchers is counted.

        Raises:
            IllegalMove: the table does not have this move.
        """
        before = self.state
        super().move(target)
        self.revision += SHOWN_AS[target] is not SHOWN_AS[before]

    def begin_held(self) -> None:
        """Makes a new job one that is held."""
        self.state = JobState.HELD
        self.story = [JobState.HELD]

    def leave_partner(self) -> None:
        """Forgets the offer: the job is at home."""
        self.partner = ""
        self.offer_epoch = 0
        self.offer_number = 0
        self.offer_time = math.nan
        self.accept_time = math.nan
        self.confirms = False
        self.rerun = False
        self.take_back = False
        self.overdue = False
        self.question = 0
        self.attempts = 0
        self.progress = None
        self.progress_time = math.nan

    @property
    def standing(self) -> tuple[LrmsPhase, float] | None:
        """Where it stands in the batch system that has it, here or as its partner says, and since when, seconds.

        `None` if none has it, or its partner has not said. A partner's clock may be ahead of or behind this one:
        nothing began before the partner had it, or later than when that was said.
        """
        if self.progress is None or self.state is JobState.ENDED:
            return super().standing
        return self.progress.phase, self._here(self.progress.since)

    @property
    def begun_time(self) -> float:
        """When it has started, here or as its partner says, seconds; nan before."""
        if self.progress is None or self.state is JobState.ENDED:
            return self.start_time
        return self._here(self.progress.start_time)

    def _here(self, time: float) -> float:
        # A moment on the partner's clock, as far as that may be so on this one; nan stays.
        if math.isnan(time):
            return time
        least = self.offer_time if math.isnan(self.accept_time) else self.accept_time
        return max(least, min(time, self.progress_time))

    @property
    def since(self) -> float:
        """Since when it is in its state, or where it stands in it, seconds; nan if that is not known."""
        standing = self.standing
        if self.state is JobState.ENDED:
            return self.end_time
        if standing is not None:
            return standing[1]
        if self.state in {JobState.DELEGATED, JobState.SUSPECT}:
            return self.accept_time
        if self.partner:
            return self.offer_time
        return self.eligible_time if math.isnan(self.unplaced_time) else self.unplaced_time

    @property
    def array_id(self) -> str:
        """The name for users of the array of which it is an element; empty for none."""
        return self.job_id.rpartition("_")[0] if self.array else ""

    @property
    def ref(self) -> int:
        """Its name in records."""
        return self.job

    @property
    def came(self) -> float:
        """When it waited for nothing but a place to run, seconds."""
        return self.eligible_time

    @property
    def program(self) -> bytes:
        """What runs: the payload, with what an element has of its own and what it goes on from, as messages are merged."""
        return self.payload + self.part + self.restored

    @property
    def place(self) -> float | None:
        """Since when it waits for a place to run, seconds, if it comes back to its own queue; `None` if it is new there."""
        return self.came if self.sent_home else None

    @property
    def left(self) -> float:
        """What is left of its requested time as it goes on from state that it has written, seconds; 0 if it does not."""
        if not self.restored:
            return 0.0
        return max(LEFT_LEAST, self.request.requested_time - self.restored_time)

    @property
    def eligible_time(self) -> float:
        """When it waited for nothing but a place to run, seconds: its submission, or its release."""
        return self.submit_time if math.isnan(self.released_time) else self.released_time

    @property
    def named(self) -> tuple[str, str]:
        """Its user and name, by which `singleton` goes."""
        return self.user, self.name

    @property
    def owner(self) -> tuple[str, str]:
        """Its user, and no partner, wherever it is offered."""
        return self.user, ""

    @property
    def offer(self) -> OfferId:
        """Names its offer."""
        return OfferId(self.offer_epoch, self.offer_number)

    def sent_home_by(self, partner: str) -> SentHome:
        """Returns what a partner has sent home of it."""
        found = (each for each in self.sent_home if each.site == partner)
        return next(found, SentHome(partner, 0, 0.0))

    @property
    def times_sent_home_in_all(self) -> int:
        """How often partners have sent it home, whichever."""
        return sum(each.times for each in self.sent_home)

    def note_sent_home(self, partner: str, lost: float) -> None:
        """Notes that a partner has sent it home; `lost` is how long it has run there, seconds."""
        before = self.sent_home_by(partner)
        more = replace(before, times=before.times + 1, lost=before.lost + lost, problem="")
        if before.times:
            self._note(before, more)
        else:
            self.sent_home += (more,)

    def note_kept(self, partner: str, kept: float) -> None:
        """Notes that the state has come that it has written at a partner after so many seconds."""
        before = self.sent_home_by(partner)
        lost = max(0.0, before.lost - kept)
        times = before.kept_times + 1
        self._note(before, replace(before, lost=lost, kept=before.kept + kept, kept_times=times))

    def note_not_kept(self, partner: str, problem: str) -> None:
        """Notes why the state does not come that it has written at a partner."""
        before = self.sent_home_by(partner)
        self._note(before, replace(before, problem=problem))

    def _note(self, before: SentHome, after: SentHome) -> None:
        self.sent_home = tuple(after if each is before else each for each in self.sent_home)

    @property
    def shown(self) -> JobState:
        """Its state for watchers; `SHOWN_AS` has the mapping."""
        return SHOWN_AS[self.state]

    @property
    def to_end(self) -> bool:
        """Whether its partner has to end it."""
        return self.cancel_requested or self.take_back

    @property
    def consumption_requested(self) -> float:
        """Its greatest resource consumption, processor seconds."""
        return self.request.requested_time * self.request.processors


class GuestJob(LocalJob, eq=False, kw_only=True):
    """A partner's job that this site has accepted.

    Attributes:
        accept_time: seconds.
        here: its request in the names of this site; `None` if it names nothing.
        pseudonym: of its user, as its home site has told with the program; empty if it has not.
        charge: what it may cost local users, as it runs to its end, processor seconds times seconds; 0 where no account is kept.
        reserved: a place is held for it; its home site still has it, and it does not start.
        kept: how long it had run when it last wrote its state, where it was ended for another job, seconds.
        attempts: how often in a row its report went unanswered.
        reporting: a report is under way.
    """

    MOVES = GUEST_MOVES

    partner: str
    offer: OfferId
    accept_time: float
    here: Needs | None = None
    pseudonym: str = ""
    charge: float = 0.0
    state: JobState = JobState.SUBMITTING
    reserved: bool = False
    kept: float = 0.0
    attempts: int = 0
    reporting: bool = False
    story: list[JobState] = msgspec.field(default_factory=partial(list, (JobState.SUBMITTING,)))

    def __str__(self) -> str:
        """Names the job."""
        return self.lrms_key

    @property
    def ref(self) -> GuestRef:
        """Its name in records."""
        return GuestRef(self.partner, self.offer)

    @property
    def asked_here(self) -> Request:
        """What it asks of the own batch system, in the names of this site."""
        return self.request if self.here is None else Request.of(self.here)

    @property
    def place(self) -> None:
        """None: it is new in the queue here."""
        return

    @property
    def came(self) -> float:
        """When it was accepted, seconds."""
        return self.accept_time

    @property
    def owner(self) -> tuple[str, str]:
        """No local user, and its home site."""
        return "", self.partner

    @property
    def completion(self) -> Completion | None:
        """Its end as reported to its home site; `None` before."""
        if self.outcome is None:
            return None
        return Completion(
            self.offer, self.outcome, self.end_time, self.run_time, self.exit, kept=self.kept
        )

    @property
    def shown(self) -> GuestState:
        """Its state for watchers."""
        return GuestState.REPORTED if self.reporting else GUEST_SHOWN_AS[self.state]


def read_job_id(site: str, job_id: str) -> tuple[int, int] | None:
    """Returns the number and the index in a user-visible name of a job at a site; `None` if it is none.

    The index is -1 in the name of a job that is no element of an array, and in that of a whole array.
    """
    name, _, rest = job_id.rpartition("-")
    number, is_element, index = rest.partition("_")
    if name != site or not is_number(number) or (is_element and not is_number(index)):
        return None
    return int(number), int(index) if is_element else -1


def full_job_id(site: str, word: str) -> str:
    """Returns the name of a job of a site whose number alone is given, as in `12`, `12_3` or `12_[1-5]`.

    Any other word is returned as it is.
    """
    number = word.partition("_")[0]
    return f"{site}-{word}" if is_number(number) else word


def is_number(word: str) -> bool:
    """Returns whether a word is a number as names of jobs have them."""
    return word.isascii() and word.isdigit() and len(word) < 20 and str(int(word)) == word


def lrms_key(home: str, epoch: int, number: int) -> str:
    """Returns the name of a job in a batch system, from its home site and that site's epoch.

    `number` is that of the offer for a guest, of the job for a home job. A site is never its own partner, so that the
    two cannot collide.
    """
    return f"{_key_begin(home, epoch)}{number}"


@lru_cache(maxsize=256)
def _key_begin(home: str, epoch: int) -> str:
    # The same for all jobs of a site until its journal is lost.
    return f"{home}/{epoch:x}/"


def next_lrms_key(key: str) -> str:
    """Returns the next key of a job that the batch system has released, should it get it once more."""
    home, epoch, number, *times = key.split("/")
    return f"{home}/{epoch}/{number}/{int(times[0]) + 1 if times else 2}"


def has_left_before(job: HomeJob) -> bool:
    """Returns whether a job has left the batch system, and has come back without having begun elsewhere.

    Partners that hold places and then deny them would put it behind all others each time. One that partners have sent
    home as often as it has left has run, and may leave again.
    """
    parts = job.lrms_key.split("/")
    times_left = int(parts[KEY_PARTS]) - 1 if len(parts) > KEY_PARTS else 0
    return times_left > sum(each.times for each in job.sent_home)


LOSSES_MAX: Final = 5
"""So often an own job that the batch system has forgotten before its start is submitted again."""


def end_of_lost(job: LocalJob, reason: str, *, started: bool) -> tuple[Outcome, str] | None:
    """Returns how a job ends that the batch system has lost; `None` if it is submitted again.

    `started`: it was seen running, whatever is reported now.
    """
    if started:
        return Outcome.UNKNOWN, f"it ran, and the batch system has lost it: {reason}"
    if job.cancel_requested:
        return Outcome.CANCELLED, "cancelled; the batch system had lost it"
    # A partner's job is decided anew at home. An own one has nowhere else to go, and has certainly not run.
    if job.lost >= (1 if isinstance(job, GuestJob) else LOSSES_MAX):
        return Outcome.LOST, f"lost by the batch system {job.lost + 1} times: {reason}"
    return None
