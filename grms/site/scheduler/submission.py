"""The home half of a site: local users' jobs, from submission to end.

A job is journaled before its user is told that it was accepted. `offers` has what happens in between.

Held jobs are released when nothing is waited for any more, and ended when that cannot be. Both follow from what is in the
journal, and are looked for after every event: whatever ends a job, here, at a partner, by its user or an operator, its
dependents follow in the same turn, and so do theirs. A daemon that dies in between finds them after its restart.
"""

from collections.abc import Iterable
from typing import Final

from grms.lrms import base
from grms.site.model.commands import AnswerReport, Refusal, Refuse, ReplyJob, ReplyPreview, TellLoad
from grms.site.model.events import (
    Cancel,
    Event,
    LoadedEvent,
    LrmsRefused,
    Preview,
    ProgressTold,
    ReportReceived,
    Submit,
)
from grms.site.model.forgotten_keys import FORGOTTEN_KEY
from grms.site.model.held_jobs import JobArray
from grms.site.model.jobs import HomeJob, Load
from grms.site.model.lifecycle import PROVISIONAL, JobState, Outcome
from grms.site.model.records import ArrayReceived, JobCancelRequested, JobReceived, JobReleased
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.local_jobs import Owner, accept, end_what_waits, look_up
from grms.site.scheduler.outgoing_offers import AWAY, OfferHandler
from grms.site.scheduler.rebalance import RebalanceHandler
from grms.site.scheduler.transaction import Transaction
from grms.util.dependencies import ALL_MAX, Dependency
from grms.util.job_arrays import ArraySpec

DRAINING: Final = "site.draining"
"""Field of a refusal: the site takes no job now; one with a key that it knows is not refused."""

RELEASED_AT_ONCE: Final = 1000
"""Most jobs released in one turn; the others follow behind the events that have come meanwhile, by the load of then."""

_HERE = frozenset({JobState.SUBMITTING, JobState.QUEUED, JobState.RUNNING})
"""The batch system has the job, or is to get it."""


