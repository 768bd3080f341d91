"""One run of the fault test: sites, users and misfortunes drawn from one seed, then healing.

While the faults last, messages are lost, doubled, delayed and reordered, sites are cut off from
each other, daemons die between any two steps and start again, clocks differ. Then everything is
mended, and when the sites have come to rest:

- every job whose submission was acknowledged has ended, and its user sees how;
- every job that was not cancelled has run exactly once, to its end;
- a cancelled job has run at most once, and its home says rightly whether it ran to its end;
- no job was ever given to batch systems twice;
- nobody waits for anybody, and nothing is left in any queue;
- what the journal holds is what the site knows.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from grms.policy.location import AwrtLocation, FixedOrder, LocationPolicy
from grms.policy.transfer import AcceptWhenFit, Gaussian, Rule, RuleBase, TransferPolicy
from grms.site.commands import Command, ReplyJob
from grms.site.events import Cancel, Submit
from grms.site.jobs import HomeJob, Request
from grms.site.lifecycle import JobState, Outcome
from grms.site.settings import PartnerSettings, SiteSettings
from grms.site.state import SiteState
from grms.testing.clock import ManualClock
from grms.testing.draws import Draws
from grms.testing.faults import Crashes, Faults, Timing
from grms.testing.lrms import FakeLrms, FakeLrmsJob
from grms.testing.network import Network
from grms.testing.site import SimulatedSite, StateFactory

FAULTS_UNTIL = 60.0
"""When everything is mended, seconds."""

PATIENCE = 2000.0
"""How long after that the sites may take to come to rest, seconds."""

_GIVE = RuleBase((Rule(Gaussian(0.0, 1.0), Gaussian(0.0, 1.0), accept=False),), "give")
"""Offers every own job, and declines every other."""

_PLAN, _NETWORK, _SITES, _USERS = range(4)


@dataclass(slots=True)
class _Wish:
    # A job that a user wants run: what is true of it, whatever sites say.
    home: str
    key: str
    request: Request
    run_time: float
    submit_time: float
    cancel_time: float | None
    job_id: str = ""
    cancel_told: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a run.

    Attributes:
        seed: of the run.
        problems: what was not as it has to be, in sentences; empty where all was well.
        jobs: how many were acknowledged.
        delegated: how many of these ran elsewhere.
        cancelled: how many of these ended cancelled.
        crashes: how often daemons died.
        twice: how many ran more than once; a problem unless jobs are resubmitted.
    """

    seed: int
    problems: tuple[str, ...]
    jobs: int
    delegated: int
    cancelled: int
    crashes: int
    twice: int


