"""The commands of a site, which `SiteState.handle` returns.

Every command has a `cause`, the id of the event that led to it. The shell carries commands out in order.
Everything after an `Append` waits until its records are durable, in this list and in those of later events; so
the shell may gather the records of several events, commit them together, and then carry out all that was
waiting.

`delay_s` is how long the shell waits before sending, in seconds of the wall clock whatever the site's clock is:
it spaces repetitions of unanswered questions.
"""

import math

from grms.site.model.jobs import Completion, OfferId, Request
from grms.site.model.lifecycle import GuestState
from grms.site.model.records import Record
from grms.site.model.reservations import Reservation
from grms.util.values import QuickEnum, dataclass


class Refusal(QuickEnum):
    """Why a question is refused; each is a status on the wire."""

    INVALID = "invalid argument"
    NOT_FOUND = "not found"
    FORBIDDEN = "permission denied"
    PRECONDITION = "failed precondition"
    EXHAUSTED = "resource exhausted"
    UNAVAILABLE = "unavailable"
    DISPUTED = "already exists"


@dataclass(frozen=True, slots=True)
class Command:
    """Something to do; `cause` is the id of the event that led to it."""

    cause: int


@dataclass(frozen=True, slots=True)
class Append(Command):
    """Writes records to the journal; what follows waits until they are durable."""

    records: tuple[Record, ...]


# --- answers to whoever asked --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer(Command):
    """Answers the event that is its cause."""


@dataclass(frozen=True, slots=True)
class ReplyJob(Answer):
    """Answers a submission, a cancellation or an operator's decision with the job as it is."""

    job_id: str


@dataclass(frozen=True, slots=True)
class ReplyPreview(Answer):
    """Says what would become of a job.

    Attributes:
        asked: the partners that it would be offered to, in order, until one accepts.
        kept: the site runs it if none of them accepts.
        reason: of the site's own decision.
        passed_over: partners that it would not be offered to, each with the reason.
        held: what it waits for first; empty for nothing.
        known: the job, or array, that the idempotency key belongs to; empty for none.
    """

    asked: tuple[str, ...] = ()
    kept: bool = False
    reason: str = ""
    passed_over: tuple[tuple[str, str], ...] = ()
    held: str = ""
    known: str = ""


@dataclass(frozen=True, slots=True)
class ReplyReservation(Answer):
    """Answers a request about a reservation with the reservation as it is."""

    reservation: Reservation


@dataclass(frozen=True, slots=True)
class ReplyGroup(Answer):
    """Answers `LaunchGroup`: for each program its reservation, or why it can never run here."""

    programs: tuple[Reservation | str, ...]


@dataclass(frozen=True, slots=True)
class ReplyPardon(Answer):
    """Answers a pardon; `breaches` are the forgotten ones."""

    partner: str
    breaches: int


@dataclass(frozen=True, slots=True)
class Refuse(Answer):
    """Answers any question with an error.

    `reason` says what is wrong, and what is allowed; `field` is the invalid field of the request, if any.
    """

    refusal: Refusal
    reason: str
    field: str = ""


@dataclass(frozen=True, slots=True)
class AnswerOffer(Answer):
    """Answers `OfferReceived`.

    `unused`: declined because too many acceptances of this partner have led to no run; the partner is not told so.
    """

    accepted: bool
    unused: bool = False


@dataclass(frozen=True, slots=True)
class AnswerStatus(Answer):
    """Answers `ResolveReceived` or `WithdrawReceived`.

    `status` is ACCEPTED, DECLINED, WITHDRAWN, ENDED (with `completion`), or `None`: never heard of.
    """

    status: GuestState | None
    completion: Completion | None = None


@dataclass(frozen=True, slots=True)
class AnswerReport(Answer):
    """Answers `ReportReceived`."""


# --- messages to partners ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendOffer(Command):
    """Offers a job. Leads to `OfferAnswered` or `OfferFailed`.

    Offers below `settled_below` are settled. `reserve`: the partner is to hold a place for the job, without starting
    it yet. `rerun`: the partner may end the job for another one, as it may be run again. `checkpoint` is how often it
    writes its state at least, `left` what is left of its requested time as it goes on from such state, seconds, both 0 if
    it does not.
    """

    partner: str
    offer: OfferId
    settled_below: int
    request: Request
    payload: bytes
    reserve: bool = False
    rerun: bool = False
    checkpoint: float = 0.0
    left: float = 0.0


@dataclass(frozen=True, slots=True)
class SendResolve(Command):
    """Asks what became of an offer. Leads to `StatusAnswered` or `StatusFailed`.

    `confirm`: the site no longer has the job; the partner is to start it.
    """

    partner: str
    offer: OfferId
    delay_s: float
    confirm: bool = False


@dataclass(frozen=True, slots=True)
class SendWithdraw(Command):
    """Withdraws an offer. Leads to `StatusAnswered` or `StatusFailed`.

    `cancel`: the job is to end if the offer was accepted.
    """

    partner: str
    offer: OfferId
    delay_s: float
    cancel: bool


