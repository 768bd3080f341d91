"""The records of the journal: facts from which a site's state is rebuilt.

A record is written before anyone is told what it says. Applying all records of a journal in order gives the state
of the site except for what only a running daemon knows (`lifecycle`).
"""

from typing import Final

import msgspec

from grms.site.model.forgotten_keys import KeyRow
from grms.site.model.jobs import NO_EXIT, Exit, GuestRef, JobRef, Request, StateThere
from grms.site.model.lifecycle import Outcome
from grms.site.model.partner_conduct import PromiseRow
from grms.site.model.usage import UsageRow
from grms.util.dependencies import Dependency
from lrms_sim.workload.requests import Request as Needs


class Record(msgspec.Struct, frozen=True, tag=True, array_like=True, forbid_unknown_fields=True):
    """A fact; `time` is when it became one, on the site's clock, seconds."""

    time: float


# --- own users' jobs, and what the batch system does with any job --------------------------------


class JobReceived(Record, frozen=True):
    """A user's job was accepted.

    Attributes:
        job: the site's number of it: 1, 2, 3, …
        payload: what runs; of an element of an array, what it has besides that of the array.
        unfit: why this site's own batch system would never run it; empty if it may.
        dependencies: what it waits for.
        array: number of the array of which it is an element, 0 for none.
        index: in that array.
        here: it is offered to nobody.
        sites: that may run it; empty for any.
        checkpoint: it writes its state so often at least, seconds; 0 if it does not.
    """

    job: int
    user: str
    idempotency_key: str
    name: str
    request: Request
    payload: bytes
    unfit: str = ""
    dependencies: tuple[Dependency, ...] = ()
    array: int = 0
    index: int = 0
    here: bool = False
    sites: tuple[str, ...] = ()
    checkpoint: float = 0.0


class ArrayReceived(Record, frozen=True):
    """A user's array was accepted; JobReceived of each element follows.

    Attributes:
        array: number of its first element.
        elements: in the notation of `ArraySpec`.
        payload: what all elements run.
        not_ok: how many elements that are no longer needed have not completed (`compaction`).
    """

    array: int
    elements: str
    user: str
    idempotency_key: str
    name: str
    request: Request
    payload: bytes
    dependencies: tuple[Dependency, ...] = ()
    not_ok: int = 0


class JobReleased(Record, frozen=True):
    """A held job waits for nothing any more: it is decided where it runs."""

    job: int


class JobOffered(Record, frozen=True):
    """A job is being offered; written before the offer is sent."""

    job: int
    partner: str
    number: int


class JobDeclined(Record, frozen=True):
    """The offer failed: declined, or withdrawn before it was accepted."""

    job: int


class JobDelegated(Record, frozen=True):
    """The offer was accepted."""

    job: int


class JobPromised(Record, frozen=True):
    """The partner that has accepted the job is held to its promise; follows JobDelegated."""

    job: int


class JobKept(Record, frozen=True):
    """The job runs at home; written before it is submitted to the batch system."""

    job: int


class JobUnplaced(Record, frozen=True):
    """This site cannot run the job, and no partner has taken it; all of them are asked again later.

    Attributes:
        job: number of the job.
        reason: for its user.
    """

    job: int
    reason: str


class JobReoffered(Record, frozen=True):
    """A partner is asked to hold a place for a job that waits here; written before it is asked."""

    job: int
    partner: str
    number: int


class JobReofferEnded(Record, frozen=True):
    """The new offer failed, and the job stays in the queue.

    `settled`: the partner holds no place; else the offer is still to be withdrawn.
    """

    job: int
    partner: str
    number: int
    settled: bool


class RerunAllowed(Record, frozen=True):
    """The offer says that the job may be run again; follows JobOffered or JobReoffered."""

    job: int
    partner: str
    number: int


class RoundHeld(Record, frozen=True):
    """A round of offers begins, with its first question; or, if `over`, all of its jobs have been offered.

    `left_out` are the numbers of waiting jobs that have no part in it.
    """

    over: bool
    left_out: tuple[int, ...]


class JobLeaving(Record, frozen=True):
    """The batch system is to release a job, if it has not started; written before it is told to.

    A partner holds a place for it, or it is a partner's and waits for something other than room.
    """

    job: JobRef


