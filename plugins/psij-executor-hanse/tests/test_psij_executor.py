"""The executor over simulated sites, and over one that fails; `benchmarks.psij_tests` runs PSI/J's own tests over a real Slurm."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from psij import (
    InvalidJobException,
    Job,
    JobAttributes,
    JobSpec,
    JobState,
    JobStatus,
    ResourceSpecV1,
    SubmitException,
)

from grms.client import Changes, JobPhase, Outcome, SiteError, SiteUnavailable
from grms.client import Job as SiteJob
from grms.client import JobState as SiteState
from lrms_sim.workload.requests import Gpus, Memory
from psij_executor_hanse.executor import HanseJobExecutor, status_of
from psij_executor_hanse.wanted import wanted_of
from tests.grms.site.daemons import document, running, two_sites
from tests.programs import run_program
from tests.waiting import run

T = TypeVar("T")


def sleep(**more: Any) -> Job:
    """Returns a job."""
    return Job(JobSpec("/bin/sleep", ["60"], **more))


def wanted(spec: JobSpec) -> dict[str, Any]:
    """Returns what a site is asked for."""
    spec.resources = spec.resources or ResourceSpecV1()
    return wanted_of(Job(spec), spec, ["launch", "it's"])


def site_job(state: SiteState, outcome: Outcome | None = None, **more: Any) -> SiteJob:
    """Returns a job of a site."""
    return SiteJob(
        "home-1", "", "me", 1, 60.0, state, "", 0.0, None, None, outcome, False, "", **more
    )


def test_all_that_psij_says_reaches_the_site() -> None:
    """Resources and attributes, with those of the executor's own."""
    custom: dict[str, object] = {
        "hanse.sites": "a,b",
        "hanse.qos": "q",
        "hanse.constraint": "x&y",
        "slurm.wckey": "w",
    }
    resources = ResourceSpecV1(2, 4, 3, 1, exclusive_node_use=True, memory=5 * 2**30 + 1)
    attributes = JobAttributes(timedelta(seconds=3700.5), "p", "acc", custom_attributes=custom)
    found = wanted(JobSpec("/bin/true", name="n", resources=resources, attributes=attributes))
    needs = found["needs"]
    assert (needs.tasks, needs.cores_per_task, needs.tasks_per_node) == (4, 3, 2)
    assert (needs.nodes_min, needs.nodes_max, needs.exclusive) == (2, 2, True)
    assert (needs.memory, needs.gpus) == (Memory(2561, "node"), Gpus(1, "task"))
    assert (needs.partition, needs.account, needs.qos) == ("p", "acc", "q")
    assert (needs.features, needs.wall_time) == (("x", "y"), 3700.5)
    assert (found["sites"], found["home_only"], found["name"]) == (["a", "b"], False, "n")


