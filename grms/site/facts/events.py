"""What can happen to a site: the events that `SiteState.handle` takes.

Every event has an `id`, chosen by the shell and unique while the process lives; every command that
comes of the event carries it as `cause`: the shell knows whom to reply to, a log what led to what.

Events that can lead to a decision (`LoadedEvent`) carry the `load` of the batch system, as it is
known when the event is handed over. Submissions that the state has commanded and that are not
confirmed by `Accepted` are counted in by the state, so that the shell may gather events while a
commit is under way. None means that nobody knows it: own jobs stay at home, offers are declined.

Any event may be handed over twice, late, or after it has lost its meaning; it then changes
nothing, and where it was a question it gets the same answer.
"""

from collections.abc import Mapping

from grms.lrms import port
from grms.policy.location import LocationPolicy
from grms.policy.rounds import Rounds
from grms.policy.transfer import TransferPolicy
from grms.site.facts.jobs import Completion, Load, OfferId, Request
from grms.site.facts.lifecycle import GuestState
from grms.site.facts.settings import PartnerSettings
from grms.values import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has happened.

    Attributes:
        id: names the event, 1 and more; commands refer to it.
    """

    id: int


@dataclass(frozen=True, slots=True)
class LoadedEvent(Event):
    """Something that can lead to a decision.

    Attributes:
        load: of the batch system; None where it is not known, or no longer.
    """

    load: Load | None


# --- the daemon itself ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Restarted(LoadedEvent):
    """The daemon has begun to work, with what the journal held; handed over once, first.

    What was open is taken up: submissions are looked up, offers are resolved, ends reported.
    """


@dataclass(frozen=True, slots=True)
class Drain(Event):
    """An operator wants no more work to be taken. A restart ends it."""


@dataclass(frozen=True, slots=True)
class Resume(Event):
    """An operator wants work to be taken again."""


@dataclass(frozen=True, slots=True)
class PoliciesChanged(Event):
    """An operator has given the site other policies, and perhaps other partners.

    Attributes:
        transfer: by partner's name, replacing all; who is missing is neither asked nor answered. One for
            a site that is no partner is a ValueError of `handle`, and changes nothing.
        location: in which order partners are asked.
        partners: the allow-list; None where it stays. What is known of one taken off it stays.
        partners_asked: how many partners are asked about one job at most; None: all.
        reoffer: when own waiting jobs are offered again; None: never.
        confirm_time_max: how long places are held, seconds; None where that stays.
    """

    transfer: Mapping[str, TransferPolicy]
    location: LocationPolicy
    partners: tuple[PartnerSettings, ...] | None = None
    partners_asked: int | None = None
    reoffer: float | Rounds | None = None
    confirm_time_max: float | None = None


@dataclass(frozen=True, slots=True)
class RoundDue(LoadedEvent):
    """The moment of a round has come: own jobs that still wait are offered again.

    Leads to `PublishRound` when all have been offered; none begins while one is coming further.
    """


@dataclass(frozen=True, slots=True)
class TimePassed(LoadedEvent):
    """Some time has passed, and deadlines may have; handed over every few seconds."""


@dataclass(frozen=True, slots=True)
class GuardLooked(Event):
    """It was computed for the guard what exchange has brought so many own jobs; nan of none."""

    jobs: int
    improvement: float


# --- operators -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakeBack(LoadedEvent):
    """An operator wants a job back from its partner. Answered by `ReplyJob` or `Refuse`.

    The partner is told to end it; when it has, the job is decided anew, without that partner. What it
    has done there is lost, and done again. While the partner says nothing the job stays there.

    Attributes:
        job_id: of the job.
        by: the operator.
    """

    job_id: str
    by: str


@dataclass(frozen=True, slots=True)
class Resubmit(LoadedEvent):
    """An operator wants a job decided anew at once. Answered by `ReplyJob` or `Refuse`.

    Its partner is told to end it as soon as it listens. Until then the job may run there, too: it
    may run twice, whole or in part. Attributes as those of `TakeBack`.
    """

    job_id: str
    by: str


@dataclass(frozen=True, slots=True)
class WriteOff(LoadedEvent):
    """An operator gives up on a job: it ends as failed. Answered by `ReplyJob` or `Refuse`.

    Its partner is told to end it as soon as it listens. Until then it may run there to its end, of
    which its user will not hear. Attributes as those of `TakeBack`.
    """

    job_id: str
    by: str


@dataclass(frozen=True, slots=True)
class Pardon(Event):
    """An operator forgives a partner its breaches. Answered by `ReplyPardon` or `Refuse`."""

    partner: str
    by: str


# --- users ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Submit(LoadedEvent):
    """A user hands in a job. Answered by `ReplyJob` or `Refuse`."""

    user: str
    idempotency_key: str
    name: str
    request: Request
    payload: bytes


@dataclass(frozen=True, slots=True)
class Cancel(LoadedEvent):
    """A user, or an operator (None) who may do so with any, ends a job. Answered as `Submit`."""

    job_id: str
    user: str | None


# --- reservations --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BookReservation(Event):
    """Somebody wants to reserve a resource. Answered by `ReplyReservation` or `Refuse`.

    Attributes:
        owner: who.
        idempotency_key: the owner's word for it.
        resource_id: of what.
        begin, end: seconds.
        processors: how many.
    """

    owner: str
    idempotency_key: str
    resource_id: str
    begin: float
    end: float
    processors: int


@dataclass(frozen=True, slots=True)
class LaunchReservation(Event):
    """The owner of a reservation wants a job to run in it. Answered as `BookReservation`.

    Attributes:
        owner: who asks.
        reservation: its number.
        launch_key: the owner's word for the launch.
        request: of the job; its time is that on the reference resource, and then it is cut off.
        run_time: seconds it takes there.
        to_the_end: it may run to the end of the reservation, however much it has requested.
    """

    owner: str
    reservation: int
    launch_key: str
    request: Request
    run_time: float
    to_the_end: bool = False


@dataclass(frozen=True, slots=True)
class ExtendReservation(Event):
    """The owner of a reservation wants it to end later. Answered as `BookReservation`."""

    owner: str
    reservation: int
    end: float


@dataclass(frozen=True, slots=True)
class ReleaseReservation(Event):
    """The owner of a reservation gives it back. Answered as `BookReservation`."""

    owner: str
    reservation: int


@dataclass(frozen=True, slots=True)
class ReservationsDue(Event):
    """The moment has come at which time changes reservations (`ReservationBook.next_time`)."""


# --- partners ask --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfferReceived(LoadedEvent):
    """A partner offers a job. Answered by `AnswerOffer` or `Refuse`.

    Attributes:
        partner: who asks, as its certificate says.
        offer: names the offer.
        settled_below: offers with smaller numbers (of this epoch) will not be asked about again.
        request: of the job.
        payload: what runs.
        reserve: a place is to be held for the job, which is not to be started before the partner
            confirms that it does not have it any more.
        to_fetch: what runs is still with the partner.
    """

    partner: str
    offer: OfferId
    settled_below: int
    request: Request
    payload: bytes
    reserve: bool = False
    to_fetch: bool = False


@dataclass(frozen=True, slots=True)
class ResolveReceived(Event):
    """A partner asks what became of its offer. Answered by `AnswerStatus` or `Refuse`.

    Attributes:
        partner: who asks, as its certificate says.
        offer: names the offer.
        confirm: if a place is held for the job, it is to be started.
    """

    partner: str
    offer: OfferId
    confirm: bool = False


@dataclass(frozen=True, slots=True)
class WithdrawReceived(Event):
    """A partner takes its offer back. Answered by `AnswerStatus` or `Refuse`.

    Attributes:
        partner: who asks.
        offer: names the offer.
        cancel: if the offer was accepted, its job is to end.
    """

    partner: str
    offer: OfferId
    cancel: bool


@dataclass(frozen=True, slots=True)
class ReportReceived(LoadedEvent):
    """A partner tells that delegated jobs have ended. Answered by `AnswerReport` or `Refuse`.

    Attributes:
        partner: who tells.
        completions: the ends.
    """

    partner: str
    completions: tuple[Completion, ...]


# --- partners answer -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfferAnswered(LoadedEvent):
    """A partner has answered `SendOffer`."""

    partner: str
    offer: OfferId
    accepted: bool


@dataclass(frozen=True, slots=True)
class OfferFailed(LoadedEvent):
    """`SendOffer` has had no answer: a broken link, a deadline, any error status.

    Attributes:
        partner: who was asked.
        offer: names the offer.
        sent: whether it may have reached the partner. False only where it certainly has not: the
            message was never handed to the network.
    """

    partner: str
    offer: OfferId
    sent: bool = True


@dataclass(frozen=True, slots=True)
class OfferDisputed(LoadedEvent):
    """A partner says that the number of an offer is that of another job: it has not taken it.

    Attributes:
        partner: who was asked.
        offer: names the offer.
    """

    partner: str
    offer: OfferId


@dataclass(frozen=True, slots=True)
class StatusAnswered(LoadedEvent):
    """A partner has answered `SendResolve` or `SendWithdraw`.

    Attributes:
        partner: who has answered.
        offer: names the offer.
        question: the `cause` of the command that asked. An answer counts only while its question
            stands: "never heard of" is true at one moment and may be false at the next.
        status: ACCEPTED (not ended yet), DECLINED, WITHDRAWN, ENDED, or None: never heard of.
        completion: where it has ended.
    """

    partner: str
    offer: OfferId
    question: int
    status: GuestState | None
    completion: Completion | None = None


@dataclass(frozen=True, slots=True)
class StatusFailed(LoadedEvent):
    """`SendResolve` or `SendWithdraw` has had no answer.

    Attributes:
        partner: who was asked.
        offer: names the offer.
        question: the `cause` of the command that asked.
    """

    partner: str
    offer: OfferId
    question: int


@dataclass(frozen=True, slots=True)
class ReportAnswered(Event):
    """A partner has acknowledged the end of jobs."""

    partner: str
    offers: tuple[OfferId, ...]


@dataclass(frozen=True, slots=True)
class ReportFailed(Event):
    """`SendReport` has had no answer."""

    partner: str
    offers: tuple[OfferId, ...]


# --- partners come and go ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartnerUp(LoadedEvent):
    """A partner has said who it is, and can be asked.

    Attributes:
        partner: its name.
        processors: its size.
        offer_seen: the last of this site's offers that it knows of; None for none.
    """

    partner: str
    processors: int
    offer_seen: OfferId | None = None


@dataclass(frozen=True, slots=True)
class PartnerDown(Event):
    """A partner does not answer; it is not asked until it is up."""

    partner: str


@dataclass(frozen=True, slots=True)
class PartnerLost(LoadedEvent):
    """A partner has been down for longer than the site is willing to wait.

    Its jobs become SUSPECT, and the configured answer (`on_lost`) applies.
    """

    partner: str


@dataclass(frozen=True, slots=True)
class PartnerFaulty(LoadedEvent):
    """A partner has said what the protocol does not have; it is offered nothing until it is well.

    Attributes:
        partner: its name.
        reason: what it has said, for a person.
        probed: it was the answer to `SendProbe`.
    """

    partner: str
    reason: str
    probed: bool = False


@dataclass(frozen=True, slots=True)
class PartnerIncompatible(Event):
    """A partner speaks another version of the protocol: it is neither asked nor answered.

    Attributes:
        partner: its name.
        version: that it speaks; 0 for the same as this site again.
    """

    partner: str
    version: int


@dataclass(frozen=True, slots=True)
class ProbeAnswered(LoadedEvent):
    """A faulty partner has answered `SendProbe`.

    Attributes:
        partner: who has answered.
        status: as for `StatusAnswered`.
    """

    partner: str
    status: GuestState | None


@dataclass(frozen=True, slots=True)
class ProbeFailed(Event):
    """`SendProbe` has had no answer."""

    partner: str


# --- the batch system, and what is brought to it -------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProgramsAway:
    """What a partner's accepted job runs has not come, in one attempt.

    Attributes:
        partner: the job's home site.
        reason: for a person.
    """

    partner: str
    reason: str


@dataclass(frozen=True, slots=True)
class ProgramCame:
    """What a partner's accepted job runs has come."""

    partner: str