class JobStays(Record, frozen=True):
    """The batch system does not release a job as it was told to; who cancels it is somebody else."""

    job: JobRef


class JobLeft(Record, frozen=True):
    """The batch system has released a job that had not started, as it was told to.

    Written before the partner is told to start the job. Should the job come home again, the batch system gets it
    under another key.
    """

    job: int


class JobStarted(Record, frozen=True):
    """A job has started here."""

    job: JobRef
    start_time: float


class JobRequeued(Record, frozen=True):
    """A job that had started here waits again."""

    job: JobRef
    reason: str


class JobLost(Record, frozen=True):
    """The batch system has lost a job before it started; written before it is submitted again."""

    job: JobRef
    reason: str


class JobExited(Record, frozen=True):
    """How a job's script exited, here or at a partner; JobEnded follows."""

    job: JobRef
    exit: Exit


class JobEnded(Record, frozen=True):
    """A job has ended, here or at a partner."""

    job: JobRef
    outcome: Outcome
    end_time: float
    run_time: float
    reason: str


class JobCancelRequested(Record, frozen=True):
    """A job's user, or its home site, wants it to end."""

    job: JobRef


class JobAbandoned(Record, frozen=True):
    """A lost partner's job is decided again; the offer is still to be withdrawn."""

    job: int


class AbandonedSettled(Record, frozen=True):
    """A partner has learned that an abandoned offer is void."""

    partner: str
    number: int


class JobTakenBack(Record, frozen=True):
    """An operator (`by`) wants a job back: it is ended where it is, and then decided again."""

    job: int
    by: str


class JobReturned(Record, frozen=True):
    """A partner has ended a job as wanted, or has never begun it; the job is decided again."""

    job: int


class JobSentHome(Record, frozen=True):
    """A partner has ended a job for another one, after `lost` seconds by its clock; the job is decided again.

    `state` says where the state lies that it has written by then: it is decided again when that has come, or cannot come
    (`StateCame`, `StateMissed`). `None` if there is none. `responded`: the time until then is one of the partner's response
    times, as it is where the site keeps no account of itself; `None` in journals of older versions, which went by the settings.
    """

    job: int
    partner: str
    lost: float
    state: StateThere | None = None
    responded: bool | None = None


class StateCame(Record, frozen=True):
    """The state that a job has written at a partner is here, and the job goes on from it.

    `kept` is how long it had run there by then, seconds, `restored` what it runs besides from now on.
    """

    job: int
    partner: str
    kept: float
    restored: bytes


class StateMissed(Record, frozen=True):
    """The state that a job has written at a partner cannot come: it runs from the state before, or its start.

    `kept` is how long it had run by then, as the partner has said, seconds; `reason` is for its user.
    """

    job: int
    partner: str
    kept: float
    reason: str


class JobResubmitted(Record, frozen=True):
    """An operator wants a job decided again, whatever its partner does; JobAbandoned follows."""

    job: int
    by: str


class JobWrittenOff(Record, frozen=True):
    """An operator has given up on a job; JobAbandoned and JobEnded follow."""

    job: int
    by: str


# --- partners, and the journal itself ------------------------------------------------------------


class PartnerFaulted(Record, frozen=True):
    """A partner that counted as well has violated the protocol."""

    partner: str
    reason: str


class ReportDisbelieved(Record, frozen=True):
    """A partner's report is impossible (`reason`); follows the end of the job. `number` is that of its offer."""

    partner: str
    number: int
    reason: str


class PromisesReviewed(Record, frozen=True):
    """A review of a partner's promises has had findings.

    Attributes:
        closed: numbers of the offers whose jobs have ended.
        overdue: of those whose jobs have not ended, but should have.
        credit, breaches, suspended_until: of the partner, from here on; processor seconds, number, seconds.
    """

    partner: str
    closed: tuple[int, ...]
    overdue: tuple[int, ...]
    credit: float
    breaches: int
    suspended_until: float


class PartnerPardoned(Record, frozen=True):
    """An operator has ended a partner's suspension, and forgets its breaches."""

    partner: str
    by: str