@dataclass(slots=True)
class Trial:
    """A run.

    Attributes:
        seed: of everything in it.
        factory: makes the state of a site; a test of this test makes one that is wrong.
        tell: is told the story, line by line.
        on_lost: what sites do about lost partners.
        site: the class of the simulated daemons.
    """

    seed: int
    factory: StateFactory = SiteState
    tell: Callable[[str], None] | None = None
    on_lost: Literal["wait", "resubmit"] = "wait"
    site: type[SimulatedSite] = SimulatedSite
    clock: ManualClock = field(default_factory=ManualClock)
    sites: dict[str, SimulatedSite] = field(default_factory=dict)
    _wishes: dict[bytes, _Wish] = field(default_factory=dict)
    _problems: list[str] = field(default_factory=list)

    def run(self) -> Verdict:
        """Runs it, and judges."""
        plan = Draws(self.seed, _PLAN)
        faults = Faults(
            loss=(0.0, 0.1, 0.3)[plan.integer(0, 2)],
            duplication=(0.0, 0.2)[plan.integer(0, 1)],
            late=(0.0, 0.1, 0.3)[plan.integer(0, 2)],
        )
        network = Network(self.clock, Draws(self.seed, _NETWORK), faults)
        self._make_sites(plan, network)
        self._make_wishes(plan)
        self._make_faults(plan, network)
        for site in self.sites.values():
            site.start()
        self.clock.advance(FAULTS_UNTIL)
        faults.heal()
        for site in self.sites.values():
            site.crashes.probability = 0.0
            site.crashes.down_mean = 1.0
        until = FAULTS_UNTIL
        while not self._at_rest() and until < FAULTS_UNTIL + PATIENCE:
            until += 10.0
            self.clock.advance(until)
        # What is late still comes, and must not do any harm.
        for site in self.sites.values():
            site.timing.probe_interval = 0.0
        while self.clock.now < until + PATIENCE and self.clock.step():
            pass
        return self._verdict()

    # --- the plan ------------------------------------------------------------------------------

    def _make_sites(self, plan: Draws, network: Network) -> None:
        names = ["a", "b", "c", "d"][: plan.integer(2, 4)]
        sizes = {name: plan.integer(2, 6) for name in names}
        draws = Draws(self.seed, _SITES)
        probability = (0.0, 0.005, 0.02)[plan.integer(0, 2)]
        for name in names:
            others = [other for other in names if other != name]
            giver = plan.chance(0.5)
            policy: TransferPolicy = _GIVE if giver else AcceptWhenFit()
            location: LocationPolicy = (
                AwrtLocation(open_jobs="count") if plan.chance(0.7) else FixedOrder(tuple(others))
            )
            self.sites[name] = self.site(
                settings=SiteSettings(
                    name=name,
                    processors=sizes[name],
                    epoch=plan.integer(1, 3),
                    partners=tuple(
                        PartnerSettings(other, sizes[other] if plan.chance(0.5) else 0)
                        for other in others
                    ),
                    transfer=dict.fromkeys(others, policy),
                    location=location,
                    on_lost=self.on_lost,
                    decision_time_max=20.0,
                    retry_first_s=0.5,
                    retry_most_s=8.0,
                ),
                clock=self.clock,
                clock_offset=plan.between(-50.0, 50.0),
                network=network,
                draws=draws,
                lrms=FakeLrms(self.clock, sizes[name], self._run_time),
                sites=self.sites,
                factory=self.factory,
                crashes=Crashes(probability),
                timing=Timing(),
                tell=self.tell,
            )

    def _run_time(self, payload: bytes) -> float:
        return self._wishes[payload].run_time

    def _make_wishes(self, plan: Draws) -> None:
        names = list(self.sites)
        users = Draws(self.seed, _USERS)
        rush = plan.between(0.0, FAULTS_UNTIL - 20.0) if plan.chance(0.5) else None
        for number in range(plan.integer(3, 10)):
            home = names[plan.integer(0, len(names) - 1)]
            run_time = 0.1 + plan.exponential(8.0)
            submit_time = plan.between(0.0, FAULTS_UNTIL - 10.0)
            if rush is not None:
                submit_time = rush + 0.1 * submit_time
            wish = _Wish(
                home=home,
                key=f"key-{number}",
                request=Request(
                    plan.integer(1, self.sites[home].settings.processors),
                    run_time * plan.between(1.0, 5.0),
                ),
                run_time=run_time,
                submit_time=submit_time,
                cancel_time=(submit_time + plan.exponential(6.0) if plan.chance(0.25) else None),
            )
            payload = f"{home} {number}".encode()
            self._wishes[payload] = wish
            self.clock.after(wish.submit_time, self._submit, payload, users)

    def _make_faults(self, plan: Draws, network: Network) -> None:
        names = list(self.sites)
        for _ in range(plan.integer(0, 3)):
            begin = plan.between(0.0, FAULTS_UNTIL - 5.0)
            duration = plan.between(1.0, FAULTS_UNTIL - begin)
            one = names[plan.integer(0, len(names) - 1)]
            other = names[plan.integer(0, len(names) - 1)]
            if one == other:
                self.clock.after(begin, network.isolate, one, names, duration)
            else:
                self.clock.after(begin, network.cut, one, other, duration)
        for _ in range(plan.integer(0, 3)):
            victim = self.sites[names[plan.integer(0, len(names) - 1)]]
            self.clock.after(plan.between(0.0, FAULTS_UNTIL), victim.crash)

    # --- users ---------------------------------------------------------------------------------

    def _submit(self, payload: bytes, draws: Draws) -> None:
        # Hands the job in, again and again with the same key, until that is acknowledged.
        wish = self._wishes[payload]

        def reply(command: Command) -> None:
            if not isinstance(command, ReplyJob):
                self._problems.append(f"the submission of {payload!r} was refused: {command}")
                return
            if wish.job_id not in {"", command.job_id}:
                self._problems.append(f"{payload!r} is both {wish.job_id} and {command.job_id}")
            if not wish.job_id and wish.cancel_time is not None:
                delay = max(0.0, wish.cancel_time - self.clock.now)
                self.clock.after(delay, self._cancel, wish, draws)
            wish.job_id = command.job_id

        if not wish.job_id:
            home = self.sites[wish.home]
            self.clock.after(draws.between(0.5, 4.0), self._submit, payload, draws)
            home.ask(
                lambda i: Submit(i, home.lrms.load(), "ann", wish.key, "", wish.request, payload),
                reply,
            )

    def _cancel(self, wish: _Wish, draws: Draws) -> None:
        def reply(command: Command) -> None:
            if isinstance(command, ReplyJob):
                wish.cancel_told = True
            else:
                self._problems.append(f"the cancellation of {wish.job_id} was refused: {command}")

        if not wish.cancel_told:
            home = self.sites[wish.home]
            self.clock.after(draws.between(0.5, 4.0), self._cancel, wish, draws)
            home.ask(lambda i: Cancel(i, home.lrms.load(), wish.job_id, "ann"), reply)

    # --- the verdict ---------------------------------------------------------------------------

    def _at_rest(self) -> bool:
        return all(
            site.up and not site.state.memory.jobs_open and not _unfinished(site.state)
            for site in self.sites.values()
        ) and all(
            wish.job_id and (wish.cancel_time is None or wish.cancel_told)
            for wish in self._wishes.values()
        )

    def _verdict(self) -> Verdict:
        runs: dict[bytes, list[FakeLrmsJob]] = {payload: [] for payload in self._wishes}
        for site in self.sites.values():
            for ran in site.lrms.jobs.values():
                runs[ran.payload].append(ran)
        ended: list[HomeJob] = []
        for payload, wish in self._wishes.items():
            job = self.sites[wish.home].state.job(wish.job_id)
            if job is None or job.state is not JobState.ENDED:
                state = "nowhere" if job is None else job.state.name
                self._problems.append(f"{payload!r} ({wish.job_id}) has not ended: {state}")
                continue
            ended.append(job)
            self._judge(wish, job, runs[payload])
        for site in self.sites.values():
            name = site.settings.name
            self._problems += [f"{name}: {what}" for what in _unfinished(site.state)]
            if site.lrms.free != site.lrms.processors or site.lrms.load().processors_waiting:
                self._problems.append(f"{name}: the batch system is not empty")
            self._judge_journal(site)
        return Verdict(
            seed=self.seed,
            problems=tuple(self._problems),
            jobs=len(ended),
            delegated=sum(bool(job.partner) for job in ended),
            cancelled=sum(job.outcome is Outcome.CANCELLED for job in ended),
            crashes=sum(site.crash_count for site in self.sites.values()),
            twice=sum(len(each) > 1 for each in runs.values()),
        )

    def _judge(self, wish: _Wish, job: HomeJob, runs: list[FakeLrmsJob]) -> None:
        name = job.job_id
        if len(runs) > 1 and self.on_lost == "wait":
            self._problems.append(f"{name} was given to batch systems {len(runs)} times")
        if len(runs) > 1 or (self.on_lost == "resubmit" and wish.cancel_time is not None):
            # What a site that was lost did with the job is not the home's to know.
            return
        outcome = runs[0].outcome if runs else None
        if wish.cancel_time is None:
            if outcome is not Outcome.COMPLETED:
                self._problems.append(f"{name} has not run to its end: {outcome}")
            if job.outcome is not Outcome.COMPLETED:
                self._problems.append(f"{name} ran to its end, and its home says {job.outcome}")
        elif (job.outcome is Outcome.COMPLETED) != (outcome is Outcome.COMPLETED):
            self._problems.append(f"{name} is {job.outcome} at home, and in truth {outcome}")
        elif job.outcome not in {Outcome.COMPLETED, Outcome.CANCELLED}:
            self._problems.append(f"{name} was cancelled, and its home says {job.outcome}")

    def _judge_journal(self, site: SimulatedSite) -> None:
        again = SiteState(site.settings, site.journal)
        if known(again) != known(site.state):
            self._problems.append(
                f"{site.settings.name}: the journal says {known(again)}, the site "
                f"{known(site.state)}"
            )


