"""A site that keeps tunnels open: there are always some that wait, and pauses where there cannot be."""

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest

from grms.daemon.pacing import Backoff, BackoffSettings
from grms.daemon.tunnel import waiter as module
from grms.daemon.tunnel.stream import GO, NO, OK, WAIT, Stream, TunnelError
from grms.daemon.tunnel.waiter import IDLE, Waiter
from tests.grms.daemon.tunnel.ends import pair
from tests.waiting import until


@dataclass
class There:
    """The other side, as a test plays it.

    Attributes:
        refuses: why none may wait.
        dialled: how often it was connected to.
        ends: its ends of the connections that wait, and have waited.
        called: who has called over them.
    """

    refuses: str = ""
    dialled: int = 0
    ends: list[Stream] = field(default_factory=list)
    called: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    waiter: Waiter = field(init=False)

    async def dial(self) -> Stream:
        """Takes a connection."""
        self.dialled += 1
        if self.refuses == "away":
            raise TunnelError("nobody there")
        one, other = await pair()
        other.say(*((NO, self.refuses) if self.refuses else (OK,)))
        self.ends.append(other)
        return one

    async def deliver(self, stream: Stream, caller: str) -> None:
        """Serves a call until it is over."""
        self.called.append(caller)
        await stream.reader.read()


@asynccontextmanager
async def waiting(there: There) -> AsyncIterator[Waiter]:
    """Yields a waiter that runs."""
    there.waiter = waiter = Waiter(
        "south",
        there.dial,
        there.deliver,
        rng=np.random.default_rng(1),
        on_problem=lambda where, problem: there.problems.append(f"{where}: {problem}"),
    )
    task = asyncio.create_task(waiter.run())
    try:
        yield waiter
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for end in there.ends:
            end.close()


async def test_there_are_always_some_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while others are used; one that breaks is replaced; each says that it is there."""
    monkeypatch.setattr(module, "PING_S", 0.01)
    monkeypatch.setattr(module, "PAUSES", BackoffSettings(first_s=0.001, most_s=0.002))
    there = There()
    async with waiting(there) as waiter:
        await until(lambda: waiter.waiting == IDLE == len(there.ends))
        for end in there.ends:
            assert [await end.line(60.0) for _ in range(3)] == [(WAIT, ""), ("", ""), ("", "")]
        there.ends[0].say(GO, "east")
        await until(lambda: (waiter.used, waiter.waiting) == (1, IDLE))
        assert there.called == ["east"]
        there.ends[1].close()
        await until(lambda: len(there.ends) == IDLE + 2)
        there.ends[0].close()
        await until(lambda: (waiter.used, waiter.waiting) == (0, IDLE))
        there.ends[2].say("HELLO")
        await until(lambda: len(there.ends) == IDLE + 3)
        waiter.renew()
        await until(lambda: len(there.ends) == 2 * IDLE + 3)
        assert there.problems == ["south: "]


async def test_there_are_not_more_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond, the other side has to do with those that there are."""
    monkeypatch.setattr(module, "USED_MAX", 2)
    there = There()
    async with waiting(there) as waiter:
        for used in (0, 1):
            await until(lambda: waiter.waiting == IDLE)
            there.ends[used].say(GO, "east")
            await until(lambda used=used: waiter.used == used + 1)  # type: ignore[misc]  # binds it
        assert waiter.waiting == 1
        assert there.dialled == 3
        there.ends[0].close()
        await until(lambda: waiter.waiting == IDLE)


@pytest.mark.parametrize("refuses", ["away", "you may not"])
async def test_where_none_can_wait_there_are_pauses(
    monkeypatch: pytest.MonkeyPatch, refuses: str
) -> None:
    """They grow, whatever the reason is; it is told once."""
    pauses: list[float] = []
    real = Backoff.next_s

    def next_s(self: Backoff) -> float:
        pauses.append(real(self))
        return 0.0

    monkeypatch.setattr(Backoff, "next_s", next_s)
    there = There(refuses)
    async with waiting(there) as waiter:
        await until(lambda: len(pauses) >= 9)
        assert waiter.problem == ("nobody there" if refuses == "away" else refuses)
        there.refuses = ""
        await until(lambda: waiter.waiting == IDLE)
        assert waiter.problem == ""
    assert [told.partition(": ")[2] for told in there.problems] == [
        "nobody there" if refuses == "away" else refuses,
        "",
    ]
    assert pauses[0] < 0.21
    assert max(pauses) > 4.9


@pytest.mark.parametrize("said", ["", f"{GO} east"])
async def test_connections_that_are_dropped_at_once_are_not_opened_without_pauses(
    said: str,
) -> None:
    """As by a port that takes them and dies, or by one that calls and says nothing; that it ends is no end of a pause."""
    there = There()

    async def dial() -> Stream:
        stream = await there.dial()
        if said:
            there.ends[-1].say(said)
        there.ends[-1].close()
        return stream

    async def deliver(_: Stream, caller: str) -> None:
        there.called.append(caller)

    async with waiting(there) as waiter:
        waiter._dial, waiter._deliver = dial, deliver
        await until(lambda: waiter._useless > IDLE or len(there.called) > IDLE)
        dialled = there.dialled
        # Less than half of the first pause, in which there were hundreds. Calls are not kept waiting so long.
        await asyncio.sleep(0.05)
        assert there.dialled <= dialled + 5
        if said:
            await until(lambda: len(there.called) > 20)


async def test_a_call_that_cannot_be_served_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where there are no descriptors left; connections wait as before, and the next call is served."""
    monkeypatch.setattr(module, "PAUSES", BackoffSettings(first_s=0.001, most_s=0.002))
    there = There()
    async with waiting(there) as waiter:
        await until(lambda: waiter.waiting == IDLE == len(there.ends))

        async def deliver(_stream: Stream, _caller: str) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

        waiter._deliver = deliver
        there.ends[0].say(GO, "east")
        await until(lambda: len(there.ends) == IDLE + 1 and waiter.used == 0)
        waiter._deliver = there.deliver
        there.ends[1].say(GO, "west")
        await until(lambda: there.called == ["west"])
        assert "south: a call of east is not served: Too many open files" in there.problems


async def test_one_to_which_nothing_is_said_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection may be dead without a word, as behind a firewall that has forgotten it."""
    monkeypatch.setattr(module, "SILENCE_MAX_S", 0.05)
    there = There()
    async with waiting(there):
        await until(lambda: len(there.ends) > IDLE)
