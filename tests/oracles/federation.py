"""Several sites that exchange jobs on one clock, as plainly as it can be written.

A second, independent reading of docs/disciplines.md ("Federations") and of paper 003 (Fölling,
Grimme, Lepping, Papaspyrou: Decentralized Grid Scheduling with Evolutionary Fuzzy Systems),
sections 3 and 4.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from lrms_sim.workload.jobs import JobTable
from tests.oracles.constraints import Delegation, PlainBooks, PlainConstraints
from tests.oracles.disciplines import PASSES, PER_EVENT
from tests.oracles.machine import PlainJob, PlainMachine, Running, plain_jobs
from tests.oracles.questions import question


@dataclass(frozen=True, slots=True)
class PlainRule:
    """IF nwp is near `nwp_gamma` and njp is near `njp_gamma` THEN `accept` (+1 or -1)."""

    nwp_gamma: float
    nwp_sigma: float
    njp_gamma: float
    njp_sigma: float
    accept: int


@dataclass(frozen=True, slots=True)
class PlainConstrained:
    """A policy that decides among what constraints allow."""

    rails: PlainConstraints
    inner: "Literal['awf', 'keep', 'agree'] | tuple[PlainRule, ...]" = "agree"


PlainPolicy = Literal["awf", "keep", "agree"] | tuple[PlainRule, ...] | PlainConstrained
"""A transfer policy: accept when fit, always keep, always agree, a TSK rule base, or with constraints."""


@dataclass(frozen=True, slots=True)
class PlainSite:
    """A site: its machine, its users' jobs, and how it deals with its partners.

    `location` is "awrt" (of completed jobs), "awrt-open" (open ones count as well), or the names of
    the partners to ask, in that order. A partner without a policy is neither asked nor answered.
    Waiting jobs are offered again at the multiples of `reoffer` seconds; with `rounds`, their order,
    most questions and longest pause, questions are spared. With `partners_asked` so many are asked in
    one decision; where that is not all of them, equals by AWRT take turns. `groups` are those of the
    jobs' users; all 5 where it is None. `rogue` is the word of a site that is no honest partner.
    """

    name: str
    processors: int
    discipline: str
    jobs: JobTable
    policies: Mapping[str, PlainPolicy]
    location: Literal["awrt", "awrt-open"] | tuple[str, ...] = "awrt"
    groups: Sequence[int] | None = None
    reoffer: float | None = None
    rounds: tuple[str, int | None, float | None] | None = None
    rogue: str = ""
    partners_asked: int | None = None

    @property
    def bounded(self) -> bool:
        """Whether there are partners that a decision does not come to."""
        return self.partners_asked is not None and self.partners_asked < len(self.policies)


@dataclass(slots=True)
class PlainFederation:
    """The state of a replay, and its result by row of the merged workload.

    Attributes:
        sites: the sites.
        machines: their machines, in the same order.
        home: of each job the index of the site whose user sent it.
        executed_on: of each job the index of the site that was given it.
        delivered: for each (home, partner) the completed delegated jobs' sums of p·m·(C-r) and
            of p·m.
        at: the jobs that have not ended, by site and row.
        books: what the sites have noted for their constraints.
        questions: of the round that is held, or was last.
        declined: (partner, job) of every no of it.
        asked: how often a home has asked a partner, by (home, partner).
        nos: when a partner declined a waiting job in any round, by (partner, row).
        aside: guests that were not let into the queue, by site.
        all_in: the last job has arrived.
        closest_call: the smallest |Σφy|/Σφ of any decision of a rule base. Two right programs
            may round a sum next to zero to different signs, so comparisons leave out examples
            where this is tiny.
    """

    sites: Sequence[PlainSite]
    machines: list[PlainMachine]
    home: list[int] = field(default_factory=list)
    executed_on: list[int] = field(default_factory=list)
    delivered: dict[tuple[int, int], list[float]] = field(default_factory=dict)
    at: dict[int, dict[int, PlainJob]] = field(default_factory=dict)
    books: PlainBooks = field(default_factory=PlainBooks)
    questions: int = 0
    declined: list[tuple[int, PlainJob]] = field(default_factory=list)
    asked: dict[tuple[int, int], int] = field(default_factory=dict)
    nos: dict[tuple[int, int], list[float]] = field(default_factory=dict)
    closest_call: float = math.inf
    aside: dict[int, list[PlainJob]] = field(default_factory=dict)
    all_in: bool = False

    def start_time(self) -> list[float]:
        """Returns the start time of every job."""
        return [self.machines[on].start_time[row] for row, on in enumerate(self.executed_on)]

    def end_time(self) -> list[float]:
        """Returns the end time of every job."""
        return [self.machines[on].end_time[row] for row, on in enumerate(self.executed_on)]

    def starts_now(self, site: int, job: PlainJob, now: float) -> bool:
        """Returns whether a site's batch system would start a job at once."""
        return question(self.sites[site].discipline)(self.machines[site], job, now)

    def keeps(self, home: int, partner: int, job: PlainJob, now: float, *, waits: bool) -> bool:
        """Returns whether a site would rather run its own job itself than offer it."""
        policy = self.sites[home].policies[self.sites[partner].name]
        if self.sites[home].rogue == "free-rider-all":
            return False
        if self.sites[home].rogue == "takes-all":
            return True
        if self.sites[home].rogue in {"awf", "black-hole"}:
            policy = "awf"
        if isinstance(policy, PlainConstrained):
            if policy.rails.start_now and not waits and self.starts_now(home, job, now):
                return True
            policy = policy.inner
        return self.accepts(home, policy, job, now, offered=False)

    def takes(self, partner: int, home: int, job: PlainJob, now: float) -> bool:
        """Returns whether a site takes a job that another one offers."""
        site = self.sites[partner]
        policy = site.policies[self.sites[home].name]
        if site.rogue in {"black-hole", "starts-nothing", "takes-all", "liar"}:
            return True
        if site.rogue.startswith("free-rider"):
            return False
        if site.rogue in {"awf", "awf-taker"}:
            policy = "awf"
        if isinstance(policy, PlainConstrained):
            rails = policy.rails
            if not (
                self.books.guest_is_short(rails, partner, job)
                and self.books.in_balance(rails, partner, home, job)
                and (not rails.start_now or self.starts_now(partner, job, now))
            ):
                return False
            policy = policy.inner
        return self.accepts(partner, policy, job, now, offered=True)

    def accepts(
        self, site: int, policy: PlainPolicy, job: PlainJob, now: float, *, offered: bool
    ) -> bool:
        """Returns whether a policy wants a job, the site's own or (`offered`) a partner's."""
        machine = self.machines[site]
        if policy == "agree":
            return offered
        if policy == "keep":
            return not offered
        if policy == "awf":
            return job.processors <= machine.processors_free(now)
        assert not isinstance(policy, str | PlainConstrained)
        others = [other for other in machine.waiting if other is not job]
        nwp = sum(other.processors for other in others) / machine.processors
        njp = 100.0 * job.processors / machine.processors
        signed, certainty = rule_base_output(policy, nwp, njp)
        self.closest_call = min(self.closest_call, certainty)
        return signed > 0

    def partners(self, home: int, now: float) -> list[int]:
        """Returns the partners of a site in the order in which it asks them now."""
        site = self.sites[home]
        others = [k for k, other in enumerate(self.sites) if other.name in site.policies]
        if site.location not in {"awrt", "awrt-open"}:
            index = {other.name: k for k, other in enumerate(self.sites)}
            return [index[name] for name in site.location if index[name] in others]

        def awrt_of_delivered(partner: int) -> float:
            weighted, weight = self.delivered.get((home, partner), (0.0, 0.0))
            completed = weighted / weight if weight > 0 else 0.0
            open_jobs = [
                job for job in self.at.get(partner, {}).values() if self.home[job.row] == home
            ]
            open_weight = sum(job.requested_time * job.processors for job in open_jobs)
            if site.location != "awrt-open" or not open_weight:
                return completed
            submitted = sum(
                job.requested_time * job.processors * job.submit_time for job in open_jobs
            )
            waited = now * open_weight - submitted
            if not all(float(each).is_integer() for each in (now, open_weight, submitted)):
                # Sums in another order may round to the other side.
                self.closest_call = 0.0
            if waited / open_weight <= completed:
                return completed
            return (weighted + waited) / (weight + open_weight)

        asked = {k: self.asked.get((home, k), 0) if site.bounded else 0 for k in others}
        return sorted(others, key=lambda k: (awrt_of_delivered(k), asked[k], k))

    def place(self, home: int, job: PlainJob, now: float, *, waits: bool = False) -> int:
        """Returns the index of the site that gets a job that comes, or waits in home's queue."""
        site = self.sites[home]
        spares = waits and site.rounds is not None
        questions = 0
        for partner in self.partners(home, now):
            other = self.sites[partner]
            if job.processors > other.processors:
                continue
            if self.keeps(home, partner, job, now, waits=waits):
                return home
            if spares and self.spared(home, partner, job, now):
                continue
            policy = site.policies[other.name]
            trusting = site.rogue in {"awf", "black-hole", "free-rider-all"}
            if (
                isinstance(policy, PlainConstrained)
                and not trusting
                and not self.books.trusts(policy.rails, home, partner, job, now)
            ):
                continue
            self.books.offers[home] = self.books.offers.get(home, 0) + 1
            self.questions += 1
            questions += 1
            self.asked[home, partner] = self.asked.get((home, partner), 0) + 1
            if site.name in other.policies and self.takes(partner, home, job, now):
                self.books.delegations.append(Delegation(home, partner, job, now))
                return partner
            if spares:
                self.declined.append((partner, job))
                self.nos.setdefault((partner, job.row), []).append(now)
            if site.bounded and questions == site.partners_asked:
                break
        return home

    def spared(self, home: int, partner: int, job: PlainJob, now: float) -> bool:
        """Returns whether home does not put a question that a frugal round would not have."""
        _, questions, pause = self.sites[home].rounds or ("", None, None)
        if questions is not None and self.questions >= questions:
            return True
        for other, before in self.declined:
            if (
                other == partner
                and before.processors <= job.processors
                and before.requested_time <= job.requested_time
            ):
                return True
        nos = self.nos.get((partner, job.row), [])
        period = self.sites[home].reoffer or 0.0
        return bool(
            nos and pause is not None and now < nos[-1] + min(period * 2 ** (len(nos) - 1), pause)
        )

    def offer_again(self, home: int, now: float) -> None:
        """Goes once through a site's queue, offers its own users' jobs, and makes one pass."""
        machine = self.machines[home]
        waiting = len(machine.waiting)
        self.questions = 0
        self.declined = []
        jobs = [job for job in machine.waiting if self.home[job.row] == home]
        if jobs and (self.sites[home].rounds or ("queue",))[0] == "widest":
            jobs.sort(key=lambda job: -job.processors)
            first = min(jobs, key=lambda job: (job.processors, job.requested_time))
            jobs = [first, *(job for job in jobs if job is not first)]
        for job in jobs:
            target = self.place(home, job, now, waits=True)
            if target != home:
                machine.waiting.remove(job)
                if machine.reservation.pop(job.row, None) is not None:
                    machine.ended_early = True
                self.executed_on[job.row] = target
                self.at.setdefault(target, {})[job.row] = self.at[home].pop(job.row)
                self.bring(target, job, now)
        if len(machine.waiting) < waiting:
            PASSES[self.sites[home].discipline](machine, now)

    def bring(self, site: int, job: PlainJob, now: float) -> None:
        """Puts a job into a site's queue, or a guest aside of one that starts nothing."""
        if (
            self.sites[site].rogue == "starts-nothing"
            and self.home[job.row] != site
            and not self.all_in
        ):
            self.aside.setdefault(site, []).append(job)
            return
        self.machines[site].submit(job)
        PASSES[self.sites[site].discipline](self.machines[site], now)

    def let_go(self, now: float, *, last: bool) -> None:
        """Puts what was kept aside into the queues once the last job has arrived."""
        if self.all_in or not last:
            return
        self.all_in = True
        for site, jobs in sorted(self.aside.items()):
            for job in jobs:
                self.machines[site].submit(job)
            PASSES[self.sites[site].discipline](self.machines[site], now)

    def end(self, site: int, running: Running) -> None:
        """Ends a job, and lets its home know if it ran elsewhere."""
        self.machines[site].end(running)
        job = running.job
        del self.at[site][job.row]
        home = self.home[job.row]
        if home == site:
            self.books.completed.append((home, job))
        else:
            (mine,) = [d for d in self.books.delegations if d.job.row == job.row]
            mine.ended = running.end_time
            told = job.run_time
            if self.sites[site].rogue == "liar":
                told = min(running.end_time - mine.since, job.requested_time)
            # What the home knows of the job from now on is what it was told.
            self.books.completed.append((home, replace(job, run_time=told)))
            mine.told = told
            sums = self.delivered.setdefault((home, site), [0.0, 0.0])
            weight = told * job.processors
            sums[0] += weight * (running.end_time - job.submit_time)
            sums[1] += weight


