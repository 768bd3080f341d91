"""Strict exchange as a plain program: python strict_exchange.py cases.json.

It shares nothing with Hanse, so that the two can be held against each other, job by job. The rule is that of
docs/strict-exchange.md. A case has `sites` with `processors`, `discipline` (fcfs, easy) and `rule`: G (the batch
system can preempt), C1 (guests run to their end) or R4 (fair exchange); of a site's own jobs every
`checkpoints_every`-th keeps its state every `checkpoint` seconds. `jobs` are rows [submit, run, request,
processors, site], seconds, by submission. Printed are `end` and `site` of each job, and what was asked and lost.
"""

import heapq
import json
import math
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOUR, DAY, PERIOD = 3600.0, 86400.0, 900.0
CAP, DECAY, ALLOWANCE = 0.05, math.exp(-PERIOD / (10 * DAY)), 0.01
Places = list[tuple[float, int]]


@dataclass(eq=False)
class Job:
    """A job; `left` and `asked` are what no checkpoint has kept of run time and request."""

    row: int
    submit: float
    p: float
    request: float
    width: int
    home: int
    every: float
    left: float
    asked: float
    start: float | None = None
    end: float | None = None
    given_at: float = 0.0
    kind: str = ""  # own, protected or preemptible
    place: int = -1
    broken: bool = False
    empty: int = 0
    impact: float = 0.0


@dataclass(eq=False)
class Trust:
    """What a home records of a partner's promise to start accepted jobs at once."""

    open: list[Job] = field(default_factory=list)
    credit: float = 0.0
    debt: float = 0.0
    breaches: int = 0
    suspended: float = -math.inf

    def breach(self, now: float) -> None:
        """Ends the credit, and all offers for a while."""
        self.credit = 0.0
        self.breaches += now >= self.suspended
        self.suspended = max(self.suspended, now + DAY * 2 ** min(self.breaches - 1, 5))

    def review(self, now: float) -> None:
        """Goes once through the open jobs."""
        for job in list(self.open):
            ended = job.end is not None and job.end <= now
            late = (
                (job.end or 0) - job.given_at - job.left
                if ended
                else now - job.given_at - job.asked
            )
            if not job.broken and late > HOUR:
                job.broken = True
                self.breach(now)
            elif not job.broken and ended:
                self.credit += job.asked * job.width
            if ended:
                self.open.remove(job)


def reservation(free: int, releases: Places, width: int) -> tuple[float, int]:
    """Returns when `width` processors are free by requests, and how many beyond them then."""
    time = math.inf
    for end, given in sorted(releases):
        if end > time:
            break
        free += given
        if free >= width and time == math.inf:
            time = end
    return time, free - width


def startable(
    easy: bool, queue: list[Job], view: tuple[int, Places], now: float, *, whole: bool
) -> list[Job]:
    """Returns the jobs of a queue that a pass starts, in order; the shadow knows whole requests."""
    free, releases = view
    chosen, rest, releases = [], list(queue), list(releases)
    while rest and rest[0].width <= free:
        chosen.append(rest.pop(0))
        free -= chosen[-1].width
        releases.append(
            (now + (chosen[-1].request if whole else chosen[-1].asked), chosen[-1].width)
        )
    if easy and len(rest) > 1:
        time, extra = reservation(free, releases, rest[0].width)
        for job in rest[1:]:
            end = now + (job.request if whole else job.asked)
            if job.width <= free and (end <= time or job.width <= extra):
                chosen.append(job)
                free -= job.width
                extra -= job.width if end > time else 0
    return chosen


