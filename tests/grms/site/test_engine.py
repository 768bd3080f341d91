"""The engine keeps order, and stops for good where nothing can be relied on."""

import asyncio
from pathlib import Path

import pytest

from grms.site.engine import EngineFailedError
from grms.site.events import Cancel, Resume
from grms.site.journal import JournalError
from grms.site.records import JobReceived
from tests.grms.site.daemons import document, running
from tests.waiting import run


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
                        engine.tell(Resume(next(engine.new_id)))
                assert engine.failed.is_set()

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


def test_questions_are_answered_one_by_one(tmp_path: Path) -> None:
    """Each question gets its own answer, whatever else is asked at the time."""

    async def scene() -> None:
        async with running(document(tmp_path), tmp_path) as site:
            engine = site.core.engine
            job = await site.submit("k", run_time_s=60)
            events = [
                Cancel(next(engine.new_id), engine.load(), job_id, None)
                for job_id in (job.job_id, "home-2", job.job_id)
            ]
            replies = await asyncio.gather(*(engine.ask(event) for event in events))
            assert [reply.cause for reply in replies] == [event.id for event in events]
            assert [type(reply).__name__ for reply in replies] == ["ReplyJob", "Refuse", "ReplyJob"]

    run(scene)
