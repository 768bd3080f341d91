"""The memory of a site, made by its journal's records.

`apply` is the only way to change what must survive a restart: while the daemon runs the state notes a record and
applies it, and after a restart the journal's records are applied again.
"""

import math
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from grms.policy.circuit_breaker import CircuitBreakerFound
from grms.site.model.account_history import RunningGuests
from grms.site.model.forgotten_keys import ForgottenKeys
from grms.site.model.held_jobs import OK, HeldJobBook, JobArray, Target
from grms.site.model.jobs import (
    KEY_PARTS,
    GuestJob,
    GuestRef,
    HomeJob,
    JobRef,
    Load,
    OfferId,
    Request,
    lrms_key,
    next_lrms_key,
    read_job_id,
)
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.own_account import SiteAccount
from grms.site.model.partners import PartnerBook, response_time
from grms.site.model.pilots import PilotBook
from grms.site.model.rebalance_rounds import RebalanceBook
from grms.site.model.records import (
    AbandonedSettled,
    AccountLooked,
    AccountTally,
    ArrayReceived,
    DebtNoted,
    EpochBegun,
    ForgottenKeysTally,
    GuestAccepted,
    GuestAcknowledged,
    GuestCharged,
    GuestConfirmed,
    GuestDeclined,
    GuestKept,
    GuestNamed,
    GuestPreemptible,
    GuestProtected,
    GuestReserved,
    GuestWithdrawn,
    JobAbandoned,
    JobCancelRequested,
    JobDeclined,
    JobDelegated,
    JobEnded,
    JobExited,
    JobKept,
    JobLeaving,
    JobLeft,
    JobLost,
    JobOffered,
    JobPromised,
    JobReceived,
    JobReleased,
    JobReoffered,
    JobReofferEnded,
    JobRequeued,
    JobResubmitted,
    JobReturned,
    JobSentHome,
    JobStarted,
    JobStays,
    JobTakenBack,
    JobUnplaced,
    JobWrittenOff,
    PartnerBooks,
    PartnerFaulted,
    PartnerPardoned,
    PartnerStanding,
    PartnerTally,
    PromisesReviewed,
    Record,
    ReportDisbelieved,
    RerunAllowed,
    RoundHeld,
    SiteBooks,
    SiteTally,
    StateCame,
    StateMissed,
    UsageTally,
)
from grms.site.model.reservations import ReservationBook
from grms.site.model.settings import SiteSettings
from grms.site.model.usage import UsageBook, UsageRecord, Used, usage_of
from grms.util.dependencies import Dependency
from grms.util.job_arrays import ArraySpec


