"""Many jobs at a time: handed in, asked for, cancelled, followed and waited for."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.client import Changes, Client, Job, Outcome, SiteError
from grms.client import asynchronous as ends_module
from grms.client import unary_methods as many_module
from grms.client.asynchronous import Ends
from grms.daemon.pacing import BackoffSettings
from grms.site.model.lifecycle import JobState as State
from grms.site.rpc import job_service
from grms.site.rpc import watchers as watchers_module
from tests.grms.site.daemons import document, running, two_sites
from tests.waiting import meanwhile, until


def wanted(**more: Any) -> dict[str, Any]:
    """Returns the arguments of a short job."""
    return {"processors": 1, "requested_time_s": 60.0, "run_time_s": 0.01, **more}


def errors(answers: Sequence[Job | SiteError]) -> list[str]:
    """Returns the codes of refusals, and the ids of jobs."""
    return [each.code if isinstance(each, SiteError) else each.job_id for each in answers]


async def test_each_of_many_is_answered_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, in as few calls as they fit in, and with few writes of the journal; a refusal touches no other."""
    monkeypatch.setattr(many_module, "JOBS_MAX", 60)
    # Written in a thread, as where a disk has to be waited for; and a small message is all that it takes.
    configuration = document(tmp_path, limits={"message_bytes": 1024})
    configuration["journal"]["survives"] = "power_loss"
    async with (
        running(configuration, tmp_path) as daemon,
        Client(tmp_path / "home.sock") as site,
    ):
        jobs = [wanted(key=f"k{number}") for number in range(100)]
        jobs[7] = wanted(processors=10_000)
        jobs[9] = wanted(key="k8")
        groups = daemon.core.engine.groups
        answers = await site.submit_many(jobs)
        assert daemon.core.engine.groups - groups < 60
        ids = errors(answers)
        assert ids[7] == "INVALID_ARGUMENT"
        assert ids[8] == ids[9]
        assert ids[:7] == [f"home-{number}" for number in range(1, 8)]
        assert len(set(ids)) == 99
        assert errors(await site.submit_many(jobs[10:])) == ids[10:]  # handed in again

        found = await site.get_many(["home-3", "home-999", "5"], keys=["k50", "none"])
        assert errors(found) == ["home-3", "NOT_FOUND", "home-5", ids[50], "NOT_FOUND"]
        long = await site.submit_many([wanted(run_time_s=3000.0)] * 3)
        ended = await site.cancel_many([each.job_id for each in long if isinstance(each, Job)])
        assert all(isinstance(each, Job) and each.cancel_requested for each in ended)
        assert errors(await site.cancel_many(["home-x"])) == ["NOT_FOUND"]
        assert await site.submit_many([]) == []


async def test_a_mistake_of_the_caller_submits_nothing(tmp_path: Path) -> None:
    """What no site could take is found before any of them is handed in."""
    async with (
        running(document(tmp_path), tmp_path),
        Client(tmp_path / "home.sock") as site,
    ):
        with pytest.raises(ValueError, match="key is empty"):
            await site.submit_many([wanted(), wanted(key="")])
        assert [job async for job in site.jobs()] == []


