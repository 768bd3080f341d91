"""The events of a site, which `SiteState.handle` takes.

Every event has an `id`, chosen by the shell and unique while the process lives; every resulting command carries
it as `cause`, so that the shell knows whom to reply to, and a log what led to what.

Events that can lead to a decision (`LoadedEvent`) carry the `load` of the batch system as known when the event
is handed over. Commanded submissions that are not confirmed by `Accepted` are counted in by the state, so that the
shell may gather events while a commit is under way. `None` if the load is unknown; local jobs then stay local and
incoming offers are declined.

Any event may be handed over twice, late, or after it has lost its meaning; it then changes nothing, and if it was
a question it gets the same answer.
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import field

from grms.lrms import base
from grms.policy.location import LocationPolicy
from grms.policy.rebalancing import Rebalancing
from grms.policy.transfer import TransferPolicy
from grms.site.model.jobs import NO_EXIT, Completion, Exit, Load, OfferId, Progress, Request
from grms.site.model.lifecycle import GuestState, Outcome
from grms.site.model.settings import PartnerSettings, Requeue
from grms.site.model.translation import Translation
from grms.site.model.usage import Weights
from grms.util.dependencies import Dependency
from grms.util.job_arrays import ArraySpec
from grms.util.values import dataclass
from lrms_sim.machine.node_kinds import NodeKind


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has happened; `id` is 1 or more, and commands refer to it."""

    id: int


@dataclass(frozen=True, slots=True)
class LoadedEvent(Event):
    """Something that can lead to a decision.

    `load` is the batch system's, `None` if it is unknown or outdated.
    """

    load: Load | None


# --- the daemon itself ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Restarted(LoadedEvent):
    """The daemon has started, with the contents of the journal; handed over once, first.

    What was open is resumed: submissions are looked up, offers are resolved, ends reported.
    """


@dataclass(frozen=True, slots=True)
class Drain(Event):
    """An operator wants the site to accept no more work. A restart ends it."""


@dataclass(frozen=True, slots=True)
class Resume(Event):
    """An operator wants the site to accept work again."""


@dataclass(frozen=True, slots=True)
class PoliciesChanged(Event):
    """An operator has given the site other policies, and perhaps other partners.

    Attributes:
        transfer: by partner's name, replacing all; a missing partner is neither asked nor answered. One for a site
            that is no partner is a ValueError of `handle`, and changes nothing.
        partners: the allow-list; `None` leaves it. What is known of a removed partner stays.
        partners_asked: most partners asked about one job; `None`: all.
        reoffer: when local waiting jobs are offered again; `None`: never.
        confirm_time_max: how long places are held, seconds; `None` leaves it.
        translation: of the names in partners' jobs; `None` leaves it.
        weights: what counts how much in costs and limits; `None` leaves it.
        given_user: what jobs of one local user may use at partners in a month; `None` leaves it.
        requeue: which local users' jobs may be run again; `None` leaves it.
        preempt_guests: whether partners' jobs may be ended for other jobs; `None` leaves it.
    """

    transfer: Mapping[str, TransferPolicy]
    location: LocationPolicy
    partners: tuple[PartnerSettings, ...] | None = None
    partners_asked: int | None = None
    reoffer: float | Rebalancing | None = None
    confirm_time_max: float | None = None
    translation: Translation | None = None
    weights: Weights | None = None
    given_user: float | None = None
    requeue: Requeue | None = None
    preempt_guests: bool | None = None


@dataclass(frozen=True, slots=True)
class RoundDue(LoadedEvent):
    """A round is due: local jobs that still wait are offered again.

    Leads to `PublishRound` when all have been offered; no round begins while another progresses.
    """


@dataclass(frozen=True, slots=True)
class AccountDue(Event):
    """A look at the account that the site keeps of itself may be due, by the site's clock."""


@dataclass(frozen=True, slots=True)
class TimePassed(LoadedEvent):
    """Some time has passed, perhaps beyond deadlines; handed over every few seconds."""


@dataclass(frozen=True, slots=True)
class LoadTold(LoadedEvent):
    """The load that `TellLoad` asked for."""


@dataclass(frozen=True, slots=True)
class CircuitBreakerLooked(Event):
    """The effect of exchange on so many local jobs was computed for the circuit breaker; nan without jobs."""

    jobs: int
    improvement: float


# --- operators -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakeBack(LoadedEvent):
    """An operator wants a job back from its partner. Answered by `ReplyJob` or `Refuse`.

    The partner is told to end it; then it is decided again, without that partner. Its work there is lost, and
    repeated. While the partner does not answer, the job stays there. `by` is the operator.
    """

    job_id: str
    by: str


