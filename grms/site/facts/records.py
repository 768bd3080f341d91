"""What the journal keeps: facts from which a site's state is rebuilt.

A record is written before anybody is told what it says. Applying all records of a journal in
order gives the state of the site but for what only a running daemon knows (see `lifecycle`).
"""

from typing import Final

import msgspec

from grms.site.facts.jobs import Exit, GuestRef, JobRef, Request
from grms.site.facts.lifecycle import Outcome
from grms.site.facts.trust import PromiseRow


class Record(msgspec.Struct, frozen=True, tag=True, array_like=True, forbid_unknown_fields=True):
    """A fact.

    Attributes:
        time: when it became one, on the site's clock, seconds.
    """

    time: float


# --- own users' jobs, and what the batch system does with any job --------------------------------


class JobReceived(Record, frozen=True):
    """A user's job was taken.

    Attributes:
        job: the site's number of the job: 1, 2, 3, …
        user: whose it is.
        idempotency_key: as the client chose it.
        name: as the user chose it.
        request: what it asks for.
        payload: what runs.
    """

    job: int
    user: str
    idempotency_key: str
    name: str
    request: Request
    payload: bytes


class JobOffered(Record, frozen=True):
    """A job is being offered; written before the offer is sent."""

    job: int
    partner: str
    number: int


class JobDeclined(Record, frozen=True):
    """The offer came to nothing: declined, or taken back before it was accepted."""

    job: int


class JobDelegated(Record, frozen=True):
    """The offer was accepted."""

    job: int


class JobPromised(Record, frozen=True):
    """The partner that has accepted the job is held to its promise; it follows JobDelegated."""

    job: int


class JobKept(Record, frozen=True):
    """The job runs at home; written before it is submitted to the batch system."""

    job: int


class JobReoffered(Record, frozen=True):
    """A partner is asked to hold a place for a job that waits here; written before it is asked."""

    job: int
    partner: str
    number: int


class JobReofferEnded(Record, frozen=True):
    """Nothing has come of that: the job stays in the queue.

    Attributes:
        job: the site's number of it.
        partner: that was asked.
        number: of the offer.
        settled: the partner holds no place; else the offer is still to be withdrawn.
    """

    job: int
    partner: str
    number: int
    settled: bool


class RoundHeld(Record, frozen=True):
    """A round of offers begins, with its first question; or all of its jobs have had their turn.

    Attributes:
        over: the latter.
        left_out: numbers of waiting jobs that have no part in it.
    """

    over: bool
    left_out: tuple[int, ...]


class JobLeaving(Record, frozen=True):
    """The batch system is to let a job go, if it has not started; written before it is told to.

    A partner holds a place for it, or it is a partner's and waits for something that is no room.
    """

    job: JobRef


class JobStays(Record, frozen=True):
    """The batch system will not let a job go: who cancels it from now on has reasons of his own."""

    job: JobRef


class JobLeft(Record, frozen=True):
    """The batch system has let go a job that had not started, as it was told to.

    It is written before the partner is told to start the job. Should the job come home again, the
    batch system gets it by another key.
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
    """The batch system has forgotten a job before it started; written before it is repeated."""

    job: JobRef
    reason: str


class JobExited(Record, frozen=True):
    """What a job's script returned, here or at a partner's; JobEnded follows."""

    job: JobRef
    exit: Exit


class JobEnded(Record, frozen=True):
    """A job has ended, here or at a partner's."""

    job: JobRef
    outcome: Outcome
    end_time: float
    run_time: float
    reason: str


class JobCancelRequested(Record, frozen=True):
    """A job's user, or its home site, wants it to end."""

    job: JobRef


class JobAbandoned(Record, frozen=True):
    """A lost partner's job is decided anew; the offer stays to be withdrawn."""

    job: int


class AbandonedSettled(Record, frozen=True):
    """A partner has learned that an abandoned offer is void."""

    partner: str
    number: int


class JobTakenBack(Record, frozen=True):
    """An operator wants a job back: it is ended where it is, and then decided anew.

    Attributes:
        job: the site's number of it.
        by: the operator.
    """

    job: int
    by: str


class JobReturned(Record, frozen=True):
    """A job has come back from its partner, which has ended it as wanted or never begun it, and is decided anew."""

    job: int


class JobResubmitted(Record, frozen=True):
    """An operator wants a job decided anew, whatever its partner does; JobAbandoned follows."""

    job: int
    by: str


class JobWrittenOff(Record, frozen=True):
    """An operator has given up on a job; JobAbandoned and JobEnded follow."""

    job: int
    by: str


# --- partners, and the journal itself ------------------------------------------------------------


class PartnerFaulted(Record, frozen=True):
    """A partner has said what the protocol does not have, while it counted as well."""

    partner: str
    reason: str


