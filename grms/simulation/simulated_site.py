"""A site daemon in memory: the shell of a `SiteState` on a simulated network, with crashes.

It does what a real daemon does: it journals before it acts, gathers records during a commit, gives
every call a deadline, probes partners, and recovers after a restart. A crash can come between any
two steps. What its journal and its batch system hold survives; everything else is gone.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from grms.lrms import base
from grms.simulation.batch_system import GOES_ON, FakeLrms, FakeLrmsJob
from grms.simulation.fault_injection import Crashes, Timing
from grms.simulation.random_source import RandomSource
from grms.simulation.state_host import Host, Question
from grms.site.model.commands import (
    Append,
    Command,
    LrmsCancel,
    LrmsSubmit,
    ProtectGuests,
    SendProbe,
)
from grms.site.model.compaction import compacted
from grms.site.model.events import (
    Event,
    PartnerDown,
    PartnerFaulty,
    PartnerLost,
    PartnerUp,
    ReservationsDue,
    Restarted,
    RoundDue,
    StateFetched,
    TimePassed,
)
from grms.site.model.invariants import check
from grms.site.model.jobs import Load, OfferId, StateThere, lrms_key
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import Record, StateCame
from grms.site.runtime.executor_queue import cancelled


class Rubbish(Command):
    """An answer that the protocol does not have."""

    __slots__ = ()


CHECKED_EVERY = 50
"""Events between full checks of a site's memory (`grms.site.model.invariants`)."""

LATE_TICK_S = 5.0
"""Interval of checks of slots when all others have ended, seconds."""

FETCHES: Final = 4
"""So often the state of a job is asked for."""

_TIMER = 0.001
"""Shortest delay of a timer, seconds."""


