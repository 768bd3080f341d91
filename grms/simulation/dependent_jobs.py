"""Arrays and dependent jobs in the fault test: what users hand in, and what must be true of it in the end.

Whatever dies meanwhile, and wherever the jobs run:

- no job has begun before what it waits for was over;
- of an array no more elements ran at one time than its limit says;
- a job whose dependencies cannot be met has not run, and is cancelled; no other is, for that reason.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from grms.simulation.actors import Users, Wish
from grms.simulation.batch_system import FakeLrmsJob
from grms.simulation.random_source import RandomSource
from grms.simulation.simulated_site import SimulatedSite
from grms.site.model.held_jobs import OK
from grms.site.model.jobs import HomeJob, Request
from grms.site.model.lifecycle import Outcome
from grms.util.job_arrays import ArraySpec

_KINDS = ("afterok", "afterany", "afternotok")
_NOT_KNOWN = frozenset({Outcome.UNKNOWN, Outcome.LOST})


def draw_dependent_jobs(draws: RandomSource, users: Users, until: float) -> None:
    """Has the users of every site hand in a diamond with arrays at its sides, and a few jobs that wait for others.

    The last of them is handed in before `until`, seconds, if its site answers.
    """
    for home, site in users.sites.items():
        begin = draws.between(0.0, 0.5 * until)
        made: list[bytes] = []

        def want(
            name: str,
            after: tuple[tuple[str, bytes], ...] = (),
            elements: str = "",
            *,
            gives_up: bool = False,
            home: str = home,
            size: int = site.settings.processors,
            begin: float = begin,
            made: list[bytes] = made,
        ) -> bytes:
            payload = f"{home} {name}".encode()
            run_time = 0.1 + draws.exponential(3.0)
            wish = Wish(
                home=home,
                key=f"key-{name}",
                request=Request(draws.integer(1, size), run_time * draws.between(1.0, 5.0)),
                run_time=run_time,
                submit_time=begin + 0.1 * len(made),
                cancel_time=begin + draws.exponential(10.0) if gives_up else None,
                after=after,
                elements=ArraySpec.parse(elements) if elements else None,
            )
            made.append(payload)
            users.want(payload, wish)
            return payload

        limit = draws.integer(1, 3)
        top = want("top", gives_up=draws.chance(0.2))
        left = want("left", (("afterok", top),), f"0-{draws.integer(2, 7)}%{limit}")
        right = want("right", (("aftercorr", left),), "1-2", gives_up=draws.chance(0.2))
        want("bottom", (("afterok", left), ("afterany", right)))
        for number in range(draws.integer(0, 5)):
            after = tuple(
                (_KINDS[draws.integer(0, 2)], made[draws.integer(0, len(made) - 1)])
                for _ in range(draws.integer(1, 3))
            )
            elements = f"3-9:3%{draws.integer(1, 2)}" if draws.chance(0.3) else ""
            want(f"one {number}", after, elements, gives_up=draws.chance(0.1))


@dataclass(slots=True)
class DependencyChecker:
    """Judges what became of arrays and dependent jobs; `runs` are those of the batch systems, by payload."""

    sites: Mapping[str, SimulatedSite]
    users: Users
    runs: Mapping[bytes, list[FakeLrmsJob]]
    problems: list[str]

    def judge(self) -> int:
        """Judges all; returns how many ended as they could not begin."""
        hopeless = 0
        for payload, wish in self.users.wishes.items():
            job = self._job(payload)
            if wish.after and job is not None and job.outcome is not None:
                hopeless += self._judge(payload, wish, job)
        for payload, wish in self.users.arrays.items():
            self._judge_limit(payload, wish)
        return hopeless

    def _job(self, payload: bytes) -> HomeJob | None:
        wish = self.users.wishes[payload]
        return self.sites[wish.home].state.job(wish.job_id)

    def _named(self, kind: str, target: bytes, wish: Wish) -> Iterator[bytes]:
        array = self.users.arrays.get(target)
        if array is None or array.elements is None:
            yield target
            return
        for index in array.elements:
            if kind != "aftercorr" or index == wish.index:
                yield self.users.element(target, index)

    def _judge(self, payload: bytes, wish: Wish, job: HomeJob) -> bool:
        impossible = False
        for kind, target in wish.after:
            others = list(self._named(kind, target, wish))
            outcomes = [self._outcome(other) for other in others]
            if None in outcomes:
                self.problems.append(f"{job.job_id} has ended, and not all that it waited for")
                return False
            bad = any(outcome not in OK for outcome in outcomes)
            impossible |= {"afterany": False, "afternotok": not bad}.get(kind, bad)
            for other, outcome in zip(others, outcomes, strict=True):
                if outcome not in _NOT_KNOWN:
                    self._judge_order(payload, other, job)
        told = "cannot be met" in job.reason
        if told and not impossible:
            self.problems.append(f"{job.job_id} could be met: {job.reason}")
        if impossible and any(run.runs for run in self.runs[payload]):
            self.problems.append(f"{job.job_id} has run, and could not begin")
        if impossible and job.outcome is not Outcome.CANCELLED:
            self.problems.append(f"{job.job_id} could not begin, and is {job.outcome}")
        return told

    def _outcome(self, payload: bytes) -> Outcome | None:
        job = self._job(payload)
        return None if job is None else job.outcome

    def _judge_order(self, payload: bytes, other: bytes, job: HomeJob) -> None:
        begun = [run.start_time for run in self.runs[payload] if run.start_time is not None]
        over = [run.end_time for run in self.runs[other] if run.end_time is not None and run.runs]
        if begun and over and min(begun) < max(over):
            self.problems.append(
                f"{job.job_id} began at {min(begun)}, and {other!r} ended at {max(over)}"
            )

    def _judge_limit(self, payload: bytes, wish: Wish) -> None:
        assert wish.elements is not None
        changes: list[tuple[float, int]] = []
        for index in wish.elements:
            element = self.users.element(payload, index)
            if self._outcome(element) in _NOT_KNOWN:
                continue
            for run in self.runs[element]:
                if run.start_time is not None and run.end_time is not None:
                    changes += [(run.start_time, 1), (run.end_time, -1)]
        running = most = 0
        for _, change in sorted(changes):
            running += change
            most = max(most, running)
        if wish.elements.limit and most > wish.elements.limit:
            self.problems.append(f"{most} elements of {wish.job_id} ran at one time")