def test_a_job_that_says_nothing_is_one_process_at_home() -> None:
    found = wanted(JobSpec("/bin/true", attributes=None))
    assert found["needs"].processors_alone
    assert (found["sites"], found["home_only"]) == ([], True)
    free = JobAttributes(custom_attributes={"hanse.home_only": False})
    assert not wanted(JobSpec("/bin/true", attributes=free))["home_only"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"attributes": JobAttributes(reservation_id="r")}, "no reservations"),
        ({"attributes": JobAttributes(custom_attributes={"hanse.colour": 1})}, "hanse.colour"),
        ({"attributes": JobAttributes(custom_attributes={"hanse.sites": 1})}, "must be names"),
        ({"attributes": JobAttributes(custom_attributes={"hanse.home_only": "no"})}, "True or"),
        ({"attributes": JobAttributes(custom_attributes={"hanse.home_only": []})}, "True or"),
        ({"attributes": JobAttributes(timedelta(0))}, "more than 0"),
        ({"environment": {"a b": "c"}}, "no name"),
        ({"resources": "much"}, "ResourceSpecV1"),
        ({"resources": ResourceSpecV1(process_count=-1)}, "tasks"),
    ],
)
def test_what_a_site_cannot_do_is_refused_by_name(spec: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        wanted(JobSpec("/bin/true", **spec))


@pytest.mark.parametrize("inherits", [True, False])
def test_the_script_has_folder_variables_and_nodes(tmp_path: Path, inherits: bool) -> None:
    """A file of nodes has a line for each process; what is not inherited is not there."""
    folder = tmp_path / "it's here"
    folder.mkdir()
    spec = JobSpec(
        "x",
        directory=folder,
        environment={"SAID": "it's $HOME"},
        inherit_environment=inherits,
        resources=ResourceSpecV1(process_count=3),
    )
    told = wanted_of(
        Job(spec),
        spec,
        ["bash", "-c", 'pwd; echo "$SAID"; wc -l < "$PSIJ_NODEFILE"; echo "${GIVEN-none}"'],
    )
    said = run_program(
        ["/bin/bash", "-c", told["script"]],
        env={"PATH": "/usr/bin:/bin", "GIVEN": "given", "TMPDIR": str(tmp_path)},
        check=True,
    )
    given = "given" if inherits else "none"
    assert said.stdout.splitlines() == [str(folder), "it's $HOME", "3", given], said.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["it's here"]


@pytest.mark.parametrize(
    ("job", "state"),
    [
        (site_job(SiteState.RECEIVED), JobState.QUEUED),
        (site_job(SiteState.DELEGATED, phase=JobPhase.WAITING), JobState.QUEUED),
        (site_job(SiteState.DELEGATED, phase=JobPhase.RUNNING), JobState.ACTIVE),
        (site_job(SiteState.RUNNING, phase=JobPhase.SUSPENDED), JobState.ACTIVE),
        (site_job(SiteState.ENDED, Outcome.COMPLETED, exit_code=0), JobState.COMPLETED),
        (site_job(SiteState.ENDED, Outcome.FAILED, exit_code=3), JobState.FAILED),
        (site_job(SiteState.ENDED, Outcome.TIMEOUT), JobState.FAILED),
        (site_job(SiteState.ENDED, Outcome.CANCELLED), JobState.CANCELED),
    ],
)
def test_states_have_psijs_words(job: SiteJob, state: JobState) -> None:
    """With the exit code, and why a job has failed."""
    status = status_of(job)
    assert (status.state, status.exit_code) == (state, job.exit_code)
    assert bool(status.message) == (state in {JobState.FAILED, JobState.CANCELED})


def scene(folder: Path, play: Callable[[str], Awaitable[None]], **more: Any) -> None:
    """Plays at a simulated site."""

    async def alone() -> None:
        async with running(document(folder, **more), folder):
            await play(str(folder / "home.sock"))

    run(alone)


def test_a_job_is_followed_to_its_end(tmp_path: Path) -> None:
    """With its native id at once, by two jobs of PSI/J, and through a callback that submits another one."""

    async def play(socket: str) -> None:
        executor, other = HanseJobExecutor(socket), HanseJobExecutor(socket)
        job, twin, late, then = sleep(), Job(), Job(), sleep()

        def chain(changed: Job, status: JobStatus) -> None:
            if changed is job and status.state == JobState.CANCELED:
                executor.submit(then)

        executor.callback = chain
        await asyncio.to_thread(executor.submit, job)
        assert job.native_id is not None
        await asyncio.to_thread(other.attach, twin, job.native_id)
        await asyncio.to_thread(job.until, JobState.ACTIVE)
        assert await asyncio.to_thread(other.list) == [job.native_id]
        await asyncio.to_thread(executor.cancel, job)
        for each in (job, twin):
            status = await asyncio.to_thread(each.until, JobState.COMPLETED)
            assert status.state == JobState.CANCELED
            assert each.told == sorted(each.told)
        await asyncio.to_thread(executor.cancel, job)  # says nothing: it has ended
        await asyncio.to_thread(then.until, JobState.ACTIVE)
        await asyncio.to_thread(other.attach, late, job.native_id)
        assert (await asyncio.to_thread(late.until, JobState.COMPLETED)).final
        await asyncio.to_thread(executor.cancel, then)
        await asyncio.to_thread(then.until, JobState.COMPLETED)
        # With nothing open there is no stream.
        while executor._thread is not None or other._thread is not None:  # noqa: ASYNC110  # it has no event
            await asyncio.sleep(0.01)

    scene(tmp_path, play)


def test_many_jobs_end_and_none_is_missed(tmp_path: Path) -> None:
    """What ends before its submission has an answer is told all the same; a simulated site runs no programs."""

    async def play(socket: str) -> None:
        executor = HanseJobExecutor(socket)
        short = partial(JobAttributes, timedelta(seconds=0.05))
        jobs = [sleep(attributes=short()) for _ in range(40)]
        await asyncio.gather(*(asyncio.to_thread(executor.submit, job) for job in jobs))
        for job in jobs:
            status = await asyncio.to_thread(job.until, JobState.COMPLETED)
            assert status.state == JobState.FAILED
            assert "simulated" in (status.message or "")
        assert len({job.native_id for job in jobs}) == len(jobs)

    scene(tmp_path, play, processors=16)


async def test_a_job_runs_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a partner, which says that it runs."""
    monkeypatch.setattr("grms.site.peers.progress.INTERVAL_S", 0.05)
    async with two_sites(tmp_path):
        executor = HanseJobExecutor(str(tmp_path / "home.sock"))
        job = sleep(attributes=JobAttributes(custom_attributes={"hanse.sites": ["away"]}))
        await asyncio.to_thread(executor.submit, job)
        status = await asyncio.to_thread(job.until, JobState.ACTIVE)
        assert (status.metadata or {})["executed_on"] == "away"
        await asyncio.to_thread(executor.cancel, job)
        await asyncio.to_thread(job.until, JobState.COMPLETED)


def test_what_is_refused_leaves_the_job_free(tmp_path: Path) -> None:
    """It may be submitted again, elsewhere or changed."""

    async def play(socket: str) -> None:
        executor = HanseJobExecutor(socket)
        for spec in (
            {"resources": ResourceSpecV1(process_count=999)},
            {"attributes": JobAttributes(reservation_id="r")},
            {"launcher": "none"},
        ):
            job = sleep(**spec)
            with pytest.raises(InvalidJobException):
                await asyncio.to_thread(executor.submit, job)
            assert (job.executor, job.native_id, job.told) == (None, None, [])
        with pytest.raises(InvalidJobException, match="no executable"):
            executor.submit(Job(JobSpec()))
        with pytest.raises(SubmitException, match="there is no job"):
            await asyncio.to_thread(executor.attach, Job(), "home-77")
        with pytest.raises(SubmitException, match="not submitted"):
            executor.cancel(sleep())
        started = sleep()
        started.tell(JobStatus(JobState.QUEUED))
        with pytest.raises(InvalidJobException, match="not new"):
            executor.attach(started, "home-1")

    scene(tmp_path, play)


class FakeSite:
    """What the executor calls of `SyncClient`."""

    def __init__(self) -> None:
        self.is_away = False
        self.refuses_stream = False
        self.keys: list[str] = []
        self.held: dict[str, SiteJob] = {}

    def submit(self, **wanted: Any) -> SiteJob:
        """Takes a job; the answer is lost while the site is away."""
        self.keys.append(wanted["key"])
        self.held["home-1"] = site_job(SiteState.QUEUED)
        return self._unless_away(self.held["home-1"])

    def get(self, job_id: str) -> SiteJob:
        """Returns a job."""
        return self._unless_away(self.held[job_id])

    cancel = get

    def jobs(self, states: Sequence[SiteState]) -> Iterator[SiteJob]:
        """Yields jobs."""
        assert SiteState.ENDED not in states
        yield from self._unless_away(self.held.values())

    def get_many(self, job_ids: Sequence[str]) -> list[SiteJob | SiteError]:
        """Returns jobs."""
        none = SiteError("NOT_FOUND", "there is no such job")
        return [self._unless_away(self.held.get(each, none)) for each in job_ids]

    def changes(self, after: str) -> Iterator[Changes]:
        """Yields once, and breaks off."""
        assert after in {"", "1.1"}
        if self.refuses_stream:
            raise SiteError("RESOURCE_EXHAUSTED", "too many calls follow jobs")
        yield self._unless_away(Changes((), "1.1", "me"))
        raise SiteUnavailable("UNAVAILABLE", "the site is away")

    def _unless_away(self, answer: T) -> T:
        if self.is_away:
            raise SiteUnavailable("UNAVAILABLE", "no daemon answers")
        return answer


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> FakeSite:
    made = FakeSite()

    @contextmanager
    def connect(socket: str, *, timeout_s: float) -> Iterator[FakeSite]:
        assert (socket, timeout_s) == ("users.sock", 30.0)
        yield made

    monkeypatch.setattr("psij_executor_hanse.executor.SyncClient", connect)
    monkeypatch.setattr("psij_executor_hanse.executor.PAUSE_S", 0.01)
    monkeypatch.setenv("HANSE_SOCKET", "users.sock")
    return made


def test_a_lost_answer_makes_no_second_job(site: FakeSite) -> None:
    """The same job of PSI/J has the same key."""
    executor, job = HanseJobExecutor(), sleep()
    site.is_away = True
    with pytest.raises(SubmitException) as error:
        executor.submit(job)
    assert error.value.transient
    site.is_away = False
    executor.submit(job)
    assert job.native_id == "home-1"
    assert site.keys == [f"psij-{job.id}"] * 2
    site.held["home-1"] = site_job(SiteState.ENDED, Outcome.COMPLETED, exit_code=0)
    assert job.until(JobState.COMPLETED).state == JobState.COMPLETED


@pytest.mark.parametrize("refuses", [True, False])
def test_a_site_that_cannot_be_followed_is_asked(site: FakeSite, refuses: bool) -> None:
    """Also while it is away now and then; a job that it does not have any more has failed."""
    site.refuses_stream = refuses
    executor, job, gone = HanseJobExecutor(), sleep(), sleep()
    executor.submit(job)
    site.is_away = True
    site.held["home-1"] = site_job(SiteState.ENDED, Outcome.COMPLETED, exit_code=0)
    site.is_away = False
    assert job.until(JobState.COMPLETED).exit_code == 0
    executor.submit(gone)
    del site.held["home-1"]
    status = gone.until(JobState.COMPLETED)
    assert (status.state, "no such job" in (status.message or "")) == (JobState.FAILED, True)


def test_a_call_without_an_answer_is_an_error(site: FakeSite) -> None:
    """For those who cancel, attach or list."""
    executor, job = HanseJobExecutor(), sleep()
    executor.submit(job)
    site.is_away = True
    new = Job()
    for call in (
        partial(executor.attach, new, "home-1"),
        partial(executor.cancel, job),
        executor.list,
    ):
        with pytest.raises(SubmitException, match="no daemon answers"):
            call()
    assert new.executor is None
    site.is_away = False
    site.held["home-1"] = site_job(SiteState.ENDED, Outcome.COMPLETED, exit_code=0)
    job.until(JobState.COMPLETED)


def test_a_site_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HANSE_SOCKET", raising=False)
    with pytest.raises(ValueError, match="no site is named"):
        HanseJobExecutor()