@dataclass(kw_only=True)
class SimulatedSite(Host):
    """A daemon that can be crashed.

    `protects` is what its batch system was last asked to do with protected guests; `None` for nothing.
    `journal` holds what is durable; `left_out` are the records that compaction has left out of it. `tell` gets the story line by line, `watch` every event and its
    commands, if not `None`.
    """

    sites: "dict[str, SimulatedSite]"
    draws: RandomSource
    lrms: FakeLrms
    crashes: Crashes = field(default_factory=Crashes)
    timing: Timing = field(default_factory=Timing)
    tell: Callable[[str], None] | None = None
    journal: list[Record] = field(default_factory=list)
    left_out: list[Record] = field(default_factory=list)
    crash_count: int = 0
    protects: bool | None = None
    watch: Callable[["SimulatedSite", Event, list[Command]], None] | None = None
    _commit: tuple[Record, ...] | None = None
    _appended: int = 0
    _reservations_due: float = math.inf
    _watched: set[str] = field(default_factory=set)
    _late_tick: bool = False
    _unanswered: dict[str, int] = field(default_factory=dict)
    _fetching: set[tuple[int, StateThere]] = field(default_factory=set)
    _here: dict[int, StateThere] = field(default_factory=dict)

    # --- life and death ------------------------------------------------------------------------

    def start(self) -> None:
        """Begins to work with what the journal holds."""
        self.up = True
        self._life += 1
        self._last_id = 0
        self._reservations_due = math.inf
        self.state = self.factory(self.settings, list(self.journal))
        self._lrms_begin()
        self._say("starts")
        life = self._life
        self.happen(lambda i: Restarted(i, self._load_at_start()))
        for partner in self.settings.partners:
            self._unanswered[partner.name] = 0
            self._probe(life, partner.name)
        self._tick(life)
        self._await_round(life)

    def crash(self) -> None:
        """Dies. A commit that is under way has been made, or not."""
        if not self.up:
            return
        self._die()
        self.crash_count += 1
        if self._commit is not None and self.draws.chance(0.5):
            self.journal += self._commit
        self._commit = None
        self._appended = 0
        self._watched.clear()
        self._fetching.clear()
        self._here.clear()
        self._lrms_leave()
        self._say("crashes")
        self.clock.after(self.draws.exponential(self.crashes.down_mean), self._restart)

    def compact(self) -> None:
        """Compacts the journal, unless records are being written."""
        shorter = (
            None if self._commit is not None else compacted(self.settings, lambda: self.journal)
        )
        if shorter is not None:
            kept = set(map(id, shorter))
            self.left_out += [record for record in self.journal if id(record) not in kept]
            self.journal[:] = shorter

    def _tick(self, life: int) -> None:
        if self._life == life and self.timing.probe_interval:
            self.happen(lambda i: TimePassed(i, self.load()))
            self.clock.after(self.timing.probe_interval, self._tick, life)

    def _watch_places(self) -> None:
        # When nobody looks any more, time passes on for places: a Byzantine partner may still want one.
        if self.state.memory.reserved and not (self.timing.probe_interval or self._late_tick):
            self._late_tick = True
            self.clock.after(LATE_TICK_S, self._tick_late, self._life)

    def _tick_late(self, life: int) -> None:
        self._late_tick = False
        if self._life == life:
            self.happen(lambda i: TimePassed(i, self.load()))

    def _await_round(self, life: int) -> None:
        if self.timing.reoffer and self.timing.probe_interval:
            self.clock.after(self.timing.reoffer, self._round, life)

    def _round(self, life: int) -> None:
        if self._life == life:
            self.happen(lambda i: RoundDue(i, self.load()))
            self._await_round(life)

    def _restart(self) -> None:
        if not self.up:
            self.start()

    def _say(self, text: str) -> None:
        if self.tell is not None:
            self.tell(f"{self.clock.now:9.3f} {self.settings.name}: {text}")

    def load(self) -> Load | None:
        """Returns the load of the batch system, as the site knows it."""
        return self.lrms.load()

    # --- events and commands -------------------------------------------------------------------

    @property
    def written_down(self) -> bool:
        """Whether all that the site knows is in its journal."""
        return self._commit is None and not any(isinstance(c, Append) for c in self._outbox)

    def hand_over(self, event: Event) -> None:
        """Hands over an event that has its id, and carries out what comes of it."""
        if self.tell is not None:
            self._say(f"event {event}")
        commands = self.state.handle(event, self.now)
        if event.id % CHECKED_EVERY == 0:
            check(self.state.memory)
        if self.watch is not None:
            self.watch(self, event, commands)
        self._outbox += commands
        self._watch_reservations()
        self._watch_places()
        self._fetch_states()
        self._pump()

    def _watch_reservations(self) -> None:
        # A timer for the next moment at which time changes a reservation; one that is late is none.
        moment = self.state.memory.reservations.next_time - self.clock_offset
        if moment < self._reservations_due:
            self._reservations_due = moment
            delay = max(_TIMER, moment - self.clock.now)
            self.clock.after(delay, self._reservations_are_due, self._life, moment)

    def _reservations_are_due(self, life: int, moment: float) -> None:
        if self._life == life and self._reservations_due == moment:
            self._reservations_due = math.inf
            self.happen(ReservationsDue)

    def _goes_on(self) -> bool:
        # Up to records that are not durable.
        if self.draws.chance(self.crashes.probability):
            self.crash()
            return False
        if isinstance(self._outbox[0], Append) and self._appended == 0:
            self._begin_commit()
            return False
        return True

    def _carry_out(self, command: Command) -> None:
        if self.tell is not None:
            self._say(f"command {command}")
        super()._carry_out(command)

    def _append(self, _: Append) -> None:
        self._appended -= 1

    def _begin_commit(self) -> None:
        if self._commit is None:
            appends = [command for command in self._outbox if isinstance(command, Append)]
            self._commit = tuple(record for append in appends for record in append.records)
            duration = self.draws.exponential(self.crashes.commit_mean)
            self.clock.after(duration, self._end_commit, self._life, len(appends))

    def _end_commit(self, life: int, appends: int) -> None:
        if self._life == life and self._commit is not None:
            self.journal += self._commit
            self._drop_states(self._commit)
            self._commit = None
            self._appended = appends
            self._pump()

    # --- calls to partners ---------------------------------------------------------------------

    def _begin(self, call: int, life: int, command: Question) -> None:
        super()._begin(call, life, command)
        if self._life == life:
            self.clock.after(self.timing.call_deadline, self._deadline, call, life)

    def _deadline(self, call: int, life: int) -> None:
        if self._life == life and call in self._calls:
            self._answered(self._calls.pop(call), None)

    def _answered(self, command: Question, answer: Command | None) -> None:
        if isinstance(answer, Rubbish):
            life, probed = self._life, isinstance(command, SendProbe)
            self.happen(lambda i: PartnerFaulty(i, self.load(), command.partner, "rubbish", probed))
            if probed or self._life != life:
                return
        super()._answered(command, answer)

    # --- state of jobs that were sent home -----------------------------------------------------

    def _fetch_states(self) -> None:
        for job in self.state.memory.fetching.values():
            there = job.state_there
            if there is not None and (job.job, there) not in self._fetching:
                self._fetching.add((job.job, there))
                self._fetch(self._life, job.job, there, FETCHES)

    def _fetch(self, life: int, number: int, there: StateThere, attempts: int) -> None:
        if self._life != life:
            return
        if not attempts:
            self._fetched(life, number, there, "it did not come in time")
            return
        name, target, answered = self.settings.name, self.sites[there.partner], False
        key = lrms_key(name, there.offer.epoch, there.offer.number)

        def hear(found: float | None) -> None:
            nonlocal answered
            if not answered:
                answered = True
                self._fetched(life, number, there, "it has none", found)

        def serve() -> None:
            if target.up:
                told = partial(hear, target.state_of(key))
                target.network.send(there.partner, name, told, answer=True)

        def late() -> None:
            if not answered:
                self._fetch(life, number, there, attempts - 1)

        self.network.send(name, there.partner, serve)
        self.clock.after(self.timing.call_deadline, late)

    def state_of(self, key: str) -> float | None:
        """Returns how long a partner's job had run in all when it last wrote its state here, seconds; `None` if it is gone."""
        for job in self.lrms.history:
            if job.key == key and job.outcome is Outcome.PREEMPTED and job.written:
                return None if job.dropped else job.done + job.written
        return None

    def _fetched(
        self, life: int, number: int, there: StateThere, reason: str, found: float | None = None
    ) -> None:
        if self._life != life:
            return
        come = b"" if found is None else GOES_ON + repr(found).encode()
        if come:
            self._here[number] = there
        where = there.partner, there.offer
        self.happen(
            lambda i: StateFetched(i, self.load(), number, *where, come, "" if come else reason)
        )

    def _drop_states(self, records: tuple[Record, ...]) -> None:
        # What the journal has is not needed any more where it comes from.
        for record in records:
            there = self._here.pop(record.job, None) if isinstance(record, StateCame) else None
            if there is not None:
                key = lrms_key(self.settings.name, there.offer.epoch, there.offer.number)
                forget = partial(self.sites[there.partner].forget_state, key)
                self.network.send(self.settings.name, there.partner, forget)

    def forget_state(self, key: str) -> None:
        """Deletes what a partner's job has written."""
        for job in self.lrms.history:
            job.dropped = job.dropped or (job.key == key and self.up)

    # --- the batch system ----------------------------------------------------------------------

    def _lrms_begin(self) -> None:
        # A new life hears of what happens from now on.
        self.lrms.listener = self._lrms_tells
        self.lrms.heard_since = self.clock.now

    def _lrms_leave(self) -> None:
        self.lrms.listener = None

    def _load_at_start(self) -> Load | None:
        # Every other life the batch system says at once who waits, as a simulated one does.
        load = self.load()
        if load is None or self.crash_count % 2 == 0:
            return load
        return replace(load, waits=self._lrms_waits)

    def _lrms_waits(self, key: str) -> bool:
        job = self.lrms.find(key)
        if job is None or job.start_time is not None or job.outcome is not None:
            return False
        self._watched.add(key)
        return True

    def _lrms_submit(self, command: LrmsSubmit) -> None:
        key = command.lrms_key
        job = self.lrms.find(key) if command.lookup else None
        if job is None and command.started:
            self.lrms_told(
                base.Ended(key, base.LrmsEnd(Outcome.UNKNOWN, self.now, 0.0, reason="not found"))
            )
            return
        if job is None:
            self.lrms.submit(key, command.request, command.payload, preemptible=command.preemptible)
            if self.draws.chance(self.crashes.probability):
                self.crash()
                return
        self._watched.add(key)
        self.lrms_told(base.Accepted(key))
        if job is not None and self.up:
            self._lrms_tells(job)

    def _protect(self, command: ProtectGuests) -> None:
        if self.draws.chance(self.crashes.probability):
            self.crash()
            return
        self.protects = command.on

    def _lrms_cancel(self, command: LrmsCancel) -> None:
        life = self._life
        done = self.lrms.cancel(command.lrms_key, only_waiting=command.only_waiting)
        for news in cancelled(command, done=done):
            if self._life == life:
                self.lrms_told(news)

    def _lrms_tells(self, job: FakeLrmsJob) -> None:
        if job.key not in self._watched:
            return
        offset = self.clock_offset
        start = job.start_time
        life = self._life
        if start is not None:
            self.lrms_told(base.Started(job.key, start + offset))
        end, outcome = job.end_time, job.outcome
        if end is not None and outcome is not None and self._life == life:
            run_time = 0.0 if start is None else end - start
            kept = job.written if outcome is Outcome.PREEMPTED else 0.0
            over = base.LrmsEnd(outcome, end + offset, run_time, kept=kept)
            self.lrms_told(base.Ended(job.key, over))

    # --- who is there --------------------------------------------------------------------------

    def _probe(self, life: int, partner: str) -> None:
        if self._life != life or not self.timing.probe_interval:
            return
        name, answered = self.settings.name, False
        target = self.sites[partner]

        def answer_arrives(seen: OfferId | None) -> None:
            nonlocal answered
            if self._life == life and not answered:
                answered = True
                self._unanswered[partner] = 0
                size = target.settings.processors
                self.happen(lambda i: PartnerUp(i, self.load(), partner, size, seen))

        def serve() -> None:
            book = target.state.partners.get(name) if target.up else None
            if book is None or not book.listed:
                return
            if target.written_down:
                told = partial(answer_arrives, book.offer_seen)
                self.network.send(partner, name, told, answer=True)
            else:
                self.clock.after(0.05, serve)

        def deadline() -> None:
            if self._life != life or answered:
                return
            self._unanswered[partner] += 1
            self.happen(lambda i: PartnerDown(i, partner))
            if self._unanswered[partner] == self.timing.lost_after and self._life == life:
                self.happen(lambda i: PartnerLost(i, self.load(), partner))

        self.network.send(name, partner, serve)
        self.clock.after(self.timing.call_deadline, deadline)
        self.clock.after(self.timing.probe_interval, self._probe, life, partner)