class EpochBegun(Record, frozen=True):
    """The journal is older than what was done with it, by what partners have seen or an operator says: its numbers start over.

    `reason` is how that was found.
    """

    epoch: int
    reason: str


# --- guest jobs ----------------------------------------------------------------------------------


class GuestAccepted(Record, frozen=True):
    """A partner's offer was accepted; written before the answer is given.

    Offers with numbers less than `settled_below` need not be remembered.
    `here` is the request in the names of this site; `None` if it names nothing.
    """

    job: GuestRef
    settled_below: int
    request: Request
    payload: bytes
    here: Needs | None = None


class GuestReserved(Record, frozen=True):
    """A place is held for the job, which its home site still has; follows GuestAccepted."""

    job: GuestRef


class GuestConfirmed(Record, frozen=True):
    """The home site no longer has the job; written before it is submitted here."""

    job: GuestRef


class GuestPreemptible(Record, frozen=True):
    """The batch system may end the job for another one; follows GuestAccepted."""

    job: GuestRef


class GuestKept(Record, frozen=True):
    """A job that is ended for another one had last written its state after `kept` seconds; JobEnded follows."""

    job: GuestRef
    kept: float


class GuestProtected(Record, frozen=True):
    """The job is not ended for another one as long as the site is in credit; follows GuestPreemptible."""

    job: GuestRef


class GuestCharged(Record, frozen=True):
    """What a job that runs to its end may cost local users, processor seconds times seconds; follows GuestAccepted."""

    job: GuestRef
    charge: float


class GuestNamed(Record, frozen=True):
    """The home site has told whose a guest job is, with its program; `pseudonym` is of its user."""

    job: GuestRef
    pseudonym: str


class GuestDeclined(Record, frozen=True):
    """A partner's offer was declined; written before the answer is given."""

    job: GuestRef
    settled_below: int


class GuestWithdrawn(Record, frozen=True):
    """A tombstone: an offer was withdrawn before it arrived, and will be declined if it does."""

    job: GuestRef


class GuestAcknowledged(Record, frozen=True):
    """The home site has the end of a guest job."""

    job: GuestRef


# --- reservations --------------------------------------------------------------------------------


class ReservationBooked(Record, frozen=True):
    """A resource was reserved.

    `reservation` is the site's number of it: 1, 2, 3, …; `begin` and `end` are in seconds; `cost` is of the whole
    window. `group` is the number of the first reservation of its group, which holds `share` processors; both 0
    where it is of none.
    """

    reservation: int
    owner: str
    idempotency_key: str
    resource_id: str
    begin: float
    end: float
    processors: int
    cost: float
    group: int = 0
    share: int = 0


class ReservationMoved(Record, frozen=True):
    """A reservation is in another window; the other fields are as they are from here on.

    `begin` and `end` are in seconds; `run_time` is that of its job on the resource, seconds, 0 without one; `cut_off`: the job would run beyond the
    end.
    """

    reservation: int
    begin: float
    end: float
    run_time: float
    cut_off: bool
    cost: float


class ReservationLaunched(Record, frozen=True):
    """A job was submitted to a reservation.

    Attributes:
        launch_key: the owner's idempotency key.
        run_time: on the resource, seconds; in a group what it is thought to take.
        cut_off: it would run longer.
        needed_time: seconds it would take if it were not cut off.
        to_the_end: it may run to the end of the reservation.
        pilot: number of the pilot that runs it; 0 where nothing is run.
        run_key: names its folder; empty where nothing is run.
        request: of the program; `None` where nothing is run.
        payload: the program; empty where nothing is run.
    """

    reservation: int
    launch_key: str
    run_time: float
    cut_off: bool
    needed_time: float
    to_the_end: bool
    pilot: int = 0
    run_key: str = ""
    request: Request | None = None
    payload: bytes = b""


class ReservationStarted(Record, frozen=True):
    """The job of a reservation has started."""

    reservation: int
    start_time: float


class ReservationEnded(Record, frozen=True):
    """The job of a reservation has ended; what is left of the window is free.

    `outcome` is that of a program, `None` where nothing was run; `reason` is for people.
    """

    reservation: int
    end_time: float
    outcome: Outcome | None = None
    exit: Exit = NO_EXIT
    reason: str = ""