class StateTables:
    """Jobs, partners and reservations of a site.

    Attributes:
        epoch: of new numbers: the journal's own, or a later one that has begun since.
        jobs: local users' jobs by number: open ones, and those that ended last.
        jobs_open: number of unfinished ones.
        keys: numbers of jobs and arrays by (user, idempotency key).
        forgotten_keys: the same of those that are forgotten.
        open_by_user: number of open jobs, of users with any.
        ended: numbers of ended jobs in the order of their ends.
        next_job: number of the next job.
        own_work: Σ p·m of local users' ended jobs, wherever they ran, processor seconds.
        own_requested: Σ p·m·requested time of the same.
        unconfirmed: processors of the jobs that the batch system is to get and has not confirmed.
        coming: requests of these jobs, by key.
        unplaced: local users' jobs that neither this site nor any partner asked could run, by number.
        fetching: local users' jobs whose state is on its way home, by number.
        at_lrms: unfinished jobs that the batch system has or is to get, by key, in the order of its queue; running
            ones in order of their starts.
        lrms_moment: of the last known event there, seconds; minus infinity without any.
        reserved: partners' jobs for which a place is held, by key.
        held: which local users' jobs are held, and for what; and arrays.
        books: by partner's name, listed ones first and in their order.
        usage: what was exchanged in the last months.
        account: that the site keeps of itself; `None` if it keeps none.
        on_usage: is given the record of each job that ends; `None` for nobody.
        draining: no more work is accepted.
        lrms_away: why the batch system does not answer; empty if it does.
        unseen: why the state of a job of `at_lrms` is unknown, by key; not in the journal.
        circuit_breaker_found: the last finding of the site's circuit breaker; `None` before. Like the two above it is not durable.
    """

    def __init__(self, settings: SiteSettings) -> None:
        self.settings = settings
        self.epoch = settings.epoch
        self.jobs: dict[int, HomeJob] = {}
        self.jobs_open = 0
        self.keys: dict[tuple[str, str], int] = {}
        limits = settings.limits
        self.forgotten_keys = ForgottenKeys(limits.keys_kept, limits.keys_kept_s)
        self.open_by_user: dict[str, int] = {}
        self.ended: deque[int] = deque()
        self.next_job = 1
        self.draining = False
        self.lrms_away = ""
        self.unseen: dict[str, str] = {}
        self.circuit_breaker_found: CircuitBreakerFound | None = None
        self.own_work = self.own_requested = 0.0
        self.unconfirmed = 0
        self.coming: dict[str, Request] = {}
        self.unplaced: dict[int, HomeJob] = {}
        self.fetching: dict[int, HomeJob] = {}
        self.at_lrms: dict[str, HomeJob | GuestJob] = {}
        self.lrms_moment = -math.inf
        self.reserved: dict[str, GuestJob] = {}
        self.books: dict[str, PartnerBook] = {}
        self.pilots = PilotBook()
        self.reservations = ReservationBook(
            settings.resources,
            limits.reservations_kept,
            self.pilots,
            keys_kept=limits.reservation_keys_kept,
            keys_kept_s=limits.reservation_keys_kept_s,
        )
        self.rounds = RebalanceBook()
        self.held = HeldJobBook()
        self.usage = UsageBook()
        self.account: SiteAccount | None = None
        self.keep_account()
        self.on_usage: Callable[[UsageRecord], None] | None = None
        self.list_partners()
        self._apply: dict[type[Record], Callable[..., None]] = {
            JobReceived: self._job_received,
            ArrayReceived: self._array_received,
            JobReleased: self._job_released,
            JobOffered: self._job_offered,
            JobDeclined: self._job_declined,
            JobDelegated: self._job_delegated,
            JobPromised: self._job_promised,
            JobKept: self._job_kept,
            JobUnplaced: self._job_unplaced,
            JobReoffered: self._job_reoffered,
            JobReofferEnded: self._job_reoffer_ended,
            RerunAllowed: self._rerun_allowed,
            RoundHeld: self._round_held,
            JobLeaving: self._job_leaving,
            JobStays: self._job_stays,
            JobLeft: self._job_left,
            JobStarted: self._job_started,
            JobRequeued: self._job_requeued,
            JobLost: self._job_lost,
            JobExited: self._job_exited,
            JobEnded: self._job_ended,
            JobCancelRequested: self._job_cancel_requested,
            JobAbandoned: self._job_abandoned,
            AbandonedSettled: self._abandoned_settled,
            JobTakenBack: self._job_taken_back,
            JobSentHome: self._job_sent_home,
            **dict.fromkeys((StateCame, StateMissed), self._state_told),
            JobReturned: self._job_returned,
            **dict.fromkeys((JobResubmitted, JobWrittenOff), self._job_acted_on),
            EpochBegun: self._epoch_begun,
            PartnerFaulted: self._partner_faulted,
            ReportDisbelieved: self._report_disbelieved,
            PromisesReviewed: self._promises_reviewed,
            PartnerPardoned: self._partner_pardoned,
            GuestAccepted: self._guest_accepted,
            GuestReserved: self._guest_reserved,
            GuestConfirmed: self._guest_confirmed,
            GuestPreemptible: self._guest_preemptible,
            GuestKept: self._guest_kept,
            GuestProtected: self._guest_protected,
            GuestCharged: self._guest_charged,
            AccountLooked: self._account_looked,
            AccountTally: self._account_tally,
            DebtNoted: self._debt_noted,
            GuestDeclined: self._guest_declined,
            GuestNamed: self._guest_named,
            GuestWithdrawn: self._guest_withdrawn,
            GuestAcknowledged: self._guest_acknowledged,
            SiteTally: self._site_tally,
            PartnerTally: self._partner_tally,
            PartnerStanding: self._partner_tally,
            SiteBooks: self._site_books,
            PartnerBooks: self._partner_books,
            UsageTally: self._usage_tally,
            ForgottenKeysTally: self._forgotten_keys,
            **self.reservations.changes,
            **self.pilots.changes,
        }

    def apply(self, record: Record) -> None:
        """Applies a record.

        Raises:
            IllegalMove: the record cannot follow those before it.
            KeyError: it is about an unknown job or reservation.
        """
        self._apply[type(record)](record)

    def job(self, ref: JobRef) -> HomeJob | GuestJob:
        """Returns a remembered job.

        Raises:
            KeyError: it is not remembered.
        """
        if isinstance(ref, GuestRef):
            return self.books[ref.partner].guests[ref.offer]
        return self.jobs[ref]

    def book(self, partner: str) -> PartnerBook:
        """Returns the book of a partner, also of one that is no longer listed."""
        book = self.books.get(partner)
        if book is None:
            book = self.books[partner] = PartnerBook(partner, listed=False)
        return book

    def list_partners(self) -> None:
        """Applies the allow-list of the settings: books of listed partners come first, in its order."""
        before = dict(self.books)
        self.books.clear()
        for partner in self.settings.partners:
            book = before.pop(partner.name, None)
            if book is None:
                book = PartnerBook(partner.name, listed=True, processors=partner.processors)
            book.listed = True
            book.limits = partner.limits
            self.books[partner.name] = book
        for book in before.values():
            book.listed = book.reachable = False
            self.books[book.name] = book

    def keep_account(self) -> None:
        """Has the account that the site keeps of itself follow the settings.

        One that begins knows what the journal still has of local users' jobs.
        """
        rules, before = self.settings.account, self.account
        if rules is None:
            self.account = None
        elif before is None or before.rules != rules:
            now = SiteAccount(self.settings.processors, self.settings.discipline, rules)
            if before is None:
                here = [job for job in self.jobs.values() if job.state is not JobState.HELD]
                now.enter(sorted(here, key=_in_order), math.inf)
            else:
                now.resume(before.record())
            self.account = now

    def was_to_end(self, key: str) -> bool:
        """Returns whether this site wanted a job, by key, to end or leave that it no longer has there.

        False for a job unknown here.
        """
        home, *numbers = key.split("/")
        if len(numbers) < KEY_PARTS - 1:
            return False
        try:
            epoch, number = int(numbers[0], 16), int(numbers[1])
        except ValueError:
            return False
        if home != self.settings.name:
            book = self.books.get(home)
            guest = None if book is None else book.guests.get(OfferId(epoch, number))
            return guest is not None and guest.cancel_requested
        job = self.jobs.get(number)
        if job is None or not _of_one_job(job.lrms_key, key):
            return False
        return job.cancel_requested or bool(job.partner) or job.lrms_key != key

    def keeps_place(self, key: str) -> bool:
        """Returns whether what the batch system has under a key may be the place of a job that may come back to it.

        `key` is one of the job's.
        """
        home, *numbers = key.split("/")
        if not self.settings.keeps_places or home != self.settings.name or len(numbers) < 2:
            return False
        job = self.jobs.get(int(numbers[1])) if numbers[1].isdigit() else None
        if job is None or not _of_one_job(job.lrms_key, key) or job.state is JobState.ENDED:
            return False
        return job.lrms_key not in self.at_lrms

    def confirm(self, job: HomeJob | GuestJob) -> None:
        """Notes that the batch system has a job; call it before the job's state changes."""
        if job.state is JobState.SUBMITTING:
            self.unconfirmed -= job.request.processors
            del self.coming[job.lrms_key]

    def _comes(self, job: HomeJob | GuestJob) -> None:
        self.unconfirmed += job.request.processors
        self.coming[job.lrms_key] = job.asked_here

    def load(self, told: Load | None) -> Load | None:
        """Returns the batch system's load plus the jobs on their way to it; `None` if it does not answer.

        With jobs under way it cannot be asked whether it would start a job, as it does not know of them.
        What it has said of its nodes can.
        """
        if self.lrms_away or told is None:
            return None
        if told.processors_idle is None and self.settings.sends_guests_home:
            # A batch system that counts the processors of all guests as used; own jobs may have some of them.
            hidden = min(self.hidden(), told.processors - told.processors_free)
            told = replace(
                told,
                processors_free=told.processors_free + hidden,
                processors_idle=told.processors_free,
                hidden=hidden,
            )
        elif (
            told.processors_idle is not None
            and told.asked is None
            and not self.settings.sends_guests_home
        ):
            # One that is polled gives own jobs the processors of guests. Policies know no such guests, and a partner's job
            # has no more than what nobody uses.
            idle = min(told.processors_free, told.processors_idle)
            told = replace(told, processors_free=idle, processors_idle=None)
        if not self.unconfirmed:
            return told
        starting = min(self.unconfirmed, told.processors_free)
        return Load(
            told.processors,
            told.processors_free - starting,
            told.processors_waiting + self.unconfirmed - starting,
            refuses=told.refuses,
            nodes=told.nodes,
            coming=self.coming.values(),
            processors_idle=(
                None if told.processors_idle is None else max(0, told.idle - self.unconfirmed)
            ),
            hidden=told.hidden,
        )

    def hidden(self) -> int:
        """Returns the processors of running guests that are ended for local users' jobs now."""
        protects = self.account is not None and self.account.in_credit
        return sum(
            job.request.processors
            for job in self.at_lrms.values()
            if job.preemptible
            and job.state is JobState.RUNNING
            and not (job.protected and protects)
        )

    def running_guests(self) -> RunningGuests:
        """Returns how many guests run, and which of them are ended for local users' jobs now."""
        protects = self.account is not None and self.account.in_credit
        running = [
            job
            for job in self.at_lrms.values()
            if isinstance(job, GuestJob) and job.state is JobState.RUNNING
        ]
        may_go = [job for job in running if job.preemptible]
        protected = sum(job.protected and protects for job in may_go)
        return RunningGuests(protected, len(may_go) - protected, len(running) - len(may_go))

    @property
    def guarded(self) -> bool:
        """Whether the site's circuit breaker stops exchange, or has not looked yet."""
        found = self.circuit_breaker_found
        return self.settings.circuit_breaker is not None and (found is None or found.stops)

    # --- home jobs -----------------------------------------------------------------------------

    def made(self, record: JobReceived) -> HomeJob:
        """Returns the job that a record tells of, which is noted nowhere."""
        number = record.job
        array = self.held.arrays[record.array] if record.array else None
        return HomeJob(
            job=number,
            job_id=(self.job_name(number) if array is None else array.element_id(record.index)),
            lrms_key=lrms_key(self.settings.name, self.epoch, number),
            user=record.user,
            idempotency_key=record.idempotency_key,
            name=record.name,
            request=record.request,
            payload=record.payload if array is None else array.payload,
            part=b"" if array is None else record.payload,
            unfit=record.unfit,
            here=record.here,
            sites=record.sites,
            checkpoint=record.checkpoint,
            submit_time=record.time,
            array=record.array,
            index=record.index,
            dependencies=record.dependencies,
        )

    def held_first(self, record: JobReceived, index: int) -> str:
        """Returns what a job would wait for that is not received, for a person; empty for nothing.

        `index` is that of an element of an array, negative of one job.
        """
        return self.held.outlook(
            record.job,
            (record.user, record.name),
            record.dependencies,
            resolve=partial(self.target, index=index),
            ended=self._completed,
        )

    def _job_received(self, record: JobReceived) -> None:
        number, user = record.job, record.user
        array = self.held.arrays[record.array] if record.array else None
        job = self.jobs[number] = self.made(record)
        self.jobs_open += 1
        if array is None:
            self.keys[user, record.idempotency_key] = number
        if self.held.receive(
            number,
            job.named,
            record.dependencies,
            array=array,
            resolve=partial(self.target, index=-1 if array is None else record.index),
            ended=self._completed,
        ):
            job.begin_held()
        elif self.account is not None:
            self.account.submitted(number, record.time, job.request)
        self.open_by_user[user] = self.open_by_user.get(user, 0) + 1
        self.next_job = number + 1

    def _array_received(self, record: ArrayReceived) -> None:
        array = JobArray(
            array=record.array,
            array_id=self.job_name(record.array),
            spec=ArraySpec.parse(record.elements),
            user=record.user,
            idempotency_key=record.idempotency_key,
            name=record.name,
            request=record.request,
            payload=record.payload,
            dependencies=record.dependencies,
            not_ok=record.not_ok,
            forgotten_not_ok=record.not_ok,
        )
        self.held.receive_array(array)
        self.keys[record.user, record.idempotency_key] = record.array

    def _completed(self, number: int) -> bool | None:
        # Whether a remembered job has ended, and completed.
        outcome = self.jobs[number].outcome
        return None if outcome is None else outcome in OK

    def target(self, dependency: Dependency, *, index: int = -1) -> Target | None:
        """Returns what a dependency names, of a job or, by its index, of an element; `None` if it is not remembered."""
        other = self.find_array(dependency.job_id)
        if other is None:
            job = self.find_job(dependency.job_id)
            return None if job is None else Target(job.job)
        if dependency.kind != "aftercorr" or index < 0:
            return Target(other.array, array=True)
        number = other.element(index)
        return Target(number) if number in self.jobs else None

    def _job_released(self, record: JobReleased) -> None:
        job = self.jobs[record.job]
        self.held.release(job.job)
        job.move(JobState.RECEIVED)
        job.released_time = record.time
        if self.account is not None:
            self.account.submitted(job.job, record.time, job.request)

    def find_job(self, job_id: str) -> HomeJob | None:
        """Returns the job, or the element of an array, of a user-visible name; `None` if there is none."""
        read = read_job_id(self.settings.name, job_id)
        if read is None:
            return None
        number, index = read
        if index >= 0:
            array = self.held.arrays.get(number)
            number = 0 if array is None else array.element(index)
        job = self.jobs.get(number)
        return job if job is not None and job.job_id == job_id else None

    def job_name(self, number: int) -> str:
        """Returns the name that users know of the job, or array, of a number."""
        return f"{self.settings.name}-{number}"

    def was_given(self, job_id: str) -> bool | None:
        """Returns whether this site has given a name to a job, remembered or not; `None` if it is no name of this site.

        What was there before a journal was lost counts as never given.
        """
        read = read_job_id(self.settings.name, job_id)
        if read is None:
            return None
        number, index = read
        # How many elements a forgotten array had is forgotten, too.
        array = self.held.arrays.get(number) if index >= 0 else None
        return 0 < number < self.next_job and (array is None or array.spec.position(index) >= 0)

    def find_array(self, job_id: str) -> JobArray | None:
        """Returns the array of a user-visible name; `None` if there is none."""
        read = read_job_id(self.settings.name, job_id)
        return None if read is None or read[1] >= 0 else self.held.arrays.get(read[0])

    def _job_offered(self, record: JobOffered) -> None:
        job, book = self.jobs[record.job], self.book(record.partner)
        job.move(JobState.OFFERING)
        self.unplaced.pop(job.job, None)
        job.asked += (record.partner,)
        job.put += 1
        self._note_offer(job, book, record.number, record.time)

    def _note_offer(self, job: HomeJob, book: PartnerBook, number: int, now: float) -> None:
        job.partner = book.name
        job.offer_epoch = self.epoch
        job.offer_number = number
        job.offer_time = now
        book.undecided[number] = job
        book.next_number = number + 1
        book.offered += 1

    def _job_declined(self, record: JobDeclined) -> None:
        job = self.jobs[record.job]
        job.move(JobState.RECEIVED)
        del self.books[job.partner].undecided[job.offer_number]
        job.leave_partner()

    def _job_delegated(self, record: JobDelegated) -> None:
        job = self.jobs[record.job]
        job.move(JobState.DELEGATED)
        if job.unplaced:
            job.reason = ""
        job.accept_time = record.time
        job.confirms = False
        job.overdue = False
        job.attempts = job.put = 0
        book = self.books[job.partner]
        del book.undecided[job.offer_number]
        book.accepted += 1
        book.open_job(job)
        if self.account is not None:
            self.account.started(job.job, record.time)

    def _job_promised(self, record: JobPromised) -> None:
        job = self.jobs[record.job]
        request = job.request
        self.books[job.partner].trust.promise(
            job.offer_number, job.accept_time, request.requested_time, request.processors
        )

    def _job_kept(self, record: JobKept) -> None:
        job = self.jobs[record.job]
        job.move(JobState.SUBMITTING)
        if self.unplaced.pop(job.job, None) is not None:
            job.reason = ""
        self._comes(job)
        if job.sent_home:
            self._takes_its_place(job, record.time)
        else:
            self._goes_behind(job, record.time)
        job.kept_time = record.time
        job.put = 0

    def _job_unplaced(self, record: JobUnplaced) -> None:
        job = self.jobs[record.job]
        job.asked, job.put = (), 0
        job.unplaced += 1
        job.unplaced_time = record.time
        self.unplaced.pop(job.job, None)  # it goes behind the others
        self.unplaced[job.job] = job
        job.reason = record.reason
        job.revision += 1

    def _job_reoffered(self, record: JobReoffered) -> None:
        job, book = self.jobs[record.job], self.book(record.partner)
        # After a restart nobody else has said that the batch system has it.
        self.confirm(job)
        job.move(JobState.REOFFERING)
        self._note_offer(job, book, record.number, record.time)
        self.rounds.ask(job.job, book.name)

    def _job_reoffer_ended(self, record: JobReofferEnded) -> None:
        job, book = self.jobs[record.job], self.books[record.partner]
        job.move(JobState.QUEUED)
        if record.settled:
            del book.undecided[record.number]
            self.rounds.decline(self.settings.reoffer, job, record.time)
        else:
            book.abandoned[record.number] = 0
            book.abandoned_epochs[record.number] = job.offer_epoch
            self.rounds.give_up(job.job, book.name)
        job.leave_partner()

    def _rerun_allowed(self, record: RerunAllowed) -> None:
        self.jobs[record.job].rerun = True

    def _round_held(self, record: RoundHeld) -> None:
        self.rounds.held(record, self.at_lrms.values(), self.settings.reoffer)

    def _job_leaving(self, record: JobLeaving) -> None:
        job = self.job(record.job)
        job.leaving = True
        if isinstance(job, HomeJob):
            job.move(JobState.LEAVING)
            if job.partner not in job.asked:
                job.asked += (job.partner,)

    def _job_stays(self, record: JobStays) -> None:
        self.job(record.job).leaving = False

    def _job_left(self, record: JobLeft) -> None:
        job = self.jobs[record.job]
        self.confirm(job)
        self._leaves_lrms(job.lrms_key, record.time)
        job.lrms_key = next_lrms_key(job.lrms_key)
        job.lost, job.leaving, job.begun = 0, False, False
        job.requeued_time = math.nan
        if job.state is JobState.LEAVING:
            job.move(JobState.RESOLVING)
            job.confirms = True
            self.rounds.leave(job.job)
        else:
            job.move(JobState.RECEIVED)

    def _job_requeued(self, record: JobRequeued) -> None:
        job = self.job(record.job)
        job.move(JobState.QUEUED)
        job.start_time = math.nan
        job.paused, job.requeued_time = None, record.time
        if self.account is not None and isinstance(job, HomeJob):
            self.account.waits_again(job.job)
        self._goes_behind(job, record.time)
        job.reason = record.reason

    def _job_lost(self, record: JobLost) -> None:
        job = self.job(record.job)
        # After a restart it is in the state before: nobody had confirmed it.
        if job.state is not JobState.SUBMITTING:
            job.move(JobState.SUBMITTING)
            self._comes(job)
        self.unseen.pop(job.lrms_key, None)
        job.lost += 1
        job.kept_time = record.time
        job.reason = record.reason

    def _job_exited(self, record: JobExited) -> None:
        self.job(record.job).exit = record.exit

    def _goes_behind(self, job: HomeJob | GuestJob, time: float) -> None:
        # Behind all that wait, or all that run.
        self.at_lrms.pop(job.lrms_key, None)
        self.at_lrms[job.lrms_key] = job
        self.lrms_moment = max(self.lrms_moment, time)

    def _takes_its_place(self, job: HomeJob, time: float) -> None:
        # Before all that wait and came later: whoever has been sent home stands where it stood.
        self._goes_behind(job, time)
        mine = _in_order(job)
        for other in list(self.at_lrms.values()):
            if self._waits(other) and _in_order(other) > mine:
                self._goes_behind(other, time)

    def _waits(self, job: HomeJob | GuestJob) -> bool:
        # After a restart nobody has said yet whether what was handed over waits. A guest for which processors were idle has
        # started; what has a reservation is in no queue.
        at_once = job.preemptible and self.settings.sends_guests_home
        return (
            job.state is not JobState.RUNNING and not at_once and job.lrms_key not in self.reserved
        )

    def _leaves_lrms(self, key: str, time: float) -> None:
        self.unseen.pop(key, None)
        if self.at_lrms.pop(key, None) is not None and key not in self.reserved:
            self.lrms_moment = max(self.lrms_moment, time)

    def _job_started(self, record: JobStarted) -> None:
        job = self.job(record.job)
        self.confirm(job)
        job.move(JobState.RUNNING)
        job.begun = True
        job.start_time = record.start_time
        job.paused = None
        if self.account is not None and isinstance(job, HomeJob):
            self.account.started(job.job, record.start_time)
        self._goes_behind(job, record.start_time)

    def _job_ended(self, record: JobEnded) -> None:
        job = self.job(record.job)
        self.confirm(job)
        self.unplaced.pop(record.job, None)  # type: ignore[arg-type]  # partners' are never in it
        self.fetching.pop(record.job, None)  # type: ignore[arg-type]  # likewise
        job.move(JobState.ENDED)
        job.end_time, job.run_time = record.end_time, record.run_time
        job.outcome = record.outcome
        job.reason = record.reason
        if record.run_time > 0 and math.isnan(job.start_time):
            # The run time is the batch system's, the moments are the site's: they may differ by a little.
            job.start_time = max(job.came, record.end_time - record.run_time)
        if isinstance(job, HomeJob):
            self._home_job_ended(job, record)
        else:
            self._guest_ended(job, record)
            if self.account is not None:
                self.account.guest_ended(job)
        if self.on_usage is not None:
            self.on_usage(usage_of(job, self.settings.name, record.time))

    def _home_job_ended(self, job: HomeJob, record: JobEnded) -> None:
        job.question = 0
        if self.account is not None:
            self.account.ended(job)
        job.state_there = None
        # Of the whole job, also where parts of it ran elsewhere before.
        work = (record.run_time + job.restored_time) * job.request.processors
        self.own_work += work
        self.own_requested += work * job.request.requested_time
        if job.partner:
            self._delegated_job_ended(job, record)
        else:
            self._leaves_lrms(job.lrms_key, record.end_time)
        self.jobs_open -= 1
        left = self.open_by_user[job.user] - 1
        if left:
            self.open_by_user[job.user] = left
        else:
            del self.open_by_user[job.user]
        self.ended.append(job.job)
        self.held.end(
            job.job,
            job.named,
            array=self.held.arrays[job.array] if job.array else None,
            outcome=record.outcome,
        )
        if len(self.ended) > self.settings.limits.jobs_kept:
            self._forget(self.jobs.pop(self.ended.popleft()), record.time)

    def _forget(self, job: HomeJob, moment: float) -> None:
        if job.array:
            assert job.outcome is not None
            if not self.held.forget(self.held.arrays[job.array], job.outcome):
                return
        number = self.keys.pop((job.user, job.idempotency_key))
        self.forgotten_keys.add(job.user, job.idempotency_key, number, moment)

    def _forgotten_keys(self, record: ForgottenKeysTally) -> None:
        self.forgotten_keys.restore(record.rows)

    def _delegated_job_ended(self, job: HomeJob, record: JobEnded) -> None:
        book = self.books[job.partner]
        if job.offer_number in book.open:
            book.close_job(job)
        else:
            # Its end has overtaken the answer to its offer.
            del book.undecided[job.offer_number]
            book.accepted += 1
        book.ended += 1
        book.believe_report()
        work = record.run_time * job.request.processors
        book.given += work
        if record.run_time > 0:
            used = Used.by(job.request, record.run_time)
            self.usage.give(book.name, job.user, record.end_time, used)
        book.trust.end(job.offer_number, record.end_time, record.run_time, record.outcome)
        book.count_response(work, response_time(job.eligible_time, record.end_time))

    def _job_cancel_requested(self, record: JobCancelRequested) -> None:
        job = self.job(record.job)
        job.cancel_requested = True
        if isinstance(job, HomeJob):
            job.revision += 1

    def _job_abandoned(self, record: JobAbandoned) -> None:
        job = self.jobs[record.job]
        book = self.books[job.partner]
        job.move(JobState.RECEIVED)
        if job.offer_number in book.open:
            self._lose(job, book, record.time)
            book.trust.lose(job.offer_number)
        book.abandoned[job.offer_number] = 0
        book.abandoned_epochs[job.offer_number] = job.offer_epoch
        job.leave_partner()
        if self.account is not None:
            self.account.waits_again(job.job)

    @staticmethod
    def _lose(job: HomeJob, book: PartnerBook, now: float) -> None:
        # What was lost there counts with the time that was lost.
        book.close_job(job)
        response = response_time(job.eligible_time, now)
        book.count_response(job.consumption_requested, response)

    def _job_taken_back(self, record: JobTakenBack) -> None:
        job = self.jobs[record.job]
        job.take_back = True
        job.revision += 1

    def _job_sent_home(self, record: JobSentHome) -> None:
        # Others may have room for it by now. The partner itself has just needed that room.
        job = self.jobs[record.job]
        job.note_sent_home(record.partner, record.lost)
        if self.account is not None:
            self.account.sent_home(job, record.lost)
        if record.lost > 0:
            used = Used.by(job.request, record.lost)
            self.usage.give(record.partner, job.user, record.time, used)
        job.asked, job.put, job.remaining = (record.partner,), 0, None
        self._job_returned(record)
        job.state_there = record.state
        if record.state is not None:
            self.fetching[job.job] = job
            job.reason = f"what it has written at {record.partner} is on its way home"

    def _state_told(self, record: StateCame | StateMissed) -> None:
        job = self.jobs[record.job]
        job.state_there = None
        del self.fetching[job.job]
        job.revision += 1
        if isinstance(record, StateMissed):
            job.note_not_kept(record.partner, record.reason)
            job.reason = f"it runs from {'the state before' if job.restored else 'its start'}: {record.reason}"
            return
        job.note_kept(record.partner, record.kept)
        job.restored, job.restored_time = record.restored, job.restored_time + record.kept
        job.reason = ""
        # So much of it was done there for this site's users.
        self.books[record.partner].given += record.kept * job.request.processors

    def _responded(self, record: JobSentHome) -> bool:
        return self.account is None if record.responded is None else record.responded

    def _job_returned(self, record: JobReturned | JobSentHome) -> None:
        job = self.jobs[record.job]
        book = self.books[job.partner]
        job.move(JobState.RECEIVED)
        if job.offer_number in book.open:
            if type(record) is not JobSentHome or self._responded(record):
                self._lose(job, book, record.time)
            else:
                # Its work is owed for (DebtNoted); the partner's response times are those of jobs that ended there.
                book.close_job(job)
            book.trust.drop(job.offer_number)
        else:
            # It was ended before the answer to its offer came.
            del book.undecided[job.offer_number]
            book.accepted += 1
        book.ended += 1
        job.leave_partner()
        if self.account is not None:
            self.account.waits_again(job.job)

    def _job_acted_on(self, record: JobResubmitted | JobWrittenOff) -> None:
        self.jobs[record.job].revision += 1

    def _abandoned_settled(self, record: AbandonedSettled) -> None:
        book = self.books[record.partner]
        del book.abandoned[record.number]
        del book.abandoned_epochs[record.number]
        book.undecided.pop(record.number, None)

    # --- partners ------------------------------------------------------------------------------

    def _epoch_begun(self, record: EpochBegun) -> None:
        self.epoch = record.epoch

    def _partner_faulted(self, record: PartnerFaulted) -> None:
        self.book(record.partner).faults += 1

    def _report_disbelieved(self, record: ReportDisbelieved) -> None:
        self.book(record.partner).doubt_report(record.reason)

    def _promises_reviewed(self, record: PromisesReviewed) -> None:
        self.book(record.partner).trust.look(
            record.closed, record.overdue, record.credit, record.breaches, record.suspended_until
        )

    def _partner_pardoned(self, record: PartnerPardoned) -> None:
        self.book(record.partner).trust.pardon()

    # --- guest jobs ----------------------------------------------------------------------------

    def _guest_accepted(self, record: GuestAccepted) -> None:
        partner, offer = record.job.partner, record.job.offer
        book = self.book(partner)
        book.see(offer)
        book.settle(record.settled_below)
        guest = GuestJob(
            partner=partner,
            offer=offer,
            lrms_key=lrms_key(partner, offer.epoch, offer.number),
            request=record.request,
            payload=record.payload,
            accept_time=record.time,
            here=record.here,
            kept_time=record.time,
        )
        book.guests[offer] = guest
        book.committed.add(guest.asked_here)
        book.guest_offered += 1
        book.guest_accepted += 1
        book.taken += record.request.requested_time * record.request.processors
        self._goes_behind(guest, record.time)
        self._comes(guest)

    def _guest_reserved(self, record: GuestReserved) -> None:
        guest = self.books[record.job.partner].guests[record.job.offer]
        guest.reserved = True
        self.reserved[guest.lrms_key] = guest

    def _guest_confirmed(self, record: GuestConfirmed) -> None:
        guest = self.books[record.job.partner].guests[record.job.offer]
        guest.reserved = False
        guest.kept_time = record.time
        del self.reserved[guest.lrms_key]
        self._goes_behind(guest, record.time)

    def _guest_preemptible(self, record: GuestPreemptible) -> None:
        self.books[record.job.partner].guests[record.job.offer].preemptible = True

    def _guest_kept(self, record: GuestKept) -> None:
        self.books[record.job.partner].guests[record.job.offer].kept = record.kept

    def _guest_protected(self, record: GuestProtected) -> None:
        self.books[record.job.partner].guests[record.job.offer].protected = True

    def _guest_charged(self, record: GuestCharged) -> None:
        self.books[record.job.partner].guests[record.job.offer].charge = record.charge

    def _guest_named(self, record: GuestNamed) -> None:
        self.books[record.job.partner].guests[record.job.offer].pseudonym = record.pseudonym

    def _guest_declined(self, record: GuestDeclined) -> None:
        book = self.book(record.job.partner)
        book.see(record.job.offer)
        book.settle(record.settled_below)
        book.answered[record.job.offer.number] = GuestState.DECLINED
        book.guest_offered += 1

    def _guest_withdrawn(self, record: GuestWithdrawn) -> None:
        book = self.book(record.job.partner)
        book.see(record.job.offer)
        book.answered[record.job.offer.number] = GuestState.WITHDRAWN

    def _guest_ended(self, guest: GuestJob, record: JobEnded) -> None:
        self._leaves_lrms(guest.lrms_key, record.end_time)
        self.reserved.pop(guest.lrms_key, None)
        guest.reserved = False
        request = guest.request
        self.books[guest.partner].committed.add(guest.asked_here, -1)
        if record.run_time > 0:
            used = Used.by(guest.asked_here, record.run_time)
            self.usage.take(guest.partner, guest.pseudonym, record.end_time, used)
        # What was ended for another job is done again elsewhere: its home site has got what was kept of it.
        kept = guest.kept if record.outcome is Outcome.PREEMPTED else record.run_time
        self.books[guest.partner].taken += (
            kept * request.processors - request.requested_time * request.processors
        )

    def _guest_acknowledged(self, record: GuestAcknowledged) -> None:
        book, offer = self.books[record.job.partner], record.job.offer
        guest = book.guests.pop(offer)
        if not book.is_stale(offer):
            book.answered[offer.number] = guest

    # --- sums ----------------------------------------------------------------------------------

    def _site_tally(self, record: SiteTally) -> None:
        self.next_job = record.next_job

    def _partner_tally(self, record: PartnerTally | PartnerStanding) -> None:
        book = self.book(record.partner)
        for name in record.__struct_fields__:
            if name not in {"time", "partner"}:
                setattr(book, name, getattr(record, name))

    def _account_looked(self, record: AccountLooked) -> None:
        if self.account is not None:
            here = [
                job
                for job in self.jobs.values()
                if job.state not in {JobState.HELD, JobState.ENDED}
            ]
            if self.account.look(record.time, sorted(here, key=_in_order)):
                # Guests are hidden from the queue since then, or seen again.
                self.lrms_moment = max(self.lrms_moment, record.time)
            self.account.remember(self.running_guests())

    def _account_tally(self, record: AccountTally) -> None:
        if self.account is not None:
            self.account.resume(record.account)

    def _debt_noted(self, record: DebtNoted) -> None:
        self.book(record.partner).trust.owe(
            record.debt, record.credit, record.breaches, record.suspended_until
        )

    def _usage_tally(self, record: UsageTally) -> None:
        self.usage.restore(record.rows)

    def _site_books(self, record: SiteBooks) -> None:
        self.own_work, self.own_requested = record.own_work, record.own_requested

    def _partner_books(self, record: PartnerBooks) -> None:
        book = self.book(record.partner)
        book.taken, book.given = record.taken, record.given
        trust = book.trust
        trust.credit, trust.breaches = record.credit, record.breaches
        trust.suspended_until = record.suspended_until
        trust.debt = record.debt
        trust.restore(record.promised, record.work)


def _in_order(job: HomeJob | GuestJob) -> tuple[float, int]:
    # In which jobs wait; a partner's behind a local user's that came at the same moment.
    return job.came, job.job if isinstance(job, HomeJob) else sys.maxsize


def _of_one_job(key: str, other: str) -> bool:
    # Each time that the batch system lets a job go, its next name there has one part more.
    return key.split("/")[:KEY_PARTS] == other.split("/")[:KEY_PARTS]