@dataclass(frozen=True, slots=True)
class Resubmit(LoadedEvent):
    """An operator (`by`) wants a job decided again at once. Answered by `ReplyJob` or `Refuse`.

    Its partner is told to end it as soon as it is reachable. Until then the job may run there, too: it may run twice,
    wholly or partly.
    """

    job_id: str
    by: str


@dataclass(frozen=True, slots=True)
class WriteOff(LoadedEvent):
    """An operator (`by`) gives up on a job: it ends as failed. Answered by `ReplyJob` or `Refuse`.

    Its partner is told to end it as soon as it is reachable. Until then it may run there to its end, of which its
    user is not told.
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
    """A user submits a job. Answered by `ReplyJob` or `Refuse`.

    Attributes:
        unfit: why the site's own batch system would never run it, in its words; empty if it may.
        dependencies: what it waits for; jobs of the same user.
        elements: of an array; `None` for one job.
        part: returns what an element of an array runs besides the payload, by the array's name and the index;
            callable only while the event is handled.
        here: it is offered to nobody, now or later.
        sites: that may run it, partners or this one; empty for any.
        checkpoint: it writes its state so often at least, seconds; 0 if it does not.
    """

    user: str
    idempotency_key: str
    name: str
    request: Request
    payload: bytes
    unfit: str = ""
    dependencies: tuple[Dependency, ...] = ()
    elements: ArraySpec | None = None
    part: Callable[[str, int], bytes] | None = field(default=None, compare=False, repr=False)
    here: bool = False
    sites: tuple[str, ...] = ()
    checkpoint: float = 0.0


@dataclass(frozen=True, slots=True)
class Preview(Submit):
    """A user asks what would become of such a job. Answered by `ReplyPreview` or `Refuse`; nothing is submitted."""


@dataclass(frozen=True, slots=True)
class Cancel(LoadedEvent):
    """A user, or an operator (`None`) for any user's job, ends a job. Answered as `Submit`.

    `job_id` may also be that of an array, or of some of its elements: a-12_[1-5,9].
    """

    job_id: str
    user: str | None


@dataclass(frozen=True, slots=True)
class StateFetched(LoadedEvent):
    """The state has come that a user's job has written at a partner, or cannot come.

    Attributes:
        partner, offer: where it was.
        restored: what the job runs besides, to go on from it; empty if it cannot come.
        reason: why it cannot come, for the job's user.
    """

    job: int
    partner: str
    offer: OfferId
    restored: bytes = b""
    reason: str = ""


# --- reservations --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BookReservation(Event):
    """Somebody wants to reserve a resource. Answered by `ReplyReservation` or `Refuse`.

    `idempotency_key` is the owner's; `begin` and `end` are in seconds.
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
        launch_key: the owner's idempotency key for the launch.
        request: of the job; its time is that on the reference resource, after which it is cut off.
        run_time: on the reference resource, seconds.
        to_the_end: it may run to the end of the reservation, however much it has requested.
        program: whether there is a program to run.
        payload: it.
    """

    owner: str
    reservation: int
    launch_key: str
    request: Request
    run_time: float
    to_the_end: bool = False
    program: bool = False
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class GroupedProgram:
    """One program of a group.

    Attributes:
        key: the owner's idempotency key, of its reservation and its launch.
        request: what it asks for; after its time it is ended.
        run_time: what it is thought to take on the reference resource, seconds.
        payload: it.
        refusal: why it can never run here, as far as is known; empty if it can.
    """

    key: str
    request: Request
    run_time: float
    payload: bytes
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class LaunchGroup(Event):
    """Somebody wants programs to share processors of a pilot. Answered by `ReplyGroup` or `Refuse`.

    `begin` and `end` are in seconds.
    """

    owner: str
    resource_id: str
    begin: float
    end: float
    processors: int
    programs: tuple[GroupedProgram, ...]


@dataclass(frozen=True, slots=True)
class MoveReservation(Event):
    """The owner of a reservation wants it to be in another window. Answered as `BookReservation`.

    Attributes:
        old, new: begin and end of the window where it is, as the owner knows, and of the one wanted,
            seconds.
    """

    owner: str
    reservation: int
    old: tuple[float, float]
    new: tuple[float, float]


@dataclass(frozen=True, slots=True)
class ReleaseReservation(Event):
    """The owner of a reservation releases it. Answered as `BookReservation`.

    `unless_begun`: a program in a pilot goes on if it has begun.
    """

    owner: str
    reservation: int
    unless_begun: bool = False


@dataclass(frozen=True, slots=True)
class ReservationsDue(Event):
    """Time changes reservations at this moment (`ReservationBook.next_time`)."""


# --- pilots --------------------------------------------------------------------------------------


class RunState(enum.StrEnum):
    """Where a program stands in a pilot; the words of the agent."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class RunNews:
    """What is known of a program that was given to a pilot.

    Attributes:
        reservation: in which it was launched.
        start_time, end_time: seconds; `None` if it has not started, or not ended.
        outcome: how it has ended; `None` if it certainly has not begun.
        reason: for people.
    """

    reservation: int
    state: RunState
    start_time: float | None = None
    end_time: float | None = None
    outcome: Outcome | None = None
    exit: Exit = NO_EXIT
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PilotWanted(Event):
    """A pilot is to be asked for, of a resource that has none that takes runs."""

    resource_id: str