def rule_base_output(rules: Sequence[PlainRule], nwp: float, njp: float) -> tuple[float, float]:
    """Returns Σφy (equations 2 and 7) and |Σφy|/Σφ, how far its sign is from a matter of rounding.

    Far from every rule all memberships underflow to zero, which is certain too; where they
    nearly do, nothing is.
    """
    signed = 0.0
    total = 0.0
    exponents = []
    for rule in rules:
        exponent = (
            -((nwp - rule.nwp_gamma) ** 2) / rule.nwp_sigma**2
            - (njp - rule.njp_gamma) ** 2 / rule.njp_sigma**2
        )
        membership = math.exp(exponent)
        signed += membership * rule.accept
        total += membership
        exponents.append(exponent)
    nearest = max(exponents, default=-math.inf)
    if nearest < -750:
        return 0.0, 1.0
    if nearest < -700:
        return signed, 0.0
    return signed, abs(signed) / total


def replay_plainly(sites: Sequence[PlainSite]) -> PlainFederation:
    """Replays all sites' workloads on one clock.

    Jobs are numbered by their place in the order (submit time, site, row in the site's table).
    """
    machines = [
        PlainMachine(site.processors, per_event=site.discipline in PER_EVENT) for site in sites
    ]
    state = PlainFederation(sites, machines)
    state.books.sizes = [site.processors for site in sites]
    numbered = sorted(
        (job.submit_time, index, job.row, job)
        for index, site in enumerate(sites)
        for job in plain_jobs(site.jobs, site.groups)
    )
    arrivals = [replace(job, row=row) for row, (_, _, _, job) in enumerate(numbered)]
    state.home = [index for _, index, _, _ in numbered]
    per_event = [k for k, site in enumerate(sites) if site.discipline in PER_EVENT]
    batched = [k for k in range(len(sites)) if k not in per_event]
    round_after = -math.inf
    while arrivals or any(machine.running or machine.waiting for machine in machines):
        next_arrival = [arrivals[0].submit_time] if arrivals else []
        now = min([*(machine.next_event_time for machine in machines), *next_arrival])
        rounds = {
            k: next_multiple(site.reoffer, round_after)
            for k, site in enumerate(sites)
            if site.reoffer and machines[k].waiting
        }
        now = min([now, *rounds.values()])
        round_after = now
        for k in batched:
            for running in machines[k].due(now):
                state.end(k, running)
        for k in batched:
            PASSES[sites[k].discipline](machines[k], now)
        for k, moment in rounds.items():
            if moment == now:
                state.offer_again(k, now)
        while arrivals and arrivals[0].submit_time == now:
            job = arrivals.pop(0)
            k = state.place(state.home[job.row], job, now)
            state.executed_on.append(k)
            state.at.setdefault(k, {})[job.row] = job
            state.bring(k, job, now)
        state.let_go(now, last=not arrivals)
        for k in per_event:
            for running in machines[k].due(now):
                state.end(k, running)
                PASSES[sites[k].discipline](machines[k], now)
    return state


def next_multiple(period: float, after: float) -> float:
    """Returns the first multiple of a period that is after a moment."""
    return period * (math.floor(after / period) + 1)
