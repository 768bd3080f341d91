"""The people of a fault test: users with their wishes, and operators who look after what a Byzantine partner has.

Users ask until they are heard. Operators look at what their sites show, and act on it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from grms.simulation.clock import ManualClock
from grms.simulation.random_source import RandomSource
from grms.simulation.simulated_site import SimulatedSite
from grms.simulation.waits import WaitChecker
from grms.site.model.commands import Append, Command, ReplyJob
from grms.site.model.events import Cancel, Resubmit, Submit, TakeBack
from grms.site.model.jobs import HomeJob, Request
from grms.site.model.lifecycle import JobState
from grms.site.scheduler.outgoing_offers import deadline_of
from grms.util.dependencies import Dependency
from grms.util.job_arrays import ArraySpec

LOOK_S = 5.0
"""Interval at which operators look for stuck jobs, seconds."""

SLACK_S = 15.0
"""Tolerance for waits on a Byzantine partner while its site is up: the site looks every 5 s, its operator looks
every 5 s, and his decision has to be recorded."""

ANSWER_S = 60.0
"""Time for a job to come back from a Byzantine partner that answers: calls are repeated after pauses."""


@dataclass(slots=True)
class Wish:
    """A job that a user wants run: what is true of it, whatever sites say.

    Attributes:
        key: identifies repeated submissions.
        run_time: actual run time, seconds.
        submit_time: of the first submission, seconds.
        cancel_time: when its user gives it up, seconds; `None` for never.
        job_id: as acknowledged; empty before.
        cancel_told: the cancellation was acknowledged.
        after: kinds of dependencies and the payloads of other submissions at the same site.
        elements: of an array, which is a submission and no job; the wishes of its elements are made of it.
        index: of an element.
        checkpoint: it writes its state so often at least, seconds; 0 if it does not.
    """

    home: str
    key: str
    request: Request
    run_time: float
    submit_time: float
    cancel_time: float | None
    job_id: str = ""
    cancel_told: bool = False
    after: tuple[tuple[str, bytes], ...] = ()
    elements: ArraySpec | None = None
    index: int = -1
    checkpoint: float = 0.0


@dataclass(slots=True)
class Users:
    """Submits jobs, and cancels some, repeatedly with the same key until acknowledged.

    `rogue` is a site whose users have no guarantees, or empty; `problems` gets violations, in
    sentences. `wishes` are of jobs and elements, `arrays` of whole arrays, by payload.
    """

    clock: ManualClock
    draws: RandomSource
    sites: Mapping[str, SimulatedSite]
    rogue: str
    problems: list[str]
    wishes: dict[bytes, Wish] = field(default_factory=dict)
    arrays: dict[bytes, Wish] = field(default_factory=dict)

    def want(self, payload: bytes, wish: Wish) -> None:
        """Takes a wish, which is submitted when its time has come."""
        if wish.elements is None:
            self.wishes[payload] = wish
        else:
            self.arrays[payload] = wish
            for index in wish.elements:
                element = replace(wish, elements=None, index=index)
                self.wishes[self.element(payload, index)] = element
        self.clock.after(wish.submit_time, self._submit, payload)

    @property
    def content(self) -> bool:
        """Whether all users of honest sites have been heard."""
        return all(
            wish.job_id and (wish.cancel_time is None or wish.cancel_told)
            for wish in self.wishes.values()
            if wish.home != self.rogue
        )

    @staticmethod
    def element(payload: bytes, index: int) -> bytes:
        """Returns the payload of an element of an array, by that of the array."""
        return payload + b" [%d]" % index

    def _elements(self, payload: bytes) -> list[Wish]:
        spec = self.arrays[payload].elements if payload in self.arrays else None
        return [] if spec is None else [self.wishes[self.element(payload, i)] for i in spec]

    def _dependencies(self, wish: Wish) -> tuple[Dependency, ...] | None:
        # None while one that it waits for has no name yet.
        others = [(kind, self.arrays.get(one) or self.wishes[one]) for kind, one in wish.after]
        if not all(other.job_id for _, other in others):
            return None
        return tuple(Dependency(kind, other.job_id) for kind, other in others)

    def _submit(self, payload: bytes) -> None:
        wish = self.arrays.get(payload) or self.wishes[payload]
        dependencies = self._dependencies(wish)

        def reply(command: Command) -> None:
            if not isinstance(command, ReplyJob):
                if wish.home == self.rogue:
                    return
                self.problems.append(f"the submission of {payload!r} was refused: {command}")
                return
            if wish.job_id not in {"", command.job_id} and wish.home != self.rogue:
                self.problems.append(f"{payload!r} is both {wish.job_id} and {command.job_id}")
            if not wish.job_id and wish.cancel_time is not None:
                delay = max(0.0, wish.cancel_time - self.clock.now)
                self.clock.after(delay, self._cancel, payload)
            wish.job_id = command.job_id
            for element in self._elements(payload):
                element.job_id = f"{wish.job_id}_{element.index}"

        if not wish.job_id:
            home = self.sites[wish.home]
            self.clock.after(self.draws.between(0.5, 4.0), self._submit, payload)
            if dependencies is None:
                return
            home.ask(
                lambda i: Submit(
                    i,
                    home.load(),
                    "ann",
                    wish.key,
                    "",
                    wish.request,
                    payload,
                    dependencies=dependencies,
                    elements=wish.elements,
                    part=lambda _, index: b" [%d]" % index,
                    checkpoint=wish.checkpoint,
                ),
                reply,
            )

    def _cancel(self, payload: bytes) -> None:
        wish = self.arrays.get(payload) or self.wishes[payload]

        def reply(command: Command) -> None:
            if isinstance(command, ReplyJob) or wish.home == self.rogue:
                for one in (wish, *self._elements(payload)):
                    one.cancel_told = True
            else:
                self.problems.append(f"the cancellation of {wish.job_id} was refused: {command}")

        if not wish.cancel_told:
            home = self.sites[wish.home]
            self.clock.after(self.draws.between(0.5, 4.0), self._cancel, payload)
            home.ask(lambda i: Cancel(i, home.load(), wish.job_id, "ann"), reply)


@dataclass(slots=True)
class Operators:
    """Looks after the jobs that a Byzantine partner has.

    Attributes:
        rogue: its name; empty if all are honest.
        tolerance: of promises; infinity if nobody is held to one.
        healed: when the network is well, seconds.
        problems: gets what is not as it has to be, in sentences.
        resubmitted: jobs that were decided anew, whatever the Byzantine partner does with them.
        taken_back: jobs that the Byzantine partner was told to end.
        longest: so long a job was with the Byzantine partner beyond its deadline at most, seconds.
        last: when a job was last taken out of the Byzantine partner's hands, seconds; 0 if none was.
    """

    clock: ManualClock
    rogue: str
    answers: bool
    tolerance: float
    healed: float
    problems: list[str]
    resubmitted: set[str] = field(default_factory=set)
    taken_back: set[str] = field(default_factory=set)
    longest: float = 0.0
    last: float = 0.0
    _untold: set[str] = field(default_factory=set)
    _judges: dict[str, WaitChecker] = field(default_factory=dict)

    def look_after(self, site: SimulatedSite) -> None:
        """Looks at a site now and then, from now on."""
        self.clock.after(LOOK_S, self._look, site)

    def begin(self, site: SimulatedSite) -> None:
        """Takes note of a site that has just started."""
        judge = WaitChecker(site.settings, self.tolerance, site.now)
        judge.follow(site.journal)
        self._judges[site.settings.name] = judge

    def follow(self, site: SimulatedSite, commands: Iterable[Command]) -> None:
        """Takes note of what a site that is no Byzantine partner writes down."""
        judge = self._judges.get(site.settings.name)
        if judge is not None:
            for command in commands:
                if isinstance(command, Append):
                    judge.follow(command.records)

    def _look(self, site: SimulatedSite) -> None:
        if site.timing.probe_interval:
            self.clock.after(LOOK_S, self._look, site)
        if not site.up:
            return
        name, judge = site.settings.name, self._judges[site.settings.name]
        for problem in judge.places_too_long(site.now, SLACK_S):
            self._once(name, problem.partition(" is held")[0], problem)
        if not self.rogue:
            return
        self._take_back(site, judge)
        self._resubmit(site)
        for number, late in judge.beyond_deadline(self.rogue, site.now):
            self.longest = max(self.longest, late)
            if late > SLACK_S:
                problem = f"job {number} waits on {self.rogue} {late:.0f} s beyond its deadline"
                self._once(name, f"job {number}", problem)

    def _once(self, site: str, what: str, problem: str) -> None:
        if f"{site}: {what}" not in self._untold:
            self._untold.add(f"{site}: {what}")
            self.problems.append(f"{site}: {problem}")

    def _resubmit(self, site: SimulatedSite) -> None:
        # Takes out of the Byzantine partner's hands what it holds beyond its deadline.
        for job in list(site.state.jobs()):
            if job.partner != self.rogue or not site.state.why_stuck(job, site.now):
                continue
            if not job.overdue and job.state is not JobState.SUSPECT:
                # It is about to be shown.
                late = site.now - deadline_of(job, site.settings)
                if late > SLACK_S:
                    told = f"{job.job_id} is {late:.0f} s late; nobody was told"
                    self._once(site.settings.name, job.job_id, told)
                continue
            self.resubmitted.add(job.job_id)
            self._act(site, job, Resubmit)

    def _take_back(self, site: SimulatedSite, judge: WaitChecker) -> None:
        # Asks for what was to start at once, and has not ended.
        well = max(self.healed + site.clock_offset, judge.since)
        for number, late in judge.beyond_promise(self.rogue, site.now):
            job = site.state.memory.jobs[number]
            if job.state is JobState.DELEGATED and not job.take_back:
                self.taken_back.add(job.job_id)
                self._act(site, job, TakeBack)
            elif self.answers and min(late, site.now - well) > ANSWER_S:
                told = f"job {number} waits on {self.rogue} {late:.0f} s longer than promised"
                self._once(site.settings.name, f"promise of job {number}", told)

    def _act(self, site: SimulatedSite, job: HomeJob, act: type[Resubmit | TakeBack]) -> None:
        self.last = self.clock.now
        site.ask(partial(act, load=site.load(), job_id=job.job_id, by="root"), lambda _: None)
