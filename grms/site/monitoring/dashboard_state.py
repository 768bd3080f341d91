"""The memory of a dashboard: jobs with their histories, samples, partners. It is pure.

Everything is bounded: the oldest is dropped. Every change of a job is numbered, so that clients ask
for what has changed since.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from grms.site.accounting.own_account import AccountFigures
from grms.site.model import records
from grms.site.model.jobs import GuestRef, JobRef, lrms_key
from grms.site.model.records import Record
from grms.site.monitoring.dashboard_events import (
    AccountSeen,
    CertificateOutput,
    Decided,
    Note,
    Noted,
    PartnerFigures,
    Sampled,
)
from lrms_sim.util.messages import duration

JOBS_MAX: Final = 20_000
STEPS_MAX: Final = 64
"""Most steps of one job's history; the first and the last ones."""

CERTIFICATES_MAX: Final = 2000
"""More than a site has partners."""

SAMPLES_MAX: Final = 1800
"""For the near past and the far past each."""

FAR_EVERY: Final = 30
"""Samples of the near past per sample of the far past."""


@dataclass(slots=True)
class Step:
    """One thing that has happened to a job.

    Attributes:
        time: on the site's clock, seconds.
        kind: a word: "received", "asked", "declined", …
        partner: with whom; empty for nobody.
        decided: what it rested on, where it is a decision.
    """

    time: float
    kind: str
    partner: str = ""
    words: str = ""
    decided: Decided | None = None


@dataclass(slots=True)
class Entry:
    """A job as the dashboard knows it.

    Attributes:
        job_id: as people know it.
        user: whose it is; empty for a partner's job, of which the site is not told.
        name: a word of its user's own; same.
        processors: it needs.
        requested_time: it may run, seconds.
        submit_time: when it came, seconds.
        state: a word: "held", "received", "offered", "delegated", "queued", "running" or "ended".
        place: the site where it runs, or is to; empty before that is decided.
        asking: the partner that is being asked; empty for none.
        start_time: `None` before; of a delegated job it is known at its end.
        end_time: `None` before.
        outcome: how it ended; empty before.
        revision: number of its last change.
    """

    key: str
    job_id: str
    home: str
    user: str
    name: str
    processors: int
    requested_time: float
    submit_time: float
    state: str
    place: str = ""
    asking: str = ""
    start_time: float | None = None
    end_time: float | None = None
    outcome: str = ""
    steps: list[Step] = field(default_factory=list)
    revision: int = 0


