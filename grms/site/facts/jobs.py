"""What the site knows of jobs: requests, offers, ends, and the jobs themselves.

A request is all that a decision may see of a job. The payload, what really runs, is bytes that
are carried from the user to a batch system and never looked into here.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache, partial
from typing import ClassVar, Final

import msgspec

from grms.site.facts.lifecycle import (
    GUEST_MOVES,
    GUEST_SHOWN_AS,
    JOB_MOVES,
    SHOWN_AS,
    GuestState,
    IllegalMove,
    JobState,
    Outcome,
)
from grms.values import dataclass

KEY_PARTS = 3
"""Parts of a first `lrms_key`: home, epoch and number."""

STORY_MAX = 32
"""How many of its last states a job remembers, for the message of an `IllegalMove`."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a job asks for.

    Attributes:
        processors: needed all at once, at least 1.
        requested_time: how long it may run, seconds, more than 0.

    Raises:
        ValueError: a bound is violated.
    """

    processors: int
    requested_time: float

    def __post_init__(self) -> None:
        """Checks the bounds."""
        if not 1 <= self.processors < 2**31:
            raise ValueError(f"processors is {self.processors}; it must be at least 1")
        if not (self.requested_time > 0 and math.isfinite(self.requested_time)):
            raise ValueError(
                f"requested_time is {self.requested_time}; it must be finite and more than 0"
            )


StartsNow = Callable[[int, float], bool]
"""Says whether a job of so many processors and that requested time, seconds, would start now."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the batch system says of itself at the moment of an event; partners never see it.

    Attributes:
        processors: size of the machine.
        processors_free: processors no running job holds.
        processors_waiting: waiting parallelism, the sum of the waiting jobs' processors.
        asked: the batch system's own answer to the question whether it would start a job at that
            moment; to be asked while the event is handled, and never after. None where it has none.
        waits: its own answer whether a job waits in its queue, by its key; to be asked likewise. None
            where it has to be looked up.
        refuses: says why a job of so many processors and that requested time, seconds, would not start here
            however much room there is; empty where it would. None where any would.
    """

    processors: int
    processors_free: int
    processors_waiting: int
    asked: StartsNow | None = field(default=None, compare=False, repr=False)
    waits: Callable[[str], bool] | None = field(default=None, compare=False, repr=False)
    refuses: Callable[[int, float], str] | None = field(default=None, compare=False, repr=False)

    def starts_now(self, request: Request) -> bool:
        """Returns whether the batch system would start a job at once, behind all that wait.

        Where it cannot be asked, only what is certain is a yes: nobody waits, and there is room.

        Args:
            request: of the job, no wider than the machine.
        """
        if self.asked is not None:
            return self.asked(request.processors, request.requested_time)
        return self.processors_waiting == 0 and request.processors <= self.processors_free

    def refusal(self, request: Request) -> str:
        """Returns why such a job would not start here, however much room there is; empty where it would.

        The part of the machine that would run it is shut, or no part runs such jobs.

        Args:
            request: of the job.
        """
        if request.processors > self.processors:
            return f"{self.processors} processors work; it needs {request.processors}"
        if self.refuses is None:
            return ""
        return self.refuses(request.processors, request.requested_time)


@dataclass(frozen=True, slots=True)
class Weighed:
    """What the last decision about a home job rested on; for those who watch, and forgotten.

    Attributes:
        load: of the batch system as the policy was given it; None where that did not answer.
        kept_for: the partner for which the site's policy wanted to keep the job; empty where it
            wanted to give it away, or nobody was left to be asked.
    """

    load: Load | None
    kept_for: str


@dataclass(frozen=True, slots=True)
class OfferId:
    """Names one offer of a home site to one partner.

    Attributes:
        epoch: of the home site's journal; a journal that replaces a lost one has a greater one.
        number: 1, 2, 3, … for each partner and epoch.
    """

    epoch: int
    number: int


class GuestRef(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Says which partner's job is meant.

    Attributes:
        partner: its home site.
        offer: by which it came.
    """

    partner: str
    offer: OfferId


JobRef = int | GuestRef
"""Says which job is meant: an own user's by the site's number of it, or a partner's."""