class SubmissionHandler(Owner[HomeJob]):
    """Handles users' requests, and partners' reports on their jobs."""

    def __init__(
        self, memory: StateTables, offers: OfferHandler, reoffers: RebalanceHandler
    ) -> None:
        self.memory = memory
        self.offers = offers
        self.reoffers = reoffers

    # --- users ---------------------------------------------------------------------------------

    def submit(self, event: Submit, transaction: Transaction) -> None:
        """Accepts a user's job, and decides where it runs."""
        memory = self.memory
        known = memory.keys.get((event.user, event.idempotency_key))
        if known is not None:
            transaction.do(self._known(known, event))
            return
        refusal = self._forgotten(event) or self._refusal(event)
        if refusal is not None:
            transaction.do(refusal)
            return
        number = memory.next_job
        if event.elements is not None:
            self._receive_array(event, number, event.elements, transaction)
            return
        transaction.note(_received(event, transaction.now, number, event.payload))
        job = memory.jobs[number]
        transaction.do(ReplyJob(event.id, job.job_id))
        self._begin(job, event.load, transaction)

    def preview(self, event: Preview, transaction: Transaction) -> None:
        """Says what would become of a job, by the decision that would be made now; of an array, of the first element."""
        memory = self.memory
        known = memory.keys.get((event.user, event.idempotency_key))
        if known is not None:
            answer = self._known(known, event)
            if isinstance(answer, ReplyJob):
                transaction.do(ReplyPreview(event.id, known=answer.job_id))
            else:
                transaction.do(answer)
            return
        refusal = self._forgotten(event) or self._refusal(event)
        if refusal is not None:
            transaction.do(refusal)
            return
        index = event.elements.first if event.elements is not None else -1
        record = _received(event, transaction.now, memory.next_job, event.payload)
        held = memory.held_first(record, index)
        job = memory.made(record)
        transaction.do(self.offers.preview(job, event.load, transaction, held))

    def _receive_array(
        self, event: Submit, array: int, elements: ArraySpec, transaction: Transaction
    ) -> None:
        assert event.part is not None
        memory = self.memory
        transaction.note(
            ArrayReceived(
                transaction.now,
                array,
                str(elements),
                event.user,
                event.idempotency_key,
                event.name,
                event.request,
                event.payload,
                event.dependencies,
            )
        )
        array_id = memory.held.arrays[array].array_id
        for number, index in enumerate(elements, array):
            part = event.part(array_id, index)
            transaction.note(
                _received(event, transaction.now, number, part, array=array, index=index)
            )
        transaction.do(ReplyJob(event.id, array_id))
        transaction.publish_all(range(array, array + len(elements)))

    def _begin(self, job: HomeJob, load: Load | None, transaction: Transaction) -> None:
        if job.state is JobState.HELD:
            transaction.publish(job)
        else:
            self.offers.decide(job, load, transaction)

    def _known(self, number: int, event: Submit) -> ReplyJob | Refuse:
        # The answer to a submission with the key of another, or of the same.
        one = self.memory.held.arrays.get(number) or self.memory.jobs[number]
        name, elements = (
            (one.array_id, one.spec) if isinstance(one, JobArray) else (one.job_id, None)
        )
        # Which sites may run an array is a matter of its elements; the first may be forgotten.
        job = self.memory.jobs.get(number)
        sites = event.sites if job is None else job.sites
        if (one.request, one.payload, one.name, one.dependencies, elements, sites) == (
            event.request,
            event.payload,
            event.name,
            event.dependencies,
            event.elements,
            event.sites,
        ):
            return ReplyJob(event.id, name)
        return Refuse(
            event.id,
            Refusal.PRECONDITION,
            f"the idempotency key belongs to another submission, {name}",
            "idempotency_key",
        )

    def _forgotten(self, event: Submit) -> Refuse | None:
        number = self.memory.forgotten_keys.number(event.user, event.idempotency_key)
        if not number:
            return None
        name = self.memory.job_name(number)
        return Refuse(
            event.id,
            Refusal.PRECONDITION,
            f"the idempotency key is that of {name}, which ended so long ago that it is forgotten; it is not run again",
            FORGOTTEN_KEY,
        )

    def _misdepends(self, event: Submit) -> str:
        # Why the dependencies cannot be; empty if they can.
        memory = self.memory
        elements = 1 if event.elements is None else len(event.elements)
        if elements * len(event.dependencies) > ALL_MAX:
            return (
                f"an array of {elements} elements that wait for {len(event.dependencies)} jobs each; {ALL_MAX} in all "
                f"are possible: let one job wait for these, and the array for that"
            )
        for dependency in event.dependencies:
            if dependency.kind == "singleton":
                if not event.name:
                    return "singleton: jobs of the same name are meant, and this one has no name"
                continue
            other = memory.find_array(dependency.job_id)
            one = other or memory.find_job(dependency.job_id)
            if one is None or one.user != event.user:
                return (
                    f"{dependency}: this site has no job {dependency.job_id!r} of {event.user}, or it ended "
                    f"so long ago that it has forgotten how"
                )
            if dependency.kind == "aftercorr" and (wrong := self._mispairs(event, other)):
                return f"{dependency}: {wrong}"
        return ""

    def _mispairs(self, event: Submit, other: JobArray | None) -> str:
        # Why the elements of an array cannot each follow one of another; empty if they can.
        if other is None or event.elements is None:
            return "both have to be arrays; of other jobs say afterok"
        missing = next((i for i in event.elements if other.spec.position(i) < 0), None)
        if missing is not None:
            return f"{other.array_id} has no element {missing}"
        jobs = self.memory.jobs
        gone = next((i for i in event.elements if other.element(i) not in jobs), None)
        return "" if gone is None else f"how element {gone} ended is forgotten"

    def _refusal(self, event: Submit) -> Refuse | None:
        limits = self.memory.settings.limits
        for field, text, least in (
            ("idempotency_key", event.idempotency_key, 1),
            ("user", event.user, 1),
            ("name", event.name, 0),
        ):
            if not least <= len(text) <= limits.text_characters:
                reason = (
                    f"{field} has {len(text)} characters; between {least} and "
                    f"{limits.text_characters} are possible"
                )
                # The user is who calls, and no field of the request.
                wrong = "" if field == "user" else field
                return Refuse(event.id, Refusal.INVALID, reason, wrong)
        wrong = self._misdepends(event)
        if wrong:
            return Refuse(event.id, Refusal.INVALID, wrong, "dependencies")
        return self._too_large(event) or self._no_room(event)

    def _too_large(self, event: Submit) -> Refuse | None:
        settings, limits = self.memory.settings, self.memory.settings.limits
        if strange := [name for name in event.sites if not self.offers.is_site(name)]:
            reason = (
                f"{', '.join(map(repr, strange))}: no site of that name; jobs are exchanged with "
            )
            others = ", ".join(self.offers.partners()) or "no other"
            return Refuse(event.id, Refusal.INVALID, f"{reason}{others}", "sites")
        unfit = self.offers.unfit(event.request, event.unfit, event.load, event.sites)
        if unfit and (event.here or not self.offers.any_could(event.request, event.sites)):
            others = (
                "" if event.here else ", and no partner of this site is known that could run it"
            )
            reason = f"{unfit}{others}"
            wide = event.request.processors > settings.processors
            wrong = "request.processors" if wide else "request.needs"
            if event.sites:
                wrong = "sites"
            return Refuse(event.id, Refusal.INVALID, reason, wrong)
        if len(event.payload) > limits.payload_bytes:
            reason = (
                f"what is to run has {len(event.payload)} bytes; at most "
                f"{limits.payload_bytes} are possible"
            )
            return Refuse(event.id, Refusal.INVALID, reason, "request")
        return None

    def _no_room(self, event: Submit) -> Refuse | None:
        limits = self.memory.settings.limits
        if self.memory.draining:
            return Refuse(
                event.id, Refusal.UNAVAILABLE, "this site is draining; try later", DRAINING
            )
        for whose, count, most in (
            ("this site", self.memory.jobs_open, limits.jobs_open),
            (
                event.user,
                self.memory.open_by_user.get(event.user, 0),
                limits.jobs_open_per_user,
            ),
        ):
            wanted = 1 if event.elements is None else len(event.elements)
            if wanted > most:
                reason = f"an array of {wanted} elements; {whose} may have {most} open jobs"
                return Refuse(event.id, Refusal.INVALID, reason, "array")
            if count + wanted > most:
                reason = f"{whose} has {count} open jobs, and may have {most}; try later"
                return Refuse(event.id, Refusal.EXHAUSTED, reason)
        return None

    def cancel(self, event: Cancel, transaction: Transaction) -> None:
        """Ends a job where it is, as far as the site can."""
        jobs = self._selected(event.job_id)
        if jobs is None:
            reason = f"there is no job {event.job_id!r}"
            transaction.do(Refuse(event.id, Refusal.NOT_FOUND, reason, "job_id"))
            return
        if event.user is not None and any(event.user != job.user for job in jobs):
            reason = f"job {event.job_id} is another user's"
            transaction.do(Refuse(event.id, Refusal.FORBIDDEN, reason))
            return
        # All of them are asked to end before any does: none of an array begins in the place of another.
        jobs = [job for job in jobs if job.state is not JobState.ENDED and not job.cancel_requested]
        for job in jobs:
            transaction.note(JobCancelRequested(transaction.now, job.job))
        for job in jobs:
            self.offers.pursue_cancel(job, event.load, transaction)
            transaction.publish(job)
        transaction.do(ReplyJob(event.id, event.job_id.partition("_[")[0]))

    def _selected(self, job_id: str) -> list[HomeJob] | None:
        # The jobs that a name means: one, an array's, or some of these; None if there is no such job or array.
        memory = self.memory
        array_id, some, indices = job_id.partition("_[")
        array = memory.find_array(array_id)
        if array is None:
            job = memory.find_job(job_id)
            return None if job is None else [job]
        numbers: Iterable[int] = array.numbers
        if some:
            try:
                spec = ArraySpec.parse(indices.removesuffix("]"))
            except ValueError:
                return None
            numbers = (array.element(index) for index in spec)
        found = [memory.jobs[number] for number in numbers if number in memory.jobs]
        return found or None

    def job(self, job_id: str) -> HomeJob | None:
        """Returns the job of that name, or `None`."""
        return self.memory.find_job(job_id)

    # --- partners ------------------------------------------------------------------------------

    def report_received(self, event: ReportReceived, transaction: Transaction) -> None:
        """Records ended jobs; ends of unknown jobs are ignored."""
        memory = self.memory
        most = memory.settings.limits.report_completions
        book = memory.books.get(event.partner)
        if book is None:
            transaction.do(Refuse(event.id, Refusal.FORBIDDEN, f"{event.partner} is no partner"))
            return
        if len(event.completions) > most:
            reason = f"{len(event.completions)} completions; at most {most} are possible"
            transaction.do(Refuse(event.id, Refusal.INVALID, reason, "completions"))
            return
        for completion in event.completions:
            job = book.away(completion.offer)
            # A place that was not confirmed: what became of it the confirmation will tell.
            if job is not None and job.state not in PROVISIONAL:
                self.offers.completed(job, completion, event.load, transaction)
        transaction.do(AnswerReport(event.id))

    def progress_told(self, event: ProgressTold, transaction: Transaction) -> None:
        """Takes what a partner says of where delegated jobs stand, and tells watchers what has changed."""
        book = self.memory.books.get(event.partner)
        if book is None:
            return
        changed = []
        for progress in event.jobs:
            job = book.away(progress.offer)
            if job is None or job.state not in AWAY:
                continue
            before, job.progress = job.progress, progress
            job.progress_time = transaction.now
            if before is None or before.phase is not progress.phase:
                job.revision += 1
                changed.append(job.job)
        transaction.publish_all(changed)

    # --- the batch system ----------------------------------------------------------------------

    def changed(self, job: HomeJob, transaction: Transaction) -> None:
        """Publishes a job's new state."""
        transaction.publish(job)

    def stays(self, job: HomeJob, transaction: Transaction) -> None:
        """Withdraws a job's offer, if it has one."""
        self.reoffers.stays(job, transaction)

    def let_go(self, job: HomeJob, _end: base.LrmsEnd, transaction: Transaction) -> None:
        """Has the partner start a job that the batch system has released."""
        self.reoffers.let_go(job, transaction)

    def refused(self, job: HomeJob, news: LrmsRefused, transaction: Transaction) -> None:
        """Ends a job that the batch system refuses, unless it is submitted again later."""
        if news.passing and not job.cancel_requested:
            self._hinder(job, f"the batch system does not take it now: {news.reason}", transaction)
            return
        outcome, reason = Outcome.FAILED, f"the batch system refused it: {news.reason}"
        if job.begun:
            outcome = Outcome.UNKNOWN  # it has begun, whatever is said now
        elif job.cancel_requested:
            outcome, reason = Outcome.CANCELLED, "cancelled before the batch system took it"
        self.stays(job, transaction)
        self.end(job, base.LrmsEnd(outcome, transaction.now, 0.0, reason=reason), transaction)
        if job.begun:
            end_what_waits(job, transaction)

    def hindered(self, job: HomeJob, news: base.Hindered, transaction: Transaction) -> None:
        """Records what a job waits for other than room; rounds may offer it meanwhile, unless it is deferred."""
        job.deferred = news.deferred
        self._hinder(job, news.reason, transaction)

    @staticmethod
    def _hinder(job: HomeJob, reason: str, transaction: Transaction) -> None:
        if job.hindered != reason:
            job.hindered = reason
            transaction.publish(job)

    def end(self, job: HomeJob, end: base.LrmsEnd, transaction: Transaction) -> None:
        """Records the end of a job that ran here, or was to."""
        reason = end.reason
        if end.outcome is Outcome.CANCELLED and not job.cancel_requested:
            reason = f"cancelled in the batch system: {reason}".removesuffix(": ")
        transaction.end(
            job,
            outcome=end.outcome,
            end_time=end.end_time,
            run_time=end.run_time,
            reason=reason,
        )

    # --- after a restart -----------------------------------------------------------------------

    def take_up(self, load: Load | None, transaction: Transaction) -> None:
        """Resumes every job that had not ended."""
        found = self._found_waiting(load, transaction)
        for job in [job for job in self.memory.jobs.values() if job.job not in found]:
            if job.state in _HERE:
                look_up(job, transaction)
            elif job.state is JobState.RECEIVED or (
                job.state is JobState.HELD and job.cancel_requested
            ):
                self.offers.decide(job, load, transaction)
            elif job.state is JobState.OFFERING:
                job.move(JobState.WITHDRAWING if job.to_end else JobState.RESOLVING)
                self.offers.ask(job, transaction)
            elif job.state is JobState.RESOLVING:
                self.offers.ask(job, transaction)
            elif job.state in PROVISIONAL:
                self.reoffers.take_up(job, transaction)
            elif job.state is JobState.DELEGATED:
                self.offers.take_up(job, transaction)
        for book in self.memory.books.values():
            for number in book.abandoned:
                self.offers.withdraw_abandoned(book, number, 0.0, transaction)

    def _found_waiting(self, load: Load | None, transaction: Transaction) -> set[int]:
        # Before anything is decided: the batch system counts them in its load, so they are not on
        # their way to it. Nothing more has to be done about them, and there may be very many.
        waits = None if load is None else load.waits
        if waits is None:
            return set()
        found = [
            job
            for job in self.memory.jobs.values()
            if job.state is JobState.SUBMITTING and not job.cancel_requested and waits(job.lrms_key)
        ]
        for job in found:
            accept(job, transaction)
        numbers = [job.job for job in found]
        transaction.publish_all(numbers)
        return set(numbers)


