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
from pathlib import Path
from typing import Any

HOUR, DAY, PERIOD = 3600.0, 86400.0, 900.0
CAP, DECAY, ALLOWANCE = 0.05, math.exp(-PERIOD / (10 * DAY)), 0.01
Places = list[tuple[float, int]]


class Job:
    """A job; `left` and `asked` are what no checkpoint has kept of run time and request."""

    def __init__(self, row: int, columns: list[Any], every: float) -> None:
        """A job that has not come yet; it neither runs nor ends before infinity."""
        self.row, self.every = row, every
        self.submit, self.p, self.request, self.width, self.home = columns
        self.left, self.asked, self.start, self.end = self.p, self.request, math.inf, math.inf
        self.given_at, self.impact, self.place, self.empty = 0.0, 0.0, -1, 0
        self.kind, self.broken = "", False  # kind: own, protected or preemptible


class Trust:
    """What a home records of a partner's promise to start accepted jobs at once."""

    def __init__(self) -> None:
        """Begins without any record."""
        self.open: list[Job] = []
        self.credit, self.debt, self.breaches, self.suspended = 0.0, 0.0, 0, -math.inf

    def breach(self, now: float) -> None:
        """Ends the credit, and all offers for a while."""
        self.credit = 0.0
        self.breaches += now >= self.suspended
        self.suspended = max(self.suspended, now + DAY * 2 ** min(self.breaches - 1, 5))

    def review(self, now: float) -> None:
        """Goes once through the open jobs."""
        for job in list(self.open):
            ended = job.end <= now
            late = job.end - job.given_at - job.left if ended else now - job.given_at - job.asked
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


def startable(easy: bool, queue: Any, free: int, releases: Places, now: float) -> list[Job]:
    """Returns the jobs that a pass starts, in order; `queue` has them with their requests."""
    chosen, rest, releases = [], list(queue), list(releases)
    while rest and rest[0][0].width <= free:
        job, asked = rest.pop(0)
        chosen.append(job)
        free -= job.width
        releases.append((now + asked, job.width))
    if easy and len(rest) > 1:
        time, extra = reservation(free, releases, rest[0][0].width)
        for job, asked in rest[1:]:
            if job.width <= free and (now + asked <= time or job.width <= extra):
                chosen.append(job)
                free -= job.width
                extra -= job.width if now + asked > time else 0
    return chosen