class ReportDisbelieved(Record, frozen=True):
    """What a partner reported cannot be true; it follows the end of the job.

    Attributes:
        partner: who reported.
        number: of the offer by which it had the job.
        reason: what cannot be.
    """

    partner: str
    number: int
    reason: str


class PromisesReviewed(Record, frozen=True):
    """It was looked at what a partner has made of its promises, and something was found.

    Attributes:
        partner: who has accepted the jobs.
        closed: numbers of the offers whose jobs have ended.
        overdue: of those whose jobs have not ended and should have.
        credit: of the partner, from here on, processor seconds.
        breaches: same.
        suspended_until: same, seconds.
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
    """The journal was found to be older than what partners have seen: its numbers begin anew.

    Attributes:
        epoch: of all that is numbered from here on.
        reason: how it was found out.
    """

    epoch: int
    reason: str


# --- guest jobs ----------------------------------------------------------------------------------


class GuestAccepted(Record, frozen=True):
    """A partner's offer was accepted; written before the answer is given.

    Attributes:
        job: who asked, and by which offer.
        settled_below: offers with smaller numbers need not be remembered.
        request: of the job.
        payload: what runs.
    """

    job: GuestRef
    settled_below: int
    request: Request
    payload: bytes


class GuestReserved(Record, frozen=True):
    """A place is held for the job, which its home site has still; it follows GuestAccepted."""

    job: GuestRef


class GuestConfirmed(Record, frozen=True):
    """The home site does not have the job any more; written before it is submitted here."""

    job: GuestRef


class GuestDeclined(Record, frozen=True):
    """A partner's offer was declined; written before the answer is given."""

    job: GuestRef
    settled_below: int


class GuestWithdrawn(Record, frozen=True):
    """A tombstone: an offer that has not come was taken back, and will be declined if it comes."""

    job: GuestRef


class GuestAcknowledged(Record, frozen=True):
    """The home site has the end of a guest job."""

    job: GuestRef


# --- reservations --------------------------------------------------------------------------------


class ReservationBooked(Record, frozen=True):
    """A resource was reserved.

    Attributes:
        reservation: the site's number of it: 1, 2, 3, …
        owner: who has it.
        idempotency_key: as the owner chose it.
        resource_id: of what.
        begin: seconds.
        end: seconds.
        processors: how many.
        cost: of the whole window.
    """

    reservation: int
    owner: str
    idempotency_key: str
    resource_id: str
    begin: float
    end: float
    processors: int
    cost: float


class ReservationExtended(Record, frozen=True):
    """The end of a reservation was moved; what else that changes, as it is from here on.

    Attributes:
        reservation: the site's number of it.
        end: the new one, seconds.
        run_time: of its job on the resource, seconds; 0 without one.
        cut_off: its job would run on after that.
        cost: of the whole window.
    """

    reservation: int
    end: float
    run_time: float
    cut_off: bool
    cost: float


class ReservationLaunched(Record, frozen=True):
    """A job was handed in for a reservation.

    Attributes:
        reservation: the site's number of it.
        launch_key: as the owner chose it.
        run_time: seconds it takes on the resource.
        cut_off: it would run on after that.
        needed_time: seconds it would take if it were not cut off.
        to_the_end: it may run to the end of the reservation.
    """

    reservation: int
    launch_key: str
    run_time: float
    cut_off: bool
    needed_time: float
    to_the_end: bool


class ReservationStarted(Record, frozen=True):
    """The job of a reservation has started."""

    reservation: int
    start_time: float


class ReservationEnded(Record, frozen=True):
    """The job of a reservation has ended; what is left of the window is free."""

    reservation: int
    end_time: float


class ReservationReleased(Record, frozen=True):
    """A reservation was given back; a job that was running has ended then."""

    reservation: int


class ReservationExpired(Record, frozen=True):
    """The end of a reservation has passed without a job."""

    reservation: int


# --- sums ----------------------------------------------------------------------------------------


class SiteTally(Record, frozen=True):
    """What is left of records that are no longer needed; see `compaction`."""

    next_job: int


class PartnerTally(Record, frozen=True):
    """The same for one partner; names and meanings are those of its book."""

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
    """More sums of one partner, which journals of older programs do not have."""

    partner: str
    faults: int
    disbelieved: int
    distrust: int
    doubt: str


class SiteBooks(Record, frozen=True):
    """What the site has noted of its own users' jobs that have ended; see `Memory`."""

    own_work: float
    own_requested: float


class PartnerBooks(Record, frozen=True):
    """What the site has noted of one partner for its rails; see `PartnerBook` and `PromiseBook`."""

    partner: str
    taken: float
    given: float
    credit: float
    breaches: int
    suspended_until: float
    work: float
    promised: tuple[PromiseRow, ...]


class ReservationTally(Record, frozen=True):
    """The number of the next reservation, in a journal that was compacted; absent if there was none."""

    next_reservation: int


KINDS: Final = tuple(Record.__subclasses__())
"""Every kind of record."""