class ReservationReleased(Record, frozen=True):
    """A reservation was released; a running job has ended then.

    `reason` is why, where it was not its owner who released it.
    """

    reservation: int
    reason: str = ""


class ReservationExpired(Record, frozen=True):
    """The end of a reservation has passed without a job."""

    reservation: int


# --- pilots --------------------------------------------------------------------------------------


class PilotAsked(Record, frozen=True):
    """A pilot is wanted for a resource.

    `pilot` is the site's number of it: 1, 2, 3, …; `name` is unique for all time.
    """

    pilot: int
    resource_id: str
    name: str


class PilotOpened(Record, frozen=True):
    """A pilot takes runs until a moment, seconds; it was connected to for the first time, or its end has changed."""

    pilot: int
    until: float
    host: str


class PilotDrained(Record, frozen=True):
    """A pilot takes no more runs."""

    pilot: int
    reason: str


class PilotOver(Record, frozen=True):
    """The job of a pilot has ended, and none of its runs runs any more.

    `held` and `used` are processor-seconds: those of its job, and those of its runs.
    """

    pilot: int
    reason: str
    held: float
    used: float


# --- sums ----------------------------------------------------------------------------------------


class SiteTally(Record, frozen=True):
    """Sums of records that are no longer needed (`compaction`)."""

    next_job: int


class PartnerTally(Record, frozen=True):
    """The same for one partner; fields are those of `PartnerBook`."""

    partner: str
    next_number: int
    offered: int
    accepted: int
    ended: int
    consumption: float
    weighted_response: float
    open_consumption: float
    open_submitted: float
    epoch: int
    settled_below: int
    guest_offered: int
    guest_accepted: int


class PartnerStanding(Record, frozen=True):
    """More sums of one partner: its protocol errors and impossible reports."""

    partner: str
    faults: int
    disbelieved: int
    distrust: int
    doubt: str


class SiteBooks(Record, frozen=True):
    """Sums of local users' ended jobs; fields are those of `StateTables`."""

    own_work: float
    own_requested: float


class PartnerBooks(Record, frozen=True):
    """Sums for a partner's constraints; fields are those of `PartnerBook` and `PromiseBook`."""

    partner: str
    taken: float
    given: float
    credit: float
    breaches: int
    suspended_until: float
    work: float
    promised: tuple[PromiseRow, ...]
    debt: float = 0.0


class AccountLooked(Record, frozen=True):
    """The site's account of itself was looked at, at a multiple of its period."""


class AccountTally(Record, frozen=True):
    """The site's account of itself, as `SiteAccount` writes it; in a journal that was compacted."""

    account: bytes


class DebtNoted(Record, frozen=True):
    """Work was lost at a partner with a job that it has sent home; fields are those of `PromiseBook`."""

    partner: str
    debt: float
    credit: float
    breaches: int
    suspended_until: float


class UsageTally(Record, frozen=True):
    """What was exchanged in the last months, in all."""

    rows: tuple[UsageRow, ...]


class ForgottenKeysTally(Record, frozen=True):
    """Idempotency keys of forgotten jobs, in a journal that was compacted, before all records of jobs.

    Each row has what stands for a user and a key, the number of the job or array, and when it was forgotten,
    seconds.
    """

    rows: tuple[KeyRow, ...]


class ForgottenReservationsTally(Record, frozen=True):
    """Idempotency keys of forgotten reservations, in a journal that was compacted, before all records of reservations.

    Each row has what stands for an owner and a key, the number of the reservation, and when it was forgotten, seconds.
    """

    rows: tuple[KeyRow, ...]


class ReservationTally(Record, frozen=True):
    """The number of the next reservation, in a journal that was compacted; absent if there was none."""

    next_reservation: int


class PilotTally(Record, frozen=True):
    """Sums of pilots that are over, in a journal that was compacted; absent if there was none.

    `held` and `used` are processor-seconds.
    """

    next_pilot: int
    held: float
    used: float


KINDS: Final = tuple(Record.__subclasses__())
"""Every kind of record."""
