"""What a site wants done: the commands that `SiteState.handle` returns.

Every command has a `cause`, the id of the event it comes of. The shell carries commands out in
order. Everything after an `Append` waits until its records are durable, in this list and in the
lists of later events; so the shell may gather the records of several events, commit them
together, and then carry out all that was waiting.

`delay_s` is how long the shell waits before it sends, in seconds of the wall clock whatever the
site's clock is: it spaces repetitions of what had no answer.
"""

import math

from grms.site.facts.jobs import Completion, OfferId, Request
from grms.site.facts.lifecycle import GuestState
from grms.site.facts.records import Record
from grms.site.facts.reservations import Reservation
from grms.values import QuickEnum, dataclass


class Refusal(QuickEnum):
    """Why a question is not answered; each is a status on the wire."""

    INVALID = "invalid argument"
    NOT_FOUND = "not found"
    FORBIDDEN = "permission denied"
    PRECONDITION = "failed precondition"
    EXHAUSTED = "resource exhausted"
    UNAVAILABLE = "unavailable"
    DISPUTED = "already exists"


@dataclass(frozen=True, slots=True)
class Command:
    """Something to do.

    Attributes:
        cause: id of the event that it comes of.
    """

    cause: int


@dataclass(frozen=True, slots=True)
class Append(Command):
    """Writes records to the journal; what follows waits until they are durable.

    Attributes:
        records: what is noted.
    """

    records: tuple[Record, ...]


# --- answers to whoever asked --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer(Command):
    """Answers the event that it comes of."""


@dataclass(frozen=True, slots=True)
class ReplyJob(Answer):
    """Answers whoever submitted, cancelled or decided about a job with the job as it stands."""

    job_id: str


@dataclass(frozen=True, slots=True)
class ReplyReservation(Answer):
    """Answers whoever booked, launched, extended or released with the reservation as it stands."""

    reservation: Reservation


@dataclass(frozen=True, slots=True)
class ReplyPardon(Answer):
    """Answers whoever pardoned a partner.

    Attributes:
        partner: its name.
        breaches: that are forgotten.
    """

    partner: str
    breaches: int


@dataclass(frozen=True, slots=True)
class Refuse(Answer):
    """Answers any question with an error.

    Attributes:
        refusal: which.
        reason: for a person: what is wrong, and what is allowed.
        field: the field of the request that is wrong; empty where it is none.
    """

    refusal: Refusal
    reason: str
    field: str = ""


@dataclass(frozen=True, slots=True)
class AnswerOffer(Answer):
    """Answers `OfferReceived`.

    Attributes:
        accepted: yes or no.
        unused: it is no because too many acceptances of this partner have led to no run; it is not told.
    """

    accepted: bool
    unused: bool = False


@dataclass(frozen=True, slots=True)
class AnswerStatus(Answer):
    """Answers `ResolveReceived` or `WithdrawReceived`.

    Attributes:
        status: ACCEPTED, DECLINED, WITHDRAWN, ENDED, or None: never heard of.
        completion: where it has ended.
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

    Attributes:
        partner: whom to ask.
        offer: names the offer.
        settled_below: goes into the message; offers before it are settled.
        request: of the job.
        payload: what runs.
        reserve: the partner is to hold a place for the job, and not to start it yet.
    """

    partner: str
    offer: OfferId
    settled_below: int
    request: Request
    payload: bytes
    reserve: bool = False


@dataclass(frozen=True, slots=True)
class SendResolve(Command):
    """Asks what became of an offer. Leads to `StatusAnswered` or `StatusFailed`.

    Attributes:
        partner: whom to ask.
        offer: names the offer.
        delay_s: to wait before sending.
        confirm: the site does not have the job any more: the partner is to start it.
    """

    partner: str
    offer: OfferId
    delay_s: float
    confirm: bool = False


@dataclass(frozen=True, slots=True)
class SendWithdraw(Command):
    """Takes an offer back. Leads to `StatusAnswered` or `StatusFailed`.

    Attributes:
        partner: whom to tell.
        offer: names the offer.
        delay_s: to wait before sending.
        cancel: the job is to end if the offer was accepted.
    """

    partner: str
    offer: OfferId
    delay_s: float
    cancel: bool


@dataclass(frozen=True, slots=True)
class SendReport(Command):
    """Tells a home site that its job has ended. Leads to `ReportAnswered` or `ReportFailed`.

    The shell may put several of them for one partner into one message, in order.
    """

    partner: str
    completion: Completion
    delay_s: float


@dataclass(frozen=True, slots=True)
class SendProbe(Command):
    """Asks a faulty partner about an offer that was never made. It is well again if it makes sense.

    Leads to `ProbeAnswered`, `ProbeFailed`, or `PartnerFaulty` once more.

    Attributes:
        partner: whom to ask.
        offer: names no offer that was made.
        delay_s: to wait before sending.
    """

    partner: str
    offer: OfferId
    delay_s: float


Send = SendOffer | SendResolve | SendWithdraw | SendReport | SendProbe
"""What is said to a partner."""


# --- the batch system ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LrmsSubmit(Command):
    """Puts a job into the batch system's queue; leads to `Accepted` or `LrmsRefused`.

    The shell repeats it while the batch system is out of reach, looking the key up first. Commands
    about one key are carried out in order.

    Attributes:
        lrms_key: names the job.
        request: what it asks for.
        payload: what runs.
        lookup: the batch system may have it: submit it only if it is found neither waiting,
            running nor among those that have ended.
        started: it is known to have started: if it is not found, it has not to be submitted, but
            has ended (UNKNOWN, as the batch system does not say how).
        user: whose it is; empty for a partner's.
        partner: whose it is; empty for an own user's.
        since: since when the batch system may have it, seconds. If it is not found, and that is
            longer ago than the batch system remembers ended jobs, it may have ended: UNKNOWN, too.
    """

    lrms_key: str
    request: Request
    payload: bytes
    lookup: bool = False
    started: bool = False
    user: str = ""
    partner: str = ""
    since: float = math.inf


@dataclass(frozen=True, slots=True)
class LrmsCancel(Command):
    """Ends a job in the batch system, if it is there; leads to `Ended`, if it had not ended.

    Attributes:
        lrms_key: names the job.
        only_waiting: one that has started is left alone, and nothing comes of it.
    """

    lrms_key: str
    only_waiting: bool = False


# --- those who watch -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Publish(Command):
    """Tells watchers that a home job has changed; its present state is in `SiteState.jobs`.

    Attributes:
        job: its number.
        also: those of further ones that have changed by the same.
    """

    job: int
    also: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishRound(Command):
    """Tells watchers that a round of offers is over."""


@dataclass(frozen=True, slots=True)
class PublishReservation(Command):
    """Tells watchers of a reservation that has changed, as it stands then."""

    reservation: Reservation
