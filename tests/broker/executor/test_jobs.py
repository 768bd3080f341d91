"""Ordinary jobs at a site's daemon: programs over made up programs of Slurm, and over a simulated machine."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from broker.executor.base import (
    GivenFile,
    Order,
    ProgramRefused,
    Reservation,
    ReservationRefused,
    ReservationState,
    SiteUnavailable,
    Wish,
)
from broker.executor.jobs import JobSite, _Run
from broker.model.program import Program
from broker.model.resources import Resource
from grms.client import Client, Job, JobState
from grms.client.answers import SentHome, read_job
from grms.util.outcomes import Outcome
from grms.v1 import job_pb2
from tests.clusters.fake_slurm import FakeSlurm
from tests.grms.site.daemons import Running, document, running
from tests.waiting import TIME_OUT_S, meanwhile, until

RESOURCE = Resource("jobs", capacity=4)


@asynccontextmanager
async def scene(folder: Path, *, real: bool = True) -> AsyncIterator[tuple[Running, JobSite]]:
    """Yields a site and its ordinary jobs."""
    more: dict[str, Any] = {}
    cluster = FakeSlurm(folder / "slurm", nodes=1, cpus=4)
    if real:
        (folder / "spool").mkdir()
        cluster.up()
        more["lrms"] = {
            "kind": "slurm",
            "poll_s": 0.1,
            "settle_s": 0.0,
            "spool": str(folder / "spool"),
            "completion_log": cluster.completion_log,
            "programs": cluster.programs,
        }
    try:
        async with (
            running(document(folder, "north", **more), folder) as site,
            JobSite(folder / "north.sock", RESOURCE, call_s=TIME_OUT_S) as jobs,
        ):
            yield site, jobs
    finally:
        if real:
            cluster.down()


def order(command: str | None, *inputs: GivenFile, key: str = "e-1", **more: Any) -> Order:
    """Returns what is to run; `None` is no program."""
    program = None
    if command is not None:
        program = Program("t", f"#!/bin/sh\n{command}\n", **more).limited(5.0)
    return Order(f"{key}.launch", 1, 5.0, 0.2, "flow/t", program, inputs)


async def ended(jobs: JobSite, reservation_id: str, what: Order) -> Reservation:
    """Launches, and returns the job once it has ended, as those hear who watch."""
    heard: dict[str, Reservation] = {}

    async def listen() -> None:
        async for known in jobs.watch():
            if known is not None:
                heard[known.reservation_id] = known

    async with meanwhile(listen()):
        known = await jobs.launch(reservation_id, what)
        heard.setdefault(reservation_id, known)
        await until(lambda: heard[reservation_id].state is ReservationState.ENDED)
    return heard[reservation_id]


async def complete(folder: Path, jobs: JobSite, reservation_id: str) -> dict[str, tuple[int, str]]:
    """Returns sizes and problems of what a job has left, once that is final."""
    async with Client(folder / "north.sock", timeout_s=TIME_OUT_S) as user:
        left = await user.results((await user.get(key=reservation_id)).job_id, wait=True)
    assert left == await jobs.files(reservation_id, "")
    return {file.name: (file.size_bytes, file.problem) for file in left.files}


async def test_a_program_runs_once_with_its_files(tmp_path: Path) -> None:
    """However often it is launched; its exit code, streams and outputs are told."""
    given = tmp_path / "content"
    given.write_text("given\n")
    digest = hashlib.sha256(b"given\n").digest()
    what = order(
        f"echo ran >>{tmp_path}/ran; cat in >out; echo said; exit 3",
        GivenFile("in", 6, digest, given),
        outputs=("out", "absent"),
    )
    async with scene(tmp_path) as (_, jobs):
        wish = Wish("e-1.0", "jobs", 1, 0.0, 10.0)
        assert (await jobs.book(wish)).state is ReservationState.BOOKED
        told = await ended(jobs, "e-1.0", what)
        assert (told.outcome, told.exit_code) == (Outcome.FAILED, 3)
        assert told.job.startswith("north-")
        again = await jobs.launch("e-1.0", what)
        assert (again.state, again.job) == (ReservationState.ENDED, told.job)
        assert await complete(tmp_path, jobs, "e-1.0") == {
            "stdout": (5, ""),
            "stderr": (0, ""),
            "out": (6, ""),
            "absent": (0, "missing"),
        }
        assert [each async for each in jobs.read("e-1.0", told.job, "out", 2)] == [b"ven\n"]
        with pytest.raises(ReservationRefused):
            [each async for each in jobs.read("e-1.0", "", "other")]
        with pytest.raises(ReservationRefused):
            await jobs.files("e-2.0", "")
    assert (tmp_path / "ran").read_text() == "ran\n"


async def test_what_a_job_had_run_when_it_went_home_is_told(tmp_path: Path) -> None:
    """As far as its state was kept, at every partner: its start is that of the last time."""
    jobs = JobSite(tmp_path / "none.sock", RESOURCE)
    home = tuple(SentHome(name, 1, 5.0, kept) for name, kept in (("west", 30.0), ("east", 10.0)))
    job = Job.__new__(Job)
    for each in fields(Job):
        object.__setattr__(job, each.name, None)
    for name, value in (("sent_home", home), ("state", JobState.ENDED), ("start_time_s", 100.0)):
        object.__setattr__(job, name, value)
    told = jobs._told(_Run("e-1.0", "north-1", is_program=True), job)
    assert (told.start_time, told.kept) == (100.0, 40.0)


@pytest.mark.parametrize(
    ("state", "told"),
    [(JobState.QUEUED, "main is closed"), (JobState.RUNNING, ""), (JobState.ENDED, "")],
)
async def test_what_a_job_waits_for_other_than_room_is_told(
    tmp_path: Path, state: JobState, told: str
) -> None:
    """Not that it is offered to nobody, which hinders nothing."""
    jobs = JobSite(tmp_path / "none.sock", RESOURCE)
    message = job_pb2.Job(
        job_id="north-1", reason="not offered to partners", stuck="main is closed"
    )
    job = replace(read_job(message), state=state)
    assert jobs._told(_Run("e-1.0", "north-1", is_program=True), job).hindered == told


async def test_a_release_ends_a_job_and_waits_for_that(tmp_path: Path) -> None:
    """What was never submitted is not known, and never runs."""
    async with scene(tmp_path) as (_, jobs):
        assert await jobs.release("e-1.0") is None
        await jobs.launch("e-1.0", order(f"echo $$ >{tmp_path}/began; exec sleep 600"))
        await until((tmp_path / "began").exists)
        known = await jobs.release("e-1.0")
        assert known is not None
        assert (known.state, known.outcome) == (ReservationState.ENDED, Outcome.CANCELLED)
        assert await jobs.release("e-1.0") == known
        assert (await jobs.move("e-1.0", (0, 1), (2, 3))).state is ReservationState.BOOKED


async def test_what_a_site_can_never_run_is_refused(tmp_path: Path) -> None:
    """With its reason; a file that is gone, and a name that no site takes, are refused here."""
    gone = GivenFile("in", 3, bytes(32), tmp_path / "gone")
    async with scene(tmp_path) as (_, jobs):
        for what, word in (
            (order("true", request=replace(Program("t", "#!x").request, tasks=999)), "refuses"),
            (order("true", gone), "cannot be read"),
        ):
            with pytest.raises(ProgramRefused, match=word):
                await jobs.launch("e-1.0", what)
        assert await jobs.release("e-1.0") is None


async def test_a_job_that_its_site_does_not_know_any_more_may_have_run(tmp_path: Path) -> None:
    """It is not submitted a second time."""
    async with scene(tmp_path, real=False) as (site, jobs):
        for what in (
            replace(order("true"), job="north-99"),
            replace(order("true"), started=5.0),
        ):
            known = await jobs.launch("e-1.0", what)
            assert (known.state, known.outcome) == (ReservationState.ENDED, Outcome.UNKNOWN)
            assert "does not know the job" in known.reason
        assert list(site.core.engine.state.jobs()) == []


async def test_a_simulated_machine_runs_nothing(tmp_path: Path) -> None:
    """Neither of a task without a program, nor of one that has one."""
    async with scene(tmp_path, real=False) as (_, jobs):
        told = await ended(jobs, "e-1.0", order(None))
        assert (told.outcome, told.exit_code) == (Outcome.NOT_RUN, None)
        what = order("true", key="e-2", request=replace(Program("t", "#!x").request, wall_time=0.2))
        assert (await ended(jobs, "e-2.0", what)).outcome is Outcome.NOT_RUN


async def test_a_silent_site_is_unavailable(tmp_path: Path) -> None:
    """For every call; what it has is the broker's to say."""
    async with JobSite(tmp_path / "none.sock", RESOURCE, call_s=0.1) as jobs:
        with pytest.raises(SiteUnavailable):
            await jobs.launch("e-1.0", order("true"))
        with pytest.raises(SiteUnavailable):
            await jobs.release("e-1.0")
        with pytest.raises(SiteUnavailable):
            await jobs.files("e-1.0", "north-1")
        with pytest.raises(SiteUnavailable):
            await anext(jobs.watch())
        (offer,) = await jobs.offer(0.0, 10.0)
        assert (offer.resource, offer.free) == (RESOURCE, ((0.0, 10.0, 4),))


async def test_a_watch_tells_what_has_changed_while_nobody_listened(tmp_path: Path) -> None:
    """Of the jobs that were launched, each as it is now."""
    async with scene(tmp_path) as (_, jobs):
        await jobs.launch("e-1.0", order(f"until [ -e {tmp_path}/go ]; do sleep 0.05; done"))
        (tmp_path / "go").touch()
        async with Client(tmp_path / "north.sock", timeout_s=TIME_OUT_S) as user:
            await user.wait((await user.get(key="e-1.0")).job_id)
        watched = jobs.watch()
        assert await anext(watched) is None
        told = await anext(watched)
        assert told is not None
        assert (told.reservation_id, told.outcome) == ("e-1.0", Outcome.COMPLETED)
        await watched.aclose()  # type: ignore[attr-defined]  # it is a generator