@dataclass(frozen=True, slots=True)
class Exit:
    """What is known of how a job's script was left.

    Attributes:
        code: that it returned, 0 to 255; None where it returned none, or nobody knows.
        signal: that ended it, 1 to 127; None where none did, or nobody knows.

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
        """Returns what a batch system says, without what is out of its bounds: that is not known."""
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
    """The end of a job that was delegated.

    Attributes:
        offer: by which it came.
        outcome: how it ended.
        end_time: on the clock of the site that ran it, seconds.
        run_time: how long it held its processors, seconds; 0 if it never started.
        exit: how its script was left.
        said: a newer partner's word for the outcome, where this program does not know it; else empty.

    Raises:
        ValueError: a time is not finite, or the run time is negative.
    """

    offer: OfferId
    outcome: Outcome
    end_time: float
    run_time: float
    exit: Exit = NO_EXIT
    said: str = ""

    def __post_init__(self) -> None:
        """Checks the bounds: a partner's word goes into sums that others are judged by."""
        if not math.isfinite(self.end_time):
            raise ValueError(f"end_time is {self.end_time}; it must be finite")
        if not 0 <= self.run_time < math.inf:
            raise ValueError(f"run_time is {self.run_time}; it must be finite and at least 0")


class LocalJob(msgspec.Struct, eq=False, kw_only=True):
    """A job that the batch system has or may get: one of the site's own users, or a partner's.

    Attributes:
        lrms_key: the name by which the batch system is asked for it; unique for all time.
        request: what it asks for.
        payload: what runs.
        state: where it stands.
        cancel_requested: its user, or its home site, wants it to end.
        kept_time: since when the batch system is to have it, seconds; nan before.
        leaving: the batch system was told to let it go, and may do so, or still do so.
        told_once: it was told so once, by this process, and has not answered.
        lost: how often the batch system has forgotten it before its start.
        hindered: what it waits for, where that is no room: the batch system does not take it now, or the part of
            the machine that would run it is shut. Of the running daemon, which hears it anew after a restart.
        begun: it has started here, whatever it does now.
        start_time: of its last start, seconds; nan before, and while it waits again.
        end_time: seconds; nan before.
        run_time: how long it held its processors in the end, seconds.
        outcome: None before the end.
        exit: how its script was left.
        reason: for a person; why it stands where it stands.
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
    lost: int = 0
    hindered: str = ""
    begun: bool = False
    start_time: float = math.nan
    end_time: float = math.nan
    run_time: float = 0.0
    outcome: Outcome | None = None
    exit: Exit = NO_EXIT
    reason: str = ""
    story: list[JobState]

    @property
    def ref(self) -> JobRef:
        """By which records name it."""
        raise NotImplementedError

    @property
    def came(self) -> float:
        """When it was received or accepted, seconds."""
        raise NotImplementedError

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
    """A job of one of the site's own users.

    Attributes:
        job: the site's number of it: 1, 2, 3, …
        job_id: the name users know it by.
        user: whose it is; never sent to partners.
        idempotency_key: what the client chose to name its submission.
        name: a word of the user's own; never sent to partners.
        submit_time: when it was received, seconds.
        partner: to which it is offered or delegated; empty at home.
        offer_epoch: of that offer; 0 at home.
        offer_number: of that offer; 0 at home.
        offer_time: when it was offered, seconds; nan at home.
        accept_time: when that was accepted, seconds; nan before.
        asked: partners that have been offered it, in order.
        put: how many of these, the last, were asked in the decision that is under way.
        remaining: partners still to be asked in this decision; None: no decision has begun.
        questions_left: how many more partners this decision may ask; less than 0: any number.
        decision_time: when the decision began, seconds; nan before.
        take_back: an operator wants it back from where it is.
        overdue: the deadline for what it waits for has passed; its operator has been shown it.
        question: which question about its offer is on the way to the partner, by the event that
            caused it; 0 for none.
        cancel_told: that question tells the partner to end the job.
        attempts: how often in a row that question had no answer.
        confirms: its partner holds a place for it, and is to be told to start it.
        revision: counts the changes.
        weighed: what its last decision rested on; None before the first, and after a restart.
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
    revision: int = 1
    story: list[JobState] = msgspec.field(default_factory=partial(list, (JobState.RECEIVED,)))
    weighed: Weighed | None = None

    def __str__(self) -> str:
        """Names the job."""
        return self.job_id

    def move(self, target: JobState) -> None:
        """Changes the state; a change that those who watch see is counted.

        Raises:
            IllegalMove: the table does not have this move.
        """
        before = self.state
        super().move(target)
        self.revision += SHOWN_AS[target] is not SHOWN_AS[before]

    def leave_partner(self) -> None:
        """Forgets the offer: the job is at home."""
        self.partner = ""
        self.offer_epoch = 0
        self.offer_number = 0
        self.offer_time = math.nan
        self.accept_time = math.nan
        self.confirms = False
        self.take_back = False
        self.overdue = False
        self.question = 0
        self.attempts = 0

    @property
    def ref(self) -> int:
        """By which records name it."""
        return self.job

    @property
    def came(self) -> float:
        """When it was received, seconds."""
        return self.submit_time

    @property
    def offer(self) -> OfferId:
        """Names its offer."""
        return OfferId(self.offer_epoch, self.offer_number)

    @property
    def shown(self) -> JobState:
        """Where it stands for those who watch; see `SHOWN_AS`."""
        return SHOWN_AS[self.state]

    @property
    def to_end(self) -> bool:
        """Whether its partner has to end it."""
        return self.cancel_requested or self.take_back

    @property
    def consumption_requested(self) -> float:
        """What it may consume at most, processor seconds."""
        return self.request.requested_time * self.request.processors