class HeldJobHandler:
    """Releases held jobs, and ends those whose dependencies cannot be met."""

    def __init__(self, memory: StateTables, offers: OfferHandler) -> None:
        self.memory = memory
        self.offers = offers
        self._asked = False

    def carry_on(self, event: Event, transaction: Transaction) -> None:
        """Continues after an event; called after every one."""
        held, jobs = self.memory.held, self.memory.jobs
        loaded = event if isinstance(event, LoadedEvent) else None
        may_release = RELEASED_AT_ONCE
        if loaded is not None:
            self._asked = False
        while True:
            hopeless = held.next_hopeless()
            if hopeless is not None:
                self._end(*hopeless, transaction)
                continue
            number = held.next_ready()
            if not number or self._offers_are_out():
                return
            if loaded is None or not may_release:
                # Where a job runs is decided by the load, and the batch system's news come without.
                if not self._asked:
                    self._asked = True
                    transaction.do(TellLoad(transaction.cause))
                return
            may_release -= 1
            transaction.note(JobReleased(transaction.now, number))
            transaction.publish(jobs[number])
            self.offers.decide(jobs[number], loaded.load, transaction)

    def _offers_are_out(self) -> bool:
        # A partner cannot be asked about more before it has answered. It does soon, and what came meanwhile would stay at
        # home for no other reason.
        memory = self.memory
        most = memory.settings.limits.offers_undecided
        return any(
            len(book.undecided) >= most
            and book.reachable
            and any(job.state is JobState.OFFERING for job in book.undecided.values())
            for book in memory.books.values()
        )

    def _end(self, number: int, dependency: Dependency, transaction: Transaction) -> None:
        transaction.end(
            self.memory.jobs[number],
            outcome=Outcome.CANCELLED,
            end_time=transaction.now,
            run_time=0.0,
            reason=f"its dependency {dependency} cannot be met{self._because(dependency.job_id)}",
        )

    def _because(self, job_id: str) -> str:
        array = self.memory.find_array(job_id)
        if array is not None:
            return f": of that array {array.not_ok} have not completed"
        job = self.memory.find_job(job_id)
        return "" if job is None or job.outcome is None else f": that job is {job.outcome.value}"


def _received(
    event: Submit, now: float, number: int, payload: bytes, *, array: int = 0, index: int = 0
) -> JobReceived:
    return JobReceived(
        now,
        number,
        event.user,
        event.idempotency_key,
        event.name,
        event.request,
        payload,
        event.unfit,
        event.dependencies,
        array,
        index,
        event.here,
        event.sites,
        event.checkpoint,
    )