@dataclass(frozen=True, slots=True)
class SendReport(Command):
    """Reports the end of a job to its home site. Leads to `ReportAnswered` or `ReportFailed`.

    The shell may put several for one partner into one message, in order.
    """

    partner: str
    completion: Completion
    delay_s: float


@dataclass(frozen=True, slots=True)
class SendProbe(Command):
    """Asks a faulty partner about an offer that was never made; a sensible answer makes it well again.

    Leads to `ProbeAnswered`, `ProbeFailed`, or `PartnerFaulty` once more.
    """

    partner: str
    offer: OfferId
    delay_s: float


Send = SendOffer | SendResolve | SendWithdraw | SendReport | SendProbe
"""What is said to a partner."""


# --- the batch system ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LrmsSubmit(Command):
    """Submits a job to the batch system's queue; leads to `Accepted` or `LrmsRefused`.

    The shell repeats it while the batch system is unreachable, looking the key up first. Commands about one key are
    carried out in order.

    Attributes:
        lookup: the batch system may have it: submit it only if it is found neither waiting, running nor among those
            that have ended.
        started: it is known to have started: if it is not found it is not submitted, but has ended (UNKNOWN, as the
            batch system does not say how).
        user: empty for a partner's job.
        partner: empty for a local user's job.
        since: when the batch system may have got it, seconds. If it is not found, and that is longer ago than the
            batch system remembers ended jobs, it may have ended: UNKNOWN, too.
        preemptible: the batch system may end it for another job (PREEMPTED).
        protected: of a preemptible one: not while guests are protected (`ProtectGuests`).
        at_once: a guest for which processors are idle, on which it starts at once. A simulated batch system does so, and
            refuses it where it cannot; others have a queue of their own.
        place: of a local user's job, when it began to wait for a place to run, seconds, if it comes back to its queue: it
            stands where it would stand since then. `None` for a new one.
        aside: of a local user's job that is at a partner: its place is kept, and it does not start before it is submitted
            again without this. Nothing is told of it.
    """

    lrms_key: str
    request: Request
    payload: bytes
    lookup: bool = False
    started: bool = False
    user: str = ""
    partner: str = ""
    since: float = math.inf
    preemptible: bool = False
    protected: bool = False
    at_once: bool = False
    place: float | None = None
    aside: bool = False


@dataclass(frozen=True, slots=True)
class LrmsCancel(Command):
    """Ends a job in the batch system, if it is there; leads to `Ended`, unless it has ended. A place kept for it is given up.

    `only_waiting`: a job that has started is left alone. What the batch system answers then is told: `LrmsLetGo`, or
    `LrmsStays`.
    `keep_place`: with `only_waiting`, of a local user's job: its place is kept, where the batch system can do that.
    """

    lrms_key: str
    only_waiting: bool = False
    keep_place: bool = False


@dataclass(frozen=True, slots=True)
class ProtectGuests(Command):
    """Has the batch system not end protected guests for other jobs, or end them again."""

    on: bool


@dataclass(frozen=True, slots=True)
class TellLoad(Command):
    """Hands over `LoadTold` at once: a job is to be decided, and the event that led to it came without the load."""


# --- pilots --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PilotCommand(Command):
    """Something to be done about a pilot, by its number."""

    pilot: int


@dataclass(frozen=True, slots=True)
class PilotStart(PilotCommand):
    """Hands the job of a pilot in; done again after a restart, as its key is the pilot's."""

    resource_id: str


@dataclass(frozen=True, slots=True)
class PilotRun(PilotCommand):
    """Gives a program to a pilot, or again; it runs once."""

    reservation: int


@dataclass(frozen=True, slots=True)
class PilotMove(PilotCommand):
    """Tells a pilot that the window of a program has changed."""

    reservation: int


@dataclass(frozen=True, slots=True)
class PilotKill(PilotCommand):
    """Ends a program in a pilot, if it is there."""

    reservation: int


@dataclass(frozen=True, slots=True)
class PilotWithdraw(PilotCommand):
    """Has a program in a pilot not begin, unless it has."""

    reservation: int


@dataclass(frozen=True, slots=True)
class PilotKnows(PilotCommand):
    """Tells a pilot which ends are in the journal."""

    reservations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PilotGoes(PilotCommand):
    """Lets a pilot go that has told everything."""


@dataclass(frozen=True, slots=True)
class PilotForget(PilotCommand):
    """The pilot is over."""


# --- those who watch -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Publish(Command):
    """Tells watchers that a home job has changed; its present state is in `SiteState.jobs`.

    `also` are the numbers of further jobs changed by the same event.
    """

    job: int
    also: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishRound(Command):
    """Tells watchers that a round of offers is over."""


@dataclass(frozen=True, slots=True)
class PublishReservation(Command):
    """Tells watchers of a changed reservation, as it is then."""

    reservation: Reservation
