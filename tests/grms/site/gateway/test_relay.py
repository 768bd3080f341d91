"""Connections that are taken and passed on, also where there are no descriptors left."""

import asyncio
import errno
import itertools
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from grms.site.gateway import gateway
from grms.site.gateway.gateway import ConnectionEnd, Listener, Pause, Relay
from tests.waiting import until


async def test_without_descriptors_it_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One attempt, one word, a pause; who waited is served afterwards."""
    monkeypatch.setattr(gateway, "EXHAUSTED_PAUSE_S", 0.1)
    attempts: list[float] = []
    left = 3

    class Poor(socket.socket):
        def accept(self) -> Any:
            nonlocal left
            attempts.append(asyncio.get_running_loop().time())
            if left:
                left -= 1
                raise OSError(errno.EMFILE, "Too many open files")
            return super().accept()

    taken: list[socket.socket] = []
    told: list[str] = []
    listening = Poor(socket.AF_UNIX)
    listening.bind(str(tmp_path / "s"))
    listener = Listener([listening], 5, taken.append, told.append)
    with ExitStack() as stack:
        for _ in range(2):
            caller = stack.enter_context(socket.socket(socket.AF_UNIX))
            caller.connect(str(tmp_path / "s"))
        await until(lambda: len(taken) == 2)
        for each in taken:
            stack.enter_context(each)
    assert told == ["Too many open files"] * 3
    # Each failure is followed by a pause, not by another look at the same queue.
    assert all(later - sooner > 0.09 for sooner, later in itertools.pairwise(attempts[:4]))
    listener.close()
    listener.close()


async def test_a_listener_that_pauses_can_be_closed(tmp_path: Path) -> None:
    """Nothing comes back to life after its end."""

    class Poor(socket.socket):
        def accept(self) -> Any:
            raise OSError(errno.ENFILE, "Too many open files in system")

    told: list[str] = []
    listening = Poor(socket.AF_UNIX)
    listening.bind(str(tmp_path / "s"))
    listener = Listener([listening], 5, lambda _: None, told.append)
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(tmp_path / "s"))
        await until(lambda: bool(told))
        listener.close()
    assert not listener._pauses
    assert listening.fileno() == -1


async def test_a_turn_leads_to_another_server() -> None:
    """Connections from then on go to the new address; the folder goes with the relay."""
    found: Relay[str] = Relay()
    before = found.inner_address
    found.turn()
    assert found.inner_address != before
    folder = Path(before.removeprefix("unix:")).parent
    assert folder == Path(found.inner_address.removeprefix("unix:")).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    found.close()
    assert not folder.exists()


class FakeTransport(asyncio.Transport):
    """A connection that notes whether it is read.

    Attributes:
        reads: it is.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reads = True

    def is_closing(self) -> bool:
        """Returns that it stays."""
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Has no buffer."""

    def pause_reading(self) -> None:
        """Is read no further."""
        self.reads = False

    def resume_reading(self) -> None:
        """Is read again."""
        self.reads = True


class OneEnd(ConnectionEnd):
    """An end of a link.

    Attributes:
        counterpart: the other end.
    """

    counterpart: ConnectionEnd | None = None

    def other(self) -> ConnectionEnd | None:
        """Returns the other end."""
        return self.counterpart


@pytest.mark.parametrize("order", list(itertools.permutations(Pause)))
def test_an_end_is_read_when_nothing_holds_it_any_more(order: tuple[Pause, ...]) -> None:
    """Whichever of the reasons goes first: a reader that is quick again lets nobody send more than his share."""
    transport, end, other = FakeTransport(), OneEnd(), OneEnd()
    other.counterpart = end
    end.connection_made(transport)
    end.pause(Pause.UNLINKED)
    other.pause_writing()
    for _ in range(2):
        end.pause(Pause.CALLS)
    ends: dict[Pause, Callable[[], None]] = {
        Pause.UNLINKED: end.linked,
        Pause.UNWRITTEN: other.resume_writing,
        Pause.CALLS: lambda: end.resume(Pause.CALLS),
    }
    for why in order:
        assert not transport.reads
        ends[why]()
    assert transport.reads
