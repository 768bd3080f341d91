"""The engine keeps order, and stops for good where nothing can be relied on."""

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from grpc import aio

from grms.kit.debug import CHECK
from grms.site.core.state import SiteState
from grms.site.engine import group_commit
from grms.site.engine.clock import VirtualClock
from grms.site.engine.engine import Engine, EngineFailedError
from grms.site.engine.group_commit import GroupCommit
from grms.site.engine.journal import JournalError, JournalFullError
from grms.site.engine.outside import Driver
from grms.site.facts.commands import (
    AnswerReport,
    Append,
    Command,
    LrmsCancel,
    LrmsSubmit,
    SendProbe,
)
from grms.site.facts.events import Cancel, Event, LrmsAccepted, Resume
from grms.site.facts.jobs import OfferId, Request
from grms.site.facts.lifecycle import JobState
from grms.site.facts.records import JobKept, JobReceived, Record
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


class Scripted:
    """A state and what surrounds an engine: it wants what it is told to want, and notes what is done."""

    def __init__(self, *, ahead: bool) -> None:
        self.wants: dict[int, list[Command]] = {}
        self.done: list[str] = []
        self.full = False
        commit = GroupCommit(self.write, in_thread=False)
        parts = cast("Any", self)
        self.engine = Engine(
            *(cast("SiteState", parts), commit, cast("Driver", parts), VirtualClock(0.0)),
            itertools.count(1),
            ahead=ahead,
        )
        self.engine.connect(parts)

    def handle(self, event: Event, _: float) -> list[Command]:
        """As the state's door."""
        self.done.append(type(event).__name__)
        return self.wants.get(event.id, [])

    def write(self, records: Sequence[Record]) -> None:
        """As the journal's end."""
        if self.full:
            raise JournalFullError("the disk is full")
        self.done.append(f"written {len(records)}")

    def do(self, command: LrmsSubmit | LrmsCancel) -> list[Event]:
        """As the driver of a batch system that takes everything at once."""
        self.done.append("told")
        return [LrmsAccepted(next(self.engine.new_id), command.lrms_key)]

    def send(self, _: Command) -> None:
        """As the links to partners."""
        self.done.append("sent")

    def want(self, cause: int, *commands: Command) -> None:
        """Sets what an event leads to, by its id; a record is always noted."""
        self.wants[cause] = [Append(cause, (JobKept(0.0, cause),)), *commands]


def submission(cause: int) -> LrmsSubmit:
    """Returns a command to the batch system."""
    return LrmsSubmit(cause, f"a/1/{cause}", Request(1, 1.0), b"", lookup=False)


def test_the_batch_system_is_told_when_that_is_in_the_journal() -> None:
    """Each event's records are written before anything is done, and what follows comes after."""

    async def scene() -> None:
        site = Scripted(ahead=False)
        site.want(1, submission(1))
        site.engine.tell(Resume)
        assert site.done == ["Resume", "written 1", "told", "LrmsAccepted"]

    run(scene)


def test_a_simulated_machine_may_be_ahead_and_nothing_else() -> None:
    """What stays in the process is done at once and written in one group, before anything leaves."""

    async def scene() -> None:
        site = Scripted(ahead=True)
        site.want(1, submission(1))
        site.want(3, submission(3))
        site.want(5, SendProbe(5, "b", OfferId(1, 0), 0.0))
        for _ in range(2):
            site.engine.tell(Resume)
        assert site.done == ["Resume", "told", "LrmsAccepted"] * 2
        site.done.clear()
        site.engine.tell(Resume)
        assert site.done == ["Resume", "written 3", "sent"]
        site.done.clear()
        site.want(6, AnswerReport(6))
        assert await site.engine.ask(Resume) == AnswerReport(6)
        assert site.done == ["Resume", "written 1"]
        # While the disk is full nothing leaves, and what is done is not forgotten.
        site.done.clear()
        site.full = True
        site.want(7, submission(7), SendProbe(7, "b", OfferId(1, 0), 0.0))
        site.engine.tell(Resume)
        assert site.done == ["Resume", "told", "LrmsAccepted"]
        assert not await site.engine.durable()
        site.full = False
        retrying = asyncio.create_task(site.engine.commit.run())
        await site.engine.commit.settled()
        retrying.cancel()
        assert site.done[3:] == ["written 1", "sent"]
        # Where nobody waits it is written all the same, soon.
        site.want(9, submission(9))
        site.engine.tell(Resume)
        assert site.engine.commit.pending
        await until(lambda: not site.engine.commit.pending)
        assert site.done[-1] == "written 1"

    run(scene)
