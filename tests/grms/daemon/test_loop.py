"""Nothing is done, answered or shown before its records are durable, and then in order."""

import asyncio
import contextlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from grms.daemon import loop as loops
from grms.daemon.journal import JournalError, JournalFullError
from grms.daemon.loop import EngineFailedError, Loop, NotWrittenError, timed
from tests.waiting import meanwhile, run, until


@dataclass(frozen=True)
class Happened:
    """An event that leads to so many records, and that much more."""

    id: int
    records: int = 1
    does: bool = True
    breaks: bool = False


@dataclass(frozen=True)
class Append:
    """Writes records."""

    records: tuple[int, ...]


@dataclass(frozen=True)
class Reply:
    """Answers an event."""

    cause: int


@dataclass(frozen=True)
class Act:
    """Does something outside."""

    number: int


class Numbers:
    """A state that counts its records."""

    def __init__(self) -> None:
        self.noted = 0

    def handle(self, event: Happened, _: float) -> list[Append | Reply | Act]:
        """Notes records, and wants something done."""
        if event.breaks:
            raise ZeroDivisionError
        noted = range(self.noted, self.noted + event.records)
        self.noted += event.records
        does: list[Append | Reply | Act] = [Act(event.id), Reply(event.id)] if event.does else []
        return [Append(tuple(noted)), *does] if noted else does


class Disk:
    """A disk that can be full, slow or broken."""

    def __init__(self) -> None:
        self.written: list[int] = []
        self.groups: list[int] = []
        self.problem: JournalError | None = None
        self.gate = threading.Event()
        self.gate.set()

    def write(self, records: Sequence[int]) -> None:
        """Writes a group, all or none."""
        records = list(records)
        self.gate.wait(300)
        if self.problem is not None:
            raise self.problem
        self.written.extend(records)
        self.groups.append(len(records))


class Site(Loop[Happened, Append | Reply | Act, Numbers]):
    """A loop that does what it is told, and hands over what that leads to."""

    append = Append
    answer = Reply

    def __init__(self, *, in_thread: bool) -> None:
        self.disk = Disk()
        self.seen: list[int] = []
        self.done: list[int] = []
        self.told: list[bool] = []
        self.follow: dict[int, Happened] = {}
        log = structlog.get_logger()
        super().__init__(Numbers(), self.disk.write, lambda: 0.0, log, in_thread=in_thread)

    def _handled(self, event: Happened, commands: Sequence[Append | Reply | Act]) -> None:
        self.seen.append(event.id)
        noted = self.state.noted
        assert sum(len(c.records) for c in commands if isinstance(c, Append)) == event.records
        self.after(lambda: self.told.append(len(self.disk.written) >= noted))

    def _do(self, command: Append | Reply | Act) -> None:
        assert isinstance(command, Act)
        # The state is never ahead of the journal where something is done.
        assert self.state.noted == len(self.disk.written)
        self.done.append(command.number)
        if command.number in self.follow:
            self.tell(self.follow.pop(command.number))


@given(
    story=st.lists(
        st.one_of(st.integers(0, 3), st.just("after"), st.just("two"), st.just("follow")),
        max_size=30,
    )
)
def test_what_waits_is_done_in_order_and_never_early(story: list[int | str]) -> None:
    """Every action finds all records noted before it written, and those before it done."""

    async def scene() -> None:
        site = Site(in_thread=False)
        wanted: list[int] = []

        def follows(noted: int) -> None:
            assert len(site.disk.written) >= noted

        for number, step in enumerate(story):
            if step == "after":
                noted = site.state.noted
                site.after(partial(follows, noted))
            elif step == "two":
                site.tell(Happened(number, 2), Happened(1000 + number, 0))
                wanted += [number, 1000 + number]
            elif step == "follow":
                site.follow[number] = Happened(1000 + number)
                site.tell(Happened(number))
                wanted += [number, 1000 + number]
            else:
                assert isinstance(step, int)
                site.tell(Happened(number, step))
                wanted.append(number)
        assert site.done == site.seen == wanted
        assert site.told == [True] * len(wanted)
        assert not site.pending
        assert site.disk.written == list(range(site.state.noted))

    run(scene)


async def test_events_gather_while_a_group_is_written() -> None:
    """What comes while the disk is busy becomes one group, and nothing of it is known before."""
    site = Site(in_thread=True)
    site.disk.gate.clear()
    async with meanwhile(site.run()):
        site.tell(Happened(0))
        await until(lambda: site._writing)
        asked = asyncio.ensure_future(site.ask(Happened(1), lambda _: len(site.disk.written)))
        looked = asyncio.ensure_future(site.look(lambda state: state.noted))
        await asyncio.sleep(0)
        site.tell(*map(Happened, range(2, 100)))
        assert site.seen == [0]
        assert site.done == []
        assert not asked.done()
        assert not looked.done()
        site.disk.gate.set()
        assert await asked == await looked == 100
        await site.settled()
        assert site.disk.groups == [1, 99]
        assert (site.groups, site.records) == (2, 100)
        assert site.done == list(range(100))
        assert await site.look(lambda state: state.noted) == 100
    site.close()