@dataclass(eq=False)
class Site:
    """A site: its machine, its shadow, its books and its account."""

    index: int
    size: int
    easy: bool
    rule: str
    queue: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)
    arrivals: list[Job] = field(default_factory=list)
    ended: list[Job] = field(default_factory=list)
    due: bool = False  # a pass is due: a job has come back, or credit was lost
    alone_known: int = 0  # of the arrivals, those that the shadow has
    alone_last: float = -math.inf
    alone_queue: list[Job] = field(default_factory=list)
    alone_running: dict[int, Job] = field(default_factory=dict)
    alone_start: dict[int, float] = field(default_factory=dict)
    gain: float = 0.0  # S
    capped: float = 0.0  # SB
    base: float = 0.0  # B
    in_credit: bool = True
    work: float = 0.0  # of own ended jobs: sums of p·m, request·m, p·m·request
    work_asked: float = 0.0
    work_requested: float = 0.0
    taken: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    given: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    done: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    weighted: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    trust: dict[int, Trust] = field(default_factory=lambda: defaultdict(Trust))

    def seen(self) -> list[Job]:
        """Returns the running jobs that the batch system knows of."""
        return [
            j for j in self.running if j.kind == "own" or (j.kind == "protected" and self.in_credit)
        ]

    def idle(self) -> int:
        """Returns the processors with nobody at all on them."""
        return self.size - sum(j.width for j in self.running)

    def view(self) -> tuple[int, Places]:
        """Returns free processors and releases as the batch system sees them."""
        return self.size - sum(j.width for j in self.seen()), [
            ((j.start or 0.0) + j.asked, j.width) for j in self.seen()
        ]

    def starts_now(self, job: Job, now: float) -> bool:
        """Returns whether the batch system would start such a job at once."""
        free, releases = self.view()
        if job.width > free or not self.queue:
            return job.width <= free
        time, extra = reservation(free, releases, self.queue[0].width)
        return self.easy and (job.width <= extra or now + job.asked <= time)

    def look(self, now: float) -> None:
        """Lets the shadow of own jobs alone go on as far as it can; then the sums fade."""
        while True:
            known: Places = []
            limit = now
            for row, job in self.alone_running.items():
                if job.end is not None and job.end <= now:
                    known.append((self.alone_start[row] + job.p, row))
                else:
                    ran = now - job.start if job.start is not None else 0.0
                    limit = min(limit, self.alone_start[row] + ran)
            end = min(known, default=(math.inf, 0))[0]
            waiting = self.alone_known < len(self.arrivals)
            arrival = self.arrivals[self.alone_known].submit if waiting else math.inf
            time = min(end, arrival)
            if time > limit:
                break
            self.alone_last = time
            if end <= arrival:
                for _, row in sorted(one for one in known if one[0] == end):
                    self.book(self.alone_running.pop(row), end)
            else:
                self.alone_queue.append(self.arrivals[self.alone_known])
                self.alone_known += 1
            free = self.size - sum(j.width for j in self.alone_running.values())
            releases = [
                (self.alone_start[r] + j.request, j.width) for r, j in self.alone_running.items()
            ]
            for job in startable(self.easy, self.alone_queue, (free, releases), time, whole=True):
                self.alone_queue.remove(job)
                self.alone_running[job.row], self.alone_start[job.row] = job, time
        self.gain, self.capped, self.base = (
            self.gain * DECAY,
            self.capped * DECAY,
            self.base * DECAY,
        )

    def book(self, job: Job, alone: float) -> None:
        """A job has ended in the shadow."""
        gained = job.p * job.width * (alone - (job.end or 0))
        self.base += job.p * job.width * (alone - job.submit)
        self.gain += gained
        self.capped = min(self.capped + gained, CAP * self.base)

    def owed(self, now: float) -> float:
        """Returns H: what own jobs that wait have lost by now."""
        total, ratio = 0.0, self.work / self.work_asked if self.work_asked else 1.0
        for job in self.queue:
            since = self.alone_start.get(job.row, max(self.alone_last, job.submit))
            if since < now:
                total += ratio * job.request * job.width * (now - since)
        return total

    def takes(self, job: Job, now: float) -> str:
        """Returns how the site takes another's job; an empty text declines."""
        longest = 2 * (self.work_requested / self.work) if self.work else math.inf
        taken = self.taken[job.home] + job.asked * job.width
        protects = job.asked <= longest and taken - 2 * self.given[job.home] <= DAY * self.size
        if job.width > self.idle():
            return ""
        if self.rule != "G" or self.in_credit:
            protects = protects and self.starts_now(job, now)
            if protects and (self.rule != "C1" or self.affords(job, now)):
                return "protected"
        exposed = min(job.asked, job.every) if job.every else job.asked
        return "preemptible" if self.rule == "G" and exposed <= longest else ""

    def affords(self, job: Job, now: float) -> bool:
        """Returns whether the account covers a guest that will run to its end."""
        guests = [j for j in self.running if j.kind != "own"]
        least, most = self.idle() - job.width, self.idle() + sum(j.width for j in guests)
        work = sum(j.p * j.width for j in self.ended if least < j.width <= most)
        known = max(now - self.arrivals[0].submit, DAY) if self.arrivals else math.inf
        job.impact = work * job.asked**2 / known
        spare = ALLOWANCE * self.base - self.owed(now)
        impacts = sum(j.impact for j in guests) + job.impact
        return self.capped + spare >= 0 and self.gain + spare - impacts >= 0


