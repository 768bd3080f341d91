"""The loop around the pure state."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from broker.model.resources import Resource
from broker.runtime.event_loop import Engine
from broker.runtime.journal import Journal, JournalError, JournalFullError
from broker.scheduler.commands import ReplyResource, ReplyWorkflow
from broker.scheduler.events import Event, Register, Submit
from broker.scheduler.records import Record, Supply
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from grms.daemon import loop
from grms.daemon.clock import ScaledClock
from grms.daemon.loop import EngineFailedError, NotWrittenError
from tests.broker.scheduler.test_state import chain
from tests.waiting import meanwhile, until


class Kept:
    """Hands that do nothing but remember."""

    def __init__(self) -> None:
        self.done: list[object] = []
        self.site = self.plan = self.publish = self.done.append


class Disk:
    """A journal whose disk can be full, fail, or take its time."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.error: JournalError | None = None
        self.calls = 0

    def append(self, records: list[Record]) -> None:
        """Writes, or does not."""
        self.calls += 1
        if self.error is not None:
            raise self.error
        self.journal.append(records)


@asynccontextmanager
async def running(
    folder: Path, *, checked: bool = False
) -> AsyncIterator[tuple[Engine, Disk, Kept, "asyncio.Task[None]"]]:
    """Yields an engine at work."""
    with Journal(folder / "b") as journal:
        disk: Any = Disk(journal)
        state = BrokerState.recover(
            BrokerSettings(early=False), journal.records(), epoch=journal.epoch
        )
        effects = Kept()
        log = structlog.get_logger()
        engine = Engine(
            state, disk.append, effects, ScaledClock(1.0, 0.0), log=log, checked=checked
        )
        async with meanwhile(engine.run()) as task:
            yield engine, disk, effects, task


def register(engine: Engine) -> Register:
    """Returns a question."""
    return Register(engine.new_id(), Supply(Resource("alpha")))


def asked(engine: Engine, event: Event) -> Awaitable[object]:
    """Puts a question, and returns its answer."""
    return engine.ask(event, lambda answer: answer)


async def test_an_answer_is_in_the_journal_before_it_is_given(tmp_path: Path) -> None:
    """Whoever was answered finds the fact after a restart."""
    async with running(tmp_path) as (engine, _, effects, _):
        assert await asked(engine, register(engine)) == ReplyResource(1, "alpha")
        flow = chain("flow", 5, resources=("alpha",))
        answer = await asked(engine, Submit(engine.new_id(), "key", flow))
        assert answer == ReplyWorkflow(2, "w1")
        await engine.settled()
        assert "StartPlanning" in {type(each).__name__ for each in effects.done}
    async with running(tmp_path) as (engine, _, _, _):
        names = await engine.look(lambda state: list(state.memory.supplies))
        assert names == ["alpha"]
        assert await engine.look(lambda state: list(state.memory.workflows)) == ["w1"]


async def test_a_full_disk_refuses_answers_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is acknowledged, shown or lost meanwhile, and whoever asks is told so."""
    monkeypatch.setattr(loop, "RETRY_S", 0.01)
    async with running(tmp_path) as (engine, disk, _, _):
        disk.error = JournalFullError("no room")
        with pytest.raises(NotWrittenError, match="no room"):
            await asked(engine, register(engine))
        assert engine.problem == "no room"
        with pytest.raises(NotWrittenError, match="no room"):
            await engine.look(lambda state: list(state.memory.supplies))
        disk.error = None
        await until(lambda: not engine.problem)
        assert await engine.look(lambda state: list(state.memory.supplies)) == ["alpha"]


async def test_a_disk_that_fails_ends_the_engine(tmp_path: Path) -> None:
    """The question has no answer, and a restart finds what the journal has."""
    async with running(tmp_path) as (engine, disk, _, task):
        disk.error = JournalError("the disk is broken")
        answer = asyncio.ensure_future(asked(engine, register(engine)))
        await asyncio.wait([task])
        with pytest.raises(JournalError, match="broken"):
            await task
        assert not answer.done()
        answer.cancel()


async def test_an_error_of_who_looks_is_theirs(tmp_path: Path) -> None:
    """The engine goes on."""
    async with running(tmp_path) as (engine, _, _, _):
        with pytest.raises(KeyError):
            await engine.look(lambda state: state.memory.supplies["nobody"])
        assert await asked(engine, register(engine)) == ReplyResource(1, "alpha")


async def test_a_contradiction_ends_a_daemon_that_checks_itself(tmp_path: Path) -> None:
    """The whole memory is checked before anything of it is written."""
    flow = chain("flow", 1, resources=("alpha",))
    for checked in (False, True):
        (tmp_path / f"{checked}").mkdir()
        async with running(tmp_path / f"{checked}", checked=checked) as (engine, disk, _, task):
            await asked(engine, register(engine))
            await asked(engine, Submit(engine.new_id(), "a", flow))
            await engine.settled()
            engine.state.memory.live.clear()
            calls = disk.calls
            beta = Register(0, Supply(Resource("beta")))
            if not checked:
                engine.tell(beta)
                await engine.settled()
                assert disk.calls > calls
                continue
            with pytest.raises(EngineFailedError):
                engine.tell(beta)
            with pytest.raises(AssertionError):
                await task
            assert disk.calls == calls
