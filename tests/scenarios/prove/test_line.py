"""A link that breaks on demand: cut, held up, one way, slow, and mended."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from scenarios.prove.line import Line
from tests.waiting import until


class Far:
    """A server that notes what it hears, and answers in capitals."""

    def __init__(self) -> None:
        self.heard = b""
        self.open = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        self.open += 1
        with suppress(ConnectionError):
            while content := await reader.read(100):
                self.heard += content
                writer.write(content.upper())
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        self.open -= 1


@asynccontextmanager
async def linked() -> AsyncIterator[tuple[Line, Far, asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yields a line, who is at its end, and a connection over it."""
    far = Far()
    server = await asyncio.start_server(far.answer, "127.0.0.1", 0)
    async with server:
        async with Line(server.sockets[0].getsockname()[1]) as line:
            reader, writer = await asyncio.open_connection("127.0.0.1", line.port)
            yield line, far, reader, writer
            await closed(writer)
        await until(lambda: not far.open)


async def closed(writer: asyncio.StreamWriter) -> None:
    """Closes a connection, also one that is broken."""
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def test_what_is_held_up_comes_late() -> None:
    """One way, requests arrive and answers wait; held up, requests wait too; mended, all of it comes."""
    async with linked() as (line, far, reader, writer):
        line.answer_not()
        writer.write(b"a")
        await until(lambda: far.heard == b"a")
        answer = asyncio.ensure_future(reader.read(1))
        line.mend()
        assert await answer == b"A"
        line.hold_up()
        writer.write(b"b")
        answer = asyncio.ensure_future(reader.read(1))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(answer), 0.05)
        assert far.heard == b"a"
        line.mend()
        assert await answer == b"B"


async def test_a_slow_line_takes_its_time() -> None:
    """Each way, for each piece."""
    async with linked() as (line, _, reader, writer):
        line.slow(0.05)
        begin = time.monotonic()
        writer.write(b"a")
        assert await reader.read(1) == b"A"
        assert time.monotonic() - begin >= 0.1


async def test_a_cut_line_lets_nobody_in() -> None:
    """Connections break, and new ones end at once, until it is mended."""
    async with linked() as (line, _, reader, writer):
        writer.write(b"a")
        assert await reader.read(1) == b"A"
        line.cut()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        again, other = await asyncio.open_connection("127.0.0.1", line.port)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await again.readexactly(1)
        await closed(other)
        line.mend()
        again, other = await asyncio.open_connection("127.0.0.1", line.port)
        other.write(b"b")
        assert await again.read(1) == b"B"
        await closed(other)
