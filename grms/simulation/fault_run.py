"""One run of the fault test: sites, users and misfortunes drawn from one seed, then healing.

While the faults last, messages are lost, doubled, delayed and reordered, sites are cut off from
each other, daemons die between any two steps and start again, clocks differ. Then everything is
mended, and when the sites have come to rest:

- every job whose submission was acknowledged has ended, and its user sees how;
- every job that was not cancelled has run exactly once, to its end;
- a cancelled job has run at most once, and its home says rightly whether it ran to its end;
- no job was ever given to batch systems twice;
- nobody waits for anybody, and nothing is left in any queue;
- what the journal holds is what the site knows;
- what brokers have reserved meanwhile is as they were told (`grms.simulation.broker_actor`).

In half of the runs batch systems are behind the port and have moods: they answer late or not at all,
forget jobs, start them anew, let others hold and cancel them (`grms.simulation.scripted_executor`). No job runs twice
for that either; one of which the batch system cannot say what it did has ended as unknown or lost.

In many runs batch systems forget ended jobs, journals are compacted while their sites run, and
operators reload other policies and partners. In some, one site is a Byzantine partner for good: it talks rubbish,
lies, has its journal put back from an older copy or, with constraints, starts nothing (`grms.simulation.byzantine_peers`). Then an operator at each
honest site resubmits what the Byzantine partner holds beyond its deadline, and of the honest sites

- every acknowledged job has ended, and was run by honest sites at most once;
- one that ended anywhere but at the Byzantine partner has run to its end;
- no job was with the Byzantine partner for longer than its deadline without being shown as overdue.

In runs with arrays and dependent jobs, all honest, each element has run once, and the order was kept
(`grms.simulation.dependent_jobs`).

With `returns` batch systems also end partners' jobs for other ones, and these run again: `grms.simulation.preemption` says
what has to hold then. With `one_way` links also break in one direction, and some sites only call out: partners' calls
reach them over tunnels that break, and two such sites meet at a relay that dies now and then. All that is said above of a job's run is said of the one that was not ended so.

And of every submission that led to an offer: the partner was the right one to be asked first, by
records alone (`grms.simulation.order`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from grms.policy.constraints import ExchangeConstraints
from grms.policy.location import AwrtLocation, FixedOrder, LocationPolicy
from grms.policy.transfer import (
    AcceptWhenFit,
    Constrained,
    Gaussian,
    Rule,
    RuleBase,
    TransferPolicy,
)
from grms.simulation.actors import Operators, Users, Wish
from grms.simulation.batch_system import FakeLrms
from grms.simulation.broker_actor import Brokers, resource
from grms.simulation.byzantine_peers import (
    ANSWERING,
    BYZANTINE_PARTNERS,
    CONSTRAINED_BYZANTINE,
    EVERY_BYZANTINE,
    RETURNING_BYZANTINE,
    TAKERS,
    PutBack,
)
from grms.simulation.clock import ManualClock
from grms.simulation.dependent_jobs import DependencyChecker, draw_dependent_jobs
from grms.simulation.fault_injection import Crashes, Faults, Timing
from grms.simulation.findings import Judgement, Verdict, unfinished
from grms.simulation.network import Network
from grms.simulation.order import NumberChecker, OrderChecker
from grms.simulation.preemption import (
    Preemptions,
    RerunChecker,
    asked_by_user,
    checkpoint_of_user,
    draw_returns,
)
from grms.simulation.promises import PromiseCheckers, drawn_constraints, with_account
from grms.simulation.random_source import RandomSource
from grms.simulation.rebalance_checks import draw_rounds
from grms.simulation.scripted_executor import drawn_lrms_faults
from grms.simulation.scripted_site import ScriptedSite
from grms.simulation.simulated_site import SimulatedSite
from grms.simulation.state_host import StateFactory
from grms.simulation.tunnels import Tunnels
from grms.site.model.commands import Command
from grms.site.model.events import Event, PartnerFaulty, PoliciesChanged
from grms.site.model.jobs import Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import EpochBegun, JobLeft, JobReleased, JobReoffered, Record
from grms.site.model.settings import PartnerSettings, SiteSettings
from grms.site.runtime.executor_queue import LrmsQueue
from grms.site.scheduler.state import SiteState

FAULTS_UNTIL = 60.0
"""When all faults end, seconds."""

PATIENCE = 2000.0
"""Time after that for the sites to come to rest, seconds."""

SETTLED_S = 600.0
"""Within that time after the last fault everything has to have ended, seconds.