class Exchange:
    """Sites that exchange jobs on one clock."""

    def __init__(self, case: dict[str, Any]) -> None:
        """Reads a case."""
        self.jobs: list[Job] = []
        self.ends: list[tuple[float, int]] = []
        self.offers, self.preempted, self.lost = 0, 0, 0.0
        self.sites = [
            Site(i, s["processors"], s["discipline"] == "easy", s["rule"])
            for i, s in enumerate(case["sites"])
        ]
        counted: dict[int, int] = defaultdict(int)
        for row, (submit, p, request, width, home) in enumerate(case["jobs"]):
            counted[home] += 1
            nth, every = case["sites"][home]["checkpoints_every"], case["sites"][home]["checkpoint"]
            every = every if nth and counted[home] % nth == 0 else 0
            self.jobs.append(Job(row, submit, p, request, width, home, every, p, request))

    def start(self, site: Site, job: Job, kind: str, now: float) -> None:
        """Starts a job at a site."""
        job.start, job.end, job.place, job.kind = now, now + job.left, site.index, kind
        site.running.append(job)
        heapq.heappush(self.ends, (job.end, job.row))

    def make_pass(self, site: Site, now: float) -> None:
        """Starts what the batch system starts now; guests that it does not see give way."""
        site.due = False
        for job in startable(site.easy, site.queue, site.view(), now, whole=False):
            site.queue.remove(job)
            lacking = job.width - site.idle()
            gone: list[Job] = []
            unseen = [j for j in site.running if j not in site.seen()]
            for guest in sorted(unseen, key=lambda j: (j.start, j.row), reverse=True):
                if lacking > 0:
                    gone.append(guest)
                    lacking -= guest.width
            for guest in gone[::-1]:
                if guest.width <= -lacking:
                    gone.remove(guest)
                    lacking += guest.width
            for guest in gone:
                self.send_home(site, guest, now)
            self.start(site, job, "own", now)

    def send_home(self, site: Site, job: Job, now: float) -> None:
        """Ends a guest before its time; it takes its old place in the queue at home."""
        home, elapsed = self.sites[job.home], now - (job.start or 0.0)
        kept = math.floor(elapsed / job.every) * job.every if job.every else 0.0
        kept = max(0.0, min(kept, job.left - 1))
        lost = (elapsed - kept) * job.width
        self.preempted += 1
        self.lost += lost
        site.running.remove(job)
        site.taken[home.index] += (kept - job.asked) * job.width
        home.given[site.index] += kept * job.width
        trust = home.trust[site.index]
        trust.open.remove(job)
        if home.rule != "R4":
            trust.debt += lost
            job.empty += kept == 0
            if trust.debt > HOUR * home.size + trust.credit:
                trust.debt = 0.0
                trust.breach(now)
        job.left, job.asked = job.left - kept, job.asked - kept
        job.start, job.end, job.place, job.broken = None, None, -1, False
        home.queue = sorted([*home.queue, job], key=lambda j: j.row)
        home.due = True

    def settle(self, now: float) -> None:
        """Makes the passes that are due, in site order, again and again until none is left."""
        while any(site.due for site in self.sites):
            for site in self.sites:
                if site.due:
                    self.make_pass(site, now)

    def finds_partner(self, job: Job, now: float) -> bool:
        """Offers a job; returns whether a partner has taken it and started it."""
        home = self.sites[job.home]
        if home.rule != "R4" and job.empty >= 2:
            return False
        partners = [site for site in self.sites if site is not home and job.width <= site.size]

        def mean_response(site: Site) -> float:
            done = home.done[site.index]
            return home.weighted[site.index] / done if done else 0.0

        for site in sorted(partners, key=mean_response):
            trust = home.trust[site.index]
            trust.review(now)
            work = sum(j.asked * j.width for j in [*trust.open, job])
            if now < trust.suspended or (trust.open and work > 4 * HOUR * home.size + trust.credit):
                continue
            self.offers += 1
            kind = site.takes(job, now)
            if kind:
                job.given_at = now
                trust.open.append(job)
                site.taken[home.index] += job.asked * job.width
                self.start(site, job, kind, now)
                return True
        return False

    def finish(self, now: float) -> None:
        """Makes the ends of an instant, site by site, each with one pass."""
        due: list[Job] = []
        while self.ends and self.ends[0][0] == now:
            job = self.jobs[heapq.heappop(self.ends)[1]]
            due += [job] if job.end == now and job not in due else []
        for site in self.sites:
            ended = [job for job in due if job in site.running]
            for job in ended:
                home, work = self.sites[job.home], job.p * job.width
                site.running.remove(job)
                home.ended.append(job)
                home.work += work
                home.work_asked += job.request * job.width
                home.work_requested += work * job.request
                if home is not site:
                    site.taken[home.index] += (job.left - job.asked) * job.width
                    home.given[site.index] += job.left * job.width
                    home.done[site.index] += work
                    home.weighted[site.index] += work * (now - job.submit)
            if ended:
                self.make_pass(site, now)
        self.settle(now)

    def round(self, now: float) -> None:
        """Looks at all accounts; then every site offers its own waiting jobs again."""
        for site in self.sites:
            site.look(now)
        for site in self.sites:
            before = site.in_credit
            site.in_credit = site.rule != "G" or site.capped - site.owed(now) >= 0
            site.due = before and not site.in_credit
        self.settle(now)
        for site in self.sites:
            moved = [job for job in list(site.queue) if self.finds_partner(job, now)]
            site.queue = [job for job in site.queue if job not in moved]
            if moved:
                self.make_pass(site, now)
            self.settle(now)

    def run(self) -> dict[str, Any]:
        """Runs all jobs."""
        row, tick = 0, math.ceil(self.jobs[0].submit / PERIOD) * PERIOD
        while row < len(self.jobs) or any(site.queue for site in self.sites):
            submit = self.jobs[row].submit if row < len(self.jobs) else math.inf
            now = min(submit, tick, self.ends[0][0] if self.ends else math.inf)
            self.finish(now)
            if now == tick:
                self.round(now)
                tick += PERIOD
            while row < len(self.jobs) and self.jobs[row].submit == now:
                job, home = self.jobs[row], self.sites[self.jobs[row].home]
                if home.starts_now(job, now) or not self.finds_partner(job, now):
                    home.queue.append(job)
                    self.make_pass(home, now)
                self.settle(now)
                home.arrivals.append(job)
                row += 1
        ends, places = [job.end for job in self.jobs], [job.place for job in self.jobs]
        counts = {"offers": self.offers, "preempted": self.preempted, "lost": self.lost}
        return {"end": ends, "site": places, **counts}


if __name__ == "__main__":
    for one in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        print(json.dumps(Exchange(one).run()))