class GuestJob(LocalJob, eq=False, kw_only=True):
    """A job of a partner's that this site has accepted.

    Attributes:
        partner: its home site.
        offer: by which it came.
        accept_time: seconds.
        reserved: a place is held for it; its home site has it still, and it does not start.
        attempts: how often in a row its report had no answer.
        reporting: a report is on the way.
    """

    MOVES = GUEST_MOVES

    partner: str
    offer: OfferId
    accept_time: float
    state: JobState = JobState.SUBMITTING
    reserved: bool = False
    attempts: int = 0
    reporting: bool = False
    story: list[JobState] = msgspec.field(default_factory=partial(list, (JobState.SUBMITTING,)))

    def __str__(self) -> str:
        """Names the job."""
        return self.lrms_key

    @property
    def ref(self) -> GuestRef:
        """By which records name it."""
        return GuestRef(self.partner, self.offer)

    @property
    def came(self) -> float:
        """When it was accepted, seconds."""
        return self.accept_time

    @property
    def completion(self) -> Completion | None:
        """What its home site is told of its end; None before."""
        if self.outcome is None:
            return None
        return Completion(self.offer, self.outcome, self.end_time, self.run_time, self.exit)

    @property
    def shown(self) -> GuestState:
        """Where it stands for those who watch."""
        return GuestState.REPORTED if self.reporting else GUEST_SHOWN_AS[self.state]


def find_job(jobs: Mapping[int, HomeJob], site: str, job_id: str) -> HomeJob | None:
    """Returns the job of a name, or None.

    Args:
        jobs: by number.
        site: whose jobs they are.
        job_id: as users know it.
    """
    name, _, number = job_id.rpartition("-")
    if name != site or not (number.isascii() and number.isdigit()):
        return None
    job = jobs.get(int(number)) if len(number) < 20 else None
    return job if job is not None and job.job_id == job_id else None


def lrms_key(home: str, epoch: int, number: int) -> str:
    """Returns the name by which a batch system is asked for a job.

    Args:
        home: the job's home site.
        epoch: of that site's journal.
        number: of the offer for a guest, of the job for a home job. A site is never its own
            partner, so that the two cannot meet.
    """
    return f"{_key_begin(home, epoch)}{number}"


@lru_cache(maxsize=256)
def _key_begin(home: str, epoch: int) -> str:
    # The same for all jobs of a site until its journal is lost.
    return f"{home}/{epoch:x}/"


def next_lrms_key(key: str) -> str:
    """Returns the name for a job that the batch system has let go, should it get it once more.

    Args:
        key: the name that it had there.
    """
    home, epoch, number, *times = key.split("/")
    return f"{home}/{epoch}/{number}/{int(times[0]) + 1 if times else 2}"


def has_left_before(job: HomeJob) -> bool:
    """Returns whether the batch system has let a job go already, and has got it once more."""
    return len(job.lrms_key.split("/")) > KEY_PARTS


LOSSES_MAX: Final = 5
"""So often an own job that the batch system has forgotten before its start is submitted again."""


def end_of_lost(job: LocalJob, reason: str, *, started: bool) -> tuple[Outcome, str] | None:
    """Returns how a job ends that the batch system has forgotten; None where it is submitted again.

    Args:
        job: of a user or of a partner.
        reason: what is said.
        started: it was seen running, whatever is said now.
    """
    if started:
        return Outcome.UNKNOWN, f"it ran, and the batch system has lost it: {reason}"
    if job.cancel_requested:
        return Outcome.CANCELLED, "cancelled; the batch system had lost it"
    # A partner's job is decided anew at home. An own one has nowhere else to go, and has certainly not run.
    if job.lost >= (1 if isinstance(job, GuestJob) else LOSSES_MAX):
        return Outcome.LOST, f"lost by the batch system {job.lost + 1} times: {reason}"
    return None
