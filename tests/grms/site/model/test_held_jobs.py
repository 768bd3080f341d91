"""Held jobs and arrays, by themselves: against definitions that look at all that has happened."""

import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from grms.site.model.held_jobs import OK, HeldJobBook, JobArray, Target
from grms.site.model.jobs import Request
from grms.site.model.lifecycle import Outcome
from grms.util.dependencies import Dependency
from grms.util.job_arrays import ArraySpec
from tests.examples import runs


@dataclass
class Known:
    """A job of the definition: what it waits for, where it stands, how it ended."""

    number: int
    name: str
    dependencies: tuple[Dependency, ...]
    array: JobArray | None
    index: int
    released: bool = False
    outcome: Outcome | None = None


@dataclass
class Definition:
    """All that has happened, and what follows from it, each time anew."""

    jobs: dict[int, Known] = field(default_factory=dict)
    arrays: dict[int, JobArray] = field(default_factory=dict)

    def elements(self, array: int) -> list[Known]:
        """Returns the elements of an array."""
        return [
            job for job in self.jobs.values() if job.array is not None and job.array.array == array
        ]

    def named(self, dependency: Dependency, job: Known) -> list[Known]:
        """Returns the jobs that a dependency means."""
        if dependency.kind == "singleton":
            return [
                other
                for other in self.jobs.values()
                if other.name == job.name and other.number < job.number
            ]
        array, _, index = dependency.job_id.partition("_")
        if index:
            return [self.jobs[self.arrays[int(array)].element(int(index))]]
        if int(array) not in self.arrays:
            return [self.jobs[int(array)]]
        found = self.elements(int(array))
        if dependency.kind == "aftercorr":
            found = [each for each in found if each.index == job.index]
        return found

    def stands(self, dependency: Dependency, job: Known) -> bool | None:
        """Returns whether a dependency is met, or cannot be; None while that is open."""
        others = self.named(dependency, job)
        over = all(other.outcome is not None for other in others)
        bad = any(other.outcome is not None and other.outcome not in OK for other in others)
        if dependency.kind in {"afterok", "aftercorr"}:
            return False if bad else (over or None)
        if dependency.kind == "afternotok":
            return bad if over else None
        return over or None

    def hopeless(self) -> set[int]:
        """Returns the held jobs that can never begin."""
        return {
            job.number
            for job in self.held()
            if any(self.stands(each, job) is False for each in job.dependencies)
        }

    def ready(self) -> set[int]:
        """Returns the held jobs that wait for nothing but perhaps for room."""
        return {
            job.number
            for job in self.held()
            if all(self.stands(each, job) for each in job.dependencies)
        }

    def held(self) -> list[Known]:
        """Returns the held jobs."""
        return [job for job in self.jobs.values() if not job.released and job.outcome is None]

    def under_way(self, array: JobArray) -> int:
        """Returns how many elements are released and have not ended."""
        return sum(job.released and job.outcome is None for job in self.elements(array.array))