@dataclass(frozen=True, slots=True)
class PilotConnected(Event):
    """A pilot is there, perhaps again.

    Attributes:
        until: it takes runs that end by then, seconds.
        host: its node.
        drained: why it takes no more; empty if it does.
        runs: all that it has; what was sent before and is not among them did not arrive.
    """

    pilot: int
    until: float
    host: str
    drained: str
    runs: tuple[RunNews, ...]


@dataclass(frozen=True, slots=True)
class PilotTold(Event):
    """Programs in a pilot have started or ended."""

    pilot: int
    runs: tuple[RunNews, ...]


@dataclass(frozen=True, slots=True)
class PilotDrains(Event):
    """A pilot takes no more runs."""

    pilot: int
    reason: str


@dataclass(frozen=True, slots=True)
class PilotLeaves(Event):
    """A pilot has told everything, and waits until that is durable."""

    pilot: int


@dataclass(frozen=True, slots=True)
class PilotEnded(Event):
    """The job of a pilot has ended.

    Attributes:
        runs: how its programs have ended that have not told it themselves, as far as can be found.
        reason: for people.
        held, used: processor-seconds of its job, and of its runs.
    """

    pilot: int
    runs: tuple[RunNews, ...]
    reason: str
    held: float
    used: float


# --- partners ask --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfferReceived(LoadedEvent):
    """A partner offers a job. Answered by `AnswerOffer` or `Refuse`.

    Attributes:
        partner: as its certificate says.
        settled_below: the partner will not ask again about offers with smaller numbers (of this epoch).
        reserve: a place is to be held for the job, which is not to be started before the partner confirms that it no
            longer has it.
        to_fetch: the program is still with the partner.
        rerun: the partner says that the job may be ended for another one, and be run again.
        checkpoint: the job writes its state so often at least, seconds; 0 if it does not.
        left: what is left of its requested time as it goes on from such state, seconds; 0 if it does not.
    """

    partner: str
    offer: OfferId
    settled_below: int
    request: Request
    payload: bytes
    reserve: bool = False
    to_fetch: bool = False
    rerun: bool = False
    checkpoint: float = 0.0
    left: float = 0.0


@dataclass(frozen=True, slots=True)
class ResolveReceived(Event):
    """A partner asks what became of its offer. Answered by `AnswerStatus` or `Refuse`.

    `partner` is as its certificate says. `confirm`: if a place is held for the job, it is to be started.
    """

    partner: str
    offer: OfferId
    confirm: bool = False


@dataclass(frozen=True, slots=True)
class WithdrawReceived(Event):
    """A partner withdraws its offer. Answered by `AnswerStatus` or `Refuse`.

    `cancel`: if the offer was accepted, its job is to end.
    """

    partner: str
    offer: OfferId
    cancel: bool