class DashboardState:
    """What a dashboard remembers.

    Args:
        jobs_max: most jobs that are remembered.

    Attributes:
        revision: number of the last change of a job.
        jobs: by key, the last changed one last.
        near: samples of the near past, one for each that came.
        far: of the far past, one of many.
        partners: as last sampled.
        account: that the site keeps of itself, as last seen; `None` if it keeps none.
        lost: notes that the dashboard was too slow to take.
        partial: stories may lack their beginning: notes were lost, or not all of the journal was
            read.
    """

    def __init__(self, site: str, jobs_max: int = JOBS_MAX) -> None:
        self.site = site
        self.revision = 0
        self.jobs: OrderedDict[str, Entry] = OrderedDict()
        self.near: deque[Sampled] = deque(maxlen=SAMPLES_MAX)
        self.far: deque[Sampled] = deque(maxlen=SAMPLES_MAX)
        self.partners: tuple[PartnerFigures, ...] = ()
        self.account: AccountFigures | None = None
        self.certificates: dict[str, bytes] = {}
        self.lost = 0
        self.partial = False
        self._jobs_max = jobs_max
        self._sampled = 0
        self._told: dict[type[Record], Callable[[Entry, Any, Decided | None], None]] = {
            records.JobReleased: self._released,
            records.JobOffered: self._offered,
            records.JobDeclined: self._declined,
            records.JobDelegated: self._delegated,
            records.JobReoffered: self._reoffered,
            records.JobReofferEnded: self._stays,
            records.JobLeft: self._left,
            records.JobKept: self._kept,
            records.JobStarted: self._started,
            records.JobEnded: self._ended,
            records.JobAbandoned: self._anew,
            records.JobReturned: self._anew,
            records.JobSentHome: self._anew,
            **dict.fromkeys((records.StateCame, records.StateMissed), self._state),
            records.JobTakenBack: self._operator,
            records.JobResubmitted: self._operator,
            records.JobWrittenOff: self._operator,
            records.JobCancelRequested: self._cancel,
            records.GuestAcknowledged: self._acknowledged,
        }

    def take(self, note: Note) -> None:
        """Remembers a note."""
        if isinstance(note, Sampled):
            self._sample(note)
        elif isinstance(note, AccountSeen):
            self.account = note.figures
        elif isinstance(note, CertificateOutput):
            if note.partner in self.certificates or len(self.certificates) < CERTIFICATES_MAX:
                self.certificates[note.partner] = note.pem
        else:
            self._note(note)

    def _sample(self, sampled: Sampled) -> None:
        # Of samples before the last the partners are not needed, and they would be many.
        self.partners = sampled.partners
        bare = Sampled(
            sampled.time,
            sampled.load,
            sampled.at_lrms,
            sampled.jobs_open,
            sampled.draining,
            (),
        )
        self.near.append(bare)
        if self._sampled % FAR_EVERY == 0:
            self.far.append(bare)
        self._sampled += 1

    def lose(self, count: int) -> None:
        """Notes that notes were lost."""
        if count:
            self.lost += count
            self.partial = True

    # --- records -------------------------------------------------------------------------------

    def _note(self, note: Noted) -> None:
        record = note.record
        if isinstance(record, records.JobReceived):
            self._received(record)
            return
        if isinstance(record, records.GuestAccepted):
            self._guest_accepted(record)
            return
        entry = self.jobs.get(self._key(record))
        if entry is None:
            return
        self._changed(entry)
        told = self._told.get(type(record))
        if told is not None:
            told(entry, record, note.decided)

    def _key(self, record: Record) -> str:
        job: JobRef | None = getattr(record, "job", None)
        if isinstance(job, GuestRef):
            return guest_key(job.partner, job.offer.epoch, job.offer.number)
        return "" if job is None else f"{self.site}-{job}"

    def _received(self, record: records.JobReceived) -> None:
        key = f"{self.site}-{record.job}"
        # Nobody looks in between: what is not held is offered or kept in the same turn.
        state = "held" if record.dependencies or record.array else "received"
        entry = Entry(
            key=key,
            job_id=f"{self.site}-{record.array}_{record.index}" if record.array else key,
            home=self.site,
            user=record.user,
            name=record.name,
            processors=record.request.processors,
            requested_time=record.request.requested_time,
            submit_time=record.time,
            state=state,
        )
        self._step(entry, Step(record.time, state))
        self._add(entry)

    def _guest_accepted(self, record: records.GuestAccepted) -> None:
        partner, offer = record.job.partner, record.job.offer
        entry = Entry(
            key=guest_key(partner, offer.epoch, offer.number),
            job_id=f"{partner} #{offer.number}",
            home=partner,
            user="",
            name="",
            processors=record.request.processors,
            requested_time=record.request.requested_time,
            submit_time=record.time,
            state="queued",
            place=self.site,
        )
        self._step(entry, Step(record.time, "taken", partner))
        self._add(entry)

    def _add(self, entry: Entry) -> None:
        self.jobs[entry.key] = entry
        self._changed(entry)
        while len(self.jobs) > self._jobs_max:
            self.jobs.popitem(last=False)

    def _changed(self, entry: Entry) -> None:
        self.revision += 1
        entry.revision = self.revision
        self.jobs.move_to_end(entry.key)

    def _step(self, entry: Entry, step: Step) -> None:
        if len(entry.steps) >= STEPS_MAX:
            del entry.steps[STEPS_MAX // 2]
        entry.steps.append(step)

    # --- what each kind of record says ---------------------------------------------------------

    def _released(self, entry: Entry, record: Any, _: Decided | None) -> None:
        entry.state = "received"
        self._step(entry, Step(record.time, "released"))

    def _offered(self, entry: Entry, record: Any, decided: Decided | None) -> None:
        entry.state, entry.asking = "offered", record.partner
        self._step(entry, Step(record.time, "asked", record.partner, decided=decided))

    def _declined(self, entry: Entry, record: Any, _: Decided | None) -> None:
        self._step(entry, Step(record.time, "declined", entry.asking))
        entry.state, entry.asking = "received", ""

    def _delegated(self, entry: Entry, record: Any, _: Decided | None) -> None:
        entry.state, entry.place, entry.asking = "delegated", entry.asking, ""
        self._step(entry, Step(record.time, "accepted", entry.place))

    def _kept(self, entry: Entry, record: Any, decided: Decided | None) -> None:
        entry.state, entry.place, entry.asking = "queued", self.site, ""
        partner = decided.weighed.kept_for if decided and decided.weighed else ""
        self._step(entry, Step(record.time, "kept", partner, decided=decided))

    def _reoffered(self, entry: Entry, record: Any, _: Decided | None) -> None:
        # In every round, so that it is no step of its own.
        entry.asking = record.partner

    def _stays(self, entry: Entry, _: Any, __: Decided | None) -> None:
        entry.asking = ""

    def _left(self, entry: Entry, record: Any, _: Decided | None) -> None:
        entry.state, entry.place = "offered", ""
        self._step(entry, Step(record.time, "left", entry.asking))

    def _started(self, entry: Entry, record: Any, _: Decided | None) -> None:
        entry.state, entry.start_time = "running", record.start_time
        self._step(entry, Step(record.start_time, "started"))

    def _ended(self, entry: Entry, record: Any, _: Decided | None) -> None:
        entry.state, entry.end_time = "ended", record.end_time
        entry.outcome = record.outcome.value
        if entry.start_time is None and record.run_time > 0:
            entry.start_time = record.end_time - record.run_time
        self._step(entry, Step(record.end_time, "ended", words=record.reason))

    def _anew(self, entry: Entry, record: Any, _: Decided | None) -> None:
        kind = _DECIDED_ANEW[type(record)]
        ran = duration(record.lost) if isinstance(record, records.JobSentHome) else ""
        self._step(entry, Step(record.time, kind, entry.place or entry.asking, words=ran))
        entry.state, entry.place, entry.asking = "received", "", ""

    def _state(self, entry: Entry, record: Any, _: Decided | None) -> None:
        came = isinstance(record, records.StateCame)
        kind, words = "state came", duration(record.kept)
        if not came:
            kind, words = "state missed", record.reason
        self._step(entry, Step(record.time, kind, record.partner, words=words))

    def _operator(self, entry: Entry, record: Any, _: Decided | None) -> None:
        kind = _OPERATORS[type(record)]
        self._step(entry, Step(record.time, kind, entry.place, words=record.by))

    def _cancel(self, entry: Entry, record: Any, _: Decided | None) -> None:
        self._step(entry, Step(record.time, "cancel asked"))

    def _acknowledged(self, entry: Entry, record: Any, _: Decided | None) -> None:
        self._step(entry, Step(record.time, "reported", entry.home))


_DECIDED_ANEW: Final[dict[type[Record], str]] = {
    records.JobAbandoned: "given up",
    records.JobReturned: "returned",
    records.JobSentHome: "sent home",
}


_OPERATORS: Final = {
    records.JobTakenBack: "taken back",
    records.JobResubmitted: "resubmitted",
    records.JobWrittenOff: "written off",
}


def guest_key(partner: str, epoch: int, number: int) -> str:
    """Returns the key of a partner's job, as the batch system has it."""
    return lrms_key(partner, epoch, number)