class HeldJobs(RuleBasedStateMachine):
    """Jobs and arrays come, are released and end in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.book = HeldJobBook()
        self.all = Definition()
        self.next = 1

    def resolve(self, dependency: Dependency, index: int) -> Target | None:
        """Returns what a dependency names."""
        array, _, element = dependency.job_id.partition("_")
        if element:
            return Target(self.all.arrays[int(array)].element(int(element)))
        if int(array) not in self.all.arrays:
            return Target(int(array))
        if dependency.kind == "aftercorr":
            return Target(self.all.arrays[int(array)].element(index))
        return Target(int(array), array=True)

    def ended(self, number: int) -> bool | None:
        """Returns whether a job has ended, and completed."""
        outcome = self.all.jobs[number].outcome
        return None if outcome is None else outcome in OK

    def choose(self, data: st.DataObject, spec: ArraySpec | None) -> tuple[Dependency, ...]:
        """Draws what a job waits for."""
        ids = [
            f"{job.array.array}_{job.index}" if job.array else str(job.number)
            for job in self.all.jobs.values()
        ] + [str(number) for number in self.all.arrays]
        found: list[Dependency] = []
        for _ in range(data.draw(st.integers(0, 3))):
            kind = data.draw(
                st.sampled_from(["afterok", "afterany", "afternotok", "singleton", "aftercorr"])
            )
            same = [
                str(number)
                for number, array in self.all.arrays.items()
                if spec is not None and all(array.element(index) for index in spec)
            ]
            targets = same if kind == "aftercorr" else ids
            if kind == "singleton":
                found.append(Dependency(kind))
            elif targets:
                found.append(Dependency(kind, data.draw(st.sampled_from(targets))))
        return tuple(dict.fromkeys(found))

    def receive(
        self, name: str, dependencies: tuple[Dependency, ...], array: JobArray | None, index: int
    ) -> None:
        """Hands in one job, or element."""
        number, self.next = self.next, self.next + 1
        job = Known(number, name, dependencies, array, index)
        self.all.jobs[number] = job
        held = self.book.receive(
            number,
            ("ann", name),
            dependencies,
            array=array,
            resolve=lambda dependency: self.resolve(dependency, index),
            ended=self.ended,
        )
        job.released = not held

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """There is an array at the beginning."""
        self.submit_array(data, "x", [0, 1, 2, 5], 2)

    @rule(data=st.data(), name=st.sampled_from("xy"))
    def submit(self, data: st.DataObject, name: str) -> None:
        """A job comes."""
        self.receive(name, self.choose(data, None), None, 0)

    @rule(
        data=st.data(),
        name=st.sampled_from("xy"),
        indices=st.lists(st.integers(0, 6), unique=True, min_size=1, max_size=5),
        limit=st.integers(0, 3),
    )
    def submit_array(self, data: st.DataObject, name: str, indices: list[int], limit: int) -> None:
        """An array comes."""
        spec = ArraySpec.of(sorted(indices), limit)
        dependencies = self.choose(data, spec)
        array = JobArray(
            array=self.next,
            array_id=f"a-{self.next}",
            spec=spec,
            user="ann",
            idempotency_key=str(self.next),
            name=name,
            request=Request(1, 1.0),
            payload=b"",
        )
        self.book.receive_array(array)
        self.all.arrays[self.next] = array
        for index in spec:
            self.receive(name, dependencies, array, index)

    @rule()
    def release(self) -> None:
        """The next one that waits for nothing is released: it is one, and of its array the first."""
        number = self.book.next_ready()
        ready = self.all.ready()
        if not number:
            full = {
                array.array
                for array in self.all.arrays.values()
                if array.spec.limit and self.all.under_way(array) >= array.spec.limit
            }
            for each in ready:
                one = self.all.jobs[each].array
                assert one is not None
                assert one.array in full
            return
        assert number in ready
        job = self.all.jobs[number]
        if job.array is not None:
            assert number == min(
                each.number for each in self.all.elements(job.array.array) if each.number in ready
            )
        self.book.release(number)
        job.released = True

    @precondition(lambda self: any(job.outcome is None for job in self.all.jobs.values()))
    @rule(data=st.data(), outcome=st.sampled_from([*OK, Outcome.FAILED, Outcome.CANCELLED]))
    def end(self, data: st.DataObject, outcome: Outcome) -> None:
        """A job ends: it ran, or it is cancelled."""
        still_open = [job for job in self.all.jobs.values() if job.outcome is None]
        job = data.draw(st.sampled_from(still_open))
        self._end(job, outcome if job.released else Outcome.CANCELLED)

    @rule()
    def end_hopeless(self) -> None:
        """One that cannot begin is ended, until there is none: what depends on it follows."""
        while (found := self.book.next_hopeless()) is not None:
            number, dependency = found
            assert self.all.stands(dependency, self.all.jobs[number]) is False
            self._end(self.all.jobs[number], Outcome.CANCELLED)
        assert not self.all.hopeless()

    def _end(self, job: Known, outcome: Outcome) -> None:
        job.outcome = outcome
        self.book.end(job.number, ("ann", job.name), array=job.array, outcome=outcome)

    @invariant()
    def agrees(self) -> None:
        """The book says of every job what the definition says."""
        held = {job.number for job in self.all.held()}
        assert len(self.book) == len(held)
        assert all(number in self.book for number in held)
        assert set(self.book.hopeless) == self.all.hopeless()
        for array in self.all.arrays.values():
            assert len(array.under_way) == self.all.under_way(array)
            assert not array.spec.limit or len(array.under_way) <= array.spec.limit
        for number in held:
            assert self.book.why(number)

    def teardown(self) -> None:
        """Whatever is left comes to an end, without anybody waiting for ever."""
        for _ in range(10 * len(self.all.jobs) + 10):
            self.end_hopeless()
            self.release()
            running = [job for job in self.all.jobs.values() if job.released and not job.outcome]
            if running:
                self._end(running[0], Outcome.COMPLETED)
        assert all(job.outcome is not None for job in self.all.jobs.values())


TestHeldJobs = HeldJobs.TestCase
TestHeldJobs.settings = hypothesis_settings(
    max_examples=runs(40, 500), stateful_step_count=40, deadline=None
)


@pytest.mark.parametrize(
    ("kind", "outcome", "met"),
    [
        ("afterok", Outcome.COMPLETED, True),
        ("afterok", Outcome.NOT_RUN, True),
        ("afterok", Outcome.FAILED, False),
        ("afterok", Outcome.UNKNOWN, False),
        ("afternotok", Outcome.COMPLETED, False),
        ("afternotok", Outcome.TIMEOUT, True),
        ("afternotok", Outcome.CANCELLED, True),
        ("afterany", Outcome.COMPLETED, True),
        ("afterany", Outcome.NODE_FAIL, True),
    ],
)
def test_what_an_end_means(kind: str, outcome: Outcome, met: bool) -> None:
    """Of a job that nobody knows the outcome of nothing says that it completed."""
    book = HeldJobBook()
    none: dict[str, Any] = {
        "array": None,
        "resolve": lambda _: Target(1),
        "ended": lambda _: None,
    }
    assert not book.receive(1, ("ann", ""), (), **none)
    assert book.receive(2, ("ann", ""), (Dependency(kind, "a-1"),), **none)
    assert book.next_ready() == 0
    assert f"{kind}:a-1" in book.why(2)
    book.end(1, ("ann", ""), array=None, outcome=outcome)
    assert (book.next_ready() == 2) is met
    assert (2 in book.hopeless) is not met


def test_a_forgotten_job_is_waited_for_no_more() -> None:
    """How it ended has been acted on."""
    book = HeldJobBook()
    held = book.receive(
        9,
        ("ann", ""),
        (Dependency("afterok", "a-1"),),
        array=None,
        resolve=lambda _: None,
        ended=lambda _: None,
    )
    assert held
    assert book.next_ready() == 9


def many_behind(kind: str, count: int, array: JobArray | None = None) -> HeldJobBook:
    """Returns a book in which very many jobs wait for the first, or for an array."""
    book = HeldJobBook()
    target = Target(1, array=array is not None)
    if array is not None:
        book.receive_array(array)
    others: dict[str, Any] = {"resolve": lambda _: target, "ended": lambda _: None}
    targets = 1 if array is None else len(array.spec)
    for number in range(1, targets + 1):
        book.receive(number, ("ann", "x"), (), array=array, **others)
    while number := book.next_ready():
        book.release(number)
    for number in range(targets + 1, targets + 1 + count):
        book.receive(number, ("ann", "x"), (Dependency(kind, "a-1"),), array=None, **others)
    return book


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.FAILED])
def test_very_many_that_wait_for_one_cost_in_proportion(outcome: Outcome) -> None:
    """Whether they begin or end: a site answers nobody meanwhile."""
    book = many_behind("afterok", 100_000)
    before = time.thread_time()
    book.end(1, ("ann", "x"), array=None, outcome=outcome)
    count = 0
    while (number := book.next_ready()) or (found := book.next_hopeless()):
        if number:
            book.release(number)
            book.end(number, ("ann", "x"), array=None, outcome=Outcome.COMPLETED)
        else:
            assert found is not None
            book.end(found[0], ("ann", "x"), array=None, outcome=Outcome.CANCELLED)
        count += 1
    assert count == 100_000
    assert time.thread_time() - before < 4.0  # a third of a second where nothing else runs


def test_each_further_failure_of_an_array_costs_nothing_more() -> None:
    """Those that wait for its end, however that is, are not looked through again and again."""
    array = JobArray(
        array=1,
        array_id="a-1",
        spec=ArraySpec.parse("1-1000"),
        user="ann",
        idempotency_key="k",
        name="x",
        request=Request(1, 1.0),
        payload=b"",
    )
    book = many_behind("afterany", 20_000, array)
    before = time.thread_time()
    for number in range(1, 1000):
        book.end(number, ("ann", "x"), array=array, outcome=Outcome.FAILED)
    assert time.thread_time() - before < 1.0
    assert not book.hopeless
    assert not book.next_ready()
    book.end(1000, ("ann", "x"), array=array, outcome=Outcome.FAILED)
    assert book.next_ready() == 1001
