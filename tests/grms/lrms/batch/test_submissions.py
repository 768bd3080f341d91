"""Submissions that come together go in one call, and no other waits for them."""

import asyncio
from collections.abc import Hashable, Sequence
from pathlib import Path

import pytest

from grms.lrms.base import LrmsJob, LrmsRefusedError, LrmsUnavailableError
from grms.lrms.batch import submissions
from grms.lrms.batch.submissions import Submissions
from tests.grms.lrms.batch.forgetful import Forgetful


class Takes(Forgetful):
    """A batch system that takes jobs alone and together.

    Attributes:
        calls: names of the jobs of each call.
        refuses: what each call for several raises.
        refuses_one: what each call for one raises.
        given_up: whose callers give up during a call for several.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[list[str]] = []
        self.refuses: Exception | None = None
        self.refuses_one: Exception | None = None
        self.given_up: list[asyncio.Future[str]] = []

    def alike(self, name: str, job: LrmsJob, folder: Path) -> Hashable:
        """See `SubmitsMany.alike`."""
        del job, folder
        return name[0] if name[0] != "-" else None

    async def submit(self, name: str, job: LrmsJob, folder: Path) -> str:
        """See `BatchSystem.submit`."""
        del job, folder
        self.calls.append([name])
        if self.refuses_one is not None:
            raise self.refuses_one
        return f"one {name}"

    async def submit_all(self, jobs: Sequence[tuple[str, LrmsJob, Path]]) -> list[str]:
        """See `SubmitsMany.submit_all`."""
        self.calls.append([name for name, _, _ in jobs])
        for each in self.given_up:
            each.cancel()
        await asyncio.sleep(0)
        if self.refuses is not None:
            raise self.refuses
        return [f"of {name}" for name, _, _ in jobs]


JOB = LrmsJob("A/1/1", 1, 60.0)


async def submitted(system: Takes, names: Sequence[str]) -> list[str | BaseException]:
    """Submits jobs that are prepared one after the other, and returns the answers."""
    some = Submissions(system)

    async def one(name: str, turns: int) -> str:
        with some.coming():
            for _ in range(turns):
                await asyncio.sleep(0)
        return await some.submit(name, JOB, Path("/"))

    tries = (one(name, 3 * turn) for turn, name in enumerate(names))
    return await asyncio.gather(*tries, return_exceptions=True)


async def test_what_is_prepared_together_goes_together() -> None:
    """By what it is like; what goes alone waits for nothing."""
    system = Takes()
    names = ["a1", "-", "b1", "a2", "b2", "c"]
    answers = await submitted(system, names)
    assert answers == ["of a1", "one -", "of b1", "of a2", "of b2", "one c"]
    assert system.calls[0] == ["-"]
    assert sorted(system.calls[1:]) == [["a1", "a2"], ["b1", "b2"], ["c"]]


async def test_a_batch_system_that_takes_one_gets_one() -> None:
    """Whatever comes together."""
    some = Submissions(system := Takes(), together=False)
    assert some.at_once == 0
    tries = (some.submit(name, JOB, Path("/")) for name in ("a1", "a2"))
    assert await asyncio.gather(*tries) == ["one a1", "one a2"]
    assert system.calls == [["a1"], ["a2"]]


async def test_what_is_refused_together_is_tried_alone() -> None:
    """It may be the number."""
    system = Takes()
    system.refuses = LrmsRefusedError("no arrays", passing=True)
    assert await submitted(system, ["a1", "a2", "a3"]) == ["one a1", "one a2", "one a3"]
    assert [len(call) for call in system.calls] == [3, 1, 1, 1]


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (LrmsRefusedError("the partition is drained", passing=True), 1),
        (LrmsUnavailableError("no answer"), 1),
        (LrmsRefusedError("no such account"), 3),
    ],
)
async def test_what_the_first_alone_meets_the_others_meet(error: Exception, calls: int) -> None:
    """Unless it is about that job: very many do not wait for as many time-outs."""
    system = Takes()
    system.refuses, system.refuses_one = LrmsRefusedError("no"), error
    assert await submitted(system, ["a1", "a2", "a3"]) == [error] * 3
    assert [len(call) for call in system.calls] == [3, *[1] * calls]


async def test_without_an_answer_none_has_one() -> None:
    """Each is looked up; none is tried again here."""
    system = Takes()
    system.refuses = LrmsUnavailableError("no answer")
    assert await submitted(system, ["a1", "a2"]) == [system.refuses] * 2
    assert len(system.calls) == 1


async def test_what_is_given_up_meanwhile_is_not_submitted() -> None:
    """Its caller's time was over before its turn came."""
    some = Submissions(system := Takes())
    with some.coming():
        first, second = (
            asyncio.ensure_future(some.submit(name, JOB, Path("/"))) for name in ("a1", "a2")
        )
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
    assert await second == "one a2"
    assert system.calls == [["a2"]]


async def test_what_is_given_up_after_a_refusal_is_not_submitted() -> None:
    """It may be submitted again by then, and would be twice."""
    some = Submissions(system := Takes())
    system.refuses = LrmsRefusedError("no arrays", passing=True)
    with some.coming():
        first, second, third = (
            asyncio.ensure_future(some.submit(name, JOB, Path("/"))) for name in ("a1", "a2", "a3")
        )
        await asyncio.sleep(0)
    system.given_up = [first, third]
    assert await second == "one a2"
    assert system.calls == [["a1", "a2", "a3"], ["a2"]]


async def test_nobody_is_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is prepared for ever holds up none."""
    monkeypatch.setattr(submissions, "GATHERED_S", 0.01)
    some = Submissions(Takes())
    with some.coming():
        assert await some.submit("a1", JOB, Path("/")) == "one a1"
