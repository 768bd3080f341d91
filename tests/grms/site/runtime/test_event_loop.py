"""The engine keeps order, and stops for good where nothing can be relied on."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest
import structlog
from grpc import aio

from grms.daemon import loop
from grms.daemon.clock import VirtualClock
from grms.daemon.invariant_checks import CHECK
from grms.daemon.loop import EngineFailedError
from grms.lrms import base
from grms.site.model import commands
from grms.site.model.commands import (
    Answer,
    AnswerReport,
    Append,
    Command,
    LrmsCancel,
    LrmsSubmit,
    PilotCommand,
    ProtectGuests,
    Publish,
    PublishReservation,
    PublishRound,
    Send,
    SendProbe,
    TellLoad,
)
from grms.site.model.events import Cancel, Event, LrmsNews, Resume
from grms.site.model.jobs import OfferId, Request
from grms.site.model.lifecycle import JobState
from grms.site.model.records import JobKept, JobReceived, Record
from grms.site.runtime.event_loop import Driver, Engine
from grms.site.runtime.journal import JournalError, JournalFullError
from grms.site.scheduler.state import SiteState
from grms.v1 import job_pb2, operator_pb2, request_pb2
from tests.grms.site.daemons import document, running
from tests.waiting import until


async def test_an_answer_is_durable(tmp_path: Path) -> None:
    """When a user has an answer, the journal has what it says, with the slow disk as well."""
    configuration = document(tmp_path)
    configuration["journal"]["survives"] = "power_loss"
    async with running(configuration, tmp_path) as site:
        jobs = await asyncio.gather(*(site.submit(f"k{n}", run_time_s=60) for n in range(200)))
        found = {
            record.job for record in site.core.journal.records() if isinstance(record, JobReceived)
        }
        assert {int(job.job_id.removeprefix("home-")) for job in jobs} <= found
        # Many answers came of few promises of the disk.
        engine = site.core.engine
        assert engine.groups < engine.records / 2


async def test_an_error_of_the_state_ends_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is done any more, and the daemon ends with the error that began it."""
    with pytest.raises(ZeroDivisionError):
        async with running(document(tmp_path), tmp_path) as site:
            engine = site.core.engine

            def broken(*_: object) -> None:
                raise ZeroDivisionError

            monkeypatch.setattr(type(engine.state), "handle", broken)
            for _ in range(2):
                with pytest.raises(EngineFailedError):
                    engine.tell(Resume(engine.new_id()))
            assert engine.failed.is_set()


async def test_a_contradiction_ends_a_daemon_that_checks_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the switch on every event is followed by a check of the whole memory."""
    monkeypatch.setenv(CHECK, "1")
    with pytest.raises(AssertionError, match="jobs_open"):
        async with running(document(tmp_path), tmp_path) as site:
            engine = site.core.engine
            engine.tell(Resume(engine.new_id()))
            engine.state.memory.jobs_open = 7
            with pytest.raises(EngineFailedError):
                engine.tell(Resume(engine.new_id()))


async def test_a_disk_that_fails_ends_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal of which nobody knows what it holds is not written any further."""
    with pytest.raises(JournalError, match="on fire"):
        async with running(document(tmp_path), tmp_path) as site:

            def fail(_: object) -> None:
                raise JournalError("the disk is on fire")

            monkeypatch.setattr(site.core.engine, "_write", fail)
            with pytest.raises(Exception, match="error of its own"):
                await site.submit("k")