async def test_a_group_is_no_longer_than_others_can_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """After very many events what they have led to is written, and then it goes on."""
    monkeypatch.setattr(loops, "BATCH_MAX", 10)
    for in_thread in (False, True):
        site = Site(in_thread=in_thread)
        async with meanwhile(site.run()):
            site.tell(*map(Happened, range(25)))
            await site.settled()
            assert site.disk.groups == [10, 10, 5]
            assert site.done == list(range(25))


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_full_disk_holds_everything_back(
    monkeypatch: pytest.MonkeyPatch, *, in_thread: bool
) -> None:
    """While nothing can be written nothing is done, and who asks is told; with room again all is, once."""
    monkeypatch.setattr(loops, "RETRY_S", 0.01)
    site = Site(in_thread=in_thread)
    site.disk.problem = JournalFullError("the disk is full")
    async with meanwhile(site.run()):
        for number in range(3):
            with pytest.raises(NotWrittenError, match="the disk is full"):
                await site.ask(Happened(number), lambda _: None)
        assert site.problem == "the disk is full"
        with pytest.raises(NotWrittenError, match="the disk is full"):
            await site.look(lambda state: state.noted)
        assert not await site.durable()
        assert not site.done
        assert not site.disk.written
        site.disk.problem = None
        await site.settled()
        assert site.problem == ""
        assert site.done == [0, 1, 2]
        assert site.disk.written == [0, 1, 2]
        assert await site.durable()
    site.close()


async def test_who_looks_is_told_of_a_disk_that_fills_up_meanwhile() -> None:
    """Whoever waits for the journal does not wait for somebody to make room."""
    site = Site(in_thread=True)
    site.disk.gate.clear()
    site.disk.problem = JournalFullError("the disk is full")
    async with meanwhile(site.run()):
        site.tell(Happened(0))
        looked = asyncio.ensure_future(site.look(lambda state: state.noted))
        await until(lambda: site._writing)
        site.disk.gate.set()
        with pytest.raises(NotWrittenError):
            await looked


async def test_a_broken_disk_is_not_survived() -> None:
    """Any other failure is noted, and nothing is done any more."""
    for in_thread in (True, False):
        site = Site(in_thread=in_thread)
        site.disk.problem = JournalError("the disk is on fire")
        task = asyncio.create_task(site.run(), name="journal")
        if in_thread:
            site.tell(Happened(0))
        else:
            with pytest.raises(EngineFailedError):
                site.tell(Happened(0))
        await task
        assert site.failed.is_set()
        assert site.failure is site.disk.problem
        with pytest.raises(EngineFailedError):
            site.tell(Happened(1))
        assert not site.done


@pytest.mark.parametrize("in_thread", [True, False])
async def test_any_error_of_the_writer_ends_it(in_thread: bool) -> None:
    """One that is no journal's too: nobody waits for ever for what cannot be written."""
    site = Site(in_thread=in_thread)

    def broken(_: Sequence[int]) -> None:
        raise ZeroDivisionError

    site._write = broken
    async with meanwhile(site.run()):
        with contextlib.suppress(EngineFailedError):
            site.tell(Happened(1))
        await asyncio.wait_for(site.failed.wait(), 300)
        assert isinstance(site.failure, ZeroDivisionError)
        with pytest.raises(EngineFailedError):
            await site.look(lambda state: state.noted)


async def test_a_disk_that_fails_while_the_daemon_ends_is_not_written_to_again() -> None:
    """After an error of the disk nobody knows what it holds."""
    site = Site(in_thread=True)
    site.disk.gate.clear()
    writer = asyncio.create_task(site.run())
    site.tell(Happened(1))
    await until(lambda: site._writing)
    writer.cancel()
    site.disk.problem = JournalError("input/output error")
    site.disk.gate.set()
    await asyncio.wait([writer])
    assert isinstance(site.failure, JournalError)
    site.disk.problem = None
    site.close()
    assert site.disk.written == []


async def test_an_error_of_the_state_is_not_survived() -> None:
    """Also where it comes up behind a group that was written meanwhile."""
    site = Site(in_thread=True)
    site.disk.gate.clear()
    task = asyncio.create_task(site.run(), name="journal")
    site.tell(Happened(0))
    await until(lambda: site._writing)
    site.tell(Happened(1, breaks=True))
    site.disk.gate.set()
    await task
    assert isinstance(site.failure, ZeroDivisionError)


async def test_an_error_of_who_reads_is_theirs() -> None:
    """The loop goes on."""
    site = Site(in_thread=True)
    async with meanwhile(site.run()):
        with pytest.raises(ZeroDivisionError):
            await site.ask(Happened(0), lambda _: 1 // 0)
        site.tell(Happened(1))
        with pytest.raises(KeyError):
            await site.look(lambda _: {"a": 1}["nothing"])
        assert await site.ask(Happened(2), lambda reply: reply.cause) == 2


async def test_a_group_that_was_begun_is_written_once() -> None:
    """Ending in the middle of a write neither loses its records nor writes them twice."""
    site = Site(in_thread=True)
    site.disk.gate.clear()
    task = asyncio.create_task(site.run(), name="journal")
    site.tell(Happened(0))
    await until(lambda: site._writing)
    task.cancel()
    await asyncio.sleep(0.02)
    site.disk.gate.set()
    await asyncio.wait([task])
    site.tell(Happened(1))
    site.close()
    assert site.disk.written == [0, 1]


def test_only_a_write_that_succeeds_is_timed() -> None:
    """Each success tells how long it took; a failure is the caller's and tells nothing."""
    took: list[float] = []
    disk = Disk()
    write = timed(disk.write, took.append)
    write([1])
    assert len(took) == 1
    assert took[0] >= 0
    disk.problem = JournalFullError("the disk is full")
    with pytest.raises(JournalFullError):
        write([2])
    assert len(took) == 1
