"""The engine keeps order, and stops for good where nothing can be relied on."""

import asyncio
from pathlib import Path

import grpc
import pytest
from grpc import aio

from grms.kit.debug import CHECK
from grms.site.engine import group_commit
from grms.site.engine.engine import EngineFailedError
from grms.site.engine.journal import JournalError, JournalFullError
from grms.site.facts.events import Cancel, Resume
from grms.site.facts.lifecycle import JobState
from grms.site.facts.records import JobReceived
from grms.v1 import job_pb2, operator_pb2, request_pb2
from tests.grms.site.daemons import document, running
from tests.waiting import run, until


def test_an_answer_is_durable(tmp_path: Path) -> None:
    """When a user has an answer, the journal has what it says, with the slow disk as well."""

    async def scene() -> None:
        configuration = document(tmp_path)
        configuration["journal"]["survives"] = "power_loss"
        async with running(configuration, tmp_path) as site:
            jobs = await asyncio.gather(*(site.submit(f"k{n}", run_time_s=60) for n in range(200)))
            found = {
                record.job
                for record in site.core.journal.records()
                if isinstance(record, JobReceived)
            }
            assert {int(job.job_id.removeprefix("home-")) for job in jobs} <= found
            # Many answers came of few promises of the disk.
            commit = site.core.engine.commit
            assert commit.groups < commit.records / 2

    run(scene)


def test_an_error_of_the_state_ends_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is done any more, and the daemon ends with the error that began it."""

    async def scene() -> None:
        with pytest.raises(ZeroDivisionError):
            async with running(document(tmp_path), tmp_path) as site:
                engine = site.core.engine

                def broken(*_: object) -> None:
                    raise ZeroDivisionError

                monkeypatch.setattr(type(engine.state), "handle", broken)
                for _ in range(2):
                    with pytest.raises(EngineFailedError):
                        engine.tell(Resume)
                assert engine.failed.is_set()

    run(scene)


def test_a_contradiction_ends_a_daemon_that_checks_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the switch on every event is followed by a check of the whole memory."""
    monkeypatch.setenv(CHECK, "1")

    async def scene() -> None:
        with pytest.raises(AssertionError, match="jobs_open"):
            async with running(document(tmp_path), tmp_path) as site:
                engine = site.core.engine
                engine.tell(Resume)
                engine.state.memory.jobs_open = 7
                with pytest.raises(EngineFailedError):
                    engine.tell(Resume)

    run(scene)


def test_a_disk_that_fails_ends_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal of which nobody knows what it holds is not written any further."""

    async def scene() -> None:
        with pytest.raises(JournalError, match="on fire"):
            async with running(document(tmp_path), tmp_path) as site:

                def fail(_: object) -> None:
                    raise JournalError("the disk is on fire")

                monkeypatch.setattr(site.core.engine.commit, "_write", fail)
                with pytest.raises(Exception, match="error of its own"):
                    await site.submit("k")

    run(scene)


@pytest.mark.parametrize("survives", ["crash", "power_loss"])
def test_nothing_leaves_that_is_not_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survives: str
) -> None:
    """What cannot be journaled is neither run nor shown, and its user is told so at once."""
    monkeypatch.setattr(group_commit, "RETRY_S", 0.02)

    async def scene() -> None:
        configuration = document(tmp_path)
        configuration["journal"]["survives"] = survives
        async with running(configuration, tmp_path) as site:
            engine, commit = site.core.engine, site.core.engine.commit
            kept = await site.submit("kept", run_time_s=0.6)
            write, full = commit._write, JournalFullError("the disk is full")

            def fail(_: object) -> None:
                raise full

            await until(lambda: not commit.pending and engine.state.job(kept.job_id) is not None)
            monkeypatch.setattr(commit, "_write", fail)
            with pytest.raises(aio.AioRpcError, match="the disk is full") as error:
                await site.submit("unsaid", processors=2)
            assert error.value.code() is grpc.StatusCode.UNAVAILABLE
            # The state has decided, and nobody sees it: not the batch system either.
            ahead = engine.state.job("home-2")
            assert ahead is not None
            assert ahead.state is JobState.SUBMITTING
            load = engine.load()
            assert load is not None
            assert load.processors_free == 3
            await until(lambda: getattr(engine.state.job(kept.job_id), "end_time", 0.0) > 0)
            listed = await site.jobs.List(job_pb2.ListRequest(), timeout=300)
            assert [(job.job_id, job.state) for job in listed.jobs] == [
                (kept.job_id, job_pb2.JOB_STATE_RUNNING)
            ]
            alone = await site.jobs.Get(job_pb2.GetRequest(job_id=kept.job_id), timeout=300)
            assert alone == listed.jobs[0]
            with pytest.raises(aio.AioRpcError, match="there is no job 'home-2'"):
                await site.jobs.Get(job_pb2.GetRequest(job_id="home-2"), timeout=300)
            status = await site.operator.Status(operator_pb2.StatusRequest(), timeout=300)
            assert status.jobs == {"RUNNING": 1}
            assert not await engine.durable()

            monkeypatch.setattr(commit, "_write", write)
            assert (await site.ended(kept.job_id)).outcome == request_pb2.OUTCOME_COMPLETED
            again = await site.submit("unsaid", processors=2)
            assert again.job_id == "home-2"
            assert (await site.ended("home-2")).outcome == request_pb2.OUTCOME_COMPLETED
            assert await engine.durable()

    run(scene)


def test_questions_are_answered_one_by_one(tmp_path: Path) -> None:
    """Each question gets its own answer, whatever else is asked at the time."""

    async def scene() -> None:
        async with running(document(tmp_path), tmp_path) as site:
            engine = site.core.engine
            job = await site.submit("k", run_time_s=60)
            ids = (job.job_id, "home-2", job.job_id)
            replies = await asyncio.gather(*(engine.ask(Cancel, each, None) for each in ids))
            assert len({reply.cause for reply in replies}) == 3
            assert [type(reply).__name__ for reply in replies] == ["ReplyJob", "Refuse", "ReplyJob"]

    run(scene)