@pytest.mark.parametrize("survives", ["crash", "power_loss"])
async def test_nothing_leaves_that_is_not_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survives: str
) -> None:
    """What cannot be journaled is neither run nor shown, and its user is told so at once."""
    monkeypatch.setattr(loop, "RETRY_S", 0.02)
    configuration = document(tmp_path)
    configuration["journal"]["survives"] = survives
    async with running(configuration, tmp_path) as site:
        engine = site.core.engine
        stays = await site.submit("stays", run_time_s=60)
        kept = await site.submit("kept", run_time_s=3.0)
        write, full = engine._write, JournalFullError("the disk is full")

        def fail(_: object) -> None:
            raise full

        jobs = [engine.state.memory.jobs[number] for number in (1, 2)]
        await until(lambda: all(job.state is JobState.RUNNING for job in jobs))
        await until(lambda: not engine.pending)
        monkeypatch.setattr(engine, "_write", fail)
        with pytest.raises(aio.AioRpcError, match="the disk is full") as error:
            await site.submit("unsaid", processors=2)
        assert error.value.code() is grpc.StatusCode.UNAVAILABLE
        # The state has decided, and nobody sees it: not the batch system either.
        await until(lambda: engine.state.job("home-3") is not None)
        ahead = engine.state.job("home-3")
        assert ahead is not None
        assert ahead.state is JobState.SUBMITTING
        load = engine.load()
        assert load is not None
        assert load.processors_free == 2
        await until(lambda: getattr(engine.state.job(kept.job_id), "end_time", 0.0) > 0)
        for asked in (
            site.jobs.List(job_pb2.ListRequest(), timeout=300),
            site.jobs.Get(job_pb2.GetRequest(job_id=kept.job_id), timeout=300),
            site.jobs.Get(job_pb2.GetRequest(job_id="home-3"), timeout=300),
            site.operator.Status(operator_pb2.StatusRequest(), timeout=300),
        ):
            with pytest.raises(aio.AioRpcError, match="the disk is full") as error:
                await asked
            assert error.value.code() is grpc.StatusCode.UNAVAILABLE
        assert not await engine.durable()
        # What nothing new is known of is shown all the same.
        found = await site.jobs.Get(job_pb2.GetRequest(job_id=stays.job_id), timeout=300)
        assert found.state == job_pb2.JOB_STATE_RUNNING
        of_others = job_pb2.ListRequest(all_users=True, user="nobody")
        assert not (await site.jobs.List(of_others, timeout=300)).jobs

        monkeypatch.setattr(engine, "_write", write)
        await until(lambda: not engine.problem)
        assert (await site.ended(kept.job_id)).outcome == request_pb2.OUTCOME_COMPLETED
        again = await site.submit("unsaid", processors=2)
        assert again.job_id == "home-3"
        assert (await site.ended("home-3")).outcome == request_pb2.OUTCOME_COMPLETED
        assert await engine.durable()


async def test_questions_are_answered_one_by_one(tmp_path: Path) -> None:
    """Each question gets its own answer, whatever else is asked at the time."""
    async with running(document(tmp_path), tmp_path) as site:
        engine = site.core.engine
        job = await site.submit("k", run_time_s=60)
        ids = (job.job_id, "home-2", job.job_id)
        replies = await asyncio.gather(
            *(engine.ask(Cancel(*engine.stamp(), each, None), lambda reply: reply) for each in ids)
        )
        assert len({reply.cause for reply in replies}) == 3
        assert [type(reply).__name__ for reply in replies] == ["ReplyJob", "Refuse", "ReplyJob"]