@dataclass(frozen=True, slots=True)
class LrmsRefused:
    """The batch system has not taken a job; being out of reach is no refusal.

    Attributes:
        key: names it.
        reason: for a person.
        undelivered: it was not asked: what the job runs has not come from its home site in time.
        passing: an own user's job is handed to it again, as what it refuses now it may take later.
    """

    key: str
    reason: str
    undelivered: bool = False
    passing: bool = False


@dataclass(frozen=True, slots=True)
class LrmsStays:
    """The batch system will not let a waiting job go; `certain`: no attempt had no answer."""

    key: str
    certain: bool = False


@dataclass(frozen=True, slots=True)
class LrmsAppeared:
    """The batch system has a job that has not ended, and that was not there, or is an old one."""

    key: str


LrmsNews = (
    port.Accepted
    | port.Started
    | port.Requeued
    | port.Hindered
    | port.Ended
    | port.Lost
    | port.Unseen
    | port.SeenAgain
    | port.Away
    | port.Back
    | LrmsRefused
    | LrmsStays
    | LrmsAppeared
    | ProgramsAway
    | ProgramCame
)
"""What the batch system tells, in its own words, and what its driver makes of its answers."""


@dataclass(frozen=True, slots=True)
class LrmsTold(Event):
    """There is news of the batch system, which knows nothing of ids.

    Attributes:
        news: what has happened. It is handled as an event of its own kind.
    """

    news: LrmsNews