def _unfinished(state: SiteState) -> list[str]:
    found = []
    for name, book in state.partners.items():
        for what, things in (
            ("undecided offers", book.undecided),
            ("open jobs", book.open),
            ("abandoned offers", book.abandoned),
            ("guests", book.guests),
        ):
            if things:
                found.append(f"{what} with {name}: {list(things)}")
    if state.memory.at_lrms or state.memory.unconfirmed:
        found.append(f"jobs thought to be in the batch system: {list(state.memory.at_lrms)}")
    return found


def known(state: SiteState) -> object:
    """Returns what a site knows that has to survive a restart, to compare."""
    memory = state.memory
    jobs = [
        (job.job_id, job.state, job.outcome, job.partner, job.asked, job.end_time)
        for job in memory.jobs.values()
    ]
    books = [
        (
            name,
            book.next_number,
            book.settled(),
            book.consumption,
            book.weighted_response,
            book.epoch,
            book.settled_below,
            sorted(book.answered),
            sorted((offer.epoch, offer.number) for offer in book.guests),
            Counter(type(answer).__name__ for answer in book.answered.values()),
            (book.offered, book.accepted, book.ended, book.guest_offered, book.guest_accepted),
        )
        for name, book in memory.books.items()
    ]
    return jobs, books, memory.next_job, sorted(memory.at_lrms)


def run_trial(
    seed: int,
    *,
    factory: StateFactory = SiteState,
    tell: Callable[[str], None] | None = None,
    on_lost: Literal["wait", "resubmit"] = "wait",
) -> Verdict:
    """Runs one trial.

    Args:
        seed: of everything in it.
        factory: makes the state of a site.
        tell: is told the story, line by line.
        on_lost: what sites do about lost partners. With "resubmit" a job may run twice.
    """
    return Trial(seed, factory, tell, on_lost).run()