class Scripted:
    """A state and what surrounds an engine: it wants what it is told to want, and notes what is done."""

    def __init__(self, *, ahead: bool) -> None:
        self.wants: dict[int, list[Command]] = {}
        self.memory = SimpleNamespace(jobs={})
        self.done: list[str] = []
        self.full = False
        parts = cast("Any", self)
        self.engine = Engine(
            cast("SiteState", parts),
            self.write,
            cast("Driver", parts),
            VirtualClock(0.0),
            log=structlog.get_logger(),
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

    def listen(self, _: object) -> None:
        """As the same: nothing happens by itself."""

    def do(self, command: LrmsSubmit | LrmsCancel) -> list[LrmsNews]:
        """As the driver of a batch system that takes everything at once."""
        self.done.append("told")
        return [base.Accepted(command.lrms_key)]

    def send(self, _: Command) -> None:
        """As the links to partners."""
        self.done.append("sent")

    def want(self, cause: int, *commands: Command) -> None:
        """Sets what an event leads to, by its id; a record is always noted."""
        self.wants[cause] = [Append(cause, (JobKept(0.0, cause),)), *commands]


def submission(cause: int) -> LrmsSubmit:
    """Returns a command to the batch system."""
    return LrmsSubmit(cause, f"a/1/{cause}", Request(1, 1.0), b"", lookup=False)


async def test_the_batch_system_is_told_when_that_is_in_the_journal() -> None:
    """Each event's records are written before anything is done, and what follows comes after."""
    site = Scripted(ahead=False)
    site.want(1, submission(1))
    site.engine.tell(Resume(site.engine.new_id()))
    assert site.done == ["Resume", "written 1", "told", "LrmsTold"]


async def test_a_simulated_machine_may_be_ahead_and_nothing_else() -> None:
    """What stays in the process is done at once and written in one group, before anything leaves."""
    site = Scripted(ahead=True)
    site.want(1, submission(1))
    site.want(3, submission(3))
    site.want(5, SendProbe(5, "b", OfferId(1, 0), 0.0))
    for _ in range(2):
        site.engine.tell(Resume(site.engine.new_id()))
    assert site.done == ["Resume", "told", "LrmsTold"] * 2
    site.done.clear()
    site.engine.tell(Resume(site.engine.new_id()))
    assert site.done == ["Resume", "written 3", "sent"]
    site.done.clear()
    site.want(6, AnswerReport(6))
    assert await site.engine.ask(Resume(site.engine.new_id()), lambda reply: reply) == AnswerReport(
        6
    )
    assert site.done == ["Resume", "written 1"]
    # While the disk is full nothing leaves, and what is done is not forgotten.
    site.done.clear()
    site.full = True
    site.want(7, submission(7), SendProbe(7, "b", OfferId(1, 0), 0.0))
    site.engine.tell(Resume(site.engine.new_id()))
    assert site.done == ["Resume", "told", "LrmsTold"]
    assert not await site.engine.durable()
    site.full = False
    retrying = asyncio.create_task(site.engine.run())
    await site.engine.settled()
    retrying.cancel()
    assert site.done[3:] == ["written 1", "sent"]
    # Where nobody waits it is written all the same, soon.
    site.want(9, submission(9))
    site.engine.tell(Resume(site.engine.new_id()))
    assert site.engine.pending
    await until(lambda: not site.engine.pending)
    assert site.done[-1] == "written 1"


async def test_who_is_concerned_by_some_jobs_hears_of_these_alone() -> None:
    """Of those that are among them when the change is durable, and of no job that is forgotten by then."""
    site, told = Scripted(ahead=False), list[tuple[str, int]]()
    site.memory = SimpleNamespace(jobs={n: SimpleNamespace(job=n) for n in range(1, 5)})
    some = {2: "", 9: ""}
    site.engine.on_publish(lambda job: told.append(("all", job.job)))
    site.engine.on_publish(lambda job: told.append(("some", job.job)), among=some)
    for cause in (1, 2):
        site.want(cause, Publish(cause, 1, (2, 3, 9)))
    site.engine.tell(Resume(site.engine.new_id()))
    assert told == [("all", 1), ("all", 2), ("some", 2), ("all", 3)]
    del some[2]
    some[3] = ""
    site.engine.tell(Resume(site.engine.new_id()))
    assert told[4:] == [("all", 1), ("all", 2), ("all", 3), ("some", 3)]


def test_every_command_is_of_one_kind() -> None:
    """Of each it is known what is done about it, and of none twice."""
    every = [
        kind
        for kind in vars(commands).values()
        if isinstance(kind, type) and issubclass(kind, Command) and kind not in {Command, Answer}
    ]
    shown = Publish | PublishReservation | PublishRound
    orders = LrmsSubmit | LrmsCancel | ProtectGuests
    kinds: tuple[Any, ...] = (Append, Answer, Send, orders, shown, TellLoad, PilotCommand)
    assert [each for each in every if sum(issubclass(each, kind) for kind in kinds) != 1] == []
