"""The account that a site keeps of itself, made by its journal's records.

`grms.federation.own_account` has the account as replays keep it: own users' jobs alone in a shadow, and what exchange has
brought or cost against that. Here it is told what the journal says of these jobs, so that the records make it again after a
restart. A job that a partner has accepted runs from then on, as the partner has promised; one that will never run is
forgotten. Besides, it has what a site needs that lets guests run to their ends: which widths own jobs have had, and what
each guest may cost.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol

from grms.federation.own_account import AccountRules, CreditChange, OwnAccount
from grms.site.model.account_history import AccountHistory, RunningGuests
from grms.site.model.jobs import GuestJob, HomeJob, Request
from grms.site.model.lifecycle import Outcome
from lrms_sim.scheduling.disciplines import Discipline

KNOWN_LEAST: Final = 86_400.0
"""Own jobs are taken to have come for at least so long, seconds."""

MEMORIES_MAX: Final = 20.0
"""What is so many memories ago has faded away: looks before that are not made up for."""


class EndedJob(Protocol):
    """What the account has to know of a local user's job that has ended; run times are seconds."""

    @property
    def job(self) -> int:
        """Its number."""

    @property
    def request(self) -> Request:
        """What it asked for."""

    @property
    def partner(self) -> str:
        """Where it ran last; empty at home."""

    @property
    def end_time(self) -> float:
        """Seconds."""

    @property
    def run_time(self) -> float:
        """Of its last run; 0 if it never ran."""

    @property
    def restored_time(self) -> float:
        """What it has kept of runs before."""


class ChargedGuest(Protocol):
    """What the account has to know of a guest that runs to its end."""

    @property
    def request(self) -> Request:
        """What it asked for."""

    @property
    def charge(self) -> float:
        """What it may cost, processor seconds times seconds."""


@dataclass(slots=True)
class Exchanged:
    """What was exchanged since the account began, processor seconds.

    Attributes:
        lent: by partners' jobs that have run here to their ends.
        lent_lost: by partners' jobs here that were sent home.
        given: by local users' jobs that have run at partners to their ends.
        given_lost: by local users' jobs that partners have sent home.
        guests_sent_home: number of partners' jobs sent home, each time.
        sent_home: number of local users' jobs sent home, each time.
    """

    lent: float = 0.0
    lent_lost: float = 0.0
    given: float = 0.0
    given_lost: float = 0.0
    guests_sent_home: int = 0
    sent_home: int = 0


@dataclass(frozen=True, slots=True)
class CreditChanged:
    """A look at which the site has lost or regained its credit.

    Attributes:
        time: of the look, seconds.
        in_credit: since then.
        saved: SB then, processor seconds times seconds.
        owed: H then, likewise; more than `saved` where credit was lost.
        base: B then, likewise.
        job_work: of an own job on the average, processor seconds; 0 where none had been compared.
    """

    time: float
    in_credit: bool
    saved: float
    owed: float
    base: float
    job_work: float


