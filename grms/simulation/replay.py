"""Site states conducted on one virtual clock: the replay of a federation through its daemons' core.

The order of things is that of a federation's replay (`grms.federation.federation`): at one instant
completions and queue starts on all machines, then messages that take time, each with all that it leads to, then
rounds of offers, then arrivals in the order (submit time, site, job), each decided, with every message that
takes no time, before the next. Nothing fails. So where messages arrive at once the schedule has to be that of
the federation kernel, job by job: one decision, two hosts.

A site may die, and begins anew with its journal at that same instant; its machine goes on. Whoever has asked it
meanwhile has the answer then, and nobody is told that it was away.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from grms.federation.federation import Site
from grms.lrms import base
from grms.policy.rebalancing import period_of
from grms.simulation.clock import ManualClock
from grms.simulation.delayed import AT_ONCE, Delays, PatientNetwork
from grms.simulation.state_host import Host, Make, Question, Reply
from grms.site.model.commands import (
    AnswerStatus,
    Append,
    Command,
    LrmsCancel,
    LrmsSubmit,
    ProtectGuests,
    Refuse,
    SendResolve,
)
from grms.site.model.events import AccountDue, PartnerUp, Restarted, RoundDue, Submit
from grms.site.model.jobs import Load, Request
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.records import Record
from grms.site.model.settings import Limits, PartnerSettings, SiteSettings
from grms.site.runtime.executor_queue import cancelled
from grms.site.scheduler.state import SiteState
from lrms_sim.machine.stepped import Machine
from lrms_sim.workload.jobs import concatenate
from lrms_sim.workload.schedule import MachineInfo, Schedule

Journal = Callable[[str, tuple[Record, ...]], None]
"""Makes records of a site durable."""

_ENDLESS = Limits(
    jobs_open=2**40,
    jobs_open_per_user=2**40,
    jobs_kept=1000,
    keys_kept=1,
    guests_open=2**40,
    answers_kept=2**40,
)


class ReplayedSite(Host):
    """A site of a replay: its state above its machine.

    Attributes:
        period: of its rounds of offers, seconds; infinity for none.
        keys: of the jobs that its machine has had; empty for one that has left the queue.
        owes_pass: jobs have left its queue, which must make a pass.
    """

    def __init__(self, replay: "LockStepReplay", index: int, site: Site) -> None:
        partners = tuple(
            PartnerSettings(other.name, other.processors)
            for other in replay.sites
            if other is not site
        )
        settings = SiteSettings(
            name=site.name,
            processors=site.processors,
            partners=partners,
            transfer=site.transfer_policies,
            location=site.location_policy,
            partners_asked=site.partners_asked,
            reoffer=site.reoffer,
            limits=_ENDLESS,
            discipline=site.discipline,
            requeue="allow",
        )
        if settings.account is None:
            # Whoever keeps no account counts no returns.
            settings = replace(settings, empty_returns=2**31 - 1)
        super().__init__(
            settings=settings, clock=replay.clock, network=replay.network, sites=replay.by_name
        )
        self.replay = replay
        self.index = index
        self.machine = Machine(site.processors, site.discipline)
        self.period = period_of(site.reoffer)
        self.keys: list[str] = []
        self.rows: list[int] = []
        self.owes_pass = False
        self.protects = True
        self.next_look = self.next_round = math.inf
        self.per_event = site.discipline.per_event
        self._known: set[str] = set()
        self._kept: list[tuple[Make, Reply]] = []
        self._said: list[Question] | None = None

    # --- life ----------------------------------------------------------------------------------

    def start(self, records: Iterable[Record] = ()) -> None:
        """Begins with what the journal holds; no partner is ever away.

        While it finds out what its machine has, it says nothing; after that it hears what it was asked.
        """
        self.state = SiteState(self.settings, records)
        said = self._said = []
        for partner in self.settings.partners:
            self._meet(partner)
        self.happen(lambda i: Restarted(i, self.load()))
        self.up, self._said = True, None
        self._outbox += said
        self._pump()
        kept, self._kept = self._kept, []
        for make, reply in kept:
            self.ask(make, reply)

    def _meet(self, partner: PartnerSettings) -> None:
        self.happen(lambda i: PartnerUp(i, self.load(), partner.name, partner.processors))

    def die(self, records: Iterable[Record]) -> None:
        """Ends at once, and begins anew at this instant, when all others have done what they do."""
        self._kept += self._askers.values()
        self._die()
        self.clock.after(0.0, self.start, records)

    def ask(self, make: Make, reply: Reply) -> None:
        """Puts a question to the site, which it answers as soon as it is up."""
        if self.up:
            super().ask(make, reply)
        else:
            self._kept.append((make, reply))

    def _append(self, command: Append) -> None:
        if self.replay.journal is not None:
            self.replay.journal(self.settings.name, command.records)

    def _send(self, command: Question) -> None:
        if self._said is None:
            super()._send(command)
        else:
            self._said.append(command)

    def _answered(self, command: Question, answer: Command | None) -> None:
        assert not isinstance(answer, Refuse), f"nothing fails here: {answer}"
        if (
            isinstance(command, SendResolve)
            and isinstance(answer, AnswerStatus)
            and answer.status is None
        ):
            # One of the two has died before the offer was noted there: it is made once more.
            offer = self.state.undecided_offer(command.partner, command.offer)
            if offer is not None:
                self._send(offer)
                return
        super()._answered(command, answer)

    # --- the machine ---------------------------------------------------------------------------

    def load(self) -> Load:
        """Returns the load of the machine."""
        state = self.machine.state
        return Load(
            state.processors,
            state.processors_free,
            state.processors_waiting,
            self._starts_now,
            processors_idle=self.machine.idle,
        )

    def _starts_now(self, processors: int, requested_time: float) -> bool:
        # As far as its clock is behind, nothing of its own is due there.
        self.machine.advance(max(self.machine.now, self.clock.now), inclusive=not self.per_event)
        return self.machine.starts_now(processors=processors, requested_time=requested_time)

    def tell(self) -> None:
        """Tells the state what the machine has done."""
        started, ended = self.machine.collect()
        preempted = self.machine.preempted()
        for job in started:
            self._started(job)
        for job in ended:
            self._ended(job)
        for job in preempted:
            self._preempted(job)

    def _started(self, job: int) -> None:
        start_time = self.machine.times_of(job)[0] + self.clock_offset
        self.lrms_told(base.Started(self.keys[job], start_time))

    def _ended(self, job: int) -> None:
        run_time = self.replay.run_time[self.rows[job]]
        end_time = self.machine.times_of(job)[1] + self.clock_offset
        self.lrms_told(
            base.Ended(self.keys[job], base.LrmsEnd(Outcome.COMPLETED, end_time, run_time))
        )

    def _preempted(self, job: int) -> None:
        start_time, end_time = self.machine.times_of(job)
        key, self.keys[job] = self.keys[job], ""
        end = base.LrmsEnd(Outcome.PREEMPTED, end_time + self.clock_offset, end_time - start_time)
        self.lrms_told(base.Ended(key, end))

    def _protect(self, command: ProtectGuests) -> None:
        if command.on is self.protects:
            return
        self.protects = command.on
        self.machine.advance(self.clock.now)
        number = {key: job for job, key in enumerate(self.keys) if key}
        for guest in self.state.memory.at_lrms.values():
            if guest.protected and guest.state is JobState.RUNNING:
                (self.machine.show if command.on else self.machine.hide)(number[guest.lrms_key])
                self.owes_pass |= not command.on

    def _start_guest(self, key: str, row: int, request: Request, *, seen: bool) -> None:
        job = self.machine.start_guest(
            now=self.clock.now,
            processors=request.processors,
            requested_time=request.requested_time,
            run_time=self.replay.run_time[row],
            seen=seen,
            rank=row,
        )
        assert job == len(self.keys) - 1
        self.lrms_told(base.Accepted(key))
        self._started(job)

    def _take_back(self, key: str, row: int, request: Request, place: float) -> None:
        # Before those who wait and came later; they get new numbers. The pass is made when all is done.
        here = list(self.state.memory.at_lrms)
        behind = [
            self.keys.index(other)
            for other in here[here.index(key) + 1 :]
            if other in self.keys and math.isnan(self.machine.times_of(self.keys.index(other))[0])
        ]
        like = {
            "processors": request.processors,
            "requested_time": request.requested_time,
            "run_time": self.replay.run_time[row],
            "waiting_since": place,
            "rank": row,
        }
        job, others = self.machine.take_back(like, behind, submit_time=self.clock.now)
        assert job == len(self.keys) - 1
        assert others == list(range(job + 1, job + 1 + len(behind)))
        for other in behind:
            self.keys.append(self.keys[other])
            self.rows.append(self.rows[other])
            self.keys[other] = ""
        self.owes_pass = True
        self.lrms_told(base.Accepted(key))

    def _lrms_submit(self, command: LrmsSubmit) -> None:
        key, replay = command.lrms_key, self.replay
        if command.lookup and key in self._known:
            # Its state has begun anew, and its machine has not.
            self.lrms_told(base.Accepted(key))
            if key not in self.keys:
                self._let_go(key)
            return
        row = int(command.payload)
        self._known.add(key)
        self.keys.append(key)
        self.rows.append(row)
        replay.executed_on[row] = self.index
        if command.at_once:
            seen = command.protected and self.protects
            self._start_guest(key, row, command.request, seen=seen)
            return
        if command.place is not None:
            self._take_back(key, row, command.request, command.place)
            return
        self.machine.submit(
            submit_time=self.clock.now,
            processors=command.request.processors,
            requested_time=command.request.requested_time,
            run_time=replay.run_time[row],
            rank=row,
        )
        self.lrms_told(base.Accepted(key))
        if not self.per_event:
            # The pass that belongs to this arrival, before the next one is decided.
            self.machine.advance(self.clock.now)
        self.tell()

    def _lrms_cancel(self, command: LrmsCancel) -> None:
        # In a replay nobody ends a job but to let a partner have it; it may have been let go before.
        assert command.only_waiting
        job = self.keys.index(command.lrms_key) if command.lrms_key in self.keys else -1
        done = job >= 0 and self.machine.withdraw(job, pass_later=True)
        if done:
            self.keys[job] = ""
            self.owes_pass = True
        life = self._life
        for news in cancelled(command, done=done):
            self.lrms_told(news)
        if done and self._life == life:
            self._let_go(command.lrms_key)

    def _let_go(self, key: str) -> None:
        self.lrms_told(base.Ended(key, base.LrmsEnd(Outcome.CANCELLED, self.clock.now, 0.0)))

    # --- rounds --------------------------------------------------------------------------------

    def round_after(self, now: float) -> float:
        """Returns when it holds its next round, by its own clock, after a moment; both in true seconds."""
        ahead, period = self.clock_offset, self.period
        count = 1 + math.floor((now + ahead) / period)
        while count * period - ahead <= now:
            count += 1  # the sum above is rounded
        return count * period - ahead

    def hold_round(self) -> None:
        """Offers what waits; the pass that follows from it is made when all have had their turn."""
        replay = self.replay
        self.machine.advance(self.clock.now, inclusive=not self.per_event)
        replay.holding = self.settings.name
        life = -1
        while life != self._life:
            # Who has died meanwhile is told once more, unless it was over.
            life, rounds = self._life, self.state.memory.rounds
            if life == 0 or rounds.open or rounds.begun < self.clock.now:
                self.happen(lambda i: RoundDue(i, self.load()))
                replay.settle()
        replay.holding = ""
        self.make_pass()
        replay.make_passes()

    def make_pass(self) -> None:
        """Makes the pass that follows from jobs that have left the queue."""
        self.owes_pass = False
        self.machine.make_pass()
        self.tell()


class LockStepReplay:
    """A replay of a federation through site states.

    Attributes:
        clock: the virtual clock.
        hosts: the same in site order.
        run_time: of each job, seconds.
        executed_on: index of the site that has each job; -1 while nobody has.
        holding: the site whose round of offers is under way; empty between rounds.

    Args:
        sites: as for `grms.federation.federation.replay`.
        journal: is given the name of a site and records of it, before what depends on them is done;
            by default none are kept.
        rng: draws which answers are later than others; needed where some are.

    Raises:
        ValueError: a site has nodes or prefers cheaper partners, with delays one makes passes per event, there are more or fewer clocks
            than sites, or there is nothing to draw from.
    """

    site: type[ReplayedSite] = ReplayedSite

    def __init__(
        self,
        sites: Sequence[Site],
        journal: Journal | None = None,
        *,
        delays: Delays = AT_ONCE,
        rng: np.random.Generator | None = None,
    ) -> None:
        for site in sites:
            if site.cheaper is not None:
                raise ValueError(
                    f"site {site.name!r} prefers partners where a job costs less, which the state of a site does "
                    "not; replay it with grms.federation"
                )
            if site.nodes is not None:
                raise ValueError(
                    f"site {site.name!r} has nodes, of which the state of a site knows nothing; replay it "
                    "with grms.federation.replay"
                )
        if delays != AT_ONCE:
            _check(sites, delays)
        self.sites = tuple(sites)
        self.clock = ManualClock(-math.inf)
        self.network = PatientNetwork(self.clock, delays, rng)
        self.journal = journal
        self.holding = ""
        self._jobs, origin, rows = concatenate([site.jobs for site in sites])
        self._origin = origin.astype(np.int16)
        self._log_job_id = np.array(
            [sites[i].jobs.job_id[row] for i, row in zip(origin, rows, strict=True)], np.int64
        )
        self.run_time: list[float] = self._jobs.run_time.tolist()
        self.executed_on = np.full(len(self._jobs), -1, np.int16)
        self.by_name: dict[str, Host] = {}
        self.hosts = [self.site(self, index, site) for index, site in enumerate(sites)]
        self.by_name |= {host.settings.name: host for host in self.hosts}
        for host, offset in zip(self.hosts, delays.clocks, strict=False):
            host.clock_offset = offset
        self._holders = [host for host in self.hosts if host.period < math.inf]
        self._strict = [host for host in self.hosts if host.settings.account is not None]
        if self._strict and len(self._jobs):
            self._begin_strict(float(self._jobs.submit_time[0]))

    def _begin_strict(self, first: float) -> None:
        # Accounts and rounds begin with the first arrival.
        if any(host.per_event for host in self.hosts):
            raise ValueError(
                "where guests are sent home no site of this replay makes passes per event"
            )
        for host in self._strict:
            rules = host.settings.account
            assert rules is not None
            host.next_look = rules.every * math.ceil(first / rules.every)
        for host in self._holders:
            host.next_round = host.period * math.ceil(first / host.period)

    def run(self) -> Schedule:
        """Replays all arrivals and runs the machines empty."""
        jobs = self._jobs
        arrivals = zip(
            jobs.submit_time.tolist(),
            jobs.processors.tolist(),
            jobs.requested_time.tolist(),
            self._origin.tolist(),
            strict=True,
        )
        for host in self.hosts:
            host.start()
        for row, (now, processors, requested_time, home) in enumerate(arrivals):
            self._reach(now)
            self._arrive(self.hosts[home], row, Request(processors, requested_time))
        self._reach(math.inf)
        return self._schedule()

    def _arrive(self, host: ReplayedSite, row: int, request: Request) -> None:
        key = str(row)
        host.happen(lambda i: Submit(i, host.load(), "user", key, "", request, key.encode()))
        self.settle()

    def settle(self) -> None:
        """Does what is due at this instant, with all it leads to: messages arrive, sites restart."""
        while self.clock.next_time <= self.clock.now:
            self.clock.step()
            if not self._strict:
                self.make_passes()
        if self._strict:
            self.make_passes()

    def make_passes(self) -> None:
        """Makes the passes that are owed, in site order, again and again until none is left."""
        while not self.holding and any(host.owes_pass for host in self.hosts):
            for host in self.hosts:
                if host.owes_pass:
                    host.make_pass()

    def advance(self, now: float, *, inclusive: bool = False) -> None:
        """Advances all machines to `now`, in seconds, and reports what happened there.

        If `inclusive`, a machine that makes passes per event also does what is due at this very
        instant, which comes after arrivals.
        """
        self.clock.now = now
        if self._strict:
            self._advance_strictly(now)
            return
        due = [host for host in self.hosts if host.machine.next_event_time <= now]
        for host in due:
            host.machine.advance(now, inclusive=inclusive or not host.per_event)
        for host in due:
            host.tell()
        self.settle()

    def _advance_strictly(self, now: float) -> None:
        # Machines send each other jobs: all that one does is known before the next.
        self.holding = "ends"
        for host in self.hosts:
            if host.machine.next_event_time <= now:
                host.machine.advance(now)
                host.tell()
                self.settle()
        self.holding = ""
        self.settle()

    def _reach_strictly(self, until: float) -> None:
        # As `_reach`; at one moment first ends, then accounts, then rounds.
        while True:
            ends = min(host.machine.next_event_time for host in self.hosts)
            waits = any(host.machine.state.jobs_waiting for host in self.hosts)
            due = min(min(host.next_look, host.next_round) for host in self.hosts)
            if until == math.inf and not waits:
                due = math.inf
            now = min(ends, self.clock.next_time, due)
            if now == math.inf or now > until:
                break
            self.advance(now)
            if due <= now:
                self._look(now)
                self._hold_rounds(now)
        if until < math.inf:
            self.advance(until)

    def _look(self, now: float) -> None:
        self.holding = "accounts"
        for host in self._strict:
            rules = host.settings.account
            assert rules is not None
            if host.next_look <= now:
                host.next_look += rules.every
                host.happen(AccountDue)
        self.holding = ""
        self.settle()

    def _hold_rounds(self, now: float) -> None:
        for host in self._holders:
            if host.next_round <= now:
                host.next_round = host.round_after(now)
                if host.machine.state.jobs_waiting:
                    host.hold_round()

    def _reach(self, until: float) -> None:
        # What happens up to a moment, each at its own; what arrivals come before is left over.
        (self._reach_strictly if self._strict else self._reach_freely)(until)

    def _reach_freely(self, until: float) -> None:
        clock = self.clock
        while True:
            ends = after = math.inf
            for host in self.hosts:
                moment = host.machine.next_event_time
                if host.per_event:
                    after = min(after, moment)
                else:
                    ends = min(ends, moment)
            due, holders = self._next_round()
            now = min(ends, clock.next_time, due)
            if after < min(now, until):
                self.advance(after, inclusive=True)
                continue
            if now == math.inf or now > until:
                break
            self.advance(now)
            if due <= now:
                for host in holders:
                    if host.machine.state.jobs_waiting:
                        host.hold_round()
        if until < math.inf:
            self.advance(until)

    def _next_round(self) -> tuple[float, list[ReplayedSite]]:
        # When the next rounds are held, and who holds them; while nobody waits there are none.
        due: float = math.inf
        holders: list[ReplayedSite] = []
        if any(host.machine.state.jobs_waiting for host in self._holders):
            for host in self._holders:
                moment = host.round_after(self.clock.now)
                if moment < due:
                    due, holders = moment, []
                if moment == due:
                    holders.append(host)
        return due, holders

    def _schedule(self) -> Schedule:
        start_time = np.full(len(self._jobs), np.nan)
        end_time = np.full(len(self._jobs), np.nan)
        for host in self.hosts:
            # One that has left the queue has started elsewhere.
            ran = np.flatnonzero([bool(key) for key in host.keys])
            rows = np.array(host.rows, np.int64)[ran]
            start_time[rows] = host.machine.start_time[ran]
            end_time[rows] = host.machine.end_time[ran]
        return Schedule(
            jobs=self._jobs,
            start_time=start_time,
            end_time=end_time,
            machines=tuple(MachineInfo(site.name, site.processors) for site in self.sites),
            submitted_to=self._origin,
            executed_on=self.executed_on,
            log_job_id=self._log_job_id,
        )


def _check(sites: Sequence[Site], delays: Delays) -> None:
    for site in sites:
        if site.discipline.per_event:
            raise ValueError(
                f"site {site.name!r}: a discipline that makes passes per event is not replayed with delays"
            )
    if delays.clocks and len(delays.clocks) != len(sites):
        raise ValueError(f"{len(delays.clocks)} clocks for {len(sites)} sites")