async def test_too_many_in_one_call_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a reason, and none of them is taken."""
    monkeypatch.setattr(many_module, "JOBS_MAX", 2000)
    async with (
        running(document(tmp_path), tmp_path),
        Client(tmp_path / "home.sock") as site,
    ):
        with pytest.raises(SiteError, match="1001 jobs; at most 1000") as error:
            await site.get_many(["home-1"] * 1001)
        assert error.value.code == "INVALID_ARGUMENT"


async def test_those_that_come_too_soon_are_handed_in_again(tmp_path: Path) -> None:
    """A rate of submissions holds for each of many, and they wait as they are told to."""
    limits = {"submissions_per_s": 5.0}
    async with (
        running(document(tmp_path, limits=limits), tmp_path),
        Client(tmp_path / "home.sock") as site,
    ):
        answers = await site.submit_many([wanted() for _ in range(55)])
        assert len(set(errors(answers))) == 55
        assert all(isinstance(each, Job) for each in answers)


async def test_the_number_of_a_job_is_enough(tmp_path: Path) -> None:
    """Programs that read a number from what they are told use it as the name of a job, an element or an array."""
    async with (
        running(document(tmp_path), tmp_path),
        Client(tmp_path / "home.sock") as site,
    ):
        first = await site.submit(**wanted(run_time_s=0.1))
        array = await site.submit(**wanted(array="1-3", run_time_s=0.1))
        number = array.job_id.removeprefix("home-")
        after = await site.submit(**wanted(dependency=f"afterok:1:{number}_2"))
        assert after.dependencies == ("afterok:home-1", f"afterok:{array.job_id}_2")
        assert (await site.get("1")).job_id == first.job_id
        assert (await site.wait("1")).job_id == first.job_id
        assert (await site.wait(number)).array is not None
        assert (await site.get(f"{number}_3")).array_index == 3
        long = await site.submit(**wanted(array="1-9", run_time_s=3000.0))
        some = long.job_id.removeprefix("home-")
        await site.cancel(f"{some}_[2-4]")
        assert (await site.get(f"{some}_3")).cancel_requested
        assert not (await site.get(f"{some}_5")).cancel_requested
        await site.cancel(some)
        for wrong in ("01", "1 ", "+1", "1_", "99999999999999999999999", "1.0"):
            with pytest.raises(SiteError, match="there is no job"):
                await site.get(wrong)


async def test_gone_and_never_there_are_two_answers(tmp_path: Path) -> None:
    """A job that is forgotten has ended; one that has never been is a mistake; of other names a site knows nothing."""
    async with (
        running(document(tmp_path), tmp_path) as daemon,
        Client(tmp_path / "home.sock") as site,
    ):
        memory = daemon.core.engine.state.memory
        memory.settings = replace(
            memory.settings, limits=replace(memory.settings.limits, jobs_kept=2)
        )
        for key in ("first", None, None, None):
            job = await site.submit(**wanted(), key=key)
            await site.wait(job.job_id)
        told = {}
        for name in ("home-1", "home-77", "elsewhere-1", "2"):
            with pytest.raises(SiteError) as error:
                await site.get(name)
            told[name] = (error.value.is_forgotten, error.value.never_was)
        assert told == {
            "home-1": (True, False),
            "home-77": (False, True),
            "elsewhere-1": (False, False),
            "2": (True, False),
        }
        # By its key neither is it run again, nor unknown.
        for again in (site.get(key="first"), site.submit(**wanted(), key="first")):
            with pytest.raises(SiteError, match=r"home-1\b") as error:
                await again
            assert error.value.is_forgotten


async def test_a_stream_goes_on_where_it_was(tmp_path: Path) -> None:
    """By a token, over restarts, every end is told; what is over and told is not told again."""
    configuration = document(tmp_path)
    seen: dict[str, Outcome | None] = {}

    async def follow(after: str, most: int) -> str:
        token = ""
        async with Client(tmp_path / "home.sock", timeout_s=300) as site:
            async for told in site.changes(after):
                seen.update((job.job_id, job.outcome) for job in told.jobs if job.has_ended)
                token = told.token or token
                if len(seen) >= most and told.token:
                    return token
        raise AssertionError

    async with running(configuration, tmp_path), Client(tmp_path / "home.sock") as site:
        await site.submit_many([wanted() for _ in range(5)])
        first = await follow("0", 5)
        seen.clear()
        await site.submit_many([wanted() for _ in range(5)])
        for number in range(6, 11):
            await site.wait(f"home-{number}")
        left = await site.submit(**wanted(run_time_s=0.5))
    async with running(configuration, tmp_path), Client(tmp_path / "home.sock") as site:
        await site.wait(left.job_id)
        second = await follow(first, 6)
        assert seen == {f"home-{number}": Outcome.COMPLETED for number in range(6, 12)}
        assert second != first
        following = asyncio.create_task(follow(second, 7), name="follow")
        await asyncio.sleep(0)
        await site.submit(**wanted())
        await following
        for wrong in ("1", "x.1", "1.01", "0.", "1.2.3", "-1.0"):
            with pytest.raises(SiteError, match="no token"):
                await anext(site.changes(wrong))
        # A journal that was lost begins anew: all that is remembered is told.
        async for told in site.changes("7f.3"):
            assert len(told.jobs) == 12
            break


async def test_a_stream_outlives_the_daemon(tmp_path: Path) -> None:
    """A client that follows all jobs gets over a restart, and misses no end that came meanwhile."""
    configuration = document(tmp_path)
    async with Client(tmp_path / "home.sock", timeout_s=300) as site:
        ended: list[str] = []

        async def follow() -> None:
            async for told in site.changes():
                ended.extend(job.job_id for job in told.jobs if job.has_ended)

        async with meanwhile(follow()):
            async with running(configuration, tmp_path):
                await site.submit_many([wanted(), wanted(run_time_s=1.0)])
                await until(lambda: "home-1" in ended)
            async with running(configuration, tmp_path):
                await until(lambda: sorted(ended) == ["home-1", "home-2"])


def test_who_does_not_read_is_told_to_come_again() -> None:
    """What waits for a watcher is bounded, and each job waits there once."""
    jobs: Any = [SimpleNamespace(job=number) for number in range(5)]
    changed = watchers_module.ChangedJobs()
    changed.add(jobs)
    changed.add(jobs[1:2])
    taken, is_all = changed.take(4)
    assert ([job.job for job in taken], is_all) == ([0, 2, 3, 4], False)
    assert changed.event.is_set()
    assert changed.take(4) == ([jobs[1]], True)
    assert not changed.event.is_set()


async def test_a_stream_that_is_not_read_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client goes on by itself with the token it has."""
    monkeypatch.setattr(watchers_module, "CHANGED_MAX", 3)
    monkeypatch.setattr(job_service, "CHANGES_PAUSE_S", 0.3)
    async with (
        running(document(tmp_path), tmp_path) as daemon,
        Client(tmp_path / "home.sock") as site,
    ):
        ended: set[str] = set()

        async def follow() -> None:
            async for told in site.changes():
                ended.update(job.job_id for job in told.jobs if job.has_ended)

        async with meanwhile(follow()):
            await until(lambda: daemon.daemon is not None)
            await site.submit_many([wanted() for _ in range(9)])
            await until(lambda: len(ended) == 9)