@dataclass(frozen=True, slots=True)
class ReportReceived(LoadedEvent):
    """A partner reports ends of delegated jobs. Answered by `AnswerReport` or `Refuse`."""

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

    `sent`: it may have reached the partner. False only if it certainly has not: the message was never handed to the
    network.
    """

    partner: str
    offer: OfferId
    sent: bool = True


@dataclass(frozen=True, slots=True)
class OfferDisputed(LoadedEvent):
    """A partner has another job under the number of an offer: it has not accepted this one."""

    partner: str
    offer: OfferId


@dataclass(frozen=True, slots=True)
class StatusAnswered(LoadedEvent):
    """A partner has answered `SendResolve` or `SendWithdraw`.

    Attributes:
        question: the `cause` of the command that asked. An answer counts only while its question stands: "never
            heard of" is true at one moment and may be false at the next.
        status: ACCEPTED (not ended yet), DECLINED, WITHDRAWN, ENDED (with `completion`), or `None`: never heard of.
    """

    partner: str
    offer: OfferId
    question: int
    status: GuestState | None
    completion: Completion | None = None


@dataclass(frozen=True, slots=True)
class StatusFailed(LoadedEvent):
    """`SendResolve` or `SendWithdraw` has had no answer; `question` is the `cause` of that command."""

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


@dataclass(frozen=True, slots=True)
class ProgressTold(Event):
    """A partner has said where delegated jobs stand; it may have left out some."""

    partner: str
    jobs: tuple[Progress, ...]


# --- partners come and go ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartnerUp(LoadedEvent):
    """A partner has identified itself, and can be asked.

    `processors` is its size; `offer_seen` the last of this site's offers that it knows of, if any.
        Its `nodes` are empty if it does not disclose them.
    """

    partner: str
    processors: int
    offer_seen: OfferId | None = None
    nodes: tuple[NodeKind, ...] = ()


@dataclass(frozen=True, slots=True)
class PartnerDown(Event):
    """A partner does not answer; it is not asked until it is up."""

    partner: str


@dataclass(frozen=True, slots=True)
class PartnerLost(LoadedEvent):
    """A partner has been down for longer than the site is willing to wait.

    Its jobs become SUSPECT, and the configured reaction (`on_lost`) applies.
    """

    partner: str


@dataclass(frozen=True, slots=True)
class PartnerFaulty(LoadedEvent):
    """A partner has violated the protocol; it gets no offers until it is well.

    `reason` is what it has said, for a person; `probed`: it was the answer to `SendProbe`.
    """

    partner: str
    reason: str
    probed: bool = False


@dataclass(frozen=True, slots=True)
class PartnerIncompatible(Event):
    """A partner speaks another version of the protocol: it is neither asked nor answered.

    `version` is the one that it speaks; 0 for the same as this site again.
    """

    partner: str
    version: int


@dataclass(frozen=True, slots=True)
class PartnerDuplicated(Event):
    """Two daemons use a partner's name: there are no offers from or to it until that has ended.

    `duplicated` is False when it has.
    """

    partner: str
    duplicated: bool


@dataclass(frozen=True, slots=True)
class ProbeAnswered(LoadedEvent):
    """A faulty partner has answered `SendProbe`; `status` is as for `StatusAnswered`."""

    partner: str
    status: GuestState | None


@dataclass(frozen=True, slots=True)
class ProbeFailed(Event):
    """`SendProbe` has had no answer."""

    partner: str


# --- the batch system, and what is brought to it -------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProgramsAway:
    """The program of a partner's accepted job has not arrived, in one attempt."""

    partner: str
    reason: str


@dataclass(frozen=True, slots=True)
class ProgramCame:
    """The program of a partner's accepted job has arrived."""

    partner: str


@dataclass(frozen=True, slots=True)
class OwnerTold:
    """The home site has told whose a partner's job is, by a pseudonym, with its program."""

    key: str
    pseudonym: str


@dataclass(frozen=True, slots=True)
class LrmsRefused:
    """The batch system has refused a job; being unreachable is no refusal.

    Attributes:
        undelivered: it was not asked: the program has not arrived from the home site in time.
        passing: a local user's job is submitted again later, as the reason may pass.
    """

    key: str
    reason: str
    undelivered: bool = False
    passing: bool = False


@dataclass(frozen=True, slots=True)
class LrmsStays:
    """The batch system will not release a waiting job; `certain`: no attempt went unanswered."""

    key: str
    certain: bool = False


@dataclass(frozen=True, slots=True)
class LrmsLetGo:
    """The batch system was told to release a waiting job, and has not refused.

    `done`: whether it has. False: it had nothing to release, as the job has started, somebody else has ended it, or it
    is not there. `None`: it has not answered, and may have done it, or still do it.
    """

    key: str
    done: bool | None


@dataclass(frozen=True, slots=True)
class LrmsAppeared:
    """The batch system has an unfinished job that was not there before, or is an old one."""

    key: str


LrmsNews = (
    base.Accepted
    | base.Started
    | base.Paused
    | base.Requeued
    | base.Hindered
    | base.Ended
    | base.Lost
    | base.Unseen
    | base.SeenAgain
    | base.Away
    | base.Back
    | LrmsRefused
    | LrmsStays
    | LrmsLetGo
    | LrmsAppeared
    | ProgramsAway
    | ProgramCame
    | OwnerTold
)
"""What the batch system tells, in its own words, and what its driver makes of its answers."""


@dataclass(frozen=True, slots=True)
class LrmsTold(Event):
    """There is news of the batch system, which has no ids; handled as an event of its own kind."""

    news: LrmsNews