class SiteAccount:
    """The account of one site; `rules` say how it is kept, `discipline` is of the shadow.

    Attributes:
        began: when the first job or look was noted, seconds; nan before.
        last_look: of that, seconds; minus infinity before the first.
        last_change: the last look at which credit was lost or regained; `None` before.
        changes: how often that was so.
        exchanged: what was exchanged meanwhile.
        history: what it has been in the last 30 days.

    Raises:
        ValueError: no account can be kept under that discipline.
    """

    def __init__(self, processors: int, discipline: Discipline, rules: AccountRules) -> None:
        self._processors = processors
        self._discipline = discipline
        self.rules = rules
        self._account = OwnAccount(processors, discipline, rules)
        self._latest = -math.inf
        self._by_width: dict[int, float] = {}
        self.began = math.nan
        self.last_look = -math.inf
        self.last_change: CreditChanged | None = None
        self.changes = 0
        self.exchanged = Exchanged()
        self.history = AccountHistory()

    # --- own jobs ------------------------------------------------------------------------------

    def submitted(self, job: int, time: float, request: Request) -> None:
        """Notes a local user's job that waits for nothing but a place to run, in the order of that; `time` is in seconds.

        A clock that was set back is passed over, and so is a job that is wider than the machine.
        """
        if self._account.is_open(job) or request.processors > self._processors:
            return
        self._begin(time)
        self._latest = max(self._latest, time)
        self._account.submitted(
            job,
            submit_time=self._latest,
            processors=request.processors,
            requested_time=request.requested_time,
        )

    def started(self, job: int, time: float) -> None:
        """Notes that such a job runs since `time`, seconds, here or at a partner."""
        if self._account.is_open(job):
            self._account.started(job, time)

    def waits_again(self, job: int) -> None:
        """Notes that such a job runs no more, and has not ended."""
        if self._account.is_open(job):
            self._account.returned(job)

    def ended(self, job: EndedJob) -> None:
        """Notes the end of a local user's job; one that has never run is forgotten."""
        # Alone it would have run as a whole, also where parts of it ran elsewhere before.
        run_time = job.run_time + job.restored_time if job.run_time > 0 else 0.0
        if run_time > 0:
            if job.partner:
                self.exchanged.given += job.run_time * job.request.processors
            width = job.request.processors
            self._by_width[width] = self._by_width.get(width, 0.0) + run_time * width
        if not self._account.is_open(job.job):
            return
        if run_time > 0:
            self._account.ended(job.job, job.end_time, run_time)
        else:
            self._account.forgotten(job.job)

    def sent_home(self, job: HomeJob, lost: float) -> None:
        """Notes that a partner has sent a local user's job home that has run there for `lost` seconds."""
        self.exchanged.sent_home += 1
        self.exchanged.given_lost += lost * job.request.processors
        self.waits_again(job.job)

    def guest_ended(self, guest: GuestJob) -> None:
        """Notes the end of a partner's job here."""
        work = guest.run_time * guest.request.processors
        if guest.outcome is Outcome.PREEMPTED:
            self.exchanged.guests_sent_home += 1
            self.exchanged.lent_lost += work
        else:
            self.exchanged.lent += work

    def _begin(self, time: float) -> None:
        if math.isnan(self.began):
            self.began = time

    # --- looks ---------------------------------------------------------------------------------

    def due(self, now: float) -> float | None:
        """Returns the multiple of the period at which a look is due by `now`, seconds; `None` for none.

        A clock that was set back by more than a period is taken at its word: the account then begins anew.
        """
        every = self.rules.every
        moment = every * math.floor(now / every)
        if moment > self.last_look or moment < self.last_look - every:
            return moment
        return None

    def look(self, time: float, open_jobs: Iterable[HomeJob]) -> CreditChange:
        """Looks at the account at a multiple of its period, seconds, and says what has changed.

        Looks that were missed, as nobody was there to make them, are made up for, so that all fades as it would have. Where the clock was set
        back the account begins anew, with `open_jobs` in order of submission.
        """
        every, before = self.rules.every, self.in_credit
        if time < self.last_look - every:
            self._begin_anew(time, open_jobs)
        self._begin(time)
        moment = time
        if self.last_look > -math.inf:
            moment = max(
                self.last_look + every,
                time - every * math.ceil(MEMORIES_MAX * self.rules.memory / every),
            )
        while moment < time:
            self._account.look(moment)
            moment += every
        self._account.look(time)
        self.last_look = time
        if self.in_credit is before:
            return CreditChange.NONE
        found = self._account.balance
        self.changes += 1
        self.last_change = CreditChanged(
            time, found.in_credit, found.saved, found.owed, found.base, self.job_work
        )
        return CreditChange.REGAINED if found.in_credit else CreditChange.LOST

    def remember(self, guests: RunningGuests) -> None:
        """Notes the last look in the history, with the guests that ran then."""
        self.history.note(
            self.last_look,
            in_credit=self.in_credit,
            late=self._account.late > 0,
            balance=self.hours(self.saved + self.rules.allowed * self.base - self.owed),
            guests=guests,
        )

    def _begin_anew(self, time: float, open_jobs: Iterable[HomeJob]) -> None:
        self._account = OwnAccount(self._processors, self._discipline, self.rules)
        self._latest, self.began = -math.inf, time
        self.enter(open_jobs, time)

    def enter(self, jobs: Iterable[HomeJob], latest: float) -> None:
        """Notes jobs that are there already, in order of submission; none came or began after `latest`, seconds."""
        for job in jobs:
            if job.end_time == job.end_time and job.run_time == 0:
                continue  # it has never run
            self.submitted(job.job, min(job.eligible_time, latest), job.request)
            start = job.start_time if math.isnan(job.accept_time) else job.accept_time
            if not math.isnan(start):
                self.started(job.job, min(start, latest))
            if not math.isnan(job.end_time):
                self.ended(job)

    # --- what it says --------------------------------------------------------------------------

    @property
    def in_credit(self) -> bool:
        """Whether the site is in credit until the next look; it is before the first."""
        return self._account.in_credit

    @property
    def gain(self) -> float:
        """S: what exchange has brought, fading, processor seconds times seconds; negative if it has cost."""
        return self._account.balance.gain

    @property
    def saved(self) -> float:
        """SB: the same, bounded by a part of `base`."""
        return self._account.balance.saved

    @property
    def base(self) -> float:
        """B: what the jobs' time from submission to end would have been alone, fading, likewise."""
        return self._account.balance.base

    @property
    def owed(self) -> float:
        """H at the last look: what own jobs that wait had lost by then, likewise."""
        return self._account.balance.owed

    @property
    def compared(self) -> float:
        """The number of own jobs in these sums, fading likewise."""
        return self._account.balance.booked

    @property
    def job_work(self) -> float:
        """The work of one of them on the average, processor seconds; 0 without any."""
        balance = self._account.balance
        return balance.weight / balance.booked if balance.booked > 0 else 0.0

    @property
    def waiting_alone(self) -> float:
        """The part of `base` in which they would have waited, likewise."""
        balance = self._account.balance
        return max(0.0, balance.base - balance.ran)

    def hours(self, amount: float) -> float:
        """Returns processor seconds times seconds as hours in which a job of mean work waits; nan if none was compared."""
        return amount / self.job_work / 3600.0 if self.job_work > 0 else math.nan

    # --- guests that run to their ends ---------------------------------------------------------

    def charge(
        self, now: float, idle: int, request: Request, others: Iterable[ChargedGuest]
    ) -> float | None:
        """Returns what a guest that runs to its end may cost own users, processor seconds times seconds.

        Args:
            now: seconds.
            idle: processors that nobody uses.
            request: of the guest.
            others: the guests that run here.

        Returns:
            `None` if the account does not cover that.
        """
        account = self._account
        spare = self.rules.allowed * account.balance.base
        owed = account.owed(now)
        if account.balance.saved + spare - owed < 0.0:
            return None
        beside, charges = 0, 0.0
        for guest in others:
            beside += guest.request.processors
            charges += guest.charge
        charge, first = 0.0, account.first_arrival
        if not math.isnan(first):
            least, most = idle - request.processors, idle + beside
            work = sum(done for width, done in self._by_width.items() if least < width <= most)
            known = max(now - first, KNOWN_LEAST)
            charge = work * (request.requested_time * request.requested_time) / known
        covered = account.balance.gain + spare - owed - charges - charge >= 0.0
        return charge if covered else None

    # --- the journal ---------------------------------------------------------------------------

    def record(self) -> bytes:
        """Returns everything as a text for a journal."""
        return json.dumps(
            {
                "account": self._account.record(),
                "latest": _plain(self._latest),
                "by_width": list(self._by_width.items()),
                "began": _plain(self.began),
                "last_look": _plain(self.last_look),
                "last_change": None if self.last_change is None else asdict(self.last_change),
                "changes": self.changes,
                "exchanged": asdict(self.exchanged),
                "history": self.history.record(),
            }
        ).encode()

    def resume(self, record: bytes) -> None:
        """Goes on where a record was made; the machine, its discipline and the rules may have changed since.

        Raises:
            ValueError: it is no such record.
        """
        said: dict[str, Any] = json.loads(record)
        self._account = OwnAccount.of_record(
            said["account"], self._processors, self._discipline, self.rules
        )
        self._latest = -math.inf if said["latest"] is None else said["latest"]
        self._by_width = dict(said["by_width"])
        self.began = math.nan if said["began"] is None else said["began"]
        self.last_look = -math.inf if said["last_look"] is None else said["last_look"]
        changed = said["last_change"]
        self.last_change = None if changed is None else CreditChanged(**changed)
        self.changes = said["changes"]
        self.exchanged = Exchanged(**said["exchanged"])
        self.history = AccountHistory.of_record(said["history"])


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
