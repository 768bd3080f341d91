"""The utility machine in plain Python: lists, sums, and everything computed anew when asked.

Written from docs/utility.md for comparison with the compiled one; slow, and free of its data
structures. Sums run in the order in which the compiled sums do, so that equal values are equal.
"""

import math

from lrms_sim.malleable.options import MachineOptions
from tests.oracles.utility_parts import PlainJob, PlainMachine, PlainPolicy


class PlainUtilityMachine:
    """Machines around one queue."""

    def __init__(
        self,
        jobs: list[PlainJob],
        machines: list[PlainMachine],
        policy: PlainPolicy,
        options: MachineOptions,
    ) -> None:
        self.jobs, self.machines, self.policy, self.options = jobs, machines, policy, options
        self.waiting: list[PlainJob] = []
        self.now = -math.inf
        self.log: list[tuple[float, str, int, int]] = []

    def run(self, horizon: float = math.inf) -> None:
        """Replays everything up to the horizon."""
        arrivals = list(self.jobs)
        while True:
            moments = [job.arrival for job in arrivals[:1]]
            moments += [job.ends for machine in self.machines for job in machine.running]
            if not moments or min(moments) > horizon:
                break
            self.now = min(moments)
            for machine in self.machines:
                for job in [each for each in machine.running if each.ends <= self.now]:
                    self.finish(machine, job)
            while arrivals and arrivals[0].arrival == self.now:
                job = arrivals.pop(0)
                job.state, job.left, job.run_left = "waiting", job.request, job.run
                self.waiting.append(job)
                self.note("arrive", job, job.width)
            self.make_pass()
        if horizon < math.inf:
            self.now = horizon
            for machine in self.machines:
                for job in machine.running:
                    job.busy += job.held * (horizon - job.since)

    # --- numbers -------------------------------------------------------------------------------

    def speed(self, n: float, width: int) -> float:
        """Returns the speed of a job of a width on n processors."""
        law = self.options.speedup
        if law.law == "amdahl":
            return float(1 / (law.serial + (1 - law.serial) / n))
        if law.law == "downey":
            a, s = max(1.0, law.parallelism * width), law.variance
            if s <= 1:
                if n <= a:
                    return float(a * n / (a + s / 2 * (n - 1)))
                if n <= 2 * a - 1:
                    return float(a * n / (s * (a - 0.5) + n * (1 - s / 2)))
                return a
            return float(n * a * (s + 1) / (s * (n + a - 1) + a)) if n <= a + a * s - s else a
        return n

    def stretched(self, job: PlainJob, n: int, left: float) -> float:
        """Returns how long an ideal time takes on n processors."""
        if n == job.width:
            return left
        return left * self.speed(job.width, job.width) / self.speed(n, job.width)

    def completion(self, job: PlainJob, n: int, left: float) -> float:
        """Returns when it would be over."""
        end = self.now + self.stretched(job, n, left)
        step = self.options.step
        return math.ceil(end / step - 1e-9) * step if step > 0 else end

    def alone(self, job: PlainJob) -> float:
        """Returns when a waiting job would be done on all of its processors."""
        return self.completion(job, job.width, job.left)

    @staticmethod
    def remaining(unit: float, left: float) -> float:
        """Returns the remaining utility."""
        return unit / left if left > 0 else math.inf if unit > 0 else 0.0

    # --- what happens to jobs ------------------------------------------------------------------

    def note(self, kind: str, job: PlainJob, count: int) -> None:
        """Keeps what happened."""
        self.log.append((self.now, kind, job.number, count))

    def settle(self, job: PlainJob) -> None:
        """Counts what a running job has done."""
        elapsed = self.now - job.since
        done = elapsed
        if job.held != job.width:
            done *= self.speed(job.held, job.width)
            done /= self.speed(job.width, job.width)
        job.left = max(0.0, job.left - done)
        job.run_left = max(0.0, job.run_left - done)
        job.busy += job.held * elapsed
        job.since = self.now

    def expect(self, job: PlainJob) -> None:
        """Says when a running job ends."""
        job.expected = self.completion(job, job.held, job.left)
        job.ends = self.completion(job, job.held, job.run_left)

    def start(self, machine: PlainMachine, job: PlainJob, n: int) -> None:
        """Gives a waiting job processors."""
        assert job.least <= n <= min(job.width, machine.free)
        self.waiting.remove(job)
        job.state, job.held, job.stored = "running", n, 0
        job.since = job.resumed = self.now
        if job.start is None:
            job.start = self.now
        machine.running = sorted([*machine.running, job], key=lambda each: each.number)
        self.expect(job)
        self.note("start" if n == job.width else "squeeze", job, n)

    def suspend(self, machine: PlainMachine, job: PlainJob) -> None:
        """Takes a running job its processors."""
        options = self.options
        self.settle(job)
        machine.running.remove(job)
        self.waiting = sorted([*self.waiting, job], key=lambda each: each.number)
        held, job.held, job.state = job.held, 0, "waiting"
        job.suspensions += 1
        if options.suspension == "requeue":
            kept = 0.0
            if options.checkpoint > 0:
                done = (job.run - job.run_left) / options.checkpoint
                kept = max(0.0, math.floor(done + 1e-9) * options.checkpoint)
            job.extra += max(0.0, job.run - job.run_left - kept)
            job.run_left, job.left = job.run - kept, job.request - kept
        else:
            job.machine, job.stored = machine.number, held
        job.left += options.suspension_cost
        job.run_left += options.suspension_cost
        job.extra += options.suspension_cost
        self.note("suspend", job, held)

    def resize(self, machine: PlainMachine, job: PlainJob, n: int) -> None:
        """Changes what a running job holds."""
        assert job.least <= n <= job.width
        assert n - job.held <= machine.free
        self.settle(job)
        job.held = n
        job.left += self.options.resize_cost
        job.run_left += self.options.resize_cost
        job.extra += self.options.resize_cost
        job.resizes += 1
        self.expect(job)
        self.note("resize", job, n)

    def finish(self, machine: PlainMachine, job: PlainJob) -> None:
        """Ends a running job."""
        self.settle(job)
        machine.running.remove(job)
        machine.ended = True
        job.held, job.state, job.end = 0, "completed", self.now
        job.utility = job.unit(self.now) * job.width * job.run
        machine.learner.reward += job.utility
        self.note("end", job, 0)

    # --- the pass ------------------------------------------------------------------------------

    def eligible(self, machine: PlainMachine) -> list[PlainJob]:
        """Returns the waiting jobs that may run there."""
        return [job for job in self.waiting if job.machine in {None, machine.number}]

    def make_pass(self) -> None:
        """Makes one pass of all machines."""
        self.leave()
        for machine in self.machines:
            machine.did = {"acted": False, "considered": False, "changed": False}
            if self.policy.mechanism is not None:
                self.follow(machine, machine.did)
                continue
            if self.options.grow == "first":
                self.grow(machine, machine.did)
            if not self.policy.job_fixed:
                self.best_fit(machine, machine.did)
        if self.policy.job_fixed:
            self.fit_jobs()
        for machine in self.machines:
            did = machine.did
            if self.policy.mechanism is None:
                self.act(machine, did)
                if self.options.grow == "last":
                    self.grow(machine, did)
            self.learn(machine, did)

    def leave(self) -> None:
        """Lets go who has nothing to gain."""
        for job in list(self.waiting):
            if self.options.leave == "zero":
                gone = job.floor <= 0 and self.now >= job.arrival + job.zero * job.request
            else:
                gone = self.options.leave == "worthless" and job.unit(self.alone(job)) <= 0
            if gone:
                self.waiting.remove(job)
                job.state, job.end, job.stored = "left", self.now, 0
                self.note("drop", job, 0)

    def grow(self, machine: PlainMachine, did: dict[str, bool]) -> None:
        """Gives squeezed jobs what is free."""
        for job in list(machine.running):
            if machine.free and job.held < job.width:
                self.resize(machine, job, min(job.width, job.held + machine.free))
                did["changed"] = True

    def best_fit(self, machine: PlainMachine, did: dict[str, bool]) -> None:
        """Starts the widest that fits, until none does."""
        while fitting := [job for job in self.eligible(machine) if job.width <= machine.free]:
            best = min(fitting, key=lambda j: (-j.width, -j.final(self.alone(j)), j.number))
            self.start(machine, best, best.width)
            did["changed"] = True

    def fit_jobs(self) -> None:
        """Finds each job the machine that it fits best."""
        for job in list(self.waiting):
            fits = [m for m in self.machines if job.width <= m.free and job in self.eligible(m)]
            if fits:
                best = min(fits, key=lambda machine: (machine.free, machine.number))
                self.start(best, job, job.width)
                best.did["changed"] = True

    def ranked(self, machine: PlainMachine) -> list[PlainJob]:
        """Returns those who may be suspended, those first who come first."""
        found = [job for job in machine.running if self.may_be_suspended(job)]

        def rank(job: PlainJob) -> tuple[float, int]:
            unit = job.unit(job.expected)
            return self.remaining(unit, job.expected - self.now), job.number

        return sorted(found, key=rank)

    def may_be_suspended(self, job: PlainJob) -> bool:
        """Says whether the options allow it."""
        return (
            job.suspensions < self.options.suspensions_max
            and self.now - job.resumed >= self.options.exempt
        )

    def state(
        self, machine: PlainMachine, without: list[PlainJob], more: tuple[int, float, float] | None
    ) -> tuple[float, float, float]:
        """Returns x1, x2, x3 if some were suspended and one started: processors, unit, time."""
        ranked = self.ranked(machine)
        protected = [job for job in machine.running if job not in ranked]
        order = protected + [job for job in reversed(ranked) if job not in without]
        held, utility, first = 0.0, 0.0, math.inf
        for job in order:
            held += job.held
            utility += job.held * job.unit(job.expected)
            first = min(first, job.expected - self.now)
        free = float(machine.size - held)
        if more is not None:
            n, unit, time = more
            held, utility, first, free = held + n, utility + n * unit, min(first, time), free - n
        return (utility / held, first, free) if held > 0 else (0.0, 0.0, free)

    def victims(
        self, machine: PlainMachine, job: PlainJob, remaining: float
    ) -> list[PlainJob] | None:
        """Returns who would be suspended for a job; None if it does not qualify."""
        found: list[PlainJob] = []
        for each in self.ranked(machine):
            if machine.free + sum(v.held for v in found) >= job.width:
                break
            if self.remaining(each.unit(each.expected), each.expected - self.now) > remaining:
                return None
            found.append(each)
        if machine.free + sum(v.held for v in found) < job.width:
            return None
        stored = sum(j.stored for j in self.waiting if j.machine == machine.number)
        stored += sum(v.held for v in found) - job.stored
        most = self.options.suspended_max * machine.size
        if found and self.options.suspension == "suspend" and stored > most:
            return None
        return found

    def gain(
        self, machine: PlainMachine, job: PlainJob, victims: list[PlainJob], end: float
    ) -> float:
        """Returns what final utilities gain in this one step."""
        free, room = machine.free, self.now
        for time in sorted({each.expected for each in machine.running}):
            if free >= job.width:
                break
            if time > self.now:
                free += sum(each.held for each in machine.running if each.expected == time)
                room = time
        gain = job.final(end) - job.final(room + job.left)
        for each in victims:
            later = each.expected + job.left + self.options.suspension_cost
            gain -= each.final(each.expected)
            gain += each.final(later)
        return gain

    def act(self, machine: PlainMachine, did: dict[str, bool]) -> None:
        """Forces one job, then squeezes one."""
        if self.policy.preemption != "never" and self.waiting:
            did["considered"] = True
            if self.preempt(machine):
                did["acted"] = did["changed"] = True
                if self.options.refit:
                    if self.options.grow == "first":
                        self.grow(machine, did)
                    self.best_fit(machine, did)
        if self.policy.oversubscription != "never" and self.waiting:
            did["considered"] = True
            if machine.free and self.squeeze(machine):
                did["acted"] = did["changed"] = True

    def preempt(self, machine: PlainMachine) -> bool:
        """Forces the best job, if any."""
        choice = self.policy.preemption
        candidates = []
        for job in self.eligible(machine):
            end = self.alone(job)
            unit = job.unit(end)
            if unit <= 0 and not self.options.worthless:
                continue
            own = math.inf if choice == "greedy" else self.remaining(unit, end - self.now)
            victims = self.victims(machine, job, own)
            if victims is None:
                continue
            rank: tuple[float, ...]
            if choice in {"aggressive", "highest"}:
                width = job.width if choice == "aggressive" else 0
                rank = (width, -unit * job.width * job.request, job.number)
            else:
                if choice == "value":
                    after = self.state(machine, victims, (job.width, unit, end - self.now))
                    worth = machine.learner.value(after)
                    least = machine.learner.value(self.state(machine, [], None))
                else:
                    worth, least = self.gain(machine, job, victims, end), 0.0
                if worth <= least:
                    continue
                rank = (-worth, job.number)
            candidates.append((rank, job, victims))
        if not candidates:
            return False
        _, job, victims = min(candidates, key=lambda each: each[0])
        for each in victims:
            self.suspend(machine, each)
        self.start(machine, job, job.width)
        return True

    def squeeze(self, machine: PlainMachine) -> bool:
        """Squeezes the best job, if any."""
        choice = self.policy.oversubscription
        candidates = []
        for job in self.eligible(machine):
            n = min(job.width, machine.free)
            if n < job.least:
                continue
            end = self.completion(job, n, job.left)
            unit = job.unit(end)
            if unit <= 0 and not self.options.worthless:
                continue
            rank: tuple[float, ...]
            if choice in {"aggressive", "highest"}:
                width = job.width if choice == "aggressive" else 0
                rank = (width, -job.final(self.alone(job)), job.number)
            else:
                if choice == "value":
                    after = self.state(machine, [], (n, unit, end - self.now))
                    worth = machine.learner.value(after)
                    least = machine.learner.value(self.state(machine, [], None))
                else:
                    worth, least = self.gain(machine, job, [], end), 0.0
                if worth <= least:
                    continue
                rank = (-worth, job.number)
            candidates.append((rank, job, n))
        if not candidates:
            return False
        _, job, n = min(candidates, key=lambda each: each[0])
        self.start(machine, job, n)
        return True

    def learn(self, machine: PlainMachine, did: dict[str, bool]) -> None:
        """Updates the value function when it is time."""
        learner, ended = machine.learner, machine.ended
        machine.ended = False
        if not learner.learning:
            return
        due = did["acted"] or (learner.pending and (ended or did["changed"]))
        first = did["considered"] and learner.stored is None
        if due:
            learner.pending = False
        if due or first:
            held, utility, ends = 0.0, 0.0, []
            for job in machine.running:
                held += job.held
                utility += job.held * job.unit(job.expected)
                ends.append(job.expected)
            state = (utility / held, min(ends) - self.now) if ends else (0.0, 0.0)
            learner.update((*state, machine.free), self.now)
        if did["considered"] and not did["acted"]:
            learner.pending = True

    # --- orders --------------------------------------------------------------------------------

    def features(self, machine: PlainMachine, job: PlainJob) -> list[float]:
        """Returns what an order with weights knows."""
        left, waits = job.left, job.state == "waiting"
        if not waits:
            left = self.stretched(job, job.held, left) - (self.now - job.since)
            left *= self.stretched(job, job.width, 1.0)
            left /= self.stretched(job, job.held, 1.0)
            left = max(left, 0.0)
        request, age = job.request, self.now - job.arrival
        unit = job.unit(self.now + left)

        def bounded(value: float) -> float:
            return min(10.0, max(-10.0, value))

        return [
            unit * request / left if left > 0 else unit * 1e6,
            unit,
            left / request,
            job.width / machine.size,
            bounded((job.plateau * request - age - left) / request),
            bounded((job.zero * request - age - left) / request),
            bounded(age / request),
            0.0 if waits else 1.0,
        ]

    def score(self, machine: PlainMachine, job: PlainJob) -> float:
        """Returns how early a job is; higher is earlier."""
        order = self.policy.order
        if order == "arrival":
            return 0.0
        if order == "weight":
            return job.weight
        if order == "deadline":
            return -(job.arrival + job.zero * job.request)
        found = self.features(machine, job)
        if order == "density":
            return found[0]
        return sum(w * x for w, x in zip(self.policy.weights, found, strict=True))

    def follow(self, machine: PlainMachine, did: dict[str, bool]) -> None:
        """Makes a pass along an order."""
        jobs = [job for job in self.eligible(machine) if job.width <= machine.size]
        replans = self.policy.mechanism == "replan"
        if replans:
            jobs = jobs + machine.running
        jobs = sorted(jobs, key=lambda job: (-self.score(machine, job), job.number))
        if replans:
            self.replan(machine, jobs, did)
            return
        blocked, shadow, extra = False, math.inf, 0
        for job in jobs:
            if job.width > machine.free:
                if self.policy.mechanism == "head":
                    break
                if self.policy.mechanism == "easy" and not blocked:
                    blocked = True
                    shadow, extra = self.shadow(machine, job)
                continue
            if blocked and self.now + job.left > shadow:
                if job.width > extra:
                    continue
                extra -= job.width
            self.start(machine, job, job.width)
            did["changed"] = True

    def shadow(self, machine: PlainMachine, head: PlainJob) -> tuple[float, int]:
        """Returns when the head is expected to fit, and how many processors are left then."""
        for time in sorted({job.expected for job in machine.running}):
            free = machine.free + sum(j.held for j in machine.running if j.expected <= time)
            if free >= head.width:
                return time, free - head.width
        raise AssertionError("an empty machine holds the job")

    def replan(self, machine: PlainMachine, jobs: list[PlainJob], did: dict[str, bool]) -> None:
        """Places everybody anew."""
        kept = [job for job in machine.running if not self.may_be_suspended(job)]
        granted = self.grants(machine, jobs, kept)
        stored = sum(j.stored for j in self.waiting if j.machine == machine.number)
        stored += sum(j.held for j in machine.running if not granted[j.number])
        stored -= sum(j.stored for j in jobs if j.state == "waiting" and granted[j.number])
        most = self.options.suspended_max * machine.size
        if self.options.suspension == "suspend" and stored > most:
            granted = self.grants(machine, jobs, machine.running)
        for job in jobs:
            n = granted[job.number]
            if job.state == "running" and n < job.held:
                did["acted"] = True
                if n:
                    self.resize(machine, job, n)
                else:
                    self.suspend(machine, job)
        for job in jobs:
            n = granted[job.number]
            if n > job.held:
                did["changed"] = True
                if job.state == "waiting":
                    self.start(machine, job, n)
                else:
                    self.resize(machine, job, n)

    def grants(
        self, machine: PlainMachine, jobs: list[PlainJob], kept: list[PlainJob]
    ) -> dict[int, int]:
        """Returns who gets how much; those kept have what they hold."""
        granted = {job.number: job.held if job in kept else 0 for job in jobs}
        squeezed = not self.policy.squeezes
        for job in jobs:
            room = machine.size - sum(granted.values()) + granted[job.number]
            if job.width <= room:
                granted[job.number] = job.width
            elif not squeezed and room >= job.least and room > 0:
                granted[job.number] = room
                squeezed = True
        return granted
