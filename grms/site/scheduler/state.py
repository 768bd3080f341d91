"""The state of a site: events go in, commands come out.

`SiteState.handle(event, now)` is the single entry. It reads no clock, draws no random number, opens nothing;
the owner of sockets, disks and clocks (the daemon, the simulated network of `grms.simulation`, a replay) hands over
events and carries out the commands. The parts:

- `home`: users' requests; `offers`: where their jobs run, and how an unknown outcome is found out;
- `reoffers`: waiting jobs that are offered again, and how they leave the queue;
- `operator`: operators' decisions about stuck jobs;
- `partners`: partners that come and go, or violate the protocol;
- `guests`: partners' questions, and their jobs here;
- `local`: the batch system's news about jobs;
- `reservations`: requests for reservable resources, and changes over time; `pilots`: who runs programs in them;
- `memory`: what survives a restart, changed by journal records alone;
- `lifecycle`: the transition tables; `docs/protocol.md` draws them.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from grms.site.model.commands import Command, ProtectGuests, SendOffer
from grms.site.model.events import (
    AccountDue,
    BookReservation,
    Cancel,
    CircuitBreakerLooked,
    Drain,
    Event,
    LaunchGroup,
    LaunchReservation,
    LoadTold,
    LrmsNews,
    LrmsTold,
    MoveReservation,
    OfferAnswered,
    OfferDisputed,
    OfferFailed,
    OfferReceived,
    Pardon,
    PartnerDown,
    PartnerDuplicated,
    PartnerFaulty,
    PartnerIncompatible,
    PartnerLost,
    PartnerUp,
    PilotConnected,
    PilotDrains,
    PilotEnded,
    PilotLeaves,
    PilotTold,
    PilotWanted,
    PoliciesChanged,
    Preview,
    ProbeAnswered,
    ProbeFailed,
    ProgramCame,
    ProgramsAway,
    ProgressTold,
    ReleaseReservation,
    ReportAnswered,
    ReportFailed,
    ReportReceived,
    ReservationsDue,
    ResolveReceived,
    Restarted,
    Resubmit,
    Resume,
    RoundDue,
    StateFetched,
    StatusAnswered,
    StatusFailed,
    Submit,
    TakeBack,
    TimePassed,
    WithdrawReceived,
    WriteOff,
)
from grms.site.model.jobs import HomeJob, OfferId
from grms.site.model.lifecycle import SHOWN, GuestState, JobState
from grms.site.model.partners import PartnerBook
from grms.site.model.records import AccountLooked, Record
from grms.site.model.settings import SiteSettings
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.guest_jobs import GuestJobHandler
from grms.site.scheduler.local_jobs import LocalJobHandler
from grms.site.scheduler.operator_actions import OperatorActionHandler, why_stuck
from grms.site.scheduler.outgoing_offers import OfferHandler
from grms.site.scheduler.peer_faults import PeerFaultHandler
from grms.site.scheduler.peer_state import PeerStateHandler
from grms.site.scheduler.pilots import PilotHandler
from grms.site.scheduler.rebalance import RebalanceHandler
from grms.site.scheduler.reservations import ReservationHandler
from grms.site.scheduler.submission import HeldJobHandler, SubmissionHandler
from grms.site.scheduler.transaction import Transaction


class SiteState:
    """All that a site knows and decides.

    `records` are the journal's, oldest first, none for a new site; the event `Restarted` then resumes what was open.
    `memory`, if given, is what these records have made already.

    Raises:
        IllegalMove, KeyError: the records contradict each other.
    """

    def __init__(
        self,
        settings: SiteSettings,
        records: Iterable[Record] = (),
        *,
        memory: StateTables | None = None,
    ) -> None:
        self.memory = StateTables(settings) if memory is None else memory
        for record in records:
            self.memory.apply(record)
        faults = PeerFaultHandler(self.memory)
        self._offers = OfferHandler(self.memory, faults)
        self._reoffers = RebalanceHandler(self.memory, self._offers)
        self._home = SubmissionHandler(self.memory, self._offers, self._reoffers)
        self._guests = GuestJobHandler(self.memory)
        self._partners = PeerStateHandler(self.memory, faults, self._offers, self._reoffers)
        self._operator = OperatorActionHandler(self.memory, self._offers)
        self._held = HeldJobHandler(self.memory, self._offers)
        self._reservations = ReservationHandler(self.memory)
        self._pilots = PilotHandler(self.memory)
        self._handlers: dict[type[Event | LrmsNews], Callable[[Any, Transaction], None]] = {
            Restarted: self._restarted,
            **dict.fromkeys((Drain, Resume), self._drain),
            CircuitBreakerLooked: self._circuit_breaker_looked,
            PoliciesChanged: self._policies_changed,
            Submit: self._home.submit,
            Preview: self._home.preview,
            Cancel: self._home.cancel,
            OfferReceived: self._guests.offer_received,
            ResolveReceived: self._guests.resolve_received,
            WithdrawReceived: self._guests.withdraw_received,
            ReportReceived: self._home.report_received,
            OfferAnswered: self._offer_answered,
            OfferFailed: self._offer_failed,
            StatusAnswered: self._offers.status_answered,
            StatusFailed: self._offers.status_failed,
            StateFetched: self._offers.state_fetched,
            ReportAnswered: self._guests.report_answered,
            ReportFailed: self._guests.report_failed,
            ProgramsAway: self._guests.programs_away,
            ProgramCame: self._guests.program_came,
            Pardon: self._partners.pardon,
            PartnerUp: self._partners.up,
            PartnerFaulty: self._partners.faulty,
            PartnerIncompatible: self._partners.incompatible,
            PartnerDuplicated: self._partners.duplicated,
            ProbeAnswered: self._partners.probe_answered,
            ProbeFailed: self._partners.probe_failed,
            OfferDisputed: self._partners.disputed,
            ProgressTold: self._home.progress_told,
            TimePassed: self._time_passed,
            AccountDue: self._account_due,
            LoadTold: lambda *_: None,
            RoundDue: self._round_due,
            TakeBack: self._operator.take_back,
            Resubmit: self._operator.resubmit,
            WriteOff: self._operator.write_off,
            PartnerDown: self._partner_down,
            PartnerLost: self._partners.lost,
            BookReservation: self._reservations.book,
            LaunchReservation: self._reservations.launch,
            LaunchGroup: self._reservations.launch_group,
            MoveReservation: self._reservations.move,
            ReleaseReservation: self._reservations.release,
            ReservationsDue: self._reservations.due,
            PilotWanted: self._pilots.wanted,
            PilotConnected: self._pilots.connected,
            PilotTold: self._pilots.told,
            PilotDrains: self._pilots.drains,
            PilotLeaves: self._pilots.leaves,
            PilotEnded: self._pilots.ended,
            **LocalJobHandler(self.memory, self._home, self._guests).handlers(),
        }

    @classmethod
    def recover(cls, settings: SiteSettings, records: Iterable[Record]) -> "SiteState":
        """Returns the state that a journal's records make."""
        return cls(settings, records)

    def handle(self, event: Event, now: float) -> list[Command]:
        """Takes an event and returns the commands, in order; one `Append` with all records, if any, comes first.

        `now` is on the site's clock, seconds; never less than in the previous call.

        Raises:
            IllegalMove: a bug in this program; the state must not be used any more.
        """
        transaction = Transaction(self.memory, event.id, now)
        what = event.news if isinstance(event, LrmsTold) else event
        self._handlers[type(what)](what, transaction)
        self._held.carry_on(event, transaction)
        if self._reoffers.queue is not None:
            self._reoffers.carry_on(event, transaction)
        return transaction.commands()

    # --- what the shell may look at ------------------------------------------------------------

    @property
    def settings(self) -> SiteSettings:
        """The settings, with the policies that are in force."""
        return self.memory.settings

    @property
    def draining(self) -> bool:
        """Whether no more work is accepted."""
        return self.memory.draining

    @property
    def guarded(self) -> bool:
        """Whether the site's circuit breaker stops exchange, or has not looked yet."""
        return self.memory.guarded

    @property
    def partners(self) -> dict[str, PartnerBook]:
        """What is known of each partner, by name; read-only."""
        return self.memory.books

    def job(self, job_id: str) -> HomeJob | None:
        """Returns a local user's job, read-only; `None` if it is not remembered."""
        return self._home.job(job_id)

    def undecided_offer(self, partner: str, offer: OfferId) -> SendOffer | None:
        """Returns an offer whose outcome is asked for, to be repeated under its number.

        A partner that knows the number repeats its answer; one that does not decides. For networks that lose nothing
        (`grms.site.peers.peers`). `None` if it is decided, or was given up.
        """
        return self._offers.undecided_offer(partner, offer)

    def why_stuck(self, job: HomeJob, now: float) -> str:
        """Returns why a local user's job is stuck, for an operator; empty if it is not.

        `now` is on the site's clock, seconds.
        """
        return why_stuck(job, self.memory, now)

    def jobs(self) -> Iterable[HomeJob]:
        """Returns local users' jobs in order of submission."""
        return self.memory.jobs.values()

    def job_counts(self) -> dict[JobState, int]:
        """Returns the number of local users' jobs in each state."""
        counts = dict.fromkeys(SHOWN, 0)
        for job in self.memory.jobs.values():
            counts[job.shown] += 1
        return counts

    def guest_counts(self) -> dict[GuestState, int]:
        """Returns the number of remembered guest jobs in each state."""
        counts = dict.fromkeys(GuestState, 0)
        for book in self.memory.books.values():
            for guest in book.guests.values():
                counts[guest.shown] += 1
            for answer in book.answered.values():
                counts[answer if isinstance(answer, GuestState) else GuestState.ACKNOWLEDGED] += 1
        return counts

    # --- answers to offers ---------------------------------------------------------------------

    def _offer_answered(self, event: OfferAnswered, transaction: Transaction) -> None:
        job = self._reoffered(event)
        if job is None:
            self._offers.offer_answered(event, transaction)
        else:
            self._reoffers.offer_answered(job, event, transaction)

    def _offer_failed(self, event: OfferFailed, transaction: Transaction) -> None:
        job = self._reoffered(event)
        if job is None:
            self._offers.offer_failed(event, transaction)
        else:
            self._reoffers.offer_failed(job, event, transaction)

    def _reoffered(self, event: OfferAnswered | OfferFailed) -> HomeJob | None:
        # The job for which a round has asked for a place; `None` if it is any other offer, whose answer decides.
        book = self.memory.books.get(event.partner)
        job = None if book is None else book.away(event.offer)
        return job if job is not None and job.state is JobState.REOFFERING else None

    # --- the daemon itself ---------------------------------------------------------------------

    def _restarted(self, event: Restarted, transaction: Transaction) -> None:
        if self.memory.settings.sends_guests_home:
            self._protect(transaction)  # it may have died before it could
        self._guests.take_up(event.load, transaction)
        self._home.take_up(event.load, transaction)
        self._reservations.settle(transaction)
        self._pilots.take_up(transaction)

    def _round_due(self, event: RoundDue, transaction: Transaction) -> None:
        self._account_due(event, transaction)  # of the same moment, which comes first
        self._reoffers.due(event, transaction)

    def _time_passed(self, event: TimePassed, transaction: Transaction) -> None:
        self._account_due(event, transaction)
        self._guests.time_passed(transaction)
        self._offers.time_passed(event.load, transaction)

    def _account_due(self, _event: Event, transaction: Transaction) -> None:
        account = self.memory.account
        due = None if account is None else account.due(transaction.now)
        if account is None or due is None:
            return
        before = account.in_credit
        transaction.note(AccountLooked(due))
        if account.in_credit is not before and self.memory.settings.sends_guests_home:
            self._protect(transaction)

    def _protect(self, transaction: Transaction) -> None:
        account = self.memory.account
        on = account is not None and self.memory.settings.sends_guests_home and account.in_credit
        transaction.do(ProtectGuests(transaction.cause, on))

    def _drain(self, event: Drain | Resume, _transaction: Transaction) -> None:
        self.memory.draining = isinstance(event, Drain)

    def _circuit_breaker_looked(
        self, event: CircuitBreakerLooked, transaction: Transaction
    ) -> None:
        memory, circuit_breaker = self.memory, self.memory.settings.circuit_breaker
        if circuit_breaker is not None:
            memory.circuit_breaker_found = circuit_breaker.found(
                memory.circuit_breaker_found, transaction.now, event.jobs, event.improvement
            )

    def _policies_changed(self, event: PoliciesChanged, transaction: Transaction) -> None:
        settings = self.memory.settings
        self.memory.settings = replace(
            settings,
            transfer=dict(event.transfer),
            location=event.location,
            partners_asked=event.partners_asked,
            reoffer=event.reoffer,
            confirm_time_max=(
                settings.confirm_time_max
                if event.confirm_time_max is None
                else event.confirm_time_max
            ),
            translation=(settings.translation if event.translation is None else event.translation),
            partners=settings.partners if event.partners is None else event.partners,
            weights=settings.weights if event.weights is None else event.weights,
            given_user=settings.given_user if event.given_user is None else event.given_user,
            requeue=settings.requeue if event.requeue is None else event.requeue,
            preempt_guests=(
                settings.preempt_guests if event.preempt_guests is None else event.preempt_guests
            ),
        )
        self.memory.list_partners()
        self.memory.keep_account()
        if settings.sends_guests_home or self.memory.settings.sends_guests_home:
            self._protect(transaction)

    def _partner_down(self, event: PartnerDown, _transaction: Transaction) -> None:
        book = self.memory.books.get(event.partner)
        if book is not None:
            book.reachable = False