That of a Byzantine partner is over when an operator takes the last job out of its hands.
"""

PREEMPTIONS_AFTER = 30.0
"""Time after that during which batch systems still preempt, seconds: that is none of their faults."""

_GIVE = RuleBase((Rule(Gaussian(0.0, 1.0), Gaussian(0.0, 1.0), accept=False),), "give")
CONSTRAINED_JOBS = 12
"""Additional jobs if sites have exchange constraints: who has given a job comes back with
another."""

RETURNING_JOBS = 20
"""Additional jobs if these are sent home: machines have to be full for jobs to go elsewhere."""

_PLAN, _NETWORK, _SITES, _USERS, _WORLD = range(5)
_MOODS, _MOODY = 20, 30
_RESOURCES, _BROKERS, _CONSTRAINTS, _ROUNDS, _ARRAYS, _RETURNS, _ONE_WAY = 6, 7, 8, 9, 10, 11, 12
_ACCOUNTS = 13


@dataclass(slots=True)
class Trial:
    """A run.

    Attributes:
        factory: makes the state of a site; a test of this test makes one that is wrong.
        scripted: batch systems are behind the port in every run, and not in half of them.
        queue: the class of their queues of commands.
        rails: honest sites keep to constraints, so tight that honest partners break promises too.
        reoffers: honest sites offer again what waits.
        rogues: one site is a Byzantine partner in every run, and not in half of them; it may be of any kind.
            Operators also take back what it was to start at once, and has not ended.
        arrays: users also hand in arrays and dependent jobs (`dependent_jobs`); all sites are honest.
        returns: batch systems end partners' jobs for other ones, and these go home (`preemption`).
        one_way: links also break in one direction, and some sites only call out.
        account: honest sites keep an account of themselves (`strict-exchange`), and look at it every few seconds.
    """

    seed: int
    factory: StateFactory = SiteState
    tell: Callable[[str], None] | None = None
    on_lost: Literal["wait", "resubmit"] = "wait"
    site: type[SimulatedSite] = SimulatedSite
    scripted: bool = False
    queue: type[LrmsQueue] = LrmsQueue
    rails: bool = False
    reoffers: bool = False
    rogues: bool = False
    arrays: bool = False
    returns: bool = False
    one_way: bool = False
    account: bool = False
    clock: ManualClock = field(default_factory=ManualClock)
    sites: dict[str, SimulatedSite] = field(default_factory=dict)
    _problems: list[str] = field(default_factory=list)
    _byzantine: str = ""
    _manner: str = ""
    _users: Users = field(init=False)
    _operators: Operators = field(init=False)
    _numbers: NumberChecker = field(default_factory=NumberChecker)
    _judges: dict[str, OrderChecker] = field(default_factory=dict)
    _judged: int = 0
    _partners: dict[str, tuple[PartnerSettings, ...]] = field(default_factory=dict)
    _promises: PromiseCheckers = field(default_factory=PromiseCheckers)
    _tunnels: Tunnels | None = None
    _settled: float = 0.0

    def run(self) -> Verdict:
        """Runs it, and judges."""
        plan = RandomSource(self.seed, _PLAN)
        faults = Faults(
            loss=(0.0, 0.1, 0.3)[plan.integer(0, 2)],
            duplication=(0.0, 0.2)[plan.integer(0, 1)],
            late=(0.0, 0.1, 0.3)[plan.integer(0, 2)],
        )
        network = Network(self.clock, RandomSource(self.seed, _NETWORK), faults)
        self._promises.rails = self._drawn_rails()
        self._make_sites(plan, network)
        if self.reoffers:
            draw_rounds(RandomSource(self.seed, _ROUNDS), self.sites.values())
        returns = RandomSource(self.seed, _RETURNS) if self.returns else None
        if returns is not None:
            draw_returns(returns, self.sites.values())
        self._make_operators()
        draws = RandomSource(self.seed, _USERS)
        self._users = Users(self.clock, draws, self.sites, self._byzantine, self._problems)
        self._make_wishes(plan, returns)
        if self.arrays:
            draw_dependent_jobs(RandomSource(self.seed, _ARRAYS), self._users, FAULTS_UNTIL)
        self._make_faults(plan, network)
        self._make_world(RandomSource(self.seed, _WORLD + 1))
        brokers = Brokers(self.clock, RandomSource(self.seed, _BROKERS), self._problems)
        brokers.want(self._honest())
        for site in self.sites.values():
            site.start()
        if returns is not None:
            Preemptions.drawn(returns, FAULTS_UNTIL + PREEMPTIONS_AFTER).begin(self.sites.values())
        self.clock.advance(FAULTS_UNTIL)
        self._heal(faults)
        until = FAULTS_UNTIL
        while not self._at_rest() and until < FAULTS_UNTIL + PATIENCE:
            until += 10.0
            self.clock.advance(until)
        # A Byzantine partner's last fault is over when the last job is taken out of its hands.
        self._settled = until - max(FAULTS_UNTIL, self._operators.last)
        if self._settled > SETTLED_S:
            self._problems.append(f"not at rest {self._settled:.0f} s after the last fault")
        # What is late still comes, and must not do any harm.
        for site in self.sites.values():
            site.timing.probe_interval = 0.0
        while self.clock.now < until + PATIENCE and self.clock.step():
            pass
        brokers.judge(self._honest())
        return self._verdict(brokers.answers, network.blocked)

    def _drawn_rails(self) -> ExchangeConstraints | None:
        rails = None
        if self.rails:
            rails = drawn_constraints(RandomSource(self.seed, _CONSTRAINTS))
        if self.account:
            rails = with_account(RandomSource(self.seed, _ACCOUNTS), rails)
        return rails

    def _heal(self, faults: Faults) -> None:
        faults.heal()
        for site in self.sites.values():
            site.crashes.probability = 0.0
            site.crashes.down_mean = 1.0
            if isinstance(site, ScriptedSite):
                site.lrms_faults.calm()

    # --- the plan ------------------------------------------------------------------------------

    def _make_sites(self, plan: RandomSource, network: Network) -> None:
        names = ["a", "b", "c", "d"][: plan.integer(2, 4)]
        sizes = {name: plan.integer(2, 6) for name in names}
        draws, world = RandomSource(self.seed, _SITES), RandomSource(self.seed, _WORLD)
        resources = RandomSource(self.seed, _RESOURCES)
        if (world.chance(0.5) or self.rogues) and not self.arrays:
            self._draw_byzantine(world, names)
        probability = (0.0, 0.005, 0.02)[plan.integer(0, 2)]
        lrms_faults = drawn_lrms_faults(RandomSource(self.seed, _MOODS), always=self.scripted)
        for name in names:
            others = [other for other in names if other != name]
            giver = plan.chance(0.5)
            if name == self._byzantine:
                giver = self._gives(giver)
            policy: TransferPolicy = _GIVE if giver else AcceptWhenFit()
            location: LocationPolicy = (
                AwrtLocation(open_jobs="count") if plan.chance(0.7) else FixedOrder(tuple(others))
            )
            make = (
                (EVERY_BYZANTINE | RETURNING_BYZANTINE)[self._manner]
                if name == self._byzantine
                else self.site
            )
            more: dict[str, Any] = {}
            if lrms_faults is not None and make is SimulatedSite:
                make = ScriptedSite
                more = {
                    "lrms_faults": replace(lrms_faults),
                    "moody": RandomSource(self.seed, _MOODY + len(self.sites)),
                    "queue": self.queue,
                }
            self.sites[name] = make(
                settings=SiteSettings(
                    name=name,
                    processors=sizes[name],
                    epoch=plan.integer(1, 3),
                    partners=tuple(
                        PartnerSettings(other, sizes[other] if plan.chance(0.5) else 0)
                        for other in others
                    ),
                    transfer=dict.fromkeys(others, self._within(policy, name)),
                    location=location,
                    resources=(resource(resources),),
                    on_lost=self.on_lost,
                    decision_time_max=20.0,
                    retry_first_s=0.5,
                    retry_most_s=8.0,
                    run_time_grace=0.1,
                    clock_grace=120.0,
                    elapsed_grace=0.1,
                    undecided_time_max=60.0,
                    delegated_time_max=300.0,
                    probe_first_s=3.0,
                    probe_most_s=60.0,
                ),
                clock=self.clock,
                clock_offset=plan.between(-50.0, 50.0),
                network=network,
                draws=draws,
                lrms=FakeLrms(
                    self.clock,
                    sizes[name],
                    self._run_time,
                    forget_after=2.0 if world.chance(0.5) else math.inf,
                ),
                sites=self.sites,
                factory=self.factory,
                crashes=Crashes(probability),
                timing=Timing(),
                tell=self.tell,
                watch=self._watch,
                **more,
            )

    def _make_operators(self) -> None:
        rails = self._promises.rails
        held = rails is not None and rails.promise is not None and self.rogues
        self._operators = Operators(
            clock=self.clock,
            rogue=self._byzantine,
            answers=self._manner in ANSWERING,
            tolerance=rails.promise.tolerance if held and rails and rails.promise else math.inf,
            healed=FAULTS_UNTIL,
            problems=self._problems,
        )

    def _draw_byzantine(self, world: RandomSource, names: list[str]) -> None:
        manners = CONSTRAINED_BYZANTINE if self.rails else BYZANTINE_PARTNERS
        if self.rogues:
            manners = EVERY_BYZANTINE
        if self.returns:
            manners = manners | RETURNING_BYZANTINE
        self._manner = list(manners)[world.integer(0, len(manners) - 1)]
        self._byzantine = names[world.integer(0, len(names) - 1)]

    def _gives(self, giver: bool) -> bool:
        # Whether the Byzantine partner offers what it has, and takes nothing.
        if self._manner in {"put back", "hoards places"}:
            return True
        return giver and not (self.rogues and self._manner in TAKERS)

    def _within(self, policy: TransferPolicy, site: str) -> TransferPolicy:
        # A Byzantine partner keeps to nothing; within constraints who gives takes, too.
        rails = self._promises.rails
        if rails is None or site == self._byzantine:
            return policy
        return Constrained(rails) if policy is _GIVE else Constrained(rails, policy)

    def _run_time(self, payload: bytes) -> float:
        return self._users.wishes[payload].run_time

    def _make_wishes(self, plan: RandomSource, returns: RandomSource | None) -> None:
        names = list(self.sites)
        rush = plan.between(0.0, FAULTS_UNTIL - 20.0) if plan.chance(0.5) else None
        count = plan.integer(3, 10) + (CONSTRAINED_JOBS if self.rails or self.reoffers else 0)
        count += RETURNING_JOBS if self.returns else 0
        for number in range(count):
            home = names[plan.integer(0, len(names) - 1)]
            run_time = 0.1 + plan.exponential(8.0)
            submit_time = plan.between(0.0, FAULTS_UNTIL - 10.0)
            if rush is not None:
                submit_time = rush + 0.1 * submit_time
            wish = Wish(
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
            if returns is not None:
                wish.request = asked_by_user(returns, wish.request)
                wish.checkpoint = checkpoint_of_user(returns, wish.request)
            self._users.want(f"{home} {number}".encode(), wish)

    def _make_faults(self, plan: RandomSource, network: Network) -> None:
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
        if self.one_way:
            draws = RandomSource(self.seed, _ONE_WAY)
            self._tunnels = Tunnels.drawn(draws, names, self.clock, network, FAULTS_UNTIL)

    def _make_world(self, world: RandomSource) -> None:
        # What else happens to sites: their journals are compacted, their policies reloaded.
        for site in self.sites.values():
            self._partners[site.settings.name] = site.settings.partners
            for _ in range(world.integer(0, 2)):
                self.clock.after(world.between(0.0, FAULTS_UNTIL), site.compact)
            for _ in range(world.integer(0, 2)):
                self.clock.after(world.between(0.0, FAULTS_UNTIL), self._reload, site, world)
            if site.settings.name != self._byzantine:
                self._operators.look_after(site)
            if isinstance(site, PutBack):
                begin = world.between(0.0, 0.5 * FAULTS_UNTIL)
                self.clock.after(begin, site.make_copy)
                self.clock.after(world.between(begin, 0.9 * FAULTS_UNTIL), site.lose)

    def _reload(self, site: SimulatedSite, world: RandomSource) -> None:
        # Other policies; and a partner may be taken off the list, to come back a little later.
        everybody = self._partners[site.settings.name]
        names = [partner.name for partner in everybody]
        gone = names[world.integer(0, len(names) - 1)] if world.chance(0.3) else ""
        giver = world.chance(0.5)
        if self.rogues and site.settings.name == self._byzantine:
            giver = self._gives(giver)
        policy: TransferPolicy = _GIVE if giver else AcceptWhenFit()
        location: LocationPolicy = AwrtLocation(open_jobs="count")
        if world.chance(0.4):
            location = FixedOrder(tuple(name for name in reversed(names) if name != gone))
        fewer = tuple(partner for partner in everybody if partner.name != gone)
        self._put_into_force(site, fewer, policy, location)
        if gone:
            delay = world.between(1.0, 10.0)
            location = AwrtLocation(open_jobs="count")
            self.clock.after(delay, self._put_into_force, site, everybody, _GIVE, location)

    def _put_into_force(
        self,
        site: SimulatedSite,
        partners: tuple[PartnerSettings, ...],
        policy: TransferPolicy,
        location: LocationPolicy,
    ) -> None:
        policy = self._within(policy, site.settings.name)
        transfer = {partner.name: policy for partner in partners}
        site.settings = replace(
            site.settings, partners=partners, transfer=transfer, location=location
        )
        if site.up:
            site.happen(
                lambda i: PoliciesChanged(
                    i, transfer, location, partners, None, site.settings.reoffer
                )
            )

    # --- those who look ------------------------------------------------------------------------

    def _watch(self, site: SimulatedSite, event: Event, commands: list[Command]) -> None:
        name = site.settings.name
        judge = self._judges.get(name)
        self._problems += self._numbers.judge(site.state, event, commands)
        if event.id == 1 or judge is None:
            # It has just started: the second opinion begins with the journal, too.
            if self._tunnels is not None:
                self._tunnels.begin(name)
            if judge is not None:
                self._judged += judge.judged
            judge = self._judges[name] = OrderChecker()
            for record in site.journal:
                judge.follow(record)
            if name != self._byzantine:
                self._promises.begin(name, site.settings.processors, site.journal)
                self._operators.begin(site)
        wrong = judge.judge(site.state, event, commands, site.now, self._promises.of(name))
        if wrong:
            self._problems.append(f"{name}: {wrong}")
        self._operators.follow(site, commands)
        if isinstance(event, PartnerFaulty):
            book = site.state.partners[event.partner]
            if book.listed and not book.faulty:
                self._problems.append(f"{name}: {event.partner} talks rubbish and is not faulty")

    # --- the verdict ---------------------------------------------------------------------------

    def _at_rest(self) -> bool:
        return (
            all(
                site.up
                and not site.state.memory.jobs_open
                and not unfinished(site.state, self._byzantine)
                for site in self._honest()
            )
            and self._users.content
        )

    def _honest(self) -> list[SimulatedSite]:
        return [site for name, site in self.sites.items() if name != self._byzantine]

    def _verdict(self, reserved: int, blocked: int) -> Verdict:
        judgement = Judgement(
            self.sites, self._byzantine, self._manner, self.on_lost, self._problems
        )
        wishes = self._users.wishes
        runs = all_runs = judgement.runs(wishes)
        reruns = RerunChecker(
            {site.settings.name: site for site in self._honest()},
            self.on_lost == "wait",
            self._problems,
            self.sites.values(),
        )
        if self.returns:
            runs = reruns.last_runs(wishes, all_runs)
        reruns.judge_protection()
        ended = judgement.jobs(wishes, runs)
        judgement.honest_sites()
        hopeless = DependencyChecker(self.sites, self._users, all_runs, self._problems).judge()
        return Verdict(
            hopeless=hopeless,
            held=self._noted(JobReleased),
            seed=self.seed,
            problems=tuple(self._problems),
            jobs=len(ended),
            delegated=sum(bool(job.partner) for job in ended),
            cancelled=sum(job.outcome is Outcome.CANCELLED for job in ended),
            crashes=sum(site.crash_count for site in self.sites.values()),
            twice=sum(
                len(each) > 1
                for payload, each in runs.items()
                if wishes[payload].home != self._byzantine
            ),
            rogue=self._manner,
            resubmitted=len(self._operators.resubmitted),
            taken_back=len(self._operators.taken_back),
            longest=self._operators.longest,
            settled=self._settled,
            blocked=blocked,
            epochs=self._noted(EpochBegun),
            judged=self._judged + sum(judge.judged for judge in self._judges.values()),
            reserved=reserved,
            breaches=self._promises.breaches,
            reoffered=self._noted(JobReoffered),
            moved=self._noted(JobLeft),
            sent_home=reruns.returns,
            lost_s=reruns.lost,
            kept_s=reruns.kept,
            **self._found_out(),
        )

    def _noted(self, kind: type[Record]) -> int:
        journals = (site.journal for site in self.sites.values())
        return sum(isinstance(record, kind) for journal in journals for record in journal)

    def _found_out(self) -> dict[str, int]:
        books = [
            site.state.partners[self._byzantine]
            for site in self._honest()
            if self._byzantine in site.state.partners
        ]
        return {
            "faults": sum(book.faults for book in books),
            "disbelieved": sum(book.disbelieved for book in books),
        }


def run_trial(
    seed: int,
    *,
    factory: StateFactory = SiteState,
    tell: Callable[[str], None] | None = None,
    on_lost: Literal["wait", "resubmit"] = "wait",
    rails: bool = False,
    reoffers: bool = False,
    rogues: bool = False,
    arrays: bool = False,
    returns: bool = False,
    one_way: bool = False,
    account: bool = False,
) -> Verdict:
    """Runs one trial of a seed; `tell` gets the story, line by line.

    `factory` makes the state of a site. With `on_lost` "resubmit" a job may run twice. With `rails`
    honest sites keep to exchange constraints, with `reoffers` they offer waiting jobs again, with
    `rogues` one site is a Byzantine partner of any kind, with `arrays` users hand in arrays and dependent jobs, with
    `returns` batch systems end partners' jobs for other ones, with `one_way` links break in one direction too, with
    `account` honest sites keep an account of themselves.
    """
    return Trial(
        seed,
        factory,
        tell,
        on_lost,
        rails=rails,
        reoffers=reoffers,
        rogues=rogues,
        arrays=arrays,
        returns=returns,
        one_way=one_way,
        account=account,
    ).run()
