"""Site states conducted on one virtual clock: the replay of a federation through its daemons' core.

The order of things is that of a federation's replay (`grms.federation.federation`): at one instant
completions and queue starts on all machines, then arrivals in the order (submit time, site, job),
each decided, with every message that takes, before the next. Messages arrive at once, and nothing
fails. So the schedule has to be that of the federation kernel, job by job: one decision, two
hosts.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from grms.federation.federation import Site
from grms.policy.rounds import period_of
from grms.site.core.state import SiteState
from grms.site.facts.commands import (
    AnswerOffer,
    AnswerReport,
    AnswerStatus,
    Append,
    Command,
    LrmsCancel,
    LrmsSubmit,
    Publish,
    PublishRound,
    ReplyJob,
    SendOffer,
    SendReport,
    SendResolve,
    SendWithdraw,
)
from grms.site.facts.events import (
    Event,
    LrmsAccepted,
    LrmsEnded,
    LrmsStarted,
    OfferAnswered,
    OfferReceived,
    PartnerUp,
    ReportAnswered,
    ReportReceived,
    ResolveReceived,
    Restarted,
    RoundDue,
    StatusAnswered,
    Submit,
    WithdrawReceived,
)
from grms.site.facts.jobs import Load, Request
from grms.site.facts.lifecycle import Outcome
from grms.site.facts.records import Record
from grms.site.facts.settings import Limits, PartnerSettings, SiteSettings
from lrms_sim.jobs import concatenate
from lrms_sim.schedule import MachineInfo, Schedule
from lrms_sim.stepped import Machine

Journal = Callable[[str, tuple[Record, ...]], None]
"""Makes records of a site durable."""

Question = SendOffer | SendReport | SendResolve | SendWithdraw
"""What one site asks another."""


class _Host:
    # One site: its state, its machine, and the shell between them. Its clock may be ahead.

    def __init__(self, federation: "ConductedReplay", index: int, site: Site) -> None:
        self.federation = federation
        self.index = index
        self.state = SiteState(
            SiteSettings(
                name=site.name,
                processors=site.processors,
                partners=tuple(
                    PartnerSettings(other.name, other.processors)
                    for other in federation.sites
                    if other is not site
                ),
                transfer=site.transfer_policies,
                location=site.location_policy,
                partners_asked=site.partners_asked,
                reoffer=site.reoffer,
                limits=_ENDLESS,
            )
        )
        self.machine = Machine(site.processors, site.discipline)
        self.per_event = site.discipline.per_event
        self.period = period_of(site.reoffer)
        self.next_round = -math.inf
        self.keys: list[str] = []
        self.known: set[str] = set()
        self.rows: list[int] = []
        self.askers: dict[int, tuple[_Host, int, Question]] = {}
        self.life = 0
        self.last_id = 0
        self.ahead = 0.0
        self.owes_pass = False

    def load(self) -> Load:
        state = self.machine.state
        return Load(
            state.processors, state.processors_free, state.processors_waiting, self.starts_now
        )

    def starts_now(self, processors: int, requested_time: float) -> bool:
        # As far as its clock is behind, nothing of its own is due there.
        self.machine.advance(
            max(self.machine.now, self.federation.now), inclusive=not self.per_event
        )
        return self.machine.starts_now(processors=processors, requested_time=requested_time)

    def happen(self, kind: type[Event], *values: Any) -> None:
        # Hands an event over; what comes of it waits in the federation's queue.
        self.last_id += 1
        self.federation.events += 1
        now = self.federation.now + self.ahead
        commands = self.state.handle(kind(self.last_id, *values), now)
        self.federation.waiting.extend((self, command) for command in commands)

    def advance(self, now: float) -> None:
        # Everything due by now; at a machine that makes passes per event the ends of this very
        # instant come after its arrivals.
        if self.machine.next_event_time <= now:
            self.machine.advance(now, inclusive=not self.per_event or now == math.inf)
            self.tell()

    def cancel(self, command: LrmsCancel) -> None:
        # In a replay nobody ends a job but to let a partner have it; it may have been let go before.
        assert command.only_waiting
        job = self.keys.index(command.lrms_key) if command.lrms_key in self.keys else -1
        if job >= 0 and self.machine.withdraw(job, pass_later=True):
            self.keys[job] = ""
            self.owes_pass = True
            self.let_go(command.lrms_key)

    def let_go(self, key: str) -> None:
        self.happen(LrmsEnded, key, Outcome.CANCELLED, self.federation.now, 0.0)

    def hold_round(self) -> None:
        # Offers what waits; the pass that follows from it is made when all have had their turn.
        federation = self.federation
        self.machine.advance(federation.now, inclusive=not self.per_event)
        federation.holding = self.state.settings.name
        life = -1
        while life != self.life:
            # Who has died meanwhile is told once more, unless it was over.
            life, rounds = self.life, self.state.memory.rounds
            if life == 0 or rounds.open or rounds.begun < federation.now:
                self.happen(RoundDue, self.load())
                federation.settle()
        federation.holding = ""
        self.make_pass()

    def make_pass(self) -> None:
        # The pass that follows from jobs that have left the queue.
        self.owes_pass = False
        self.machine.make_pass()
        self.tell()
        self.federation.settle()

    def tell(self) -> None:
        # Tells the state what the machine has done.
        started, ended = self.machine.collect()
        for job in started:
            start_time = self.machine.times_of(job)[0] + self.ahead
            self.happen(LrmsStarted, self.keys[job], start_time)
        for job in ended:
            run_time = self.federation.run_time[self.rows[job]]
            end_time = self.machine.times_of(job)[1] + self.ahead
            self.happen(LrmsEnded, self.keys[job], Outcome.COMPLETED, end_time, run_time)

    def submit(self, command: LrmsSubmit) -> None:
        federation = self.federation
        if command.lookup and command.lrms_key in self.known:
            # Its state has begun anew, and its machine has not.
            self.happen(LrmsAccepted, command.lrms_key)
            if command.lrms_key not in self.keys:
                self.let_go(command.lrms_key)
            return
        row = int(command.payload)
        self.known.add(command.lrms_key)
        self.keys.append(command.lrms_key)
        self.rows.append(row)
        self.machine.submit(
            submit_time=federation.now,
            processors=command.request.processors,
            requested_time=command.request.requested_time,
            run_time=federation.run_time[row],
        )
        federation.executed_on[row] = self.index
        self.happen(LrmsAccepted, command.lrms_key)
        if not self.per_event:
            # The pass that belongs to this arrival, before the next one is decided.
            self.machine.advance(federation.now)
        self.tell()


_ENDLESS = Limits(
    jobs_open=2**40, jobs_open_per_user=2**40, jobs_kept=1000, guests_open=2**40, answers_kept=2**40
)


class ConductedReplay:
    """A replay of a federation through site states.

    Attributes:
        sites: the sites.
        now: the virtual clock, seconds.
        events: how many events the states have handled.
        waiting: commands that are not carried out yet, each with the site that wants it.
        holding: the site whose round of offers is under way; empty between rounds.

    Args:
        sites: as for `grms.federation.federation.replay`.
        journal: is given the name of a site and records of it, before what depends on them is
            done; by default none are kept.
    """

    def __init__(self, sites: Sequence[Site], journal: Journal | None = None) -> None:
        self.sites = tuple(sites)
        self.now = -math.inf
        self.events = 0
        self.holding = ""
        self.waiting: deque[tuple[_Host, Command]] = deque()
        self._journal = journal
        self._jobs, origin, rows = concatenate([site.jobs for site in sites])
        self._origin = origin.astype(np.int16)
        self._log_job_id = np.array(
            [sites[i].jobs.job_id[row] for i, row in zip(origin, rows, strict=True)], np.int64
        )
        self.run_time: list[float] = self._jobs.run_time.tolist()
        self.executed_on = np.full(len(self._jobs), -1, np.int16)
        self.hosts = [_Host(self, index, site) for index, site in enumerate(sites)]
        self._by_name = {site.name: host for site, host in zip(sites, self.hosts, strict=True)}

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
            self._meet(host)
        for row, (now, processors, requested_time, home) in enumerate(arrivals):
            self._reach(now)
            host = self.hosts[home]
            request = Request(processors, requested_time)
            payload = str(row).encode()
            host.happen(Submit, host.load(), "user", str(row), "", request, payload)
            self.settle()
        self._reach(math.inf)
        return self._schedule()

    def _reach(self, now: float) -> None:
        # What happens up to a moment; infinity for all of it.
        self._hold_rounds(now)
        self.advance(now)

    def restart(self, site: str, records: Iterable[Record]) -> None:
        """Ends the state of a site and begins another with its journal; its machine goes on.

        What it was about to do is lost with it, and so is what it has asked. What it was asked, and has not
        answered, it is asked again.

        Args:
            site: its name.
            records: of its journal.
        """
        host = self._by_name[site]
        host.life += 1
        unanswered, host.askers = host.askers, {}
        others = [(one, command) for one, command in self.waiting if one is not host]
        self.waiting.clear()
        host.state = SiteState.recover(host.state.settings, records)
        self._meet(host)
        host.happen(Restarted, host.load())
        self.settle()
        self.waiting.extend(others)
        self.waiting.extend(
            (asker, asked) for asker, life, asked in unanswered.values() if asker.life == life
        )

    def _meet(self, host: _Host) -> None:
        for other in self.sites:
            if other.name != host.state.settings.name:
                host.happen(PartnerUp, host.load(), other.name, other.processors)

    def _hold_rounds(self, until: float) -> None:
        # The rounds up to a moment, before its arrivals: each site at the multiples of its period,
        # after what the machines do by themselves. While nobody waits there is nothing to hold.
        holders = [host for host in self.hosts if host.period < math.inf]
        while True:
            now = min((host.next_round for host in holders), default=math.inf)
            waiting = sum(host.machine.state.jobs_waiting for host in holders)
            if now > until or (not waiting and until == math.inf):
                return
            if waiting:
                self.advance(now)
            for host in holders:
                if host.next_round <= now:
                    if host.machine.state.jobs_waiting:
                        host.hold_round()
                    past = now if waiting else until
                    host.next_round = host.period * (1.0 + math.floor(past / host.period))

    def advance(self, now: float) -> None:
        """Brings all machines to a moment, seconds, and tells what has happened there."""
        self.now = now
        for host in self.hosts:
            host.advance(now)
        self.settle()

    def settle(self) -> None:
        """Carries out commands until nothing waits."""
        while self.waiting:
            self.step()

    def step(self) -> None:
        """Carries out the next command that waits."""
        host, command = self.waiting.popleft()
        if isinstance(command, Append):
            if self._journal is not None:
                self._journal(host.state.settings.name, command.records)
        elif isinstance(command, LrmsSubmit):
            host.submit(command)
        elif isinstance(command, LrmsCancel):
            host.cancel(command)
        elif isinstance(command, SendOffer):
            self._offer(host, command)
        elif isinstance(command, SendReport):
            self._report(host, command)
        elif isinstance(command, SendResolve | SendWithdraw):
            self._resolve(host, command)
        else:
            self._answer(host, command)

    def _answer(self, host: _Host, command: Command) -> None:
        if isinstance(command, ReplyJob | Publish | PublishRound):
            return
        asker, life, asked = host.askers.pop(command.cause)
        if asker.life != life:
            return  # who has asked has died since
        if isinstance(command, AnswerOffer):
            assert isinstance(asked, SendOffer)
            asker.happen(OfferAnswered, asker.load(), asked.partner, asked.offer, command.accepted)
        elif isinstance(command, AnswerStatus):
            assert isinstance(asked, SendResolve | SendWithdraw)
            if command.status is None and isinstance(asked, SendResolve):
                # One of the two has died before the offer was noted there: it is made once more.
                offer = asker.state.undecided_offer(asked.partner, asked.offer)
                if offer is not None:
                    self._offer(asker, offer)
                    return
            told = (asked.partner, asked.offer, asked.cause, command.status, command.completion)
            asker.happen(StatusAnswered, asker.load(), *told)
        else:
            assert isinstance(command, AnswerReport), f"nothing fails here: {command}"
            assert isinstance(asked, SendReport)
            asker.happen(ReportAnswered, asked.partner, (asked.completion.offer,))

    def _offer(self, home: _Host, command: SendOffer) -> None:
        partner = self._by_name[command.partner]
        partner.askers[partner.last_id + 1] = (home, home.life, command)
        partner.happen(
            OfferReceived,
            partner.load(),
            home.state.settings.name,
            command.offer,
            command.settled_below,
            command.request,
            command.payload,
            command.reserve,
        )

    def _resolve(self, home: _Host, command: SendResolve | SendWithdraw) -> None:
        # A site that has begun anew asks after its jobs; one whose job has left has it started.
        partner, name = self._by_name[command.partner], home.state.settings.name
        partner.askers[partner.last_id + 1] = (home, home.life, command)
        if isinstance(command, SendResolve):
            partner.happen(ResolveReceived, name, command.offer, command.confirm)
        else:
            partner.happen(WithdrawReceived, name, command.offer, command.cancel)

    def _report(self, guest: _Host, command: SendReport) -> None:
        home = self._by_name[command.partner]
        home.askers[home.last_id + 1] = (guest, guest.life, command)
        home.happen(ReportReceived, home.load(), guest.state.settings.name, (command.completion,))

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