async def test_any_number_of_waits_is_one_call(tmp_path: Path) -> None:
    """However few calls may watch at a time, every wait ends; also that for an array."""
    async with (
        running(document(tmp_path, limits={"watchers": 2}), tmp_path),
        Client(tmp_path / "home.sock") as site,
    ):
        jobs = await site.submit_many([wanted(run_time_s=0.02) for _ in range(200)])
        names = [job.job_id for job in jobs if isinstance(job, Job)]
        array = await site.submit(**wanted(array="1-3"))
        ended = await asyncio.gather(*map(site.wait, [*names, array.job_id]))
        assert {job.outcome for job in ended} == {Outcome.COMPLETED}
        assert [job.job_id for job in ended] == [*names, array.job_id]


async def test_a_wait_goes_on_where_nothing_can_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may have all calls that watch for as long as they like: then it is asked now and then."""
    monkeypatch.setattr(ends_module, "ASKED", BackoffSettings(first_s=0.01, most_s=0.05))
    async with (
        running(document(tmp_path, limits={"watchers": 1}), tmp_path),
        Client(tmp_path / "home.sock") as other,
        Client(tmp_path / "home.sock", timeout_s=2.0) as site,
    ):
        stream = other.changes()
        await anext(stream)
        job = await site.submit(**wanted(run_time_s=0.3))
        assert (await site.wait(job.job_id)).outcome is Outcome.COMPLETED
        with pytest.raises(SiteError, match="there is no job"):
            await site.wait("home-9")


async def test_a_wait_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    """Neither a task nor a call; the next wait begins anew."""
    async with (
        running(document(tmp_path), tmp_path),
        Client(tmp_path / "home.sock") as site,
    ):
        job = await site.submit(**wanted(run_time_s=3000.0))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(site.wait(job.job_id), 0.3)
        assert site._ends._following is None
        await site.cancel(job.job_id)
        assert (await site.wait(job.job_id)).outcome is Outcome.CANCELLED


async def test_the_error_of_a_stream_is_that_of_every_wait() -> None:
    """Nobody waits for ever for a site that has refused."""

    class Refusing:
        async def get(self, job_id: str) -> Job:
            return cast(Job, SimpleNamespace(job_id=job_id, has_ended=False, array=None, user="me"))

        async def changes(self) -> Any:
            yield Changes((), "1.0", "me")
            await asyncio.sleep(0.05)
            raise SiteError("PERMISSION_DENIED", "no more")

    async def alone(_: str) -> Job:
        raise AssertionError

    ends = Ends(cast(Any, Refusing()), alone)
    told = await asyncio.gather(*(ends.of(f"a-{n}") for n in range(3)), return_exceptions=True)
    assert [str(each) for each in told] == ["no more (PERMISSION_DENIED)"] * 3


class Book:
    """What is remembered of jobs, as far as tokens need it."""

    def __init__(self) -> None:
        self.epoch = 1
        self.ended: list[int] = []
        self.jobs: dict[int, Any] = {}


@given(
    steps=st.lists(st.sampled_from(["submit", "end", "tell", "restart"]), max_size=60),
    kept=st.integers(1, 5),
    order=st.randoms(use_true_random=False),
)
def test_every_end_is_told_by_tokens(steps: list[str], kept: int, order: Any) -> None:
    """Whenever a stream breaks and goes on: each end that is remembered is told, and told once."""
    book, told, token = Book(), [], "0"
    open_jobs: list[int] = []
    forgotten: set[int] = set()
    for step in steps:
        if step == "submit":
            number = len(book.jobs) + len(forgotten) + 1
            book.jobs[number] = SimpleNamespace(job=number, user="me", state=State.RUNNING)
            open_jobs.append(number)
        elif step == "end" and open_jobs:
            number = open_jobs.pop(order.randrange(len(open_jobs)))
            book.jobs[number].state = State.ENDED
            book.ended.append(number)
            if len(book.ended) > kept:
                forgotten.add(book.ended[0])
                del book.jobs[book.ended.pop(0)]
        elif step == "tell":
            state: Any = SimpleNamespace(memory=book)
            news = list(job_service._since(state, "me", token))
            assert [job.job for job in news if job.state is not State.ENDED] == sorted(open_jobs)
            told += [job.job for job in news if job.state is State.ENDED]
            token = job_service._write_token(state)
            assert job_service._read_token(token) == token
            assert set(book.ended) <= set(told)
    # A token that is itself forgotten tells some again, never fewer.
    if not forgotten:
        assert len(told) == len(set(told))


async def test_a_job_runs_only_where_its_user_wants_it(tmp_path: Path) -> None:
    """At a partner though home is free, at home though it is full; a name of no site is refused."""
    async with two_sites(tmp_path), Client(tmp_path / "home.sock") as site:
        away = await site.submit(**wanted(), sites=["away"])
        assert (await site.wait(away.job_id)).executed_on == "away"
        long = await site.submit(**wanted(processors=4, run_time_s=600.0, requested_time_s=900.0))
        here = await site.submit(**wanted(), home_only=True)
        assert (away.sites, here.sites) == (("away",), ("home",))
        await site.cancel(long.job_id)
        assert (await site.wait(here.job_id)).executed_on == "home"
        with pytest.raises(SiteError, match="jobs are exchanged with away") as error:
            await site.submit(**wanted(), sites=["away", "nowhere"])
        assert error.value.field == "sites"
        with pytest.raises(SiteError, match="give one of them"):
            await site.submit(**wanted(), sites=["away"], home_only=True)