class Site:
    """A site: its machine, its shadow (`alone_…`), its books and its account."""

    def __init__(self, index: int, values: dict[str, Any]) -> None:
        """An idle machine in credit; `due`: a job has come back, or credit was lost, and no pass followed."""
        self.index, self.size, self.rule = index, int(values["processors"]), values["rule"]
        self.easy, self.due, self.in_credit = values["discipline"] == "easy", False, True
        self.queue: list[Job] = []
        self.running: list[Job] = []
        self.arrivals: list[Job] = []
        self.ended: list[Job] = []
        self.alone_known, self.alone_last = 0, -math.inf
        self.alone_queue: list[Job] = []
        self.alone_running: dict[int, Job] = {}
        self.alone_start: dict[int, float] = {}
        self.gain = self.capped = self.base = 0.0  # S, SB, B
        self.work = self.work_asked = self.work_requested = (
            0.0  # own ended: Σ p·m, request·m, p·m·request
        )
        books: list[defaultdict[int, float]] = [defaultdict(float) for _ in range(4)]
        self.taken, self.given, self.done, self.weighted = books  # by partner
        self.trust: dict[int, Trust] = defaultdict(Trust)

    def sees(self, job: Job) -> bool:
        """Returns whether the batch system knows of a running job."""
        return job.kind == "own" or (job.kind == "protected" and self.in_credit)

    def idle(self) -> int:
        """Returns the processors with nobody at all on them."""
        return self.size - int(sum(job.width for job in self.running))

    def view(self) -> tuple[int, Places]:
        """Returns free processors and releases as the batch system sees them."""
        seen = [job for job in self.running if self.sees(job)]
        free = self.size - sum(job.width for job in seen)
        return free, [(job.start + job.asked, job.width) for job in seen]

    def starts_now(self, job: Job, now: float) -> bool:
        """Returns whether the batch system would start such a job at once."""
        free, releases = self.view()
        if job.width > free or not self.queue:
            return bool(job.width <= free)
        time, extra = reservation(free, releases, self.queue[0].width)
        return self.easy and bool(job.width <= extra or now + job.asked <= time)

    def look(self, now: float) -> None:
        """Lets the shadow of own jobs alone go on as far as it can; then the sums fade."""
        while True:
            known: Places = []
            limit = now
            for row, job in self.alone_running.items():
                if job.end <= now:
                    known.append((self.alone_start[row] + job.p, row))
                else:
                    limit = min(limit, self.alone_start[row] + max(0.0, now - job.start))
            end = min(known, default=(math.inf, 0))[0]
            coming = self.arrivals[self.alone_known :][:1]
            arrival = coming[0].submit if coming else math.inf
            if min(end, arrival) > limit:
                break
            self.alone_last = time = min(end, arrival)
            if end <= arrival:
                for _, row in sorted(one for one in known if one[0] == end):
                    self.book(self.alone_running.pop(row), end)
            else:
                self.alone_queue += coming
                self.alone_known += 1
            free = self.size - sum(j.width for j in self.alone_running.values())
            runs = self.alone_running.items()
            ends = [(self.alone_start[row] + job.request, job.width) for row, job in runs]
            waiting = [(job, job.request) for job in self.alone_queue]
            for job in startable(self.easy, waiting, free, ends, time):
                self.alone_queue.remove(job)
                self.alone_running[job.row], self.alone_start[job.row] = job, time
        sums = (self.gain, self.capped, self.base)
        self.gain, self.capped, self.base = (DECAY * one for one in sums)

    def book(self, job: Job, alone: float) -> None:
        """A job has ended in the shadow."""
        self.base += job.p * job.width * (alone - job.submit)
        self.gain += job.p * job.width * (alone - job.end)
        saved = self.capped + job.p * job.width * (alone - job.end)
        self.capped = min(saved, CAP * self.base)

    def owed(self, now: float) -> float:
        """Returns H: what own jobs that wait have lost by now."""
        total, ratio = 0.0, self.work / self.work_asked if self.work_asked else 1.0
        for job in self.queue:
            since = self.alone_start.get(job.row, max(self.alone_last, job.submit))
            total += ratio * job.request * job.width * (now - since) if since < now else 0.0
        return total

    def takes(self, job: Job, now: float) -> str:
        """Returns how the site takes another's job; an empty text declines."""
        longest = 2 * (self.work_requested / self.work) if self.work else math.inf
        taken = self.taken[job.home] + job.asked * job.width - 2 * self.given[job.home]
        if job.width > self.idle():
            return ""
        if job.asked <= longest and taken <= DAY * self.size:
            credit = (self.rule != "G" or self.in_credit) and self.starts_now(job, now)
            if credit and (self.rule != "C1" or self.affords(job, now)):
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
        self.ends: list[tuple[float, int]] = []
        self.offers, self.preempted, self.lost = 0, 0, 0.0
        self.sites = [Site(index, values) for index, values in enumerate(case["sites"])]
        self.jobs: list[Job] = []
        counted: dict[int, int] = defaultdict(int)
        for row, columns in enumerate(case["jobs"]):
            home = case["sites"][columns[4]]
            counted[columns[4]] += 1
            keeps = (
                home["checkpoints_every"] and not counted[columns[4]] % home["checkpoints_every"]
            )
            self.jobs.append(Job(row, columns, home["checkpoint"] if keeps else 0))

    def start(self, site: Site, job: Job, kind: str, now: float) -> None:
        """Starts a job at a site."""
        job.start, job.end, job.place, job.kind = now, now + job.left, site.index, kind
        site.running.append(job)
        heapq.heappush(self.ends, (job.end, job.row))

    def make_pass(self, site: Site, now: float) -> None:
        """Starts what the batch system starts now; guests that it does not see give way."""
        site.due = False
        for job in startable(site.easy, [(j, j.asked) for j in site.queue], *site.view(), now):
            site.queue.remove(job)
            lacking = job.width - site.idle()
            gone: list[Job] = []
            unseen = [j for j in site.running if not site.sees(j)]
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
        home, elapsed = self.sites[job.home], now - job.start
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
        job.start, job.end, job.place, job.broken = math.inf, math.inf, -1, False
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
        done = {q: home.weighted[q] / home.done[q] for q in home.done if home.done[q]}
        partners = [site for site in self.sites if site is not home and job.width <= site.size]
        for site in sorted(partners, key=lambda one: done.get(one.index, 0.0)):
            trust = home.trust[site.index]
            trust.review(now)
            work = sum(j.asked * j.width for j in [*trust.open, job])
            if now < trust.suspended or (trust.open and work > 4 * HOUR * home.size + trust.credit):
                continue
            self.offers += 1
            if kind := site.takes(job, now):
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
